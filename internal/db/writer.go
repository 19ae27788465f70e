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
	fill:
		for len(batch) < maxBatch {
			select {
			case p := <-w.d.queue:
				batch = append(batch, p)
			default:
				break fill
			}
		}
		if !w.together(batch) { // the shared transaction was lost: each write on its own
			for _, p := range batch {
				p.err, p.panicked = nil, nil
				w.together([]*pending{p})
			}
		}
		for _, p := range batch {
			close(p.done)
		}
	}
}

// together runs a batch in one transaction and sets each write's fate. False means that nothing of it was kept and that
// the writes are worth trying one by one.
func (w *writer) together(batch []*pending) bool {
	alone := len(batch) == 1 // a batch of one needs no savepoint
	if err := w.begin(); err != nil {
		for _, p := range batch {
			p.err = err
		}
		return true
	}
	open := true
	defer func() {
		if open {
			_ = w.exec(`ROLLBACK`) // fails where SQLite has rolled back by itself, which is as good
		}
	}()
	good := int64(0)
	for _, p := range batch {
		if p.err = p.ctx.Err(); p.err != nil {
			continue
		}
		if !alone {
			if err := w.exec(`SAVEPOINT w`); err != nil {
				return false
			}
		}
		w.run(p)
		failed := p.err != nil || p.panicked != nil
		if alone {
			if failed {
				return true
			}
			good++
			continue
		}
		if failed {
			if err := w.exec(`ROLLBACK TO w`); err != nil {
				return false
			}
		} else {
			good++
		}
		if err := w.exec(`RELEASE w`); err != nil {
			return false
		}
	}
	if good == 0 {
		return true
	}
	if err := w.exec(`COMMIT`); err != nil {
		if alone {
			batch[0].err = fmt.Errorf("commit: %w", err)
		}
		return alone
	}
	open = false
	w.d.writes.Add(good)
	w.d.commits.Add(1)
	return true
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
	t := &Tx{Now: w.d.tick(), ctx: context.WithValue(context.WithoutCancel(p.ctx), inWrite{}, true), q: w}
	if p.err = p.fn(t); p.err == nil {
		p.err = t.finish()
	}
}
