package chronicle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"cairn/internal/apptest"
	"cairn/internal/fault"
)

type person struct{ ID, Slug, Name string }

type episode struct {
	ID, Kind, At, Date, Summary string
	Detail                      *string
	Cut                         []string
	People                      []person
	ProjectID                   *string `json:"project_id"`
	QuestID                     *string `json:"quest_id"`
	Source                      string
	Private                     bool
}

type made struct {
	ID, Result, State, Date string
	ExternalRef             string `json:"external_ref"`
	Changed                 []string
	Unknown                 []string `json:"people_unknown"`
	Ambiguous               []struct {
		Name  string
		Slugs []string
	} `json:"people_ambiguous"`
	Episode, Entry episode
	Person         person
	Quest          struct {
		Status           string
		From, Until, Why *string
	}
	Note struct{ Title, Date string }
}

type timeline struct {
	Count      int
	Person     *person
	Episodes   []episode
	NextCursor string `json:"next_cursor"`
}

func recordCall[T any](t *testing.T, a *apptest.App, ctx context.Context, name, args string) (v T) {
	t.Helper()
	apptest.Decode(t, a.Call(t, ctx, name, args), &v)
	return v
}

func make1(t *testing.T, a *apptest.App, ctx context.Context, name, args string) made {
	t.Helper()
	return recordCall[made](t, a, ctx, name, args)
}

func past(t *testing.T, a *apptest.App, ctx context.Context, args string) timeline {
	t.Helper()
	return recordCall[timeline](t, a, ctx, "get_timeline", args)
}

func lines(tl timeline) (out []string) {
	for _, e := range tl.Episodes {
		out = append(out, e.Kind+" "+e.Summary)
	}
	return out
}

// recorded runs f on both databases, with the owner's ctx and an agent's.
func recorded(t *testing.T, f func(t *testing.T, a *apptest.App, owner, agent context.Context)) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) { f(t, a, a.Person(t), a.As(t, a.Token(t, ""))) })
}

func asJSON(v any) string { b, _ := json.Marshal(v); return string(b) }

func TestDailyNoteIsReplacedByItsRef(t *testing.T) {
	recorded(t, func(t *testing.T, a *apptest.App, owner, agent context.Context) {
		body := "# Today\n<script>alert(1)</script>\n\n* a"
		res := a.Result(t, agent, "upsert_daily_note", `{"external_ref":"n","date":"2026-08-10T23:00:00Z","title":" Brief ","body":`+asJSON(body)+`}`)
		var m made
		apptest.Decode(t, res.JSON, &m)
		if want := `{"id":"` + m.ID + `","result":"created","external_ref":"n","date":"2026-08-10"}`; len(res.Texts) != 1 || res.Texts[0] != want {
			t.Errorf("%q, want %q", res.Texts, want)
		}
		var page struct{ Text, URL string }
		apptest.Decode(t, a.Call(t, agent, "fetch", `{"id":"`+m.ID+`"}`), &page)
		if page.Text != body || !strings.HasSuffix(page.URL, "/notes/"+m.ID) {
			t.Errorf("%+v", page)
		}
		again := make1(t, a, agent, "upsert_daily_note", `{"external_ref":"n","date":"2026-08-09","title":"Later","body":"other words","source_url":"https://example.org/x"}`)
		if again.ID != m.ID || again.Result != "updated" || again.Date != "2026-08-09" || again.Note.Title != "Later" {
			t.Errorf("%+v", again)
		}
		var found struct{ Results []struct{ ID string } }
		apptest.Decode(t, a.Call(t, agent, "search", `{"query":"alert"}`), &found)
		if len(found.Results) != 0 {
			t.Errorf("old words are found: %+v", found)
		}
		if got := lines(past(t, a, agent, `{}`)); !slices.Equal(got, []string{"daily_note Later"}) {
			t.Error(got)
		}
		// The largest legal note, in characters, and one more.
		big := strings.Repeat("😀", 20000)
		make1(t, a, agent, "upsert_daily_note", `{"external_ref":"big","date":"2026-08-10","title":"b","body":"`+big+`"}`)
		a.Fails(t, agent, "upsert_daily_note", `{"external_ref":"big","date":"2026-08-10","title":"b","body":"`+big+`a"}`, fault.Invalid)
		for _, bad := range []string{`"date":"2026-13-01","body":"x"`, `"date":"-0044-03-15","body":"x"`, `"date":"2026-08-10","body":" "`, `"date":"2026-08-10","body":"x","source_url":"javascript:alert(1)"`} {
			a.Fails(t, agent, "upsert_daily_note", `{"external_ref":"bad","title":"b",`+bad+`}`, fault.Invalid)
		}
		// Undo of the replacement brings the first back, undo of the creation puts it into the trash, where it stays.
		undoNewest(t, a, owner, m.ID)
		if e := past(t, a, agent, `{}`).Episodes; !slices.ContainsFunc(e, func(e episode) bool { return e.Summary == "Brief" && *e.Detail == body }) {
			t.Errorf("%+v", e)
		}
		undoNewest(t, a, owner, m.ID)
		gone := a.Result(t, agent, "upsert_daily_note", `{"external_ref":"n","date":"2026-08-09","title":"Again","body":"x"}`)
		if want := `{"id":"` + m.ID + `","result":"existing","external_ref":"n","date":"2026-08-10","state":"trashed"}`; gone.Texts[0] != want {
			t.Errorf("%s, want %s", gone.Texts[0], want)
		}
		if got := lines(past(t, a, agent, `{}`)); !slices.Equal(got, []string{"daily_note b"}) {
			t.Error(got)
		}
	})
}

// undoNewest takes back the newest change of a thing that is not an undoing and not undone.
func undoNewest(t *testing.T, a *apptest.App, ctx context.Context, thing string) {
	t.Helper()
	var l struct {
		Changes []struct {
			ID     string
			Undoes *string
		}
	}
	apptest.Decode(t, a.Call(t, ctx, "list_changes", `{"thing":"`+thing+`"}`), &l)
	undone := map[string]bool{}
	for _, c := range l.Changes {
		if c.Undoes != nil {
			undone[*c.Undoes] = true
		} else if !undone[c.ID] {
			var out struct{ Left []any }
			apptest.Decode(t, a.Call(t, ctx, "undo_change", `{"change_id":"`+c.ID+`"}`), &out)
			if len(out.Left) > 0 {
				t.Fatalf("left: %+v", out.Left)
			}
			return
		}
	}
	t.Fatal("nothing to undo")
}

func TestDecisionIsAddedOnce(t *testing.T) {
	recorded(t, func(t *testing.T, a *apptest.App, owner, agent context.Context) {
		res := a.Result(t, agent, "add_decision", `{"external_ref":"d","title":"We move to Lisbon","detail":"The sea.","decided_at":"1582-10-10T12:00:00+02:00"}`)
		var m made
		apptest.Decode(t, res.JSON, &m)
		if want := `{"id":"` + m.ID + `","result":"created","external_ref":"d"}`; res.Texts[0] != want {
			t.Error(res.Texts)
		}
		if again := make1(t, a, agent, "add_decision", `{"external_ref":"d","title":"Other"}`); again.ID != m.ID || again.Result != "existing" {
			t.Errorf("%+v", again)
		}
		e := past(t, a, agent, `{"since":"1582-10-10","until":"1582-10-10"}`).Episodes
		if len(e) != 1 || e[0].At != "1582-10-10T10:00:00.000Z" || *e[0].Detail != "The sea." {
			t.Errorf("%+v", e)
		}
		var found struct {
			Results []struct{ ID, Title, URL string }
		}
		apptest.Decode(t, a.Call(t, agent, "search", `{"query":"sea"}`), &found)
		if len(found.Results) == 0 || !slices.ContainsFunc(found.Results, func(r struct{ ID, Title, URL string }) bool { return r.ID == m.ID }) {
			t.Errorf("%+v", found)
		}
		undoNewest(t, a, owner, m.ID)
		if gone := make1(t, a, agent, "add_decision", `{"external_ref":"d","title":"Other"}`); gone.State != "trashed" || gone.Result != "existing" {
			t.Errorf("%+v", gone)
		}
	})
}

func TestDecisionIsContextToo(t *testing.T) {
	recorded(t, func(t *testing.T, a *apptest.App, owner, agent context.Context) {
		type held struct {
			ID, Kind, Statement, Status, At string
		}
		add := func(ctx context.Context, args string) string {
			var m struct {
				Decision *struct {
					Title     string
					ContextID string `json:"context_id"`
				}
			}
			apptest.Decode(t, a.Call(t, ctx, "add_decision", args), &m)
			if m.Decision == nil {
				return ""
			}
			return m.Decision.ContextID
		}
		find := func(id string) (h held) {
			var l struct{ Context []held }
			apptest.Decode(t, a.Call(t, owner, "list_context", `{}`), &l)
			if i := slices.IndexFunc(l.Context, func(h held) bool { return h.ID == id }); i >= 0 {
				return l.Context[i]
			}
			t.Fatalf("no object %s in %+v", id, l)
			return h
		}
		id := add(agent, `{"external_ref":"d","title":"We move to Lisbon","decided_at":"2026-05-01T10:00:00Z"}`)
		if got, want := find(id), (held{id, "decision", "We move to Lisbon", "current", "2026-05-01T10:00:00.000Z"}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		waits := a.As(t, a.Token(t, `{"name":"waits","rate":0,"propose_memory":true}`))
		boat := find(add(waits, `{"external_ref":"p","title":"We buy a boat"}`))
		if boat.Status != "proposed" {
			t.Errorf("%+v", boat)
		}
		if add(waits, `{"external_ref":"p","title":"x"}`) != boat.ID || add(agent, `{"external_ref":"p","title":"x"}`) != "" {
			t.Error("who proposed it isn't told of it, or another is")
		}
		// It's decided for agents once the owner says so.
		told := func() bool {
			return strings.Contains(string(a.Call(t, agent, "get_timeline", `{}`))+string(a.Call(t, agent, "search", `{"query":"boat"}`)), "buy a boat")
		}
		if told() {
			t.Error("agents see a decision that waits for the owner")
		}
		a.Call(t, owner, "accept_proposal", `{"id":"`+boat.ID+`"}`)
		if !told() {
			t.Error("agents don't see a decision that was accepted")
		}
		// What the owner makes private is private as the decision too.
		a.Call(t, owner, "set_context_private", `{"id":"`+id+`","private":true}`)
		if add(agent, `{"external_ref":"d","title":"x"}`) != "" {
			t.Error("the answer tells of a private decision")
		}
		saw := string(a.Call(t, agent, "get_timeline", `{"since":"2026-05-01"}`)) + string(a.Call(t, agent, "search", `{"query":"Lisbon"}`)) + string(a.Call(t, agent, "list_changes", `{}`))
		if strings.Contains(saw, "Lisbon") {
			t.Error(saw)
		}
		if mine := string(a.Call(t, owner, "get_timeline", `{"since":"2026-05-01"}`)); !strings.Contains(mine, "Lisbon") {
			t.Error(mine)
		}
	})
}

func TestRefIsLookedUpInEveryHeapGranted(t *testing.T) {
	recorded(t, func(t *testing.T, a *apptest.App, owner, agent context.Context) {
		work := a.As(t, a.Token(t, `{"name":"w","rate":0,"heaps":["Work"]}`))
		for name, more := range map[string]string{"upsert_daily_note": `"date":"2026-08-10","title":"t","body":"b"`, "add_decision": `"title":"t"`, "add_episode": `"occurred_at":"2026-08-10","summary":"s"`} {
			args := `{"external_ref":"r",` + more + `}`
			first := make1(t, a, work, name, args)
			if again := make1(t, a, agent, name, args); again.ID != first.ID {
				t.Errorf("%s: %+v", name, again)
			}
			personal := a.As(t, a.Token(t, `{"name":"p`+name+`","rate":0,"heaps":["Personal"]}`))
			if other := make1(t, a, personal, name, args); other.Result != "created" || other.ID == first.ID {
				t.Errorf("%s: %+v", name, other)
			}
			if f := a.Fails(t, agent, name, args, fault.Conflict); f.Data["candidates"] == nil {
				t.Errorf("%+v", f)
			}
		}
		reader := a.As(t, a.Token(t, `{"name":"ro","rate":0,"read_only":true}`))
		a.Fails(t, reader, "add_decision", `{"external_ref":"x","title":"t"}`, fault.Scope)
		var wg sync.WaitGroup
		ids := make([]string, 12)
		for i := range ids {
			wg.Go(func() {
				res, err := a.Runner.Run(agent, "add_episode", json.RawMessage(`{"external_ref":"race","occurred_at":"2026-08-10","summary":"s"}`))
				if err != nil {
					t.Error(err)
					return
				}
				var m made
				_ = json.Unmarshal(res.JSON, &m)
				ids[i] = m.ID
			})
		}
		wg.Wait()
		if slices.Sort(ids); ids[0] == "" || ids[0] != ids[len(ids)-1] {
			t.Error(ids)
		}
	})
}

func TestEpisodeKnowsPeopleAndMakesNone(t *testing.T) {
	recorded(t, func(t *testing.T, a *apptest.App, owner, agent context.Context) {
		anna := make1(t, a, owner, "person", `{"name":"Anna Łęcka","aliases":["Mum","A. L."]}`)
		if anna.Person.Slug != "anna-łecka" || anna.Result != "created" {
			t.Errorf("%+v", anna)
		}
		if again := make1(t, a, owner, "person", `{"name":"mum"}`); again.ID != anna.ID || again.Result != "existing" {
			t.Errorf("%+v", again)
		}
		make1(t, a, owner, "person", `{"name":"Sam One","aliases":["Sam"]}`)
		make1(t, a, owner, "person", `{"name":"Sam Two"}`)
		call := func(args string) { make1(t, a, owner, "person", args) }
		call(`{"slug":"sam-two","aliases":["SAM"]}`)
		quest := make1(t, a, owner, "quest", `{"title":"Sail","from":"2026-01-01","until":"2026-12-31"}`)
		var project struct{ ID string }
		apptest.Decode(t, a.Call(t, owner, "create_project", `{"name":"Boat"}`), &project)
		m := make1(t, a, agent, "add_episode", `{"external_ref":"e","occurred_at":"2026-08-09T20:00:00+02:00","summary":"Dinner","kind":"Family  Day","detail":"Fish",
			"people":["MUM","anna-łecka","Nobody","sam"],"project_id":"`+strings.ToUpper(project.ID)+`","quest_id":"`+quest.ID+`"}`)
		if m.Result != "created" || !slices.Equal(m.Unknown, []string{"Nobody"}) || len(m.Ambiguous) != 1 || len(m.Ambiguous[0].Slugs) != 2 {
			t.Errorf("%+v", m)
		}
		want := episode{ID: m.ID, Kind: "family_day", At: "2026-08-09T18:00:00.000Z", Date: "2026-08-09", Summary: "Dinner", Detail: m.Episode.Detail,
			People: []person{{Slug: "anna-łecka", Name: "Anna Łęcka"}}, ProjectID: &project.ID, QuestID: &quest.ID, Source: m.Episode.Source}
		if diff := cmp.Diff(want, m.Episode); diff != "" {
			t.Error(diff)
		}
		if again := make1(t, a, agent, "add_episode", `{"external_ref":"e","occurred_at":"2020-01-01","summary":"Other","people":["Nobody"]}`); again.Result != "existing" || again.Episode.Summary != "Dinner" || len(again.Unknown) != 1 {
			t.Errorf("%+v", again)
		}
		tl := past(t, a, agent, `{"person_slug":"anna-łecka"}`)
		if tl.Person == nil || tl.Person.Name != "Anna Łęcka" || tl.Count != 1 {
			t.Errorf("%+v", tl)
		}
		if people := recordCall[struct{ Count int }](t, a, owner, "list_people", `{}`); people.Count != 3 {
			t.Errorf("%+v", people)
		}
		if one := recordCall[struct{ Episodes []episode }](t, a, owner, "get_person", `{"person":"Mum"}`); len(one.Episodes) != 1 {
			t.Errorf("%+v", one)
		}
		for args, kind := range map[string]fault.Kind{
			`"occurred_at":"2026-08-09","kind":"journal"`:                                    fault.Invalid,
			`"occurred_at":"2026-08-09","project_id":"01890a5d-ac96-774b-bcce-b302099a8057"`: fault.NotFound,
			`"occurred_at":"2026-08-09","quest_id":"01890a5d-ac96-774b-bcce-b302099a8057"`:   fault.NotFound,
			`"occurred_at":"2026-08-09","people":["x"," "]`:                                  fault.Invalid,
			`"occurred_at":"0000-12-31"`:                                                     fault.Invalid,
			`"occurred_at":"44 BC"`:                                                          fault.Invalid,
			`"occurred_at":""`:                                                               fault.Invalid,
		} {
			a.Fails(t, agent, "add_episode", `{"external_ref":"f","summary":"s",`+args+`}`, kind)
		}
		a.Fails(t, agent, "get_timeline", `{"person_slug":"nobody"}`, fault.NotFound)
		noTasks := a.As(t, a.Token(t, `{"name":"m","rate":0,"areas":["memory"]}`))
		a.Fails(t, noTasks, "add_episode", `{"external_ref":"g","occurred_at":"2026-08-09","summary":"s","project_id":"`+project.ID+`"}`, fault.NotFound)
		// Who is gone is no part of it any more; who comes back is.
		undoNewest(t, a, owner, anna.ID)
		if e := past(t, a, agent, `{}`).Episodes; len(e) != 1 || len(e[0].People) != 0 {
			t.Errorf("%+v", e)
		}
		undoNewest(t, a, owner, m.ID)
		if gone := make1(t, a, agent, "add_episode", `{"external_ref":"e","occurred_at":"2020-01-01","summary":"Other"}`); gone.State != "trashed" {
			t.Errorf("%+v", gone)
		}
	})
}

func TestOwnersRecordIsForPersons(t *testing.T) {
	recorded(t, func(t *testing.T, a *apptest.App, owner, agent context.Context) {
		for name, args := range map[string]string{"journal": `{"text":"x"}`, "evidence": `{"statement":"x"}`, "meeting": `{"summary":"x"}`, "quest": `{"title":"x"}`,
			"blueprint": `{"section":"values","text":"x"}`, "person": `{"name":"x"}`, "list_people": `{}`, "list_quests": `{}`, "get_person": `{"person":"x"}`} {
			a.Fails(t, agent, name, args, fault.Denied)
			if strings.HasPrefix(name, "get_") {
				continue
			}
			first := make1(t, a, owner, name, args)
			if strings.HasPrefix(name, "list_") || name == "person" {
				continue
			}
			if name == "blueprint" {
				if again := make1(t, a, owner, name, args); again.Result != "existing" || again.ID != first.ID {
					t.Errorf("%+v", again)
				}
				continue
			}
			if second := make1(t, a, owner, name, args); second.ID == first.ID || second.Result != "created" {
				t.Errorf("%s: %+v", name, second)
			}
		}
		a.Fails(t, owner, "journal", `{}`, fault.Invalid)
		a.Fails(t, owner, "quest", `{"title":"x","from":"2026-02-01","until":"2026-01-01"}`, fault.Invalid)
		q := make1(t, a, owner, "quest", `{"title":"y","why":"because","until":"2026-01-01"}`)
		changed := make1(t, a, owner, "quest", `{"id":"`+q.ID+`","status":"done","clear":["until"]}`)
		if !slices.Equal(changed.Changed, []string{"status", "until_date"}) || changed.Quest.Until != nil || *changed.Quest.Why != "because" {
			t.Errorf("%+v", changed)
		}
		undoNewest(t, a, owner, q.ID)
		list := recordCall[struct {
			Quests []struct {
				ID     string
				Until  *string
				Status string
			}
		}](t, a, owner, "list_quests", `{"limit":1}`)
		if len(list.Quests) != 1 || list.Quests[0].ID != q.ID || *list.Quests[0].Until != "2026-01-01" {
			t.Errorf("%+v", list)
		}
		a.Fails(t, owner, "journal", `{"id":"`+q.ID+`","text":"x"}`, fault.NotFound)
		ev := make1(t, a, owner, "evidence", `{"statement":"I sailed","quest_id":"`+q.ID+`","at":"2026-08-01"}`)
		if *ev.Entry.QuestID != q.ID || ev.Entry.At != "2026-08-01T00:00:00.000Z" {
			t.Errorf("%+v", ev)
		}
		a.Fails(t, owner, "journal", `{"id":"`+ev.ID+`","text":"x"}`, fault.NotFound)
		make1(t, a, owner, "person", `{"name":"Bo"}`)
		meet := make1(t, a, owner, "meeting", `{"summary":"Talk","people":["bo","Zed"],"at":"2026-08-02T10:00"}`)
		if len(meet.Entry.People) != 1 || !slices.Equal(meet.Unknown, []string{"Zed"}) {
			t.Errorf("%+v", meet)
		}
		if m := make1(t, a, owner, "meeting", `{"id":"`+meet.ID+`","people":[]}`); len(m.Entry.People) != 0 || !slices.Equal(m.Changed, []string{"people"}) {
			t.Errorf("%+v", m)
		}
		undoNewest(t, a, owner, meet.ID)
		if e := past(t, a, owner, `{"person_slug":"bo"}`).Episodes; len(e) != 1 || e[0].Summary != "Talk" {
			t.Errorf("%+v", e)
		}
		// An agent sees what isn't private, and takes none of it back.
		var l struct{ Changes []struct{ ID string } }
		apptest.Decode(t, a.Call(t, agent, "list_changes", `{"thing":"`+ev.ID+`"}`), &l)
		var out struct{ Left, Undone []any }
		apptest.Decode(t, a.Call(t, agent, "undo_change", `{"change_id":"`+l.Changes[0].ID+`"}`), &out)
		if len(out.Undone) != 0 || len(out.Left) != 1 {
			t.Errorf("%+v", out)
		}
	})
}

// What is private reaches no agent by any tool, also not what it was before, nor what was said of it while it was.
func TestPrivateThingsReachNoAgent(t *testing.T) {
	recorded(t, func(t *testing.T, a *apptest.App, owner, agent context.Context) {
		p := make1(t, a, owner, "person", `{"name":"Zenobia Secretperson","aliases":["Zeno"],"private":true}`)
		make1(t, a, owner, "person", `{"name":"Open Olga"}`)
		ids := []string{p.ID}
		for name, args := range map[string]string{"journal": `{"text":"secretword journal","private":true}`, "evidence": `{"statement":"secretword evidence","private":true}`,
			"meeting": `{"summary":"secretword meeting","people":["Olga","Zeno"],"private":true}`, "blueprint": `{"section":"beliefs","text":"secretword belief","private":true}`} {
			ids = append(ids, make1(t, a, owner, name, args).ID)
		}
		open := make1(t, a, owner, "meeting", `{"summary":"plain meeting","people":["Open Olga","Zenobia Secretperson"]}`)
		late := make1(t, a, owner, "journal", `{"text":"secretword, public at first"}`) // made private afterwards
		make1(t, a, owner, "journal", `{"id":"`+late.ID+`","private":true}`)
		ids = append(ids, late.ID)
		freed := make1(t, a, owner, "journal", `{"text":"secretword draft","private":true}`)
		make1(t, a, owner, "journal", `{"id":"`+freed.ID+`","text":"clean text"}`)
		make1(t, a, owner, "journal", `{"id":"`+freed.ID+`","private":false}`)
		episode := make1(t, a, agent, "add_episode", `{"external_ref":"e","occurred_at":"2026-08-10","summary":"walk","people":["Zeno","zenobia-secretperson","Zenobia Secretperson"]}`)
		if len(episode.Unknown) != 3 {
			t.Errorf("%+v", episode)
		}
		a.Fails(t, agent, "get_timeline", `{"person_slug":"zenobia-secretperson"}`, fault.NotFound)
		var said []string
		see := func(name, args string) {
			res := a.Result(t, agent, name, args)
			said = append(said, name+": "+string(res.JSON))
		}
		see("get_timeline", `{"since":"0001-01-01","until":"9999-12-31"}`)
		see("list_changes", `{}`)
		see("list_changes", `{"thing":"`+open.ID+`"}`)
		see("list_changes", `{"thing":"`+freed.ID+`"}`)
		for _, q := range []string{"secretword", "Zenobia", "Zeno meeting journal", "belief"} {
			see("search", `{"query":"`+q+`"}`)
		}
		for _, id := range ids {
			see("list_changes", `{"thing":"`+id+`"}`)
			a.Fails(t, agent, "fetch", `{"id":"`+id+`"}`, fault.NotFound)
			a.Call(t, owner, "fetch", `{"id":"`+id+`"}`)
			var l struct{ Changes []struct{ ID, Run string } }
			apptest.Decode(t, a.Call(t, owner, "list_changes", `{"thing":"`+id+`"}`), &l)
			if len(l.Changes) == 0 {
				t.Fatal("the owner sees no change")
			}
			a.Fails(t, agent, "undo_change", `{"change_id":"`+l.Changes[0].ID+`","dry_run":true}`, fault.NotFound)
		}
		all := strings.Join(said, "\n")
		for _, secret := range append(slices.Clone(ids), "secretword", "Zeno", "zeno") {
			if i := strings.Index(all, secret); i >= 0 {
				t.Errorf("an agent saw %q: …%s…", secret, all[max(0, i-300):min(len(all), i+100)])
			}
		}
		for _, there := range []string{"plain meeting", "clean text", "Olga"} {
			if !strings.Contains(all, there) {
				t.Errorf("an agent should see %q", there)
			}
		}
		mine := string(a.Call(t, owner, "get_timeline", `{}`)) + string(a.Call(t, owner, "search", `{"query":"secretword"}`))
		for _, there := range []string{"secretword journal", "secretword evidence", "secretword meeting", "Zenobia", "Blueprint: beliefs"} {
			if !strings.Contains(mine, there) {
				t.Errorf("the owner should see %q in %s", there, mine)
			}
		}
		// What becomes private is gone for an agent that knew it.
		make1(t, a, owner, "person", `{"slug":"open-olga","private":true}`)
		a.Fails(t, agent, "get_timeline", `{"person_slug":"open-olga"}`, fault.NotFound)
		if s := string(a.Call(t, agent, "get_timeline", `{}`)) + string(a.Call(t, agent, "list_changes", `{}`)); strings.Contains(s, "Olga") {
			t.Error(s)
		}
	})
}

func TestTimelineMergesByWhenItHappened(t *testing.T) {
	recorded(t, func(t *testing.T, a *apptest.App, owner, agent context.Context) {
		a.Call(t, owner, "set_account", `{"zone":"Europe/Lisbon"}`)
		owner, agent = a.Person(t), a.As(t, a.Token(t, `{"name":"z","rate":0}`))
		make1(t, a, owner, "journal", `{"text":"journal","at":"2026-08-08T10:00:00+01:00"}`)
		make1(t, a, owner, "evidence", `{"statement":"evidence","at":"2026-08-08"}`)
		make1(t, a, owner, "meeting", `{"summary":"meeting","at":"2026-08-08T23:59:59Z"}`)
		make1(t, a, agent, "upsert_daily_note", `{"external_ref":"n","date":"2026-08-08","title":"note","body":"b"}`)
		make1(t, a, agent, "add_decision", `{"external_ref":"d","title":"decision","decided_at":"2026-08-08T09:00:00.0005Z"}`)
		make1(t, a, agent, "add_episode", `{"external_ref":"e","occurred_at":"2026-07-28","summary":"first of the 14 days"}`)
		make1(t, a, agent, "add_episode", `{"external_ref":"old","occurred_at":"2026-07-27T22:59:59Z","summary":"too old"}`)
		make1(t, a, agent, "add_episode", `{"external_ref":"new","occurred_at":"2026-08-11","summary":"tomorrow"}`)
		a.Call(t, agent, "create_personal_task", `{"name":"task","external_ref":"t"}`)
		a.Call(t, agent, "complete_task", `{"external_ref":"t"}`)
		got := past(t, a, agent, `{}`)
		want := []string{"task_completed task", "meeting meeting", "decision decision", "journal journal", "daily_note note", "evidence evidence", "episode first of the 14 days"}
		if diff := cmp.Diff(want, lines(got)[:len(want):len(want)]); diff != "" || got.Count != len(want) {
			t.Error(diff, lines(got))
		}
		if e := got.Episodes[1]; e.Date != "2026-08-09" || e.At != "2026-08-08T23:59:59.000Z" {
			t.Errorf("%+v", e)
		}
		if got := lines(past(t, a, agent, `{"since":"2026-08-11"}`)); !slices.Equal(got, []string{"episode tomorrow"}) {
			t.Error(got)
		}
		if got := lines(past(t, a, agent, `{"until":"2026-07-27"}`)); !slices.Equal(got, []string{"episode too old"}) {
			t.Error(got)
		}
		at := got.Episodes[0].At
		if got := lines(past(t, a, agent, `{"since":"`+at+`","until":"`+at+`"}`)); !slices.Equal(got, []string{"task_completed task"}) {
			t.Error(got)
		}
		a.Fails(t, agent, "get_timeline", `{"since":"2026-08-10","until":"2026-08-09"}`, fault.Invalid)
		for _, bad := range []string{`{"limit":301}`, `{"limit":0}`, `{"since":"yesterday"}`, `{"cursor":"x"}`, `{"since":"10000-01-01"}`} {
			a.Fails(t, agent, "get_timeline", bad, fault.Invalid)
		}
		memoryOnly := a.As(t, a.Token(t, `{"name":"m","rate":0,"areas":["memory"]}`))
		if got := lines(past(t, a, memoryOnly, `{}`)); slices.Contains(got, "task_completed task") {
			t.Error("tasks are not granted, and shown")
		}
	})
}

func TestTimelinePagesThroughEqualMoments(t *testing.T) {
	recorded(t, func(t *testing.T, a *apptest.App, owner, agent context.Context) {
		for i := range 9 {
			make1(t, a, agent, "add_episode", fmt.Sprintf(`{"external_ref":"e%d","occurred_at":"2026-08-09","summary":"e%d"}`, i, i))
			make1(t, a, agent, "add_decision", fmt.Sprintf(`{"external_ref":"d%d","title":"d%d","decided_at":"2026-08-09"}`, i, i))
			make1(t, a, agent, "upsert_daily_note", fmt.Sprintf(`{"external_ref":"n%d","date":"2026-08-09","title":"n%d","body":"b"}`, i, i))
			if i < 3 {
				make1(t, a, agent, "add_episode", fmt.Sprintf(`{"external_ref":"w%d","occurred_at":"2026-08-09","summary":"w%d","heap":"Work"}`, i, i))
				make1(t, a, agent, "upsert_daily_note", fmt.Sprintf(`{"external_ref":"o%d","date":"2026-08-08","title":"o%d","body":"b","heap":"Work"}`, i, i))
			}
		}
		all := lines(past(t, a, agent, `{}`))
		if len(all) != 33 || !strings.HasPrefix(all[0], "daily_note n") || !strings.HasPrefix(all[32], "daily_note o") {
			t.Fatal(len(all), all)
		}
		for _, limit := range []int{1, 2, 5, 32, 33} {
			var paged []string
			cursor := ""
			for {
				tl := past(t, a, agent, fmt.Sprintf(`{"limit":%d,"cursor":"%s"}`, limit, cursor))
				if paged = append(paged, lines(tl)...); tl.NextCursor == "" || len(paged) > 100 {
					break
				}
				cursor = tl.NextCursor
			}
			if diff := cmp.Diff(all, paged); diff != "" {
				t.Errorf("limit %d: %s", limit, diff)
			}
		}
	})
}

func TestTimelineStaysWithinItsBudget(t *testing.T) {
	recorded(t, func(t *testing.T, a *apptest.App, owner, agent context.Context) {
		long := strings.Repeat(`"\\`, 300) + strings.Repeat("é汉😀\n", 250)
		for i := range 40 {
			make1(t, a, agent, "add_episode", fmt.Sprintf(`{"external_ref":"e%d","occurred_at":"2026-08-09","summary":%s,"detail":%s}`, i, asJSON(long), asJSON(long+long)))
		}
		make1(t, a, owner, "journal", `{"text":`+asJSON(strings.Repeat("👩‍👩‍👧", 4000))+`}`)
		seen, cursor := 0, ""
		for {
			tl := a.Call(t, agent, "get_timeline", `{"limit":300,"cursor":"`+cursor+`"}`)
			if both := len(tl) + len(asJSON(string(tl))); both > 100_000 {
				t.Fatalf("%d bytes as sent", both)
			}
			var got timeline
			apptest.Decode(t, tl, &got)
			if strings.ContainsRune(string(tl), '\uFFFD') {
				t.Error("a character is cut")
			}
			seen += got.Count
			if cursor = got.NextCursor; cursor == "" {
				break
			}
		}
		if seen != 41 {
			t.Errorf("%d of 41", seen)
		}
		for i := range 310 {
			make1(t, a, agent, "add_episode", fmt.Sprintf(`{"external_ref":"s%d","occurred_at":"1999-08-09","summary":"s","heap":"Work"}`, i))
			if i == 60 {
				if tl := past(t, a, agent, `{"since":"1999-08-09","until":"1999-08-09"}`); tl.Count != 60 || tl.NextCursor == "" {
					t.Error(tl.Count)
				}
			}
		}
		if tl := past(t, a, agent, `{"since":"1999-08-09","until":"1999-08-09","limit":300}`); tl.Count > 300 || tl.Count < 60 || tl.NextCursor == "" {
			t.Error(tl.Count)
		}
	})
}

func TestMomentsOfLongAgo(t *testing.T) {
	recorded(t, func(t *testing.T, a *apptest.App, owner, agent context.Context) {
		for zone, cases := range map[string][][3]string{ // given, at, date
			"Europe/Berlin": {
				{"0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z", "0001-01-01"},
				{"0001-01-01", "0001-01-01T00:00:00.000Z", "0001-01-01"}, // the clock is ahead there, and there was no year before
				{"9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z", ""},
				{"2016-12-31T23:59:60Z", "2016-12-31T23:59:59.999Z", "2017-01-01"},
				{"2017-01-01T00:59:60.5+01:00", "2016-12-31T23:59:59.999Z", "2017-01-01"},
				{"2026-03-29T02:30", "2026-03-29T01:30:00.000Z", "2026-03-29"}, // skipped: as by the clock before, 03:30
				{"2026-10-25T02:30", "2026-10-25T00:30:00.000Z", "2026-10-25"}, // twice: the first
				{"2026-08-09 20:00", "2026-08-09T18:00:00.000Z", "2026-08-09"},
				{"1969-12-31T23:59:59.9999Z", "1969-12-31T23:59:59.999Z", "1970-01-01"},
				{"2026-08-09t20:00:00z", "2026-08-09T20:00:00.000Z", "2026-08-09"},
			},
			"America/Sao_Paulo": {{"2018-11-04", "2018-11-04T03:00:00.000Z", "2018-11-04"}}, // a day without a midnight
			"Pacific/Apia":      {{"2011-12-30", "2011-12-30T10:00:00.000Z", "2011-12-31"}}, // a day that wasn't
			"America/New_York":  {{"9999-12-31", "9999-12-31T05:00:00.000Z", "9999-12-31"}, {"1582-10-15T00:00:00-04:56", "1582-10-15T04:56:00.000Z", "1582-10-14"}},
		} {
			a.Call(t, owner, "set_account", `{"zone":"`+zone+`"}`)
			agent := a.As(t, a.Token(t, `{"name":"`+zone+`","rate":0}`))
			for i, c := range cases {
				m := make1(t, a, agent, "add_episode", fmt.Sprintf(`{"external_ref":"%s %d","occurred_at":"%s","summary":"s"}`, zone, i, c[0]))
				if m.Episode.At != c[1] || c[2] != "" && m.Episode.Date != c[2] {
					t.Errorf("%s in %s: at %s, date %s", c[0], zone, m.Episode.At, m.Episode.Date)
				}
				if i == 0 {
					day := m.Episode.Date
					if tl := past(t, a, agent, `{"since":"`+day+`","until":"`+day+`"}`); !slices.ContainsFunc(tl.Episodes, func(e episode) bool { return e.ID == m.ID }) {
						t.Errorf("%s is not on its day %s in %s", c[0], day, zone)
					}
				}
			}
			for _, bad := range []string{"0000-01-01T00:00:00Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "-0001-01-01", "2026-02-30", "2026-08-09T12:00:60Z", "2026-08-09T23:59:61Z", "2026-08-09T24:00:00Z", "12026-01-01", "now"} {
				a.Fails(t, agent, "add_episode", `{"external_ref":"bad","occurred_at":"`+bad+`","summary":"s"}`, fault.Invalid)
			}
		}
		// The note of a day that has no midnight stands on it all the same; the note of a day that wasn't, at the next.
		a.Call(t, owner, "set_account", `{"zone":"Pacific/Apia"}`)
		agent = a.As(t, a.Token(t, `{"name":"apia","rate":0}`))
		for _, d := range []string{"2011-12-29", "2011-12-30", "2011-12-31"} {
			make1(t, a, agent, "upsert_daily_note", `{"external_ref":"`+d+`","date":"`+d+`","title":"`+d+`","body":"b"}`)
		}
		var got []string
		for cursor := ""; ; {
			tl := past(t, a, agent, `{"since":"2011-12-29","until":"2011-12-31","limit":1,"cursor":"`+cursor+`"}`)
			for _, e := range tl.Episodes {
				if e.Kind == "daily_note" {
					got = append(got, e.Date)
				}
			}
			if cursor = tl.NextCursor; cursor == "" {
				break
			}
		}
		if !slices.Equal(got, []string{"2011-12-31", "2011-12-30", "2011-12-29"}) {
			t.Error(got)
		}
	})
}

// Any moment given back is the moment stored: what an answer says finds the thing again, alone.
func TestAnyMomentGivenBackIsTheMomentStored(t *testing.T) {
	recorded(t, func(t *testing.T, a *apptest.App, owner, agent context.Context) {
		n := 0
		rapid.Check(t, func(r *rapid.T) {
			from, to := time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC).Unix(), time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC).Unix()
			offset := rapid.IntRange(-14*60, 14*60).Draw(r, "offset")
			at := time.Unix(rapid.Int64Range(from, to).Draw(r, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(r, "nanoseconds")).In(time.FixedZone("", offset*60))
			n++
			res, err := a.Runner.Run(agent, "add_episode", json.RawMessage(fmt.Sprintf(`{"external_ref":"%d","occurred_at":"%s","summary":"s"}`, n, at.Format(time.RFC3339Nano))))
			if err != nil {
				r.Fatal(err)
			}
			var m made
			_ = json.Unmarshal(res.JSON, &m)
			if want := at.UTC().Truncate(time.Millisecond).Format("2006-01-02T15:04:05.000Z"); m.Episode.At != want {
				r.Fatalf("%s became %s", want, m.Episode.At)
			}
			res, err = a.Runner.Run(agent, "get_timeline", json.RawMessage(`{"since":"`+m.Episode.At+`","until":"`+m.Episode.At+`"}`))
			if err != nil {
				r.Fatal(err)
			}
			var tl timeline
			_ = json.Unmarshal(res.JSON, &tl)
			if !slices.ContainsFunc(tl.Episodes, func(e episode) bool { return e.ID == m.ID && e.At == m.Episode.At }) {
				r.Fatalf("%s is not where it is: %s", m.Episode.At, res.JSON)
			}
		})
	})
}
