package markdown

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/util"

	"cairn/internal/doc"
)

// where says what inline text stands in.
type where int

const (
	lines    where = iota // a paragraph, which may have line breaks
	headline              // one line
	inCell                // of a table
)

// signs are the marks that are written around text. Bold and italic have different ones so that they never run into one.
var signs = map[string]string{"bold": "**", "italic": "_", "strike": "~~", "highlight": "=="}

// inlines writes inline nodes. What marks neighbours share stays open; of those that begin, the one that goes on longest is
// outside.
func (w *writer) inlines(nodes []*doc.Node, in where) {
	stacks := nesting(nodes)
	var open []doc.Mark // but code
	for i, n := range nodes {
		marks := stacks[i]
		keep := shared(open, marks)
		w.close(open[keep:], in)
		w.open(marks[keep:])
		open = marks
		switch n.Type {
		case "text":
			if isCode(n) {
				w.span(n.Text, in)
				break
			}
			w.text(n.Text, in, edges{firstCoded(nodes, i, stacks), lastCoded(nodes, i, stacks), i+1 < len(nodes)})
		case "hard_break":
			if in == lines && i+1 < len(nodes) {
				w.put(`\`)
				w.next()
			} else {
				w.put("<br>")
			}
		case "mention":
			w.put("[")
			w.label(n.Str("label"), in)
			w.put("](cairn:block/" + n.Str("block") + ")")
		case "inline_image":
			w.put("![")
			w.label(n.Str("alt"), in)
			w.put("](" + target(n.Str("src"), n.Str("title"), in) + ")")
		}
	}
	w.close(open, in)
}

// nesting gives for each node the marks written around it, the outermost first.
func nesting(nodes []*doc.Node) [][]doc.Mark {
	stacks := make([][]doc.Mark, len(nodes))
	var open []doc.Mark
	for i, n := range nodes {
		marks := nested(n)
		keep := 0
		for keep < len(open) && has(marks, open[keep]) {
			keep++
		}
		stack := open[:keep:keep]
		for _, m := range marks {
			if !has(stack, m) {
				stack = append(stack, m)
			}
		}
		if fresh := stack[keep:]; len(fresh) > 1 {
			slices.SortStableFunc(fresh, func(a, b doc.Mark) int { return reach(nodes[i:], b) - reach(nodes[i:], a) })
		}
		stacks[i], open = stack, stack
	}
	return stacks
}

// reach counts the nodes that a mark goes on for, as far as it matters.
func reach(nodes []*doc.Node, m doc.Mark) int {
	n := 0
	for n < len(nodes) && n < 64 && has(nested(nodes[n]), m) {
		n++
	}
	return n
}

func has(marks []doc.Mark, m doc.Mark) bool {
	return slices.ContainsFunc(marks, func(had doc.Mark) bool { return same(had, m) })
}

func same(a, b doc.Mark) bool {
	return a.Type == b.Type && a.Str("href") == b.Str("href") && a.Str("title") == b.Str("title")
}

func isCode(n *doc.Node) bool { return len(n.Marks) > 0 && n.Marks[len(n.Marks)-1].Type == "code" }

// nested gives the marks that are written around a node: all but code.
func nested(n *doc.Node) []doc.Mark {
	if isCode(n) {
		return n.Marks[:len(n.Marks)-1]
	}
	return n.Marks
}

func shared(a, b []doc.Mark) int {
	i := 0
	for i < len(a) && i < len(b) && same(a[i], b[i]) {
		i++
	}
	return i
}

func (w *writer) open(marks []doc.Mark) {
	for _, m := range marks {
		if m.Type == "link" {
			w.put("[")
		} else {
			w.put(signs[m.Type])
		}
	}
}

func (w *writer) close(marks []doc.Mark, in where) {
	for i := len(marks) - 1; i >= 0; i-- {
		if m := marks[i]; m.Type == "link" {
			w.put("](" + target(m.Str("href"), m.Str("title"), in) + ")")
		} else {
			w.put(signs[m.Type])
		}
	}
}

// Signs of marks count only beside the right characters (CommonMark, section 6.2). Where a text's first or last character would
// be the wrong one, it is written as a reference, which begins and ends with punctuation.

// edges says which characters of a text are written as references: always, or where they are white space or a sign's own.
type edges struct {
	first, last coding
	more        bool // something follows on the line
}

type coding int

const (
	plain  coding = iota
	spaces        // white space, and = and ~
	always
)

// firstCoded tells how the first character of node i is written.
func firstCoded(nodes []*doc.Node, i int, stacks [][]doc.Mark) coding {
	var had []doc.Mark
	if i > 0 {
		had = stacks[i-1]
	}
	keep := shared(had, stacks[i])
	closing, opening := had[keep:], stacks[i][keep:]
	if k := len(opening); k > 0 {
		if opening[k-1].Type == "link" {
			return plain
		}
		return spaces
	}
	if i == 0 || nodes[i-1].Type == "hard_break" {
		return spaces // a line's beginning
	}
	if len(closing) == 0 || closing[0].Type == "link" {
		return plain
	}
	r, _ := utf8.DecodeRuneInString(nodes[i].Text)
	if wordy(r) && (len(closing) > 1 || strict(closing[0]) || !lastIsWordy(nodes[i-1])) {
		return always
	}
	return plain
}

// lastCoded tells how the last character of node i is written.
func lastCoded(nodes []*doc.Node, i int, stacks [][]doc.Mark) coding {
	var ahead []doc.Mark
	if i+1 < len(nodes) {
		ahead = stacks[i+1]
	}
	keep := shared(stacks[i], ahead)
	closing, opening := stacks[i][keep:], ahead[keep:]
	if k := len(closing); k > 0 {
		if closing[k-1].Type == "link" {
			return plain
		}
		return spaces
	}
	if i+1 == len(nodes) || nodes[i+1].Type == "hard_break" {
		return spaces // a line's end
	}
	if len(opening) == 0 || opening[0].Type == "link" {
		return plain
	}
	r, _ := utf8.DecodeLastRuneInString(nodes[i].Text)
	if wordy(r) && (len(opening) > 1 || strict(opening[0]) || !firstIsWordy(nodes[i+1])) {
		return always
	}
	if r == '=' || r == '~' {
		return spaces
	}
	return plain
}

// strict signs don't open or close within a word.
func strict(m doc.Mark) bool { return m.Type == "italic" || m.Type == "highlight" }

func wordy(r rune) bool { return !util.IsPunctRune(r) && !util.IsSpaceRune(r) }

// lastIsWordy tells whether a text ends, as written, with a letter or the like. A single one may have been written as a reference
// for its other side's sake.
func lastIsWordy(n *doc.Node) bool {
	r, _ := utf8.DecodeLastRuneInString(n.Text)
	return n.Type == "text" && !isCode(n) && wordy(r) && !control(r) && utf8.RuneCountInString(n.Text) > 1
}

func firstIsWordy(n *doc.Node) bool {
	r, _ := utf8.DecodeRuneInString(n.Text)
	return n.Type == "text" && !isCode(n) && wordy(r) && !control(r) && utf8.RuneCountInString(n.Text) > 1
}

func control(r rune) bool { return r < 0x20 || r == 0x7f || r == 0xFEFF }

// text writes text so that it is read as nothing else.
func (w *writer) text(s string, in where, e edges) {
	for i, r := range s {
		size := utf8.RuneLen(r)
		first, last := i == 0, i+size == len(s)
		switch {
		case control(r), first && coded(r, e.first), last && coded(r, e.last):
			w.put("&#" + strconv.Itoa(int(r)) + ";")
		case r >= 0x80:
			w.b = utf8.AppendRune(w.b, r)
		case r == '_' && (i == 1 && e.first == always || i == len(s)-2 && e.last == always):
			w.put(`\_`)
		case (first || last || special(byte(r))) && w.escapes(s, i, in, first, last, e.more):
			w.b = append(w.b, '\\', byte(r))
		default:
			w.b = append(w.b, byte(r))
		}
	}
}

func coded(r rune, c coding) bool {
	return c == always || c == spaces && (util.IsSpaceRune(r) || r == '=' || r == '~' || r == '\\')
}

// special characters may have to be escaped.
func special(c byte) bool { return strings.IndexByte("\\`*_[]<&~=:@.)#|!", c) >= 0 }

// escapes tells whether the ASCII character at i has to be escaped.
func (w *writer) escapes(s string, i int, in where, first, last, more bool) bool {
	c := s[i]
	at := func(j int) byte {
		if j < 0 || j >= len(s) {
			return 0
		}
		return s[j]
	}
	switch c {
	case '\\', '`', '*', '[', ']', '<', '~':
		return true
	case '_':
		return !util.IsAlphaNumeric(at(i-1)) || !util.IsAlphaNumeric(at(i+1))
	case '&':
		return last || at(i+1) == '#' || util.IsAlphaNumeric(at(i+1))
	case '=':
		return first || last || highlighting(s, i)
	case ':':
		return strings.HasSuffix(s[:i], "http") || strings.HasSuffix(s[:i], "https") || strings.HasSuffix(s[:i], "ftp") || first
	case '.':
		return first && w.afterDigits() || strings.HasSuffix(s[:i], "www") || numbered(s, i)
	case ')':
		return numbered(s, i) || first && w.afterDigits()
	case '@':
		return first || at(i-1) != ' '
	case '#':
		return in == headline || first
	case '|':
		return in == inCell || first
	case '!':
		return last && more
	case '>', '+', '-':
		return first
	}
	return false
}

// highlighting tells whether the = at i is one of two that could be a sign of marks, as those between letters couldn't.
// A first or last letter may be written as a reference.
func highlighting(s string, i int) bool {
	from, to := i, i+1
	for from > 0 && s[from-1] == '=' {
		from--
	}
	for to < len(s) && s[to] == '=' {
		to++
	}
	return from == 0 || to == len(s) || to-from == 2 && (from < 2 || to > len(s)-2 || !util.IsAlphaNumeric(s[from-1]) || !util.IsAlphaNumeric(s[to]))
}

// numbered tells whether s begins as a list's numbered item would, with digits up to i.
func numbered(s string, i int) bool {
	if i == 0 || i > 9 {
		return false
	}
	for j := range i {
		if !util.IsNumeric(s[j]) {
			return false
		}
	}
	return i == len(s)-1 || s[i+1] == ' '
}

func (w *writer) afterDigits() bool { return len(w.b) > 0 && util.IsNumeric(w.b[len(w.b)-1]) }

// label writes text in brackets, or the title of a callout.
func (w *writer) label(s string, in where) { w.text(s, in, edges{spaces, spaces, false}) }

// span writes code within text.
func (w *writer) span(s string, in where) {
	fence := "`"
	for strings.Contains(s, fence) && runs(s, len(fence)) {
		fence += "`"
	}
	if in == inCell {
		s = strings.ReplaceAll(s, "|", `\|`)
	}
	pad := ""
	blank := strings.Trim(s, " ") == ""
	if s[0] == '`' || s[len(s)-1] == '`' || s[0] == ' ' && s[len(s)-1] == ' ' && !blank {
		pad = " "
	}
	w.put(fence + pad + s + pad + fence)
}

// runs tells whether s has a run of exactly n backquotes.
func runs(s string, n int) bool {
	run := 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && s[i] == '`' {
			run++
			continue
		}
		if run == n {
			return true
		}
		run = 0
	}
	return false
}

// target writes a destination and a title.
func target(url, title string, in where) string {
	var b strings.Builder
	pointed := strings.ContainsAny(url, " ()<>\\") || url == ""
	if pointed {
		b.WriteByte('<')
	}
	escape(&b, url, `<>\`, in)
	if pointed {
		b.WriteByte('>')
	}
	if title != "" {
		b.WriteString(` "`)
		escape(&b, title, `"\`, in)
		b.WriteByte('"')
	}
	return b.String()
}

func escape(b *strings.Builder, s, signs string, in where) {
	for i, r := range s {
		escapeRune(b, s[i:], r, signs, in)
	}
}

// escapeRune writes the character that s begins with.
func escapeRune(b *strings.Builder, s string, r rune, signs string, in where) {
	n := 1
	if r == '&' {
		_, n = reference(s)
	}
	switch {
	case n > 1:
		b.WriteString("&amp;")
	case control(r):
		b.WriteString("&#" + strconv.Itoa(int(r)) + ";")
	case r == '|' && in == inCell, r < 0x80 && strings.IndexByte(signs, byte(r)) >= 0:
		b.WriteByte('\\')
		b.WriteRune(r)
	default:
		b.WriteRune(r)
	}
}

// escapeInfo writes the line beside a fence.
func escapeInfo(s string) string {
	var b strings.Builder
	for i, r := range s {
		if edge := i == 0 || i+utf8.RuneLen(r) == len(s); edge && util.IsSpaceRune(r) {
			b.WriteString("&#" + strconv.Itoa(int(r)) + ";")
			continue
		}
		escapeRune(&b, s[i:], r, `\`, lines)
	}
	return b.String()
}
