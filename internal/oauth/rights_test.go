package oauth_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"cairn/internal/oauth"
	"cairn/internal/who"
)

func basic(client string) string {
	return base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(client) + ":"))
}

// What is on offer is what was asked for and registered; no scope asked for is all.
func TestScopesOnOffer(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		with := func(members string) string {
			return `{"redirect_uris":["` + callback + `"]` + members + `}`
		}
		for _, c := range []struct {
			name, members, asked string
			write, stay          bool
		}{
			{"nothing said at all", ``, "", true, false},
			{"stays by its registered grants", `,"grant_types":["authorization_code","refresh_token"]`, "", true, true},
			{"stays by what it asks", ``, "cairn.read offline_access", false, true},
			{"stays by its registered scope", `,"scope":"cairn.read offline_access"`, "cairn.read", false, true},
			{"reads by what it asks", ``, "cairn.read", false, false},
			{"writes by what it asks", ``, "cairn.write", true, false},
			{"the other names", ``, "heaper.mcp.read heaper.mcp.write", true, false},
			{"unknown scopes beside", ``, "openid cairn.read admin", false, false},
			{"unknown scopes alone", ``, "openid profile", false, false},
			{"registered to read, asks to write", `,"scope":"cairn.read"`, "cairn.read cairn.write", false, false},
			{"registered to read, asks nothing", `,"scope":"cairn.read"`, "", false, false},
			{"registered to stay alone, asks nothing", `,"scope":"offline_access"`, "", true, true},
			{"registered unknown scopes alone", `,"scope":"openid"`, "", true, false},
		} {
			t.Run(c.name, func(t *testing.T) {
				v := w.begin(t, oauth.Browser(""), w.query(w.register(t, with(c.members)), "scope="+c.asked))
				if v.Write != c.write || v.Stay != c.stay {
					t.Errorf("write %v, stay %v", v.Write, v.Stay)
				}
			})
		}
		k := w.letIn(t, ben, oauth.Choice{Connect: true, Heaps: who.IDs(who.From(ben).Heaps)})
		if k.Scope != "cairn.read" || k.Refresh != "" || claims(t, k.Access)["scope"] != "cairn.read" {
			t.Errorf("a person who grants reading alone gives %+v", k.Tokens)
		}
		refusedWrite(t, w, k.Access, "cairn.read cairn.write")
	})
}

func TestRefreshNeverAddsScope(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		reading := everything(ben)
		reading.Write = false
		k := w.letIn(t, ben, reading)
		if k.Scope != "cairn.read offline_access" {
			t.Fatalf("scope %q", k.Scope)
		}
		for _, more := range []string{"cairn.write", "cairn.read cairn.write", "heaper.mcp.write"} {
			f := w.refreshing(k)
			f.Set("scope", more)
			w.refused(t, f, http.StatusBadRequest, "invalid_scope")
		}
		w.Call(t, ben, "update_agent", `{"agent":"Robin","write":true}`)
		refusedWrite(t, w, k.Access, "cairn.read cairn.write offline_access")
		k.Tokens = w.tokens(t, w.refreshing(k)) // spent by none of the refusals
		if k.Scope != "cairn.read offline_access" {
			t.Errorf("a refresh gave %q", k.Scope)
		}
		refusedWrite(t, w, k.Access, "cairn.read cairn.write offline_access")
	})
}

// refusedWrite wants a write refused with the challenge that names the whole set of scopes.
func refusedWrite(t *testing.T, w *world, token, scope string) {
	t.Helper()
	r := w.call(t, token, "create_personal_task", `{"name":"x"}`)
	if c := r.Header.Get("WWW-Authenticate"); r.Status != http.StatusForbidden || !strings.Contains(r.Body, "-32008") || !strings.Contains(c, `error="insufficient_scope"`) || !strings.Contains(c, `scope="`+scope+`"`) {
		t.Errorf("%d %q %s", r.Status, c, r.Body)
	}
}

func TestRefreshMayAskForLessAndHaveAllAgain(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		k := w.letIn(t, ben, everything(ben))
		f := w.refreshing(k)
		f.Set("scope", "cairn.read")
		less := w.tokens(t, f)
		if less.Scope != "cairn.read" {
			t.Errorf("less: %q", less.Scope)
		}
		refusedWrite(t, w, less.Access, "cairn.read cairn.write")
		if all := w.tokens(t, w.refreshing(key{client: k.client, Tokens: less})); all.Scope != k.Scope {
			t.Errorf("without a scope: %q, want the original %q", all.Scope, k.Scope)
		}
	})
}

func TestNarrowedRightsCountOnTheNextCall(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		k := w.letIn(t, ben, everything(ben))
		write := func() int { return w.call(t, k.Access, "create_personal_task", `{"name":"x"}`).Status }
		if s := write(); s != http.StatusOK {
			t.Fatalf("status %d", s)
		}
		w.Call(t, ben, "update_agent", `{"agent":"Robin","write":false}`)
		refusedWrite(t, w, k.Access, "cairn.read cairn.write offline_access")
		if out := w.tokens(t, w.refreshing(k)); out.Scope != "cairn.read offline_access" {
			t.Errorf("a refresh of what was narrowed gives %q", out.Scope)
		}
		w.Call(t, ben, "update_agent", `{"agent":"Robin","write":true}`) // the token may have the right back: its scope has it
		if s := write(); s != http.StatusOK {
			t.Errorf("widened again: %d", s)
		}
		w.Call(t, ben, "update_agent", `{"agent":"Robin","areas":["memory"]}`)
		if r := w.call(t, k.Access, "list_tasks", `{}`); !strings.Contains(r.Body, "-32005") {
			t.Errorf("an area taken away: %d %s", r.Status, r.Body)
		}
		w.Call(t, ben, "update_agent", `{"agent":"Robin","all_areas":true,"heaps":["Personal"]}`)
		if r := w.answers(t, k.Access, http.StatusOK); strings.Contains(r.Body, "Work") || !strings.Contains(r.Body, "Personal") {
			t.Errorf("a heap taken away: %s", r.Body)
		}
		if n := w.events(t, "agentChanged"); n != 4 {
			t.Errorf("%d changes of an agent are recorded", n)
		}
	})
}

// An agent's heaps are those that its account owns or administers at that moment.
func TestLostRoleTakesTheHeapAway(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		owner, ben := w.Person(t), w.Account(t, "Ben")
		w.Call(t, owner, "create_heap", `{"name":"Club"}`)
		w.Call(t, owner, "invite_member", `{"heap":"Club","account":"Ben","role":"admin"}`)
		var invite string
		if err := w.DB.One(ben, `SELECT id FROM invite`, nil, &invite); err != nil {
			t.Fatal(err)
		}
		w.Call(t, ben, "respond_invite", `{"invite_id":"`+invite+`","accept":true}`)
		ben = w.PersonNamed(t, "Ben")
		k := w.letIn(t, ben, everything(ben))
		sees := func(want bool) {
			t.Helper()
			if r := w.answers(t, k.Access, http.StatusOK); strings.Contains(r.Body, "Club") != want {
				t.Errorf("sees the heap: %v; %s", !want, r.Body)
			}
		}
		sees(true)
		for _, role := range []string{"editor", "viewer"} {
			w.Call(t, owner, "set_member", `{"heap":"Club","account":"Ben","role":"`+role+`"}`)
			sees(false)
			w.Call(t, owner, "set_member", `{"heap":"Club","account":"Ben","role":"admin"}`)
			sees(true)
		}
		w.Call(t, owner, "update_heap", `{"heap":"Club","archived":true}`)
		sees(false)
		w.Call(t, owner, "update_heap", `{"heap":"Club","archived":false}`)
		sees(true)
		w.Call(t, owner, "remove_member", `{"heap":"Club","account":"Ben"}`)
		sees(false)
	})
}

func TestPausedAgentIsRefusedAndGoesOn(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben, owner := w.Account(t, "Ben"), w.Person(t)
		k := w.letIn(t, ben, everything(ben))
		for _, c := range []struct {
			who  context.Context
			args string
		}{{ben, `{"agent":"Robin"}`}, {ben, `{"all":"account"}`}, {owner, `{"all":"server"}`}, {owner, `{"agent":"` + k.agent + `"}`}} {
			w.Call(t, c.who, "pause_agents", c.args)
			r := w.answers(t, k.Access, http.StatusForbidden)
			if !strings.Contains(r.Body, "-32001") || !strings.Contains(r.Body, "paused by the owner") || r.Header.Get("WWW-Authenticate") != "" {
				t.Errorf("paused by %s: %v %s", c.args, r.Header, r.Body)
			}
			w.refreshing(k)
			w.Call(t, c.who, "resume_agents", c.args)
			w.answers(t, k.Access, http.StatusOK)
		}
		w.Call(t, ben, "pause_agents", `{"agent":"Robin"}`)
		w.Call(t, ben, "pause_agents", `{"all":"account"}`)
		w.Call(t, ben, "resume_agents", `{"all":"account"}`)
		w.answers(t, k.Access, http.StatusForbidden) // paused by itself too
		k.Tokens = w.tokens(t, w.refreshing(k))      // its tokens live on
		w.Call(t, ben, "resume_agents", `{"agent":"Robin"}`)
		w.answers(t, k.Access, http.StatusOK)
		if n := w.events(t, "agentPaused"); n != 12 {
			t.Errorf("%d pauses and resumptions are recorded", n)
		}
	})
}

// What an agent tried while it was paused is told of, before it is resumed and by that; an earlier pause doesn't count.
func TestCallsRefusedWhilePausedAreCounted(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		k := w.letIn(t, ben, everything(ben))
		refused := func() int64 {
			var out struct {
				Agent struct {
					Refused int64 `json:"refused"`
				} `json:"agent"`
			}
			if err := json.Unmarshal(w.Call(t, ben, "get_agent", `{"agent":"Robin"}`), &out); err != nil {
				t.Fatal(err)
			}
			return out.Agent.Refused
		}
		for _, p := range []struct {
			args  string
			calls int64
		}{{`{"agent":"Robin"}`, 2}, {`{"all":"account"}`, 1}, {`{"agent":"Robin"}`, 0}} {
			w.Clock.Move(time.Minute)
			w.Call(t, ben, "pause_agents", p.args)
			for range p.calls {
				w.answers(t, k.Access, http.StatusForbidden)
			}
			for end := time.Now().Add(10 * time.Second); refused() != p.calls && time.Now().Before(end); { // audit rows are a moment behind
				time.Sleep(50 * time.Millisecond)
			}
			if n := refused(); n != p.calls {
				t.Errorf("paused by %s: %d calls are counted as refused, want %d", p.args, n, p.calls)
			}
			var out struct {
				Refused int64 `json:"refused"`
			}
			if err := json.Unmarshal(w.Call(t, ben, "resume_agents", p.args), &out); err != nil || out.Refused != p.calls {
				t.Errorf("resuming %s tells of %d refused calls, want %d (%v)", p.args, out.Refused, p.calls, err)
			}
			if n := refused(); n != 0 {
				t.Errorf("resumed, %d calls still count as refused", n)
			}
		}
	})
}

func TestDisconnectedIsDeadAtOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		owner, ann := w.Person(t), w.Account(t, "Ann")
		for name, end := range map[string]func(ctx context.Context, k key){
			"by its person": func(ctx context.Context, k key) { w.Call(t, ctx, "disconnect_agent", `{"agent":"Robin"}`) },
			"by the admin":  func(_ context.Context, k key) { w.Call(t, owner, "disconnect_agent", `{"agent":"`+k.agent+`"}`) },
			"by an account's end": func(ctx context.Context, _ key) {
				w.Call(t, owner, "disable_account", `{"account":"`+who.From(ctx).Account+`"}`)
				w.Call(t, owner, "enable_account", `{"account":"`+who.From(ctx).Account+`"}`)
			},
			"by its client, refresh token": func(_ context.Context, k key) {
				w.revoke(t, url.Values{"token": {k.Refresh}, "client_id": {k.client}}, http.StatusOK)
				w.revoke(t, url.Values{"token": {k.Refresh}, "client_id": {k.client}}, http.StatusOK)
			},
			"by its client, access token": func(_ context.Context, k key) {
				w.revoke(t, url.Values{"token": {k.Access}, "token_type_hint": {"access_token"}}, http.StatusOK)
			},
		} {
			t.Run(name, func(t *testing.T) {
				ben := w.Account(t, name)
				k := w.letIn(t, ben, everything(ben))
				w.answers(t, k.Access, http.StatusOK)
				end(ben, k)
				if r := w.answers(t, k.Access, http.StatusUnauthorized); !strings.Contains(r.Body, "-32004") || !strings.Contains(r.Header.Get("WWW-Authenticate"), `error="invalid_token"`) {
					t.Errorf("%v %s", r.Header, r.Body)
				}
				w.refused(t, w.refreshing(k), http.StatusBadRequest, "invalid_grant")
			})
		}
		k := w.letIn(t, ann, everything(ann))
		w.revoke(t, url.Values{"token": {k.Refresh}, "client_id": {w.register(t, program)}}, http.StatusUnauthorized)
		w.revoke(t, url.Values{"client_id": {k.client}}, http.StatusBadRequest)
		for _, unknown := range []string{"x", "a.b.c", w.Token(t, ""), strings.Repeat("A", 43)} {
			w.revoke(t, url.Values{"token": {unknown}}, http.StatusOK)
		}
		w.answers(t, k.Access, http.StatusOK)
		if n := w.events(t, "agentDisconnected"); n != 4 {
			t.Errorf("%d disconnections are recorded", n)
		}
	})
}

func (w *world) revoke(t testing.TB, form url.Values, status int) {
	t.Helper()
	if r := w.post(t, "/oauth/revoke", form); r.Status != status {
		t.Errorf("revoke: %d %s, want %d", r.Status, r.Body, status)
	} else if status != http.StatusOK {
		errorOf(t, r)
	}
}

func TestAccessTokenIsGoodAtMCPAlone(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		k := w.letIn(t, ben, everything(ben))
		list := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_heaps","arguments":{}}}`
		json, bearer := "Content-Type: application/json", "Authorization: Bearer "+k.Access
		for name, c := range map[string]struct {
			path, body string
			headers    []string
		}{
			"at /api":              {"/api/list_heaps", `{}`, []string{json, bearer}},
			"at the alias path":    {"/functions/v1/mcp-server", list, []string{json, bearer}},
			"in a query":           {"/mcp?access_token=" + k.Access, list, []string{json}},
			"in a form":            {"/mcp", "access_token=" + k.Access, []string{"Content-Type: application/x-www-form-urlencoded"}},
			"as Basic":             {"/mcp", list, []string{json, "Authorization: Basic " + k.Access}},
			"beside an empty one":  {"/mcp", list, []string{json, "Authorization: Bearer"}},
			"in a cookie":          {"/mcp", list, []string{json, "Cookie: access_token=" + k.Access}},
			"two headers at once":  {"/mcp", list, []string{json, bearer, bearer}},
			"a refresh token":      {"/mcp", list, []string{json, "Authorization: Bearer " + k.Refresh}},
			"the browser's secret": {"/mcp", list, []string{json, "Authorization: Bearer " + k.browser}},
		} {
			t.Run(name, func(t *testing.T) {
				if r := w.Do(t, "POST", c.path, c.body, c.headers...); r.Status != http.StatusUnauthorized && r.Status != http.StatusUnsupportedMediaType || strings.Contains(r.Body, "Personal") {
					t.Errorf("%d %s", r.Status, r.Body)
				}
			})
		}
		for _, path := range []string{"/mcp", "/mcp/"} {
			if r := w.Do(t, "POST", path, list, json, bearer); r.Status != http.StatusOK {
				t.Errorf("%s: %d %s", path, r.Status, r.Body)
			}
		}
	})
}

func TestAgentDoesNothingThatIsForPersons(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		k := w.letIn(t, ben, everything(ben))
		for _, o := range w.Runner.Ops() {
			if o.PersonOnly {
				args := o.Example
				if args == "" {
					args = `{}`
				}
				if r := w.call(t, k.Access, o.Name, args); r.Status != http.StatusForbidden || !strings.Contains(r.Body, "-32001") {
					t.Errorf("%s: %d %s", o.Name, r.Status, r.Body)
				}
			}
		}
	})
}
