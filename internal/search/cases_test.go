package search

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cairn/internal/db"
	"cairn/internal/db/dbtest"
	"cairn/internal/fault"
)

// put writes docs, each in a write of its own.
func put(t testing.TB, d *db.DB, docs ...Doc) {
	t.Helper()
	for _, doc := range docs {
		a := Analyze(doc)
		if err := d.Write(t.Context(), func(tx *db.Tx) error { a.Put(tx); return nil }); err != nil {
			t.Fatal(err)
		}
	}
}

func remove(t testing.TB, d *db.DB, heap, thing string) {
	t.Helper()
	if err := d.Write(t.Context(), func(tx *db.Tx) error { Remove(tx, heap, thing); return nil }); err != nil {
		t.Fatal(err)
	}
}

// notes makes docs of one heap whose things are named by their texts.
func notes(heap string, texts ...string) []Doc {
	docs := make([]Doc, len(texts))
	for i, text := range texts {
		docs[i] = Doc{Heap: heap, Thing: text, Kind: "note", Body: text, Fresh: true}
	}
	return docs
}

func found(r Result) []string {
	things := make([]string, len(r.Hits))
	for i, h := range r.Hits {
		things[i] = h.Thing
	}
	return things
}

func find(t testing.TB, e *Engine, heap, query string) []string {
	t.Helper()
	r, err := e.Find(context.Background(), []string{heap}, nil, query, 1000)
	if err != nil {
		t.Fatalf("Find(%q): %v", query, err)
	}
	return found(r)
}

// TestCases holds the faults that users of comparable systems reported, by their numbers in the list of cases: what is
// stored, and what each query must find, in any order.
func TestCases(t *testing.T) {
	type q struct {
		query string
		want  []string
	}
	cases := []struct {
		name   string
		stored []string
		qs     []q
	}{
		{"1 a hyphen in an id read as an operator", []string{"see REQ-042 for the plan", "see REQ-043 for the plan", "state-of-the-art pumps", "the art of a pump"}, []q{
			{"REQ-042", []string{"see REQ-042 for the plan"}},
			{"req-042", []string{"see REQ-042 for the plan"}},
			{"REQ-044", nil},
			{"state-of-the-art", []string{"state-of-the-art pumps"}},
		}},
		{"2 a quoted text that starts with dashes", []string{"pass --strict-mode to the tool", "a strict teacher"}, []q{
			{`"--strict-mode"`, []string{"pass --strict-mode to the tool"}},
			{`"--strict`, []string{"pass --strict-mode to the tool", "a strict teacher"}},
			{`--strict-mode`, []string{"pass --strict-mode to the tool"}},
			{`tool "`, []string{"pass --strict-mode to the tool"}},
			{`“strict mode”`, []string{"pass --strict-mode to the tool"}},
		}},
		{"3 minus never excluded, dotted numbers broke", []string{"alpha release", "alpha draft", "release 41.207 notes"}, []q{
			{"alpha -release", []string{"alpha draft"}},
			{`alpha -"alpha draft"`, []string{"alpha release"}},
			{"41.207", []string{"release 41.207 notes"}},
			{"41.208", nil},
			{"alpha OR draft", []string{"alpha release", "alpha draft"}},
			{"draft OR notes", []string{"alpha draft", "release 41.207 notes"}},
			{"alpha draft OR notes", []string{"alpha draft"}},
		}},
		{"4 operator words and punctuation as data", []string{"ns::item", "C++ guide", "vitamin C", "I don't know", "this AND that", "NOT done yet", "NEAR(the) river", "title: plan", "100% sure"}, []q{
			{"ns::item", []string{"ns::item"}},
			{"C++", []string{"C++ guide"}},
			{"c", []string{"C++ guide", "vitamin C"}},
			{"don't", []string{"I don't know"}},
			{"don’t", []string{"I don't know"}},
			{"AND", []string{"this AND that"}},
			{"NOT done", []string{"NOT done yet"}},
			{"NEAR(", []string{"NEAR(the) river"}},
			{"title:plan", []string{"title: plan"}},
			{"kind:note", nil},
			{"OR", nil},
			{"OR know", []string{"I don't know"}},
			{"know OR", []string{"I don't know"}},
			{"*", nil}, {"(", nil}, {"%", nil}, {"", nil}, {"     ", nil}, {`"`, nil}, {`""`, nil}, {"-", nil}, {"'; DROP TABLE", nil},
			{"\x00\xff\xfe", nil},
		}},
		{"5 a CJK word inside a run", []string{"早上先买咖啡豆再去开会", "会议记录", "조선역사", "リンゴを食べます", "用Go语言写的", "ภาษาไทยง่าย", "2024年の計画について"}, []q{
			{"咖啡豆", []string{"早上先买咖啡豆再去开会"}},
			{"咖啡", []string{"早上先买咖啡豆再去开会"}},
			{"会", []string{"早上先买咖啡豆再去开会", "会议记录"}},
			{"豆", []string{"早上先买咖啡豆再去开会"}},
			{"역사", []string{"조선역사"}},
			{"食べ", []string{"リンゴを食べます"}},
			{"ﾘﾝｺﾞ", []string{"リンゴを食べます"}},
			{"用Go语言", []string{"用Go语言写的"}},
			{"Go语", []string{"用Go语言写的"}},
			{"ไทย", []string{"ภาษาไทยง่าย"}},
			{"2024年の計画は何ですか", []string{"2024年の計画について"}},
		}},
		{"7 a query of emoji alone", []string{"🚀 launch list", "launch list", "team 👍🏽", "family 👩‍👩‍👧", "from 🇩🇪🇫🇷"}, []q{
			{"🚀", []string{"🚀 launch list"}},
			{`"🚀 launch"`, []string{"🚀 launch list"}},
			{"-🚀 launch", []string{"launch list"}},
			{"👍", []string{"team 👍🏽"}},
			{"👍🏿", []string{"team 👍🏽"}},
			{"👩‍👩‍👧", []string{"family 👩‍👩‍👧"}},
			{"🇫🇷", []string{"from 🇩🇪🇫🇷"}},
			{"🇪🇫", nil},
		}},
		{"8 percent and underscore as wildcards", []string{"100% done", "1000 done", "my_note", "myXnote"}, []q{
			{"100%", []string{"100% done"}},
			{"my_note", []string{"my_note"}},
			{"%", nil}, {"_", nil}, {`\`, nil},
		}},
		{"forms of one letter", []string{"Café zum Löwen", "Straße", "Ελλάς", "Ｆｕｌｌ ｗｉｄｔｈ", "İstanbul", "مُحَمَّد", "Ⅻ tables", "½ litre", "ﷺ", "Dvořák's 9th"}, []q{
			{"cafe lowen", []string{"Café zum Löwen"}},
			{"cafe\u0301", []string{"Café zum Löwen"}},
			{"STRASSE", []string{"Straße"}},
			{"ελλασ", []string{"Ελλάς"}},
			{"full width", []string{"Ｆｕｌｌ ｗｉｄｔｈ"}},
			{"istanbul", []string{"İstanbul"}},
			{"محمد", []string{"مُحَمَّد"}},
			{"xii", []string{"Ⅻ tables"}},
			{"1/2", []string{"½ litre"}},
			{"صلى الله", []string{"ﷺ"}},
			{"dvorak", []string{"Dvořák's 9th"}},
			{"dvorak's", []string{"Dvořák's 9th"}},
		}},
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		e := New(d, 1<<30)
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				put(t, d, notes(c.name, c.stored...)...)
				for _, q := range c.qs {
					got := find(t, e, c.name, q.query)
					slices.Sort(got)
					slices.Sort(q.want)
					if !slices.Equal(got, q.want) {
						t.Errorf("%q found %q, want %q", q.query, got, q.want)
					}
				}
			})
		}
	})
}

func TestQueryThatOnlyExcludes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		e := New(d, 1<<30)
		put(t, d, notes("h", "alpha")...)
		for _, q := range []string{"-release", `-"a b"`, "-a -b ***"} {
			_, err := e.Find(t.Context(), []string{"h"}, nil, q, 10)
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "exclude") {
				t.Errorf("Find(%q): %v, want an Invalid fault that says why", q, err)
			}
			if _, err = e.Ask(t.Context(), []string{"h"}, nil, q, 10); !fault.Is(err, fault.Invalid) {
				t.Errorf("Ask(%q): %v, want an Invalid fault", q, err)
			}
		}
	})
}

func TestQueryWithoutTokens(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		e := New(d, 1<<30)
		put(t, d, notes("h", "alpha")...)
		for _, q := range []string{"", "     ", "*", "(", "%", `"`, `-"`, "--", "\x00", "\xff", "\u200d"} {
			r, err := e.Find(t.Context(), []string{"h"}, nil, q, 10)
			if err != nil || r.Note != NoteNothing || len(r.Hits) > 0 || r.More {
				t.Errorf("Find(%q) = %+v, %v, want the note alone", q, r, err)
			}
		}
		if r, _ := e.Find(t.Context(), []string{"h"}, nil, "beta", 10); r.Note != "" {
			t.Errorf("a query with a word has the note %q", r.Note)
		}
	})
}

func TestFindAndAsk(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		e := New(d, 1<<30)
		put(t, d, notes("h", "red pump valve", "red pump", "blue valve", "pump REQ-7 valve")...)
		for _, c := range []struct {
			query string
			ask   bool
			want  []string // in this order
		}{
			{"red pump valve", false, []string{"red pump valve"}},
			{"red pump gasket", false, []string{"red pump", "red pump valve", "pump REQ-7 valve"}}, // any word, the fuller and shorter first
			{"red pump gasket", true, []string{"red pump", "red pump valve", "pump REQ-7 valve"}},
			{`"pump valve" gasket`, false, []string{"red pump valve"}}, // quotes bind
			{`"red valve" blue`, false, nil},
			{`"red valve" blue`, true, []string{"blue valve", "red pump valve", "red pump", "pump REQ-7 valve"}}, // and don't
			{"REQ-8 blue", false, []string{"blue valve"}},
			{"what is blue?", true, []string{"blue valve"}},
			{"blue -valve", true, nil},
		} {
			search := e.Find
			if c.ask {
				search = e.Ask
			}
			r, err := search(t.Context(), []string{"h"}, nil, c.query, 10)
			if got := found(r); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%q, ask %t: %q, %v, want %q", c.query, c.ask, got, err, c.want)
			}
		}
	})
}

func TestQueryTooLong(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		e := New(d, 1<<30)
		put(t, d, notes("h", "alpha beta", "alpha gamma", "omega")...)
		var b strings.Builder
		for i := range 5000 {
			fmt.Fprintf(&b, " x%d", i)
		}
		for query, want := range map[string][]string{
			"alpha" + b.String():               {"alpha gamma", "alpha beta"},
			"alpha" + b.String() + ` omega`:    {"alpha gamma", "alpha beta"},
			"alpha" + b.String() + ` -"gamma"`: {"alpha beta"}, // what is excluded binds all the same
		} {
			r, err := e.Find(t.Context(), []string{"h"}, nil, query, 10)
			if got := found(r); err != nil || r.Note != NoteLong || !slices.Equal(got, want) {
				t.Errorf("%.5s...: %q, note %q, %v, want %q", query, got, r.Note, err, want)
			}
		}
		many := strings.Repeat("alpha beta ", 5000)
		if r, err := e.Find(t.Context(), []string{"h"}, nil, many, 10); err != nil || r.Note != "" || len(r.Hits) != 1 {
			t.Errorf("the same words again and again: %+v, %v", r, err)
		}
	})
}
