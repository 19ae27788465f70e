package app_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// list is a request that works for whoever has a token.
const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

// bad bodies, and the JSON-RPC code each gets, whatever the manner.
var badBodies = []struct {
	name, body string
	code       int
}{
	{"empty", "", -32700},
	{"white space", " \n", -32700},
	{"cut off", `{"jsonrpc":"2.0","id":1,"method":"tools/list"`, -32700},
	{"garbage behind", list + "x", -32700},
	{"second message behind", list + list, -32700},
	{"closing brace behind", list + "}", -32700},
	{"half a character", `{"jsonrpc":"2.0","id":"` + "\xe2" + `","method":"tools/list"}`, -32700},
	{"overlong NUL", `{"jsonrpc":"2.0","id":"` + "\xc0\x80" + `","method":"tools/list"}`, -32700},
	{"surrogate as UTF-8", `{"jsonrpc":"2.0","id":"` + "\xed\xa0\x80" + `","method":"tools/list"}`, -32700},
	{"bad byte in a key", `{"jsonrpc":"2.0","id":1,"method":"tools/list","` + "\xff" + `":1}`, -32700},
	{"Latin-1", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"` + "caf\xe9" + `"}}}`, -32700},
	{"high surrogate alone", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_work_task","arguments":{"name":"\ud83d"}}}`, -32700},
	{"low surrogate alone", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_work_task","arguments":{"name":"\ude00x"}}}`, -32700},
	{"surrogates the wrong way round", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_work_task","arguments":{"name":"\ude00\ud83d"}}}`, -32700},
	{"surrogate in a key", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_work_task","arguments":{"\ud83d":1}}}`, -32700},
	{"byte order mark", "\ufeff" + list, -32700},
	{"UTF-16", "{\x00\"\x00j\x00", -32700},
	{"raw NUL", `{"jsonrpc":"2.0","id":"` + "\x00" + `","method":"tools/list"}`, -32700},
	{"raw line end in a string", "{\"jsonrpc\":\"2.0\",\"id\":\"a\nb\",\"method\":\"tools/list\"}", -32700},
	{"single quotes", `{'jsonrpc':'2.0','id':1,'method':'tools/list'}`, -32700},
	{"comment", `{"jsonrpc":"2.0","id":1,"method":"tools/list"/* now */}`, -32700},
	{"leading zero", `{"jsonrpc":"2.0","id":01,"method":"tools/list"}`, -32700},
	{"NaN", `{"jsonrpc":"2.0","id":NaN,"method":"tools/list"}`, -32700},
	{"a form", `method=tools/list&id=1`, -32700},
	{"nested 100,000 deep", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}}`, -32700},
	{"opened 100,000 times", strings.Repeat(`{"a":`, 100_000), -32700},

	{"a string", `"tools/list"`, -32600},
	{"a number", `1`, -32600},
	{"null", `null`, -32600},
	{"true", `true`, -32600},
	{"empty object", `{}`, -32600},
	{"no jsonrpc", `{"id":1,"method":"tools/list"}`, -32600},
	{"jsonrpc 1.0", `{"jsonrpc":"1.0","id":1,"method":"tools/list"}`, -32600},
	{"jsonrpc as a number", `{"jsonrpc":2.0,"id":1,"method":"tools/list"}`, -32600},
	{"no method", `{"jsonrpc":"2.0","id":1}`, -32600},
	{"method as a number", `{"jsonrpc":"2.0","id":1,"method":5}`, -32600},
	{"method null", `{"jsonrpc":"2.0","id":1,"method":null}`, -32600},
	{"method in capitals alone", `{"jsonrpc":"2.0","id":1,"METHOD":"tools/list"}`, -32600},
	{"no id", `{"jsonrpc":"2.0","method":"tools/list"}`, -32600},
	{"ID in capitals alone", `{"jsonrpc":"2.0","ID":1,"method":"tools/list"}`, -32600},
	{"id null", `{"jsonrpc":"2.0","id":null,"method":"tools/list"}`, -32600},
	{"id null on a notification", `{"jsonrpc":"2.0","id":null,"method":"notifications/initialized"}`, -32600},
	{"id true", `{"jsonrpc":"2.0","id":true,"method":"tools/list"}`, -32600},
	{"id a list", `{"jsonrpc":"2.0","id":[1],"method":"tools/list"}`, -32600},
	{"id an object", `{"jsonrpc":"2.0","id":{},"method":"tools/list"}`, -32600},
	{"params a list", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}`, -32600},
	{"params a string", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":"x"}`, -32600},
	{"method twice", `{"jsonrpc":"2.0","id":1,"method":"initialize","method":"tools/list"}`, -32600},
	{"method twice, once in escapes", `{"jsonrpc":"2.0","id":1,"method":"initialize","m\u0065thod":"tools/list"}`, -32600},
	{"id twice", `{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}`, -32600},
	{"params twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_heaps"},"params":{"name":"create_work_task"}}`, -32600},
	{"name twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_heaps","name":"create_work_task"}}`, -32600},
	{"arguments twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_heaps","arguments":{},"arguments":{"x":1}}}`, -32600},
}

func TestBadBodies(t *testing.T) {
	var table []scenario
	for _, b := range badBodies {
		for _, m := range manners {
			s := m.request("rw", "1", "tools/list", "", "")
			s.name, s.body, s.status = b.name+"/"+m.name, b.body, http.StatusBadRequest
			s.want = []string{fmt.Sprintf(`"code":%d`, b.code), `"jsonrpc":"2.0"`, map[int]string{-32700: `"name":"PARSE"`, -32600: `"name":"INVALID_REQUEST"`}[b.code]}
			table = append(table, s)
		}
		s := scenario{name: b.name + "/api", do: "POST /api/list_heaps", as: "rw", body: b.body, status: http.StatusBadRequest}
		switch {
		case b.code == -32700:
			s.want = []string{`"error":"parse"`}
		case !strings.HasPrefix(b.body, "{"):
			s.want = []string{`"error":"invalid_request"`}
		case b.body == "{}":
			continue
		default:
			s.want = []string{`"error":"invalid"`}
		}
		table = append(table, s)
	}
	table = append(table, scenario{name: "arguments given twice/api", do: "POST /api/list_tasks", as: "rw", body: `{"limit":1,"limit":200}`, status: 400, want: []string{"limit is given twice"}})
	for _, m := range manners {
		s := m.call("rw", "list_tasks", `{"limit":1,"limit":200}`)
		s.name, s.status, s.want = "arguments given twice/"+m.name, 200, []string{"limit is given twice"}
		table = append(table, s)
	}
	plainly(t, nil, table)
}

// What is unusual and right all the same.
func TestOddBodiesThatAreFine(t *testing.T) {
	plainly(t, nil, []scenario{
		{name: "white space around", as: "rw", body: " \r\n\t" + list + "\n ", status: 200, want: []string{`"tools":[`}},
		{name: "members in another order", as: "rw", body: `{"params":{},"method":"tools/list","id":1,"jsonrpc":"2.0"}`, status: 200, want: []string{`"id":1`, `"tools":[`}},
		{name: "keys in escapes", as: "rw", body: `{"json\u0072pc":"2.0","\u0069d":1,"\u006dethod":"tools/call","p\u0061rams":{"n\u0061me":"list_heaps"}}`, status: 200, want: []string{`"id":1`, `"heaps":[`}},
		{name: "method in escapes", as: "rw", body: `{"jsonrpc":"2.0","id":1,"method":"tools\/list"}`, status: 200, want: []string{`"tools":[`}},
		{name: "unknown members", as: "rw", body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","extra":{"deep":[1,{"a":null}]}}`, status: 200, want: []string{`"tools":[`}},
		{name: "surrogate pair", as: "rw", body: `{"jsonrpc":"2.0","id":"\ud83d\ude00","method":"tools/call","params":{"name":"create_work_task","arguments":{"name":"\ud83d\ude00 go"}}}`, status: 200, want: []string{"😀 go"}},
		{name: "escaped backslash before a u", as: "rw", body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_work_task","arguments":{"name":"\\ud83d alone"}}}`, status: 200, want: []string{`\\ud83d alone`}},
		{name: "CRLF kept", as: "rw", body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_work_task","arguments":{"name":"x","description":"a\r\nb\nc"}}}`, status: 200, want: []string{`"description":"a\r\nb\nc"`}},
		{name: "no arguments", as: "rw", body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_heaps"}}`, status: 200, want: []string{`"count":2`}},
		{name: "null arguments", as: "rw", body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_heaps","arguments":null}}`, status: 200, want: []string{`"count":2`}},
		{name: "null for an optional argument", as: "rw", body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_tasks","arguments":{"limit":null,"query":null}}}`, status: 200, want: []string{`"count":`}},
		{name: "500 deep in arguments", as: "rw", body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_work_task","arguments":{"name":"x","other":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}}}`,
			status: 200, want: []string{`"ignored":["other"]`}},
		{name: "5,000 deep to the SDK", as: "rw", headers: legacy.headers, body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}}`,
			status: 400, want: []string{`"code":-32600`, `"id":1`}},
		{name: "charset", as: "rw", headers: []string{"Content-Type: application/json; charset=utf-8"}, body: list, status: 200},
		{name: "type in capitals", as: "rw", headers: []string{"Content-Type: Application/JSON"}, body: list, status: 200},
		{name: "identity", as: "rw", headers: []string{"Content-Encoding: identity"}, body: list, status: 200},
		{name: "answer to nothing asked", as: "rw", body: `{"jsonrpc":"2.0","id":1,"result":{}}`, status: 202},
	})
}

// Keys in capitals are other keys: what decides who may call is what is called (CORE.md 7).
func TestTwoParsersReadOneBody(t *testing.T) {
	var table []scenario
	for _, m := range []manner{heroes, alias, legacy} {
		for name, s := range map[string]scenario{
			"METHOD asks for no token":     {body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","METHOD":"initialize"}`, status: 401, not: []string{"tools"}},
			"METHOD first":                 {body: `{"jsonrpc":"2.0","id":1,"METHOD":"initialize","Method":"initialize","method":"tools/list"}`, status: 401},
			"METHOD lists nothing":         {body: `{"jsonrpc":"2.0","id":1,"method":"initialize","METHOD":"tools/list","params":{}}`, status: 200, want: []string{"serverInfo"}, not: []string{"create_work_task"}},
			"NAME calls nothing":           {as: "ro", body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_heaps","NAME":"create_work_task","Name":"create_work_task","arguments":{}}}`, status: 200, want: []string{"heaps"}, not: []string{"Successfully"}},
			"NAME asks for no right":       {as: "ro", body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"NAME":"list_heaps","name":"create_work_task","arguments":{"name":"x"}}}`, status: 403},
			"PARAMS are no params":         {as: "ro", body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","PARAMS":{"name":"list_heaps"},"params":{"name":"create_work_task","arguments":{"name":"x"}}}`, status: 403},
			"ARGUMENTS are no arguments":   {as: "rw", body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_task","arguments":{"task_id":"{task}"},"ARGUMENTS":{"task_id":"{job}"}}}`, status: 200, want: []string{"{task}"}, not: []string{"{job}"}},
			"argument in capitals is none": {as: "rw", body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_task","arguments":{"TASK_ID":"{task}"}}}`, status: 200, want: []string{"TASK_ID"}, not: []string{"ferns"}},
		} {
			s.name, s.do, s.headers = m.name+"/"+name, "POST "+m.path, m.headers
			table = append(table, s)
		}
	}
	plainly(t, nil, table)
}

func TestContentTypeAndEncoding(t *testing.T) {
	var table []scenario
	for _, c := range []string{"-Content-Type", "Content-Type: text/plain", "Content-Type: application/x-www-form-urlencoded", "Content-Type: multipart/form-data; boundary=x",
		"Content-Type: application/jsonx", "Content-Type: application/json-rpc", "Content-Type: text/json", "Content-Type: ;", "Content-Encoding: gzip", "Content-Encoding: br", "Content-Encoding: gzip, identity"} {
		for _, m := range manners {
			s := m.request("rw", "1", "tools/list", "", "")
			s.name, s.headers, s.status, s.want = m.name+"/"+c, append(s.headers, c), 415, []string{`"code":-32600`, `"name":"INVALID_REQUEST"`}
			table = append(table, s)
		}
		table = append(table, scenario{name: "api/" + c, do: "POST /api/list_heaps", as: "rw", headers: []string{c}, body: "{}", status: 415, want: []string{`"error":"invalid_request"`}})
	}
	plainly(t, nil, table)
}

// padded gives a body of exactly n bytes.
func padded(format string, n int) string {
	return fmt.Sprintf(format, strings.Repeat("x", n-len(format)+len("%s")))
}

func TestCapsOfBodies(t *testing.T) {
	const kib, mib = 1 << 10, 1 << 20
	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","x":"%s"}}`
	note := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_work_task","arguments":{"name":"x","other":"%s"}}}`
	other := `{"jsonrpc":"2.0","method":"notifications/x","params":{"x":"%s"}}`
	args := `{"name":"x","other":"%s"}`
	big := []string{`"code":-32600`, `"name":"INVALID_REQUEST"`}
	plainly(t, nil, []scenario{
		{name: "10 KB without a token", body: padded(initialize, 10*kib), status: 200},
		{name: "more without a token", body: padded(initialize, 10*kib+1), status: 413, want: big},
		{name: "more with a bad token", headers: []string{"Authorization: Bearer bad"}, body: padded(initialize, 10*kib+1), status: 413, want: big},
		{name: "more with an expired token", as: "expired", body: padded(note, 10*kib+1), status: 413, want: big},
		{name: "more without a token on the alias", do: "POST /functions/v1/mcp-server", body: padded(initialize, 10*kib+1), status: 413, want: big},
		{name: "a call of 1 MiB", as: "rw", body: padded(note, mib), status: 200, want: []string{`"ignored":["other"]`}},
		{name: "a larger call", as: "rw", body: padded(note, mib+1), status: 413, want: big},
		{name: "a larger call in legacy MCP", as: "rw", headers: legacy.headers, body: padded(note, mib+1), status: 413, want: big},
		{name: "another method of 16 MiB", as: "rw", body: padded(other, 16*mib), status: 202},
		{name: "more than 16 MiB", as: "rw", body: padded(other, 16*mib+1), status: 413, want: big},
		{name: "api 1 MiB", do: "POST /api/create_work_task", as: "rw", body: padded(args, mib), status: 200},
		{name: "api more", do: "POST /api/create_work_task", as: "rw", body: padded(args, mib+1), status: 413, want: []string{`"error":"invalid_request"`}},
		{name: "api without a token", do: "POST /api/create_work_task", body: padded(args, 10*kib+1), status: 401},
	})
}

// endless gives bytes for as long as they are wanted, up to 3 GB, and counts them.
type endless struct{ n atomic.Int64 }

func (e *endless) Read(b []byte) (int, error) {
	if e.n.Load() > 3<<30 {
		return 0, io.EOF
	}
	for i := range b {
		b[i] = ' '
	}
	e.n.Add(int64(len(b)))
	return len(b), nil
}

func TestChunkedBodyOf3GBIsRefusedEarlyAndMemoryStaysFlat(t *testing.T) {
	a := alone(t, nil)
	w := settle(t, a)
	for _, c := range []struct {
		name, path, as string
		status         int
		most           int64
	}{
		{"mcp with a token", "/mcp", "rw", 413, 64 << 20}, {"mcp without", "/mcp", "", 413, 48 << 20}, // what the sockets hold on both sides comes on top
		{"api with a token", "/api/list_heaps", "rw", 413, 48 << 20}, {"api without", "/api/list_heaps", "", 401, 48 << 20}} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			body := &endless{}
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.Server.URL+c.path, body)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			if c.as != "" {
				r.Header.Set("Authorization", "Bearer "+w.tokens[c.as])
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			res, err := a.Server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			_ = res.Body.Close()
			if res.StatusCode != c.status {
				t.Errorf("status %d, want %d", res.StatusCode, c.status)
			}
			if n := body.n.Load(); n > c.most {
				t.Errorf("the client could send %d bytes", n)
			}
			if grown := int64(after.Sys) - int64(before.Sys); grown > 160<<20 {
				t.Errorf("memory grew by %d bytes", grown)
			}
		})
	}
}

// A body that says it is too large is refused before any of it comes.
func TestDeclaredLengthIsRefusedWithoutReading(t *testing.T) {
	a := alone(t, nil)
	w := settle(t, a)
	for _, path := range []string{"/mcp", "/functions/v1/mcp-server", "/api/list_heaps"} {
		conn, err := net.Dial("tcp", w.words["host"])
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 3000000000\r\n\r\n", path, w.words["host"], w.tokens["rw"])
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(res.Body); res.StatusCode != 413 {
			t.Errorf("%s: %d %s", path, res.StatusCode, b)
		}
		_ = conn.Close()
	}
}
