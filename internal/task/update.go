package task

import (
	"context"
	"slices"
	"strings"

	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

// edit changes one task in a write: set gets the task and changes it. Where nothing differs in the end, nothing is written and the result is existing.
// first, if not nil, runs before the task is locked.
func (s *Service) edit(ctx context.Context, r ref, effect, summary string, allowTrashed bool, first func(tx *db.Tx) error, set func(tx *db.Tx, t *row) error) (One, error) {
	c := who.From(ctx)
	var out One
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		if first != nil {
			if err := first(tx); err != nil {
				return err
			}
		}
		t, err := load(ctx, tx.One, r, tx.ForUpdate())
		if err != nil {
			return err
		}
		h, _ := c.ByID(t.Heap)
		if !h.Writable() {
			return fault.New(fault.Conflict, "the heap %s is shared with you to read only", h.Name)
		}
		if t.TrashedAt != nil && !allowTrashed {
			return fault.New(fault.Conflict, "the task is in the trash: restore_task first").With("id", t.ID).With("state", change.Trashed)
		}
		old := *t
		if err := set(tx, t); err != nil {
			return err
		}
		changed, err := save(ctx, tx, &old, t, effect, summary)
		if err != nil {
			return err
		}
		result := "updated"
		if len(changed) == 0 {
			result = "existing"
		}
		out = t.one(c, result)
		out.Changed = changed
		return nil
	})
	return out, err
}

func (s *Service) get(ctx context.Context, in ref) (One, error) {
	t, err := load(ctx, s.reader(ctx), in, "")
	if err != nil {
		return One{}, err
	}
	return t.one(who.From(ctx), "existing"), nil
}

type completeIn struct {
	ref
	Completed *bool `json:"completed" jsonschema:"false opens it again"`
}

func (s *Service) complete(ctx context.Context, in completeIn) (One, error) {
	if in.Completed != nil && !*in.Completed {
		return s.edit(ctx, in.ref, change.Update, "Reopened task", false, nil, func(_ *db.Tx, t *row) error {
			t.CompletedAt, t.CompletionDate = nil, nil
			return nil
		})
	}
	return s.edit(ctx, in.ref, change.Update, "Completed task", false, nil, func(tx *db.Tx, t *row) error {
		t.finish(who.From(ctx), tx)
		return nil
	})
}

// finish marks a task done; a second time changes nothing.
func (r *row) finish(c *who.Caller, tx *db.Tx) {
	if r.CompletedAt == nil {
		day, now := c.Day(tx.Wall), tx.Now
		r.CompletedAt, r.CompletionDate = &now, &day
	}
}

func (s *Service) trash(ctx context.Context, in ref) (One, error) {
	return s.edit(ctx, in, change.Delete, "Deleted task", true, nil, func(tx *db.Tx, t *row) error {
		t.TrashedAt = db.Since(true, t.TrashedAt, tx.Now)
		return nil
	})
}

func (s *Service) restore(ctx context.Context, in ref) (One, error) {
	return s.edit(ctx, in, change.Restore, "Restored task", true, nil, func(tx *db.Tx, t *row) error {
		if t.TrashedAt == nil {
			return nil
		}
		t.TrashedAt = nil
		err := checkProject(tx, t.Project, t.Heap)
		if fault.Is(err, fault.Conflict) { // its project went to the trash meanwhile
			t.Project, err = nil, nil
		}
		return err
	})
}

type updateIn struct {
	ref
	Name          *string  `json:"name" rule:"min=1,max=500"`
	DueDate       *string  `json:"due_date" jsonschema:"day the action is needed, YYYY-MM-DD" rule:"date,max=64"`
	StartDate     *string  `json:"start_date" jsonschema:"informational only" rule:"date,max=64"`
	FocusedDate   *string  `json:"focused_date" jsonschema:"day it is in focus" rule:"date,max=64"`
	Description   *string  `json:"description" rule:"max=20000"`
	SourceURL     *string  `json:"source_url" rule:"url,max=2048"`
	ProjectID     *string  `json:"project_id" rule:"uuid,max=300"`
	Starred       *bool    `json:"starred"`
	EffortMinutes *int64   `json:"effort_minutes" rule:"min=1,max=1440"`
	WorkNotes     *string  `json:"work_notes" rule:"max=2000"`
	Clear         []string `json:"clear" jsonschema:"fields to empty" rule:"max=50,enum=due_date|start_date|focused_date|description|source_url|project_id|effort_minutes|work_notes"`
}

func (s *Service) update(ctx context.Context, in updateIn) (One, error) {
	if err := in.check(); err != nil {
		return One{}, err
	}
	var into *project
	first := func(tx *db.Tx) (err error) { // the project before the task, as log_session_summary does: else they wait in a circle
		if into = nil; in.ProjectID != nil {
			into, err = loadProject(who.From(ctx), tx, projectRef{ProjectID: *in.ProjectID}, "")
		}
		return err
	}
	return s.edit(ctx, in.ref, change.Update, "Changed task", false, first, func(_ *db.Tx, t *row) error {
		if in.Name != nil {
			t.Name = strings.TrimSpace(*in.Name)
		}
		for _, f := range []struct{ to, from **string }{{&t.Description, &in.Description}, {&t.SourceURL, &in.SourceURL}, {&t.WorkNotes, &in.WorkNotes}} {
			if *f.from != nil {
				*f.to = db.Null(**f.from)
			}
		}
		for _, f := range []struct{ to, from **string }{{&t.DueDate, &in.DueDate}, {&t.StartDate, &in.StartDate}, {&t.FocusedDate, &in.FocusedDate}} {
			if *f.from != nil {
				*f.to = db.Null(op.Day(**f.from))
			}
		}
		if in.Starred != nil {
			t.Starred = db.Flag(*in.Starred)
		}
		if in.EffortMinutes != nil {
			t.Effort = in.EffortMinutes
		}
		t.clear(in.Clear)
		if into != nil { // a task lies in its project's heap
			t.Project, t.Heap = &into.ID, into.Heap
		}
		return nil
	})
}

// check refuses an update that changes nothing or says two things of one field.
func (in updateIn) check() error {
	given := map[string]bool{"name": in.Name != nil, "due_date": in.DueDate != nil, "start_date": in.StartDate != nil, "focused_date": in.FocusedDate != nil,
		"description": in.Description != nil, "source_url": in.SourceURL != nil, "project_id": in.ProjectID != nil, "starred": in.Starred != nil,
		"effort_minutes": in.EffortMinutes != nil, "work_notes": in.WorkNotes != nil}
	any := len(in.Clear) > 0
	for f, g := range given {
		if g && slices.Contains(in.Clear, f) {
			return fault.Bad("clear", "names %s, which is given a value too", f)
		}
		any = any || g
	}
	if !any {
		return fault.Bad("name", "or another field to change must be given")
	}
	return nil
}

func (r *row) clear(fields []string) {
	for _, f := range fields {
		switch f {
		case "due_date":
			r.DueDate = nil
		case "start_date":
			r.StartDate = nil
		case "focused_date":
			r.FocusedDate = nil
		case "description":
			r.Description = nil
		case "source_url":
			r.SourceURL = nil
		case "project_id":
			r.Project = nil
		case "effort_minutes":
			r.Effort = nil
		case "work_notes":
			r.WorkNotes = nil
		}
	}
}
