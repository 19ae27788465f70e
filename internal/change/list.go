package change

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/db"
	"cairn/internal/op"
	"cairn/internal/rawjson"
	"cairn/internal/who"
)

// row is a change as stored.
type row struct {
	ID, Heap, Kind, Thing, Op, Effect, Actor, OnBehalf, Via, Run, Request, Before, After, Summary string

	Undoes *string
	At     int64
}

const columns = `id, heap, kind, thing, op, effect, actor, on_behalf, via, run, request, before, after, summary, undoes, at`

func (r *row) dest() []any {
	return []any{&r.ID, &r.Heap, &r.Kind, &r.Thing, &r.Op, &r.Effect, &r.Actor, &r.OnBehalf, &r.Via, &r.Run, &r.Request, &r.Before, &r.After, &r.Summary, &r.Undoes, &r.At}
}

type listIn struct {
	ChangeID string `json:"change_id" jsonschema:"one change, with its values whole" rule:"max=300"`
	Thing    string `json:"thing" jsonschema:"id of the thing changed" rule:"max=300"`
	Run      string `json:"run" rule:"max=300"`
	Request  string `json:"request" rule:"max=300"`
	Since    string `json:"since" jsonschema:"time or date, inclusive" rule:"max=40"`
	Heap     string `json:"heap" jsonschema:"id or name" rule:"max=300"`
	Limit    int    `json:"limit" rule:"min=1,max=200"`
	Cursor   string `json:"cursor" rule:"max=300"`
}

// Change is one change as callers see it. Before and after hold the fields that changed.
type Change struct {
	ID        string          `json:"id"`
	Run       string          `json:"run"`
	Request   string          `json:"request"`
	Heap      string          `json:"heap"`
	Kind      string          `json:"kind"`
	Thing     string          `json:"thing"`
	Op        string          `json:"op"`
	Effect    string          `json:"effect"`
	Actor     string          `json:"actor"`
	ActorName string          `json:"actor_name"`
	OnBehalf  *string         `json:"on_behalf"`
	Via       string          `json:"via"`
	At        string          `json:"at"`
	Before    json.RawMessage `json:"before"`
	After     json.RawMessage `json:"after"`
	Cut       []string        `json:"cut,omitempty"` // fields whose values are shown shortened
	Undoes    *string         `json:"undoes"`
	Summary   string          `json:"summary"`
}

type listOut struct {
	Count      int      `json:"count"`
	Changes    []Change `json:"changes"`
	NextCursor *string  `json:"next_cursor,omitempty"`
}

func (s *Service) list(ctx context.Context, in listIn) (listOut, error) {
	out := listOut{Changes: []Change{}}
	c := who.From(ctx)
	heaps, err := c.Readable(in.Heap)
	if err != nil || len(heaps) == 0 {
		return out, err
	}
	key, err := op.ReadCursor(in.Cursor, 2)
	if err != nil {
		return out, err
	}
	if key != nil {
		if _, err := strconv.ParseInt(key[0], 10, 64); err != nil {
			return out, op.BadCursor()
		}
	}
	var since int64
	if in.Since != "" {
		if since, err = op.Since("since", in.Since, c.Zone); err != nil {
			return out, err
		}
	}
	page := op.NewPage(in.Limit)
	q, args := s.listSQL(c, in, heaps, since, key, page.Limit+1)
	rows, err := s.db.Query(ctx, q, args...)
	if err != nil {
		return out, err
	}
	defer rows.Close()
	for rows.Next() {
		var r row
		if err := rows.Scan(r.dest()...); err != nil {
			return out, err
		}
		ch := s.shown(c, r)
		if in.ChangeID == "" {
			ch.shorten()
		}
		if !page.Fits(len(out.Changes), op.Weight(string(ch.Before))+op.Weight(string(ch.After))+op.Weight(ch.Summary)+500) {
			last := out.Changes[len(out.Changes)-1]
			out.NextCursor = op.Cursor(key[0], last.ID)
			break
		}
		key = []string{strconv.FormatInt(r.At, 10), r.ID}
		out.Changes = append(out.Changes, ch)
	}
	if err := rows.Err(); err != nil {
		return out, err
	}
	_ = rows.Close()
	out.Count = len(out.Changes)
	return out, s.nameActors(ctx, out.Changes)
}

func (s *Service) shown(c *who.Caller, r row) Change {
	ch := Change{ID: r.ID, Run: r.Run, Request: r.Request, Heap: r.Heap, Kind: r.Kind, Thing: r.Thing, Op: r.Op, Effect: r.Effect, Actor: r.Actor,
		Via: r.Via, At: op.Stamp(r.At), Before: json.RawMessage(r.Before), After: json.RawMessage(r.After), Undoes: r.Undoes, Summary: r.Summary}
	if r.OnBehalf != "" {
		ch.OnBehalf = &r.OnBehalf
	}
	if personal := s.kinds[r.Kind].Personal; len(personal) > 0 && !c.Person {
		ch.Before, ch.After = without(ch.Before, personal), without(ch.After, personal)
	}
	return ch
}

// without leaves fields out of recorded values.
func without(values json.RawMessage, names []string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(values, &fields) != nil {
		return json.RawMessage("{}")
	}
	for _, n := range names {
		delete(fields, n)
	}
	b, err := rawjson.Marshal(fields)
	if err != nil {
		return json.RawMessage("{}")
	}
	return b
}

// visible words which changes the caller's areas and its being a person or an agent let it see.
func (s *Service) visible(c *who.Caller, args *db.Args) string {
	var kinds, hidden []string
	for _, name := range slices.Sorted(maps.Keys(s.kinds)) {
		k := s.kinds[name]
		if !c.MayArea(k.Area) {
			continue
		}
		kinds = append(kinds, name)
		if k.Hide != "" && !c.Person {
			hidden = append(hidden, name)
		}
	}
	cond := "kind IN " + args.List(kinds)
	for _, name := range hidden {
		cond += " AND NOT (kind = " + args.Add(name) + " AND " + s.kinds[name].Hide + ")"
	}
	return cond
}

// valueCut is how many characters of a long value a list shows.
const valueCut = 300

// shorten cuts long texts among the values and names their fields.
func (ch *Change) shorten() {
	for _, side := range []*json.RawMessage{&ch.Before, &ch.After} {
		if len(*side) <= valueCut {
			continue
		}
		var fields map[string]json.RawMessage
		if json.Unmarshal(*side, &fields) != nil {
			continue
		}
		cut := false
		for f, v := range fields {
			var s string
			if len(v) <= valueCut || json.Unmarshal(v, &s) != nil {
				continue
			}
			if r := []rune(s); len(r) > valueCut {
				fields[f], _ = rawjson.Marshal(string(r[:valueCut]) + "…")
				cut = true
				if !slices.Contains(ch.Cut, f) {
					ch.Cut = append(ch.Cut, f)
				}
			}
		}
		if cut {
			*side, _ = rawjson.Marshal(fields)
		}
	}
	slices.Sort(ch.Cut)
}

// listSQL reads a page heap by heap, each in the order of its index, and merges: one IN over several heaps would sort them
// all.
func (s *Service) listSQL(c *who.Caller, in listIn, heaps []who.Heap, since int64, key []string, limit int) (string, []any) {
	args := db.Args{}
	var conds []string
	add := func(column, v string) {
		if v != "" {
			conds = append(conds, column+" = "+args.Add(v))
		}
	}
	add("id", in.ChangeID)
	add("thing", in.Thing)
	add("run", in.Run)
	add("request", in.Request)
	if since > 0 {
		conds = append(conds, "at >= "+args.Add(since))
	}
	if key != nil {
		at, _ := strconv.ParseInt(key[0], 10, 64)
		conds = append(conds, fmt.Sprintf("(at, id) < (%s, %s)", args.Add(at), args.Add(key[1])))
	}
	conds = append(conds, s.visible(c, &args))
	where := strings.Join(conds, " AND ")
	heap := `heap`
	if in.ChangeID != "" || in.Thing != "" || in.Run != "" || in.Request != "" {
		heap = `heap || ''` // no column alone: else SQLite walks the heap's whole index, which is in order, rather than the narrow one
	}
	n := strconv.Itoa(limit)
	if c.Person && in.Heap == "" { // changes of things without a heap: a person's own
		heaps = append(slices.Clone(heaps), who.Heap{})
	}
	return db.Latest(heaps, func(h who.Heap) string {
		own := ""
		if h.ID == "" {
			own = ` AND actor = ` + args.Add(c.Actor)
		}
		return `SELECT ` + columns + ` FROM change WHERE ` + heap + ` = ` + args.Add(h.ID) + own + ` AND ` + where + ` ORDER BY at DESC, id DESC LIMIT ` + n
	}, `at DESC, id DESC LIMIT `+n), args
}

// nameActors puts names beside the actors' ids.
func (s *Service) nameActors(ctx context.Context, changes []Change) error {
	names := Names{}
	for i := range changes {
		var err error
		if changes[i].ActorName, err = names.Of(ctx, s.db, changes[i].Actor); err != nil {
			return err
		}
	}
	return nil
}

// Names keeps what actors are called, by their ids.
type Names map[string]string

// Of gives the name of an actor ("account:ID", "agent:ID", ...), "" where there is none.
func (n Names) Of(ctx context.Context, d *db.DB, actor string) (string, error) {
	if name, known := n[actor]; known {
		return name, nil
	}
	kind, id, _ := strings.Cut(actor, ":")
	name := ""
	if table := map[string]string{"account": "account", "stdio": "account", "token": "token", "agent": "agent"}[kind]; table != "" {
		err := d.One(ctx, `SELECT name FROM `+table+` WHERE id = $1`, []any{id}, &name)
		if err != nil && !db.IsNone(err) {
			return "", err
		}
	}
	if kind == "stdio" {
		name += " (stdio)"
	}
	n[actor] = name
	return name, nil
}
