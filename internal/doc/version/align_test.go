package version_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cairn/internal/doc"
	"cairn/internal/doc/doctest"
	"cairn/internal/doc/markdown"
	"cairn/internal/doc/version"
)

type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// saved is what becomes of a document whose Markdown was edited.
func saved(t fataler, d *doc.Doc, source string) *doc.Doc {
	t.Helper()
	said, err := markdown.Read(markdown.Write(d.Content()))
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := markdown.Read(source)
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := version.Align(d, said, fresh)
	if err != nil {
		t.Fatal(err)
	}
	e, err := d.Replace(nodes, doctest.IDs("new"))
	if err != nil {
		t.Fatalf("%v\n%s", err, source)
	}
	return e
}

func of(t fataler, source string) *doc.Doc {
	t.Helper()
	nodes, err := markdown.Read(source)
	if err != nil {
		t.Fatal(err)
	}
	d, err := doc.New("t", nodes, doctest.IDs("n"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestMarkdownThatNobodyEditedIsTheDocument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := doctest.Docs("n").Draw(t, "doc")
		if e := saved(t, d, markdown.Write(d.Content())); e.Hash() != d.Hash() {
			t.Fatalf("became another one:\n%s\n%s", d.JSON(), e.JSON())
		}
	})
}

// What is saved says what the text said, whatever was edited; ids that Replace would refuse are none.
func TestWhatWasEditedIsWhatIsSaved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := doctest.Docs("n").Draw(t, "doc")
		e := doctest.Docs("m").Draw(t, "other")
		if rapid.Bool().Draw(t, "patched") {
			if patch, err := doc.DecodePatch(doctest.Patch(t, d), markdown.Read); err == nil {
				if res, err := d.Apply(patch, doctest.IDs("p")); err == nil {
					e = res.Doc
				}
			}
		}
		source := markdown.Write(e.Content())
		got := saved(t, d, source)
		if again := markdown.Write(got.Content()); again != source {
			a, _ := markdown.Read(source)
			b, _ := markdown.Read(again)
			x, err := doc.New("", a, doctest.IDs("x"))
			if err != nil {
				t.Skip()
			}
			y, err := doc.New("", b, doctest.IDs("x"))
			if err != nil || x.Hash() != y.Hash() {
				t.Fatalf("saved as\n%q\ninstead of\n%q", again, source)
			}
		}
	})
}

const plan = `# Garden

The beds lie in the sun from noon on.

- peas along the fence
- [ ] beans, once it is warm
- a row of carrots

> Water early.

Nothing here.
`

func TestEditsKeepTheIDsOfWhatTheyLeaveAlone(t *testing.T) {
	for name, c := range map[string]struct {
		old, new            string
		edited, added, gone int
		moved               int
	}{
		"a word":               {"from noon on", "from dawn on", 1, 0, 0, 0},
		"a rewritten block":    {"The beds lie in the sun from noon on.", "Completely different words stand here now.", 1, 0, 0, 0},
		"a block in between":   {"> Water early.", "Mulch.\n\n> Water early.", 0, 1, 0, 0},
		"an item in between":   {"- a row", "- leeks\n- a row", 0, 2, 0, 0},
		"an item ticked":       {"[ ] beans", "[x] beans", 1, 0, 0, 0},
		"an item less":         {"- [ ] beans, once it is warm\n", "", 0, 0, 2, 0},
		"a heading of it":      {"Nothing here.", "## Nothing here.", 1, 0, 0, 0},
		"another heading":      {"# Garden", "# The garden", 1, 0, 0, 0},
		"a list with numbers":  {"- peas along the fence\n- [ ] beans, once it is warm\n- a row", "1. peas along the fence\n2. [ ] beans, once it is warm\n3. a row", 1, 0, 0, 0},
		"a quote's text moved": {"> Water early.\n\nNothing here.", "Nothing here.\n\n> Water early.", 0, 0, 0, 1},
		"out of its quote":     {"> Water early.", "Water early.", 0, 0, 1, 1},
		"all of it":            {plan, "", 0, 0, 12, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := of(t, plan)
			diff := version.Diff(d, saved(t, d, strings.Replace(plan, c.old, c.new, 1)))
			if len(diff.Edited) != c.edited || len(diff.Added) != c.added || len(diff.Removed) != c.gone || len(diff.Moved) != c.moved {
				t.Errorf("%d edited, %d added, %d removed, %d moved:\n%s", len(diff.Edited), len(diff.Added), len(diff.Removed), len(diff.Moved), diff.Text(4000))
			}
		})
	}
}

// What Markdown can't say stays as it is where the text around it is edited.
func TestWhatMarkdownCannotSayStays(t *testing.T) {
	nodes := []*doc.Node{
		{Type: "paragraph", Content: []*doc.Node{{Type: "inline_image", Attrs: []doc.Attr{{Name: "src", Value: "a.png"}}}}},
		{Type: "paragraph", Content: []*doc.Node{doc.Text("list.pdf", doc.Mark{Type: "link", Attrs: []doc.Attr{{Name: "href", Value: "cairn:file/f1"}}})}},
		{Type: "paragraph", Content: []*doc.Node{{Type: "hard_break"}}},
		{Type: "paragraph", Content: []*doc.Node{doc.Text("the text")}},
	}
	d, err := doc.New("t", nodes, doctest.IDs("n"))
	if err != nil {
		t.Fatal(err)
	}
	e := saved(t, d, strings.Replace(markdown.Write(d.Content()), "the text", "another text", 1))
	diff := version.Diff(d, e)
	if len(diff.IDs()) != 1 || diff.Edited[0].After.Plain() != "another text" {
		t.Errorf("more than the text changed:\n%s", diff.Text(4000))
	}
}

func TestALargeDocumentIsAlignedSoon(t *testing.T) {
	source := doctest.Large(400_000)
	d := of(t, source)
	for name, text := range map[string]string{
		"one word":       strings.Replace(source, "item 1000 with", "item 1000 by", 1),
		"each item":      strings.ReplaceAll(source, "fill the line", "make it long"),
		"in two halves":  source[len(source)/2:] + "\n\n" + source[:len(source)/2],
		"another":        doctest.Large(200_000),
		"of equal items": strings.Repeat("- item\n", 5_000),
	} {
		began := time.Now()
		e := saved(t, d, text)
		took := time.Since(began)
		t.Logf("%s: %v", name, took)
		if took > 12*time.Second {
			t.Errorf("%s took %v", name, took)
		}
		if name == "one word" && len(version.Diff(d, e).IDs()) != 1 {
			t.Errorf("%d nodes changed", len(version.Diff(d, e).IDs()))
		}
		if diff := version.Diff(d, e); name == "each item" && len(diff.Added)+len(diff.Removed) > 0 {
			t.Errorf("%d nodes are new, %d are gone", len(diff.Added), len(diff.Removed))
		}
	}
}
