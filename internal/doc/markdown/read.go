// Package markdown brings Markdown into document nodes and out again: CommonMark with GFM's tables, task lists, strikethrough and
// autolinks, and of our own ==highlight==, callouts (> [!note]), mentions ([label](cairn:block/ID)), files
// ([name](cairn:file/ID)) and embeds (![title](cairn:block/ID)). Raw HTML is text; <br> alone is a line break.
//
// What it writes reads back as the same nodes but for their ids; CannotSay lists what does not.
package markdown

import (
	"bytes"
	"html"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"cairn/internal/doc"
	"cairn/internal/fault"
)

// CannotSay lists what Markdown has no words for, and what Read(Write(nodes)) makes of it.
var CannotSay = []string{
	"node ids: they are left out, and new ones are given",
	"a paragraph of nothing but one inline image: it comes back as an image block",
	"a paragraph of nothing but a link to cairn:file/ID without other marks: it comes back as a file block",
	"a paragraph of nothing but one line break: it comes back empty",
	"spaces and tabs that are alone on a line of code within a list: the line comes back empty",
	"a table of more than 500 columns, or whose rows hold more cells than a document may have nodes: it comes back as text",
	"a run of marks that goes on over more than 1,000 characters of markup within one paragraph of more than 8 KiB: it may come back in parts",
	"lists, quotes and callouts that begin below level 28: they come back as text",
}

var reading = newParser()

// Read reads Markdown into nodes, which doc.New or a patch checks. Line ends may be LF, CRLF or CR; a byte order mark is dropped;
// NUL becomes U+FFFD, as CommonMark says (section 2.3). The only fault is text that isn't UTF-8.
func Read(source string) ([]*doc.Node, error) {
	if !utf8.ValidString(source) {
		return nil, fault.New(fault.Invalid, "the Markdown is not valid UTF-8")
	}
	source = strings.TrimPrefix(source, "\uFEFF")
	if strings.ContainsAny(source, "\r\x00") {
		source = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\uFFFD").Replace(source)
	}
	b := []byte(source)
	r := &reader{source: b}
	return r.blocks(reading.Parse(text.NewReader(b), parser.WithContext(parser.NewContext()))), nil
}

type reader struct {
	source []byte
	cell   bool // in a table, where \| in code is |
}

func (r *reader) blocks(parent ast.Node) (out []*doc.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if part(n) { // read with the paragraph before it
			continue
		}
		switch n := n.(type) {
		case *ast.Paragraph, *ast.TextBlock:
			out = append(out, r.paragraph(n))
		case *ast.Heading:
			out = append(out, &doc.Node{Type: "heading", Attrs: []doc.Attr{{Name: "level", Value: n.Level}}, Content: r.inlines(n)})
		case *ast.ThematicBreak:
			out = append(out, &doc.Node{Type: "divider"})
		case *ast.Blockquote:
			out = append(out, r.quote(n))
		case *ast.List:
			out = append(out, r.list(n))
		case *ast.FencedCodeBlock:
			info := ""
			if n.Info != nil {
				info = unescape(string(n.Info.Segment.Value(r.source)))
			}
			out = append(out, code(info, n.Lines().Value(r.source)))
		case *ast.CodeBlock:
			out = append(out, code("", n.Lines().Value(r.source)))
		case *ast.HTMLBlock:
			out = append(out, r.html(n))
		case *extast.Table:
			out = append(out, r.table(n))
		}
	}
	return out
}

// html keeps a block of HTML as code; <br> alone is how an empty paragraph is written.
func (r *reader) html(n *ast.HTMLBlock) *doc.Node {
	b := n.Lines().Value(r.source)
	if n.HasClosure() {
		b = append(b, n.ClosureLine.Value(r.source)...)
	}
	if isBreak(bytes.TrimSpace(b)) {
		return &doc.Node{Type: "paragraph"}
	}
	return code("html", b)
}

func isBreak(b []byte) bool {
	s := strings.ToLower(string(b))
	return s == "<br>" || s == "<br/>" || s == "<br />"
}

func code(info string, b []byte) *doc.Node {
	n := &doc.Node{Type: "code_block"}
	if info != "" {
		n.Attrs = []doc.Attr{{Name: "language", Value: clipped(info, 200)}}
	}
	if s := strings.TrimSuffix(string(b), "\n"); s != "" {
		n.Content = []*doc.Node{doc.Text(s)}
	}
	return n
}

// clipped cuts what is longer than an attribute may be.
func clipped(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most])
	}
	return s
}

const mostLine = 1000

func line(name, s string) []doc.Attr {
	if s = strings.ReplaceAll(s, "\n", " "); s == "" {
		return nil
	}
	return []doc.Attr{{Name: name, Value: clipped(s, mostLine)}}
}

// filled gives what stands in a quote or an item, an empty paragraph where there is nothing.
func filled(blocks []*doc.Node) []*doc.Node {
	if len(blocks) == 0 {
		return []*doc.Node{{Type: "paragraph"}}
	}
	return blocks
}

func (r *reader) quote(n *ast.Blockquote) *doc.Node {
	kind, ok := n.AttributeString(calloutKind)
	if !ok {
		return &doc.Node{Type: "quote", Content: filled(r.blocks(n))}
	}
	title, _ := n.AttributeString(calloutTitle)
	attrs := append([]doc.Attr{{Name: "kind", Value: kind}}, line("title", title.(string))...)
	return &doc.Node{Type: "callout", Attrs: attrs, Content: filled(r.blocks(n))}
}

func isCallout(kind string) bool {
	for _, a := range (&doc.Node{Type: "callout"}).Spec().Attrs {
		for _, v := range a.Values {
			if v == kind {
				return true
			}
		}
	}
	return false
}

func (r *reader) list(n *ast.List) *doc.Node {
	l := &doc.Node{Type: "bullet_list"}
	if n.IsOrdered() {
		l.Type = "ordered_list"
		l.Attrs = []doc.Attr{{Name: "start", Value: n.Start}}
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		item := &doc.Node{Type: "list_item"}
		first := c.FirstChild()
		if first != nil && first.FirstChild() != nil {
			if box, ok := first.FirstChild().(*extast.TaskCheckBox); ok {
				item.Type = "task_item"
				item.Attrs = []doc.Attr{{Name: "checked", Value: box.IsChecked}}
			}
		}
		item.Content = filled(r.blocks(c))
		if item.Type == "task_item" && len(item.Content) > 1 && len(item.Content[0].Content) == 0 && item.Content[0].Type == "paragraph" {
			item.Content = item.Content[1:]
		}
		l.Content = append(l.Content, item)
	}
	return l
}

func (r *reader) table(n *extast.Table) *doc.Node {
	r.cell = true
	defer func() { r.cell = false }()
	t := &doc.Node{Type: "table"}
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		_, header := row.(*extast.TableHeader)
		tr := &doc.Node{Type: "table_row"}
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			cell := &doc.Node{Type: "table_cell", Content: r.inlines(c)}
			if header {
				cell.Type = "table_header"
				if a := c.(*extast.TableCell).Alignment; a != extast.AlignNone {
					cell.Attrs = []doc.Attr{{Name: "align", Value: a.String()}}
				}
			}
			tr.Content = append(tr.Content, cell)
		}
		t.Content = append(t.Content, tr)
	}
	return t
}

func part(n ast.Node) bool {
	if b, ok := n.(*ast.TextBlock); ok {
		_, is := b.AttributeString(partOf)
		return is
	}
	return false
}

// paragraph reads a paragraph and the parts that were split off it. One that holds nothing but an image or a file is that block.
func (r *reader) paragraph(n ast.Node) *doc.Node {
	if c := n.FirstChild(); c != nil && c.NextSibling() == nil && !part(n.NextSibling()) {
		if b := r.standing(c); b != nil {
			return b
		}
	}
	w := &inliner{r: r}
	w.children(n, nil)
	for next := n.NextSibling(); part(next); next = next.NextSibling() {
		if spaced, _ := next.AttributeString(partOf); spaced == true {
			w.text(" ", nil)
		}
		w.children(next, nil)
	}
	return &doc.Node{Type: "paragraph", Content: w.out}
}

// standing gives the block that an image or a link alone in its paragraph is, nil if it is none.
func (r *reader) standing(c ast.Node) *doc.Node {
	switch c := c.(type) {
	case *ast.Image:
		alt, src, title := r.plain(c), unescape(string(c.Destination)), unescape(string(c.Title))
		if doc.GoodURL(doc.Source, src) {
			return &doc.Node{Type: "image", Attrs: append(append(line("alt", alt), line("title", title)...), doc.Attr{Name: "src", Value: src})}
		}
		if src = embedded(src); src != "" {
			return &doc.Node{Type: "embed", Attrs: append(line("title", alt), doc.Attr{Name: "src", Value: src})}
		}
	case *ast.Link:
		if what, id := doc.CairnRef(unescape(string(c.Destination))); what == "file" && id != "" && r.textOnly(c) && len(c.Title) == 0 {
			return &doc.Node{Type: "file", Attrs: append(line("name", r.plain(c)), doc.Attr{Name: "file", Value: id})}
		}
	}
	return nil
}

// embedded gives the src of an embed from how Markdown says it, "" for none.
func embedded(src string) string {
	url, ok := strings.CutPrefix(src, "cairn:embed/")
	if what, _ := doc.CairnRef(src); (what == "block" || ok && !strings.HasPrefix(url, "cairn:")) && doc.GoodURL(doc.Embed, url) {
		return url
	}
	return ""
}

func (r *reader) textOnly(n ast.Node) bool {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if _, ok := c.(*ast.Text); !ok {
			return false
		}
	}
	return utf8.RuneCountInString(r.plain(n)) <= mostLine
}

// plain gives the text of inline nodes.
func (r *reader) plain(n ast.Node) string {
	w := &inliner{r: r}
	w.children(n, nil)
	var b strings.Builder
	for _, n := range w.out {
		b.WriteString(n.Plain())
	}
	return b.String()
}

func (r *reader) inlines(n ast.Node) []*doc.Node {
	w := &inliner{r: r}
	w.children(n, nil)
	return w.out
}

// inliner collects inline nodes.
type inliner struct {
	r   *reader
	out []*doc.Node
}

func (w *inliner) text(s string, marks []doc.Mark) {
	if s != "" {
		w.out = append(w.out, doc.Text(s, marks...))
	}
}

// with adds a mark; one of that type that is there already stays.
func with(marks []doc.Mark, m doc.Mark) []doc.Mark {
	for _, had := range marks {
		if had.Type == m.Type {
			return marks
		}
	}
	return append(marks[:len(marks):len(marks)], m)
}

func (w *inliner) children(n ast.Node, marks []doc.Mark) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		w.node(c, marks)
	}
}

func (w *inliner) node(n ast.Node, marks []doc.Mark) {
	source := w.r.source
	switch n := n.(type) {
	case *ast.Text:
		w.text(unescape(string(n.Segment.Value(source))), marks)
		switch {
		case n.HardLineBreak():
			w.out = append(w.out, &doc.Node{Type: "hard_break"})
		case n.SoftLineBreak() && len(w.out) > 0:
			w.text(" ", marks)
		}
	case *ast.String:
		w.text(string(n.Value), marks)
	case *ast.CodeSpan:
		w.code(n, with(marks, doc.Mark{Type: "code"}))
	case *ast.Emphasis:
		w.children(n, with(marks, doc.Mark{Type: map[bool]string{true: "italic", false: "bold"}[n.Level == 1]}))
	case *extast.Strikethrough:
		w.children(n, with(marks, doc.Mark{Type: "strike"}))
	case *highlight:
		w.children(n, with(marks, doc.Mark{Type: "highlight"}))
	case *ast.Link:
		w.link(n, marks)
	case *ast.Image:
		w.image(n, marks)
	case *ast.AutoLink:
		w.autoLink(n, marks)
	case *ast.RawHTML:
		tag := n.Segments.Value(source)
		if isBreak(tag) {
			w.out = append(w.out, &doc.Node{Type: "hard_break"})
			return
		}
		w.text(strings.ReplaceAll(string(tag), "\n", " "), marks)
	}
}

func (w *inliner) code(n *ast.CodeSpan, marks []doc.Mark) {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(w.r.source))
		}
	}
	s := strings.ReplaceAll(b.String(), "\n", " ")
	if w.r.cell {
		s = strings.ReplaceAll(s, `\|`, "|")
	}
	w.text(s, marks)
}

func (w *inliner) autoLink(n *ast.AutoLink, marks []doc.Mark) {
	label, url := string(n.Label(w.r.source)), string(n.URL(w.r.source))
	if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(url), "mailto:") {
		url = "mailto:" + url
	}
	if !doc.GoodURL(doc.Link, url) {
		if source := w.r.source; n.Protocol == nil && bytes.HasPrefix(source[max(0, n.Pos()):], []byte("<")) {
			label = "<" + label + ">"
		}
		w.text(label, marks)
		return
	}
	w.text(label, with(marks, doc.Mark{Type: "link", Attrs: []doc.Attr{{Name: "href", Value: url}}}))
}

// link makes a mention, a link, or text where the scheme is none that may be a link.
func (w *inliner) link(n *ast.Link, marks []doc.Mark) {
	href, title := unescape(string(n.Destination)), unescape(string(n.Title))
	if what, id := doc.CairnRef(href); what == "block" && id != "" {
		w.mention(id, w.r.plain(n), marks)
		return
	}
	if !doc.GoodURL(doc.Link, href) {
		w.text("[", marks)
		w.children(n, marks)
		w.text("]("+said(n.Destination, n.Title)+")", marks)
		return
	}
	mark := doc.Mark{Type: "link", Attrs: append(line("title", title), doc.Attr{Name: "href", Value: href})}
	w.children(n, with(marks, mark))
}

// said writes a destination and a title as the source had them, about.
func said(dest, title []byte) string {
	s := strings.ReplaceAll(string(dest), "\n", " ")
	if len(title) > 0 {
		s += " " + strconv.Quote(string(title))
	}
	return s
}

// carried leaves out the marks that an inline node may not carry.
func carried(kind string, marks []doc.Mark) (out []doc.Mark) {
	spec := (&doc.Node{Type: kind}).Spec()
	for _, m := range marks {
		for _, may := range spec.Marks {
			if m.Type == may {
				out = append(out, m)
			}
		}
	}
	return out
}

func (w *inliner) mention(id, label string, marks []doc.Mark) {
	attrs := append(line("label", label), doc.Attr{Name: "block", Value: id})
	w.out = append(w.out, &doc.Node{Type: "mention", Attrs: attrs, Marks: carried("mention", marks)})
}

func (w *inliner) image(n *ast.Image, marks []doc.Mark) {
	alt, src, title := w.r.plain(n), unescape(string(n.Destination)), unescape(string(n.Title))
	embed := embedded(src)
	switch what, id := doc.CairnRef(embed); {
	case doc.GoodURL(doc.Source, src):
		attrs := append(append(line("alt", alt), line("title", title)...), doc.Attr{Name: "src", Value: src})
		w.out = append(w.out, &doc.Node{Type: "inline_image", Attrs: attrs, Marks: carried("inline_image", marks)})
	case what == "block":
		w.mention(id, alt, marks)
	case embed != "":
		w.text(alt, with(marks, doc.Mark{Type: "link", Attrs: []doc.Attr{{Name: "href", Value: embed}}}))
	default:
		w.text("![", marks)
		w.children(n, marks)
		w.text("]("+said(n.Destination, n.Title)+")", marks)
	}
}

// unescape resolves backslash escapes and character references, each once (CommonMark, sections 2.4 and 2.5).
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 && strings.IndexByte(s, '&') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && util.IsPunct(s[i+1]):
			i++
			b.WriteByte(s[i])
		case c == '&':
			ref, n := reference(s[i:])
			b.WriteString(ref)
			i += n - 1
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// reference gives the character that s begins with a reference to, and how long that is; else "&".
func reference(s string) (string, int) {
	end := strings.IndexByte(s[:min(len(s), 40)], ';')
	if end < 2 {
		return "&", 1
	}
	name := s[1:end]
	if name[0] != '#' {
		for i := range len(name) {
			if !util.IsAlphaNumeric(name[i]) {
				return "&", 1
			}
		}
		if r := html.UnescapeString(s[:end+1]); !strings.HasPrefix(r, "&"+name[:1]) && !strings.HasSuffix(r, ";") {
			return r, end + 1
		}
		return "&", 1
	}
	digits, base := name[1:], 10
	if digits != "" && (digits[0] == 'x' || digits[0] == 'X') {
		digits, base = digits[1:], 16
	}
	v, err := strconv.ParseUint(digits, base, 32)
	if err != nil || len(digits) > 7 {
		return "&", 1
	}
	return string(util.ToValidRune(rune(v))), end + 1
}
