package version

import (
	"strings"

	"cairn/internal/doc"
	"cairn/internal/fault"
)

// Merge brings what changed from base to ours into theirs, another later version of base, where the nodes changed are disjoint;
// by the same rule as Rebase, and with the same fault where they are not; so too where each gave the document another title. It
// undoes a change too: Merge(after, before, current) gives current without what led from before to after.
func Merge(base, ours, theirs *doc.Doc) (*doc.Doc, error) {
	diff := Diff(base, ours)
	touch := doc.Touch{}
	for _, e := range diff.Edited {
		touch.Edits = append(touch.Edits, e.After.ID)
		if e.Before.Type != e.After.Type {
			touch.Removes = append(touch.Removes, e.After.ID) // what stood in it
		}
	}
	moves := doc.Touch{Op: "move"}
	for _, n := range diff.Moved {
		moves.Edits = append(moves.Edits, n.ID)
	}
	for _, n := range diff.Removed {
		touch.Removes = append(touch.Removes, n.ID)
	}
	m := &merger{diff: diff, removed: map[string]bool{}, placed: map[string]bool{}, ours: map[string][]*doc.Node{}, edited: map[string]*doc.Node{}, theirs: map[string]*doc.Node{}}
	m.prepare(ours, theirs)
	for up := range m.ours {
		if up != "" {
			touch.Anchors = append(touch.Anchors, up)
		}
	}
	found := conflicts(base, theirs, []doc.Touch{touch, moves})
	title := theirs.Title()
	if title == base.Title() {
		title = ours.Title()
	} else if ours.Title() != base.Title() && ours.Title() != title {
		found = append(found, Conflict{doc.RootID, "got another title"})
	}
	if err := refused(found); err != nil {
		return nil, err
	}
	merged, err := doc.New(title, m.children("", theirs.Content()), nil)
	if err != nil {
		return nil, fault.New(fault.Conflict, "the two changes don't go together: %s", fault.From(err).Message).With("conflicts", []Conflict{})
	}
	if err := refused(m.lost(theirs, merged)); err != nil {
		return nil, err
	}
	return merged, nil
}

// lost lists nodes that stand nowhere any more, as when ours moved one node into another and theirs the other into the one.
func (m *merger) lost(theirs, merged *doc.Doc) (list []Conflict) {
	here := make(map[string]bool, merged.Len())
	for n := range merged.All() {
		here[n.ID] = true
	}
	for n := range theirs.All() {
		if !here[n.ID] && !m.removed[n.ID] {
			list = append(list, Conflict{n.ID, "was moved"})
		}
	}
	for _, n := range m.diff.Added {
		if !here[n.ID] {
			list = append(list, Conflict{n.ID, "has no place left"})
		}
	}
	return list
}

// refused is the fault of conflicts, nil where there are none.
func refused(list []Conflict) error {
	if len(list) == 0 {
		return nil
	}
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.NodeID + " " + c.Why
	}
	return fault.New(fault.Conflict, "the document was changed in the same places: %s; read it again and make the change for what it is now",
		strings.Join(names, ", ")).With("conflicts", list)
}

type merger struct {
	diff    *Changes
	removed map[string]bool        // in ours
	placed  map[string]bool        // added or moved in ours
	ours    map[string][]*doc.Node // of what holds such, the children in ours
	edited  map[string]*doc.Node   // as in ours
	theirs  map[string]*doc.Node   // moved nodes as in theirs
}

func (m *merger) prepare(ours, theirs *doc.Doc) {
	for _, n := range m.diff.Removed {
		m.removed[n.ID] = true
	}
	for _, e := range m.diff.Edited {
		m.edited[e.After.ID] = e.After
	}
	for _, n := range m.diff.Added {
		m.placed[n.ID] = true
	}
	for _, n := range m.diff.Moved {
		m.placed[n.ID] = true
	}
	if len(m.placed) == 0 {
		return
	}
	take := func(up string, nodes []*doc.Node) {
		for _, n := range nodes {
			if m.placed[n.ID] {
				m.ours[up] = nodes
				return
			}
		}
	}
	take("", ours.Content())
	for n := range ours.All() {
		take(n.ID, blocks(n))
	}
	for n := range theirs.All() {
		if m.placed[n.ID] {
			m.theirs[n.ID] = n
		}
	}
}

// children gives what stands in a node: what stands there in theirs without what ours took away, and behind the neighbours that
// it has in ours what ours put there.
func (m *merger) children(up string, nodes []*doc.Node) []*doc.Node {
	var out []*doc.Node
	for _, n := range nodes {
		if !m.removed[n.ID] && !m.placed[n.ID] {
			out = append(out, n)
		}
	}
	at := 0 // where in out the last neighbour is, 0 for none, else one more
	place := make(map[string]int, len(out))
	if len(m.ours[up]) > 0 {
		for i, n := range out {
			place[n.ID] = i
		}
	}
	var behind [][]*doc.Node // what comes behind the neighbours
	if len(m.ours[up]) > 0 {
		behind = make([][]*doc.Node, len(out)+1)
		for _, n := range m.ours[up] {
			if i, ok := place[n.ID]; ok {
				at = i + 1
			} else if m.placed[n.ID] {
				behind[at] = append(behind[at], n)
			}
		}
	}
	all := make([]*doc.Node, 0, len(out))
	for i := range len(out) + 1 {
		if behind != nil {
			for _, n := range behind[i] {
				if t := m.theirs[n.ID]; t != nil {
					n = t
				}
				all = append(all, m.node(n))
			}
		}
		if i < len(out) {
			all = append(all, m.node(out[i]))
		}
	}
	return all
}

// node gives a node as it becomes: the very same where nothing in it changes.
func (m *merger) node(n *doc.Node) *doc.Node {
	own := n
	if e := m.edited[n.ID]; e != nil {
		own = e
	}
	content := own.Content
	same := own == n
	if own.HoldsBlocks() {
		content = m.children(n.ID, blocks(n))
		same = same && len(content) == len(n.Content)
		for i := 0; same && i < len(content); i++ {
			same = content[i] == n.Content[i]
		}
	}
	if same {
		return n
	}
	return &doc.Node{Type: own.Type, ID: n.ID, Attrs: own.Attrs, Content: content}
}
