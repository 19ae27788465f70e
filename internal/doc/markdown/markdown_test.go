package markdown_test

import (
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"cairn/internal/doc"
	"cairn/internal/doc/doctest"
	"cairn/internal/doc/markdown"
)

// sayable brings a document into the form that CannotSay leaves.
func sayable(nodes []*doc.Node, in string, listed bool) (out []*doc.Node) {
	for i, n := range nodes {
		m := &doc.Node{Type: n.Type, Attrs: n.Attrs, Marks: n.Marks, Text: n.Text}
		if n.Type == "paragraph" && len(n.Content) == 1 && !(in == "task_item" && i == 0) {
			switch c := n.Content[0]; {
			case c.Type == "inline_image" && len(c.Marks) == 0:
				m = &doc.Node{Type: "image", Attrs: c.Attrs}
				out = append(out, m)
				continue
			case c.Type == "text" && len(c.Marks) == 1 && c.Marks[0].Str("href") == "cairn:file/f1" && c.Marks[0].Str("title") == "":
				out = append(out, &doc.Node{Type: "file", Attrs: []doc.Attr{{Name: "file", Value: "f1"}, {Name: "name", Value: c.Text}}})
				continue
			case c.Type == "hard_break":
				out = append(out, m)
				continue
			}
		}
		m.Content = sayable(n.Content, n.Type, n.Type == "list_item" || n.Type == "task_item" || listed && n.Type != "quote" && n.Type != "callout")
		if n.Type == "code_block" && listed {
			code := strings.Split(n.Plain(), "\n")
			for i := range code {
				if strings.Trim(code[i], " \t") == "" {
					code[i] = ""
				}
			}
			m.Content = []*doc.Node{doc.Text(strings.Join(code, "\n"))}
		}
		out = append(out, m)
	}
	return out
}

func build(t interface{ Fatal(...any) }, nodes []*doc.Node) *doc.Doc {
	d, err := doc.New("", nodes, doctest.IDs("n"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func read(t interface{ Fatal(...any) }, text string) *doc.Doc {
	nodes, err := markdown.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return build(t, nodes)
}

// TestLongLinesKeepTheirMarkup has what the parser reads in parts: nothing is lost between them.
func TestLongLinesKeepTheirMarkup(t *testing.T) {
	for name, piece := range map[string][]*doc.Node{
		"marks":      {doc.Text("some plain words, "), doc.Text("bold", doc.Mark{Type: "bold"}), doc.Text(" and "), doc.Text("both", doc.Mark{Type: "bold"}, doc.Mark{Type: "italic"}), doc.Text(". ")},
		"links":      {doc.Text("link", doc.Mark{Type: "link", Attrs: []doc.Attr{{Name: "href", Value: "https://example.org/a_(b)"}}}), doc.Text(" then `code` & "), doc.Text("x*y", doc.Mark{Type: "code"}), doc.Text(" ")},
		"references": {doc.Text("a\x14\x14 &amp; <b> snake_case *"), doc.Text("\t", doc.Mark{Type: "highlight"}), doc.Text(" 5 * 3 = 15 [x] ")},
		"breaks":     {doc.Text("line of text, "), doc.Text("marked", doc.Mark{Type: "strike"}), {Type: "hard_break"}},
		"mentions":   {{Type: "mention", Attrs: []doc.Attr{{Name: "block", Value: "b"}, {Name: "label", Value: "Label (of) it"}}}, doc.Text(" and so on ")},
	} {
		for _, in := range []string{"paragraph", "quote", "bullet_list"} {
			var line []*doc.Node
			for range 3000 {
				line = append(line, piece...)
			}
			n := &doc.Node{Type: "paragraph", Content: append(line, doc.Text("end"))}
			switch in {
			case "quote":
				n = &doc.Node{Type: in, Content: []*doc.Node{n}}
			case "bullet_list":
				n = &doc.Node{Type: in, Content: []*doc.Node{{Type: "list_item", Content: []*doc.Node{n}}}}
			}
			d := build(t, []*doc.Node{n})
			if got := read(t, markdown.Write(d.Content())); string(got.ContentJSON()) != string(d.ContentJSON()) {
				a, b := got.ContentJSON(), d.ContentJSON()
				i := 0
				for i < len(a) && i < len(b) && a[i] == b[i] {
					i++
				}
				t.Errorf("%s in a %s: byte %d of %d\n got %s\nwant %s", name, in, i, len(b), a[max(0, i-80):min(len(a), i+80)], b[max(0, i-80):min(len(b), i+80)])
			}
		}
	}
}

func TestWhatIsWrittenReadsBackTheSame(t *testing.T) { rapid.Check(t, readsBack) }

func FuzzWrittenReadsBack(f *testing.F) { f.Fuzz(rapid.MakeFuzz(readsBack)) }

func readsBack(t *rapid.T) {
	d := doctest.Docs("n").Draw(t, "doc")
	text := markdown.Write(d.Content())
	want := build(t, sayable(d.Content(), "", false))
	got := read(t, text)
	if string(got.ContentJSON()) != string(want.ContentJSON()) {
		t.Fatalf("Markdown %q\n got %s\nwant %s", text, got.ContentJSON(), want.ContentJSON())
	}
}

// Reading keeps nothing between calls, and documents can be read and hashed by many at once.
func TestManyReadAtOnce(t *testing.T) {
	text := doctest.Large(20_000)
	shared := read(t, text)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			nodes, err := markdown.Read(text)
			if err != nil {
				t.Error(err)
				return
			}
			d, err := doc.New("", nodes, doctest.IDs("n"))
			if err != nil || d.Hash() != shared.Hash() || markdown.Write(shared.Content()) != markdown.Write(d.Content()) {
				t.Errorf("%v", err)
			}
		})
	}
	wait.Wait()
}
