package app_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/apptest"
	"cairn/internal/db/dbtest"
)

// fresh is an application whose clock stands at the start of a minute, with tokens of the given arguments.
func fresh(t testing.TB, a *apptest.App, tokens map[string]string) *world {
	t.Helper()
	a.Clock.Set(t, apptest.Start)
	w := &world{App: a, tokens: map[string]string{}, words: map[string]string{}}
	for name, args := range tokens {
		w.tokens[name] = a.Token(t, args)
	}
	return w
}

// refusal checks a 429 on /mcp and gives the moment it names.
func refusal(t *testing.T, a *apptest.App, r apptest.Response, limit, current int, reset time.Duration) {
	t.Helper()
	start, _ := time.Parse(time.RFC3339, apptest.Start)
	out := read(t, r)
	if r.Status != http.StatusTooManyRequests || out.Error == nil || out.Error.Code != -32002 || out.Error.Data["name"] != "LIMITED" {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	at := time.UnixMilli(int64(out.Error.Data["resetTime"].(float64)))
	if got := at.Sub(start); got != reset {
		t.Errorf("reset after %v, want %v", got, reset)
	}
	if out.Error.Data["limit"] != float64(limit) || out.Error.Data["current"] != float64(current) {
		t.Errorf("data %v, want limit %d, current %d", out.Error.Data, limit, current)
	}
	wait := strconv.Itoa(int((at.Sub(a.Clock.Now()) + time.Second - 1) / time.Second))
	if got := r.Header.Get("Retry-After"); got != wait || out.Error.Message != "Rate limit exceeded. Try again in "+wait+" seconds" {
		t.Errorf("Retry-After %s and %q, want %s", got, out.Error.Message, wait)
	}
}

func TestSixtyPassTheSixtyFirstIsRefused(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := fresh(t, a, map[string]string{"a": `{"name":"a"}`, "b": `{"name":"b"}`})
		call := heroes.call("a", "list_heaps", "{}")
		initialize := scenario{as: "a", body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`}
		for i := range 60 {
			r := w.send(t, call)
			if r.Status != 200 || r.Header.Get("X-RateLimit-Limit") != "60" || r.Header.Get("X-RateLimit-Remaining") != strconv.Itoa(59-i) {
				t.Fatalf("call %d: %d, limit %q, remaining %q", i+1, r.Status, r.Header.Get("X-RateLimit-Limit"), r.Header.Get("X-RateLimit-Remaining"))
			}
			if i%20 == 10 { // initialize is free, and says how one stands
				if r := w.send(t, initialize); r.Status != 200 || r.Header.Get("X-RateLimit-Limit") != "60" || r.Header.Get("X-RateLimit-Remaining") != strconv.Itoa(59-i) {
					t.Fatalf("initialize: %d %v", r.Status, r.Header)
				}
			}
		}
		refusal(t, a, w.send(t, call), 60, 61, 61*time.Second)
		r := w.send(t, scenario{do: "POST /api/list_heaps", as: "a", body: "{}"})
		if r.Status != 429 || !strings.Contains(r.Body, `"error":"limited"`) || !strings.Contains(r.Body, `"limit":60`) || r.Header.Get("Retry-After") != "61" || r.Header.Get("X-RateLimit-Remaining") != "0" {
			t.Errorf("api: %d %v %s", r.Status, r.Header, r.Body)
		}
		if r := w.send(t, initialize); r.Status != 200 {
			t.Errorf("initialize of a spent token: %d", r.Status)
		}
		call.as = "b"
		if r := w.send(t, call); r.Status != 200 {
			t.Errorf("another token: %d", r.Status)
		}
		call.as = "a"
		a.Clock.Move(60 * time.Second)
		if r := w.send(t, call); r.Status != 429 {
			t.Errorf("a second too early: %d", r.Status)
		}
		a.Clock.Move(time.Second)
		if r := w.send(t, call); r.Status != 200 {
			t.Errorf("at the moment named: %d %s", r.Status, r.Body)
		}
	})
}

// Every answer to a known caller says how they stand.
func TestEveryAuthenticatedAnswerCarriesTheRate(t *testing.T) {
	a := alone(t, nil)
	w := fresh(t, a, map[string]string{"a": `{"name":"a","rate":1000}`, "ro": `{"name":"ro","rate":1000,"read_only":true}`, "free": `{"name":"free","rate":0}`})
	there := []string{"X-RateLimit-Limit: 1000", "X-RateLimit-Remaining: 9"}
	table := []scenario{
		{name: "api", do: "POST /api/list_heaps", body: "{}", status: 200}, {name: "bad arguments by api", do: "POST /api/list_heaps", body: `{"x":1}`, status: 400}, {name: "nothing at api", do: "POST /api/nosuch", body: "{}", status: 404},
		{name: "GET of api", do: "GET /api/list_heaps", status: 405}, {name: "bad body by api", do: "POST /api/list_heaps", body: "{", status: 400},
		{name: "not JSON", body: "{", status: 400}, {name: "not JSON-RPC", body: "{}", status: 400}, {name: "text", headers: []string{"Content-Type: text/plain"}, body: "x", status: 415},
		{name: "unknown toolset", do: "POST /mcp?toolsets=nope", body: list, status: 400}, {name: "unknown version", headers: []string{"MCP-Protocol-Version: 1999-01-01"}, body: list, status: 400},
		{name: "too large", body: padded(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_heaps","arguments":{},"x":"%s"}}`, 1<<20+1), status: 413},
		{name: "GET stream", do: "GET /mcp", headers: []string{"Accept: text/event-stream"}, status: 405}, {name: "DELETE", do: "DELETE /mcp", status: 405},
		{name: "notification", body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`, status: 202}, {name: "batch", body: "[" + list + "]", status: 200}, {name: "empty batch", body: "[]", status: 400},
		{name: "initialize", body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, status: 200},
	}
	for _, m := range manners {
		for _, s := range []scenario{m.call("", "list_heaps", "{}"), m.request("", "1", "tools/list", "", ""), m.request("", "1", "resources/list", "", ""), m.call("", "list_heaps", `{"x":1}`)} {
			s.name, s.status = m.name+" "+s.body, 200
			table = append(table, s)
		}
		s := m.request("", "1", "no/such", "", "")
		s.name, s.status = m.name+" unknown method", 404
		table = append(table, s)
	}
	for _, s := range table {
		t.Run(s.name, func(t *testing.T) {
			s.as, s.header = "a", there
			w.run(t, s)
		})
		t.Run(s.name+" without a limit", func(t *testing.T) {
			s.as, s.header = "free", []string{"-X-RateLimit-Limit", "-X-RateLimit-Remaining"}
			w.run(t, s)
		})
	}
	s := heroes.call("ro", "create_work_task", `{"name":"x"}`)
	s.status, s.header = 403, there
	w.run(t, s)
}

func TestBatchMembersCountEach(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := fresh(t, a, map[string]string{"a": `{"name":"a","rate":5}`})
		note := `{"jsonrpc":"2.0","method":"notifications/initialized"}`
		ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
		initialize := `{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}`
		r := w.send(t, scenario{as: "a", body: batchOf(note, initialize, ping, ping)})
		if r.Status != 200 || r.Header.Get("X-RateLimit-Remaining") != "2" {
			t.Fatalf("%d, remaining %q: %s", r.Status, r.Header.Get("X-RateLimit-Remaining"), r.Body)
		}
		r = w.send(t, scenario{as: "a", body: batchOf(ping, ping, ping, ping)})
		if n := strings.Count(r.Body, `"result":{}`); r.Status != 200 || n != 2 || strings.Count(r.Body, `"code":-32002`) != 2 || r.Header.Get("Retry-After") == "" || r.Header.Get("X-RateLimit-Remaining") != "0" {
			t.Errorf("%d %v %s", r.Status, r.Header, r.Body)
		}
	})
}

func TestLimitsOfTools(t *testing.T) {
	apptest.Each(t, map[string]string{"CAIRN_TOOL_LIMITS": "list_heaps=3,search=0"}, func(t *testing.T, a *apptest.App) {
		w := fresh(t, a, map[string]string{"a": `{"name":"a","rate":1000}`, "b": `{"name":"b","rate":1000}`, "free": `{"name":"free","rate":0}`})
		for i, m := range []manner{heroes, legacy, modern} {
			if r := w.send(t, m.call("a", "list_heaps", "{}")); r.Status != 200 {
				t.Fatalf("call %d: %d %s", i+1, r.Status, r.Body)
			}
		}
		refusal(t, a, w.send(t, heroes.call("a", "list_heaps", "{}")), 3, 4, 80*time.Second)
		refusal(t, a, w.send(t, legacy.call("a", "list_heaps", "{}")), 3, 5, 80*time.Second)
		if r := w.send(t, scenario{do: "POST /api/list_heaps", as: "a", body: "{}"}); r.Status != 429 {
			t.Errorf("api: %d", r.Status)
		}
		if r := w.send(t, scenario{as: "a", body: batchOf(heroes.call("a", "list_heaps", "{}").body, heroes.call("a", "list_tasks", "{}").body)}); r.Status != 200 || strings.Count(r.Body, `"code":-32002`) != 1 || !strings.Contains(r.Body, `"tasks":[`) {
			t.Errorf("batch: %d %s", r.Status, r.Body)
		}
		if r := w.send(t, heroes.call("b", "list_heaps", "{}")); r.Status != 200 {
			t.Errorf("another caller: %d %s", r.Status, r.Body)
		}
		for range 5 {
			for _, s := range []scenario{heroes.call("free", "list_heaps", "{}"), heroes.call("a", "search", `{"query":"x"}`)} {
				if r := w.send(t, s); r.Status != 200 {
					t.Errorf("without a limit: %d %s", r.Status, r.Body)
				}
			}
		}
		for i := range 101 { // where no limit of its own is set
			r := w.send(t, heroes.call("b", "list_projects", "{}"))
			if want := map[bool]int{true: 200, false: 429}[i < 100]; r.Status != want {
				t.Fatalf("call %d: %d", i+1, r.Status)
			}
		}
	})
}

// MCP_MAX_RATE_LIMIT=0 is no limit, those of tools included, for tokens without a rate of their own.
func TestNoDefaultRateMeansNoLimitsOfToolsEither(t *testing.T) {
	a := alone(t, map[string]string{"MCP_MAX_RATE_LIMIT": "0", "CAIRN_TOOL_LIMITS": "list_heaps=2"})
	w := fresh(t, a, map[string]string{"a": `{"name":"a"}`, "own": `{"name":"own","rate":3}`})
	for i := range 5 {
		if r := w.send(t, heroes.call("a", "list_heaps", "{}")); r.Status != 200 || r.Header.Get("X-RateLimit-Limit") != "" {
			t.Fatalf("call %d: %d %s", i+1, r.Status, r.Body)
		}
	}
	for i, want := range []int{200, 200, 429, 429} {
		if r := w.send(t, heroes.call("own", "list_heaps", "{}")); r.Status != want {
			t.Errorf("own rate, call %d: %d", i+1, r.Status)
		}
	}
}

func TestDefaultRateIsTheOperators(t *testing.T) {
	a := alone(t, map[string]string{"MCP_MAX_RATE_LIMIT": "2"})
	w := fresh(t, a, map[string]string{"a": `{"name":"a"}`, "own": `{"name":"own","rate":3}`})
	for as, pass := range map[string]int{"a": 2, "own": 3} {
		for i := range 5 {
			r := w.send(t, heroes.call(as, "list_heaps", "{}"))
			if want := map[bool]int{true: 200, false: 429}[i < pass]; r.Status != want {
				t.Errorf("%s, call %d: %d", as, i+1, r.Status)
			}
		}
	}
}

func TestCallsWithoutATokenCountByAddress(t *testing.T) {
	for name, s := range map[string]scenario{
		"initialize":       {body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, status: 200},
		"server/discover":  modern.request("", "1", "server/discover", "", ""),
		"tools/list":       {body: list, status: 401},
		"a call by api":    {do: "POST /api/list_heaps", body: "{}", status: 401},
		"a guessed token":  {headers: []string{"Authorization: Bearer cairn_" + strings.Repeat("a", 52)}, body: list, status: 401},
		"on the alias":     {do: "POST /functions/v1/mcp-server", body: list, status: 401},
		"as a batch":       {body: "[" + list + "]", status: 401},
		"the GET stream":   {do: "GET /mcp", headers: []string{"Accept: text/event-stream"}, status: 401},
		"a guess at /api":  {do: "POST /api/list_heaps", headers: []string{"Authorization: Bearer x"}, body: "{}", status: 401},
		"what is no token": {headers: []string{"Authorization: Basic eDp5"}, body: list, status: 401},
	} {
		t.Run(name, func(t *testing.T) {
			a := alone(t, nil)
			w := fresh(t, a, map[string]string{"a": `{"name":"a"}`})
			if s.status == 0 {
				s.status = 200
			}
			from := func(address string) int {
				s := s
				s.headers = append([]string{"X-Forwarded-For: " + address}, s.headers...)
				return w.send(t, s).Status
			}
			for i := range 100 {
				if got := from("203.0.113.1"); got != s.status {
					t.Fatalf("call %d: %d", i+1, got)
				}
			}
			if got := from("203.0.113.1"); got != 429 {
				t.Errorf("call 101: %d", got)
			}
			if got := from("203.0.113.2"); got != s.status {
				t.Errorf("another address: %d", got)
			}
			good := heroes.call("a", "list_heaps", "{}")
			good.headers = []string{"X-Forwarded-For: 203.0.113.1"}
			if r := w.send(t, good); r.Status != 200 {
				t.Errorf("a good token from that address: %d", r.Status) // those who share it aren't locked out
			}
		})
	}
}

// Two servers on one PostgreSQL are one limit.
func TestReplicasShareTheRate(t *testing.T) {
	url := dbtest.Postgres(t)
	one := apptest.New(t, map[string]string{"CAIRN_DATABASE_URL": url, "CAIRN_TOOL_LIMITS": "list_tasks=4"})
	two := apptest.New(t, map[string]string{"CAIRN_DATABASE_URL": url, "CAIRN_TOOL_LIMITS": "list_tasks=4"})
	w1 := fresh(t, one, map[string]string{"a": `{"name":"a"}`, "tools": `{"name":"tools","rate":1000}`})
	w2 := fresh(t, two, nil)
	w2.tokens = w1.tokens
	var mu sync.Mutex
	var wg sync.WaitGroup
	status := map[int]int{}
	for i := range 80 {
		wg.Go(func() {
			r := []*world{w1, w2}[i%2].send(t, heroes.call("a", "list_heaps", "{}"))
			mu.Lock()
			status[r.Status]++
			mu.Unlock()
		})
	}
	wg.Wait()
	if status[200] != 60 || status[429] != 20 {
		t.Errorf("of 80 calls on two replicas: %v", status)
	}
	for i := range 6 {
		r := []*world{w1, w2}[i%2].send(t, heroes.call("tools", "list_tasks", "{}"))
		if want := map[bool]int{true: 200, false: 429}[i < 4]; r.Status != want {
			t.Errorf("call %d of the tool: %d", i+1, r.Status)
		}
	}
}
