package account_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"cairn/internal/account"
	"cairn/internal/apptest"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/signin"
	"cairn/internal/who"
)

func TestOnlyTheAdminDecidesAboutAccounts(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		admin, ben := a.Person(t), a.Account(t, "Ben")
		err := a.DB.Write(context.Background(), func(tx *db.Tx) error {
			_, err := account.Create(tx, account.Newcomer{Name: "Nina", Zone: "UTC"})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for op, args := range map[string]string{"list_accounts": `{}`, "admit_account": `{"account":"Nina"}`, "disable_account": `{"account":"owner"}`, "enable_account": `{"account":"Nina"}`} {
			a.Fails(t, ben, op, args, fault.Denied)
			a.Fails(t, ben, op, strings.NewReplacer("Nina", "nobody", "owner", "nobody").Replace(args), fault.Denied) // nor do they learn who is there
		}
		for _, op := range []string{"admit_account", "disable_account", "enable_account"} {
			a.Fails(t, admin, op, `{"account":"nobody"}`, fault.NotFound)
		}
		a.Fails(t, admin, "disable_account", `{"account":"owner"}`, fault.Conflict)
		var list struct {
			Accounts []struct{ Name, State string }
		}
		apptest.Decode(t, a.Call(t, admin, "list_accounts", `{}`), &list)
		if len(list.Accounts) != 3 || list.Accounts[0].Name != "Nina" || list.Accounts[0].State != "waiting" {
			t.Errorf("who waits isn't first: %+v", list)
		}
		if _, err := a.Accounts.Owner(context.Background(), "Nina", true); err == nil {
			t.Error("who waits calls")
		}
		steps := []struct{ op, result, state string }{{"admit_account", "updated", "active"}, {"admit_account", "existing", "active"}, {"disable_account", "updated", "disabled"},
			{"disable_account", "existing", "disabled"}, {"enable_account", "updated", "active"}, {"enable_account", "existing", "active"}}
		for _, s := range steps {
			if got := string(a.Call(t, admin, s.op, `{"account":"nina"}`)); !strings.Contains(got, `"result":"`+s.result+`"`) || !strings.Contains(got, `"state":"`+s.state+`"`) {
				t.Errorf("%s: %s, want %s and %s", s.op, got, s.result, s.state)
			}
		}
		var admitted, disabled int
		if err := a.DB.One(admin, `SELECT (SELECT count(*) FROM audit_event WHERE event = 'accountAdmitted'), (SELECT count(*) FROM audit_event WHERE event = 'accountDisabled')`, nil, &admitted, &disabled); err != nil || admitted != 2 || disabled != 1 {
			t.Errorf("recorded: %d admitted, %d disabled, %v", admitted, disabled, err)
		}
	})
}

func TestDisabledAccountIsDeadEverywhere(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		ben, id := a.Account(t, "Ben"), ""
		id = who.From(ben).Account
		var token struct{ Secret string }
		apptest.Decode(t, a.Call(t, ben, "create_token", `{"name":"bens","rate":0}`), &token)
		cookie, _, err := a.Signin.Start(context.Background(), signin.Person{Account: id}, signin.From{Address: "192.0.2.1"})
		if err != nil {
			t.Fatal(err)
		}
		var connection string
		err = a.DB.Write(ben, func(tx *db.Tx) error {
			connection, err = account.LetIn(ben, tx, account.Letting{Account: id, Name: "Robin", Rights: account.Rights{Heaps: who.IDs(who.From(ben).Heaps)}, Scope: account.ScopeRead})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		alive := func() (n int) {
			if _, err := a.Accounts.ByToken(ben, token.Secret, ""); err == nil {
				n++
			}
			if _, err := a.Accounts.ByConnection(ben, connection, account.ScopeRead); err == nil {
				n++
			}
			if _, _, err := a.Signin.ByCookie(ben, cookie, signin.From{Address: "192.0.2.1"}); err == nil {
				n++
			}
			return n
		}
		if n := alive(); n != 3 {
			t.Fatalf("%d of three ways in work at first", n)
		}
		a.Call(t, a.Person(t), "disable_account", `{"account":"Ben"}`)
		if n := alive(); n != 0 {
			t.Errorf("%d ways in work", n)
		}
		if r := a.Do(t, "POST", "/api/list_heaps", `{}`, "Content-Type: application/json", "Authorization: Bearer "+token.Secret); r.Status != http.StatusUnauthorized {
			t.Errorf("/api: %d %s", r.Status, r.Body)
		}
		a.Call(t, a.Person(t), "enable_account", `{"account":"Ben"}`)
		if n := alive(); n != 0 {
			t.Errorf("%d ways in came back to life", n)
		}
		a.PersonNamed(t, "Ben")
	})
}

func TestTokensAndAgentsAreNoPersons(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		token := a.As(t, a.Token(t, ""))
		local, err := a.Accounts.Owner(context.Background(), "", false)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, o := range a.Runner.Ops() {
			if !o.PersonOnly {
				continue
			}
			n++
			args := o.Example
			if args == "" {
				args = `{}`
			}
			a.Fails(t, token, o.Name, args, fault.Denied)
			a.Fails(t, who.With(context.Background(), local), o.Name, args, fault.Denied)
		}
		if n < 20 {
			t.Errorf("only %d operations are for persons", n)
		}
	})
}

func TestUndoIsNoWayAroundRoles(t *testing.T) {
	clubs(t, func(t *testing.T, c *club) {
		var token struct{ Secret string }
		apptest.Decode(t, c.Call(t, c.as(t, "Olga"), "create_token", `{"name":"olgas","rate":0}`), &token)
		c.Call(t, c.as(t, "Olga"), "update_heap", `{"heap":"Club","name":"Society"}`)
		var id string
		if err := c.DB.One(context.Background(), `SELECT id FROM change WHERE kind = 'heap' AND effect = 'update' ORDER BY at DESC LIMIT 1`, nil, &id); err != nil {
			t.Fatal(err)
		}
		undo := func(ctx context.Context) string {
			res, err := c.Runner.Run(ctx, "undo_change", json.RawMessage(`{"change_id":"`+id+`"}`))
			if err != nil {
				return err.Error()
			}
			return string(res.JSON)
		}
		name := func() string {
			h, _ := who.From(c.as(t, "Olga")).ByID(c.heap)
			return h.Name
		}
		for _, nobody := range []string{"Stan", "Vic", "Eve"} {
			if s := undo(c.as(t, nobody)); name() != "Society" || strings.Contains(s, "something went wrong") {
				t.Errorf("%s took a rename back: %s", nobody, s)
			}
		}
		if s := undo(c.As(t, token.Secret)); name() != "Society" || !strings.Contains(s, "only a person") {
			t.Errorf("a token took a rename back: %s", s)
		}
		if s := undo(c.as(t, "Adam")); name() != "Club" {
			t.Errorf("an admin may: %s", s)
		}
	})
}

func TestAccountNamesAreClean(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		ben := a.Account(t, "Ben")
		a.Account(t, "Ann")
		for args, kind := range map[string]fault.Kind{`{"name":" "}`: fault.Invalid, `{"name":"a\u202eb"}`: fault.Invalid, `{"name":"ANN"}`: fault.Conflict, `{"zone":"Mars"}`: fault.Invalid, `{}`: fault.Invalid} {
			a.Fails(t, ben, "set_account", args, kind)
		}
		a.Call(t, ben, "set_account", `{"name":"  Ben   B. "}`)
		if c := who.From(a.PersonNamed(t, "ben b.")); c.AccountName != "Ben B." {
			t.Errorf("the name is %q", c.AccountName)
		}
	})
}

// Anybody may take somebody's id for a name. What an id names stays what it was.
func TestIDTakenForANameTakesNothing(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		admin := a.Person(t)
		eve, ben := a.Account(t, "Eve"), a.Account(t, "Ben") // Eve is the older: a look-up without an order finds her first
		id := who.From(ben).Account
		var heap struct{ ID string }
		apptest.Decode(t, a.Call(t, admin, "create_heap", `{"name":"Club"}`), &heap)
		err := a.DB.Write(admin, func(tx *db.Tx) error {
			for _, account := range []string{who.From(eve).Account, id} {
				if _, err := tx.Exec(`INSERT INTO member (heap, account, role, created_at) VALUES ($1, $2, 'viewer', $3)`, heap.ID, account, tx.Now); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		// A row that was just written is found first or last, as the database likes: so each of them is written last once.
		for range 2 {
			a.Call(t, eve, "set_account", `{"name":"`+id+`"}`)
			a.Call(t, admin, "set_member", `{"heap":"Club","account":"`+id+`","role":"admin"}`)
			role := func(ctx context.Context) string {
				h, _ := who.From(a.PersonNamed(t, who.From(ctx).AccountName)).ByID(heap.ID)
				return h.Role
			}
			eve = a.PersonNamed(t, id)
			if role(eve) != "viewer" || role(ben) != "admin" {
				t.Fatalf("Eve is %s, Ben is %s", role(eve), role(ben))
			}
			a.Call(t, admin, "set_member", `{"heap":"Club","account":"`+id+`","role":"viewer"}`)
			var link struct{ Link string }
			apptest.Decode(t, a.Call(t, admin, "create_setup_link", `{"account":"`+id+`"}`), &link)
			_, secret, _ := strings.Cut(link.Link, "#")
			if l, err := a.Signin.Linked(admin, secret, signin.From{}); err != nil || l.Account != id {
				t.Fatalf("the link is for %+v, %v", l, err)
			}
			a.Call(t, eve, "set_account", `{"name":"Eve"}`)
			a.Call(t, ben, "set_account", `{"zone":"Europe/Vienna"}`)
		}
		a.Call(t, eve, "set_account", `{"name":"`+id+`"}`)
		a.Call(t, admin, "disable_account", `{"account":"`+id+`"}`)
		if _, err := a.Accounts.Person(admin, id); !fault.Is(err, fault.TokenInactive) {
			t.Errorf("Ben goes on: %v", err)
		}
		var first, second struct{ ID string }
		apptest.Decode(t, a.Call(t, admin, "create_token", `{"name":"laptop"}`), &first)
		apptest.Decode(t, a.Call(t, admin, "create_token", `{"name":"`+first.ID+`"}`), &second)
		if got := string(a.Call(t, admin, "revoke_token", `{"token":"`+first.ID+`"}`)); !strings.Contains(got, `"id":"`+first.ID+`"`) {
			t.Errorf("revoked: %s", got)
		}
	})
}

// What names no heap goes where it went before, however many older heaps are shared with one.
func TestSharedHeapTakesNothingAway(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		admin, ben := a.Person(t), a.Account(t, "Ben") // the admin's heaps are older than Ben's
		own := who.From(ben).Heaps[0].ID
		a.Call(t, admin, "invite_member", `{"heap":"Personal","account":"Ben","role":"editor"}`)
		var list struct{ Invites []struct{ ID string } }
		apptest.Decode(t, a.Call(t, ben, "list_invites", `{}`), &list)
		a.Call(t, ben, "respond_invite", `{"invite_id":"`+list.Invites[0].ID+`","accept":true}`)
		c := who.From(a.PersonNamed(t, "Ben"))
		if h, err := c.Target("", nil); err != nil || len(c.Heaps) != 3 || h.ID != own {
			t.Errorf("new things go to %+v of %+v, %v", h, c.Heaps, err)
		}
	})
}

func TestTokensWantAFreshProof(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		ben := a.Account(t, "Ben")
		a.Call(t, ben, "create_token", `{"name":"early"}`)
		a.Clock.Move(16 * time.Minute)
		if f := a.Fails(t, ben, "create_token", `{"name":"late"}`, fault.Denied); f.Data["reason"] != "prove_again" {
			t.Errorf("%v", f)
		}
	})
}

// An agent belongs to its account: others find none, and wider rights want a fresh proof and the account itself.
func TestAgentsAreTheirAccountsOwn(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		admin, ben, ann := a.Person(t), a.Account(t, "Ben"), a.Account(t, "Ann")
		err := a.DB.Write(ben, func(tx *db.Tx) error {
			_, err := account.LetIn(ben, tx, account.Letting{Account: who.From(ben).Account, Name: "Robin", Scope: account.ScopeRead,
				Rights: account.Rights{Heaps: []string{who.From(ben).Heaps[0].ID}, Areas: []string{"tasks"}}})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ ID string }
		apptest.Decode(t, a.Call(t, ben, "get_agent", `{"agent":"Robin"}`), &got)
		for _, op := range []string{"get_agent", "update_agent", "pause_agents", "resume_agents", "disconnect_agent"} {
			for _, name := range []string{"Robin", got.ID} {
				a.Fails(t, ann, op, `{"agent":"`+name+`"}`, fault.NotFound)
			}
		}
		a.Fails(t, ann, "list_agents", `{"all":true}`, fault.Denied)
		a.Fails(t, ann, "pause_agents", `{"all":"server"}`, fault.Denied)
		a.Fails(t, ben, "pause_agents", `{}`, fault.Invalid)
		a.Fails(t, ben, "pause_agents", `{"agent":"Robin","all":"account"}`, fault.Invalid)
		old := *who.From(ben)
		old.Proved = 0
		for _, wider := range []string{`"write":true`, `"areas":["tasks","memory"]`, `"all_areas":true`, `"heaps":["Personal","Work"]`} {
			args := `{"agent":"` + got.ID + `",` + wider + `}`
			a.Fails(t, admin, "update_agent", args, fault.Denied)
			f := a.Fails(t, who.With(context.Background(), &old), "update_agent", args, fault.Denied)
			if f.Data["reason"] != "prove_again" {
				t.Errorf("%s: %v", wider, f)
			}
			a.Call(t, ben, "update_agent", args)
		}
		a.Call(t, who.With(context.Background(), &old), "update_agent", `{"agent":"Robin","write":false,"heaps":["Work"]}`) // narrower needs none
		a.Call(t, admin, "update_agent", `{"agent":"`+got.ID+`","areas":["tasks"]}`)
		a.Call(t, admin, "disconnect_agent", `{"agent":"`+got.ID+`"}`)
		if s := string(a.Call(t, ben, "disconnect_agent", `{"agent":"`+got.ID+`"}`)); !strings.Contains(s, `"existing"`) {
			t.Errorf("disconnected twice: %s", s)
		}
	})
}
