package filter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"cairn/internal/block/filter"
	"cairn/internal/db"
	"cairn/internal/db/dbtest"
	"cairn/internal/who"
)

// heap makes one with the id h.
func heap(tx *db.Tx) error {
	if _, err := tx.Exec(`INSERT INTO account (id, name, name_folded, zone, created_at) VALUES ('a', 'Stock', 'stock', 'UTC', 0)`); err != nil {
		return err
	}
	_, err := tx.Exec(`INSERT INTO heap (id, name, kind, owner, created_at, updated_at) VALUES ('h', 'H', 'other', 'a', 0, 0)`)
	return err
}

// many inserts rows, 200 at a time; begin ends in VALUES.
func many(tx *db.Tx, begin string, rows [][]any) error {
	for part := range slices.Chunk(rows, 200) {
		args, list := db.Args{}, []string{}
		for _, r := range part {
			marks := []string{}
			for _, v := range r {
				marks = append(marks, args.Add(v))
			}
			list = append(list, "("+strings.Join(marks, ", ")+")")
		}
		if _, err := tx.Exec(begin+strings.Join(list, ", "), args...); err != nil {
			return err
		}
	}
	return nil
}

// stock fills a heap with blocks: a tag of 100 each, a status, a due date for every second, a number. Every 20,000th is unlinked.
func stock(t testing.TB, d *db.DB, blocks int) {
	t.Helper()
	const some = 1000
	for from := 0; from < blocks; from += some {
		err := d.Write(context.Background(), func(tx *db.Tx) error {
			if from == 0 {
				if err := heap(tx); err != nil {
					return err
				}
			}
			var rows, tags, props [][]any
			prop := func(id, key, kind, value string) {
				head, folded := filter.Head(json.RawMessage(value))
				props = append(props, []any{id, "h", key, kind, value, head, folded})
			}
			for i := from; i < from+some; i++ {
				id, title, kind, linked := fmt.Sprintf("b%06d", i), fmt.Sprintf("Note %d", (i*7919)%blocks), "note", 1
				if i < 100 {
					kind = "tag"
				} else if i%20_000 != 19_999 {
					tags = append(tags, []any{id, fmt.Sprintf("b%06d", i%100), "tag", "set", 1})
				} else {
					linked = 0
				}
				rows = append(rows, []any{id, "h", kind, title, who.Fold(title), "x", "x", 1, "a", (i * 31) % blocks, i, linked})
				prop(id, "status", "select", `"`+[]string{"open", "done", "done", "open", "open"}[i%5]+`"`)
				prop(id, "age", "number", strconv.Itoa((i*17)%blocks))
				if i%50 == 0 {
					prop(id, "rare", "bool", "true")
				}
				if i%2 == 0 {
					prop(id, "due", "date", fmt.Sprintf(`"20%02d-%02d-%02d"`, 20+i/2%10, 1+i/20%12, 1+i%28))
				}
				if i < 5000 {
					prop(id, "old", "select", `"yes"`)
				}
			}
			if err := many(tx, `INSERT INTO block (id, heap, type, title, title_folded, hash, content_hash, version, actor, updated_at, created_at, linked) VALUES `, rows); err != nil {
				return err
			}
			if err := many(tx, `INSERT INTO relation (from_block, to_block, kind, origin, at) VALUES `, tags); err != nil {
				return err
			}
			return many(tx, `INSERT INTO property (block, heap, key, type, value, head, folded) VALUES `, props)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if d.Postgres() {
		_ = d.Write(context.Background(), func(tx *db.Tx) error { _, err := tx.Exec(`ANALYZE`); return err })
	}
}

func is(key, value string) filter.Condition {
	return filter.Condition{Key: key, Op: "is", Value: json.RawMessage(value)}
}

// BenchmarkFind measures a page among 100,000 blocks: go test ./internal/block/filter -run XXX -bench Find.
func BenchmarkFind(b *testing.B) {
	blocks := 100_000
	if n, err := strconv.Atoi(os.Getenv("CAIRN_BENCH_BLOCKS")); err == nil {
		blocks = n
	}
	databases := map[string]db.Config{"sqlite": {Dir: b.TempDir()}}
	if os.Getenv("CAIRN_TEST_POSTGRES") != "" {
		databases["postgres"] = db.Config{URL: dbtest.Postgres(b)}
	}
	for name, c := range databases {
		b.Run(name, func(b *testing.B) {
			c.Log = slog.New(slog.DiscardHandler)
			d, err := db.Open(context.Background(), c)
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			stock(b, d, blocks)
			each(b, d)
		})
	}
}

type named struct {
	name string
	q    filter.Query
}

// queries are those that a heap of stock answers.
func queries() []named {
	status := []filter.Condition{is("status", `"open"`)}
	title, age := filter.Sort{By: "title"}, filter.Sort{By: "property", Key: "age", Descending: true}
	list := []named{
		{"all", filter.Query{}},
		{"type", filter.Query{Type: "tag"}},
		{"unlinked", filter.Query{Unlinked: true}},
		{"pinned", filter.Query{Pinned: true}},
		{"trashed", filter.Query{Trashed: true}},
		{"tag", filter.Query{Tags: []string{"b000007"}}},
		{"status", filter.Query{Properties: status}},
		{"status in tag", filter.Query{Tags: []string{"b000007"}, Properties: status}},
		{"rare", filter.Query{Properties: []filter.Condition{is("rare", "true")}}},
		{"old", filter.Query{Properties: []filter.Condition{is("old", `"yes"`)}}},
		{"one age", filter.Query{Properties: []filter.Condition{is("age", "700")}}},
		{"age below", filter.Query{Properties: []filter.Condition{{Key: "age", Op: "less", Value: json.RawMessage("1000")}}}},
		{"not open", filter.Query{Properties: []filter.Condition{{Key: "status", Op: "is_not", Value: json.RawMessage(`"open"`)}}}},
		{"no due", filter.Query{Properties: []filter.Condition{{Key: "due", Op: "empty"}}}},
		{"title contains", filter.Query{Title: "77"}},
		{"by title", filter.Query{Sort: title}},
		{"notes by title", filter.Query{Sort: title, Type: "note"}},
		{"tags by title", filter.Query{Sort: title, Type: "tag"}},
		{"by created", filter.Query{Sort: filter.Sort{By: "created"}}},
		{"by age", filter.Query{Sort: age}},
		{"open by age", filter.Query{Sort: age, Properties: status}},
		{"tag by age", filter.Query{Sort: age, Tags: []string{"b000007"}}},
		{"calendar", filter.Query{Sort: filter.Sort{By: "property", Key: "due"}, Properties: []filter.Condition{{Key: "due", Op: "after", Value: json.RawMessage(`"2023-03-01"`)}, {Key: "due", Op: "before", Value: json.RawMessage(`"2023-04-01"`)}}}},
		{"group", filter.Query{Group: &filter.Group{Key: "status", Head: "topen"}}},
		{"no group", filter.Query{Group: &filter.Group{Key: "status"}}},
		{"none", filter.Query{Properties: []filter.Condition{is("status", `"open"`), {Key: "due", Op: "contains", Value: json.RawMessage(`"nosuch"`)}}}},
	}
	for i := range list {
		list[i].q.Heap = "h"
	}
	return list
}

func each(b *testing.B, d *db.DB) {
	for _, c := range queries() {
		b.Run(c.name, func(b *testing.B) {
			n := 0
			began := cpu()
			for b.Loop() {
				p, err := filter.Find(context.Background(), d, c.q, nil, 50)
				if err != nil {
					b.Fatal(err)
				}
				n = len(p.Rows)
			}
			b.ReportMetric(float64(n), "rows")
			b.ReportMetric(float64(cpu()-began)/float64(b.N)/1e6, "cpu-ms/op")
		})
	}
	b.Run("values", func(b *testing.B) {
		for b.Loop() {
			if _, err := filter.Values(context.Background(), d, "h", "status", 50); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("count", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := filter.Count(context.Background(), d, filter.Query{Heap: "h", Group: &filter.Group{Key: "status", Head: "topen"}}, 1000); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// cpu is the time that this process has computed, in nanoseconds: what counts on a machine that others use too.
func cpu() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}
