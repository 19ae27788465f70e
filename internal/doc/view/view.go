// Package view shows a document page by page, within bounds: as flat rows to read (Read), or with what a patch needs (Edit); or as
// Markdown.
package view

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/doc"
	"cairn/internal/fault"
)

// Bounds of one page of a document. MaxLevels holds for documents altogether.
const (
	PageBytes   = 64 << 10 // of the answer as JSON, title and hashes included
	PageContent = 32 << 10 // of text, in edit view of content as JSON
	PageNodes   = 2048
	PageRefs    = 64
)

// Row is a block node in a flat view, in document order.
type Row struct {
	Depth       int             `json:"depth"` // 0 at the top
	Type        string          `json:"type"`
	NodeID      string          `json:"node_id,omitempty"`  // edit view
	AgentID     string          `json:"agent_id,omitempty"` // edit view: a short id for this version alone
	PatchTarget bool            `json:"patch_target,omitempty"`
	Attrs       map[string]any  `json:"attrs,omitempty"`
	Text        string          `json:"text,omitempty"`       // without marks; a line break is "\n", a mention its label
	Content     json.RawMessage `json:"content,omitempty"`    // edit view: the inline nodes, where they are more than Text says
	Refs        []doc.Ref       `json:"references,omitempty"` // read view
	TextFrom    int             `json:"text_from,omitempty"`  // bytes of text that a page before this one had
	Cut         bool            `json:"cut,omitempty"`        // the text goes on; Continuation says where
}

// Ask says which part of a document is read: Limit top-level nodes from Offset on, 0 = as many as there are; or, where From names a
// node, Limit nodes in document order from that one on, whatever they stand in, and of a text the part from byte Byte on.
type Ask struct {
	Offset, Limit int
	From          string
	Byte          int
}

// Page tells which top-level nodes a view has and where the next page begins.
type Page struct {
	Offset     int  `json:"offset"`
	Limit      int  `json:"limit"` // as asked, 0 = no limit
	HasMore    bool `json:"has_more"`
	NextOffset int  `json:"next_offset,omitempty"` // of the first top-level node that the view has nothing of
}

// Continuation is what to ask for next.
type Continuation struct {
	Offset int    `json:"offset,omitempty"`
	From   string `json:"from,omitempty"`
	Byte   int    `json:"byte,omitempty"`
}

// Truncation says that bounds made the view shorter than asked. Reasons are of bytes, content, nodes, references.
type Truncation struct {
	Reasons      []string     `json:"reasons"`
	Continuation Continuation `json:"continuation"`
}

// View is a part of a document.
type View struct {
	Rows       []Row       `json:"nodes"`
	Page       Page        `json:"page"`
	Truncation *Truncation `json:"truncation,omitempty"` // nil: all that was asked for

	Markdown      *string `json:"markdown,omitempty"`       // instead of nodes
	MarkdownBytes int     `json:"markdown_bytes,omitempty"` // of the whole document
}

// cursor is a block with the place it has.
type cursor struct {
	n        *doc.Node
	level    int
	top, row int // of the top-level node it stands in, and in the whole document
}

// collect lists blocks from the asked place on, at most one more than a page may have, and stops at the end of what was asked.
func collect(d *doc.Doc, ask Ask) (list []cursor, end bool, err error) {
	if ask.Offset < 0 || ask.Limit < 0 || ask.Byte < 0 {
		return nil, false, fault.Bad("offset", "must not be negative, nor limit and byte")
	}
	from := ""
	if ask.From != "" {
		n, err := d.Lookup(ask.From, "from")
		if err != nil {
			return nil, false, err
		}
		from = n.ID
	}
	started, row := from == "", 0
	end = true
	for top, n := range d.Content() {
		if from == "" && (top < ask.Offset || ask.Limit > 0 && top >= ask.Offset+ask.Limit) {
			row += n.Len()
			continue
		}
		n.Walk(1, func(n *doc.Node, level int) bool {
			started = started || n.ID == from
			if started && end {
				if len(list) > PageNodes || from != "" && ask.Limit > 0 && len(list) == ask.Limit {
					end = len(list) <= PageNodes
					started = false
					return false
				}
				list = append(list, cursor{n, level, top, row})
			}
			row++
			return true
		})
		if len(list) > 0 && !started {
			return list, end, nil
		}
	}
	return list, end, nil
}

// measure counts a page's use of its bounds.
type measure struct {
	bytes, content, nodes, refs int
}

func (m *measure) full() (reasons []string) {
	for _, b := range []struct {
		name       string
		used, most int
	}{{"bytes", m.bytes, PageBytes}, {"content", m.content, PageContent}, {"nodes", m.nodes, PageNodes}, {"references", m.refs, PageRefs}} {
		if b.used > b.most {
			reasons = append(reasons, b.name)
		}
	}
	return reasons
}

func (m measure) plus(r *Row, refs int) measure {
	b, _ := json.Marshal(r)
	return measure{m.bytes + len(b) + 1, m.content + max(len(r.Text), len(r.Content)), m.nodes + 1, m.refs + refs}
}

// envelope is what an answer needs beside its rows.
func envelope(d *doc.Doc) measure {
	title, _ := json.Marshal(d.Title())
	return measure{bytes: 1024 + len(title)}
}

func row(c cursor, edit bool) (r Row, refs []doc.Ref) {
	n := c.n
	r = Row{Depth: c.level - 1, Type: n.Type}
	for _, a := range n.Attrs {
		if r.Attrs == nil {
			r.Attrs = map[string]any{}
		}
		r.Attrs[a.Name] = a.Value
	}
	refs = n.Refs()
	if !n.HoldsBlocks() && len(n.Content) > 0 {
		r.Text = n.Plain()
	}
	if edit {
		r.NodeID, r.AgentID, r.PatchTarget = n.ID, doc.AgentID(c.row), true
		if len(n.Content) > 0 && r.Text != "" && (len(n.Content) > 1 || n.Content[0].Type != "text" || len(n.Content[0].Marks) > 0) {
			r.Text, r.Content = "", n.ContentJSON()
		}
	}
	return r, refs
}

// Edit gives what is asked for with all that a patch needs: ids, and text with marks. It is never cut: what goes beyond a page's
// bounds is refused with the reasons and, as "ask", what to ask for instead.
func Edit(d *doc.Doc, ask Ask) (*View, error) {
	list, _, err := collect(d, ask)
	if err != nil {
		return nil, err
	}
	v := &View{Rows: []Row{}}
	used := envelope(d)
	for i, c := range list {
		r, refs := row(c, true)
		if used = used.plus(&r, len(refs)); len(used.full()) > 0 {
			return nil, tooLarge(ask, list, i, used.full())
		}
		v.Rows = append(v.Rows, r)
	}
	fill(d, v, ask, list, len(list))
	return v, nil
}

// tooLarge says what fits instead of the page whose row i went beyond the bounds.
func tooLarge(ask Ask, list []cursor, i int, reasons []string) error {
	instead := map[string]any{"view": "edit", "offset": ask.Offset, "limit": list[i].top - ask.Offset}
	switch {
	case i == 0:
		instead = map[string]any{"view": "read", "from": list[0].n.ID}
	case ask.From != "" || list[i].top == ask.Offset:
		instead = map[string]any{"view": "edit", "from": list[0].n.ID, "limit": i}
	}
	hint, _ := json.Marshal(instead)
	e := fault.New(fault.TooLarge, "document_page_too_large: this part of the document is beyond the bounds of a page (%s); ask for %s", strings.Join(reasons, ", "), hint)
	if i == 0 {
		e.Message += "; the node can be changed without seeing all of it, by replace_text"
	}
	return e.With("reasons", reasons).With("ask", instead)
}

// fill says what was shown, rows of list up to n.
func fill(d *doc.Doc, v *View, ask Ask, list []cursor, n int) {
	v.Page = Page{Offset: ask.Offset, Limit: ask.Limit}
	next := ask.Offset
	if n > 0 {
		v.Page.Offset = list[0].top
		last := list[n-1]
		next = last.top + 1
		v.Page.HasMore = last.row+1 < d.Len()
	}
	if next < len(d.Content()) && n > 0 {
		v.Page.NextOffset = next
	}
}

// Read gives what is asked for as far as the bounds allow, and says what it left out. It ends with a whole top-level node
// where it has at least one.
func Read(d *doc.Doc, ask Ask) (*View, error) {
	list, end, err := collect(d, ask)
	if err != nil {
		return nil, err
	}
	v := &View{Rows: []Row{}}
	used := envelope(d)
	n := 0
	for ; n < len(list); n++ {
		r, refs := row(list[n], false)
		from := 0
		if n == 0 {
			from = ask.Byte
		}
		clip(&r, refs, from, len(r.Text))
		now := used.plus(&r, len(r.Refs))
		if reasons := now.full(); len(reasons) > 0 {
			stop(v, list, n, from, reasons)
			if n == 0 {
				v.Rows = []Row{shorten(list[0], used, from, v.Truncation)}
				n = 1
			}
			break
		}
		used, v.Rows = now, append(v.Rows, r)
	}
	if v.Truncation == nil && !end {
		stop(v, list, n, 0, []string{"nodes"})
	}
	n = len(v.Rows)
	fill(d, v, ask, list, n)
	if v.Truncation != nil {
		v.Page.HasMore = true
	}
	return v, nil
}

// stop ends a view before row n, and at the last top-level node that is whole, if there is one.
func stop(v *View, list []cursor, n, at int, reasons []string) {
	v.Truncation = &Truncation{Reasons: reasons}
	whole := n
	for whole > 0 && list[whole].level > 1 {
		whole--
	}
	if whole > 0 {
		v.Rows = v.Rows[:whole]
		v.Truncation.Continuation = Continuation{Offset: list[whole].top}
		return
	}
	v.Truncation.Continuation = Continuation{From: list[n].n.ID, Byte: at}
}

// clip cuts a row to the text from byte from to byte to, with what is referred to there.
func clip(r *Row, refs []doc.Ref, from, to int) {
	size := len(r.Text)
	from, to = min(from, size), min(to, size)
	for from > 0 && from < size && !utf8.RuneStart(r.Text[from]) {
		from--
	}
	r.Refs = nil
	for _, ref := range refs {
		if ref.Pos >= from && (ref.Pos < to || to == size) {
			ref.NodeID = ""
			r.Refs = append(r.Refs, ref)
		}
	}
	r.Text, r.TextFrom, r.Cut = r.Text[from:to], from, to < size
}

// shorten makes a row that is too large alone fit, by halving what it shows of its text.
func shorten(c cursor, used measure, from int, t *Truncation) Row {
	whole, refs := row(c, false)
	to := min(len(whole.Text), from+PageContent)
	if i := slices.IndexFunc(refs, func(r doc.Ref) bool { return r.Pos >= from }); i >= 0 && i+PageRefs < len(refs) {
		to = min(to, max(refs[i+PageRefs].Pos, from+1))
	}
	for {
		to = max(edge(whole.Text, from, to), min(from+1, len(whole.Text)))
		r := whole
		clip(&r, refs, from, to)
		if now := used.plus(&r, len(r.Refs)); len(now.full()) == 0 || to-from < 64 {
			t.Continuation = Continuation{From: c.n.ID, Byte: to}
			return r
		}
		to = from + (to-from)/2
	}
}

// edge moves a cut back to where a word ends, or at least to where a character as people see it does.
func edge(s string, from, to int) int {
	if to >= len(s) {
		return len(s)
	}
	if i := strings.LastIndexAny(s[max(from, to-200):to], " \n"); i >= 0 {
		return max(from, to-200) + i + 1
	}
	for to > from {
		for to > from && !utf8.RuneStart(s[to]) {
			to--
		}
		next, _ := utf8.DecodeRuneInString(s[to:])
		last, _ := utf8.DecodeLastRuneInString(s[from:to])
		if !joins(next) && last != 0x200D && !(flag(next) && flag(last)) {
			break
		}
		to--
	}
	return to
}

func joins(r rune) bool {
	return r == 0x200D || unicode.Is(unicode.M, r) || r >= 0x1F3FB && r <= 0x1F3FF || r >= 0xE0020 && r <= 0xE007F
}

func flag(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }
