package memory

import "cairn/internal/op"

func (s *Service) selfOps() []*op.Op { return nil }
