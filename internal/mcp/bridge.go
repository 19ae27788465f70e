package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"cairn/internal/edge"
	"cairn/internal/rawjson"
)

// How long the requests under way may take to finish when nothing more comes in, or when the process is asked to stop. The
// first covers every operation; the second has to be over before whoever asked loses patience.
const (
	graceAtEnd  = 3 * time.Minute
	graceAtStop = 10 * time.Second
)

// Bridge carries MCP between a pipe and a server: each line of in goes out as one POST, each message that comes back is
// one line of out. Every request is answered once, whatever becomes of the server.
type Bridge struct {
	URL    string // of the server's MCP endpoint
	Token  string // "" = the Client knows who calls
	Agent  string // User-Agent; the client's own name goes behind it once it is known
	Client *http.Client

	mu      sync.Mutex // of out
	out     io.Writer
	state   sync.Mutex
	version string // negotiated by initialize; "" = none yet
	agent   string
	flights map[string]*flight // requests under way, by id
}

// flight is a message under way.
type flight struct {
	*message
	cancel   context.CancelFunc
	batch    []json.RawMessage // ids of a batch's requests
	answered bool              // its response was written; touched by its own goroutine alone
}

// line is what was read: a message, or why there is none.
type line struct {
	text []byte
	err  error
}

// Run works until in ends or ctx does, and every request under way is answered.
func (b *Bridge) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	b.out, b.agent, b.flights = out, b.Agent, map[string]*flight{}
	flying, ground := context.WithCancel(context.WithoutCancel(ctx))
	defer ground()
	var wg sync.WaitGroup
	lines := make(chan line)
	go read(ctx, in, lines)
	var failed error
	for open := true; open; {
		select {
		case <-ctx.Done():
			open = false
		case l := <-lines:
			switch {
			case errors.Is(l.err, errTooLong):
				b.refuse(-32600, l.err.Error())
			case l.err != nil:
				open = false
				if !errors.Is(l.err, io.EOF) {
					failed = l.err
				}
			case len(bytes.TrimSpace(l.text)) > 0:
				if done := b.dispatch(flying, &wg, l.text); done != nil {
					select {
					case <-done:
					case <-ctx.Done():
					}
				}
			}
		}
	}
	b.endStreams()
	landed := make(chan struct{})
	go func() { wg.Wait(); close(landed) }()
	end := time.NewTimer(graceAtEnd)
	defer end.Stop()
	select {
	case <-landed:
	case <-end.C:
	case <-ctx.Done():
		select {
		case <-landed:
		case <-time.After(graceAtStop):
		}
	}
	return failed
}

var errTooLong = fmt.Errorf("a message may have at most %d bytes", edge.MostBody)

// read gives the lines of in, the last one perhaps without its end, and then the error that ended them. It is left behind
// where ctx ends first: reading from a pipe can't be interrupted.
func read(ctx context.Context, in io.Reader, lines chan<- line) {
	r := bufio.NewReaderSize(in, 64<<10)
	give := func(l line) bool {
		select {
		case lines <- l:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for {
		text, err := readLine(r)
		if errors.Is(err, errTooLong) {
			if !give(line{err: err}) {
				return
			}
			continue
		}
		if len(text) > 0 && !give(line{text: text}) {
			return
		}
		if err != nil {
			give(line{err: err})
			return
		}
	}
}

// readLine reads a line up to what a server takes. A longer one is passed over.
func readLine(r *bufio.Reader) ([]byte, error) {
	var text []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(text)+len(part) > edge.MostBody; long {
			text = nil
		} else {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long && (err == nil || errors.Is(err, io.EOF)): // a following read tells of the end
			return nil, errTooLong
		default:
			return text, err
		}
	}
}

// dispatch sends a message. done is given where the next one must wait: the answer to initialize settles the protocol
// version of the others.
func (b *Bridge) dispatch(ctx context.Context, wg *sync.WaitGroup, text []byte) (done <-chan struct{}) {
	if why := rawjson.Well(text); why != "" {
		b.refuse(-32700, why)
		return nil
	}
	m, err := peek(text)
	if err != nil { // the server words what is wrong
		bad := &message{body: text}
		if goodID(m.ID) {
			bad.ID = m.ID
		}
		m = bad
	}
	if m.Method == "notifications/cancelled" {
		b.cancel(text)
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &flight{message: m, cancel: cancel}
	if list, isBatch := rawjson.Elements(text); isBatch {
		for _, one := range list {
			if m, _ := peek(one); goodID(m.ID) && !m.answer {
				f.batch = append(f.batch, m.ID)
			}
		}
	}
	b.state.Lock()
	b.flights[string(m.ID)] = f
	b.state.Unlock()
	landed := make(chan struct{})
	wg.Go(func() {
		defer close(landed)
		defer cancel()
		b.send(ctx, f)
		b.state.Lock()
		defer b.state.Unlock()
		if b.flights[string(m.ID)] == f { // a client may have used the id twice
			delete(b.flights, string(m.ID))
		}
	})
	if m.Method == "initialize" {
		return landed
	}
	return nil
}

// cancel ends a request under way: over HTTP that is closing its connection. It gets no answer.
func (b *Bridge) cancel(text []byte) {
	var n struct {
		Params struct {
			RequestID json.RawMessage `json:"requestId"`
		} `json:"params"`
	}
	if json.Unmarshal(text, &n) != nil || n.Params.RequestID == nil {
		return
	}
	b.state.Lock()
	defer b.state.Unlock()
	if f := b.flights[string(n.Params.RequestID)]; f != nil {
		f.cancel()
	}
}

// endStreams cancels what would go on for ever.
func (b *Bridge) endStreams() {
	b.state.Lock()
	defer b.state.Unlock()
	for _, f := range b.flights {
		if f.Method == "subscriptions/listen" {
			f.cancel()
		}
	}
}

func (b *Bridge) send(ctx context.Context, f *flight) {
	req, err := b.request(ctx, f.message)
	if err != nil {
		b.fail(ctx, f, err)
		return
	}
	res, err := b.Client.Do(req)
	if err != nil {
		b.fail(ctx, f, fmt.Errorf("the server can't be reached: %w", err))
		return
	}
	defer res.Body.Close()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		err = b.stream(ctx, f, res.Body)
	} else {
		var body []byte
		if body, err = io.ReadAll(res.Body); err == nil {
			err = b.answer(ctx, f, body)
		}
	}
	if err == nil && f.answered {
		return
	}
	if err == nil {
		err = errors.New("its answer held none to the request")
	}
	b.fail(ctx, f, fmt.Errorf("the server answered %d, but %w", res.StatusCode, err))
}

// request makes the POST of a message, with the headers that its protocol version asks for.
func (b *Bridge) request(ctx context.Context, m *message) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.URL, bytes.NewReader(m.body))
	if err != nil {
		return nil, err
	}
	b.state.Lock()
	if name := clientName(m); name != "" {
		b.agent = b.Agent + " (" + name + ")"
	}
	version, agent := b.version, b.agent
	b.state.Unlock()
	h := req.Header
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	h.Set("User-Agent", agent)
	if b.Token != "" {
		h.Set("Authorization", "Bearer "+b.Token)
	}
	if m.hasMeta {
		version = m.Version
		h.Set("Mcp-Method", m.Method)
		if name := headerName(m); name != "" {
			h.Set("Mcp-Name", name)
		}
	}
	if version != "" {
		h.Set("Mcp-Protocol-Version", version)
	}
	return req, nil
}

// clientName is what a client calls itself in initialize, as far as it fits into a header.
func clientName(m *message) string {
	if m.Method != "initialize" {
		return ""
	}
	var p struct {
		Params struct {
			ClientInfo struct{ Name, Version string } `json:"clientInfo"`
		} `json:"params"`
	}
	_ = json.Unmarshal(m.body, &p)
	name := strings.TrimSuffix(p.Params.ClientInfo.Name+"/"+p.Params.ClientInfo.Version, "/")
	name = strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e || r == '(' || r == ')' {
			return -1
		}
		return r
	}, name)
	return name[:min(len(name), 100)]
}

// headerName is the value of Mcp-Name: a tool's or prompt's name, or a resource's address.
func headerName(m *message) string {
	name := m.Name
	if name == "" {
		var p struct {
			Params struct {
				URI string `json:"uri"`
			} `json:"params"`
		}
		_ = json.Unmarshal(m.body, &p)
		name = p.Params.URI
	}
	for _, r := range name {
		if r < 0x20 || r > 0x7e {
			return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(name)) + "?="
		}
	}
	return name
}

// stream passes on the messages of an event stream. The end of the stream ends its last event too.
func (b *Bridge) stream(ctx context.Context, f *flight, body io.Reader) error {
	r := bufio.NewReaderSize(body, 64<<10)
	var data []byte
	for {
		text, err := r.ReadBytes('\n')
		text = bytes.TrimRight(text, "\r\n")
		if rest, ok := bytes.CutPrefix(text, []byte("data:")); ok {
			data = append(append(data, bytes.TrimPrefix(rest, []byte(" "))...), '\n')
		} else if len(text) == 0 && len(data) > 0 {
			if err := b.answer(ctx, f, data); err != nil {
				return err
			}
			data = nil
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// answer writes a message that came back as one line, and learns the version from initialize's. A response carries the
// request's id even where the server could not read that.
func (b *Bridge) answer(ctx context.Context, f *flight, body []byte) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	var text bytes.Buffer
	if json.Compact(&text, body) != nil {
		return errors.New("what it sent is not JSON")
	}
	if ctx.Err() != nil || strings.HasPrefix(f.Method, "notifications/") { // cancelled, or never asked: no answer is expected
		return nil
	}
	out := text.Bytes()
	if isResponse(out) {
		if f.answered {
			return errors.New("it answered twice")
		}
		f.answered = true
		if f.ID != nil {
			out = withID(out, f.ID)
		}
	}
	if f.Method == "initialize" {
		var res struct {
			Result struct {
				ProtocolVersion string `json:"protocolVersion"`
			} `json:"result"`
		}
		if json.Unmarshal(out, &res) == nil && res.Result.ProtocolVersion != "" {
			b.state.Lock()
			b.version = res.Result.ProtocolVersion
			b.state.Unlock()
		}
	}
	b.write(out)
	return nil
}

// isResponse tells a response, or a batch of them, from the notifications that may come before it.
func isResponse(body []byte) bool {
	response := body[0] == '['
	rawjson.Members(body, func(k string, _ json.RawMessage) bool {
		response = response || k == "result" || k == "error"
		return true
	})
	return response
}

// withID puts the request's id into a response that has another: an error from before the server knew it.
func withID(body []byte, id json.RawMessage) []byte {
	out, same := append([]byte(`{"id":`), id...), false
	rawjson.Members(body, func(k string, v json.RawMessage) bool {
		if k == "id" {
			same = bytes.Equal(v, id)
			return true
		}
		out = append(append(rawjson.Quote(append(out, ','), []byte(k)), ':'), v...)
		return true
	})
	if same {
		return body
	}
	return append(out, '}')
}

// fail answers what could not be carried. The error's words hold the address, never the token.
func (b *Bridge) fail(ctx context.Context, f *flight, err error) {
	if f.answered || ctx.Err() != nil {
		return
	}
	why := strings.ToValidUTF8(err.Error(), "\uFFFD")
	refusal := func(id json.RawMessage) []byte {
		return refusal(id, -32006, why, `,"data":{"name":"UNAVAILABLE","reason":"unavailable"}`)
	}
	switch {
	case f.ID != nil:
		b.write(refusal(f.ID))
	case f.batch != nil:
		all := make([][]byte, len(f.batch))
		for i, id := range f.batch {
			all[i] = refusal(id)
		}
		b.write(append(append([]byte{'['}, bytes.Join(all, []byte{','})...), ']'))
	}
}

// refusal makes an error response; data is its further members.
func refusal(id json.RawMessage, code int, why, data string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s%s}}`, id, code, rawjson.Quote(nil, []byte(why)), data)
}

// refuse answers a line that is no message.
func (b *Bridge) refuse(code int, why string) {
	b.write(refusal(json.RawMessage("null"), code, why, ""))
}

func (b *Bridge) write(text []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _ = b.out.Write(append(text, '\n'))
}
