package db

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// IsUnique tells whether err is a unique constraint that was broken.
func IsUnique(err error) bool {
	var s *sqlite.Error
	if errors.As(err, &s) {
		return s.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || s.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	var p *pgconn.PgError
	return errors.As(err, &p) && p.Code == "23505"
}

// isBusy tells whether a lock could not be had in time.
func isBusy(err error) bool {
	var s *sqlite.Error
	if errors.As(err, &s) {
		return s.Code()&0xff == sqlite3.SQLITE_BUSY
	}
	var p *pgconn.PgError
	return errors.As(err, &p) && (p.Code == "55P03" || p.Code == "40P01" || p.Code == "40001")
}

// isFull tells whether there is no room left.
func isFull(err error) bool {
	var s *sqlite.Error
	if errors.As(err, &s) {
		return s.Code()&0xff == sqlite3.SQLITE_FULL
	}
	var p *pgconn.PgError
	return errors.As(err, &p) && p.Code == "53100"
}

// isGone tells whether the database was lost on the way: its connections broken, the server stopping, the disk failing.
func isGone(err error) bool {
	var s *sqlite.Error
	if errors.As(err, &s) {
		return s.Code()&0xff == sqlite3.SQLITE_IOERR
	}
	var p *pgconn.PgError
	if errors.As(err, &p) {
		return strings.HasPrefix(p.Code, "08") || strings.HasPrefix(p.Code, "57P0") || p.Code == "53300"
	}
	var n net.Error
	var c *pgconn.ConnectError
	return errors.As(err, &n) || errors.As(err, &c) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone)
}

// isSerialization tells whether PostgreSQL asks to run the transaction again.
func isSerialization(err error) bool {
	var p *pgconn.PgError
	return errors.As(err, &p) && (p.Code == "40001" || p.Code == "40P01")
}

// errHeld says that another process holds a lock that was not waited for.
var errHeld = errors.New("another process holds the lock")

type redacted struct {
	err    error
	secret string
}

func (r redacted) Error() string { return strings.ReplaceAll(r.err.Error(), r.secret, "[hidden]") }
