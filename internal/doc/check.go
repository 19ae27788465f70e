package doc

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/fault"
)

// path says where in the input a node stands; it is written out only for an error.
type path struct {
	up   *path
	name string // of a member, "" for an element
	i    int
}

func (p *path) String() string {
	if p == nil {
		return ""
	}
	s := p.up.String()
	switch {
	case p.name == "":
		return s + "[" + strconv.Itoa(p.i) + "]"
	case s == "":
		return p.name
	}
	return s + "." + p.name
}

func (p *path) bad(format string, args ...any) error { return fault.Bad(p.String(), format, args...) }

// checker brings nodes into the canonical form: types, content, attributes and marks by the schema, sorted and without
// defaults, text joined, ids set. Nodes that were checked before are taken as they are, but for their ids and place.
type checker struct {
	own   bool                 // fresh nodes may be changed in place, else they are copied
	newID func() string        // for blocks without an id; nil: they are refused
	known func(id string) bool // ids that a block may bring along; nil: any
	seen  map[string]struct{}  // ids that are taken
	taken func(id string) bool // further ones
}

// list checks the content of a node of spec s whose blocks stand on the given level (1 is the top).
func (c *checker) list(s *NodeSpec, nodes []*Node, level int, p *path) ([]*Node, error) {
	if !s.blocks {
		return c.inlines(s, nodes, p)
	}
	out := nodes
	if !c.own {
		out = make([]*Node, len(nodes))
	}
	at := &path{p, "", 0}
	for i, n := range nodes {
		at.i = i
		if n == nil {
			return nil, at.bad("is missing")
		}
		spec := n.Spec()
		if spec == nil {
			return nil, at.bad("has the unknown type %q; types are %s", n.Type, typeNames())
		}
		if !s.takes(spec) {
			return nil, at.bad("is a %s, which may not stand in a %s (it may hold: %s)", n.Type, s.Type, strings.Join(s.Content, ", "))
		}
		m, err := c.block(n, spec, level, at)
		if err != nil {
			return nil, err
		}
		out[i] = m
	}
	return out, nil
}

func typeNames() string {
	names := make([]string, len(Nodes))
	for i, s := range Nodes {
		names[i] = s.Type
	}
	return strings.Join(names, ", ")
}

func (c *checker) block(n *Node, spec *NodeSpec, level int, p *path) (*Node, error) {
	if level > MaxLevels {
		return nil, p.bad("stands on level %d; a document has at most %d levels", level, MaxLevels)
	}
	if n.spec != nil {
		return n, c.again(n, level, p)
	}
	m := n
	if !c.own {
		m = &Node{Type: n.Type, ID: n.ID, Attrs: n.Attrs, Content: n.Content}
	}
	if n.Text != "" || len(n.Marks) > 0 {
		return nil, p.bad("is a %s, which has no text or marks of its own: put text nodes into its content", n.Type)
	}
	var err error
	if m.ID, err = c.id(n.ID, p); err != nil {
		return nil, err
	}
	if m.Attrs, err = checkAttrs(spec.Attrs, n.Attrs, p); err != nil {
		return nil, err
	}
	if len(n.Content) > 0 {
		if m.Content, err = c.list(spec, n.Content, level+1, &path{p, "content", 0}); err != nil {
			return nil, err
		}
	}
	m.Type, m.Text, m.Marks, m.spec = spec.Type, "", nil, spec
	return m, m.seal(p)
}

// again checks ids and levels of a node that was checked as part of a document.
func (c *checker) again(n *Node, level int, p *path) (err error) {
	if level+n.levels-1 > MaxLevels {
		return p.bad("reaches down to level %d; a document has at most %d levels", level+n.levels-1, MaxLevels)
	}
	n.Walk(level, func(n *Node, _ int) bool {
		if err == nil {
			_, err = c.id(n.ID, p)
		}
		return err == nil
	})
	return err
}

// id takes the id that a block brought along, or makes one.
func (c *checker) id(id string, p *path) (string, error) {
	made := id == ""
	for try := 0; ; try++ {
		if made {
			if c.newID == nil {
				return "", p.bad("has no node_id")
			}
			id = c.newID()
		}
		if !validID(id) || id == RootID {
			return "", (&path{p, "node_id", 0}).bad("must be 1 to 64 of the characters A-Z a-z 0-9 _ -, and not %q: %s", RootID, excerpt(id))
		}
		_, dup := c.seen[id]
		if dup = dup || c.taken != nil && c.taken(id); !dup {
			break
		}
		if !made || try > 7 {
			return "", (&path{p, "node_id", 0}).bad("%q is given twice or is in the document already; leave node_id out of new nodes", id)
		}
	}
	if !made && c.known != nil && !c.known(id) {
		return "", (&path{p, "node_id", 0}).bad("%q is no node of this document; leave node_id out of new nodes", id)
	}
	c.seen[id] = struct{}{}
	return id, nil
}

func validID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for i := range len(id) {
		if c := id[i]; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

// seal works out what is kept beside a checked block and holds it to the limits that depend on its content.
func (n *Node) seal(p *path) error {
	n.blocks, n.levels, n.bytes, n.chars = 1, 1, attrBytes(n.Attrs), utf8.RuneCountInString(n.own())
	for _, c := range n.Content {
		n.bytes += c.bytes
		if !n.spec.blocks {
			n.chars += utf8.RuneCountInString(c.own())
			continue
		}
		n.blocks += c.blocks
		n.levels = max(n.levels, 1+c.levels)
		if n.chars += c.chars; n.chars > c.chars {
			n.chars++ // the line break before it
		}
	}
	if n.spec == docSpec {
		n.blocks, n.levels = n.blocks-1, n.levels-1
	}
	if len(n.Content) < n.spec.Least {
		return p.bad("is a %s without content; it needs %s: delete the whole node instead", n.Type, strings.Join(n.spec.Content, " or "))
	}
	switch {
	case n.blocks > MaxNodes:
		return fault.New(fault.TooLarge, "the document would have %d nodes; the limit is %d", n.blocks, MaxNodes)
	case n.bytes > MaxBytes:
		return fault.New(fault.TooLarge, "the document would have %d bytes of text; the limit is %d", n.bytes, MaxBytes)
	}
	if n.Type == "table" {
		return n.rectangular(p)
	}
	return nil
}

func (n *Node) rectangular(p *path) error {
	for i, row := range n.Content {
		if len(row.Content) != len(n.Content[0].Content) {
			return p.bad("is a table whose row %d has %d cells and whose first row has %d; give all rows as many", i+1, len(row.Content), len(n.Content[0].Content))
		}
		for _, cell := range row.Content {
			if (cell.Type == "table_header") != (i == 0) {
				return p.bad("is a table with a %s in row %d; the first row holds table_header cells, the others table_cell", cell.Type, i+1)
			}
		}
	}
	return nil
}

func attrBytes(attrs []Attr) (n int) {
	for _, a := range attrs {
		if s, ok := a.Value.(string); ok {
			n += len(s)
		}
	}
	return n
}

// inlines brings inline content into the canonical form: no empty text, neighbours with equal marks joined, line breaks as
// hard_break nodes (in code as "\n").
func (c *checker) inlines(s *NodeSpec, nodes []*Node, p *path) ([]*Node, error) {
	out := nodes[:0]
	if !c.own || slices.ContainsFunc(nodes, func(n *Node) bool { return n != nil && strings.ContainsAny(n.Text, "\r\n") }) {
		out = make([]*Node, 0, len(nodes)) // more may come out than went in
	}
	at := &path{p, "", 0}
	for i, n := range nodes {
		at.i = i
		if n == nil {
			return nil, at.bad("is missing")
		}
		spec := n.Spec()
		if spec == nil {
			return nil, at.bad("has the unknown type %q; types are %s", n.Type, typeNames())
		}
		if !s.takes(spec) {
			what := strings.Join(s.Content, ", ")
			if what == "" {
				what = "nothing"
			}
			return nil, at.bad("is a %s, which may not stand in a %s (it may hold: %s)", n.Type, s.Type, what)
		}
		if n.ID != "" {
			return nil, at.bad("is a %s, which has no node_id", n.Type)
		}
		if len(n.Content) > 0 || n.Type != "text" && n.Text != "" {
			return nil, at.bad("is a %s, which has no content and no text", n.Type)
		}
		if s.Type == "code_block" && len(n.Marks) > 0 {
			return nil, at.bad("has marks, which text in a code_block may not have")
		}
		if n.spec != nil && spec.Type != "text" {
			out = append(out, n)
			continue
		}
		var err error
		if out, err = c.inline(out, s, spec, n, at); err != nil {
			return nil, err
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	return joined(out), nil
}

func (c *checker) inline(out []*Node, s, spec *NodeSpec, n *Node, p *path) ([]*Node, error) {
	attrs, err := checkAttrs(spec.Attrs, n.Attrs, p)
	if err != nil {
		return nil, err
	}
	if spec.Type == "hard_break" {
		return append(out, lineBreak()), nil
	}
	marks, err := checkMarks(spec, n.Marks, p)
	if err != nil {
		return nil, err
	}
	if spec.Type != "text" {
		return append(out, &Node{Type: spec.Type, Attrs: attrs, Marks: marks, spec: spec, bytes: attrBytes(attrs)}), nil
	}
	text := n.Text
	if !plainText(text) {
		return nil, checkText(text, &path{p, "text", 0})
	}
	if c.own && text != "" && strings.IndexByte(text, '\r') < 0 && (s.Type == "code_block" || strings.IndexByte(text, '\n') < 0) {
		n.Type, n.Attrs, n.Marks, n.spec, n.bytes = spec.Type, nil, marks, spec, textBytes(text, marks)
		return append(out, n), nil
	}
	if strings.IndexByte(text, '\r') >= 0 {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	}
	for {
		line, rest, cut := text, "", false
		if s.Type != "code_block" {
			line, rest, cut = strings.Cut(text, "\n")
		}
		if line != "" {
			out = append(out, &Node{Type: "text", Text: line, Marks: marks, spec: spec, bytes: textBytes(line, marks)})
		}
		if !cut {
			return out, nil
		}
		out, text = append(out, lineBreak()), rest
	}
}

func lineBreak() *Node { return &Node{Type: "hard_break", spec: specOf("hard_break"), bytes: 1} }

// joined makes one node of neighbouring texts with equal marks.
func joined(nodes []*Node) []*Node {
	out := nodes[:0]
	for i := 0; i < len(nodes); {
		n, j := nodes[i], i+1
		for n.Type == "text" && j < len(nodes) && nodes[j].Type == "text" && equalMarks(n.Marks, nodes[j].Marks) {
			j++
		}
		if j > i+1 {
			var b strings.Builder
			for _, part := range nodes[i:j] {
				b.WriteString(part.Text)
			}
			n = &Node{Type: "text", Text: b.String(), Marks: n.Marks, spec: n.spec, bytes: textBytes(b.String(), n.Marks)}
		}
		out, i = append(out, n), j
	}
	return out
}

func textBytes(text string, marks []Mark) int {
	n := len(text)
	for _, m := range marks {
		n += attrBytes(m.Attrs)
	}
	return n
}

func plainText(text string) bool { return utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 }

func checkText(text string, p *path) error {
	if !utf8.ValidString(text) {
		return p.bad("holds bytes that are not UTF-8: %s", excerpt(strings.ToValidUTF8(text, "\uFFFD")))
	}
	if strings.IndexByte(text, 0) >= 0 {
		return p.bad("holds the character NUL (U+0000), which no text may; leave it out")
	}
	return nil
}

// checkMarks sorts marks into the schema's order.
func checkMarks(spec *NodeSpec, marks []Mark, p *path) ([]Mark, error) {
	if len(marks) == 0 {
		return nil, nil
	}
	out := make([]Mark, len(marks))
	p = &path{p, "marks", 0}
	at := &path{p, "", 0}
	for i, m := range marks {
		at.i = i
		rank, known := markRank[m.Type]
		if !known {
			return nil, at.bad("is the unknown mark %q; marks are %s", m.Type, markNames())
		}
		if !slices.Contains(spec.Marks, m.Type) {
			return nil, at.bad("is %s, which a %s may not carry", m.Type, spec.Type)
		}
		attrs, err := checkAttrs(Marks[rank].Attrs, m.Attrs, at)
		if err != nil {
			return nil, err
		}
		out[i] = Mark{Type: Marks[rank].Type, Attrs: attrs}
	}
	slices.SortFunc(out, func(a, b Mark) int { return cmp.Compare(markRank[a.Type], markRank[b.Type]) })
	for i := 1; i < len(out); i++ {
		if out[i].Type == out[i-1].Type {
			return nil, p.bad("names %s twice", out[i].Type)
		}
	}
	return out, nil
}

func markNames() string {
	names := make([]string, len(Marks))
	for i, s := range Marks {
		names[i] = s.Type
	}
	return strings.Join(names, ", ")
}

// checkAttrs sorts attributes by name, drops those that equal the default, and refuses what the schema doesn't have. p is the
// place of what has them.
func checkAttrs(specs []AttrSpec, attrs []Attr, p *path) ([]Attr, error) {
	if len(attrs) == 0 && !slices.ContainsFunc(specs, func(s AttrSpec) bool { return s.Required }) {
		return nil, nil
	}
	var out []Attr
	p = &path{p, "attrs", 0}
	for _, a := range attrs {
		spec := attrOf(specs, a.Name)
		at := &path{p, a.Name, 0}
		if spec == nil {
			return nil, at.bad("is no attribute here; %s", attrNames(specs))
		}
		v, err := checkValue(spec, a.Value, at)
		if err != nil {
			return nil, err
		}
		if v != nil {
			out = append(out, Attr{spec.Name, v})
		}
	}
	slices.SortFunc(out, func(a, b Attr) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(out); i++ {
		if out[i].Name == out[i-1].Name {
			return nil, (&path{p, out[i].Name, 0}).bad("is given twice")
		}
	}
	for i := range specs {
		if specs[i].Required && get(out, specs[i].Name) == nil {
			return nil, (&path{p, specs[i].Name, 0}).bad("is required: %s", specs[i].Doc)
		}
	}
	return out, nil
}

func attrNames(specs []AttrSpec) string {
	if len(specs) == 0 {
		return "there are none"
	}
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = s.Name
	}
	return "there are " + strings.Join(names, ", ")
}

// checkValue gives the canonical value, nil for the default.
func checkValue(spec *AttrSpec, v any, p *path) (any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case int:
		if spec.Kind != Number || v < spec.Min || v > spec.Max {
			return nil, p.bad("must be %s, not %d", want(spec), v)
		}
		if !spec.Required && v == spec.Default {
			return nil, nil
		}
		return v, nil
	case bool:
		if spec.Kind != Flag {
			return nil, p.bad("must be %s, not %t", want(spec), v)
		}
		if !v {
			return nil, nil
		}
		return v, nil
	case string:
		if err := checkText(v, p); err != nil {
			return nil, err
		}
		s, ok := checkString(spec, v)
		if !ok {
			return nil, p.bad("must be %s, not %s", want(spec), excerpt(v))
		}
		if s == "" {
			return nil, nil
		}
		return s, nil
	}
	return nil, p.bad("must be %s, not a %T", want(spec), v)
}

func checkString(spec *AttrSpec, v string) (string, bool) {
	switch spec.Kind {
	case Line:
		if strings.ContainsAny(v, "\r\n") {
			v = strings.NewReplacer("\r\n", " ", "\r", " ", "\n", " ").Replace(v)
		}
		return v, len(v) <= spec.Max || utf8.RuneCountInString(v) <= spec.Max
	case Choice:
		return v, v == "" || slices.Contains(spec.Values, v)
	case ID:
		return v, validID(v)
	case Link, Source, Embed:
		v = strings.TrimSpace(v)
		return v, len(v) <= spec.Max && GoodURL(spec.Kind, v)
	}
	return "", false
}

func want(s *AttrSpec) string {
	switch s.Kind {
	case Line:
		return fmt.Sprintf("a string of at most %d characters", s.Max)
	case Number:
		return fmt.Sprintf("a whole number from %d to %d", s.Min, s.Max)
	case Flag:
		return "true or false"
	case Choice:
		return "one of " + strings.Join(s.Values, ", ")
	case ID:
		return "an id of 1 to 64 of the characters A-Z a-z 0-9 _ -"
	case Link:
		return "a link by http, https, mailto, tel, cairn (a block is a mention, not a link) or a relative one"
	case Source:
		return "an http or https URL, a relative one, or cairn:file/ID"
	}
	return "an http or https URL or cairn:block/ID"
}

// GoodURL tells whether a URL may stand in an attribute of kind Link, Source or Embed.
func GoodURL(k Kind, url string) bool {
	if url == "" || len(url) > maxURL || url != strings.TrimSpace(url) || !utf8.ValidString(url) || strings.ContainsFunc(url, unicode.IsControl) {
		return false
	}
	scheme := scheme(url)
	what, id := CairnRef(url)
	switch k {
	case Link:
		return slices.Contains([]string{"", "http", "https", "mailto", "tel"}, scheme) || scheme == "cairn" && what != "block"
	case Source:
		return slices.Contains([]string{"", "http", "https"}, scheme) || what == "file" && id != ""
	}
	return scheme == "http" || scheme == "https" || what == "block" && id != ""
}

// scheme gives a URL's scheme (RFC 3986, section 3.1) in lower case, "" for a relative one.
func scheme(url string) string {
	for i := range len(url) {
		switch c := url[i]; {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		case i > 0 && (c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'):
		case i > 0 && c == ':':
			return strings.ToLower(url[:i])
		default:
			return ""
		}
	}
	return ""
}

// CairnRef takes cairn:block/ID or cairn:file/ID apart; id is "" where it isn't a valid one.
func CairnRef(url string) (what, id string) {
	if scheme(url) != "cairn" {
		return "", ""
	}
	what, id, _ = strings.Cut(url[len("cairn:"):], "/")
	if !validID(id) {
		id = ""
	}
	return what, id
}

// excerpt quotes a value for an error, cut at 60 characters.
func excerpt(s string) string {
	if r := []rune(s[:min(len(s), 400)]); len(r) > 60 {
		return strconv.Quote(string(r[:60])) + "..."
	}
	return strconv.Quote(s)
}
