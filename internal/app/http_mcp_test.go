package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"cairn/internal/apptest"
)

var versions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

func TestInitialize(t *testing.T) {
	var table []scenario
	for _, v := range versions {
		negotiated := v
		if v == "2026-07-28" { // that version has no initialize
			negotiated = "2025-11-25"
		}
		for name, params := range map[string]string{
			"whole":           `,"params":{"protocolVersion":"` + v + `","capabilities":{"roots":{"listChanged":true},"sampling":{}},"clientInfo":{"name":"probe","version":"1"}}`,
			"no capabilities": `,"params":{"protocolVersion":"` + v + `","clientInfo":{"name":"probe","version":"1"}}`,
			"no clientInfo":   `,"params":{"protocolVersion":"` + v + `","capabilities":{}}`,
			"version alone":   `,"params":{"protocolVersion":"` + v + `"}`,
			"unknown members": `,"params":{"protocolVersion":"` + v + `","capabilities":{"future":{}},"trace":1}`,
		} {
			for as, path := range map[string]string{"": "/mcp", "rw": "/mcp", "counted": "/functions/v1/mcp-server"} {
				table = append(table, scenario{name: v + "/" + name + "/" + as, do: "POST " + path, as: as, body: `{"jsonrpc":"2.0","id":"i","method":"initialize"` + params + `}`, status: 200,
					header: []string{"Content-Type: application/json", "-Mcp-Session-Id"},
					want:   []string{`"id":"i"`, `"protocolVersion":"` + negotiated + `"`, `"name":"Cairn"`, `"version":"`, `"tools":{`, `"experimental":{}`, `"resources":{}`, `"prompts":{}`, `"completions":{}`, `"io.modelcontextprotocol/skills":{}`},
					not:    []string{"sampling", "elicitation", `"logging"`}})
			}
		}
		table = append(table, scenario{name: v + "/stream", headers: []string{"Accept: application/json, text/event-stream"}, status: 200, want: []string{`"protocolVersion":"` + negotiated + `"`},
			body: `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"` + v + `","capabilities":{},"clientInfo":{"name":"probe","version":"1"}}}`})
	}
	for name, params := range map[string]string{"no params": "", "empty params": `,"params":{}`, "unknown version": `,"params":{"protocolVersion":"1999-01-01"}`, "version from the future": `,"params":{"protocolVersion":"2030-01-01"}`} {
		table = append(table, scenario{name: name, body: `{"jsonrpc":"2.0","id":0,"method":"initialize"` + params + `}`, status: 200, want: []string{`"id":0`, `"protocolVersion":"2025-11-25"`}})
	}
	w := settle(t, alone(t, nil))
	for i, s := range table {
		if i%40 == 0 {
			w.Clock.Move(2 * 60e9) // those without a token count by address
		}
		t.Run(s.name, func(t *testing.T) { w.run(t, s) })
	}
}

// What needs no token, and what comes close and does.
func TestOpenDoors(t *testing.T) {
	discover := modern.request("", "1", "server/discover", "", "")
	discover.name, discover.status = "server/discover", 200
	discover.want = []string{`"supportedVersions":["2026-07-28"`, `"tools":{}`, `"resources":{}`, `"prompts":{}`, `"completions":{}`, `"io.modelcontextprotocol/skills":{}`, `"cacheScope":"private"`, `"resultType":"complete"`, `"name":"Cairn"`}
	// Only who may listen is told that one can: the Inspector listens at once, and asked for no right where that was refused.
	known := modern.request("rw", "1", "server/discover", "", "")
	known.name, known.status, known.want = "server/discover with a token", 200, []string{`"resources":{"listChanged":true,"subscribe":true}`}
	health := []string{`"status":"ok"`, `"version":"`, `"components":{"database":{"state":"`, `"model":{"state":"closed","failures":0}`, `"metrics":{`, `"requests":`, `"errors":`, `"tools":`}
	ping := modern.request("rw", "1", "ping", "", "")
	ping.name, ping.status, ping.want = "ping in modern MCP", 404, []string{`"code":-32601`}
	future := scenario{as: "rw", headers: []string{"MCP-Protocol-Version: 2030-01-01", "Mcp-Method: tools/list"}, status: 400, body: `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`,
		want: []string{`"code":-32022`, `"id":5`, `"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`, `"requested":"2030-01-01"`}}
	future.name = "version from the future"
	past := future
	past.name, past.headers, past.want = "unknown version", []string{"MCP-Protocol-Version: 2020-01-01"}, []string{`"code":-32022`, `"requested":"2020-01-01"`}
	scenarios(t, nil, []scenario{
		discover, known, ping, future, past,
		{name: "version from the future on the alias", do: "POST /functions/v1/mcp-server", as: "rw", headers: future.headers, body: list, status: 200, want: []string{`"tools":[`}},
		{name: "server/discover in an old version", headers: legacy.headers, body: `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, status: 404, want: []string{`"code":-32601`, `"name":"UNKNOWN_METHOD"`}},
		{name: "ping", as: "rw", body: `{"jsonrpc":"2.0","id":"p","method":"ping"}`, status: 200, want: []string{`{"jsonrpc":"2.0","id":"p","result":{}}`}},
		{name: "ping in legacy MCP", as: "rw", headers: legacy.headers, body: `{"jsonrpc":"2.0","id":0,"method":"ping"}`, status: 200, want: []string{`"id":0,"result":{}`}},
		{name: "ping without a token", body: `{"jsonrpc":"2.0","id":1,"method":"ping"}`, status: 401},
		{name: "tools/list without a token", body: list, status: 401, not: []string{`"tools"`}},
		{name: "notification without a token", body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`, status: 401},
		{name: "initialize as a batch", body: `[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}]`, status: 401},
		{name: "health", do: "GET /mcp", status: 200, want: health, header: []string{"Content-Type: application/json"}},
		{name: "health with a slash", do: "GET /mcp/", status: 200, want: health},
		{name: "health on the alias", do: "GET /functions/v1/mcp-server", status: 200, want: health},
		{name: "health of a browser", do: "GET /mcp", headers: []string{"Accept: text/html,application/xhtml+xml,*/*;q=0.8"}, status: 200, want: health},
		{name: "health with a bad token", do: "GET /mcp", headers: []string{"Authorization: Bearer bad"}, status: 200, want: health},
		{name: "healthz", do: "GET /healthz", status: 200, want: []string{`{"status":"ok"}`}},
		{name: "readyz", do: "GET /readyz", status: 200, want: []string{`{"status":"ok"}`}},
		{name: "front page", do: "GET /", status: 200, want: []string{"{url}/mcp"}},
		{name: "nothing there", do: "GET /nothing", status: 404, want: []string{`"error":"not_found"`}},
		{name: "nothing there to post to", do: "POST /nothing", body: "{}", status: 404, want: []string{`"error":"not_found"`}},
		{name: "GET stream", do: "GET /mcp", headers: []string{"Accept: text/event-stream"}, status: 401, header: []string{"WWW-Authenticate: Bearer resource_metadata="}},
		{name: "GET of a client", do: "GET /mcp", headers: []string{"MCP-Protocol-Version: 2025-11-25"}, status: 401},
		{name: "GET stream with a bad token", do: "GET /mcp", as: "expired", headers: []string{"Accept: text/event-stream"}, status: 401, header: []string{`WWW-Authenticate: error="invalid_token"`}},
		{name: "GET stream with a token", do: "GET /mcp", as: "rw", headers: []string{"Accept: text/event-stream"}, status: 405, header: []string{"Allow: POST"}},
		{name: "DELETE", do: "DELETE /mcp", status: 401, header: []string{"WWW-Authenticate: Bearer resource_metadata="}},
		{name: "DELETE with a token", do: "DELETE /mcp", as: "rw", headers: []string{"Mcp-Session-Id: 0190"}, status: 405, header: []string{"Allow: POST"}},
		{name: "PUT with a token", do: "PUT /mcp", as: "rw", body: list, status: 405, header: []string{"Allow: POST"}},
		{name: "stale session", as: "rw", headers: []string{"Mcp-Session-Id: 0190-stale"}, body: list, status: 200, want: []string{`"tools":[`}},
		{name: "stale session to the SDK", as: "rw", headers: append([]string{"Mcp-Session-Id: 0190-stale"}, legacy.headers...), body: `{"jsonrpc":"2.0","id":1,"method":"ping"}`, status: 200},
		{name: "unknown tool by api", do: "POST /api/nosuch", as: "rw", body: "{}", status: 404, want: []string{`"error":"unknown_tool"`}},
		{name: "api by GET", do: "GET /api/list_heaps", as: "rw", status: 405, header: []string{"Allow: POST"}, want: []string{`"error":"invalid_request"`}},
	})
}

// Headers of MCP 2026-07-28 must say what the body says; the SDK finds what they miss.
func TestModernHeadersMustMatchTheBody(t *testing.T) {
	call := func(name string, change func(s *scenario), status, code int) scenario {
		s := modern.call("rw", "list_heaps", "{}")
		change(&s)
		s.name, s.status, s.want, s.not = name, status, []string{fmt.Sprintf(`"code":%d`, code), `"id":7`}, []string{`"heaps"`}
		return s
	}
	set := func(name, value string) func(s *scenario) {
		return func(s *scenario) {
			s.headers = slices.DeleteFunc(s.headers, func(h string) bool { return strings.HasPrefix(h, name+": ") })
			if value != "" {
				s.headers = append(s.headers, name+": "+value)
			}
		}
	}
	without := func(part string) func(s *scenario) {
		return func(s *scenario) { s.body = strings.Replace(s.body, part, `"x":1`, 1) }
	}
	table := []scenario{
		call("another tool's name", set("Mcp-Name", "create_work_task"), 400, -32020),
		call("no name", set("Mcp-Name", ""), 400, -32020),
		call("another method", set("Mcp-Method", "tools/list"), 400, -32020),
		call("no method", set("Mcp-Method", ""), 400, -32020),
		call("no version", set("MCP-Protocol-Version", ""), 400, -32020),
		call("an older version", set("MCP-Protocol-Version", "2025-11-25"), 400, -32020),
		call("a version from the future", set("MCP-Protocol-Version", "2030-01-01"), 400, -32022),
		call("no _meta", func(s *scenario) { s.body = strings.Replace(s.body, `,"_meta":{`+meta+`}`, "", 1) }, 400, -32602),
		call("no version in _meta", without(`"io.modelcontextprotocol/protocolVersion":"2026-07-28"`), 400, -32602),
		call("no capabilities in _meta", without(`"io.modelcontextprotocol/clientCapabilities":{}`), 400, -32602),
	}
	spelled := modern.call("rw", "list_heaps", "{}")
	spelled.name, spelled.status, spelled.want = "headers in other letters", 200, []string{`"resultType":"complete"`, `"heaps":[`}
	for i, h := range spelled.headers {
		name, value, _ := strings.Cut(h, ": ")
		spelled.headers[i] = strings.ToLower(name) + ": " + value
	}
	plainly(t, nil, append(table, spelled))
}

// batchOf joins messages.
func batchOf(messages ...string) string { return "[" + strings.Join(messages, ",") + "]" }

func TestBatches(t *testing.T) {
	ping := func(n int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, n) }
	many := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = ping(i)
		}
		return batchOf(all...)
	}
	note := `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	heaps := `{"jsonrpc":"2.0","id":"h","method":"tools/call","params":{"name":"list_heaps","arguments":{}}}`
	write := `{"jsonrpc":"2.0","id":"w","method":"tools/call","params":{"name":"create_work_task","arguments":{"name":"x"}}}`
	refused := []string{`"code":-32600`, `"name":"INVALID_REQUEST"`}
	table := []scenario{
		{name: "20", as: "rw", body: many(20), status: 200, want: []string{`{"jsonrpc":"2.0","id":0,"result":{}}`, `{"jsonrpc":"2.0","id":19,"result":{}}`}},
		{name: "21", as: "rw", body: many(21), status: 400, want: refused},
		{name: "empty", as: "rw", body: `[ ]`, status: 400, want: refused},
		{name: "one", as: "rw", body: batchOf(ping(1)), status: 200, want: []string{`[{"jsonrpc":"2.0","id":1,"result":{}}]`}},
		{name: "notifications alone", as: "rw", body: batchOf(note, note), status: 202},
		{name: "mixed", as: "rw", body: batchOf(note, ping(1), `{"jsonrpc":"2.0","id":9,"result":{}}`, heaps), status: 200, want: []string{`[{"jsonrpc":"2.0","id":1,"result":{}},`, `"id":"h"`, `"heaps":[`}},
		{name: "bad ones beside good ones", as: "rw", body: batchOf(`7`, `{}`, `[]`, ping(1), `{"jsonrpc":"2.0","id":2,"method":"nope"}`), status: 200,
			want: []string{`"id":"unknown","error":{"code":-32600`, `{"jsonrpc":"2.0","id":1,"result":{}}`, `"id":2,"error":{"code":-32601`}},
		{name: "a call and a failing one", as: "rw", body: batchOf(heaps, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"create_work_task","arguments":{}}}`), status: 200,
			want: []string{`"heaps":[`, `"id":3,"error":{"code":-32602`}},
		{name: "read-only", as: "ro", body: batchOf(heaps, write), status: 200, want: []string{`"heaps":[`, `"id":"w","error":{"code":-32008`}, not: []string{"Successfully"}},
		{name: "initialize among others", as: "rw", body: batchOf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, heaps), status: 200, want: []string{`"serverInfo"`, `"heaps":[`}},
		{name: "ids again and again", as: "rw", body: batchOf(ping(1), ping(1)), status: 200, want: []string{`[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":1,"result":{}}]`}},
		{name: "no token", body: batchOf(ping(1)), status: 401, header: []string{"WWW-Authenticate: Bearer"}},
		{name: "expired token", as: "expired", body: batchOf(ping(1)), status: 401, want: []string{`"code":-32003`}},
		{name: "2024-11-05", as: "rw", headers: []string{"MCP-Protocol-Version: 2024-11-05"}, body: batchOf(heaps), status: 200, want: []string{`"isError":false`}},
		{name: "2025-03-26", as: "rw", headers: []string{"MCP-Protocol-Version: 2025-03-26"}, body: batchOf(heaps), status: 200, want: []string{`"heaps":[`}, not: []string{"isError"}},
		{name: "stream asked for", as: "rw", headers: []string{"Accept: application/json, text/event-stream"}, body: batchOf(ping(1), heaps), status: 200, want: []string{`[{"jsonrpc":"2.0","id":1,"result":{}},`}},
		{name: "alias", do: "POST /functions/v1/mcp-server", as: "rw", body: batchOf(ping(1), heaps), status: 200, want: []string{`"isError":false`}},
		{name: "cut off", as: "rw", body: `[` + ping(1), status: 400, want: []string{`"code":-32700`}},
		{name: "a larger call than 1 MiB in it", as: "rw", body: batchOf(ping(1), padded(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"create_work_task","arguments":{"name":"x","other":"%s"}}}`, 1<<20+1)), status: 200,
			want: []string{`"id":1,"result":{}`, `"id":2,"error":{"code":-32600`}},
	}
	for _, v := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		table = append(table, scenario{name: v, as: "rw", headers: []string{"MCP-Protocol-Version: " + v}, body: batchOf(ping(1)), status: 400, want: refused})
	}
	scenarios(t, nil, table)
}

func TestNotifications(t *testing.T) {
	var table []scenario
	for _, m := range manners {
		for _, body := range []string{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"changed my mind"}}`, `{"jsonrpc":"2.0","method":"notifications/future"}`} {
			s := m.request("rw", "1", "notifications/initialized", "", "")
			s.name, s.body, s.status = m.name+"/"+body, body, http.StatusAccepted
			table = append(table, s)
		}
	}
	plainly(t, nil, table)
}

// toolNames are the names of a list, in its order.
func toolNames(t testing.TB, r apptest.Response) []string {
	t.Helper()
	a := read(t, r)
	if r.Status != http.StatusOK || a.Result == nil {
		t.Fatalf("%d %s", r.Status, clip(r.Body))
	}
	names := make([]string, len(a.Result.Tools))
	for i, tool := range a.Result.Tools {
		names[i], _ = tool["name"].(string)
	}
	return names
}

func TestToolsListShowsWhatTheCallerMayDo(t *testing.T) {
	core := []string{"list_heaps", "search", "fetch"}
	reads := []string{"list_tasks", "get_task", "list_projects", "get_project_context"}
	writes := []string{"create_personal_task", "create_work_task", "complete_task", "update_task", "delete_task", "restore_task", "log_session_summary", "create_project", "update_project"}
	hidden := []string{"create_token", "list_tokens", "revoke_token", "set_account", "list_changes", "undo_change"}
	cases := []struct {
		name, as, query string
		there, gone     []string
	}{
		{"all", "rw", "", slices.Concat(core, reads, writes), hidden},
		{"read-only", "ro", "", slices.Concat(core, reads), slices.Concat(writes, hidden)},
		{"another area", "memory", "", core, slices.Concat(reads, writes, hidden)},
		{"the tasks area", "tasks", "", slices.Concat(core, reads, writes), hidden},
		{"one heap", "work", "", slices.Concat(core, reads, writes), hidden},
		{"toolset tasks", "rw", "?toolsets=tasks", slices.Concat(core, reads, writes), hidden},
		{"toolset memory", "rw", "?toolsets=memory", core, slices.Concat(reads, writes, hidden)},
		{"toolset core", "rw", "?toolsets=core", core, slices.Concat(reads, writes, hidden)},
		{"toolset record", "rw", "?toolsets=record", append(core, "list_changes", "undo_change"), slices.Concat(reads, writes, []string{"create_token"})},
		{"toolsets", "rw", "?toolsets=tasks,%20record", slices.Concat(core, reads, writes, []string{"list_changes", "undo_change"}), []string{"create_token"}},
		{"toolset record read-only", "ro", "?toolsets=record", append(core, "list_changes"), []string{"undo_change"}},
		{"toolset admin", "rw", "?toolsets=admin", core, []string{"create_token", "revoke_token", "set_account"}},
		{"empty toolsets", "rw", "?toolsets=", slices.Concat(core, reads, writes), hidden},
		{"whole schemas", "ro", "?schemas=full&toolsets=tasks", slices.Concat(core, reads), writes},
	}
	w := settle(t, alone(t, nil))
	for _, c := range cases {
		for _, m := range manners {
			t.Run(c.name+"/"+m.name, func(t *testing.T) {
				s := m.request(c.as, "1", "tools/list", "", "")
				s.do += c.query
				r := w.send(t, s)
				names := toolNames(t, r)
				for _, n := range c.there {
					if !slices.Contains(names, n) {
						t.Errorf("%s is missing", n)
					}
				}
				for _, n := range c.gone {
					if slices.Contains(names, n) {
						t.Errorf("%s is listed", n)
					}
				}
				if full := strings.Contains(r.Body, "outputSchema"); full != strings.Contains(c.query, "full") {
					t.Errorf("output schemas: %v", full)
				}
				for range 3 {
					if again := w.send(t, s); again.Body != r.Body {
						t.Error("the list differs from one call to the next")
					}
				}
			})
		}
	}
	for _, m := range manners { // (CASES 46) the words of an unknown toolset are tested with the ids
		s := m.request("rw", "1", "tools/list", "", "")
		s.name, s.do, s.status, s.want = m.name, s.do+"?toolsets=tasks,nope", 400, []string{`"code":-32600`, "nope", "core, tasks, memory, library, documents, personas"}
		t.Run("unknown toolset/"+m.name, func(t *testing.T) { w.run(t, s) })
	}
}

// The list costs every session of every client: it may not grow unseen.
func TestToolsListBudget(t *testing.T) {
	w := settle(t, alone(t, nil))
	r := w.send(t, legacy.request("rw", "1", "tools/list", "", ""))
	tools := read(t, r).Result.Tools
	average := len(r.Body) / len(tools)
	t.Logf("%d tools, %d bytes, %d a tool", len(tools), len(r.Body), average)
	if len(r.Body) > 60_000 || average > 1000 {
		t.Errorf("tools/list has %d bytes, %d a tool", len(r.Body), average)
	}
	for _, tool := range tools {
		b, err := json.Marshal(tool)
		if err != nil || len(b) > 2500 {
			t.Errorf("%s has %d bytes", tool["name"], len(b))
		}
		if tool["title"] == nil || tool["description"] == nil || tool["inputSchema"] == nil {
			t.Errorf("%s lacks title, description or inputSchema", tool["name"])
		}
		meta, _ := tool["_meta"].(map[string]any)
		if meta["cairn/cost"] == nil || meta["cairn/timeout_ms"] == nil || meta["cairn/confirm"] == nil {
			t.Errorf("%s says no cost, timeout or confirm: %v", tool["name"], meta)
		}
	}
}

// Members of params that have a wrong type are refused by their names, never in the words of the language the server is written
// in, whatever the method.
func TestParamsOfWrongTypesAreRefusedInPlainWords(t *testing.T) {
	w := settle(t, alone(t, nil))
	for _, m := range manners {
		for _, c := range [][2]string{
			{"initialize", `"capabilities":[]`}, {"initialize", `"clientInfo":5`}, {"initialize", `"protocolVersion":5`}, {"tools/list", `"cursor":5,"x":1`}, {"tools/call", `"name":"list_heaps","inputResponses":5`},
			{"resources/list", `"cursor":5`}, {"resources/templates/list", `"cursor":5`}, {"resources/read", `"uri":[1]`}, {"resources/subscribe", `"uri":5`}, {"resources/unsubscribe", `"uri":5`}, {"prompts/list", `"cursor":5`}, {"prompts/get", `"name":5`},
			{"prompts/get", `"name":"x","arguments":[]`}, {"completion/complete", `"ref":5`}, {"completion/complete", `"ref":{"type":"ref/prompt","name":5}`}, {"logging/setLevel", `"level":5`}, {"subscriptions/listen", `"notifications":5`},
			{"skills/list", `"cursor":5`}, {"skills/get", `"uri":{}`}, {"ping", `"_meta":5`}, {"tools/list", `"_meta":[1]`}, {"nosuch/method", `"_meta":5`},
		} {
			t.Run(m.name+"/"+c[0]+c[1], func(t *testing.T) {
				s := m.request("rw", "1", c[0], "", c[1])
				r := w.send(t, s)
				a := read(t, r)
				if a.Error == nil && (!m.hero || c[0] != "tools/call") { // HeroMind's dialect of it knows no such members
					t.Errorf("it is taken: %s", r.Body)
				}
				if a.Error != nil && a.Error.Code == 0 {
					t.Errorf("code 0: %s", r.Body)
				}
				w.always(t, s, r)
			})
		}
	}
}
