package signin_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"cairn/internal/apptest"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/signin"
	"cairn/internal/who"
)

func (w *world) call(t *testing.T, ctx context.Context, name, args string, out any) {
	t.Helper()
	r, err := w.ops.Run(ctx, name, json.RawMessage(args))
	if err != nil {
		t.Fatalf("%s %s: %v", name, args, err)
	}
	if out != nil {
		apptest.Decode(t, r.JSON, out)
	}
}

func (w *world) callFails(t *testing.T, ctx context.Context, name, args string, kind fault.Kind) *fault.Error {
	t.Helper()
	r, err := w.ops.Run(ctx, name, json.RawMessage(args))
	if err == nil {
		t.Fatalf("%s %s worked: %s", name, args, r.JSON)
	}
	is(t, err, kind)
	return fault.From(err)
}

func TestSessionOperations(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		p := w.setUp(t, key(t), "Ana", "")
		_, one := w.in(t, p)
		cookie, two := w.in(t, p)
		var list struct {
			Count    int
			Sessions []struct {
				ID, Method, Address, Client, CreatedAt string
				Current                                bool
			}
		}
		w.call(t, two, "list_sessions", `{}`, &list)
		if list.Count != 2 || !list.Sessions[0].Current || list.Sessions[1].Current || list.Sessions[0].Method != "phrase" || list.Sessions[0].Address != from.Address || list.Sessions[0].Client != from.UserAgent {
			t.Errorf("%+v", list)
		}
		w.call(t, w.Person(t), "list_sessions", `{}`, &list)
		if list.Count != 2 || list.Sessions[0].Current || list.Sessions[1].Current {
			t.Errorf("the command line has no session: %+v", list)
		}
		w.callFails(t, two, "end_session", `{}`, fault.Invalid)
		w.callFails(t, two, "end_session", `{"session":"x","others":true}`, fault.Invalid)
		w.callFails(t, two, "end_session", `{"session":"nope"}`, fault.NotFound)
		w.callFails(t, two, "end_session", `{"session":"a b"}`, fault.NotFound)
		if _, err := w.signUp(t, "Ben", "", from); err != nil {
			t.Fatal(err)
		}
		w.exec(t, `UPDATE account SET admitted_at = 1 WHERE name = 'Ben'`)
		ben, err := w.Prove(t.Context(), "sign-in", origin, w.proof(t, w.last, "sign-in"), from)
		if err != nil {
			t.Fatal(err)
		}
		_, other := w.in(t, ben)
		w.callFails(t, other, "end_session", `{"session":"`+who.From(one).Session+`"}`, fault.NotFound)
		w.call(t, two, "end_session", `{"session":"`+who.From(one).Session+`"}`, nil)
		w.in(t, p)
		w.call(t, two, "end_session", `{"others":true}`, nil)
		w.call(t, two, "list_sessions", `{}`, &list)
		if list.Count != 1 || !list.Sessions[0].Current {
			t.Errorf("%+v", list)
		}
		if _, _, err := w.ByCookie(t.Context(), cookie, from); err != nil {
			t.Error(err)
		}
		w.callFails(t, w.As(t, w.Token(t, "")), "list_sessions", `{}`, fault.Denied)
	})
}

type methods struct {
	Count          int
	Methods        []struct{ ID, Kind, Name, Host string }
	Email          *string
	EmailConfirmed bool `json:"email_confirmed"`
}

func TestSignInOperations(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		cookie, ctx := w.in(t, w.setUp(t, key(t), "Ana", ""))
		var m methods
		w.call(t, ctx, "list_sign_in", `{}`, &m)
		if m.Count != 1 || m.Methods[0].Kind != "phrase" || m.Email != nil || m.EmailConfirmed {
			t.Fatalf("%+v", m)
		}
		phrase := m.Methods[0].ID
		w.callFails(t, ctx, "remove_sign_in", `{"id":"`+phrase+`"}`, fault.Conflict)
		w.callFails(t, ctx, "remove_sign_in", `{"id":"email"}`, fault.NotFound)
		w.callFails(t, ctx, "remove_sign_in", `{"id":"nope"}`, fault.NotFound)
		passkey := w.register(t, ctx, newDevice(w.admin))
		w.call(t, ctx, "list_sign_in", `{}`, &m)
		if m.Count != 2 || m.Methods[1].ID != passkey || m.Methods[1].Name != "Laptop" || m.Methods[1].Host != "cairn.example.org" {
			t.Errorf("%+v", m)
		}
		ids := []string{phrase, passkey}
		if won := race(2, func(i int) error {
			_, err := w.ops.Run(ctx, "remove_sign_in", json.RawMessage(`{"id":"`+ids[i]+`"}`))
			return err
		}); won != 1 {
			t.Fatalf("%d of the last two went", won)
		}

		var set struct{ Challenge string }
		w.call(t, ctx, "set_email", `{"email":"ana@example.org"}`, &set)
		w.call(t, ctx, "list_sign_in", `{}`, &m)
		if m.Count != 1 || m.Email == nil || *m.Email != "ana@example.org" || m.EmailConfirmed {
			t.Errorf("%+v", m)
		}
		last := m.Methods[0].ID
		w.callFails(t, ctx, "remove_sign_in", `{"id":"`+last+`"}`, fault.Conflict)
		w.callFails(t, ctx, "confirm_email", `{"challenge":"`+set.Challenge+`","code":"00000000"}`, fault.Invalid)
		w.call(t, ctx, "confirm_email", `{"challenge":"`+set.Challenge+`","code":"`+w.mail.code(t, 1)+`"}`, nil)
		without := signin.New(w.DB, w.Accounts, nil, nil, nil)
		if _, err := op.NewRunner(nil, without.Ops()...).Run(ctx, "remove_sign_in", json.RawMessage(`{"id":"`+last+`"}`)); !fault.Is(err, fault.Conflict) {
			t.Errorf("an address counts where no mail goes: %v", err)
		}
		w.call(t, ctx, "remove_sign_in", `{"id":"`+last+`"}`, nil)
		w.callFails(t, ctx, "remove_sign_in", `{"id":"email"}`, fault.Conflict)

		w.Clock.Move(16 * time.Minute)
		ctx = w.again(t, cookie)
		for name, args := range map[string]string{"remove_sign_in": `{"id":"email"}`, "set_email": `{"email":"b@example.org"}`, "create_setup_link": `{}`} {
			if f := w.callFails(t, ctx, name, args, fault.Denied); f.Data["reason"] != "prove_again" {
				t.Errorf("%s: %v", name, f.Data)
			}
		}
		w.call(t, w.Person(t), "set_email", `{"email":"b@example.org"}`, nil) // the machine itself
	})
}

func TestSetupLinkOperation(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		var out struct {
			Link      string
			ExpiresAt string `json:"expires_at"`
		}
		w.call(t, w.Person(t), "create_setup_link", `{}`, &out)
		secret, ok := strings.CutPrefix(out.Link, origin+"/setup#")
		if !ok || out.ExpiresAt == "" {
			t.Fatalf("%+v", out)
		}
		if l, err := w.Linked(t.Context(), secret, from); err != nil || l.Account != w.admin {
			t.Errorf("%+v, %v", l, err)
		}
		if _, err := w.signUp(t, "Ben", "", from); err != nil {
			t.Fatal(err)
		}
		w.exec(t, `UPDATE account SET admitted_at = 1 WHERE name = 'Ben'`)
		w.call(t, w.Person(t), "create_setup_link", `{"account":" BEN "}`, &out)
		w.callFails(t, w.Person(t), "create_setup_link", `{"account":"nobody"}`, fault.NotFound)
		ben, err := w.Prove(t.Context(), "sign-in", origin, w.proof(t, w.last, "sign-in"), from)
		if err != nil {
			t.Fatal(err)
		}
		_, ctx := w.in(t, ben)
		w.callFails(t, ctx, "create_setup_link", `{"account":"owner"}`, fault.Denied)
		w.call(t, ctx, "create_setup_link", `{"account":"Ben"}`, &out)
	})
}
