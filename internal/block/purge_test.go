package block_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/apptest"
	"cairn/internal/block"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
)

// What a person deletes for good is nowhere in the database any more, but for the line that says so.
func TestPurgedTextIsNowhere(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		person := a.Person(t)
		secret := create(t, a, ctx, m{"title": "Zephyrine title", "content": "The zephyrine word.\n\nAnother one.", "external_ref": "zephyrine-ref"})
		garden := create(t, a, ctx, m{"title": "Garden", "type": "tag"})
		child := create(t, a, ctx, m{"title": "Child", "content": "See [that](cairn:block/" + secret.ID + ")"})
		a.Call(t, ctx, "add_relation", say(m{"from": secret.ID, "to": garden.ID, "kind": "tag"}))
		a.Call(t, ctx, "set_property", say(m{"block_id": secret.ID, "key": "zephyrine key", "value": "zephyrine value"}))
		hash := edit(t, a, ctx, secret.ID).Hash
		for i := range 5 {
			hash = call[written](t, a, ctx, "patch_document", m{"block_id": secret.ID, "base_hash": hash, "operations": []m{{"op": "replace", "node_id": "@1", "markdown": fmt.Sprint("The zephyrine words ", i)}}}).Hash
		}
		a.Call(t, ctx, "update_block_title", say(m{"block_id": secret.ID, "title": "Zephyrine again", "base_hash": hash}))
		a.Call(t, ctx, "undo_change", say(m{"change_id": changes(t, a, ctx, secret.ID)[0]}))
		a.Call(t, ctx, "search_blocks", `{"query":"zephyrine"}`)
		a.Fails(t, person, "purge_block", say(m{"block_id": secret.ID}), fault.Conflict)
		a.Call(t, ctx, "delete_block", say(m{"block_id": secret.ID}))
		a.Fails(t, ctx, "purge_block", say(m{"block_id": secret.ID}), fault.Denied) // an agent
		before := a.Call(t, ctx, "get_block", say(m{"block_id": secret.ID}))
		recorded := changes(t, a, ctx, secret.ID)
		a.Call(t, person, "purge_block", say(m{"block_id": secret.ID}))
		for _, tool := range []string{"get_block", "get_document", "restore_block", "get_provenance"} {
			a.Fails(t, ctx, tool, say(m{"block_id": secret.ID}), fault.NotFound)
		}
		a.Fails(t, person, "purge_block", say(m{"block_id": secret.ID}), fault.NotFound)
		if where := holding(t, a, "ephyrine"); len(where) > 0 || len(before) == 0 {
			t.Errorf("it is still in %v", where)
		}
		// The line that something was deleted for good stays, with the others of it, without their text; none can be undone.
		var p struct {
			Changes []struct{ ID, Effect, Actor, Summary string }
		}
		apptest.Decode(t, a.Call(t, person, "list_changes", say(m{"thing": secret.ID})), &p)
		if len(p.Changes) != len(recorded)+1 || p.Changes[0].Effect != "purge" || p.Changes[0].Summary != "Deleted a note for good" || p.Changes[0].Actor == p.Changes[1].Actor {
			t.Errorf("%+v", p)
		}
		for _, c := range p.Changes {
			u := call[undoing](t, a, person, "undo_change", m{"change_id": c.ID})
			if len(u.Undone) != 0 || len(u.Left) != 1 || !strings.Contains(u.Left[0].Why, "for good") {
				t.Errorf("%s: %+v", c.Effect, u)
			}
		}
		// Those beside it are what they were: the mention's text stays, the link is gone, and so is the parent.
		if got := edit(t, a, ctx, child.ID); got.Hash != child.Hash {
			t.Errorf("%+v", got)
		}
		if got := relationsOf(t, a, ctx, child.ID); len(got) != 0 {
			t.Errorf("%v", got)
		}
		if got := call[list](t, a, ctx, "list_blocks", `{"unlinked":true}`).titles(); !slices.Equal(got, []string{"Child", "Garden"}) {
			t.Errorf("%v", got)
		}
		again := create(t, a, ctx, m{"title": "New", "external_ref": "zephyrine-ref"})
		if again.Result != "created" {
			t.Errorf("%+v", again)
		}
	})
}

// A tag that is deleted for good leaves its children, and what they say of it.
func TestPurgedTagLeavesItsChildren(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		up := create(t, a, ctx, m{"title": "Up", "type": "tag"})
		child := create(t, a, ctx, m{"title": "Child", "tags": []string{up.ID}})
		var heard []string
		blocks := block.New(a.DB, nil, nil)
		blocks.Purged = append(blocks.Purged, func(_ context.Context, tx *db.Tx, heap, id string) error {
			var n int
			err := tx.One(`SELECT count(*) FROM block WHERE id = $1 AND heap = $2`, []any{id, heap}, &n)
			heard = append(heard, fmt.Sprint(id, n))
			return err
		})
		a.Call(t, ctx, "delete_block", say(m{"block_id": up.ID}))
		runner := op.NewRunner(slog.New(slog.DiscardHandler), blocks.Ops()...)
		if _, err := runner.Run(a.Person(t), "purge_block", json.RawMessage(say(m{"block_id": up.ID}))); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(heard, []string{up.ID + "1"}) {
			t.Errorf("%v", heard)
		}
		got := call[struct {
			Block struct{ Tags []ref }
		}](t, a, ctx, "get_block", m{"block_id": child.ID})
		if len(got.Block.Tags) != 0 {
			t.Errorf("%+v", got)
		}
		// Taking back what gave the child its parent says why that can't be.
		u := call[undoing](t, a, ctx, "undo_change", m{"change_id": changes(t, a, ctx, child.ID)[0]})
		if len(u.Undone) != 1 {
			t.Errorf("%+v", u)
		}
	})
}

// holding gives the tables in which a text stands, in any column.
func holding(t *testing.T, a *apptest.App, text string) (where []string) {
	t.Helper()
	q := `SELECT name FROM sqlite_master WHERE type = 'table'`
	if a.DB.Postgres() {
		q = `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()`
	}
	rows, err := a.DB.Query(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, name)
	}
	_ = rows.Close()
	for _, table := range tables {
		rows, err := a.DB.Query(context.Background(), `SELECT * FROM `+table)
		if err != nil {
			t.Fatal(err)
		}
		columns, _ := rows.Columns()
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			if err := rows.Scan(values...); err != nil {
				t.Fatal(err)
			}
			for i, v := range values {
				if strings.Contains(fmt.Sprintf("%s", *v.(*any)), text) {
					where = append(where, table+"."+columns[i])
				}
			}
		}
		_ = rows.Close()
	}
	return where
}

// A mention that is written at the very moment its block is deleted for good leaves no relation to nothing: the note would never be
// unlinked again.
func TestMentionWrittenAtThePurge(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		for range 15 {
			to := create(t, a, ctx, m{"title": "to"})
			a.Call(t, ctx, "delete_block", say(m{"block_id": to.ID}))
			var wait sync.WaitGroup
			for i := range 6 {
				from := create(t, a, ctx, m{"title": "from"})
				wait.Go(func() {
					time.Sleep(time.Duration(i) * time.Millisecond)
					if _, err := a.Runner.Run(ctx, "replace_document", []byte(say(m{"block_id": from.ID, "base_hash": from.Hash, "content": "[to](cairn:block/" + to.ID + ")", "confirm_rebuild": true}))); err != nil {
						t.Error(err)
					}
				})
			}
			time.Sleep(time.Millisecond)
			a.Call(t, a.Person(t), "purge_block", say(m{"block_id": to.ID}))
			wait.Wait()
			var n int
			if err := a.DB.One(t.Context(), `SELECT count(*) FROM relation WHERE to_block = $1`, []any{to.ID}, &n); err != nil || n > 0 {
				t.Fatalf("%d relations to a block that is gone, %v", n, err)
			}
		}
	})
}
