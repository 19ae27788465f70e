package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// requestLimit is how long one request may take.
const requestLimit = 30 * time.Second

// conn is one keep-alive connection to a server. It is written and read by hand: the client shares the machine's cores with
// the server, and Go's own client would take more of them than an echo does.
type conn struct {
	c     net.Conn
	r     *bufio.Reader
	head  []byte // of each request, up to the length
	out   []byte
	in    bytes.Buffer
	unset func() bool
}

func dial(ctx context.Context, s *child) (*conn, error) {
	c, err := (&net.Dialer{Timeout: requestLimit}).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return nil, err
	}
	k := &conn{c: c, r: bufio.NewReaderSize(c, 64<<10)}
	k.head = []byte("POST /mcp HTTP/1.1\r\nHost: " + s.addr + "\r\nUser-Agent: cairn-bench\r\nAuthorization: Bearer " + s.token +
		"\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2025-11-25\r\nContent-Length: ")
	k.unset = context.AfterFunc(ctx, func() { _ = c.Close() })
	return k, nil
}

func (k *conn) close() {
	k.unset()
	_ = k.c.Close()
}

// post sends a body and gives the answer's, valid until the next call. An answer that isn't 200 with a JSON-RPC result of
// success is an error: a benchmark of refusals would look fast.
func (k *conn) post(body []byte) ([]byte, error) {
	_ = k.c.SetDeadline(time.Now().Add(requestLimit))
	k.out = append(k.out[:0], k.head...)
	k.out = strconv.AppendInt(k.out, int64(len(body)), 10)
	k.out = append(append(k.out, "\r\n\r\n"...), body...)
	if _, err := k.c.Write(k.out); err != nil {
		return nil, err
	}
	res, err := http.ReadResponse(k.r, nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	k.in.Reset()
	if _, err := io.Copy(&k.in, res.Body); err != nil {
		return nil, err
	}
	answer := k.in.Bytes()
	// In a JSON string these would have their quotes escaped, so they are the answer's own members.
	if res.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(`"result":`)) || bytes.Contains(answer, []byte(`"isError":true`)) {
		return nil, fmt.Errorf("status %d for %.200s: %.500s", res.StatusCode, body, answer)
	}
	return answer, nil
}

// ask makes one request on a connection of its own.
func (c *child) ask(ctx context.Context, body []byte) ([]byte, error) {
	k, err := dial(ctx, c)
	if err != nil {
		return nil, err
	}
	defer k.close()
	answer, err := k.post(body)
	return bytes.Clone(answer), err
}

// load is what a server is asked.
type load struct {
	conns int
	total int           // requests, or
	until time.Duration // how long
	body  func(i int) []byte
	seen  func(i int, answer []byte) // told of each answer, from several goroutines; may be nil
}

// outcome is how a load went.
type outcome struct {
	requests int
	took     time.Duration
	waits    []time.Duration // of each request, ascending
	bytes    int64           // of all answers
}

func (o outcome) rate() float64 { return float64(o.requests) / o.took.Seconds() }

// wait gives the time within which a share of the requests was answered.
func (o outcome) wait(share float64) time.Duration { return quantile(o.waits, share) }

// drive puts a load on a server, each connection one request at a time. The first error ends it.
func (c *child) drive(ctx context.Context, l load) (outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	conns := make([]*conn, l.conns)
	for i := range conns {
		k, err := dial(ctx, c)
		if err != nil {
			return outcome{}, err
		}
		defer k.close()
		conns[i] = k
	}
	var next, size atomic.Int64
	waits := make([][]time.Duration, l.conns)
	var all sync.WaitGroup
	begin := time.Now()
	for n, k := range conns {
		all.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1) - 1)
				if l.total > 0 && i >= l.total || l.total == 0 && time.Since(begin) >= l.until {
					return
				}
				body := l.body(i)
				sent := time.Now()
				answer, err := k.post(body)
				if err != nil {
					cancel(fmt.Errorf("%s: %w", c.name, err))
					return
				}
				waits[n] = append(waits[n], time.Since(sent))
				size.Add(int64(len(answer)))
				if l.seen != nil {
					l.seen(i, answer)
				}
			}
		})
	}
	all.Wait()
	o := outcome{took: time.Since(begin), waits: slices.Concat(waits...), bytes: size.Load()}
	o.requests = len(o.waits)
	slices.Sort(o.waits)
	return o, context.Cause(ctx)
}

// cost is what a load cost a server.
type cost struct {
	outcome
	cpu time.Duration // per request
}

// flushed is longer than Cairn waits before it writes the rows of its calls: they belong to what a request costs.
const flushed = 800 * time.Millisecond

// weigh drives a load, after a tenth of it as warming, and reads what CPU the server used for it. The warming asks for
// what comes after the load, so that nothing is created or completed twice.
func (c *child) weigh(ctx context.Context, l load) (cost, error) {
	warm := l
	warm.total = max(l.conns, l.total/10)
	warm.body = func(i int) []byte { return l.body(l.total + i) }
	if _, err := c.drive(ctx, warm); err != nil {
		return cost{}, err
	}
	time.Sleep(flushed)
	before, err := c.cpu()
	if err != nil {
		return cost{}, err
	}
	o, err := c.drive(ctx, l)
	if err != nil {
		return cost{}, err
	}
	time.Sleep(flushed)
	after, err := c.cpu()
	return cost{o, (after - before) / time.Duration(o.requests)}, err
}

// toolCall words a call of a tool.
func toolCall(i int, name string, args any) []byte {
	b, err := json.Marshal(args)
	if err != nil { // the arguments are this program's own
		panic(err)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, i+1, name, b)
}

var toolsList = []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)

// structured reads the object that a tool answered.
func structured(answer []byte, into any) error {
	var m struct {
		Result struct {
			StructuredContent json.RawMessage `json:"structuredContent"`
		} `json:"result"`
	}
	if err := json.Unmarshal(answer, &m); err != nil {
		return err
	}
	return json.Unmarshal(m.Result.StructuredContent, into)
}
