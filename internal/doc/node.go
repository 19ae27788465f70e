package doc

import (
	"slices"
	"strings"
	"sync/atomic"
)

// Node is one node of a document's tree: a block with an id, or an inline node (text, hard_break, mention, inline_image)
// without one. A node that belongs to a Doc is shared between versions and is never changed.
type Node struct {
	Type    string
	ID      string  // node_id; "" for inline nodes
	Attrs   []Attr  // by name; what equals the schema's default is left out
	Marks   []Mark  // of inline nodes, in the schema's order
	Text    string  // of text nodes
	Content []*Node // blocks or inline nodes, as the schema says

	spec   *NodeSpec // nil until the node was checked
	blocks int       // block nodes in it, itself counted
	levels int       // of blocks in it, itself counted
	bytes  int       // of text and attributes in it
	chars  int       // of its plain text
	sum    atomic.Pointer[Sum]
}

// Attr is one attribute; Value is a string, an int or a bool (in set_attrs also nil, which clears it).
type Attr struct {
	Name  string
	Value any
}

// Mark is what text is marked with.
type Mark struct {
	Type  string
	Attrs []Attr
}

// Text makes a text node.
func Text(text string, marks ...Mark) *Node { return &Node{Type: "text", Text: text, Marks: marks} }

// Str gives a string attribute, "" where it isn't set.
func (n *Node) Str(name string) string { return str(n.Attrs, name) }

// Str gives a mark's attribute, "" where it isn't set.
func (m Mark) Str(name string) string { return str(m.Attrs, name) }

func str(attrs []Attr, name string) string {
	s, _ := get(attrs, name).(string)
	return s
}

// Int gives a whole number, the schema's default where it isn't set.
func (n *Node) Int(name string) int {
	i, ok := get(n.Attrs, name).(int)
	if spec := specOf(n.Type); !ok && spec != nil {
		if a := attrOf(spec.Attrs, name); a != nil {
			return a.Default
		}
	}
	return i
}

// Bool gives a truth value, false where it isn't set.
func (n *Node) Bool(name string) bool {
	b, _ := get(n.Attrs, name).(bool)
	return b
}

func get(attrs []Attr, name string) any {
	for i := range attrs {
		if attrs[i].Name == name {
			return attrs[i].Value
		}
	}
	return nil
}

// Spec is the node's row of the schema.
func (n *Node) Spec() *NodeSpec {
	if n.spec != nil {
		return n.spec
	}
	return specOf(n.Type)
}

// HoldsBlocks tells nodes whose content is blocks, though it may be empty.
func (n *Node) HoldsBlocks() bool { return n.Spec().blocks }

// Len counts the block nodes of a checked node, itself counted.
func (n *Node) Len() int { return n.blocks }

// Bytes counts the bytes of text and attributes of a checked node.
func (n *Node) Bytes() int { return n.bytes }

// Plain gives the node's text without marks: a hard_break is "\n", a mention its label, an image its alt text, and blocks in it
// stand on lines of their own.
func (n *Node) Plain() string {
	var b strings.Builder
	n.plain(&b)
	return b.String()
}

// own gives the node's plain text without that of what is in it.
func (n *Node) own() string {
	switch n.Type {
	case "text":
		return n.Text
	case "hard_break":
		return "\n"
	case "mention":
		return n.Str("label")
	case "image", "inline_image":
		return n.Str("alt")
	case "file":
		return n.Str("name")
	case "embed", "callout":
		return n.Str("title")
	}
	return ""
}

func (n *Node) plain(b *strings.Builder) {
	b.WriteString(n.own())
	for _, c := range n.Content {
		if c.Spec().Group != Inline && b.Len() > 0 {
			b.WriteByte('\n')
		}
		c.plain(b)
	}
}

// Walk calls f with each block node in n, itself first, in document order, and with the level it stands on (level for n itself);
// where f returns false, what is in the node is passed over.
func (n *Node) Walk(level int, f func(n *Node, level int) bool) {
	if !f(n, level) || !n.Spec().blocks {
		return
	}
	for _, c := range n.Content {
		c.Walk(level+1, f)
	}
}

func equalAttrs(a, b []Attr) bool { return slices.Equal(a, b) }

func equalMarks(a, b []Mark) bool {
	return slices.EqualFunc(a, b, func(x, y Mark) bool { return x.Type == y.Type && equalAttrs(x.Attrs, y.Attrs) })
}

// Same tells whether two nodes differ in nothing but their ids and the blocks in them.
func (n *Node) Same(b *Node) bool {
	if n.Type != b.Type || !equalAttrs(n.Attrs, b.Attrs) {
		return false
	}
	if n.HoldsBlocks() {
		return true
	}
	return slices.EqualFunc(n.Content, b.Content, func(x, y *Node) bool {
		return x == y || x.Type == y.Type && x.Text == y.Text && equalAttrs(x.Attrs, y.Attrs) && equalMarks(x.Marks, y.Marks)
	})
}
