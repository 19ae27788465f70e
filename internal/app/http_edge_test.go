package app_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestHostIsChecked(t *testing.T) {
	env := map[string]string{"PUBLIC_URL": "https://cairn.example.org", "CAIRN_HOSTS": "cairn.lan,10.0.0.5,other.example:8443"}
	fine := func(host string) scenario {
		return scenario{name: host, as: "rw", headers: []string{"Host: " + host}, body: list, status: 200}
	}
	denied := func(host string) scenario {
		return scenario{name: host, as: "rw", headers: []string{"Host: " + host}, body: list, status: 403, want: []string{`"name":"DENIED"`, `"code":-32001`}, header: []string{"-WWW-Authenticate", "-Access-Control-Allow-Origin"}, not: []string{`"tools"`}}
	}
	table := []scenario{
		fine("cairn.example.org"), fine("CAIRN.example.org"), fine("cairn.example.org:443"), fine("cairn.lan"), fine("Cairn.Lan:3000"), fine("10.0.0.5:3000"), fine("other.example:8443"),
		fine("localhost"), fine("localhost:3000"), fine("127.0.0.1:3000"), fine("[::1]:3000"), fine("cairn.localhost:3000"),
		denied("evil.example"), denied("cairn.example.org.evil.example"), denied("evilcairn.example.org"), denied("10.0.0.6:3000"), denied("localhost.evil.example"), denied("127.0.0.1.evil.example"),
		denied("other.example"), denied("192.0.2.1"), denied("[2001:db8::1]"),
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		table = append(table, scenario{name: path, do: "GET " + path, headers: []string{"Host: 192.0.2.1"}, status: 200})
	}
	for _, do := range []string{"POST /functions/v1/mcp-server", "POST /api/list_heaps", "GET /.well-known/oauth-protected-resource", "GET /", "OPTIONS /mcp", "DELETE /mcp", "GET /nothing"} {
		table = append(table, scenario{name: do, do: do, as: "rw", headers: []string{"Host: evil.example"}, body: "{}", status: 403})
	}
	plainly(t, env, table)
}

// A page whose name was pointed at this machine is a page of another origin for everything but health: metrics too.
func TestMetricsAreNotForRebindingPages(t *testing.T) {
	a := alone(t, nil)
	w := settle(t, a)
	w.run(t, scenario{do: "GET /metrics", status: 200, want: []string{"cairn_calls_total"}})
	w.run(t, scenario{do: "GET /metrics", headers: []string{"Host: evil.example"}, status: 403, not: []string{"cairn_calls_total"}})
	w.run(t, scenario{do: "GET /metrics", headers: []string{"Origin: https://evil.example"}, status: 403, not: []string{"cairn_calls_total"}})
}

// other answers from elsewhere than loopback: a proxy that is trusted says so.
func TestMetricsAreForLoopbackAndTheAdmin(t *testing.T) {
	from := "X-Forwarded-For: 203.0.113.9"
	plainly(t, nil, []scenario{
		{name: "loopback", do: "GET /metrics", status: 200, want: []string{"cairn_calls_total"}},
		{name: "from elsewhere", do: "GET /metrics", headers: []string{from}, status: 401, header: []string{"WWW-Authenticate: Bearer"}, want: []string{`"error":"unauthenticated"`}},
		{name: "from elsewhere with the admin's token", do: "GET /metrics", as: "rw", headers: []string{from}, status: 200, want: []string{"cairn_calls_total"}},
		{name: "from elsewhere with a revoked one", do: "GET /metrics", as: "revoked", headers: []string{from}, status: 401},
		{name: "from elsewhere, with a port", do: "GET /metrics", headers: []string{"X-Forwarded-For: 203.0.113.9:51234"}, status: 401},
		{name: "from elsewhere by IPv6 with a port", do: "GET /metrics", headers: []string{"X-Forwarded-For: [2001:db8::9]:51234"}, status: 401},
		{name: "from nobody knows where", do: "GET /metrics", headers: []string{"X-Forwarded-For: unknown"}, status: 401},
	})
}

func TestOrigins(t *testing.T) {
	env := map[string]string{"PUBLIC_URL": "https://cairn.example.org", "CAIRN_CORS_ORIGINS": "https://app.example.net,https://*.apps.example.net"}
	var table []scenario
	allowed := []string{"https://chatgpt.com", "https://chat.openai.com", "https://a.openai.com", "https://deep.er.openai.com", "https://claude.ai", "https://cairn.example.org", "https://app.example.net", "https://x.apps.example.net"}
	refused := []string{"https://evil.example", "null", "https://openai.com.evil.example", "https://evilopenai.com", "http://chatgpt.com", "http://claude.ai", "https://claude.ai:8443", "https://claude.ai.evil.example",
		"https://apps.example.net", "http://app.example.net", "https://xapps.example.net", "file://", "https://", "not an origin"}
	for _, o := range allowed {
		table = append(table,
			scenario{name: "preflight " + o, do: "OPTIONS /mcp", headers: []string{"Origin: " + o, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization,content-type"}, status: 204,
				header: []string{"Access-Control-Allow-Origin: " + o, "Access-Control-Allow-Methods: POST", "Access-Control-Allow-Headers: Authorization, Content-Type, Accept, MCP-Protocol-Version, Mcp-Method, Mcp-Name",
					"Vary: Origin", "-Access-Control-Allow-Credentials"}},
			scenario{name: "call " + o, as: "rw", headers: []string{"Origin: " + o}, body: list, status: 200,
				header: []string{"Access-Control-Allow-Origin: " + o, "Access-Control-Expose-Headers: WWW-Authenticate, Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining", "Vary: Origin"}},
			scenario{name: "refusal " + o, headers: []string{"Origin: " + o}, body: list, status: 401, header: []string{"Access-Control-Allow-Origin: " + o, "Access-Control-Expose-Headers: WWW-Authenticate"}})
	}
	for _, o := range refused {
		table = append(table,
			scenario{name: "preflight " + o, do: "OPTIONS /mcp", headers: []string{"Origin: " + o, "Access-Control-Request-Method: POST"}, status: 403, header: []string{"-Access-Control-Allow-Origin"}},
			scenario{name: "call " + o, as: "rw", headers: []string{"Origin: " + o}, body: list, status: 403, header: []string{"-Access-Control-Allow-Origin"}, not: []string{`"tools"`}},
			scenario{name: "api " + o, do: "POST /api/create_work_task", as: "rw", headers: []string{"Origin: " + o}, body: `{"name":"x"}`, status: 403, header: []string{"-Access-Control-Allow-Origin"}})
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		table = append(table,
			scenario{name: "discovery " + path, do: "GET " + path, headers: []string{"Origin: https://anybody.example"}, status: 200, header: []string{"Access-Control-Allow-Origin: "}},
			scenario{name: "preflight of discovery " + path, do: "OPTIONS " + path, headers: []string{"Origin: https://anybody.example", "Access-Control-Request-Method: GET"}, status: 204, header: []string{"Access-Control-Allow-Origin: "}})
	}
	table = append(table,
		scenario{name: "OPTIONS alone", do: "OPTIONS /mcp", status: 204, header: []string{"-Access-Control-Allow-Origin"}},
		scenario{name: "page on loopback may ask", as: "rw", headers: []string{"Origin: http://localhost:5173"}, body: list, status: 200, header: []string{"-Access-Control-Allow-Origin"}})
	plainly(t, env, table)
}

func TestPagesOnLoopbackMayReadInDebugAlone(t *testing.T) {
	for debug, header := range map[string]string{"true": "Access-Control-Allow-Origin: http://localhost:5173", "false": "-Access-Control-Allow-Origin"} {
		a := alone(t, map[string]string{"MCP_DEBUG": debug})
		settle(t, a).run(t, scenario{as: "rw", headers: []string{"Origin: http://localhost:5173"}, body: list, status: 200, header: []string{header}})
	}
}

// What lies behind a proxy must not show: every address is the public one (CASES 44 c).
func TestProtectedResourceMetadata(t *testing.T) {
	for given, public := range map[string]string{"https://cairn.example.org": "https://cairn.example.org", "https://Cairn.EXAMPLE.org/": "https://cairn.example.org", "https://cairn.example.org:443": "https://cairn.example.org",
		"http://cairn.lan:8080/": "http://cairn.lan:8080", "HTTPS://cairn.example.org:8443": "https://cairn.example.org:8443"} {
		a := alone(t, map[string]string{"PUBLIC_URL": given, "CAIRN_HOSTS": "internal"})
		w := settle(t, a)
		behind := []string{"Host: internal:8080", "X-Forwarded-Proto: http", "X-Forwarded-Host: evil.example", "Forwarded: host=evil.example;proto=http"}
		hsts := "Strict-Transport-Security: max-age=31536000; includeSubDomains"
		if strings.HasPrefix(public, "http:") {
			hsts = "-Strict-Transport-Security"
		}
		for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
			w.run(t, scenario{do: "GET " + path, headers: behind, status: 200, header: []string{"Content-Type: application/json", hsts}, not: []string{"evil", "internal"},
				want: []string{`"resource":"` + public + `/mcp"`, `"authorization_servers":["` + public + `"]`, `"scopes_supported":["cairn.read","cairn.write"]`, `"bearer_methods_supported":["header"]`}})
		}
		for _, m := range manners {
			s := m.call("", "list_heaps", "{}")
			s.headers = append(s.headers, behind...)
			s.status, s.header = 401, []string{`WWW-Authenticate: Bearer resource_metadata="` + public + `/.well-known/oauth-protected-resource/mcp"`, hsts}
			w.run(t, s)
		}
		w.run(t, scenario{do: "POST /api/list_heaps", headers: behind, body: "{}", status: 401, header: []string{`WWW-Authenticate: Bearer resource_metadata="` + public + `/`}})
		w.run(t, scenario{do: "GET /", headers: behind, status: 200, want: []string{public + "/mcp"}})
	}
}

// Who calls from where counts for a token's list of addresses: what a client says of itself doesn't.
func TestForwardedAddressesCountFromTrustedProxiesAlone(t *testing.T) {
	at := func(name string, status int, forwarded ...string) scenario {
		s := scenario{name: name, as: "distant", body: list, status: status}
		for _, f := range forwarded {
			s.headers = append(s.headers, "X-Forwarded-For: "+f)
		}
		return s
	}
	t.Run("loopback is trusted", func(t *testing.T) {
		plainly(t, map[string]string{"CAIRN_TRUSTED_PROXIES": "127.0.0.0/8,::1/128,10.0.0.0/8"}, []scenario{
			at("no proxy", 403),
			at("its address", 200, "192.0.2.7"),
			at("another address", 403, "198.51.100.1"),
			at("what the client said before", 403, "192.0.2.7, 198.51.100.1"),
			at("through two proxies", 200, "198.51.100.1, 192.0.2.7, 10.0.0.4"),
			at("two headers", 200, "198.51.100.1", "192.0.2.7"),
			at("two headers the other way round", 403, "192.0.2.7", "198.51.100.1"),
			at("as IPv6", 200, "::ffff:192.0.2.7"),
			at("with a port", 200, "192.0.2.7:4711"),
			at("nonsense behind", 403, "192.0.2.7, nonsense"),
			at("empty", 403, ""),
			{name: "other headers", as: "distant", headers: []string{"X-Real-IP: 192.0.2.7", "Forwarded: for=192.0.2.7", "CF-Connecting-IP: 192.0.2.7", "True-Client-IP: 192.0.2.7"}, body: list, status: 403},
		})
	})
	t.Run("loopback is not trusted", func(t *testing.T) {
		plainly(t, map[string]string{"CAIRN_TRUSTED_PROXIES": "10.0.0.0/8"}, []scenario{at("its address", 403, "192.0.2.7"), at("through a trusted one", 403, "192.0.2.7, 10.0.0.4")})
	})
}

// The alias is HeroMind's path: its words for every version.
func TestAliasSpeaksHeroMindsDialectAlways(t *testing.T) {
	var table []scenario
	for _, path := range []string{"/functions/v1/mcp-server", "/functions/v1/mcp-server/"} {
		for _, headers := range [][]string{nil, legacy.headers, modern.headers, {"MCP-Protocol-Version: 2024-11-05"}} {
			s := heroes.call("rw", "create_work_task", `{"name":"x"}`)
			s.do, s.headers, s.status, s.want = "POST "+path, headers, 200, []string{`"isError":false`, `✅ Successfully created work task: \"x\"`}
			s.header = []string{"Content-Type: application/json"}
			bad := heroes.call("rw", "create_work_task", `{}`)
			bad.do, bad.headers, bad.status, bad.want = "POST "+path, headers, 200, []string{`"code":-32602`, "Invalid tool arguments: name is required and must be a non-empty string"}
			s.name, bad.name = strings.Join(append(slices.Clone(headers), path), " "), strings.Join(append(slices.Clone(headers), path, "bad"), " ")
			table = append(table, s, bad)
		}
	}
	plainly(t, nil, table)
}

// Which dialect a call gets without saying its version.
func TestDialects(t *testing.T) {
	missing := []string{`"code":-32602`, "Invalid tool arguments: "}
	result := []string{`"isError":true`, `"error":"invalid"`}
	call := func(name string, want []string, headers ...string) scenario {
		s := heroes.call("rw", "create_work_task", `{}`)
		s.name, s.headers, s.status, s.want = name, headers, http.StatusOK, want
		return s
	}
	plainly(t, nil, []scenario{
		call("curl", missing, "Accept: */*"),
		call("no Accept", missing),
		call("JSON", missing, "Accept: application/json"),
		call("2024-11-05", missing, "MCP-Protocol-Version: 2024-11-05", "Accept: application/json, text/event-stream"),
		call("event-stream is 2025-03-26", result, "Accept: application/json, text/event-stream"),
		call("2025-03-26", result, "MCP-Protocol-Version: 2025-03-26"),
		call("2025-06-18", result, "MCP-Protocol-Version: 2025-06-18"),
		call("2025-11-25", result, "MCP-Protocol-Version: 2025-11-25"),
		call("event-stream in two headers", result, "Accept: application/json", "Accept: text/event-stream"),
		call("event-stream in capitals", result, "Accept: Application/JSON, Text/Event-Stream"),
	})
}
