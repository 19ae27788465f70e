package view

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/block/filter"
	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/who"
)

type saveIn struct {
	ViewID  string       `json:"view_id" jsonschema:"to change one" rule:"uuid,max=64"`
	Heap    string       `json:"heap" jsonschema:"id or name, of a new one" rule:"max=300"`
	Name    *string      `json:"name" rule:"min=1,max=300"`
	Layout  string       `json:"layout" jsonschema:"default list" rule:"enum=list|table|board|calendar"`
	Filter  *Filter      `json:"filter"`
	Sort    *filter.Sort `json:"sort" jsonschema:"default: newest change first"`
	Columns []Column     `json:"columns" jsonschema:"of a table" rule:"max=50"`
	GroupBy *string      `json:"group_by" jsonschema:"key of a select, bool or reference property" rule:"min=1,max=100"`
	Date    *string      `json:"date" jsonschema:"key of a date property" rule:"min=1,max=100"`
	Clear   []string     `json:"clear" jsonschema:"fields to empty" rule:"max=5,enum=filter|sort|columns|group_by|date"`
}

type saved struct {
	ID     string `json:"id"`
	Result string `json:"result"` // created, updated, or existing where nothing differs
	View   View   `json:"view"`
}

func (s *Service) save(ctx context.Context, in saveIn) (saved, error) {
	if in.ViewID == "" {
		return s.create(ctx, in)
	}
	if in.Heap != "" {
		return saved{}, fault.Bad("heap", "can't be changed: a view stays in its heap. Leave view_id out to make a new one")
	}
	at, err := load(ctx, s.one(ctx), in.ViewID, "")
	if err != nil {
		return saved{}, err
	}
	h, _ := who.From(ctx).ByID(at.Heap)
	if err := s.checked(ctx, h, &in); err != nil {
		return saved{}, err
	}
	return s.change(ctx, in.ViewID, change.Update, "Changed the view", func(_ *db.Tx, r *row) error {
		if err := r.there(); err != nil {
			return err
		}
		in.onto(r)
		return r.whole()
	})
}

func (s *Service) create(ctx context.Context, in saveIn) (saved, error) {
	c := who.From(ctx)
	h, err := c.Target(in.Heap, nil)
	if err != nil {
		return saved{}, err
	}
	if in.Name == nil {
		return saved{}, fault.Bad("name", "is required for a new view")
	}
	if len(in.Clear) > 0 {
		return saved{}, fault.Bad("clear", "is for a view that there is: give view_id")
	}
	if err := s.checked(ctx, h, &in); err != nil {
		return saved{}, err
	}
	r := &row{ID: db.NewID(), Heap: h.ID, Layout: "list", Actor: c.Actor}
	in.onto(r)
	if err := r.whole(); err != nil {
		return saved{}, err
	}
	out := saved{r.ID, "created", View{}}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		same, err := asked(tx, r)
		if err != nil || same != nil {
			if same != nil {
				out = saved{same.ID, "existing", same.view()}
			}
			return err
		}
		if err := room(tx, r.Heap); err != nil {
			return err
		}
		r.CreatedAt, r.UpdatedAt = tx.Now, tx.Now
		if err := insert(tx, r); err != nil {
			return err
		}
		change.Record(ctx, tx, change.Entry{Heap: r.Heap, Kind: kind, Thing: r.ID, Effect: change.Create, After: r.fields(), Summary: "Made the view " + change.Brief(r.Name)})
		out.View = r.view()
		return nil
	})
	return out, err
}

// room refuses one more view where a heap has as many as it may.
func room(tx *db.Tx, heap string) error {
	var n int
	err := tx.One(`SELECT count(*) FROM saved_view WHERE heap = $1 AND trashed_at IS NULL`, []any{heap}, &n)
	if err == nil && n >= maxViews {
		err = fault.New(fault.Conflict, "the heap has %d views already, the most there may be: delete_view first", n)
	}
	return err
}

// asked finds the view that a create asks for once more, such as after an answer that was lost: of the same name, and the same in
// all; else nil.
func asked(tx *db.Tx, r *row) (*row, error) {
	var id string
	err := tx.One(`SELECT id FROM saved_view WHERE heap = $1 AND name_folded = $2 AND trashed_at IS NULL`, []any{r.Heap, who.Fold(r.Name)}, &id)
	if db.IsNone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	had, err := read(tx.One, id, "")
	if err != nil {
		return nil, err
	}
	if _, differs := change.Diff(had.fields(), r.fields()); len(differs) > 0 {
		return nil, nil
	}
	return had, nil
}

// checked holds arguments to what a view may be, and puts a tag's id in the place of its title.
func (s *Service) checked(ctx context.Context, h who.Heap, in *saveIn) error {
	if in.Name != nil {
		name := strings.TrimSpace(*in.Name)
		in.Name = &name
	}
	if in.Filter != nil {
		f := *in.Filter
		f.Properties = nil
		if f.Deep && f.Tag == "" {
			return fault.Bad("filter.deep", "is of filter.tag, which is missing")
		}
		if f.Tag != "" {
			tag, err := s.blocks.Parent(ctx, h, "filter.tag", f.Tag)
			if err != nil {
				return err
			}
			f.Tag = tag.ID
		}
		for i, c := range in.Filter.Properties {
			c, err := c.Check("filter.properties[" + strconv.Itoa(i) + "]")
			if err != nil {
				return err
			}
			f.Properties = append(f.Properties, c)
		}
		in.Filter = &f
	}
	keyed := func(field, by, key string) error {
		if (by == "property") != (key != "") {
			return fault.Bad(field+".key", "must be given for by property, and only there")
		}
		return nil
	}
	if in.Sort != nil {
		sort := *in.Sort
		sort.Key = strings.TrimSpace(sort.Key)
		if err := keyed("sort", sort.By, sort.Key); err != nil {
			return err
		}
		in.Sort = &sort
	}
	for i := range in.Columns {
		c := &in.Columns[i]
		c.Key = strings.TrimSpace(c.Key)
		if err := keyed("columns["+strconv.Itoa(i)+"]", c.By, c.Key); err != nil {
			return err
		}
		if slices.Contains(in.Columns[:i], *c) {
			return fault.Bad("columns", "has %s twice", strings.TrimSpace(c.By+" "+c.Key))
		}
	}
	for field, given := range map[string]bool{"filter": in.Filter != nil, "sort": in.Sort != nil, "columns": in.Columns != nil, "group_by": in.GroupBy != nil, "date": in.Date != nil} {
		if given && slices.Contains(in.Clear, field) {
			return fault.Bad("clear", "names %s, which is given too", field)
		}
	}
	return nil
}

// onto puts what is given in the place of what a view has.
func (in saveIn) onto(r *row) {
	if in.Name != nil {
		r.Name = *in.Name
	}
	if in.Layout != "" {
		r.Layout = in.Layout
	}
	if in.Filter != nil {
		r.body.Filter = in.Filter
	}
	if in.Sort != nil {
		r.body.Sort = in.Sort
	}
	if in.Columns != nil {
		r.body.Columns = in.Columns
	}
	if in.GroupBy != nil {
		r.body.GroupBy = strings.TrimSpace(*in.GroupBy)
	}
	if in.Date != nil {
		r.body.Date = strings.TrimSpace(*in.Date)
	}
	for _, f := range in.Clear {
		switch f {
		case "filter":
			r.body.Filter = nil
		case "sort":
			r.body.Sort = nil
		case "columns":
			r.body.Columns = nil
		case "group_by":
			r.body.GroupBy = ""
		case "date":
			r.body.Date = ""
		}
	}
}

// whole refuses a layout without what it needs.
func (r *row) whole() error {
	switch {
	case r.Layout == board && r.body.GroupBy == "":
		return fault.Bad("group_by", "is required for a board: the key of a select, bool or reference property")
	case r.Layout == calendar && r.body.Date == "":
		return fault.Bad("date", "is required for a calendar: the key of a date property")
	}
	return nil
}

func (s *Service) one(ctx context.Context) querier {
	return func(q string, args []any, dest ...any) error { return s.db.One(ctx, q, args, dest...) }
}

type viewIn struct {
	ViewID string `json:"view_id" rule:"required,uuid,max=64"`
}

func (s *Service) remove(ctx context.Context, in viewIn) (saved, error) {
	return s.change(ctx, in.ViewID, change.Delete, "Deleted the view", func(tx *db.Tx, r *row) error {
		r.TrashedAt = db.Since(true, r.TrashedAt, tx.Now)
		return nil
	})
}

// change writes what do makes of a view, if that is something else.
func (s *Service) change(ctx context.Context, id, effect, summary string, do func(tx *db.Tx, r *row) error) (saved, error) {
	var out saved
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		r, err := load(ctx, tx.One, id, tx.ForUpdate())
		if err != nil {
			return err
		}
		if h, _ := who.From(ctx).ByID(r.Heap); !h.Writable() {
			return fault.New(fault.Conflict, "the heap %s is shared with you to read only", h.Name)
		}
		old := *r
		if err := do(tx, r); err != nil {
			return err
		}
		before, after := change.Diff(old.fields(), r.fields())
		out = saved{r.ID, "existing", r.view()}
		if len(after) == 0 {
			return nil
		}
		if err := update(ctx, tx, r); err != nil {
			return err
		}
		out = saved{r.ID, "updated", r.view()}
		change.Record(ctx, tx, change.Entry{Heap: r.Heap, Kind: kind, Thing: r.ID, Effect: effect, Before: before, After: after, Summary: summary + " " + change.Brief(r.Name)})
		return nil
	})
	return out, err
}

// taken refuses a name that another view of the heap has.
func taken(tx *db.Tx, r *row) error {
	if r.TrashedAt != nil {
		return nil
	}
	var id string
	err := tx.One(`SELECT id FROM saved_view WHERE heap = $1 AND name_folded = $2 AND id <> $3 AND trashed_at IS NULL`, []any{r.Heap, who.Fold(r.Name), r.ID}, &id)
	if db.IsNone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return sameName(r).With("id", id)
}

func sameName(r *row) *fault.Error {
	e := fault.New(fault.Conflict, "there is a view named %q in the heap already: give its id as view_id to change it, or another name", r.Name)
	e.Field = "name"
	return e
}

func insert(tx *db.Tx, r *row) error {
	if err := taken(tx, r); err != nil {
		return err
	}
	text, err := json.Marshal(r.body)
	if err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO saved_view (id, heap, name, name_folded, layout, body, actor, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)`,
		r.ID, r.Heap, r.Name, who.Fold(r.Name), r.Layout, string(text), r.Actor, tx.Now)
	if db.IsUnique(err) { // another write came first
		return sameName(r)
	}
	return err
}

func update(ctx context.Context, tx *db.Tx, r *row) error {
	if err := taken(tx, r); err != nil {
		return err
	}
	text, err := json.Marshal(r.body)
	if err != nil {
		return err
	}
	r.Actor, r.UpdatedAt = who.From(ctx).Actor, tx.Now
	_, err = tx.Exec(`UPDATE saved_view SET name = $2, name_folded = $3, layout = $4, body = $5, actor = $6, trashed_at = $7, updated_at = $8 WHERE id = $1`,
		r.ID, r.Name, who.Fold(r.Name), r.Layout, string(text), r.Actor, r.TrashedAt, r.UpdatedAt)
	if db.IsUnique(err) {
		return sameName(r)
	}
	return err
}

// Kinds are the kinds of thing whose changes can be undone here.
func (s *Service) Kinds() []change.Kind {
	return []change.Kind{{Name: kind, Area: area, Get: get, Set: setBack}}
}

func get(tx *db.Tx, id string) (string, map[string]json.RawMessage, error) {
	r, err := read(tx.One, id, tx.ForUpdate())
	if err != nil {
		return "", nil, err
	}
	raw, err := change.Raw(r.fields())
	return r.Heap, raw, err
}

func setBack(ctx context.Context, tx *db.Tx, id string, fields map[string]json.RawMessage) error {
	r, err := read(tx.One, id, tx.ForUpdate())
	if err != nil {
		return err
	}
	old := r.TrashedAt
	for f, v := range fields {
		var err error
		switch f {
		case change.State:
			r.TrashedAt = db.Since(string(v) == `"`+change.Trashed+`"`, r.TrashedAt, tx.Now)
		case "name":
			err = json.Unmarshal(v, &r.Name)
		case "layout":
			err = json.Unmarshal(v, &r.Layout)
		case "filter":
			r.body.Filter = nil
			err = json.Unmarshal(v, &r.body.Filter)
		case "sort":
			r.body.Sort = nil
			err = json.Unmarshal(v, &r.body.Sort)
		case "columns":
			r.body.Columns = nil
			err = json.Unmarshal(v, &r.body.Columns)
		case "group_by":
			err = json.Unmarshal(v, &r.body.GroupBy)
		case "date":
			err = json.Unmarshal(v, &r.body.Date)
		default:
			err = fmt.Errorf("view %s: a recorded field %q is not known", id, f)
		}
		if err != nil {
			return err
		}
	}
	if err := r.whole(); err != nil {
		return fault.New(fault.Conflict, "the view would lack what its layout needs by now")
	}
	if old != nil && r.TrashedAt == nil {
		if err := room(tx, r.Heap); err != nil {
			return err
		}
	}
	return update(ctx, tx, r)
}
