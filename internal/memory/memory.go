// Package memory keeps what a person decided, believes and prefers and how that changed, what happened and when, and gives
// an agent the part of it that bears on what it is about to do. Nothing here is deleted by guess: a mind that changed leaves
// a chain, and what is private reaches no agent.
package memory

import (
	"cairn/internal/db"
	"cairn/internal/op"
	"cairn/internal/search"
)

// area is the area that all of this belongs to.
const area = "memory"

// Service is the memory of one server.
type Service struct {
	db     *db.DB
	engine *search.Engine
	public func() string // the server's address, for links
}

// New makes the service.
func New(d *db.DB, e *search.Engine, public func() string) *Service {
	return &Service{db: d, engine: e, public: public}
}

// Ops are the operations of this package.
func (s *Service) Ops() []*op.Op { return nil }
