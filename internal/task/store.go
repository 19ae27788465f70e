package task

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/search"
	"cairn/internal/who"
)

// querier is the part of db.DB and db.Tx that reading a task needs.
type querier func(q string, args []any, dest ...any) error

// reader reads outside a write.
func (s *Service) reader(ctx context.Context) querier {
	return func(q string, args []any, dest ...any) error { return s.db.One(ctx, q, args, dest...) }
}

// ref names a task: by its id or by its external_ref, looked up in every heap granted.
type ref struct {
	TaskID      string `json:"task_id" jsonschema:"or external_ref" rule:"uuid,max=300"`
	ExternalRef string `json:"external_ref" rule:"min=1,max=300"`
}

// load finds the task a caller means among the heaps granted. end is what the SELECT ends with (a row lock, in a write).
func load(ctx context.Context, one querier, r ref, end string) (*row, error) {
	c := who.From(ctx)
	switch {
	case r.TaskID == "" && r.ExternalRef == "":
		return nil, fault.Bad("task_id", "or external_ref is required and must be a non-empty string")
	case r.TaskID != "":
		t := &row{}
		err := one(`SELECT `+columns+` FROM task t WHERE t.id = $1`+end, []any{strings.ToLower(r.TaskID)}, t.dest()...)
		if _, granted := c.ByID(t.Heap); db.IsNone(err) || err == nil && !granted {
			return nil, fault.New(fault.NotFound, "there is no task with the id %s", r.TaskID)
		}
		return t, err
	}
	found, err := byRef(c, one, r.ExternalRef, end)
	if err == nil && found == nil {
		err = fault.New(fault.NotFound, "there is no task with the external_ref %q", r.ExternalRef)
	}
	return found, err
}

// byRef finds the task with an external_ref in the heaps granted; nil if there is none. Several are an error that names
// them: a ref is unique in one heap only.
func byRef(c *who.Caller, one querier, external, end string) (*row, error) {
	var found []*row
	for _, h := range c.Heaps {
		t := &row{}
		err := one(`SELECT `+columns+` FROM task t WHERE t.heap = $1 AND t.external_ref = $2`+end, []any{h.ID, external}, t.dest()...)
		if err == nil {
			found = append(found, t)
		} else if !db.IsNone(err) {
			return nil, err
		}
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return found[0], nil
	}
	e := fault.New(fault.Conflict, "%d tasks in different heaps have the external_ref %q: give task_id", len(found), external)
	candidates := make([]map[string]string, len(found))
	for i, t := range found {
		h, _ := c.ByID(t.Heap)
		candidates[i] = map[string]string{"id": t.ID, "text": t.Name, "heap": h.Name}
	}
	return nil, e.With("candidates", candidates)
}

// insert stores a new task with its change and what search reads of it.
func insert(ctx context.Context, tx *db.Tx, r *row) error {
	n, err := tx.Exec(`INSERT INTO task (id, heap, project, name, description, source_url, work_notes, effort_minutes, start_date, due_date, external_ref, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12) ON CONFLICT (heap, external_ref) WHERE external_ref IS NOT NULL DO NOTHING`,
		r.ID, r.Heap, r.Project, r.Name, r.Description, r.SourceURL, r.WorkNotes, r.Effort, r.StartDate, r.DueDate, r.ExternalRef, tx.Now)
	if err != nil || n == 0 {
		return err
	}
	r.CreatedAt, r.UpdatedAt = tx.Now, tx.Now
	change.Record(ctx, tx, change.Entry{Heap: r.Heap, Kind: kindTask, Thing: r.ID, Effect: change.Create, After: r.fields(), Summary: "Created task " + change.Brief(r.Name)})
	d := r.doc()
	d.Fresh = true
	search.Analyze(d).Put(tx)
	return nil
}

// store writes every column of a task that can change and brings search up to date where what it reads is another.
func store(tx *db.Tx, old, r *row) error {
	r.UpdatedAt = tx.Now
	_, err := tx.Exec(`UPDATE task SET heap = $2, project = $3, name = $4, description = $5, source_url = $6, work_notes = $7, effort_minutes = $8, start_date = $9,
		due_date = $10, focused_date = $11, starred = $12, external_ref = $13, completion_date = $14, completed_at = $15, trashed_at = $16, updated_at = $17 WHERE id = $1`,
		r.ID, r.Heap, r.Project, r.Name, r.Description, r.SourceURL, r.WorkNotes, r.Effort, r.StartDate,
		r.DueDate, r.FocusedDate, r.Starred, r.ExternalRef, r.CompletionDate, r.CompletedAt, r.TrashedAt, r.UpdatedAt)
	if db.IsUnique(err) {
		return fault.New(fault.Conflict, "another task in that heap has the external_ref %q", db.Text(r.ExternalRef))
	}
	if err != nil {
		return err
	}
	was, is := old.doc(), r.doc()
	switch {
	case r.TrashedAt != nil:
		if old.TrashedAt == nil {
			search.Remove(tx, old.Heap, r.ID)
		}
		return nil
	case old.TrashedAt == nil && was.Heap != is.Heap:
		search.Remove(tx, old.Heap, r.ID)
	case old.TrashedAt == nil && was == is:
		return nil
	}
	search.Analyze(is).Put(tx)
	return nil
}

// save stores a change of a task and records it; the names of the fields changed come back, none where nothing differs.
func save(ctx context.Context, tx *db.Tx, old, r *row, effect, summary string) ([]string, error) {
	before, after := diff(old.fields(), r.fields())
	if len(after) == 0 {
		return nil, nil
	}
	if err := store(tx, old, r); err != nil {
		return nil, err
	}
	change.Record(ctx, tx, change.Entry{Heap: r.Heap, Kind: kindTask, Thing: r.ID, Effect: effect, Before: before, After: after, Summary: summary + " " + change.Brief(r.Name)})
	return slices.Sorted(maps.Keys(after)), nil
}

func getTaskFields(tx *db.Tx, id string) (string, map[string]json.RawMessage, error) {
	t := &row{}
	if err := tx.One(`SELECT `+columns+` FROM task t WHERE t.id = $1`+tx.ForUpdate(), []any{id}, t.dest()...); err != nil {
		return "", nil, err
	}
	now, err := change.Raw(t.fields())
	return t.Heap, now, err
}

// setTaskFields writes recorded fields back.
func (s *Service) setTaskFields(ctx context.Context, tx *db.Tx, id string, set map[string]json.RawMessage) error {
	old := &row{}
	if err := tx.One(`SELECT `+columns+` FROM task t WHERE t.id = $1`+tx.ForUpdate(), []any{id}, old.dest()...); err != nil {
		return err
	}
	t := *old
	state := stateOf(t.TrashedAt)
	var starred = t.Starred == 1
	var where *place
	var done *completion
	targets := map[string]any{change.State: &state, "name": &t.Name, "starred": &starred, "place": &where, "completion": &done, "description": &t.Description, "source_url": &t.SourceURL,
		"work_notes": &t.WorkNotes, "effort_minutes": &t.Effort, "start_date": &t.StartDate, "due_date": &t.DueDate, "focused_date": &t.FocusedDate, "external_ref": &t.ExternalRef}
	for f, v := range set {
		target, ok := targets[f]
		if !ok {
			return fmt.Errorf("a task has no field %q", f)
		}
		if err := json.Unmarshal(v, target); err != nil {
			return fmt.Errorf("task field %s: %w", f, err)
		}
	}
	t.Starred = db.Flag(starred)
	t.TrashedAt = db.Since(state == change.Trashed, old.TrashedAt, tx.Now)
	if _, ok := set["completion"]; ok {
		t.CompletionDate, t.CompletedAt = nil, nil
		if done != nil {
			t.CompletionDate, t.CompletedAt = &done.Date, &done.At
		}
	}
	if old.TrashedAt != nil && t.TrashedAt == nil && where == nil {
		if err := checkProject(tx, t.Project, t.Heap); err != nil {
			return err
		}
	}
	if where != nil {
		if h, _ := who.From(ctx).ByID(where.Heap); !h.Writable() {
			return fault.New(fault.Conflict, "the heap it came from is not yours to write")
		}
		if err := checkProject(tx, where.ProjectID, where.Heap); err != nil {
			return err
		}
		t.Heap, t.Project = where.Heap, where.ProjectID
	}
	return store(tx, old, &t)
}

// checkProject checks that a task may lie in a project and heap.
func checkProject(tx *db.Tx, project *string, heap string) error {
	if project == nil {
		return nil
	}
	var at string
	var trashed *int64
	err := tx.One(`SELECT heap, trashed_at FROM project WHERE id = $1`, []any{*project}, &at, &trashed)
	if db.IsNone(err) || err == nil && (trashed != nil || at != heap) {
		return fault.New(fault.Conflict, "the project it was in is not there any more")
	}
	return err
}
