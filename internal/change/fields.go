package change

import (
	"encoding/json"

	"cairn/internal/rawjson"
	"cairn/internal/words"
)

// StateOf says whether a thing is there or in the trash.
func StateOf(trashed *int64) string {
	if trashed != nil {
		return Trashed
	}
	return Live
}

// Diff gives the recorded fields in which two states of a thing differ.
func Diff(old, now Fields) (before, after Fields) {
	before, after = Fields{}, Fields{}
	for k, v := range now {
		a, _ := json.Marshal(old[k])
		b, _ := json.Marshal(v)
		if string(a) != string(b) {
			before[k], after[k] = old[k], v
		}
	}
	return before, after
}

// Raw gives recorded fields as Kind.Get hands them to undo.
func Raw(f Fields) (map[string]json.RawMessage, error) {
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

// Brief shortens a name for a summary.
func Brief(name string) string {
	if short, was := words.Shorten(name, 80); was {
		name = short + "…"
	}
	return `"` + name + `"`
}
