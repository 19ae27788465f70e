package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// commands are what scripts can say beside testscript's own. JSON is read from the last answer: $stdout.
var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"fails":    fails,
	"start":    start,
	"end":      end,
	"post":     post,
	"header":   header,
	"slowly":   slowly,
	"answered": answered,
	"is":       is,
	"get":      get,
	"rpc":      rpc,
	"terminal": onTerminal,
	"sqlite":   sqlite,
	"hold":     hold,
	"occupy":   occupy,
	"undoing":  undoing,
}

// patience is how long anything may take before a story fails.
const patience = 30 * time.Second

// story is what a script has running.
type story struct {
	server *exec.Cmd
	ended  chan error
	slow   map[string]chan response
	holds  []func()
	undone int // calls of undoing: they take turns
}

type storyKey struct{}

func of(ts *testscript.TestScript) *story { return ts.Value(storyKey{}).(*story) }

func (s *story) close() {
	for _, f := range s.holds {
		f()
	}
	if s.server != nil {
		_ = s.server.Process.Kill()
		<-s.ended
	}
}

func usage(ts *testscript.TestScript, ok bool, text string) {
	if !ok {
		ts.Fatalf("usage: %s", text)
	}
}

// fails CODE PROGRAM [ARGS] runs a program that must end with this exit code.
func fails(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) >= 2, "fails CODE PROGRAM [ARGS]")
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

var (
	printedURL   = regexp.MustCompile(`(?m)^MCP URL +(http\S+)/mcp$`)
	printedToken = regexp.MustCompile(`(?m)^Token +(cairn_\S+)$`)
)

// start [ARGS] starts cairn serve on a free port and sets $URL and, where it printed one, $TOKEN. Its output goes to
// serve.out and serve.err.
func start(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	usage(ts, !neg && s.server == nil, "start [ARGS], once at a time")
	c := exec.Command("cairn", append([]string{"serve", "--listen=127.0.0.1:0", "--print-token"}, args...)...)
	c.Dir, c.Env = ts.MkAbs("."), environment(ts)
	out, err := os.Create(ts.MkAbs("serve.out"))
	ts.Check(err)
	defer out.Close()
	errs, err := os.Create(ts.MkAbs("serve.err"))
	ts.Check(err)
	defer errs.Close()
	c.Stdout, c.Stderr = out, errs
	ts.Check(c.Start())
	s.server, s.ended = c, make(chan error, 1)
	go func() { s.ended <- c.Wait() }()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		said := ts.ReadFile("serve.out")
		if m := printedURL.FindStringSubmatch(said); m != nil && strings.Contains(said, "Claude Desktop") {
			ts.Setenv("URL", m[1])
			if m := printedToken.FindStringSubmatch(said); m != nil {
				ts.Setenv("TOKEN", m[1])
			}
			return
		}
		select {
		case err := <-s.ended:
			s.server = nil
			ts.Fatalf("cairn serve ended: %v\n%s", err, ts.ReadFile("serve.err"))
		default:
		}
		if time.Now().After(deadline) {
			ts.Fatalf("cairn serve printed no URL:\n%s%s", said, ts.ReadFile("serve.err"))
		}
	}
}

// environment is a script's environment, for programs that testscript doesn't start.
func environment(ts *testscript.TestScript) (env []string) {
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "TZ", "GORACE", "PUBLIC_URL", "CAIRN_DATA", "CAIRN_HOSTS", "MCP_MAX_RATE_LIMIT", "GOCOVERDIR"} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// end [INT|TERM|KILL] ends the server and waits for it. Unless it was killed it must end by itself, with 0.
func end(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	signals := map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM, "KILL": os.Kill}
	name := "TERM"
	if len(args) == 1 {
		name = args[0]
	}
	usage(ts, !neg && s.server != nil && signals[name] != nil, "end [INT|TERM|KILL], after start")
	ts.Check(s.server.Process.Signal(signals[name]))
	select {
	case err := <-s.ended:
		s.server = nil
		if err != nil && name != "KILL" {
			ts.Fatalf("cairn serve: %v\n%s", err, ts.ReadFile("serve.err"))
		}
	case <-time.After(patience):
		ts.Fatalf("cairn serve doesn't end")
	}
}

type response struct {
	status int
	body   []byte
	err    error
}

// send posts JSON as curl does and reads the answer. wrote is called when the request is out.
func send(url, token, body string, wrote func()) response {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if wrote != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { wrote() }})
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return response{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return response{err: err}
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return response{res.StatusCode, b, err}
}

// post [-status=N] PATH BODY posts to the server with $TOKEN; the answer is the new $stdout. The status must be 200 or N.
func post(ts *testscript.TestScript, neg bool, args []string) {
	want := "200"
	if len(args) == 3 {
		want = strings.TrimPrefix(args[0], "-status=")
		args = args[1:]
	}
	usage(ts, !neg && len(args) == 2, "post [-status=N] PATH BODY")
	r := send(ts.Getenv("URL")+args[0], ts.Getenv("TOKEN"), args[1], nil)
	ts.Check(r.err)
	fmt.Fprintf(ts.Stdout(), "%s\n", r.body)
	if strconv.Itoa(r.status) != want {
		ts.Fatalf("status %d, want %s: %s", r.status, want, r.body)
	}
}

// header PATH NAME gets a path of the server with $TOKEN; the header of that name is the new $stdout.
func header(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 2, "header PATH NAME")
	req, err := http.NewRequest(http.MethodGet, ts.Getenv("URL")+args[0], nil)
	ts.Check(err)
	req.Header.Set("Authorization", "Bearer "+ts.Getenv("TOKEN"))
	res, err := http.DefaultClient.Do(req)
	ts.Check(err)
	ts.Check(res.Body.Close())
	if res.StatusCode != http.StatusOK {
		ts.Fatalf("status %d", res.StatusCode)
	}
	fmt.Fprintln(ts.Stdout(), res.Header.Get(args[1]))
}

// slowly NAME PATH BODY posts in the background and goes on once the request is out.
func slowly(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 3, "slowly NAME PATH BODY")
	s := of(ts)
	if s.slow == nil {
		s.slow = map[string]chan response{}
	}
	url, token := ts.Getenv("URL"), ts.Getenv("TOKEN")
	wrote, done := make(chan struct{}, 9), make(chan response, 1)
	s.slow[args[0]] = done
	go func() { done <- send(url+args[1], token, args[2], func() { wrote <- struct{}{} }) }()
	select {
	case <-wrote:
		time.Sleep(300 * time.Millisecond) // for the server to read it
	case r := <-done:
		ts.Fatalf("answered too early: %d %s %v", r.status, r.body, r.err)
	}
}

// answered NAME waits for what slowly sent; the answer is the new $stdout.
func answered(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 1, "answered NAME")
	r := <-of(ts).slow[args[0]]
	ts.Check(r.err)
	fmt.Fprintf(ts.Stdout(), "%s\n", r.body)
	if r.status != http.StatusOK {
		ts.Fatalf("status %d: %s", r.status, r.body)
	}
}

// at gives a value of the last answer: names and numbers with dots between, len for how many there are.
func at(ts *testscript.TestScript, path string) string {
	var v any
	text := ts.ReadFile("stdout")
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		ts.Fatalf("not JSON: %v: %s", err, text)
	}
	for part := range strings.SplitSeq(path, ".") {
		switch now := v.(type) {
		case map[string]any:
			v = now[part]
		case []any:
			i, err := strconv.Atoi(part)
			switch {
			case part == "len":
				v = json.Number(strconv.Itoa(len(now)))
			case err != nil || i >= len(now):
				ts.Fatalf("there is no %s in %s", path, text)
			default:
				v = now[i]
			}
		default:
			ts.Fatalf("there is no %s in %s", path, text)
		}
	}
	if s, ok := v.(string); ok {
		return s
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	ts.Check(e.Encode(v))
	return strings.TrimSpace(b.String())
}

// is PATH VALUE says what a value of the last answer must be.
func is(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, len(args) == 2, "[!] is PATH VALUE")
	if got := at(ts, args[0]); (got == args[1]) == neg {
		ts.Fatalf("%s is %s (want %s, negated %t)", args[0], got, args[1], neg)
	}
}

// get NAME [PATH] sets a variable to a value of the last answer, or to all of it.
func get(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && (len(args) == 1 || len(args) == 2), "get NAME [PATH]")
	if len(args) == 1 {
		ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
		return
	}
	v := at(ts, args[1])
	if v == "null" {
		ts.Fatalf("%s is null", args[1])
	}
	ts.Setenv(args[0], v)
}

// rpc ID checks that the last output holds JSON-RPC messages alone, one a line, and makes the response with this id the new
// $stdout. ID is JSON; with "all" nothing is picked.
func rpc(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, len(args) == 1, "[!] rpc ID|all")
	text := ts.ReadFile("stdout")
	found := ""
	for line := range strings.Lines(text) {
		var m struct {
			JSONRPC string
			ID      json.RawMessage
			Method  string
			Result  json.RawMessage
			Error   json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.JSONRPC != "2.0" || m.Method == "" && m.Result == nil && m.Error == nil {
			ts.Fatalf("not a JSON-RPC message: %q", line)
		}
		if string(m.ID) == args[0] && m.Method == "" {
			if found != "" {
				ts.Fatalf("two answers to %s", args[0])
			}
			found = line
		}
	}
	if args[0] == "all" {
		return
	}
	if (found == "") != neg {
		ts.Fatalf("answer to %s: %q, in\n%s", args[0], found, text)
	}
	if !neg {
		fmt.Fprint(ts.Stdout(), found)
	}
}

// terminal COLUMNS PROGRAM [ARGS] runs a program on a terminal of its own; what that shows is the new $stdout.
func onTerminal(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, len(args) >= 2, "[!] terminal COLUMNS PROGRAM [ARGS]")
	words := make([]string, len(args)-1)
	for i, a := range args[1:] {
		words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	c := exec.Command("script", "-qec", "stty cols "+args[0]+"; "+strings.Join(words, " "), "/dev/null")
	c.Dir, c.Env = ts.MkAbs("."), append(environment(ts), "SHELL=/bin/sh")
	b, err := c.Output()
	fmt.Fprint(ts.Stdout(), strings.ReplaceAll(string(b), "\r\n", "\n"))
	if (err == nil) == neg {
		ts.Fatalf("%v\n%s", err, b)
	}
}

// testdata is this package's folder of that name, wherever a script runs.
var testdata = func() string {
	dir, err := filepath.Abs("testdata")
	if err != nil {
		panic(err)
	}
	return dir
}()

func openSQLite(ts *testscript.TestScript, file string) *sql.DB {
	d, err := sql.Open("sqlite", "file:"+ts.MkAbs(file)+"?_pragma=busy_timeout(5000)&_txlock=immediate")
	ts.Check(err)
	return d
}

// sqlite FILE STATEMENT changes a database behind the program's back. @NAME runs the statements of testdata/NAME.
func sqlite(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 2, "sqlite FILE STATEMENT")
	text := args[1]
	if name, ok := strings.CutPrefix(text, "@"); ok {
		b, err := os.ReadFile(filepath.Join(testdata, name))
		ts.Check(err)
		text = string(b)
	}
	d := openSQLite(ts, args[0])
	defer d.Close()
	_, err := d.Exec(text)
	ts.Check(err)
}

// hold FILE SPAN holds the database's write lock for a while: writes of others wait.
func hold(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 2, "hold FILE SPAN")
	span, err := time.ParseDuration(args[1])
	ts.Check(err)
	d := openSQLite(ts, args[0])
	tx, err := d.Begin()
	ts.Check(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		time.Sleep(span)
		_ = tx.Rollback()
		_ = d.Close()
	}()
	of(ts).holds = append(of(ts).holds, func() { <-done })
}

// occupy NAME takes a port and sets $NAME to its address. Whoever asks there gets an answer that no Cairn gives.
func occupy(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 1, "occupy NAME")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	server := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		_, _ = w.Write([]byte("<h1>It works!</h1>"))
	})}
	go func() { _ = server.Serve(l) }()
	of(ts).holds = append(of(ts).holds, func() { _ = server.Close() })
	ts.Setenv(args[0], l.Addr().String())
}
