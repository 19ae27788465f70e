package markdown

import (
	"bytes"
	"strconv"
	"strings"

	"cairn/internal/doc"
)

// Write gives the Markdown of checked nodes, with a line end at the end unless it is empty.
func Write(nodes []*doc.Node) string {
	if len(nodes) == 0 {
		return ""
	}
	w := &writer{}
	w.blocks(nodes, 0)
	return string(append(w.b, '\n'))
}

type writer struct {
	b      []byte
	prefix []byte // of each line
}

func (w *writer) put(s string) { w.b = append(w.b, s...) }

// next begins a new line.
func (w *writer) next() { w.b = append(append(w.b, '\n'), w.prefix...) }

// blank leaves a line free and begins a new one.
func (w *writer) blank() {
	w.b = append(append(w.b, '\n'), bytes.TrimRight(w.prefix, " ")...)
	w.next()
}

// within writes with a longer prefix.
func (w *writer) within(more string, f func()) {
	had := len(w.prefix)
	w.prefix = append(w.prefix, more...)
	f()
	w.prefix = w.prefix[:had]
}

func empty(n *doc.Node) bool { return n.Type == "paragraph" && len(n.Content) == 0 }

// textual tells paragraphs that are written as a line of text.
func textual(n *doc.Node) bool {
	return n.Type == "paragraph" && !empty(n) && (len(n.Content) > 1 || n.Content[0].Type != "hard_break")
}

// blocks writes what stands in a node. outer is the sign of the list around it, 0 for none.
func (w *writer) blocks(nodes []*doc.Node, outer byte) {
	var sign byte // of the list just written
	for i, n := range nodes {
		list := n.Type == "bullet_list" || n.Type == "ordered_list"
		if i > 0 {
			if outer != 0 && list && textual(nodes[i-1]) && canFollow(n) {
				w.next()
			} else {
				w.blank()
			}
		}
		if list {
			not := []byte{sign}
			if i == 0 {
				not = append(not, outer)
			}
			sign = pick(n.Type, not)
			w.list(n, sign)
			continue
		}
		sign = 0
		w.block(n, outer)
	}
}

// pick chooses a sign that joins a list with none of the others.
func pick(kind string, not []byte) byte {
	signs := "-*+"
	if kind == "ordered_list" {
		signs = ".)"
	}
	for i := range len(signs) {
		if bytes.IndexByte(not, signs[i]) < 0 {
			return signs[i]
		}
	}
	return signs[0]
}

// canFollow tells lists that may follow a line of text at once.
func canFollow(list *doc.Node) bool {
	first := list.Content[0].Content[0]
	return textual(first) && (list.Type == "bullet_list" || list.Int("start") == 1)
}

func (w *writer) block(n *doc.Node, outer byte) {
	switch n.Type {
	case "paragraph":
		if empty(n) {
			w.put("<br>")
			return
		}
		w.inlines(n.Content, lines)
	case "heading":
		w.put(strings.Repeat("#", n.Int("level")))
		if len(n.Content) > 0 {
			w.put(" ")
			w.inlines(n.Content, headline)
		}
	case "quote":
		w.put("> ")
		w.within("> ", func() { w.inside(n.Content) })
	case "callout":
		w.callout(n)
	case "code_block":
		w.code(n)
	case "table":
		w.table(n)
	case "divider":
		if outer != 0 {
			w.put("___")
		} else {
			w.put("---")
		}
	case "image":
		w.put("![")
		w.label(n.Str("alt"), lines)
		w.put("](" + target(n.Str("src"), n.Str("title"), lines) + ")")
	case "file":
		w.put("[")
		w.label(n.Str("name"), lines)
		w.put("](cairn:file/" + n.Str("file") + ")")
	case "embed":
		src := n.Str("src")
		if what, _ := doc.CairnRef(src); what != "block" {
			src = "cairn:embed/" + src
		}
		w.put("![")
		w.label(n.Str("title"), lines)
		w.put("](" + target(src, "", lines) + ")")
	}
}

// inside writes the blocks of a quote, of which a single empty paragraph is nothing.
func (w *writer) inside(nodes []*doc.Node) {
	if len(nodes) == 1 && empty(nodes[0]) {
		w.b = bytes.TrimRight(w.b, " ")
		return
	}
	w.blocks(nodes, 0)
}

func (w *writer) callout(n *doc.Node) {
	w.put("> [!" + n.Str("kind") + "]")
	if title := n.Str("title"); title != "" {
		w.put(" ")
		w.label(title, lines)
	}
	if len(n.Content) == 1 && empty(n.Content[0]) {
		return
	}
	w.within("> ", func() {
		if textual(n.Content[0]) {
			w.next()
		} else {
			w.blank()
		}
		w.blocks(n.Content, 0)
	})
}

func (w *writer) list(n *doc.Node, sign byte) {
	start := n.Int("start")
	for i, item := range n.Content {
		if i > 0 {
			w.next()
		}
		mark := string(sign) + " "
		if n.Type == "ordered_list" {
			mark = strconv.Itoa(min(start+i, 999999999)) + string(sign) + " "
		}
		w.put(mark)
		w.within(strings.Repeat(" ", len(mark)), func() { w.item(item, sign, i == len(n.Content)-1) })
	}
}

// item writes an item of a list. An empty one is nothing, but the last has a break, since the parser takes a free line behind an
// empty item for the end of all the lists it is in.
func (w *writer) item(n *doc.Node, sign byte, last bool) {
	first := n.Content[0]
	if n.Type == "task_item" {
		box := "[ ]"
		if n.Bool("checked") {
			box = "[x]"
		}
		w.put(box)
		switch {
		case first.Type == "paragraph" && !empty(first):
			w.put(" ")
		case len(n.Content) > 1 || !empty(first):
			w.blank()
		}
	}
	if len(n.Content) == 1 && empty(first) && (!last || n.Type == "task_item") {
		w.b = bytes.TrimRight(w.b, " ")
		return
	}
	w.blocks(n.Content, sign)
}

func (w *writer) code(n *doc.Node) {
	text, info := n.Plain(), n.Str("language")
	sign := "`"
	if strings.Contains(info, "`") {
		sign = "~"
	}
	fence := strings.Repeat(sign, max(3, longest(text, sign[0])+1))
	w.put(fence)
	if info != "" {
		if sign == "~" {
			w.put(" ")
		}
		w.put(escapeInfo(info))
	}
	if text != "" {
		for line := range strings.SplitSeq(text, "\n") {
			w.next()
			w.put(line)
		}
	}
	w.next()
	w.put(fence)
}

// longest is the length of the longest run of c.
func longest(s string, c byte) (most int) {
	run := 0
	for i := range len(s) {
		if s[i] != c {
			run = 0
			continue
		}
		run++
		most = max(most, run)
	}
	return most
}

func (w *writer) table(n *doc.Node) {
	for i, row := range n.Content {
		if i > 0 {
			w.next()
		}
		w.put("|")
		for _, cell := range row.Content {
			w.put(" ")
			w.inlines(cell.Content, inCell)
			w.put(" |")
		}
		if i == 0 {
			w.next()
			w.put("|")
			for _, cell := range row.Content {
				w.put(map[string]string{"": " --- |", "left": " :-- |", "center": " :-: |", "right": " --: |"}[cell.Str("align")])
			}
		}
	}
}
