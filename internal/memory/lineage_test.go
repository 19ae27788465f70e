package memory_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"cairn/internal/apptest"
)

type lineage struct {
	Current   []struct{ ID, Text string } `json:"current_version"`
	First     *struct{ Text string }      `json:"first_mention"`
	Best      *struct{ Text string }      `json:"best_articulation"`
	Abandoned []struct{ ID, Why string }  `json:"abandoned_branches"`
	Notes     []string
}

func (l lineage) texts() (out []string) {
	for _, m := range l.Current {
		out = append(out, m.Text)
	}
	slices.Sort(out)
	return out
}

// In a memory of few things all of them are among the best that a question finds. That doesn't make them the idea asked for.
func TestLineageLeavesOutWhatIsOfOtherThings(t *testing.T) {
	both(t, func(t *testing.T, a *apptest.App, agent, _ context.Context) {
		for _, s := range []string{"I prefer tea in the morning", "My dentist is Dr Weber", "I play the cello", "My car is a blue Volvo", "Working from home makes me focus better",
			"Remote work is good for me", "I never eat meat"} {
			remember(t, a, agent, about("belief", "", s))
		}
		if err := a.Jobs.Due(t.Context()); err != nil {
			t.Fatal(err)
		}
		of := func(idea string) lineage {
			return get[lineage](t, a, agent, "trace_lineage", `{"idea":`+quote(idea)+`}`)
		}
		if l := of("remote work"); !slices.Equal(l.texts(), []string{"Remote work is good for me", "Working from home makes me focus better"}) || l.Best.Text != "Remote work is good for me" ||
			l.First.Text != "Working from home makes me focus better" {
			t.Errorf("%+v", l)
		}
		if l := of("vegetarian food"); !slices.Equal(l.texts(), []string{"I never eat meat"}) {
			t.Errorf("%+v", l)
		}
		if l := of("quantum bicycles in the antarctic"); len(l.Current) > 0 || l.First != nil || l.Best != nil || !strings.Contains(strings.Join(l.Notes, " "), "Nothing about this idea") {
			t.Errorf("an idea that nobody ever had: %+v", l)
		}
	})
}

func TestLineageTellsNoErrorAsCurrent(t *testing.T) {
	both(t, func(t *testing.T, a *apptest.App, agent, _ context.Context) {
		wrong := remember(t, a, agent, about("belief", "home", "I live in Paris"))[0].ID
		guard := get[captured](t, a, agent, "correct_context", `{"statement":"I don't live in Paris","subject":"home"}`).ID
		l := get[lineage](t, a, agent, "trace_lineage", `{"idea":"living in Paris"}`)
		if len(l.Current) != 1 || l.Current[0].ID != guard || l.Best == nil || l.Best.Text != "I don't live in Paris" {
			t.Errorf("%+v", l)
		}
		if len(l.Abandoned) != 1 || l.Abandoned[0].ID != wrong || !strings.Contains(l.Abandoned[0].Why, "“I don't live in Paris”") {
			t.Errorf("%+v", l.Abandoned)
		}
	})
}
