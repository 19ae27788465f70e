// Package doctest makes documents for tests.
package doctest

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"cairn/internal/doc"
)

// IDs gives prefix1, prefix2 and so on.
func IDs(prefix string) func() string {
	n := 0
	return func() string {
		n++
		return fmt.Sprintf("%s%d", prefix, n)
	}
}

// Word draws text of the kinds that break things: signs of Markdown, spaces, controls, scripts from right to left, emoji.
func Word() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{
			"word", "a", "Plan", "مرحبا بالعالم (v2.1)!", "שלום 123 - done", "😀", "👩‍👩‍👧", "é", "e\u0301", "汉字", "\u00a0", "\u3000", "\u2028", "\u0085", "\ufeff", "\x01", "\x7f", "\t", " ", "  ",
			"*", "**", "_", "__", "~", "~~", "=", "==", "===", "`", "``", "```", "\\", "\\\\", "[", "]", "(", ")", "<", ">", "!", "![", "](", "&", "&amp;", "&#32;", "&lt", "|", "\\|", "#", "# ", "-", "- ", "---", "+ ", "1. ", "2) ", "1", ".", ":", "@", "$&", "$1", "%s",
			"snake_case_name", "a*b", "a==b", "http://example.org/x", "https://", "www.example.org", "ana@example.org", "ftp://x.y", "<b>", "<br>", "</p>", "<!-- x -->", "[!note]", "[ ] ", "[x] ", "[a]: b", "javascript:alert(1)", "\"", "'", ",", "“q”", "，", "٫",
		}),
		rapid.StringMatching(`[a-z]{1,8}`),
		rapid.StringOfN(rapid.RuneFrom([]rune("*_~=`[]()<>\\&|#-+.!: ab1\t")), 1, 6, -1),
	)
}

// Line draws text without line breaks, "" too where least is 0.
func Line(least, most int) *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(Word(), least, most), func(w []string) string { return strings.Join(w, "") })
}

// URL draws what a link may go to.
func URL() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"https://example.org/a?b=1&c=2#d", "http://x.y/(z)", "mailto:ana@example.org", "tel:+1", "a b.md", "../x&amp;y", "cairn:file/f1", "cairn:task/9", "#top", "<odd>", "a\\b", "x|y", "é/汉", "//host/p", "a*b_c*d", "a\"b"})
}

func marks(t *rapid.T, may []string) (out []doc.Mark) {
	for _, m := range may {
		if rapid.IntRange(0, 4).Draw(t, m) > 0 {
			continue
		}
		mark := doc.Mark{Type: m}
		if m == "link" {
			mark.Attrs = []doc.Attr{{Name: "href", Value: URL().Draw(t, "href")}}
			if rapid.Bool().Draw(t, "titled") {
				mark.Attrs = append(mark.Attrs, doc.Attr{Name: "title", Value: Line(0, 3).Draw(t, "title")})
			}
		}
		out = append(out, mark)
	}
	return out
}

func of(typ string) []string { return (&doc.Node{Type: typ}).Spec().Marks }

// Inlines draws inline content.
func Inlines() *rapid.Generator[[]*doc.Node] {
	return rapid.Custom(func(t *rapid.T) (out []*doc.Node) {
		for range rapid.IntRange(0, 5).Draw(t, "inlines") {
			switch rapid.IntRange(0, 9).Draw(t, "inline") {
			case 0:
				out = append(out, &doc.Node{Type: "hard_break"})
			case 1:
				out = append(out, &doc.Node{Type: "mention", Marks: marks(t, of("mention")), Attrs: []doc.Attr{{Name: "block", Value: "b-1"}, {Name: "label", Value: Line(0, 3).Draw(t, "label")}}})
			case 2:
				out = append(out, &doc.Node{Type: "inline_image", Marks: marks(t, of("inline_image")), Attrs: []doc.Attr{{Name: "src", Value: rapid.SampledFrom([]string{"a.png", "cairn:file/f2", "https://x.y/z.png"}).Draw(t, "src")}, {Name: "alt", Value: Line(0, 3).Draw(t, "alt")}}})
			default:
				out = append(out, doc.Text(Line(1, 4).Draw(t, "text"), marks(t, of("text"))...))
			}
		}
		return out
	})
}

// Blocks draws blocks with others inside them up to depth.
func Blocks(depth int) *rapid.Generator[[]*doc.Node] {
	return rapid.Custom(func(t *rapid.T) (out []*doc.Node) {
		for range rapid.IntRange(1, 3).Draw(t, "blocks") {
			out = append(out, block(t, depth))
		}
		return out
	})
}

func block(t *rapid.T, depth int) *doc.Node {
	kinds := []string{"paragraph", "paragraph", "heading", "code_block", "divider", "table", "image", "file", "embed"}
	if depth > 0 {
		kinds = append(kinds, "bullet_list", "ordered_list", "quote", "callout", "bullet_list")
	}
	n := &doc.Node{Type: rapid.SampledFrom(kinds).Draw(t, "type")}
	set := func(name string, v any) { n.Attrs = append(n.Attrs, doc.Attr{Name: name, Value: v}) }
	switch n.Type {
	case "paragraph":
		n.Content = Inlines().Draw(t, "content")
	case "heading":
		set("level", rapid.IntRange(1, 6).Draw(t, "level"))
		n.Content = Inlines().Draw(t, "content")
	case "code_block":
		set("language", rapid.OneOf(rapid.SampledFrom([]string{"", "go", "__html", "a b"}), Line(0, 3)).Draw(t, "language"))
		n.Content = []*doc.Node{doc.Text(strings.Join(rapid.SliceOfN(Line(0, 3), 0, 4).Draw(t, "code"), "\n"))}
	case "table":
		n.Content = rows(t)
	case "image":
		set("src", rapid.SampledFrom([]string{"a.png", "cairn:file/f2", "https://x.y/(z).png"}).Draw(t, "src"))
		set("alt", Line(0, 3).Draw(t, "alt"))
		set("title", Line(0, 3).Draw(t, "title"))
	case "file":
		set("file", "f-3")
		set("name", Line(0, 3).Draw(t, "name"))
	case "embed":
		set("src", rapid.SampledFrom([]string{"cairn:block/b-2", "https://example.org/v?x=1&y"}).Draw(t, "src"))
		set("title", Line(0, 3).Draw(t, "title"))
	case "callout":
		set("kind", rapid.SampledFrom([]string{"note", "tip", "important", "warning", "caution"}).Draw(t, "kind"))
		set("title", Line(0, 3).Draw(t, "title"))
		n.Content = Blocks(depth-1).Draw(t, "content")
	case "quote":
		n.Content = Blocks(depth-1).Draw(t, "content")
	case "ordered_list", "bullet_list":
		if n.Type == "ordered_list" {
			set("start", rapid.SampledFrom([]int{0, 1, 1, 9, 42, 999999999}).Draw(t, "start"))
		}
		for range rapid.IntRange(1, 3).Draw(t, "items") {
			item := &doc.Node{Type: "list_item", Content: Blocks(depth-1).Draw(t, "item")}
			if rapid.IntRange(0, 2).Draw(t, "task") == 0 {
				item.Type, item.Attrs = "task_item", []doc.Attr{{Name: "checked", Value: rapid.Bool().Draw(t, "checked")}}
			}
			n.Content = append(n.Content, item)
		}
	}
	return n
}

func rows(t *rapid.T) (rows []*doc.Node) {
	columns := rapid.IntRange(1, 3).Draw(t, "columns")
	for i := range rapid.IntRange(1, 3).Draw(t, "rows") {
		row := &doc.Node{Type: "table_row"}
		for range columns {
			cell := &doc.Node{Type: "table_cell", Content: Inlines().Draw(t, "cell")}
			if i == 0 {
				cell.Type = "table_header"
				cell.Attrs = []doc.Attr{{Name: "align", Value: rapid.SampledFrom([]string{"", "left", "center", "right"}).Draw(t, "align")}}
			}
			row.Content = append(row.Content, cell)
		}
		rows = append(rows, row)
	}
	return rows
}

// Docs draws documents, their ids being prefix1, prefix2 and so on.
func Docs(prefix string) *rapid.Generator[*doc.Doc] {
	return rapid.Custom(func(t *rapid.T) *doc.Doc {
		var nodes []*doc.Node
		if rapid.IntRange(0, 9).Draw(t, "empty") > 0 {
			nodes = Blocks(3).Draw(t, "content")
		}
		d, err := doc.New(Line(0, 4).Draw(t, "title"), nodes, IDs(prefix))
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}

// Large gives Markdown of about that many bytes: half list items, every other one with a link, and one line of a fifth of it.
func Large(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size*4/5; i++ {
		if i%2 == 0 {
			fmt.Fprintf(&b, "- item %d with a [link %d](https://example.org/path/%d?q=1), **bold** words and text to fill the line, as people write it\n", i, i, i)
		} else {
			fmt.Fprintf(&b, "- item %d without a link but with text that goes on for a while, and on and on, until there is enough of it in the line\n", i)
		}
	}
	b.WriteString("\n")
	for b.Len() < size {
		b.WriteString("word and more ")
	}
	return b.String()
}
