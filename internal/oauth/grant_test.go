package oauth_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/oauth"
	"cairn/internal/who"
)

// CASES 44b.
func TestFiveRefreshesAtOnceLeaveOneFamily(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		k := w.letIn(t, ben, everything(ben))
		var mu sync.Mutex
		var wg sync.WaitGroup
		successors := map[string]int{}
		for range 5 {
			wg.Go(func() {
				r := w.post(t, "/oauth/token", w.refreshing(k))
				mu.Lock()
				defer mu.Unlock()
				if r.Status != http.StatusOK {
					t.Errorf("%d %s", r.Status, r.Body)
					return
				}
				_, rest, _ := strings.Cut(r.Body, `"refresh_token":"`)
				next, _, _ := strings.Cut(rest, `"`)
				successors[next]++
			})
		}
		wg.Wait()
		if len(successors) != 1 {
			t.Fatalf("successors: %v", successors)
		}
		for next := range successors {
			if next == "" || next == k.Refresh {
				t.Errorf("the successor is %q", next)
			}
			k.Refresh = next
		}
		if n := w.count(t, `SELECT count(*) FROM oauth_refresh WHERE used_at IS NULL`); n != 1 {
			t.Errorf("%d refresh tokens are good", n)
		}
		if n := w.count(t, `SELECT count(*) FROM connection WHERE ended_at IS NULL`); n != 1 {
			t.Errorf("%d connections stand", n)
		}
		w.answers(t, w.tokens(t, w.refreshing(k)).Access, http.StatusOK)
	})
}

// A client whose answer got lost, twice, comes with the oldest token it has: it must find back to the newest.
func TestLostAnswersAreMadeUpForWithinTheWindow(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		k := w.letIn(t, ben, everything(ben))
		second := w.tokens(t, w.refreshing(k))
		w.Clock.Move(time.Second)
		if again := w.tokens(t, w.refreshing(k)); again.Refresh != second.Refresh {
			t.Error("a second later there is another successor")
		}
		third := w.tokens(t, w.refreshing(key{client: k.client, Tokens: second}))
		w.Clock.Move(time.Second)
		if again := w.tokens(t, w.refreshing(k)); again.Refresh != third.Refresh {
			t.Error("the first token doesn't lead to the newest")
		}
		w.Clock.Move(8 * time.Second) // 10 s after its first use
		w.tokens(t, w.refreshing(k))
		if n := w.events(t, "refreshReuse"); n != 0 {
			t.Errorf("%d reuses are recorded", n)
		}
	})
}

func TestStolenRefreshTokenEndsTheFamily(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		for _, later := range []time.Duration{11 * time.Second, 10 * time.Minute, 30 * 24 * time.Hour} {
			before := w.events(t, "refreshReuse")
			k := w.letIn(t, ben, everything(ben))
			next := w.tokens(t, w.refreshing(k))
			w.Clock.Move(later)
			if later > time.Hour {
				next = w.tokens(t, w.refreshing(key{client: k.client, Tokens: next}))
			}
			w.answers(t, next.Access, http.StatusOK)
			w.refused(t, w.refreshing(k), http.StatusBadRequest, "invalid_grant")
			w.answers(t, next.Access, http.StatusUnauthorized)
			w.refused(t, w.refreshing(key{client: k.client, Tokens: next}), http.StatusBadRequest, "invalid_grant")
			w.refused(t, w.refreshing(k), http.StatusBadRequest, "invalid_grant")
			if n := w.events(t, "refreshReuse") - before; n != 1 {
				t.Errorf("after %v %d reuses are recorded", later, n)
			}
		}
	})
}

func TestRefreshTokenDiesUnused(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		k := w.letIn(t, ben, everything(ben))
		w.Clock.Move(oauth.StayLife - time.Minute)
		k.Tokens = w.tokens(t, w.refreshing(k))
		w.Clock.Move(oauth.StayLife + time.Minute)
		w.refused(t, w.refreshing(k), http.StatusBadRequest, "invalid_grant")
		if err := w.OAuth.Purge(context.Background(), w.DB); err != nil {
			t.Fatal(err)
		}
		w.refused(t, w.refreshing(k), http.StatusBadRequest, "invalid_grant")
	})
}

func TestTokenEndpointRefuses(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		k := w.letIn(t, ben, everything(ben))
		other := w.register(t, program)
		client, browser := w.register(t, program), oauth.Browser("")
		code := w.approve(t, ben, w.begin(t, browser, w.query(client)), browser, everything(ben)).Query().Get("code")
		api := w.Token(t, "")
		form := func(f url.Values, changes ...string) url.Values {
			for _, c := range changes {
				name, value, _ := strings.Cut(c, "=")
				switch name[0] {
				case '-':
					f.Del(name[1:])
				case '+':
					f.Add(name[1:], value)
				default:
					f.Set(name, value)
				}
			}
			return f
		}
		for _, c := range []struct {
			name   string
			form   url.Values
			status int
			code   string
		}{
			{"nothing", url.Values{}, 401, "invalid_client"},
			{"no client", form(w.exchange(client, code), "-client_id"), 401, "invalid_client"},
			{"an unknown client", form(w.exchange(client, code), "client_id=nobody"), 401, "invalid_client"},
			{"a document as client", form(w.exchange(client, code), "client_id=https://app.example/c.json"), 401, "invalid_client"},
			{"no grant", form(w.exchange(client, code), "-grant_type"), 400, "unsupported_grant_type"},
			{"a password", form(w.exchange(client, code), "grant_type=password"), 400, "unsupported_grant_type"},
			{"client credentials", form(w.exchange(client, code), "grant_type=client_credentials"), 400, "unsupported_grant_type"},
			{"no code", form(w.exchange(client, code), "-code"), 400, "invalid_grant"},
			{"a wrong code", form(w.exchange(client, code), "code="+code[1:]+"A"), 400, "invalid_grant"},
			{"two codes", form(w.exchange(client, code), "+code="+code), 400, "invalid_request"},
			{"two clients", form(w.exchange(client, code), "+client_id="+other), 400, "invalid_request"},
			{"a foreign client's code", form(w.exchange(client, code), "client_id="+other), 400, "invalid_grant"},
			{"no verifier", form(w.exchange(client, code), "-code_verifier"), 400, "invalid_grant"},
			{"a wrong verifier", form(w.exchange(client, code), "code_verifier="+verifier+"x"), 400, "invalid_grant"},
			{"the challenge as verifier", form(w.exchange(client, code), "code_verifier="+challenge(verifier)), 400, "invalid_grant"},
			{"a short verifier", form(w.exchange(client, code), "code_verifier="+verifier[:42]), 400, "invalid_grant"},
			{"another redirect", form(w.exchange(client, code), "redirect_uri="+callback), 400, "invalid_grant"},
			{"another resource", form(w.exchange(client, code), "resource=https://other.example/mcp"), 400, "invalid_target"},
			{"one resource right", form(w.exchange(client, code), "+resource=https://other.example/mcp"), 400, "invalid_target"},
			{"an API token as code", form(w.exchange(client, code), "code="+api), 400, "invalid_grant"},
			{"an API token as refresh token", form(w.refreshing(k), "refresh_token="+api), 400, "invalid_grant"},
			{"an access token as refresh token", form(w.refreshing(k), "refresh_token="+k.Access), 400, "invalid_grant"},
			{"no refresh token", form(w.refreshing(k), "-refresh_token"), 400, "invalid_grant"},
			{"a foreign client's refresh token", form(w.refreshing(k), "client_id="+other), 400, "invalid_grant"},
			{"another resource on refresh", form(w.refreshing(k), "resource=https://other.example/mcp"), 400, "invalid_target"},
			{"two refresh tokens", form(w.refreshing(k), "+refresh_token="+k.Refresh), 400, "invalid_request"},
			{"NUL", form(w.refreshing(k), "client_id=\x00"), 401, "invalid_client"},
			{"no UTF-8", form(w.exchange(client, "\xff")), 400, "invalid_grant"},
		} {
			t.Run(c.name, func(t *testing.T) { w.refused(t, c.form, c.status, c.code) })
		}
		// None of that spent anything.
		w.tokens(t, w.exchange(client, code))
		w.tokens(t, w.refreshing(k))
	})
}

func TestTokenEndpointTakesFormsAlone(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		k := w.letIn(t, ben, everything(ben))
		form := "Content-Type: application/x-www-form-urlencoded"
		for name, c := range map[string]struct {
			method, path, body, header string
			status                     int
		}{
			"JSON":           {"POST", "/oauth/token", `{"grant_type":"refresh_token"}`, "Content-Type: application/json", 415},
			"no type":        {"POST", "/oauth/token", w.refreshing(k).Encode(), "X-A: b", 415},
			"in the address": {"POST", "/oauth/token?" + w.refreshing(k).Encode(), "", form, 400},
			"too large":      {"POST", "/oauth/token", "a=" + strings.Repeat("x", 40000), form, 413},
			"no form":        {"POST", "/oauth/token", "a=%zz", form, 400},
			"GET":            {"GET", "/oauth/token", "", form, 405},
			"PUT":            {"PUT", "/oauth/register", "{}", "Content-Type: application/json", 405},
			"GET to revoke":  {"GET", "/oauth/revoke", "", form, 405},
		} {
			t.Run(name, func(t *testing.T) {
				r := w.Do(t, c.method, c.path, c.body, c.header)
				if r.Status != c.status || errorOf(t, r) != "invalid_request" {
					t.Errorf("%d %s", r.Status, r.Body)
				}
			})
		}
		f := w.refreshing(k)
		f.Del("client_id")
		r := w.Do(t, "POST", "/oauth/token", f.Encode(), form, "Authorization: Basic "+basic(k.client))
		if r.Status != http.StatusOK {
			t.Errorf("a client that names itself by Basic authentication: %d %s", r.Status, r.Body)
		}
	})
}

// Guesses are counted per address; what a client does right isn't, since hosted connectors share one.
func TestGuessingAtTheTokenEndpointIsCapped(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		k := w.letIn(t, ben, everything(ben))
		from := []string{"Content-Type: application/x-www-form-urlencoded", "X-Forwarded-For: 192.0.2.99"}
		wrong := w.refreshing(key{client: k.client, Tokens: oauth.Tokens{Refresh: strings.Repeat("A", 43)}})
		for i := range 101 {
			r := w.Do(t, "POST", "/oauth/token", wrong.Encode(), from...)
			if i < 100 && r.Status != http.StatusBadRequest || i == 100 && (r.Status != http.StatusTooManyRequests || r.Header.Get("Retry-After") == "" || errorOf(t, r) != "temporarily_unavailable") {
				t.Fatalf("guess %d: %d %v %s", i, r.Status, r.Header, r.Body)
			}
		}
		if r := w.Do(t, "POST", "/oauth/token", w.refreshing(k).Encode(), from...); r.Status != http.StatusOK {
			t.Errorf("a right refresh behind the guesser's address: %d %s", r.Status, r.Body)
		}
	})
}

// CASES 44f.
func TestDoubleClickOnConnectMakesOneGrant(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben, ann := w.Account(t, "Ben"), w.Account(t, "Ann")
		client, browser := w.register(t, program), oauth.Browser("")
		v := w.begin(t, browser, w.query(client))
		var wg sync.WaitGroup
		errs := make([]error, 6)
		for i := range errs {
			ctx := ben
			if i%3 == 2 {
				ctx = ann
			}
			wg.Go(func() { errs[i] = w.OAuth.Decide(ctx, v, who.From(ctx), everything(ctx)) })
		}
		wg.Wait()
		good := 0
		for _, err := range errs {
			if err == nil {
				good++
			} else if !fault.Is(err, fault.Conflict) {
				t.Errorf("whoever came second: %v", err)
			}
		}
		if good != 1 {
			t.Errorf("%d of six decisions counted", good)
		}
		v, err := w.OAuth.Look(context.Background(), v.ID, browser)
		if err != nil {
			t.Fatal(err)
		}
		u, _ := url.Parse(v.Continue)
		w.tokens(t, w.exchange(client, u.Query().Get("code")))
		if n := w.count(t, `SELECT count(*) FROM agent`); n != 1 {
			t.Errorf("%d agents", n)
		}
	})
}

func TestCodeUsedTwiceEndsTheConnection(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		k := w.letIn(t, ben, everything(ben))
		wrong := w.exchange(k.client, k.code)
		wrong.Set("code_verifier", verifier+"x")
		w.refused(t, wrong, http.StatusBadRequest, "invalid_grant")
		w.answers(t, k.Access, http.StatusOK) // whoever has the code alone ends nothing
		w.refused(t, w.exchange(k.client, k.code), http.StatusBadRequest, "invalid_grant")
		w.answers(t, k.Access, http.StatusUnauthorized)
		w.refused(t, w.refreshing(k), http.StatusBadRequest, "invalid_grant")
		w.refused(t, w.exchange(k.client, k.code), http.StatusBadRequest, "invalid_grant")
		if n := w.events(t, "refreshReuse"); n != 1 {
			t.Errorf("%d replays are recorded", n)
		}
	})
}

func TestCodeIsRedeemedOnceHoweverManyAsk(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		client, browser := w.register(t, program), oauth.Browser("")
		code := w.approve(t, ben, w.begin(t, browser, w.query(client)), browser, everything(ben)).Query().Get("code")
		var wg sync.WaitGroup
		status := make([]int, 5)
		for i := range status {
			wg.Go(func() { status[i] = w.post(t, "/oauth/token", w.exchange(client, code)).Status })
		}
		wg.Wait()
		good := 0
		for _, s := range status {
			if s == http.StatusOK {
				good++
			} else if s != http.StatusBadRequest {
				t.Errorf("status %d", s)
			}
		}
		if n := w.count(t, `SELECT count(*) FROM connection`); good != 1 || n != 1 {
			t.Errorf("%d answered with tokens, %d connections", good, n)
		}
	})
}

// More redeem at once than PostgreSQL has connections: none may hold one and wait for another.
func TestManyRedeemAtOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		forms := make([]url.Values, 80)
		for i := range forms {
			client, browser := w.register(t, program), oauth.Browser("")
			forms[i] = w.exchange(client, w.approve(t, ben, w.begin(t, browser, w.query(client)), browser, everything(ben)).Query().Get("code"))
		}
		var wg sync.WaitGroup
		for _, form := range forms {
			wg.Go(func() {
				if r := w.post(t, "/oauth/token", form); r.Status != http.StatusOK {
					t.Errorf("%d %s", r.Status, r.Body)
				}
			})
		}
		wg.Wait()
	})
}

func TestNothingOldIsDecidedOrRedeemed(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		client, browser := w.register(t, program), oauth.Browser("")
		approved := w.begin(t, browser, w.query(client, "state=1"))
		open := w.begin(t, browser, w.query(client, "state=2"))
		ticket := w.OAuth.Ticket(open, who.From(ben).Account)
		code := w.approve(t, ben, approved, browser, everything(ben)).Query().Get("code")
		w.Clock.Move(oauth.AttemptLife + time.Second)
		w.refused(t, w.exchange(client, code), http.StatusBadRequest, "invalid_grant")
		isFault(t, w.OAuth.Decide(ben, open, who.From(ben), everything(ben)), fault.Conflict)
		isFault(t, w.OAuth.Decide(ben, open, who.From(ben), oauth.Choice{}), fault.Conflict)
		isFault(t, w.OAuth.Cancel(ben, open.ID, browser, oauth.From{}), fault.Conflict)
		isFault(t, w.OAuth.Route(ben, open.ID, browser, "Ben"), fault.NotFound)
		_, err := w.OAuth.Holder(ben, open, ticket)
		isFault(t, err, fault.Unauthenticated)
		for _, v := range []oauth.View{approved, open} {
			if v, err := w.OAuth.Look(ben, v.ID, browser); err != nil || v.State != oauth.Expired || v.Continue != "" {
				t.Errorf("an old attempt is %s, goes to %q, %v", v.State, v.Continue, err)
			}
		}
		if v := w.begin(t, browser, w.query(client, "state=2")); v.ID == open.ID || v.State != oauth.Open {
			t.Error("an old attempt is resumed")
		}
		w.Clock.Move(25 * time.Hour)
		if err := w.OAuth.Purge(ben, w.DB); err != nil {
			t.Fatal(err)
		}
		if n := w.count(t, `SELECT count(*) FROM oauth_attempt`); n != 0 {
			t.Errorf("%d old attempts are kept", n)
		}
	})
}

func TestWhatWasGrantedMustStillHoldWhenTheCodeComes(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		owner := w.Person(t)
		for name, change := range map[string]func(){
			"disabled": func() { w.Call(t, owner, "disable_account", `{"account":"disabled"}`) },
			"disabled for a bit": func() {
				w.Call(t, owner, "disable_account", `{"account":"disabled for a bit"}`)
				w.Call(t, owner, "enable_account", `{"account":"disabled for a bit"}`)
			},
			"archived": func() { w.Call(t, w.PersonNamed(t, "archived"), "update_heap", `{"heap":"Work","archived":true}`) },
		} {
			ctx := w.Account(t, name)
			client, browser := w.register(t, program), oauth.Browser("")
			code := w.approve(t, ctx, w.begin(t, browser, w.query(client)), browser, everything(ctx)).Query().Get("code")
			change()
			w.refused(t, w.exchange(client, code), http.StatusBadRequest, "invalid_grant")
		}
		ben := w.Account(t, "Ben")
		k := w.letIn(t, ben, everything(ben))
		again := everything(ben)
		again.Agent = k.agent
		browser := oauth.Browser("")
		code := w.approve(t, ben, w.begin(t, browser, w.query(k.client)), browser, again).Query().Get("code")
		w.Call(t, ben, "disconnect_agent", `{"agent":"`+k.agent+`"}`)
		w.refused(t, w.exchange(k.client, code), http.StatusBadRequest, "invalid_grant")
		if n := w.count(t, `SELECT count(*) FROM connection WHERE ended_at IS NULL`); n != 0 {
			t.Errorf("%d connections stand", n)
		}
	})
}

func TestAgentContinuesUnderANewConnection(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben, ann := w.Account(t, "Ben"), w.Account(t, "Ann")
		k := w.letIn(t, ben, everything(ben))
		choice := everything(ben)
		choice.Agent = k.agent
		again := w.letIn(t, ben, choice)
		if again.agent != k.agent {
			t.Error("it became another agent")
		}
		w.answers(t, again.Access, http.StatusOK)
		w.answers(t, k.Access, http.StatusUnauthorized)
		w.refused(t, w.refreshing(k), http.StatusBadRequest, "invalid_grant")
		v := w.begin(t, oauth.Browser(""), w.query(k.client))
		foreign := everything(ann)
		foreign.Agent = k.agent
		isFault(t, w.OAuth.Decide(ann, v, who.From(ann), foreign), fault.NotFound)
		readers := w.begin(t, oauth.Browser(""), w.query(again.client, "scope=cairn.read"))
		if known, err := w.OAuth.Known(ben, readers, who.From(ben).Account); err != nil || len(known.Agents) != 0 || known.May() || known.Same == nil {
			t.Errorf("a reader may continue as %v %v", known, err)
		}
	})
}

func TestNobodyGrantsWhatTheyDoNotHave(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben, ann := w.Account(t, "Ben"), w.Account(t, "Ann")
		heaps := who.IDs(who.From(ben).Heaps)
		for name, role := range map[string]string{"viewer": "viewer", "editor": "editor"} {
			err := w.DB.Write(ben, func(tx *db.Tx) error {
				_, err := tx.Exec(`INSERT INTO member (heap, account, role, created_at) VALUES ($1, $2, $3, 0) ON CONFLICT (account, heap) DO UPDATE SET role = excluded.role`, heaps[0], who.From(ann).Account, role)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			v := w.begin(t, oauth.Browser(""), w.query(w.register(t, program)))
			c := everything(ann)
			c.Heaps = append(c.Heaps, heaps[0])
			err = w.OAuth.Decide(ann, v, who.From(ann), c)
			if isFault(t, err, fault.NotFound); err == nil {
				t.Errorf("%s lets an agent in", name)
			}
		}
		v := w.begin(t, oauth.Browser(""), w.query(w.register(t, program)))
		for name, c := range map[string]func(c *oauth.Choice){
			"no heap":          func(c *oauth.Choice) { c.Heaps = nil },
			"no such heap":     func(c *oauth.Choice) { c.Heaps = []string{"x"} },
			"a NUL for a heap": func(c *oauth.Choice) { c.Heaps = []string{"\x00"} },
			"no area":          func(c *oauth.Choice) { c.Areas = []string{} },
			"no such area":     func(c *oauth.Choice) { c.Areas = []string{"everything"} },
			"a bad name":       func(c *oauth.Choice) { c.Name = "a\u202eb" },
			"a long name":      func(c *oauth.Choice) { c.Name = strings.Repeat("x", 301) },
			"no such agent":    func(c *oauth.Choice) { c.Agent = "01890000-0000-7000-8000-00000000abcd" },
		} {
			choice := everything(ben)
			c(&choice)
			if err := w.OAuth.Decide(ben, v, who.From(ben), choice); err == nil {
				t.Errorf("%s was granted", name)
			} else if fault.From(err).Kind == fault.Internal {
				t.Errorf("%s: %v", name, err)
			}
		}
		reading := w.begin(t, oauth.Browser(""), w.query(w.register(t, program), "scope=cairn.read"))
		isFault(t, w.OAuth.Decide(ben, reading, who.From(ben), everything(ben)), fault.Invalid)
	})
}
