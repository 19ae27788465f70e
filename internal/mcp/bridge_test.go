package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/edge"
)

// across sends lines over a bridge to a handler and gives the lines that come back.
func across(t *testing.T, h http.HandlerFunc, lines ...string) []string {
	t.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	var out bytes.Buffer
	b := &Bridge{URL: s.URL, Token: "cairn_secret", Agent: "test", Client: s.Client()}
	if err := b.Run(context.Background(), strings.NewReader(strings.Join(lines, "\n")), &out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "cairn_secret") {
		t.Errorf("the token got out: %s", out.String())
	}
	got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	slices.Sort(got)
	return got
}

func says(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}
}

const ping = `{"jsonrpc":"2.0","id":7,"method":"ping"}`

func TestBridgeAnswersEveryRequestOnceWhateverTheServerDoes(t *testing.T) {
	lost := `{"jsonrpc":"2.0","id":7,"error":{"code":-32006,"message":`
	for name, c := range map[string]struct {
		h    http.HandlerFunc
		want []string // beginnings
	}{
		"an answer over several lines becomes one": {says("application/json", "{\n \"jsonrpc\": \"2.0\",\n \"id\": 7, \"result\": {}\n}"), []string{`{"jsonrpc":"2.0","id":7,"result":{}}`}},
		"an error from before the id was read":     {says("application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"too large"}}`), []string{`{"id":7,"jsonrpc":"2.0","error":{"code":-32600,"message":"too large"}}`}},
		"HeroMind's unknown id":                    {says("application/json", `{"jsonrpc":"2.0","id":"unknown","error":{"code":-32002,"message":"x"}}`), []string{`{"id":7,"jsonrpc":"2.0","error":{"code":-32002,"message":"x"}}`}},
		"an error without any id":                  {says("application/json", `{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}`), []string{`{"id":7,"jsonrpc":"2.0","error":{"code":1,"message":"x"}}`}},
		"a page of a proxy":                        {says("text/html", "<h1>Bad gateway</h1>"), []string{lost + `"the server answered 200, but what it sent is not JSON"`}},
		"nothing":                                  {says("application/json", ""), []string{lost + `"the server answered 200, but its answer held none to the request"`}},
		"a notification and no answer":             {says("text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n"), []string{`{"jsonrpc":"2.0","id":7,"error"`, `{"jsonrpc":"2.0","method":"notifications/progress"}`}},
		"a stream":                                 {says("text/event-stream", ": hello\r\n\r\nevent: message\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"id\":7,\"result\":{}}\r\n\r\n"), []string{`{"jsonrpc":"2.0","id":7,"result":{}}`}},
		"a stream whose last event has no end":     {says("text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n"), []string{`{"jsonrpc":"2.0","id":7,"result":{}}`}},
		"a stream that is cut off":                 {says("text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":7,"), []string{lost}},
		"two answers to one request":               {says("text/event-stream", strings.Repeat("data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n", 2)), []string{`{"jsonrpc":"2.0","id":7,"result":{}}`}},
		"a connection that breaks": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"jsonrpc"`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, []string{lost + `"the server answered 200, but `}},
		"no answer at all":          {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, []string{lost + `"the server can't be reached: `}},
		"accepted, though it asked": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }, []string{lost + `"the server answered 202, but `}},
	} {
		t.Run(name, func(t *testing.T) {
			got := across(t, c.h, ping)
			if len(got) != len(c.want) {
				t.Fatalf("%q", got)
			}
			for i, w := range c.want {
				if !strings.HasPrefix(got[i], w) {
					t.Errorf("%s\nwant %s", got[i], w)
				}
			}
		})
	}
}

func TestBridgeSaysNothingToNotifications(t *testing.T) {
	for _, h := range []http.HandlerFunc{
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
		says("application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32002,"message":"x"}}`),
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		if got := across(t, h, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, ``, `  `, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`); got[0] != "" {
			t.Errorf("%q", got)
		}
	}
}

func TestBridgeGoesOnAfterLinesThatAreNoMessages(t *testing.T) {
	long := `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", edge.MostBody) + `"}`
	got := across(t, says("application/json", `{"jsonrpc":"2.0","id":7,"result":{}}`), "garbage", "{\"a\":\"\xe2\"}", long, ping+"\r", long)
	want := []string{
		`{"jsonrpc":"2.0","id":7,"result":{}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a message may have at most 16777216 bytes"}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a message may have at most 16777216 bytes"}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the text is not valid JSON"}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the text is not valid UTF-8"}}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// echo answers each request with what it was asked.
func echo(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ ProtocolVersion string }
	}
	_ = json.NewDecoder(r.Body).Decode(&m)
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	seen := map[string]string{"protocolVersion": m.Params.ProtocolVersion}
	for _, h := range []string{"Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Authorization", "User-Agent", "Accept", "Content-Type"} {
		seen[h] = strings.Replace(r.Header.Get(h), "cairn_secret", "TOKEN", 1)
	}
	b, _ := json.Marshal(seen)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, b)
}

func TestBridgeSendsTheHeadersOfTheProtocolVersion(t *testing.T) {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
	got := across(t, echo,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"a (b)\n","version":"2"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"list_tasks",`+meta+`}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"größe",`+meta+`}}`,
		`{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"ui://x",`+meta+`}}`)
	for i, want := range []map[string]string{
		{"Mcp-Protocol-Version": "", "User-Agent": "test (a b/2)", "Authorization": "Bearer TOKEN", "Accept": "application/json, text/event-stream", "Content-Type": "application/json"},
		{"Mcp-Protocol-Version": "2025-06-18", "Mcp-Method": "", "User-Agent": "test (a b/2)"},
		{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "list_tasks"},
		{"Mcp-Name": "=?base64?Z3LDtsOfZQ==?="},
		{"Mcp-Method": "resources/read", "Mcp-Name": "ui://x"},
	} {
		var m struct{ Result map[string]string }
		if err := json.Unmarshal([]byte(got[i]), &m); err != nil {
			t.Fatal(err)
		}
		for k, v := range want {
			if m.Result[k] != v {
				t.Errorf("request %d: %s is %q, want %q", i+1, k, m.Result[k], v)
			}
		}
	}
}

func TestBridgeKeepsEachIDAsItWas(t *testing.T) {
	ids := []string{`1`, `"1"`, `1.0`, `-5`, `"a\"b"`, `"é"`, `12345678901234567890`}
	var lines []string
	for _, id := range ids {
		lines = append(lines, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`)
	}
	got := across(t, func(w http.ResponseWriter, _ *http.Request) { // one that mangles ids
		says("application/json", `{"jsonrpc":"2.0","id":1e0,"result":{}}`)(w, nil)
	}, lines...)
	var want []string
	for _, id := range ids {
		want = append(want, `{"id":`+id+`,"jsonrpc":"2.0","result":{}}`)
	}
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestBridgeAnswersABatchThatCanNotBeCarried(t *testing.T) {
	got := across(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},5,{"jsonrpc":"2.0","id":"b","method":"ping"}]`)
	var list []struct{ ID any }
	if err := json.Unmarshal([]byte(got[0]), &list); err != nil || len(list) != 2 || list[0].ID != 1.0 || list[1].ID != "b" {
		t.Errorf("%q %v", got, err)
	}
}

// pipe is a bridge whose input a test writes line by line.
type pipe struct {
	in    *io.PipeWriter
	lines chan string
	ended chan error
}

func bridge(t *testing.T, ctx context.Context, h http.HandlerFunc) *pipe {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &pipe{in: inW, lines: make(chan string, 100), ended: make(chan error, 1)}
	b := &Bridge{URL: s.URL, Client: s.Client()}
	go func() { p.ended <- b.Run(ctx, inR, outW); _ = outW.Close() }()
	go func() {
		defer close(p.lines)
		var buf bytes.Buffer
		_, _ = io.Copy(writer(func(b []byte) {
			buf.Write(b)
			for {
				line, err := buf.ReadString('\n')
				if err != nil {
					buf.WriteString(line)
					return
				}
				p.lines <- strings.TrimSuffix(line, "\n")
			}
		}), outR)
	}()
	return p
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

func (p *pipe) send(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

func (p *pipe) next(t *testing.T) string {
	t.Helper()
	select {
	case l := <-p.lines:
		return l
	case err := <-p.ended:
		p.ended <- err
		if l, ok := <-p.lines; ok { // written before the end, and read after it
			return l
		}
		t.Fatal("ended: ", err)
	case <-time.After(10 * time.Second):
		t.Fatal("nothing came")
	}
	return ""
}

func (p *pipe) end(t *testing.T) {
	t.Helper()
	select {
	case err := <-p.ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it doesn't end")
	}
}

// holding answers "slow" requests when told to, and all others at once. gone tells of requests whose client left.
type holding struct {
	begun, gone chan string
	release     chan struct{}
}

func hold() *holding {
	return &holding{begun: make(chan string, 10), gone: make(chan string, 10), release: make(chan struct{})}
}

func (h *holding) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m, _ := peek(body)
	if m.Method != "ping" {
		h.begun <- m.Method
		select {
		case <-h.release:
		case <-r.Context().Done():
			h.gone <- m.Method
			return
		}
	}
	says("application/json", `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{}}`)(w, r)
}

func asks(id, method string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"}`
}

func TestBridgeCancelsAtTheServerAndAnswersTheRest(t *testing.T) {
	h := hold()
	p := bridge(t, context.Background(), h.ServeHTTP)
	p.send(t, asks("1", "slow"))
	<-h.begun
	p.send(t, asks("2", "ping"))
	if got := p.next(t); got != `{"jsonrpc":"2.0","id":2,"result":{}}` {
		t.Errorf("a slow request holds up the others: %s", got)
	}
	p.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	<-h.gone
	p.send(t, asks("3", "ping"))
	if got := p.next(t); got != `{"jsonrpc":"2.0","id":3,"result":{}}` {
		t.Errorf("after cancelling: %s", got)
	}
	_ = p.in.Close()
	p.end(t)
}

func TestBridgeFinishesWhatIsUnderWayWhenItsInputEnds(t *testing.T) {
	h := hold()
	p := bridge(t, context.Background(), h.ServeHTTP)
	p.send(t, asks("1", "slow"))
	p.send(t, asks("2", "subscriptions/listen")) // which would never end: it is cancelled
	<-h.begun
	<-h.begun
	_ = p.in.Close()
	if got := <-h.gone; got != "subscriptions/listen" {
		t.Error(got)
	}
	close(h.release)
	if got := p.next(t); got != `{"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Error(got)
	}
	p.end(t)
}

func TestBridgeFinishesWhatIsUnderWayWhenAskedToStop(t *testing.T) {
	h := hold()
	ctx, stop := context.WithCancel(context.Background())
	p := bridge(t, ctx, h.ServeHTTP)
	p.send(t, asks("1", "slow"))
	<-h.begun
	stop()
	close(h.release)
	if got := p.next(t); got != `{"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Error(got)
	}
	p.end(t) // though its input is open
}

func TestBridgeWaitsForTheVersionBeforeItSendsMore(t *testing.T) {
	var mu sync.Mutex
	var versions []string
	p := bridge(t, context.Background(), func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		versions = append(versions, r.Header.Get("Mcp-Protocol-Version"))
		mu.Unlock()
		time.Sleep(50 * time.Millisecond)
		says("application/json", `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}`)(w, r)
	})
	p.send(t, asks("1", "initialize"))
	p.send(t, asks("2", "ping"))
	p.next(t)
	p.next(t)
	if !slices.Equal(versions, []string{"", "2025-11-25"}) {
		t.Errorf("%q", versions)
	}
	_ = p.in.Close()
	p.end(t)
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestBridgeTellsWhenItsInputBreaks(t *testing.T) {
	if err := (&Bridge{}).Run(context.Background(), brokenReader{}, io.Discard); err == nil {
		t.Error("no error")
	}
}

func FuzzBridge(f *testing.F) {
	f.Add([]byte(ping + "\n[]\n{}\nx"))
	f.Add([]byte(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":{},"id":1}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		b := &Bridge{URL: "http://nowhere", Client: &http.Client{Transport: refusing{}}}
		if err := b.Run(context.Background(), bytes.NewReader(in), &out); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%q", line)
			}
		}
	})
}

type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }
