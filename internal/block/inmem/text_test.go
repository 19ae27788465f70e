package inmem

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"cairn/internal/doc"
	"cairn/internal/doc/doctest"
	"cairn/internal/doc/markdown"
)

// Text is the document's, whether it is kept or not, and what is kept counts against the bound.
func TestTextIsTheDocumentsAndCounts(t *testing.T) {
	c := NewCache(20_000)
	var docs []*doc.Doc
	for i := range 8 {
		nodes, err := markdown.Read(fmt.Sprintf("# Number %d\n\n%s", i, strings.Repeat("words ", 200)))
		if err != nil {
			t.Fatal(err)
		}
		d, err := doc.New("Title", nodes, doctest.IDs(fmt.Sprint("n", i)))
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, d)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				for i, d := range docs {
					if i%3 > 0 {
						c.Put(d.Hash(), d)
					}
					if got := c.Text(d); got != markdown.Write(d.Content()) {
						t.Errorf("%d: %q", i, got[:20])
					}
				}
			}
		})
	}
	all.Wait()
	sum := 0
	for e := c.order.Front(); e != nil; e = e.Next() {
		sum += e.Value.(*cached).size
	}
	if sum != c.bytes || c.bytes > c.most || len(c.by) != c.order.Len() {
		t.Errorf("%d bytes are counted, %d are there, %d at most; %d and %d entries", c.bytes, sum, c.most, len(c.by), c.order.Len())
	}
}
