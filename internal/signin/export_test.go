package signin

import (
	"time"

	"cairn/internal/audit"
)

// SetCap makes the cap of open challenges small.
func (s *Service) SetCap(n int64) { s.most = n }

// SetPauses makes the waits between tries of a mail short.
func (s *Service) SetPauses(ds ...time.Duration) { s.pauses = ds }

// What the fuzz test calls beside the exported functions.
var (
	CheckOrigin = checkOrigin
	CheckEmail  = checkEmail
	Place       = audit.Place
	Mask        = mask
)
