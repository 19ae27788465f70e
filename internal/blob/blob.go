// Package blob keeps bytes under names: in a folder, or in a bucket that speaks S3. It knows nothing of what they are, of who
// may see them or of whether anybody still needs them. Bytes pass through it as streams: nothing is ever whole in memory.
package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"cairn/internal/fault"
)

// Store keeps bytes under names. A name is never given to other bytes: so it may be put twice, and deleted though it is gone.
type Store interface {
	// Put stores what was received and uses it up. When it returns the bytes are durable.
	Put(ctx context.Context, name string, in *Incoming) error
	// Open gives the bytes; reading them ends with ctx. ErrMissing says that there are none of that name.
	Open(ctx context.Context, name string) (io.ReadSeekCloser, error)
	Delete(ctx context.Context, name string) error
	// Check tells whether bytes can be stored, read and deleted; the error is for the operator.
	Check(ctx context.Context) error
}

// ErrMissing says that a store has nothing under a name.
var ErrMissing = errors.New("the store has no such object")

// Inbox is the folder where bytes lie until all of them are there and it is known what they are called.
type Inbox struct {
	dir    string
	create func(dir string) (*os.File, error) // a test's disk that is full
}

// NewInbox makes an inbox; its folder is made when it is needed.
func NewInbox(dir string) *Inbox {
	return &Inbox{dir, func(dir string) (*os.File, error) { return os.CreateTemp(dir, "in-*") }}
}

// Incoming is bytes that were received whole. Close deletes them, unless a store has taken them.
type Incoming struct {
	SHA256 string // in hex
	Size   int64
	Head   []byte // the first bytes, at most 3,072 of them: what tells their type
	file   *os.File
	path   string
}

// headBytes is what the sniffing of types reads.
const headBytes = 3072

// TooLarge says that more bytes came than may.
type TooLarge struct{ Most int64 }

// Error says how many there may be.
func (e *TooLarge) Error() string { return fmt.Sprintf("more than %d bytes", e.Most) }

// Receive reads r to its end, most bytes at most, into the inbox. What can't be received whole leaves nothing. An error of r's own
// comes back as it is, a disk that is full as a fault.
func (b *Inbox) Receive(ctx context.Context, r io.Reader, most int64) (in *Incoming, err error) {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return nil, full(err)
	}
	f, err := b.create(b.dir)
	if err != nil {
		return nil, full(err)
	}
	in = &Incoming{file: f, path: f.Name()}
	defer func() {
		if err != nil {
			_ = in.Close()
			in = nil
		}
	}()
	w := &receiver{ctx: ctx, in: in, sum: sha256.New(), most: most}
	if _, err = io.CopyBuffer(w, onlyReader{r}, make([]byte, 256<<10)); err != nil {
		return in, full(err)
	}
	if err = f.Sync(); err != nil {
		return in, full(err)
	}
	in.SHA256 = hex.EncodeToString(w.sum.Sum(nil))
	return in, nil
}

// onlyReader hides that a file could copy itself: then no buffer would be used, and no byte seen.
type onlyReader struct{ io.Reader }

type receiver struct {
	ctx  context.Context
	in   *Incoming
	sum  hash.Hash
	most int64
}

func (w *receiver) Write(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	if w.in.Size+int64(len(b)) > w.most {
		return 0, &TooLarge{w.most}
	}
	n, err := w.in.file.Write(b)
	w.in.Size += int64(n)
	if more := headBytes - len(w.in.Head); more > 0 {
		w.in.Head = append(w.in.Head, b[:min(more, n)]...)
	}
	w.sum.Write(b[:n])
	return n, err
}

// Reader gives the bytes from their beginning. It is good until they are closed or put.
func (in *Incoming) Reader() (io.ReadSeeker, error) {
	_, err := in.file.Seek(0, io.SeekStart)
	return in.file, err
}

// Taken tells whether a store has taken the bytes, or they were closed.
func (in *Incoming) Taken() bool { return in.file == nil }

// Close deletes the bytes, unless a store has taken them.
func (in *Incoming) Close() error {
	if in.file == nil {
		return nil
	}
	err := in.file.Close()
	if in.path != "" {
		err = errors.Join(err, os.Remove(in.path))
	}
	in.file = nil
	return err
}

// Sweep deletes what a process that died has left in the inbox: all that nobody wrote to for so long.
func (b *Inbox) Sweep(age time.Duration) error {
	left, err := os.ReadDir(b.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range left {
		info, ierr := e.Info()
		if ierr == nil && time.Since(info.ModTime()) > age {
			err = errors.Join(err, os.Remove(filepath.Join(b.dir, e.Name())))
		}
	}
	return err
}

// full words an error where the disk has no room.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return noRoom(err)
	}
	return err
}

func noRoom(err error) error {
	f := fault.Wrap(fault.Unavailable, err, "the server has no room for the file: free some, or ask who runs it").With("reason", "no_room")
	f.Status = http.StatusInsufficientStorage
	return f
}
