package memory

import (
	"cairn/internal/change"
	"cairn/internal/op"
	"cairn/internal/search"
)

func (s *Service) contextOps() []*op.Op { return nil }

func (s *Service) contextKinds() []change.Kind { return nil }

func (s *Service) contextSources() []search.Source { return nil }
