// Package doc is the core of documents: a tree of nodes, its canonical JSON and hash, reading it page by page, patches, what
// changed between two versions, and what it refers to. It knows no database, no HTTP and no operation; package doc/markdown
// brings Markdown in and out.
//
// A Doc never changes: a patch makes a new one, which shares with the old what wasn't touched. What comes in is checked once,
// by the schema (Nodes, Marks), and held in one canonical form, so that equal documents have equal bytes and hashes.
package doc

import (
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"cairn/internal/fault"
)

// Limits of a document.
const (
	MaxLevels = 32      // of blocks inside each other; top-level nodes stand on level 1
	MaxNodes  = 100_000 // block nodes
	MaxBytes  = 8 << 20 // of text and attributes, in UTF-8
	MaxTitle  = 1000    // characters
	MaxJSON   = 1 << 27 // bytes of canonical JSON that a delta may make
)

// RootID names the document itself where a patch puts nodes into it (append_child, move into). No node has this id.
const RootID = "doc"

// Doc is a checked document.
type Doc struct {
	title string
	root  *Node
}

// New checks and copies content into a document. Blocks without an id get one of newID, which must give another one each time.
// Line breaks in text become hard_break nodes. A fault names the place and value that is wrong.
func New(title string, content []*Node, newID func() string) (*Doc, error) {
	return build(title, content, &checker{newID: newID})
}

func build(title string, content []*Node, c *checker) (*Doc, error) {
	if err := CheckTitle(title); err != nil {
		return nil, err
	}
	if c.seen == nil {
		c.seen = make(map[string]struct{}, 16)
	}
	nodes, err := c.list(docSpec, content, 1, &path{nil, "content", 0})
	if err != nil {
		return nil, err
	}
	root := &Node{Type: docSpec.Type, Content: nodes, spec: docSpec}
	if err := root.seal(nil); err != nil {
		return nil, err
	}
	return &Doc{title, root}, nil
}

// CheckTitle holds a title to its rules: any characters but NUL, kept exactly, at most MaxTitle of them; "" is none.
func CheckTitle(title string) error {
	if err := checkText(title, &path{nil, "title", 0}); err != nil {
		return err
	}
	if n := utf8.RuneCountInString(title); n > MaxTitle {
		return fault.Bad("title", "has %d characters; the limit is %d", n, MaxTitle)
	}
	return nil
}

// Title is the title, "" for none.
func (d *Doc) Title() string { return d.title }

// Content gives the top-level nodes.
func (d *Doc) Content() []*Node { return d.root.Content }

// Len counts the block nodes.
func (d *Doc) Len() int { return d.root.blocks }

// Bytes counts the bytes of text and attributes.
func (d *Doc) Bytes() int { return d.root.bytes }

// Chars counts the characters of Plain, give or take empty lines.
func (d *Doc) Chars() int { return d.root.chars }

// WithTitle gives the document under another title.
func (d *Doc) WithTitle(title string) (*Doc, error) {
	if err := CheckTitle(title); err != nil {
		return nil, err
	}
	return &Doc{title, d.root}, nil
}

// Replace gives a document of the same title with other content, whose nodes may keep ids of d, and no ids from elsewhere.
func (d *Doc) Replace(content []*Node, newID func() string) (*Doc, error) {
	ids := make(map[string]bool, d.Len())
	for n := range d.All() {
		ids[n.ID] = true
	}
	return build(d.title, content, &checker{newID: newID, known: func(id string) bool { return ids[id] }})
}

// All gives each block node in document order with its level, which is 1 at the top.
func (d *Doc) All() iter.Seq2[*Node, int] {
	return func(yield func(*Node, int) bool) {
		on := true
		for _, n := range d.root.Content {
			n.Walk(1, func(n *Node, level int) bool {
				on = on && yield(n, level)
				return on
			})
			if !on {
				return
			}
		}
	}
}

// Node finds a block node by its id, nil if there is none.
func (d *Doc) Node(id string) *Node {
	if steps := find(d.root, id); steps != nil {
		last := steps[len(steps)-1]
		return last.node.Content[last.i]
	}
	return nil
}

// Lookup finds a block node by node_id or agent_id. The fault names field, and node ids that are like the one given.
func (d *Doc) Lookup(id, field string) (*Node, error) {
	p := &path{nil, field, 0}
	id, err := d.resolve(id, p)
	if err != nil {
		return nil, err
	}
	if n := d.Node(id); n != nil {
		return n, nil
	}
	return nil, d.missing(id, false, p)
}

// SameContent tells whether two documents have the same content, ids counted.
func (d *Doc) SameContent(e *Doc) bool { return d.root == e.root || d.root.Sum() == e.root.Sum() }

// AgentID is the short id of the block at place i (from 0) of the document order; it holds for this version alone.
func AgentID(i int) string { return "@" + strconv.Itoa(i+1) }

// resolve turns an agent_id into the node_id it stands for in this version.
func (d *Doc) resolve(id string, p *path) (string, error) {
	short, ok := strings.CutPrefix(id, "@")
	if !ok {
		return id, nil
	}
	i, err := strconv.Atoi(short)
	if n := d.at(i - 1); err == nil && n != nil && id == AgentID(i-1) { // @01 is a slip, and so is @+1
		return n.ID, nil
	}
	return "", p.bad("%s is no agent_id of this version, which has @1 to @%d", excerpt(id), d.Len())
}

// Plain gives the text without title and marks, a line for each block that holds text.
func (d *Doc) Plain() string {
	var b strings.Builder
	d.root.plain(&b)
	return b.String()
}

// step is a node on the way down to another one, and the place where the way goes on.
type step struct {
	node *Node
	i    int
}

// find gives the way from root to the node of that id, nil if there is none.
func find(root *Node, id string) []step {
	way := make([]step, 0, MaxLevels)
	var down func(n *Node) bool
	down = func(n *Node) bool {
		for i, c := range n.Content {
			if c.ID == id {
				way = append(way, step{n, i})
				return true
			}
			if c.spec.blocks {
				way = append(way, step{n, i})
				if down(c) {
					return true
				}
				way = way[:len(way)-1]
			}
		}
		return false
	}
	if !down(root) {
		return nil
	}
	return way
}

// at finds the block that stands at place i of the document order, counted from 0.
func (d *Doc) at(i int) *Node {
	n := d.root
	if i < 0 || i >= n.blocks {
		return nil
	}
	for {
		for _, c := range n.Content {
			if i < c.blocks {
				n = c
				break
			}
			i -= c.blocks
		}
		if i == 0 {
			return n
		}
		i--
	}
}
