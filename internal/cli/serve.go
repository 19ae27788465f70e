package cli

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/op"
	"cairn/internal/rawjson"
	"cairn/internal/who"
)

func (r *run) serveCommand() *cobra.Command {
	var printToken bool
	cmd := &cobra.Command{Use: "serve", Short: "Run the server", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := r.config
			if err := c.CheckServe(); err != nil {
				return err
			}
			level := slog.LevelInfo
			if c.Debug {
				level = slog.LevelDebug
			}
			log := r.logger(level)
			release, err := r.p.LockServer(c)
			if err != nil {
				return failure{err}
			}
			defer release()
			l, err := r.p.Open(cmd.Context(), c, log)
			if err != nil {
				return failure{err}
			}
			defer func() {
				if err := l.Close(); err != nil {
					log.Error("closing the data failed", "cause", err.Error())
				}
				log.Info("stopped")
			}()
			token := ""
			if l.Created && (printToken || terminal(r.out)) {
				if token, err = r.firstToken(cmd, l); err != nil {
					return err
				}
			}
			err = l.Serve(cmd.Context(), func(address string) {
				public := strings.TrimSuffix(c.PublicURL.String(), "/")
				if !c.Given("PUBLIC_URL") {
					public = "http://" + address
				}
				r.welcome(public, token)
				log.Info("serving", "address", address, "url", public)
			})
			if err != nil {
				return failure{err}
			}
			return nil
		}}
	cmd.Flags().BoolVar(&printToken, "print-token", false, "on a fresh data folder, print the first token even where no terminal reads it")
	return cmd
}

// firstToken makes a token for the first agent of a fresh folder.
func (r *run) firstToken(cmd *cobra.Command, l *Local) (string, error) {
	c, err := l.Person(cmd.Context())
	if err != nil {
		return "", err
	}
	var res op.Result
	if res, err = l.Runner.Run(who.With(cmd.Context(), c), "create_token", json.RawMessage(`{"name":"first agent"}`)); err != nil {
		return "", err
	}
	var out struct{ Secret string }
	return out.Secret, json.Unmarshal(res.JSON, &out)
}

// welcome prints how to connect.
func (r *run) welcome(public, token string) {
	self, err := os.Executable()
	if err != nil {
		self = "cairn"
	}
	data, err := filepath.Abs(r.config.Data)
	if err != nil {
		data = r.config.Data
	}
	url, shown := public+"/mcp", token
	fmt.Fprintf(r.out, "Cairn %s\n\nMCP URL  %s\n", r.p.Version, url)
	if token != "" {
		fmt.Fprintf(r.out, "Token    %s\n         (keep it now: it is not shown again; `cairn token create --name NAME` makes more)\n", token)
	} else {
		shown = "$CAIRN_TOKEN"
		fmt.Fprintf(r.out, "Token    make one: CAIRN_TOKEN=$(%s token create --name NAME --data %s)\n", quote(self), quote(data))
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_personal_task","arguments":{"name":"Try Cairn"}}}`
	fmt.Fprintf(r.out, "\nTry it\n  curl -s %s -H \"Authorization: Bearer %s\" -H 'Content-Type: application/json' -d '%s'\n", url, shown, body)
	fmt.Fprintf(r.out, "\nClaude Code\n  claude mcp add --transport http cairn %s --header \"Authorization: Bearer %s\"\n", url, shown)
	fmt.Fprintf(r.out, "\nCodex (export CAIRN_TOKEN first)\n  codex mcp add cairn --url %s --bearer-token-env-var CAIRN_TOKEN\n", url)
	if token == "" {
		shown = "YOUR_TOKEN"
	}
	cursor, _ := rawjson.Marshal(map[string]any{"mcpServers": map[string]any{"cairn": map[string]any{"url": url, "headers": map[string]string{"Authorization": "Bearer " + shown}}}})
	fmt.Fprintf(r.out, "\nCursor (mcp.json)\n  %s\n", cursor)
	args := []string{"mcp", "--stdio", "--data", data}
	if r.config.DatabaseURL != "" { // the URL holds a password: the snippet must not
		args = []string{"mcp", "--stdio", "--server", public, "--token", shown}
	}
	desktop, _ := rawjson.Marshal(map[string]any{"mcpServers": map[string]any{"cairn": map[string]any{"command": self, "args": args}}})
	fmt.Fprintf(r.out, "\nClaude Desktop (claude_desktop_config.json, stdio)\n  %s\n\n", desktop)
}

// quote makes a word safe for a shell.
func quote(s string) string {
	if strings.IndexFunc(s, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("/._-+:@", c))
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
