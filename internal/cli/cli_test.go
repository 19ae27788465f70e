package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cairn/internal/config"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

var update = flag.Bool("update", false, "write testdata anew")

type failIn struct {
	Kind string `json:"kind" rule:"required,min=1"`
}

// program has one operation, which fails as it is asked to.
func program() Program {
	fail := op.Define(op.Op{Name: "fail", Title: "Fail", Doc: "Fails.", Area: who.Core, Effect: op.Read}, func(_ context.Context, in failIn) (struct{}, error) {
		k, ok := fault.ParseKind(in.Kind)
		if !ok {
			return struct{}{}, errors.New("secret cause")
		}
		return struct{}{}, fault.New(k, "it was %s", in.Kind)
	})
	ops := []*op.Op{fail}
	return Program{Version: "1.2.3",
		Open: func(_ context.Context, c *config.Config, _ *slog.Logger) (*Local, error) {
			if c.Data == "broken" {
				return nil, errors.New("the disk is gone")
			}
			return &Local{Runner: op.NewRunner(slog.New(slog.DiscardHandler), ops...), Close: func() error { return nil },
				Person: func(context.Context) (*who.Caller, error) {
					return &who.Caller{Person: true, AllAreas: true, Write: true, Request: "r1"}, nil
				}}, nil
		},
		LockServer: func(*config.Config) (func(), error) { return nil, errors.New("another cairn serve runs") },
		Doctor:     func(context.Context, *config.Config) []Check { return []Check{{Name: "disk", OK: true, Says: "fine"}} },
		Operations: func() []*op.Op { return ops },
	}
}

// cairn runs a command line in this process, with an empty home and environment.
func cairn(t *testing.T, env map[string]string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	r := &run{p: program(), in: strings.NewReader(env["stdin"]), out: &o, err: &e, env: func(k string) (string, bool) { v, ok := env[k]; return v, ok }}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	return r.main(context.Background(), args), o.String(), e.String()
}

func TestExitCodesAreThoseOfTheTableOnLocalDataAndOnAServer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in failIn
		_ = json.NewDecoder(r.Body).Decode(&in)
		k, _ := fault.ParseKind(in.Kind)
		w.WriteHeader(k.Wire().API)
		_ = json.NewEncoder(w).Encode(fault.New(k, "it was %s", in.Kind).With("extra", 1).Body())
	}))
	defer s.Close()
	for kind, want := range map[string]int{"internal": 1, "parse": 2, "invalid_request": 2, "unknown_method": 2, "invalid": 2, "unauthenticated": 3, "token_invalid": 3,
		"token_expired": 3, "token_inactive": 3, "denied": 4, "scope": 4, "limited": 5, "unknown_tool": 2, "not_found": 6, "conflict": 7, "too_large": 2, "unavailable": 8} {
		for _, where := range [][]string{nil, {"--server", s.URL, "--token", "t"}} {
			code, out, errs := cairn(t, nil, append(where, "call", "fail", `{"kind":"`+kind+`"}`)...)
			if code != want || out != "" || !strings.HasPrefix(errs, "cairn: ") || strings.Count(errs, "\n") != 1 {
				t.Errorf("%s %v: exit %d, want %d: %q %q", kind, where, code, want, out, errs)
			}
			code, _, errs = cairn(t, nil, append(where, "--json", "call", "fail", `{"kind":"`+kind+`"}`)...)
			var body struct{ Error, Message string }
			if err := json.Unmarshal([]byte(errs), &body); err != nil || code != want || body.Error != kind {
				t.Errorf("%s in JSON: exit %d: %s", kind, code, errs)
			}
		}
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"call", "fail", `{"kind":"boom"}`}, 1, "cairn: something went wrong on the server; its log has the cause under id r1\n"},
		{[]string{"call", "fail", "--data", "broken"}, 1, "cairn: the disk is gone\n"},
		{[]string{"serve", "--data", "x"}, 1, "cairn: another cairn serve runs\n"},
		{[]string{"call", "fail", "--server", "http://127.0.0.1:1", "--token", "t"}, 8, "cairn: http://127.0.0.1:1 does not answer"},
		{[]string{"call", "fail", "--server", "http://127.0.0.1:1"}, 3, "cairn: http://127.0.0.1:1 needs a token"},
		{[]string{"call", "fail", "--token", "t"}, 2, "cairn: --token is for a server: give --server too\n"},
		{[]string{"version", "now"}, 2, "cairn: unknown command \"now\""},
		{[]string{"token", "revoke", "a", "b"}, 2, "cairn: cairn token revoke takes an id or a name of a token"},
	} {
		if code, _, errs := cairn(t, nil, c.args...); code != c.code || !strings.HasPrefix(errs, c.says) {
			t.Errorf("%q: exit %d: %s", c.args, code, errs)
		}
	}
}

func TestArgumentsComeFromStandardInput(t *testing.T) {
	code, _, errs := cairn(t, map[string]string{"stdin": `{"kind":"conflict"}`}, "call", "fail", "-")
	if code != 7 {
		t.Error(code, errs)
	}
}

func TestDoctorSaysWhatIsWrongWithTheConfigurationAndTheServer(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		args []string
		code int
		want string
	}{
		{nil, nil, 0, `{"checks":[{"name":"disk","ok":true,"says":"fine"}],"ok":true}`},
		{map[string]string{"CAIRN_LISTEN": "x"}, nil, 1, `{"checks":[{"name":"configuration","ok":false,"says":"CAIRN_LISTEN=\"x\": must be host:port, such as 127.0.0.1:3000","do":"set what is named`},
		{nil, []string{"--server", "http://127.0.0.1:1"}, 1, `{"checks":[{"name":"disk","ok":true,"says":"fine"},{"name":"server","ok":false,"says":"http://127.0.0.1:1 needs a token`},
		{nil, []string{"--server", "http://127.0.0.1:1", "--token", "t"}, 1, `{"checks":[{"name":"disk","ok":true,"says":"fine"},{"name":"server","ok":false,"says":"commands work on http://127.0.0.1:1: http://127.0.0.1:1 does not answer`},
	} {
		code, out, errs := cairn(t, c.env, append(c.args, "doctor")...)
		if code != c.code || !strings.HasPrefix(out, c.want) || errs != "" {
			t.Errorf("%v %v: exit %d: %s%s", c.env, c.args, code, out, errs)
		}
	}
}

// TestCommandsAndFlagsStay holds the commands and flags that scripts rely on: what was there once stays. Run it with -update
// after adding some.
func TestCommandsAndFlagsStay(t *testing.T) {
	r := &run{p: program(), flags: map[string]string{}}
	var b strings.Builder
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		fmt.Fprintf(&b, "%s\n", c.CommandPath())
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) { fmt.Fprintf(&b, "  --%s %s\n", f.Name, f.Value.Type()) })
		if c.Short == "" {
			t.Errorf("%s says nothing of itself", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(r.root())
	path := filepath.Join("testdata", "commands.txt")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("commands and flags are\n%s\nand were\n%s", b.String(), want)
	}
}

func TestWelcomeOnPostgresShowsNoPassword(t *testing.T) {
	conf, err := config.Load(map[string]string{"database-url": "postgres://u:secret@db/cairn"}, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"", "cairn_x"} {
		var out bytes.Buffer
		(&run{p: program(), out: &out, config: conf}).welcome("http://localhost:3000", token, "")
		if strings.Contains(out.String(), "secret") || !strings.Contains(out.String(), `"args":["mcp","--stdio","--server","http://localhost:3000","--token","`) || strings.Contains(out.String(), "--data") {
			t.Error(out.String())
		}
	}
}

func TestQuoteIsSafeInAShell(t *testing.T) {
	for s, want := range map[string]string{"/srv/cairn-data": "/srv/cairn-data", "": "''", "a b": "'a b'", "$(x)": "'$(x)'", "it's": `'it'\''s'`, "a\nb": "'a\nb'", "é": "'é'", "~/x": "'~/x'"} {
		if got := quote(s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}

func TestAServerThatBreaksOffIsUnavailable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1000))
			_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"))
			_ = c.Close()
		}
	}()
	code, _, errs := cairn(t, nil, "call", "fail", "--server", "http://"+l.Addr().String(), "--token", "t")
	if code != 8 || !strings.Contains(errs, "broke off its answer") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
