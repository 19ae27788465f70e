package view_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"cairn/internal/doc"
	"cairn/internal/doc/doctest"
	"cairn/internal/doc/markdown"
	"cairn/internal/doc/view"
	"cairn/internal/fault"
)

func made(t testing.TB, md string) *doc.Doc {
	t.Helper()
	nodes, err := markdown.Read(md)
	if err != nil {
		t.Fatal(err)
	}
	d, err := doc.New("Title", nodes, doctest.IDs("n"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// within holds a view to its bounds.
func within(t interface{ Fatalf(string, ...any) }, v *view.View) {
	raw, err := json.Marshal(v)
	content, refs := 0, 0
	for _, r := range v.Rows {
		content += max(len(r.Text), len(r.Content))
		refs += len(r.Refs)
		if !utf8.ValidString(r.Text) || r.Depth >= doc.MaxLevels {
			t.Fatalf("%q on %d", r.Text, r.Depth)
		}
	}
	if err != nil || len(raw) > view.PageBytes || content > view.PageContent || len(v.Rows) > view.PageNodes || refs > view.PageRefs {
		t.Fatalf("%v: %d bytes, %d of content, %d nodes, %d references", err, len(raw), content, len(v.Rows), refs)
	}
}

// all reads a document as an agent would: page after page, by what each says comes next.
func all(t interface{ Fatalf(string, ...any) }, d *doc.Doc, limit int) (rows []view.Row) {
	ask := view.Ask{Limit: limit}
	for range 100_000 {
		v, err := view.Read(d, ask)
		if err != nil {
			t.Fatalf("%+v: %v", ask, err)
		}
		within(t, v)
		rows = append(rows, v.Rows...)
		if v.Truncation != nil {
			if len(v.Truncation.Reasons) == 0 || !v.Page.HasMore {
				t.Fatalf("%+v", v.Truncation)
			}
			next := v.Truncation.Continuation
			ask = view.Ask{Offset: next.Offset, Limit: limit, From: next.From, Byte: next.Byte}
			if next.From != "" {
				ask.Limit = 0
			}
			continue
		}
		if !v.Page.HasMore {
			return rows
		}
		ask = view.Ask{Offset: v.Page.NextOffset, Limit: limit}
	}
	t.Fatalf("no end")
	return nil
}

// same checks that rows read page by page are the whole document.
func same(t interface{ Fatalf(string, ...any) }, d *doc.Doc, rows []view.Row) {
	i := 0
	for n, level := range d.All() {
		text, refs := "", 0
		for {
			if i == len(rows) || rows[i].Type != n.Type || rows[i].Depth != level-1 || rows[i].TextFrom != len(text) {
				t.Fatalf("row %d of %d isn't %s %s", i, len(rows), n.Type, n.ID)
			}
			text += rows[i].Text
			refs += len(rows[i].Refs)
			i++
			if !rows[i-1].Cut {
				break
			}
		}
		if !n.HoldsBlocks() && len(n.Content) > 0 && text != n.Plain() || refs != len(n.Refs()) {
			t.Fatalf("%s: %q with %d references, not %q with %d", n.ID, text, refs, n.Plain(), len(n.Refs()))
		}
	}
	if i != len(rows) {
		t.Fatalf("%d rows too many", len(rows)-i)
	}
}

func TestPagesMakeUpTheDocument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := doctest.Docs("n").Draw(t, "doc")
		same(t, d, all(t, d, rapid.IntRange(0, 3).Draw(t, "limit")))
	})
	for name, d := range map[string]*doc.Doc{
		"large":  made(t, doctest.Large(1_500_000)),
		"links":  made(t, strings.Repeat("[link](https://example.org) ", 1000)+"\n\nend\n"),
		"emoji":  made(t, "# a\n\n"+strings.Repeat("👩‍👩‍👧", 5000)+"\n"),
		"escape": made(t, strings.Repeat("\x01", 40_000)),
		"many":   made(t, strings.Repeat("a\n\n", 5000)),
		"empty":  made(t, ""),
	} {
		for _, limit := range []int{0, 1, 7} {
			if name == "many" && limit == 1 {
				continue
			}
			t.Run(fmt.Sprint(name, limit), func(t *testing.T) { same(t, d, all(t, d, limit)) })
		}
	}
}

func TestTextIsNotCutWithinACharacter(t *testing.T) {
	d := made(t, strings.Repeat("👩‍👩‍👧", 5000)+"\n")
	v, err := view.Read(d, view.Ask{})
	if err != nil || len(v.Rows) != 1 || !v.Rows[0].Cut || len(v.Rows[0].Text)%len("👩‍👩‍👧") != 0 {
		t.Errorf("%d bytes, %v", len(v.Rows[0].Text), err)
	}
}

func TestPageIsToldHonestly(t *testing.T) {
	d := made(t, "# H\n\none [m](cairn:block/b)\n\n- a\n- b\n\nlast\n")
	v, err := view.Read(d, view.Ask{Offset: 1, Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	want := &view.View{Page: view.Page{Offset: 1, Limit: 2, HasMore: true, NextOffset: 3}, Rows: []view.Row{
		{Type: "paragraph", Text: "one m", Refs: []doc.Ref{{Kind: "mention", ID: "b", Label: "m", Pos: 4}}}, {Type: "bullet_list"},
		{Depth: 1, Type: "list_item"}, {Depth: 2, Type: "paragraph", Text: "a"}, {Depth: 1, Type: "list_item"}, {Depth: 2, Type: "paragraph", Text: "b"}}}
	if diff := cmp.Diff(want, v); diff != "" {
		t.Error(diff)
	}
	for _, ask := range []view.Ask{{Offset: -1}, {From: "n77"}, {From: "@99"}} {
		if _, err := view.Read(d, ask); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: %v", ask, err)
		}
	}
	if v, err := view.Read(d, view.Ask{Offset: 9}); err != nil || len(v.Rows) != 0 || v.Page.HasMore {
		t.Errorf("%+v %v", v, err)
	}
}

func TestEditViewHasWhatAPatchNeedsAndIsNeverCut(t *testing.T) {
	d := made(t, "# H\n\none **two**\n\n- [x] a\n")
	v, err := view.Edit(d, view.Ask{})
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := json.Marshal(v.Rows)
	want := `[{"depth":0,"type":"heading","node_id":"n1","agent_id":"@1","patch_target":true,"attrs":{"level":1},"text":"H"},` +
		`{"depth":0,"type":"paragraph","node_id":"n2","agent_id":"@2","patch_target":true,"content":[{"text":"one ","type":"text"},{"marks":[{"type":"bold"}],"text":"two","type":"text"}]},` +
		`{"depth":0,"type":"bullet_list","node_id":"n3","agent_id":"@3","patch_target":true},{"depth":1,"type":"task_item","node_id":"n4","agent_id":"@4","patch_target":true,"attrs":{"checked":true}},` +
		`{"depth":2,"type":"paragraph","node_id":"n5","agent_id":"@5","patch_target":true,"text":"a"}]`
	if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Error(diff)
	}
	big := made(t, strings.Repeat("text of a paragraph, long enough\n\n", 3000)+doctest.Large(200_000))
	ask, rows, pages := view.Ask{}, 0, 0
	for pages < 1000 {
		pages++
		v, err := view.Edit(big, ask)
		if err == nil {
			within(t, v)
			rows += len(v.Rows)
			if rows == big.Len() || !v.Page.HasMore {
				break
			}
			if ask.From == "" {
				ask = view.Ask{Offset: v.Page.NextOffset}
			} else {
				ask = view.Ask{From: doc.AgentID(rows)}
			}
			continue
		}
		f := fault.From(err)
		instead, _ := f.Data["ask"].(map[string]any)
		if f.Kind != fault.TooLarge || instead == nil || !strings.Contains(f.Message, "document_page_too_large") {
			t.Fatal(err)
		}
		if instead["view"] == "read" { // the line that no page can hold: read it, and go on behind it
			break
		}
		next := view.Ask{}
		if from, ok := instead["from"].(string); ok {
			next.From = from
		} else {
			next.Offset = instead["offset"].(int)
		}
		next.Limit = instead["limit"].(int)
		if next.Limit < 1 || next == ask {
			t.Fatalf("%+v instead of %+v", next, ask)
		}
		ask = next
	}
	if rows != big.Len()-1 {
		t.Errorf("%d of %d rows in %d pages", rows, big.Len(), pages)
	}
}
