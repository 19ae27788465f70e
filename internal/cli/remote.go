package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
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

// savedLogin gives what `cairn login` kept. A file that can't be read is an error: without it commands would quietly work
// somewhere else.
func savedLogin() (l login, ok bool, err error) {
	path, err := loginFile()
	if err != nil {
		return l, false, nil //nolint:nilerr // no folder, so nothing was kept
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &l)
	}
	if err == nil && l.Server == "" {
		err = errors.New("it names no server")
	}
	if err != nil {
		return l, false, failure{fmt.Errorf("the saved login %s can't be read (%w): `cairn logout` forgets it", path, err)}
	}
	return l, true, nil
}

// server is a Cairn that is reached over HTTP.
type server struct{ login }

// remote gives the server to work on, or nil for the local data. A flag wins over the environment, that over a saved login,
// that over local data; naming a data folder or a database means local data.
func (r *run) remote() (*server, error) {
	c := r.config
	given := func(flags ...string) bool {
		return slices.ContainsFunc(flags, func(f string) bool { _, ok := r.flags[f]; return ok })
	}
	var s server
	var saved login
	switch {
	case given("server") && given("data", "database-url"):
		return nil, fault.New(fault.Invalid, "--server and --data (or --database-url) name two places: give one")
	case given("server"), !given("data", "database-url") && c.Server != "":
		s.Server = c.Server
	case given("data", "database-url"), c.Given("CAIRN_DATA"), c.Given("CAIRN_DATABASE_URL"):
	default:
		var err error
		if saved, _, err = savedLogin(); err != nil {
			return nil, err
		}
		s.Server = saved.Server
	}
	if s.Server == "" {
		if given("token") { // whoever gives a token means its rights, not the owner's
			return nil, fault.New(fault.Invalid, "--token is for a server: give --server too")
		}
		return nil, nil
	}
	if s.Token = c.Token; s.Token == "" {
		if saved.Server == "" {
			saved, _, _ = savedLogin() // a server named otherwise needs no login file, but may have its token there
		}
		if saved.Server == s.Server {
			s.Token = saved.Token
		}
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
	if answer, err = io.ReadAll(res.Body); err != nil {
		return 0, nil, fault.Wrap(fault.Unavailable, err, "%s broke off its answer: %v", s.Server, err)
	}
	return res.StatusCode, answer, nil
}

func (s *server) call(ctx context.Context, name string, args json.RawMessage) (op.Result, error) {
	status, b, err := s.post(ctx, "/api/"+url.PathEscape(name), args)
	if err != nil {
		return op.Result{}, err
	}
	if status == http.StatusOK && json.Valid(b) {
		return op.Result{JSON: bytes.TrimSpace(b)}, nil
	}
	return op.Result{}, s.refusal(status, b)
}

// refusal reads the error that a server answered with.
func (s *server) refusal(status int, b []byte) error {
	var e struct {
		Error   string   `json:"error"`
		Message string   `json:"message"`
		Field   string   `json:"field"`
		Valid   []string `json:"valid"`
		Errors  []string `json:"errors"`
	}
	if json.Unmarshal(b, &e) != nil || e.Error == "" {
		return s.stranger(status)
	}
	k, _ := fault.ParseKind(e.Error)
	f := fault.New(k, "%s", e.Message)
	f.Field, f.Valid, f.Errors = e.Field, e.Valid, e.Errors
	rawjson.Members(b, func(k string, v json.RawMessage) bool {
		switch k {
		case "error", "message", "field", "valid", "errors":
		default:
			f.With(k, v)
		}
		return true
	})
	return f
}

// tools lists the server's tools as MCP shows them.
func (s *server) tools(ctx context.Context) ([]tool, error) {
	status, b, err := s.post(ctx, "/mcp", []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	if err != nil {
		return nil, err
	}
	var a struct {
		Result *struct{ Tools []tool }
		Error  struct {
			Message string
			Data    struct{ Name string }
		}
	}
	if err := json.Unmarshal(b, &a); err != nil || a.Result == nil && a.Error.Message == "" {
		return nil, s.stranger(status)
	}
	if a.Result == nil {
		k, _ := fault.ParseKind(strings.ToLower(a.Error.Data.Name))
		return nil, fault.New(k, "%s", a.Error.Message)
	}
	return a.Result.Tools, nil
}

// stranger is the error for an answer that no Cairn gives.
func (s *server) stranger(status int) error {
	return fault.New(fault.Unavailable, "%s answered %d with something that is not Cairn's: is the address right?", s.Server, status)
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
