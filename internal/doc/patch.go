package doc

import (
	"slices"
	"strings"

	"cairn/internal/fault"
)

// MaxOps is how many operations a patch may have.
const MaxOps = 1000

// Op is one operation of a patch. Which fields it has is in Ops.
type Op struct {
	Op     string
	NodeID string // the node it is about, by node_id or agent_id; RootID with append_child: the document

	Nodes               []*Node // insert_*, append_child, replace: not checked yet
	Before, After, Into string  // move: one of them; Into may be RootID
	Attrs               []Attr  // set_attrs; a nil value clears
	Find, Replace       string  // literal
	Whole               bool    // add_mark, remove_mark without find: the whole node's text
	Count               int     // how often Find must be there
	Mark                Mark
}

// Patch is an array of operations, applied as one or not at all.
type Patch []Op

// OpSpec says what an operation takes.
type OpSpec struct {
	Op       string   `json:"op"`
	Required []string `json:"required,omitempty"` // beside op and node_id
	Optional []string `json:"optional,omitempty"`
	Doc      string   `json:"doc"`
}

// Ops lists the operations. Where "nodes" stands, "markdown" may stand instead. A place of text is found literally, within
// one block; a hard_break is "\n", and a mention or an image is nothing that can be found.
var Ops = []OpSpec{
	{"insert_before", []string{"nodes"}, nil, "puts nodes in front of the node"},
	{"insert_after", []string{"nodes"}, nil, "puts nodes behind the node"},
	{"append_child", []string{"nodes"}, nil, `puts nodes at the end of what is in the node; node_id "doc": at the end of the document`},
	{"replace", []string{"nodes"}, nil, "puts nodes in the node's place; the first one keeps its node_id, unless it names one"},
	{"delete", nil, nil, "takes the node away, with all in it"},
	{"move", nil, []string{"before", "after", "into"}, `moves the node, with all in it, to one of these; into puts it last in a node, "doc": in the document`},
	{"set_attrs", []string{"attrs"}, nil, "sets the attributes given and leaves the others; null clears one"},
	{"replace_text", []string{"find", "replace"}, []string{"expected_count"}, "replaces text in the node and the blocks in it; it must be there expected_count times, once if not given"},
	{"add_mark", []string{"mark"}, []string{"find", "expected_count"}, `marks text in the node and the blocks in it: all, or what find names; mark is a name or {"type","attrs"}`},
	{"remove_mark", []string{"mark"}, []string{"find", "expected_count"}, "takes a mark off, likewise"},
}

// DecodePatch reads the array of operations. markdown reads the text of an operation's "markdown" member; nodes are checked
// when the patch is applied, where their place is known.
func DecodePatch(raw []byte, markdown func(text string) ([]*Node, error)) (Patch, error) {
	r, err := newReader(raw)
	if err != nil {
		return nil, err
	}
	var patch Patch
	err = r.array(&path{nil, "operations", 0}, "an array of operations", func(p *path) error {
		if len(patch) == MaxOps {
			return fault.Bad("operations", "has more than %d operations; send several patches", MaxOps)
		}
		op, err := r.op(p, markdown)
		patch = append(patch, op)
		return err
	})
	if err == nil {
		err = r.end()
	}
	if err == nil && len(patch) == 0 {
		err = fault.Bad("operations", "is empty; operations are %s", opNames())
	}
	if err != nil {
		return nil, err
	}
	return patch, nil
}

func opNames() string {
	names := make([]string, len(Ops))
	for i, o := range Ops {
		names[i] = o.Op
	}
	return strings.Join(names, ", ")
}

var opMembers = []string{"op", "node_id", "agent_id", "nodes", "markdown", "before", "after", "into", "attrs", "find", "replace", "expected_count", "mark"}

func (r *reader) op(p *path, markdown func(string) ([]*Node, error)) (op Op, err error) {
	var given []string
	op.Count = 1
	err = r.object(p, opMembers, func(key string, p *path) (err error) {
		if r.literal("null") { // null is absent
			return nil
		}
		given = append(given, key)
		switch key {
		case "op":
			op.Op, err = r.text(p)
		case "node_id", "agent_id":
			op.NodeID, err = r.text(p)
		case "nodes":
			op.Nodes, err = r.nodes(p, 1)
		case "markdown":
			var text string
			if text, err = r.text(p); err == nil {
				op.Nodes, err = markdown(text)
			}
		case "before":
			op.Before, err = r.text(p)
		case "after":
			op.After, err = r.text(p)
		case "into":
			op.Into, err = r.text(p)
		case "attrs":
			op.Attrs, err = r.attrs(p)
		case "find":
			if op.Find, err = r.text(p); err == nil {
				err = checkText(op.Find, p)
			}
		case "replace":
			if op.Replace, err = r.text(p); err == nil {
				err = checkText(op.Replace, p)
			}
		case "expected_count":
			if op.Count, err = r.int(p); err == nil && op.Count < 1 {
				err = p.bad("must be at least 1, not %d", op.Count)
			}
		case "mark":
			op.Mark, err = r.mark(p)
		}
		return err
	})
	if err != nil {
		return op, err
	}
	return op, op.complete(given, p)
}

// complete holds an operation to its row of Ops.
func (op *Op) complete(given []string, p *path) error {
	i := slices.IndexFunc(Ops, func(s OpSpec) bool { return s.Op == op.Op })
	if i < 0 {
		return (&path{p, "op", 0}).bad("must be one of %s, not %s", opNames(), excerpt(op.Op))
	}
	spec := Ops[i]
	has := func(name string) bool { return slices.Contains(given, name) }
	if has("node_id") == has("agent_id") {
		return (&path{p, "node_id", 0}).bad("is required, or agent_id instead of it: the node that %s is about", op.Op)
	}
	for _, name := range spec.Required {
		if name == "nodes" && has("nodes") == has("markdown") {
			return (&path{p, "nodes", 0}).bad("is required by %s, or markdown instead of it", op.Op)
		}
		if !has(name) && !(name == "nodes" && has("markdown")) {
			return (&path{p, name, 0}).bad("is required by %s: it %s", op.Op, spec.Doc)
		}
		if name == "nodes" && len(op.Nodes) == 0 {
			return (&path{p, name, 0}).bad("holds no node; give at least one, or use delete")
		}
	}
	for _, name := range given {
		ok := name == "op" || name == "node_id" || name == "agent_id" || slices.Contains(spec.Required, name) || slices.Contains(spec.Optional, name) ||
			name == "markdown" && slices.Contains(spec.Required, "nodes")
		if !ok {
			return (&path{p, name, 0}).bad("is nothing that %s takes: it %s", op.Op, spec.Doc)
		}
	}
	op.Whole = !has("find")
	if has("find") && op.Find == "" {
		return (&path{p, "find", 0}).bad("is empty; give the text to find, exactly as it stands in the node")
	}
	if op.Whole && has("expected_count") {
		return (&path{p, "expected_count", 0}).bad("is nothing without find")
	}
	if op.Op == "move" {
		if n := count(has("before"), has("after"), has("into")); n != 1 {
			return p.bad("is a move with %d of before, after and into; give one", n)
		}
	}
	op.Find, op.Replace = oneBreak(op.Find), oneBreak(op.Replace)
	return nil
}

func count(is ...bool) (n int) {
	for _, b := range is {
		if b {
			n++
		}
	}
	return n
}

// oneBreak turns line breaks into "\n", as in the document.
func oneBreak(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}
