package chronicle

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/rawjson"
	"cairn/internal/search"
	"cairn/internal/who"
)

// thing is a row of one of the tables here: what storing, recording, undoing and finding it need to know of it.
type thing interface {
	base() *core
	about() about
	cols() []col
	copy() thing
}

// about is what a thing is and says.
type about struct {
	kind   string // in the change record and in search
	table  string
	line   string // it in one line
	body   string // what can be found beside that line
	hidden bool   // private: no agent sees it
}

// core is what every thing has.
type core struct {
	ID, Heap             string
	TrashedAt            *int64
	CreatedAt, UpdatedAt int64
}

func (b *core) base() *core { return b }

// col is a column by its name and where its value lies. still: it never changes and isn't recorded.
type col struct {
	name  string
	v     any
	still bool
}

// yes is a mark, stored as 0 or 1.
type yes bool

func (y yes) Value() (driver.Value, error) { return db.Flag(bool(y)), nil }

// Scan reads a mark.
func (y *yes) Scan(v any) error {
	n, ok := v.(int64)
	*y = n == 1
	if !ok {
		return fmt.Errorf("a mark is stored as %T", v)
	}
	return nil
}

// texts is a list of texts, stored as JSON.
type texts []string

func (l texts) Value() (driver.Value, error) {
	b, err := rawjson.Marshal(append([]string{}, l...))
	return string(b), err
}

// Scan reads a list.
func (l *texts) Scan(v any) error {
	s, ok := v.(string)
	if !ok {
		return fmt.Errorf("a list is stored as %T", v)
	}
	return json.Unmarshal([]byte(s), l)
}

// moment is when something happened, in microseconds since 1970 UTC and whole milliseconds, and RFC 3339 in the record.
type moment int64

func (m moment) Value() (driver.Value, error) { return int64(m), nil }

// MarshalJSON writes a moment as callers see it.
func (m moment) MarshalJSON() ([]byte, error) { return []byte(`"` + op.Stamp(int64(m)) + `"`), nil }

// UnmarshalJSON reads what MarshalJSON wrote.
func (m *moment) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	at, _, err := op.Moment("at", s, nil)
	*m = moment(at)
	return err
}

// day is the date of a moment in UTC.
func (m moment) day() string { return time.UnixMicro(int64(m)).UTC().Format(time.DateOnly) }

// now gives the clock's moment.
func now(tx *db.Tx) moment { return moment(tx.Wall - tx.Wall%1000) }

// privately is how the kind of a private thing begins.
const privately = "private_"

// kindOf gives the kind under which a thing is found, and under which its changes are recorded. What happened to a thing while
// it was private stays unseen by agents for good.
func kindOf(t thing) string {
	if t.about().hidden {
		return privately + t.about().kind
	}
	return t.about().kind
}

// columnsOf names the columns of a thing, as scan reads them.
func columnsOf(t thing) string {
	var b strings.Builder
	b.WriteString("id, heap, trashed_at, created_at, updated_at")
	for _, c := range t.cols() {
		b.WriteString(", " + c.name)
	}
	return b.String()
}

func dest(t thing) []any {
	b := t.base()
	d := []any{&b.ID, &b.Heap, &b.TrashedAt, &b.CreatedAt, &b.UpdatedAt}
	for _, c := range t.cols() {
		d = append(d, c.v)
	}
	return d
}

// read reads one thing; where says which, and ends the statement.
func read(one querier, t thing, where string, args ...any) error {
	return one(`SELECT `+columnsOf(t)+` FROM `+t.about().table+` WHERE `+where, args, dest(t)...)
}

// querier is the part of db.DB and db.Tx that reading one row needs, rowsQuery the one for several.
type (
	querier   func(q string, args []any, dest ...any) error
	rowsQuery func(q string, args ...any) (*sql.Rows, error)
)

func (s *Service) one(ctx context.Context) querier {
	return func(q string, args []any, dest ...any) error { return s.db.One(ctx, q, args, dest...) }
}

func (s *Service) query(ctx context.Context) rowsQuery {
	return func(q string, args ...any) (*sql.Rows, error) { return s.db.Query(ctx, q, args...) }
}

// readAll reads things; where says which, and ends the statement.
func readAll[T thing](query rowsQuery, blank func() T, where string, args ...any) (found []T, err error) {
	t := blank()
	rows, err := query(`SELECT `+columnsOf(t)+` FROM `+t.about().table+` WHERE `+where, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		t := blank()
		if err := rows.Scan(dest(t)...); err != nil {
			return nil, err
		}
		found = append(found, t)
	}
	return found, rows.Err()
}

// sees tells whether the caller may see a thing.
func sees(c *who.Caller, t thing) bool {
	_, granted := c.ByID(t.base().Heap)
	return granted && (c.Person || !t.about().hidden)
}

// fields gives the recorded fields of a thing, as they are now.
func fields(t thing) change.Fields {
	f := change.Fields{change.State: change.StateOf(t.base().TrashedAt)}
	for _, c := range t.cols() {
		if !c.still {
			b, _ := rawjson.Marshal(c.v) // texts, numbers and lists of them always marshal
			f[c.name] = json.RawMessage(b)
		}
	}
	if e, ok := t.(*episode); ok {
		f["people"] = slices.Clone(e.People)
	}
	return f
}

// insert stores a new thing with its change and what search reads of it. Its time of creation stays 0 where another thing has
// its key.
func insert(ctx context.Context, tx *db.Tx, t thing) error {
	b := t.base()
	args := db.Args{b.ID, b.Heap, tx.Now}
	names, marks := "id, heap, created_at, updated_at", "$1, $2, $3, $3"
	for _, c := range t.cols() {
		names, marks = names+", "+c.name, marks+", "+args.Add(c.v)
	}
	n, err := tx.Exec(`INSERT INTO `+t.about().table+` (`+names+`) VALUES (`+marks+`) ON CONFLICT DO NOTHING`, args...)
	if err != nil || n == 0 {
		return err
	}
	b.CreatedAt, b.UpdatedAt = tx.Now, tx.Now
	if e, ok := t.(*episode); ok {
		if err := e.link(tx); err != nil {
			return err
		}
	}
	change.Record(ctx, tx, change.Entry{Heap: b.Heap, Kind: kindOf(t), Thing: b.ID, Effect: change.Create, After: fields(t), Summary: "Added " + spoken(t)})
	put(tx, nil, t)
	return nil
}

// spoken names a thing in a summary.
func spoken(t thing) string {
	return strings.ReplaceAll(t.about().kind, "_", " ") + " " + change.Brief(t.about().line)
}

// save stores a change of a thing and records it; the names of the fields changed come back, none where nothing differs.
func save(ctx context.Context, tx *db.Tx, old, t thing) ([]string, error) {
	before, after := change.Diff(fields(old), fields(t))
	if len(after) == 0 {
		return nil, nil
	}
	if err := store(tx, old, t); err != nil {
		return nil, err
	}
	kind := kindOf(t)
	if old.about().hidden {
		kind = kindOf(old)
	}
	change.Record(ctx, tx, change.Entry{Heap: t.base().Heap, Kind: kind, Thing: t.base().ID, Effect: change.Update, Before: before, After: after, Summary: "Changed " + spoken(t)})
	return slices.Sorted(maps.Keys(after)), nil
}

// store writes every column of a thing and brings search up to date.
func store(tx *db.Tx, old, t thing) error {
	b := t.base()
	b.UpdatedAt = tx.Now
	args := db.Args{b.ID, b.TrashedAt, b.UpdatedAt}
	set := "trashed_at = $2, updated_at = $3"
	for _, c := range t.cols() {
		if !c.still {
			set += ", " + c.name + " = " + args.Add(c.v)
		}
	}
	if _, err := tx.Exec(`UPDATE `+t.about().table+` SET `+set+` WHERE id = $1`, args...); err != nil {
		return err
	}
	if e, ok := t.(*episode); ok {
		if err := e.link(tx); err != nil {
			return err
		}
	}
	put(tx, old, t)
	return nil
}

func docOf(t thing) search.Doc {
	d := search.Doc{Heap: t.base().Heap, Thing: t.base().ID, Kind: kindOf(t), Title: t.about().line, Body: t.about().body}
	switch t := t.(type) {
	case *note:
		d.Day = t.Date
	case *decision:
		d.Day = t.At.day()
	case *episode:
		d.Title = "" // it's where the body begins
		d.Day, d.Thread, d.At = t.At.day(), t.Kind, int64(t.At)
	}
	return d
}

// put brings what search reads of a thing up to date. old is nil for a new one.
func put(tx *db.Tx, old, t thing) {
	d := docOf(t)
	switch was := old != nil && old.base().TrashedAt == nil; {
	case t.base().TrashedAt != nil:
		if was {
			search.Remove(tx, d.Heap, d.Thing)
		}
	case !was || docOf(old) != d:
		d.Fresh = old == nil
		search.Analyze(d).Put(tx)
	}
}

// byRef finds the thing with an external_ref in the heaps granted. Several are an error that names them.
func byRef[T thing](c *who.Caller, one querier, blank func() T, external, end string) (found T, ok bool, err error) {
	var all []T
	for _, h := range c.Heaps {
		t := blank()
		err := read(one, t, `heap = $1 AND external_ref = $2`+end, h.ID, external)
		if err == nil {
			all = append(all, t)
		} else if !db.IsNone(err) {
			return found, false, err
		}
	}
	switch len(all) {
	case 0:
		return found, false, nil
	case 1:
		return all[0], true, nil
	}
	e := fault.New(fault.Conflict, "several things in different heaps have the external_ref %q: only one of these heaps can be meant, and none can be told from it", external)
	candidates := make([]map[string]string, len(all))
	for i, t := range all {
		h, _ := c.ByID(t.base().Heap)
		candidates[i] = map[string]string{"id": t.base().ID, "title": t.about().line, "heap": h.Name}
	}
	return found, false, e.With("candidates", candidates)
}

// writable refuses a write to a heap that is only to be read.
func writable(c *who.Caller, heap string) error {
	if h, _ := c.ByID(heap); !h.Writable() {
		return fault.New(fault.Conflict, "the heap %s is shared with you to read only", h.Name)
	}
	return nil
}

// lock reads a thing for a change, by its id, with who was there.
func lock(tx *db.Tx, t thing, id string) error {
	err := read(tx.One, t, `id = $1`+tx.ForUpdate(), id)
	if e, ok := t.(*episode); ok && err == nil {
		return e.readPeople(tx.Query)
	}
	return err
}

// own reads a thing that a person wants to change, by its id, and locks it.
func own(c *who.Caller, tx *db.Tx, t thing, id string) error {
	want := t.about().kind
	err := lock(tx, t, strings.ToLower(id))
	if db.IsNone(err) || err == nil && (!sees(c, t) || t.about().kind != want) {
		return fault.New(fault.NotFound, "there is no %s with the id %s", want, id)
	}
	if err != nil {
		return err
	}
	if t.base().TrashedAt != nil {
		return fault.New(fault.Conflict, "the %s is in the trash", want).With("id", t.base().ID).With("state", change.Trashed)
	}
	return writable(c, t.base().Heap)
}

// keep makes a thing, or changes the one with the id; set puts in what was given.
func keep[T thing](ctx context.Context, s *Service, id, heap string, blank func() T, set func(tx *db.Tx, t T) error) (t T, one kept, err error) {
	c := who.From(ctx)
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		t, one = blank(), kept{}
		if id == "" {
			h, err := c.Target(heap, nil)
			if err != nil {
				return err
			}
			t.base().ID, t.base().Heap = db.NewID(), h.ID
			if err := set(tx, t); err != nil {
				return err
			}
			one.ID, one.Result = t.base().ID, "created"
			if err := insert(ctx, tx, t); err != nil {
				return err
			}
			if t.base().CreatedAt == 0 {
				return fault.New(fault.Conflict, "somebody else added the same %s just now: look and try again", t.about().kind)
			}
			return s.changed(tx, t)
		}
		if err := own(c, tx, t, id); err != nil {
			return err
		}
		one, err = alter(ctx, s, tx, t, set)
		return err
	})
	return t, one, err
}

// alter changes a thing that was read: set puts in what was given.
func alter[T thing](ctx context.Context, s *Service, tx *db.Tx, t T, set func(tx *db.Tx, t T) error) (one kept, err error) {
	old := t.copy()
	if err := set(tx, t); err != nil {
		return one, err
	}
	one.ID, one.Result = t.base().ID, "updated"
	if one.Changed, err = save(ctx, tx, old, t); err != nil {
		return one, err
	}
	if len(one.Changed) == 0 {
		one.Result = "existing"
		return one, nil
	}
	return one, s.changed(tx, t)
}

// kept begins the answer about one thing.
type kept struct {
	ID      string   `json:"id"`
	Result  string   `json:"result"` // created, updated or existing (nothing was changed)
	Changed []string `json:"changed,omitempty"`
}

// getter reads the recorded fields of a kind of thing.
func getter(blank func() thing) func(tx *db.Tx, id string) (string, map[string]json.RawMessage, error) {
	return func(tx *db.Tx, id string) (string, map[string]json.RawMessage, error) {
		t := blank()
		if err := lock(tx, t, id); err != nil {
			return "", nil, err
		}
		f, err := change.Raw(fields(t))
		return t.base().Heap, f, err
	}
}

// setter writes recorded fields back.
func (s *Service) setter(blank func() thing) func(ctx context.Context, tx *db.Tx, id string, set map[string]json.RawMessage) error {
	return func(_ context.Context, tx *db.Tx, id string, set map[string]json.RawMessage) error {
		t := blank()
		if err := lock(tx, t, id); err != nil {
			return err
		}
		old := t.copy()
		state := change.StateOf(t.base().TrashedAt)
		targets := map[string]any{change.State: &state}
		for _, c := range t.cols() {
			if !c.still {
				targets[c.name] = c.v
			}
		}
		if e, ok := t.(*episode); ok {
			targets["people"] = &e.People
		}
		for f, v := range set {
			target, ok := targets[f]
			if !ok {
				return fmt.Errorf("a %s has no field %q", t.about().kind, f)
			}
			if err := json.Unmarshal(v, target); err != nil {
				return fmt.Errorf("%s field %s: %w", t.about().kind, f, err)
			}
		}
		t.base().TrashedAt = db.Since(state == change.Trashed, old.base().TrashedAt, tx.Now)
		if err := store(tx, old, t); err != nil {
			return err
		}
		return s.changed(tx, t)
	}
}

// chunk is how many rows are read at a time by their ids: few texts for the statement cache.
const chunk = 100

// padded is db.Padded to the lengths of this package.
func padded(ids []string) []string { return db.Padded(ids, 20, chunk) }

// offset reads a cursor that counts rows.
func offset(cursor string) (int, error) {
	key, err := op.ReadCursor(cursor, 1)
	if err != nil || key == nil {
		return 0, err
	}
	n, err := strconv.Atoi(key[0])
	if err != nil || n < 0 {
		return 0, op.BadCursor()
	}
	return n, nil
}
