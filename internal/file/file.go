// Package file keeps files: each is a block of type file or image whose bytes lie in a store of blobs, once for all files that have
// the same. Its operations hold every rule about who may put bytes in and get them out; the bytes go beside the arguments and the
// answer (op.Stream), so that only surfaces that have bytes can call them. What the bytes are is told by themselves, never by a name
// or a header.
package file

import (
	"context"
	"strings"
	"time"

	"cairn/internal/blob"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/picture"
	"cairn/internal/who"
)

// area is the grantable area that files belong to.
const area = "documents"

// Types of the blocks that files are.
const (
	typeFile  = "file"
	typeImage = "image"
)

// Sizes are the thumbnails of a picture by name: pixels of the longer side, at most.
var Sizes = []struct {
	Name    string
	Longest int
}{{"s", 160}, {"m", 480}, {"l", 1280}}

// Whether the bytes have thumbnails.
const (
	wanted = "wanted" // not made yet
	made   = "made"
	none   = "none" // no picture, or one that can't be made smaller
)

// Service is the files of one server.
type Service struct {
	db     *db.DB
	store  blob.Store
	inbox  *blob.Inbox
	most   int64 // bytes of one file
	public func() string
	block  AddBlock
	slot   chan struct{} // held while a picture is decoded: one at a time
}

// AddBlock stores the block of a file as part of a write.
type AddBlock func(ctx context.Context, tx *db.Tx, id, heap, typ, title string) error

// New makes the service. most is how many bytes a file may have.
func New(d *db.DB, store blob.Store, inbox *blob.Inbox, most int64, public func() string, block AddBlock) *Service {
	return &Service{db: d, store: store, inbox: inbox, most: most, public: public, block: block, slot: make(chan struct{}, 1)}
}

// Ops are the operations of this package.
func (s *Service) Ops() []*op.Op {
	return []*op.Op{
		op.Define(op.Op{Name: "list_files", Title: "List files", Area: area, Effect: op.Read,
			Doc: "Files and images with their metadata and thumbnails: of a block (itself if it is one, and those that its document shows) or of a heap, newest-updated first. The addresses open for who is signed in there or sends a token; a document shows a file as cairn:file/ID."}, s.list),
		op.Define(op.Op{Name: "upload_file", Title: "Upload file", Area: area, Effect: op.Write, Bytes: true, Timeout: 6 * time.Hour, Example: `{"name":"plan.pdf"}`,
			Doc: "Store a file: a new block of type file, or image where its bytes are one. delete_block puts it into the trash."}, s.upload),
		op.Define(op.Op{Name: "read_file", Title: "Read file", Area: area, Effect: op.Read, Bytes: true, Timeout: time.Minute, Example: `{"file_id":"01890a5d-ac96-774b-bcce-b302099a8057"}`,
			Doc: "The bytes of a file, or of a thumbnail, also from the trash."}, s.read),
	}
}

// row is a file as stored, with its block and its bytes.
type row struct {
	ID, Heap, Name, Actor     string
	CreatedAt, UpdatedAt      int64
	TrashedAt                 *int64
	SHA256, Object, MediaType string
	Size                      int64
	Width, Height             *int
	Thumbnails                string
}

const columns = `f.id, k.heap, f.name, f.actor, f.created_at, k.updated_at, k.trashed_at, b.sha256, b.object, b.media_type, b.size, b.width, b.height, b.thumbnails`

const (
	bytesOfBlock = `JOIN file f ON f.id = k.id JOIN blob b ON b.sha256 = f.sha256 `
	from         = ` FROM block k ` + bytesOfBlock
)

func (r *row) dest() []any {
	return []any{&r.ID, &r.Heap, &r.Name, &r.Actor, &r.CreatedAt, &r.UpdatedAt, &r.TrashedAt, &r.SHA256, &r.Object, &r.MediaType, &r.Size, &r.Width, &r.Height, &r.Thumbnails}
}

// load finds a file among the heaps granted, also in the trash.
func (s *Service) load(ctx context.Context, id string) (*row, error) {
	r := &row{}
	err := s.db.One(ctx, `SELECT `+columns+from+`WHERE k.id = $1`, []any{strings.ToLower(id)}, r.dest()...)
	if _, granted := who.From(ctx).ByID(r.Heap); db.IsNone(err) || err == nil && !granted {
		e := fault.New(fault.NotFound, "there is no file with the id %s: list_files shows those there are", id)
		e.Field = "file_id"
		return nil, e
	}
	return r, err
}

// File is a file as callers see it.
type File struct {
	ID         string      `json:"id"`
	Heap       string      `json:"heap"`
	Name       string      `json:"name"`
	MediaType  string      `json:"media_type"` // what the bytes are
	Size       int64       `json:"size"`       // bytes
	SHA256     string      `json:"sha256"`
	Width      *int        `json:"width"` // pixels, of a picture as it is shown
	Height     *int        `json:"height"`
	State      string      `json:"state"` // live or trashed
	By         string      `json:"by"`    // who uploaded it
	CreatedAt  string      `json:"created_at"`
	URL        string      `json:"url"`
	Thumbnails []Thumbnail `json:"thumbnails"`
}

// Thumbnail is a small picture of a file.
type Thumbnail struct {
	Size   string `json:"size"` // s, m or l
	Width  int    `json:"width"`
	Height int    `json:"height"`
	URL    string `json:"url"`
}

func (s *Service) shown(r *row) File {
	f := File{ID: r.ID, Heap: r.Heap, Name: r.Name, MediaType: r.MediaType, Size: r.Size, SHA256: r.SHA256, Width: r.Width, Height: r.Height, State: "live", By: r.Actor,
		CreatedAt: op.Stamp(r.CreatedAt), URL: s.public() + "/files/" + r.ID, Thumbnails: []Thumbnail{}}
	if r.TrashedAt != nil {
		f.State = "trashed"
	}
	if r.Thumbnails != none && r.Width != nil && r.Height != nil {
		for _, z := range Sizes {
			w, h := picture.Fit(*r.Width, *r.Height, z.Longest)
			f.Thumbnails = append(f.Thumbnails, Thumbnail{z.Name, w, h, f.URL + "/thumbnail/" + z.Name})
		}
	}
	return f
}
