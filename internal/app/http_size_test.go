package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"cairn/internal/apptest"
	"cairn/internal/db"
)

// mostBytes is how large a default answer may be, as sent.
const mostBytes = 100 << 10

// crowd fills an application: 2,000 projects and 10,000 tasks with long notes and names of 500 emoji (where the lists begin; the
// others' texts can't show), some of them in one project that has a long log (CASES 46).
func crowd(t *testing.T, a *apptest.App) (w *world) {
	t.Helper()
	w = settle(t, a)
	var heaps struct{ Heaps []struct{ ID, Name string } }
	apptest.Decode(t, a.Call(t, a.Person(t), "list_heaps", `{}`), &heaps)
	emoji, notes := strings.Repeat("😀", 494), strings.Repeat("n", 2000)
	numbers := func(n int) string {
		return fmt.Sprintf(` WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) `, n)
	}
	err := a.DB.Write(context.Background(), func(tx *db.Tx) error {
		for h, heap := range heaps.Heaps {
			if _, err := tx.Exec(`INSERT INTO project (id, heap, name, name_folded, current_focus, created_at, updated_at)`+numbers(1000)+
				`SELECT '01890000-0000-7000-8000-' || CAST(200000000000 + CAST($6 AS BIGINT) * 10000 + i AS TEXT), CAST($1 AS TEXT), CASE WHEN i <= 100 THEN CAST($2 AS TEXT) ELSE CAST($3 AS TEXT) END || CAST(i AS TEXT), CASE WHEN i <= 100 THEN CAST($2 AS TEXT) ELSE CAST($3 AS TEXT) END || CAST(i AS TEXT), CASE WHEN i <= 100 THEN CAST($4 AS TEXT) END, CAST($5 AS BIGINT), CAST($5 AS BIGINT) FROM n`,
				heap.ID, strings.Repeat("😀", 294), "🫀", strings.Repeat("é", 2000), tx.Now, h); err != nil {
				return err
			}
			if _, err := tx.Exec(`INSERT INTO task (id, heap, project, name, description, work_notes, due_date, created_at, updated_at)`+numbers(5000)+
				`SELECT '01890000-0000-7000-8000-' || CAST(300000000000 + CAST($6 AS BIGINT) * 10000 + i AS TEXT), CAST($1 AS TEXT), CASE WHEN i <= 40 THEN '01890000-0000-7000-8000-200000000001' END, CASE WHEN i <= 40 OR i > 4900 THEN CAST($2 AS TEXT) ELSE '' END || CAST(i AS TEXT), CASE WHEN i <= 40 OR i > 4900 THEN CAST($3 AS TEXT) END, CASE WHEN i <= 40 OR i > 4900 THEN CAST($4 AS TEXT) END, '2026-08-10', CAST($5 AS BIGINT) + i, CAST($5 AS BIGINT) + i FROM n`,
				heap.ID, emoji, notes, notes, tx.Now, h); err != nil {
				return err
			}
		}
		_, err := tx.Exec(`INSERT INTO project_log (id, heap, project, kind, source, content, created_at)`+numbers(20)+
			`SELECT '01890000-0000-7000-8000-' || CAST(400000000000 + i AS TEXT), CAST($1 AS TEXT), '01890000-0000-7000-8000-200000000001', 'session_summary', 'mcp', CAST($2 AS TEXT), CAST($3 AS BIGINT) + i FROM n`,
			heaps.Heaps[0].ID, strings.Repeat("😀", 3000), tx.Now)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// Those that search finds, and whose changes are recorded.
	as := a.As(t, w.tokens["rw"])
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 12 {
				args, _ := json.Marshal(map[string]any{"name": "budget " + strings.Repeat("😀", 480), "external_ref": fmt.Sprintf("b%d-%d", worker, i), "description": notes})
				if _, err := a.Runner.Run(as, "create_work_task", args); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return w
}

func TestDefaultAnswersStaySmall(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := crowd(t, a)
		for _, c := range []struct {
			tool, args string
			cut        string // what says that there is more
			many       string // the list
			least      int    // rows
		}{
			{"list_tasks", `{}`, `"next_cursor":"`, "tasks", 8},
			{"list_tasks", `{"completed":false,"due_to":"2026-08-10"}`, `"next_cursor":"`, "tasks", 8},
			{"list_tasks", `{"query":"budget"}`, `"next_cursor":"`, "tasks", 8},
			{"list_tasks", `{"project_id":"01890000-0000-7000-8000-200000000001"}`, `"next_cursor":"`, "tasks", 8},
			{"list_projects", `{}`, `"next_cursor":"`, "projects", 10},
			{"list_projects", `{"include_archived":true,"heap":"Work"}`, `"next_cursor":"`, "projects", 10},
			{"search", `{"query":"budget"}`, "", "results", 8},
			{"list_changes", `{}`, `"next_cursor":"`, "changes", 3},
			{"list_heaps", `{}`, "", "heaps", 2},
			{"get_project_context", `{"project_id":"01890000-0000-7000-8000-200000000001"}`, `_cut":true`, "open_tasks", 10},
		} {
			for _, m := range []manner{heroes, modern, {name: "api"}} {
				t.Run(c.tool+" "+c.args+"/"+m.name, func(t *testing.T) {
					s := scenario{do: "POST /api/" + c.tool, as: "rw", body: c.args}
					if m.path != "" {
						s = m.call("rw", c.tool, c.args)
					}
					r := w.send(t, s)
					if r.Status != 200 || len(r.Body) > mostBytes {
						t.Errorf("status %d, %d bytes, the most is %d", r.Status, len(r.Body), mostBytes)
					}
					if !strings.Contains(r.Body, c.cut) {
						t.Errorf("the answer doesn't say that there is more: %s is missing", c.cut)
					}
					out := map[string]json.RawMessage{}
					if m.path == "" {
						apptest.Decode(t, []byte(r.Body), &out)
					} else if a := read(t, r); a.Result != nil {
						b, _ := json.Marshal(a.Result.Structured)
						apptest.Decode(t, b, &out)
					}
					var list []json.RawMessage
					if apptest.Decode(t, out[c.many], &list); len(list) < c.least {
						t.Errorf("%d rows, want at least %d", len(list), c.least)
					}
				})
			}
		}
		t.Run("going on", func(t *testing.T) { w.goOn(t) })
	})
}

// goOn follows the cursors: nothing comes twice, and the end is reached.
func (w *world) goOn(t *testing.T) {
	t.Helper()
	for tool, many := range map[string]string{"list_tasks": "tasks", "list_projects": "projects", "list_changes": "changes"} {
		seen, cursor := map[string]bool{}, ""
		for page := range 5 {
			args, _ := json.Marshal(map[string]any{"cursor": cursor})
			if cursor == "" {
				args = []byte(`{}`)
			}
			out := map[string]json.RawMessage{}
			r := w.send(t, scenario{do: "POST /api/" + tool, as: "rw", body: string(args)})
			if apptest.Decode(t, []byte(r.Body), &out); r.Status != 200 {
				t.Errorf("%s refuses the cursor it gave: %d %s", tool, r.Status, clip(r.Body))
				break
			}
			var list []struct{ ID string }
			apptest.Decode(t, out[many], &list)
			for _, thing := range list {
				if seen[thing.ID] {
					t.Errorf("%s gives %s twice", tool, thing.ID)
				}
				seen[thing.ID] = true
			}
			if len(r.Body) > mostBytes/2 || len(list) == 0 {
				t.Errorf("%s, page %d: %d rows in %d bytes", tool, page+1, len(list), len(r.Body))
			}
			if cursor = ""; json.Unmarshal(out["next_cursor"], &cursor) != nil || cursor == "" {
				if page < 3 {
					t.Errorf("%s ends at page %d", tool, page+1)
				}
				break
			}
		}
	}
}

// A change of a long text is one row, and may not burst the list of changes.
func TestListOfChangesStaysSmallWithLongTexts(t *testing.T) {
	a := alone(t, nil)
	w := settle(t, a)
	for _, c := range []string{"é", "😀"} {
		args, _ := json.Marshal(map[string]string{"external_ref": "draft", "description": strings.Repeat(c, 20000)})
		a.Call(t, a.As(t, w.tokens["rw"]), "update_task", string(args))
	}
	for _, m := range []manner{heroes, legacy, modern} {
		if r := w.send(t, m.call("rw", "list_changes", `{"thing":"{job}"}`)); r.Status != 200 || len(r.Body) > mostBytes {
			t.Errorf("%s: %d, %d bytes", m.name, r.Status, len(r.Body))
		}
	}
}
