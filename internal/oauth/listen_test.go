package oauth_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

// An agent that listens for changes hears no more from the moment on at which it was paused, disconnected or given other rights.
func TestAgentStopsListeningWhenItsGrantChanges(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		for _, c := range []struct{ op, args string }{{"update_agent", `{"agent":"Robin","write":false}`}, {"update_agent", `{"agent":"Robin","areas":["tasks"]}`}, {"pause_agents", `{"agent":"Robin"}`}, {"disconnect_agent", `{"agent":"Robin"}`}} {
			k := w.letIn(t, ben, everything(ben))
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.Server.URL+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourcesListChanged":true},
				"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + k.Access, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"} {
				r.Header.Set(name, value)
			}
			res, err := w.Server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			var heard []string
			for lines := bufio.NewScanner(res.Body); lines.Scan(); {
				data, ok := strings.CutPrefix(lines.Text(), "data: ")
				if !ok {
					continue
				}
				if heard = append(heard, data); len(heard) == 1 {
					w.Call(t, ben, c.op, c.args)
					w.Call(t, ben, "create_block", `{"title":"After"}`)
				}
			}
			res.Body.Close() //nolint:errcheck // it was read
			cancel()
			if len(heard) != 2 || !strings.Contains(heard[0], "acknowledged") || !strings.Contains(heard[1], `"result"`) {
				t.Errorf("%s %s: it heard %q", c.op, c.args, heard)
			}
			if c.op != "disconnect_agent" {
				w.Call(t, ben, "disconnect_agent", `{"agent":"Robin"}`)
			}
		}
	})
}
