package audit

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cairn/internal/db"
	"cairn/internal/db/dbtest"
)

func TestSixtyPassAtOnceAndTheSixtyFirstIsRefused(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		l := NewLimiter(d)
		var wg sync.WaitGroup
		var allowed atomic.Int32
		for range 200 {
			wg.Go(func() {
				w, err := l.Take(context.Background(), "k", 60)
				if err != nil {
					t.Error(err)
				}
				if w.Allowed {
					allowed.Add(1)
				}
			})
		}
		wg.Wait()
		if n := allowed.Load(); n != 60 {
			t.Fatalf("%d passed", n)
		}
		w, _ := l.Take(context.Background(), "k", 60)
		if w.Allowed || w.Current < 200 || w.Remaining != 0 || w.Reset <= time.Now().UnixMilli() {
			t.Fatalf("%+v", w)
		}
		if w, _ := l.Take(context.Background(), "other", 60); !w.Allowed || w.Remaining != 59 || w.Current != 1 {
			t.Fatalf("%+v", w)
		}
	})
}

// The moment that a refusal names is the first at which a call passes.
func TestResetIsWhenTheNextCallPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 100).Draw(t, "limit")
		c := counts{minute: 1000, cur: rapid.Int64Range(0, int64(limit)).Draw(t, "cur"), prev: rapid.Int64Range(0, int64(limit)).Draw(t, "prev")}
		now := 1000*minute + rapid.Int64Range(0, minute-1).Draw(t, "now")
		at := c.reset(now, limit)
		passes := func(when int64) bool {
			d := c
			d.roll(when / minute)
			return d.weighed(when)+1 <= float64(limit)+1e-9
		}
		if at < now || !passes(at) {
			t.Fatalf("%+v limit %d now %d: reset %d does not pass", c, limit, now, at)
		}
		if at > now && passes(at-1000) && at-1000 >= now {
			t.Fatalf("%+v limit %d now %d: a call passes before reset %d", c, limit, now, at)
		}
	})
}
