package doc

import (
	"slices"
	"strings"
)

// What a place of text is found in: text as it is, a hard_break as "\n", and a character that no text holds for the rest.
func searchable(n *Node) string {
	if len(n.Content) == 1 && n.Content[0].Type == "text" {
		return n.Content[0].Text
	}
	var b strings.Builder
	for _, c := range n.Content {
		switch c.Type {
		case "text":
			b.WriteString(c.Text)
		case "hard_break":
			b.WriteByte('\n')
		default:
			b.WriteByte(0)
		}
	}
	return b.String()
}

func width(n *Node) int {
	if n.Type == "text" {
		return len(n.Text)
	}
	return 1
}

// spans finds s in text, from left to right, without overlaps.
func spans(text, s string) (at [][2]int) {
	for from := 0; ; {
		i := strings.Index(text[from:], s)
		if i < 0 {
			return at
		}
		at = append(at, [2]int{from + i, from + i + len(s)})
		from += i + len(s)
	}
}

// splice gives inline content in which f changed what stands in the spans (in bytes of searchable).
func splice(content []*Node, at [][2]int, f func([]*Node) []*Node) []*Node {
	out := make([]*Node, 0, len(content)+2*len(at))
	var in []*Node
	pos := 0
	for _, n := range content {
		for n != nil {
			w := width(n)
			switch {
			case len(at) == 0 || pos+w <= at[0][0]:
				out, pos, n = append(out, n), pos+w, nil
			case pos < at[0][0]:
				head := at[0][0] - pos
				out, n = append(out, part(n, 0, head)), part(n, head, w)
				pos += head
			case pos+w <= at[0][1]:
				in, pos, n = append(in, n), pos+w, nil
			default:
				head := at[0][1] - pos
				in, n = append(in, part(n, 0, head)), part(n, head, w)
				pos += head
			}
			if len(at) > 0 && pos == at[0][1] {
				out, in, at = append(out, f(in)...), nil, at[1:]
			}
		}
	}
	return out
}

func part(n *Node, from, to int) *Node {
	return &Node{Type: "text", Text: n.Text[from:to], Marks: n.Marks}
}

// editText replaces or marks text in the node and in the blocks in it.
func (e *editor) editText(way []step, id string, op *Op, p *path) error {
	last := way[len(way)-1]
	target := last.node.Content[last.i]
	type place struct {
		way []int // from the target down
		at  [][2]int
	}
	var places []place
	total := 0
	var look func(n *Node, down []int)
	look = func(n *Node, down []int) {
		if n.spec.blocks {
			for i, c := range n.Content {
				look(c, append(slices.Clip(down), i))
			}
			return
		}
		if len(n.Content) == 0 {
			return
		}
		text := searchable(n)
		at := [][2]int{{0, len(text)}}
		if !op.Whole {
			if at = spans(text, op.Find); at == nil {
				return
			}
		}
		places, total = append(places, place{slices.Clone(down), at}), total+len(at)
	}
	look(target, nil)
	if !op.Whole && total != op.Count {
		return e.miscounted(target, op, total, p)
	}
	f, err := changer(op, p)
	if err != nil {
		return err
	}
	for _, pl := range places {
		n := e.ownNode(way)
		for _, i := range pl.way {
			c := n.Content[i]
			if !e.fresh[c] {
				c = e.copy(c)
				n.Content[i] = c
			}
			n = c
		}
		if n.Type == "code_block" && op.Op != "replace_text" {
			return (&path{p, "mark", 0}).bad("cannot be put on %s, a code_block, whose text has no marks", n.ID)
		}
		content, err := (&checker{}).inlines(n.spec, splice(n.Content, pl.at, f), &path{p, op.Op, 0})
		if err != nil {
			return err
		}
		n.Content = content
		e.touch.Edits = append(e.touch.Edits, n.ID)
	}
	return nil
}

// changer gives what an operation does to the inline nodes it found.
func changer(op *Op, p *path) (func([]*Node) []*Node, error) {
	if op.Op == "replace_text" {
		return func(in []*Node) []*Node { return []*Node{{Type: "text", Text: op.Replace, Marks: in[0].Marks}} }, nil
	}
	marks, err := checkMarks(specOf("text"), []Mark{op.Mark}, &path{p, "mark", 0})
	if op.Op == "remove_mark" && len(op.Mark.Attrs) == 0 {
		if _, ok := markRank[op.Mark.Type]; ok {
			marks, err = []Mark{op.Mark}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	mark := marks[0]
	return func(in []*Node) []*Node {
		out := make([]*Node, len(in))
		for i, n := range in {
			had := slices.IndexFunc(n.Marks, func(m Mark) bool { return m.Type == mark.Type })
			now := slices.Clone(n.Marks)
			switch {
			case !slices.Contains(n.Spec().Marks, mark.Type):
			case op.Op == "add_mark":
				if had >= 0 {
					now = slices.Delete(now, had, had+1)
				}
				now = append(now, mark)
			case had >= 0 && (len(mark.Attrs) == 0 || equalAttrs(mark.Attrs, now[had].Attrs)):
				now = slices.Delete(now, had, had+1)
			}
			out[i] = &Node{Type: n.Type, Text: n.Text, Attrs: n.Attrs, Marks: now}
		}
		return out
	}, nil
}
