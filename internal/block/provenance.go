package block

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/doc"
	"cairn/internal/doc/markdown"
	"cairn/internal/doc/version"
	"cairn/internal/doc/view"
	"cairn/internal/fault"
	"cairn/internal/op"
)

type provenanceIn struct {
	BlockID string `json:"block_id" rule:"required,uuid,max=64"`
	Limit   int    `json:"limit" jsonschema:"default 50" rule:"min=1,max=200"`
	Cursor  string `json:"cursor" rule:"max=300"`
}

// Event is one change of a block. The hashes are those before and after; where it didn't touch the document they are left out.
type Event struct {
	ChangeID   string   `json:"change_id"` // for undo_change
	At         string   `json:"at"`
	Actor      string   `json:"actor"`
	ActorName  string   `json:"actor_name"`
	OnBehalf   string   `json:"on_behalf,omitempty"` // the account behind an agent or a token
	BehalfName string   `json:"on_behalf_name,omitempty"`
	Tool       string   `json:"tool"`
	Via        string   `json:"via"`
	Summary    string   `json:"summary"`
	Version    int64    `json:"version,omitempty"` // that it made
	BeforeHash string   `json:"before_hash,omitempty"`
	AfterHash  string   `json:"after_hash,omitempty"`
	Nodes      []string `json:"nodes,omitempty"`
	MoreNodes  bool     `json:"more_nodes,omitempty"`
	Undoes     *string  `json:"undoes,omitempty"`

	at int64
}

type provenanceOut struct {
	BlockID    string  `json:"block_id"`
	Count      int     `json:"count"`
	Events     []Event `json:"events"`
	NextCursor *string `json:"next_cursor,omitempty"`
}

// shownNodes is how many changed nodes an event lists.
const shownNodes = 10

func (s *Service) provenance(ctx context.Context, in provenanceIn) (provenanceOut, error) {
	out := provenanceOut{Events: []Event{}}
	r, err := load(ctx, s.one(ctx), "block_id", in.BlockID, "")
	if err != nil {
		return out, err
	}
	out.BlockID = r.ID
	key, err := op.ReadCursor(in.Cursor, 2)
	if err != nil {
		return out, err
	}
	args, cond := db.Args{r.ID}, ""
	if key != nil {
		at, err := strconv.ParseInt(key[0], 10, 64)
		if err != nil {
			return out, op.BadCursor()
		}
		cond = " AND (at, id) < (" + args.Add(at) + ", " + args.Add(key[1]) + ")"
	}
	page := op.NewPage(in.Limit)
	list, err := s.events(ctx, `SELECT id, at, actor, on_behalf, op, via, summary, undoes, after FROM change WHERE thing = $1`+cond+
		` ORDER BY at DESC, id DESC LIMIT `+strconv.Itoa(page.Limit+1), args)
	if err != nil {
		return out, err
	}
	if err := s.versions(ctx, r.ID, list); err != nil {
		return out, err
	}
	for i := range list {
		e := list[i].Event
		if !page.Fits(i, op.Weight(e.Summary)+450+40*len(e.Nodes)) {
			last := list[i-1]
			out.NextCursor = op.Cursor(strconv.FormatInt(last.at, 10), last.ChangeID)
			break
		}
		out.Events = append(out.Events, e)
	}
	out.Count = len(out.Events)
	return out, nil
}

// recorded is an event with what the change record says of the document after it; "" and nil where it was left alone.
type recorded struct {
	Event
	content string
	title   *string
}

func (s *Service) events(ctx context.Context, q string, args []any) ([]recorded, error) {
	rows, err := s.db.Query(ctx, q, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []recorded
	for rows.Next() {
		var e recorded
		var after string
		if err := rows.Scan(&e.ChangeID, &e.at, &e.Actor, &e.OnBehalf, &e.Tool, &e.Via, &e.Summary, &e.Undoes, &after); err != nil {
			return nil, err
		}
		var fields struct {
			Content string
			Title   *string
		}
		if err := json.Unmarshal([]byte(after), &fields); err != nil {
			return nil, err
		}
		e.At, e.content, e.title = op.Stamp(e.at), fields.Content, fields.Title
		list = append(list, e)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	_ = rows.Close()
	return list, s.name(ctx, list)
}

// versions adds to the events of a page, the newest first, which version each made, and the hashes.
func (s *Service) versions(ctx context.Context, id string, list []recorded) error {
	if len(list) == 0 {
		return nil
	}
	rows, err := s.db.Query(ctx, `SELECT v.version, v.at, v.hash, v.content_hash, v.nodes,
		coalesce((SELECT p.hash FROM block_version p WHERE p.block = v.block AND p.version = v.version - 1), '') FROM block_version v WHERE v.block = $1 AND v.at >= $2 AND v.at <= $3 ORDER BY v.version DESC`, id, list[len(list)-1].at, list[0].at)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var v Event
		var contentHash, nodes string
		if err := rows.Scan(&v.Version, &v.at, &v.AfterHash, &contentHash, &nodes, &v.BeforeHash); err != nil {
			return err
		}
		// One write may make several versions, when it undoes several changes: then the content tells which is whose.
		of := func(alike bool) int {
			return slices.IndexFunc(list, func(e recorded) bool {
				return e.at == v.at && e.Version == 0 && (e.content == contentHash || !alike && e.content == "" && e.title != nil)
			})
		}
		i := of(true)
		if i < 0 {
			i = of(false)
		}
		if i < 0 {
			continue
		}
		e := &list[i].Event
		e.Version, e.BeforeHash, e.AfterHash = v.Version, v.BeforeHash, v.AfterHash
		if nodes != "" {
			if err := json.Unmarshal([]byte(nodes), &e.Nodes); err != nil {
				return err
			}
		}
		if e.MoreNodes = len(e.Nodes) > shownNodes || nodes == "" && e.Version > 1; len(e.Nodes) > shownNodes {
			e.Nodes = e.Nodes[:shownNodes]
		}
	}
	return rows.Err()
}

type versionIn struct {
	BlockID string `json:"block_id" rule:"required,uuid,max=64"`
	Version int64  `json:"version" jsonschema:"as get_provenance names it" rule:"required,min=1,max=1000000000"`
}

type readVersionIn struct {
	versionIn
	Limit  int    `json:"limit" jsonschema:"top-level nodes" rule:"min=1,max=100000"`
	Offset int    `json:"offset" jsonschema:"top-level nodes to pass over" rule:"min=0,max=100000"`
	From   string `json:"from" jsonschema:"node_id to begin with" rule:"max=64"`
	Byte   int    `json:"byte" rule:"min=0,max=16777216"`
	As     string `json:"as" jsonschema:"nodes (default), or markdown: whole, where it is short enough" rule:"enum=nodes|markdown"`
}

type readVersionOut struct {
	BlockID  string  `json:"block_id"`
	Version  int64   `json:"version"`
	Title    string  `json:"title"`
	Hash     string  `json:"hash"`
	Content  content `json:"content"`
	Markdown *string `json:"markdown,omitempty"`
	view.View
}

// at gives a version of a block by its number.
func (s *Service) at(ctx context.Context, id string, n int64) (*row, *doc.Doc, error) {
	r, err := load(ctx, s.one(ctx), "block_id", id, "")
	if err != nil {
		return nil, nil, err
	}
	var hash string
	err = s.db.One(ctx, `SELECT hash FROM block_version WHERE block = $1 AND version = $2`, []any{r.ID, n}, &hash)
	if db.IsNone(err) {
		return nil, nil, fault.New(fault.NotFound, "the block has no version %d: it has 1 to %d", n, r.Version)
	}
	if err != nil {
		return nil, nil, err
	}
	d, err := s.docs.At(s.reader(ctx), r.newest(), n, hash)
	if err == nil && d == nil {
		err = errBusy
	}
	return r, d, err
}

func (s *Service) readVersion(ctx context.Context, in readVersionIn) (readVersionOut, error) {
	r, d, err := s.at(ctx, in.BlockID, in.Version)
	if err != nil {
		return readVersionOut{}, err
	}
	out := readVersionOut{BlockID: r.ID, Version: in.Version, Title: d.Title(), Hash: d.Hash(), Content: content{d.ContentHash()}}
	if in.As == "markdown" {
		text := markdown.Write(d.Content())
		if len(text) > view.PageContent {
			return out, fault.New(fault.TooLarge, "document_page_too_large: the version has %d bytes of Markdown, the most is %d: read it page by page (as nodes)", len(text), view.PageContent)
		}
		out.Markdown, out.View = &text, view.View{Rows: []view.Row{}}
		return out, nil
	}
	out.View, err = s.show(d, documentIn{Limit: in.Limit, Offset: in.Offset, From: in.From, Byte: in.Byte})
	return out, err
}

type compareIn struct {
	BlockID string `json:"block_id" rule:"required,uuid,max=64"`
	From    int64  `json:"from_version" rule:"required,min=1,max=1000000000"`
	To      int64  `json:"to_version" jsonschema:"default the newest" rule:"min=1,max=1000000000"`
}

type compareOut struct {
	BlockID string   `json:"block_id"`
	From    int64    `json:"from_version"`
	To      int64    `json:"to_version"`
	Same    bool     `json:"same"`
	Titles  []string `json:"titles,omitempty"` // before and after, where they differ
	Added   int      `json:"added"`
	Removed int      `json:"removed"`
	Moved   int      `json:"moved"`
	Edited  int      `json:"edited"`
	Diff    string   `json:"diff"` // a line for each node: + added, - removed, > moved, ~ edited with [-what went-] and {+what came+}
}

// compareBytes bounds the readable difference, so that the answer stays below 100 KB as sent.
const compareBytes = 32 << 10

func (s *Service) compare(ctx context.Context, in compareIn) (compareOut, error) {
	r, a, err := s.at(ctx, in.BlockID, in.From)
	if err != nil {
		return compareOut{}, err
	}
	if in.To == 0 {
		in.To = r.Version
	}
	_, b, err := s.at(ctx, in.BlockID, in.To)
	if err != nil {
		return compareOut{}, err
	}
	diff := version.Diff(a, b)
	out := compareOut{BlockID: r.ID, From: in.From, To: in.To, Same: diff.Empty(), Added: len(diff.Added), Removed: len(diff.Removed), Moved: len(diff.Moved), Edited: len(diff.Edited), Diff: diff.Text(compareBytes)}
	if diff.Title {
		out.Titles = []string{a.Title(), b.Title()}
	}
	return out, nil
}

type restoreVersionIn struct {
	versionIn
	BaseHash string `json:"base_hash" jsonschema:"the hash of the newest version" rule:"required,min=1,max=64"`
	DryRun   bool   `json:"dry_run" jsonschema:"tell what would happen, write nothing"`
}

func (s *Service) restoreVersion(ctx context.Context, in restoreVersionIn) (written, error) {
	_, old, err := s.at(ctx, in.BlockID, in.Version)
	if err != nil {
		return written{}, err
	}
	r, before, after, err := s.rewrite(ctx, in.BlockID, in.DryRun, func(r *row, d *doc.Doc) (made, error) {
		if err := s.fresh(ctx, r, d, in.BaseHash); err != nil {
			return made{}, err
		}
		return made{old, "Restored version " + strconv.FormatInt(in.Version, 10) + " of " + r.label()}, nil
	})
	if err != nil {
		return written{}, err
	}
	return wrote(r, before, after, in.DryRun), nil
}

// name puts names beside the ids of who did it and on whose behalf.
func (s *Service) name(ctx context.Context, list []recorded) (err error) {
	names := change.Names{}
	for i := range list {
		e := &list[i].Event
		if e.ActorName, err = names.Of(ctx, s.db, e.Actor); err != nil {
			return err
		}
		if e.BehalfName, err = names.Of(ctx, s.db, e.OnBehalf); err != nil {
			return err
		}
	}
	return nil
}
