package blob_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/blob"
	"cairn/internal/blob/s3test"
	"cairn/internal/fault"
)

// each runs a test on every kind of store.
func each(t *testing.T, f func(t *testing.T, s blob.Store, b *blob.Inbox)) {
	t.Run("folder", func(t *testing.T) {
		dir := t.TempDir()
		f(t, blob.NewFolder(dir), blob.NewInbox(filepath.Join(dir, blob.Inboxes)))
	})
	t.Run("bucket", func(t *testing.T) {
		b := blob.NewInbox(filepath.Join(t.TempDir(), "in"))
		s, err := blob.NewBucket(s3test.Start(t), b)
		if err != nil {
			t.Fatal(err)
		}
		f(t, s, b)
	})
}

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func put(t *testing.T, s blob.Store, b *blob.Inbox, name string, what []byte) {
	t.Helper()
	in, err := b.Receive(context.Background(), bytes.NewReader(what), int64(len(what)))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(what)
	if in.Size != int64(len(what)) || in.SHA256 != hex.EncodeToString(sum[:]) || !bytes.Equal(in.Head, what[:min(len(what), 3072)]) {
		t.Fatalf("received %d bytes, %s", in.Size, in.SHA256)
	}
	if err := s.Put(context.Background(), name, in); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Errorf("closing what was put: %v", err)
	}
}

func TestWhatIsPutIsGot(t *testing.T) {
	each(t, func(t *testing.T, s blob.Store, b *blob.Inbox) {
		ctx := context.Background()
		for name, n := range map[string]int{"none": 0, "one": 1, "some": 5000, "parts": 17 << 20} { // a bucket takes the last in two
			what := noise(n)
			put(t, s, b, name, what)
			put(t, s, b, name, what) // twice is as good as once
			r, err := s.Open(ctx, name)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if size, err := r.Seek(0, io.SeekEnd); err != nil || size != int64(n) {
				t.Errorf("%s: size %d, %v", name, size, err)
			}
			if n > 100 {
				if _, err := r.Seek(100, io.SeekStart); err != nil {
					t.Error(err)
				}
				part := make([]byte, 50)
				if _, err := io.ReadFull(r, part); err != nil || !bytes.Equal(part, what[100:150]) {
					t.Errorf("%s: the part from byte 100 is another: %v", name, err)
				}
			}
			if _, err := r.Seek(0, io.SeekStart); err != nil {
				t.Error(err)
			}
			got, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(got, what) {
				t.Errorf("%s: %d bytes came back, %v", name, len(got), err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			for range 2 { // what is gone can be deleted again
				if err := s.Delete(ctx, name); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if _, err := s.Open(ctx, name); !errors.Is(err, blob.ErrMissing) {
				t.Errorf("%s, deleted: %v", name, err)
			}
		}
		if err := s.Check(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestManyAtOnce(t *testing.T) {
	each(t, func(t *testing.T, s blob.Store, b *blob.Inbox) {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { put(t, s, b, "same", noise(100_000)) })
		}
		all.Wait()
		r, err := s.Open(context.Background(), "same")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, noise(100_000)) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}

func left(t *testing.T, dir string) int {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return len(list)
}

type breaking struct{ n int }

func (b *breaking) Read(p []byte) (int, error) {
	if b.n--; b.n < 0 {
		return 0, io.ErrUnexpectedEOF
	}
	return len(p), nil
}

func TestWhatIsNotReceivedWholeLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "in")
	b := blob.NewInbox(dir)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		r    io.Reader
		most int64
		want func(error) bool
	}{
		"broken off": {context.Background(), &breaking{3}, 1 << 30, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		"a byte too many": {context.Background(), bytes.NewReader(noise(1001)), 1000, func(err error) bool {
			var big *blob.TooLarge
			return errors.As(err, &big) && big.Most == 1000
		}},
		"without end": {context.Background(), &breaking{1 << 40}, 10 << 20, func(err error) bool { return errors.As(err, new(*blob.TooLarge)) }},
		"given up":    {ctx, bytes.NewReader(noise(1001)), 2000, func(err error) bool { return errors.Is(err, context.Canceled) }},
	} {
		if _, err := b.Receive(c.ctx, c.r, c.most); err == nil || !c.want(err) {
			t.Errorf("%s: %v", name, err)
		}
		if n := left(t, dir); n != 0 {
			t.Errorf("%s: %d files are left", name, n)
		}
	}
	in, err := b.Receive(context.Background(), bytes.NewReader(noise(1000)), 1000)
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil || left(t, dir) != 0 {
		t.Errorf("closed: %v, %d files are left", err, left(t, dir))
	}
}

func TestFullDiskIsSaid(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("/dev/full is Linux's")
	}
	dir := t.TempDir()
	b, path := blob.NewInbox(dir), filepath.Join(dir, "in-full")
	blob.Create(b, func(string) (*os.File, error) {
		if err := os.Symlink("/dev/full", path); err != nil { // what is given up is deleted by its name: never the device
			return nil, err
		}
		return os.OpenFile(path, os.O_RDWR, 0)
	})
	_, err := b.Receive(context.Background(), bytes.NewReader(noise(1<<20)), 1<<20)
	if f := fault.From(err); f.Kind != fault.Unavailable || f.API() != http.StatusInsufficientStorage || !strings.Contains(f.Message, "no room") {
		t.Errorf("%v", err)
	}
	if n := left(t, dir); n != 0 {
		t.Errorf("%d files are left", n)
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Errorf("the device: %v", err)
	}
}

func TestSweepTakesOnlyWhatIsOld(t *testing.T) {
	dir := t.TempDir()
	b := blob.NewInbox(dir)
	for name, age := range map[string]time.Duration{"in-old": 2 * time.Hour, "in-new": time.Minute} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Sweep(time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "in-new")); err != nil || left(t, dir) != 1 {
		t.Errorf("%v, %d files are left", err, left(t, dir))
	}
	if err := blob.NewInbox(filepath.Join(dir, "none")).Sweep(time.Hour); err != nil {
		t.Errorf("an inbox that was never used: %v", err)
	}
}

// A name comes from the database, and leads nowhere all the same.
func TestNamesLeadOutOfNoFolder(t *testing.T) {
	dir := t.TempDir()
	s, b := blob.NewFolder(filepath.Join(dir, "store")), blob.NewInbox(filepath.Join(dir, "store", blob.Inboxes))
	for _, name := range []string{"", "..", "../x", "a/b", "..x", `a\b`, "/etc/passwd", "a\x00b", "ü"} {
		in, err := b.Receive(context.Background(), strings.NewReader("x"), 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Put(context.Background(), name, in); err == nil {
			t.Errorf("%q was taken", name)
		}
		_ = in.Close()
		if _, err := s.Open(context.Background(), name); err == nil || errors.Is(err, blob.ErrMissing) {
			t.Errorf("%q: %v", name, err)
		}
		if err := s.Delete(context.Background(), name); err == nil {
			t.Errorf("%q may be deleted", name)
		}
	}
}

func TestBucketThatRefusesIsToldFromOneThatIsDown(t *testing.T) {
	good := s3test.Start(t)
	down := httptest.NewServer(nil)
	down.Close()
	gone, err := url.Parse(down.URL)
	if err != nil {
		t.Fatal(err)
	}
	const secret = "another-secret"
	for name, c := range map[string]struct {
		change  func(b *blob.Bucket)
		refused bool
	}{
		"wrong secret": {func(b *blob.Bucket) { b.Secret = secret }, true},
		"wrong key":    {func(b *blob.Bucket) { b.KeyID = "nobody" }, true},
		"no bucket":    {func(b *blob.Bucket) { b.Name = "another" }, true},
		"down":         {func(b *blob.Bucket) { b.Endpoint, b.Secret = gone, secret }, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := good
			c.change(&b)
			s, err := blob.NewBucket(b, blob.NewInbox(t.TempDir()))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			err = s.Check(ctx)
			if err == nil || blob.Refused(err) != c.refused || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "try again") {
				t.Errorf("refused %t: %v", blob.Refused(err), err)
			}
		})
	}
}
