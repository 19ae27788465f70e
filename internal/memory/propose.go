package memory

import "cairn/internal/op"

func (s *Service) proposalOps() []*op.Op { return nil }
