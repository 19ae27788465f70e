package file

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"cairn/internal/db"
	"cairn/internal/db/dbtest"
)

// stock fills a heap with notes and files, of which one is in the trash. The first note shows two of them.
func stock(t *testing.T, d *db.DB, blocks int) {
	t.Helper()
	err := d.Write(context.Background(), func(tx *db.Tx) error {
		for _, q := range []string{
			`INSERT INTO account (id, name, name_folded, zone, created_at) VALUES ('a', 'Stock', 'stock', 'UTC', 0)`,
			`INSERT INTO heap (id, name, kind, owner, created_at, updated_at) VALUES ('h', 'H', 'other', 'a', 0, 0)`,
			`INSERT INTO blob (sha256, object, size, media_type, thumbnails, created_at) VALUES ('x', 'x', 1, 'text/plain', 'none', 0)`,
			`INSERT INTO relation (from_block, to_block, kind, origin, at) VALUES ('b00000', 'b00007', 'file', 'content', 0), ('b00000', 'b00009', 'file', 'content', 0)`,
		} {
			if _, err := tx.Exec(q); err != nil {
				return err
			}
		}
		for i := range blocks {
			id, kind := fmt.Sprintf("b%05d", i), "note"
			if i%2 == 1 {
				kind = "file"
			}
			var trashed *int64
			if i == 9 {
				trashed = new(int64)
			}
			if _, err := tx.Exec(`INSERT INTO block (id, heap, type, title, title_folded, hash, content_hash, version, actor, created_at, updated_at, trashed_at) VALUES ($1, 'h', $4, '', '', '', '', 1, '', $2, $2, $3)`, id, i, trashed, kind); err != nil {
				return err
			}
			if kind == "note" {
				continue
			}
			if _, err := tx.Exec(`INSERT INTO file (id, sha256, name, actor, created_at) VALUES ($1, 'x', 'n', '', 0)`, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && d.Postgres() {
		err = d.Write(context.Background(), func(tx *db.Tx) error { _, err := tx.Exec(`ANALYZE`); return err })
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestNoListOfFilesPassesOthers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		stock(t, d, 8000)
		block := listIn{BlockID: "B00000"}
		for name, c := range map[string]struct {
			words  func(heaps []string, in listIn) (string, db.Args, error)
			in     listIn
			banned []string // what stands in no plan: the index that passes others
			want   string
		}{
			"of a block": {shownBy, block, []string{"block_updated", "block_type", "Seq Scan on block", "Seq Scan on file"}, "b00009 b00007"},
			"trash":      {inHeaps, listIn{Trashed: true}, []string{"block_updated", "block_type", "Seq Scan on block", "Seq Scan on file"}, "b00009"},
			"of a heap":  {inHeaps, listIn{Limit: 2}, []string{"block_updated", "Seq Scan on block", "Seq Scan on file"}, "b07999 b07997 b07995"},
		} {
			q, args, err := c.words([]string{"h"}, c.in)
			if err != nil {
				t.Fatal(err)
			}
			rows, err := scan(d.Query(context.Background(), q, args...))
			var got []string
			for _, r := range rows {
				got = append(got, r.ID)
			}
			if err != nil || strings.Join(got, " ") != c.want {
				t.Errorf("%s: %v, %v", name, got, err)
			}
			for _, line := range dbtest.Plan(t, d, q, args...) {
				for _, no := range c.banned {
					if strings.Contains(line, no) {
						t.Errorf("%s: %s", name, line)
					}
				}
			}
		}
	})
}
