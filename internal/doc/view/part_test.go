package view_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cairn/internal/doc"
	"cairn/internal/doc/doctest"
	"cairn/internal/doc/markdown"
	"cairn/internal/doc/view"
)

func large(t testing.TB, source string) *doc.Doc {
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

// leaves lists the blocks that hold no others, in order; a table is one.
func leaves(nodes []*doc.Node) (ids []string) {
	for _, n := range nodes {
		n.Walk(1, func(n *doc.Node, _ int) bool {
			if !n.HoldsBlocks() || n.Type == "table" {
				ids = append(ids, n.ID)
			}
			return n.Type != "table"
		})
	}
	return ids
}

func TestPartsHoldEachBlockOnceWithinBounds(t *testing.T) {
	nested := strings.Repeat("> ", 5) + strings.ReplaceAll(doctest.Large(120_000), "\n- ", "\n> > > > > - ")
	for _, source := range []string{"", "a", doctest.Large(400_000), nested, strings.Repeat("1. item\n", 2000), strings.Repeat("a\n\n", 4000)} {
		d := large(t, source)
		starts, all := view.Parts(d), []string(nil)
		for i, from := range starts {
			nodes, next := view.Part(d, from)
			if i+1 < len(starts) && next != starts[i+1] || i+1 == len(starts) && next != 0 {
				t.Fatalf("part %d goes on with block %d", i, next)
			}
			ids, size := leaves(nodes), 0
			for _, id := range ids {
				size += d.Node(id).Bytes()
			}
			if len(ids) > view.PartNodes || size > view.PartBytes && len(ids) > 1 {
				t.Errorf("part %d has %d blocks of %d bytes", i, len(ids), size)
			}
			if _, err := doc.New("", nodes, doctest.IDs("m")); err != nil {
				t.Errorf("part %d is no document: %v", i, err)
			}
			all = append(all, ids...)
		}
		if !slices.Equal(all, leaves(d.Content())) {
			t.Errorf("%d parts hold other blocks than the document of %d", len(starts), d.Len())
		}
	}
}

func TestAPartOfAListGoesOnCounting(t *testing.T) {
	d := large(t, strings.Repeat("1. item\n", 2000))
	starts := view.Parts(d)
	nodes, _ := view.Part(d, starts[1])
	if n := nodes[0]; n.Int("start") != 751 || n.Content[0].ID != d.Content()[0].Content[750].ID {
		t.Errorf("the second part begins with %d", n.Int("start"))
	}
}

func TestPartsOfSmallDocumentsAreTheDocument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := doctest.Docs("n").Draw(t, "doc")
		nodes, next := view.Part(d, 0)
		if next != 0 || !slices.Equal(nodes, d.Content()) {
			t.Errorf("part of %d nodes, next %d", len(nodes), next)
		}
		from := rapid.IntRange(0, d.Len()).Draw(t, "from")
		nodes, _ = view.Part(d, from)
		if from < d.Len() && len(nodes) == 0 {
			t.Errorf("nothing stands from block %d on of %d", from, d.Len())
		}
	})
}
