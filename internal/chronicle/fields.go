package chronicle

import (
	"encoding/json"

	"cairn/internal/change"
	"cairn/internal/rawjson"
)

// querier is the part of db.DB and db.Tx that reading one row needs.
type querier func(q string, args []any, dest ...any) error

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func opt(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// stateOf says whether a thing is there or in the trash.
func stateOf(trashed *int64) string {
	if trashed != nil {
		return change.Trashed
	}
	return change.Live
}

// since gives when something came to be so: the old moment if it was so before, now if it wasn't, nil where it isn't.
func since(is bool, was *int64, now int64) *int64 {
	switch {
	case !is:
		return nil
	case was == nil:
		return &now
	}
	return was
}

// diff gives the recorded fields in which two states of a thing differ.
func diff(old, now change.Fields) (before, after change.Fields) {
	before, after = change.Fields{}, change.Fields{}
	for k, v := range now {
		a, _ := json.Marshal(old[k])
		b, _ := json.Marshal(v)
		if string(a) != string(b) {
			before[k], after[k] = old[k], v
		}
	}
	return before, after
}

// raw gives recorded fields as undo reads them.
func raw(f change.Fields) (map[string]json.RawMessage, error) {
	m := make(map[string]json.RawMessage, len(f))
	for k, v := range f {
		b, err := rawjson.Marshal(v)
		if err != nil {
			return nil, err
		}
		m[k] = b
	}
	return m, nil
}

// brief shortens a text for a summary.
func brief(name string) string {
	if r := []rune(name); len(r) > 80 {
		name = string(r[:80]) + "…"
	}
	return `"` + name + `"`
}
