package cli

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/rawjson"
)

func (r *run) serveCommand() *cobra.Command {
	var printToken bool
	cmd := &cobra.Command{Use: "serve", Short: "Run the server", Args: cobra.NoArgs,
		Long: "Run the server. On fresh data it makes the first account, called owner, with a Personal and a Work heap, and a token for the first agent.",
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
			if isFault(err) {
				return err
			}
			if err != nil {
				return failure{err}
			}
			defer func() {
				if err := l.Close(); err != nil {
					log.Error("closing the data failed", "cause", err.Error())
				}
				log.Info("stopped")
			}()
			err = l.Serve(cmd.Context(), func(address string) {
				token := ""
				if printToken || terminal(r.out) { // not before it listens: a start that fails must not use the token up
					if token, err = r.firstToken(cmd.Context(), l); err != nil {
						log.Error("no first token could be made: `cairn token create` makes one", "cause", err.Error())
					}
				}
				setup, err := l.SetupLink(cmd.Context())
				if err != nil {
					log.Error("no set-up link could be made: `cairn account link` makes one", "cause", err.Error())
				}
				url := r.config.PublicURL.String() // Serve has put the address in where none was given
				if r.json {
					_ = r.print(map[string]string{"version": r.p.Version, "url": url, "mcp_url": url + "/mcp", "data": r.where(), "token": token, "setup_url": setup})
				} else {
					r.welcome(url, token, setup)
				}
				log.Info("serving", "address", address, "url", url)
			})
			if err != nil {
				return failure{err}
			}
			return nil
		}}
	cmd.Flags().BoolVar(&printToken, "print-token", false, "print the first token even where no terminal reads it")
	return cmd
}

// where names the data without secrets.
func (r *run) where() string {
	if r.config.DatabaseURL != "" {
		return "PostgreSQL"
	}
	if data, err := filepath.Abs(r.config.Data); err == nil {
		return data
	}
	return r.config.Data
}

// command is how this program is called from a shell: by its name where that finds it.
func command() (name, path string) {
	path, err := os.Executable()
	if err != nil {
		return "cairn", "cairn"
	}
	if found, err := exec.LookPath("cairn"); err == nil {
		a, aerr := filepath.EvalSymlinks(found)
		b, berr := filepath.EvalSymlinks(path)
		if aerr == nil && berr == nil && a == b {
			return "cairn", path
		}
	}
	return path, path
}

// welcome prints how to connect.
func (r *run) welcome(public, token, setup string) {
	name, path := command()
	url, shown := public+"/mcp", token
	more := quote(name) + " token create --name NAME --data " + quote(r.where())
	if r.config.DatabaseURL != "" {
		more = "CAIRN_DATABASE_URL=... " + quote(name) + " token create --name NAME"
	}
	fmt.Fprintf(r.out, "Cairn %s\n\nMCP URL  %s\nData     %s\n", r.p.Version, url, r.where())
	if token != "" {
		fmt.Fprintf(r.out, "Token    %s\n         Keep it now: it is not shown again. More are made by\n         %s\n", token, more)
	} else {
		shown = "$CAIRN_TOKEN"
		fmt.Fprintf(r.out, "Token    make one for each agent:\n         export CAIRN_TOKEN=$(%s)\n", more)
	}
	if setup != "" {
		fmt.Fprintf(r.out, "Set up   %s\n         Open it in a browser to give yourself a way to sign in. It works once, within a day.\n", setup)
	} else {
		fmt.Fprintf(r.out, "Web      %s\n", public)
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_personal_task","arguments":{"name":"Try Cairn"}}}`
	fmt.Fprintf(r.out, "\nTry it\n  curl -sS %s -H \"Authorization: Bearer %s\" -H 'Content-Type: application/json' -d '%s'\n", url, shown, body)
	fmt.Fprintf(r.out, "\nClaude Code\n  claude mcp add --transport http cairn %s --header \"Authorization: Bearer %s\"\n", url, shown)
	fmt.Fprintf(r.out, "\nCodex\n  export CAIRN_TOKEN=%s\n  codex mcp add cairn --url %s --bearer-token-env-var CAIRN_TOKEN\n", orPlaceholder(token), url)
	fmt.Fprintf(r.out, "\nCursor, in mcp.json\n  %s\n", httpSnippet(url, orPlaceholder(token)))
	args, about := []string{"mcp", "--stdio", "--data", r.where()}, "stdio; works without the server too"
	if r.config.DatabaseURL != "" { // the URL holds a password: the snippet must not
		args, about = []string{"mcp", "--stdio", "--server", public, "--token", orPlaceholder(token)}, "stdio"
	}
	fmt.Fprintf(r.out, "\nClaude Desktop, in claude_desktop_config.json (%s)\n  %s\n\n", about, stdioSnippet(path, args))
}

func orPlaceholder(token string) string {
	if token == "" {
		return "YOUR_TOKEN"
	}
	return token
}

// mcpServers is the configuration that most clients read, with its members in the order that people write them.
type mcpServers struct {
	Servers struct {
		Cairn any `json:"cairn"`
	} `json:"mcpServers"`
}

func httpSnippet(url, token string) []byte {
	var s mcpServers
	s.Servers.Cairn = struct {
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers"`
	}{url, map[string]string{"Authorization": "Bearer " + token}}
	b, _ := rawjson.Marshal(s)
	return b
}

func stdioSnippet(command string, args []string) []byte {
	var s mcpServers
	s.Servers.Cairn = struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}{command, args}
	b, _ := rawjson.Marshal(s)
	return b
}

// quote makes a word safe for a shell.
func quote(s string) string {
	if s != "" && strings.IndexFunc(s, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("/._-+:@", c))
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
