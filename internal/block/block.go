// Package block keeps blocks: notes, tags and collections of a heap, each with a title, a document, properties and relations
// to others. Documents are changed under a hash and every version of them stays. Package doc and those beside it hold what can
// be said of a document without a database; the rules about who may do what are here, in the operations.
package block

import (
	"context"
	"strings"

	"cairn/internal/block/draft"
	"cairn/internal/block/inmem"
	"cairn/internal/block/past"
	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/doc"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/search"
	"cairn/internal/who"
)

// kind is what blocks are in the change record and in search; area the grantable area that they belong to; set the set of the
// operations off the default list.
const (
	kind = "block"
	area = "documents"
	set  = "record"
)

// Types of blocks. Those of files are made by an upload.
const (
	note       = "note"
	tag        = "tag"
	collection = "collection"
)

// cacheBytes bounds the documents kept in memory.
const cacheBytes = 64 << 20

// finder is what searching blocks needs of search.
type finder interface {
	Find(ctx context.Context, heaps, kinds []string, query string, limit int) (search.Result, error)
	FindAmong(ctx context.Context, heaps, kinds, things []string, query string, limit int) (search.Result, error)
}

// Service is the blocks of one server.
type Service struct {
	// Purged are called in the write that deletes a block for good, before its rows go: who keeps something of it takes that away.
	Purged []func(ctx context.Context, tx *db.Tx, heap, id string) error

	db     *db.DB
	find   finder
	public func() string // the server's address, for links
	docs   past.Store
	turns  *inmem.Turns
}

// New makes the service.
func New(d *db.DB, find finder, public func() string) *Service {
	return &Service{db: d, find: find, public: public, docs: past.Store{Docs: inmem.NewCache(cacheBytes)}, turns: &inmem.Turns{}}
}

// row is a block as stored, without its document.
type row struct {
	ID, Heap, Type, Title, Hash, ContentHash string
	Version, Pinned                          int64
	ExternalRef                              *string
	Actor                                    string
	TrashedAt                                *int64
	CreatedAt, UpdatedAt                     int64
}

const columns = `b.id, b.heap, b.type, b.title, b.hash, b.content_hash, b.version, b.pinned, b.external_ref, b.actor, b.trashed_at, b.created_at, b.updated_at`

func (r *row) dest() []any {
	return []any{&r.ID, &r.Heap, &r.Type, &r.Title, &r.Hash, &r.ContentHash, &r.Version, &r.Pinned, &r.ExternalRef, &r.Actor, &r.TrashedAt, &r.CreatedAt, &r.UpdatedAt}
}

// querier is the part of db.DB and db.Tx that reading one row needs.
type querier = func(q string, args []any, dest ...any) error

func (s *Service) one(ctx context.Context) querier {
	return func(q string, args []any, dest ...any) error { return s.db.One(ctx, q, args, dest...) }
}

// load finds a block among the heaps granted, also in the trash. field is the argument that names it; end ends the SELECT.
func load(ctx context.Context, one querier, field, id, end string) (*row, error) {
	r := &row{}
	err := one(`SELECT `+columns+` FROM block b WHERE b.id = $1`+end, []any{strings.ToLower(id)}, r.dest()...)
	if _, granted := who.From(ctx).ByID(r.Heap); db.IsNone(err) || err == nil && !granted {
		e := fault.New(fault.NotFound, "there is no block with the id %s", id)
		e.Field = field
		return nil, e
	}
	return r, err
}

// writable refuses what the caller may not change, or what is in the trash.
func (r *row) writable(c *who.Caller, trashedToo bool) error {
	if h, _ := c.ByID(r.Heap); !h.Writable() {
		return fault.New(fault.Conflict, "the heap %s is shared with you to read only", h.Name)
	}
	if r.TrashedAt != nil && !trashedToo {
		return fault.New(fault.Conflict, "the block is in the trash: restore_block first").With("id", r.ID).With("state", change.Trashed)
	}
	return nil
}

// label names a block for people.
func (r *row) label() string {
	if strings.TrimSpace(r.Title) == "" {
		return r.Type + " without a title"
	}
	return r.Type + " " + change.Brief(r.Title)
}

// searchable is what of a block can be found.
func searchable(r *row, d *doc.Doc) search.Doc {
	return search.Doc{Heap: r.Heap, Thing: r.ID, Kind: kind, Title: r.Title, Body: d.Plain()}
}

// checkSize holds a document to the length that blocks may have; doc has further limits.
func checkSize(d *doc.Doc) error {
	if d.Chars() <= draft.MaxCharacters {
		return nil
	}
	return fault.Bad("content", "makes a document of %d characters; at most %d are allowed: split it into several blocks", d.Chars(), draft.MaxCharacters)
}

// Ref names another block in an answer.
type Ref struct {
	ID    string `json:"id"`
	Type  string `json:"type"`
	Title string `json:"title"`
}

// Block is a block as callers see it, without its document.
type Block struct {
	ID          string     `json:"id"`
	Heap        string     `json:"heap"`
	Type        string     `json:"type"`
	Title       string     `json:"title"`
	State       string     `json:"state"` // live or trashed
	Pinned      bool       `json:"pinned"`
	Tags        []Ref      `json:"tags"`
	Properties  []Property `json:"properties"`
	Hash        string     `json:"hash"`
	ContentHash string     `json:"content_hash"`
	Version     int64      `json:"version"`
	ExternalRef *string    `json:"external_ref"`
	CreatedAt   string     `json:"created_at"`
	UpdatedAt   string     `json:"updated_at"`
}

// whole gives a block with its tags and properties.
func (s *Service) whole(ctx context.Context, r *row) (Block, error) {
	b := Block{ID: r.ID, Heap: r.Heap, Type: r.Type, Title: r.Title, State: change.StateOf(r.TrashedAt), Pinned: r.Pinned == 1, Tags: []Ref{}, Hash: r.Hash,
		ContentHash: r.ContentHash, Version: r.Version, ExternalRef: r.ExternalRef, CreatedAt: op.Stamp(r.CreatedAt), UpdatedAt: op.Stamp(r.UpdatedAt)}
	tags, err := s.tagsOf(ctx, []string{r.ID})
	if err != nil {
		return b, err
	}
	b.Tags = append(b.Tags, tags[r.ID]...)
	b.Properties, err = properties(s.rows(ctx), r.ID)
	return b, err
}

// One is an answer about one block.
type One struct {
	ID          string  `json:"id"`
	Result      string  `json:"result"` // created, existing (nothing was changed) or updated
	ExternalRef *string `json:"external_ref"`
	State       string  `json:"state"`
	Hash        string  `json:"hash"`
	Block       Block   `json:"block"`
}

func (s *Service) answer(ctx context.Context, r *row, result string) (One, error) {
	b, err := s.whole(ctx, r)
	return One{ID: r.ID, Result: result, ExternalRef: r.ExternalRef, State: b.State, Hash: r.Hash, Block: b}, err
}
