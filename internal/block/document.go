package block

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"cairn/internal/block/draft"
	"cairn/internal/block/past"
	"cairn/internal/db"
	"cairn/internal/doc"
	"cairn/internal/doc/markdown"
	"cairn/internal/doc/version"
	"cairn/internal/doc/view"
	"cairn/internal/fault"
	"cairn/internal/who"
)

type documentIn struct {
	BlockID string `json:"block_id" rule:"required,uuid,max=64"`
	View    string `json:"view" jsonschema:"read (default); edit: with node ids and marks, for patch_document; markdown: text, from byte on" rule:"enum=read|edit|markdown"`
	Limit   int    `json:"limit" jsonschema:"top-level nodes; as many as fit if not given" rule:"min=1,max=100000"`
	Offset  int    `json:"offset" jsonschema:"top-level nodes to pass over" rule:"min=0,max=100000"`
	From    string `json:"from" jsonschema:"node_id to begin with, instead of offset; limit then counts all nodes" rule:"max=64"`
	Byte    int    `json:"byte" jsonschema:"of that node's text or of the Markdown, as continuation says" rule:"min=0,max=16777216"`
}

type documentOut struct {
	BlockID string  `json:"block_id"`
	Title   string  `json:"title"`
	Hash    string  `json:"hash"`
	Content content `json:"content"`
	view.View
}

type content struct {
	Hash string `json:"hash"`
}

func (s *Service) getDocument(ctx context.Context, in documentIn) (documentOut, error) {
	r, d, err := s.document(ctx, in.BlockID)
	if err != nil {
		return documentOut{}, err
	}
	v, err := s.show(d, in)
	return documentOut{r.ID, d.Title(), r.Hash, content{r.ContentHash}, v}, err
}

func (s *Service) show(d *doc.Doc, in documentIn) (view.View, error) {
	ask, look := view.Ask{Offset: in.Offset, Limit: in.Limit, From: in.From, Byte: in.Byte}, view.Read
	switch in.View {
	case "edit":
		look = view.Edit
	case "markdown":
		if in.Limit > 0 || in.Offset > 0 || in.From != "" {
			return view.View{}, fault.Bad("view", "is markdown, which goes on by byte alone: leave out limit, offset and from")
		}
		look = func(d *doc.Doc, ask view.Ask) (*view.View, error) {
			return view.Markdown(d, s.docs.Docs.Text(d), ask.Byte)
		}
	}
	v, err := look(d, ask)
	if err != nil {
		return view.View{}, err
	}
	return *v, nil
}

type formattingOut struct {
	Nodes      []doc.NodeSpec      `json:"nodes"`
	Marks      []doc.MarkSpec      `json:"marks"`
	Kinds      map[doc.Kind]string `json:"attribute_kinds"`
	Operations []doc.OpSpec        `json:"operations"`
	Limits     map[string]int      `json:"limits"`
	Markdown   []string            `json:"markdown_cannot_say"`
	Notes      []string            `json:"notes"`
	Example    example             `json:"example"`
}

type example struct {
	Node  json.RawMessage `json:"node"`
	Patch json.RawMessage `json:"patch"`
}

func (s *Service) formatting(context.Context, struct{}) (formattingOut, error) {
	return formattingOut{Nodes: doc.Nodes, Marks: doc.Marks, Kinds: doc.Kinds, Operations: doc.Ops, Markdown: markdown.CannotSay,
		Limits: map[string]int{"levels": doc.MaxLevels, "nodes": doc.MaxNodes, "characters": draft.MaxCharacters, "operations": doc.MaxOps,
			"page_bytes": view.PageBytes, "page_content_bytes": view.PageContent, "page_nodes": view.PageNodes, "page_references": view.PageRefs},
		Notes: []string{
			`A patch is an array of operations, applied as one or not at all: {"op","node_id", and what the operation needs}.`,
			`Where "nodes" stands, "markdown" may stand instead. agent_id (such as @3) is taken for node_id, for the version with the base_hash alone.`,
			`base_hash is the top-level hash of get_document. After a conflict read the changed nodes again, or send rebase: true, which applies the patch where it touches other nodes than those changed since.`,
			`Blocks are named cairn:block/ID: in a mention it is a two-way link, in an embed a child of this document.`,
		},
		Example: example{
			Node:  json.RawMessage(`{"type":"paragraph","content":[{"type":"text","text":"Plain and "},{"type":"text","text":"bold","marks":[{"type":"bold"}]}]}`),
			Patch: json.RawMessage(`[{"op":"replace_text","node_id":"@2","find":"draft","replace":"final"},{"op":"insert_after","node_id":"@2","markdown":"- [ ] tell Anna"}]`),
		}}, nil
}

type patchIn struct {
	BlockID    string          `json:"block_id" rule:"required,uuid,max=64"`
	BaseHash   string          `json:"base_hash" jsonschema:"the top-level hash of the version you read" rule:"required,min=1,max=64"`
	Operations json.RawMessage `json:"operations" rule:"required"`
	Rebase     bool            `json:"rebase" jsonschema:"apply it to a newer version too, where others changed other nodes"`
	DryRun     bool            `json:"dry_run" jsonschema:"tell what would happen, write nothing"`
}

// written is what a write to a document answers. With dry_run hash is the one that the document has, and stays.
type written struct {
	ID      string   `json:"id"`
	Result  string   `json:"result"` // updated, or existing where nothing differs
	Hash    string   `json:"hash"`
	Content content  `json:"content"`
	Version int64    `json:"version"`
	Changed []string `json:"changed"` // node ids; "doc" is the title
	More    int      `json:"changed_more,omitempty"`
	Rebased bool     `json:"rebased,omitempty"`
	DryRun  bool     `json:"dry_run,omitempty"`
	Diff    string   `json:"diff,omitempty"` // dry_run: for reading
}

const (
	mostChanged = 200  // ids that an answer lists
	diffBytes   = 8000 // of a readable difference
)

func wrote(r *row, before, after *doc.Doc, dry bool) written {
	diff := version.Diff(before, after)
	out := written{ID: r.ID, Result: "updated", Hash: r.Hash, Content: content{r.ContentHash}, Version: r.Version, Changed: append([]string{}, diff.IDs()...), DryRun: dry}
	if diff.Title {
		out.Changed = append(out.Changed, doc.RootID)
	}
	if len(out.Changed) == 0 {
		out.Result = "existing"
	}
	if n := len(out.Changed); n > mostChanged {
		out.Changed, out.More = out.Changed[:mostChanged], n-mostChanged
	}
	if dry {
		out.Diff = diff.Text(diffBytes)
	}
	return out
}

func (s *Service) patch(ctx context.Context, in patchIn) (written, error) {
	patch, err := doc.DecodePatch(in.Operations, draft.Markdown)
	if err != nil {
		return written{}, err
	}
	rebased := false
	r, before, after, err := s.rewrite(ctx, in.BlockID, in.DryRun, func(r *row, d *doc.Doc) (made, error) {
		rebased = false
		summary := "Patched " + r.label()
		if in.BaseHash == r.Hash {
			res, err := d.Apply(patch, db.NewID)
			if err != nil {
				return made{}, err
			}
			return made{res.Doc, summary}, nil
		}
		n, base, err := s.base(ctx, r, in.BaseHash)
		if err != nil {
			return made{}, err
		}
		if base == nil || !in.Rebase {
			return made{}, s.stale(ctx, r, n, base, d)
		}
		res, err := version.Rebase(base, d, patch, db.NewID)
		if fault.Is(err, fault.Conflict) {
			return made{}, s.collision(ctx, r, n, base, d, err)
		}
		if err != nil {
			return made{}, err
		}
		rebased = true
		return made{res.Doc, summary}, nil
	})
	if err != nil {
		return written{}, err
	}
	out := wrote(r, before, after, in.DryRun)
	out.Rebased = rebased
	return out, nil
}

// base finds the version that a caller read; nil where the block never had it.
func (s *Service) base(ctx context.Context, r *row, hash string) (int64, *doc.Doc, error) {
	in := s.reader(ctx)
	n, whole, err := past.ByHash(in, r.ID, hash, false)
	if err != nil || n == 0 {
		return 0, nil, err
	}
	d, err := s.docs.At(in, r.newest(), n, whole)
	if err == nil && d == nil {
		err = errBusy
	}
	return n, d, err
}

// stale is the conflict of a write whose base_hash isn't that of the newest version.
func (s *Service) stale(ctx context.Context, r *row, n int64, base, now *doc.Doc) error {
	if base == nil {
		return fault.New(fault.Conflict, "no version of the block has this base_hash: read it with get_document and take the top-level hash").
			With("current_hash", r.Hash).With("changed_since", []Since{})
	}
	return s.conflict(ctx, fault.New(fault.Conflict, "the document has changed since the version with this base_hash; nothing was written. Read what changed and patch the current version, or send rebase: true where it takes that"), r, n, base, now)
}

func (s *Service) conflict(ctx context.Context, e *fault.Error, r *row, n int64, base, now *doc.Doc) error {
	list, err := s.since(ctx, r, n, base, now)
	if err != nil {
		return err
	}
	if more := len(list) - maxSince; more > 0 {
		list = list[:maxSince]
		e.With("changed_since_more", more) //nolint:errcheck // it gives the same fault back
	}
	return e.With("current_hash", r.Hash).With("changed_since", list)
}

// collision is the conflict of a patch that can't be applied to the newest version.
func (s *Service) collision(ctx context.Context, r *row, n int64, base, now *doc.Doc, cause error) error {
	was := fault.From(cause)
	e := fault.New(fault.Conflict, "%s; nothing was written", was.Message)
	for k, v := range was.Data {
		e.With(k, v) //nolint:errcheck // it gives the same fault back
	}
	return s.conflict(ctx, e, r, n, base, now)
}

type replaceIn struct {
	BlockID  string          `json:"block_id" rule:"required,uuid,max=64"`
	BaseHash string          `json:"base_hash" jsonschema:"the top-level hash of the version you read" rule:"required,min=1,max=64"`
	Content  json.RawMessage `json:"content" jsonschema:"Markdown, or an array of nodes, which may keep their node_id; without ids, nodes keep those of what they stem from" rule:"required"`
	Title    *string         `json:"title" jsonschema:"another title, empty for none; if not given it stays" rule:"max=300"`
	Rebase   bool            `json:"rebase" jsonschema:"apply it to a newer version too, where others changed other nodes"`
	Confirm  bool            `json:"confirm_rebuild" jsonschema:"true: all that isn't in content goes" rule:"required"`
	Dropped  bool            `json:"allow_dropped_children" jsonschema:"blocks shown in place (embeds) may go"`
	DryRun   bool            `json:"dry_run" jsonschema:"tell what would happen, write nothing"`
}

// on gives the document that the text makes of a version.
func (in *replaceIn) on(d *doc.Doc) (*doc.Doc, error) {
	next, err := draft.Of(d, in.Content)
	if err == nil && in.Title != nil {
		next, err = next.WithTitle(*in.Title)
	}
	return next, err
}

func (s *Service) replace(ctx context.Context, in replaceIn) (written, error) {
	if !in.Confirm {
		return written{}, fault.Bad("confirm_rebuild", "must be true: the whole document is built anew from content. For a part of it use patch_document")
	}
	rebased := false
	r, before, after, err := s.rewrite(ctx, in.BlockID, in.DryRun, func(r *row, d *doc.Doc) (made, error) {
		n, base, err := r.Version, d, error(nil)
		if in.BaseHash != r.Hash {
			if n, base, err = s.base(ctx, r, in.BaseHash); err != nil {
				return made{}, err
			}
			if base == nil || !in.Rebase {
				return made{}, s.stale(ctx, r, n, base, d)
			}
		}
		next, err := in.on(base)
		if rebased = base != d; err == nil && rebased {
			if there, _ := in.on(d); there != nil && there.Hash() == d.Hash() { // as when a form is sent twice
				return made{d, ""}, nil
			}
			if next, err = version.Merge(base, next, d); fault.Is(err, fault.Conflict) {
				return made{}, s.collision(ctx, r, n, base, d, err)
			}
		}
		if err != nil {
			return made{}, err
		}
		if gone := doc.Dropped(d, next); len(gone) > 0 && !in.Dropped {
			names := make([]string, len(gone))
			for i, g := range gone {
				names[i] = g.ID
			}
			return made{}, fault.New(fault.Conflict, "content leaves out %d blocks that the document shows in place (%s): keep them, as ![title](cairn:block/ID), or send allow_dropped_children: true",
				len(gone), strings.Join(names[:min(len(names), 5)], ", ")).With("dropped_children", gone)
		}
		return made{next, "Rebuilt " + r.label()}, nil
	})
	if err != nil {
		return written{}, err
	}
	out := wrote(r, before, after, in.DryRun)
	out.Rebased = rebased
	return out, nil
}

// fresh refuses a base_hash that isn't the newest version's.
func (s *Service) fresh(ctx context.Context, r *row, d *doc.Doc, hash string) error {
	if hash == r.Hash {
		return nil
	}
	n, base, err := s.base(ctx, r, hash)
	if err != nil {
		return err
	}
	return s.stale(ctx, r, n, base, d)
}

type titleIn struct {
	BlockID  string  `json:"block_id" rule:"required,uuid,max=64"`
	Title    *string `json:"title" jsonschema:"empty for none" rule:"required,max=300"`
	BaseHash string  `json:"base_hash" jsonschema:"the hash of the version you read" rule:"required,min=1,max=64"`
	DryRun   bool    `json:"dry_run" jsonschema:"tell what would happen, write nothing"`
}

func (s *Service) updateTitle(ctx context.Context, in titleIn) (written, error) {
	r, before, after, err := s.rewrite(ctx, in.BlockID, in.DryRun, func(r *row, d *doc.Doc) (made, error) {
		if err := s.fresh(ctx, r, d, in.BaseHash); err != nil {
			return made{}, err
		}
		next, err := d.WithTitle(*in.Title)
		return made{next, "Renamed " + r.label()}, err
	})
	if err != nil {
		return written{}, err
	}
	return wrote(r, before, after, in.DryRun), nil
}

type createIn struct {
	Type        string          `json:"type" jsonschema:"default note" rule:"enum=note|tag|collection"`
	Title       string          `json:"title" rule:"max=300"`
	Content     json.RawMessage `json:"content" jsonschema:"Markdown, or an array of nodes (get_document_formatting)"`
	Tags        []string        `json:"tags" jsonschema:"ids or titles of tags and collections that are there" rule:"max=50"`
	Pinned      bool            `json:"pinned"`
	ExternalRef string          `json:"external_ref" jsonschema:"your own key; the same one again gives the existing block" rule:"min=1,max=300"`
	Heap        string          `json:"heap" jsonschema:"id or name" rule:"max=300"`
}

func (s *Service) create(ctx context.Context, in createIn) (One, error) {
	c := who.From(ctx)
	if in.ExternalRef != "" {
		r, err := s.byRef(ctx, in.ExternalRef)
		if err != nil {
			return One{}, err
		}
		if r != nil {
			return s.answer(ctx, r, "existing")
		}
	}
	h, err := c.Target(in.Heap, nil)
	if err != nil {
		return One{}, err
	}
	nodes, err := draft.Read(in.Content)
	if err != nil {
		return One{}, err
	}
	d, err := doc.New(in.Title, nodes, db.NewID)
	if err == nil {
		err = checkSize(d)
	}
	if err != nil {
		return One{}, err
	}
	r := &row{ID: db.NewID(), Heap: h.ID, Type: note, Title: d.Title(), Hash: d.Hash(), ContentHash: d.ContentHash(), Version: 1, Actor: c.Actor}
	if in.Type != "" {
		r.Type = in.Type
	}
	if in.Pinned {
		r.Pinned = 1
	}
	if in.ExternalRef != "" {
		r.ExternalRef = &in.ExternalRef
	}
	made, err := s.store(ctx, r, d, h, in.Tags)
	if err != nil {
		return One{}, err
	}
	if !made { // another write made the ref in between
		if r, err = s.byRef(ctx, in.ExternalRef); err != nil || r == nil {
			return One{}, errOr(err, errBusy)
		}
		return s.answer(ctx, r, "existing")
	}
	s.docs.Docs.Put(r.Hash, d)
	return s.answer(ctx, r, "created")
}

func errOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// parents finds the tags that a new block is to have.
func parents(in past.Reader, h who.Heap, names []string) ([]string, error) {
	ids := []string{}
	for _, name := range names {
		if strings.TrimSpace(name) == "" || utf8.RuneCountInString(name) > 300 {
			return nil, fault.Bad("tags", "must be ids or titles of tags, of 1 to 300 characters")
		}
		t, err := tagNamed(in, []who.Heap{h}, "tags", name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, t.ID) {
			ids = append(ids, t.ID)
		}
	}
	slices.Sort(ids)
	return ids, nil
}
