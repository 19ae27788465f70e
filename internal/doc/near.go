package doc

import (
	"cmp"
	"slices"
	"strings"

	"cairn/internal/fault"
)

// Near is a node that may have been meant.
type Near struct {
	NodeID string `json:"node_id"`
	Type   string `json:"type"`
	Text   string `json:"text,omitempty"` // its beginning
}

const nearest = 5

func nearTo(n *Node) Near {
	text := strings.Join(strings.Fields(cut(n.Plain(), 400)), " ")
	if r := []rune(text); len(r) > 60 {
		text = string(r[:60]) + "..."
	}
	return Near{n.ID, n.Type, text}
}

// missing says that there is no such node, and which ids are like it.
func (d *Doc) missing(id string, gone bool, p *path) error {
	if gone {
		return p.bad("%q was taken away by an operation before this one", id)
	}
	type scored struct {
		n    *Node
		dist int
	}
	var like []scored
	worst := max(2, len(id)/4)
	if len(id) <= 64 {
		for n := range d.All() {
			if dist := distance(id, n.ID, worst); dist <= worst {
				like = append(like, scored{n, dist})
			}
		}
	}
	slices.SortStableFunc(like, func(a, b scored) int { return cmp.Compare(a.dist, b.dist) })
	near := []Near{}
	for _, s := range like[:min(len(like), nearest)] {
		near = append(near, nearTo(s.n))
	}
	return wrongTarget(p, near, "%s is no node of this document", excerpt(id))
}

func wrongTarget(p *path, near []Near, format string, args ...any) error {
	err := fault.Bad(p.String(), format, args...)
	hint := "; read the document again with view edit for its node ids"
	if len(near) > 0 {
		names := make([]string, len(near))
		for i, n := range near {
			names[i] = n.NodeID + " (" + n.Type + " " + excerpt(n.Text) + ")"
		}
		hint = "; near ones: " + strings.Join(names, ", ")
	}
	err.Message += hint
	err.Errors = []string{err.Message}
	return err.With("near", near)
}

// miscounted says how often a text is there, and where else it is.
func (e *editor) miscounted(target *Node, op *Op, total int, p *path) error {
	at := &path{p, "find", 0}
	if total > 0 {
		return at.bad("%s is in node %s %d times, not %d; give more of the text around it, or expected_count %d", excerpt(op.Find), target.ID, total, op.Count, total)
	}
	near := []Near{}
	e.root.Walk(0, func(n *Node, _ int) bool {
		if len(near) < nearest && !n.spec.blocks && len(n.Content) > 0 && strings.Contains(searchable(n), op.Find) {
			near = append(near, nearTo(n))
		}
		return len(near) < nearest
	})
	return wrongTarget(at, near, "%s is not in node %s, whose text begins %s", excerpt(op.Find), target.ID, excerpt(nearTo(target).Text))
}

// distance is the number of bytes to put in, take out or change (Levenshtein) between two ids, limit+1 where it is more.
func distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1, 65)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		least := row[0]
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
			least = min(least, row[j+1])
		}
		if least > limit {
			return limit + 1
		}
	}
	return row[len(b)]
}
