package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/spf13/cobra"

	"cairn/internal/fault"
	"cairn/internal/mcp"
	"cairn/internal/op"
)

// exactly refuses any other number of arguments than n in words that say what is missing.
func exactly(what string, n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return fault.New(fault.Invalid, "%s takes %s (see `%s --help`)", cmd.CommandPath(), what, cmd.CommandPath())
		}
		return nil
	}
}

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

const callExample = `cairn call create_personal_task '{"name":"Call the dentist"}'`

func (r *run) callCommand() *cobra.Command {
	return &cobra.Command{Use: "call TOOL [ARGUMENTS]", Short: "Call a tool with arguments as a JSON object (- reads them from standard input)",
		Example: "  " + callExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return fault.New(fault.Invalid, "call takes a tool and its arguments as one JSON object in quotes, such as %s; `cairn tools` lists the tools", callExample)
			}
			return nil
		},
		ValidArgsFunction: r.completeTool,
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

func (r *run) completeTool(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if len(args) == 0 {
		for _, o := range r.p.Operations() {
			if strings.HasPrefix(o.Name, begun) {
				names = append(names, o.Name+"\t"+o.Title)
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// callAndPrint runs an operation and prints its answer.
func (r *run) callAndPrint(ctx context.Context, name string, args any) error {
	res, err := r.call(ctx, name, args)
	if err != nil {
		return err
	}
	return r.printAnswer(res)
}

func (r *run) printAnswer(res op.Result) error {
	if r.human() {
		r.screen(r.out).answer(res.JSON)
		return nil
	}
	_, err := fmt.Fprintln(r.out, string(res.JSON))
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
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

func (r *run) toolsCommand() *cobra.Command {
	var markdown bool
	cmd := &cobra.Command{Use: "tools [TOOL]", Short: "List the tools, or show one with its arguments", Args: cobra.MaximumNArgs(1), ValidArgsFunction: r.completeTool,
		RunE: func(cmd *cobra.Command, args []string) error {
			if markdown {
				_, err := io.WriteString(r.out, Markdown(r.p.Operations()))
				return err
			}
			tools, err := r.tools(cmd.Context())
			if err != nil {
				return err
			}
			if len(args) == 1 {
				for _, t := range tools {
					if t.Name == args[0] {
						return r.showTool(t)
					}
				}
				return fault.New(fault.UnknownTool, "there is no tool %q; `cairn tools` lists them", args[0])
			}
			if !r.human() {
				return r.print(map[string]any{"count": len(tools), "tools": tools})
			}
			rows := make([][]string, len(tools))
			for i, t := range tools {
				rows[i] = []string{t.Name, t.Description}
			}
			r.screen(r.out).wrapped(rows)
			return nil
		}}
	cmd.Flags().BoolVar(&markdown, "markdown", false, "all operations as Markdown, as in docs/tools.md")
	return cmd
}

// tools lists the tools where calls would go: those of a server, or all of this program's.
func (r *run) tools(ctx context.Context) ([]tool, error) {
	remote, err := r.remote()
	if err != nil {
		return nil, err
	}
	if remote != nil {
		return remote.tools(ctx)
	}
	var tools []tool
	for _, o := range r.p.Operations() {
		in, err := json.Marshal(o.In)
		if err != nil {
			return nil, err
		}
		tools = append(tools, tool{Name: o.Name, Title: o.Title, Description: o.Doc, InputSchema: in})
	}
	return tools, nil
}

// showTool shows one tool with its arguments.
func (r *run) showTool(t tool) error {
	if !r.human() {
		return r.print(t)
	}
	s := r.screen(r.out)
	s.paragraph(t.Name + ": " + t.Description)
	var in jsonschema.Schema
	if err := json.Unmarshal(t.InputSchema, &in); err != nil {
		return failure{err}
	}
	inOrder(&in, t.InputSchema)
	var rows [][]string
	arguments(&in, "", func(name, kind, about string) { rows = append(rows, []string{name, kind, about}) })
	if len(rows) > 0 {
		fmt.Fprintln(r.out)
		s.wrapped(rows)
	}
	if strings.Contains(fmt.Sprint(rows), "*") {
		fmt.Fprintln(r.out, "\n* required")
	}
	return nil
}

func (r *run) mcpCommand() *cobra.Command {
	var stdio bool
	cmd := &cobra.Command{Use: "mcp --stdio", Short: "Speak MCP on standard input and output, for clients that start a program", Args: cobra.NoArgs,
		Long: "Speak MCP on standard input and output, for clients that start a program: on the local data as its owner, or on the server that --server names.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !stdio {
				return fault.New(fault.Invalid, "give --stdio; over HTTP agents reach `cairn serve` at its /mcp")
			}
			remote, err := r.remote()
			if err != nil {
				return err
			}
			if remote != nil {
				b := &mcp.Bridge{URL: remote.Server + mcp.Path, Token: remote.Token, Agent: "cairn-stdio/" + r.p.Version, Client: &http.Client{Transport: transport()}}
				return stdioEnd(b.Run(cmd.Context(), r.in, r.out))
			}
			l, err := r.open(cmd.Context())
			if err != nil {
				return err
			}
			defer l.Close() //nolint:errcheck // what was written is durable already
			return stdioEnd(l.Stdio(cmd.Context(), r.in, r.out))
		}}
	cmd.Flags().BoolVar(&stdio, "stdio", false, "on standard input and output")
	return cmd
}

func stdioEnd(err error) error {
	if err != nil {
		return failure{fmt.Errorf("standard input can't be read: %w", err)}
	}
	return nil
}

// mostConnections is how many requests a bridge has at its server at once; more wait here.
const mostConnections = 32

// transport is HTTP for many requests to one server.
func transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxConnsPerHost, t.MaxIdleConnsPerHost = mostConnections, mostConnections
	return t
}

func (r *run) doctorCommand() *cobra.Command {
	return &cobra.Command{Use: "doctor", Short: "Look for what is wrong and say how to mend it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			checks := r.checks(cmd.Context())
			bad := 0
			rows := make([][]string, len(checks))
			for i, c := range checks {
				mark := "ok"
				if !c.OK {
					mark = "WRONG"
					bad++
				}
				rows[i] = []string{mark, c.Name, c.Says}
				if c.Do != "" {
					rows[i][2] += "\n→ " + c.Do
				}
			}
			if !r.human() {
				if err := r.print(map[string]any{"ok": bad == 0, "checks": checks}); err != nil {
					return err
				}
			} else {
				r.screen(r.out).wrapped(rows)
				fmt.Fprintln(r.out, "\n"+verdict(bad))
			}
			if bad > 0 {
				return errSaid
			}
			return nil
		}}
}

func verdict(bad int) string {
	switch bad {
	case 0:
		return "All is well."
	case 1:
		return "One thing is wrong."
	}
	return fmt.Sprintf("%d things are wrong.", bad)
}

// checks looks at this machine and, where commands go to a server, at that server.
func (r *run) checks(ctx context.Context) []Check {
	if r.configErr != nil {
		return []Check{{Name: "configuration", Says: r.configErr.Error(), Do: "set what is named, then run doctor again: nothing else can be checked without it"}}
	}
	checks := r.p.Doctor(ctx, r.config)
	remote, err := r.remote()
	if err == nil && remote == nil {
		return checks
	}
	c := Check{Name: "server", OK: err == nil, Do: "give --server and --token (or CAIRN_SERVER and CAIRN_TOKEN) that fit, or `cairn logout` where they were saved"}
	if err == nil {
		_, err = remote.call(ctx, "list_heaps", json.RawMessage("{}"))
	}
	if c.OK = err == nil; c.OK {
		c.Says, c.Do = "commands work on "+remote.Server+", and the token is good", ""
	} else {
		c.Says = fault.From(err).Message
		if remote != nil {
			c.Says = "commands work on " + remote.Server + ": " + c.Says
		}
	}
	return append(checks, c)
}
