package signin_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"cairn/internal/account"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/signin"
)

// signUp asks for an account with a new phrase, which w.last keeps.
func (w *world) signUp(t *testing.T, name, email string, from signin.From) (signin.Person, error) {
	t.Helper()
	w.last = key(t)
	p := w.proof(t, w.last, "sign-up")
	return w.SignUp(t.Context(), signin.SignUpIn{Challenge: p.Challenge, Name: name, Email: email, Phrase: *p.Phrase}, origin, from)
}

func TestSetUp(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		secret, err := w.SetupLink(t.Context(), w.admin)
		if err != nil {
			t.Fatal(err)
		}
		other, _ := w.SetupLink(t.Context(), w.admin)
		l, err := w.Linked(t.Context(), secret, from)
		if err != nil || l.Account != w.admin || l.Name != "owner" || l.HasPhrase {
			t.Fatalf("%+v, %v", l, err)
		}
		k := key(t)
		in := func(change func(*signin.SetUpIn)) error {
			p := w.proof(t, k, "set-up")
			in := signin.SetUpIn{Secret: secret, Challenge: p.Challenge, Name: " Ana ", Zone: "Europe/Vienna", Email: "ana@example.org", Phrase: *p.Phrase}
			if change != nil {
				change(&in)
			}
			_, err := w.SetUp(t.Context(), in, origin, signin.From{})
			return err
		}
		for _, bad := range []func(*signin.SetUpIn){
			func(i *signin.SetUpIn) { i.Name = strings.Repeat("x", 301) }, func(i *signin.SetUpIn) { i.Name = "a\x00b" }, func(i *signin.SetUpIn) { i.Name = "\xff" },
			func(i *signin.SetUpIn) { i.Zone = "Nowhere" }, func(i *signin.SetUpIn) { i.Zone = "Local" }, func(i *signin.SetUpIn) { i.Email = "x" },
		} {
			is(t, in(bad), fault.Invalid)
		}
		is(t, in(func(i *signin.SetUpIn) { i.Secret = "wrong" }), fault.Unauthenticated)
		refused(t, in(func(i *signin.SetUpIn) { i.Phrase.Signature = strings.Repeat("00", 64) }))
		if err := in(nil); err != nil {
			t.Fatal(err)
		}
		is(t, in(nil), fault.Unauthenticated) // used
		is(t, in(func(i *signin.SetUpIn) { i.Secret = other }), fault.Unauthenticated)
		if w.count(t, `SELECT count(*) FROM account WHERE name = 'Ana' AND zone = 'Europe/Vienna' AND email = 'ana@example.org' AND email_confirmed_at IS NULL`) != 1 {
			t.Error("the account is not described")
		}

		// Recovery: the phrase is replaced, sessions end, the name stays.
		cookie, _ := w.in(t, signin.Person{Account: w.admin, Method: signin.Phrase})
		if secret, err = w.SetupLink(t.Context(), w.admin); err != nil {
			t.Fatal(err)
		}
		old := k
		k = key(t)
		if err := in(func(i *signin.SetUpIn) { i.Name, i.Zone, i.Email = "", "", "" }); err != nil {
			t.Fatal(err)
		}
		_, _, err = w.ByCookie(t.Context(), cookie, from)
		is(t, err, fault.Unauthenticated)
		_, err = w.Prove(t.Context(), "sign-in", origin, w.proof(t, old, "sign-in"), signin.From{})
		refused(t, err)
		p, err := w.Prove(t.Context(), "sign-in", origin, w.proof(t, k, "sign-in"), from)
		if err != nil || p.Name != "Ana" {
			t.Errorf("%+v, %v", p, err)
		}

		if secret, err = w.SetupLink(t.Context(), w.admin); err != nil {
			t.Fatal(err)
		}
		w.Clock.Move(24*time.Hour + time.Second)
		is(t, in(nil), fault.Unauthenticated)
		var links []string
		for range 6 {
			s, err := w.SetupLink(t.Context(), w.admin)
			if err != nil {
				t.Fatal(err)
			}
			links = append(links, s)
		}
		if _, err := w.Linked(t.Context(), links[0], from); err == nil {
			t.Error("six links are open")
		}
		if _, err := w.Linked(t.Context(), links[1], from); err != nil {
			t.Error(err)
		}
		_, err = w.SetupLink(t.Context(), "nobody")
		is(t, err, fault.NotFound)
	})
}

func TestOneLinkSetsUpOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		secret, err := w.SetupLink(t.Context(), w.admin)
		if err != nil {
			t.Fatal(err)
		}
		var ins []signin.SetUpIn
		for i := range 8 {
			p := w.proof(t, key(t), "set-up")
			ins = append(ins, signin.SetUpIn{Secret: secret, Challenge: p.Challenge, Name: fmt.Sprint("Ana ", i), Phrase: *p.Phrase})
		}
		won := race(8, func(i int) error {
			_, err := w.SetUp(context.Background(), ins[i], origin, signin.From{})
			return err
		})
		if won != 1 || w.count(t, `SELECT count(*) FROM credential`) != 1 {
			t.Errorf("%d of 8 set the account up", won)
		}
	})
}

func TestSignUp(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		p, err := w.signUp(t, "Ben", "ben@example.org", from)
		if err != nil || !p.Waiting || p.Name != "Ben" {
			t.Fatalf("%+v, %v", p, err)
		}
		_, err = w.signUp(t, " bEN ", "", signin.From{Address: "192.0.2.99"})
		is(t, err, fault.Conflict)
		_, err = w.signUp(t, "  ", "", from)
		is(t, err, fault.Invalid)
		_, err = w.signUp(t, "neB\u202e", "", from) // turns the text around it
		is(t, err, fault.Invalid)
		w.signUp(t, "Ben 2", "", from) //nolint:errcheck
		p, err = w.Prove(t.Context(), "sign-in", origin, w.proof(t, w.last, "sign-in"), from)
		if err != nil || !p.Waiting {
			t.Fatalf("%+v, %v", p, err)
		}
		cookie, _, err := w.Start(t.Context(), p, from)
		if err != nil {
			t.Fatal(err)
		}
		c, s, err := w.ByCookie(t.Context(), cookie, from)
		is(t, err, fault.Denied)
		if c != nil || s == nil || s.Account != p.Account || fault.From(err).Data["reason"] != "waiting" {
			t.Errorf("%v, %v, %v", c, s, err)
		}
		for i := range 3 {
			if _, err := w.signUp(t, fmt.Sprint("Cyd ", i), "", from); err != nil {
				t.Fatal(err)
			}
		}
		_, err = w.signUp(t, "Dan", "", from)
		is(t, err, fault.Unavailable)
		w.Clock.Move(61 * time.Minute)
		if _, err = w.signUp(t, "Dan", "", from); err != nil {
			t.Errorf("an hour later: %v", err)
		}
		err = w.DB.Write(t.Context(), func(tx *db.Tx) error {
			for i := range 194 {
				if _, err := account.Create(tx, account.Newcomer{Name: fmt.Sprint("Eve ", i), Zone: "UTC"}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.signUp(t, "Fay", "", signin.From{Address: "203.0.113.1"})
		is(t, err, fault.Unavailable)

		w.exec(t, `UPDATE account SET admitted_at = 1 WHERE name = 'Ben'`)
		w.Clock.Move(31 * 24 * time.Hour)
		if err := signin.Purge(t.Context(), w.DB); err != nil {
			t.Fatal(err)
		}
		if n := w.count(t, `SELECT count(*) FROM account`); n != 2 { // the admin and Ben
			t.Errorf("%d accounts stay", n)
		}
		if n := w.count(t, `SELECT count(*) FROM heap`); n != 4 {
			t.Errorf("%d heaps stay", n)
		}
	})
}
