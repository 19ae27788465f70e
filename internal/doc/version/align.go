package version

import (
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"cairn/internal/doc"
)

// Align gives nodes that came without ids the nodes of d that they equal, as they are in d, and the ids of those that they stem
// from; the others stay without one. said is what the form in which the content was edited made of d's content, since it may not
// say everything (Markdown): what still equals that is taken to be as in d. nil: the form says everything.
//
// The content of the result is that of fresh; each id of d is given once at most. Where nothing was edited, the result is d.
func Align(d *doc.Doc, said, fresh []*doc.Node) ([]*doc.Node, error) {
	count := 0
	ids := func() string { count++; return strconv.Itoa(count) }
	now, err := doc.New("", fresh, ids)
	if err != nil {
		return nil, err
	}
	was := d
	if said != nil {
		if was, err = doc.New("", said, ids); err != nil { // Markdown of a document is one
			was = d
		}
	}
	a := &aligner{seed: maphash.MakeSeed(), sums: map[*doc.Node]uint64{}, used: map[string]bool{}, left: map[uint64][]item{}}
	out := a.list(items(d.Content(), was.Content()), now.Content())
	for _, p := range a.pending {
		*p.slot = a.settle(p.n)
	}
	return out, nil
}

// item is a node of the document, and how the form says it.
type item struct{ old, said *doc.Node }

// items pairs the nodes of a document with what the form made of them; where that can't be, they stand for themselves.
func items(old, said []*doc.Node) []item {
	if len(old) != len(said) {
		said = old
	}
	list := make([]item, len(old))
	for i, n := range old {
		list[i] = item{n, said[i]}
	}
	return list
}

func (x item) children() []item { return items(blocks(x.old), blocks(x.said)) }

type aligner struct {
	seed    maphash.Seed
	sums    map[*doc.Node]uint64
	used    map[string]bool   // ids given
	left    map[uint64][]item // nodes that found no partner where they stood, by their sums
	pending []pending         // new nodes that found none
}

type pending struct {
	slot **doc.Node
	n    *doc.Node
}

// sum is a node's hash without ids.
func (a *aligner) sum(n *doc.Node) uint64 {
	if s, ok := a.sums[n]; ok {
		return s
	}
	var h maphash.Hash
	h.SetSeed(a.seed)
	attrs := func(list []doc.Attr) {
		for _, v := range list {
			maphash.WriteComparable(&h, v)
		}
	}
	maphash.WriteComparable(&h, [2]string{n.Type, n.Text})
	attrs(n.Attrs)
	for _, m := range n.Marks {
		maphash.WriteComparable(&h, m.Type)
		attrs(m.Attrs)
	}
	for _, c := range n.Content {
		maphash.WriteComparable(&h, a.sum(c))
	}
	s := h.Sum64()
	if n.ID != "" {
		a.sums[n] = s
	}
	return s
}

// equal tells whether two nodes differ in their ids alone.
func (a *aligner) equal(n, m *doc.Node) bool {
	if a.sum(n) != a.sum(m) || !n.Same(m) {
		return false
	}
	return !n.HoldsBlocks() || slices.EqualFunc(n.Content, m.Content, a.equal)
}

// list gives the children of a node: olds as they are, fresh as they are to be.
func (a *aligner) list(olds []item, fresh []*doc.Node) []*doc.Node {
	out := make([]*doc.Node, len(fresh))
	partner := make([]int, len(fresh))
	for i := range partner {
		partner[i] = -1
	}
	a.pair(olds, fresh, 0, 0, partner)
	taken := make([]bool, len(olds))
	for i, j := range partner {
		if j < 0 {
			a.pending = append(a.pending, pending{&out[i], fresh[i]})
			continue
		}
		taken[j] = true
		if a.equal(olds[j].said, fresh[i]) {
			out[i] = a.take(olds[j])
		} else {
			out[i] = a.edited(olds[j], fresh[i])
		}
	}
	for j, x := range olds {
		if !taken[j] {
			a.leave(x)
		}
	}
	return out
}

func (a *aligner) take(x item) *doc.Node {
	x.old.Walk(1, func(n *doc.Node, _ int) bool {
		a.used[n.ID] = true
		return true
	})
	return x.old
}

func (a *aligner) edited(x item, n *doc.Node) *doc.Node {
	a.used[x.old.ID] = true
	m := &doc.Node{Type: n.Type, ID: x.old.ID, Attrs: n.Attrs, Content: n.Content}
	if x.said.Type == n.Type && slices.Equal(x.said.Attrs, n.Attrs) {
		m.Type, m.Attrs = x.old.Type, x.old.Attrs
	}
	if n.HoldsBlocks() {
		m.Content = a.list(x.children(), n.Content)
	}
	return m
}

// leave keeps a node and all in it for what was moved elsewhere.
func (a *aligner) leave(x item) {
	s := a.sum(x.said)
	a.left[s] = append(a.left[s], x)
	for _, c := range x.children() {
		a.leave(c)
	}
}

// settle gives a new node what it was moved from, if that is plain, or makes it new.
func (a *aligner) settle(n *doc.Node) *doc.Node {
	if strings.TrimSpace(n.Plain()) != "" {
		var from []item
		for _, x := range a.left[a.sum(n)] {
			if a.free(x.old) && a.equal(x.said, n) {
				from = append(from, x)
			}
		}
		if len(from) == 1 {
			return a.take(from[0])
		}
	}
	m := &doc.Node{Type: n.Type, Attrs: n.Attrs, Content: n.Content}
	if n.HoldsBlocks() {
		m.Content = make([]*doc.Node, len(n.Content))
		for i, c := range n.Content {
			m.Content[i] = a.settle(c)
		}
	}
	return m
}

func (a *aligner) free(n *doc.Node) bool {
	free := true
	n.Walk(1, func(n *doc.Node, _ int) bool {
		free = free && !a.used[n.ID]
		return free
	})
	return free
}

// pair finds the partners of a run of new nodes in a run of old ones, in their order. o and f are where the runs begin.
func (a *aligner) pair(olds []item, fresh []*doc.Node, o, f int, partner []int) {
	alike := func(i, j int) bool { return a.sum(olds[j].said) == a.sum(fresh[i]) }
	for len(olds) > 0 && len(fresh) > 0 && alike(0, 0) {
		partner[f] = o
		olds, fresh, o, f = olds[1:], fresh[1:], o+1, f+1
	}
	for len(olds) > 0 && len(fresh) > 0 && alike(len(fresh)-1, len(olds)-1) {
		partner[f+len(fresh)-1] = o + len(olds) - 1
		olds, fresh = olds[:len(olds)-1], fresh[:len(fresh)-1]
	}
	if len(olds) == 0 || len(fresh) == 0 {
		return
	}
	anchors := a.anchors(olds, fresh)
	if len(anchors) == 0 {
		a.resembling(olds, fresh, o, f, partner)
		return
	}
	i, j := 0, 0
	for _, at := range append(anchors, [2]int{len(fresh), len(olds)}) {
		a.pair(olds[j:at[1]], fresh[i:at[0]], o+j, f+i, partner)
		if at[0] < len(fresh) {
			partner[f+at[0]] = o + at[1]
		}
		i, j = at[0]+1, at[1]+1
	}
}

// anchors gives places (new, old) of nodes that are there once in each run, as many as stand in the same order.
func (a *aligner) anchors(olds []item, fresh []*doc.Node) [][2]int {
	type seen struct{ olds, fresh, old int }
	at := make(map[uint64]*seen, len(olds))
	for j, x := range olds {
		s := a.sum(x.said)
		if at[s] == nil {
			at[s] = &seen{}
		}
		at[s].olds, at[s].old = at[s].olds+1, j
	}
	for _, n := range fresh {
		if p := at[a.sum(n)]; p != nil {
			p.fresh++
		}
	}
	var found [][2]int
	for i, n := range fresh {
		if p := at[a.sum(n)]; p != nil && p.olds == 1 && p.fresh == 1 {
			found = append(found, [2]int{i, p.old})
		}
	}
	return rising(found)
}

// rising gives a longest run of pairs whose second numbers rise.
func rising(pairs [][2]int) [][2]int {
	tails, before := []int{}, make([]int, len(pairs)) // tails[k]: place in pairs of the last of the best run of length k+1
	for i, p := range pairs {
		k, _ := slices.BinarySearchFunc(tails, p[1], func(t, old int) int { return pairs[t][1] - old })
		before[i] = -1
		if k > 0 {
			before[i] = tails[k-1]
		}
		if k == len(tails) {
			tails = append(tails, i)
		} else {
			tails[k] = i
		}
	}
	out := make([][2]int, len(tails))
	if len(tails) > 0 {
		for i, k := tails[len(tails)-1], len(tails)-1; i >= 0; i, k = before[i], k-1 {
			out[k] = pairs[i]
		}
	}
	return out
}

const (
	likeness = 0.4 // of words, from which on a node counts as the other one edited
	plain    = 0.8 // from which on no better one is looked for
	nearby   = 64  // nodes that a node is compared with in long runs
	read     = 4 << 10
)

// resembling pairs nodes that were edited: those with most words in common, in order, and one that stands alone between two pairs
// with the one that stood there.
func (a *aligner) resembling(olds []item, fresh []*doc.Node, o, f int, partner []int) {
	was, is := make([][]uint64, len(olds)), make([][]uint64, len(fresh))
	for j, x := range olds {
		was[j] = a.words(x.said)
	}
	for i, n := range fresh {
		is[i] = a.words(n)
	}
	var found [][2]int
	next := 0
	for i, n := range fresh {
		best, at := likeness, -1
		for j := next; j < len(olds) && j < next+nearby && best < plain; j++ {
			if l := alikeness(was[j], is[i]); l > best && kin(olds[j].said.Type, n.Type) && !claimed(was[j], is, fresh, olds[j].said.Type, i, l) {
				best, at = l, j
			}
		}
		if at >= 0 {
			found = append(found, [2]int{i, at})
			next = at + 1
		}
	}
	i, j := 0, 0
	for _, at := range append(found, [2]int{len(fresh), len(olds)}) {
		if at[0]-i == 1 && at[1]-j == 1 && kin(olds[j].said.Type, fresh[i].Type) {
			partner[f+i] = o + j
		}
		if at[0] < len(fresh) {
			partner[f+at[0]] = o + at[1]
		}
		i, j = at[0]+1, at[1]+1
	}
}

// claimed tells that one of the next new nodes is more like the old one than new node i.
func claimed(was []uint64, is [][]uint64, fresh []*doc.Node, kind string, i int, l float64) bool {
	for k := i + 1; k < len(fresh) && k < i+8; k++ {
		if alikeness(was, is[k]) > l && kin(kind, fresh[k].Type) {
			return true
		}
	}
	return false
}

var families = map[string]string{"heading": "text", "paragraph": "text", "bullet_list": "list", "ordered_list": "list", "list_item": "item", "task_item": "item", "quote": "box", "callout": "box"}

// kin tells whether a node of one type may have become one of the other.
func kin(a, b string) bool { return a == b || families[a] != "" && families[a] == families[b] }

// words gives hashes of the words that a node begins with, in order of size.
func (a *aligner) words(n *doc.Node) []uint64 {
	text := n.Plain()
	list := strings.FieldsFunc(text[:min(len(text), read)], func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) })
	out := make([]uint64, len(list))
	for i, w := range list {
		out[i] = maphash.String(a.seed, w)
	}
	slices.Sort(out)
	return out
}

// alikeness is how much of the words of two nodes is the same, 0 to 1.
func alikeness(a, b []uint64) float64 {
	if len(a)+len(b) == 0 {
		return 0
	}
	same := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			same, i, j = same+1, i+1, j+1
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	return 2 * float64(same) / float64(len(a)+len(b))
}

// Unsaid lists the nodes of d, or the outermost of them, that the form in which the content is edited says otherwise than they are.
func Unsaid(d *doc.Doc, said []*doc.Node) (list []*doc.Node) {
	count := 0
	was, err := doc.New("", said, func() string { count++; return strconv.Itoa(count) })
	if err != nil {
		return d.Content()
	}
	var compare func(old, now []*doc.Node)
	compare = func(old, now []*doc.Node) {
		for i, n := range old {
			switch {
			case len(old) != len(now) || !n.Same(now[i]):
				list = append(list, n)
			case n.HoldsBlocks():
				compare(n.Content, now[i].Content)
			}
		}
	}
	compare(d.Content(), was.Content())
	return list
}
