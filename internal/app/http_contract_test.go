package app_test

import (
	"testing"

	"cairn/internal/apptest"
)

func TestTokenInTheQueryBesideTheHeaderIsRefused(t *testing.T) {
	plainly(t, nil, []scenario{
		{name: "mcp", do: "POST /mcp?token={token:ro}", as: "rw", body: `{"jsonrpc":"2.0","id":1,"method":"ping"}`, status: 400, want: []string{`"code":-32600`, "Authorization: Bearer"}},
		{name: "api", do: "POST /api/list_heaps?api_key={token:ro}", as: "rw", body: `{}`, status: 400, want: []string{`"error":"invalid_request"`}},
	})
}

// A load balancer asks for health by address.
func TestPlainHealthAnswersUnderAnyHost(t *testing.T) {
	foreign := []string{"Host: 192.0.2.7", "Origin: https://evil.example"}
	plainly(t, nil, []scenario{
		{name: "mcp", do: "GET /mcp", headers: foreign, status: 200, want: []string{`"status":"ok"`}},
		{name: "alias", do: "GET /functions/v1/mcp-server", headers: foreign, status: 200, want: []string{`"status":"ok"`}},
		{name: "a stream", do: "GET /mcp", headers: append(foreign, "Accept: text/event-stream"), status: 403},
		{name: "with a token", do: "GET /mcp", as: "rw", headers: foreign, status: 403},
	})
}

func TestAliasIsHeroMindsWhateverTheVersion(t *testing.T) {
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	plainly(t, nil, []scenario{
		{name: "an odd version", do: "POST /functions/v1/mcp-server", as: "rw", headers: []string{"MCP-Protocol-Version: 1999-01-01"}, body: ping, status: 200, want: []string{`"id":1`}},
		{name: "a batch", do: "POST /functions/v1/mcp-server", as: "rw", headers: []string{"MCP-Protocol-Version: 2025-11-25"}, body: "[" + ping + "]", status: 200, want: []string{`[{`}},
		{name: "a stream", do: "POST /functions/v1/mcp-server", as: "rw", headers: []string{"Accept: text/event-stream"}, body: ping, status: 200, header: []string{"Content-Type: application/json"}},
	})
}

// A token that does anything at all was used, though only calls of tools are counted as calls.
func TestTokenThatOnlyPingsLooksUnused(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		w.send(t, scenario{do: "POST /mcp", as: "ro", body: `{"jsonrpc":"2.0","id":1,"method":"ping"}`})
		within(t, a, `SELECT name || ' ' || calls FROM token WHERE last_used_at IS NOT NULL`, []string{"ro 0"})
	})
}
