package app_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/apptest"
	"cairn/internal/db"
)

// rows reads a whole table as text, one line a row.
func rows(t testing.TB, a *apptest.App, query string) (lines []string) {
	t.Helper()
	r, err := a.DB.Query(context.Background(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	columns, err := r.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for r.Next() {
		values, dest := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			dest[i] = &values[i]
		}
		if err := r.Scan(dest...); err != nil {
			t.Fatal(err)
		}
		parts := make([]string, len(columns))
		for i, v := range values {
			if b, ok := v.([]byte); ok {
				v = string(b)
			}
			parts[i] = fmt.Sprint(v)
		}
		lines = append(lines, strings.Join(parts, "|"))
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

const (
	usageQuery = `SELECT tool, outcome, client, address, via, request, actor, account FROM usage_log ORDER BY at, id`
	eventQuery = `SELECT event, detail, actor, account, address, user_agent FROM audit_event ORDER BY at, id`
)

// within waits up to the promised second (and what a busy machine adds) until every wanted line is there.
func within(t *testing.T, a *apptest.App, query string, want []string) (lines []string) {
	t.Helper()
	missing := want
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		lines = rows(t, a, query)
		missing = slices.DeleteFunc(slices.Clone(want), func(w string) bool { return slices.Contains(lines, w) })
		if len(missing) == 0 || time.Now().After(end) {
			break
		}
	}
	for _, m := range missing {
		t.Errorf("%s is missing", m)
	}
	if len(missing) > 0 {
		t.Logf("there is:\n%s", strings.Join(lines, "\n"))
	}
	return lines
}

// actor gives the account and the actor of a token.
func actor(t *testing.T, a *apptest.App, name string) (account, actor string) {
	t.Helper()
	line := rows(t, a, `SELECT account, id FROM token WHERE name = '`+name+`'`)
	account, id, _ := strings.Cut(line[0], "|")
	return account, "token:" + id
}

func TestUsageAndAuditWithinASecond(t *testing.T) {
	apptest.Each(t, map[string]string{"CAIRN_TOOL_LIMITS": "list_projects=1"}, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		account, rw := actor(t, a, "rw")
		_, ro := actor(t, a, "ro")
		agent := []string{"User-Agent: probe/1", "X-Forwarded-For: 203.0.113.5"}
		var usage, events []string
		call := func(as, who, tool, args, outcome string, m manner) {
			s := m.call(as, tool, args)
			via, client := "mcp", "probe/1"
			switch {
			case m.path == "":
				s, via = scenario{do: "POST /api/" + tool, as: as, body: args}, "http"
			case m.modern:
				client = "probe" // what the client calls itself
			}
			s.headers = append(s.headers, agent...)
			r := w.send(t, s)
			tail := "|" + who + "|" + account + "|203.0.113.5|" + client
			usage = append(usage, strings.Join([]string{tool, outcome, client, "203.0.113.5", via, r.Header.Get("X-Request-Id"), who, account}, "|"))
			end := "toolSuccess|" + tool
			if outcome != "ok" {
				end = "toolFailure|" + tool + " " + outcome
			}
			if outcome == "limited" {
				events = append(events, "rateLimitExceeded|"+tool+tail)
			}
			events = append(events, "toolInvoke|"+tool+tail, end+tail)
		}
		api := manner{}
		for _, m := range []manner{heroes, legacy, modern, api} {
			call("rw", rw, "list_heaps", `{}`, "ok", m)
			call("rw", rw, "get_task", `{"task_id":"`+absent+`"}`, "not_found", m)
			call("rw", rw, "create_work_task", `{}`, "invalid", m)
			call("ro", ro, "create_work_task", `{"name":"x"}`, "scope", m)
			call("rw", rw, "create_token", `{"name":"x"}`, "denied", m)
		}
		_, counted := actor(t, a, "counted") // those without a limit have none by tools either
		call("counted", counted, "list_projects", `{}`, "ok", heroes)
		call("counted", counted, "list_projects", `{}`, "limited", heroes)
		w.send(t, scenario{as: "spent", body: list, headers: agent})
		w.send(t, scenario{as: "expired", body: list, headers: agent})
		w.send(t, scenario{do: "POST /api/list_heaps", headers: append([]string{"Authorization: Bearer nonsense"}, agent...), body: "{}"})
		_, spent := actor(t, a, "spent")
		events = append(events, "authAttempt|/mcp|"+rw+"|"+account+"|203.0.113.5|probe/1", "authAttempt|/api/list_heaps|"+rw+"|"+account+"|203.0.113.5|probe/1",
			"authFailure|/mcp token_expired|||203.0.113.5|probe/1", "authFailure|/api/list_heaps token_invalid|||203.0.113.5|probe/1",
			"rateLimitExceeded|1 per minute|"+spent+"|"+account+"|203.0.113.5|probe/1")
		within(t, a, usageQuery, usage)
		lines := within(t, a, eventQuery, events)
		for _, want := range []string{"tokenCreated|", "tokenRevoked|"} {
			if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, want) && strings.Contains(l, "|account:") }) {
				t.Errorf("%s is missing", want)
			}
		}
		noSecrets(t, w, strings.Join(append(lines, rows(t, a, usageQuery)...), "\n"))
		var out struct {
			Tokens []struct {
				Name          string
				Calls, Errors int
				LastUsedAt    *string `json:"last_used_at"`
			}
		}
		apptest.Decode(t, a.Call(t, a.Person(t), "list_tokens", `{}`), &out)
		for _, token := range out.Tokens {
			if token.Name == "rw" && (token.Calls != 16 || token.Errors != 12 || token.LastUsedAt == nil) {
				t.Errorf("the token's own figures: %+v", token)
			}
		}
	})
}

func TestInternalErrorIsAudited(t *testing.T) {
	a := alone(t, nil)
	w := settle(t, a)
	if err := a.DB.Write(context.Background(), func(tx *db.Tx) error {
		_, err := tx.Exec(`ALTER TABLE project_log RENAME TO project_log_away`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	r := w.send(t, scenario{do: "POST /api/get_project_context", as: "rw", headers: []string{"User-Agent: u"}, body: `{"project_id":"{project}"}`})
	id := r.Header.Get("X-Request-Id")
	if !strings.Contains(r.Body, `"id":"`+id+`"`) {
		t.Errorf("the answer's id is not the request's: %s", r.Body)
	}
	account, rw := actor(t, a, "rw")
	within(t, a, eventQuery, []string{"internalError|get_project_context " + id + "|" + rw + "|" + account + "|127.0.0.1|u"})
	a.Server.Close()
	if !strings.Contains(a.Log.String(), id) || !strings.Contains(a.Log.String(), "project_log") {
		t.Error("the log doesn't have the cause under the id")
	}
}

func TestUsageLogsCanBeSwitchedOff(t *testing.T) {
	apptest.Each(t, map[string]string{"MCP_ENABLE_USAGE_LOGS": "false"}, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		w.send(t, scenario{do: "POST /api/list_heaps", as: "rw", headers: []string{"User-Agent: u"}, body: "{}"})
		account, rw := actor(t, a, "rw")
		within(t, a, eventQuery, []string{"toolSuccess|list_heaps|" + rw + "|" + account + "|127.0.0.1|u"})
		if lines := rows(t, a, usageQuery); len(lines) > 0 {
			t.Errorf("usage rows were written: %v", lines)
		}
		if calls := rows(t, a, `SELECT calls FROM token WHERE name = 'rw'`); calls[0] != "1" {
			t.Errorf("the token's calls are %s", calls[0])
		}
	})
}

// What a client says of itself may not spoil the rows that others wait for.
func TestOddClientsAreRecordedAllTheSame(t *testing.T) {
	apptest.Each(t, map[string]string{"CAIRN_TRUSTED_PROXIES": "127.0.0.1"}, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		long := strings.Repeat("é", 400)
		odd := modern.call("rw", "list_heaps", `{}`)
		odd.body = strings.Replace(odd.body, `"name":"probe"`, `"name":"a\u0000b`+long+`"`, 1)
		for name, s := range map[string]scenario{
			"agent in Latin-1":     {do: "POST /api/create_work_task", as: "rw", headers: []string{"User-Agent: caf\xe9"}, body: `{"name":"x"}`, status: 200},
			"long agent":           {do: "POST /api/list_heaps", as: "rw", headers: []string{"User-Agent: " + long}, body: `{}`, status: 200},
			"client with a NUL":    {do: odd.do, as: "rw", headers: odd.headers, body: odd.body, status: 200},
			"path with a NUL":      {do: "POST /api/a%00%ff", headers: []string{"Authorization: Bearer bad"}, body: `{}`, status: 401},
			"tool with a NUL":      {do: "POST /api/a%00%ff", as: "rw", body: `{}`, status: 404},
			"address with a zone":  {do: "POST /api/list_heaps", as: "rw", headers: []string{"X-Forwarded-For: fe80::1%\xff"}, body: `{}`, status: 200},
			"zone without a token": {headers: []string{"X-Forwarded-For: fe80::1%\xff"}, body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, status: 200},
		} {
			s.name = name
			t.Run(name, func(t *testing.T) { w.run(t, s) })
		}
		w.send(t, scenario{do: "POST /api/list_projects", as: "rw", headers: []string{"User-Agent: last"}, body: `{}`})
		account, rw := actor(t, a, "rw")
		lines := within(t, a, eventQuery, []string{"toolSuccess|list_projects|" + rw + "|" + account + "|127.0.0.1|last", "toolSuccess|create_work_task|" + rw + "|" + account + "|127.0.0.1|caf\uFFFD"})
		if got := len(rows(t, a, `SELECT id FROM usage_log WHERE tool IN ('list_heaps', 'create_work_task', 'list_projects') AND via IN ('mcp', 'http')`)); got != 6 { // the sixth is of settle
			t.Errorf("%d usage rows, want 6:\n%s", got, strings.Join(lines, "\n"))
		}
	})
}

// marker is in every body that TestLogHoldsNoTokenAndNoBody sends, and nowhere else.
const marker = "zanzibar-quartz"

func noSecrets(t *testing.T, w *world, text string) {
	t.Helper()
	for name, token := range w.tokens {
		if i := strings.Index(text, token); i >= 0 {
			t.Errorf("the token of %s is in it: %s", name, text[max(0, i-150):min(len(text), i+60)])
		}
	}
	for _, word := range []string{marker, "Water the ferns", "Bearer "} {
		if i := strings.Index(text, word); i >= 0 {
			t.Errorf("%q is in it: %s", word, text[max(0, i-150):min(len(text), i+60)])
		}
	}
}

func TestLogHoldsNoTokenAndNoBody(t *testing.T) {
	apptest.Each(t, map[string]string{"MCP_DEBUG": "true"}, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		w.tokens["unknown"], w.tokens["malformed"] = "cairn_"+strings.Repeat("b", 52), "cairn_malformed"
		for _, f := range failures {
			for _, m := range manners {
				s := m.call(f.as, f.tool, strings.Replace(f.args, "{", `{"m":"`+marker+`",`, 1))
				s.body = strings.ReplaceAll(s.body, ",}", "}")
				w.send(t, s)
			}
		}
		for _, b := range badBodies {
			w.send(t, scenario{as: "rw", body: marker + b.body})
			w.send(t, scenario{as: "rw", headers: legacy.headers, body: strings.Replace(b.body, `"tools/list"`, `"`+marker+`"`, 1)})
		}
		token := w.tokens["rw"]
		for _, m := range manners {
			w.send(t, m.call("rw", "create_work_task", `{"name":"`+marker+`","description":"`+marker+`"}`))
			w.send(t, m.call("rw", "search", `{"query":"`+marker+`"}`))
			w.send(t, m.request("rw", `"`+marker+`"`, "ping", "", `"x":"`+marker+`"`))
			w.send(t, m.request("rw", `1`, "no/"+marker, "", ""))
			s := m.call("unknown", "list_heaps", `{}`)
			s.do += "?token=" + token + "&m=" + marker
			w.send(t, s)
		}
		w.send(t, scenario{do: "POST /mcp/" + token, body: list})
		w.send(t, scenario{do: "GET /mcp/" + token})
		w.send(t, scenario{do: "POST /api/" + token, as: "rw", body: `{}`})
		w.send(t, scenario{as: "rw", headers: []string{"Host: " + token}, body: list})
		w.send(t, scenario{as: "rw", headers: []string{"Origin: https://" + token}, body: list})
		w.send(t, scenario{headers: []string{"Authorization: Basic " + token}, body: list})
		if err := a.DB.Write(context.Background(), func(tx *db.Tx) error {
			_, err := tx.Exec(`ALTER TABLE task RENAME TO task_away`)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		w.send(t, modern.call("rw", "create_work_task", `{"name":"`+marker+`"}`))
		account, rw := actor(t, a, "rw")
		lines := within(t, a, eventQuery, []string{"toolFailure|create_work_task internal|" + rw + "|" + account + "|127.0.0.1|probe"})
		a.Server.Close()
		log := a.Log.String()
		if !strings.Contains(log, `"msg":"request"`) {
			t.Fatal("with MCP_DEBUG each request is logged")
		}
		noSecrets(t, w, log)
		noSecrets(t, w, strings.Join(append(lines, rows(t, a, usageQuery)...), "\n"))
	})
}
