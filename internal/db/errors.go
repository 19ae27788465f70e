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

// codes gives the code of an error of SQLite's, or the SQLSTATE of one of PostgreSQL's.
func codes(err error) (lite int, state string) {
	var s *sqlite.Error
	if errors.As(err, &s) {
		return s.Code(), ""
	}
	var p *pgconn.PgError
	if errors.As(err, &p) {
		return 0, p.Code
	}
	return 0, ""
}

// IsUnique tells whether err is a unique constraint that was broken.
func IsUnique(err error) bool {
	lite, state := codes(err)
	return lite == sqlite3.SQLITE_CONSTRAINT_UNIQUE || lite == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY || state == "23505"
}

// isBusy tells whether a lock could not be had in time.
func isBusy(err error) bool {
	lite, state := codes(err)
	return lite&0xff == sqlite3.SQLITE_BUSY || state == "55P03" || isSerialization(err)
}

// isFull tells whether there is no room left.
func isFull(err error) bool {
	lite, state := codes(err)
	return lite&0xff == sqlite3.SQLITE_FULL || state == "53100"
}

// isGone tells whether the database was lost on the way: its connections broken, the server stopping, the disk failing.
func isGone(err error) bool {
	lite, state := codes(err)
	if lite != 0 || state != "" {
		return lite&0xff == sqlite3.SQLITE_IOERR || strings.HasPrefix(state, "08") || strings.HasPrefix(state, "57P0") || state == "53300"
	}
	var n net.Error
	var c *pgconn.ConnectError
	return errors.As(err, &n) || errors.As(err, &c) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone)
}

// isSerialization tells whether PostgreSQL asks to run the transaction again.
func isSerialization(err error) bool {
	_, state := codes(err)
	return state == "40001" || state == "40P01"
}

// errHeld says that another process holds a lock that was not waited for.
var errHeld = errors.New("another process holds the lock")

type redacted struct {
	err    error
	secret string
}

func (r redacted) Error() string { return strings.ReplaceAll(r.err.Error(), r.secret, "[hidden]") }
