package view_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"cairn/internal/doc"
	"cairn/internal/doc/doctest"
	"cairn/internal/doc/markdown"
	"cairn/internal/doc/view"
	"cairn/internal/fault"
)

// text reads a document's Markdown page after page.
func text(t interface{ Fatalf(string, ...any) }, d *doc.Doc) (whole string, pages int) {
	for at := 0; ; pages++ {
		v, err := view.Markdown(d, markdown.Write(d.Content()), at)
		if err != nil {
			t.Fatalf("from %d: %v", at, err)
		}
		raw, _ := json.Marshal(v)
		if len(raw) > view.PageBytes || len(*v.Markdown) > view.PageContent || !utf8.ValidString(*v.Markdown) || v.MarkdownBytes != len(markdown.Write(d.Content())) {
			t.Fatalf("from %d: %d bytes, %d of text, %d in all", at, len(raw), len(*v.Markdown), v.MarkdownBytes)
		}
		whole += *v.Markdown
		if v.Truncation == nil {
			if v.Page.HasMore {
				t.Fatalf("from %d: more, and nothing that says where", at)
			}
			return whole, pages + 1
		}
		if next := v.Truncation.Continuation.Byte; !v.Page.HasMore || next <= at || next != len(whole) || len(v.Truncation.Reasons) == 0 {
			t.Fatalf("from %d: %+v", at, v.Truncation)
		} else {
			at = next
		}
	}
}

func TestPagesOfMarkdownAreTheWholeOfIt(t *testing.T) {
	for name, md := range map[string]string{
		"nothing": "", "short": "# A\n\nb\n", "list": strings.Repeat("- an item of many\n", 10_000), "one line": strings.Repeat("word ", 60_000), "no place to cut": strings.Repeat("x", 100_000),
		"characters of several bytes": strings.Repeat("äé漢𝄞", 20_000), "quotes that JSON doubles": strings.Repeat("\"\\ ", 30_000), "all escaped": strings.Repeat("<>&", 30_000),
	} {
		t.Run(name, func(t *testing.T) {
			d := made(t, md)
			if got, pages := text(t, d); got != markdown.Write(d.Content()) || len(got) > 40_000 && pages < 2 {
				t.Errorf("%d pages, %d bytes", pages, len(got))
			}
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		d := doctest.Docs("n").Draw(t, "document")
		if got, _ := text(t, d); got != markdown.Write(d.Content()) {
			t.Fatalf("%q", got)
		}
		v, err := view.Markdown(d, markdown.Write(d.Content()), rapid.IntRange(0, size(d)).Draw(t, "byte")) // also in the middle of a character
		if err != nil || !utf8.ValidString(*v.Markdown) {
			t.Fatalf("%v %q", err, *v.Markdown)
		}
	})
}

func size(d *doc.Doc) int { return len(markdown.Write(d.Content())) }

func TestPagesOfMarkdownEndWithABlock(t *testing.T) {
	d := made(t, strings.Repeat(strings.Repeat("word ", 200)+"\n\n", 100))
	page, err := view.Markdown(d, markdown.Write(d.Content()), 0)
	if err != nil || !strings.HasSuffix(*page.Markdown, "\n\n") {
		t.Fatalf("%v: it ends %q", err, (*page.Markdown)[len(*page.Markdown)-20:])
	}
	for _, at := range []int{-1, size(d) + 1} {
		if _, err := view.Markdown(d, markdown.Write(d.Content()), at); !fault.Is(err, fault.Invalid) {
			t.Errorf("from %d: %v", at, err)
		}
	}
}
