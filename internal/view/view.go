// Package view keeps saved views: what of a heap's blocks is shown, in which layout (list, table, board, calendar) and order. A
// view is data, so agents and people make the same ones; blocks are found by block/filter and shown by block.
package view

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/block"
	"cairn/internal/block/filter"
	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/search"
	"cairn/internal/who"
)

const (
	kind = "view"
	area = "documents"
	set  = "record"
)

// Layouts of views.
const (
	board    = "board"
	calendar = "calendar"
)

// Limits of views.
const (
	maxViews = 500 // of a heap
	maxTags  = 200 // below a tag, at any depth
)

// finder is what filtering by words needs of search.
type finder interface {
	Find(ctx context.Context, heaps, kinds []string, query string, limit int) (search.Result, error)
}

// Service is the views of one server.
type Service struct {
	db     *db.DB
	find   finder
	blocks *block.Service
}

// New makes the service.
func New(d *db.DB, find finder, blocks *block.Service) *Service { return &Service{d, find, blocks} }

// Ops are the operations of this package.
func (s *Service) Ops() []*op.Op {
	const none = `"view_id":"01890a5d-ac96-774b-bcce-b302099a8057"`
	return []*op.Op{
		op.Define(op.Op{Name: "save_view", Title: "Save view", Area: area, Set: set, Effect: op.Write, Example: `{"name":"Open","layout":"list","filter":{"properties":[{"key":"status","op":"is","value":"open"}]}}`,
			Doc: "Make a saved view of a heap's blocks, or change the one with view_id: what is given replaces what it had, clear empties. A board needs group_by, a calendar date."}, s.save),
		op.Define(op.Op{Name: "list_views", Title: "List views", Area: area, Set: set, Effect: op.Read,
			Doc: "Saved views with what they show, oldest first."}, s.list),
		op.Define(op.Op{Name: "run_view", Title: "Run view", Area: area, Set: set, Effect: op.Read, Example: `{` + none + `}`,
			Doc: "The blocks that a saved view shows, page by page; a page may be short and have a next one. A board gives its groups with counts, and with group the blocks of one. A calendar takes from and to (this month if not given)."}, s.run),
		op.Define(op.Op{Name: "delete_view", Title: "Delete view", Area: area, Set: set, Effect: op.Destroy, Idempotent: true, Example: `{` + none + `}`,
			Doc: "Delete a saved view; its blocks stay. undo_change brings it back."}, s.remove),
	}
}

// Filter says which blocks a view shows: those that meet all of it.
type Filter struct {
	Type       string             `json:"type,omitempty" rule:"enum=note|tag|collection|file|image"`
	Tag        string             `json:"tag,omitempty" jsonschema:"id or title: only blocks below it" rule:"min=1,max=300"`
	Deep       bool               `json:"deep,omitempty" jsonschema:"also those below the tags below it"`
	Words      string             `json:"words,omitempty" jsonschema:"as search_blocks takes them" rule:"max=1000"`
	Pinned     bool               `json:"pinned,omitempty"`
	Unlinked   bool               `json:"unlinked,omitempty" jsonschema:"without a tag, a link or a backlink"`
	Properties []filter.Condition `json:"properties,omitempty" jsonschema:"conditions that all must be met" rule:"max=10"`
}

// Column is one that a table shows.
type Column struct {
	By  string `json:"by" rule:"required,enum=title|type|tags|pinned|created|updated|property"`
	Key string `json:"key,omitempty" jsonschema:"of the property" rule:"min=1,max=100"`
}

// body is what of a view is stored as JSON.
type body struct {
	Filter  *Filter      `json:"filter,omitempty"`
	Sort    *filter.Sort `json:"sort,omitempty"`
	Columns []Column     `json:"columns,omitempty"`
	GroupBy string       `json:"group_by,omitempty"` // the key of a property
	Date    string       `json:"date,omitempty"`     // the key of a property
}

// View is a saved view as callers see it.
type View struct {
	ID     string `json:"id"`
	Heap   string `json:"heap"`
	Name   string `json:"name"`
	Layout string `json:"layout"`
	body
	State     string `json:"state"` // live or trashed
	CreatedAt string `json:"created_at"`
	UpdatedAt string `json:"updated_at"`
}

// row is a view as stored.
type row struct {
	ID, Heap, Name, Layout, Actor string
	TrashedAt                     *int64
	CreatedAt, UpdatedAt          int64
	body                          body
}

const columns = `id, heap, name, layout, body, actor, trashed_at, created_at, updated_at`

// reading gives where the columns of a view go; done is called after.
func (r *row) reading() (dest []any, done func() error) {
	text := ""
	return []any{&r.ID, &r.Heap, &r.Name, &r.Layout, &text, &r.Actor, &r.TrashedAt, &r.CreatedAt, &r.UpdatedAt}, func() error {
		return json.Unmarshal([]byte(text), &r.body)
	}
}

func (r *row) view() View {
	return View{ID: r.ID, Heap: r.Heap, Name: r.Name, Layout: r.Layout, body: r.body, State: change.StateOf(r.TrashedAt), CreatedAt: op.Stamp(r.CreatedAt), UpdatedAt: op.Stamp(r.UpdatedAt)}
}

// fields are the recorded ones.
func (r *row) fields() change.Fields {
	return change.Fields{change.State: change.StateOf(r.TrashedAt), "name": r.Name, "layout": r.Layout, "filter": r.body.Filter, "sort": r.body.Sort,
		"columns": r.body.Columns, "group_by": r.body.GroupBy, "date": r.body.Date}
}

type querier func(q string, args []any, dest ...any) error

func read(one querier, id, end string) (*row, error) {
	r := &row{}
	dest, done := r.reading()
	if err := one(`SELECT `+columns+` FROM saved_view WHERE id = $1`+end, []any{strings.ToLower(id)}, dest...); err != nil {
		return nil, err
	}
	return r, done()
}

// load finds a view among the heaps granted, also a deleted one.
func load(ctx context.Context, one querier, id, end string) (*row, error) {
	r, err := read(one, id, end)
	if err == nil {
		if _, granted := who.From(ctx).ByID(r.Heap); granted {
			return r, nil
		}
	} else if !db.IsNone(err) {
		return nil, err
	}
	e := fault.New(fault.NotFound, "there is no view with the id %s: list_views shows those there are", id)
	e.Field = "view_id"
	return nil, e
}

func (r *row) there() error {
	if r.TrashedAt == nil {
		return nil
	}
	return fault.New(fault.Conflict, "the view was deleted: undo_change brings it back").With("id", r.ID).With("state", change.Trashed)
}

type listIn struct {
	Heap   string `json:"heap" jsonschema:"id or name" rule:"max=300"`
	Limit  int    `json:"limit" jsonschema:"default 50" rule:"min=1,max=200"`
	Cursor string `json:"cursor" rule:"max=300"`
}

type listOut struct {
	Count      int     `json:"count"`
	Views      []View  `json:"views"`
	NextCursor *string `json:"next_cursor,omitempty"`
}

func (s *Service) list(ctx context.Context, in listIn) (listOut, error) {
	out := listOut{Views: []View{}}
	heaps, err := who.From(ctx).Readable(in.Heap)
	if err != nil || len(heaps) == 0 {
		return out, err
	}
	key, err := op.ReadCursor(in.Cursor, 2)
	if err != nil {
		return out, err
	}
	args, cond := db.Args{}, ""
	cond = " AND heap IN " + args.List(who.IDs(heaps))
	if key != nil {
		at, err := strconv.ParseInt(key[0], 10, 64)
		if err != nil {
			return out, op.BadCursor()
		}
		cond += " AND (created_at, id) > (" + args.Add(at) + ", " + args.Add(key[1]) + ")"
	}
	page := op.NewPage(in.Limit)
	rows, err := s.db.Query(ctx, `SELECT `+columns+` FROM saved_view WHERE trashed_at IS NULL`+cond+` ORDER BY created_at, id LIMIT `+strconv.Itoa(page.Limit+1), args...)
	if err != nil {
		return out, err
	}
	defer rows.Close()
	var last *row
	for rows.Next() {
		r := &row{}
		dest, done := r.reading()
		if err := rows.Scan(dest...); err != nil {
			return out, err
		}
		if err := done(); err != nil {
			return out, err
		}
		v := r.view()
		text, _ := json.Marshal(v)
		if !page.Fits(out.Count, op.Weight(string(text))) {
			out.NextCursor = op.Cursor(strconv.FormatInt(last.CreatedAt, 10), last.ID)
			break
		}
		out.Views, last = append(out.Views, v), r
		out.Count++
	}
	return out, rows.Err()
}

// keys are those of the properties that a view shows.
func (r *row) keys() (keys []string) {
	add := func(key string) {
		if key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	for _, c := range r.body.Columns {
		add(c.Key)
	}
	add(r.body.GroupBy)
	add(r.body.Date)
	if r.body.Sort != nil {
		add(r.body.Sort.Key)
	}
	return keys
}
