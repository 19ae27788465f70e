package file_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/apptest"
	"cairn/internal/blob"
	"cairn/internal/block"
	"cairn/internal/fault"
	"cairn/internal/file"
	"cairn/internal/job"
	"cairn/internal/op"
)

// failing is a store on which something can go wrong, or happen, at any step.
type failing struct {
	blob.Store
	before func(what, name string) error // nil = all goes well
	after  func(what, name string)
}

func (f *failing) step(what, name string, do func() error) error {
	if f.before != nil {
		if err := f.before(what, name); err != nil {
			return err
		}
	}
	err := do()
	if err == nil && f.after != nil {
		f.after(what, name)
	}
	return err
}

func (f *failing) Put(ctx context.Context, name string, in *blob.Incoming) error {
	return f.step("put", name, func() error { return f.Store.Put(ctx, name, in) })
}

func (f *failing) Delete(ctx context.Context, name string) error {
	return f.step("delete", name, func() error { return f.Store.Delete(ctx, name) })
}

// world is the files of an application on a store that can fail.
type world struct {
	*apptest.App
	t      *testing.T
	dir    string
	store  *failing
	runner *op.Runner
	jobs   map[string]job.Kind
}

func each(t *testing.T, f func(w *world)) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := &world{App: a, t: t, dir: t.TempDir(), jobs: map[string]job.Kind{}}
		w.store = &failing{Store: blob.NewFolder(w.dir)}
		s := file.New(a.DB, w.store, blob.NewInbox(filepath.Join(w.dir, blob.Inboxes)), 1<<20, func() string { return "" }, block.AddFile)
		w.runner = op.NewRunner(slog.New(slog.DiscardHandler), s.Ops()...)
		for _, k := range s.Jobs() {
			w.jobs[k.Name] = k
		}
		f(w)
	})
}

func (w *world) try(name, what string) (id string, err error) {
	ctx := op.WithStream(w.Person(w.t), &op.Stream{In: strings.NewReader(what)})
	args, _ := json.Marshal(map[string]string{"name": name})
	res, err := w.runner.Run(ctx, "upload_file", args)
	if err != nil {
		return "", err
	}
	var out struct{ ID string }
	apptest.Decode(w.t, res.JSON, &out)
	return out.ID, nil
}

func (w *world) up(name, what string) string {
	w.t.Helper()
	id, err := w.try(name, what)
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

func (w *world) read(id, size string) (string, error) {
	st := &op.Stream{}
	args := map[string]string{"file_id": id}
	if size != "" {
		args["thumbnail"] = size
	}
	b, _ := json.Marshal(args)
	if _, err := w.runner.Run(op.WithStream(w.Person(w.t), st), "read_file", b); err != nil {
		return "", err
	}
	defer st.Out.Close()
	got, err := io.ReadAll(st.Out)
	return string(got), err
}

func (w *world) holds(id, want string) {
	w.t.Helper()
	if got, err := w.read(id, ""); err != nil || got != want {
		w.t.Errorf("%s holds %q, %v", id, got, err)
	}
}

func (w *world) purge(id string) {
	w.t.Helper()
	w.Call(w.t, w.Person(w.t), "delete_block", `{"block_id":"`+id+`"}`)
	w.Call(w.t, w.Person(w.t), "purge_block", `{"block_id":"`+id+`"}`)
}

// look tells whether a job says that there is work.
func (w *world) look(name string) bool {
	w.t.Helper()
	found, err := w.jobs[name].Look(context.Background(), true)
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func (w *world) do(name string) error { return w.jobs[name].Do(context.Background(), nil, nil) }

func (w *world) sweep() {
	w.t.Helper()
	if err := w.do("sweep files"); err != nil {
		w.t.Fatal(err)
	}
}

// objects lists what is in the store, by name.
func (w *world) objects() (list []string) {
	w.t.Helper()
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			list = append(list, d.Name())
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

func (w *world) count(n int) {
	w.t.Helper()
	if list := w.objects(); len(list) != n {
		w.t.Errorf("%d objects, want %d: %v", len(list), n, list)
	}
}

const day = 24 * time.Hour

func TestSameBytesAreKeptOnceAndGoWithTheLast(t *testing.T) {
	each(t, func(w *world) {
		a, b := w.up("a", "same"), w.up("b", "same")
		c := w.up("c", "other")
		w.count(2)
		w.purge(a)
		w.Clock.Move(2 * day)
		if w.look("sweep files") {
			t.Error("there is something to sweep while a file has the bytes")
		}
		w.sweep()
		w.count(2)
		w.holds(b, "same")
		if _, err := w.read(a, ""); !fault.Is(err, fault.NotFound) {
			t.Errorf("purged: %v", err)
		}
		w.purge(b)
		w.sweep()
		w.count(2) // not before its time
		w.Clock.Move(day + time.Minute)
		if !w.look("sweep files") {
			t.Error("there is nothing to sweep")
		}
		w.sweep()
		w.count(1)
		w.holds(c, "other")
		if w.look("sweep files") {
			t.Error("there is something to sweep still")
		}
		w.purge(c)
		w.Clock.Move(day / 2)
		d := w.up("d", "other") // the bytes are wanted again in time
		w.Clock.Move(2 * day)
		w.sweep()
		w.holds(d, "other")
	})
}

// Whatever step of the sweep fails, it is done again until nothing is left, and nothing else goes.
func TestSweepIsTakenUpWhereItBroke(t *testing.T) {
	each(t, func(w *world) {
		stays := w.up("stays", "stays")
		for i := range 5 {
			w.purge(w.up("x", strings.Repeat("x", i+1)))
		}
		w.Clock.Move(2 * day)
		down := errors.New("the store is down")
		for allowed := range 5 {
			left := allowed
			w.store.before = func(what, _ string) error {
				if left--; left < 0 {
					return down
				}
				return nil
			}
			if err := w.do("sweep files"); !errors.Is(err, down) {
				t.Fatalf("with %d deletions: %v", allowed, err)
			}
			if !w.look("sweep files") {
				t.Error("what is left is forgotten")
			}
			w.holds(stays, "stays")
		}
		w.store.before = nil
		w.sweep()
		w.count(1)
		w.holds(stays, "stays")
	})
}

// An upload of the same bytes comes at every moment of their deletion, and is never the worse for it.
func TestUploadMeetsTheDeletionOfItsBytes(t *testing.T) {
	each(t, func(w *world) {
		for _, moment := range []string{"before", "after"} {
			w.purge(w.up("first", moment))
			w.Clock.Move(2 * day)
			second := ""
			meet := func(what string) {
				if what == "delete" && second == "" {
					second = "begun"
					second = w.up("second", moment)
				}
			}
			w.store.before, w.store.after = nil, nil
			if moment == "before" {
				w.store.before = func(what, _ string) error { meet(what); return nil }
			} else {
				w.store.after = func(what, _ string) { meet(what) }
			}
			w.sweep()
			w.holds(second, moment)
			w.Clock.Move(2 * day)
			w.sweep()
			w.holds(second, moment)
		}
		w.store.before, w.store.after = nil, nil
		w.count(2)

		// The sweep comes in the middle of an upload: not a day later, that is too soon for it; later it says to try again.
		w.store.after = func(what, _ string) {
			if what == "put" {
				w.Clock.Move(day / 2)
				w.sweep()
			}
		}
		w.holds(w.up("slow", "slow"), "slow")
		w.store.after = func(what, _ string) {
			if what == "put" {
				w.Clock.Move(2 * day)
				w.sweep()
			}
		}
		if _, err := w.try("slower", "slower"); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%v", err)
		}
		w.store.after = nil
		w.holds(w.up("slower", "slower"), "slower")
		w.Clock.Move(2 * day)
		w.sweep()
		w.count(4)
	})
}

func TestManyUploadAndSweepAtOnce(t *testing.T) {
	each(t, func(w *world) {
		var all sync.WaitGroup
		ids := make([]string, 24)
		for i := range ids {
			all.Go(func() {
				var err error
				if ids[i], err = w.try("x", string(rune('a'+i%3))); err != nil {
					t.Error(err)
				}
			})
			if i%8 == 0 {
				all.Go(func() {
					if err := w.do("sweep files"); err != nil {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		w.count(3)
		for i, id := range ids {
			w.holds(id, string(rune('a'+i%3)))
		}
	})
}

// What the store fails to take leaves neither a file nor, in time, bytes; and the next try works.
func TestStoreThatFailsLeavesNoFile(t *testing.T) {
	each(t, func(w *world) {
		down := errors.New("the store is down")
		w.store.before = func(string, string) error { return down }
		if _, err := w.try("x", "bytes"); err == nil || fault.From(err).Kind != fault.Internal {
			t.Errorf("%v", err)
		}
		w.count(0)
		w.store.before = nil
		w.holds(w.up("x", "bytes"), "bytes")

		// Bytes that were lost come back with the next upload of them.
		for _, name := range w.objects() {
			if err := os.Remove(filepath.Join(w.dir, name[:2], name)); err != nil {
				t.Fatal(err)
			}
		}
		w.holds(w.up("again", "bytes"), "bytes")
		w.count(1)
		var list struct{ Count int }
		apptest.Decode(t, w.Call(t, w.Person(t), "list_files", `{}`), &list)
		if list.Count != 2 {
			t.Errorf("%d files", list.Count)
		}
	})
}

func drawing(t *testing.T, w, h int) string {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range m.Pix {
		m.Pix[i] = uint8(i * 7)
	}
	m.Set(0, 0, color.Transparent)
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestThumbnailsAreMadeOnceAndGoWithTheirPicture(t *testing.T) {
	each(t, func(w *world) {
		id := w.up("drawing.png", drawing(t, 300, 200))
		broken := w.up("broken.png", drawing(t, 301, 200)[:500])
		if !w.look("make thumbnails") {
			t.Error("nothing is wanted")
		}
		down := errors.New("the store is down")
		w.store.before = func(what, _ string) error { return down }
		if err := w.do("make thumbnails"); err == nil {
			t.Error("thumbnails went into a store that is down")
		}
		w.store.before = nil
		if !w.look("make thumbnails") {
			t.Error("a picture is given up because the store was down")
		}
		if err := w.do("make thumbnails"); err != nil {
			t.Fatal(err)
		}
		if w.look("make thumbnails") {
			t.Error("there is something to make still")
		}
		w.count(5)
		for _, size := range []string{"s", "m", "l"} {
			got, err := w.read(id, size)
			m, format, derr := image.DecodeConfig(strings.NewReader(got))
			if err != nil || derr != nil || format != "png" || max(m.Width, m.Height) != map[string]int{"s": 160, "m": 300, "l": 300}[size] {
				t.Errorf("%s: %v, %v, %s %v", size, err, derr, format, m)
			}
			if _, err := w.read(broken, size); !fault.Is(err, fault.NotFound) {
				t.Errorf("a broken picture's: %v", err)
			}
		}
		w.purge(id)
		w.Clock.Move(2 * day)
		w.sweep()
		if list := w.objects(); len(list) != 1 || slices.ContainsFunc(list, func(n string) bool { return strings.Contains(n, ".") }) {
			t.Errorf("left: %v", list)
		}
		w.holds(broken, drawing(t, 301, 200)[:500])
	})
}

// A picture whose bytes can't be read holds up the thumbnails of no other.
func TestThumbnailsOfOthersAreMadeThoughOneCantBeRead(t *testing.T) {
	each(t, func(w *world) {
		w.up("lost.png", drawing(t, 300, 200))
		err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				err = os.Remove(path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		w.Clock.Move(time.Second)
		w.up("drawing.png", drawing(t, 301, 200))
		if err := w.do("make thumbnails"); err == nil {
			t.Error("the lost picture isn't told of")
		}
		var made int
		if err := w.DB.One(t.Context(), `SELECT count(*) FROM blob WHERE thumbnails = 'made'`, nil, &made); err != nil || made != 1 {
			t.Errorf("%d of 1 picture has thumbnails, %v", made, err)
		}
	})
}
