package file

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"cairn/internal/blob"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/picture"
	"cairn/internal/who"
)

type uploadIn struct {
	Name string `json:"name" jsonschema:"of the file, kept as it is" rule:"required,min=1,max=300"`
	Heap string `json:"heap" jsonschema:"id or name" rule:"max=300"`
}

type uploadOut struct {
	ID     string `json:"id"`
	Result string `json:"result"` // created
	File   File   `json:"file"`
}

func (s *Service) upload(ctx context.Context, in uploadIn) (uploadOut, error) {
	c := who.From(ctx)
	h, err := c.Target(in.Heap, nil)
	if err != nil {
		return uploadOut{}, err
	}
	if strings.ContainsRune(in.Name, 0) {
		return uploadOut{}, fault.Bad("name", "holds a NUL character, which no name can have")
	}
	got, err := s.inbox.Receive(ctx, op.StreamFrom(ctx).In, s.most)
	if big := new(blob.TooLarge); errors.As(err, &big) {
		return uploadOut{}, op.TooManyBytes(s.most)
	}
	if err != nil {
		return uploadOut{}, err
	}
	defer got.Close() //nolint:errcheck // what is left in the inbox is swept
	b, err := look(got)
	if err != nil {
		return uploadOut{}, err
	}
	id := db.NewID()
	for !got.Taken() { // a second time where the same bytes were there and were given up just now
		if err := s.keep(ctx, b, got); err != nil {
			return uploadOut{}, err
		}
		kept, err := s.add(ctx, id, h, in.Name, b)
		if err != nil {
			return uploadOut{}, err
		}
		if kept {
			r, err := s.load(ctx, id)
			if err != nil {
				return uploadOut{}, err
			}
			return uploadOut{ID: id, Result: "created", File: s.shown(r)}, nil
		}
	}
	return uploadOut{}, fault.New(fault.Unavailable, "the same bytes are being deleted right now; try again in a moment").With("reason", "unavailable")
}

// bytesOf is what is known of bytes.
type bytesOf struct {
	sha256, object, mediaType string
	size                      int64
	width, height             *int
	thumbnails                string
}

// look tells what bytes are, by themselves.
func look(in *blob.Incoming) (*bytesOf, error) {
	b := &bytesOf{sha256: in.SHA256, size: in.Size, thumbnails: none}
	b.mediaType = mediaType(in.Head)
	r, err := in.Reader()
	if err != nil {
		return nil, err
	}
	if info, ok := picture.Look(r, b.mediaType); ok {
		b.width, b.height, b.thumbnails = &info.Width, &info.Height, wanted
	}
	return b, nil
}

// mediaType tells the type of bytes by how they begin. A picture of a special form, such as an animated PNG, is one of its usual type.
func mediaType(head []byte) string {
	m := mimetype.Detect(head)
	for p := m; p != nil; p = p.Parent() {
		if picture.Is(p.String()) {
			return p.String()
		}
	}
	return m.String()
}

// keep sees to it that the store has the bytes, and sets the name that they have there. Whatever happens next, the sweep comes for
// them only after a time.
func (s *Service) keep(ctx context.Context, b *bytesOf, got *blob.Incoming) error {
	var unused *int64
	err := s.db.One(ctx, `SELECT object, unused_at FROM blob WHERE sha256 = $1`, []any{b.sha256}, &b.object, &unused)
	if err == nil && unused == nil {
		there, err := s.store.Open(ctx, b.object)
		if err == nil {
			return there.Close()
		}
		if !errors.Is(err, blob.ErrMissing) {
			return err
		}
	} else if err != nil && !db.IsNone(err) {
		return err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		object := b.sha256 + "-" + strconv.FormatInt(tx.Now, 36) // never one that was deleted
		return tx.One(`INSERT INTO blob (sha256, object, size, media_type, width, height, thumbnails, unused_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)
			ON CONFLICT (sha256) DO UPDATE SET unused_at = CASE WHEN blob.unused_at IS NULL THEN NULL ELSE excluded.unused_at END RETURNING object`,
			[]any{b.sha256, object, b.size, b.mediaType, b.width, b.height, b.thumbnails, tx.Now}, &b.object)
	})
	if err != nil {
		return err
	}
	return s.store.Put(ctx, b.object, got)
}

// add stores a file whose bytes are in the store; false where they were given up meanwhile.
func (s *Service) add(ctx context.Context, id string, h who.Heap, name string, b *bytesOf) (kept bool, err error) {
	typ := typeFile
	if b.width != nil {
		typ = typeImage
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(`UPDATE blob SET unused_at = NULL WHERE sha256 = $1 AND object = $2`, b.sha256, b.object)
		if kept = n > 0; err != nil || !kept {
			return err
		}
		if err := s.block(ctx, tx, id, h.ID, typ, name); err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO file (id, sha256, name, actor, created_at) VALUES ($1, $2, $3, $4, $5)`, id, b.sha256, name, who.From(ctx).Actor, tx.Now)
		return err
	})
	return kept, err
}
