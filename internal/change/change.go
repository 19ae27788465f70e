// Package change keeps the append-only record of who did what to which thing when, with what it was before and after, and
// takes changes back. Provenance, timelines, feeds and undo all read this record; nothing else keeps a history.
package change

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"cairn/internal/db"
	"cairn/internal/op"
	"cairn/internal/rawjson"
	"cairn/internal/who"
)

// Effects of a change on its thing.
const (
	Create  = "create"
	Update  = "update"
	Delete  = "delete"
	Restore = "restore"
	Purge   = "purge" // deleted for good: it can't be undone
)

// Field and values that say whether a thing is there or in the trash.
const (
	State   = "state"
	Live    = "live"
	Trashed = "trashed"
)

// Fields are recorded values by field name.
type Fields map[string]any

// Entry is one thing changed. Before and After hold the fields that changed and nothing else; a creation has no Before.
type Entry struct {
	Heap    string
	Kind    string // of the thing: task, project, ...
	Thing   string // id
	Effect  string
	Before  Fields
	After   Fields
	Summary string // one line for people
	undoes  string
	run     string // a run of its own; "" = the actor's current one
	id      string
}

// silence ends a run: the next change of the same actor begins another.
const silence = 30 * time.Minute

// Record writes e as part of a write, at its end, with the caller and the operation in ctx.
func Record(ctx context.Context, tx *db.Tx, e Entry) {
	c, o := who.From(ctx), op.From(ctx)
	if e.id == "" {
		e.id = db.NewID()
	}
	name, onBehalf := "", ""
	if o != nil {
		name = o.Name
	}
	if !c.Person {
		onBehalf = "account:" + c.Account
	}
	tx.Numbered(e.Heap, func(seq int64) error {
		before, err := marshal(e.Before)
		if err != nil {
			return err
		}
		after, err := marshal(e.After)
		if err != nil {
			return err
		}
		run := e.run
		if run == "" {
			if run, err = currentRun(tx, c.Actor); err != nil {
				return err
			}
		}
		var undoes *string
		if e.undoes != "" {
			undoes = &e.undoes
		}
		_, err = tx.Exec(`INSERT INTO change (id, heap, seq, kind, thing, op, effect, actor, on_behalf, via, run, request, before, after, undoes, summary, at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
			e.id, e.Heap, seq, e.Kind, e.Thing, name, e.Effect, c.Actor, onBehalf, c.Via, run, c.Request, before, after, undoes, e.Summary, tx.Now)
		return err
	})
}

// Forget takes what a thing held out of its changes, for one that is deleted for good: who did what to it and when stays.
func Forget(tx *db.Tx, thing string) error {
	_, err := tx.Exec(`UPDATE change SET before = '{}', after = '{}', summary = 'Changed what was deleted for good since' WHERE thing = $1`, thing)
	return err
}

func marshal(f Fields) (string, error) {
	if f == nil {
		return "{}", nil
	}
	b, err := rawjson.Marshal(f)
	return string(b), err
}

// currentRun gives the run that the actor's last change belongs to, or a new one after a silence. Undoing is no part of a
// run: it has one of its own.
func currentRun(tx *db.Tx, actor string) (string, error) {
	var run string
	var at int64
	err := tx.One(`SELECT run, at FROM change WHERE actor = $1 AND undoes IS NULL ORDER BY at DESC LIMIT 1`, []any{actor}, &run, &at)
	if errors.Is(err, sql.ErrNoRows) || err == nil && tx.Now-at > silence.Microseconds() {
		return db.NewID(), nil
	}
	return run, err
}

// Kind is how a kind of thing has its recorded fields read and set back. The feature that owns the things gives it.
type Kind struct {
	Name string
	Area string // who may see its changes: the area must be granted
	// PersonOnly: agents see its changes, but only a person may take them back.
	PersonOnly bool
	// Hide, if not "", is SQL that tells of a row of change that no agent may see it, such as the change of a private thing.
	// Personal names fields that only a person is shown.
	Hide     string
	Personal []string
	// Owned: agents don't take back what a person did, nor anything of a thing that a person changed since; one whose new
	// memories wait for the owner takes back its own changes alone.
	Owned bool
	// Get reads every recorded field of a thing, State among them, and the heap it lies in.
	Get func(tx *db.Tx, id string) (heap string, now map[string]json.RawMessage, err error)
	// Set writes recorded fields back, with what hangs on them (search, checks). A fault leaves the thing as it is.
	Set func(ctx context.Context, tx *db.Tx, id string, fields map[string]json.RawMessage) error
	// Merge, if not nil, says what a field is to hold that was changed since, so that the change from before to after is taken
	// back and what came later stays; nil where that can't be, or a Conflict that says why.
	Merge func(tx *db.Tx, id, field string, before, after, now json.RawMessage) (json.RawMessage, error)
}

// Service lists and undoes changes.
type Service struct {
	db    *db.DB
	kinds map[string]Kind
}

// NewService makes the service for the kinds that features give.
func NewService(d *db.DB, kinds ...Kind) *Service {
	s := &Service{db: d, kinds: map[string]Kind{}}
	for _, k := range kinds {
		s.kinds[k.Name] = k
	}
	return s
}

// Ops are the operations of this package.
func (s *Service) Ops() []*op.Op {
	return []*op.Op{
		op.Define(op.Op{Name: "list_changes", Title: "List changes", Area: who.Core, Effect: op.Read, Set: "record",
			Doc: "Who changed what, when, from what to what, newest first. Narrow by thing, run (one agent's calls until 30 minutes of silence), request or since."},
			s.list),
		op.Define(op.Op{Name: "undo_change", Title: "Undo changes", Area: who.Core, Effect: op.Destroy, Set: "record", Timeout: 2 * time.Minute, Confirm: true,
			Example: `{"run":"01890a5d-ac96-774b-bcce-b302099a8057","dry_run":true}`,
			Doc:     "Take back one change, or all of a request or run, newest first. A field that was changed since is left alone and reported. Undoing is itself a change and can be undone. dry_run shows what would happen."},
			s.undo),
	}
}
