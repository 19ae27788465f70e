package doc

// Ref is something that a document refers to.
type Ref struct {
	Kind   string `json:"kind"`              // mention, file, block (a child shown in place), in reading also link and embed (a page)
	ID     string `json:"id,omitempty"`      // of the block or file
	URL    string `json:"url,omitempty"`     // of a link or embed
	Label  string `json:"label,omitempty"`   // text shown, of a long one the beginning
	NodeID string `json:"node_id,omitempty"` // block node that it stands in

	Pos int `json:"-"` // in the block's text (Plain), in bytes
}

// Refs lists mentions, files (also as images and as targets of links) and child blocks in document order, each as often as it
// is there.
func (d *Doc) Refs() (list []Ref) {
	for n := range d.All() {
		for _, r := range n.Refs() {
			if r.ID != "" {
				list = append(list, r)
			}
		}
	}
	return list
}

// Dropped lists the child blocks that a shows in place and b no longer does, each once.
func Dropped(a, b *Doc) (list []Ref) {
	kept := map[string]bool{}
	for _, r := range b.Refs() {
		kept[r.ID] = kept[r.ID] || r.Kind == "block"
	}
	for _, r := range a.Refs() {
		if r.Kind == "block" && !kept[r.ID] {
			kept[r.ID] = true
			list = append(list, r)
		}
	}
	return list
}

// Refs lists what one block refers to, without the blocks in it; links too.
func (n *Node) Refs() (list []Ref) {
	switch n.Type {
	case "file":
		return []Ref{{Kind: "file", ID: n.Str("file"), Label: n.Str("name"), NodeID: n.ID}}
	case "image":
		return appendSource(nil, n, n.ID, 0)
	case "embed":
		if _, id := CairnRef(n.Str("src")); id != "" {
			return []Ref{{Kind: "block", ID: id, Label: n.Str("title"), NodeID: n.ID}}
		}
		return []Ref{{Kind: "embed", URL: n.Str("src"), Label: n.Str("title"), NodeID: n.ID}}
	}
	if n.HoldsBlocks() {
		return nil
	}
	pos, end := 0, -1 // end of the last link
	for _, c := range n.Content {
		shown := c.Plain()
		if len(c.Marks) > 0 && c.Marks[0].Type == "link" {
			href := c.Marks[0].Str("href")
			r := Ref{Kind: "link", URL: href, Label: shown, NodeID: n.ID, Pos: pos}
			if what, id := CairnRef(href); what == "file" && id != "" {
				r.Kind, r.ID, r.URL = "file", id, ""
			}
			last := len(list) - 1
			if last >= 0 && list[last].Kind == r.Kind && list[last].ID == r.ID && list[last].URL == r.URL && end == pos {
				if len(list[last].Label) < maxLine {
					list[last].Label += shown
				}
			} else {
				list = append(list, r)
			}
			end = pos + len(shown)
		}
		switch c.Type {
		case "mention":
			list = append(list, Ref{Kind: "mention", ID: c.Str("block"), Label: shown, NodeID: n.ID, Pos: pos})
		case "inline_image":
			list = appendSource(list, c, n.ID, pos)
		}
		pos += len(shown)
	}
	return list
}

func appendSource(list []Ref, n *Node, in string, pos int) []Ref {
	if _, id := CairnRef(n.Str("src")); id != "" {
		return append(list, Ref{Kind: "file", ID: id, Label: n.Str("alt"), NodeID: in, Pos: pos})
	}
	return append(list, Ref{Kind: "link", URL: n.Str("src"), Label: n.Str("alt"), NodeID: in, Pos: pos})
}
