package doc_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"cairn/internal/doc"
	"cairn/internal/doc/doctest"
	"cairn/internal/doc/markdown"
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

func TestCanonicalJSONParsesToTheSameBytesAndHash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := doctest.Docs("n").Draw(t, "doc")
		raw := d.JSON()
		back, err := doc.Parse(raw)
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		if string(back.JSON()) != string(raw) || back.Hash() != d.Hash() || back.Len() != d.Len() || back.Bytes() != d.Bytes() {
			t.Fatalf("%s\n%s\n%s %s", raw, back.JSON(), d.Hash(), back.Hash())
		}
		// Any other way to write the same JSON gives the same document.
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		loose, _ := json.MarshalIndent(v, "", "\t")
		again, err := doc.Parse(loose)
		if err != nil || string(again.JSON()) != string(raw) {
			t.Fatalf("%s\n%v", loose, err)
		}
	})
}

// TestHashIsWhatTheDocsSay works the hash out from the JSON alone, as a client would.
func TestHashIsWhatTheDocsSay(t *testing.T) {
	var sum func(n map[string]any) []byte
	jcs := func(v any) []byte {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(v)
		return []byte(strings.NewReplacer("\\u2028", "\u2028", "\\u2029", "\u2029").Replace(strings.TrimSuffix(b.String(), "\n")))
	}
	sum = func(n map[string]any) []byte {
		spec := (&doc.Node{Type: n["type"].(string)}).Spec()
		content, _ := n["content"].([]any)
		if n["type"] != "doc" && !spec.HoldsBlocks() {
			s := sha256.Sum256(jcs(n))
			return s[:]
		}
		own := map[string]any{}
		for k, v := range n {
			if k != "content" {
				own[k] = v
			}
		}
		b := jcs(own)
		for _, c := range content {
			b = append(b, sum(c.(map[string]any))...)
		}
		s := sha256.Sum256(b)
		return s[:]
	}
	rapid.Check(t, func(t *rapid.T) {
		d := doctest.Docs("n").Draw(t, "doc")
		var v map[string]any
		if err := json.Unmarshal(d.JSON(), &v); err != nil {
			t.Fatal(err)
		}
		content := hex.EncodeToString(sum(map[string]any{"type": "doc", "content": v["content"]}))
		whole := sha256.Sum256(jcs(map[string]any{"content": content, "title": v["title"]}))
		if content != d.ContentHash() || hex.EncodeToString(whole[:]) != d.Hash() {
			t.Fatalf("%s: %s %s", d.JSON(), content, d.ContentHash())
		}
	})
}

func TestEqualDocumentsHaveEqualBytesHoweverTheyWereWritten(t *testing.T) {
	bold := doc.Mark{Type: "bold"}
	link := doc.Mark{Type: "link", Attrs: []doc.Attr{{Name: "title", Value: ""}, {Name: "href", Value: "https://x.y"}}}
	d, err := doc.New("", []*doc.Node{{Type: "paragraph", Content: []*doc.Node{doc.Text("a", bold, link), doc.Text(""), doc.Text("b\r\nc", link, bold), {Type: "hard_break", Marks: []doc.Mark{bold}}}},
		{Type: "ordered_list", Attrs: []doc.Attr{{Name: "start", Value: 1}}, Content: []*doc.Node{{Type: "task_item", Attrs: []doc.Attr{{Name: "checked", Value: false}}, Content: []*doc.Node{{Type: "paragraph"}}}}}}, doctest.IDs("n"))
	if err != nil {
		t.Fatal(err)
	}
	marks := `"marks":[{"attrs":{"href":"https://x.y"},"type":"link"},{"type":"bold"}]`
	want := `{"content":[{"content":[{` + marks + `,"text":"ab","type":"text"},{"type":"hard_break"},{` + marks + `,"text":"c","type":"text"},{"type":"hard_break"}],"node_id":"n1","type":"paragraph"},` +
		`{"content":[{"content":[{"node_id":"n4","type":"paragraph"}],"node_id":"n3","type":"task_item"}],"node_id":"n2","type":"ordered_list"}],"title":""}`
	if diff := cmp.Diff(want, string(d.JSON())); diff != "" {
		t.Error(diff)
	}
}

func TestBadNodesAreRefusedByPlaceAndValue(t *testing.T) {
	deep := strings.Repeat(`{"type":"quote","content":[`, 200) + strings.Repeat(`]}`, 200)
	for _, c := range []struct{ nodes, want string }{
		{`[{"type":"paragraf"}]`, `content[0] has the unknown type "paragraf"`},
		{`[{"type":"paragraph","conten":[]}]`, `content[0].conten is not known`},
		{`[{"type":"paragraph","content":[],"content":[]}]`, `content[0].content is given twice`},
		{`[{"type":"paragraph","content":[{"type":"text","text":"a","marks":["blink"]}]}]`, `content[0].content[0].marks[0] is the unknown mark "blink"`},
		{`[{"type":"paragraph","content":[{"type":"text","text":"a","marks":[{"type":"bold"},"bold"]}]}]`, `names bold twice`},
		{`[{"type":"heading"}]`, `content[0].attrs.level is required`},
		{`[{"type":"heading","attrs":{"level":9}}]`, `content[0].attrs.level must be a whole number from 1 to 6, not 9`},
		{`[{"type":"heading","attrs":{"level":"5"}}]`, `content[0].attrs.level must be a whole number from 1 to 6, not "5"`},
		{`[{"type":"heading","attrs":{"level":2.5}}]`, `content[0].attrs.level must be a whole number, not 2.5`},
		{`[{"type":"heading","attrs":{"level":1,"colour":"red"}}]`, `content[0].attrs.colour is no attribute here`},
		{`[{"type":"divider","node_id":"a b"}]`, `content[0].node_id must be 1 to 64`},
		{`[{"type":"divider","node_id":"doc"}]`, `content[0].node_id must be 1 to 64`},
		{`[{"type":"divider","node_id":"x"},{"type":"divider","node_id":"x"}]`, `content[1].node_id "x" is given twice`},
		{`[{"type":"list_item","content":[]}]`, `content[0] is a list_item, which may not stand in a doc`},
		{`[{"type":"bullet_list"}]`, `content[0] is a bullet_list without content`},
		{`[{"type":"quote","content":[{"type":"text","text":"a"}]}]`, `content[0].content[0] is a text, which may not stand in a quote`},
		{`[{"type":"code_block","content":[{"type":"text","text":"a","marks":["bold"]}]}]`, `has marks`},
		{`[{"type":"code_block","content":[{"type":"mention"}]}]`, `may not stand in a code_block`},
		{`[{"type":"paragraph","content":[{"type":"text","text":"a\u0000b"}]}]`, `content[0].content[0].text holds the character NUL`},
		{`[{"type":"paragraph","content":[{"type":"text","text":"\ud83d"}]}]`, `half a surrogate pair`},
		{`[{"type":"image","attrs":{"src":"javascript:alert(1)"}}]`, `content[0].attrs.src must be`},
		{`[{"type":"image","attrs":{"src":"data:text/html;base64,PHA+"}}]`, `content[0].attrs.src must be`},
		{`[{"type":"paragraph","content":[{"type":"text","text":"a","marks":[{"type":"link","attrs":{"href":" JaVaScRiPt:alert(1)"}}]}]}]`, `attrs.href must be a link by http`},
		{`[{"type":"paragraph","content":[{"type":"text","text":"a","marks":[{"type":"link","attrs":{"href":"java\tscript:alert(1)"}}]}]}]`, `attrs.href must be a link by http`},
		{`[{"type":"paragraph","content":[{"type":"text","text":"a","marks":[{"type":"link","attrs":{"href":"cairn:block/x"}}]}]}]`, `a block is a mention`},
		{`[{"type":"embed","attrs":{"src":"cairn:file/x"}}]`, `content[0].attrs.src must be`},
		{`[{"type":"table","content":[{"type":"table_row","content":[{"type":"table_header"}]},{"type":"table_row","content":[{"type":"table_cell"},{"type":"table_cell"}]}]}]`, `row 2 has 2 cells`},
		{`[{"type":"table","content":[{"type":"table_row","content":[{"type":"table_cell"}]}]}]`, `a table_cell in row 1`},
		{`[` + deep + `]`, `at most 32 levels`},
		{`[{"type":"paragraph"},]`, `not valid JSON`},
		{`{"type":"paragraph"}`, `content must be an array of nodes, not an object`},
		{`["text"]`, `content[0] must be an object, not the string "text"`},
		{`[{"type":"paragraph"}] []`, `not valid JSON`},
		{"[{\"type\":\"paragraph\",\"content\":[{\"type\":\"text\",\"text\":\"\xe2\"}]}]", `not valid UTF-8`},
		{`[{"type":"paragraph","content":[{"type":"text","text":"a","node_id":"q"}]}]`, `has no node_id`},
	} {
		nodes, err := doc.ParseNodes([]byte(c.nodes))
		if err == nil {
			_, err = doc.New("", nodes, doctest.IDs("n"))
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !fault.Is(err, fault.Invalid) {
			t.Errorf("%s\n got %v\nwant %s", excerpt(c.nodes), err, c.want)
		}
	}
}

func excerpt(s string) string { return s[:min(len(s), 200)] }

func TestLimitsOfADocument(t *testing.T) {
	many := make([]*doc.Node, doc.MaxNodes+1)
	for i := range many {
		many[i] = &doc.Node{Type: "divider"}
	}
	if _, err := doc.New("", many, doctest.IDs("n")); !fault.Is(err, fault.TooLarge) {
		t.Error(err)
	}
	if _, err := doc.New("", many[1:], doctest.IDs("n")); err != nil {
		t.Error(err)
	}
	if _, err := doc.New("", []*doc.Node{{Type: "paragraph", Content: []*doc.Node{doc.Text(strings.Repeat("a", doc.MaxBytes+1))}}}, doctest.IDs("n")); !fault.Is(err, fault.TooLarge) {
		t.Error(err)
	}
	for _, title := range []string{"17/12/30 plan", "a/../../b", "..", ".", "CON", `x\y:z?*`, "trailing ", ".hidden", "two\nlines", "😀🎉", "", strings.Repeat("a", 300), strings.Repeat("𝔸", 120), strings.Repeat("𝔸", doc.MaxTitle), "<img src=x onerror=1>", "مرحبا"} {
		d, err := doc.New(title, nil, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		back, err := doc.Parse(d.JSON())
		if err != nil || back.Title() != title || back.Hash() != d.Hash() {
			t.Errorf("%q came back as %q, %v", title, back.Title(), err)
		}
	}
	for _, title := range []string{strings.Repeat("𝔸", doc.MaxTitle+1), "a\x00b", "a\xe2"} {
		if _, err := doc.New(title, nil, nil); !fault.Is(err, fault.Invalid) {
			t.Errorf("%.20q: %v", title, err)
		}
	}
}

// A text that comes in a million pieces is joined once, not piece by piece.
func TestManyPiecesOfTextAreJoinedInTime(t *testing.T) {
	start := time.Now()
	raw := `[{"type":"paragraph","content":[` + strings.Repeat(`{"type":"text","text":"ab"},`, 500_000) + `{"type":"text","text":"c"}]}]`
	nodes, err := doc.ParseNodes([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	d, err := doc.New("", nodes, doctest.IDs("n"))
	if err != nil || len(d.Content()[0].Content) != 1 || len(d.Plain()) != 1_000_001 {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestIDsFromElsewhereAreRefused(t *testing.T) {
	d := made(t, "one\n\ntwo\n")
	nodes, err := doc.ParseNodes([]byte(`[{"type":"paragraph","node_id":"n2"},{"type":"divider"}]`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.Replace(nodes, doctest.IDs("m"))
	if err != nil || r.Content()[0].ID != "n2" || r.Content()[1].ID != "m1" {
		t.Errorf("%s %v", r.JSON(), err)
	}
	nodes, _ = doc.ParseNodes([]byte(`[{"type":"paragraph","node_id":"theirs"}]`))
	if _, err := d.Replace(nodes, doctest.IDs("m")); err == nil || !strings.Contains(err.Error(), `content[0].node_id "theirs" is no node of this document`) {
		t.Error(err)
	}
}

func TestRefsAreFoundInOrder(t *testing.T) {
	d := made(t, "See [A](cairn:block/a) and ![pic](cairn:file/p).\n\n![child](cairn:block/c)\n\n- [f.pdf](cairn:file/f)\n\n[doc **x**](cairn:file/g \"t\") [web](https://x.y) [A](cairn:block/a)\n\n![](cairn:embed/https://v.w)\n")
	var got []string
	for _, r := range d.Refs() {
		got = append(got, fmt.Sprint(r.Kind, " ", r.ID, " ", r.Label, " ", r.NodeID))
	}
	want := []string{"mention a A n1", "file p pic n1", "block c child n2", "file f f.pdf n5", "file g doc x n6", "mention a A n6"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff, string(d.JSON()))
	}
}

// TestDroppedChildrenAreFoundByWholeIDs is CASES 18: ids that begin alike are different blocks.
func TestDroppedChildrenAreFoundByWholeIDs(t *testing.T) {
	a := made(t, "![a](cairn:block/018f3c1e-1)\n\n![b](cairn:block/018f3c1e-2)\n\n![c](cairn:block/018f3c1e-3)\n")
	kept := made(t, "![c](cairn:block/018f3c1e-3)\n\n- ![a](cairn:block/018f3c1e-1)\n\n![b](cairn:block/018f3c1e-2)\n")
	if d := doc.Dropped(a, kept); d != nil {
		t.Errorf("%+v", d)
	}
	if d := doc.Dropped(a, made(t, "![c](cairn:block/018f3c1e-3)\n\n![a](cairn:block/018f3c1e-1)\n\nsee [b](cairn:block/018f3c1e-2)\n")); len(d) != 1 || d[0].ID != "018f3c1e-2" || d[0].Label != "b" {
		t.Errorf("%+v", d)
	}
}

func TestSchemaIsWhole(t *testing.T) {
	for _, s := range doc.Nodes {
		if s.Doc == "" || s.Markdown == "" {
			t.Errorf("%s: no doc or no Markdown", s.Type)
		}
		if !slices.IsSortedFunc(s.Attrs, func(a, b doc.AttrSpec) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("%s: attributes are not sorted", s.Type)
		}
		for _, a := range s.Attrs {
			if a.Doc == "" {
				t.Errorf("%s.%s: no doc", s.Type, a.Name)
			}
		}
	}
	for _, o := range doc.Ops {
		if o.Doc == "" {
			t.Errorf("%s: no doc", o.Op)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"content":[{"content":[{"text":"a","type":"text"}],"node_id":"n1","type":"paragraph"}],"title":"T"}`))
	f.Add(made(f, doctest.Large(1500)).JSON())
	f.Add([]byte(`{"title":"\ud83d\ude00\u0000"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := doc.Parse(raw)
		if err != nil {
			if f := fault.From(err); f.Kind != fault.Invalid && f.Kind != fault.TooLarge || !utf8.ValidString(f.Message) {
				t.Fatal(err)
			}
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("%q was taken", raw)
		}
		again, err := doc.Parse(d.JSON())
		if err != nil || string(again.JSON()) != string(d.JSON()) || again.Hash() != d.Hash() {
			t.Fatalf("%s %v", d.JSON(), err)
		}
	})
}
