package block_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"cairn/internal/apptest"
	"cairn/internal/fault"
)

// Whatever comes and goes between blocks, those without a relation are those that the filter unlinked gives.
func TestUnlinkedFollowsRelations(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		unlinked := func(want ...string) {
			t.Helper()
			got := call[list](t, a, ctx, "list_blocks", `{"unlinked":true}`).titles()
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%v, not %v", got, want)
			}
		}
		x, y, z := create(t, a, ctx, `{"title":"x"}`), create(t, a, ctx, `{"title":"y"}`), create(t, a, ctx, `{"title":"z","type":"tag"}`)
		work := create(t, a, ctx, `{"title":"work","heap":"Work"}`)
		unlinked("work", "x", "y", "z")
		w := call[written](t, a, ctx, "replace_document", m{"block_id": x.ID, "base_hash": x.Hash, "confirm_rebuild": true,
			"content": "[y](cairn:block/" + y.ID + ") and, in a heap apart, [w](cairn:block/" + work.ID + ")"})
		unlinked("work", "z") // another heap's block isn't linked by what this one's says
		a.Call(t, ctx, "add_relation", say(m{"from": x.ID, "to": z.ID, "kind": "tag"}))
		unlinked("work")
		w = call[written](t, a, ctx, "replace_document", m{"block_id": x.ID, "base_hash": w.Hash, "confirm_rebuild": true, "content": "nothing"})
		unlinked("work", "y")
		a.Call(t, ctx, "remove_relation", say(m{"from": x.ID, "to": z.ID, "kind": "tag"}))
		unlinked("work", "x", "y", "z")
		a.Call(t, ctx, "undo_change", say(m{"change_id": changes(t, a, ctx, x.ID)[0]}))
		unlinked("work", "y")
		a.Call(t, ctx, "undo_change", say(m{"change_id": changes(t, a, ctx, x.ID)[2]})) // what it mentioned
		unlinked("work")
		a.Call(t, ctx, "restore_version", say(m{"block_id": x.ID, "version": 1, "base_hash": edit(t, a, ctx, x.ID).Hash}))
		a.Call(t, ctx, "delete_block", say(m{"block_id": y.ID}))
		unlinked("work")
		if got := call[list](t, a, ctx, "list_blocks", `{"unlinked":true,"trashed":true}`).titles(); !slices.Equal(got, []string{"y"}) {
			t.Errorf("%v", got)
		}
	})
}

// Two writes that take away the last two relations of a block at once leave it unlinked, and one that adds one leaves it linked.
func TestUnlinkedUnderWritesAtOnce(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		for round := range 10 {
			to := create(t, a, ctx, m{"title": fmt.Sprint("to ", round)})
			var wait sync.WaitGroup
			for range 4 {
				o := create(t, a, ctx, m{"title": "from", "content": "[to](cairn:block/" + to.ID + ")"})
				wait.Go(func() {
					if _, err := a.Runner.Run(ctx, "replace_document", []byte(say(m{"block_id": o.ID, "base_hash": o.Hash, "content": "x", "confirm_rebuild": true}))); err != nil {
						t.Error(err)
					}
				})
			}
			wait.Wait()
			if got := call[list](t, a, ctx, "list_blocks", `{"unlinked":true,"limit":200}`).titles(); !slices.Contains(got, fmt.Sprint("to ", round)) || len(got) != 5*(round+1) {
				t.Fatalf("%d: %v", round, got)
			}
		}
	})
}

func TestListOfBlocksByProperties(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		for i, title := range []string{"a", "b", "c"} {
			o := create(t, a, ctx, m{"title": title, "heap": []string{"Personal", "Work", "Personal"}[i]})
			a.Call(t, ctx, "set_property", say(m{"block_id": o.ID, "key": "due", "type": "date", "value": fmt.Sprintf("2026-08-0%d", i+1)}))
			a.Call(t, ctx, "set_property", say(m{"block_id": o.ID, "key": "n", "value": i}))
		}
		for conditions, want := range map[string][]string{
			`[{"key":"due","op":"before","value":"2026-08-03"}]`:                                      {"b", "a"},
			`[{"key":"n","op":"greater","value":0},{"key":"due","op":"is_not","value":"2026-08-03"}]`: {"b"},
			`[{"key":"n","op":"is","value":"1"}]`:                                                     {},
			`[{"key":"n","op":"is","value":1.0}]`:                                                     {"b"},
			`[{"key":"nosuch","op":"empty"}]`:                                                         {"c", "b", "a"},
			`[{"key":"due","op":"contains","value":"08-0"},{"key":"due","op":"not_empty"}]`:           {"c", "b", "a"},
		} {
			if got := call[list](t, a, ctx, "list_blocks", `{"properties":`+conditions+`}`).titles(); !slices.Equal(got, want) {
				t.Errorf("%s: %v, not %v", conditions, got, want)
			}
		}
		for _, bad := range []string{`[{"key":"n"}]`, `[{"key":"n","op":"like","value":1}]`, `[{"key":"n","op":"is"}]`, `[{"key":"","op":"empty"}]`, `[{"key":"n","op":"is","value":[1]}]`, `[{"key":"n","op":"empty","wrong":1}]`} {
			a.Fails(t, ctx, "list_blocks", `{"properties":`+bad+`}`, fault.Invalid)
		}
		// Undoing a property's change takes the block out of what is found by it.
		o := create(t, a, ctx, `{"title":"d"}`)
		a.Call(t, ctx, "set_property", say(m{"block_id": o.ID, "key": "n", "value": 9}))
		a.Call(t, ctx, "undo_change", say(m{"change_id": changes(t, a, ctx, o.ID)[0]}))
		if got := call[list](t, a, ctx, "list_blocks", `{"properties":[{"key":"n","op":"greater","value":5}]}`); got.Count != 0 {
			t.Errorf("%+v", got)
		}
	})
}
