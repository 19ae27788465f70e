package db

import (
	"context"
	"database/sql"
	"fmt"
)

// pending is one write on its way through the SQLite writer.
type pending struct {
	ctx      context.Context
	fn       func(*Tx) error
	err      error
	panicked any
	done     chan struct{}
}

// maxBatch bounds how many writes share a commit, and so how long one can wait for the others.
const maxBatch = 128

// writer owns SQLite's one writing connection.
type writer struct {
	d       *DB
	conn    *sql.Conn
	cached  stmts
	version int64 // PRAGMA data_version as last seen: it moves when another process has committed
}

func newWriter(ctx context.Context, d *DB) (*writer, error) {
	conn, err := d.write.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{d: d, conn: conn, version: -1}
	return w, nil
}

// ExecContext and QueryContext run on the connection with kept statements; they make writer a querier.
func (w *writer) ExecContext(ctx context.Context, q string, args ...any) (sql.Result, error) {
	s, err := w.cached.get(ctx, w.conn, q)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return w.conn.ExecContext(ctx, q, args...)
	}
	return s.ExecContext(ctx, args...)
}

// QueryContext is ExecContext for rows.
func (w *writer) QueryContext(ctx context.Context, q string, args ...any) (*sql.Rows, error) {
	s, err := w.cached.get(ctx, w.conn, q)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return w.conn.QueryContext(ctx, q, args...)
	}
	return s.QueryContext(ctx, args...)
}

func (w *writer) exec(q string) error {
	_, err := w.ExecContext(context.Background(), q)
	return err
}

func (w *writer) loop() {
	defer close(w.d.stopped)
	defer func() { w.cached.close(); _ = w.conn.Close() }()
	for {
		var batch []*pending
		select {
		case p := <-w.d.queue:
			batch = append(batch, p)
		case <-w.d.stop:
			return
		}
		batch, kept := w.share(w.more(batch), true)
		if !kept { // the shared transaction was lost: each write on its own
			for _, p := range batch {
				p.err, p.panicked = nil, nil
				w.share([]*pending{p}, false)
			}
		}
		for _, p := range batch {
			close(p.done)
		}
	}
}

// more adds the writes that wait right now.
func (w *writer) more(batch []*pending) []*pending {
	for len(batch) < maxBatch {
		select {
		case p := <-w.d.queue:
			batch = append(batch, p)
		default:
			return batch
		}
	}
	return batch
}

// share runs a batch in one transaction and sets each write's fate; with join, writes that come meanwhile go along. It gives
// all that took part. kept is false where nothing was kept and the writes are worth trying one by one.
func (w *writer) share(batch []*pending, join bool) (all []*pending, kept bool) {
	if err := w.begin(); err != nil {
		for _, p := range batch {
			p.err = err
		}
		return batch, true
	}
	open := true
	defer func() {
		if open {
			_ = w.exec(`ROLLBACK`) // fails where SQLite has rolled back by itself, which is as good
		}
	}()
	good := int64(0)
	for i := 0; i < len(batch); i++ {
		first := len(batch) == 1 // it needs no savepoint: should it fail, the whole transaction goes
		ok, lost := w.step(batch[i], !first)
		switch {
		case lost:
			return batch, false
		case ok:
			good++
		case first: // without a savepoint nothing of it may stay
			return batch, true
		}
		if join && i == len(batch)-1 {
			batch = w.more(batch)
		}
	}
	if good == 0 {
		return batch, true
	}
	if err := w.exec(`COMMIT`); err != nil {
		if len(batch) == 1 {
			batch[0].err = fmt.Errorf("commit: %w", err)
			return batch, true
		}
		return batch, false
	}
	open = false
	w.d.writes.Add(good)
	w.d.commits.Add(1)
	return batch, true
}

// step runs one write, behind a savepoint or not. lost means that the transaction is of no use any more.
func (w *writer) step(p *pending, savepoint bool) (ok, lost bool) {
	if p.err = p.ctx.Err(); p.err != nil {
		return false, false
	}
	if savepoint && w.exec(`SAVEPOINT w`) != nil {
		return false, true
	}
	w.run(p)
	ok = p.err == nil && p.panicked == nil
	if !savepoint {
		return ok, false
	}
	if !ok && w.exec(`ROLLBACK TO w`) != nil {
		return false, true
	}
	return ok, w.exec(`RELEASE w`) != nil
}

// begin takes the write lock and, where another process has written since, moves the clock past its newest write.
func (w *writer) begin() error {
	if err := w.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	ctx := context.Background()
	var version, newest int64
	rows, err := w.QueryContext(ctx, `PRAGMA data_version`)
	if err == nil {
		err = one(rows, []any{&version})
	}
	if err == nil && version != w.version {
		if rows, err = w.QueryContext(ctx, `SELECT coalesce(max(at), 0) FROM heap_seq`); err == nil {
			err = one(rows, []any{&newest})
		}
	}
	if err != nil {
		_ = w.exec(`ROLLBACK`)
		return err
	}
	w.version = version
	if newest > w.d.last.Load() {
		w.d.last.Store(newest)
	}
	return nil
}

func (w *writer) run(p *pending) {
	defer func() { p.panicked = recover() }()
	t := &Tx{Now: w.d.tick(), Wall: w.d.Now(), ctx: context.WithValue(context.WithoutCancel(p.ctx), inWrite{}, true), q: w}
	if p.err = p.fn(t); p.err == nil {
		p.err = t.finish()
	}
}
