package filter_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cairn/internal/block/filter"
	"cairn/internal/db"
	"cairn/internal/db/dbtest"
	"cairn/internal/fault"
	"cairn/internal/who"
)

// piece is a block as the test knows it.
type piece struct {
	id, kind, title  string
	updated, created int64
	pinned, trashed  bool
	tags             []string
	props            map[string]value
}

type value struct {
	kind string
	json string
}

// orders compares values as they are to be ordered: bools, numbers, texts.
func (v value) order(o value) int {
	rank := func(v value) int {
		switch {
		case v.json[0] == '"':
			return 2
		case v.json[0] == 't' || v.json[0] == 'f':
			return 0
		}
		return 1
	}
	if c := cmp.Compare(rank(v), rank(o)); c != 0 {
		return c
	}
	if rank(v) == 1 {
		a, _ := strconv.ParseFloat(v.json, 64)
		b, _ := strconv.ParseFloat(o.json, 64)
		return cmp.Compare(a, b)
	}
	return cmp.Compare(first(v.text()), first(o.text()))
}

// first is what texts are ordered by: 120 characters.
func first(text string) string {
	if r := []rune(text); len(r) > 120 {
		return string(r[:120])
	}
	return text
}

func (v value) same(o value) bool {
	return v.sort() == o.sort() && v.order(o) == 0 && (v.json[0] != '"' || v.text() == o.text())
}

func (v value) text() string {
	var s string
	if json.Unmarshal([]byte(v.json), &s) != nil {
		return v.json
	}
	return who.Fold(s)
}

func (v value) sort() byte {
	switch v.json[0] {
	case '"', 't', 'f':
		return v.json[0] & 0x5f
	}
	return '0'
}

func (p piece) meets(c filter.Condition) bool {
	v, has := p.props[c.Key]
	to := value{json: string(c.Value)}
	switch c.Op {
	case "empty":
		return !has
	case "not_empty":
		return has
	case "is":
		return has && v.same(to)
	case "is_not":
		return !has || !v.same(to)
	case "contains":
		return has && strings.Contains(v.text(), to.text())
	}
	if !has || (v.json[0] == '"') != (to.json[0] == '"') || v.json[0] == 't' || v.json[0] == 'f' || (c.Op == "before" || c.Op == "after") && v.kind != "date" {
		return false
	}
	if c.Op == "less" || c.Op == "before" {
		return v.order(to) < 0
	}
	return v.order(to) > 0
}

func (p piece) in(q filter.Query, linked map[string]bool) bool {
	if q.Group != nil {
		v, has := p.props[q.Group.Key]
		has = has && (v.kind == "select" || v.kind == "bool")
		head := ""
		if has {
			head, _ = filter.Head(json.RawMessage(v.json))
		}
		if head != q.Group.Head {
			return false
		}
	}
	return p.trashed == q.Trashed && (q.Type == "" || q.Type == p.kind) && (!q.Pinned || p.pinned) && (!q.Unlinked || !linked[p.id]) &&
		(len(q.Tags) == 0 || slices.ContainsFunc(q.Tags, func(t string) bool { return slices.Contains(p.tags, t) })) &&
		(q.Title == "" || strings.Contains(who.Fold(p.title), q.Title)) && (q.Among == nil || slices.Contains(q.Among, p.id)) &&
		!slices.ContainsFunc(q.Properties, func(c filter.Condition) bool { return !p.meets(c) })
}

func (p piece) order(o piece, s filter.Sort) int {
	id := cmp.Compare(p.id, o.id)
	c := 0
	switch s.By {
	case "updated":
		c = cmp.Or(cmp.Compare(p.updated, o.updated), id)
	case "created":
		c = cmp.Or(cmp.Compare(p.created, o.created), id)
	case "title":
		c = cmp.Or(cmp.Compare(who.Fold(p.title), who.Fold(o.title)), id)
	case "property":
		a, has := p.props[s.Key]
		b, had := o.props[s.Key]
		switch {
		case has && had:
			c = cmp.Or(a.order(b), id)
		case has:
			return -1
		case had:
			return 1
		default:
			return -cmp.Or(cmp.Compare(p.updated, o.updated), id)
		}
	}
	if s.Descending {
		return -c
	}
	return c
}

var (
	some   = []string{`"open"`, `"Open"`, `"done"`, `"STRASSE"`, `"straße"`, `"2026-08-31"`, `"2025-01-01"`, `"a%b_c"`, `""`, `true`, `false`, `0`, `-1`, `-2.5`, `3`, `10`, `1e300`, `"10"`, `"` + strings.Repeat("x", 119) + `ya"`, `"` + strings.Repeat("x", 119) + `yb"`}
	keys   = []string{"k", "due", "K"}
	titles = []string{"Alpha", "alpha 7", "Zürich", "a_b", "a%b", "", "77", "日本"}
)

func draw[T any](t *rapid.T, from []T, name string) T { return rapid.SampledFrom(from).Draw(t, name) }

func pieces(t *rapid.T) []piece {
	list := make([]piece, rapid.IntRange(0, 40).Draw(t, "blocks"))
	for i := range list {
		p := &list[i]
		*p = piece{id: fmt.Sprintf("b%03d", i), kind: draw(t, []string{"note", "note", "tag"}, "type"), title: draw(t, titles, "title"), created: rapid.Int64Range(0, 9).Draw(t, "created"),
			updated: rapid.Int64Range(0, 9).Draw(t, "updated"), pinned: rapid.IntRange(0, 4).Draw(t, "pinned") == 0, trashed: rapid.IntRange(0, 5).Draw(t, "trashed") == 0, props: map[string]value{}}
		if i > 2 && rapid.Bool().Draw(t, "tagged") {
			p.tags = append(p.tags, list[rapid.IntRange(0, 2).Draw(t, "tag")].id)
		}
		for _, k := range keys {
			if v := draw(t, some, "value"); rapid.Bool().Draw(t, "has "+k) {
				kind := map[bool]string{true: draw(t, []string{"text", "select"}, "kind"), false: "number"}[v[0] == '"']
				if v[0] == 't' || v[0] == 'f' {
					kind = "bool"
				}
				if strings.HasPrefix(v, `"20`) {
					kind = "date"
				}
				p.props[k] = value{kind, v}
			}
		}
	}
	return list
}

func query(t *rapid.T, list []piece) filter.Query {
	q := filter.Query{Heap: "h", Sort: filter.Sort{By: draw(t, []string{"updated", "created", "title", "property"}, "by"), Key: draw(t, keys, "sort key"), Descending: rapid.Bool().Draw(t, "descending")}}
	maybe := func(name string, f func()) {
		if rapid.IntRange(0, 3).Draw(t, name) == 0 {
			f()
		}
	}
	maybe("type?", func() { q.Type = draw(t, []string{"note", "tag"}, "type") })
	maybe("tag?", func() { q.Tags = draw(t, [][]string{{"b000"}, {"b000", "b001"}}, "tags") })
	maybe("title?", func() { q.Title = draw(t, []string{"a", "7", "%", "_"}, "title") })
	maybe("pinned?", func() { q.Pinned = true })
	maybe("unlinked?", func() { q.Unlinked = true })
	maybe("trashed?", func() { q.Trashed = true })
	maybe("group?", func() {
		head, _ := filter.Head(json.RawMessage(draw(t, some, "group")))
		q.Group = &filter.Group{Key: draw(t, keys, "group by"), Head: draw(t, []string{"", head}, "head")}
	})
	maybe("among?", func() {
		q.Among = []string{}
		for _, p := range list {
			if rapid.Bool().Draw(t, "in") {
				q.Among = append(q.Among, p.id)
			}
		}
	})
	for range rapid.IntRange(0, 3).Draw(t, "conditions") {
		c := filter.Condition{Key: draw(t, keys, "key"), Op: draw(t, []string{"is", "is_not", "contains", "less", "greater", "before", "after", "empty", "not_empty"}, "op"), Value: json.RawMessage(draw(t, some, "to"))}
		if c.Op == "empty" || c.Op == "not_empty" {
			c.Value = nil
		}
		if c, err := c.Check("properties"); err == nil {
			q.Properties = append(q.Properties, c)
		}
	}
	return q
}

// Whatever is asked, by whichever way, all pages together are what a plain look at each block gives, in order, each once.
func TestPagesAreWhatAPlainLookGives(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := context.Background()
		if err := d.Write(ctx, heap); err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(r *rapid.T) {
			bounds := draw(r, [][2]int{{filter.Most, 2000}, {3, 5}, {12, 3}, {0, 2}}, "bounds")
			filter.Bounds(t, bounds[0], bounds[1])
			list := pieces(r)
			linked := store(r, d, list)
			for range 4 {
				q := query(r, list)
				var want []string
				for _, p := range slices.SortedFunc(slices.Values(list), func(a, b piece) int { return a.order(b, q.Sort) }) {
					if p.in(q, linked) {
						want = append(want, p.id)
					}
				}
				var got []string
				var after []string
				limit := rapid.IntRange(1, 7).Draw(r, "limit")
				for range 200 {
					p, err := filter.Find(ctx, d, q, after, limit)
					if err != nil {
						r.Fatal(err)
					}
					if len(p.Rows) > limit {
						r.Fatalf("%d rows, at most %d", len(p.Rows), limit)
					}
					for _, row := range p.Rows {
						got = append(got, row.ID)
					}
					if after = p.Next; after == nil {
						break
					}
				}
				if !slices.Equal(got, want) {
					r.Fatalf("%+v\ngot  %v\nwant %v", q, got, want)
				}
				n, more, err := filter.Count(ctx, d, q, 1000)
				if err != nil || n > len(want) || !more && n != len(want) {
					r.Fatalf("%+v: %d, more %v, want %d: %v", q, n, more, len(want), err)
				}
			}
		})
	})
}

// store puts blocks in the place of those there are, and gives which of them are linked.
func store(t *rapid.T, d *db.DB, list []piece) map[string]bool {
	linked := map[string]bool{}
	err := d.Write(context.Background(), func(tx *db.Tx) error {
		for _, table := range []string{"relation", "property", "block"} {
			if _, err := tx.Exec(`DELETE FROM ` + table); err != nil {
				return err
			}
		}
		var rows, tags, props [][]any
		ids := []string{"nosuch"}
		for _, p := range list {
			var gone *int64
			if p.trashed {
				gone = &p.updated
			}
			rows = append(rows, []any{p.id, "h", p.kind, p.title, who.Fold(p.title), "x", "x", 1, "a", p.updated, p.created, db.Flag(p.pinned), gone})
			for _, to := range p.tags {
				tags = append(tags, []any{p.id, to, "tag", "set", 1})
				linked[p.id], linked[to] = true, true
				ids = append(ids, p.id, to)
			}
			for k, v := range p.props {
				head, folded := filter.Head(json.RawMessage(v.json))
				props = append(props, []any{p.id, "h", k, v.kind, v.json, head, folded})
			}
		}
		if err := many(tx, `INSERT INTO block (id, heap, type, title, title_folded, hash, content_hash, version, actor, updated_at, created_at, pinned, trashed_at) VALUES `, rows); err != nil {
			return err
		}
		if err := many(tx, `INSERT INTO relation (from_block, to_block, kind, origin, at) VALUES `, tags); err != nil {
			return err
		}
		if err := filter.Linked(tx, ids...); err != nil {
			return err
		}
		return many(tx, `INSERT INTO property (block, heap, key, type, value, head, folded) VALUES `, props)
	})
	if err != nil {
		t.Fatal(err)
	}
	return linked
}

// Heads are in the order of their values.
func TestHeadsAreInTheOrderOfValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := rapid.OneOf(rapid.Map(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64), func(f float64) string { b, _ := json.Marshal(f); return string(b) }),
			rapid.Map(rapid.StringN(0, 100, 400), func(s string) string { b, _ := json.Marshal(s); return string(b) }), rapid.SampledFrom(some))
		a, b := value{json: one.Draw(t, "a")}, value{json: one.Draw(t, "b")}
		x, _ := filter.Head(json.RawMessage(a.json))
		y, _ := filter.Head(json.RawMessage(b.json))
		if cmp.Compare(x, y) != a.order(b) {
			t.Fatalf("%s %s: %q %q", a.json, b.json, x, y)
		}
	})
}

func TestConditionsThatMakeNoSense(t *testing.T) {
	for _, c := range []filter.Condition{{Op: "is"}, {Op: "is", Value: json.RawMessage(`{}`)}, {Op: "empty", Value: json.RawMessage(`1`)}, {Op: "before", Value: json.RawMessage(`"soon"`)},
		{Op: "after", Value: json.RawMessage(`5`)}, {Op: "less", Value: json.RawMessage(`true`)}, {Op: "contains", Value: json.RawMessage(`7`)}, {Op: "contains", Value: json.RawMessage(`" "`)},
		{Op: "is", Value: json.RawMessage(`"a\u0000"`)}, {Op: "is", Value: json.RawMessage(`"` + strings.Repeat("é", 2049) + `"`)}} {
		c.Key = "k"
		if _, err := c.Check("properties[0]"); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Each statement runs along indexes: none looks through a table, on either database.
func TestNoFindLooksThroughATable(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		stock(t, d, 20_000)
		for _, c := range queries() {
			places := [][]string{nil, {"5", "b000005"}}
			for _, after := range places {
				for _, s := range filter.Statements(t, d, c.q, after) {
					for _, line := range dbtest.Plan(t, d, s.Text, s.Args...) {
						if strings.Contains(line, "Seq Scan") || strings.HasPrefix(line, "SCAN b") || strings.HasPrefix(line, "SCAN p") || strings.HasPrefix(line, "SCAN r") || strings.HasPrefix(line, "SCAN s") {
							t.Errorf("%s: %s\n%s", c.name, line, s.Text)
						}
					}
				}
			}
		}
	})
}

// A board that is sorted by a property counts its groups by what they hold, not by the order.
func TestCountKnowsNoOrder(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		stock(t, d, 1000)
		q := filter.Query{Heap: "h", Sort: filter.Sort{By: "property", Key: "rare"}, Properties: []filter.Condition{{Key: "rare", Op: "not_empty"}}}
		if n, more, err := filter.Count(context.Background(), d, q, 1000); n != 20 || more || err != nil {
			t.Errorf("%d %v %v", n, more, err)
		}
	})
}
