package task_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/apptest"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/who"
)

// state writes down all that undo must bring back: every field of every live thing, and what search finds.
func state(t *testing.T, a *apptest.App) string {
	t.Helper()
	var b strings.Builder
	for _, q := range []string{
		`SELECT 'task ' || id, heap, coalesce(project, ''), name || '|' || coalesce(description, '') || '|' || coalesce(source_url, '') || '|' || coalesce(work_notes, '') || '|' || coalesce(start_date, '') || '|' || coalesce(due_date, '') || '|' || coalesce(focused_date, '') || '|' || coalesce(external_ref, '') || '|' || coalesce(completion_date, '') || '|' || starred || '|' || coalesce(effort_minutes, 0) FROM task WHERE trashed_at IS NULL ORDER BY id`,
		`SELECT 'project ' || id, heap, name, coalesce(current_focus, '') || '|' || coalesce(resume_brief, '') || '|' || CASE WHEN archived_at IS NULL THEN 0 ELSE 1 END FROM project WHERE trashed_at IS NULL ORDER BY id`,
		`SELECT 'log ' || id, heap, project, content FROM project_log WHERE trashed_at IS NULL ORDER BY id`,
		`SELECT 'passage ' || thing, heap, kind, tok FROM search_passage WHERE gone = 0 ORDER BY thing, heap, part`,
	} {
		rows, err := a.DB.Query(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var v [4]string
			if err := rows.Scan(&v[0], &v[1], &v[2], &v[3]); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&b, strings.Join(v[:], " ~ "))
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

type undone struct {
	Undone []struct {
		ChangeID, By, Thing string
		Fields              []string
	}
	Left []struct {
		ChangeID string `json:"change_id"`
		Fields   []string
		Why      string
	}
	ChangeIDs []string `json:"change_ids"`
	Request   string
	Run       string
}

// newest gives the ids of the newest change.
func newest(t *testing.T, a *apptest.App) (id, request, run string) {
	t.Helper()
	if err := a.DB.One(context.Background(), `SELECT id, request, run FROM change ORDER BY at DESC, seq DESC LIMIT 1`, nil, &id, &request, &run); err != nil {
		t.Fatal(err)
	}
	return id, request, run
}

// anew gives a ctx for another request of the same caller.
func anew(ctx context.Context) context.Context {
	c := *who.From(ctx)
	c.Request = db.NewID()
	return who.With(ctx, &c)
}

// Every operation on tasks and projects is reversed by change, by request and by run, and each undo is itself undone.
func TestEveryOperationIsUndoneAndRedone(t *testing.T) {
	steps := []struct{ name, tool, args string }{
		{"create", "create_personal_task", `{"name":"new","description":"d","due_date":"2026-01-01","external_ref":"new by %by"}`},
		{"create at work", "create_work_task", `{"name":"new","project_name":"W"}`},
		{"fill", "create_personal_task", `{"name":"x","external_ref":"bare","description":"filled","source_url":"https://example.org"}`},
		{"complete", "complete_task", `{"external_ref":"open"}`},
		{"reopen", "complete_task", `{"external_ref":"done","completed":false}`},
		{"update all", "update_task", `{"external_ref":"open","name":"n","due_date":"2026-02-02","start_date":"2026-02-01","focused_date":"2026-02-03","description":"dd","source_url":"https://example.org/x","starred":true,"effort_minutes":9,"work_notes":"w"}`},
		{"clear", "update_task", `{"external_ref":"open","clear":["due_date","description"]}`},
		{"into a project of another heap", "update_task", `{"external_ref":"open","project_id":"%W"}`},
		{"out of a project", "update_task", `{"external_ref":"in","clear":["project_id"]}`},
		{"delete", "delete_task", `{"external_ref":"open"}`},
		{"restore", "restore_task", `{"external_ref":"gone"}`},
		{"create project", "create_project", `{"name":"New","current_focus":"f"}`},
		{"update project", "update_project", `{"project_name":"W","name":"V","current_focus":"g","archived":true}`},
		{"log session", "log_session_summary", `{"project_name":"W","summary":"s","next_steps":"n","completed_task_ids":["%in"],"new_tasks":[{"text":"one"},{"text":"two","effort_minutes":3}]}`},
	}
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		var p struct{ ID string }
		apptest.Decode(t, a.Call(t, ctx, "create_project", `{"name":"W","heap":"Work"}`), &p)
		in := call[one](t, a, ctx, "create_work_task", `{"name":"in","external_ref":"in","project_name":"W"}`)
		for _, args := range []string{`{"name":"open","description":"words","external_ref":"open"}`, `{"name":"done","external_ref":"done"}`, `{"name":"gone","external_ref":"gone"}`, `{"name":"bare","external_ref":"bare"}`} {
			create(t, a, ctx, args)
		}
		a.Call(t, ctx, "complete_task", `{"external_ref":"done"}`)
		a.Call(t, ctx, "delete_task", `{"external_ref":"gone"}`)
		a.Call(t, a.Person(t), "get_project_context", `{"project_name":"W"}`) // makes a brief, for the session to drop
		for _, s := range steps {
			for _, by := range []string{"change_id", "request", "run"} {
				a.Clock.Move(31 * 60e9) // a run of its own
				before := state(t, a)
				ctx := anew(ctx)
				a.Call(t, ctx, s.tool, strings.NewReplacer("%W", p.ID, "%in", in.ID, "%by", by).Replace(s.args))
				after := state(t, a)
				if before == after {
					t.Errorf("%s changed nothing", s.name)
				}
				id, request, run := newest(t, a)
				v := map[string]string{"change_id": id, "request": request, "run": run}[by]
				if by == "change_id" && s.tool == "log_session_summary" {
					by, v = "request", request // its change is several
				}
				dry := call[undone](t, a, anew(ctx), "undo_change", `{"`+by+`":"`+v+`","dry_run":true}`)
				if got := state(t, a); got != after || len(dry.Undone) == 0 {
					t.Errorf("%s: a dry run changed something: %s", s.name, cmp.Diff(after, got))
				}
				u := call[undone](t, a, anew(ctx), "undo_change", `{"`+by+`":"`+v+`"}`)
				if got := state(t, a); got != before || len(u.Left) > 0 {
					t.Errorf("%s undone by %s: %v\n%s", s.name, by, u.Left, cmp.Diff(before, got))
				}
				redo := call[undone](t, a, anew(ctx), "undo_change", `{"`+by+`":"`+map[string]string{"change_id": u.ChangeIDs[0], "request": u.Request, "run": u.Run}[by]+`"}`)
				if got := state(t, a); got != after || len(redo.Left) > 0 {
					t.Errorf("%s redone by %s: %v\n%s", s.name, by, redo.Left, cmp.Diff(after, got))
				}
				call[undone](t, a, anew(ctx), "undo_change", `{"run":"`+redo.Run+`"}`)
				if got := state(t, a); got != before {
					t.Errorf("%s undone again: %s", s.name, cmp.Diff(before, got))
				}
			}
		}
	})
}

func TestUndoLeavesAloneWhatChangedSince(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		o := create(t, a, ctx, `{"name":"a","description":"old"}`)
		call[one](t, a, anew(ctx), "update_task", `{"task_id":"`+o.ID+`","name":"b","description":"agent's"}`)
		change, _, _ := newest(t, a)
		a.Call(t, a.Person(t), "update_task", `{"task_id":"`+o.ID+`","description":"the person's"}`)
		u := call[undone](t, a, anew(ctx), "undo_change", `{"change_id":"`+change+`"}`)
		now := call[one](t, a, ctx, "get_task", `{"task_id":"`+o.ID+`"}`)
		if now.Task.Text != "a" || *now.Task.Description != "the person's" || len(u.Left) != 1 || strings.Join(u.Left[0].Fields, "") != "description" || !strings.Contains(u.Left[0].Why, "account:") {
			t.Errorf("%+v\n%+v", now, u)
		}
		again := call[undone](t, a, anew(ctx), "undo_change", `{"change_id":"`+change+`"}`)
		if len(again.Undone) != 0 || len(again.Left) != 1 {
			t.Errorf("%+v", again)
		}
	})
}

// A project with tasks is not taken away under them; undoing its whole run takes both.
func TestUndoOfAProjectWithTasks(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		before := state(t, a)
		a.Call(t, ctx, "create_project", `{"name":"P"}`)
		change, _, run := newest(t, a)
		create(t, a, ctx, `{"name":"in it","project_name":"P"}`)
		u := call[undone](t, a, anew(ctx), "undo_change", `{"change_id":"`+change+`"}`)
		if len(u.Undone) != 0 || len(u.Left) != 1 || !strings.Contains(u.Left[0].Why, "tasks (1)") {
			t.Errorf("%+v", u)
		}
		call[undone](t, a, anew(ctx), "undo_change", `{"run":"`+run+`"}`)
		if got := state(t, a); got != before {
			t.Error(cmp.Diff(before, got))
		}
	})
}

func TestUndoNeedsTheRights(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		create(t, a, ctx, `{"name":"a"}`)
		change, _, run := newest(t, a)
		for name, token := range map[string]string{"other heap": `{"name":"w","rate":0,"heaps":["Work"]}`, "other area": `{"name":"m","rate":0,"areas":["memory"]}`} {
			other := a.As(t, a.Token(t, token))
			for _, args := range []string{`{"change_id":"` + change + `"}`, `{"run":"` + run + `"}`} {
				t.Run(name, func(t *testing.T) { a.Fails(t, other, "undo_change", args, fault.NotFound) })
			}
		}
		a.Fails(t, a.As(t, a.Token(t, `{"name":"r","rate":0,"read_only":true}`)), "undo_change", `{"change_id":"`+change+`"}`, fault.Scope)
		a.Fails(t, ctx, "undo_change", `{}`, fault.Invalid)
		a.Fails(t, ctx, "undo_change", `{"run":"x","request":"y"}`, fault.Invalid)
	})
}

func TestListChangesSaysWhoAndWhat(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		o := create(t, a, ctx, `{"name":"a"}`)
		call[one](t, a, anew(ctx), "complete_task", `{"task_id":"`+o.ID+`"}`)
		a.Call(t, ctx, "create_work_task", `{"name":"w"}`)
		var l struct {
			Count   int
			Changes []struct {
				Op, Effect, Thing, Run, Summary, Actor, Via string
				ActorName                                   string  `json:"actor_name"`
				OnBehalf                                    *string `json:"on_behalf"`
				Before, After                               map[string]any
			}
			NextCursor string `json:"next_cursor"`
		}
		apptest.Decode(t, a.Call(t, ctx, "list_changes", `{"thing":"`+o.ID+`"}`), &l)
		done, made := l.Changes[0], l.Changes[1]
		if l.Count != 2 || done.Op != "complete_task" || done.Before["completion"] != nil || done.After["completion"] == nil || made.Effect != "create" || made.After["name"] != "a" || made.Run != done.Run ||
			made.ActorName != "test" || made.Via != "mcp" || made.OnBehalf == nil || !strings.HasPrefix(*made.OnBehalf, "account:") || !strings.HasPrefix(made.Actor, "token:") {
			t.Errorf("%+v", l)
		}
		var all []string
		cursor := ""
		for range 5 {
			apptest.Decode(t, a.Call(t, ctx, "list_changes", `{"limit":1,"run":"`+made.Run+`","cursor":"`+cursor+`"}`), &l)
			for _, c := range l.Changes {
				all = append(all, c.Summary)
			}
			if cursor = l.NextCursor; cursor == "" {
				break
			}
			l.NextCursor = ""
		}
		if got := strings.Join(all, ", "); got != `Created task "w", Completed task "a", Created task "a"` {
			t.Error(got)
		}
	})
}

// A brief made since a session tells of it; with the session undone, it goes.
func TestUndoneSessionStaysInTheBrief(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		a.Call(t, ctx, "create_project", `{"name":"P"}`)
		ctx = anew(ctx)
		a.Call(t, ctx, "log_session_summary", `{"project_name":"P","summary":"dug the wrong bed"}`)
		if got := string(a.Call(t, a.Person(t), "get_project_context", `{"project_name":"P"}`)); !strings.Contains(got, `"resume_brief":{"text":"2026-08-10: dug the wrong bed`) {
			t.Fatal(got)
		}
		a.Call(t, anew(ctx), "undo_change", `{"request":"`+who.From(ctx).Request+`"}`)
		if got := string(a.Call(t, a.Person(t), "get_project_context", `{"project_name":"P"}`)); strings.Contains(got, "wrong bed") {
			t.Error(got)
		}
	})
}
