package block

import (
	"context"
	"encoding/json"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"cairn/internal/block/filter"
	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/rawjson"
)

// Limits of properties.
const (
	maxProperties = 100
	maxText       = 2000 // characters of a text
	maxURL        = 2048
)

// Property is a typed value of a block: text, number, date (YYYY-MM-DD), bool, select (one of few words), url, or reference (the id
// of a block of the same heap).
type Property struct {
	Key   string          `json:"key"`
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// properties reads those of a block, by key.
func properties(rows rowsQuery, id string) ([]Property, error) {
	list := []Property{}
	found, err := rows(`SELECT key, type, value FROM property WHERE block = $1`, id)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		var p Property
		var value string
		if err := found.Scan(&p.Key, &p.Type, &value); err != nil {
			return nil, err
		}
		p.Value = json.RawMessage(value)
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Property) int { return strings.Compare(a.Key, b.Key) }) // not by the database's order of letters
	return list, found.Err()
}

// stored is a property in the change record.
type stored struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

func propertyField(key string) string { return "property " + key }

// property reads one; nil if there is none.
func property(one querier, id, key string) (*stored, error) {
	var p stored
	var value string
	err := one(`SELECT type, value FROM property WHERE block = $1 AND key = $2`, []any{id, key}, &p.Type, &value)
	if db.IsNone(err) {
		return nil, nil
	}
	p.Value = json.RawMessage(value)
	return &p, err
}

// keep stores a property; nil takes it away.
func keep(tx *db.Tx, r *row, key string, p *stored) error {
	if p == nil {
		_, err := tx.Exec(`DELETE FROM property WHERE block = $1 AND key = $2`, r.ID, key)
		return err
	}
	head, folded := filter.Head(p.Value)
	_, err := tx.Exec(`INSERT INTO property (block, heap, key, type, value, head, folded) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (block, key) DO UPDATE SET type = excluded.type, value = excluded.value, head = excluded.head, folded = excluded.folded`,
		r.ID, r.Heap, key, p.Type, string(p.Value), head, folded)
	return err
}

type setIn struct {
	BlockID string          `json:"block_id" rule:"required,uuid,max=64"`
	Key     string          `json:"key" rule:"required,min=1,max=100"`
	Value   json.RawMessage `json:"value" jsonschema:"string, number or true/false" rule:"required"`
	Type    string          `json:"type" jsonschema:"default: the type it has, else by the value" rule:"enum=text|number|date|bool|select|url|reference"`
}

func (s *Service) setProperty(ctx context.Context, in setIn) (One, error) {
	key := strings.TrimSpace(in.Key)
	value := rawjson.Trim(in.Value)
	r, changed, err := s.edit(ctx, in.BlockID, change.Update, "Set "+change.Brief(key)+" of", false, false, func(tx *db.Tx, r *row) (change.Fields, change.Fields, error) {
		old, err := property(tx.One, r.ID, key)
		if err != nil {
			return nil, nil, err
		}
		p := &stored{Type: in.Type}
		switch {
		case p.Type != "":
		case old != nil:
			p.Type = old.Type
		default:
			p.Type = typeOf(value)
		}
		if p.Value, err = typed(tx, r, p.Type, value); err != nil {
			return nil, nil, err
		}
		if old != nil && old.Type == p.Type && string(old.Value) == string(p.Value) {
			return nil, nil, nil
		}
		if old == nil {
			var n int
			if err := tx.One(`SELECT count(*) FROM property WHERE block = $1`, []any{r.ID}, &n); err != nil {
				return nil, nil, err
			}
			if n >= maxProperties {
				return nil, nil, fault.New(fault.Conflict, "the block has %d properties already, the most there may be: remove_property first", n)
			}
		}
		return change.Fields{propertyField(key): old}, change.Fields{propertyField(key): p}, keep(tx, r, key, p)
	})
	return s.outcome(ctx, r, changed, err)
}

type removeIn struct {
	BlockID string `json:"block_id" rule:"required,uuid,max=64"`
	Key     string `json:"key" rule:"required,min=1,max=100"`
}

func (s *Service) removeProperty(ctx context.Context, in removeIn) (One, error) {
	key := strings.TrimSpace(in.Key)
	r, changed, err := s.edit(ctx, in.BlockID, change.Update, "Removed "+change.Brief(key)+" of", false, false, func(tx *db.Tx, r *row) (change.Fields, change.Fields, error) {
		old, err := property(tx.One, r.ID, key)
		if err != nil || old == nil {
			return nil, nil, err
		}
		return change.Fields{propertyField(key): old}, change.Fields{propertyField(key): nil}, keep(tx, r, key, nil)
	})
	return s.outcome(ctx, r, changed, err)
}

func (s *Service) outcome(ctx context.Context, r *row, changed bool, err error) (One, error) {
	if err != nil {
		return One{}, err
	}
	if changed {
		return s.answer(ctx, r, "updated")
	}
	return s.answer(ctx, r, "existing")
}

// typeOf tells the type that a value has where none is named.
func typeOf(value json.RawMessage) string {
	switch {
	case len(value) == 0 || value[0] == '"':
		return "text"
	case value[0] == 't' || value[0] == 'f':
		return "bool"
	}
	return "number"
}

// typed holds a value to its type and gives it in one form.
func typed(tx *db.Tx, r *row, kind string, value json.RawMessage) (json.RawMessage, error) {
	wrong := func(want string) (json.RawMessage, error) {
		shown := string(value)
		if len(shown) > 60 {
			shown = strings.ToValidUTF8(shown[:60], "") + "…"
		}
		return nil, fault.Bad("value", "is %s, must be %s for a property of type %s", shown, want, kind)
	}
	switch kind {
	case "bool":
		if v := string(value); v != "true" && v != "false" {
			return wrong("true or false")
		}
		return value, nil
	case "number":
		n, err := strconv.ParseFloat(string(value), 64)
		if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
			return wrong("a number")
		}
		return json.Marshal(n)
	}
	if len(value) == 0 || value[0] != '"' {
		return wrong("a string")
	}
	text := rawjson.String(value)
	switch n := utf8.RuneCountInString(text); {
	case strings.IndexByte(text, 0) >= 0:
		return nil, fault.Bad("value", "has a NUL character, which can't be stored")
	case n > maxText && (kind == "text" || kind == "select"):
		return nil, fault.Bad("value", "has %d characters, at most %d are allowed", n, maxText)
	}
	switch kind {
	case "date":
		if _, err := time.Parse(time.DateOnly, text); err != nil {
			return wrong("a date such as 2026-08-31")
		}
	case "url":
		if u, err := url.Parse(text); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || utf8.RuneCountInString(text) > maxURL {
			return wrong("an address that begins with http:// or https://, of at most " + strconv.Itoa(maxURL) + " characters")
		}
	case "reference":
		text = strings.ToLower(text)
		var heap string
		if err := tx.One(`SELECT heap FROM block WHERE id = $1`, []any{text}, &heap); db.IsNone(err) || err == nil && heap != r.Heap {
			return wrong("the id of a block in the same heap")
		} else if err != nil {
			return nil, err
		}
	}
	return rawjson.Marshal(text)
}
