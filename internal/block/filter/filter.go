// Package filter finds the blocks of a heap that meet conditions, in an order, page by page. The database filters and sorts,
// along its indexes: where few blocks meet one of the conditions (that is counted first, up to a bound), those are read and put
// in order; else blocks are passed in the order asked for until a page is full. How many are passed is bounded too, so a page
// may be short and still have a next one. Who may see a heap is asked before.
package filter

import (
	"context"
	"database/sql"
	"slices"
	"strconv"

	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
)

// Bounds of the work for one page.
const (
	// Most is how many blocks are read and sorted for one page.
	Most = 1200
	// windows is how many statements pass blocks for one page.
	windows = 2
)

// most is Most, and window how many blocks one statement passes; tests make them small.
var most, window = Most, 2000

// Query says which blocks are meant, and in what order. The zero value, with a heap, is all that aren't in the trash, newest
// change first.
type Query struct {
	Heap             string
	Type             string
	Tags             []string // right below one of these
	Title            string   // folded text that the title has
	Pinned, Unlinked bool
	Trashed          bool // those in the trash instead
	Properties       []Condition
	Group            *Group
	Among            []string // nil = any, else at most Most ids
	Sort             Sort
}

// Group is one column of a board: the blocks whose property, of a type that boards have, holds one value; Head "" is those
// without one.
type Group struct{ Key, Head string }

// grouping are the types of properties that a board has columns of.
const grouping = `('select', 'bool', 'reference')`

// Sort is an order of blocks: by updated (the default), created, title, or a property; blocks without the property come last.
type Sort struct {
	By         string `json:"by" rule:"required,enum=updated|created|title|property"`
	Key        string `json:"key,omitempty" jsonschema:"of the property" rule:"min=1,max=100"`
	Descending bool   `json:"descending,omitempty"`
}

// Row is a block found, with the keys of the place after it.
type Row struct {
	ID string
	At []string
}

// Page is a part of what a query finds. Next is where it goes on, nil at the end; the page may be short and have a next one.
type Page struct {
	Rows []Row
	Next []string
}

// Find gives the page after a place (nil = the beginning) of at most limit rows.
func Find(ctx context.Context, d *db.DB, q Query, after []string, limit int) (Page, error) {
	if q.Sort.By == "" {
		q.Sort = Sort{By: "updated", Descending: true}
	}
	if q.Sort.By != "property" {
		return q.find(ctx, d, after, limit)
	}
	// First those with the property, then those without it.
	var p Page
	with, without := q, q
	with.Properties = append(slices.Clone(q.Properties), Condition{Key: q.Sort.Key, Op: "not_empty"})
	without.Properties = append(slices.Clone(q.Properties), Condition{Key: q.Sort.Key, Op: "empty"})
	without.Sort = Sort{By: "updated", Descending: true}
	if len(after) == 0 || after[0] == "with" {
		var err error
		if p, err = with.find(ctx, d, rest(after), limit); err != nil {
			return p, err
		}
		p.mark("with")
		if p.Next != nil || q.has(q.Sort.Key) {
			return p, nil
		}
		if after = []string{"without"}; len(p.Rows) == limit {
			p.Next = after
			return p, nil
		}
	}
	more, err := without.find(ctx, d, rest(after), limit-len(p.Rows))
	more.mark("without")
	return Page{append(p.Rows, more.Rows...), more.Next}, err
}

// Newest gives the page of several heaps, newest change first; after is the place as op.Cursor has it.
func Newest(ctx context.Context, d *db.DB, heaps []string, q Query, after []string, limit int) (Page, error) {
	q.Sort = Sort{}
	var p Page
	for _, h := range heaps {
		q.Heap = h
		one, err := Find(ctx, d, q, after, limit)
		if err != nil {
			return p, err
		}
		p.Rows = append(p.Rows, one.Rows...)
		if one.Next != nil && (p.Next == nil || newer(one.Next, p.Next)) {
			p.Next = one.Next // beyond it a heap may have more
		}
	}
	slices.SortFunc(p.Rows, func(a, b Row) int {
		if newer(a.At, b.At) {
			return -1
		}
		return 1
	})
	if p.Next != nil {
		p.Rows = slices.DeleteFunc(p.Rows, func(r Row) bool { return newer(p.Next, r.At) })
	}
	if len(p.Rows) > limit {
		p.Rows = p.Rows[:limit]
		p.Next = p.Rows[limit-1].At
	}
	return p, nil
}

// newer tells whether a place comes before another, newest change first.
func newer(a, b []string) bool {
	x, _ := strconv.ParseInt(a[0], 10, 64)
	y, _ := strconv.ParseInt(b[0], 10, 64)
	return x > y || x == y && a[1] > b[1]
}

func rest(after []string) []string {
	if len(after) == 0 {
		return nil
	}
	return after[1:]
}

func (p *Page) mark(part string) {
	for i := range p.Rows {
		p.Rows[i].At = append([]string{part}, p.Rows[i].At...)
	}
	if p.Next != nil {
		p.Next = append([]string{part}, p.Next...)
	}
}

// has tells whether only blocks with a property meet the query.
func (q Query) has(key string) bool {
	return slices.ContainsFunc(q.Properties, func(c Condition) bool { return c.Key == key && c.Op != "empty" && c.Op != "is_not" }) || q.Group != nil && q.Group.Key == key && q.Group.Head != ""
}

// order is what a sort walks along: the table's alias, and the two columns that say a place.
type order struct {
	table, key, id string
	number, desc   bool
}

func (q Query) order() order {
	o := order{"block b", "b.updated_at", "b.id", true, q.Sort.Descending}
	switch q.Sort.By {
	case "created":
		o.key = "b.created_at"
	case "title":
		o.key, o.number = "b.title_folded", false
	case "property":
		o = order{"property s", "s.head", "s.block", false, q.Sort.Descending}
	}
	return o
}

func (o order) by() string {
	if o.desc {
		return " ORDER BY " + o.key + " DESC, " + o.id + " DESC"
	}
	return " ORDER BY " + o.key + ", " + o.id
}

// place words that a row comes after (or, until, at or before) the place with these keys.
func (o order) place(keys []string, until bool, args *db.Args) (string, error) {
	if len(keys) != 2 {
		return "", op.BadCursor()
	}
	var key any = keys[0]
	if o.number {
		n, err := strconv.ParseInt(keys[0], 10, 64)
		if err != nil {
			return "", op.BadCursor()
		}
		key = n
	}
	sign := ">"
	if o.desc != until {
		sign = "<"
	}
	if until {
		sign += "="
	}
	return " AND (" + o.key + ", " + o.id + ") " + sign + " (" + args.Add(key) + ", " + args.Add(keys[1]) + ")", nil
}

func (q Query) find(ctx context.Context, d *db.DB, after []string, limit int) (Page, error) {
	if len(after) == 0 {
		after = nil
	}
	if limit <= 0 {
		return Page{Next: after}, nil
	}
	if q.Among != nil && len(q.Among) > Most {
		return Page{}, fault.New(fault.Internal, "a filter among %d blocks, at most %d", len(q.Among), Most)
	}
	few, err := q.fewest(ctx, d)
	if err != nil {
		return Page{}, err
	}
	if few != nil && few.n <= most {
		return q.sorted(ctx, d, few, after, limit)
	}
	var p Page
	for range windows {
		edge, err := q.edge(ctx, d, after)
		if err != nil {
			return p, err
		}
		rows, err := q.walk(ctx, d, after, edge, limit-len(p.Rows)+1)
		if err != nil {
			return p, err
		}
		p.Rows = append(p.Rows, rows...)
		if len(p.Rows) > limit {
			p.Rows = p.Rows[:limit]
			p.Next = p.Rows[limit-1].At
			return p, nil
		}
		if p.Next = edge; edge == nil {
			return p, nil
		}
		after = edge
	}
	return p, nil
}

// base words what the rows that are walked must meet and an index tells.
func (q Query) base(o order, args *db.Args) string {
	if o.table == "property s" {
		cond := "s.heap = " + args.Add(q.Heap) + " AND s.key = " + args.Add(q.Sort.Key)
		for _, c := range q.Properties {
			if _, bounds := c.span(); c.Key == q.Sort.Key && !bounds && c.walked() {
				cond += c.meets("s", args)
			}
		}
		for _, s := range q.spans() {
			if s.key == q.Sort.Key {
				cond += s.meets("s", args)
			}
		}
		return cond
	}
	cond := "b.heap = " + args.Add(q.Heap)
	if o.key == "b.updated_at" {
		cond += q.marks("b", true, args)
		if q.Trashed {
			cond += trashed
		}
	}
	return cond
}

// walked tells whether a condition on the property that is walked along is met by the index.
func (c Condition) walked() bool { return !c.not() && c.Op != "contains" }

// Where a block is.
const (
	trashed = " AND b.trashed_at IS NOT NULL"
	live    = " AND b.trashed_at IS NULL"
)

// there words whether the blocks are in the trash.
func (q Query) there() string {
	if q.Trashed {
		return trashed
	}
	return live
}

// marks words the conditions on a block's own columns. index says that an index may be chosen by them: elsewhere SQLite would
// choose one that has another order.
func (q Query) marks(b string, index bool, args *db.Args) (cond string) {
	type mark struct {
		on    bool
		plain string
		other string
	}
	for _, m := range []mark{{q.Pinned, b + ".pinned = 1", b + ".pinned + 0 = 1"}, {q.Unlinked, b + ".linked = 0", b + ".linked + 0 = 0"}} {
		switch {
		case m.on && index:
			cond += " AND " + m.plain
		case m.on:
			cond += " AND " + m.other
		}
	}
	if q.Type != "" {
		cond += " AND " + b + ".type" + map[bool]string{true: "", false: " || ''"}[index] + " = " + args.Add(q.Type)
	}
	return cond
}

// That there is a row, and that there is none. The first not by EXISTS, which PostgreSQL would make a join with all such rows of.
const (
	some   = " AND (SELECT 1 FROM "
	isSome = " LIMIT 1) IS NOT NULL"
	none   = " AND NOT EXISTS (SELECT 1 FROM "
	isNone = ")"
)

// probes words all conditions that are asked of each block; but leaves one out that is met already.
func (q Query) probes(but *set, walking bool, args *db.Args) (cond string) {
	for i, s := range q.sets() {
		if but == nil || but.at != i {
			cond += s.probe(args)
		}
	}
	for _, c := range q.Properties {
		sorted := q.Sort.By == "property" && c.Key == q.Sort.Key
		met := but != nil && slices.Contains(but.of, c.name()) || sorted && (walking && c.walked() || c.Op == "not_empty")
		switch {
		case c.not():
			cond += none + "property p WHERE p.block = b.id AND p.key = " + args.Add(c.Key) + c.meets("p", args) + isNone
		case !met:
			cond += some + "property p WHERE p.block = b.id AND p.key = " + args.Add(c.Key) + c.meets("p", args) + isSome
		}
	}
	if q.Group != nil && q.Group.Head == "" {
		cond += none + "property p WHERE p.block = b.id AND p.key = " + args.Add(q.Group.Key) + " AND p.type IN " + grouping + isNone
	}
	if q.Title != "" { // not LIKE: % and _ are characters like any other
		cond += " AND replace(b.title_folded, " + args.Add(q.Title) + ", '') <> b.title_folded"
	}
	if q.Unlinked {
		cond += " AND " + alone("b")
	}
	return cond
}

// edge gives the place where a window ends, nil where the walk ends before.
func (q Query) edge(ctx context.Context, d *db.DB, after []string) ([]string, error) {
	o, args := q.order(), db.Args{}
	cond := q.base(o, &args)
	if after != nil {
		place, err := o.place(after, false, &args)
		if err != nil {
			return nil, err
		}
		cond += place
	}
	rows, err := scan(ctx, d, o, `SELECT `+o.key+`, `+o.id+` FROM `+o.table+` WHERE `+cond+o.by()+` LIMIT 1 OFFSET `+strconv.Itoa(window-1), args)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0].At, nil
}

// walk passes blocks in their order, from a place to another, and gives those that meet the query.
func (q Query) walk(ctx context.Context, d *db.DB, after, until []string, limit int) ([]Row, error) {
	text, args, err := q.walking(after, until, limit)
	if err != nil {
		return nil, err
	}
	return scan(ctx, d, q.order(), text, args)
}

func (q Query) walking(after, until []string, limit int) (string, db.Args, error) {
	o, args := q.order(), db.Args{}
	from, cond := o.table, q.base(o, &args)
	switch {
	case o.table != "block b":
		from += ` CROSS JOIN block b`
		cond += " AND b.id = s.block AND b.heap = " + args.Add(q.Heap) + q.marks("b", false, &args)
	case o.key != "b.updated_at":
		cond += q.marks("b", false, &args)
	}
	cond += q.there() + q.probes(nil, true, &args)
	for _, at := range []struct {
		keys  []string
		until bool
	}{{after, false}, {until, true}} {
		if at.keys == nil {
			continue
		}
		place, err := o.place(at.keys, at.until, &args)
		if err != nil {
			return "", nil, err
		}
		cond += place
	}
	return `SELECT ` + o.key + `, ` + o.id + ` FROM ` + from + ` WHERE ` + cond + o.by() + ` LIMIT ` + strconv.Itoa(limit), args, nil
}

// met words the blocks of a set with a value of those that meet the whole query, NULL for the others. The value is a statement of
// its own for each block, since PostgreSQL would read all blocks to join so many.
func (q Query) met(few *set, value string, most int, args *db.Args) string {
	from, sorted := "block b", ""
	if q.Sort.By == "property" && value == q.order().key {
		from, sorted = "block b CROSS JOIN property s", " AND s.block = b.id AND s.key = "
	}
	in := few.sql(args)
	if sorted != "" {
		sorted += args.Add(q.Sort.Key)
	}
	return `SELECT few.id, (SELECT ` + value + ` FROM ` + from + ` WHERE b.id = few.id` + sorted + ` AND b.heap = ` + args.Add(q.Heap) + q.marks("b", false, args) + q.there() +
		q.probes(few, false, args) + `) AS met FROM (` + in + ` LIMIT ` + strconv.Itoa(most) + `) few LIMIT ` + strconv.Itoa(most)
}

// sorted reads the few blocks that meet one condition and puts those that meet all in order.
func (q Query) sorted(ctx context.Context, d *db.DB, few *set, after []string, limit int) (p Page, err error) {
	text, args, err := q.sorting(few, after, limit)
	if err != nil {
		return p, err
	}
	p.Rows, err = scan(ctx, d, q.order(), text, args)
	if len(p.Rows) > limit {
		p.Rows = p.Rows[:limit]
		p.Next = p.Rows[limit-1].At
	}
	return p, err
}

func (q Query) sorting(few *set, after []string, limit int) (string, db.Args, error) {
	o, args := q.order(), db.Args{}
	from := q.met(few, o.key, most, &args)
	o.key, o.id = "few.met", "few.id"
	cond := ""
	if after != nil {
		var err error
		if cond, err = o.place(after, false, &args); err != nil {
			return "", nil, err
		}
	}
	return `SELECT few.met, few.id FROM (` + from + `) few WHERE few.met IS NOT NULL` + cond + o.by() + ` LIMIT ` + strconv.Itoa(limit+1), args, nil
}

func scan(ctx context.Context, d *db.DB, o order, q string, args db.Args) ([]Row, error) {
	rows, err := d.Query(ctx, q, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []Row
	for rows.Next() {
		r := Row{At: make([]string, 2)}
		var n int64
		var key any = &r.At[0]
		if o.number {
			key = &n
		}
		if err := rows.Scan(key, &r.ID); err != nil {
			return nil, err
		}
		if o.number {
			r.At[0] = strconv.FormatInt(n, 10)
		}
		r.At[1] = r.ID
		list = append(list, r)
	}
	return list, rows.Err()
}

// one reads one number.
func one(ctx context.Context, d *db.DB, q string, args db.Args) (n int, err error) {
	var v sql.NullInt64
	err = d.One(ctx, q, args, &v)
	return int(v.Int64), err
}
