package signin_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/signin"
	"cairn/internal/who"
)

func TestSession(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		k := key(t)
		p := w.setUp(t, k, "Ana", "")
		cookie, s, err := w.Start(t.Context(), p, from)
		if err != nil || len(cookie) != 43 || s.Account != w.admin {
			t.Fatalf("%q, %+v, %v", cookie, s, err)
		}
		if w.count(t, `SELECT count(*) FROM session WHERE hash = $1 OR id = $1`, cookie) != 0 {
			t.Error("the cookie itself is kept")
		}
		c, got, err := w.ByCookie(t.Context(), cookie, from)
		if err != nil || c.Account != w.admin || !c.Person || c.Session != s.ID || c.Proved != s.ProvedAt || c.Address != from.Address || got.Renewed {
			t.Fatalf("%+v, %+v, %v", c, got, err)
		}
		w.Clock.Move(59 * time.Minute)
		if _, got, _ = w.ByCookie(t.Context(), cookie, from); got.Renewed || got.ExpiresAt != s.ExpiresAt {
			t.Errorf("renewed too soon: %+v", got)
		}
		w.Clock.Move(2 * time.Minute)
		if _, got, _ = w.ByCookie(t.Context(), cookie, signin.From{Address: "192.0.2.9", UserAgent: "B\x00/2"}); !got.Renewed || got.ExpiresAt <= s.ExpiresAt || got.Address != "192.0.2.9" {
			t.Errorf("not renewed: %+v", got)
		}
		for range 3 { // kept by being used
			w.Clock.Move(29 * 24 * time.Hour)
			if _, _, err = w.ByCookie(t.Context(), cookie, from); err != nil {
				t.Fatal(err)
			}
		}
		w.Clock.Move(30*24*time.Hour + time.Second)
		_, _, err = w.ByCookie(t.Context(), cookie, from)
		is(t, err, fault.Unauthenticated)
		if err := signin.Purge(t.Context(), w.DB); err != nil || w.count(t, `SELECT count(*) FROM session`) != 0 {
			t.Errorf("an expired session stays: %v", err)
		}
		for _, bad := range []string{"", "x", "\x00\xff", cookie + "x"} {
			_, _, err = w.ByCookie(t.Context(), bad, from)
			is(t, err, fault.Unauthenticated)
		}

		one, _ := w.in(t, p)
		two, ctx := w.in(t, p)
		n, err := w.EndOthers(ctx, w.admin, who.From(ctx).Session)
		if err != nil || n != 1 {
			t.Fatalf("%d, %v", n, err)
		}
		_, _, err = w.ByCookie(t.Context(), one, from)
		is(t, err, fault.Unauthenticated)
		_, session, err := w.ByCookie(t.Context(), two, from)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.End(t.Context(), *session, from); err != nil {
			t.Fatal(err)
		}
		_, _, err = w.ByCookie(t.Context(), two, from)
		is(t, err, fault.Unauthenticated)
		if w.count(t, `SELECT count(*) FROM audit_event WHERE event = 'sessionEnded' AND actor = $1`, "account:"+w.admin) != 2 {
			t.Error("the ends, and whose they were, are not recorded")
		}

		one, _ = w.in(t, p)
		w.exec(t, `UPDATE account SET disabled_at = 1 WHERE id = $1`, w.admin)
		_, _, err = w.ByCookie(t.Context(), one, from)
		is(t, err, fault.Unauthenticated)
		w.exec(t, `UPDATE account SET disabled_at = NULL WHERE id = $1`, w.admin)
		_, _, err = w.ByCookie(t.Context(), one, from)
		is(t, err, fault.Unauthenticated)
		for range 60 {
			if _, _, err := w.Start(t.Context(), p, from); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.count(t, `SELECT count(*) FROM session`); n != 50 {
			t.Errorf("%d sessions", n)
		}
	})
}

func TestProveAgain(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		k := key(t)
		cookie, ctx := w.in(t, w.setUp(t, k, "Ana", ""))
		w.Clock.Move(16 * time.Minute)
		ctx = w.again(t, cookie)
		next := key(t)
		add := w.proof(t, next, "add:"+w.admin)
		is(t, w.AddPhrase(ctx, origin, add.Challenge, *add.Phrase, from), fault.Denied)
		purpose := "prove:" + who.From(ctx).Session
		refused(t, w.ProveAgain(ctx, origin, w.proof(t, k, "sign-in"), signin.From{}))
		refused(t, w.ProveAgain(ctx, origin, w.proof(t, key(t), purpose), signin.From{}))
		if _, err := w.signUp(t, "Ben", "", from); err != nil {
			t.Fatal(err)
		}
		refused(t, w.ProveAgain(ctx, origin, w.proof(t, w.last, purpose), signin.From{})) // somebody else
		if err := w.ProveAgain(ctx, origin, w.proof(t, k, purpose), from); err != nil {
			t.Fatal(err)
		}
		ctx = w.again(t, cookie)
		if err := w.AddPhrase(ctx, origin, add.Challenge, *add.Phrase, from); err != nil {
			t.Fatal(err)
		}
		_, err := w.Prove(t.Context(), "sign-in", origin, w.proof(t, k, "sign-in"), signin.From{})
		refused(t, err) // the old phrase
		if _, err := w.Prove(t.Context(), "sign-in", origin, w.proof(t, next, "sign-in"), from); err != nil {
			t.Error(err)
		}
		taken := w.proof(t, w.last, "add:"+w.admin)
		is(t, w.AddPhrase(ctx, origin, taken.Challenge, *taken.Phrase, from), fault.Conflict)
		if w.count(t, `SELECT count(*) FROM audit_event WHERE event IN ('signInAdded', 'signInRemoved') AND account = $1`, w.admin) != 3 {
			t.Error("the changes are not recorded")
		}
	})
}

func TestCookie(t *testing.T) {
	at := func(public string) *signin.Service {
		u, _ := url.Parse(public)
		return signin.New(nil, nil, nil, u, nil)
	}
	c := at("https://cairn.example.org").Cookie("v")
	if c.Name != "__Host-cairn" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 30*24*3600 {
		t.Errorf("%+v", c)
	}
	if c := at("http://127.0.0.1:3000").Cookie("v"); c.Name != "cairn" || c.Secure || !c.HttpOnly {
		t.Errorf("%+v", c)
	}
	if c := at("https://cairn.example.org").Clear(); c.MaxAge != -1 || c.Value != "" || !strings.HasPrefix(c.String(), "__Host-cairn=; Path=/; Max-Age=0") {
		t.Errorf("%s", c)
	}
	if len(signin.New(nil, nil, nil, nil, nil).Ops()) != 7 {
		t.Error("the operations can't be described without data")
	}
}
