package task_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/apptest"
	"cairn/internal/db"
	"cairn/internal/fault"
)

// Each test here is named after a fault that was found by trying to break things.

func TestEmptyClearErasesTheFocus(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		a.Call(t, ctx, "create_project", `{"name":"F","current_focus":"keep me"}`)
		if got := string(a.Call(t, ctx, "update_project", `{"project_name":"F","archived":true,"clear":[]}`)); !strings.Contains(got, "keep me") {
			t.Error(got)
		}
		a.Call(t, ctx, "update_project", `{"project_name":"F","current_focus":"x","clear":[]}`)
	})
}

func TestWholeNumberWithANoughtIsRefused(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		o := create(t, a, ctx, `{"name":"x"}`)
		got := string(a.Call(t, ctx, "update_task", `{"task_id":"`+o.ID+`","effort_minutes":60.0}`))
		if !strings.Contains(got, `"effort_minutes":60`) {
			t.Error(got)
		}
		a.Fails(t, ctx, "update_task", `{"task_id":"`+o.ID+`","effort_minutes":60.5}`, fault.Invalid)
	})
}

func TestInvisibleNameIsTaken(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		for _, name := range []string{`\u200b`, `\ufeff`, `\u202e`, `\u2800`, `\u00a0 `, `\u200d\ufe0f`} {
			a.Fails(t, ctx, "create_project", `{"name":"`+name+`"}`, fault.Invalid)
			a.Fails(t, ctx, "create_personal_task", `{"name":"`+name+`"}`, fault.Invalid)
		}
		a.Call(t, ctx, "create_personal_task", `{"name":"👩‍👩‍👧"}`)
	})
}

func TestProjectNamesDifferInCaseAlone(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		for made, asked := range map[string]string{"ΟΔΟΣ": "οδος", "Straße": "STRASSE", "Cafe\u0301": "CAFÉ", "ΐ": "Ϊ́", "A  b": "a B"} {
			made, _ := json.Marshal(made)
			asked, _ := json.Marshal(asked)
			a.Call(t, ctx, "create_project", `{"name":`+string(made)+`}`)
			a.Call(t, ctx, "get_project_context", `{"project_name":`+string(asked)+`}`)
		}
	})
}

func TestParallelCreationMakesProjectsOfOneName(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		var wg sync.WaitGroup
		for range 12 {
			wg.Go(func() {
				if _, err := a.Runner.Run(ctx, "create_project", json.RawMessage(`{"name":"One"}`)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if l := call[struct{ Count int }](t, a, ctx, "list_projects", `{}`); l.Count != 1 {
			t.Errorf("%d projects", l.Count)
		}
		a.Call(t, ctx, "create_project", `{"name":"Two"}`)
		a.Fails(t, ctx, "update_project", `{"project_name":"Two","name":"ONE"}`, fault.Conflict)
	})
}

func TestClashOfOneTaskBreaksTheUndoOfARun(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		personal := a.As(t, a.Token(t, `{"name":"p","rate":0,"heaps":["Personal"]}`))
		var p struct{ ID string }
		apptest.Decode(t, a.Call(t, a.Person(t), "create_project", `{"name":"W","heap":"Work"}`), &p)
		moved := create(t, a, personal, `{"name":"A","external_ref":"r"}`)
		create(t, a, ctx, `{"name":"first"}`)
		a.Call(t, ctx, "update_task", `{"task_id":"`+moved.ID+`","project_id":"`+p.ID+`"}`)
		create(t, a, ctx, `{"name":"last"}`)
		_, _, run := newest(t, a)
		create(t, a, personal, `{"name":"B","external_ref":"r"}`)
		for _, dry := range []string{"true", "false"} {
			u := call[undone](t, a, anew(ctx), "undo_change", `{"run":"`+run+`","dry_run":`+dry+`}`)
			if len(u.Undone) != 2 || len(u.Left) != 1 || !strings.Contains(u.Left[0].Why, "external_ref") {
				t.Errorf("dry_run %s: %+v", dry, u)
			}
		}
		if l := call[list](t, a, ctx, "list_tasks", `{"category":"personal"}`); strings.Join(names(l), ",") != "B" {
			t.Errorf("%q", names(l))
		}
	})
}

func TestUndoLeavesALiveTaskInATrashedProject(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		a.Call(t, ctx, "create_project", `{"name":"P"}`)
		made, _, _ := newest(t, a)
		o := create(t, a, ctx, `{"name":"T","project_name":"P"}`)
		a.Call(t, ctx, "delete_task", `{"task_id":"`+o.ID+`"}`)
		deleted, _, _ := newest(t, a)
		call[undone](t, a, anew(ctx), "undo_change", `{"change_id":"`+made+`"}`)
		if u := call[undone](t, a, anew(ctx), "undo_change", `{"change_id":"`+deleted+`"}`); len(u.Undone) != 0 || len(u.Left) != 1 {
			t.Errorf("%+v", u)
		}
		if r := call[one](t, a, ctx, "restore_task", `{"task_id":"`+o.ID+`"}`); r.Task.ProjectID != nil || r.State != "live" {
			t.Errorf("%+v", r)
		}
	})
}

func TestUndoOfALongRunSticksOnWhatIsLeft(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		first := create(t, a, ctx, `{"name":"first"}`)
		o := create(t, a, ctx, `{"name":"renamed"}`)
		for i := range 1010 {
			a.Call(t, ctx, "update_task", fmt.Sprintf(`{"task_id":%q,"name":"n%d"}`, o.ID, i))
		}
		_, _, run := newest(t, a)
		a.Call(t, a.Person(t), "update_task", `{"task_id":"`+o.ID+`","name":"the person's"}`)
		res := a.Call(t, anew(ctx), "undo_change", `{"run":"`+run+`"}`)
		u := call[struct {
			More      bool
			LeftCount int `json:"left_count"`
		}](t, a, anew(ctx), "list_heaps", `{}`)
		apptest.Decode(t, res, &u)
		if u.More || u.LeftCount != 1010 || len(res) > 50_000 {
			t.Errorf("more %v, %d left, %d bytes", u.More, u.LeftCount, len(res))
		}
		if s := call[one](t, a, ctx, "get_task", `{"task_id":"`+first.ID+`"}`).State; s != "trashed" {
			t.Errorf("the first task is %s", s)
		}
	})
}

func TestTamperedCursorBurnsTheProcessor(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		create(t, a, ctx, `{"name":"zebra"}`)
		for _, c := range []string{"9223372036854775757", "-1", "99999999", "x"} {
			a.Fails(t, ctx, "list_tasks", `{"query":"zebra","cursor":"`+base64.RawURLEncoding.EncodeToString([]byte(c))+`"}`, fault.Invalid)
		}
		a.Call(t, ctx, "list_tasks", `{"query":"zebra","cursor":"`+base64.RawURLEncoding.EncodeToString([]byte("2000000"))+`"}`)
		a.Fails(t, ctx, "list_changes", `{"cursor":"`+base64.RawURLEncoding.EncodeToString([]byte("abc\nx"))+`"}`, fault.Invalid)
	})
}

func TestClockThatWasAheadOnceShiftsToday(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		a.Clock.Move(400 * 24 * time.Hour)
		create(t, a, ctx, `{"name":"under a wrong clock"}`)
		a.Clock.Set(t, apptest.Start)
		if o := create(t, a, ctx, `{"name":"x"}`); *o.Task.DueDate != "2026-08-10" {
			t.Errorf("due %s", *o.Task.DueDate)
		}
	})
}

func TestManyIgnoredArgumentsComeBackAll(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		var b strings.Builder
		b.WriteString(`{"name":"x"`)
		for i := range 2000 {
			fmt.Fprintf(&b, `,"k%d%s":1`, i, strings.Repeat("y", 200))
		}
		res := a.Result(t, ctx, "create_personal_task", b.String()+"}")
		if n := len(res.JSON) + len(res.Texts[0]); n > 12_000 || !strings.Contains(res.Texts[0], "and 1950 more") {
			t.Errorf("%d bytes: %s", n, res.Texts[0])
		}
	})
}

// Sessions lock the project and then its tasks; so must a move into a project, or they wait for each other in a circle.
func TestSessionsAndMovesWaitInACircle(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		var p struct{ ID string }
		apptest.Decode(t, a.Call(t, ctx, "create_project", `{"name":"P"}`), &p)
		o := create(t, a, ctx, `{"name":"x","project_name":"P"}`)
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				tool, args := "update_task", fmt.Sprintf(`{"task_id":%q,"project_id":%q,"starred":%v}`, o.ID, p.ID, i%4 == 0)
				if i%2 == 0 {
					tool, args = "log_session_summary", fmt.Sprintf(`{"project_id":%q,"summary":"s","completed_task_ids":[%q]}`, p.ID, o.ID)
				}
				if _, err := a.Runner.Run(ctx, tool, json.RawMessage(args)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

func TestFullDiskIsAnInternalFault(t *testing.T) {
	a := apptest.New(t, map[string]string{"CAIRN_DATA": t.TempDir()})
	ctx := a.As(t, a.Token(t, ""))
	create(t, a, ctx, `{"name":"x"}`)
	if err := a.DB.Write(context.Background(), func(tx *db.Tx) error {
		var pages int
		if err := tx.One(`PRAGMA page_count`, nil, &pages); err != nil {
			return err
		}
		return tx.One(fmt.Sprintf(`PRAGMA max_page_count = %d`, pages), nil, &pages)
	}); err != nil {
		t.Fatal(err)
	}
	var last error
	for range 200 {
		if _, last = a.Runner.Run(ctx, "create_personal_task", json.RawMessage(`{"name":"`+strings.Repeat("y", 500)+`"}`)); last != nil {
			break
		}
	}
	if f := fault.From(last); last == nil || f.Kind != fault.Unavailable || !strings.Contains(f.Message, "disk is full") {
		t.Errorf("%v", last)
	}
}
