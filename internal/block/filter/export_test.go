package filter

import (
	"context"
	"testing"

	"cairn/internal/db"
)

// Bounds makes the bounds of a page's work others until the test ends.
func Bounds(t testing.TB, of, pass int) {
	was, passed := most, window
	most, window = of, pass
	t.Cleanup(func() { most, window = was, passed })
}

// Statement is one that Find runs.
type Statement struct {
	Text string
	Args db.Args
}

// Statements gives what Find runs for a query from a place on.
func Statements(t testing.TB, d *db.DB, q Query, after []string) []Statement {
	t.Helper()
	if q.Sort.By == "" {
		q.Sort = Sort{By: "updated", Descending: true}
	}
	s, err := q.fewest(context.Background(), d)
	if err != nil {
		t.Fatal(err)
	}
	var text string
	var args db.Args
	if s != nil && s.n <= most {
		text, args, err = q.sorting(s, after, 50)
	} else {
		var until []string
		if until, err = q.edge(context.Background(), d, after); err == nil {
			text, args, err = q.walking(after, until, 51)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return []Statement{{text, args}}
}
