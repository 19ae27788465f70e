package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/search"
	"cairn/internal/who"
)

// lockContext makes writes to the context of a heap wait for each other, so that one near-duplicate or successor is looked
// for and made at a time. It comes before any row is locked.
func lockContext(tx *db.Tx, heap string) error {
	_, err := tx.Exec(`INSERT INTO self_page (heap, lines, stale, compiled_at) VALUES ($1, '[]', 1, 0) ON CONFLICT (heap) DO UPDATE SET stale = self_page.stale`, heap)
	return err
}

// staleSelf marks the Self page of a heap as to be compiled anew: part of every write that changes what it cites.
func staleSelf(tx *db.Tx, heap string) error {
	_, err := tx.Exec(`INSERT INTO self_page (heap, lines, stale, compiled_at) VALUES ($1, '[]', 1, 0) ON CONFLICT (heap) DO UPDATE SET stale = 1`, heap)
	return err
}

func absent(id string) error {
	return fault.New(fault.NotFound, "there is no context object with the id %s", id)
}

// loadContext finds and locks an object that the caller may see and write. A private one and one that isn't there look alike.
func loadContext(ctx context.Context, tx *db.Tx, id string) (*object, error) {
	c, o := who.From(ctx), &object{}
	err := lockedContext(tx, strings.ToLower(id), o)
	if db.IsNone(err) || err == nil && (!o.visible(c) || o.TrashedAt != nil) {
		return nil, absent(id)
	}
	if err != nil {
		return nil, err
	}
	if h, _ := c.ByID(o.Heap); !h.Writable() {
		return nil, fault.New(fault.Conflict, "the heap %s is shared with you to read only", h.Name)
	}
	return o, nil
}

// lockedContext reads an object for a change: its heap is locked first. An object never changes its heap.
func lockedContext(tx *db.Tx, id string, o *object) error {
	var heap string
	if err := tx.One(`SELECT heap FROM context WHERE id = $1`, []any{id}, &heap); err != nil {
		return err
	}
	if err := lockContext(tx, heap); err != nil {
		return err
	}
	return tx.One(`SELECT `+objectColumns+` FROM context o WHERE o.id = $1`+tx.ForUpdate(), []any{id}, o.dest()...)
}

// selectContext reads objects within a write.
func selectContext(tx *db.Tx, where string, args ...any) ([]object, error) {
	return scanObjects(tx.Query(`SELECT `+objectColumns+` FROM context o WHERE `+where, args...))
}

// insertContext stores a new object with its change and what search reads of it.
func insertContext(ctx context.Context, tx *db.Tx, o *object) error {
	if o.ID == "" {
		o.ID = db.NewID()
	}
	o.Actor, o.CreatedAt, o.UpdatedAt = who.From(ctx).Actor, tx.Now, tx.Now
	o.SubjectFolded, o.Folded = foldSubject(o.Subject), fold(o.Statement)
	if o.At == 0 {
		o.At = tx.Now
	}
	_, err := tx.Exec(`INSERT INTO context (id, heap, kind, subject, subject_folded, statement, folded, status, private, supersedes, reason, source, actor, at, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $15)`,
		o.ID, o.Heap, o.Kind, o.Subject, o.SubjectFolded, o.Statement, o.Folded, o.Status, o.Private, o.Supersedes, o.Reason, o.Source, o.Actor, o.At, tx.Now)
	if err != nil {
		return err
	}
	verb := "Captured "
	if o.Status == proposed {
		verb = "Proposed "
	}
	change.Record(ctx, tx, change.Entry{Heap: o.Heap, Kind: changeKind(o), Thing: o.ID, Effect: change.Create, After: o.fields(), Summary: verb + said(o)})
	d := o.doc()
	d.Fresh = true
	search.Analyze(d).Put(tx)
	return staleSelf(tx, o.Heap)
}

// changeKind gives the kind under which a change is recorded, by the object before and after it.
func changeKind(states ...*object) string {
	if slices.ContainsFunc(states, func(o *object) bool { return o.Private == 1 }) {
		return kindPrivate
	}
	return kindContext
}

// said names an object in a summary. A private one keeps its words to itself there too.
func said(o *object) string {
	if o.Private == 1 {
		return "a private " + strings.ReplaceAll(o.Kind, "_", " ")
	}
	return strings.ReplaceAll(o.Kind, "_", " ") + " " + change.Brief(o.Statement)
}

// storeContext writes every column of an object that can change and brings search and the Self page up to date.
func storeContext(tx *db.Tx, old, o *object) error {
	o.UpdatedAt = tx.Now
	o.SubjectFolded, o.Folded = foldSubject(o.Subject), fold(o.Statement)
	_, err := tx.Exec(`UPDATE context SET kind = $2, subject = $3, subject_folded = $4, statement = $5, folded = $6, status = $7, private = $8, supersedes = $9,
		successor = $10, reason = $11, source = $12, at = $13, trashed_at = $14, updated_at = $15 WHERE id = $1`,
		o.ID, o.Kind, o.Subject, o.SubjectFolded, o.Statement, o.Folded, o.Status, o.Private, o.Supersedes, o.Successor, o.Reason, o.Source, o.At, o.TrashedAt, o.UpdatedAt)
	if err != nil {
		return err
	}
	switch {
	case o.TrashedAt != nil:
		search.Remove(tx, old.Heap, o.ID)
	case old.TrashedAt != nil || old.doc() != o.doc():
		search.Analyze(o.doc()).Put(tx)
	}
	return staleSelf(tx, o.Heap)
}

// saveContext stores and records a change of an object; it tells whether anything differed.
func saveContext(ctx context.Context, tx *db.Tx, old, o *object, summary string) (bool, error) {
	before, after := change.Diff(old.fields(), o.fields())
	if len(after) == 0 {
		return false, nil
	}
	if err := storeContext(tx, old, o); err != nil {
		return false, err
	}
	change.Record(ctx, tx, change.Entry{Heap: o.Heap, Kind: changeKind(old, o), Thing: o.ID, Effect: change.Update, Before: before, After: after, Summary: summary + " " + said(o)})
	return true, nil
}

func getContext(tx *db.Tx, id string) (string, map[string]json.RawMessage, error) {
	o := &object{}
	if err := lockedContext(tx, id, o); err != nil {
		return "", nil, err
	}
	now, err := change.Raw(o.fields())
	return o.Heap, now, err
}

// setContext writes recorded fields back, where the chain of changes of mind stays one: no object stands beside its
// successor, and none has two.
func (s *Service) setContext(ctx context.Context, tx *db.Tx, id string, set map[string]json.RawMessage) error {
	old := &object{}
	if err := lockedContext(tx, id, old); err != nil {
		return err
	}
	o := *old
	state, private, stand := change.StateOf(o.TrashedAt), o.Private == 1, standing{o.Status, o.Successor, o.Reason}
	targets := map[string]any{change.State: &state, "kind": &o.Kind, "subject": &o.Subject, "statement": &o.Statement, "private": &private, "standing": &stand,
		"supersedes": &o.Supersedes, "source": &o.Source}
	for f, v := range set {
		target, ok := targets[f]
		if !ok {
			return fmt.Errorf("a context object has no field %q", f)
		}
		if err := json.Unmarshal(v, target); err != nil {
			return fmt.Errorf("context field %s: %w", f, err)
		}
	}
	o.Private, o.Status, o.Successor, o.Reason = db.Flag(private), stand.Status, stand.Successor, stand.Reason
	o.TrashedAt = db.Since(state == change.Trashed, old.TrashedAt, tx.Now)
	if err := chained(who.From(ctx), tx, old, &o); err != nil {
		return err
	}
	return storeContext(tx, old, &o)
}

// chained refuses what would leave two objects of one chain standing.
func chained(c *who.Caller, tx *db.Tx, old, o *object) error {
	if old.Status == superseded && o.Status != superseded {
		next, err := living(tx, old.Successor)
		if err != nil {
			return err
		}
		if next != nil && (next.Status == current || next.Status == superseded) && db.Text(next.Supersedes) == o.ID {
			if !next.visible(c) {
				return fault.New(fault.Conflict, "another stands in its place")
			}
			return fault.New(fault.Conflict, "%s stands in its place: take back that one's creation first, or the whole request", next.ID).With("successor", next.ID)
		}
	}
	if o.Supersedes != nil && o.Status == current && o.TrashedAt == nil && (old.TrashedAt != nil || old.Status != current) {
		prev, err := living(tx, o.Supersedes)
		if err != nil {
			return err
		}
		if prev != nil && (prev.Status != superseded || db.Text(prev.Successor) != o.ID) {
			if !prev.visible(c) {
				return fault.New(fault.Conflict, "what it superseded has another successor by now")
			}
			return fault.New(fault.Conflict, "what it superseded, %s, doesn't name it as its successor any more", prev.ID)
		}
	}
	return nil
}

// living gives an object that isn't in the trash, or nil.
func living(tx *db.Tx, id *string) (*object, error) {
	if id == nil {
		return nil, nil
	}
	o := &object{}
	err := tx.One(`SELECT `+objectColumns+` FROM context o WHERE o.id = $1 AND o.trashed_at IS NULL`, []any{*id}, o.dest()...)
	if db.IsNone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return o, nil
}
