package file

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"cairn/internal/db"
	"cairn/internal/job"
)

// grace is how long bytes are kept that no file has: longer than any upload of the same bytes lasts, which counts on them.
const grace = 24 * time.Hour

// atOnce is how many rows the sweep deals with at a time.
const atOnce = 100

// Jobs are the kinds of background work of this package.
func (s *Service) Jobs() []job.Kind {
	some := func(ctx context.Context, q string, args ...any) (bool, error) {
		var one int
		err := s.db.One(ctx, q, args, &one)
		if db.IsNone(err) {
			return false, nil
		}
		return err == nil, err
	}
	return []job.Kind{
		{Name: "make thumbnails", Every: time.Hour, Hold: 3 * time.Minute,
			Look: func(ctx context.Context, _ bool) (bool, error) {
				return some(ctx, `SELECT 1 FROM blob WHERE thumbnails = 'wanted' AND unused_at IS NULL LIMIT 1`)
			},
			Do: func(ctx context.Context, _ json.RawMessage, _ func(int, int)) error { return s.makeAll(ctx) }},
		{Name: "sweep files", Every: time.Hour, Hold: 10 * time.Minute,
			Look: func(ctx context.Context, _ bool) (bool, error) {
				return some(ctx, `SELECT 1 FROM blob WHERE unused_at <= $1 UNION ALL SELECT 1 FROM blob_gone LIMIT 1`, s.db.Now()-grace.Microseconds())
			},
			Do: func(ctx context.Context, _ json.RawMessage, _ func(int, int)) error { return s.sweep(ctx) }},
	}
}

// makeAll makes the thumbnails that are wanted, the oldest first. One that can't be made now holds up no other.
func (s *Service) makeAll(ctx context.Context) error {
	var failed error
	for at, last := int64(0), ""; ; {
		err := s.db.One(ctx, `SELECT sha256, created_at FROM blob WHERE thumbnails = 'wanted' AND unused_at IS NULL AND (created_at, sha256) > ($1, $2) ORDER BY created_at, sha256 LIMIT 1`, []any{at, last}, &last, &at)
		if db.IsNone(err) {
			return failed
		}
		if err == nil {
			if err := s.make(ctx, last); ctx.Err() == nil {
				failed = errors.Join(failed, err)
			}
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// Forget takes the row of a file off, as part of the write that deletes its block for good. Its bytes go some time after the last
// file that has them. A block that is no file has none.
func Forget(_ context.Context, tx *db.Tx, _, id string) error {
	var sha256 string
	err := tx.One(`SELECT sha256 FROM file WHERE id = $1`, []any{id}, &sha256)
	if db.IsNone(err) {
		return nil
	}
	if err == nil { // whoever adds or forgets a file of the same bytes waits
		err = tx.One(`SELECT sha256 FROM blob WHERE sha256 = $1`+tx.ForUpdate(), []any{sha256}, &sha256)
	}
	if err == nil {
		_, err = tx.Exec(`DELETE FROM file WHERE id = $1`, id)
	}
	if err == nil {
		_, err = tx.Exec(`UPDATE blob SET unused_at = $2 WHERE sha256 = $1 AND unused_at IS NULL AND NOT EXISTS (SELECT 1 FROM file WHERE sha256 = $1)`, sha256, tx.Now)
	}
	return err
}

// sweep deletes bytes that no file has had for a time, and what was left in the inbox. First, in one write, the rows go, and the
// names of their objects are remembered: an upload of the same bytes that comes next stores them under another name. Then the
// objects are deleted, at leisure, and again where that was broken off.
func (s *Service) sweep(ctx context.Context) error {
	if err := s.inbox.Sweep(grace); err != nil {
		return err
	}
	for {
		n, err := s.giveUp(ctx)
		if err != nil {
			return err
		}
		if n < atOnce {
			break
		}
	}
	for {
		list, err := db.Column(s.db.Query(ctx, `SELECT object FROM blob_gone ORDER BY object LIMIT `+strconv.Itoa(atOnce)))
		if err != nil || len(list) == 0 {
			return err
		}
		for _, object := range list {
			if err := s.store.Delete(ctx, object); err != nil {
				return err
			}
		}
		args := db.Args{}
		in := args.List(list)
		err = s.db.Write(ctx, func(tx *db.Tx) error {
			_, err := tx.Exec(`DELETE FROM blob_gone WHERE object IN `+in, args...)
			return err
		})
		if err != nil {
			return err
		}
	}
}

// giveUp takes the rows of bytes off that no file has had for a time, and says how many those were.
func (s *Service) giveUp(ctx context.Context) (n int, err error) {
	cutoff := s.db.Now() - grace.Microseconds()
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		rows, err := db.Column(tx.Query(`SELECT sha256 FROM blob WHERE unused_at <= $1 ORDER BY sha256 LIMIT `+strconv.Itoa(atOnce)+tx.ForUpdate(), cutoff))
		if n = len(rows); err != nil {
			return err
		}
		for _, sha256 := range rows {
			var object, state string
			if err := tx.One(`SELECT object, thumbnails FROM blob WHERE sha256 = $1`, []any{sha256}, &object, &state); err != nil {
				return err
			}
			if _, err := tx.Exec(`DELETE FROM thumbnail WHERE sha256 = $1`, sha256); err != nil {
				return err
			}
			if _, err := tx.Exec(`DELETE FROM blob WHERE sha256 = $1`, sha256); err != nil { // a file that has them after all makes this fail
				return err
			}
			if err := gone(tx, object, state != none); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

// gone remembers that an object is to be deleted, and its thumbnails' too, whether they were made or only begun.
func gone(tx *db.Tx, object string, thumbnails bool) error {
	list := []string{object}
	if thumbnails {
		for _, z := range Sizes {
			list = append(list, object+"."+z.Name)
		}
	}
	for _, o := range list {
		if _, err := tx.Exec(`INSERT INTO blob_gone (object) VALUES ($1) ON CONFLICT (object) DO NOTHING`, o); err != nil {
			return err
		}
	}
	return nil
}
