package file

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime/debug"

	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/picture"
)

type readIn struct {
	FileID    string `json:"file_id" rule:"required,uuid,max=64"`
	Thumbnail string `json:"thumbnail" rule:"enum=s|m|l"`
}

// readOut says what the bytes are that go beside it.
type readOut struct {
	Name      string `json:"name"`
	SafeName  string `json:"safe_name"` // to save it under
	MediaType string `json:"media_type"`
	Size      int64  `json:"size"`
	ETag      string `json:"etag"`   // the same for the same bytes, without quotes
	Inline    bool   `json:"inline"` // a browser may show it; else it is only to be saved
	At        string `json:"at"`     // when it was uploaded
}

func (s *Service) read(ctx context.Context, in readIn) (readOut, error) {
	r, err := s.load(ctx, in.FileID)
	if err != nil {
		return readOut{}, err
	}
	out := readOut{Name: r.Name, SafeName: SafeName(r.Name), MediaType: r.MediaType, Size: r.Size, ETag: r.SHA256, Inline: inert(r.MediaType), At: op.Stamp(r.CreatedAt)}
	object := r.Object
	if in.Thumbnail != "" {
		if object, err = s.thumbnail(ctx, r, in.Thumbnail, &out); err != nil {
			return readOut{}, err
		}
	}
	stream := op.StreamFrom(ctx)
	stream.Out, err = s.store.Open(stream.Context(), object)
	return out, err
}

// inert tells whether a browser may show bytes of a type in place: pictures that hold no script, and plain text.
func inert(mediaType string) bool {
	return picture.Is(mediaType) || mediaType == "text/plain; charset=utf-8"
}

// thumbnail gives the object of a file's thumbnail, which is made now where it wasn't yet.
func (s *Service) thumbnail(ctx context.Context, r *row, size string, out *readOut) (object string, err error) {
	if r.Thumbnails == wanted {
		if err := s.make(ctx, r.SHA256); err != nil {
			return "", err
		}
	}
	err = s.db.One(ctx, `SELECT object, media_type, bytes FROM thumbnail WHERE sha256 = $1 AND size = $2`, []any{r.SHA256, size}, &object, &out.MediaType, &out.Size)
	if db.IsNone(err) {
		return "", fault.New(fault.NotFound, "the file %s has no thumbnails: it is no picture of a kind that can be made smaller", r.ID)
	}
	out.ETag, out.Inline = r.SHA256+"-"+size, true
	return object, err
}

// failing remembers an error of the store while a picture is decoded, so that it isn't taken for one of the picture.
type failing struct {
	io.ReadSeeker
	err error
}

func (f *failing) Read(b []byte) (int, error) {
	n, err := f.ReadSeeker.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

// largePixels is from how many pixels on what a picture took in memory is given back at once: with a small live heap the collector
// would come for it much later.
const largePixels = 4 << 20

// make makes the thumbnails of bytes, one picture at a time in a process. A picture that can't be made smaller is remembered as one.
func (s *Service) make(ctx context.Context, sha256 string) error {
	select {
	case s.slot <- struct{}{}:
		defer func() { <-s.slot }()
	case <-ctx.Done():
		return ctx.Err()
	}
	var object, mediaType, state string
	var pixels int64
	err := s.db.One(ctx, `SELECT object, media_type, thumbnails, COALESCE(width * height, 0) FROM blob WHERE sha256 = $1`, []any{sha256}, &object, &mediaType, &state, &pixels)
	if db.IsNone(err) || err == nil && state != wanted { // somebody else has made them
		return nil
	}
	if err != nil {
		return err
	}
	src, err := s.store.Open(ctx, object)
	if err != nil {
		return err
	}
	defer src.Close() //nolint:errcheck // it was read
	longest := make([]int, len(Sizes))
	for i, z := range Sizes {
		longest[i] = z.Longest
	}
	if pixels > largePixels {
		defer debug.FreeOSMemory()
	}
	watched := &failing{ReadSeeker: src}
	small, err := picture.Shrink(ctx, watched, mediaType, longest...)
	if watched.err != nil || err != nil && ctx.Err() != nil {
		return errors.Join(err, watched.err)
	}
	if err != nil {
		return s.db.Write(ctx, func(tx *db.Tx) error {
			_, err := tx.Exec(`UPDATE blob SET thumbnails = 'none' WHERE sha256 = $1 AND object = $2`, sha256, object)
			return err
		})
	}
	return s.putThumbnails(ctx, sha256, object, small)
}

// putThumbnails stores thumbnails, and forgets them again where the bytes were given up meanwhile.
func (s *Service) putThumbnails(ctx context.Context, sha256, object string, small []picture.Small) error {
	for _, p := range small {
		in, err := s.inbox.Receive(ctx, bytes.NewReader(p.Bytes), int64(len(p.Bytes)))
		if err == nil {
			err = s.store.Put(ctx, object+"."+sizeOf(p), in)
			_ = in.Close()
		}
		if err != nil {
			return err
		}
	}
	return s.db.Write(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(`UPDATE blob SET thumbnails = 'made' WHERE sha256 = $1 AND object = $2`, sha256, object)
		if err != nil {
			return err
		}
		if n == 0 {
			return gone(tx, object, true)
		}
		for _, p := range small {
			z := sizeOf(p)
			if _, err := tx.Exec(`INSERT INTO thumbnail (sha256, size, object, media_type, bytes) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (sha256, size) DO NOTHING`,
				sha256, z, object+"."+z, p.MediaType, len(p.Bytes)); err != nil {
				return err
			}
		}
		return nil
	})
}

func sizeOf(p picture.Small) string {
	for _, z := range Sizes {
		if z.Longest == p.Longest {
			return z.Name
		}
	}
	return ""
}
