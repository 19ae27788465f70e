package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"cairn/internal/edge"
	"cairn/internal/rawjson"
)

// Bridge carries MCP between a pipe and a server: each line of in goes out as one POST, each message that comes back is
// one line of out.
type Bridge struct {
	URL    string // of the server's MCP endpoint
	Token  string
	Agent  string // User-Agent
	Client *http.Client

	mu      sync.Mutex // of out
	out     io.Writer
	state   sync.Mutex
	version string                        // negotiated by initialize; "" = none yet
	flights map[string]context.CancelFunc // requests under way, by id
}

// Run works until in ends and every answer is out.
func (b *Bridge) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	b.out, b.flights = out, map[string]context.CancelFunc{}
	lines := bufio.NewReaderSize(in, 64<<10)
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		line, err := readLine(lines)
		if len(bytes.TrimSpace(line)) > 0 {
			b.dispatch(ctx, &wg, bytes.Clone(line))
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// readLine reads a line of any length up to what a server takes; a longer one ends the bridge.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > edge.MostBody {
			return nil, errors.New("a message is longer than the server takes")
		}
	}
}

// dispatch sends a message. The first request is waited for, since its answer settles the protocol version of the others.
func (b *Bridge) dispatch(ctx context.Context, wg *sync.WaitGroup, line []byte) {
	if why := rawjson.Well(line); why != "" {
		b.write([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":` + string(rawjson.Quote(nil, []byte(why))) + `}}`))
		return
	}
	m, err := peek(line)
	if err != nil { // the server words what is wrong
		m = &message{body: line}
	}
	if m.Method == "notifications/cancelled" {
		b.cancel(line)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	if m.ID != nil {
		b.state.Lock()
		b.flights[string(m.ID)] = cancel
		b.state.Unlock()
	}
	send := func() {
		defer cancel()
		b.send(ctx, m)
		b.state.Lock()
		delete(b.flights, string(m.ID))
		b.state.Unlock()
	}
	if m.Method == "initialize" {
		send()
		return
	}
	wg.Go(send)
}

// cancel ends a request under way: over HTTP that is closing its connection.
func (b *Bridge) cancel(line []byte) {
	var n struct {
		Params struct {
			RequestID json.RawMessage `json:"requestId"`
		} `json:"params"`
	}
	if json.Unmarshal(line, &n) != nil {
		return
	}
	b.state.Lock()
	defer b.state.Unlock()
	if stop := b.flights[string(n.Params.RequestID)]; stop != nil {
		stop()
	}
}

func (b *Bridge) send(ctx context.Context, m *message) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.URL, bytes.NewReader(m.body))
	if err != nil {
		b.fail(m, err)
		return
	}
	h := req.Header
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	h.Set("User-Agent", b.Agent)
	h.Set("Authorization", "Bearer "+b.Token)
	b.state.Lock()
	version := b.version
	b.state.Unlock()
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
	res, err := b.Client.Do(req)
	if err != nil {
		b.fail(m, err)
		return
	}
	defer res.Body.Close()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		b.stream(ctx, m, res.Body)
		return
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.fail(m, err)
		return
	}
	b.answer(m, body)
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

// stream passes on the messages of an event stream.
func (b *Bridge) stream(ctx context.Context, m *message, body io.Reader) {
	r := bufio.NewReaderSize(body, 64<<10)
	var data []byte
	for {
		line, err := r.ReadBytes('\n')
		line = bytes.TrimRight(line, "\r\n")
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(append(data, bytes.TrimPrefix(rest, []byte(" "))...), '\n')
		} else if len(line) == 0 && len(data) > 0 {
			b.answer(m, data)
			data = nil
		}
		if err != nil {
			if len(data) > 0 {
				b.answer(m, data)
			}
			if !errors.Is(err, io.EOF) && ctx.Err() == nil {
				b.fail(m, err)
			}
			return
		}
	}
}

// answer writes a message as one line and learns the version from initialize's.
func (b *Bridge) answer(m *message, body []byte) {
	if len(bytes.TrimSpace(body)) == 0 {
		return
	}
	var line bytes.Buffer
	if json.Compact(&line, body) != nil {
		b.fail(m, errors.New("the server's answer is not JSON"))
		return
	}
	if m.Method == "initialize" {
		var res struct {
			Result struct {
				ProtocolVersion string `json:"protocolVersion"`
			} `json:"result"`
		}
		if json.Unmarshal(body, &res) == nil && res.Result.ProtocolVersion != "" {
			b.state.Lock()
			b.version = res.Result.ProtocolVersion
			b.state.Unlock()
		}
	}
	b.write(line.Bytes())
}

// fail answers a request that could not be carried. The error's words hold the address, never the token.
func (b *Bridge) fail(m *message, err error) {
	if m.ID == nil || errors.Is(err, context.Canceled) {
		return
	}
	msg := rawjson.Quote(nil, []byte("the server can't be reached: "+err.Error()))
	b.write([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32006,"message":` + string(msg) + `,"data":{"name":"UNAVAILABLE","reason":"unavailable"}}}`))
}

func (b *Bridge) write(line []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _ = b.out.Write(append(line, '\n'))
}
