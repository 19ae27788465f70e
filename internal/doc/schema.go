package doc

import "slices"

// Groups of nodes. A node without one stands only where another's Content names it.
const (
	Block  = "block"
	Inline = "inline"
)

// Kind says what an attribute's value is.
type Kind string

// Kinds of attributes; Kinds says what each holds.
const (
	Line   Kind = "text"
	Number Kind = "number"
	Flag   Kind = "bool"
	Choice Kind = "choice"
	ID     Kind = "id"
	Link   Kind = "link"
	Source Kind = "source"
	Embed  Kind = "embed"
)

// Kinds says what an attribute of each kind may be.
var Kinds = map[Kind]string{
	Line:   "a string without line breaks (those become spaces), at most max characters",
	Number: "a whole number from min to max; left out where it is the default",
	Flag:   "true or false; left out where false",
	Choice: "one of values; left out where none is chosen",
	ID:     "of a block or a file: 1 to 64 of A-Z a-z 0-9 _ -",
	Link:   "http, https, mailto, tel, cairn (but no block, which is a mention) or relative",
	Source: "http, https, relative or cairn:file/ID",
	Embed:  "http, https or cairn:block/ID",
}

// AttrSpec is one attribute of a node or a mark.
type AttrSpec struct {
	Name     string   `json:"name"`
	Kind     Kind     `json:"kind"`
	Required bool     `json:"required,omitempty"`
	Min      int      `json:"min,omitempty"`
	Max      int      `json:"max,omitempty"`
	Default  int      `json:"default,omitempty"`
	Values   []string `json:"values,omitempty"`
	Doc      string   `json:"doc"`
}

// NodeSpec is a row of the schema.
type NodeSpec struct {
	Type     string     `json:"type"`
	Group    string     `json:"group,omitempty"`   // Block, Inline or ""
	Content  []string   `json:"content,omitempty"` // types or groups that may stand in it; nil: nothing
	Least    int        `json:"least,omitempty"`   // of them
	Attrs    []AttrSpec `json:"attrs,omitempty"`   // by name
	Marks    []string   `json:"marks,omitempty"`   // an inline node: marks it may carry
	Doc      string     `json:"doc"`
	Markdown string     `json:"markdown"` // how Markdown says it

	blocks bool // its content is blocks
}

// MarkSpec is a row of the marks, whose order is the canonical one.
type MarkSpec struct {
	Type     string     `json:"type"`
	Attrs    []AttrSpec `json:"attrs,omitempty"`
	Doc      string     `json:"doc"`
	Markdown string     `json:"markdown"`
}

const (
	maxURL  = 8192
	maxLine = 1000
)

// Marks lists the marks in canonical order.
var Marks = []MarkSpec{
	{Type: "link", Doc: "a link", Markdown: `[text](href "title")`, Attrs: []AttrSpec{
		{Name: "href", Kind: Link, Required: true, Max: maxURL, Doc: "where to"},
		{Name: "title", Kind: Line, Max: maxLine, Doc: "shown on hovering"}}},
	{Type: "bold", Doc: "strong", Markdown: "**text**"},
	{Type: "italic", Doc: "emphasis", Markdown: "_text_"},
	{Type: "strike", Doc: "struck through", Markdown: "~~text~~"},
	{Type: "highlight", Doc: "marked with a colour", Markdown: "==text=="},
	{Type: "code", Doc: "code within text", Markdown: "`text`"},
}

var (
	decorations = []string{"bold", "italic", "strike", "highlight"}
	imageAttrs  = []AttrSpec{
		{Name: "alt", Kind: Line, Max: maxLine, Doc: "what it shows, in words"},
		{Name: "src", Kind: Source, Required: true, Max: maxURL, Doc: "where it is: cairn:file/ID for a file of the heap"},
		{Name: "title", Kind: Line, Max: maxLine, Doc: "caption"}}
)

// Nodes lists the node types. The document itself ("doc") holds blocks, none or more, and isn't a node that can be named.
var Nodes = []NodeSpec{
	{Type: "paragraph", Group: Block, Content: []string{Inline}, Doc: "text", Markdown: "text; an empty one beside other blocks is <br>"},
	{Type: "heading", Group: Block, Content: []string{Inline}, Doc: "a heading", Markdown: "# to ######", Attrs: []AttrSpec{
		{Name: "level", Kind: Number, Required: true, Min: 1, Max: 6, Doc: "1 is the highest"}}},
	{Type: "bullet_list", Group: Block, Content: []string{"list_item", "task_item"}, Least: 1, Doc: "a list with dots", Markdown: "- item"},
	{Type: "ordered_list", Group: Block, Content: []string{"list_item", "task_item"}, Least: 1, Doc: "a numbered list", Markdown: "1. item", Attrs: []AttrSpec{
		{Name: "start", Kind: Number, Min: 0, Max: 999999999, Default: 1, Doc: "number of the first item"}}},
	{Type: "list_item", Content: []string{Block}, Least: 1, Doc: "an item of a list", Markdown: "- item"},
	{Type: "task_item", Content: []string{Block}, Least: 1, Doc: "an item with a box to tick", Markdown: "- [ ] open, - [x] done", Attrs: []AttrSpec{
		{Name: "checked", Kind: Flag, Doc: "done"}}},
	{Type: "quote", Group: Block, Content: []string{Block}, Least: 1, Doc: "a quotation", Markdown: "> text"},
	{Type: "code_block", Group: Block, Content: []string{"text"}, Doc: "code; its text has no marks, may have line breaks and is kept exactly", Markdown: "``` fences", Attrs: []AttrSpec{
		{Name: "language", Kind: Line, Max: 200, Doc: "the line beside the opening fence"}}},
	{Type: "table", Group: Block, Content: []string{"table_row"}, Least: 1, Doc: "a table; its first row holds table_header cells, the others table_cell, all rows as many", Markdown: "| a | b |"},
	{Type: "table_row", Content: []string{"table_header", "table_cell"}, Least: 1, Doc: "a row", Markdown: "| a | b |"},
	{Type: "table_header", Content: []string{Inline}, Doc: "a cell of the first row, for its column", Markdown: "| a |", Attrs: []AttrSpec{
		{Name: "align", Kind: Choice, Values: []string{"left", "center", "right"}, Doc: "of the column's text"}}},
	{Type: "table_cell", Content: []string{Inline}, Doc: "a cell", Markdown: "| a |"},
	{Type: "divider", Group: Block, Doc: "a line across", Markdown: "---"},
	{Type: "callout", Group: Block, Content: []string{Block}, Least: 1, Doc: "a box that stands out", Markdown: "> [!note] title, then lines that begin with >", Attrs: []AttrSpec{
		{Name: "kind", Kind: Choice, Required: true, Values: []string{"note", "tip", "important", "warning", "caution"}, Doc: "what it is for"},
		{Name: "title", Kind: Line, Max: maxLine, Doc: "its first line, without marks"}}},
	{Type: "image", Group: Block, Attrs: imageAttrs, Doc: "a picture on its own", Markdown: `![alt](src "title") as a paragraph`},
	{Type: "file", Group: Block, Doc: "a file of the heap", Markdown: "[name](cairn:file/ID) as a paragraph", Attrs: []AttrSpec{
		{Name: "file", Kind: ID, Required: true, Max: 64, Doc: "the file's id"},
		{Name: "name", Kind: Line, Max: maxLine, Doc: "name shown"}}},
	{Type: "embed", Group: Block, Doc: "another block (a child of this one) or page shown in place", Markdown: "![title](cairn:block/ID) or ![title](cairn:embed/URL) as a paragraph", Attrs: []AttrSpec{
		{Name: "src", Kind: Embed, Required: true, Max: maxURL, Doc: "cairn:block/ID, or a URL"},
		{Name: "title", Kind: Line, Max: maxLine, Doc: "shown above"}}},
	{Type: "text", Group: Inline, Marks: append([]string{"link"}, append(slices.Clone(decorations), "code")...), Doc: "text; a line break in it becomes a hard_break", Markdown: "text"},
	{Type: "hard_break", Group: Inline, Doc: "a line break within text; its marks are dropped", Markdown: "\\ at the line's end; <br> in headings, table cells and at the end"},
	{Type: "mention", Group: Inline, Marks: decorations, Doc: "a link to a block that the block knows of", Markdown: "[label](cairn:block/ID)", Attrs: []AttrSpec{
		{Name: "block", Kind: ID, Required: true, Max: 64, Doc: "the block's id"},
		{Name: "label", Kind: Line, Max: maxLine, Doc: "text shown"}}},
	{Type: "inline_image", Group: Inline, Marks: append([]string{"link"}, decorations...), Attrs: imageAttrs, Doc: "a picture within text", Markdown: `![alt](src "title")`},
}

var (
	docSpec  = &NodeSpec{Type: "doc", Content: []string{Block}, blocks: true}
	specs    = index()
	markRank = map[string]int{}
)

// index finds specs by type. What a row says of blocks is worked out here, once.
func index() map[string]*NodeSpec {
	m := map[string]*NodeSpec{}
	for i := range Nodes {
		s := &Nodes[i]
		m[s.Type] = s
	}
	for _, s := range m {
		for _, c := range s.Content {
			s.blocks = s.blocks || c != Inline && (m[c] == nil || m[c].Group != Inline)
		}
	}
	for i, k := range Marks {
		markRank[k.Type] = i
	}
	return m
}

func specOf(t string) *NodeSpec { return specs[t] }

func attrOf(list []AttrSpec, name string) *AttrSpec {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// takes tells whether a node of type c may stand in s.
func (s *NodeSpec) takes(c *NodeSpec) bool {
	for _, name := range s.Content {
		if name == c.Type || c.Group != "" && name == c.Group {
			return true
		}
	}
	return false
}

// HoldsBlocks tells nodes whose content is blocks.
func (s *NodeSpec) HoldsBlocks() bool { return s.blocks }
