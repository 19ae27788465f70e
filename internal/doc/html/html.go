// Package html shows nodes of a document as HTML for a page of this server. Every text and attribute is escaped here, and a link
// leads nowhere but to http, https, mailto, a relative address, or what cairn: names; all else stays text. Nothing is loaded from
// another host: a picture from elsewhere is a link.
package html

import (
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/doc"
)

// Author is who wrote a block last.
type Author struct {
	Name  string
	Agent bool
}

// Options say what is shown beside the text.
type Options struct {
	// Authors gives who wrote a block last by its node_id; nil: nobody is named.
	Authors map[string]Author
}

// Nodes gives the HTML of nodes as they follow each other. Headings begin at h2, below the page's own, and none is more than one
// level below the one before it.
func Nodes(nodes []*doc.Node, o Options) template.HTML {
	w := &writer{Options: o, last: 1}
	w.Grow(4096)
	w.blocks(nodes)
	return template.HTML(w.String()) //nolint:gosec // written by this package alone, which escapes
}

type writer struct {
	strings.Builder
	Options

	last int  // level of the heading before
	bare bool // the text that comes stands in a block that takes its direction from it
}

// within begins a block that holds others. Its direction is that of the text it begins with, which therefore has none of its own
// (HTML, section 3.2.6.4).
func (w *writer) within(tag string, n *doc.Node, more ...string) {
	w.open(tag, n, append(more, auto)...)
	first := ""
	if len(n.Content) > 0 {
		first = n.Content[0].Type
	}
	w.bare = w.Authors == nil && (first == "paragraph" || first == "heading")
}

// direction is that of a text of its own.
func (w *writer) direction() string {
	if w.bare {
		w.bare = false
		return ""
	}
	return auto
}

func (w *writer) put(parts ...string) {
	for _, p := range parts {
		w.WriteString(p)
	}
}

// text writes what isn't markup.
func (w *writer) text(s string) { template.HTMLEscape(w, []byte(s)) }

// open begins an element that stands for a node.
func (w *writer) open(tag string, n *doc.Node, more ...string) {
	w.put("<", tag)
	if n.ID != "" {
		w.put(` id="n-`)
		w.text(n.ID)
		w.put(`"`)
	}
	w.put(more...)
	w.put(">")
}

func (w *writer) blocks(nodes []*doc.Node) {
	for _, n := range nodes {
		w.block(n)
	}
}

const auto = ` dir="auto"`

var callouts = map[string]string{"note": "Note", "tip": "Tip", "important": "Important", "warning": "Warning", "caution": "Caution"}

func (w *writer) block(n *doc.Node) {
	switch n.Type {
	case "bullet_list", "ordered_list":
		w.list(n)
	case "quote":
		w.within("blockquote", n)
		w.blocks(n.Content)
		w.put("</blockquote>\n")
	case "callout":
		kind := callouts[n.Str("kind")]
		w.within("div", n, ` class="callout `, strings.ToLower(kind), `" role="note"`)
		w.put(`<p class="callout-title"`, auto, `><strong dir="ltr">`, kind, "</strong>")
		if t := n.Str("title"); t != "" {
			w.put(" ")
			w.text(t)
		}
		w.put("</p>\n")
		w.blocks(n.Content)
		w.put("</div>\n")
	default:
		w.signed(n)
	}
}

// signed writes a block that holds no others, with who wrote it where that is asked for.
func (w *writer) signed(n *doc.Node) {
	by := w.by(n)
	if len(by) > 0 {
		w.put(`<div class="by">`)
	}
	w.leaf(n)
	if len(by) == 0 {
		return
	}
	w.put(`<p class="by-whom">`)
	for i, a := range by {
		if i > 0 {
			w.put(" ")
		}
		class, sign := "chip", ""
		if a.Agent {
			class, sign = "chip agent", "agent · "
		}
		w.put(`<span class="`, class, `">`, sign, "<bdi>")
		w.text(a.Name)
		w.put("</bdi></span>")
	}
	w.put("</p></div>\n")
}

// by lists who wrote a block and what is in it, each once.
func (w *writer) by(n *doc.Node) (list []Author) {
	if w.Authors == nil {
		return nil
	}
	n.Walk(1, func(n *doc.Node, _ int) bool {
		a, known := w.Authors[n.ID]
		if known && !slices.Contains(list, a) && (n.Type != "table" && n.Type != "table_row" || len(n.Content) == 0) {
			list = append(list, a)
		}
		return true
	})
	return list
}

func (w *writer) leaf(n *doc.Node) {
	switch n.Type {
	case "heading":
		w.last = min(max(n.Int("level"), 1)+1, w.last+1, 6)
		tag := "h" + strconv.Itoa(w.last)
		w.open(tag, n, w.direction())
		w.inlines(n.Content)
		w.put("</", tag, ">\n")
	case "code_block":
		w.open("pre", n, ` tabindex="0" role="region" aria-label="Code"`, auto)
		w.put("<code>")
		w.text(n.Plain())
		w.put("</code></pre>\n")
	case "table":
		w.table(n)
	case "divider":
		w.open("hr", n)
		w.put("\n")
	case "image":
		w.open("figure", n, auto)
		w.image(n)
		if t := n.Str("title"); t != "" {
			w.put("<figcaption", auto, ">")
			w.text(t)
			w.put("</figcaption>")
		}
		w.put("</figure>\n")
	case "file":
		w.open("p", n, ` class="file"`, auto)
		w.link(Address("cairn:file/"+n.Str("file")), "", func() { w.label(n.Str("name"), "File without a name") })
		w.put("</p>\n")
	case "embed":
		w.open("p", n, ` class="embed"`, auto)
		to := Address(n.Str("src"))
		w.link(to, "", func() { w.label(n.Str("title"), hostOr(to, "Block without a title")) })
		w.put("</p>\n")
	default:
		w.open("p", n, w.direction())
		w.inlines(n.Content)
		w.put("</p>\n")
	}
}

func (w *writer) list(n *doc.Node) {
	tag := "ul"
	if n.Type == "ordered_list" {
		tag = "ol"
	}
	start := n.Int("start")
	if tag == "ol" && start != 1 {
		w.open(tag, n, ` start="`, strconv.Itoa(start), `"`)
	} else {
		w.open(tag, n)
	}
	w.put("\n")
	for _, item := range n.Content {
		switch {
		case item.Type != "task_item":
			w.within("li", item)
		case item.Bool("checked"):
			w.within("li", item, ` class="task done"`)
			w.put(`<span class="box" aria-hidden="true"></span><span class="sr" dir="ltr">Done: </span>`)
		default:
			w.within("li", item, ` class="task"`)
			w.put(`<span class="box" aria-hidden="true"></span><span class="sr" dir="ltr">To do: </span>`)
		}
		w.blocks(item.Content)
		w.put("</li>\n")
	}
	w.put("</", tag, ">\n")
}

func (w *writer) table(n *doc.Node) {
	w.open("div", n, ` class="scroll" tabindex="0" role="region" aria-label="Table"`)
	w.put("<table>\n")
	var align []string
	for i, row := range n.Content {
		if i == 0 {
			w.put("<thead>")
		}
		w.open("tr", row)
		for k, cell := range row.Content {
			tag, scope := "td", ""
			if cell.Type == "table_header" {
				tag, scope = "th", ` scope="col"`
			}
			if i == 0 {
				align = append(align, "")
				if a := cell.Str("align"); slices.Contains([]string{"left", "center", "right"}, a) {
					align[k] = ` class="to-` + a + `"`
				}
			}
			class := ""
			if k < len(align) {
				class = align[k]
			}
			w.open(tag, cell, scope, class, auto)
			w.inlines(cell.Content)
			w.put("</", tag, ">")
		}
		w.put("</tr>\n")
		if i == 0 {
			w.put("</thead><tbody>\n")
		}
	}
	w.put("</tbody></table></div>\n")
}

var elements = map[string]string{"bold": "strong", "italic": "em", "strike": "s", "highlight": "mark", "code": "code"}

func (w *writer) inlines(nodes []*doc.Node) {
	for i := 0; i < len(nodes); {
		href, title := linked(nodes[i])
		end := i + 1
		for href != "" && end < len(nodes) {
			h, t := linked(nodes[end])
			if h != href || t != title {
				break
			}
			end++
		}
		part := nodes[i:end]
		inner := func() {
			for _, n := range part {
				w.inline(n, href != "")
			}
		}
		if href == "" {
			inner()
		} else {
			w.link(Address(href), title, inner)
		}
		i = end
	}
}

func linked(n *doc.Node) (href, title string) {
	for _, m := range n.Marks {
		if m.Type == "link" {
			return m.Str("href"), m.Str("title")
		}
	}
	return "", ""
}

func (w *writer) inline(n *doc.Node, inLink bool) {
	for _, m := range n.Marks {
		if e := elements[m.Type]; e != "" {
			w.put("<", e, ">")
		}
	}
	switch n.Type {
	case "text":
		w.text(n.Text)
	case "hard_break":
		w.put("<br>")
	case "mention":
		to := "/blocks/" + url.PathEscape(n.Str("block"))
		if inLink {
			to = ""
		}
		w.link(to, "", func() { w.label(n.Str("label"), "Block without a title") })
	case "inline_image":
		if inLink {
			w.label(n.Str("alt"), "Image")
		} else {
			w.image(n)
		}
	}
	for i := len(n.Marks) - 1; i >= 0; i-- {
		if e := elements[n.Marks[i].Type]; e != "" {
			w.put("</", e, ">")
		}
	}
}

// label writes a name, or what stands for none.
func (w *writer) label(name, none string) {
	w.put("<bdi>")
	if strings.TrimSpace(name) == "" {
		name = none
	}
	w.text(name)
	w.put("</bdi>")
}

// link writes a link around what inner writes; "" as the address writes that alone.
func (w *writer) link(to, title string, inner func()) {
	if to == "" {
		inner()
		return
	}
	w.put(`<a href="`)
	w.text(to)
	w.put(`"`)
	if title != "" {
		w.put(` title="`)
		w.text(title)
		w.put(`"`)
	}
	if !strings.HasPrefix(to, "/blocks/") && !strings.HasPrefix(to, "/files/") {
		w.put(` rel="noreferrer noopener nofollow"`)
	}
	w.put(">")
	inner()
	w.put("</a>")
}

// image shows a file of the heap by its thumbnail, and names a picture from elsewhere with a link to it.
func (w *writer) image(n *doc.Node) {
	src := n.Str("src")
	to := Address(src)
	what, id := doc.CairnRef(src)
	if what != "file" || id == "" {
		w.put(`<span class="picture">`)
		w.link(to, n.Str("title"), func() { w.label(n.Str("alt"), hostOr(to, "Image")) })
		w.put("</span>")
		return
	}
	alt := n.Str("alt")
	if strings.TrimSpace(alt) == "" {
		alt = "Image without a description"
	}
	w.link(to, "", func() {
		w.put(`<img src="`)
		w.text(to)
		w.put(`/thumbnail/l" alt="`)
		w.text(alt)
		w.put(`" loading="lazy">`)
	})
}

func hostOr(address, none string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return none
}

// Address gives where a link of a document leads on this server's pages, "" where it may lead nowhere.
func Address(href string) string {
	if what, id := doc.CairnRef(href); id != "" {
		if to := map[string]string{"block": "/blocks/", "file": "/files/"}[what]; to != "" {
			return to + url.PathEscape(id)
		}
		return ""
	}
	if !doc.GoodURL(doc.Link, href) {
		return ""
	}
	scheme, _, found := strings.Cut(href, ":")
	if i := strings.IndexAny(href, "/?#"); !found || i >= 0 && i < len(scheme) {
		return href
	}
	if s := strings.ToLower(scheme); s == "http" || s == "https" || s == "mailto" {
		return href
	}
	return ""
}
