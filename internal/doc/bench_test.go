package doc_test

import (
	"fmt"
	"testing"

	"cairn/internal/doc"
	"cairn/internal/doc/doctest"
	"cairn/internal/doc/markdown"
	"cairn/internal/doc/version"
	"cairn/internal/doc/view"
)

func large(tb testing.TB, size int) *doc.Doc {
	tb.Helper()
	nodes, err := markdown.Read(doctest.Large(size))
	if err != nil {
		tb.Fatal(err)
	}
	d, err := doc.New("Large", nodes, doctest.IDs("018f3c1e-7a90-7c3e-8d2b-5a0c"))
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// onePatch changes a word in the middle of a document's list.
func onePatch(tb testing.TB, d *doc.Doc) doc.Patch {
	items := d.Content()[0].Content
	p, err := doc.DecodePatch(fmt.Appendf(nil, `[{"op":"replace_text","node_id":%q,"find":"text","replace":"words"}]`, items[len(items)/2].ID), markdown.Read)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func each(b *testing.B, f func(b *testing.B, size int)) {
	for _, size := range []int{10_000, 1_500_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) { f(b, size) })
	}
}

func BenchmarkImport(b *testing.B) {
	each(b, func(b *testing.B, size int) {
		text := doctest.Large(size)
		for b.Loop() {
			nodes, err := markdown.Read(text)
			if err != nil {
				b.Fatal(err)
			}
			d, err := doc.New("Large", nodes, doctest.IDs("n"))
			if err != nil {
				b.Fatal(err)
			}
			d.Hash()
			d.JSON()
		}
	})
}

func BenchmarkWriteMarkdown(b *testing.B) {
	each(b, func(b *testing.B, size int) {
		d := large(b, size)
		for b.Loop() {
			markdown.Write(d.Content())
		}
	})
}

func BenchmarkParse(b *testing.B) {
	each(b, func(b *testing.B, size int) {
		raw := large(b, size).JSON()
		for b.Loop() {
			if _, err := doc.Parse(raw); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkPatchAndHash(b *testing.B) {
	each(b, func(b *testing.B, size int) {
		d := large(b, size)
		p := onePatch(b, d)
		d.Hash()
		for b.Loop() {
			r, err := d.Apply(p, doctest.IDs("x"))
			if err != nil {
				b.Fatal(err)
			}
			r.Doc.Hash()
		}
	})
}

func BenchmarkPatchHashAndJSON(b *testing.B) {
	each(b, func(b *testing.B, size int) {
		d := large(b, size)
		p := onePatch(b, d)
		d.Hash()
		for b.Loop() {
			r, err := d.Apply(p, doctest.IDs("x"))
			if err != nil {
				b.Fatal(err)
			}
			r.Doc.Hash()
			r.Doc.JSON()
		}
	})
}

func BenchmarkRebase(b *testing.B) {
	each(b, func(b *testing.B, size int) {
		d := large(b, size)
		p := onePatch(b, d)
		first := d.Content()[0].Content[0].ID
		r, err := d.Apply(doc.Patch{{Op: "delete", NodeID: first}}, nil)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := version.Rebase(d, r.Doc, p, doctest.IDs("x")); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDelta(b *testing.B) {
	each(b, func(b *testing.B, size int) {
		d := large(b, size)
		r, err := d.Apply(onePatch(b, d), nil)
		if err != nil {
			b.Fatal(err)
		}
		old, now := d.JSON(), r.Doc.JSON()
		for b.Loop() {
			b.ReportMetric(float64(len(version.Delta(old, now))), "bytes")
		}
	})
}

func BenchmarkFirstPage(b *testing.B) {
	each(b, func(b *testing.B, size int) {
		d := large(b, size)
		for b.Loop() {
			if _, err := view.Read(d, view.Ask{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
