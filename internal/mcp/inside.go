package mcp

import (
	"context"
	"io"
	"net/http"
	"sync"

	"cairn/internal/rawjson"
	"cairn/internal/who"
)

// Stdio serves MCP on a pipe in this process, as whoever caller gives for each request anew, until in ends or ctx does. It
// is a bridge to the handler that answers HTTP, so that a client hears the same on every way in.
func (h *Handler) Stdio(ctx context.Context, in io.Reader, out io.Writer, caller func(context.Context) (*who.Caller, error)) error {
	b := &Bridge{URL: "http://cairn" + Path, Agent: "stdio", Client: &http.Client{Transport: inside{h, caller}}}
	return b.Run(ctx, in, out)
}

// inside carries HTTP requests to a handler of this process. Who calls is known without a credential.
type inside struct {
	h      *Handler
	caller func(context.Context) (*who.Caller, error)
}

// RoundTrip makes it the transport of an http.Client.
func (t inside) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return nil, err
	}
	pr, pw := io.Pipe()
	w := &pipeWriter{header: http.Header{}, body: pw, started: make(chan struct{})}
	go func() {
		defer func() { w.WriteHeader(http.StatusOK); _ = pw.Close() }()
		q := &request{h: t.h, w: w, r: r, again: t.caller}
		c, err := t.caller(r.Context())
		if err != nil {
			q.fail(nil, q.dialect(nil), err)
			return
		}
		c.Client = r.UserAgent()
		q.caller = c
		if list, isBatch := rawjson.Elements(body); isBatch {
			q.batch(list)
			return
		}
		q.one(body)
	}()
	select {
	case <-w.started:
	case <-r.Context().Done():
		_ = pr.Close() // what is still written goes nowhere
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: w.status, Header: w.sent, Body: pr, ContentLength: -1, Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}, nil
}

// pipeWriter is a ResponseWriter whose body is read while it is written.
type pipeWriter struct {
	header  http.Header
	body    *io.PipeWriter
	once    sync.Once
	started chan struct{} // closed when status and sent are set
	status  int
	sent    http.Header
}

// Header, WriteHeader, Write and Flush make it a ResponseWriter that can stream.
func (w *pipeWriter) Header() http.Header { return w.header }

// WriteHeader sends the head.
func (w *pipeWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.started)
	})
}

func (w *pipeWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

// Flush has nothing to do beyond the head: a pipe holds nothing back.
func (w *pipeWriter) Flush() { w.WriteHeader(http.StatusOK) }
