package signin

import (
	"context"
	"net/http"

	"cairn/internal/audit"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/who"
)

const (
	sessionLasts = 30 * day
	seenEvery    = hour // how exactly it is known when a session was last seen
	mostSessions = 50   // of an account; those not seen for longest go
)

// Session is somebody's being signed in, in one browser. Times are microseconds since 1970 UTC.
type Session struct {
	ID, Account, Method, Address, Client   string
	CreatedAt, SeenAt, ProvedAt, ExpiresAt int64
	Renewed                                bool // it lasts longer since this request: send the cookie again
}

// CookieName is what the cookie of a session is called. The prefix makes browsers take it by https from this host alone.
func (s *Service) CookieName() string {
	if s.public.Scheme == "https" {
		return "__Host-cairn"
	}
	return "cairn"
}

// Cookie gives the cookie that carries a session.
func (s *Service) Cookie(value string) *http.Cookie {
	return &http.Cookie{Name: s.CookieName(), Value: value, Path: "/", MaxAge: int(sessionLasts / 1e6), HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: s.public.Scheme == "https"}
}

// Clear gives the cookie that takes a session's away.
func (s *Service) Clear() *http.Cookie {
	c := s.Cookie("")
	c.MaxAge = -1
	return c
}

// Start makes a session for somebody who has just shown who they are. The cookie's value is kept as a hash.
func (s *Service) Start(ctx context.Context, p Person, from From) (cookie string, out Session, err error) {
	cookie = random()
	out = Session{ID: db.NewID(), Account: p.Account, Method: p.Method, Address: clip(from.Address), Client: clip(from.UserAgent)}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		out.CreatedAt, out.SeenAt, out.ProvedAt, out.ExpiresAt = tx.Now, tx.Now, tx.Now, tx.Now+sessionLasts
		_, err := tx.Exec(`INSERT INTO session (id, account, hash, method, address, client, created_at, seen_at, proved_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $7, $8)`,
			out.ID, out.Account, hash(cookie), out.Method, out.Address, out.Client, tx.Now, out.ExpiresAt)
		if err != nil {
			return err
		}
		_, err = tx.Exec(`DELETE FROM session WHERE id IN (SELECT id FROM session WHERE account = $1 ORDER BY seen_at DESC, id DESC LIMIT 1000 OFFSET $2)`, out.Account, mostSessions)
		if err != nil {
			return err
		}
		return audit.WriteEvent(from.as(ctx, p.Account), tx, audit.AuthAttempt, "session "+out.ID+" by "+out.Method)
	})
	return cookie, out, err
}

// ByCookie gives the caller of a session. Of an account that waits to be admitted it gives the session and a Denied fault
// whose reason is "waiting".
func (s *Service) ByCookie(ctx context.Context, cookie string, from From) (*who.Caller, *Session, error) {
	var out Session
	err := s.db.One(ctx, `SELECT id, account, method, address, client, created_at, seen_at, proved_at, expires_at FROM session WHERE hash = $1`, []any{hash(cookie)},
		&out.ID, &out.Account, &out.Method, &out.Address, &out.Client, &out.CreatedAt, &out.SeenAt, &out.ProvedAt, &out.ExpiresAt)
	now := s.db.Now()
	if db.IsNone(err) || err == nil && out.ExpiresAt <= now {
		return nil, nil, ended()
	}
	if err != nil {
		return nil, nil, err
	}
	c, err := s.accounts.Person(ctx, out.Account)
	waiting := fault.Is(err, fault.Denied) && fault.From(err).Data["reason"] == "waiting"
	switch {
	case fault.Is(err, fault.TokenInactive): // the account was disabled: should it ever come back, it signs in anew
		if _, err := s.end(ctx, from.as(ctx, out.Account), `id = $1`, out.ID); err != nil {
			return nil, nil, err
		}
		return nil, nil, ended()
	case err != nil && !waiting:
		return nil, nil, err
	}
	if now-out.SeenAt >= seenEvery {
		if rerr := s.renew(ctx, &out, from); rerr != nil {
			s.log.Error("a session could not be renewed", "session", out.ID, "cause", rerr.Error())
		}
	}
	if err != nil {
		return nil, &out, err
	}
	c.Session, c.Proved, c.Address, c.Client = out.ID, out.ProvedAt, from.Address, from.UserAgent
	return c, &out, nil
}

func ended() error {
	return fault.New(fault.Unauthenticated, "The session has ended or is not known: sign in")
}

func (s *Service) renew(ctx context.Context, out *Session, from From) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		address, client, expires := clip(from.Address), clip(from.UserAgent), tx.Now+sessionLasts
		n, err := tx.Exec(`UPDATE session SET seen_at = $2, expires_at = $3, address = $4, client = $5 WHERE id = $1`, out.ID, tx.Now, expires, address, client)
		if err == nil && n > 0 {
			out.SeenAt, out.ExpiresAt, out.Address, out.Client, out.Renewed = tx.Now, expires, address, client, true
		}
		return err
	})
}

// End ends a session that ByCookie gave, as its account does. One that is gone is fine.
func (s *Service) End(ctx context.Context, x Session, from From) error {
	_, err := s.end(ctx, from.as(ctx, x.Account), `id = $1`, x.ID)
	return err
}

// EndOthers ends all sessions of an account except one ("" = none is left) and tells how many it ended.
func (s *Service) EndOthers(ctx context.Context, account, keep string) (int, error) {
	return s.end(ctx, ctx, `account = $1 AND id <> $2`, account, keep)
}

// end deletes sessions and records it; as is the ctx that says who did it.
func (s *Service) end(ctx, as context.Context, where string, args ...any) (n int, err error) {
	err = s.db.Write(ctx, func(tx *db.Tx) (err error) {
		n, err = endIn(as, tx, where, args...)
		return err
	})
	return n, err
}

func endIn(as context.Context, tx *db.Tx, where string, args ...any) (int, error) {
	ids, err := db.Column(tx.Query(`DELETE FROM session WHERE `+where+` RETURNING id`, args...))
	if err != nil {
		return 0, err
	}
	for _, id := range ids {
		if err := audit.WriteEvent(as, tx, sessionEnded, id); err != nil {
			return 0, err
		}
	}
	return len(ids), nil
}

// sessions lists those of an account that last, the one seen last first.
func (s *Service) sessions(ctx context.Context, account string) ([]Session, error) {
	rows, err := s.db.Query(ctx, `SELECT id, method, address, client, created_at, seen_at FROM session WHERE account = $1 AND expires_at > $2 ORDER BY seen_at DESC, id DESC`, account, s.db.Now())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []Session
	for rows.Next() {
		var x Session
		if err := rows.Scan(&x.ID, &x.Method, &x.Address, &x.Client, &x.CreatedAt, &x.SeenAt); err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return list, rows.Err()
}
