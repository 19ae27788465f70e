// Package memory keeps what a person decided, believes and prefers and how that changed, what happened and when, and gives
// an agent the part of it that bears on what it is about to do. Nothing here is deleted by guess: a mind that changed leaves
// a chain, and what is private reaches no agent.
package memory

import (
	"context"
	"slices"

	"cairn/internal/change"
	"cairn/internal/chronicle"
	"cairn/internal/db"
	"cairn/internal/op"
	"cairn/internal/search"
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

	Chronicle *chronicle.Service // what happened when, and the owner's record
	Features  Features           // what packs need of others
}

// New makes the service.
func New(d *db.DB, e *search.Engine, public func() string) *Service {
	s := &Service{db: d, engine: e, public: public, Chronicle: chronicle.New(d, public)}
	s.Chronicle.Lock, s.Chronicle.Stale, s.Chronicle.Decided = lockContext, staleSelf, s.decided
	return s
}

// Ops are the operations of this package.
func (s *Service) Ops() []*op.Op {
	return slices.Concat(s.contextOps(), s.Chronicle.Ops(), s.proposalOps(), s.selfOps(), s.packOps(), s.lineageOps())
}

// Kinds are the kinds of thing whose changes can be undone here.
func (s *Service) Kinds() []change.Kind {
	return slices.Concat(s.contextKinds(), s.Chronicle.Kinds())
}

// Sources are the kinds of thing that search and fetch show.
func (s *Service) Sources() []search.Source {
	return slices.Concat(s.contextSources(), s.Chronicle.Sources())
}

// decided makes the context object that a decision is too, or finds the one that says the same.
func (s *Service) decided(ctx context.Context, tx *db.Tx, heap, decision, title string, at int64) (string, error) {
	if err := lockContext(tx, heap); err != nil {
		return "", err
	}
	o, _, err := s.makeContext(ctx, tx, heap, told{Kind: decided, Statement: title}, made{Source: "decision:" + decision, At: at})
	if err != nil {
		return "", err
	}
	return o.ID, nil
}

// Count gives how many things are remembered in a heap as they stand.
func (s *Service) Count(ctx context.Context, heap string) (n int, err error) {
	err = s.db.One(ctx, `SELECT count(*) FROM context WHERE heap = $1 AND status = '`+current+`'`, []any{heap}, &n)
	return n, err
}
