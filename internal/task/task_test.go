package task_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/apptest"
	"cairn/internal/fault"
)

type one struct {
	ID             string
	Result         string
	State          string
	Completed      bool
	CompletionDate *string `json:"completion_date"`
	Changed        []string
	Ignored        []string
	Task           task
}

type task struct {
	ID, Text, Category, Heap string
	Description              *string
	DescriptionCut           bool    `json:"description_cut"`
	DueDate                  *string `json:"due_date"`
	ProjectID                *string `json:"project_id"`
	UpdatedAt                string  `json:"updated_at"`
	Starred                  bool
}

type list struct {
	Count      int
	Tasks      []task
	NextCursor string `json:"next_cursor"`
	Note       string
}

func call[T any](t *testing.T, a *apptest.App, ctx context.Context, name, args string) (v T) {
	t.Helper()
	apptest.Decode(t, a.Call(t, ctx, name, args), &v)
	return v
}

func create(t *testing.T, a *apptest.App, ctx context.Context, args string) one {
	t.Helper()
	return call[one](t, a, ctx, "create_personal_task", args)
}

func names(l list) (out []string) {
	for _, t := range l.Tasks {
		out = append(out, t.Text)
	}
	return out
}

func each(t *testing.T, f func(t *testing.T, a *apptest.App, ctx context.Context)) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) { f(t, a, a.As(t, a.Token(t, ""))) })
}

func TestCreateSpeaksAsHeroMindDid(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		a.Call(t, a.Person(t), "set_account", `{"zone":"America/New_York"}`)
		ctx = a.As(t, a.Token(t, ""))
		res := a.Result(t, ctx, "create_personal_task", `{"name":"Call \"Mum\"","due_date":"2024-01-15","external_ref":"r1","recurrence":"weekly"}`)
		var o one
		apptest.Decode(t, res.JSON, &o)
		want := "✅ Successfully created personal task: \"Call \"Mum\"\"\n\n📋 Task ID: " + o.ID + "\n🏷️ Category: personal\n📅 Due Date: Jan 15, 2024\n⏰ Created: Aug 10, 2026, 5:30 AM\n\n" +
			"The task is on the list and stays due until it is done.\nIgnored, as no such argument is known: recurrence"
		if diff := cmp.Diff(want, res.Texts[0]); diff != "" {
			t.Error(diff)
		}
		if len(res.Texts) != 2 || res.Texts[1] != string(res.JSON) || o.Result != "created" || strings.Join(o.Ignored, ",") != "recurrence" {
			t.Errorf("%q", res.Texts)
		}
		again := a.Result(t, ctx, "create_personal_task", `{"name":"Other","external_ref":"r1"}`)
		if !strings.HasPrefix(again.Texts[0], `ℹ️ Task already exists: "Call "Mum""`) {
			t.Error(again.Texts[0])
		}
	})
}

// CASES 30: a retry after a lost answer makes one task, whatever else is said of it.
func TestRetryAfterALostAnswerMakesTwo(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		var wg sync.WaitGroup
		ids := make([]string, 20)
		for i := range ids {
			wg.Go(func() {
				res, err := a.Runner.Run(ctx, "create_personal_task", json.RawMessage(`{"name":"once","external_ref":"ref"}`))
				if err != nil {
					t.Error(err)
					return
				}
				var o one
				_ = json.Unmarshal(res.JSON, &o)
				ids[i] = o.ID
			})
		}
		wg.Wait()
		for _, id := range ids {
			if id != ids[0] || id == "" {
				t.Fatalf("ids %q", ids)
			}
		}
		filled := create(t, a, ctx, `{"name":"changed","external_ref":"ref","description":"first","source_url":"https://example.org/a"}`)
		if filled.Result != "existing" || filled.Task.Text != "once" || *filled.Task.Description != "first" {
			t.Errorf("%+v", filled)
		}
		if kept := create(t, a, ctx, `{"name":"x","external_ref":"ref","description":"second"}`); *kept.Task.Description != "first" {
			t.Errorf("%+v", kept)
		}
		a.Call(t, ctx, "delete_task", `{"external_ref":"ref"}`)
		if o := create(t, a, ctx, `{"name":"x","external_ref":"ref"}`); o.Result != "existing" || o.State != "trashed" {
			t.Errorf("%+v", o)
		}
		if x, y := create(t, a, ctx, `{"name":"equal"}`), create(t, a, ctx, `{"name":"equal"}`); x.ID == y.ID {
			t.Error("equal titles are not a retry")
		}
		// In another heap the ref is a task of its own, but a caller who reaches both is given what is there.
		work := a.As(t, a.Token(t, `{"name":"w","rate":0,"heaps":["Work"]}`))
		if o := call[one](t, a, work, "create_work_task", `{"name":"at work","external_ref":"ref"}`); o.Result != "created" {
			t.Errorf("%+v", o)
		}
		f := a.Fails(t, ctx, "complete_task", `{"external_ref":"ref"}`, fault.Conflict)
		if c, _ := f.Data["candidates"].([]map[string]string); len(c) != 2 {
			t.Errorf("%+v", f)
		}
	})
}

// CASES 26: a date is the date as written, whatever the zone.
func TestDateOnlyDueShiftsADay(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		for _, zone := range []string{"America/Bogota", "Pacific/Auckland", "UTC"} {
			a.Call(t, a.Person(t), "set_account", `{"zone":"`+zone+`"}`)
			ctx := a.As(t, a.Token(t, ""))
			for in, want := range map[string]string{"2026-08-08": "2026-08-08", "2026-08-08T00:00:00Z": "2026-08-08", "2026-04-15T23:59:59Z": "2026-04-15"} {
				o := create(t, a, ctx, `{"name":"d","due_date":"`+in+`"}`)
				if *o.Task.DueDate != want {
					t.Errorf("%s in %s became %s", in, zone, *o.Task.DueDate)
				}
			}
		}
	})
}

// CASES 27: today is today in the account's zone.
func TestTodayFilters(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		a.Call(t, a.Person(t), "set_account", `{"zone":"Australia/Sydney"}`)
		a.Clock.Set(t, "2026-10-02T22:30:00Z") // 3 October, 8:30 there
		ctx = a.As(t, a.Token(t, ""))
		for _, d := range []string{"02", "03", "04"} {
			create(t, a, ctx, `{"name":"due `+d+`","due_date":"2026-10-`+d+`"}`)
		}
		create(t, a, ctx, `{"name":"today by default"}`)
		none := create(t, a, ctx, `{"name":"no date"}`)
		call[one](t, a, ctx, "update_task", `{"task_id":"`+none.ID+`","clear":["due_date"]}`)
		for args, want := range map[string]string{
			`{"due_to":"2026-10-03","completed":false}`: "today by default,due 03,due 02",
			`{"due_to":"2026-10-02"}`:                   "due 02",
			`{"due_from":"2026-10-03"}`:                 "today by default,due 04,due 03",
			`{"due_from":"2026-10-04T01:00:00+14:00"}`:  "due 04",
			`{}`: "no date,today by default,due 04,due 03,due 02",
		} {
			if got := strings.Join(names(call[list](t, a, ctx, "list_tasks", args)), ","); got != want {
				t.Errorf("%s: %s, want %s", args, got, want)
			}
		}
		done := call[one](t, a, ctx, "complete_task", `{"task_id":"`+none.ID+`"}`)
		if *done.CompletionDate != "2026-10-03" {
			t.Errorf("completed on %s", *done.CompletionDate)
		}
	})
}

// CASES 29: a second completion changes nothing and keeps the first date.
func TestSecondCompletionMovesTheDate(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		o := create(t, a, ctx, `{"name":"weekly","external_ref":"w","recurrence":"weekly"}`)
		if strings.Join(o.Ignored, "") != "recurrence" {
			t.Error("a recurrence must be listed as ignored")
		}
		first := call[one](t, a, ctx, "complete_task", `{"task_id":"`+o.ID+`"}`)
		a.Clock.Move(48 * time.Hour)
		second := call[one](t, a, ctx, "complete_task", `{"external_ref":"w"}`)
		if second.Result != "existing" || *second.CompletionDate != *first.CompletionDate || second.Task.UpdatedAt != first.Task.UpdatedAt {
			t.Errorf("%+v", second)
		}
		open := call[one](t, a, ctx, "complete_task", `{"external_ref":"w","completed":false}`)
		if open.Completed || open.CompletionDate != nil {
			t.Errorf("%+v", open)
		}
		if l := call[list](t, a, ctx, "list_tasks", `{}`); l.Count != 1 {
			t.Errorf("reopening left %d tasks", l.Count)
		}
		a.Fails(t, ctx, "complete_task", `{"external_ref":"none"}`, fault.NotFound)
		a.Fails(t, ctx, "complete_task", `{"task_id":"01890a5d-ac96-774b-bcce-b302099a8057"}`, fault.NotFound)
		a.Fails(t, ctx, "complete_task", `{}`, fault.Invalid)
	})
}

func TestListPagesNewestUpdatedFirstWithoutGapsOrRepeats(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		for i := range 25 {
			tool := []string{"create_personal_task", "create_work_task"}[i%2]
			a.Call(t, ctx, tool, fmt.Sprintf(`{"name":"t%02d"}`, i))
		}
		var got []string
		cursor := ""
		for pages := 0; pages < 20; pages++ {
			l := call[list](t, a, ctx, "list_tasks", `{"limit":4,"cursor":"`+cursor+`"}`)
			got = append(got, names(l)...)
			if cursor = l.NextCursor; cursor == "" {
				break
			}
		}
		if len(got) != 25 || got[0] != "t24" || got[24] != "t00" {
			t.Errorf("%q", got)
		}
		l := call[list](t, a, ctx, "list_tasks", `{"limit":1}`)
		since := l.Tasks[0].UpdatedAt
		if l := call[list](t, a, ctx, "list_tasks", `{"updated_since":"`+since+`"}`); l.Count == 0 {
			t.Error("updated_since is inclusive")
		}
		if l := call[list](t, a, ctx, "list_tasks", `{"category":"work"}`); l.Count != 12 {
			t.Errorf("%d work tasks", l.Count)
		}
		a.Fails(t, ctx, "list_tasks", `{"cursor":"nonsense"}`, fault.Invalid)
		a.Fails(t, ctx, "list_tasks", `{"cursor":"eApu"}`, fault.Invalid)
		a.Fails(t, ctx, "list_tasks", `{"updated_since":"yesterday"}`, fault.Invalid)
	})
}

// CASES 8: % and _ are characters like any other.
func TestPercentAndUnderscoreAsWildcards(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		for _, n := range []string{"100% done", "1000 done", "my_note", "myXnote"} {
			create(t, a, ctx, `{"name":"`+n+`","external_ref":"`+n+`"}`)
		}
		for args, want := range map[string]string{
			`{"external_ref_prefix":"100%"}`: "100% done", `{"external_ref_prefix":"my_"}`: "my_note", `{"external_ref_prefix":"%"}`: "", `{"external_ref_prefix":"_"}`: "",
			`{"external_ref_prefix":"my"}`: "myXnote,my_note", `{"query":"my_note"}`: "my_note", `{"query":"%"}`: "", `{"query":"100%"}`: "100% done", `{"query":"\\"}`: "",
		} {
			if got := strings.Join(names(call[list](t, a, ctx, "list_tasks", args)), ","); got != want {
				t.Errorf("%s: %q, want %q", args, got, want)
			}
		}
	})
}

func TestQueryFindsAndFilters(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		for i := range 30 {
			o := create(t, a, ctx, fmt.Sprintf(`{"name":"water the garden %d","description":"roses"}`, i))
			if i%3 != 0 {
				a.Call(t, ctx, "complete_task", `{"task_id":"`+o.ID+`"}`)
			}
		}
		var got []string
		cursor := ""
		for range 20 {
			l := call[list](t, a, ctx, "list_tasks", `{"query":"garden","completed":false,"limit":3,"cursor":"`+cursor+`"}`)
			got = append(got, names(l)...)
			if cursor = l.NextCursor; cursor == "" {
				break
			}
		}
		if len(got) != 10 {
			t.Errorf("%d: %q", len(got), got)
		}
		o := create(t, a, ctx, `{"name":"plant tulips"}`)
		find := func(q string) int { return call[list](t, a, ctx, "list_tasks", `{"query":"`+q+`"}`).Count }
		if find("tulip") != 1 {
			t.Error("own writes are found at once")
		}
		a.Call(t, ctx, "update_task", `{"task_id":"`+o.ID+`","name":"plant leeks"}`)
		if find("tulips") != 0 || find("leeks") != 1 {
			t.Error("a renamed task is found by its new name alone")
		}
		a.Call(t, ctx, "delete_task", `{"task_id":"`+o.ID+`"}`)
		if find("leeks") != 0 {
			t.Error("a trashed task is not found")
		}
		a.Call(t, ctx, "restore_task", `{"task_id":"`+o.ID+`"}`)
		if find("leeks") != 1 {
			t.Error("a restored task is found")
		}
		var res struct {
			Results []struct{ ID, Title, URL string }
		}
		apptest.Decode(t, a.Call(t, ctx, "search", `{"query":"where do I plant leeks?"}`), &res)
		if len(res.Results) == 0 || res.Results[0].ID != o.ID || !strings.HasSuffix(res.Results[0].URL, "/tasks/"+o.ID) {
			t.Errorf("%+v", res)
		}
		if got := string(a.Call(t, ctx, "fetch", `{"id":"`+o.ID+`"}`)); !strings.Contains(got, `"title":"plant leeks"`) {
			t.Error(got)
		}
	})
}

func TestUpdateAndTrash(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		o := create(t, a, ctx, `{"name":"a","description":"d"}`)
		id := `{"task_id":"` + o.ID + `",`
		u := call[one](t, a, ctx, "update_task", id+`"name":"b","starred":true,"due_date":"2026-09-01T10:00:00Z","effort_minutes":1440,"work_notes":"w","clear":["description"]}`)
		if strings.Join(u.Changed, ",") != "description,due_date,effort_minutes,name,starred,work_notes" || u.Task.Description != nil || *u.Task.DueDate != "2026-09-01" {
			t.Errorf("%+v", u)
		}
		if same := call[one](t, a, ctx, "update_task", id+`"name":"b"}`); same.Result != "existing" || same.Task.UpdatedAt != u.Task.UpdatedAt {
			t.Errorf("%+v", same)
		}
		a.Fails(t, ctx, "update_task", id+`"due_date":"2026-09-01","clear":["due_date"]}`, fault.Invalid)
		a.Fails(t, ctx, "update_task", `{"task_id":"`+o.ID+`"}`, fault.Invalid)
		a.Fails(t, ctx, "update_task", id+`"in_trsh":true}`, fault.Invalid)
		a.Fails(t, ctx, "update_task", id+`"effort_minutes":"5"}`, fault.Invalid)
		d := call[one](t, a, ctx, "delete_task", `{"task_id":"`+strings.ToUpper(o.ID)+`"}`)
		if d.State != "trashed" || call[one](t, a, ctx, "delete_task", `{"task_id":"`+o.ID+`"}`).Result != "existing" {
			t.Errorf("%+v", d)
		}
		a.Fails(t, ctx, "update_task", id+`"name":"c"}`, fault.Conflict)
		a.Fails(t, ctx, "complete_task", `{"task_id":"`+o.ID+`"}`, fault.Conflict)
		if call[list](t, a, ctx, "list_tasks", `{}`).Count != 0 || call[one](t, a, ctx, "get_task", `{"task_id":"`+o.ID+`"}`).State != "trashed" {
			t.Error("a trashed task is in no list, and get_task has it")
		}
		if r := call[one](t, a, ctx, "restore_task", `{"task_id":"`+o.ID+`"}`); r.State != "live" || !r.Task.Starred {
			t.Errorf("%+v", r)
		}
	})
}

func TestProjectSession(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		var p struct{ ID, Result string }
		apptest.Decode(t, a.Call(t, ctx, "create_project", `{"name":"Garden","current_focus":"beds","heap":"Work"}`), &p)
		if again := call[struct{ ID, Result string }](t, a, ctx, "create_project", `{"name":"  garden ","heap":"work"}`); again.ID != p.ID || again.Result != "existing" {
			t.Errorf("%+v", again)
		}
		a.Fails(t, ctx, "create_personal_task", `{"name":"x","project_name":"GARDEN"}`, fault.Conflict)
		mine := call[one](t, a, ctx, "create_work_task", `{"name":"dig","project_name":"GARDEN"}`)
		other := call[one](t, a, ctx, "create_work_task", `{"name":"elsewhere"}`)
		res := a.Result(t, ctx, "log_session_summary", `{"project_name":"garden","summary":"Dug.","next_steps":"Plant.","completed_task_ids":["`+mine.ID+`","`+other.ID+`"],"new_tasks":[{"text":"plant","effort_minutes":30,"work_notes":"deep"}]}`)
		var s struct {
			ID                          string
			Completed, Created, Skipped []string
		}
		apptest.Decode(t, res.JSON, &s)
		want := "✅ Logged session summary to project \"Garden\"\n📝 Log entry ID: " + s.ID + "\n✔️ Tasks completed: 1 (of 2 requested)\n➕ Tasks created: 1 (" + s.Created[0] + ")\n🔄 Resume brief invalidated: yes\n⚠️ Skipped: " + other.ID
		if diff := cmp.Diff(want, res.Texts[0]); diff != "" {
			t.Error(diff)
		}
		var c struct {
			Project     struct{ ID, Name string }
			ResumeBrief *struct{ Text string }                   `json:"resume_brief"`
			RecentLog   []struct{ Kind, Source, Content string } `json:"recent_log"`
			OpenTasks   []struct {
				ID, Text string
				Effort   int `json:"effort_minutes"`
			} `json:"open_tasks"`
		}
		apptest.Decode(t, a.Call(t, ctx, "get_project_context", `{"project_id":"`+p.ID+`"}`), &c)
		if c.ResumeBrief != nil || len(c.RecentLog) != 1 || c.RecentLog[0].Content != "Dug.\n\nNext steps: Plant." || c.RecentLog[0].Source != "mcp" || len(c.OpenTasks) != 1 || c.OpenTasks[0].Effort != 30 {
			t.Errorf("%+v", c)
		}
		// A person who opens the project has the brief made; a session drops it again.
		apptest.Decode(t, a.Call(t, a.Person(t), "get_project_context", `{"project_name":"Garden"}`), &c)
		if c.ResumeBrief == nil || !strings.Contains(c.ResumeBrief.Text, "Focus: beds") {
			t.Errorf("%+v", c.ResumeBrief)
		}
		a.Call(t, ctx, "log_session_summary", `{"project_name":"garden","summary":"More."}`)
		c.ResumeBrief = nil
		apptest.Decode(t, a.Call(t, ctx, "get_project_context", `{"project_name":"garden"}`), &c)
		if c.ResumeBrief != nil {
			t.Error("a session drops the brief")
		}
		before := call[list](t, a, ctx, "list_tasks", `{}`).Count
		a.Fails(t, ctx, "log_session_summary", `{"project_name":"garden","summary":"x","new_tasks":[{"text":"ok"},{"text":""}]}`, fault.Invalid)
		if call[list](t, a, ctx, "list_tasks", `{}`).Count != before {
			t.Error("a refused session left tasks")
		}
		texts := a.Result(t, ctx, "list_projects", `{}`).Texts
		if len(texts) != 1 || !strings.HasPrefix(texts[0], "Projects (1):\n[{\"id\":\""+p.ID) || !strings.Contains(texts[0], `"open_task_count":1`) {
			t.Errorf("%q", texts)
		}
		a.Call(t, ctx, "create_project", `{"name":"Garden","heap":"Personal"}`)
		f := a.Fails(t, ctx, "get_project_context", `{"project_name":"garden"}`, fault.Conflict)
		if c, _ := f.Data["candidates"].([]map[string]string); len(c) != 2 {
			t.Errorf("%+v", f.Data)
		}
		a.Call(t, ctx, "update_project", `{"project_id":"`+p.ID+`","archived":true}`)
		if l := call[struct{ Count int }](t, a, ctx, "list_projects", `{}`); l.Count != 1 {
			t.Errorf("%d projects", l.Count)
		}
	})
}

func TestHeapsAreApart(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		private := create(t, a, ctx, `{"name":"secret plan","external_ref":"p"}`)
		var p struct{ ID string }
		apptest.Decode(t, a.Call(t, ctx, "create_project", `{"name":"Secret","heap":"Personal"}`), &p)
		work := a.As(t, a.Token(t, `{"name":"work","rate":0,"heaps":["Work"]}`))
		absent := "01890a5d-ac96-774b-bcce-b302099a8057"
		for _, tool := range []string{"get_task", "complete_task", "delete_task", "restore_task"} {
			x := a.Fails(t, work, tool, `{"task_id":"`+private.ID+`"}`, fault.NotFound)
			y := a.Fails(t, work, tool, `{"task_id":"`+absent+`"}`, fault.NotFound)
			if strings.ReplaceAll(x.Message, private.ID, absent) != y.Message {
				t.Errorf("%s tells absent from forbidden: %q, %q", tool, x.Message, y.Message)
			}
		}
		a.Fails(t, work, "get_project_context", `{"project_id":"`+p.ID+`"}`, fault.NotFound)
		a.Fails(t, work, "get_project_context", `{"project_name":"secret"}`, fault.NotFound)
		a.Fails(t, work, "fetch", `{"id":"`+private.ID+`"}`, fault.NotFound)
		a.Fails(t, work, "create_personal_task", `{"name":"x"}`, fault.Invalid)
		a.Fails(t, work, "create_work_task", `{"name":"x","heap":"Personal"}`, fault.NotFound)
		a.Fails(t, ctx, "create_work_task", `{"name":"x","heap":"Personal"}`, fault.Invalid)
		if call[list](t, a, work, "list_tasks", `{}`).Count != 0 || call[list](t, a, work, "list_tasks", `{"query":"secret"}`).Count != 0 {
			t.Error("another heap's task is listed")
		}
		if got := string(a.Call(t, work, "search", `{"query":"secret"}`)); got != `{"results":[]}` {
			t.Error(got)
		}
		reading := a.As(t, a.Token(t, `{"name":"reader","rate":0,"read_only":true}`))
		a.Fails(t, reading, "create_personal_task", `{"name":"x"}`, fault.Scope)
		memory := a.As(t, a.Token(t, `{"name":"memory","rate":0,"areas":["memory"]}`))
		a.Fails(t, memory, "list_tasks", `{}`, fault.UnknownTool)
		if got := string(a.Call(t, memory, "search", `{"query":"secret"}`)); got != `{"results":[]}` {
			t.Error(got)
		}
		if got := string(a.Call(t, memory, "list_changes", `{}`)); !strings.Contains(got, `"count":0`) {
			t.Error("changes of tasks are shown without the area: " + got)
		}
	})
}

// CASES 34: parallel writers lose nothing and get no lock error.
func TestParallelWritesLoseOrCorrupt(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		a.Call(t, ctx, "create_project", `{"name":"P","heap":"Personal"}`)
		var wg sync.WaitGroup
		for c := range 20 {
			wg.Go(func() {
				for i := range 10 {
					args := fmt.Sprintf(`{"name":"client %d write %d","external_ref":"%d/%d"}`, c, i, c, i)
					if _, err := a.Runner.Run(ctx, "create_personal_task", json.RawMessage(args)); err != nil {
						t.Error(err)
					}
					if i%3 == 0 {
						if _, err := a.Runner.Run(ctx, "log_session_summary", json.RawMessage(`{"project_name":"P","summary":"s"}`)); err != nil {
							t.Error(err)
						}
						if _, err := a.Runner.Run(ctx, "list_tasks", json.RawMessage(`{"query":"client"}`)); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
		seen := map[string]bool{}
		cursor := ""
		for range 30 {
			l := call[list](t, a, ctx, "list_tasks", `{"limit":40,"query":"client","cursor":"`+cursor+`"}`)
			for _, n := range names(l) {
				seen[n] = true
			}
			if cursor = l.NextCursor; cursor == "" {
				break
			}
		}
		if len(seen) != 200 {
			t.Errorf("%d of 200 tasks are there", len(seen))
		}
		var changes, tasks int
		if err := a.DB.One(ctx, `SELECT count(*), count(DISTINCT thing) FROM change WHERE kind = 'task'`, nil, &changes, &tasks); err != nil || changes != 200 || tasks != 200 {
			t.Errorf("%d changes of %d tasks, %v", changes, tasks, err)
		}
	})
}
