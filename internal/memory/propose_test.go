package memory_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"cairn/internal/apptest"
	"cairn/internal/fault"
)

type changed struct {
	ID, Result string
	Context    shown
}

func TestProposeAndAccept(t *testing.T) {
	both(t, func(t *testing.T, a *apptest.App, agent, asking context.Context) {
		me := a.Person(t)
		tea := remember(t, a, agent, about("preference", "drink", "I prefer tea"))[0]
		p := remember(t, a, asking, about("belief", "work", "I work best at night"))[0]
		if p.Status != "proposed" || p.Result != "created" {
			t.Fatalf("%+v", p)
		}
		s := get[struct{ ID, Supersedes, Status string }](t, a, asking, "supersede_context", `{"id":"`+tea.ID+`","statement":"I prefer coffee","reason":"the mornings"}`)
		c := get[captured](t, a, asking, "correct_context", `{"statement":"I don't prefer tea","subject":"drink"}`)
		if s.Status != "proposed" || c.Status != "proposed" || object(t, a, tea.ID).Status != "current" {
			t.Fatalf("a proposal did something: %+v %+v", s, c)
		}
		for _, id := range []string{p.ID, s.ID, c.ID} { // nor is it told to agents
			a.Fails(t, agent, "fetch", `{"id":"`+id+`"}`, fault.NotFound)
		}
		if out := found(t, a, agent, "night coffee"); strings.Contains(out, p.ID) || strings.Contains(out, s.ID) {
			t.Error(out)
		}
		l := get[struct {
			Count     int
			Proposals []shown
		}](t, a, me, "list_proposals", `{}`)
		if l.Count != 3 || l.Proposals[1].ID != s.ID || l.Proposals[1].Replaces != "I prefer tea" || l.Proposals[1].Reason != "the mornings" {
			t.Fatalf("%+v", l)
		}
		for _, name := range []string{"list_proposals", "accept_proposal", "edit_proposal", "decline_proposal", "retire_context", "set_context_private", "list_context"} {
			a.Fails(t, agent, name, `{"id":"`+p.ID+`"}`, fault.Denied)
		}
		// Accepting one supersedes, in the owner's words.
		got := get[changed](t, a, me, "accept_proposal", `{"id":"`+s.ID+`","statement":"I prefer coffee, mostly"}`)
		if got.Context.Status != "current" || got.Context.Statement != "I prefer coffee, mostly" {
			t.Errorf("%+v", got)
		}
		if o := object(t, a, tea.ID); o.Status != "superseded" || o.Successor != s.ID || o.Reason != "the mornings" {
			t.Errorf("%+v", o)
		}
		if again := get[changed](t, a, me, "accept_proposal", `{"id":"`+s.ID+`"}`); again.Result != "existing" {
			t.Errorf("%+v", again)
		}
		// Declined ones stay declined.
		a.Call(t, me, "edit_proposal", `{"id":"`+p.ID+`","subject":"working hours"}`)
		a.Call(t, me, "decline_proposal", `{"id":"`+p.ID+`","reason":"nonsense"}`)
		for _, ctx := range []context.Context{asking, agent} {
			if r := remember(t, a, ctx, about("belief", "", "I work best at NIGHT"))[0]; r.ID != p.ID || r.Status != "declined" || r.Result != "existing" {
				t.Errorf("%+v", r)
			}
		}
		a.Call(t, me, "decline_proposal", `{"id":"`+c.ID+`"}`)
		a.Fails(t, me, "edit_proposal", `{"id":"`+c.ID+`","statement":"x"}`, fault.Conflict)
		a.Fails(t, me, "edit_proposal", `{"id":"`+c.ID+`"}`, fault.Invalid)
		// The person may change their mind about that, and say it themselves.
		if r := remember(t, a, me, about("belief", "working hours", "I work best at night"))[0]; r.Result != "created" || r.Status != "current" {
			t.Errorf("%+v", r)
		}
		a.Fails(t, me, "accept_proposal", `{"id":"`+p.ID+`"}`, fault.Conflict)
		a.Call(t, me, "retire_context", `{"id":"`+s.ID+`","reason":"I drink neither"}`)
		if r := remember(t, a, agent, about("preference", "drink", "I prefer coffee mostly"))[0]; r.ID != s.ID || r.Status != "retired" {
			t.Errorf("what the owner retired stays so: %+v", r)
		}
	})
}

func TestTwoProposalsForOne(t *testing.T) {
	both(t, func(t *testing.T, a *apptest.App, agent, asking context.Context) {
		me := a.Person(t)
		tea := remember(t, a, agent, about("preference", "drink", "I prefer tea"))[0].ID
		one := get[captured](t, a, asking, "supersede_context", `{"id":"`+tea+`","statement":"I prefer milk"}`).ID
		two := get[captured](t, a, asking, "supersede_context", `{"id":"`+tea+`","statement":"I prefer water"}`).ID
		a.Call(t, me, "accept_proposal", `{"id":"`+one+`"}`)
		if f := a.Fails(t, me, "accept_proposal", `{"id":"`+two+`"}`, fault.Conflict); f.Data["successor"] != one {
			t.Errorf("%+v", f)
		}
		if o := object(t, a, two); o.Status != "proposed" {
			t.Errorf("%+v", o)
		}
	})
}

func TestAtMost200ProposalsWait(t *testing.T) {
	both(t, func(t *testing.T, a *apptest.App, _, asking context.Context) {
		other := a.As(t, a.Token(t, `{"name":"other","rate":0,"propose_memory":true}`))
		var first string
		for i := range 10 {
			var objects []map[string]any
			for j := range 20 {
				objects = append(objects, about("learning", "", fmt.Sprintf("I learned thing %d", 20*i+j)))
			}
			first = remember(t, a, asking, objects...)[0].ID
		}
		args := `{"objects":` + quote([]any{about("learning", "", "I learned thing 1"), about("learning", "", "One too many")}) + `}`
		a.Fails(t, asking, "capture_context", args, fault.Conflict)
		remember(t, a, other, about("learning", "", "Another agent's")) // each has its own
		a.Call(t, a.Person(t), "decline_proposal", `{"id":"`+first+`"}`)
		a.Call(t, asking, "capture_context", args)
		l := get[struct {
			Count int
			Next  string `json:"next_cursor"`
		}](t, a, a.Person(t), "list_proposals", `{"limit":200}`)
		m := get[struct{ Count int }](t, a, a.Person(t), "list_proposals", `{"limit":200,"cursor":"`+l.Next+`"}`)
		if l.Count != 200 || m.Count != 1 {
			t.Errorf("%d and %d", l.Count, m.Count)
		}
	})
}

func TestListContext(t *testing.T) {
	both(t, func(t *testing.T, a *apptest.App, agent, _ context.Context) {
		remember(t, a, agent, about("belief", "sea", "The sea is deep"), about("belief", "Sky", "The sky is wide"), about("decision", "sky", "I look up"))
		for args, want := range map[string]string{`{}`: "I look up|The sky is wide|The sea is deep", `{"kind":"belief"}`: "The sky is wide|The sea is deep", `{"subject":"SKY"}`: "I look up|The sky is wide",
			`{"query":"wide sky"}`: "The sky is wide", `{"query":"sky","kind":"decision"}`: "I look up", `{"status":"retired"}`: "", `{"heap":"Work"}`: ""} {
			if got := strings.Join(statements(held(t, a, args)), "|"); got != want {
				t.Errorf("%s: %q, want %q", args, got, want)
			}
		}
		a.Fails(t, a.Person(t), "list_context", `{"cursor":"x"}`, fault.Invalid)
	})
}

// An agent takes back what it did, but neither what the owner did nor, if it must ask, what others did.
func TestUndoOfContext(t *testing.T) {
	both(t, func(t *testing.T, a *apptest.App, agent, asking context.Context) {
		me := a.Person(t)
		type undone struct {
			Undone, Left []any
			ChangeIDs    []string `json:"change_ids"`
		}
		creation := func(id string) string {
			l := get[struct{ Changes []struct{ ID, Effect string } }](t, a, me, "list_changes", `{"thing":"`+id+`"}`)
			return l.Changes[len(l.Changes)-1].ID
		}
		mine := remember(t, a, agent, about("belief", "a", "Aye"))[0].ID
		waits := remember(t, a, asking, about("belief", "b", "Bee"))[0].ID
		if u := get[undone](t, a, asking, "undo_change", `{"change_id":"`+creation(mine)+`"}`); len(u.Undone) != 0 {
			t.Errorf("one that must ask undid another's: %+v", u)
		}
		a.Call(t, me, "accept_proposal", `{"id":"`+waits+`"}`)
		if u := get[undone](t, a, asking, "undo_change", `{"change_id":"`+creation(waits)+`"}`); len(u.Undone) != 0 {
			t.Errorf("undid what the owner accepted: %+v", u)
		}
		last := get[struct{ Changes []struct{ ID string } }](t, a, me, "list_changes", `{"thing":"`+waits+`"}`).Changes[0].ID
		if u := get[undone](t, a, agent, "undo_change", `{"change_id":"`+last+`"}`); len(u.Undone) != 0 {
			t.Errorf("undid the owner's decision: %+v", u)
		}
		// A change of mind goes back as a whole, and forth.
		next := get[captured](t, a, a.As(t, a.Token(t, `{"name":"fresh","rate":0}`)), "supersede_context", `{"id":"`+mine+`","statement":"Nay"}`).ID
		request := get[struct {
			Changes []struct{ ID, Request string }
		}](t, a, me, "list_changes", `{"thing":"`+next+`"}`).Changes[0].Request
		l := get[struct{ Changes []struct{ ID string } }](t, a, me, "list_changes", `{"thing":"`+mine+`"}`).Changes[0].ID
		if u := get[undone](t, a, me, "undo_change", `{"change_id":"`+l+`"}`); len(u.Undone) != 0 || len(u.Left) != 1 {
			t.Errorf("two stand: %+v", u)
		}
		u := get[undone](t, a, me, "undo_change", `{"request":"`+request+`"}`)
		if len(u.Undone) != 2 || object(t, a, mine).Status != "current" || strings.Contains(found(t, a, agent, "Nay"), next) {
			t.Errorf("%+v %+v", u, object(t, a, mine))
		}
		if r := remember(t, a, agent, about("belief", "a", "Nay"))[0]; r.ID == next || r.Result != "created" {
			t.Errorf("what was taken back isn't there: %+v", r)
		}
		run := get[struct{ Changes []struct{ Run string } }](t, a, me, "list_changes", `{"change_id":"`+u.ChangeIDs[0]+`"}`).Changes[0].Run
		if v := get[undone](t, a, me, "undo_change", `{"run":"`+run+`"}`); len(v.Undone) != 2 || object(t, a, mine).Successor != next || object(t, a, next).Status != "current" {
			t.Errorf("%+v", v)
		}
	})
}
