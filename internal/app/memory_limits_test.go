package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cairn/internal/apptest"
	"cairn/internal/fault"
)

// filled gives a text of n characters, each of several bytes, but for a beginning that makes it one of its kind.
func filled(n, unique int) string {
	head := "x" + strconv.Itoa(unique) + " "
	return head + strings.Repeat("漢", n-len(head)-1) + "😀"
}

func many(n int, of string) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = of + strconv.Itoa(i)
	}
	return list
}

// Every text, list and number of the memory's operations at the contract's limit passes, and one more is refused with the
// field, the value and the limit.
func TestMemoryAtEveryLimit(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		me, agent, n := a.Person(t), a.As(t, a.Token(t, "")), 0
		asking := a.As(t, a.Token(t, `{"name":"asks","rate":0,"propose_memory":true}`))
		capture := func(ctx context.Context) string {
			n++
			var made struct{ Results []struct{ ID string } }
			apptest.Decode(t, a.Call(t, ctx, "capture_context", fmt.Sprintf(`{"objects":[{"kind":"belief","statement":"View number %d"}]}`, n)), &made)
			return made.Results[0].ID
		}
		for _, c := range []struct {
			op, args, field string
			limit           int
		}{
			{"supersede_context", `{"id":"CURRENT","statement":"s"}`, "statement", 2000}, {"supersede_context", `{"id":"CURRENT","statement":"UNIQUE"}`, "reason", 2000},
			{"correct_context", `{}`, "statement", 2000}, {"correct_context", `{"statement":"Not UNIQUE"}`, "subject", 300},
			{"accept_proposal", `{"id":"WAITING"}`, "statement", 2000}, {"edit_proposal", `{"id":"WAITING"}`, "statement", 2000}, {"edit_proposal", `{"id":"WAITING"}`, "subject", 300},
			{"decline_proposal", `{"id":"WAITING"}`, "reason", 2000}, {"retire_context", `{"id":"CURRENT"}`, "reason", 2000},
			{"list_context", `{}`, "query", 10000}, {"list_context", `{}`, "subject", 300}, {"list_context", `{}`, "limit", 200}, {"list_proposals", `{}`, "limit", 200},
			{"get_context", `{}`, "query", 10000}, {"get_context", `{"query":"x"}`, "budget", 16000}, {"trace_lineage", `{}`, "idea", 10000},
			{"upsert_daily_note", `{"date":"2026-08-10","title":"t","body":"b"}`, "external_ref", 300}, {"upsert_daily_note", `{"external_ref":"UNIQUE","date":"2026-08-10","body":"b"}`, "title", 300},
			{"upsert_daily_note", `{"external_ref":"UNIQUE","date":"2026-08-10","title":"t"}`, "body", 20000},
			{"upsert_daily_note", `{"external_ref":"UNIQUE","date":"2026-08-10","title":"t","body":"b"}`, "source_url", 2048},
			{"add_decision", `{"title":"UNIQUE"}`, "external_ref", 300}, {"add_decision", `{"external_ref":"UNIQUE"}`, "title", 300}, {"add_decision", `{"external_ref":"UNIQUE","title":"UNIQUE"}`, "detail", 20000},
			{"add_decision", `{"external_ref":"UNIQUE","title":"UNIQUE"}`, "source_url", 2048},
			{"add_episode", `{"occurred_at":"2026-08-10","summary":"s"}`, "external_ref", 300}, {"add_episode", `{"external_ref":"UNIQUE","occurred_at":"2026-08-10"}`, "summary", 2000},
			{"add_episode", `{"external_ref":"UNIQUE","occurred_at":"2026-08-10","summary":"s"}`, "detail", 20000}, {"add_episode", `{"external_ref":"UNIQUE","occurred_at":"2026-08-10","summary":"s"}`, "kind", 60},
			{"add_episode", `{"external_ref":"UNIQUE","occurred_at":"2026-08-10","summary":"s"}`, "people", 50}, {"add_episode", `{"external_ref":"UNIQUE","occurred_at":"2026-08-10","summary":"s"}`, "source_url", 2048},
			{"get_timeline", `{}`, "limit", 300}, {"journal", `{}`, "text", 20000}, {"evidence", `{}`, "statement", 2000}, {"meeting", `{}`, "summary", 20000}, {"meeting", `{"summary":"s"}`, "people", 50},
			{"quest", `{}`, "title", 300}, {"quest", `{"title":"q"}`, "why", 2000}, {"blueprint", `{"section":"values"}`, "text", 20000},
			{"person", `{}`, "name", 300}, {"person", `{"name":"UNIQUE"}`, "aliases", 50}, {"list_people", `{}`, "limit", 200}, {"list_quests", `{}`, "limit", 200}, {"search", `{}`, "query", 10000},
		} {
			call := func(size int) (map[string]any, string) {
				n++
				text := strings.ReplaceAll(c.args, "UNIQUE", "unique "+strconv.Itoa(n))
				if strings.Contains(text, "CURRENT") {
					text = strings.ReplaceAll(text, "CURRENT", capture(me))
				}
				if strings.Contains(text, "WAITING") {
					text = strings.ReplaceAll(text, "WAITING", capture(asking))
				}
				args := map[string]any{}
				apptest.Decode(t, []byte(text), &args)
				switch c.field {
				case "limit", "budget":
					args[c.field] = size
				case "people", "aliases":
					args[c.field] = many(size, fmt.Sprintf("name %d ", n))
				case "source_url":
					args[c.field] = "https://example.org/" + strings.Repeat("a", size-20)
				default:
					args[c.field] = filled(size, n)
				}
				b, err := json.Marshal(args)
				if err != nil {
					t.Fatal(err)
				}
				return args, string(b)
			}
			_, full := call(c.limit)
			if _, err := a.Runner.Run(me, c.op, json.RawMessage(full)); err != nil {
				t.Errorf("%s: %s of %d: %v", c.op, c.field, c.limit, err)
			}
			_, more := call(c.limit + 1)
			_, err := a.Runner.Run(me, c.op, json.RawMessage(more))
			if err == nil {
				t.Errorf("%s: %s of %d passes", c.op, c.field, c.limit+1)
				continue
			}
			said := fault.From(err)
			if text := said.Message; said.Kind != fault.Invalid || !strings.Contains(text, c.field) || !strings.Contains(text, strconv.Itoa(c.limit)) || !strings.Contains(text, strconv.Itoa(c.limit+1)) {
				t.Errorf("%s: %s of %d: %v: %s", c.op, c.field, c.limit+1, said.Kind, text)
			}
		}
		// Names within a list, and objects within a capture.
		for _, c := range []struct{ op, field, args string }{
			{"add_episode", "people", `{"external_ref":"names","occurred_at":"2026-08-10","summary":"s","people":["NAME"]}`}, {"meeting", "people", `{"summary":"s","people":["a","NAME"]}`}, {"person", "aliases", `{"name":"B","aliases":["NAME"]}`},
		} {
			f := a.Fails(t, me, c.op, strings.ReplaceAll(c.args, "NAME", strings.Repeat("é", 301)), fault.Invalid)
			if f.Field != c.field || !strings.Contains(f.Message, "301") || !strings.Contains(f.Message, "300") {
				t.Errorf("%s: %s", c.op, f.Message)
			}
			a.Call(t, me, c.op, strings.ReplaceAll(c.args, "NAME", strings.Repeat("é", 300)))
		}
		object := func(field string, size int) string {
			n++
			o := map[string]any{"kind": "learning", "statement": "I learned " + strconv.Itoa(n), field: filled(size, n)}
			b, _ := json.Marshal(map[string]any{"objects": []any{o}})
			return string(b)
		}
		for field, limit := range map[string]int{"statement": 2000, "subject": 300} {
			a.Call(t, agent, "capture_context", object(field, limit))
			f := a.Fails(t, agent, "capture_context", object(field, limit+1), fault.Invalid)
			if !strings.Contains(f.Message, "objects[0]."+field) || !strings.Contains(f.Message, strconv.Itoa(limit)) || !strings.Contains(f.Message, strconv.Itoa(limit+1)) {
				t.Errorf("%s: %s", field, f.Message)
			}
		}
	})
}

// Twenty objects of which two are the same are nineteen; twenty-one are refused, and nothing is kept.
func TestCaptureOfTwentyAndOfTwentyOne(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		agent := a.As(t, a.Token(t, ""))
		var objects []map[string]any
		for i := range 20 {
			objects = append(objects, map[string]any{"kind": "belief", "subject": "numbers", "statement": fmt.Sprintf("I believe in the number %d.", i)})
		}
		objects[19] = map[string]any{"kind": "belief", "subject": " NUMBERS", "statement": "i really believe in the number 4"}
		b, _ := json.Marshal(map[string]any{"objects": objects})
		var out struct {
			Results []struct {
				ID, Result, Kind, Subject, Status string
				Similar                           []string
			}
		}
		apptest.Decode(t, a.Call(t, agent, "capture_context", string(b)), &out)
		ids := map[string]bool{}
		for i, r := range out.Results {
			ids[r.ID] = true
			if want := map[bool]string{true: "existing", false: "created"}[i == 19]; r.Result != want || r.Kind != "belief" || r.Status != "current" {
				t.Errorf("%d: %+v", i, r)
			}
		}
		if len(out.Results) != 20 || len(ids) != 19 || out.Results[19].ID != out.Results[4].ID || len(out.Results[18].Similar) != 18 {
			t.Errorf("%d results, %d things, %+v", len(out.Results), len(ids), out.Results)
		}
		objects[19]["statement"] = "I believe in twenty"
		b, _ = json.Marshal(map[string]any{"objects": append(objects, map[string]any{"kind": "belief", "statement": "I believe in twenty-one"})})
		f := a.Fails(t, agent, "capture_context", string(b), fault.Invalid)
		if !strings.Contains(f.Message, "objects has 21 elements, at most 20 are allowed") {
			t.Error(f.Message)
		}
		var l struct{ Count int }
		apptest.Decode(t, a.Call(t, a.Person(t), "list_context", `{}`), &l)
		if l.Count != 19 {
			t.Errorf("%d are held", l.Count)
		}
	})
}

// Dates that there are not are refused by the name of their field; the first and the last that there are pass.
func TestDatesOutOfRange(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		me := a.Person(t)
		moments := map[string]string{"add_decision decided_at": `"external_ref":"REF","title":"REF"`, "add_episode occurred_at": `"external_ref":"REF","summary":"s"`, "journal at": `"text":"REF"`,
			"evidence at": `"statement":"REF"`, "meeting at": `"summary":"REF"`, "get_timeline since": `"limit":1`, "get_timeline until": `"since":"0001-01-01"`}
		days := map[string]string{"upsert_daily_note date": `"external_ref":"REF","title":"t","body":"b"`, "quest from": `"title":"q"`, "quest until": `"title":"q"`, "get_context today": `"query":"x"`}
		n := 0
		args := func(field, base, value string) string {
			n++
			return fmt.Sprintf(`{%s,%q:%q}`, strings.ReplaceAll(base, "REF", fmt.Sprintf("ref %d", n)), field, value)
		}
		never := []string{"0000-01-01", "0000-12-31T23:59:59Z", "10000-01-01", "10000-01-01T00:00:00Z", "2026-02-30", "2025-02-29", "2026-13-01", "2026-00-10", "2026-08-32", "-0044-03-15", "+2026-08-10",
			"2026-08-10T24:00:00Z", "2026-08-10T12:60:00Z", "2026-08-10T12:00:00+25:00", "yesterday", "20260810", "2026-8-1", "٢٠٢٦-٠٨-١٠", "2026-08-10\u202e", "1786000000"}
		for op, base := range moments {
			name, field, _ := strings.Cut(op, " ")
			for _, bad := range append([]string{"0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"}, never...) {
				if f := a.Fails(t, me, name, args(field, base, bad), fault.Invalid); !strings.Contains(f.Message, field) || f.Field != field {
					t.Errorf("%s of %s: %q: %s", op, bad, f.Field, f.Message)
				}
			}
			for _, good := range []string{"0001-01-01", "9999-12-31", "2024-02-29", "0001-01-01T00:00:00Z", "0001-01-01T14:00:00+14:00", "9999-12-31T23:59:59.999Z", "9999-12-31T11:59:59-12:00", "2026-08-10T23:59:59.999+14:00"} {
				a.Call(t, me, name, args(field, base, good))
			}
		}
		for op, base := range days {
			name, field, _ := strings.Cut(op, " ")
			for _, bad := range never {
				if f := a.Fails(t, me, name, args(field, base, bad), fault.Invalid); !strings.Contains(f.Message, field) {
					t.Errorf("%s of %s: %s", op, bad, f.Message)
				}
			}
			for _, good := range []string{"0001-01-01", "9999-12-31", "2024-02-29", "2026-08-10T23:59:59.999+14:00"} {
				a.Call(t, me, name, args(field, base, good))
			}
		}
	})
}

// A subject is found by its id, slug, name or alias; who isn't known, or is several, is said so.
func TestSubjectsOfContext(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		me, agent := a.Person(t), a.As(t, a.Token(t, ""))
		person := func(args string) string {
			var p struct{ ID string }
			apptest.Decode(t, a.Call(t, me, "person", args), &p)
			return p.ID
		}
		anna := person(`{"name":"Anna Łęcka","aliases":["Al","阿娜"]}`)
		person(`{"name":"Sam One","aliases":["Sam"]}`)
		person(`{"name":"Sam Two","aliases":["sam"]}`)
		hidden := person(`{"name":"Zenobia","private":true}`)
		a.Call(t, me, "capture_context", `{"objects":[{"kind":"decision","statement":"I visit anna łęcka on Sundays."},{"kind":"decision","statement":"I also sail."},{"kind":"decision","statement":"我和阿娜一起吃饭。"},
			{"kind":"decision","statement":"Al and I plant beans."},{"kind":"open_question","statement":"What does Zenobia want?"}]}`)
		var project struct{ ID string }
		apptest.Decode(t, a.Call(t, me, "create_project", `{"name":"Sail"}`), &project)
		for _, c := range []struct{ subject, want string }{
			{`{"kind":"person","id":"` + anna + `"}`, "Al and I plant beans.|我和阿娜一起吃饭。|I visit anna łęcka on Sundays."},
			{`{"kind":"person","id":"` + strings.ToUpper(anna) + `"}`, "Al and I plant beans.|我和阿娜一起吃饭。|I visit anna łęcka on Sundays."},
			{`{"kind":"person","slug":"anna-łecka"}`, "Al and I plant beans.|我和阿娜一起吃饭。|I visit anna łęcka on Sundays."},
			{`{"kind":"person","name":"AL"}`, "Al and I plant beans.|我和阿娜一起吃饭。|I visit anna łęcka on Sundays."},
			{`{"kind":"person","name":"Nobody Known"}`, ""},
			{`{"kind":"project","id":"` + project.ID + `"}`, "I also sail."},
			{`{"kind":"project","name":"sail"}`, "I also sail."},
			{`{"kind":"topic","name":"bean"}`, "Al and I plant beans."},
			{`{"kind":"book","name":"Sundays"}`, "I visit anna łęcka on Sundays."},
		} {
			var l packed
			apptest.Decode(t, a.Call(t, agent, "get_context", `{"scope":"self","subject":`+c.subject+`}`), &l)
			var got []string
			for _, line := range l.Layers["self"] {
				got = append(got, line.Text)
			}
			want := strings.FieldsFunc(c.want, func(r rune) bool { return r == '|' })
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", c.subject, got, want)
			}
			if unknown := strings.Contains(strings.Join(l.Notes, " "), "No person called “Nobody Known” is known"); unknown != strings.Contains(c.subject, "Nobody") {
				t.Errorf("%s: notes %q", c.subject, l.Notes)
			}
			a.Call(t, agent, "get_context", `{"query":"plan","subject":`+c.subject+`}`)
		}
		const absent = "01890a5d-ac96-774b-bcce-b302099a8057"
		for subject, kind := range map[string]fault.Kind{
			`{"kind":"person","id":"` + absent + `"}`:           fault.NotFound,
			`{"kind":"person","slug":"nobody"}`:                 fault.NotFound,
			`{"kind":"person","slug":"zenobia"}`:                fault.NotFound, // private: no agent knows of her
			`{"kind":"person","id":"` + hidden + `"}`:           fault.NotFound,
			`{"kind":"project","id":"` + absent + `"}`:          fault.NotFound,
			`{"kind":"book","id":"` + absent + `"}`:             fault.NotFound,
			`{"kind":"person","name":"Sam"}`:                    fault.Conflict,
			`{"kind":"person"}`:                                 fault.Invalid,
			`{"kind":"place","name":"x"}`:                       fault.Invalid,
			`{"kind":"person","name":"` + filled(301, 0) + `"}`: fault.Invalid,
		} {
			f := a.Fails(t, agent, "get_context", `{"subject":`+subject+`}`, kind)
			if kind == fault.Conflict && len(f.Data["candidates"].([]map[string]string)) != 2 {
				t.Errorf("%+v", f.Data)
			}
		}
		a.Fails(t, agent, "get_timeline", `{"person_slug":"Sam"}`, fault.Conflict)
		a.Fails(t, agent, "get_timeline", `{"person_slug":"zenobia"}`, fault.NotFound)
		a.Call(t, me, "get_context", `{"subject":{"kind":"person","slug":"zenobia"}}`)
	})
}

// Questions of any length and script are answered, and find what is written in theirs.
func TestQueriesOfAnyScript(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		me := a.Person(t)
		said := map[string]string{"launch 🚀": "We launch on Friday 🚀", "搬到里斯本": "我决定搬到里斯本", "البحر": "أحب البحر كثيرا", "garden 花园 حديقة": "The garden, 花园, حديقة is one word to me", "море": "Я люблю море", "역사": "나는 조선역사를 좋아한다"}
		ids := map[string]string{}
		for _, query := range slices.Sorted(maps.Keys(said)) {
			var made struct{ Results []struct{ ID string } }
			apptest.Decode(t, a.Call(t, me, "capture_context", fmt.Sprintf(`{"objects":[{"kind":"decision","statement":%q}]}`, said[query])), &made)
			ids[query] = made.Results[0].ID
		}
		if err := a.Jobs.Due(t.Context()); err != nil {
			t.Fatal(err)
		}
		calls := map[string]string{"search": "query", "list_context": "query", "get_context": "query", "trace_lineage": "idea"}
		for name, field := range calls {
			ask := func(query string) string {
				b, _ := json.Marshal(map[string]string{field: query})
				return string(b)
			}
			for query, id := range ids {
				if got := string(a.Call(t, me, name, ask(query))); !strings.Contains(got, id) {
					t.Errorf("%s %q doesn't find %q: %s", name, query, said[query], got)
				}
			}
			for _, unit := range []string{"garden ", "🚀", "👩‍👩‍👧", "花", "花园 ", "حديقة ", "ا\u0301", "garden花園حديقة🚀 ", "\"", "(", "-x ", "a OR ", "é", "\u202e", "!"} {
				long := []rune(strings.Repeat(unit, 10_001))
				if _, err := a.Runner.Run(me, name, json.RawMessage(ask(string(long[:10_000])))); err != nil && fault.From(err).Kind != fault.Invalid {
					t.Errorf("%s of 10,000 characters of %q: %v", name, unit, err)
				} else if err != nil && unit != "-x " && unit != "\u202e" {
					t.Errorf("%s of 10,000 characters of %q is refused: %v", name, unit, err)
				}
				f := a.Fails(t, me, name, ask(string(long[:10_001])), fault.Invalid)
				if !strings.Contains(f.Message, field) || unit != "\u202e" && (!strings.Contains(f.Message, "10001") || !strings.Contains(f.Message, "10000")) {
					t.Errorf("%s of 10,001: %s", name, f.Message)
				}
			}
		}
	})
}
