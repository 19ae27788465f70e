package db

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"cairn/internal/fault"
)

// Tx is what a write sees. Its methods take no ctx: a cancelled statement would make SQLite roll back the whole shared
// transaction, other callers' writes with it.
type Tx struct {
	// Now is the time of this write in microseconds since 1970 UTC, larger than that of every earlier write of this
	// process and, on SQLite, of every other process on the folder.
	Now int64
	// Wall is what the clock shows, in microseconds since 1970 UTC: for what day it is. Now runs ahead of it where a clock was
	// ahead once.
	Wall int64

	ctx      context.Context
	q        querier
	postgres bool
	atEnd    []numbered
}

type querier interface {
	ExecContext(ctx context.Context, q string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, q string, args ...any) (*sql.Rows, error)
}

type numbered struct {
	heap string
	fn   func(seq int64) error
}

// Exec runs a statement and gives the number of rows it touched.
func (t *Tx) Exec(q string, args ...any) (int64, error) {
	res, err := t.q.ExecContext(t.ctx, q, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// Query reads rows; the caller closes them before the next statement.
func (t *Tx) Query(q string, args ...any) (*sql.Rows, error) {
	return t.q.QueryContext(t.ctx, q, args...)
}

// One reads one row into dest. Without a row it gives sql.ErrNoRows.
func (t *Tx) One(q string, args []any, dest ...any) error {
	rows, err := t.Query(q, args...)
	if err != nil {
		return err
	}
	return one(rows, dest)
}

// ForUpdate ends a SELECT whose rows this write is going to change: PostgreSQL needs to be told, SQLite has one writer.
func (t *Tx) ForUpdate() string {
	if t.postgres {
		return " FOR UPDATE"
	}
	return ""
}

// ForEdit is ForUpdate for rows that stay: others may refer to them meanwhile, by ForReference.
func (t *Tx) ForEdit() string {
	if t.postgres {
		return " FOR NO KEY UPDATE"
	}
	return ""
}

// ForReference ends a SELECT of rows that this write refers to: until its commit nobody deletes them.
func (t *Tx) ForReference() string {
	if t.postgres {
		return " FOR KEY SHARE"
	}
	return ""
}

// Try runs fn, a part of this write, so that a fault of it leaves nothing and the rest of the write can go on. PostgreSQL
// lets nothing follow a statement that failed, except going back to a savepoint.
func (t *Tx) Try(fn func() error) error {
	ends := len(t.atEnd)
	if _, err := t.Exec(`SAVEPOINT part`); err != nil {
		return err
	}
	err := fn()
	if err != nil {
		t.atEnd = t.atEnd[:ends]
		if _, rerr := t.Exec(`ROLLBACK TO SAVEPOINT part`); rerr != nil {
			return rerr
		}
	}
	if _, rerr := t.Exec(`RELEASE SAVEPOINT part`); rerr != nil {
		return rerr
	}
	return err
}

// Numbered runs fn as one of the last steps of this write, with the next number of the heap's counter ("" = things without
// a heap). The counter's row stays locked until the commit, so within a heap the order of numbers is the order of commits;
// taking it last, and heaps in order, keeps writers from waiting on each other for long.
func (t *Tx) Numbered(heap string, fn func(seq int64) error) {
	t.atEnd = append(t.atEnd, numbered{heap, fn})
}

func (t *Tx) finish() error {
	slices.SortStableFunc(t.atEnd, func(a, b numbered) int { return cmp.Compare(a.heap, b.heap) })
	for i := 0; i < len(t.atEnd); {
		j := i
		for j < len(t.atEnd) && t.atEnd[j].heap == t.atEnd[i].heap {
			j++
		}
		n, last := int64(j-i), int64(0)
		err := t.One(`INSERT INTO heap_seq (heap, seq, at) VALUES ($1, $2, $3) ON CONFLICT (heap) DO UPDATE
			SET seq = heap_seq.seq + excluded.seq, at = CASE WHEN heap_seq.at > excluded.at THEN heap_seq.at ELSE excluded.at END
			RETURNING seq`, []any{t.atEnd[i].heap, n, t.Now}, &last)
		if err != nil {
			return err
		}
		for k := i; k < j; k++ {
			if err := t.atEnd[k].fn(last - n + 1 + int64(k-i)); err != nil {
				return err
			}
		}
		i = j
	}
	return nil
}

// inWrite marks the ctx of a write's own statements.
type inWrite struct{}

var errNested = errors.New("db: Write inside Write")

// Write runs fn in a transaction and returns when it is durable, or with fn's error and nothing written. fn may run more
// than once (set what it gives to the outside afresh each time), must not call Write, and holds up all other writers: no
// network, no model, no hashing of large files in it.
func (d *DB) Write(ctx context.Context, fn func(*Tx) error) error {
	if ctx.Value(inWrite{}) != nil {
		return errNested
	}
	if d.queue == nil {
		return d.writePostgres(ctx, fn)
	}
	p := &pending{ctx: ctx, fn: fn, done: make(chan struct{})}
	select {
	case d.queue <- p:
	case <-ctx.Done(): // the queue has no buffer: not taken means certainly not written
		return ctx.Err()
	case <-d.stop:
		return fault.New(fault.Unavailable, "the server is stopping; nothing was written").With("reason", "unavailable")
	}
	<-p.done // not ctx: once it is queued its fate must be known
	if p.panicked != nil {
		panic(p.panicked)
	}
	return busy(p.err)
}

// tick gives the time of the next write.
func (d *DB) tick() int64 {
	for {
		last := d.last.Load()
		now := max(d.clock().UnixMicro(), last+1)
		if d.last.CompareAndSwap(last, now) {
			return now
		}
	}
}

const (
	pgTries = 8
	pgWrite = 30 * time.Second // the longest that one write may take
)

func (d *DB) writePostgres(ctx context.Context, fn func(*Tx) error) error {
	for try := 1; ; try++ {
		err := d.tryPostgres(ctx, fn)
		if err == nil || !isSerialization(err) || try == pgTries {
			return busy(err)
		}
		time.Sleep(time.Duration(rand.Int64N(int64(try) * int64(10*time.Millisecond))))
	}
}

func (d *DB) tryPostgres(ctx context.Context, fn func(*Tx) error) error {
	conn, err := d.write.Conn(ctx) // waits no longer than the caller does
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // it goes back to the pool
	// Without ctx's end: database/sql would roll back under fn, or leave a commit's fate unknown. But not for ever.
	wctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pgWrite)
	defer cancel()
	sqlTx, err := conn.BeginTx(wctx, nil)
	if err != nil {
		return err
	}
	defer sqlTx.Rollback() //nolint:errcheck // after Commit it does nothing
	t := &Tx{Now: d.tick(), Wall: d.Now(), ctx: context.WithValue(wctx, inWrite{}, true), q: sqlTx, postgres: true}
	if err := fn(t); err != nil {
		return err
	}
	if err := t.finish(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := sqlTx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	d.writes.Add(1)
	d.commits.Add(1)
	return nil
}
