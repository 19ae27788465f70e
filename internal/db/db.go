// Package db opens Cairn's database, SQLite or PostgreSQL. Besides it only audit's rate windows ask which one it is.
//
// Reads go through Query and One. Every write goes through Write, which hands it a Tx: on SQLite one goroutine runs the
// waiting writes in one shared transaction, each behind its own savepoint, and commits them together; on PostgreSQL it is a
// plain transaction. A write is acknowledged only when it is durable, and a failed one leaves nothing.
//
// The house dialect: $1..$n, TEXT ids (UUIDv7), BIGINT microseconds UTC, dates as TEXT YYYY-MM-DD, JSON as TEXT,
// ON CONFLICT .. RETURNING; no arrays, serials, now(), triggers or ILIKE.
package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"cairn/internal/fault"
)

// FileName is the SQLite file in the data folder.
const FileName = "cairn.db"

// Config says what to open: URL (PostgreSQL) where it is set, else Dir/cairn.db (SQLite).
type Config struct {
	Dir   string
	URL   string
	Clock func() time.Time // nil = time.Now
	Log   *slog.Logger     // nil = slog.Default
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	read    *sql.DB
	write   *sql.DB
	dialect string
	clock   func() time.Time
	log     *slog.Logger
	reads   stmts
	queue   chan *pending // SQLite: writes that wait for the writer
	stop    chan struct{}
	stopped chan struct{}
	last    atomic.Int64 // the newest Tx.Now given out here
	commits atomic.Int64
	writes  atomic.Int64
}

const (
	sqliteDialect   = "sqlite"
	postgresDialect = "postgres"
)

// Open opens the database and brings its schema up to date. It refuses a schema newer than this binary.
func Open(ctx context.Context, c Config) (*DB, error) {
	d := &DB{clock: c.Clock, log: c.Log, dialect: sqliteDialect}
	if d.clock == nil {
		d.clock = time.Now
	}
	if d.log == nil {
		d.log = slog.Default()
	}
	var err error
	if c.URL != "" {
		err = d.openPostgres(ctx, c.URL)
	} else {
		err = d.openSQLite(ctx, c.Dir)
	}
	if err != nil {
		d.closePools()
		return nil, err
	}
	return d, nil
}

func (d *DB) openPostgres(ctx context.Context, u string) error {
	d.dialect = postgresDialect
	pool, err := sql.Open("pgx", u)
	if err != nil {
		return fmt.Errorf("the database URL can't be read: %w", redact(err, u))
	}
	pool.SetMaxOpenConns(24)
	pool.SetMaxIdleConns(24)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	d.read, d.write = pool, pool
	if err := pool.PingContext(ctx); err != nil {
		return fault.New(fault.Unavailable, "PostgreSQL does not answer: %s", redact(err, u).Error())
	}
	return migrate(ctx, pool, d.dialect, "")
}

// redact keeps a password that stands in a URL out of an error.
func redact(err error, u string) error {
	if p, perr := url.Parse(u); perr == nil && p.User != nil {
		if pw, ok := p.User.Password(); ok && pw != "" {
			return redacted{err, pw}
		}
	}
	return err
}

func (d *DB) openSQLite(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("the data folder can't be made: %w", err)
	}
	file := "file:" + (&url.URL{Path: filepath.ToSlash(filepath.Join(dir, FileName))}).EscapedPath() +
		"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)&_pragma=cache_size(-2000)"
	var err error
	// temp_store: what a savepoint needs to be taken back stays in memory; else each one opens and writes a file.
	if d.write, err = sql.Open("sqlite", file+"&_txlock=immediate&_pragma=temp_store(2)"); err != nil {
		return err
	}
	d.write.SetMaxOpenConns(1)
	if d.read, err = sql.Open("sqlite", file+"&_pragma=query_only(1)"); err != nil {
		return err
	}
	d.read.SetMaxOpenConns(4)
	d.read.SetMaxIdleConns(4)
	// Several processes may start on one fresh folder: they take turns. The lock is let go before anything else happens.
	unlock, err := lockFile(filepath.Join(dir, "migrate.lock"), true)
	if err != nil {
		return fmt.Errorf("the data folder can't be locked: %w", err)
	}
	err = migrate(ctx, d.write, d.dialect, filepath.Join(dir, FileName))
	unlock()
	if err != nil {
		return err
	}
	_ = os.Chmod(filepath.Join(dir, FileName), 0o600)
	w, err := newWriter(ctx, d)
	if err != nil {
		return err
	}
	d.queue, d.stop, d.stopped = make(chan *pending), make(chan struct{}), make(chan struct{})
	go w.loop()
	return nil
}

// LockServer makes this process the only server on a data folder until release is called. A second one gets an error.
func LockServer(dir string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the data folder can't be made: %w", err)
	}
	release, err = lockFile(filepath.Join(dir, "serve.lock"), false)
	switch {
	case errors.Is(err, errHeld):
		return nil, fmt.Errorf("another cairn serve runs on the data folder %s: stop it, or name another with --data", dir)
	case err != nil:
		return nil, fmt.Errorf("serve.lock in the data folder can't be locked: %w", err)
	}
	return release, nil
}

// Close ends the writer after the write it is at and closes all connections.
func (d *DB) Close() error {
	if d.stop != nil {
		close(d.stop)
		<-d.stopped
	}
	return d.closePools()
}

func (d *DB) closePools() (err error) {
	d.reads.close()
	if d.read != nil {
		err = d.read.Close()
	}
	if d.write != nil && d.write != d.read {
		if e := d.write.Close(); err == nil {
			err = e
		}
	}
	return err
}

// Ping says whether the database answers.
func (d *DB) Ping(ctx context.Context) error {
	var one int
	return d.read.QueryRowContext(ctx, `SELECT 1`).Scan(&one)
}

// Postgres tells whether replicas may share this database. Only audit's rate windows ask.
func (d *DB) Postgres() bool { return d.dialect == postgresDialect }

// Now is the clock, in microseconds since 1970 UTC. Inside a write use Tx.Now.
func (d *DB) Now() int64 { return d.clock().UnixMicro() }

// Counts gives how many writes were committed and in how many commits, since the start.
func (d *DB) Counts() (writes, commits int64) { return d.writes.Load(), d.commits.Load() }

// Query runs an indexed read. On SQLite it keeps the values of ctx but not its end: watching a cancellable ctx costs more
// than such a read does. For reads that can take long use QueryLong. The caller closes the rows.
func (d *DB) Query(ctx context.Context, q string, args ...any) (*sql.Rows, error) {
	if d.dialect == sqliteDialect {
		ctx = context.WithoutCancel(ctx)
	}
	return d.QueryLong(ctx, q, args...)
}

// QueryLong is Query for reads that should end when ctx does.
func (d *DB) QueryLong(ctx context.Context, q string, args ...any) (*sql.Rows, error) {
	if d.dialect == postgresDialect { // pgx keeps prepared statements itself
		rows, err := d.read.QueryContext(ctx, q, args...)
		return rows, busy(err)
	}
	s, err := d.reads.get(ctx, d.read, q)
	if err != nil {
		return nil, busy(err)
	}
	if s == nil {
		rows, err := d.read.QueryContext(ctx, q, args...)
		return rows, busy(err)
	}
	rows, err := s.QueryContext(ctx, args...)
	return rows, busy(err)
}

// One reads one row into dest. Without a row it gives sql.ErrNoRows.
func (d *DB) One(ctx context.Context, q string, args []any, dest ...any) error {
	rows, err := d.Query(ctx, q, args...)
	if err != nil {
		return err
	}
	return one(rows, dest)
}

func one(rows *sql.Rows, dest []any) error {
	defer rows.Close()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return busy(err)
		}
		return sql.ErrNoRows
	}
	if err := rows.Scan(dest...); err != nil {
		return err
	}
	return busy(rows.Close())
}

// NewID makes a UUIDv7: ids sort by when they were made, about.
func NewID() string {
	id, err := uuid.NewV7()
	if err != nil { // the system's random source is gone; nothing sensible can go on
		panic(err)
	}
	return id.String()
}

// IDAt gives the smallest id that can be made at a moment (microseconds since 1970 UTC): ids made before sort before it.
func IDAt(micros int64) string {
	var id uuid.UUID
	ms := uint64(micros) / 1000
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	return id.String()
}

// preparer is a connection or a pool that can prepare.
type preparer interface {
	PrepareContext(ctx context.Context, q string) (*sql.Stmt, error)
}

// stmts keeps prepared statements by their text, up to a cap: preparing costs SQLite as much as a short read.
type stmts struct {
	m  sync.Map
	mu sync.Mutex
	n  int
}

const maxStmts = 512

// get gives the kept statement of a text, or nil where there are too many texts already (lists of ids can make many): then
// the caller runs the text as it is.
func (s *stmts) get(ctx context.Context, p preparer, q string) (*sql.Stmt, error) {
	if st, ok := s.m.Load(q); ok {
		return st.(*sql.Stmt), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st, ok := s.m.Load(q); ok {
		return st.(*sql.Stmt), nil
	}
	if s.n >= maxStmts {
		return nil, nil
	}
	st, err := p.PrepareContext(ctx, q)
	if err != nil {
		return nil, err
	}
	s.m.Store(q, st)
	s.n++
	return st, nil
}

func (s *stmts) close() {
	s.m.Range(func(_, st any) bool { _ = st.(*sql.Stmt).Close(); return true })
}

// busy turns what the database can't do right now into a fault that asks for a retry, or says what to mend.
func busy(err error) error {
	switch {
	case err == nil || fault.Is(err, fault.Unavailable):
		return err
	case isBusy(err):
		return fault.Wrap(fault.Unavailable, err, "the database is busy; try again in a moment").With("reason", "timeout")
	case isFull(err):
		return fault.Wrap(fault.Unavailable, err, "the disk is full: nothing was written; make room on the server").With("reason", "unavailable")
	case isGone(err):
		return fault.Wrap(fault.Unavailable, err, "the database does not answer; whether a write went through is not known, so ask before you repeat it").With("reason", "unavailable")
	}
	return err
}
