package change

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

// maxUndo bounds how many changes one call takes back, since it is one write that others wait for; maxLook, how many it looks
// at; maxLeft, how many of those left alone are listed.
const (
	maxUndo = 1000
	maxLook = 20_000
	maxLeft = 50
)

type undoIn struct {
	ChangeID string `json:"change_id" rule:"max=300"`
	Request  string `json:"request" rule:"max=300"`
	Run      string `json:"run" rule:"max=300"`
	DryRun   bool   `json:"dry_run" jsonschema:"only show what would happen"`
}

type undone struct {
	ChangeID string   `json:"change_id"`
	By       string   `json:"by"` // the change that undid it; undo that one to have this one back
	Kind     string   `json:"kind"`
	Thing    string   `json:"thing"`
	Fields   []string `json:"fields"`
}

type left struct {
	ChangeID string   `json:"change_id"`
	Kind     string   `json:"kind"`
	Thing    string   `json:"thing"`
	Fields   []string `json:"fields,omitempty"`
	Why      string   `json:"why"`
}

type undoOut struct {
	Undone    []undone `json:"undone"`
	Left      []left   `json:"left"`       // the first of them
	LeftCount int      `json:"left_count"` // all of them
	ChangeIDs []string `json:"change_ids"`
	Request   string   `json:"request"`
	Run       string   `json:"run"`
	DryRun    bool     `json:"dry_run"`
	More      bool     `json:"more"` // there were more than one call takes back: call again
}

// errDry ends a dry run: nothing of the write is kept.
var errDry = errors.New("dry run")

func (s *Service) undo(ctx context.Context, in undoIn) (undoOut, error) {
	given := 0
	for _, v := range []string{in.ChangeID, in.Request, in.Run} {
		if v != "" {
			given++
		}
	}
	if given != 1 {
		return undoOut{}, fault.Bad("change_id", "or request or run must be given, and only one of them")
	}
	var out undoOut
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		out = undoOut{Undone: []undone{}, Left: []left{}, ChangeIDs: []string{}, Request: who.From(ctx).Request, Run: db.NewID(), DryRun: in.DryRun}
		rows, err := s.pick(ctx, tx, in)
		if err != nil {
			return err
		}
		for i, r := range rows {
			if out.More = len(out.Undone) == maxUndo; out.More {
				break
			}
			if err := s.undoOne(ctx, tx, r, &out); err != nil {
				return err
			}
			op.Progress(ctx, i+1, len(rows), fmt.Sprintf("%d of %d changes", i+1, len(rows)))
		}
		if in.DryRun {
			out.ChangeIDs, out.Run = []string{}, ""
			for i := range out.Undone {
				out.Undone[i].By = ""
			}
			return errDry
		}
		return nil
	})
	if errors.Is(err, errDry) {
		err = nil
	}
	return out, err
}

// pick gives the changes meant, newest first, that the caller may see. Those undone already are left out of a request or
// run, unless that would leave nothing to say.
func (s *Service) pick(ctx context.Context, tx *db.Tx, in undoIn) ([]row, error) {
	column, v := "id", in.ChangeID
	switch {
	case in.Request != "":
		column, v = "request", in.Request
	case in.Run != "":
		column, v = "run", in.Run
	}
	c := who.From(ctx)
	args := db.Args{v, maxLook}
	rows, err := tx.Query(`SELECT `+columns+` FROM change c WHERE `+column+` = $1 AND (id = $1 OR NOT EXISTS (`+inForce+`)) AND `+s.visible(c, &args)+`
		ORDER BY at DESC, seq DESC, id DESC LIMIT $2`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []row
	for rows.Next() {
		var r row
		if err := rows.Scan(r.dest()...); err != nil {
			return nil, err
		}
		if mine(c, r) {
			found = append(found, r)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fault.New(fault.NotFound, "there is no change with %s %q to undo: there is none, all are undone already, or they are not yours to see", strings.Replace(column, "id", "change_id", 1), v)
	}
	return found, nil
}

// mine tells whether a change is the caller's to see: in a heap granted, or a person's own change of a thing without one.
func mine(c *who.Caller, r row) bool {
	if r.Heap == "" {
		return c.Person && r.Actor == c.Actor
	}
	_, ok := c.ByID(r.Heap)
	return ok
}

// inForce finds an undoing of c that has not been undone itself. An undoing of an undoing of an undoing is not followed
// further: the fields decide then.
const inForce = `SELECT 1 FROM change u WHERE u.undoes = c.id AND NOT EXISTS (SELECT 1 FROM change v WHERE v.undoes = u.id)`

func (s *Service) undoOne(ctx context.Context, tx *db.Tx, r row, out *undoOut) error {
	leave := func(fields []string, why string) {
		if out.LeftCount++; out.LeftCount > maxLeft {
			return
		}
		out.Left = append(out.Left, left{ChangeID: r.ID, Kind: r.Kind, Thing: r.Thing, Fields: fields, Why: why})
	}
	c := who.From(ctx)
	if h, _ := c.ByID(r.Heap); r.Heap != "" && !h.Writable() {
		leave(nil, "you may only read this heap")
		return nil
	}
	k := s.kinds[r.Kind]
	if k.PersonOnly && !c.Person {
		leave(nil, "only a person may take this back")
		return nil
	}
	if k.Owned && !c.Person {
		if why, err := ownersOwn(tx, c, r); why != "" || err != nil {
			leave(nil, why)
			return err
		}
	}
	heap, now, err := k.Get(tx, r.Thing)
	if db.IsNone(err) {
		leave(nil, "the thing was deleted for good and can't come back")
		return nil
	}
	if err != nil {
		return err
	}
	if h, _ := c.ByID(heap); heap != "" && !h.Writable() {
		leave(nil, "the thing lies in a heap now that is not yours to write")
		return nil
	}
	set, changed, err := reversal(r, now, k.merging(tx, r.Thing))
	if err != nil {
		return err
	}
	if len(changed) > 0 {
		leave(changed, s.whyChanged(tx, r))
	}
	if len(set) == 0 {
		return nil
	}
	if err := tx.Try(func() error { return k.Set(ctx, tx, r.Thing, set) }); err != nil {
		if f := fault.From(err); f.Kind != fault.Internal {
			leave(nil, f.Message)
			return nil
		}
		return err
	}
	e := Entry{Heap: heap, Kind: r.Kind, Thing: r.Thing, Effect: effect(set), Before: Fields{}, After: Fields{}, Summary: "Undid: " + r.Summary, undoes: r.ID, run: out.Run, id: db.NewID()}
	for f, v := range set {
		e.Before[f], e.After[f] = now[f], v
	}
	Record(ctx, tx, e)
	out.Undone = append(out.Undone, undone{ChangeID: r.ID, By: e.id, Kind: r.Kind, Thing: r.Thing, Fields: slices.Sorted(maps.Keys(set))})
	out.ChangeIDs = append(out.ChangeIDs, e.id)
	return nil
}

// ownersOwn says why an agent may not take back a change of an Owned kind, or "".
func ownersOwn(tx *db.Tx, c *who.Caller, r row) (string, error) {
	if c.Propose && r.Actor != c.Actor {
		return "what you write waits for the owner, so you may take back your own changes only", nil
	}
	if r.OnBehalf == "" {
		return "a person did it, so only a person may take it back", nil
	}
	var n int
	err := tx.One(`SELECT count(*) FROM change WHERE thing = $1 AND at > $2 AND on_behalf = ''`, []any{r.Thing, r.At}, &n)
	if err == nil && n > 0 {
		return "a person has changed it since, so only a person may take it back", nil
	}
	return "", err
}

// reversal gives the fields to set back, and those that hold something else by now than the change left there. A creation
// is taken back by putting the thing into the trash. merge may still have something to set for such a field.
func reversal(r row, now map[string]json.RawMessage, merge func(field string, before, after, now json.RawMessage) (json.RawMessage, error)) (set map[string]json.RawMessage, changed []string, err error) {
	var before, after map[string]json.RawMessage
	if err := json.Unmarshal([]byte(r.Before), &before); err != nil {
		return nil, nil, fmt.Errorf("change %s: before: %w", r.ID, err)
	}
	if err := json.Unmarshal([]byte(r.After), &after); err != nil {
		return nil, nil, fmt.Errorf("change %s: after: %w", r.ID, err)
	}
	if r.Effect == Create {
		before = map[string]json.RawMessage{State: json.RawMessage(`"` + Trashed + `"`)}
		after = map[string]json.RawMessage{State: json.RawMessage(`"` + Live + `"`)}
	}
	set = map[string]json.RawMessage{}
	for f, v := range after {
		old, ok := before[f]
		if !ok {
			old = json.RawMessage("null")
		}
		is, ok := now[f]
		if !ok { // such as a property that there is no more
			is = json.RawMessage("null")
		}
		if same(is, v) {
			set[f] = old
			continue
		}
		merged, err := merge(f, old, v, is)
		if err != nil {
			return nil, nil, err
		}
		if merged == nil || same(merged, is) {
			changed = append(changed, f)
		} else {
			set[f] = merged
		}
	}
	slices.Sort(changed)
	return set, changed, nil
}

// merging gives the kind's Merge for one thing; what it refuses as a Conflict can't be merged.
func (k Kind) merging(tx *db.Tx, id string) func(field string, before, after, now json.RawMessage) (json.RawMessage, error) {
	return func(field string, before, after, now json.RawMessage) (json.RawMessage, error) {
		if k.Merge == nil {
			return nil, nil
		}
		v, err := k.Merge(tx, id, field, before, after, now)
		if fault.Is(err, fault.Conflict) {
			return nil, nil
		}
		return v, err
	}
}

func same(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, a) != nil || json.Compact(&y, b) != nil {
		return bytes.Equal(a, b)
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}

func effect(set map[string]json.RawMessage) string {
	switch string(set[State]) {
	case `"` + Trashed + `"`:
		return Delete
	case `"` + Live + `"`:
		return Restore
	}
	return Update
}

func (s *Service) whyChanged(tx *db.Tx, r row) string {
	var by, at = "", int64(0)
	if tx.One(`SELECT u.id, u.at FROM change u WHERE u.undoes = $1 AND NOT EXISTS (SELECT 1 FROM change v WHERE v.undoes = u.id) LIMIT 1`, []any{r.ID}, &by, &at) == nil {
		return "undone already, by change " + by
	}
	if tx.One(`SELECT actor, at FROM change WHERE thing = $1 AND at > $2 ORDER BY at DESC LIMIT 1`, []any{r.Thing, r.At}, &by, &at) == nil {
		return "changed since; the last change was by " + by + " at " + op.Stamp(at)
	}
	return "holds something else now"
}
