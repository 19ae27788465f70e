package db

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// dialectFS shows goose the migrations of one dialect under plain names: NNNNN_name.sql is for both databases,
// NNNNN_name.sqlite.sql and NNNNN_name.postgres.sql are a pair.
type dialectFS struct {
	src     fs.FS
	dialect string
}

// Open opens a migration by its plain name, or the folder.
func (f dialectFS) Open(name string) (fs.File, error) {
	if name == "." {
		return f.src.Open("migrations")
	}
	special := "migrations/" + strings.TrimSuffix(name, ".sql") + "." + f.dialect + ".sql"
	if file, err := f.src.Open(special); err == nil {
		return file, nil
	}
	return f.src.Open("migrations/" + name)
}

// Glob lists the plain names; goose asks for *.sql.
func (f dialectFS) Glob(pattern string) ([]string, error) {
	files, err := fs.Glob(f.src, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, file := range files {
		stem, only, special := strings.Cut(strings.TrimSuffix(path.Base(file), ".sql"), ".")
		if special && only != f.dialect {
			continue
		}
		if ok, _ := path.Match(pattern, stem+".sql"); ok {
			names = append(names, stem+".sql")
		}
	}
	slices.Sort(names)
	return names, nil
}

// migrate brings pool to the newest schema and refuses one that is newer than this binary.
// keep, if not "", is the SQLite file, of which a copy is left beside it before an older schema is touched.
func migrate(ctx context.Context, pool *sql.DB, dialect, keep string) error {
	return migrateFrom(ctx, pool, dialect, keep, migrations)
}

// keepCopy leaves a copy of a SQLite database at path, in the place of one that an earlier try left: an older cairn may have
// written since.
func keepCopy(ctx context.Context, pool *sql.DB, path string) error {
	part := path + ".part"
	if err := os.Remove(part); err != nil && !os.IsNotExist(err) {
		return err
	}
	if _, err := pool.ExecContext(ctx, `VACUUM INTO $1`, part); err != nil {
		return err
	}
	if err := os.Chmod(part, 0o600); err != nil {
		return err
	}
	return os.Rename(part, path)
}

func migrateFrom(ctx context.Context, pool *sql.DB, dialect, keep string, src fs.FS) error {
	kind, opts := goose.DialectSQLite3, []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
	if dialect == postgresDialect {
		l, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 60))
		if err != nil {
			return err
		}
		kind, opts = goose.DialectPostgres, append(opts, goose.WithSessionLocker(l))
	}
	p, err := goose.NewProvider(kind, pool, dialectFS{src, dialect}, opts...)
	if err != nil {
		return err
	}
	have, want, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("the schema's version can't be read: %w", err)
	}
	if have > want {
		return fmt.Errorf("the data has schema %d and this cairn knows %d: use a newer cairn", have, want)
	}
	if have > 0 && have < want && keep != "" {
		if err := keepCopy(ctx, pool, fmt.Sprintf("%s.schema-%d", keep, have)); err != nil {
			return fmt.Errorf("before an upgrade the data is copied, and that failed: %w", err)
		}
	}
	_, err = p.Up(ctx)
	var partial *goose.PartialError
	if errors.As(err, &partial) {
		return fmt.Errorf("migration %s: %w", partial.Failed.Source.Path, partial.Err)
	}
	return err
}

// SchemaVersion gives the schema this binary writes.
func SchemaVersion() int64 {
	names, _ := dialectFS{migrations, sqliteDialect}.Glob("*.sql")
	var v int64
	for _, n := range names {
		if i, err := goose.NumericComponent(n); err == nil {
			v = max(v, i)
		}
	}
	return v
}
