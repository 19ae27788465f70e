package view

import "cairn/internal/doc"

// Bounds of a part of a document, as people read it on a page. A block that holds no others is never cut, nor is a table.
const (
	PartNodes = 1500
	PartBytes = 96 << 10 // of text and attributes
)

// Part gives what of a document stands from block number from on (counted from 0 in document order) as far as a page goes, and the
// number of the block that the next page begins with, 0 where this is the last. What holds blocks of several pages is on each
// of them, with those of that page.
func Part(d *doc.Doc, from int) (nodes []*doc.Node, next int) {
	p := &part{from: from}
	return p.list(d.Content()), p.next
}

// Parts gives the numbers of the blocks that the parts of a document begin with: the first is 0.
func Parts(d *doc.Doc) []int {
	starts := []int{0}
	for {
		_, next := Part(d, starts[len(starts)-1])
		if next == 0 {
			return starts
		}
		starts = append(starts, next)
	}
}

type part struct {
	from, at    int // block numbers: where to begin, and of the node looked at
	nodes, size int // taken so far
	next        int
}

func (p *part) list(nodes []*doc.Node) (out []*doc.Node) {
	for _, n := range nodes {
		if p.next > 0 {
			break
		}
		if p.at+n.Len() <= p.from {
			p.at += n.Len()
			continue
		}
		if m := p.node(n); m != nil {
			out = append(out, m)
		}
	}
	return out
}

func (p *part) node(n *doc.Node) *doc.Node {
	whole := p.at >= p.from && p.nodes+n.Len() <= PartNodes && p.size+n.Bytes() <= PartBytes
	if whole || !n.HoldsBlocks() || n.Type == "table" {
		if !whole && p.nodes > 0 {
			p.next = p.at
			return nil
		}
		p.nodes, p.size, p.at = p.nodes+n.Len(), p.size+n.Bytes(), p.at+n.Len()
		return n
	}
	began := p.at
	p.at++
	m := &doc.Node{Type: n.Type, ID: n.ID, Attrs: n.Attrs, Content: p.list(n.Content)}
	if len(m.Content) == 0 {
		if p.next > began {
			p.next = began
		}
		return nil
	}
	if n.Type == "ordered_list" {
		m.Attrs = []doc.Attr{{Name: "start", Value: n.Int("start") + before(n.Content, m.Content[0].ID)}}
	}
	return m
}

// before counts the items in front of the one with that id.
func before(items []*doc.Node, id string) int {
	for i, n := range items {
		if n.ID == id {
			return i
		}
	}
	return 0
}
