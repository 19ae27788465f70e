package memory

import (
	"cairn/internal/change"
	"cairn/internal/op"
	"cairn/internal/search"
)

func (s *Service) recordOps() []*op.Op { return nil }

func (s *Service) recordKinds() []change.Kind { return nil }

func (s *Service) recordSources() []search.Source { return nil }
