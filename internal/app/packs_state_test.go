package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/apptest"
	"cairn/internal/db/dbtest"
)

// twin is one of two servers that are told the same, each on its own database.
type twin struct {
	*apptest.App
	me, agent, asking context.Context
	ids               []string          // of things, in the order of their making
	names             map[string]string // what stands for an id in what is compared
}

func twins(t *testing.T) []*twin {
	t.Helper()
	var both []*twin
	for _, env := range []map[string]string{{"CAIRN_DATA": t.TempDir()}, {"CAIRN_DATABASE_URL": dbtest.Postgres(t)}} {
		a := apptest.New(t, env)
		w := &twin{App: a, me: a.Person(t), names: map[string]string{}}
		w.agent, w.asking = a.As(t, a.Token(t, "")), a.As(t, a.Token(t, `{"name":"asks","rate":0,"propose_memory":true}`))
		both = append(both, w)
	}
	return both
}

// as gives one of the three who call.
func (w *twin) as(who int) context.Context { return []context.Context{w.me, w.agent, w.asking}[who] }

var anID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// plain writes the ids in a text as what they stand for, so that two servers' texts can be compared.
func (w *twin) plain(text string) string {
	return anID.ReplaceAllStringFunc(text, func(id string) string {
		if n := w.names[id]; n != "" {
			return n
		}
		return "heap"
	})
}

// story tells two servers the same things, chosen by chance, and knows what must never be seen again.
type story struct {
	t       *testing.T
	r       *rand.Rand
	both    []*twin
	word    map[int]string // of a thing, by its place in ids: a word that only it holds
	stands  []int          // context objects that are current and open
	waits   []int          // proposals
	never   map[string]string
	decided map[int]string // word of the decision that came with an object
	n       int
}

// tell runs an operation on both servers; args may name a thing as {7}. It gives the new thing's place, found at path.
func (s *story) tell(who int, name, args string, path ...string) int {
	s.t.Helper()
	for _, w := range s.both {
		full := regexp.MustCompile(`\{\d+\}`).ReplaceAllStringFunc(args, func(at string) string {
			var i int
			_, _ = fmt.Sscanf(at, "{%d}", &i)
			return w.ids[i]
		})
		var v any
		apptest.Decode(s.t, w.Call(s.t, w.as(who), name, full), &v)
		if len(path) == 0 {
			continue
		}
		for _, p := range path {
			if list, ok := v.([]any); ok {
				v = list[0]
			}
			v = v.(map[string]any)[p]
		}
		w.ids = append(w.ids, v.(string))
		w.names[v.(string)] = fmt.Sprintf("#%d", len(w.ids)-1)
	}
	return len(s.both[0].ids) - 1
}

// fresh gives a word that no other text holds.
func (s *story) fresh() string { s.n++; return fmt.Sprintf("xq%dv", s.n) }

func (s *story) pick(list *[]int) (int, bool) {
	if len(*list) == 0 {
		return 0, false
	}
	i := s.r.IntN(len(*list))
	v := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return v, true
}

func (s *story) hide(thing int, why string) {
	s.never[s.word[thing]] = why
	if d := s.decided[thing]; d != "" {
		s.never[d] = why
	}
}

var (
	kindsOfContext = []string{"decision", "belief", "mental_model", "learning", "open_question", "preference", "original"}
	topics         = []string{"garden", "billing", "仕事", "الصحة", "sailing", "👩‍👩‍👧 family"}
)

func (s *story) statement(word string) string {
	return fmt.Sprintf("I hold %s about the %s, 漢字 👩‍👩‍👧 مرحبا, %s.", word, topics[s.r.IntN(len(topics))], strings.Repeat("and more of it ", s.r.IntN(20)))
}

// step does one thing more.
func (s *story) step() {
	s.t.Helper()
	w := s.fresh()
	said := s.statement(w)
	switch s.r.IntN(16) {
	case 0, 1, 2, 3:
		kind, topic := kindsOfContext[s.r.IntN(len(kindsOfContext))], topics[s.r.IntN(len(topics))]
		at := s.tell(s.r.IntN(2), "capture_context", fmt.Sprintf(`{"objects":[{"kind":%q,"subject":%q,"statement":%q}]}`, kind, topic, said), "results", "id")
		s.word[at] = w
		s.stands = append(s.stands, at)
	case 4:
		at := s.tell(0, "capture_context", fmt.Sprintf(`{"objects":[{"kind":"belief","statement":%q,"private":true}]}`, said), "results", "id")
		s.word[at] = w
		s.hide(at, "captured as private")
	case 5, 6:
		if old, ok := s.pick(&s.stands); ok {
			at := s.tell(s.r.IntN(2), "supersede_context", fmt.Sprintf(`{"id":"{%d}","statement":%q,"reason":"time went by"}`, old, said), "id")
			s.word[at] = w
			s.stands = append(s.stands, at)
			s.hide(old, "superseded")
		}
	case 7:
		if old, ok := s.pick(&s.stands); ok {
			s.tell(0, "retire_context", fmt.Sprintf(`{"id":"{%d}"}`, old))
			s.hide(old, "retired")
		}
	case 8:
		if old, ok := s.pick(&s.stands); ok {
			s.tell(0, "set_context_private", fmt.Sprintf(`{"id":"{%d}","private":true}`, old))
			s.hide(old, "made private")
		}
	case 9:
		at := s.tell(2, "capture_context", fmt.Sprintf(`{"objects":[{"kind":"preference","statement":%q}]}`, said), "results", "id")
		s.word[at] = w
		s.waits = append(s.waits, at)
		s.hide(at, "proposed")
	case 10:
		if at, ok := s.pick(&s.waits); ok {
			if s.r.IntN(2) == 0 {
				s.tell(0, "decline_proposal", fmt.Sprintf(`{"id":"{%d}"}`, at))
			} else {
				s.tell(0, "accept_proposal", fmt.Sprintf(`{"id":"{%d}"}`, at))
				delete(s.never, s.word[at])
				s.stands = append(s.stands, at)
			}
		}
	case 11:
		who := 1 + s.r.IntN(2)
		s.tell(who, "add_decision", fmt.Sprintf(`{"external_ref":%q,"title":%q,"detail":"Because of %s."}`, w, string([]rune(said)[:30])+w, w), "id")
		at := s.tell(who, "add_decision", fmt.Sprintf(`{"external_ref":%q,"title":"x"}`, w), "decision", "context_id")
		s.word[at], s.decided[at] = w, w
		if who == 2 {
			s.waits = append(s.waits, at)
			s.hide(at, "a decision that waits")
		} else {
			s.stands = append(s.stands, at)
		}
	case 12:
		private := s.r.IntN(2) == 0
		at := s.tell(0, "journal", fmt.Sprintf(`{"text":%q,"private":%v}`, said, private), "id")
		if s.word[at] = w; private {
			s.hide(at, "a private entry")
		}
	case 13:
		s.tell(1, "add_episode", fmt.Sprintf(`{"external_ref":%q,"occurred_at":"2026-08-0%d","summary":%q}`, w, 1+s.r.IntN(9), said), "id")
	case 14:
		day := []string{`"due_date":"2026-08-10"`, `"due_date":"2026-08-09"`, `"focused_date":"2026-08-10"`, `"focused_date":"2026-08-10","due_date":"2026-08-12"`}[s.r.IntN(4)]
		at := s.tell(1, "create_personal_task", fmt.Sprintf(`{"name":"Do %s"}`, w), "id")
		s.tell(1, "update_task", fmt.Sprintf(`{"task_id":"{%d}",%s}`, at, day))
	default:
		s.tell(0, "blueprint", fmt.Sprintf(`{"section":%q,"text":%q}`, []string{"foundation", "values", "beliefs"}[s.r.IntN(3)], said), "id")
	}
	s.both[0].Clock.Move(time.Minute)
	s.both[1].Clock.Move(time.Minute)
}

var (
	citedLine = regexp.MustCompile(`^- “[^“”]+” \[[^\[\]“”]+\]$`)
	titleLine = regexp.MustCompile(`^## (Who they are|Preferences|Decisions and stances|Passages|Recently|Today, \d{4}-\d\d-\d\d)$`)
)

// check asks both servers for a pack and holds them to what a pack promises.
func (s *story) check(query string, budget int) {
	s.t.Helper()
	var texts []string
	for _, w := range s.both {
		args := fmt.Sprintf(`{"query":%q,"budget":%d}`, query, budget)
		var p, again packed
		apptest.Decode(s.t, w.Call(s.t, w.agent, "get_context", args), &p)
		apptest.Decode(s.t, w.Call(s.t, w.agent, "get_context", args), &again)
		if diff := cmp.Diff(p, again); diff != "" {
			s.t.Fatalf("not the same twice: %s", diff)
		}
		if n := utf8.RuneCountInString(p.Pack); n > budget || n != p.Used || p.Budget != budget || !utf8.ValidString(p.Pack) || strings.ContainsRune(p.Pack, utf8.RuneError) {
			s.t.Fatalf("%d characters, %d told, of %d", n, p.Used, budget)
		}
		rows := strings.Split(strings.TrimRight(p.Pack, "\n"), "\n")
		lines := 0
		for _, row := range rows[1:] {
			switch {
			case row == "" || titleLine.MatchString(row):
			case citedLine.MatchString(row) && lines < len(p.Items) && strings.HasSuffix(row, " "+p.Items[lines].ID+"]"):
				lines++
			default:
				s.t.Fatalf("not cited as its item is: %q", row)
			}
		}
		if lines != len(p.Items) || p.Truncated != (len(p.Notes) > 0) {
			s.t.Fatalf("%d lines, %d items, truncated %v, notes %q", lines, len(p.Items), p.Truncated, p.Notes)
		}
		seen := map[string]bool{}
		for _, i := range p.Items { // a blueprint is shown by its lines, and a task may be found and on today
			if seen[i.ID] && i.Kind != "blueprint" && i.Kind != "task" {
				s.t.Fatalf("%+v is shown twice:\n%s", i, p.Pack)
			}
			seen[i.ID] = true
		}
		var mine packed
		apptest.Decode(s.t, w.Call(s.t, w.me, "get_context", args), &mine) // an agent may come to read it
		for _, one := range []packed{p, mine} {
			s.unseen("the pack", one.Pack+fmt.Sprint(one.Items, one.Notes))
		}
		texts = append(texts, w.plain(p.Pack+fmt.Sprint(p.Items, p.Notes)))
	}
	if diff := cmp.Diff(strings.Split(texts[0], "\n"), strings.Split(texts[1], "\n")); diff != "" {
		s.t.Fatalf("the databases tell %q differently at %d: %s", query, budget, diff)
	}
}

// checkLayers does the same for the layers, as the agent and as the owner, whose answers an agent may come to read too.
func (s *story) checkLayers() {
	s.t.Helper()
	for _, scope := range []string{"self", "attention", "week", "strategy", "all"} {
		for who := range 2 {
			var texts []string
			for _, w := range s.both {
				var l struct{ Layers json.RawMessage }
				apptest.Decode(s.t, w.Call(s.t, w.as(who), "get_context", `{"scope":"`+scope+`"}`), &l)
				s.unseen(scope, string(l.Layers))
				texts = append(texts, w.plain(string(l.Layers)))
			}
			if texts[0] != texts[1] {
				s.t.Fatalf("the databases tell %s differently:\n%s\n%s", scope, texts[0], texts[1])
			}
		}
	}
}

func (s *story) unseen(where, text string) {
	s.t.Helper()
	for word := range maps.Keys(s.never) {
		if strings.Contains(text, word) {
			s.t.Fatalf("%s holds %s, which is %s:\n%s", where, word, s.never[word], text)
		}
	}
}

// Whatever was told, changed and hidden before: a pack keeps its budget, cites every line, shows nothing that doesn't stand or
// is private, and is the same one on both databases.
func TestPacksOfAnyState(t *testing.T) {
	for _, seed := range []uint64{1, rand.Uint64()} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := &story{t: t, r: rand.New(rand.NewPCG(seed, 0)), both: twins(t), word: map[int]string{}, never: map[string]string{}, decided: map[int]string{}}
			for range 4 {
				for range 20 {
					s.step()
				}
				for _, w := range s.both {
					if err := w.Jobs.Due(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				for _, query := range []string{"plan the garden", "billing and sailing", "仕事", "الصحة", "👩‍👩‍👧", "I hold xq" + fmt.Sprint(1+s.r.IntN(s.n)) + "v"} {
					s.check(query, []int{500, 501, 777, 1500, 4000, 16000}[s.r.IntN(6)])
				}
				s.checkLayers()
			}
			if len(s.never) < 10 || len(s.stands) < 3 {
				t.Errorf("too little happened: %d hidden, %d stand", len(s.never), len(s.stands))
			}
		})
	}
}

// The tasks of a day come in one order on both databases, those without a due date too; and only to whom tasks are granted.
func TestTasksOfADayInPacks(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		me := a.Person(t)
		for _, task := range [][2]string{{"chosen, due later", `"focused_date":"2026-08-10","due_date":"2026-08-12"`}, {"chosen", `"focused_date":"2026-08-10"`}, {"late", `"due_date":"2026-08-01"`}, {"due", `"due_date":"2026-08-10"`}} {
			var made struct{ ID string }
			apptest.Decode(t, a.Call(t, me, "create_personal_task", fmt.Sprintf(`{"name":%q}`, task[0])), &made)
			a.Call(t, me, "update_task", fmt.Sprintf(`{"task_id":%q,%s}`, made.ID, task[1]))
			if task[0] == "chosen" { // a day of its own was given it
				a.Call(t, me, "update_task", fmt.Sprintf(`{"task_id":%q,"clear":["due_date"]}`, made.ID))
			}
		}
		titles := func(p packed) (out []string) {
			for _, i := range p.Items {
				out = append(out, i.Title)
			}
			return out
		}
		var p, l packed
		apptest.Decode(t, a.Call(t, me, "get_context", `{"query":"zeppelin"}`), &p)
		if diff := cmp.Diff([]string{"chosen", "chosen, due later", "late", "due"}, titles(p)); diff != "" {
			t.Error(diff)
		}
		a.Call(t, me, "create_project", `{"name":"Boat"}`)
		memoryOnly := a.As(t, a.Token(t, `{"name":"m","rate":0,"areas":["memory"]}`))
		apptest.Decode(t, a.Call(t, memoryOnly, "get_context", `{"query":"chosen late due Boat"}`), &p)
		apptest.Decode(t, a.Call(t, memoryOnly, "get_context", `{}`), &l)
		if len(p.Items) != 0 || len(l.Layers["attention"])+len(l.Layers["week"])+len(l.Layers["strategy"]) != 0 {
			t.Errorf("tasks reach one to whom they aren't granted: %+v %+v", p, l.Layers)
		}
	})
}
