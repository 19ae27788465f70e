package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"cairn/internal/edge"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

type nothing struct{}

// onStdio runs lines through a handler with a few operations, as an agent on the machine itself.
func onStdio(t *testing.T, caller func(context.Context) (*who.Caller, error), in io.Reader) string {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	define := func(name string, fn func(ctx context.Context, _ nothing) (map[string]string, error)) *op.Op {
		return op.Define(op.Op{Name: name, Title: name, Doc: name, Area: who.Core, Effect: op.Read}, fn)
	}
	runner := op.NewRunner(log,
		define("who", func(ctx context.Context, _ nothing) (map[string]string, error) {
			return map[string]string{"client": who.From(ctx).Client}, nil
		}),
		define("steps", func(ctx context.Context, _ nothing) (map[string]string, error) {
			for i := range 3 {
				op.Progress(ctx, i+1, 3, "step")
			}
			return map[string]string{}, nil
		}),
		define("panics", func(context.Context, nothing) (map[string]string, error) { panic("out of order") }),
		define("big", func(context.Context, nothing) (map[string]string, error) {
			return map[string]string{"text": strings.Repeat("x", 3<<20)}, nil
		}),
		define("waits", func(ctx context.Context, _ nothing) (map[string]string, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}))
	h := NewHandler(New(runner, "1", log, nil, Beside{}), &edge.Edge{Public: &url.URL{Scheme: "http", Host: "localhost"}, Log: log}, nil, nil)
	var out bytes.Buffer
	if err := h.Stdio(context.Background(), in, &out, caller); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func local(context.Context) (*who.Caller, error) {
	return &who.Caller{AllAreas: true, Write: true, Actor: "stdio:1"}, nil
}

func calls(id, tool, more string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `"` + more + "}}\n"
}

const greeting = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"me","version":"3"}}}` + "\n"

// byID sorts out what came back; every line must be a message.
func byID(t *testing.T, out string) (answers map[string]string, notes int) {
	t.Helper()
	answers = map[string]string{}
	for line := range strings.Lines(out) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v: %.200s", err, line)
		}
		if m.Method != "" {
			notes++
		} else if answers[string(m.ID)] != "" {
			t.Errorf("two answers to %s", m.ID)
		} else {
			answers[string(m.ID)] = line
		}
	}
	return answers, notes
}

func TestStdioAnswersAsHTTPDoes(t *testing.T) {
	out := onStdio(t, local, strings.NewReader(greeting+calls("1", "who", "")+calls("2", "steps", `,"_meta":{"progressToken":5}`)+calls("3", "panics", "")+calls("4", "big", "")))
	got, notes := byID(t, out)
	if len(got) != 5 {
		t.Errorf("%d answers", len(got))
	}
	if !strings.Contains(got["1"], `"client":"stdio (me/3)"`) {
		t.Errorf("the client's own name is lost: %s", got["1"])
	}
	if notes != 3 {
		t.Errorf("%d notifications of progress, want 3", notes)
	}
	if !strings.Contains(got["3"], `"code":-32603`) || strings.Contains(got["3"], "out of order") {
		t.Errorf("a panic: %s", got["3"])
	}
	if len(got["4"]) < 6<<20 {
		t.Errorf("a big answer came as %d bytes", len(got["4"]))
	}
}

func TestStdioCancelsACall(t *testing.T) {
	r, w := io.Pipe()
	go func() {
		_, _ = io.WriteString(w, greeting+calls("1", "waits", ""))
		time.Sleep(100 * time.Millisecond)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`+"\n"+calls("2", "who", ""))
		_ = w.Close()
	}()
	got, _ := byID(t, onStdio(t, local, r))
	if len(got) != 2 || got["2"] == "" {
		t.Errorf("%v", got)
	}
}

func TestStdioWithoutACallerIsRefusedRequestByRequest(t *testing.T) {
	got, _ := byID(t, onStdio(t, func(context.Context) (*who.Caller, error) {
		return nil, fault.New(fault.NotFound, "there is no account")
	}, strings.NewReader(calls("1", "who", "")+calls(`"b"`, "who", ""))))
	if len(got) != 2 || !strings.Contains(got[`"b"`], "there is no account") {
		t.Errorf("%v", got)
	}
}
