package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/fault"
	"cairn/internal/mcp"
	"cairn/internal/op"
)

func (r *run) versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if r.json {
				return r.print(map[string]string{"version": r.p.Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
			}
			fmt.Fprintln(r.out, "cairn "+r.p.Version)
			return nil
		}}
}

func (r *run) accountCommand() *cobra.Command {
	root := &cobra.Command{Use: "account", Short: "Your own account"}
	var name, zone string
	set := &cobra.Command{Use: "set", Short: "Change your account's name or time zone", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			args := map[string]any{}
			if cmd.Flags().Changed("name") {
				args["name"] = name
			}
			if cmd.Flags().Changed("zone") {
				args["zone"] = zone
			}
			return r.callAndPrint(cmd.Context(), "set_account", args)
		}}
	set.Flags().StringVar(&name, "name", "", "what you are called here")
	set.Flags().StringVar(&zone, "zone", "", "time zone such as Europe/Vienna: it decides what day today is")
	root.AddCommand(set)
	return root
}

func (r *run) tokenCommand() *cobra.Command {
	root := &cobra.Command{Use: "token", Short: "API tokens that you hand to agents"}
	var in struct {
		name, account, areas, heaps, expires string
		readOnly, propose                    bool
		rate                                 int
		allow                                []string
	}
	create := &cobra.Command{Use: "create", Short: "Make a token; it is shown once", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			args := map[string]any{"name": in.name, "read_only": in.readOnly, "propose_memory": in.propose}
			for k, v := range map[string]string{"account": in.account, "expires": in.expires} {
				if v != "" {
					args[k] = v
				}
			}
			for k, v := range map[string]string{"areas": in.areas, "heaps": in.heaps} {
				if v != "" {
					args[k] = strings.Split(v, ",")
				}
			}
			if cmd.Flags().Changed("rate") {
				args["rate"] = in.rate
			}
			if len(in.allow) > 0 {
				args["allow_ip"] = in.allow
			}
			res, err := r.call(cmd.Context(), "create_token", args)
			if err != nil {
				return err
			}
			return r.printToken(res)
		}}
	f := create.Flags()
	f.StringVar(&in.name, "name", "", "what you will know it by")
	f.StringVar(&in.account, "account", "", "account it speaks for (yours)")
	f.BoolVar(&in.readOnly, "read-only", false, "it may read alone")
	f.BoolVar(&in.propose, "propose-memory", false, "new memories wait for you")
	f.StringVar(&in.areas, "areas", "", "areas by commas: tasks,memory,library,documents,personas (all)")
	f.StringVar(&in.heaps, "heaps", "", "heaps by commas, ids or names (all)")
	f.StringVar(&in.expires, "expires", "", "span such as 90d or 12h, never, or a date (90d)")
	f.IntVar(&in.rate, "rate", 60, "calls per minute, 0 = no limit")
	f.StringSliceVar(&in.allow, "allow-ip", nil, "addresses or ranges it may be used from (all)")
	_ = create.MarkFlagRequired("name")
	list := &cobra.Command{Use: "list", Short: "Your tokens, with their rights and use", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.callAndPrint(cmd.Context(), "list_tokens", map[string]any{})
		}}
	revoke := &cobra.Command{Use: "revoke ID|NAME", Short: "End a token at once", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.callAndPrint(cmd.Context(), "revoke_token", map[string]any{"token": args[0]})
		}}
	root.AddCommand(create, list, revoke)
	return root
}

// printToken prints the token alone where something reads it, and with a word to a person on a terminal.
func (r *run) printToken(res op.Result) error {
	var out struct {
		Secret string `json:"secret"`
		Token  struct {
			Name      string  `json:"name"`
			ExpiresAt *string `json:"expires_at"`
		} `json:"token"`
	}
	if err := json.Unmarshal(res.JSON, &out); err != nil {
		return failure{err}
	}
	switch {
	case r.json:
		fmt.Fprintln(r.out, string(res.JSON))
	case !terminal(r.out):
		fmt.Fprintln(r.out, out.Secret)
	default:
		until := "does not expire"
		if out.Token.ExpiresAt != nil {
			until = "expires " + (*out.Token.ExpiresAt)[:10]
		}
		fmt.Fprintf(r.out, "%s\n\nThis is the token %q; it %s. Keep it now: it is not shown again.\n", out.Secret, out.Token.Name, until)
	}
	return nil
}

func (r *run) callCommand() *cobra.Command {
	return &cobra.Command{Use: "call TOOL [ARGUMENTS]", Short: "Call a tool with arguments as a JSON object (- reads them from standard input)", Args: cobra.RangeArgs(1, 2),
		Example: `  cairn call create_personal_task '{"name":"Call the dentist"}'`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if len(args) == 0 {
				for _, o := range r.p.Operations() {
					names = append(names, o.Name+"\t"+o.Title)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			raw := json.RawMessage("{}")
			if len(args) == 2 {
				raw = json.RawMessage(args[1])
			}
			if string(raw) == "-" {
				b, err := io.ReadAll(io.LimitReader(r.in, 16<<20+1))
				if err != nil {
					return failure{err}
				}
				raw = b
			}
			return r.callAndPrint(cmd.Context(), args[0], raw)
		}}
}

// callAndPrint runs an operation and prints its answer.
func (r *run) callAndPrint(ctx context.Context, name string, args any) error {
	res, err := r.call(ctx, name, args)
	if err != nil {
		return err
	}
	if r.human() {
		return human(r.out, res)
	}
	_, err = fmt.Fprintln(r.out, string(res.JSON))
	return err
}

func (r *run) print(v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = fmt.Fprintln(r.out, string(b))
	}
	return err
}

// tool is a tool as tools/list shows it.
type tool struct {
	Name        string         `json:"name"`
	Title       string         `json:"title"`
	Description string         `json:"description"`
	InputSchema map[string]any `json:"inputSchema"`
}

func (r *run) toolsCommand() *cobra.Command {
	var markdown bool
	cmd := &cobra.Command{Use: "tools", Short: "List the tools", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if markdown {
				_, err := io.WriteString(r.out, Markdown(r.p.Operations()))
				return err
			}
			remote, err := r.remote()
			if err != nil {
				return err
			}
			var tools []tool
			if remote != nil {
				if tools, err = remote.tools(cmd.Context()); err != nil {
					return err
				}
			} else {
				for _, o := range r.p.Operations() {
					t := tool{Name: o.Name, Title: o.Title, Description: o.Doc}
					b, _ := json.Marshal(o.In)
					_ = json.Unmarshal(b, &t.InputSchema)
					tools = append(tools, t)
				}
			}
			if !r.human() {
				return r.print(map[string]any{"count": len(tools), "tools": tools})
			}
			rows := make([][]string, len(tools))
			for i, t := range tools {
				rows[i] = []string{t.Name, t.Description}
			}
			table(r.out, []string{"TOOL", "WHAT IT DOES"}, rows)
			return nil
		}}
	cmd.Flags().BoolVar(&markdown, "markdown", false, "all operations as Markdown, as in docs/tools.md")
	return cmd
}

func (r *run) mcpCommand() *cobra.Command {
	var stdio bool
	cmd := &cobra.Command{Use: "mcp --stdio", Short: "Speak MCP on standard input and output, for clients that start a program", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !stdio {
				return fault.New(fault.Invalid, "give --stdio; over HTTP agents reach `cairn serve` at its /mcp")
			}
			remote, err := r.remote()
			if err != nil {
				return err
			}
			if remote != nil {
				b := &mcp.Bridge{URL: remote.Server + mcp.Path, Token: remote.Token, Agent: "cairn-stdio/" + r.p.Version, Client: &http.Client{}}
				if err := b.Run(cmd.Context(), r.in, r.out); err != nil {
					return failure{err}
				}
				return nil
			}
			l, err := r.open(cmd.Context())
			if err != nil {
				return err
			}
			defer l.Close() //nolint:errcheck // what was written is durable already
			if err := l.Stdio(cmd.Context(), os.Stdin, os.Stdout); err != nil && cmd.Context().Err() == nil {
				return failure{err}
			}
			return nil
		}}
	cmd.Flags().BoolVar(&stdio, "stdio", false, "on standard input and output")
	return cmd
}

func (r *run) doctorCommand() *cobra.Command {
	return &cobra.Command{Use: "doctor", Short: "Look for what is wrong and say how to mend it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			checks := r.p.Doctor(cmd.Context(), r.config)
			bad := 0
			rows := make([][]string, len(checks))
			for i, c := range checks {
				mark := "ok"
				if !c.OK {
					mark = "WRONG"
					bad++
				}
				says := c.Says
				if c.Do != "" {
					says += " → " + c.Do
				}
				rows[i] = []string{mark, c.Name, says}
			}
			if !r.human() {
				if err := r.print(map[string]any{"ok": bad == 0, "checks": checks}); err != nil {
					return err
				}
			} else {
				table(r.out, nil, rows)
			}
			if bad > 0 {
				return errSaid
			}
			return nil
		}}
}
