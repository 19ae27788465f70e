package markdown_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cairn/internal/doc"
	"cairn/internal/doc/doctest"
	"cairn/internal/doc/markdown"
	"cairn/internal/fault"
)

// stable checks that what was read from any Markdown is the same after writing and reading it again.
func stable(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, text string) *doc.Doc {
	d := read(t, text)
	once := markdown.Write(d.Content())
	again := read(t, once)
	if want := build(t, sayable(d.Content(), "", false)); string(again.ContentJSON()) != string(want.ContentJSON()) {
		t.Fatalf("Markdown %q\nwritten %q\n got %s\nwant %s", text, once, again.ContentJSON(), want.ContentJSON())
	}
	if twice := markdown.Write(again.Content()); twice != once && string(again.ContentJSON()) == string(d.ContentJSON()) {
		t.Fatalf("Markdown %q\nwritten %q\n   then %q", text, once, twice)
	}
	return d
}

func TestAnyMarkdownIsStableOnceRead(t *testing.T) {
	piece := rapid.OneOf(doctest.Word(), rapid.SampledFrom([]string{
		"\n", "\n", "\n\n", "\r\n", "\r", "\x00", "    ", "> ", "> [!note] ", "> [!tip]\n> ", "- ", "* ", "1. ", "- [ ] ", "  - ", "```go\n", "~~~\n", "***\n", "===\n", "# ", "| a | b |\n| --- | :-: |\n| c | d |\n",
		"[a](b)", "![a](b.png)", "[x](javascript:alert(1))", "![x](data:image/png;base64,a)", "[m](cairn:block/b-1)", "![e](cairn:embed/https://x.y)", "[f](cairn:file/f1)", "<https://x.y/z>", "[r]", "\n\n[r]: https://x.y 'T'\n\n", "<div>\n", "&copy;", "&#0;", "&nosuch;", "\\\n", "  \n", "_b_", "**c**", "~d~", "==e==", "`f`",
	}))
	rapid.Check(t, func(t *rapid.T) {
		stable(t, strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), ""))
	})
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"", "# a\n\nb *c* **d** ~~e~~ ==f== `g`\n", "- [x] a\n  1. b\n\n     c\n", "> [!note] t\n> x\n", "|a|b|\n|-|:-:|\n|`x\\|y`|z\n", "[a](<b c> \"t\") <br> <b>x</b> &amp; \\*\n", doctest.Large(2000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if nodes, err := markdown.Read(s); err == nil {
			if _, err := doc.New("", nodes, doctest.IDs("n")); err != nil {
				t.Fatalf("%q: %v", s, err)
			}
			stable(t, s)
		}
	})
}

// TestCodeWithABracketBeginsNoDefinition holds links apart from link reference definitions, which the parser reads first.
func TestCodeWithABracketBeginsNoDefinition(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"[``]:`x``](https://x.y)\n", "]:`x"}, {"[`]:`](https://x.y)\n", "]:"}, {"[`a`]: https://x.y\n\n[`a`]\n", "a"},
	} {
		d := read(t, c.text)
		if len(d.Content()) != 1 || d.Content()[0].Plain() != c.want || d.Content()[0].Content[0].Marks[0].Str("href") != "https://x.y" {
			t.Errorf("%q: %s", c.text, d.JSON())
		}
	}
}

// Bad Markdown takes time that grows with its size, not with its square, and never the stack.
func TestHostileMarkdownIsReadInTime(t *testing.T) {
	ticks, defs, nested := &strings.Builder{}, &strings.Builder{}, &strings.Builder{}
	for i := range 800 {
		ticks.WriteString(strings.Repeat("`", i) + " ")
		nested.WriteString(strings.Repeat(" ", 2*i) + "- a\n")
	}
	for i := range 50_000 {
		fmt.Fprintf(defs, "[a%d]: x\n", i)
	}
	const n = 60_000
	for name, s := range map[string]string{
		"quotes": strings.Repeat(">", n), "quotes of many lines": strings.Repeat(strings.Repeat("> ", 200)+"a\n", 2000), "lists": strings.Repeat("- ", n), "numbers": strings.Repeat("1. ", n), "nested lists": nested.String(),
		"brackets": strings.Repeat("[", n), "images": strings.Repeat("![", n), "closed": strings.Repeat("[", n) + strings.Repeat("](x)", n), "labels": strings.Repeat("[a][b]", n), "links": strings.Repeat("[a](", n), "pointed": strings.Repeat("[a](<b", n),
		"stars": strings.Repeat("*a ", n), "both": strings.Repeat("*a_ ", n), "double": strings.Repeat("a**b", n), "waves": strings.Repeat("~~a ", n), "marked": strings.Repeat("==a ", n), "ticks": ticks.String(),
		"tags": strings.Repeat("<a", n), "comments": strings.Repeat("<!--", n), "instructions": strings.Repeat("a <?", n), "addresses": strings.Repeat("a@b ", n), "entities": strings.Repeat("&#1", n),
		"lines": strings.Repeat("a\n", n), "definitions": defs.String(), "escaped cells": "|a|b|\n|-|-|\n" + strings.Repeat("|x `a\\|b`|y|\n", 20000), "columns": "|" + strings.Repeat("a|", 5000) + "\n|" + strings.Repeat("-|", 5000) + "\n" + strings.Repeat("a\n", 2000),
		"heading": "# " + strings.Repeat("[a](", n), "cell": "|" + strings.Repeat("*a_ ", n) + "|\n|-|\n", "escapes": strings.Repeat("\\*", n), "breaks": strings.Repeat("a<br>", n), "hard": strings.Repeat("a\\\n", n), "code": strings.Repeat("`a` b ", n), "mentions": strings.Repeat("[a](cairn:block/b) ", n), "link of parts": "[" + strings.Repeat("*a* b ", 150) + "](x) " + strings.Repeat("[**a**](x)[b](x)", n/4), "item": "- " + strings.Repeat("*a_ ", n),
	} {
		start := time.Now()
		nodes, err := markdown.Read(s)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := doc.New("", nodes, doctest.IDs("n")); err == nil {
			markdown.Write(d.Content())
			d.Refs()
		} else if !fault.Is(err, fault.TooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(start); took > 6*time.Second {
			t.Errorf("%s: %d bytes took %v", name, len(s), took)
		} else if testing.Verbose() {
			t.Log(name, len(s), took)
		}
		if len(nodes) == 0 && name != "definitions" {
			t.Errorf("%s: nothing was read", name)
		}
	}
}

// TestNoLinkLeadsToAScript is CASES 40: what is no link stays as the text it was, and so after it was written and read again.
func TestNoLinkLeadsToAScript(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"[x](javascript:alert(1))", "[x](javascript:alert(1))"},
		{"[x](JaVaScRiPt:alert(1))", "[x](JaVaScRiPt:alert(1))"},
		{"[x](java&#115;cript:alert(1))", "[x](java&#115;cript:alert(1))"},
		{"[x](data:text/html;base64,PHA+)", "[x](data:text/html;base64,PHA+)"},
		{"[x](vbscript:x)", "[x](vbscript:x)"},
		{"[x](file:///etc/passwd)", "[x](file:///etc/passwd)"},
		{"<javascript:alert(1)>", "<javascript:alert(1)>"},
		{"[x][r]\n\n[r]: javascript:alert(1)", "[x](javascript:alert(1))"},
		{"![x](javascript:alert(1))", "![x](javascript:alert(1))"},
		{"![x](data:image/svg+xml,a)", "![x](data:image/svg+xml,a)"},
		{"![x](mailto:a@b.c)", "![x](mailto:a@b.c)"},
		{"[x](cairn:block/a/b)", "[x](cairn:block/a/b)"},
		{"![t](cairn:embed/javascript:alert(1))", "![t](cairn:embed/javascript:alert(1))"},
		{"![t](cairn:embed/cairn:block/b)", "![t](cairn:embed/cairn:block/b)"},
		{"a <img src=x onerror=alert(1)> b", "a <img src=x onerror=alert(1)> b"},
		{"<svg onload=alert(1)>\n", "<svg onload=alert(1)>"},
		{"[x]()", "[x]()"},
	} {
		for d, i := stable(t, c.text), 0; i < 2; d, i = read(t, markdown.Write(d.Content())), i+1 {
			if d.Plain() != c.want || strings.Contains(string(d.JSON()), `"href"`) || strings.Contains(string(d.JSON()), `"src"`) {
				t.Errorf("%q: %s", c.text, d.JSON())
			}
		}
	}
	// a quote in an image's source is part of no attribute
	if d := stable(t, `![a](x"onerror="alert(1))`); d.Content()[0].Str("src") != `x"onerror="alert(1)` {
		t.Errorf("%s", d.JSON())
	}
}

// TestMarkdownAsPeopleWriteIt shows what is read and how it is written, which is as plain as can be.
func TestMarkdownAsPeopleWriteIt(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"# Title #\n\nSetext\n------\n", "# Title\n\n## Setext\n"},
		{"soft\nbreak, hard  \nbreak and\\\nanother<br>one\n", "soft break, hard\\\nbreak and\\\nanother\\\none\n"},
		{"* a\n* b\n\n  c\n\n1) x\n2) y\n   - z\n", "- a\n- b\n\n  c\n\n1. x\n2. y\n   - z\n"},
		{"- [ ] open\n- [X] done\n- [x](y) no box\n", "- [ ] open\n- [x] done\n- [x](y) no box\n"},
		{"- a\n\n* b\n", "- a\n\n* b\n"},
		{"> [!NOTE]\n> text\n\n> [!tip] Look here\n>\n> - a\n\n> [!other]\n> x\n", "> [!note]\n> text\n\n> [!tip] Look here\n>\n> - a\n\n> \\[!other\\] x\n"},
		{"    indented\n\n~~~ go run\nx\n~~~\n", "```\nindented\n```\n\n```go run\nx\n```\n"},
		{"| a | b |\n|:-:|---|\n| `x\\|y` | c | d |\n| e |\n", "| a | b |\n| :-: | --- |\n| `x\\|y` | c |\n| e |  |\n"},
		{"*a* __b__ ~~c~~ ==d== `e` ***f***\n", "_a_ **b** ~~c~~ ==d== `e` **_f_**\n"},
		{"snake_case a*b a==b 5 * 3 ~5 x_ C# #tag @ana 1.5 a:b\n", "snake_case a\\*b a==b 5 \\* 3 \\~5 x\\_ C# #tag @ana 1.5 a:b\n"},
		{"https://x.y/a_b?c=d, www.x.y and ana@x.y.\n", "[https\\://x.y/a_b?c=d](https://x.y/a_b?c=d), [www\\.x.y](http://www.x.y) and [ana\\@x.y](mailto:ana@x.y).\n"},
		{"[a *b*](https://x.y 'T') ![i](p.png) [m](cairn:block/b1) text\n", "[a _b_](https://x.y \"T\") ![i](p.png) [m](cairn:block/b1) text\n"},
		{"![alt](cairn:file/f1 \"cap\")\n\n[f.pdf](cairn:file/f1)\n\n![c](cairn:block/b1)\n\n![v](cairn:embed/https://x.y)\n", "![alt](cairn:file/f1 \"cap\")\n\n[f.pdf](cairn:file/f1)\n\n![c](cairn:block/b1)\n\n![v](cairn:embed/https://x.y)\n"},
		{"<div>\n<b>x</b>\n</div>\n\na <b>x</b> <!-- c -->\n", "```html\n<div>\n<b>x</b>\n</div>\n```\n\na \\<b>x\\</b> \\<!-- c -->\n"},
		{"a\n\n***\n\nb\n- - -\n", "a\n\n---\n\nb\n\n---\n"},
		{"\ufeffBOM\r\nand\rCR \x00 &copy; &nosuch; \\* &#x41;\r\n", "BOM and CR \ufffd © \\&nosuch; \\* A\n"},
		{"مرحبا بالعالم (v2.1)!\n\n- [ ] Plan: שלום 123 - done\n", "مرحبا بالعالم (v2.1)!\n\n- [ ] Plan: שלום 123 - done\n"},
		{"", ""},
	} {
		d := stable(t, c.text)
		if got := markdown.Write(d.Content()); got != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.text, got, c.want)
		}
	}
}
