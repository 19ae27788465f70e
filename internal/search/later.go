package search

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"cairn/internal/db"
	"cairn/internal/job"
)

// DocOf gives what of a thing can be found, as it stands now; false where it can't be found any more.
type DocOf func(ctx context.Context, thing string) (d Doc, ok bool, err error)

// Later lets a thing be analyzed after the write, from its Source's Doc: by the next search in its heap, which so finds it as it
// is, or soon. It's for texts so long that Analyze would hold up whoever writes them.
func Later(tx *db.Tx, heap, thing, kind string) {
	tx.Numbered(heap, func(seq int64) error {
		_, err := tx.Exec(`INSERT INTO search_later (heap, thing, kind, seq) VALUES ($1, $2, $3, $4) ON CONFLICT (heap, thing) DO UPDATE SET seq = excluded.seq`, heap, thing, kind, seq)
		return err
	})
}

// NoteLater is the note of a search that doesn't know a long text as it is now: writing what was analyzed of it failed.
const NoteLater = "a long text that was just changed is found as it was before"

// waiting is a thing to be analyzed, as it was marked by a write.
type waiting struct {
	heap, thing, kind string
	seq               int64
}

func (e *Engine) waiting(ctx context.Context, heaps []string) (list []waiting, err error) {
	q, args := `SELECT heap, thing, kind, seq FROM search_later`, db.Args{}
	if heaps != nil {
		q += ` WHERE heap IN ` + args.List(heaps)
	}
	rows, err := e.d.QueryLong(ctx, q+` ORDER BY seq`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var w waiting
		if err := rows.Scan(&w.heap, &w.thing, &w.kind, &w.seq); err != nil {
			return nil, err
		}
		if e.docs[w.kind] != nil {
			list = append(list, w)
		}
	}
	return list, rows.Err()
}

// settle analyzes what waits in heaps, nil = all. One at a time: who comes second finds it done.
func (e *Engine) settle(ctx context.Context, heaps []string) error {
	select {
	case e.settling <- struct{}{}:
		defer func() { <-e.settling }()
	case <-ctx.Done():
		return ctx.Err()
	}
	list, err := e.waiting(ctx, heaps)
	if err != nil {
		return err
	}
	var failed error
	for _, w := range list {
		if err := e.analyze(ctx, w); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// tries is how often a thing is analyzed for one search where another server is at it too.
const tries = 3

var errRaced = errors.New("search: another server analyzes the same text again and again")

// analyze makes a thing findable as it stands. Where it was marked again meanwhile, it is found at least as it was read, and the
// mark stays: whoever writes it without pause keeps nobody from finding it.
func (e *Engine) analyze(ctx context.Context, w waiting) error {
	const newest = `SELECT coalesce(max(seq), 0) FROM search_passage WHERE heap = $1 AND thing = $2`
	key := []any{w.heap, w.thing}
	for range tries {
		var was int64
		if err := e.d.One(ctx, newest, key, &was); err != nil {
			return err
		}
		d, found, err := e.docs[w.kind](ctx, w.thing)
		if err != nil {
			return err
		}
		a, raced := Analyze(d), false
		err = e.d.Write(ctx, func(tx *db.Tx) error {
			tx.Numbered(w.heap, func(seq int64) error { // the heap's counter is locked: nothing is marked, put or removed meanwhile
				var mark, is int64
				raced = false
				err := tx.One(`SELECT seq FROM search_later WHERE heap = $1 AND thing = $2`, key, &mark)
				switch {
				case db.IsNone(err): // it was put, or removed
					return nil
				case err != nil:
				case mark == w.seq:
					err = unmark(tx, w.heap, w.thing)
				default: // what another server has put may have been read later than this
					err = tx.One(newest, key, &is)
					raced = is != was
				}
				if err != nil || raced || !found {
					return err
				}
				return a.write(tx, seq)
			})
			return nil
		})
		if err != nil || !raced {
			return err
		}
	}
	return errRaced
}

// unmark lets a thing wait no more.
func unmark(tx *db.Tx, heap, thing string) error {
	_, err := tx.Exec(`DELETE FROM search_later WHERE heap = $1 AND thing = $2`, heap, thing)
	return err
}

// settled are the counters of heaps in which nothing waits any more; behind tells that something does, for it couldn't be written.
func (e *Engine) settled(ctx context.Context, heaps []string) (seqs map[string]int64, behind bool, err error) {
	seqs, late, err := e.seqs(ctx, heaps)
	if err != nil || len(late) == 0 {
		return seqs, false, err
	}
	if err := e.settle(ctx, late); err != nil {
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		behind = true
	}
	seqs, _, err = e.seqs(ctx, heaps)
	return seqs, behind, err
}

// Jobs are the kinds of job of this package: what waits is analyzed once its writer has paused, so that a search needn't.
func (e *Engine) Jobs() []job.Kind {
	seen := map[string]int64{}
	look := func(ctx context.Context, soon bool) (bool, error) {
		list, err := e.waiting(ctx, nil)
		now := map[string]int64{}
		for _, w := range list {
			now[w.heap+" "+w.thing] = w.seq
		}
		still := maps.Equal(seen, now)
		seen = now
		return len(list) > 0 && (still || soon), err
	}
	return []job.Kind{{Name: "search_later", Every: time.Hour, Look: look, Do: func(ctx context.Context, _ json.RawMessage, _ func(done, total int)) error {
		return e.settle(ctx, nil)
	}}}
}
