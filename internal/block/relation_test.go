package block_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"cairn/internal/apptest"
	"cairn/internal/fault"
)

type relations struct {
	Count     int
	Relations []struct {
		Direction, Kind, Origin string
		Block                   ref
	}
	NextCursor string `json:"next_cursor"`
}

// ends words relations as "out tag set Title".
func (r relations) ends() (all []string) {
	for _, l := range r.Relations {
		all = append(all, l.Direction+" "+l.Kind+" "+l.Origin+" "+l.Block.Title)
	}
	slices.Sort(all)
	return all
}

func relationsOf(t *testing.T, a *apptest.App, ctx context.Context, id string) []string {
	t.Helper()
	return call[relations](t, a, ctx, "list_relations", m{"block_id": id}).ends()
}

func TestTagsAreParentsAndNeverACircle(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		top, mid := create(t, a, ctx, `{"type":"tag","title":"Top"}`), create(t, a, ctx, `{"type":"tag","title":"Mid","tags":["top"]}`)
		leaf := create(t, a, ctx, m{"title": "Leaf", "tags": []string{mid.ID, "MID"}})
		if len(leaf.Block.Tags) != 1 || leaf.Block.Tags[0].Title != "Mid" || mid.Block.Tags[0].ID != top.ID {
			t.Errorf("%+v %+v", leaf, mid)
		}
		tag := func(from, to string) string { return say(m{"from": from, "to": to, "kind": "tag"}) }
		a.Fails(t, ctx, "add_relation", tag(top.ID, mid.ID), fault.Conflict)
		a.Fails(t, ctx, "add_relation", tag(top.ID, top.ID), fault.Invalid)
		a.Fails(t, ctx, "add_relation", tag(top.ID, leaf.ID), fault.Invalid) // a note is nobody's parent
		a.Fails(t, ctx, "create_block", `{"tags":["nosuch"]}`, fault.NotFound)
		a.Fails(t, ctx, "create_block", `{"tags":[""]}`, fault.Invalid)
		if got := relationsOf(t, a, ctx, mid.ID); !slices.Equal(got, []string{"in tag set Leaf", "out tag set Top"}) {
			t.Errorf("%v", got)
		}
		add := call[struct{ Result string }](t, a, ctx, "add_relation", tag(leaf.ID, top.ID))
		again := call[struct{ Result string }](t, a, ctx, "add_relation", tag(leaf.ID, top.ID))
		if add.Result != "created" || again.Result != "existing" {
			t.Error(add, again)
		}
		if got := call[list](t, a, ctx, "list_blocks", `{"tag":"Top"}`).titles(); !slices.Equal(got, []string{"Leaf", "Mid"}) {
			t.Errorf("%v", got)
		}
		if got := call[list](t, a, ctx, "search_blocks", `{"query":"leaf","tag":"Mid","type":"note"}`).titles(); !slices.Equal(got, []string{"Leaf"}) {
			t.Errorf("%v", got)
		}
		tags := call[struct {
			Tags []struct {
				Title    string
				Parents  []ref
				Children int
			}
		}](t, a, ctx, "list_tags", `{"query":"MI"}`)
		if len(tags.Tags) != 1 || tags.Tags[0].Children != 1 || tags.Tags[0].Parents[0].Title != "Top" {
			t.Errorf("%+v", tags)
		}
		gone := call[struct{ Result string }](t, a, ctx, "remove_relation", tag(leaf.ID, mid.ID))
		never := call[struct{ Result string }](t, a, ctx, "remove_relation", tag(leaf.ID, mid.ID))
		if gone.Result != "removed" || never.Result != "absent" {
			t.Error(gone, never)
		}
		create(t, a, ctx, `{"type":"tag","title":"Mid"}`)
		if f := a.Fails(t, ctx, "list_blocks", `{"tag":"mid"}`, fault.Conflict); f.Body()["candidates"] == nil {
			t.Errorf("%+v", f.Body())
		}
	})
}

func TestTwoWritesMakeACircleTogether(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		for range 10 {
			x, y := create(t, a, ctx, `{"type":"tag","title":"x"}`), create(t, a, ctx, `{"type":"tag","title":"y"}`)
			var wg sync.WaitGroup
			var mu sync.Mutex
			made := 0
			for _, p := range [][2]string{{x.ID, y.ID}, {y.ID, x.ID}} {
				wg.Go(func() {
					_, err := a.Runner.Run(ctx, "add_relation", json.RawMessage(say(m{"from": p[0], "to": p[1], "kind": "tag"})))
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						made++
					} else if !fault.Is(err, fault.Conflict) {
						t.Error(err)
					}
				})
			}
			if wg.Wait(); made != 1 {
				t.Errorf("%d of the two were made", made)
			}
		}
	})
}

func TestMentionsInContentAreRelations(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		b, c := create(t, a, ctx, `{"title":"B"}`), create(t, a, ctx, `{"title":"C"}`)
		elsewhere := create(t, a, ctx, `{"title":"Elsewhere","heap":"Work"}`)
		o := create(t, a, ctx, m{"title": "A", "content": "See [B](cairn:block/" + b.ID + "), again [B](cairn:block/" + b.ID + "), [E](cairn:block/" + elsewhere.ID + ") and [nobody](cairn:block/none).\n\n![C](cairn:block/" + c.ID + ")\n\n[scan](cairn:file/f1)"})
		if got := relationsOf(t, a, ctx, o.ID); !slices.Equal(got, []string{"out mention content B", "out mention content C"}) {
			t.Errorf("%v", got)
		}
		got := call[struct {
			Relations, Backlinks []struct{ Block ref }
			Files                []string
		}](t, a, ctx, "get_block", m{"block_id": b.ID})
		if len(got.Backlinks) != 1 || got.Backlinks[0].Block.ID != o.ID || len(got.Relations) != 0 || len(got.Files) != 0 {
			t.Errorf("%+v", got)
		}
		if whole := call[struct{ Files []string }](t, a, ctx, "get_block", m{"block_id": o.ID}); !slices.Equal(whole.Files, []string{"f1"}) {
			t.Errorf("%+v", whole)
		}
		a.Fails(t, ctx, "remove_relation", say(m{"from": o.ID, "to": b.ID, "kind": "mention"}), fault.Conflict)
		if got := call[list](t, a, ctx, "list_blocks", `{"unlinked":true}`).titles(); !slices.Equal(got, []string{"Elsewhere"}) {
			t.Errorf("%v", got)
		}
		d := edit(t, a, ctx, o.ID)
		w := call[written](t, a, ctx, "patch_document", m{"block_id": o.ID, "base_hash": d.Hash, "operations": []m{{"op": "replace", "node_id": "@1", "markdown": "Nothing."}}})
		if got := relationsOf(t, a, ctx, o.ID); !slices.Equal(got, []string{"out mention content C"}) {
			t.Errorf("%v", got)
		}
		a.Call(t, ctx, "restore_version", say(m{"block_id": o.ID, "version": 1, "base_hash": w.Hash}))
		if got := relationsOf(t, a, ctx, b.ID); !slices.Equal(got, []string{"in mention content A"}) {
			t.Errorf("%v", got)
		}
		a.Call(t, ctx, "add_relation", say(m{"from": c.ID, "to": b.ID, "kind": "mention"}))
		a.Call(t, ctx, "delete_block", say(m{"block_id": o.ID}))
		if got := relationsOf(t, a, ctx, b.ID); !slices.Equal(got, []string{"in mention set C"}) {
			t.Errorf("%v", got)
		}
		a.Fails(t, ctx, "add_relation", say(m{"from": c.ID, "to": elsewhere.ID, "kind": "mention"}), fault.Conflict)
	})
}

func TestRelationsArePaged(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		top := create(t, a, ctx, `{"type":"tag","title":"Top"}`)
		hub := create(t, a, ctx, `{"type":"tag","title":"Hub","tags":["Top"]}`)
		for range 7 {
			create(t, a, ctx, m{"title": "x", "tags": []string{hub.ID}, "content": "[h](cairn:block/" + hub.ID + ")"})
		}
		seen, cursor := map[string]bool{}, ""
		for range 20 {
			p := call[relations](t, a, ctx, "list_relations", m{"block_id": hub.ID, "limit": 2, "cursor": cursor})
			for _, l := range p.Relations {
				key := l.Direction + l.Kind + l.Block.ID
				if seen[key] {
					t.Errorf("%s comes twice", key)
				}
				seen[key] = true
			}
			if cursor = p.NextCursor; cursor == "" {
				break
			}
		}
		if len(seen) != 15 {
			t.Errorf("%d relations", len(seen))
		}
		if got := call[relations](t, a, ctx, "list_relations", m{"block_id": hub.ID, "direction": "out"}).ends(); !slices.Equal(got, []string{"out tag set Top"}) || top.ID == "" {
			t.Errorf("%v", got)
		}
	})
}

func TestPropertiesAreTyped(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		o, p := create(t, a, ctx, `{"title":"T"}`), create(t, a, ctx, `{"title":"Other"}`)
		elsewhere := create(t, a, ctx, `{"title":"Elsewhere","heap":"Work"}`)
		set := func(key string, v any, kind string) m {
			args := m{"block_id": o.ID, "key": key, "value": v}
			if kind != "" {
				args["type"] = kind
			}
			return args
		}
		for _, c := range []struct {
			args m
			kind string
		}{
			{set("a", "open", ""), "text"}, {set("b", 3.50, ""), "number"}, {set("c", true, ""), "bool"}, {set("d", "2026-08-31", "date"), "date"},
			{set("e", "high", "select"), "select"}, {set("f", "https://example.org/x", "url"), "url"}, {set("g", strings.ToUpper(p.ID), "reference"), "reference"},
			{set("d", "2026-09-01", ""), "date"}, // keeps its type
		} {
			got := call[one](t, a, ctx, "set_property", c.args)
			found := false
			for _, have := range got.Block.Properties {
				found = found || have.Key == c.args["key"] && have.Type == c.kind
			}
			if !found || got.Result != "updated" {
				t.Errorf("%v: %+v", c.args, got.Block.Properties)
			}
		}
		if got := call[one](t, a, ctx, "set_property", set("b", 3.5, "")); got.Result != "existing" {
			t.Errorf("%+v", got)
		}
		for _, bad := range []m{set("d", "31.8.", ""), set("x", "y", "number"), set("x", 1, "text"), set("x", "javascript:alert(1)", "url"), set("x", elsewhere.ID, "reference"),
			set("x", "none", "reference"), set("x", strings.Repeat("é", 2001), ""), set("x", []int{1}, ""), set("x", m{}, ""), set("x", "a\x00b", ""), set("x", "yes", "bool"), set("c", "yes", "")} {
			a.Fails(t, ctx, "set_property", say(bad), fault.Invalid)
		}
		if got := call[one](t, a, ctx, "remove_property", m{"block_id": o.ID, "key": "a"}); len(got.Block.Properties) != 6 {
			t.Errorf("%+v", got)
		}
		if got := call[one](t, a, ctx, "remove_property", m{"block_id": o.ID, "key": "a"}); got.Result != "existing" {
			t.Errorf("%+v", got)
		}
	})
}
