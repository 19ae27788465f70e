package app_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"cairn/internal/apptest"
	"cairn/internal/fault"
)

type packed struct {
	Pack      string
	Items     []struct{ ID, Kind, Title, At, Heap string }
	Budget    int
	Used      int `json:"budget_used"`
	Truncated bool
	Notes     []string
	Layers    map[string][]struct{ ID, Kind, Text string }
}

// An agent that begins gets what stands, not what stood, and nothing that is private.
func TestPackTellsWhatStandsNow(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		me, agent := a.Person(t), a.As(t, a.Token(t, ""))
		var made struct {
			Results []struct{ ID string }
		}
		apptest.Decode(t, a.Call(t, me, "capture_context", `{"objects":[
			{"kind":"preference","subject":"editor","statement":"I write in Vim."},
			{"kind":"decision","subject":"billing","statement":"We bill by the hour."},
			{"kind":"belief","subject":"health","statement":"I should sleep eight hours.","private":true},
			{"kind":"open_question","subject":"office","statement":"Do we need an office at all?"}]}`), &made)
		a.Clock.Move(24 * time.Hour)
		a.Call(t, me, "supersede_context", fmt.Sprintf(`{"id":%q,"statement":"We bill by the project.","reason":"hours invite slowness"}`, made.Results[1].ID))
		a.Call(t, me, "create_work_task", `{"name":"Send the billing offer","due_date":"2026-08-11"}`)
		a.Call(t, me, "add_episode", `{"external_ref":"e1","occurred_at":"2026-08-10","summary":"Met the client about billing"}`)
		if err := a.Jobs.Due(t.Context()); err != nil {
			t.Fatal(err)
		}
		var p packed
		apptest.Decode(t, a.Call(t, agent, "get_context", `{"query":"write the billing offer"}`), &p)
		for _, want := range []string{"I write in Vim.", "We bill by the project.", "Send the billing offer", "Met the client about billing"} {
			if !strings.Contains(p.Pack, want) {
				t.Errorf("the pack lacks %q:\n%s", want, p.Pack)
			}
		}
		for _, never := range []string{"by the hour", "sleep eight hours"} {
			if strings.Contains(p.Pack, never) {
				t.Errorf("the pack holds %q:\n%s", never, p.Pack)
			}
		}
		if n := utf8.RuneCountInString(p.Pack); n != p.Used || n > p.Budget || p.Budget != 4000 || p.Truncated {
			t.Errorf("%d characters, used %d of %d, truncated %v", n, p.Used, p.Budget, p.Truncated)
		}
		var again, person packed
		apptest.Decode(t, a.Call(t, agent, "get_context", `{"query":"write the billing offer"}`), &again)
		apptest.Decode(t, a.Call(t, me, "get_context", `{"query":"write the billing offer"}`), &person)
		if again.Pack != p.Pack || strings.Contains(person.Pack, "sleep eight") {
			t.Errorf("not the same twice, or private things for a person:\n%s\n%s", again.Pack, person.Pack)
		}

		var l packed
		apptest.Decode(t, a.Call(t, agent, "get_context", `{}`), &l)
		if len(l.Layers) != 4 || len(l.Layers["attention"]) != 2 || len(l.Layers["week"]) != 1 || len(l.Layers["strategy"]) == 0 || len(l.Layers["self"]) == 0 {
			t.Errorf("layers: %+v", l.Layers)
		}
		apptest.Decode(t, a.Call(t, agent, "get_context", `{"scope":"week","today":"2026-08-20"}`), &l)
		a.Fails(t, agent, "get_context", `{"query":"x","budget":499}`, fault.Invalid)
		a.Fails(t, agent, "get_context", `{"subject":{"kind":"person"}}`, fault.Invalid)
	})
}

func TestSmallBudgetSaysWhatItLeftOut(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		me := a.Person(t)
		for i := range 30 {
			a.Call(t, me, "capture_context", fmt.Sprintf(`{"objects":[{"kind":"preference","subject":"thing %d","statement":"I prefer thing number %d over all the others there are."}]}`, i, i))
		}
		var p packed
		apptest.Decode(t, a.Call(t, me, "get_context", `{"query":"things","budget":500}`), &p)
		if n := utf8.RuneCountInString(p.Pack); n > 500 || !p.Truncated || len(p.Notes) == 0 || len(p.Items) == 0 {
			t.Errorf("%d characters, %+v", n, p)
		}
	})
}

func TestLineageOfAnIdea(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		me := a.Person(t)
		var made struct {
			Results []struct{ ID string }
		}
		apptest.Decode(t, a.Call(t, me, "capture_context", `{"objects":[{"kind":"belief","subject":"remote work","statement":"Remote work makes a team slow."}]}`), &made)
		first := made.Results[0].ID
		a.Clock.Move(200 * 24 * time.Hour)
		var next struct{ ID string }
		apptest.Decode(t, a.Call(t, me, "supersede_context", fmt.Sprintf(`{"id":%q,"statement":"Remote work does not make a team slow.","reason":"a year of it"}`, first)), &next)
		if err := a.Jobs.Due(t.Context()); err != nil {
			t.Fatal(err)
		}
		var l struct {
			Current   []struct{ ID, Text, At string } `json:"current_version"`
			First     *struct{ ID, At string }        `json:"first_mention"`
			Best      *struct{ ID string }            `json:"best_articulation"`
			Turning   []struct{ ID, Why string }      `json:"turning_points"`
			Reversals []struct{ ID, Why string }
			Gaps      []struct{ Text string } `json:"evidence_gaps"`
		}
		apptest.Decode(t, a.Call(t, me, "trace_lineage", `{"idea":"remote work"}`), &l)
		if len(l.Current) != 1 || l.Current[0].ID != next.ID || l.First == nil || l.First.ID != first || l.First.At != "2026-08-10" || l.Best == nil || l.Best.ID != next.ID {
			t.Errorf("%+v", l)
		}
		if len(l.Reversals) != 1 || !strings.Contains(l.Reversals[0].Why, "because “a year of it”") || len(l.Turning) != 0 {
			t.Errorf("reversals %+v, turning points %+v", l.Reversals, l.Turning)
		}
		if len(l.Gaps) == 0 || l.Gaps[0].Text != "nothing from 2026-08-10 to 2027-02-26" {
			t.Errorf("gaps %+v", l.Gaps)
		}
		apptest.Decode(t, a.Call(t, me, "trace_lineage", `{"idea":"zeppelins"}`), &l)
	})
}

// What is meant is found without a word in common, once the background has made its vector; and what is private only by its
// owner.
func TestMeaningIsFoundWithoutItsWords(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		me, agent := a.Person(t), a.As(t, a.Token(t, ""))
		a.Call(t, me, "capture_context", `{"objects":[{"kind":"preference","statement":"I drink tea every morning."},{"kind":"belief","statement":"The company should move to Lisbon."},
			{"kind":"preference","statement":"Black coffee keeps me awake.","private":true}]}`)
		a.Call(t, me, "upsert_daily_note", `{"external_ref":"n","date":"2026-08-10","title":"Garden","body":"Planted tomatoes and beans."}`)
		found := func(ctx context.Context, query string) (titles string) {
			var out struct{ Results []struct{ Title string } }
			apptest.Decode(t, a.Call(t, ctx, "search", `{"query":"`+query+`","limit":2}`), &out)
			for _, r := range out.Results {
				titles += r.Title + "; "
			}
			return titles
		}
		if got := found(agent, "hot beverage at breakfast"); got != "" {
			t.Errorf("before any vector was made: %s", got)
		}
		if err := a.Jobs.Due(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := found(agent, "hot beverage at breakfast"); !strings.Contains(got, "tea") || strings.Contains(got, "coffee") {
			t.Errorf("by an agent: %s", got)
		}
		if got := found(me, "hot beverage at breakfast"); !strings.Contains(got, "tea") || !strings.Contains(got, "coffee") {
			t.Errorf("by the owner: %s", got)
		}
		if got := found(agent, "growing vegetables"); !strings.Contains(got, "Garden") {
			t.Errorf("a note: %s", got)
		}
	})
}
