// Package dbtest opens a fresh database for a test: SQLite in a folder of the test's, and PostgreSQL in a schema of its own
// in the database that CAIRN_TEST_POSTGRES names. Without that variable a test fails: it never skips.
package dbtest

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"cairn/internal/db"
)

// Postgres makes an empty schema and gives the URL that opens it. The schema is dropped when the test ends.
func Postgres(t testing.TB) string {
	t.Helper()
	base := os.Getenv("CAIRN_TEST_POSTGRES")
	if base == "" {
		t.Fatal("CAIRN_TEST_POSTGRES is not set: run the tests by `make test`, or one by `scripts/with-postgres go test ...`")
	}
	admin, err := sql.Open("pgx", base)
	if err != nil {
		t.Fatal(err)
	}
	schema := "t" + strings.ReplaceAll(db.NewID(), "-", "")
	if _, err := admin.Exec(`CREATE SCHEMA ` + schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = admin.Exec(`DROP SCHEMA ` + schema + ` CASCADE`)
		_ = admin.Close()
	})
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String()
}

// Each runs f as a subtest on SQLite and on PostgreSQL, each time on a fresh database.
func Each(t *testing.T, f func(t *testing.T, d *db.DB)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { f(t, open(t, db.Config{Dir: t.TempDir()})) })
	t.Run("postgres", func(t *testing.T) { f(t, open(t, db.Config{URL: Postgres(t)})) })
}

// Plan gives the lines of what the database says it would do for a statement.
func Plan(t testing.TB, d *db.DB, q string, args ...any) (lines []string) {
	t.Helper()
	begin := "EXPLAIN QUERY PLAN "
	if d.Postgres() {
		begin = "EXPLAIN "
	}
	rows, err := d.Query(context.Background(), begin+q, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, q)
	}
	defer rows.Close()
	columns, _ := rows.Columns()
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprint(*values[len(values)-1].(*any))))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

func open(t *testing.T, c db.Config) *db.DB {
	t.Helper()
	c.Log = slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	d, err := db.Open(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}
