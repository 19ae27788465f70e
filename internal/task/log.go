package task

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/op"
	"cairn/internal/rawjson"
	"cairn/internal/who"
)

type sessionIn struct {
	projectRef
	Summary   string    `json:"summary" jsonschema:"what was done" rule:"required,min=1,max=2000"`
	NextSteps string    `json:"next_steps" rule:"max=1000"`
	Completed []string  `json:"completed_task_ids" jsonschema:"tasks of this project that were done" rule:"max=50,uuid"`
	New       []newTask `json:"new_tasks" jsonschema:"tasks that came up; due today" rule:"max=10"`
}

type newTask struct {
	Text   string `json:"text" rule:"required,min=1,max=500"`
	Effort *int64 `json:"effort_minutes" rule:"min=1,max=1440"`
	Notes  string `json:"work_notes" rule:"max=2000"`
}

type sessionOut struct {
	ID        string   `json:"id"` // of the log entry
	Result    string   `json:"result"`
	ProjectID string   `json:"project_id"`
	Requested int      `json:"requested"`
	Completed []string `json:"completed"`
	Created   []string `json:"created"`
	Skipped   []string `json:"skipped"` // not a task of this project, done already, or in the trash

	project string
}

// Texts words the answer as HeroMind did.
func (o sessionOut) Texts([]byte) []string {
	created := fmt.Sprintf("➕ Tasks created: %d", len(o.Created))
	if len(o.Created) > 0 {
		created += " (" + strings.Join(o.Created, ", ") + ")"
	}
	lines := []string{
		`✅ Logged session summary to project "` + o.project + `"`,
		"📝 Log entry ID: " + o.ID,
		fmt.Sprintf("✔️ Tasks completed: %d (of %d requested)", len(o.Completed), o.Requested),
		created,
		"🔄 Resume brief invalidated: yes",
	}
	if len(o.Skipped) > 0 {
		lines = append(lines, "⚠️ Skipped: "+strings.Join(o.Skipped, ", "))
	}
	return []string{strings.Join(lines, "\n")}
}

func (s *Service) logSession(ctx context.Context, in sessionIn) (sessionOut, error) {
	c := who.From(ctx)
	var out sessionOut
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		p, err := loadProject(c, tx, in.projectRef, "")
		if err != nil {
			return err
		}
		out = sessionOut{ID: db.NewID(), Result: "created", ProjectID: p.ID, Completed: []string{}, Created: []string{}, Skipped: []string{}, project: p.Name}
		content := in.Summary
		if in.NextSteps != "" {
			content += "\n\nNext steps: " + in.NextSteps
		}
		source := "mcp"
		if c.Via != who.ViaMCP {
			source = c.Via
		}
		if _, err := tx.Exec(`INSERT INTO project_log (id, heap, project, kind, source, content, created_at) VALUES ($1, $2, $3, 'session_summary', $4, $5, $6)`,
			out.ID, p.Heap, p.ID, source, content, tx.Now); err != nil {
			return err
		}
		change.Record(ctx, tx, change.Entry{Heap: p.Heap, Kind: kindLog, Thing: out.ID, Effect: change.Create,
			After: change.Fields{change.State: change.Live, "project_id": p.ID, "content": content}, Summary: "Logged a session in " + change.Brief(p.Name)})
		if err := out.finishTasks(ctx, tx, p, in.Completed); err != nil {
			return err
		}
		for _, n := range in.New {
			today := c.Day(tx.Wall)
			t := &row{ID: db.NewID(), Heap: p.Heap, Project: &p.ID, Name: strings.TrimSpace(n.Text), Effort: n.Effort, WorkNotes: db.Null(n.Notes), DueDate: &today}
			if err := insert(ctx, tx, t); err != nil {
				return err
			}
			out.Created = append(out.Created, t.ID)
		}
		old := *p
		p.Brief = nil
		_, err = saveProject(ctx, tx, &old, p, "Dropped the resume brief of")
		return err
	})
	return out, err
}

// finishTasks completes tasks of a project, in the order of their ids so that two sessions don't wait for each other in a
// circle. What is done, trashed or no task of it is skipped.
func (o *sessionOut) finishTasks(ctx context.Context, tx *db.Tx, p *project, ids []string) error {
	sorted := make([]string, len(ids))
	for i, id := range ids {
		sorted[i] = strings.ToLower(id)
	}
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	o.Requested = len(sorted)
	for _, id := range sorted {
		t := &row{}
		err := tx.One(`SELECT `+columns+` FROM task t WHERE t.id = $1 AND t.project = $2`+tx.ForUpdate(), []any{id, p.ID}, t.dest()...)
		if db.IsNone(err) || err == nil && (t.CompletedAt != nil || t.TrashedAt != nil) {
			o.Skipped = append(o.Skipped, id)
			continue
		}
		if err != nil {
			return err
		}
		old := *t
		t.finish(who.From(ctx), tx)
		if _, err := save(ctx, tx, &old, t, change.Update, "Completed task"); err != nil {
			return err
		}
		o.Completed = append(o.Completed, id)
	}
	return nil
}

func getLogFields(tx *db.Tx, id string) (string, map[string]json.RawMessage, error) {
	var heap, project, content string
	var trashed *int64
	if err := tx.One(`SELECT heap, project, content, trashed_at FROM project_log WHERE id = $1`+tx.ForUpdate(), []any{id}, &heap, &project, &content, &trashed); err != nil {
		return "", nil, err
	}
	now, err := change.Raw(change.Fields{change.State: stateOf(trashed), "project_id": project, "content": content})
	return heap, now, err
}

func setLogFields(_ context.Context, tx *db.Tx, id string, set map[string]json.RawMessage) error {
	for f, v := range set {
		if f != change.State {
			return fmt.Errorf("a log entry's %q doesn't change", f)
		}
		var state string
		if err := json.Unmarshal(v, &state); err != nil {
			return err
		}
		if _, err := tx.Exec(`UPDATE project_log SET trashed_at = $2 WHERE id = $1`, id, db.Since(state == change.Trashed, nil, tx.Now)); err != nil {
			return err
		}
	}
	return dropBriefWith(tx, id)
}

// dropBriefWith drops the resume brief of a log entry's project if it was made since the entry, and so tells of it.
func dropBriefWith(tx *db.Tx, entry string) error {
	var project string
	var stored *string
	var at int64
	if err := tx.One(`SELECT p.id, p.resume_brief, g.created_at FROM project_log g JOIN project p ON p.id = g.project WHERE g.id = $1`, []any{entry}, &project, &stored, &at); err != nil {
		return err
	}
	b, err := readBrief(stored)
	if err != nil || b == nil || b.GeneratedAt < op.Stamp(at) {
		return err
	}
	_, err = tx.Exec(`UPDATE project SET resume_brief = NULL WHERE id = $1`, project)
	return err
}

// resumeBrief says where one left off.
type resumeBrief struct {
	Text        string   `json:"text"`
	NextSteps   []string `json:"next_steps"`
	GeneratedAt string   `json:"generated_at"`
	By          string   `json:"by"`
}

// briefText is how many characters a brief's text may have.
const briefText = 1500

func shorten(s string, n int) string {
	if short, was := cut(&s, n-1); was {
		return *short + "…"
	}
	return s
}

func readBrief(s *string) (*resumeBrief, error) {
	if s == nil {
		return nil, nil
	}
	var b resumeBrief
	if err := json.Unmarshal([]byte(*s), &b); err != nil {
		return nil, fmt.Errorf("resume brief: %w", err)
	}
	return &b, nil
}

// rebuildBrief makes a brief from the focus, the last log entries and the open tasks, and keeps it. It is derived, so it is
// no change of its own; a session logged since read (microseconds), when the log was looked at, wins.
func (s *Service) rebuildBrief(ctx context.Context, p *project, now contextOut, read int64) (*resumeBrief, error) {
	if len(now.RecentLog) == 0 && len(now.OpenTasks) == 0 && p.Focus == nil {
		return nil, nil
	}
	c := who.From(ctx)
	b := &resumeBrief{NextSteps: []string{}, By: "cairn", GeneratedAt: op.Stamp(s.db.Now())}
	var lines []string
	if p.Focus != nil {
		lines = append(lines, "Focus: "+*p.Focus)
	}
	for i, e := range now.RecentLog {
		summary, next, ok := strings.Cut(e.Content, "\n\nNext steps: ")
		if i < 3 {
			lines = append(lines, c.Day(e.at)+": "+summary)
		}
		if ok && i == 0 {
			b.NextSteps = append(b.NextSteps, next)
		}
	}
	if n := now.OpenCount; n > 0 {
		lines = append(lines, fmt.Sprintf("Open tasks: %d", n))
	}
	for _, t := range now.OpenTasks[:min(3, len(now.OpenTasks))] {
		b.NextSteps = append(b.NextSteps, t.Text)
	}
	b.Text = shorten(strings.Join(lines, "\n"), briefText)
	for i, step := range b.NextSteps {
		b.NextSteps[i] = shorten(step, descriptionCut)
	}
	stored, err := rawjson.Marshal(b)
	if err != nil {
		return nil, err
	}
	if h, _ := c.ByID(p.Heap); !h.Writable() {
		return b, nil
	}
	return b, s.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(`UPDATE project SET resume_brief = $2 WHERE id = $1 AND resume_brief IS NULL AND updated_at = $3
			AND NOT EXISTS (SELECT 1 FROM project_log g WHERE g.project = $1 AND g.created_at > $4)`, p.ID, string(stored), p.UpdatedAt, read)
		return err
	})
}
