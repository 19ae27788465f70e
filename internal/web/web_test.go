package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"cairn/internal/audit"
	"cairn/internal/db"
	"cairn/internal/edge"
	"cairn/internal/fault"
	"cairn/internal/mcp"
	"cairn/internal/op"
	"cairn/internal/web"
	"cairn/internal/web/files"
	"cairn/internal/who"
)

// cause is what no answer may hold.
const cause = "private-cause-of-it"

type failIn struct {
	Kind   string `json:"kind"`
	Status int    `json:"status"`
	Reason string `json:"reason"`
}

type none struct{}

// server is web and mcp over operations that do as they are told.
type server struct {
	*httptest.Server
	ended chan error // how each call of wait ended
}

func fails(_ context.Context, in failIn) (none, error) {
	switch in.Kind {
	case "panic":
		panic(cause)
	case "plain":
		return none{}, errors.New(cause)
	}
	k, ok := fault.ParseKind(in.Kind)
	if !ok {
		return none{}, fault.Bad("kind", "is unknown")
	}
	f := fault.Wrap(k, errors.New(cause), "it failed").With("more", "to go on")
	if f.Status = in.Status; in.Reason != "" {
		f.With("reason", in.Reason)
	}
	return none{}, f
}

func serve(t *testing.T) *server {
	t.Helper()
	d, err := db.Open(context.Background(), db.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{ended: make(chan error, 10)}
	describe := func(name string) op.Op {
		return op.Op{Name: name, Title: name, Doc: name, Area: who.Core, Effect: op.Read}
	}
	big := describe("big")
	big.Big = true
	runner := op.NewRunner(slog.New(slog.DiscardHandler),
		op.Define(describe("fail"), fails),
		op.Define(big, func(_ context.Context, in struct {
			Text string `json:"text"`
		}) (out struct {
			Length int `json:"length"`
		}, _ error) {
			out.Length = len(in.Text)
			return out, nil
		}),
		op.Define(describe("wait"), func(ctx context.Context, _ none) (none, error) {
			op.Progress(ctx, 1, 10, "waiting")
			<-ctx.Done()
			s.ended <- context.Cause(ctx)
			return none{}, ctx.Err()
		}),
		op.Define(describe("steps"), func(ctx context.Context, _ none) (none, error) {
			for _, n := range []int{1, 1, 3, 2, 5} {
				op.Progress(ctx, n, 5, fmt.Sprint("step ", n))
			}
			return none{}, nil
		}))
	log := slog.New(slog.DiscardHandler)
	recorder := audit.NewRecorder(d, log, true, nil)
	public, _ := url.Parse("http://cairn.test")
	e := &edge.Edge{Public: public, Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Limiter: audit.NewLimiter(d), Recorder: recorder, Log: log,
		ByToken: func(_ context.Context, token, _ string) (*who.Caller, error) {
			if token != "good" {
				return nil, fault.New(fault.TokenInvalid, "The token is not valid")
			}
			return &who.Caller{Actor: "token:1", Token: "1", AllAreas: true, Write: true}, nil
		}}
	stop := make(chan struct{})
	h := mcp.NewHandler(mcp.New(runner, "test", log, nil, mcp.Beside{}), e, func(context.Context) any { return none{} }, stop)
	s.Server = httptest.NewServer((&web.Server{Runner: runner, Edge: e, Files: &files.Server{Runner: runner, Most: 1 << 20}, MCP: h, Metrics: http.NotFoundHandler(), Ready: d.Ping, Stop: stop}).Handler())
	t.Cleanup(func() {
		s.Close()
		recorder.Close()
		_ = d.Close()
	})
	return s
}

// way is a way to call a tool.
type way struct {
	name, path string
	accept     string
	version    string
	extra      string // member of params, with a comma behind
	progress   bool
}

const stream = "application/json, text/event-stream"

var ways = []way{
	{name: "hero", path: "/mcp"},
	{name: "alias", path: "/functions/v1/mcp-server"},
	{name: "legacy", path: "/mcp", accept: stream, version: "2025-11-25"},
	{name: "legacy JSON", path: "/mcp", accept: "application/json", version: "2025-06-18"},
	{name: "legacy by the SDK", path: "/mcp", accept: "application/json", version: "2025-11-25", extra: `"trace":1,`},
	{name: "legacy stream", path: "/mcp", accept: stream, version: "2025-11-25", progress: true},
	{name: "modern", path: "/mcp", accept: stream, version: "2026-07-28"},
	{name: "modern by the SDK", path: "/mcp", accept: "application/json", version: "2026-07-28", extra: `"trace":1,`},
	{name: "modern stream", path: "/mcp", accept: stream, version: "2026-07-28", progress: true},
	{name: "api", path: "/api/"},
}

func (w way) hero() bool { return w.name == "hero" || w.name == "alias" }

func (w way) request(ctx context.Context, t *testing.T, s *server, tool, args string) *http.Request {
	t.Helper()
	meta := ""
	if w.version == "2026-07-28" {
		meta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`
	}
	if w.progress {
		meta = strings.TrimPrefix(meta+`,"progressToken":"p"`, ",")
	}
	path, body := w.path, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{`+w.extra+`"_meta":{`+meta+`},"name":"`+tool+`","arguments":`+args+`}}`
	if w.path == "/api/" {
		path, body = path+tool, args
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer good")
	if w.accept != "" {
		r.Header.Set("Accept", w.accept)
	}
	if w.version != "" {
		r.Header.Set("MCP-Protocol-Version", w.version)
	}
	if w.version == "2026-07-28" {
		r.Header.Set("Mcp-Method", "tools/call")
		r.Header.Set("Mcp-Name", tool)
	}
	return r
}

// call gives the status and the last event (or the whole body).
func (w way) call(t *testing.T, s *server, tool, args string) (status int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	res, err := s.Client().Do(w.request(ctx, t, s, tool, args))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	body = string(b)
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		for line := range strings.Lines(string(b)) {
			if d, ok := strings.CutPrefix(line, "data: "); ok {
				body = d
			}
		}
	}
	return res.StatusCode, body
}

// Every row of the Errors table, as an operation can bring it about.
func TestEveryKindOfFaultOnEverySurface(t *testing.T) {
	s := serve(t)
	for k := fault.Internal; k <= fault.Unavailable; k++ {
		row := k.Wire()
		for _, w := range ways {
			t.Run(row.Name+"/"+w.name, func(t *testing.T) {
				reason := ""
				if k == fault.Unavailable {
					reason = "circuit_open"
				}
				status, body := w.call(t, s, "fail", `{"kind":"`+row.Name+`","reason":"`+reason+`"}`)
				if strings.Contains(body, cause) || !strings.Contains(body, reason) {
					t.Errorf("the answer is %s", body)
				}
				switch {
				case w.path == "/api/":
					checkAPI(t, row, status, body)
				case k == fault.Internal || w.hero() && row.Code != 0:
					want := row.MCP
					if w.progress && status == http.StatusOK { // the stream had begun
						want = status
					}
					checkError(t, row, want, status, body)
				default:
					checkResult(t, row, w, status, body)
				}
			})
		}
	}
}

func checkAPI(t *testing.T, row fault.Wire, status int, body string) {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatal(err)
	}
	if status != row.API || out["error"] != row.Name || out["message"] == "" || row.Name != "internal" && out["more"] != "to go on" {
		t.Errorf("%d %s, want %d", status, body, row.API)
	}
}

func checkError(t *testing.T, row fault.Wire, want, status int, body string) {
	t.Helper()
	var out struct {
		ID    int
		Error *struct {
			Code    int
			Message string
			Data    map[string]any
		}
	}
	if err := json.Unmarshal([]byte(body), &out); err != nil || out.Error == nil {
		t.Fatalf("%d %s", status, body)
	}
	if status != want || out.ID != 3 || out.Error.Code != row.Code || out.Error.Data["name"] != strings.ToUpper(row.Name) {
		t.Errorf("%d %s, want %d with code %d", status, body, want, row.Code)
	}
	if row.Name == "internal" && (out.Error.Data["id"] == nil || out.Error.Data["more"] != nil) {
		t.Errorf("data is %v, want an id and nothing else", out.Error.Data)
	}
}

func checkResult(t *testing.T, row fault.Wire, w way, status int, body string) {
	t.Helper()
	var out struct {
		ID     int
		Result *struct {
			IsError    bool
			Structured map[string]any `json:"structuredContent"`
			Content    []struct{ Text string }
			ResultType string
		}
	}
	if err := json.Unmarshal([]byte(body), &out); err != nil || out.Result == nil {
		t.Fatalf("%d %s", status, body)
	}
	r := out.Result
	if status != http.StatusOK || out.ID != 3 || !r.IsError || r.Structured["error"] != row.Name || r.Structured["more"] != "to go on" || !strings.Contains(r.Content[0].Text, `"error":"`+row.Name+`"`) {
		t.Errorf("%d %s", status, body)
	}
	if w.version == "2026-07-28" && r.ResultType != "complete" {
		t.Errorf("resultType is %q", r.ResultType)
	}
}

func TestPanicOfAnOperationIsAnInternalError(t *testing.T) {
	s := serve(t)
	for _, w := range ways {
		for _, kind := range []string{"panic", "plain"} {
			status, body := w.call(t, s, "fail", `{"kind":"`+kind+`"}`)
			if strings.Contains(body, cause) || strings.Contains(body, "goroutine") || !strings.Contains(body, "something went wrong") || status != 500 && !w.progress {
				t.Errorf("%s of %s: %d %s", kind, w.name, status, body)
			}
		}
	}
}

func TestStatusOfAFaultOnAPI(t *testing.T) {
	s := serve(t)
	api := ways[len(ways)-1]
	for args, want := range map[string]int{`{"kind":"unavailable"}`: 503, `{"kind":"unavailable","status":504,"reason":"timeout"}`: 504, `{"kind":"invalid_request","status":415}`: 415, `{"kind":"too_large"}`: 413} {
		if status, body := api.call(t, s, "fail", args); status != want {
			t.Errorf("%s: %d %s", args, status, body)
		}
	}
	if status, body := ways[0].call(t, s, "fail", `{"kind":"unavailable","status":504,"reason":"timeout"}`); status != 200 {
		t.Errorf("unavailable on /mcp: %d %s", status, body)
	}
}

// Operations with big bodies may have 16 MiB, all others 1.
func TestBodiesOfBigOperations(t *testing.T) {
	s := serve(t)
	for _, w := range []way{ways[0], ways[2], ways[6], ways[len(ways)-1]} {
		lengths := map[int]int{5 << 19: 200}
		if w.name == "hero" { // the others have the same reader
			lengths = map[int]int{15 << 20: 200, 16 << 20: 413}
		}
		for length, want := range lengths {
			status, body := w.call(t, s, "big", `{"text":"`+strings.Repeat("x", length)+`"}`)
			if status != want || want == 200 && !strings.Contains(body, fmt.Sprint(`"length":`, length)) {
				t.Errorf("%s, %d bytes: %d", w.name, length, status)
			}
		}
		if status, _ := w.call(t, s, "fail", `{"reason":"`+strings.Repeat("x", 1<<20)+`"}`); status != 413 {
			t.Errorf("%s, more than 1 MiB to another: %d", w.name, status)
		}
	}
}

// A client that closes the connection ends its call, on every version and in every mode.
func TestClosingTheConnectionEndsTheCall(t *testing.T) {
	s := serve(t)
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(150*time.Millisecond, cancel)
			if res, err := s.Client().Do(w.request(ctx, t, s, "wait", `{}`)); err == nil {
				_, _ = io.ReadAll(res.Body)
				_ = res.Body.Close()
			}
			select {
			case err := <-s.ended:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("the call ended by %v", err)
				}
			case <-time.After(5 * time.Second):
				t.Fatal("the call goes on")
			}
		})
	}
}

// A stream tells of progress while the call runs: each value once, growing, none behind the answer.
func TestProgressGrows(t *testing.T) {
	s := serve(t)
	for _, w := range ways {
		if !w.progress {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			res, err := s.Client().Do(w.request(ctx, t, s, "steps", `{}`))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			var got []string
			lines := bufio.NewScanner(res.Body)
			for lines.Scan() {
				var e struct {
					Params struct{ Progress int }
					Result any
				}
				if d, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(d), &e) == nil {
					if got = append(got, fmt.Sprint(e.Params.Progress)); e.Result != nil {
						got[len(got)-1] = "answer"
					}
				}
			}
			if all := strings.Join(got, " "); all != "1 3 5 answer" {
				t.Errorf("the stream has %s", all)
			}
		})
	}
}

// With the stream open, the first progress arrives before the call ends.
func TestProgressComesWhileTheCallRuns(t *testing.T) {
	s := serve(t)
	for _, w := range ways {
		if !w.progress {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		res, err := s.Client().Do(w.request(ctx, t, s, "wait", `{}`))
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(res.Body)
		seen := false
		for !seen && lines.Scan() {
			seen = strings.Contains(lines.Text(), `"notifications/progress"`)
		}
		if cancel(); !seen {
			t.Errorf("%s: no progress", w.name)
		}
		_ = res.Body.Close()
		<-s.ended
	}
}
