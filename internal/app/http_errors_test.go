package app_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"cairn/internal/apptest"
	"cairn/internal/db"
)

// failure is a call that fails, and how on each surface.
type failure struct {
	name, as   string
	tool, args string
	kind       string
	mcp, code  int // on /mcp; code 0 = a result with isError
	api        int
	result     bool     // in the current MCP a result with isError, whatever HeroMind's dialect has
	want       []string // in every answer
	challenge  string   // part of WWW-Authenticate; "" = there is none
	retry      bool
}

var failures = []failure{
	{name: "no Authorization", tool: "list_heaps", args: `{}`, kind: "unauthenticated", mcp: 401, code: -32000, api: 401, want: []string{"Authorization header is required"},
		challenge: `Bearer resource_metadata="{url}/.well-known/oauth-protected-resource/mcp"`},
	{name: "unknown token", as: "unknown", tool: "list_heaps", args: `{}`, kind: "token_invalid", mcp: 401, code: -32007, api: 401, challenge: `error="invalid_token"`},
	{name: "malformed token", as: "malformed", tool: "list_heaps", args: `{}`, kind: "token_invalid", mcp: 401, code: -32007, api: 401, challenge: `error="invalid_token"`},
	{name: "expired token", as: "expired", tool: "list_heaps", args: `{}`, kind: "token_expired", mcp: 401, code: -32003, api: 401, challenge: `error="invalid_token"`},
	{name: "revoked token", as: "revoked", tool: "list_heaps", args: `{}`, kind: "token_inactive", mcp: 401, code: -32004, api: 401, challenge: `error="invalid_token"`},
	{name: "token of another address", as: "distant", tool: "list_heaps", args: `{}`, kind: "denied", mcp: 403, code: -32001, api: 403},
	{name: "operation for persons", as: "rw", tool: "create_token", args: `{"name":"x"}`, kind: "denied", mcp: 403, code: -32001, api: 403},
	{name: "write without the right", as: "ro", tool: "create_work_task", args: `{"name":"x"}`, kind: "scope", mcp: 403, code: -32008, api: 403,
		challenge: `error="insufficient_scope", scope="cairn.read cairn.write"`},
	{name: "delete without the right", as: "ro", tool: "delete_task", args: `{"task_id":"{task}"}`, kind: "scope", mcp: 403, code: -32008, api: 403,
		challenge: `error="insufficient_scope", scope="cairn.read cairn.write"`},
	{name: "over the rate", as: "spent", tool: "list_heaps", args: `{}`, kind: "limited", mcp: 429, code: -32002, api: 429, retry: true,
		want: []string{"Rate limit exceeded. Try again in ", `"current":`, `"limit":1`, `"resetTime":1`}},
	{name: "no such tool", as: "rw", tool: "nosuch", args: `{}`, kind: "unknown_tool", mcp: 200, code: -32005, api: 404, want: []string{"nosuch"}},
	{name: "tool of an area that is not granted", as: "memory", tool: "list_tasks", args: `{}`, kind: "unknown_tool", mcp: 200, code: -32005, api: 404, want: []string{"list_tasks"}},
	{name: "missing argument", as: "rw", tool: "create_personal_task", args: `{}`, kind: "invalid", mcp: 200, code: -32602, api: 400, result: true,
		want: []string{"name is required and must be a non-empty string"}},
	{name: "several bad arguments", as: "rw", tool: "create_work_task", args: `{"name":"","due_date":"soon","source_url":"ftp://x"}`, kind: "invalid", mcp: 200, code: -32602, api: 400, result: true,
		want: []string{"name is required", "due_date is", "source_url is", `"errors":[`}},
	{name: "unknown argument", as: "rw", tool: "update_task", args: `{"task_id":"{task}","in_trsh":true}`, kind: "invalid", mcp: 200, code: -32602, api: 400, result: true, want: []string{"in_trsh"}},
	{name: "NUL in an argument", as: "rw", tool: "create_work_task", args: `{"name":"a\u0000b"}`, kind: "invalid", mcp: 200, code: -32602, api: 400, result: true, want: []string{"NUL"}},
	{name: "absent id", as: "rw", tool: "get_task", args: `{"task_id":"{absent}"}`, kind: "not_found", mcp: 200, api: 404, result: true},
	{name: "absent project", as: "rw", tool: "get_project_context", args: `{"project_name":"No such"}`, kind: "not_found", mcp: 200, api: 404, result: true},
	{name: "ambiguous name", as: "rw", tool: "get_project_context", args: `{"project_name":"twice"}`, kind: "conflict", mcp: 200, api: 409, result: true, want: []string{`"candidates":[`}},
	{name: "change of a thing in the trash", as: "rw", tool: "update_task", args: `{"task_id":"{trashed}","name":"x"}`, kind: "conflict", mcp: 200, api: 409, result: true, want: []string{"restore_task"}},
}

func TestErrorsTable(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		w.tokens["unknown"] = "cairn_" + strings.Repeat("a", 52)
		w.tokens["malformed"] = "cairn_short"
		for _, f := range failures {
			for _, m := range manners {
				t.Run(f.name+"/"+m.name, func(t *testing.T) { w.fails(t, f, m) })
			}
			t.Run(f.name+"/api", func(t *testing.T) { w.failsAPI(t, f) })
		}
	})
}

func (f failure) headers() []string {
	h := []string{"-WWW-Authenticate", "-Retry-After"}
	if f.challenge != "" {
		h[0] = "WWW-Authenticate: " + f.challenge
	}
	if f.retry {
		h[1] = "Retry-After: "
	}
	return h
}

// fails checks a failure's answer on /mcp.
func (w *world) fails(t *testing.T, f failure, m manner) {
	s := m.call(f.as, f.tool, f.args)
	s.status, s.header = f.mcp, f.headers()
	if f.kind == "unknown_tool" && m.modern {
		s.status = http.StatusBadRequest // MCP 2026-07-28 asks for 400 with -32602
	}
	w.run(t, s)
	r := w.send(t, s)
	a := read(t, r)
	if string(a.ID) != "7" {
		t.Errorf("the id is %s, want that of the request", a.ID)
	}
	for _, part := range f.want {
		if text := strings.ReplaceAll(r.Body, `\"`, `"`); !strings.Contains(text, part) {
			t.Errorf("%s is missing", part)
		}
	}
	if f.code == 0 || f.result && !m.hero {
		w.failedResult(t, f, a)
	} else {
		f.failedError(t, m, a)
	}
	if strings.Contains(r.Header.Get("WWW-Authenticate"), "error=") && f.kind == "unauthenticated" {
		t.Errorf("the challenge without a token has an error: %s", r.Header.Get("WWW-Authenticate"))
	}
	if t.Failed() {
		t.Logf("%s\n%d %s", w.fill(s.body), r.Status, clip(r.Body))
	}
}

func (w *world) failedResult(t *testing.T, f failure, a answer) {
	t.Helper()
	if a.Error != nil || a.Result == nil || a.Result.IsError == nil || !*a.Result.IsError {
		t.Fatal("want a result with isError")
	}
	if a.Result.Structured["error"] != f.kind || a.Result.Structured["message"] == "" {
		t.Errorf("structuredContent is %v, want error %s", a.Result.Structured, f.kind)
	}
	var text struct{ Text string }
	apptest.Decode(t, a.Result.Content[0], &text)
	var same map[string]any
	apptest.Decode(t, []byte(text.Text), &same)
	if same["error"] != f.kind {
		t.Errorf("content[0] is %s", text.Text)
	}
}

func (f failure) failedError(t *testing.T, m manner, a answer) {
	t.Helper()
	if a.Error == nil || a.Result != nil {
		t.Fatal("want a JSON-RPC error")
	}
	code := f.code
	if f.kind == "unknown_tool" && !m.hero {
		code = -32602
	}
	if a.Error.Code != code || a.Error.Message == "" {
		t.Errorf("error %d %q, want code %d", a.Error.Code, a.Error.Message, code)
	}
	if a.Error.Data["name"] != strings.ToUpper(f.kind) {
		t.Errorf("data is %v, want name %s", a.Error.Data, strings.ToUpper(f.kind))
	}
	if f.kind == "invalid" {
		if !strings.HasPrefix(a.Error.Message, "Invalid tool arguments: ") {
			t.Errorf("message %q", a.Error.Message)
		}
		if list, _ := a.Error.Data["errors"].([]any); len(list) == 0 {
			t.Error("data.errors is missing")
		}
	}
}

// failsAPI checks a failure's answer on /api.
func (w *world) failsAPI(t *testing.T, f failure) {
	s := scenario{do: "POST /api/" + f.tool, as: f.as, body: f.args, status: f.api, header: f.headers(), want: append([]string{`"error":"` + f.kind + `"`, `"message":"`}, f.want...)}
	for i, part := range s.want {
		s.want[i] = strings.ReplaceAll(part, `\"`, `"`)
	}
	w.run(t, s)
}

// What no argument can bring about: the inside breaks.
func TestBrokenInsideIsNeverTold(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		err := a.DB.Write(context.Background(), func(tx *db.Tx) error {
			_, err := tx.Exec(`ALTER TABLE project_log RENAME TO project_log_away`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range manners {
			s := m.call("rw", "get_project_context", `{"project_id":"{project}"}`)
			s.status, s.want = 500, []string{`"code":-32603`, `"id":7`, `"name":"INTERNAL"`, `"data":{"id":"`}
			t.Run(m.name, func(t *testing.T) { w.run(t, s) })
		}
		t.Run("api", func(t *testing.T) {
			w.run(t, scenario{do: "POST /api/get_project_context", as: "rw", body: `{"project_id":"{project}"}`, status: 500, want: []string{`"error":"internal"`, `"id":"`}})
		})
	})
}

// While one write holds all others up, a call that waits too long ends with reason timeout.
func TestTimeoutIsUnavailable(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		a.Runner.Find("create_work_task").Timeout = time.Nanosecond
		free, held := make(chan struct{}), make(chan struct{})
		done := make(chan error, 1)
		go func() {
			done <- a.DB.Write(context.Background(), func(*db.Tx) error { close(held); <-free; return nil })
		}()
		<-held
		for _, m := range manners {
			f := failure{name: "timeout", as: "rw", tool: "create_work_task", args: `{"name":"x"}`, kind: "unavailable", mcp: 200, code: -32006, api: 504, result: true, want: []string{`"reason":"timeout"`}}
			t.Run(m.name, func(t *testing.T) { w.fails(t, f, m) })
			if m.name == "modern" {
				t.Run("api", func(t *testing.T) { w.failsAPI(t, f) })
			}
		}
		close(free)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

// With the database gone a token can't be looked up: that is nobody's fault but the server's, and not a 401.
func TestDatabaseGoneIsUnavailable(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		ctx := context.Background()
		err := a.DB.Write(ctx, func(tx *db.Tx) error {
			_, err := tx.Exec(`ALTER TABLE token RENAME TO token_away`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range manners {
			s := m.call("rw", "list_heaps", `{}`)
			s.status, s.want, s.header = 200, []string{`"code":-32006`, `"reason":"unavailable"`}, []string{"-WWW-Authenticate"}
			t.Run(m.name, func(t *testing.T) { w.run(t, s) })
		}
		t.Run("api", func(t *testing.T) {
			w.run(t, scenario{do: "POST /api/list_heaps", as: "rw", body: `{}`, status: 503, want: []string{`"error":"unavailable"`}})
		})
	})
}

// The token's own words: how it may be sent, and how not.
func TestTokenGoesInTheAuthorizationHeaderAlone(t *testing.T) {
	list := `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"list_heaps","arguments":{}}}`
	plain := []string{`"code":-32000`, `"id":"a"`}
	scenarios(t, nil, []scenario{
		{name: "lower-case scheme", headers: []string{"Authorization: bearer {token:rw}"}, body: list, status: 200},
		{name: "two spaces", headers: []string{"Authorization: Bearer  {token:rw}"}, body: list, status: 200},
		{name: "empty", headers: []string{"Authorization: "}, body: list, status: 401, want: plain},
		{name: "no token", headers: []string{"Authorization: Bearer "}, body: list, status: 401, want: plain},
		{name: "Basic", headers: []string{"Authorization: Basic dTpw"}, body: list, status: 401, want: plain, header: []string{"WWW-Authenticate: Bearer resource_metadata="}},
		{name: "token without a scheme", headers: []string{"Authorization: {token:rw}"}, body: list, status: 401, want: plain},
		{name: "two headers", headers: []string{"Authorization: Bearer {token:rw}", "Authorization: Bearer {token:ro}"}, body: list, status: 401, want: []string{`"code":-32007`}},
		{name: "in the query", do: "POST /mcp?access_token={token:rw}&token={token:rw}&api_key={token:rw}", body: list, status: 401, want: plain},
		{name: "in the query of api", do: "POST /api/list_heaps?access_token={token:rw}", body: `{}`, status: 401},
		{name: "in a form", do: "POST /api/list_heaps", headers: []string{"Content-Type: application/x-www-form-urlencoded"}, body: `access_token={token:rw}`, status: 401},
		{name: "in a cookie", headers: []string{"Cookie: token={token:rw}"}, body: list, status: 401, want: plain},
		{name: "upper-case", headers: []string{"Authorization: Bearer CAIRN_{token:rw}"}, body: list, status: 401, want: []string{`"code":-32007`}},
		{name: "too long", headers: []string{"Authorization: Bearer {token:rw}a"}, body: list, status: 401, want: []string{`"code":-32007`}},
		{name: "bad token on initialize", headers: []string{"Authorization: Bearer nonsense"}, body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, status: 401, want: []string{`"code":-32007`}},
		{name: "bad token and a stale session", headers: []string{"Authorization: Bearer nonsense", "Mcp-Session-Id: 0190"}, body: list, status: 401, want: []string{`"code":-32007`}},
	})
}

// A fault's answer is the same whether the id is a number, a string, or can't be known.
func TestErrorsCarryTheRequestsID(t *testing.T) {
	var table []scenario
	for _, m := range manners {
		unknown := `"id":null`
		if m.hero {
			unknown = `"id":"unknown"`
		}
		for _, id := range []string{"0", `""`, `"x"`, "-3", `"é\n"`} {
			s := m.request("", id, "tools/list", "", "")
			s.name, s.status = m.name+"/id "+id, http.StatusUnauthorized
			s.want = []string{`"id":` + id}
			table = append(table, s)
		}
		s := m.request("rw", "3", "tools/list", "", "")
		s.name, s.do, s.status, s.want = m.name+"/unknown toolset", s.do+"?toolsets=nope", 400, []string{`"id":3`, `"code":-32600`, `"valid":["core","tasks"`}
		table = append(table, s)
		for name, body := range map[string]string{"not JSON": `{"jsonrpc":"2.0","id":1`, "a number": `7`, "null id": `{"jsonrpc":"2.0","id":null,"method":"tools/list"}`,
			"object id": `{"jsonrpc":"2.0","id":{},"method":"tools/list"}`, "true id": `{"jsonrpc":"2.0","id":true,"method":"tools/list"}`} {
			s := m.request("rw", "1", "tools/list", "", "")
			s.name, s.body, s.status, s.want = m.name+"/"+name, body, 400, []string{unknown}
			table = append(table, s)
		}
	}
	plainly(t, nil, table)
}
