package doc

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"unicode/utf8"
)

// The canonical JSON is that of RFC 8785 (JCS): members sorted by name, no space between tokens, the shortest escapes, all
// other characters as they are, in UTF-8. Members that hold nothing are left out: an object has "type" and, of these, what it
// has: "attrs", "content", "marks", "node_id", "text".

// JSON gives the document's canonical JSON, {"content":[...],"title":"..."}; "content" is there even when empty.
func (d *Doc) JSON() []byte {
	b := make([]byte, 0, d.root.bytes+176*d.root.blocks+len(d.title)+64)
	b = append(b, `{"content":`...)
	b = appendNodes(b, d.root.Content)
	b = append(b, `,"title":`...)
	b = quote(b, d.title)
	return append(b, '}')
}

// ContentJSON gives the canonical JSON of the content alone: an array of nodes.
func (d *Doc) ContentJSON() []byte { return appendNodes(nil, d.root.Content) }

// JSON gives the canonical JSON of one node.
func (n *Node) JSON() []byte { return n.append(nil, true) }

// ShellJSON gives the canonical JSON of one node without the blocks in it.
func (n *Node) ShellJSON() []byte { return n.append(nil, false) }

// ContentJSON gives the canonical JSON of what is in the node, an array.
func (n *Node) ContentJSON() []byte { return appendNodes(nil, n.Content) }

func appendNodes(b []byte, nodes []*Node) []byte {
	b = append(b, '[')
	for i, n := range nodes {
		if i > 0 {
			b = append(b, ',')
		}
		b = n.append(b, true)
	}
	return append(b, ']')
}

// append writes the node; without blocks, the blocks in it are left out.
func (n *Node) append(b []byte, blocks bool) []byte {
	b = append(b, '{')
	if len(n.Attrs) > 0 {
		b = appendAttrs(b, n.Attrs)
		b = append(b, ',')
	}
	if len(n.Content) > 0 && (blocks || !n.Spec().blocks) {
		b = append(b, `"content":`...)
		b = appendNodes(b, n.Content)
		b = append(b, ',')
	}
	if len(n.Marks) > 0 {
		b = append(b, `"marks":[`...)
		for i, m := range n.Marks {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, '{')
			if len(m.Attrs) > 0 {
				b = append(appendAttrs(b, m.Attrs), ',')
			}
			b = append(b, `"type":"`...)
			b = append(append(b, m.Type...), `"}`...)
		}
		b = append(b, `],`...)
	}
	if n.ID != "" {
		b = append(b, `"node_id":"`...)
		b = append(append(b, n.ID...), `",`...)
	}
	if n.Text != "" {
		b = append(b, `"text":`...)
		b = append(quote(b, n.Text), ',')
	}
	b = append(b, `"type":"`...)
	return append(append(b, n.Type...), `"}`...)
}

func appendAttrs(b []byte, attrs []Attr) []byte {
	b = append(b, `"attrs":{`...)
	for i, a := range attrs {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), a.Name...), '"', ':')
		switch v := a.Value.(type) {
		case string:
			b = quote(b, v)
		case int:
			b = strconv.AppendInt(b, int64(v), 10)
		case bool:
			b = strconv.AppendBool(b, v)
		}
	}
	return append(b, '}')
}

// quote writes a string as RFC 8785, section 3.2.2.2 says.
func quote(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, '\\', 'b')
		case '\t':
			b = append(b, '\\', 't')
		case '\n':
			b = append(b, '\\', 'n')
		case '\f':
			b = append(b, '\\', 'f')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	return append(append(b, s[start:]...), '"')
}

// Sum is a SHA-256 hash (FIPS 180-4).
type Sum [sha256.Size]byte

// String gives the hash as 64 lower-case hexadecimal digits.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// Sum gives the node's hash: SHA-256 over the node's canonical JSON and, where it holds blocks, over its canonical JSON without
// "content" followed by the hashes (32 bytes each) of the blocks in it, in order. It is worked out once for each node, so that
// after a patch only the changed nodes and those above them are hashed again.
func (n *Node) Sum() Sum {
	if s := n.sum.Load(); s != nil {
		return *s
	}
	b := n.append(make([]byte, 0, 256), false)
	if n.Spec().blocks {
		b = slices.Grow(b, len(n.Content)*len(Sum{}))
		for _, c := range n.Content {
			s := c.Sum()
			b = append(b, s[:]...)
		}
	}
	s := Sum(sha256.Sum256(b))
	n.sum.Store(&s)
	return s
}

// ContentHash is the hash of the content: SHA-256 over {"type":"doc"} followed by the hashes (Node.Sum) of the top-level nodes.
func (d *Doc) ContentHash() string { return d.root.Sum().String() }

// Hash is the hash of the whole: SHA-256 over {"content":"<content hash>","title":"<title>"} in canonical JSON.
func (d *Doc) Hash() string {
	b := append([]byte(`{"content":"`), d.ContentHash()...)
	b = quote(append(b, `","title":`...), d.title)
	return Sum(sha256.Sum256(append(b, '}'))).String()
}

// cut gives the longest beginning of s that has at most n bytes and ends between characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
