// Package version has what is between two versions of a document: which nodes changed (Diff), a patch made for an older one
// (Rebase), and what makes one of the other, for keeping many of them (Steps).
package version

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/doc"
)

// Edit is a node whose own text, type or attributes changed; what happened to the blocks in it stands for itself.
type Edit struct{ Before, After *doc.Node }

// Changes is what differs between two versions, nodes being the same where their ids are. Added, Edited and Moved are in the
// order of the newer version, Removed in that of the older. A node counts as moved when it stands in another node or in
// another order among those that stayed beside it; it may be edited besides.
type Changes struct {
	Added, Removed, Moved []*doc.Node
	Edited                []Edit
	Title                 bool // the title differs

	a, b     *doc.Doc
	seen     []*doc.Node       // of b, in its order: all that are not in the very same place in a
	was, is  map[string]place  // nodes that are not the very same in both, by id
	shuffled map[string]string // nodes out of the order among those that stayed, to what they stand in
	what     map[string]string // of each changed node's id
}

type place struct {
	n  *doc.Node
	up string
}

// Diff compares two versions of a document. What a patch left alone is the same node in both and is passed over at once.
func Diff(a, b *doc.Doc) *Changes {
	c := &Changes{a: a, b: b, Title: a.Title() != b.Title(), was: map[string]place{}, is: map[string]place{}, shuffled: map[string]string{}, what: map[string]string{}}
	c.compare("", a.Content(), b.Content())
	if len(c.was)+len(c.is)+len(c.shuffled) == 0 {
		return c
	}
	for _, n := range c.seen {
		now, changed := c.is[n.ID]
		old, had := c.was[n.ID]
		if changed && !had {
			c.Added = append(c.Added, n)
			c.what[n.ID] = "+"
			continue
		}
		if _, out := c.shuffled[n.ID]; out || old.up != now.up {
			c.Moved = append(c.Moved, n)
			c.what[n.ID] = ">"
		}
		if changed && old.n != n && !old.n.Same(n) {
			c.Edited = append(c.Edited, Edit{old.n, n})
			c.what[n.ID] += "~"
		}
	}
	for id, old := range c.was {
		if _, has := c.is[id]; !has {
			c.Removed = append(c.Removed, old.n)
		}
	}
	if len(c.Removed) > 1 { // into the order of the older version
		c.Removed = c.Removed[:0]
		for n := range a.All() {
			if _, had := c.was[n.ID]; had {
				if _, has := c.is[n.ID]; !has {
					c.Removed = append(c.Removed, n)
				}
			}
		}
	}
	return c
}

// compare takes down where the children of a node differ between the versions.
func (c *Changes) compare(up string, a, b []*doc.Node) {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a)+len(b) == 0 {
		return
	}
	old := make(map[string]*doc.Node, len(a))
	for _, n := range a {
		old[n.ID] = n
	}
	now := make(map[string]*doc.Node, len(b))
	for _, n := range b {
		now[n.ID] = n
		c.seen = append(c.seen, n)
		switch had := old[n.ID]; {
		case had == n:
		case had == nil:
			note(c.is, up, n)
			n.Walk(0, func(in *doc.Node, _ int) bool {
				if in != n {
					c.seen = append(c.seen, in)
				}
				return true
			})
		default:
			c.was[n.ID], c.is[n.ID] = place{had, up}, place{n, up}
			c.compare(n.ID, blocks(had), blocks(n))
		}
	}
	for _, n := range a {
		if now[n.ID] == nil {
			note(c.was, up, n)
		}
	}
	c.disorder(up, a, b, now)
}

func blocks(n *doc.Node) []*doc.Node {
	if n.HoldsBlocks() {
		return n.Content
	}
	return nil
}

// note takes down a node and all in it.
func note(m map[string]place, up string, n *doc.Node) {
	m[n.ID] = place{n, up}
	for _, c := range blocks(n) {
		note(m, n.ID, c)
	}
}

// disorder finds which of the children that stayed in a node have to be moved to come into the new order: those outside a longest
// rising run of their old places.
func (c *Changes) disorder(up string, a, b []*doc.Node, now map[string]*doc.Node) {
	at := make(map[string]int, len(a))
	for i, n := range a {
		if now[n.ID] != nil {
			at[n.ID] = i
		}
	}
	var places [][2]int // in b, in a
	for i, n := range b {
		if old, ok := at[n.ID]; ok {
			places = append(places, [2]int{i, old})
		}
	}
	stay := rising(places)
	for _, p := range places {
		if len(stay) > 0 && stay[0] == p {
			stay = stay[1:]
		} else {
			c.shuffled[b[p[0]].ID] = up
		}
	}
}

// Empty tells that nothing differs.
func (c *Changes) Empty() bool {
	return !c.Title && len(c.Added)+len(c.Removed)+len(c.Moved)+len(c.Edited) == 0
}

// IDs gives the changed nodes: edited or moved, then added, then removed; each once.
func (c *Changes) IDs() []string {
	seen := map[string]bool{}
	var ids []string
	add := func(n *doc.Node) {
		if !seen[n.ID] {
			seen[n.ID] = true
			ids = append(ids, n.ID)
		}
	}
	for _, e := range c.Edited {
		add(e.After)
	}
	for _, n := range slices.Concat(c.Moved, c.Added, c.Removed) {
		add(n)
	}
	return ids
}

// Line is a block that differs: Sign is "+" added, "-" removed, ">" moved, "~" edited.
type Line struct {
	Sign   string  `json:"sign"`
	Type   string  `json:"type"` // "title" for the document's
	Level  int     `json:"level"`
	NodeID string  `json:"node_id,omitempty"`
	Was    string  `json:"was,omitempty"`   // the type that an edited one had
	Alike  bool    `json:"alike,omitempty"` // edited, though its text is the same: attributes or marks differ
	Parts  []Piece `json:"parts"`
}

// Piece is text of a line: "-" what went, "+" what came, "" what stayed or the whole block is.
type Piece struct {
	Sign string `json:"sign,omitempty"`
	Text string `json:"text"`
}

// Text says for people what changed, a line for each block, in the order of the newer version: "+" added, "-" removed, ">" moved,
// "~" edited with [-what went-] and {+what came+}. Blocks that only hold others are left out. What goes beyond limit bytes is
// counted in a last line.
func (c *Changes) Text(limit int) string {
	lines, more := c.Lines(limit)
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.String())
	}
	if more > 0 {
		fmt.Fprintf(&b, "... and %d more\n", more)
	}
	return b.String()
}

// String gives the line as Text does.
func (l Line) String() string {
	var b strings.Builder
	if l.Was != "" {
		b.WriteString("(was " + l.Was + ") ")
	}
	for _, p := range l.Parts {
		switch p.Sign {
		case "-":
			b.WriteString("[-" + p.Text + "-]")
		case "+":
			b.WriteString("{+" + p.Text + "+}")
		default:
			b.WriteString(p.Text)
		}
	}
	if l.Alike {
		b.WriteString(" (attributes or marks)")
	}
	return fmt.Sprintf("%s %s%s: %s\n", l.Sign, strings.Repeat("  ", l.Level), l.Type, strings.ReplaceAll(b.String(), "\n", "⏎"))
}

// Lines gives what Text says as values: as many lines as make up to limit bytes, at least one, and how many more there are.
func (c *Changes) Lines(limit int) (lines []Line, more int) {
	w := &differ{c: c, limit: limit, was: map[string]*doc.Node{}, now: map[string]bool{}}
	if c.Title {
		w.line(Line{Sign: "~", Type: "title", NodeID: doc.RootID, Parts: Words(c.a.Title(), c.b.Title())})
	}
	for n := range c.a.All() {
		w.was[n.ID] = n
	}
	for n := range c.b.All() {
		w.now[n.ID] = true
	}
	w.nodes(c.a.Content(), c.b.Content(), 0)
	return w.lines, w.more
}

type differ struct {
	c     *Changes
	lines []Line
	size  int
	was   map[string]*doc.Node
	now   map[string]bool
	limit int
	more  int
}

func (w *differ) line(l Line) {
	size := len(l.String())
	if w.size > 0 && w.size+size > w.limit {
		w.more++
		return
	}
	w.size += size
	w.lines = append(w.lines, l)
}

func whole(text string) []Piece { return []Piece{{Text: text}} }

// nodes writes what differs among the children of a node, with those removed where they stood.
func (w *differ) nodes(a, b []*doc.Node, level int) {
	i := 0
	removed := func(upTo string) {
		for ; i < len(a) && a[i].ID != upTo; i++ {
			if !w.now[a[i].ID] {
				w.lost(a[i], level)
			}
		}
	}
	old := map[string]bool{}
	for _, n := range a {
		old[n.ID] = true
	}
	for _, n := range b {
		if old[n.ID] && !strings.HasPrefix(w.c.what[n.ID], ">") {
			removed(n.ID)
		}
		before := w.was[n.ID]
		if before == n && w.c.what[n.ID] == "" {
			continue
		}
		w.changed(before, n, level)
		if n.HoldsBlocks() {
			var had []*doc.Node
			if before != nil && before.HoldsBlocks() {
				had = before.Content
			}
			w.nodes(had, n.Content, level+1)
		}
	}
	removed("")
}

func (w *differ) lost(n *doc.Node, level int) {
	if !n.HoldsBlocks() || n.Type == "callout" {
		w.line(Line{Sign: "-", Type: n.Type, Level: level, NodeID: n.ID, Parts: whole(own(n))})
	}
	if n.HoldsBlocks() {
		for _, c := range n.Content {
			if !w.now[c.ID] {
				w.lost(c, level+1)
			}
		}
	}
}

func (w *differ) changed(before, n *doc.Node, level int) {
	what := w.c.what[n.ID]
	if what == "" || n.HoldsBlocks() && what == "+" && n.Type != "callout" {
		return
	}
	l := Line{Sign: what[:1], Type: n.Type, Level: level, NodeID: n.ID, Parts: whole(own(n))}
	if n.HoldsBlocks() && what[:1] == ">" {
		text := n.Plain()
		if utf8.RuneCountInString(text) > 80 {
			text = string([]rune(text)[:80]) + "..."
		}
		l.Parts = whole(text)
	}
	if strings.HasSuffix(what, "~") {
		l.Parts = Words(own(before), own(n))
		if before.Type != n.Type {
			l.Was = before.Type
		} else {
			l.Alike = own(before) == own(n)
		}
	}
	w.line(l)
}

// own is a node's text without that of the blocks in it.
func own(n *doc.Node) string {
	if n.HoldsBlocks() {
		return n.Str("title")
	}
	if s := n.Str("src"); s != "" {
		return strings.TrimSpace(n.Plain() + " " + s)
	}
	return n.Plain()
}

// Words shows how one text became the other: what they begin and end with in common stays as it is, up to the edge of a word.
func Words(a, b string) []Piece {
	if a == b {
		return whole(a)
	}
	x, y := []rune(a), []rune(b)
	word := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || r == 0x200D
	}
	from := 0
	for from < len(x) && from < len(y) && x[from] == y[from] {
		from++
	}
	for from > 0 && word(x[from-1]) && (from < len(x) && word(x[from]) || from < len(y) && word(y[from])) {
		from--
	}
	to := 0
	for to < len(x)-from && to < len(y)-from && x[len(x)-1-to] == y[len(y)-1-to] {
		to++
	}
	for to > 0 && word(x[len(x)-to]) && (len(x)-to-1 >= from && word(x[len(x)-to-1]) || len(y)-to-1 >= from && word(y[len(y)-to-1])) {
		to--
	}
	var out []Piece
	add := func(sign string, text []rune) {
		if len(text) > 0 {
			out = append(out, Piece{sign, string(text)})
		}
	}
	add("", x[:from])
	add("-", x[from:len(x)-to])
	add("+", y[from:len(y)-to])
	add("", x[len(x)-to:])
	return out
}
