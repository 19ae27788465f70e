package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// folder is a store in a folder of this machine, or in one that several machines share. Names lie in folders by their first two
// characters, so that none grows too long.
type folder struct{ dir string }

// NewFolder makes a store in a folder, which is made when it is needed. The inbox must be on the same file system.
func NewFolder(dir string) Store { return folder{dir} }

func (s folder) path(name string) (string, error) {
	if len(name) < 3 || strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.')
	}) || strings.HasPrefix(name, ".") {
		return "", fmt.Errorf("%q is no name of a blob", name)
	}
	return filepath.Join(s.dir, name[:2], name), nil
}

// Put moves the received file to its name. It was synced when it was received; here its entry in the folder is.
func (s folder) Put(_ context.Context, name string, in *Incoming) error {
	path, err := s.path(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return full(err)
	}
	if err := in.file.Close(); err != nil { // Windows moves no open file
		return full(err)
	}
	if err := os.Rename(in.path, path); err != nil {
		return full(errors.Join(err, os.Remove(in.path)))
	}
	in.file = nil
	return errors.Join(syncDir(filepath.Dir(path)), syncDir(s.dir))
}

// syncDir makes the entries of a folder durable. Windows has no such call, and needs none.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (s folder) Open(_ context.Context, name string) (io.ReadSeekCloser, error) {
	path, err := s.path(name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrMissing
	}
	return f, err
}

func (s folder) Delete(_ context.Context, name string) error {
	path, err := s.path(name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (s folder) Check(ctx context.Context) error {
	return probe(ctx, s, NewInbox(filepath.Join(s.dir, Inboxes)))
}

// Inboxes is the folder of a store's folder where its inbox is.
const Inboxes = "incoming"
