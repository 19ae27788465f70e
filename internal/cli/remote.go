package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/rawjson"
)

// login is what `cairn login` keeps.
type login struct {
	Server string `json:"server"`
	Token  string `json:"token"`
}

func loginFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("there is no folder for settings: %w", err)
	}
	return filepath.Join(dir, "cairn", "login.json"), nil
}

func savedLogin() (l login, ok bool) {
	path, err := loginFile()
	if err != nil {
		return l, false
	}
	b, err := os.ReadFile(path)
	return l, err == nil && json.Unmarshal(b, &l) == nil && l.Server != ""
}

// server is a Cairn that is reached over HTTP.
type server struct{ login }

// remote gives the server to work on, or nil for the local data. A flag wins over the environment, that over a saved login,
// that over local data; naming a data folder or a database means local data.
func (r *run) remote() (*server, error) {
	c := r.config
	flag := func(names ...string) bool {
		for _, n := range names {
			if _, ok := r.flags[n]; ok {
				return true
			}
		}
		return false
	}
	saved, hasSaved := savedLogin()
	var s server
	switch {
	case flag("server") && flag("data", "database-url"):
		return nil, fault.New(fault.Invalid, "--server and --data (or --database-url) name two places: give one")
	case flag("server"):
		s.Server = c.Server
	case flag("data", "database-url"):
		return nil, nil
	case c.Server != "":
		s.Server = c.Server
	case c.Given("CAIRN_DATA"), c.Given("CAIRN_DATABASE_URL"):
		return nil, nil
	case hasSaved:
		s.Server = saved.Server
	default:
		return nil, nil
	}
	if s.Server == "" {
		return nil, nil
	}
	if s.Token = c.Token; s.Token == "" && hasSaved && saved.Server == s.Server {
		s.Token = saved.Token
	}
	if s.Token == "" {
		return nil, fault.New(fault.Unauthenticated, "%s needs a token: give --token or set CAIRN_TOKEN", s.Server)
	}
	return &s, nil
}

var client = &http.Client{Timeout: 3 * time.Minute}

func (s *server) post(ctx context.Context, path string, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Server+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Authorization", "Bearer "+s.Token)
	req.Header.Set("User-Agent", "cairn-cli")
	res, err := client.Do(req)
	if err != nil {
		return 0, nil, fault.Wrap(fault.Unavailable, err, "%s does not answer: %v", s.Server, err)
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

func (s *server) call(ctx context.Context, name string, args json.RawMessage) (op.Result, error) {
	status, b, err := s.post(ctx, "/api/"+url.PathEscape(name), args)
	if err != nil {
		return op.Result{}, err
	}
	if status == http.StatusOK {
		return op.Result{JSON: b}, nil
	}
	var e struct {
		Error   string   `json:"error"`
		Message string   `json:"message"`
		Field   string   `json:"field"`
		Valid   []string `json:"valid"`
		Errors  []string `json:"errors"`
	}
	if json.Unmarshal(b, &e) != nil || e.Error == "" {
		return op.Result{}, fault.New(fault.Unavailable, "%s answered %d with something that is not Cairn's", s.Server, status)
	}
	k, _ := fault.ParseKind(e.Error)
	f := fault.New(k, "%s", e.Message)
	f.Field, f.Valid, f.Errors = e.Field, e.Valid, e.Errors
	var all map[string]any
	_ = json.Unmarshal(b, &all)
	for k, v := range all {
		switch k {
		case "error", "message", "field", "valid", "errors":
		default:
			f.With(k, v)
		}
	}
	return op.Result{}, f
}

// tools lists the server's tools as MCP shows them.
func (s *server) tools(ctx context.Context) ([]tool, error) {
	status, b, err := s.post(ctx, "/mcp", []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	if err != nil {
		return nil, err
	}
	var a struct {
		Result struct{ Tools []tool }
		Error  struct {
			Message string
			Data    struct{ Name string }
		}
	}
	if err := json.Unmarshal(b, &a); err != nil || status != http.StatusOK {
		k, _ := fault.ParseKind(strings.ToLower(a.Error.Data.Name))
		return nil, fault.New(k, "%s answered %d: %s", s.Server, status, a.Error.Message)
	}
	return a.Result.Tools, nil
}

func (r *run) loginCommand() *cobra.Command {
	return &cobra.Command{Use: "login", Short: "Keep --server and --token, so that commands work on that server from now on", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if r.config.Server == "" || r.config.Token == "" {
				return fault.New(fault.Invalid, "give --server URL and --token TOKEN (or set CAIRN_SERVER and CAIRN_TOKEN)")
			}
			s := server{login{r.config.Server, r.config.Token}}
			if _, err := s.call(cmd.Context(), "list_heaps", json.RawMessage("{}")); err != nil {
				return err
			}
			path, err := loginFile()
			if err != nil {
				return failure{err}
			}
			b, _ := rawjson.Marshal(s.login)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return failure{err}
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				return failure{err}
			}
			fmt.Fprintln(r.err, "Commands work on "+s.Server+" from now on; `cairn logout` ends that.")
			return nil
		}}
}

func (r *run) logoutCommand() *cobra.Command {
	return &cobra.Command{Use: "logout", Short: "Forget the server that `cairn login` kept", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			path, err := loginFile()
			if err != nil {
				return failure{err}
			}
			if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
				return failure{err}
			}
			fmt.Fprintln(r.err, "Commands work on the local data from now on.")
			return nil
		}}
}
