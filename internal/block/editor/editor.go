// Package editor has what a person's pages of a document need beyond what agents use: larger parts of it as trees, who wrote each
// block, what differs between versions, the whole of it as Markdown, and a text that was written beside others' changes brought
// together with them. All of it reads; what is written goes by the operations of package block.
package editor

import (
	"context"
	"encoding/json"
	"strings"

	"cairn/internal/block"
	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/doc"
	"cairn/internal/doc/markdown"
	"cairn/internal/doc/version"
	"cairn/internal/doc/view"
	"cairn/internal/fault"
	"cairn/internal/op"
)

// Service reads documents for pages.
type Service struct {
	db     *db.DB
	blocks *block.Service
}

// New makes the service.
func New(d *db.DB, blocks *block.Service) *Service { return &Service{d, blocks} }

const (
	area = "documents"
	set  = "record"
	none = `"block_id":"01890a5d-ac96-774b-bcce-b302099a8057"`
)

// Ops are the operations of this package.
func (s *Service) Ops() []*op.Op {
	return []*op.Op{
		op.Define(op.Op{Name: "show_document", Title: "Show document", Area: area, Set: set, Effect: op.Read, PersonOnly: true, Example: `{` + none + `}`,
			Doc: "A part of a document, or of an earlier version, as a tree of nodes, for a page to show, with who wrote each block if asked for."}, s.show),
		op.Define(op.Op{Name: "show_changes", Title: "Show changes", Area: area, Set: set, Effect: op.Read, PersonOnly: true, Example: `{` + none + `,"from_version":1}`,
			Doc: "What differs between two versions of a document, block by block."}, s.changes),
		op.Define(op.Op{Name: "get_markdown", Title: "Get Markdown", Area: area, Set: set, Effect: op.Read, PersonOnly: true, Example: `{` + none + `}`,
			Doc: "A whole document as Markdown, to be edited and given to replace_document, and how much of it Markdown can't say."}, s.markdown),
		op.Define(op.Op{Name: "join_draft", Title: "Join draft", Area: area, Set: set, Effect: op.Read, PersonOnly: true, Big: true, Example: `{` + none + `,"base_hash":"0","markdown":"x"}`,
			Doc: "Bring a text that was written from an earlier version together with what others changed since, for a person to go over. Nothing is stored."}, s.join),
	}
}

type showIn struct {
	BlockID string `json:"block_id" rule:"required,uuid,max=64"`
	Version int64  `json:"version" jsonschema:"default the newest" rule:"min=1,max=1000000000"`
	Part    int    `json:"part" jsonschema:"from 1 on; default 1" rule:"min=1,max=100000"`
	Authors bool   `json:"authors" jsonschema:"say who wrote each block last"`
}

type showOut struct {
	BlockID  string            `json:"block_id"`
	Title    string            `json:"title"`
	Hash     string            `json:"hash"`
	Version  int64             `json:"version"`
	Newest   int64             `json:"newest_version"`
	Trashed  bool              `json:"trashed"`
	Writable bool              `json:"writable"`
	Part     int               `json:"part"`
	Parts    int               `json:"parts"`
	Blocks   int               `json:"blocks"` // of the whole document
	Nodes    json.RawMessage   `json:"nodes"`
	Authors  map[string]Author `json:"authors,omitempty"` // by node_id
}

// open gives a version of a block, the newest for 0.
func (s *Service) open(ctx context.Context, id string, n int64) (h block.Head, d *doc.Doc, err error) {
	h, d, err = s.blocks.Open(ctx, id)
	if err == nil && n > 0 && n != h.Version {
		d, err = s.blocks.OpenVersion(ctx, id, n)
	}
	return h, d, err
}

func (s *Service) show(ctx context.Context, in showIn) (showOut, error) {
	h, d, err := s.open(ctx, in.BlockID, in.Version)
	if err != nil {
		return showOut{}, err
	}
	out := showOut{BlockID: h.ID, Title: d.Title(), Hash: d.Hash(), Version: in.Version, Newest: h.Version, Trashed: h.Trashed, Writable: h.Writable, Part: max(in.Part, 1), Blocks: d.Len()}
	if out.Version == 0 {
		out.Version = h.Version
	}
	starts := view.Parts(d)
	if out.Parts = len(starts); out.Part > out.Parts {
		return showOut{}, fault.New(fault.NotFound, "the document has %d parts, there is no part %d", out.Parts, out.Part)
	}
	nodes, _ := view.Part(d, starts[out.Part-1])
	b := []byte{'['}
	for i, n := range nodes {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, n.JSON()...)
	}
	out.Nodes = append(b, ']')
	if in.Authors {
		want := map[string]bool{}
		for _, n := range nodes {
			n.Walk(1, func(n *doc.Node, _ int) bool {
				want[n.ID] = true
				return true
			})
		}
		out.Authors, err = s.authors(ctx, h.ID, 0, out.Version, want)
	}
	return out, err
}

// Author is who changed a node last.
type Author struct {
	Actor string `json:"actor"`
	Name  string `json:"name"`
	Agent bool   `json:"agent"`
	At    string `json:"at"`
}

// authors finds who changed nodes last in the versions after one up to another: by what those say of themselves, and where a version
// changed too many nodes to say which, by what differs in it. The first version is of all that it has.
func (s *Service) authors(ctx context.Context, id string, after, upTo int64, want map[string]bool) (map[string]Author, error) {
	by := map[string]Author{}
	names := change.Names{}
	for next := upTo; next > after && len(by) < len(want); {
		list, err := s.versions(ctx, id, after, next)
		if err != nil || len(list) == 0 {
			return by, err
		}
		for _, v := range list {
			if next = v.n - 1; len(by) == len(want) {
				break
			}
			ids := v.nodes
			if v.many && v.n > 1 {
				if ids, err = s.changed(ctx, id, v.n); err != nil {
					return nil, err
				}
			} else if v.many {
				for w := range want {
					ids = append(ids, w)
				}
			}
			a := Author{Actor: v.actor, Agent: strings.HasPrefix(v.actor, "agent:"), At: op.Stamp(v.at)}
			if a.Name, err = names.Of(ctx, s.db, v.actor); err != nil {
				return nil, err
			}
			for _, n := range ids {
				if _, known := by[n]; !known && want[n] {
					by[n] = a
				}
			}
		}
	}
	return by, nil
}

type versionRow struct {
	n, at int64
	actor string
	nodes []string
	many  bool // more than are kept by id, or all, in the first
}

func (s *Service) versions(ctx context.Context, id string, after, upTo int64) ([]versionRow, error) {
	rows, err := s.db.Query(ctx, `SELECT version, actor, nodes, at FROM block_version WHERE block = $1 AND version > $2 AND version <= $3 ORDER BY version DESC LIMIT 500`, id, after, upTo)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []versionRow
	for rows.Next() {
		var v versionRow
		var nodes string
		if err := rows.Scan(&v.n, &v.actor, &nodes, &v.at); err != nil {
			return nil, err
		}
		if v.many = nodes == "" || v.n == 1; !v.many {
			if err := json.Unmarshal([]byte(nodes), &v.nodes); err != nil {
				return nil, err
			}
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// changed lists the nodes that a version changed.
func (s *Service) changed(ctx context.Context, id string, n int64) ([]string, error) {
	a, err := s.blocks.OpenVersion(ctx, id, n-1)
	if err != nil {
		return nil, err
	}
	b, err := s.blocks.OpenVersion(ctx, id, n)
	if err != nil {
		return nil, err
	}
	return version.Diff(a, b).IDs(), nil
}

type changesIn struct {
	BlockID string `json:"block_id" rule:"required,uuid,max=64"`
	From    int64  `json:"from_version" rule:"required,min=1,max=1000000000"`
	To      int64  `json:"to_version" jsonschema:"default the newest" rule:"min=1,max=1000000000"`
}

type changesOut struct {
	BlockID string         `json:"block_id"`
	Title   string         `json:"title"`
	Hash    string         `json:"hash"` // of the newest version
	From    int64          `json:"from_version"`
	To      int64          `json:"to_version"`
	Newest  int64          `json:"newest_version"`
	Added   int            `json:"added"`
	Removed int            `json:"removed"`
	Moved   int            `json:"moved"`
	Edited  int            `json:"edited"`
	Lines   []version.Line `json:"lines"`
	More    int            `json:"more"` // lines that are left out
}

// changesBytes bounds a readable difference.
const changesBytes = 128 << 10

func (s *Service) changes(ctx context.Context, in changesIn) (changesOut, error) {
	_, a, err := s.open(ctx, in.BlockID, in.From)
	if err != nil {
		return changesOut{}, err
	}
	h, b, err := s.open(ctx, in.BlockID, in.To)
	if err != nil {
		return changesOut{}, err
	}
	if in.To == 0 {
		in.To = h.Version
	}
	diff := version.Diff(a, b)
	out := changesOut{BlockID: h.ID, Title: h.Title, Hash: h.Hash, From: in.From, To: in.To, Newest: h.Version, Added: len(diff.Added), Removed: len(diff.Removed), Moved: len(diff.Moved), Edited: len(diff.Edited)}
	out.Lines, out.More = diff.Lines(changesBytes)
	return out, nil
}

type markdownIn struct {
	BlockID string `json:"block_id" rule:"required,uuid,max=64"`
}

type markdownOut struct {
	BlockID  string `json:"block_id"`
	Title    string `json:"title"`
	Hash     string `json:"hash"`
	Markdown string `json:"markdown"`
	Unsaid   int    `json:"unsaid"` // blocks that have more than Markdown can say; they stay as they are where their text is left alone
	Writable bool   `json:"writable"`
}

func (s *Service) markdown(ctx context.Context, in markdownIn) (markdownOut, error) {
	h, d, err := s.blocks.Open(ctx, in.BlockID)
	if err != nil {
		return markdownOut{}, err
	}
	out := markdownOut{BlockID: h.ID, Title: h.Title, Hash: h.Hash, Markdown: markdown.Write(d.Content()), Writable: h.Writable}
	said, err := markdown.Read(out.Markdown)
	if err == nil {
		out.Unsaid = len(version.Unsaid(d, said))
	}
	return out, err
}
