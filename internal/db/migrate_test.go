package db

import (
	"context"
	"database/sql"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// Every version has one file for both databases, or one for each.
func TestEveryMigrationIsForBothDatabases(t *testing.T) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string][]string{}
	for _, f := range files {
		stem, only, _ := strings.Cut(strings.TrimSuffix(filepath.Base(f), ".sql"), ".")
		kinds[stem] = append(kinds[stem], only)
	}
	for stem, k := range kinds {
		if got := strings.Join(k, ","); got != "" && got != "postgres,sqlite" {
			t.Errorf("%s: %q", stem, got)
		}
	}
}

func sqliteFile(t *testing.T) (*sql.DB, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.db")
	pool, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	return pool, path
}

func TestOlderSchemaIsUpgradedAndNewerRefused(t *testing.T) {
	ctx := context.Background()
	pool, path := sqliteFile(t)
	old := fstest.MapFS{"migrations/00001_a.sql": {Data: []byte("-- +goose Up\nCREATE TABLE a (x TEXT);\nINSERT INTO a VALUES ('kept');")}}
	newer := fstest.MapFS{"migrations/00001_a.sql": old["migrations/00001_a.sql"], "migrations/00002_b.sqlite.sql": {Data: []byte("-- +goose Up\nALTER TABLE a ADD COLUMN y TEXT NOT NULL DEFAULT 'new';")},
		"migrations/00002_b.postgres.sql": {Data: []byte("-- +goose Up\nno sqlite;")}}
	for range 2 { // the second time there is nothing to do
		if err := migrateFrom(ctx, pool, sqliteDialect, path, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := migrateFrom(ctx, pool, sqliteDialect, path, newer); err != nil {
		t.Fatal(err)
	}
	var x, y string
	if err := pool.QueryRow(`SELECT x, y FROM a`).Scan(&x, &y); err != nil || x != "kept" || y != "new" {
		t.Errorf("%q %q %v", x, y, err)
	}
	kept, err := sql.Open("sqlite", "file:"+path+".schema-1")
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if err := kept.QueryRow(`SELECT x FROM a`).Scan(&x); err != nil || x != "kept" {
		t.Errorf("the copy from before the upgrade: %q %v", x, err)
	}
	if err := migrateFrom(ctx, pool, sqliteDialect, path, old); err == nil || !strings.Contains(err.Error(), "the data has schema 2 and this cairn knows 1: use a newer cairn") {
		t.Errorf("a newer schema: %v", err)
	}
}

// A migration that fails leaves the schema as it was and names itself.
func TestBrokenMigrationLeavesTheOldSchema(t *testing.T) {
	ctx := context.Background()
	pool, path := sqliteFile(t)
	broken := fstest.MapFS{"migrations/00001_a.sql": {Data: []byte("-- +goose Up\nCREATE TABLE a (x TEXT);\nCREATE TABLE nonsense (;")}}
	if err := migrateFrom(ctx, pool, sqliteDialect, path, broken); err == nil || !strings.Contains(err.Error(), "00001_a.sql") {
		t.Errorf("%v", err)
	}
	if _, err := pool.Exec(`SELECT * FROM a`); err == nil {
		t.Error("half a migration was kept")
	}
}
