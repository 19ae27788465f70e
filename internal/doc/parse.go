package doc

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cairn/internal/fault"
	"cairn/internal/rawjson"
)

// Parse reads a stored document, {"content":[...],"title":"..."}, in which each block has its id.
func Parse(raw []byte) (*Doc, error) {
	r, err := newReader(raw)
	if err != nil {
		return nil, err
	}
	var title string
	var nodes []*Node
	err = r.object(nil, []string{"content", "title"}, func(key string, p *path) (err error) {
		if key == "title" {
			title, err = r.text(p)
		} else {
			nodes, err = r.nodes(p, 1)
		}
		return err
	})
	if err == nil {
		err = r.end()
	}
	if err != nil {
		return nil, err
	}
	return build(title, nodes, &checker{own: true, seen: make(map[string]struct{}, len(raw)/128)})
}

// ParseNodes reads an array of nodes that a caller wrote, not yet checked by the schema: New, Doc.Replace or a patch does that.
func ParseNodes(raw []byte) ([]*Node, error) {
	r, err := newReader(raw)
	if err != nil {
		return nil, err
	}
	nodes, err := r.nodes(&path{nil, "content", 0}, 1)
	if err == nil {
		err = r.end()
	}
	return nodes, err
}

// reader reads JSON in one pass. It is strict: no unknown member, none given twice, no half of a surrogate pair.
type reader struct {
	b     []byte
	s     string // the same; what is read are parts of it
	i     int
	nest  []*Node // of the arrays of nodes that are being read
	paths []path  // likewise; an error writes its place out at once, so that they can be used again
}

func newReader(raw []byte) (*reader, error) {
	if !utf8.Valid(raw) {
		return nil, fault.New(fault.Invalid, "the text is not valid UTF-8")
	}
	return &reader{b: raw, s: string(raw), paths: make([]path, 0, 8*MaxLevels)}, nil
}

// under gives a place below p, until leave is called.
func (r *reader) under(p *path) *path {
	if len(r.paths) == cap(r.paths) {
		return &path{p, "", 0}
	}
	r.paths = append(r.paths, path{p, "", 0})
	return &r.paths[len(r.paths)-1]
}

func (r *reader) leave(depth int) { r.paths = r.paths[:depth] }

func (r *reader) peek() byte {
	for r.i < len(r.b) {
		switch c := r.b[r.i]; c {
		case ' ', '\n', '\t', '\r':
			r.i++
		default:
			return c
		}
	}
	return 0
}

func (r *reader) broken(p *path) error {
	what := "at its end"
	if r.i < len(r.b) {
		what = "at " + excerpt(cut(string(r.b[r.i:min(len(r.b), r.i+80)]), 20))
	}
	return fault.Bad(p.String(), "is not valid JSON (byte %d, %s)", r.i, what)
}

func (r *reader) end() error {
	if r.peek(); r.i < len(r.b) {
		return r.broken(&path{nil, "the text", 0})
	}
	return nil
}

// wrong says that a value is of the wrong type, and which it is.
func (r *reader) wrong(p *path, want string) error {
	from := r.i
	switch r.peek() {
	case '{':
		return p.bad("must be %s, not an object", want)
	case '[':
		return p.bad("must be %s, not an array", want)
	case '"':
		s, err := r.text(p)
		if err != nil {
			return err
		}
		return p.bad("must be %s, not the string %s", want, excerpt(s))
	}
	for r.i < len(r.b) && !strings.ContainsRune(" \n\t\r,]}", rune(r.b[r.i])) {
		r.i++
	}
	if v := r.b[from:r.i]; json.Valid(v) {
		return p.bad("must be %s, not %s", want, cut(strings.TrimSpace(string(v)), 40))
	}
	r.i = from
	return r.broken(p)
}

// array calls f with each element's place.
func (r *reader) array(p *path, want string, f func(p *path) error) error {
	if r.peek() != '[' {
		return r.wrong(p, want)
	}
	r.i++
	if r.peek() == ']' {
		r.i++
		return nil
	}
	defer r.leave(len(r.paths))
	at := r.under(p)
	for ; ; at.i++ {
		if err := f(at); err != nil {
			return err
		}
		switch r.peek() {
		case ',':
			r.i++
		case ']':
			r.i++
			return nil
		default:
			return r.broken(p)
		}
	}
}

// object calls f with each member's name, which must be one of names (nil: any), and place.
func (r *reader) object(p *path, names []string, f func(key string, p *path) error) error {
	if r.peek() != '{' {
		return r.wrong(p, "an object")
	}
	r.i++
	if r.peek() == '}' {
		r.i++
		return nil
	}
	var seen [16]string
	defer r.leave(len(r.paths))
	at := r.under(p)
	for n := 0; ; n++ {
		if r.peek() != '"' {
			return r.broken(p)
		}
		key, err := r.name(p)
		if err != nil {
			return err
		}
		at.name = key
		if names != nil && !slices.Contains(names, key) {
			return at.bad("is not known; members are %s", strings.Join(names, ", "))
		}
		if n == len(seen) {
			return at.bad("is one member too many; there are at most %d", len(seen))
		}
		if slices.Contains(seen[:n], key) {
			return at.bad("is given twice")
		}
		seen[n] = key
		if r.peek() != ':' {
			return r.broken(at)
		}
		r.i++
		if err := f(key, at); err != nil {
			return err
		}
		switch r.peek() {
		case ',':
			r.i++
		case '}':
			r.i++
			return nil
		default:
			return r.broken(p)
		}
	}
}

var nodeMembers = []string{"type", "node_id", "attrs", "content", "marks", "text"}

// common names are not made anew for each node.
var common = func() map[string]string {
	m := map[string]string{}
	for _, s := range nodeMembers {
		m[s] = s
	}
	for _, n := range Nodes {
		m[n.Type] = n.Type
		for _, a := range n.Attrs {
			m[a.Name] = a.Name
		}
	}
	for _, k := range Marks {
		m[k.Type] = k.Type
		for _, a := range k.Attrs {
			m[a.Name] = a.Name
		}
	}
	return m
}()

// name reads a string that is probably a common one.
func (r *reader) name(p *path) (string, error) {
	if r.peek() == '"' {
		for j := r.i + 1; j < len(r.b) && j < r.i+24; j++ {
			if r.b[j] == '"' {
				if s, ok := common[string(r.b[r.i+1:j])]; ok {
					r.i = j + 1
					return s, nil
				}
				break
			}
		}
	}
	return r.text(p)
}

func (r *reader) text(p *path) (string, error) {
	if r.peek() != '"' {
		return "", r.wrong(p, "a string")
	}
	plain := true
	for j := r.i + 1; j < len(r.b); j++ {
		switch c := r.b[j]; {
		case c == '\\':
			plain = false
			j++
		case c == '"':
			raw := r.b[r.i : j+1]
			if plain {
				r.i = j + 1
				return r.s[j+2-len(raw) : j], nil
			}
			if why := rawjson.Well(raw); why != "" {
				return "", p.bad("is no text: %s", strings.Replace(why, "the text", "the string", 1))
			}
			r.i = j + 1
			return rawjson.String(raw), nil
		case c < 0x20:
			r.i = j
			return "", r.broken(p)
		}
	}
	r.i = len(r.b)
	return "", r.broken(p)
}

func (r *reader) int(p *path) (int, error) {
	from := r.i
	if c := r.peek(); c != '-' && (c < '0' || c > '9') {
		return 0, r.wrong(p, "a whole number")
	}
	j := r.i
	for j < len(r.b) && (r.b[j] == '-' || r.b[j] >= '0' && r.b[j] <= '9') {
		j++
	}
	v, err := strconv.ParseInt(string(r.b[r.i:j]), 10, 32)
	if err != nil || j < len(r.b) && strings.IndexByte(".eE", r.b[j]) >= 0 || !json.Valid(r.b[r.i:j]) {
		r.i = from
		return 0, r.wrong(p, "a whole number")
	}
	r.i = j
	return int(v), nil
}

func (r *reader) literal(word string) bool {
	if strings.HasPrefix(string(r.b[r.i:min(len(r.b), r.i+len(word))]), word) {
		r.i += len(word)
		return true
	}
	return false
}

// nodes reads an array of nodes. Nesting is held in bounds here, before anything is called again and again.
func (r *reader) nodes(p *path, level int) (list []*Node, err error) {
	if level > MaxLevels+1 {
		return nil, p.bad("is on level %d; a document has at most %d levels", level, MaxLevels)
	}
	from := len(r.nest)
	err = r.array(p, "an array of nodes", func(p *path) error {
		n, err := r.node(p, level)
		r.nest = append(r.nest, n)
		return err
	})
	list = slices.Clone(r.nest[from:])
	r.nest = r.nest[:from]
	return list, err
}

func (r *reader) node(p *path, level int) (*Node, error) {
	n := &Node{}
	err := r.object(p, nodeMembers, func(key string, p *path) (err error) {
		switch key {
		case "type":
			n.Type, err = r.name(p)
		case "node_id":
			n.ID, err = r.text(p)
		case "text":
			n.Text, err = r.text(p)
		case "attrs":
			n.Attrs, err = r.attrs(p)
		case "marks":
			err = r.array(p, "an array of marks", func(p *path) error {
				m, err := r.mark(p)
				n.Marks = append(n.Marks, m)
				return err
			})
		case "content":
			n.Content, err = r.nodes(p, level+1)
		}
		return err
	})
	if err == nil && n.Type == "" {
		err = (&path{p, "type", 0}).bad("is required; types are %s", typeNames())
	}
	return n, err
}

// mark reads {"type":"bold"}, or "bold" alone.
func (r *reader) mark(p *path) (m Mark, err error) {
	if r.peek() == '"' {
		m.Type, err = r.name(p)
		return m, err
	}
	err = r.object(p, []string{"type", "attrs"}, func(key string, p *path) (err error) {
		if key == "type" {
			m.Type, err = r.name(p)
		} else {
			m.Attrs, err = r.attrs(p)
		}
		return err
	})
	if err == nil && m.Type == "" {
		err = (&path{p, "type", 0}).bad("is required; marks are %s", markNames())
	}
	return m, err
}

// attrs reads an object of strings, whole numbers, truth values and nulls.
func (r *reader) attrs(p *path) (attrs []Attr, err error) {
	err = r.object(p, nil, func(key string, p *path) (err error) {
		a := Attr{Name: key}
		switch c := r.peek(); {
		case c == '"':
			a.Value, err = r.text(p)
		case c == '-' || c >= '0' && c <= '9':
			a.Value, err = r.int(p)
		case r.literal("true"):
			a.Value = true
		case r.literal("false"):
			a.Value = false
		case r.literal("null"):
		default:
			err = r.wrong(p, "a string, a whole number, true, false or null")
		}
		attrs = append(attrs, a)
		return err
	})
	return attrs, err
}
