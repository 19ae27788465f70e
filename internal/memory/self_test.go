package memory_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"cairn/internal/apptest"
)

type selfLines struct {
	Lines []struct {
		Group, Text string
		Cites       []string
	}
	CompiledAt string `json:"compiled_at"`
}

func (s selfLines) text() string {
	var b strings.Builder
	for _, l := range s.Lines {
		b.WriteString(l.Group + ": " + l.Text + "\n")
	}
	return b.String()
}

var citation = regexp.MustCompile(`\[[a-z_ ]+ \d{4}-\d\d-\d\d [0-9a-f-]{8,36}\]$`)

func TestSelfPage(t *testing.T) {
	both(t, func(t *testing.T, a *apptest.App, agent, _ context.Context) {
		self := func() selfLines {
			t.Helper()
			s := get[selfLines](t, a, agent, "get_self", `{}`)
			for _, l := range s.Lines {
				if !citation.MatchString(l.Text) || len(l.Cites) != 1 {
					t.Errorf("without a citation: %+v", l)
				}
			}
			if again := get[selfLines](t, a, agent, "get_self", `{}`); again.text() != s.text() || again.CompiledAt != s.CompiledAt {
				t.Errorf("not the same twice:\n%s\n%s", s.text(), again.text())
			}
			return s
		}
		if s := self(); len(s.Lines) != 0 || s.CompiledAt == "" {
			t.Errorf("%+v", s)
		}
		res := remember(t, a, agent, about("open_question", "", "Should I move?"), about("decision", "job", "I stay at the bakery"), about("preference", "drink", "I prefer tea"),
			about("belief", "home", "I live in Paris"), about("belief", "", "I was born in Rome"), about("mental_model", "", "Small steps compound"))
		s := self().text()
		want := []string{"beliefs: I was born in Rome [belief 2026-08-10 ", "beliefs: I live in Paris", "preferences: I prefer tea", "mental models: Small steps", "decisions: I stay", "open questions: Should I move?"}
		at := -1
		for _, w := range want {
			i := strings.Index(s, w)
			if i <= at {
				t.Errorf("%q is missing or out of order in\n%s", w, s)
			}
			at = i
		}
		a.Clock.Move(24 * 3600e9)
		type corrected struct {
			captured
			Contradicts []string
		}
		c := get[corrected](t, a, agent, "correct_context", `{"statement":"I live in Lyon, not in Paris","subject":"home"}`)
		if len(c.Contradicts) != 1 || c.Contradicts[0] != res[3].ID || c.Status != "current" {
			t.Errorf("%+v", c)
		}
		get[corrected](t, a, agent, "correct_context", `{"statement":"I wasn't born in Rome"}`)
		s = self().text()
		if !strings.HasPrefix(s, "corrections: I wasn't born in Rome [correction 2026-08-11 ") || strings.Contains(s, "I live in Paris") || strings.Contains(s, "I was born") {
			t.Errorf("the error survives:\n%s", s)
		}
		// Nor does it come back: an agent that says it again, in these or other words, waits for the owner.
		for _, again := range []map[string]any{about("belief", "home", "I live in Paris"), about("belief", "HOME", "Paris is where I live"), about("learning", "", "I was born in Rome")} {
			r := remember(t, a, agent, again)[0]
			if r.Result == "created" && (r.Status != "proposed" || len(r.Similar) == 0 || r.Note == "") {
				t.Errorf("%+v", r)
			}
		}
		if after := self().text(); after != s {
			t.Errorf("the error came back:\n%s", after)
		}
		// The owner may.
		remember(t, a, a.Person(t), about("belief", "home", "I live in Nice"))
		if s := self().text(); !strings.Contains(s, "I live in Nice") {
			t.Errorf("%s", s)
		}
		// What is superseded, retired or private goes.
		a.Call(t, agent, "supersede_context", `{"id":"`+res[2].ID+`","statement":"I prefer coffee"}`)
		a.Call(t, a.Person(t), "retire_context", `{"id":"`+res[1].ID+`"}`)
		a.Call(t, a.Person(t), "set_context_private", `{"id":"`+res[5].ID+`","private":true}`)
		s = self().text()
		for _, gone := range []string{"I prefer tea", "bakery", "Small steps"} {
			if strings.Contains(s, gone) {
				t.Errorf("%q stays in\n%s", gone, s)
			}
		}
		if !strings.Contains(s, "I prefer coffee") {
			t.Error(s)
		}
		// An agent can't supersede a correction by itself.
		if r := get[captured](t, a, agent, "supersede_context", `{"id":"`+c.ID+`","statement":"I live in Paris after all"}`); r.Status != "proposed" {
			t.Errorf("%+v", r)
		}
	})
}
