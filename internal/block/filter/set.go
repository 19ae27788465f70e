package filter

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"cairn/internal/db"
)

// set is the blocks that meet one condition, which an index gives.
type set struct {
	at    int      // among sets; -1 = none of them
	of    []string // the conditions on properties
	n     int      // how many there are, Most+1 for more
	sql   func(args *db.Args) string
	probe func(args *db.Args) string
}

func (c Condition) name() string { return c.Key + "\n" + c.Op + "\n" + string(c.Value) }

// sets are the conditions but those on properties that an index gives the blocks of.
func (q Query) sets() (list []set) {
	add := func(sql, probe func(args *db.Args) string) {
		list = append(list, set{at: len(list), sql: sql, probe: probe})
	}
	if q.Among != nil {
		add(func(args *db.Args) string {
			return `SELECT b.id FROM block b WHERE b.id IN ` + args.List(padded(q.Among))
		},
			func(args *db.Args) string { return ` AND b.id IN ` + args.List(padded(q.Among)) })
	}
	if len(q.Tags) > 0 {
		kind := `r.kind = 'tag' AND r.to_block IN `
		distinct := map[bool]string{true: "DISTINCT "}[len(q.Tags) > 1]
		add(func(args *db.Args) string {
			return `SELECT ` + distinct + `r.from_block AS id FROM relation r WHERE ` + kind + args.List(padded(q.Tags))
		}, func(args *db.Args) string {
			return some + `relation r WHERE r.from_block = b.id AND ` + kind + args.List(padded(q.Tags)) + isSome
		})
	}
	if q.Group != nil && q.Group.Head != "" {
		meets := func(args *db.Args) string {
			return ` AND p.head = ` + args.Add(q.Group.Head) + ` AND p.type IN ` + grouping
		}
		add(func(args *db.Args) string { return q.having(q.Group.Key, meets, args) }, func(args *db.Args) string {
			return some + `property p WHERE p.block = b.id AND p.key = ` + args.Add(q.Group.Key) + meets(args) + isSome
		})
	}
	return list
}

// having words the blocks of the heap with a property that meets something.
func (q Query) having(key string, meets func(args *db.Args) string, args *db.Args) string {
	return `SELECT p.block AS id FROM property p WHERE p.heap = ` + args.Add(q.Heap) + ` AND p.key = ` + args.Add(key) + meets(args)
}

// fewest gives the condition that the fewest blocks meet, nil where none can be asked for them.
func (q Query) fewest(ctx context.Context, d *db.DB) (*set, error) {
	list := q.sets()
	for _, c := range q.Properties {
		if _, bounds := c.span(); c.not() || bounds {
			continue
		}
		one := set{at: -1, of: []string{c.name()}}
		if c.Op == "contains" { // all that have the property: no index tells more
			one.of, c.Op = nil, "not_empty"
		}
		one.sql = func(args *db.Args) string {
			return q.having(c.Key, func(args *db.Args) string { return c.meets("p", args) }, args)
		}
		list = append(list, one)
	}
	for _, s := range q.spans() {
		list = append(list, set{at: -1, of: s.of, sql: func(args *db.Args) string {
			return q.having(s.key, func(args *db.Args) string { return s.meets("p", args) }, args)
		}})
	}
	// What a block is itself: where blocks are walked newest change first, an index has these already.
	if q.order().key != "b.updated_at" || len(list) > 0 {
		for _, m := range []struct {
			on   bool
			cond func(args *db.Args) string
		}{{q.Pinned, func(*db.Args) string { return " AND b.pinned = 1" }}, {q.Unlinked, func(*db.Args) string { return " AND b.linked = 0" }},
			{q.Trashed, func(*db.Args) string { return " AND b.trashed_at IS NOT NULL" }},
			{q.Type != "", func(args *db.Args) string { return " AND b.type = " + args.Add(q.Type) }}} {
			if m.on {
				list = append(list, set{at: -1, sql: func(args *db.Args) string {
					return `SELECT b.id FROM block b WHERE b.heap = ` + args.Add(q.Heap) + m.cond(args)
				}})
			}
		}
	}
	var few *set
	for i := range list {
		s := &list[i]
		if err := s.count(ctx, d); err != nil {
			return nil, err
		}
		if few == nil || s.n < few.n {
			few = s
		}
		if few.n <= most/10 { // it won't get much better
			break
		}
	}
	return few, nil
}

func (s *set) count(ctx context.Context, d *db.DB) (err error) {
	args := db.Args{}
	s.n, err = one(ctx, d, `SELECT count(*) FROM (`+s.sql(&args)+` LIMIT `+strconv.Itoa(most+1)+`) s`, args)
	return err
}

// Values gives the first values of a property that a board has columns of, in their order.
func Values(ctx context.Context, d *db.DB, heap, key string, most int) (list []Value, err error) {
	rows, err := d.Query(ctx, `WITH RECURSIVE g(head) AS (SELECT min(p.head) FROM property p WHERE p.heap = $1 AND p.key = $2
		UNION ALL SELECT (SELECT min(p.head) FROM property p WHERE p.heap = $1 AND p.key = $2 AND p.head > g.head) FROM g WHERE g.head IS NOT NULL)
		SELECT g.head, (SELECT p.type || ' ' || p.value FROM property p WHERE p.heap = $1 AND p.key = $2 AND p.head = g.head AND p.type IN `+grouping+` LIMIT 1)
		FROM g WHERE g.head IS NOT NULL LIMIT `+strconv.Itoa(maxValues), heap, key)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() && len(list) < most {
		var head string
		var value *string
		if err := rows.Scan(&head, &value); err != nil {
			return nil, err
		}
		if value == nil {
			continue
		}
		list = append(list, Value{Head: head}.of(*value))
	}
	return list, rows.Err()
}

// maxValues is how many values of a property are looked at for those that a board has columns of.
const maxValues = 500

// Value is one that a property has.
type Value struct {
	Head, Type string
	JSON       json.RawMessage
}

func (v Value) of(text string) Value {
	for i := range text {
		if text[i] == ' ' {
			v.Type, v.JSON = text[:i], json.RawMessage(text[i+1:])
			break
		}
	}
	return v
}

// Count counts the blocks that meet a query. Of the condition that the fewest meet at most so many are looked at: more tells that
// there were others.
func Count(ctx context.Context, d *db.DB, q Query, limit int) (n int, more bool, err error) {
	q.Sort = Sort{}
	few, err := q.fewest(ctx, d)
	if err != nil {
		return 0, false, err
	}
	limit = min(limit, most)
	if few == nil {
		few = &set{at: -1, sql: func(args *db.Args) string {
			cond := ""
			if q.Type != "" {
				cond = " AND b.type = " + args.Add(q.Type)
			}
			return `SELECT b.id FROM block b WHERE b.heap = ` + args.Add(q.Heap) + cond
		}}
		if err := few.count(ctx, d); err != nil {
			return 0, false, err
		}
	}
	args := db.Args{}
	n, err = one(ctx, d, `SELECT count(few.met) FROM (`+q.met(few, "1", limit, &args)+`) few`, args)
	return n, few.n > limit, err
}

// Below gives a tag's id and those of the tags and collections below it at any depth, at most as many as most.
func Below(ctx context.Context, d *db.DB, id string, most int) ([]string, error) {
	return db.Column(d.Query(ctx, `WITH RECURSIVE down(id) AS (SELECT CAST($1 AS TEXT) UNION SELECT b.id FROM down JOIN relation r ON r.to_block = down.id AND r.kind = 'tag'
		JOIN block b ON b.id = r.from_block AND b.type IN ('tag', 'collection') AND b.trashed_at IS NULL) SELECT id FROM down LIMIT `+strconv.Itoa(most), id))
}

// Children counts the blocks right below tags: all, which an index alone tells, less those in the trash, which are few. The
// CROSS JOIN and the tag that is no column alone keep SQLite from looking at each child instead.
func Children(ctx context.Context, d *db.DB, heaps, tags []string) (map[string]int, error) {
	n := map[string]int{}
	for part := range slices.Chunk(tags, atOnce) {
		all, gone := db.Args{}, db.Args{}
		for _, q := range []struct {
			sign int
			sql  string
			args *db.Args
		}{
			{1, `SELECT r.to_block, count(*) FROM relation r WHERE r.kind = 'tag' AND r.to_block IN ` + all.List(padded(part)) + ` GROUP BY r.to_block`, &all},
			{-1, `SELECT r.to_block, count(*) FROM block b CROSS JOIN relation r
				WHERE b.trashed_at IS NOT NULL AND b.heap IN ` + gone.List(heaps) + ` AND r.from_block = b.id AND r.kind = 'tag' AND r.to_block || '' IN ` + gone.List(padded(part)) + ` GROUP BY r.to_block`, &gone},
		} {
			if err := count(ctx, d, n, q.sign, q.sql, *q.args); err != nil {
				return nil, err
			}
		}
	}
	return n, nil
}

// count adds the numbers that a statement gives by id, times sign.
func count(ctx context.Context, d *db.DB, to map[string]int, sign int, q string, args []any) error {
	rows, err := d.Query(ctx, q, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var n int
		if err := rows.Scan(&id, &n); err != nil {
			return err
		}
		to[id] += sign * n
	}
	return rows.Err()
}
