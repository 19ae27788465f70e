package audit

import (
	"context"
	"math"
	"net/netip"
	"sync"
	"time"

	"cairn/internal/db"
	"cairn/internal/fault"
)

// Window is how a caller stands against a limit after one more call was asked for.
type Window struct {
	Limit     int
	Allowed   bool
	Current   int   // calls in the window, refused ones of this minute too
	Remaining int   // calls that would still pass now
	Reset     int64 // ms since 1970 when the next call passes; now, if one passes now
}

// Limiter counts calls in a sliding window of 60 s: this minute's calls plus the last minute's, weighted by what is left of
// it. From a fresh start, a limit's number of calls passes at once and the next is refused. On PostgreSQL all replicas share
// the windows; on SQLite, which has one server, they live in memory.
type Limiter struct {
	db    *db.DB
	mu    sync.Mutex
	mem   map[string]*counts
	swept int64
}

// counts of one key. Refused calls are told to the caller but don't weigh on the decision.
type counts struct {
	minute, cur, prev, refused int64
}

// NewLimiter makes a limiter for a database.
func NewLimiter(d *db.DB) *Limiter { return &Limiter{db: d, mem: map[string]*counts{}} }

// Now is the limiter's clock, in microseconds since 1970 UTC.
func (l *Limiter) Now() int64 { return l.db.Now() }

const minute = int64(time.Minute / time.Microsecond)

// Take counts one call of key against limit calls per 60 s and tells whether it passes. limit must be at least 1.
func (l *Limiter) Take(ctx context.Context, key string, limit int) (Window, error) {
	now := l.db.Now()
	if l.db.Postgres() {
		return l.shared(ctx, key, limit, now)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(now / minute)
	c := l.mem[key]
	if c == nil {
		c = &counts{minute: now / minute}
		l.mem[key] = c
	}
	c.roll(now / minute)
	ok := c.weighed(now)+1 <= float64(limit)
	if ok {
		c.cur++
	} else {
		c.refused++
	}
	return c.window(now, limit, ok), nil
}

// Look tells how a key stands without counting a call.
func (l *Limiter) Look(ctx context.Context, key string, limit int) (Window, error) {
	now := l.db.Now()
	c := counts{minute: now / minute}
	if l.db.Postgres() {
		err := l.db.One(ctx, `SELECT minute, cur, prev, refused FROM rate_window WHERE key = $1`, []any{key}, &c.minute, &c.cur, &c.prev, &c.refused)
		if err != nil && !db.IsNone(err) {
			return Window{}, err
		}
	} else {
		l.mu.Lock()
		if known := l.mem[key]; known != nil {
			c = *known
		}
		l.mu.Unlock()
	}
	c.roll(now / minute)
	return c.window(now, limit, c.weighed(now)+1 <= float64(limit)), nil
}

// roll moves the counts on to a minute. A clock that went back stays in the minute it was in.
func (c *counts) roll(m int64) {
	switch {
	case m == c.minute+1:
		c.minute, c.prev, c.cur, c.refused = m, c.cur, 0, 0
	case m > c.minute:
		*c = counts{minute: m}
	}
}

// weighed is what counts now: this minute's allowed calls plus what is left of the last minute's.
func (c *counts) weighed(now int64) float64 {
	gone := float64(min(max(now-c.minute*minute, 0), minute)) / float64(minute)
	return float64(c.cur) + float64(c.prev)*(1-gone)
}

func (c *counts) window(now int64, limit int, ok bool) Window {
	w := c.weighed(now)
	win := Window{Limit: limit, Allowed: ok, Current: int(math.Ceil(w)) + int(c.refused), Remaining: max(0, int(math.Floor(float64(limit)-w)))}
	win.Reset = c.reset(now, limit) / 1000
	return win
}

// reset gives the microsecond at which the next call passes.
func (c *counts) reset(now int64, limit int) int64 {
	room := float64(limit - 1) // what may weigh at most for one more to pass
	start := c.minute * minute
	switch {
	case c.weighed(now) <= room:
		return now
	case float64(c.cur) <= room: // the last minute's share must shrink: prev * (1 - gone) <= room - cur
		return start + int64(math.Ceil((1-(room-float64(c.cur))/float64(c.prev))*float64(minute)))
	}
	return start + minute + int64(math.Ceil((1-room/float64(c.cur))*float64(minute))) // in the next minute, cur is prev
}

// sweep forgets keys that no longer weigh anything, once a minute.
func (l *Limiter) sweep(m int64) {
	if l.swept == m {
		return
	}
	l.swept = m
	for k, c := range l.mem {
		if c.minute < m-1 {
			delete(l.mem, k)
		}
	}
}

// shared is Take on PostgreSQL: one upsert, so that replicas decide by the same row. What weighs is worked out twice in the
// text since an UPDATE's expressions see the old row.
func (l *Limiter) shared(ctx context.Context, key string, limit int, now int64) (Window, error) {
	const cur = `(CASE WHEN r.minute >= $2 THEN r.cur ELSE 0 END)`
	const prev = `(CASE WHEN r.minute >= $2 THEN r.prev WHEN r.minute = $2 - 1 THEN r.cur ELSE 0 END)`
	const pass = `(` + cur + ` + ` + prev + ` * $3::float8 + 1 <= $4)`
	m := now / minute
	left := 1 - float64(now-m*minute)/float64(minute)
	c := counts{}
	var ok bool
	err := l.db.One(ctx, `INSERT INTO rate_window AS r (key, minute, cur, prev, refused, ok) VALUES ($1, $2::bigint, 1, 0, 0, true)
		ON CONFLICT (key) DO UPDATE SET minute = greatest(r.minute, $2), prev = `+prev+`, ok = `+pass+`,
			cur = `+cur+` + CASE WHEN `+pass+` THEN 1 ELSE 0 END,
			refused = (CASE WHEN r.minute >= $2 THEN r.refused ELSE 0 END) + CASE WHEN `+pass+` THEN 0 ELSE 1 END
		RETURNING minute, cur, prev, refused, ok`, []any{key, m, left, float64(limit)}, &c.minute, &c.cur, &c.prev, &c.refused, &ok)
	if err != nil {
		return Window{}, err
	}
	return c.window(now, limit, ok), nil
}

// Refusal words a window that is full.
func (w Window) Refusal(now time.Time) error {
	wait := (w.Reset - now.UnixMilli() + 999) / 1000
	wait = max(wait, 1)
	return fault.New(fault.Limited, "Rate limit exceeded. Try again in %d seconds", wait).
		With("current", w.Current).With("limit", w.Limit).With("resetTime", w.Reset).With("retryAfter", wait)
}

// PurgeWindows forgets windows that no longer weigh anything.
func PurgeWindows(ctx context.Context, d *db.DB) error {
	if !d.Postgres() {
		return nil
	}
	return d.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(`DELETE FROM rate_window WHERE minute < $1`, d.Now()/minute-1)
		return err
	})
}

// Place is what an address is counted under: one holder has a whole /64 of IPv6.
func Place(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return "unknown"
	}
	if a = a.Unmap().WithZone(""); a.Is6() {
		p, _ := a.Prefix(64)
		return p.String()
	}
	return a.String()
}
