package doc_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"cairn/internal/doc"
	"cairn/internal/doc/doctest"
	"cairn/internal/doc/markdown"
	"cairn/internal/fault"
)

func patched(t testing.TB, d *doc.Doc, ops string) (*doc.Result, error) {
	t.Helper()
	p, err := doc.DecodePatch([]byte(ops), markdown.Read)
	if err != nil {
		return nil, err
	}
	before := string(d.JSON())
	r, err := d.Apply(p, doctest.IDs("x"))
	if string(d.JSON()) != before {
		t.Fatalf("%s changed the document it was applied to", ops)
	}
	return r, err
}

// outline shows a document in one line: types with their ids and texts.
func outline(nodes []*doc.Node) string {
	var parts []string
	for _, n := range nodes {
		s := n.Type + " " + n.ID
		if n.HoldsBlocks() {
			s += "(" + outline(n.Content) + ")"
		} else if text := n.Plain(); text != "" {
			s += " " + text
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}

func TestOperations(t *testing.T) {
	const md = "# H\n\nKEY one KEY\n\n- a\n- b\n\n```go\nx\n```\n" // n1 heading, n2 paragraph, n3 list, n4 item, n5 a, n6 item, n7 b, n8 code
	for _, c := range []struct{ ops, want string }{
		{`[{"op":"insert_before","node_id":"n2","markdown":"new"}]`, "heading n1 H, paragraph x1 new, paragraph n2 KEY one KEY, bullet_list n3(list_item n4(paragraph n5 a), list_item n6(paragraph n7 b)), code_block n8 x"},
		{`[{"op":"insert_after","agent_id":"@1","nodes":[{"type":"divider"}]},{"op":"delete","node_id":"n3"},{"op":"delete","agent_id":"@8"}]`, "heading n1 H, divider x1, paragraph n2 KEY one KEY"},
		{`[{"op":"append_child","node_id":"n3","markdown":"- c\n- d"},{"op":"delete","node_id":"n2"},{"op":"delete","node_id":"n8"}]`, "heading n1 H, bullet_list n3(list_item n4(paragraph n5 a), list_item n6(paragraph n7 b), list_item x1(paragraph x2 c), list_item x3(paragraph x4 d))"},
		{`[{"op":"append_child","node_id":"doc","markdown":"end"},{"op":"delete","node_id":"n3"},{"op":"delete","node_id":"n8"}]`, "heading n1 H, paragraph n2 KEY one KEY, paragraph x1 end"},
		{`[{"op":"replace","node_id":"n2","markdown":"two\n\nthree"},{"op":"delete","node_id":"n3"},{"op":"delete","node_id":"n8"}]`, "heading n1 H, paragraph n2 two, paragraph x1 three"},
		{`[{"op":"replace","node_id":"n3","nodes":[{"type":"quote","content":[{"type":"paragraph","node_id":"n5","content":[{"type":"text","text":"A"}]}]}]},{"op":"delete","node_id":"n8"}]`, "heading n1 H, paragraph n2 KEY one KEY, quote n3(paragraph n5 A)"},
		{`[{"op":"move","node_id":"n7","after":"n5"},{"op":"delete","node_id":"n6"},{"op":"move","node_id":"n3","before":"n1"}]`, "bullet_list n3(list_item n4(paragraph n5 a, paragraph n7 b)), heading n1 H, paragraph n2 KEY one KEY, code_block n8 x"},
		{`[{"op":"move","node_id":"n2","into":"n4"},{"op":"move","node_id":"n1","into":"doc"}]`, "bullet_list n3(list_item n4(paragraph n5 a, paragraph n2 KEY one KEY), list_item n6(paragraph n7 b)), code_block n8 x, heading n1 H"},
		{`[{"op":"replace_text","node_id":"n2","find":"KEY","replace":"$&","expected_count":2},{"op":"delete","node_id":"n3"}]`, "heading n1 H, paragraph n2 $& one $&, code_block n8 x"},
		{`[{"op":"replace_text","node_id":"n3","find":"b","replace":"${x}\\1%s$1$$"},{"op":"delete","node_id":"n8"}]`, "heading n1 H, paragraph n2 KEY one KEY, bullet_list n3(list_item n4(paragraph n5 a), list_item n6(paragraph n7 ${x}\\1%s$1$$))"},
		{`[{"op":"replace_text","node_id":"n8","find":"x","replace":"y\r\nz"},{"op":"delete","node_id":"n3"}]`, "heading n1 H, paragraph n2 KEY one KEY, code_block n8 y\nz"},
	} {
		r, err := patched(t, made(t, md), c.ops)
		if err != nil {
			t.Errorf("%s: %v", c.ops, err)
			continue
		}
		if diff := cmp.Diff(c.want, outline(r.Doc.Content())); diff != "" {
			t.Errorf("%s: %s", c.ops, diff)
		}
		if r.Doc.Title() != "Title" {
			t.Errorf("%s: title %q", c.ops, r.Doc.Title())
		}
	}
}

func TestMarksAndAttributes(t *testing.T) {
	d := made(t, "# H\n\none **two** three [m](cairn:block/b)\n\n- [ ] t\n")
	for _, c := range []struct{ ops, want string }{
		{`[{"op":"add_mark","node_id":"n2","find":"e two t","mark":"italic"}]`, "o&#110;_e **two** t_&#104;ree [m](cairn:block/b)"},
		{`[{"op":"add_mark","node_id":"n2","mark":{"type":"link","attrs":{"href":"https://x.y"}}}]`, "[one **two** three ](https://x.y)[m](cairn:block/b)"},
		{`[{"op":"remove_mark","node_id":"n2","mark":"bold"}]`, "one two three [m](cairn:block/b)"},
		{`[{"op":"replace_text","node_id":"n2","find":"two","replace":"2\n2"}]`, "one **2**\\\n**2** three [m](cairn:block/b)"},
		{`[{"op":"set_attrs","node_id":"n1","attrs":{"level":3}},{"op":"set_attrs","node_id":"n4","attrs":{"checked":true}}]`, "### H"},
	} {
		r, err := patched(t, d, c.ops)
		if err != nil {
			t.Errorf("%s: %v", c.ops, err)
			continue
		}
		if md := markdown.Write(r.Doc.Content()); !strings.Contains(md, c.want) {
			t.Errorf("%s\n got %q\nwant %q", c.ops, md, c.want)
		}
	}
}

func TestWrongPatchesSayWhatToDo(t *testing.T) {
	d := made(t, "# H\n\nneedle in a haystack\n\n- only\n\nplain ==needle==\n\n> "+strings.Repeat("> ", 25)+"deep\n") // n2, n3 list, n4, n5, n6, n7.. quotes
	for _, c := range []struct{ ops, want string }{
		{`[{"op":"explode","node_id":"n1"}]`, `operations[0].op must be one of insert_before`},
		{`[{"op":"delete","node_id":"n1","recursive":true}]`, `operations[0].recursive is not known`},
		{`[{"op":"delete","node_id":"n1","find":"x"}]`, `operations[0].find is nothing that delete takes`},
		{`[{"op":"delete"}]`, `operations[0].node_id is required`},
		{`[{"op":"replace_text","node_id":"n1","find":"H"}]`, `operations[0].replace is required by replace_text`},
		{`[{"op":"replace_text","node_id":"n1","find":"","replace":"x"}]`, `operations[0].find is empty`},
		{`[{"op":"replace_text","node_id":"n1","find":"H","replace":"\ud83d"}]`, `half a surrogate pair`},
		{`[{"op":"replace_text","node_id":"n1","find":"H","replace":"\u0000"}]`, `operations[0].replace holds the character NUL`},
		{`[{"op":"replace_text","node_id":"n1","find":"H","replace":"x","expected_count":0}]`, `operations[0].expected_count must be at least 1`},
		{`[{"op":"replace_text","node_id":"n2","find":"a","replace":"x"}]`, `"a" is in node n2 3 times, not 1`},
		{`[{"op":"replace_text","node_id":"n1","find":"needle","replace":"x"}]`, `near ones: n2 (paragraph "needle in a haystack"), n6`},
		{`[{"op":"delete","node_id":"n1x"}]`, `"n1x" is no node of this document; near ones: n1 (heading "H")`},
		{`[{"op":"delete","agent_id":"@99"}]`, `no agent_id of this version`},
		{`[{"op":"delete","agent_id":"@01"}]`, `no agent_id of this version`},
		{`[{"op":"delete","agent_id":"@+1"}]`, `no agent_id of this version`},
		{`[{"op":"insert_after","node_id":"n1","nodes":[]}]`, `operations[0].nodes holds no node`},
		{`[{"op":"insert_after","node_id":"n1","nodes":[{"type":"nod"}]}]`, `operations[0].nodes[0] has the unknown type "nod"`},
		{`[{"op":"insert_after","node_id":"n1","nodes":[{"type":"divider","node_id":"other-doc-1"}]}]`, `"other-doc-1" is no node of this document`},
		{`[{"op":"insert_after","node_id":"n1","nodes":[{"type":"divider","node_id":"n2"}]}]`, `"n2" is given twice or is in the document`},
		{`[{"op":"insert_after","node_id":"n4","markdown":"text"}]`, `may not stand in a bullet_list`},
		{`[{"op":"append_child","node_id":"n2","markdown":"x"}]`, `n2 is a paragraph, which holds no blocks`},
		{`[{"op":"delete","node_id":"n4"}]`, `node n3 is a bullet_list without content`},
		{`[{"op":"delete","node_id":"n1"},{"op":"set_attrs","node_id":"n1","attrs":{"level":2}}]`, `"n1" was taken away by an operation before this one`},
		{`[{"op":"move","node_id":"n3","into":"n4"}]`, `is the moved node n3 itself or stands in it`},
		{`[{"op":"move","node_id":"n3"}]`, `give one`},
		{`[{"op":"move","node_id":"n1","into":"n3"}]`, `a heading may not stand in a bullet_list`},
		{`[{"op":"set_attrs","node_id":"n1","attrs":{"level":null}}]`, `operations[0].attrs.level is required`},
		{`[{"op":"add_mark","node_id":"n1","mark":"blink"}]`, `operations[0].mark.marks[0] is the unknown mark "blink"`},
		{`[{"op":"delete","node_id":"doc"}]`, `is the document itself`},
		{`[]`, `operations is empty`},
		{`{}`, `operations must be an array of operations, not an object`},
		{`[` + strings.Repeat(`{"op":"delete","node_id":"n1"},`, 1000) + `{"op":"delete","node_id":"n1"}]`, `more than 1000 operations`},
	} {
		if _, err := patched(t, d, c.ops); err == nil || !strings.Contains(err.Error(), c.want) || !fault.Is(err, fault.Invalid) {
			t.Errorf("%.200s\n got %v\nwant %s", c.ops, err, c.want)
		}
	}
}

// TestPatchToALookAlikeHeadingHitsTheRightNode is CASES 17: targets are ids, so that text which looks like a heading is none.
func TestPatchToALookAlikeHeadingHitsTheRightNode(t *testing.T) {
	d := made(t, "# Root\n\n## Notes\n\n### Open\n\n## Archive\n\n### Open\n\n| `## Notes` |\n| --- |\n\n## 📝| <b>Log</b>:\n")
	var last string
	for n := range d.All() {
		if n.Type == "heading" {
			last = n.ID
		}
	}
	r, err := patched(t, d, fmt.Sprintf(`[{"op":"insert_after","node_id":%q,"markdown":"entry"}]`, last))
	if err != nil || !strings.HasSuffix(markdown.Write(r.Doc.Content()), "## 📝| \\<b>Log\\</b>:\n\nentry\n") {
		t.Errorf("%v", err)
	}
	if r == nil || len(r.Changed) != 1 || r.Changed[0] != "x1" || r.Ops[0].Anchors[0] != last {
		t.Errorf("%+v", r)
	}
}

func TestRandomPatchesKeepEveryPromise(t *testing.T) {
	applied := 0
	rapid.Check(t, func(t *rapid.T) {
		d := doctest.Docs("n").Draw(t, "doc")
		newID := doctest.IDs("x")
		for range rapid.IntRange(1, 6).Draw(t, "patches") {
			raw := doctest.Patch(t, d)
			before := string(d.JSON())
			p, err := doc.DecodePatch(raw, markdown.Read)
			if err != nil {
				t.Fatalf("%s: %v", raw, err)
			}
			r, err := d.Apply(p, newID)
			if string(d.JSON()) != before {
				t.Fatalf("%s changed the document it was applied to", raw)
			}
			if err != nil {
				if f := fault.From(err); f.Kind != fault.Invalid {
					t.Fatalf("%s: %v", raw, err)
				}
				continue
			}
			applied++
			holds(t, d, r)
			d = r.Doc
		}
	})
	if applied < 20 {
		t.Errorf("only %d patches were right", applied)
	}
}

// holds checks a patched document: hashed and serialised in parts it is what it is when read anew, and the nodes said to have
// changed are those that did.
func holds(t *rapid.T, before *doc.Doc, r *doc.Result) {
	hash := r.Doc.Hash()
	again, err := doc.Parse(r.Doc.JSON())
	if err != nil {
		t.Fatalf("%s: %v", r.Doc.JSON(), err)
	}
	if again.Hash() != hash || string(again.JSON()) != string(r.Doc.JSON()) || again.Len() != r.Doc.Len() || again.Bytes() != r.Doc.Bytes() {
		t.Fatalf("%s\n%s", r.Doc.JSON(), again.JSON())
	}
	was := map[string]*doc.Node{}
	for n := range before.All() {
		was[n.ID] = n
	}
	for n := range r.Doc.All() {
		old := was[n.ID]
		if (old == nil || !n.Same(old)) && !slices.Contains(r.Changed, n.ID) {
			t.Fatalf("%s changed and isn't among %v", n.ID, r.Changed)
		}
		delete(was, n.ID)
	}
	for id := range was {
		if !slices.Contains(r.Changed, id) {
			t.Fatalf("%s was removed and isn't among %v", id, r.Changed)
		}
	}
}

// A thousand operations on a list of thousands of items take no thousand walks through it.
func TestManyOperationsInOnePatch(t *testing.T) {
	d := large(t, 1_500_000)
	items := d.Content()[0].Content
	var ops []string
	for i := range doc.MaxOps {
		ops = append(ops, fmt.Sprintf(`{"op":"replace_text","node_id":%q,"find":"item %d ","replace":"thing %d "}`, items[i*5].ID, i*5, i))
	}
	start := time.Now()
	r, err := patched(t, d, "["+strings.Join(ops, ",")+"]")
	if err != nil || len(r.Changed) != doc.MaxOps || !strings.Contains(r.Doc.Node(items[4995].ID).Plain(), "thing 999 ") {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func FuzzDecodePatch(f *testing.F) {
	for _, s := range []string{`[{"op":"replace_text","node_id":"n2","find":"a","replace":"b","expected_count":2}]`, `[{"op":"insert_after","agent_id":"@1","markdown":"- x"}]`, `[{"op":"move","node_id":"n4","into":"doc"}]`,
		`[{"op":"set_attrs","node_id":"n1","attrs":{"level":2,"x":null}}]`, `[{"op":"add_mark","node_id":"n2","mark":{"type":"link","attrs":{"href":"https://x.y"}}}]`, `[{"op":"replace","node_id":"n3","nodes":[{"type":"paragraph","content":[{"type":"text","text":"a"}]}]}]`} {
		f.Add([]byte(s))
	}
	d := made(f, "# H\n\na *b* a\n\n- a\n- [x] b\n\n| a |\n| - |\n")
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := doc.DecodePatch(raw, markdown.Read)
		if err != nil {
			return
		}
		if len(p) == 0 || len(p) > doc.MaxOps {
			t.Fatalf("%d operations", len(p))
		}
		r, err := d.Apply(p, doctest.IDs("x"))
		if err != nil {
			return
		}
		if again, err := doc.Parse(r.Doc.JSON()); err != nil || again.Hash() != r.Doc.Hash() {
			t.Fatalf("%s %v", r.Doc.JSON(), err)
		}
	})
}
