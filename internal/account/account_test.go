package account_test

import (
	"context"
	"strings"
	"testing"

	"cairn/internal/apptest"
	"cairn/internal/fault"
	"cairn/internal/who"
)

// club is an application with a shared heap, and people in every role.
type club struct {
	*apptest.App
	heap string // its id
}

// clubs runs f on both databases: Olga owns the heap Club; Adam is its admin, Eve its editor, Vic its viewer, and Stan is
// nobody there.
func clubs(t *testing.T, f func(t *testing.T, c *club)) {
	t.Helper()
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		c := &club{App: a}
		for _, name := range []string{"Olga", "Adam", "Eve", "Vic", "Stan"} {
			a.Account(t, name)
		}
		var out struct{ ID string }
		apptest.Decode(t, a.Call(t, c.as(t, "Olga"), "create_heap", `{"name":"Club","kind":"other"}`), &out)
		c.heap = out.ID
		for name, role := range map[string]string{"Adam": "admin", "Eve": "editor", "Vic": "viewer"} {
			c.join(t, name, role)
		}
		f(t, c)
	})
}

// as gives a ctx that calls as somebody, with the heaps they have now.
func (c *club) as(t testing.TB, name string) context.Context {
	t.Helper()
	if name == "admin" {
		return c.Person(t)
	}
	return c.PersonNamed(t, name)
}

// join invites somebody and lets them accept.
func (c *club) join(t testing.TB, name, role string) {
	t.Helper()
	c.Call(t, c.as(t, "Olga"), "invite_member", `{"heap":"`+c.heap+`","account":"`+name+`","role":"`+role+`"}`)
	c.Call(t, c.as(t, name), "respond_invite", `{"invite_id":"`+c.invite(t, name)+`","accept":true}`)
}

// invite gives the id of the invite that waits for somebody, or "".
func (c *club) invite(t testing.TB, name string) string {
	t.Helper()
	var out struct{ Invites []struct{ ID string } }
	apptest.Decode(t, c.Call(t, c.as(t, name), "list_invites", `{}`), &out)
	if len(out.Invites) == 0 {
		return ""
	}
	return out.Invites[0].ID
}

// role is what somebody is in the heap, "" = nobody.
func (c *club) role(t testing.TB, name string) string {
	t.Helper()
	h, _ := who.From(c.as(t, name)).ByID(c.heap)
	return h.Role
}

func (c *club) events(t testing.TB, event string) (n int) {
	t.Helper()
	if err := c.DB.One(context.Background(), `SELECT count(*) FROM audit_event WHERE event = $1`, []any{event}, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// refused runs an operation that must fail and gives its kind.
func (c *club) refused(t testing.TB, ctx context.Context, op, args string) (fault.Kind, string) {
	t.Helper()
	res, err := c.Runner.Run(ctx, op, []byte(args))
	if err == nil {
		t.Errorf("%s %s worked: %s", op, args, res.JSON)
		return 0, ""
	}
	return fault.From(err).Kind, fault.From(err).Message
}

func TestNobodyDoesMoreThanTheirRoleAllows(t *testing.T) {
	clubs(t, func(t *testing.T, c *club) {
		heap := `{"heap":"` + c.heap + `",`
		c.Account(t, "Guest")
		for _, m := range []struct{ op, args, may string }{
			{"get_heap", `{"heap":"` + c.heap + `"}`, "Olga Adam Eve Vic"},
			{"update_heap", heap + `"name":"Club"}`, "Olga Adam"},
			{"update_heap", heap + `"kind":"other"}`, "Olga Adam"},
			{"update_heap", heap + `"archived":false}`, "Olga"},
			{"set_member", heap + `"account":"Vic","role":"viewer"}`, "Olga Adam"},
			{"set_member", heap + `"account":"Vic","role":"editor"}`, "Olga Adam"},
			{"set_member", heap + `"account":"Vic","role":"viewer"}`, "Olga Adam"},
			{"set_member", heap + `"account":"Eve","role":"admin"}`, "Olga"},
			{"set_member", heap + `"account":"Eve","role":"editor"}`, "Olga"},
			{"invite_member", heap + `"account":"Guest","role":"viewer"}`, "Olga Adam"},
			{"invite_member", heap + `"account":"Guest","role":"admin"}`, "Olga"},
			{"remove_member", heap + `"account":"Adam"}`, "Olga"},
			{"remove_member", heap + `"account":"Guest"}`, "Olga Adam"},
		} {
			for _, name := range []string{"Stan", "Vic", "Eve", "Adam", "Olga"} {
				ctx := c.as(t, name)
				_, err := c.Runner.Run(ctx, m.op, []byte(m.args))
				switch {
				case strings.Contains(m.may, name):
					if err != nil && !(name == "Adam" && m.args == heap+`"account":"Adam"}`) {
						t.Errorf("%s may not %s %s: %v", name, m.op, m.args, err)
					}
				case name == "Stan": // absent and forbidden are alike
					kind, absent := c.refused(t, ctx, m.op, strings.ReplaceAll(m.args, c.heap, "01890000-0000-7000-8000-00000000abcd"))
					if !fault.Is(err, fault.NotFound) || kind != fault.NotFound || strings.ReplaceAll(fault.From(err).Message, c.heap, "x") != strings.ReplaceAll(absent, "01890000-0000-7000-8000-00000000abcd", "x") {
						t.Errorf("%s by a stranger: %v, of no heap: %s", m.op, err, absent)
					}
				case m.op == "remove_member" && name == "Adam" && err == nil: // leaves by himself
					c.join(t, "Adam", "admin")
				case m.op == "remove_member" && strings.Contains(m.args, "Guest") && fault.Is(err, fault.NotFound):
				case !fault.Is(err, fault.Denied):
					t.Errorf("%s as %s %s: %v, want denied", m.op, name, m.args, err)
				}
			}
			if c.role(t, "Adam") == "" {
				c.join(t, "Adam", "admin")
			}
		}
		if got := c.role(t, "Eve") + c.role(t, "Vic") + c.role(t, "Olga"); got != "editorviewerowner" {
			t.Errorf("roles in the end: %s", got)
		}
	})
}

func TestHeapIsHandedOver(t *testing.T) {
	clubs(t, func(t *testing.T, c *club) {
		olga := c.as(t, "Olga")
		c.Fails(t, olga, "remove_member", `{"heap":"Club","account":"Olga"}`, fault.Conflict)
		c.Fails(t, olga, "set_member", `{"heap":"Club","account":"Olga","role":"viewer"}`, fault.Conflict)
		c.Fails(t, olga, "set_member", `{"heap":"Club","account":"Stan","role":"owner"}`, fault.NotFound)
		c.Fails(t, c.as(t, "Adam"), "set_member", `{"heap":"Club","account":"Adam","role":"owner"}`, fault.Denied)
		c.Call(t, olga, "set_member", `{"heap":"Club","account":"Eve","role":"owner"}`)
		if c.role(t, "Eve") != "owner" || c.role(t, "Olga") != "admin" {
			t.Errorf("Eve is %s, Olga %s", c.role(t, "Eve"), c.role(t, "Olga"))
		}
		c.Fails(t, olga, "set_member", `{"heap":"Club","account":"Eve","role":"viewer"}`, fault.Denied)
		c.Fails(t, olga, "update_heap", `{"heap":"Club","archived":true}`, fault.Denied)
		c.Call(t, olga, "remove_member", `{"heap":"Club","account":"Olga"}`)
		if c.role(t, "Olga") != "" {
			t.Error("Olga didn't leave")
		}
		var view struct {
			Heap struct {
				OwnerName string `json:"owner_name"`
				Members   int
			}
		}
		apptest.Decode(t, c.Call(t, c.as(t, "Eve"), "get_heap", `{"heap":"Club"}`), &view)
		if view.Heap.OwnerName != "Eve" || view.Heap.Members != 3 {
			t.Errorf("%+v", view)
		}
		if a, b := c.events(t, "memberChanged"), c.events(t, "memberRemoved"); a != 1 || b != 1 {
			t.Errorf("recorded: %d changes, %d removals", a, b)
		}
	})
}

func TestMembersLeaveAndAreRemoved(t *testing.T) {
	clubs(t, func(t *testing.T, c *club) {
		c.Call(t, c.as(t, "Vic"), "remove_member", `{"heap":"Club","account":"Vic"}`)
		c.Fails(t, c.as(t, "Eve"), "remove_member", `{"heap":"Club","account":"Adam"}`, fault.Denied)
		eve := c.as(t, "Eve")
		c.Call(t, c.as(t, "Adam"), "remove_member", `{"heap":"Club","account":"Eve"}`)
		if s := string(c.Call(t, c.as(t, "Adam"), "remove_member", `{"heap":"Club","account":"Eve"}`)); !strings.Contains(s, "existing") {
			t.Errorf("removed twice: %s", s)
		}
		c.Fails(t, eve, "get_heap", `{"heap":"Club"}`, fault.NotFound)
		if c.role(t, "Eve") != "" || c.role(t, "Vic") != "" {
			t.Error("they are still members")
		}
		if n := c.events(t, "memberRemoved"); n != 2 {
			t.Errorf("%d removals are recorded", n)
		}
	})
}

func TestHeapNames(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		ben := a.Account(t, "Ben")
		a.Call(t, ben, "create_heap", `{"name":"  Garden   club "}`)
		for args, kind := range map[string]fault.Kind{
			`{"name":"garden CLUB"}`:  fault.Conflict,
			`{"name":"personal"}`:     fault.Conflict,
			`{"name":" "}`:            fault.Invalid,
			`{"name":"a\u001eb"}`:     fault.Invalid,
			`{"name":"a\u202eb"}`:     fault.Invalid,
			`{"name":"x","kind":"y"}`: fault.Invalid,
			`{}`:                      fault.Invalid,
		} {
			a.Fails(t, ben, "create_heap", args, kind)
		}
		a.Fails(t, ben, "update_heap", `{"heap":"Garden club","name":"Work"}`, fault.Conflict)
		a.Fails(t, ben, "update_heap", `{"heap":"Garden club"}`, fault.Invalid)
		a.Call(t, ben, "update_heap", `{"heap":"garden club","name":"Yard","kind":"work"}`)
		if s := string(a.Call(t, ben, "update_heap", `{"heap":"Yard","name":"Yard"}`)); !strings.Contains(s, `"existing"`) {
			t.Errorf("the same again: %s", s)
		}
		ben = a.PersonNamed(t, "Ben")
		if s := string(a.Call(t, ben, "list_heaps", `{}`)); strings.Contains(s, "Garden") || !strings.Contains(s, `"name":"Yard","kind":"work","role":"owner"`) {
			t.Errorf("heaps: %s", s)
		}
		a.Account(t, "Ann") // has a Personal of her own
		a.Call(t, a.PersonNamed(t, "Ann"), "create_heap", `{"name":"Yard"}`)
	})
}

func TestArchivedHeapIsOutOfEverybodysReach(t *testing.T) {
	clubs(t, func(t *testing.T, c *club) {
		var secret struct{ Secret string }
		apptest.Decode(t, c.Call(t, c.as(t, "Adam"), "create_token", `{"name":"adams","rate":0}`), &secret)
		c.Call(t, c.as(t, "Olga"), "invite_member", `{"heap":"Club","account":"Stan","role":"viewer"}`)
		invite := c.invite(t, "Stan")
		reach := func() (names string) {
			for _, name := range []string{"Olga", "Adam", "Eve", "Vic"} {
				if c.role(t, name) != "" {
					names += name
				}
			}
			if _, ok := who.From(c.As(t, secret.Secret)).ByID(c.heap); ok {
				names += "token"
			}
			return names
		}
		if got := reach(); got != "OlgaAdamEveVictoken" {
			t.Errorf("at first: %s", got)
		}
		c.Fails(t, c.as(t, "Adam"), "update_heap", `{"heap":"Club","archived":true}`, fault.Denied)
		c.Call(t, c.as(t, "Olga"), "update_heap", `{"heap":"Club","archived":true}`)
		if got := reach(); got != "" {
			t.Errorf("archived, in reach of: %s", got)
		}
		if c.invite(t, "Stan") != "" {
			t.Error("an invite to it waits")
		}
		c.Fails(t, c.as(t, "Stan"), "respond_invite", `{"invite_id":"`+invite+`","accept":true}`, fault.NotFound)
		if s := string(c.Call(t, c.as(t, "Eve"), "get_account", `{}`)); !strings.Contains(s, `"archived_at":"2026`) {
			t.Errorf("Eve's account doesn't show it: %s", s)
		}
		c.Fails(t, c.as(t, "Adam"), "update_heap", `{"heap":"Club","archived":false}`, fault.Denied)
		c.Call(t, c.as(t, "Olga"), "update_heap", `{"heap":"Club","archived":false}`)
		if got := reach(); got != "OlgaAdamEveVictoken" || c.invite(t, "Stan") != invite {
			t.Errorf("brought back: %s, invite %q", got, c.invite(t, "Stan"))
		}
	})
}

func TestInvites(t *testing.T) {
	clubs(t, func(t *testing.T, c *club) {
		olga, stan := c.as(t, "Olga"), c.as(t, "Stan")
		send := func(account, role string) string {
			t.Helper()
			return string(c.Call(t, olga, "invite_member", `{"heap":"Club","account":"`+account+`","role":"`+role+`"}`))
		}
		answer := func(accept string) string {
			return `{"invite_id":"` + c.invite(t, "Stan") + `","accept":` + accept + `}`
		}
		if known, unknown := send("stan", "viewer"), send("Nobody at all", "viewer"); known != unknown {
			t.Errorf("the answer tells who has an account: %s, %s", known, unknown)
		}
		c.Fails(t, olga, "invite_member", `{"heap":"Club","account":"Vic","role":"editor"}`, fault.Conflict)
		c.Fails(t, olga, "invite_member", `{"heap":"Club","account":"Stan","role":"owner"}`, fault.Invalid)
		first := c.invite(t, "Stan")
		if send("Stan", "editor"); c.invite(t, "Stan") != first {
			t.Error("invited twice, two invites wait")
		}
		c.Fails(t, c.as(t, "Eve"), "respond_invite", answer("true"), fault.NotFound)
		no := answer("false")
		c.Call(t, stan, "respond_invite", no)
		if s := string(c.Call(t, stan, "respond_invite", no)); !strings.Contains(s, `"existing"`) {
			t.Errorf("declined twice: %s", s)
		}
		c.Fails(t, stan, "respond_invite", strings.Replace(no, "false", "true", 1), fault.Conflict)
		if c.role(t, "Stan") != "" {
			t.Error("who declined is a member")
		}
		send("Stan", "editor")
		yes := answer("true")
		c.Call(t, stan, "respond_invite", yes)
		if s := string(c.Call(t, stan, "respond_invite", yes)); !strings.Contains(s, `"existing"`) || c.role(t, "Stan") != "editor" {
			t.Errorf("accepted twice: %s, is %s", s, c.role(t, "Stan"))
		}
		c.Call(t, olga, "remove_member", `{"heap":"Club","account":"Stan"}`)
		send("Stan", "viewer")
		withdrawn := answer("true")
		id := `{"invite":"` + c.invite(t, "Stan") + `"}`
		for _, name := range []string{"Stan", "Eve", "Vic"} {
			kind, text := c.refused(t, c.as(t, name), "withdraw_invite", id)
			if kind != fault.NotFound {
				t.Errorf("%s withdraws: %s", name, text)
			}
		}
		c.Fails(t, olga, "withdraw_invite", `{"invite":"01890000-0000-7000-8000-00000000abcd"}`, fault.NotFound)
		c.Call(t, c.as(t, "Adam"), "withdraw_invite", id)
		if s := string(c.Call(t, olga, "withdraw_invite", id)); !strings.Contains(s, `"existing"`) {
			t.Errorf("withdrawn twice: %s", s)
		}
		c.Fails(t, stan, "respond_invite", withdrawn, fault.Conflict)
		if c.role(t, "Stan") != "" {
			t.Error("a withdrawn invite let somebody in")
		}
		if a, b := c.events(t, "inviteSent"), c.events(t, "inviteDecided"); a != 7 || b != 6 {
			t.Errorf("recorded: %d sent, %d decided", a, b)
		}
	})
}

func TestInviteFallsWithItsSendersRights(t *testing.T) {
	clubs(t, func(t *testing.T, c *club) {
		c.Account(t, "Guest")
		c.Call(t, c.as(t, "Adam"), "invite_member", `{"heap":"Club","account":"Stan","role":"viewer"}`)
		c.Call(t, c.as(t, "Olga"), "invite_member", `{"heap":"Club","account":"Guest","role":"admin"}`)
		c.Call(t, c.as(t, "Olga"), "set_member", `{"heap":"Club","account":"Adam","role":"editor"}`)
		yes := `{"invite_id":"` + c.invite(t, "Stan") + `","accept":true}`
		c.Fails(t, c.as(t, "Stan"), "respond_invite", yes, fault.Conflict)
		c.Call(t, c.as(t, "Olga"), "set_member", `{"heap":"Club","account":"Adam","role":"owner"}`)
		c.Fails(t, c.as(t, "Guest"), "respond_invite", `{"invite_id":"`+c.invite(t, "Guest")+`","accept":true}`, fault.Conflict) // an admin makes no admins
		if c.role(t, "Stan")+c.role(t, "Guest") != "" {
			t.Error("they are members")
		}
		c.Call(t, c.as(t, "Stan"), "respond_invite", yes) // Adam may again
	})
}
