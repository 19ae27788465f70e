package block_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn/internal/apptest"
)

type undoing struct {
	Undone []struct{ Fields []string }
	Left   []struct{ Why string }
	Run    string
}

// changes gives the ids of a block's changes, newest first.
func changes(t *testing.T, a *apptest.App, ctx context.Context, id string) (ids []string) {
	t.Helper()
	for _, e := range call[provenance](t, a, ctx, "get_provenance", m{"block_id": id}).Events {
		ids = append(ids, e.ChangeID)
	}
	return ids
}

func TestEachKindOfChangeIsUndone(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		create(t, a, ctx, `{"type":"tag","title":"Tag"}`)
		o := create(t, a, ctx, m{"title": "T", "content": "one\n\ntwo"})
		other := create(t, a, ctx, `{"title":"Other"}`)
		before := string(a.Call(t, ctx, "get_block", say(m{"block_id": o.ID})))
		d := edit(t, a, ctx, o.ID)
		tagID := call[list](t, a, ctx, "list_blocks", `{"type":"tag"}`).Blocks[0].ID
		for _, c := range []struct {
			tool string
			args m
		}{
			{"patch_document", m{"base_hash": d.Hash, "operations": []m{{"op": "delete", "node_id": "@1"}}}},
			{"replace_document", m{"base_hash": d.Hash, "content": "x", "confirm_rebuild": true}},
			{"update_block_title", m{"base_hash": d.Hash, "title": "x"}},
			{"delete_block", m{}},
			{"pin_block", m{}},
			{"set_property", m{"key": "k", "value": 1}},
			{"add_relation", m{"from": o.ID, "to": tagID, "kind": "tag"}},
			{"add_relation", m{"from": o.ID, "to": other.ID, "kind": "mention"}},
		} {
			if c.args["from"] == nil {
				c.args["block_id"] = o.ID
			}
			a.Call(t, ctx, c.tool, say(c.args))
			id := changes(t, a, ctx, o.ID)[0]
			u := call[undoing](t, a, ctx, "undo_change", m{"change_id": id})
			if len(u.Undone) != 1 || len(u.Left) != 0 {
				t.Fatalf("%s: %+v", c.tool, u)
			}
			if after := string(a.Call(t, ctx, "get_block", say(m{"block_id": o.ID}))); settled(after) != settled(before) {
				t.Errorf("%s:\n%s\n%s", c.tool, before, after)
			}
			// The undoing is a change like others: undone itself, what was done is there again, and undone once more.
			redo := changes(t, a, ctx, o.ID)[0]
			if u := call[undoing](t, a, ctx, "undo_change", m{"change_id": redo}); len(u.Undone) != 1 {
				t.Errorf("%s, undoing undone: %+v", c.tool, u)
			}
			if after := string(a.Call(t, ctx, "get_block", say(m{"block_id": o.ID}))); settled(after) == settled(before) {
				t.Errorf("%s isn't there again", c.tool)
			}
			if u := call[undoing](t, a, ctx, "undo_change", m{"change_id": changes(t, a, ctx, o.ID)[0]}); len(u.Undone) != 1 {
				t.Errorf("%s, once more: %+v", c.tool, u)
			}
			if found := call[list](t, a, ctx, "search_blocks", `{"query":"two"}`); found.Count != 1 {
				t.Errorf("%s: found %d times", c.tool, found.Count)
			}
		}
		if got := edit(t, a, ctx, o.ID); got.Hash != d.Hash {
			t.Errorf("%+v", got)
		}
		a.Call(t, ctx, "undo_change", say(m{"change_id": changes(t, a, ctx, other.ID)[0]}))
		if got := call[one](t, a, ctx, "create_block", `{"external_ref":"none"}`); got.Result != "created" {
			t.Errorf("%+v", got)
		}
	})
}

// settled leaves out what every change moves on.
func settled(block string) string {
	i, j := strings.Index(block, `"version":`), strings.Index(block, `"external_ref"`)
	k, l := strings.Index(block, `"updated_at"`), strings.Index(block, `"relations"`)
	return block[:i] + block[j:k] + block[l:]
}

func TestUndoLeavesWhatOthersDidToOtherNodes(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		o := create(t, a, a.Person(t), m{"title": "T", "content": "one\n\ntwo\n\nthree"})
		d := edit(t, a, ctx, o.ID)
		put := func(ctx context.Context, hash, find, with string) written {
			i := slices.IndexFunc(d.Nodes, func(n node) bool { return strings.EqualFold(find, n.Text) })
			return call[written](t, a, ctx, "patch_document", m{"block_id": o.ID, "base_hash": hash, "operations": []m{{"op": "replace_text", "node_id": d.Nodes[i].NodeID, "find": find, "replace": with}}})
		}
		agents := put(ctx, d.Hash, "one", "ONE")
		agents = put(ctx, agents.Hash, "two", "TWO")
		a.Clock.Move(time.Minute)
		persons := put(a.Person(t), agents.Hash, "three", "THREE")
		list := changes(t, a, ctx, o.ID)
		u := call[undoing](t, a, a.Person(t), "undo_change", m{"change_id": list[2]}) // ONE
		if now := edit(t, a, ctx, o.ID); len(u.Undone) != 1 || now.text() != "one|TWO|THREE" || now.Hash == persons.Hash {
			t.Errorf("%+v %s", u, now.text())
		}
		if u := call[undoing](t, a, a.Person(t), "undo_change", m{"change_id": list[2]}); len(u.Undone) != 0 || len(u.Left) != 1 {
			t.Errorf("twice: %+v", u)
		}
		redo := changes(t, a, ctx, o.ID)[0]
		put(a.Person(t), edit(t, a, ctx, o.ID).Hash, "TWO", "2")
		if u := call[undoing](t, a, a.Person(t), "undo_change", m{"change_id": list[1]}); len(u.Undone) != 0 || len(u.Left) != 1 { // the person changed that very node
			t.Errorf("%+v", u)
		}
		call[undoing](t, a, a.Person(t), "undo_change", m{"change_id": redo})
		if now := edit(t, a, ctx, o.ID); now.text() != "ONE|2|THREE" {
			t.Error(now.text())
		}
	})
}

func TestRunOfAnAgentIsTakenBackAtOnce(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		o := create(t, a, a.Person(t), m{"title": "T", "content": "one\n\ntwo\n\nthree"})
		d := edit(t, a, ctx, o.ID)
		hash := d.Hash
		for i, n := range d.Nodes {
			hash = call[written](t, a, ctx, "patch_document", m{"block_id": o.ID, "base_hash": hash, "operations": []m{{"op": "delete", "node_id": n.NodeID}, {"op": "append_child", "node_id": "doc", "markdown": strings.Repeat("x", i+1)}}}).Hash
		}
		p := call[struct{ Changes []struct{ Run string } }](t, a, ctx, "list_changes", m{"change_id": changes(t, a, ctx, o.ID)[0]})
		u := call[undoing](t, a, a.Person(t), "undo_change", m{"run": p.Changes[0].Run})
		if now := edit(t, a, ctx, o.ID); now.Hash != d.Hash || len(u.Undone) != 3 {
			t.Errorf("%+v %s", u, now.text())
		}
		events := call[provenance](t, a, ctx, "get_provenance", m{"block_id": o.ID}).Events
		if len(events) != 7 {
			t.Fatalf("%d events", len(events))
		}
		for _, e := range events {
			if e.Version == 0 || e.After == "" {
				t.Errorf("%+v", e)
			}
			old := call[document](t, a, ctx, "read_version", m{"block_id": o.ID, "version": e.Version})
			if old.Hash != e.After {
				t.Errorf("version %d: %s, not %s", e.Version, old.Hash, e.After)
			}
		}
		back := call[undoing](t, a, a.Person(t), "undo_change", m{"run": u.Run})
		if now := edit(t, a, ctx, o.ID); now.Hash != hash || len(back.Undone) != 3 {
			t.Errorf("%+v %s", back, now.text())
		}
	})
}
