package db

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Report is what can be told of a database without changing it.
type Report struct {
	Exists   bool
	Schema   int64 // 0 = none yet
	Problem  string
	Newest   int64  // microseconds since 1970: the newest write
	Serving  bool   // SQLite: a server holds the folder
	Describe string // what was looked at, without secrets
}

// Inspect looks at a database without migrating it, for doctor. thorough also checks SQLite's file for damage.
func Inspect(ctx context.Context, c Config, thorough bool) Report {
	if c.URL != "" {
		r := Report{Describe: "PostgreSQL"}
		pool, err := sql.Open("pgx", c.URL)
		if err == nil {
			defer pool.Close()
			err = pool.PingContext(ctx)
		}
		if err != nil {
			r.Problem = redact(err, c.URL).Error()
			return r
		}
		r.Exists = true
		r.look(ctx, pool)
		return r
	}
	path := filepath.Join(c.Dir, FileName)
	r := Report{Describe: path}
	if _, err := os.Stat(path); err != nil {
		if !os.IsNotExist(err) {
			r.Problem = err.Error()
		}
		return r
	}
	r.Exists = true
	if release, err := lockFile(filepath.Join(c.Dir, "serve.lock"), false); err != nil {
		r.Serving = true
	} else {
		release()
	}
	pool, err := sql.Open("sqlite", "file:"+(&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()+"?_pragma=busy_timeout(5000)&_pragma=query_only(1)")
	if err != nil {
		r.Problem = err.Error()
		return r
	}
	defer pool.Close()
	if thorough {
		var verdict string
		if err := pool.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&verdict); err != nil {
			r.Problem = err.Error()
			return r
		} else if verdict != "ok" {
			r.Problem = "the file is damaged: " + verdict
			return r
		}
	}
	r.look(ctx, pool)
	return r
}

func (r *Report) look(ctx context.Context, pool *sql.DB) {
	var schema, newest sql.NullInt64
	err := pool.QueryRowContext(ctx, `SELECT max(version_id) FROM goose_db_version`).Scan(&schema)
	if err != nil && (strings.Contains(err.Error(), "no such table") || strings.Contains(err.Error(), "does not exist")) {
		return
	}
	if err == nil {
		err = pool.QueryRowContext(ctx, `SELECT max(at) FROM heap_seq`).Scan(&newest)
	}
	if err != nil {
		r.Problem = fmt.Sprint(err)
	}
	r.Schema, r.Newest = schema.Int64, newest.Int64
}
