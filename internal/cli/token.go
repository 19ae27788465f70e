package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

func (r *run) accountCommand() *cobra.Command {
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
			if len(args) == 0 {
				return fault.New(fault.Invalid, "give --name or --zone")
			}
			return r.callAndPrint(cmd.Context(), "set_account", args)
		}}
	set.Flags().StringVar(&name, "name", "", "what you are called here")
	set.Flags().StringVar(&zone, "zone", "", "time zone such as Europe/Vienna: it decides what day today is")
	which := func(use, short, name string) *cobra.Command {
		return &cobra.Command{Use: use + " NAME", Short: short, Args: exactly("the name of an account", 1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return r.callAndPrint(cmd.Context(), name, map[string]any{"account": args[0]})
			}}
	}
	list := &cobra.Command{Use: "list", Short: "All accounts, those that wait to be admitted first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.callAndPrint(cmd.Context(), "list_accounts", map[string]any{})
		}}
	return group("account", "Accounts: your own, and those of the server", set, list, r.linkCommand(),
		which("admit", "Let an account that signed up use the server", "admit_account"),
		which("disable", "Close an account: its sessions, tokens and agents are dead at once", "disable_account"),
		which("enable", "Open an account that was disabled", "enable_account"))
}

// linkCommand makes a link to sign in by, for whoever has no way in any more.
func (r *run) linkCommand() *cobra.Command {
	return &cobra.Command{Use: "link [NAME]", Short: "Make a one-time link that gives an account a new way to sign in", Args: cobra.MaximumNArgs(1),
		Long: "Make a one-time link that gives an account a new way to sign in: for the first time, or where the phrase and passkeys are lost. It replaces the phrase and ends all sessions.",
		RunE: func(cmd *cobra.Command, args []string) error {
			in := map[string]any{}
			if len(args) == 1 {
				in["account"] = args[0]
			}
			res, err := r.call(cmd.Context(), "create_setup_link", in)
			if err != nil {
				return err
			}
			var out struct{ Link string }
			if err := json.Unmarshal(res.JSON, &out); err != nil {
				return failure{err}
			}
			if r.json {
				fmt.Fprintln(r.out, string(res.JSON))
			} else {
				fmt.Fprintln(r.out, out.Link)
			}
			return nil
		}}
}

func (r *run) tokenCommand() *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "Your tokens, with their rights and use", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.callAndPrint(cmd.Context(), "list_tokens", map[string]any{})
		}}
	revoke := &cobra.Command{Use: "revoke ID|NAME", Short: "End a token at once", Args: exactly("an id or a name of a token", 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.callAndPrint(cmd.Context(), "revoke_token", map[string]any{"token": args[0]})
		}}
	return group("token", "API tokens that you hand to agents", r.tokenCreateCommand(), list, revoke)
}

func (r *run) tokenCreateCommand() *cobra.Command {
	texts, lists := map[string]*string{}, map[string]*[]string{}
	var readOnly, propose bool
	var rate int
	create := &cobra.Command{Use: "create --name NAME", Short: "Make a token; it is shown once", Args: cobra.NoArgs,
		Long: "Make a token; it is shown once. Unless said otherwise it reads and writes, in all areas and all heaps of its account, later ones too.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			args := map[string]any{"read_only": readOnly, "propose_memory": propose}
			// An empty value, as of a shell variable that isn't set, must not become a token without that limit.
			empty := func(flag string) error {
				return fault.New(fault.Invalid, "--%s is empty: give it a value or leave it out", flag)
			}
			for flag, v := range texts {
				if *v = strings.TrimSpace(*v); *v != "" {
					args[flag] = *v
				} else if cmd.Flags().Changed(flag) {
					return empty(flag)
				}
			}
			for flag, v := range lists {
				if list := commas(strings.Join(*v, ",")); len(list) > 0 {
					args[strings.ReplaceAll(flag, "-", "_")] = list
				} else if cmd.Flags().Changed(flag) {
					return empty(flag)
				}
			}
			if cmd.Flags().Changed("rate") {
				args["rate"] = rate
			}
			res, err := r.call(cmd.Context(), "create_token", args)
			if err != nil {
				return err
			}
			return r.printToken(res)
		}}
	f := create.Flags()
	for flag, help := range map[string]string{
		"name":    "what you will know it by",
		"account": "name of the account it speaks for (default yours)",
		"expires": "span such as 90d or 12h, never, or a date (default $MCP_DEFAULT_TOKEN_EXPIRY_DAYS, 90d)",
	} {
		texts[flag] = f.String(flag, "", help)
	}
	for flag, help := range map[string]string{
		"areas":    "only the areas in `LIST`, of " + strings.Join(who.Areas, ",") + " (default all)",
		"heaps":    "only the heaps in `LIST`, ids or names by commas (default all)",
		"allow-ip": "only from the addresses and ranges in `LIST` (default anywhere)",
	} {
		lists[flag] = f.StringArray(flag, nil, help)
	}
	f.BoolVar(&readOnly, "read-only", false, "it may only read")
	f.BoolVar(&propose, "propose-memory", false, "new memories wait for you to accept them")
	f.IntVar(&rate, "rate", 0, "calls per minute, 0 = no limit (default the server's $MCP_MAX_RATE_LIMIT, 60)")
	_ = create.MarkFlagRequired("name")
	_ = create.RegisterFlagCompletionFunc("areas", cobra.FixedCompletions(who.Areas, cobra.ShellCompDirectiveNoFileComp))
	return create
}

// commas reads a list by commas.
func commas(s string) []string {
	var list []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
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
			until = "expires " + moment(*out.Token.ExpiresAt, false)
		}
		fmt.Fprintf(r.out, "%s\n\nThis is the token %q; it %s. Keep it now: it is not shown again.\n", out.Secret, out.Token.Name, until)
	}
	return nil
}

// firstToken makes a token for the first agent where there was never one; "" where there was.
func (r *run) firstToken(ctx context.Context, l *Local) (string, error) {
	c, err := l.Person(ctx)
	if err != nil {
		return "", err
	}
	ctx = who.With(ctx, c)
	res, err := l.Runner.Run(ctx, "list_tokens", json.RawMessage(`{}`))
	if err != nil {
		return "", err
	}
	var have struct{ Count int }
	if err := json.Unmarshal(res.JSON, &have); err != nil || have.Count > 0 {
		return "", err
	}
	if res, err = l.Runner.Run(ctx, "create_token", json.RawMessage(`{"name":"first agent"}`)); err != nil {
		return "", err
	}
	var out struct{ Secret string }
	return out.Secret, json.Unmarshal(res.JSON, &out)
}
