// Package memory keeps what a person decided, believes and prefers and how that changed, what happened and when, and gives
// an agent the part of it that bears on what it is about to do. Nothing here is deleted by guess: a mind that changed leaves
// a chain, and what is private reaches no agent.
package memory

import (
	"context"
	"encoding/json"
	"slices"

	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/op"
	"cairn/internal/rawjson"
	"cairn/internal/search"
	"cairn/internal/who"
)

// area is the area that all of this belongs to; record is the set of the owner's record, off the default list.
const (
	area   = "memory"
	record = "record"
)

// Service is the memory of one server.
type Service struct {
	db     *db.DB
	engine *search.Engine
	public func() string // the server's address, for links

	// Completions hands out the tasks completed in heaps since a moment, newest first, after the one with this id at the moment
	// below ("" = before it). nil = there are none.
	Completions func(ctx context.Context, heaps []who.Heap, since, below int64, id string, limit int,
		add func(id, heap, name string, project, sourceURL *string, at int64)) error
	// ProjectHeap gives the heap of a project, "" where there is none. nil = there are none.
	ProjectHeap func(tx *db.Tx, id string) (string, error)
}

// New makes the service.
func New(d *db.DB, e *search.Engine, public func() string) *Service {
	return &Service{db: d, engine: e, public: public}
}

// Ops are the operations of this package.
func (s *Service) Ops() []*op.Op {
	return slices.Concat(s.contextOps(), s.recordOps(), s.proposalOps(), s.selfOps())
}

// Kinds are the kinds of thing whose changes can be undone here.
func (s *Service) Kinds() []change.Kind {
	return slices.Concat(s.contextKinds(), s.recordKinds())
}

// Sources are the kinds of thing that search and fetch show.
func (s *Service) Sources() []search.Source {
	return slices.Concat(s.contextSources(), s.recordSources())
}

// querier is the part of db.DB and db.Tx that reading one row needs.
type querier func(q string, args []any, dest ...any) error

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func opt(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// stateOf says whether a thing is there or in the trash.
func stateOf(trashed *int64) string {
	if trashed != nil {
		return change.Trashed
	}
	return change.Live
}

// since gives when something came to be so: the old moment if it was so before, now if it wasn't, nil where it isn't.
func since(is bool, was *int64, now int64) *int64 {
	switch {
	case !is:
		return nil
	case was == nil:
		return &now
	}
	return was
}

// diff gives the recorded fields in which two states of a thing differ.
func diff(old, now change.Fields) (before, after change.Fields) {
	before, after = change.Fields{}, change.Fields{}
	for k, v := range now {
		a, _ := json.Marshal(old[k])
		b, _ := json.Marshal(v)
		if string(a) != string(b) {
			before[k], after[k] = old[k], v
		}
	}
	return before, after
}

// raw gives recorded fields as undo reads them.
func raw(f change.Fields) (map[string]json.RawMessage, error) {
	m := make(map[string]json.RawMessage, len(f))
	for k, v := range f {
		b, err := rawjson.Marshal(v)
		if err != nil {
			return nil, err
		}
		m[k] = b
	}
	return m, nil
}

// brief shortens a text for a summary.
func brief(name string) string {
	if r := []rune(name); len(r) > 80 {
		name = string(r[:80]) + "…"
	}
	return `"` + name + `"`
}
