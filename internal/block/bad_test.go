package block_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"cairn/internal/apptest"
	"cairn/internal/doc"
	"cairn/internal/fault"
)

// titles are those of CASES 20 and 21, and more of the kind.
var titles = []string{"17/12/30 plan", "a/../../b", "..", ".", "CON", `x\y:z?*`, "trailing ", " leading", ".dot", "two\nlines", "two\r\nlines", "tab\there", "🚀", "👩‍👩‍👧", "", " ", "<img src=x onerror=1>", "[a](b) **c**", "$& $1 %s ${x}",
	"مرحبا بالعالم (v2.1)!", "Plan: שלום 123 - done", "\u202eright to left", "e\u0301", "é", "\ufeffmark", "\ufffd", strings.Repeat("a", 300), strings.Repeat("😀", 120), strings.Repeat("😀", 300), strings.Repeat("x", 255) + "1", strings.Repeat("x", 255) + "2"}

// A title is kept exactly or refused with the limit in characters, whichever operation and surface it comes by (CASES 20, 21).
func TestTitlesOnEachWay(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		token := a.Token(t, "")
		ctx := a.As(t, token)
		ways := map[string]func(t *testing.T, tool string, args m) ([]byte, string){
			"operation": func(_ *testing.T, tool string, args m) ([]byte, string) {
				res, err := a.Runner.Run(ctx, tool, json.RawMessage(say(args)))
				if err != nil {
					return nil, err.Error()
				}
				return res.JSON, ""
			},
			"api": func(t *testing.T, tool string, args m) ([]byte, string) {
				r := a.Do(t, "POST", "/api/"+tool, say(args), "Content-Type: application/json", "Authorization: Bearer "+token)
				if r.Status != http.StatusOK {
					return nil, r.Body
				}
				return []byte(r.Body), ""
			},
		}
		for way, do := range ways {
			t.Run(way, func(t *testing.T) {
				for _, title := range titles {
					made, why := do(t, "create_block", m{"title": title, "content": "x"})
					if why != "" {
						t.Errorf("%q: %s", title, why)
						continue
					}
					var o one
					apptest.Decode(t, made, &o)
					other := create(t, a, ctx, `{"title":"other"}`)
					if _, why := do(t, "update_block_title", m{"block_id": other.ID, "title": title, "base_hash": other.Hash}); why != "" {
						t.Errorf("%q as another title: %s", title, why)
					}
					for _, id := range []string{o.ID, other.ID} {
						if h, _ := stored(t, a, ctx, id); h.Title != title {
							t.Errorf("%q is stored as %q", title, h.Title)
						}
						got, _ := do(t, "get_document", m{"block_id": id})
						var d document
						apptest.Decode(t, got, &d)
						if d.Title != title {
							t.Errorf("%q reads as %q", title, d.Title)
						}
					}
				}
				o := create(t, a, ctx, `{"title":"kept"}`)
				for _, long := range []string{strings.Repeat("a", 301), strings.Repeat("😀", 301), strings.Repeat("e\u0301", 151)} {
					for tool, args := range map[string]m{"create_block": {"title": long, "external_ref": "long"}, "update_block_title": {"block_id": o.ID, "title": long, "base_hash": o.Hash}} {
						if _, why := do(t, tool, args); !strings.Contains(why, "characters, at most 300") {
							t.Errorf("%s: %s", tool, why)
						}
					}
				}
				for _, bad := range []string{"a\x00b"} {
					if _, why := do(t, "create_block", m{"title": bad}); !strings.Contains(why, "NUL") {
						t.Error(why)
					}
				}
				if h, _ := stored(t, a, ctx, o.ID); h.Title != "kept" {
					t.Errorf("%+v", h)
				}
			})
		}
	})
}

// refused runs an operation that must fail as Invalid or Parse, and checks that the block is as it was.
func refused(t *testing.T, a *apptest.App, ctx context.Context, id, tool, args string) {
	t.Helper()
	before, _ := stored(t, a, ctx, id)
	_, err := a.Runner.Run(ctx, tool, json.RawMessage(args))
	if !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Parse) {
		t.Errorf("%s %.300s: %v", tool, args, err)
	}
	if now, _ := stored(t, a, ctx, id); now != before {
		t.Errorf("%s %.300s left %+v", tool, args, now)
	}
}

// Half a character comes in by no edit, nor does it come about by two (CASES 22).
func TestSurrogatesSplitOverEdits(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		o := create(t, a, ctx, m{"title": "T", "content": "one 😀 two"})
		head := `{"block_id":"` + o.ID + `","base_hash":"` + o.Hash + `",`
		for _, operations := range []string{
			`[{"op":"replace_text","node_id":"@1","find":"one","replace":"\ud83d"},{"op":"replace_text","node_id":"@1","find":"two","replace":"\ude00"}]`,
			`[{"op":"insert_after","node_id":"@1","markdown":"\ud83d"}]`, `[{"op":"insert_after","node_id":"@1","markdown":"\ude00"}]`,
			`[{"op":"replace_text","node_id":"@1","find":"\ud83d","replace":"x"}]`, `[{"op":"replace_text","node_id":"@1","find":"\ude00","replace":""}]`,
			`[{"op":"insert_after","node_id":"@1","nodes":[{"type":"paragraph","content":[{"type":"text","text":"\ud83d"},{"type":"text","text":"\ude00"}]}]}]`,
			`[{"op":"set_attrs","node_id":"@1","attrs":{"\ud83d":1}}]`, "[{\"op\":\"insert_after\",\"node_id\":\"@1\",\"markdown\":\"\xf0\x9f\"}]",
		} {
			refused(t, a, ctx, o.ID, "patch_document", head+`"operations":`+operations+`}`)
		}
		refused(t, a, ctx, o.ID, "update_block_title", head+`"title":"\ud83d"}`)
		refused(t, a, ctx, o.ID, "update_block_title", head+"\"title\":\"\xe2\"}")
		refused(t, a, ctx, o.ID, "set_property", `{"block_id":"`+o.ID+`","key":"k","value":"\ude00"}`)
		// A whole pair, written as two escapes, is one character.
		w := call[written](t, a, ctx, "patch_document", head+`"operations":[{"op":"replace_text","node_id":"@1","find":"\ud83d\ude00","replace":"\ud83d\ude80"}]}`)
		if got := edit(t, a, ctx, o.ID); got.text() != "one 🚀 two" || got.Hash != w.Hash {
			t.Errorf("%+v", got)
		}
	})
}

// A byte order mark and line ends of all kinds leave no trace that a later edit would stumble over (CASES 22).
func TestMarksAndLineEndsOfFiles(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		o := create(t, a, ctx, m{"content": "\ufeff# Head\r\n\r\none\r\ntwo\rthree\n\r\n- a\r\n- b\n"})
		_, d := stored(t, a, ctx, o.ID)
		if json := string(d.JSON()); strings.Contains(json, `\r`) || strings.Contains(json, "\ufeff") {
			t.Errorf("%s", json)
		}
		got := edit(t, a, ctx, o.ID)
		if len(got.Nodes) == 0 || got.Nodes[0].Type != "heading" || got.Nodes[0].Text != "Head" {
			t.Errorf("%+v", got.Nodes)
		}
		w := call[written](t, a, ctx, "patch_document", m{"block_id": o.ID, "base_hash": o.Hash, "operations": []m{{"op": "insert_after", "node_id": "@1", "markdown": "\ufefffour\r\nfive\r\n"}}})
		if _, d := stored(t, a, ctx, o.ID); strings.Contains(string(d.JSON()), `\r`) || d.Hash() != w.Hash {
			t.Errorf("%s", d.JSON())
		}
	})
}

// Text from right to left comes back as it was given (CASES 24).
func TestRightToLeftText(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		lines := []string{"مرحبا بالعالم (v2.1)!", "Plan: שלום 123 - done", "\u200fmarked\u200e"}
		o := create(t, a, ctx, m{"title": lines[0], "content": strings.Join(lines, "\n\n") + "\n\n- [ ] " + lines[0] + "\n- [x] " + lines[1]})
		got := edit(t, a, ctx, o.ID).text()
		if want := strings.Join(append(append([]string{}, lines...), lines[0], lines[1]), "|"); got != want {
			t.Errorf("%q, not %q", got, want)
		}
		call[written](t, a, ctx, "patch_document", m{"block_id": o.ID, "base_hash": o.Hash, "operations": []m{{"op": "replace_text", "node_id": "@2", "find": "שלום", "replace": "שלומות"}}})
		if got := edit(t, a, ctx, o.ID).text(); !strings.Contains(got, "Plan: שלומות 123 - done") {
			t.Errorf("%q", got)
		}
		if found := call[list](t, a, ctx, "search_blocks", `{"query":"שלומות"}`); found.Count != 1 {
			t.Errorf("%+v", found)
		}
	})
}

// Nesting beyond the limit is refused in a tree and made flat in Markdown, its text kept, however it comes (CASES 25).
func TestDeepNesting(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		o := create(t, a, ctx, m{"content": "x"})
		tree := m{"type": "paragraph"}
		for range 200 {
			tree = m{"type": "quote", "content": []m{tree}}
		}
		refused(t, a, ctx, o.ID, "create_block", say(m{"content": []m{tree}}))
		refused(t, a, ctx, o.ID, "replace_document", say(m{"block_id": o.ID, "base_hash": o.Hash, "content": []m{tree}, "confirm_rebuild": true}))
		refused(t, a, ctx, o.ID, "patch_document", say(m{"block_id": o.ID, "base_hash": o.Hash, "operations": []m{{"op": "replace", "node_id": "@1", "nodes": []m{tree}}}}))
		quotes, lists := strings.Repeat("> ", 200)+"deep words", ""
		for i := range 200 {
			lists += strings.Repeat("  ", i) + "- deep words\n"
		}
		for _, markdown := range []string{quotes, lists} {
			made := create(t, a, ctx, m{"content": markdown})
			_, d := stored(t, a, ctx, made.ID)
			if n := strings.Count(d.Plain(), "deep words"); n != strings.Count(markdown, "deep words") {
				t.Errorf("the words are there %d times", n)
			}
			for _, n := range edit(t, a, ctx, made.ID).Nodes {
				if n.Depth >= doc.MaxLevels {
					t.Errorf("a node at the depth %d", n.Depth)
				}
			}
		}
		if _, err := a.Runner.Run(ctx, "patch_document", json.RawMessage(say(m{"block_id": o.ID, "base_hash": o.Hash, "dry_run": true, "operations": []m{{"op": "insert_after", "node_id": "@1", "markdown": quotes}}}))); err != nil && !fault.Is(err, fault.Invalid) {
			t.Error(err)
		}
		// Nor does it grow beyond it by moves, a level at a time.
		o = create(t, a, ctx, m{"content": "> x"})
		hash, failed := o.Hash, false
		for i := 0; i < 100 && !failed; i++ {
			res, err := a.Runner.Run(ctx, "patch_document", json.RawMessage(say(m{"block_id": o.ID, "base_hash": hash, "operations": []m{
				{"op": "insert_before", "node_id": "@1", "markdown": "> q"}}})))
			if err != nil {
				t.Fatal(err)
			}
			var w written
			apptest.Decode(t, res.JSON, &w)
			hash = w.Hash
			d := edit(t, a, ctx, o.ID)
			top := []string{}
			for _, n := range d.Nodes {
				if n.Depth == 0 {
					top = append(top, n.NodeID)
				}
			}
			res, err = a.Runner.Run(ctx, "patch_document", json.RawMessage(say(m{"block_id": o.ID, "base_hash": hash, "operations": []m{{"op": "move", "node_id": top[1], "into": top[0]}}})))
			if failed = err != nil; failed && !fault.Is(err, fault.Invalid) {
				t.Fatal(err)
			} else if !failed {
				apptest.Decode(t, res.JSON, &w)
				hash = w.Hash
			}
		}
		if !failed {
			t.Error("a hundred levels by moves")
		}
	})
}

// Ids of nodes are unique in a document and say nothing of another's: those given twice or of elsewhere do no harm.
func TestNodeIDsOfElsewhere(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		one, two := create(t, a, ctx, m{"content": "a\n\nb"}), create(t, a, ctx, m{"content": "c\n\nd"})
		mine, theirs := edit(t, a, ctx, one.ID).Nodes, edit(t, a, ctx, two.ID).Nodes
		paragraph := func(id, text string) m {
			return m{"type": "paragraph", "node_id": id, "content": []m{{"type": "text", "text": text}}}
		}
		patch := func(id, hash string, operations ...m) string {
			return say(m{"block_id": id, "base_hash": hash, "operations": operations})
		}
		// Given twice, or that of another node that stays.
		for _, nodes := range [][]m{{paragraph("twice", "x"), paragraph("twice", "y")}, {paragraph(mine[1].NodeID, "x")}, {{"type": "quote", "node_id": "q", "content": []m{paragraph("q", "x")}}}} {
			refused(t, a, ctx, one.ID, "patch_document", patch(one.ID, one.Hash, m{"op": "insert_before", "node_id": mine[0].NodeID, "nodes": nodes}))
		}
		refused(t, a, ctx, one.ID, "create_block", say(m{"content": []m{paragraph("twice", "x"), paragraph("twice", "y")}}))
		refused(t, a, ctx, one.ID, "replace_document", say(m{"block_id": one.ID, "base_hash": one.Hash, "confirm_rebuild": true, "content": []m{paragraph("twice", "x"), paragraph("twice", "y")}}))
		for _, id := range []string{"doc", "@1", " ", "a\x00", strings.Repeat("x", 1000), "\u202e"} {
			if _, err := a.Runner.Run(ctx, "create_block", json.RawMessage(say(m{"content": []m{paragraph(id, "x")}, "external_ref": "odd"}))); !fault.Is(err, fault.Invalid) {
				t.Errorf("the id %q: %v", id, err)
			}
		}
		// A patch that is meant for another document finds nothing in this one, and changes neither.
		refused(t, a, ctx, one.ID, "patch_document", patch(one.ID, one.Hash, m{"op": "delete", "node_id": theirs[0].NodeID}))
		refused(t, a, ctx, one.ID, "patch_document", patch(one.ID, one.Hash, m{"op": "move", "node_id": mine[0].NodeID, "after": theirs[0].NodeID}))
		f := a.Fails(t, ctx, "patch_document", patch(one.ID, two.Hash, m{"op": "delete", "node_id": "@1"}), fault.Conflict)
		if b, _ := json.Marshal(f.Body()); !strings.Contains(string(b), one.Hash) {
			t.Errorf("%s", b)
		}
		a.Fails(t, ctx, "patch_document", say(m{"block_id": one.ID, "base_hash": two.Hash, "rebase": true, "operations": []m{{"op": "delete", "node_id": "@1"}}}), fault.Conflict)
		// Nor does an id of another document come in with new nodes.
		refused(t, a, ctx, one.ID, "patch_document", patch(one.ID, one.Hash, m{"op": "insert_after", "node_id": mine[1].NodeID, "nodes": []m{paragraph(theirs[0].NodeID, "e")}}))
		refused(t, a, ctx, one.ID, "replace_document", say(m{"block_id": one.ID, "base_hash": one.Hash, "confirm_rebuild": true, "content": []m{paragraph(mine[1].NodeID, "b"), paragraph(theirs[0].NodeID, "e")}}))
		if x, y := edit(t, a, ctx, one.ID).text(), edit(t, a, ctx, two.ID).text(); x != "a|b" || y != "c|d" {
			t.Errorf("%s %s", x, y)
		}
	})
}

// What isn't a node or a mark is refused by its name, with those there are.
func TestUnknownNodesAndMarks(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		o := create(t, a, ctx, m{"content": "a\n\nb"})
		text := func(mark any) []m {
			return []m{{"type": "paragraph", "content": []m{{"type": "text", "text": "x", "marks": []any{mark}}}}}
		}
		for _, nodes := range []any{[]m{{"type": "video"}}, []m{{"type": ""}}, []m{{}}, []m{{"type": 5}}, []any{"x"}, []any{nil}, []m{{"type": "doc"}}, []m{{"type": "text", "text": "x"}}, []m{{"type": "paragraph", "content": []m{{"type": "paragraph"}}}},
			[]m{{"type": "paragraph", "onclick": "x"}}, []m{{"type": "heading", "attrs": m{"level": 7}}}, []m{{"type": "heading", "attrs": m{"color": "red"}}},
			text(m{"type": "underline"}), text("blink"), text(m{"type": "link"}), text(m{"type": "link", "attrs": m{"href": "javascript:alert(1)"}}), text(m{"type": "bold", "attrs": m{"x": 1}}), text(5)} {
			refused(t, a, ctx, o.ID, "create_block", say(m{"content": nodes}))
			refused(t, a, ctx, o.ID, "replace_document", say(m{"block_id": o.ID, "base_hash": o.Hash, "confirm_rebuild": true, "content": nodes}))
			refused(t, a, ctx, o.ID, "patch_document", say(m{"block_id": o.ID, "base_hash": o.Hash, "operations": []m{{"op": "replace", "node_id": "@1", "nodes": nodes}}}))
		}
		for _, operation := range []m{{"op": "add_mark", "node_id": "@1", "mark": "underline"}, {"op": "add_mark", "node_id": "@1", "mark": m{"type": "link", "attrs": m{"href": "javascript:x"}}}, {"op": "set_attrs", "node_id": "@1", "attrs": m{"onclick": "x"}}, {"op": "explode", "node_id": "@1"},
			{"op": "delete", "node_id": "@1", "force": true}, {"op": "replace_text", "node_id": "@1", "find": "", "replace": "x"}} {
			refused(t, a, ctx, o.ID, "patch_document", say(m{"block_id": o.ID, "base_hash": o.Hash, "operations": []m{operation}}))
		}
		f := a.Fails(t, ctx, "create_block", say(m{"content": []m{{"type": "video"}}}), fault.Invalid)
		if !strings.Contains(f.Message, "video") || !strings.Contains(f.Message, "paragraph") {
			t.Error(f.Message)
		}
	})
}
