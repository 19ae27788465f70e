package memory

import (
	"log/slog"
	"strings"
	"testing"

	"cairn/internal/db"
)

// What a capture and a pack look up is looked up along an index made for it, not by reading all that stands: that would make
// each of them slower by every object that is remembered.
func TestContextIsLookedUpAlongItsIndexes(t *testing.T) {
	d, err := db.Open(t.Context(), db.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for where, want := range map[string]string{sameSubject: "INDEX context_subject (heap=? AND subject_folded=? AND kind=?)", correctionsIn(`($1)`): "COVERING INDEX context_guards (heap=?)",
		`o.id IN ($1, $2)`: "(id=?)"} {
		args := []any{"a", "b", "c", 1}[:strings.Count(where, "$")]
		if strings.HasPrefix(where, "o.heap IN") {
			args = args[:1]
		}
		rows, err := d.Query(t.Context(), `EXPLAIN QUERY PLAN SELECT `+objectColumns+` FROM context o WHERE `+where, args...)
		if err != nil {
			t.Fatal(err)
		}
		var plan strings.Builder
		for rows.Next() {
			var id, parent, unused int
			var step string
			if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
				t.Fatal(err)
			}
			plan.WriteString(step + "\n")
		}
		_ = rows.Close()
		if p := plan.String(); !strings.Contains(p, want) || strings.Contains(p, "context_heap (heap=? AND status=?)") || where == sameSubject && strings.Contains(p, "TEMP B-TREE") {
			t.Errorf("%s:\n%s", where, p)
		}
	}
}
