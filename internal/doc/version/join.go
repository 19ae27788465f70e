package version

import (
	"cairn/internal/doc"
	"cairn/internal/fault"
)

// Clash is a node that two people changed from the same version on. Mine or Theirs is nil where that side took it away.
type Clash struct {
	NodeID       string
	Mine, Theirs *doc.Node
}

// Join brings two later versions of a document together for somebody to go over: what doesn't overlap is merged, of a block that both
// changed both stand there, mine first under an id of its own, and what one side took away while the other changed it is there.
// nil where they can't be brought together so. No text of either side is missing in the result but one title: where each gave it
// another, it is theirs, and doc.RootID is among the clashes.
func Join(base, mine, theirs *doc.Doc, newID func() string) (*doc.Doc, []Clash) {
	ours, other := mine, theirs
	var clashes []Clash
	seen := map[string]bool{}
	for {
		merged, err := Merge(base, ours, other)
		if err == nil {
			return both(merged, clashes, newID), clashes
		}
		list, _ := fault.From(err).Data["conflicts"].([]Conflict)
		before := len(seen)
		for _, c := range list {
			if seen[c.NodeID] {
				continue
			}
			seen[c.NodeID] = true
			if c.NodeID == doc.RootID { // the titles
				ours, _ = ours.WithTitle(theirs.Title())
				clashes = append(clashes, Clash{NodeID: doc.RootID})
				continue
			}
			b, m, t := base.Node(c.NodeID), mine.Node(c.NodeID), theirs.Node(c.NodeID)
			switch {
			case b == nil || m == nil && t == nil:
				return nil, nil
			case t == nil:
				other = putBack(base, other, b)
			case m == nil:
				ours = putBack(base, ours, b)
			default:
				ours = withOwn(ours, m, b)
			}
			if other == nil || ours == nil {
				return nil, nil
			}
			if m == nil || t == nil || !m.Same(t) {
				clashes = append(clashes, Clash{c.NodeID, m, t})
			}
		}
		if len(seen) == before {
			return nil, nil
		}
	}
}

// both puts the nodes of mine that clash with theirs in front of them; nil where no other node may stand.
func both(d *doc.Doc, clashes []Clash, newID func() string) *doc.Doc {
	mine := map[string]*doc.Node{}
	for _, c := range clashes {
		if c.Mine == nil || c.Theirs == nil || c.Mine.HoldsBlocks() {
			continue
		}
		if c.Mine.Spec().Group != doc.Block { // a cell of a table
			return nil
		}
		mine[c.NodeID] = &doc.Node{Type: c.Mine.Type, Attrs: c.Mine.Attrs, Content: c.Mine.Content}
	}
	if len(mine) == 0 {
		return d
	}
	return rebuilt(d, newID, func(n *doc.Node) []*doc.Node {
		if m := mine[n.ID]; m != nil {
			return []*doc.Node{m, n}
		}
		return []*doc.Node{n}
	})
}

// withOwn gives the document with what node now is without the blocks in it as it was.
func withOwn(d *doc.Doc, now, was *doc.Node) *doc.Doc {
	if now.HoldsBlocks() != was.HoldsBlocks() {
		return nil
	}
	return rebuilt(d, nil, func(n *doc.Node) []*doc.Node {
		if n.ID != now.ID {
			return []*doc.Node{n}
		}
		content := was.Content
		if was.HoldsBlocks() {
			content = n.Content
		}
		return []*doc.Node{{Type: was.Type, ID: n.ID, Attrs: was.Attrs, Content: content}}
	})
}

// putBack gives the document with a node of base that isn't there any more, behind the neighbour that it had, and with what it stood
// in; nil where that can't be.
func putBack(base, d *doc.Doc, b *doc.Node) *doc.Doc {
	here := map[string]bool{}
	for n := range d.All() {
		here[n.ID] = true
	}
	up := holder(base, b.ID)
	for up != "" && !here[up] {
		b, up = base.Node(up), holder(base, up)
	}
	siblings := base.Content()
	if up != "" {
		siblings = base.Node(up).Content
	}
	again := missing(b, here)
	after := ""
	for _, n := range siblings {
		if n.ID == b.ID {
			break
		}
		if here[n.ID] {
			after = n.ID
		}
	}
	put := func(nodes []*doc.Node) []*doc.Node {
		at := 0
		for i, n := range nodes {
			if n.ID == after {
				at = i + 1
			}
		}
		out := append(append([]*doc.Node{}, nodes[:at]...), again)
		return append(out, nodes[at:]...)
	}
	if up == "" {
		return orNil(doc.New(d.Title(), put(d.Content()), nil))
	}
	return rebuilt(d, nil, func(n *doc.Node) []*doc.Node {
		if n.ID != up {
			return []*doc.Node{n}
		}
		return []*doc.Node{{Type: n.Type, ID: n.ID, Attrs: n.Attrs, Content: put(n.Content)}}
	})
}

// missing gives a node with those in it that aren't elsewhere.
func missing(n *doc.Node, here map[string]bool) *doc.Node {
	if !n.HoldsBlocks() {
		return n
	}
	m := &doc.Node{Type: n.Type, ID: n.ID, Attrs: n.Attrs}
	for _, c := range n.Content {
		if !here[c.ID] {
			m.Content = append(m.Content, missing(c, here))
		}
	}
	return m
}

// rebuilt gives a document in which each node is what f makes of it; nil where that is none.
func rebuilt(d *doc.Doc, newID func() string, f func(n *doc.Node) []*doc.Node) *doc.Doc {
	var list func(nodes []*doc.Node) ([]*doc.Node, bool)
	list = func(nodes []*doc.Node) (out []*doc.Node, changed bool) {
		for _, n := range nodes {
			if inner, other := list(blocks(n)); other {
				n = &doc.Node{Type: n.Type, ID: n.ID, Attrs: n.Attrs, Content: inner}
				changed = true
			}
			made := f(n)
			changed = changed || len(made) != 1 || made[0] != n
			out = append(out, made...)
		}
		return out, changed
	}
	nodes, _ := list(d.Content())
	return orNil(doc.New(d.Title(), nodes, newID))
}

func orNil(d *doc.Doc, err error) *doc.Doc {
	if err != nil {
		return nil
	}
	return d
}
