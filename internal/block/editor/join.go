package editor

import (
	"context"
	"encoding/json"

	"cairn/internal/block/draft"
	"cairn/internal/db"
	"cairn/internal/doc"
	"cairn/internal/doc/markdown"
	"cairn/internal/doc/version"
	"cairn/internal/fault"
)

type joinIn struct {
	BlockID  string  `json:"block_id" rule:"required,uuid,max=64"`
	BaseHash string  `json:"base_hash" jsonschema:"the hash of the version that the text was written from" rule:"required,min=1,max=64"`
	Markdown *string `json:"markdown" rule:"required,max=1500000"`
	Title    *string `json:"title" jsonschema:"default the title it has" rule:"max=300"`
}

type joinOut struct {
	BlockID  string  `json:"block_id"`
	Hash     string  `json:"hash"` // of the newest version, which the result is to be saved on
	Title    string  `json:"title"`
	Markdown string  `json:"markdown"` // the result
	Joined   bool    `json:"joined"`   // false: the result is the text as given, without what others changed
	Titles   bool    `json:"titles"`   // each side gave it another title; the result has the newest
	Clashes  []Clash `json:"clashes"`
	Changes  []Since `json:"changes"`
	More     int     `json:"more"` // changes that are left out
}

// Clash is a block that both sides changed. Mine and Theirs are its texts, nil where that side took it away.
type Clash struct {
	NodeID string          `json:"node_id"`
	Mine   *string         `json:"mine"`
	Theirs *string         `json:"theirs"`
	Parts  []version.Piece `json:"parts"` // from theirs to mine
	By     *Author         `json:"by"`
}

// Since is what others changed meanwhile in a block, and who changed it last.
type Since struct {
	version.Line
	By *Author `json:"by"`
}

// joinedBytes bounds the changes that an answer lists.
const joinedBytes = 32 << 10

func (s *Service) join(ctx context.Context, in joinIn) (joinOut, error) {
	h, now, err := s.blocks.Open(ctx, in.BlockID)
	if err != nil {
		return joinOut{}, err
	}
	n, base, err := s.blocks.OpenHash(ctx, in.BlockID, in.BaseHash)
	if err != nil {
		return joinOut{}, err
	}
	if base == nil {
		return joinOut{}, fault.New(fault.Conflict, "no version of the block has this base_hash: take the hash of the version that the text was written from")
	}
	mine, err := drafted(base, in)
	if err != nil {
		return joinOut{}, err
	}
	out := joinOut{BlockID: h.ID, Hash: h.Hash, Title: mine.Title(), Markdown: *in.Markdown, Clashes: []Clash{}, Changes: []Since{}}
	joined, clashes := version.Join(base, mine, now, db.NewID)
	if out.Joined = joined != nil; out.Joined {
		out.Title, out.Markdown = joined.Title(), markdown.Write(joined.Content())
	}
	lines, more := version.Diff(base, now).Lines(joinedBytes)
	out.More = more
	want := map[string]bool{}
	for _, l := range lines {
		want[l.NodeID] = true
	}
	for _, c := range clashes {
		want[c.NodeID] = true
	}
	by, err := s.authors(ctx, h.ID, n, h.Version, want)
	if err != nil {
		return joinOut{}, err
	}
	who := func(id string) *Author {
		if a, known := by[id]; known {
			return &a
		}
		return nil
	}
	for _, l := range lines {
		out.Changes = append(out.Changes, Since{l, who(l.NodeID)})
	}
	for _, c := range clashes {
		if c.NodeID == doc.RootID {
			out.Titles = true
			continue
		}
		clash := Clash{NodeID: c.NodeID, Mine: plain(c.Mine), Theirs: plain(c.Theirs), By: who(c.NodeID)}
		if c.Mine != nil && c.Theirs != nil {
			clash.Parts = version.Words(*clash.Theirs, *clash.Mine)
		}
		out.Clashes = append(out.Clashes, clash)
	}
	return out, nil
}

func drafted(base *doc.Doc, in joinIn) (*doc.Doc, error) {
	content, err := json.Marshal(*in.Markdown)
	if err != nil {
		return nil, err
	}
	d, err := draft.Of(base, content)
	if err == nil && in.Title != nil {
		d, err = d.WithTitle(*in.Title)
	}
	return d, err
}

func plain(n *doc.Node) *string {
	if n == nil {
		return nil
	}
	text := n.Plain()
	return &text
}
