package app_test

import (
	"fmt"
	"os"
	"testing"
	"strings"

	"cairn/internal/apptest"
)

func TestProbe(t *testing.T) {
	if os.Getenv("PROBE") == "" { t.Skip() }
	a := apptest.New(t, map[string]string{"CAIRN_DATA": t.TempDir()})
	w := settle(t, a)
	show := func(name string, s scenario) {
		r := w.send(t, s)
		b := r.Body
		if len(b) > 260 { b = b[:260]+"..." }
		h := ""
		for _, k := range []string{"Content-Type","Www-Authenticate","X-Ratelimit-Limit","Retry-After","Allow","X-Accel-Buffering"} {
			if v := r.Header.Get(k); v != "" { h += " "+k+"="+v }
		}
		fmt.Printf("%-40s %d%s\n    %s\n", name, r.Status, h, strings.TrimSpace(b))
	}
	for _, m := range manners {
		show(m.name+" unknown method", m.request("rw", "1", "foo/bar", "", ""))
		show(m.name+" ping", m.request("rw", "1", "ping", "", ""))
		show(m.name+" unknown tool", m.call("rw", "nosuch", "{}"))
		show(m.name+" ungranted tool", m.call("memory", "list_tasks", "{}"))
		show(m.name+" invalid", m.call("rw", "create_personal_task", "{}"))
		show(m.name+" args array", m.call("rw", "create_personal_task", "[]"))
		show(m.name+" args string", m.call("rw", "create_personal_task", `"x"`))
		show(m.name+" no name", m.request("rw", "1", "tools/call", "", `"arguments":{}`))
		show(m.name+" no params", m.request("rw", "1", "tools/call", "", ``))
		show(m.name+" list cursor", m.request("rw", "1", "tools/list", "", `"cursor":""`))
//		show(m.name+" list bad cursor", m.request("rw", "1", "tools/list", "", `"cursor":"zzz"`))
		show(m.name+" resources", m.request("rw", "1", "resources/list", "", ``))
		show(m.name+" prompts", m.request("rw", "1", "prompts/list", "", ``))
		show(m.name+" discover", m.request("", "1", "server/discover", "", ``))
		show(m.name+" subscribe", m.request("rw", "1", "logging/setLevel", "", `"level":"info"`))
		for _, id := range []string{"0", `""`, "1.5", "9007199254740993", "1e400", "-1", `"a\u0041"`, "123456789012345678901234567890"} {
			show(m.name+" id "+id, m.request("rw", id, "tools/call", "list_heaps", `"name":"list_heaps","arguments":{}`))
			show(m.name+" ping id "+id, m.request("rw", id, "tools/list", "list_heaps", `"cursor":""`))
		}
	}
	for _, v := range []string{"2024-11-05","2025-03-26","2025-06-18","2025-11-25","2026-07-28","1999-01-01","2030-01-01"} {
		show("init "+v, scenario{body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+v+`"}}`})
		show("init header "+v, scenario{headers: []string{"MCP-Protocol-Version: "+v}, body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+v+`"}}`})
	}
	show("init no params", scenario{body: `{"jsonrpc":"2.0","id":1,"method":"initialize"}`})
	show("init empty params", scenario{body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`})
	show("init token", scenario{as:"counted", body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`})
	show("version from future", scenario{as:"rw", headers: []string{"MCP-Protocol-Version: 2030-01-01"}, body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`})
	show("meta from future, no header", scenario{as:"rw", body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2030-01-01"}}}`})
	show("meta modern, no header", scenario{as:"rw", body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{`+meta+`}}}`})
	show("meta modern, header legacy", scenario{as:"rw", headers: []string{"MCP-Protocol-Version: 2025-11-25"}, body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{`+meta+`}}}`})
	show("modern, no meta", scenario{as:"rw", headers: []string{"MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list"}, body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`})
	show("modern, no mcp-method", scenario{as:"rw", headers: []string{"MCP-Protocol-Version: 2026-07-28"}, body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{`+meta+`}}}`})
	s := modern.call("rw", "list_heaps", "{}")
	for i, h := range s.headers { if strings.HasPrefix(h, "Mcp-Name") { s.headers[i] = "Mcp-Name: list_tasks" } }
	show("modern name mismatch", s)
	s.as = "memory"
	show("modern name mismatch2", s)
	show("modern no caps", scenario{as:"rw", headers: []string{"MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list"}, body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`})
	show("notif with id", scenario{as:"rw", headers: legacy.headers, body: `{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}`})
	show("toolsets", scenario{as:"rw", do: "POST /mcp?toolsets=tasks,nope", body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`})
	show("deep", scenario{as:"rw", headers: legacy.headers, body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_heaps","x":1,"arguments":{"a":`+strings.Repeat("[", 5000)+strings.Repeat("]",5000)+`}}}`})
	show("dup", scenario{as:"rw", headers: legacy.headers, body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"initialize"}`})
	show("METHOD", scenario{headers: legacy.headers, body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","METHOD":"initialize"}`})
	show("//mcp", scenario{as:"rw", do: "POST //mcp", body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`})
	show("host", scenario{as:"rw", headers: []string{"Host: evil.example"}, body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`})
	show("health", scenario{do: "GET /mcp"})
	show("delete", scenario{do: "DELETE /mcp", as: "rw"})
	show("delete", scenario{do: "DELETE /mcp"})
	show("HEAD", scenario{do: "HEAD /mcp"})
	show("api get", scenario{do: "GET /api/list_heaps"})
	show("api slash", scenario{do: "POST /api/list_heaps/", as: "rw", body: "{}"})
	show("api esc", scenario{do: "POST /api/%2e%2e", as: "rw", body: "{}"})
	show("progress", scenario{as:"rw", headers: legacy.headers, body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_heaps","arguments":{},"_meta":{"progressToken":"p"}}}`})
	show("subscr", modern.request("rw", "1", "foo", "", ""))
}
