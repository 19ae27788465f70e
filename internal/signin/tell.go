package signin

import (
	"context"
	"time"
)

// Tell mails something to an account's confirmed address, off the caller's path; an account without one isn't told.
func (s *Service) Tell(account, subject, body string) {
	if s.mail == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var to *string
	err := s.db.One(ctx, `SELECT email FROM account WHERE id = $1 AND email_confirmed_at IS NOT NULL AND disabled_at IS NULL`, []any{account}, &to)
	if err == nil && to != nil {
		s.post(*to, subject, body)
	}
}
