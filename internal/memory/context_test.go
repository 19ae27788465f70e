package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"cairn/internal/apptest"
	"cairn/internal/fault"
)

type captured struct {
	ID, Result, Kind, Subject, Status, Note string
	Similar                                 []string
	Stripped                                int
}

type shown struct {
	ID, Heap, Kind, Subject, Statement, Status, Supersedes, Successor, Reason, Replaces, Actor string
	Private                                                                                    bool
}

func get[T any](t *testing.T, a *apptest.App, ctx context.Context, name, args string) (v T) {
	t.Helper()
	apptest.Decode(t, a.Call(t, ctx, name, args), &v)
	return v
}

// quote writes a value as JSON.
func quote(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// remember captures objects and gives what became of each.
func remember(t *testing.T, a *apptest.App, ctx context.Context, objects ...map[string]any) []captured {
	t.Helper()
	return get[struct{ Results []captured }](t, a, ctx, "capture_context", `{"objects":`+quote(objects)+`}`).Results
}

// about is an object to capture.
func about(kind, subject, statement string) map[string]any {
	m := map[string]any{"kind": kind, "statement": statement}
	if subject != "" {
		m["subject"] = subject
	}
	return m
}

func held(t *testing.T, a *apptest.App, args string) []shown {
	t.Helper()
	return get[struct{ Context []shown }](t, a, a.Person(t), "list_context", args).Context
}

func statements(list []shown) (out []string) {
	for _, o := range list {
		out = append(out, o.Statement)
	}
	return out
}

func object(t *testing.T, a *apptest.App, id string) shown {
	t.Helper()
	for _, o := range held(t, a, `{"limit":200}`) {
		if o.ID == id {
			return o
		}
	}
	t.Fatalf("there is no object %s", id)
	return shown{}
}

func found(t *testing.T, a *apptest.App, ctx context.Context, query string) string {
	t.Helper()
	return string(a.Call(t, ctx, "search", `{"query":`+quote(query)+`}`))
}

// both runs f on both databases with an agent that writes and one whose memories wait for the owner.
func both(t *testing.T, f func(t *testing.T, a *apptest.App, agent, asking context.Context)) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		f(t, a, a.As(t, a.Token(t, "")), a.As(t, a.Token(t, `{"name":"asks","rate":0,"propose_memory":true}`)))
	})
}

func TestCaptureKnowsWhatIsThere(t *testing.T) {
	both(t, func(t *testing.T, a *apptest.App, agent, _ context.Context) {
		var objects []map[string]any
		for i := range 20 {
			objects = append(objects, about("preference", "topic "+fmt.Sprint(i), "I prefer option "+fmt.Sprint(i)))
		}
		objects[17] = about("preference", " TOPIC  3", "i prefer Óption, 3!")
		res := remember(t, a, agent, objects...)
		if len(res) != 20 || res[17].ID != res[3].ID || res[17].Result != "existing" || res[3].Result != "created" || res[17].Status != "current" {
			t.Fatalf("%+v", res)
		}
		for i, r := range remember(t, a, agent, objects...) {
			if r.Result != "existing" || r.ID != res[i].ID {
				t.Errorf("%d again: %+v", i, r)
			}
		}
		if n := len(held(t, a, `{"limit":200}`)); n != 19 {
			t.Errorf("%d are held", n)
		}
		other := remember(t, a, agent, about("preference", "topic 3", "I don't prefer option 3"), about("belief", "topic 3", "I prefer option 3"), about("preference", "", "I really prefer the option 3"),
			about("preference", "else", "I prefer option 3"))
		if other[0].Result != "created" || len(other[0].Similar) != 1 || other[0].Similar[0] != res[3].ID {
			t.Errorf("a negation is another: %+v", other[0])
		}
		if other[1].Result != "created" || other[1].Similar != nil {
			t.Errorf("another kind is another: %+v", other[1])
		}
		if other[2].ID != res[3].ID {
			t.Errorf("without a subject the statement decides: %+v", other[2])
		}
		if other[3].Result != "created" {
			t.Errorf("another subject is another: %+v", other[3])
		}
	})
}

func TestCaptureAtEveryLimit(t *testing.T) {
	both(t, func(t *testing.T, a *apptest.App, agent, _ context.Context) {
		long, subject := strings.Repeat("ä", 1998)+"🙂!", strings.Repeat("主", 300)
		var objects []map[string]any
		for i := range 20 {
			objects = append(objects, about("original", subject, fmt.Sprintf("%04d", i)+string([]rune(long)[4:])))
		}
		res := remember(t, a, agent, objects...)
		for i, r := range res {
			if r.Result != "created" || r.Subject != subject {
				t.Fatalf("%d: %+v", i, r)
			}
		}
		if len(res[19].Similar) != 19 {
			t.Errorf("%d similar", len(res[19].Similar))
		}
		for _, bad := range []string{
			`{"objects":[]}`, `{"objects":` + quote(append(objects, objects[0])) + `}`,
			`{"objects":[` + quote(about("belief", "", long+"x")) + `]}`, `{"objects":[` + quote(about("belief", subject+"x", "x")) + `]}`,
			`{"objects":[` + quote(about("mood", "", "x")) + `]}`, `{"objects":[` + quote(about("belief", "", " \u200b\u202e ")) + `]}`, `{"objects":[{"kind":"belief"}]}`,
		} {
			a.Fails(t, agent, "capture_context", bad, fault.Invalid)
		}
		// Either all of a call is kept or nothing.
		if n := len(held(t, a, `{"limit":200}`)); n != 20 {
			t.Errorf("%d are held", n)
		}
		if l := get[struct{ Lines []any }](t, a, agent, "get_self", `{}`); len(l.Lines) != 20 {
			t.Errorf("%d lines", len(l.Lines))
		}
	})
}

func TestHiddenCharactersAreStrippedAndCounted(t *testing.T) {
	both(t, func(t *testing.T, a *apptest.App, agent, _ context.Context) {
		r := remember(t, a, agent, about("belief", "te\u200ba", "I \u202elove\u202c tea\U000E0041\U000E0042 👩‍👩‍👧 ❤️ می‌خواهم\n\tso"))[0]
		o := object(t, a, r.ID)
		if r.Stripped != 5 || o.Statement != "I love tea 👩‍👩‍👧 ❤️ می‌خواهم so" || o.Subject != "tea" {
			t.Errorf("%+v %+q", r, o.Statement)
		}
	})
}

func TestChangeOfMindOverMonths(t *testing.T) {
	both(t, func(t *testing.T, a *apptest.App, agent, asking context.Context) {
		tea := remember(t, a, agent, about("preference", "drink", "I prefer tea"))[0]
		a.Clock.Move(60 * 24 * 3600e9)
		type out struct{ ID, Supersedes, Result, Status, Note string }
		coffee := get[out](t, a, agent, "supersede_context", `{"id":"`+tea.ID+`","statement":"I prefer coffee","reason":"Early meetings"}`)
		if coffee.Supersedes != tea.ID || coffee.Status != "current" || coffee.Result != "created" {
			t.Fatalf("%+v", coffee)
		}
		if again := get[out](t, a, agent, "supersede_context", `{"id":"`+tea.ID+`","statement":"i prefer COFFEE."}`); again.ID != coffee.ID || again.Result != "existing" {
			t.Errorf("a retry: %+v", again)
		}
		f := a.Fails(t, agent, "supersede_context", `{"id":"`+tea.ID+`","statement":"I prefer water"}`, fault.Conflict)
		if f.Data["successor"] != coffee.ID {
			t.Errorf("the refusal doesn't name the successor: %+v", f)
		}
		a.Fails(t, agent, "supersede_context", `{"id":"`+coffee.ID+`","statement":"I prefer coffee!"}`, fault.Conflict)
		if r := remember(t, a, agent, about("preference", "drink", "I prefer tea"))[0]; r.ID != tea.ID || r.Status != "superseded" || len(r.Similar) != 1 || r.Similar[0] != coffee.ID {
			t.Errorf("what was given up is told as that: %+v", r)
		}
		a.Clock.Move(60 * 24 * 3600e9)
		back := get[out](t, a, agent, "supersede_context", `{"id":"`+coffee.ID+`","statement":"I prefer tea"}`)
		if back.ID == tea.ID || back.Status != "current" {
			t.Errorf("back at the first: %+v", back)
		}
		if o := object(t, a, tea.ID); o.Status != "superseded" || o.Successor != coffee.ID || o.Reason != "Early meetings" {
			t.Errorf("%+v", o)
		}
		if l := held(t, a, `{"status":"current"}`); len(l) != 1 || l[0].ID != back.ID || l[0].Supersedes != coffee.ID {
			t.Errorf("%+v", l)
		}
		// What was said elsewhere already becomes the successor.
		water := remember(t, a, agent, about("preference", "drink", "I prefer water"))[0]
		if len(water.Similar) != 1 || water.Similar[0] != back.ID {
			t.Errorf("%+v", water)
		}
		if o := get[out](t, a, agent, "supersede_context", `{"id":"`+back.ID+`","statement":"I prefer water"}`); o.ID != water.ID || o.Result != "existing" || object(t, a, back.ID).Successor != water.ID {
			t.Errorf("%+v", o)
		}
		a.Fails(t, agent, "supersede_context", `{"id":"01890a5d-ac96-774b-bcce-b302099a8057","statement":"x"}`, fault.NotFound)
		if s := found(t, a, asking, "prefer coffee"); !strings.Contains(s, "I prefer coffee (superseded)") {
			t.Error(s)
		}
	})
}

// Two agents supersede one object at once: one wins, the other is told.
func TestConcurrentSupersede(t *testing.T) {
	both(t, func(t *testing.T, a *apptest.App, agent, _ context.Context) {
		for round := range 5 {
			subject := fmt.Sprint("subject ", round)
			id := remember(t, a, agent, about("belief", subject, "The first view of "+subject))[0].ID
			var wg sync.WaitGroup
			errs, ids := make([]error, 8), make([]string, 8)
			for i := range errs {
				wg.Go(func() {
					res, err := a.Runner.Run(agent, "supersede_context", json.RawMessage(fmt.Sprintf(`{"id":"%s","statement":"View %d of it"}`, id, i)))
					var o struct{ ID string }
					if errs[i] = err; err == nil {
						_ = json.Unmarshal(res.JSON, &o)
					}
					ids[i] = o.ID
				})
			}
			wg.Wait()
			won := ""
			for _, id := range ids {
				if id != "" && won != "" {
					t.Fatal("two won")
				}
				won += id
			}
			for i, err := range errs {
				if ids[i] == "" && (!fault.Is(err, fault.Conflict) || fault.From(err).Data["successor"] != won) {
					t.Errorf("a loser heard %v", err)
				}
			}
			if o := object(t, a, id); won == "" || o.Successor != won {
				t.Errorf("%q won, the successor is %q", won, o.Successor)
			}
		}
	})
}

// Many agents say the same at once: it is there once.
func TestConcurrentCapture(t *testing.T) {
	both(t, func(t *testing.T, a *apptest.App, agent, _ context.Context) {
		var wg sync.WaitGroup
		ids := make([]string, 16)
		for i := range ids {
			wg.Go(func() { ids[i] = remember(t, a, agent, about("learning", "", "I learned to swim"))[0].ID })
		}
		wg.Wait()
		for _, id := range ids {
			if id != ids[0] {
				t.Fatalf("%q", ids)
			}
		}
	})
}

func TestPrivateReachesNoAgent(t *testing.T) {
	both(t, func(t *testing.T, a *apptest.App, agent, asking context.Context) {
		secret := "My therapist is called Zebulon"
		private := about("belief", "health", secret)
		private["private"] = true
		id := remember(t, a, agent, private)[0].ID
		later := remember(t, a, agent, about("decision", "health", "Zebulon was right"))[0].ID
		if !strings.Contains(found(t, a, agent, "Zebulon"), "Zebulon was right") {
			t.Error("what isn't private is found")
		}
		a.Call(t, a.Person(t), "set_context_private", `{"id":"`+later+`","private":true}`)
		const absent = "01890a5d-ac96-774b-bcce-b302099a8057"
		for _, ctx := range []context.Context{agent, asking} {
			for _, call := range [][2]string{{"search", `{"query":"Zebulon therapist"}`}, {"list_changes", `{}`}, {"get_self", `{}`}} {
				if s := string(a.Call(t, ctx, call[0], call[1])); strings.Contains(s, "Zebulon") || strings.Contains(s, id) || strings.Contains(s, later) {
					t.Errorf("%s: %s", call[0], s)
				}
			}
			for _, one := range []string{id, later} {
				for name, args := range map[string]string{"fetch": `{"id":"X"}`, "supersede_context": `{"id":"X","statement":"x"}`, "undo_change": `{"change_id":"X"}`} {
					f := a.Fails(t, ctx, name, strings.ReplaceAll(args, "X", one), fault.NotFound)
					g := a.Fails(t, ctx, name, strings.ReplaceAll(args, "X", absent), fault.NotFound)
					if strings.ReplaceAll(f.Message, one, absent) != g.Message || len(f.Data) != len(g.Data) {
						t.Errorf("%s tells: %q, absent %q", name, f.Message, g.Message)
					}
				}
				if s := string(a.Call(t, ctx, "list_changes", `{"thing":"`+one+`"}`)); !strings.Contains(s, `"count":0`) {
					t.Error(s)
				}
			}
			a.Fails(t, ctx, "list_context", `{}`, fault.Denied)
		}
		// Saying it again doesn't tell that it is there, nor does its subject.
		for _, kind := range []string{"belief", "decision"} {
			if r := remember(t, a, asking, about(kind, "health", secret))[0]; r.Result != "created" || r.Similar != nil {
				t.Errorf("%+v", r)
			}
		}
		if r := remember(t, a, agent, private)[0]; r.Result != "existing" {
			t.Errorf("a retry of the agent's own: %+v", r)
		}
		if s := found(t, a, a.Person(t), "Zebulon"); !strings.Contains(s, id) || !strings.Contains(s, later) {
			t.Errorf("the person finds it: %s", s)
		}
		a.Call(t, a.Person(t), "fetch", `{"id":"`+id+`"}`)
		a.Call(t, a.Person(t), "set_context_private", `{"id":"`+later+`","private":false}`)
		if !strings.Contains(found(t, a, agent, "Zebulon"), later) {
			t.Error("private no more")
		}
	})
}

// What was said of a thing while it was private stays the owner's, also when the thing is private no more.
func TestWhatWasPrivateStaysUnseenInTheRecord(t *testing.T) {
	both(t, func(t *testing.T, a *apptest.App, agent, _ context.Context) {
		me := a.Person(t)
		waits := get[struct{ Results []struct{ ID string } }](t, a, me, "capture_context", `{"objects":[{"kind":"belief","statement":"Zebulon snores","private":true}],"propose":true}`)
		id := waits.Results[0].ID
		a.Call(t, me, "edit_proposal", `{"id":"`+id+`","statement":"I sleep badly"}`)
		a.Call(t, me, "accept_proposal", `{"id":"`+id+`"}`)
		a.Call(t, me, "set_context_private", `{"id":"`+id+`","private":false}`)
		a.Call(t, me, "retire_context", `{"id":"`+id+`"}`)
		if s := string(a.Call(t, agent, "list_changes", `{"thing":"`+id+`"}`)); strings.Contains(s, "Zebulon") || !strings.Contains(s, `"count":1`) {
			t.Errorf("an agent sees %s", s)
		}
		if s := string(a.Call(t, me, "list_changes", `{"thing":"`+id+`"}`)); !strings.Contains(s, "Zebulon") || !strings.Contains(s, `"count":5`) {
			t.Errorf("the owner sees %s", s)
		}
	})
}
