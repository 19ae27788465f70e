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
	if twice := markdown.Write(again.Content()); twice != once {
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

// Bad Markdown takes time that grows with its size, not with its square, and never the stack.
func TestHostileMarkdownIsReadInTime(t *testing.T) {
	ticks, defs, nested := &strings.Builder{}, &strings.Builder{}, &strings.Builder{}
	for i := range 1500 {
		ticks.WriteString(strings.Repeat("`", i) + " ")
		nested.WriteString(strings.Repeat(" ", 2*i) + "- a\n")
	}
	for i := range 100_000 {
		fmt.Fprintf(defs, "[a%d]: x\n", i)
	}
	const n = 200_000
	for name, s := range map[string]string{
		"quotes": strings.Repeat(">", n), "quotes of many lines": strings.Repeat(strings.Repeat("> ", 200)+"a\n", 2000), "lists": strings.Repeat("- ", n), "numbers": strings.Repeat("1. ", n), "nested lists": nested.String(),
		"brackets": strings.Repeat("[", n), "images": strings.Repeat("![", n), "closed": strings.Repeat("[", n) + strings.Repeat("](x)", n), "labels": strings.Repeat("[a][b]", n), "links": strings.Repeat("[a](", n), "pointed": strings.Repeat("[a](<b", n),
		"stars": strings.Repeat("*a ", n), "both": strings.Repeat("*a_ ", n), "double": strings.Repeat("a**b", n), "waves": strings.Repeat("~~a ", n), "marked": strings.Repeat("==a ", n), "ticks": ticks.String(),
		"tags": strings.Repeat("<a", n), "comments": strings.Repeat("<!--", n), "instructions": strings.Repeat("a <?", n), "addresses": strings.Repeat("a@b ", n), "entities": strings.Repeat("&#1", n),
		"lines": strings.Repeat("a\n", n), "definitions": defs.String(), "escaped cells": "|a|b|\n|-|-|\n" + strings.Repeat("|x `a\\|b`|y|\n", 20000), "columns": "|" + strings.Repeat("a|", 5000) + "\n|" + strings.Repeat("-|", 5000) + "\n" + strings.Repeat("a\n", 2000),
		"heading": "# " + strings.Repeat("[a](", n), "cell": "|" + strings.Repeat("*a_ ", n) + "|\n|-|\n", "item": "- " + strings.Repeat("*a_ ", n),
	} {
		start := time.Now()
		nodes, err := markdown.Read(s)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("%s: %d bytes took %v", name, len(s), took)
		} else if testing.Verbose() {
			t.Log(name, len(s), took)
		}
		if len(nodes) == 0 && name != "definitions" {
			t.Errorf("%s: nothing was read", name)
		}
	}
}
