package doc

import (
	"fmt"
	"slices"

	"cairn/internal/fault"
)

// Touch says what one operation relies on and what it did, by node ids, so that a caller can tell whether two patches go
// together. Anchors must be there, but may say anything; Edits must be as they were; Removes too, with all that was in them.
type Touch struct {
	Op      string
	Anchors []string // places: next to or into which nodes were put
	Edits   []string // text or attributes changed, or moved
	Removes []string // taken away: the node and each block that was in it
	Adds    []string // new
}

// Result is what a patch made.
type Result struct {
	Doc     *Doc
	Changed []string // nodes edited, moved, added or removed, in the order of the operations, each once
	Ops     []Touch  // for each operation, in order
}

// Apply applies a patch as one: with an error, nothing came of it. New blocks get ids of newID, which must be in no version of the
// document (UUIDv7 are); a block may bring along the id of a node that the same patch took away, and no other.
func (d *Doc) Apply(patch Patch, newID func() string) (*Result, error) {
	e := &editor{doc: d, newID: newID, fresh: map[*Node]bool{}, gone: map[string]bool{}}
	e.root = e.copy(d.root)
	res := &Result{Ops: make([]Touch, len(patch))}
	for i := range patch {
		e.touch = &res.Ops[i]
		e.touch.Op = patch[i].Op
		if err := e.apply(&patch[i], &path{&path{nil, "operations", 0}, "", i}); err != nil {
			return nil, err
		}
	}
	if err := e.seal(e.root, 1); err != nil {
		return nil, err
	}
	res.Doc = &Doc{d.title, e.root}
	seen := map[string]bool{}
	for _, t := range res.Ops {
		for _, id := range slices.Concat(t.Edits, t.Removes, t.Adds) {
			if !seen[id] {
				seen[id] = true
				res.Changed = append(res.Changed, id)
			}
		}
	}
	return res, nil
}

// editor makes a changed tree: nodes it made are changed in place, the others are copied first.
type editor struct {
	doc   *Doc
	root  *Node
	newID func() string
	fresh map[*Node]bool
	gone  map[string]bool   // ids taken away by this patch and not given again
	up    map[string]string // ids to the ids of what they stand in; made once a patch has many operations
	finds int
	touch *Touch
}

func (e *editor) copy(n *Node) *Node {
	c := &Node{Type: n.Type, ID: n.ID, Attrs: n.Attrs, Content: slices.Clone(n.Content), spec: n.spec, blocks: n.blocks, levels: n.levels, bytes: n.bytes}
	e.fresh[c] = true
	return c
}

// way finds a node; the steps end with the node that holds it.
func (e *editor) way(id string, p *path) ([]step, string, error) {
	id, err := e.doc.resolve(id, p)
	if err != nil {
		return nil, "", err
	}
	if e.finds++; e.finds == 8 {
		e.up = map[string]string{}
		e.index(e.root)
	}
	var way []step
	if e.up == nil {
		way = find(e.root, id)
	} else {
		way = e.climb(id)
	}
	if way == nil {
		return nil, "", e.doc.missing(id, e.gone[id], p)
	}
	return way, id, nil
}

func (e *editor) index(n *Node) {
	if e.up == nil || !n.spec.blocks {
		return
	}
	for _, c := range n.Content {
		e.up[c.ID] = n.ID
		e.index(c)
	}
}

func (e *editor) climb(id string) []step {
	ids := []string{id}
	for id != "" {
		up, ok := e.up[id]
		if !ok {
			return nil
		}
		ids, id = append(ids, up), up
	}
	way, n := make([]step, 0, len(ids)), e.root
	for i := len(ids) - 2; i >= 0; i-- {
		at := slices.IndexFunc(n.Content, func(c *Node) bool { return c.ID == ids[i] })
		way, n = append(way, step{n, at}), n.Content[at]
	}
	return way
}

// own makes the nodes on the way the editor's own and returns the last, which holds the node in question at place i.
func (e *editor) own(way []step) (holder *Node, i int) {
	holder = e.root
	for k, s := range way {
		i = s.i
		if k == len(way)-1 {
			break
		}
		c := holder.Content[i]
		if !e.fresh[c] {
			c = e.copy(c)
			holder.Content[i] = c
		}
		holder = c
	}
	return holder, i
}

// ownNode makes the node at the end of the way the editor's own.
func (e *editor) ownNode(way []step) *Node {
	holder, i := e.own(way)
	n := holder.Content[i]
	if !e.fresh[n] {
		n = e.copy(n)
		holder.Content[i] = n
	}
	return n
}

func (e *editor) apply(op *Op, p *path) error {
	at := &path{p, "node_id", 0}
	if op.NodeID == RootID {
		if op.Op != "append_child" {
			return at.bad("%q is the document itself, which only append_child and move into take", RootID)
		}
		return e.insert(e.root, len(e.root.Content), 1, op.Nodes, &path{p, "nodes", 0})
	}
	way, id, err := e.way(op.NodeID, at)
	if err != nil {
		return err
	}
	switch op.Op {
	case "insert_before", "insert_after":
		e.touch.Anchors = []string{id}
		holder, i := e.own(way)
		if op.Op == "insert_after" {
			i++
		}
		return e.insert(holder, i, len(way), op.Nodes, &path{p, "nodes", 0})
	case "append_child":
		e.touch.Anchors = []string{id}
		n := e.ownNode(way)
		if !n.HoldsBlocks() {
			return at.bad("%s is a %s, which holds no blocks: use replace_text, replace or insert_after", id, n.Type)
		}
		return e.insert(n, len(n.Content), len(way)+1, op.Nodes, &path{p, "nodes", 0})
	case "replace":
		return e.replace(way, id, op.Nodes, &path{p, "nodes", 0})
	case "delete":
		holder, i := e.own(way)
		e.remove(holder, i)
		return nil
	case "move":
		return e.move(way, id, op, p)
	case "set_attrs":
		return e.setAttrs(e.ownNode(way), op.Attrs, p)
	}
	return e.editText(way, id, op, p)
}

// fit gives the nodes that may stand in holder; where holder takes what is in a list or table rather than itself, that.
func fit(holder *NodeSpec, nodes []*Node) []*Node {
	var out []*Node
	for _, n := range nodes {
		inner := n != nil && len(n.Content) > 0
		if s := n.specOrNil(); s == nil || holder.takes(s) || !s.blocks {
			inner = false
		}
		for i := 0; inner && i < len(n.Content); i++ {
			s := n.Content[i].specOrNil()
			inner = s != nil && holder.takes(s)
		}
		if inner {
			out = append(out, n.Content...)
		} else {
			out = append(out, n)
		}
	}
	return out
}

func (n *Node) specOrNil() *NodeSpec {
	if n == nil {
		return nil
	}
	return n.Spec()
}

// check brings new nodes into the canonical form, for a place on the given level.
func (e *editor) check(holder *Node, level int, nodes []*Node, p *path) ([]*Node, error) {
	if !holder.HoldsBlocks() {
		return nil, p.bad("cannot stand in a %s", holder.Type)
	}
	c := &checker{newID: e.newID, seen: map[string]struct{}{}, known: func(id string) bool { return e.gone[id] }, taken: e.taken(nodes)}
	return c.list(holder.spec, fit(holder.spec, nodes), level, p)
}

// taken tells which of the ids that new nodes bring along are in the tree. Ids of newID are trusted to be new.
func (e *editor) taken(nodes []*Node) func(string) bool {
	brought := map[string]bool{}
	for _, n := range nodes {
		collect(n, brought)
	}
	for id := range brought {
		if e.gone[id] {
			delete(brought, id) // not in the tree, then
		}
	}
	if len(brought) == 0 {
		return nil
	}
	here := map[string]bool{}
	e.root.Walk(0, func(n *Node, _ int) bool {
		if brought[n.ID] {
			here[n.ID] = true
		}
		return true
	})
	return func(id string) bool { return here[id] }
}

func collect(n *Node, ids map[string]bool) {
	if n == nil {
		return
	}
	if n.ID != "" {
		ids[n.ID] = true
	}
	for _, c := range n.Content {
		collect(c, ids)
	}
}

func (e *editor) insert(holder *Node, i, level int, nodes []*Node, p *path) error {
	nodes, err := e.check(holder, level, nodes, p)
	if err != nil {
		return err
	}
	e.put(holder, i, nodes)
	return nil
}

// put puts checked nodes into a node that is the editor's own.
func (e *editor) put(holder *Node, i int, nodes []*Node) {
	holder.Content = slices.Insert(holder.Content, i, nodes...)
	for _, n := range nodes {
		n.Walk(0, func(n *Node, _ int) bool {
			e.touch.Adds = append(e.touch.Adds, n.ID)
			delete(e.gone, n.ID)
			return true
		})
		if e.up != nil {
			e.up[n.ID] = holder.ID
			e.index(n)
		}
	}
}

func (e *editor) remove(holder *Node, i int) {
	holder.Content[i].Walk(0, func(n *Node, _ int) bool {
		e.touch.Removes = append(e.touch.Removes, n.ID)
		e.gone[n.ID] = true
		delete(e.up, n.ID)
		return true
	})
	holder.Content = slices.Delete(holder.Content, i, i+1)
}

func (e *editor) replace(way []step, id string, nodes []*Node, p *path) error {
	holder, i := e.own(way)
	e.remove(holder, i)
	nodes = fit(holder.spec, nodes)
	ids := map[string]bool{}
	for _, n := range nodes {
		collect(n, ids)
	}
	if first := nodes[0]; first != nil && first.ID == "" && !ids[id] {
		nodes = slices.Clone(nodes)
		nodes[0] = &Node{Type: first.Type, ID: id, Attrs: first.Attrs, Marks: first.Marks, Text: first.Text, Content: first.Content}
	}
	return e.insert(holder, i, len(way), nodes, p)
}

func (e *editor) move(way []step, id string, op *Op, p *path) error {
	name, to := "into", op.Into
	if op.Before != "" {
		name, to = "before", op.Before
	} else if op.After != "" {
		name, to = "after", op.After
	}
	at := &path{p, name, 0}
	last := way[len(way)-1]
	n := last.node.Content[last.i]
	var dest []step
	if name != "into" || to != RootID {
		var err error
		if dest, to, err = e.way(to, at); err != nil {
			return err
		}
		if to == id || slices.ContainsFunc(dest, func(s step) bool { return s.node.ID == id }) {
			return at.bad("%s is the moved node %s itself or stands in it", to, id)
		}
		e.touch.Anchors = []string{to}
	}
	e.touch.Edits = []string{id}
	holder, i := e.own(way)
	holder.Content = slices.Delete(holder.Content, i, i+1)
	if dest != nil { // places may have shifted
		delete(e.up, id)
		dest, _, _ = e.way(to, at)
	}
	level := len(dest)
	switch {
	case dest == nil:
		holder, i, level = e.root, len(e.root.Content), 1
	case name == "into":
		holder = e.ownNode(dest)
		i, level = len(holder.Content), level+1
	default:
		if holder, i = e.own(dest); name == "after" {
			i++
		}
	}
	if !holder.HoldsBlocks() || !holder.spec.takes(n.spec) {
		return at.bad("%s: a %s may not stand in a %s", to, n.Type, holder.Type)
	}
	if level+n.levels-1 > MaxLevels && !e.fresh[n] {
		return at.bad("%s: the node would reach down to level %d; a document has at most %d levels", to, level+n.levels-1, MaxLevels)
	}
	holder.Content = slices.Insert(holder.Content, i, n)
	if e.up != nil {
		e.up[id] = holder.ID
	}
	return nil
}

func (e *editor) setAttrs(n *Node, set []Attr, p *path) error {
	merged := slices.DeleteFunc(slices.Clone(n.Attrs), func(a Attr) bool {
		return slices.ContainsFunc(set, func(s Attr) bool { return s.Name == a.Name })
	})
	attrs, err := checkAttrs(n.spec.Attrs, append(merged, set...), p)
	if err != nil {
		return err
	}
	n.Attrs = attrs
	e.touch.Edits = append(e.touch.Edits, n.ID)
	return nil
}

// seal works out again what is kept beside the nodes that were changed, and holds them to the limits. Before it, levels and
// counts of nodes made by the editor may be out of date.
func (e *editor) seal(n *Node, level int) error {
	if !e.fresh[n] {
		return nil
	}
	if n.spec.blocks {
		for _, c := range n.Content {
			if err := e.seal(c, level+1); err != nil {
				return err
			}
		}
	}
	p := &path{nil, fmt.Sprintf("node %s", n.ID), 0}
	if err := n.seal(p); err != nil {
		return err
	}
	if n.spec == docSpec && n.levels > MaxLevels {
		return fault.New(fault.Invalid, "the document would have %d levels; the limit is %d", n.levels, MaxLevels)
	}
	return nil
}
