package meaning_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/db"
	"cairn/internal/db/dbtest"
	"cairn/internal/job"
	"cairn/internal/meaning"
	"cairn/internal/search"
)

// model counts what it is asked to embed. It fails for texts with a word in them, and waits where there is something to wait
// for.
type model struct {
	mu    sync.Mutex
	asked map[string]int
	fails string
	wait  chan struct{}
	name  string
}

func (m *model) ID() string      { return "counting" + m.name }
func (m *model) Dimensions() int { return 8 }

func (m *model) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([][]float32, len(texts))
	for i, t := range texts {
		if m.fails != "" && strings.Contains(t, m.fails) {
			return nil, errors.New("the model is away")
		}
		m.asked[t]++
		out[i] = []float32{1, 0, 0, 0, 0, 0, 0, float32(len(t))}
	}
	if m.wait != nil {
		select {
		case <-m.wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return out, nil
}

// shelf holds the texts of things, as a feature does.
type shelf struct {
	mu    sync.Mutex
	texts map[string]string
}

func (s *shelf) text(_ context.Context, id string) (meaning.Text, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.texts[id]
	return meaning.Text{Body: t}, ok, nil
}

func (s *shelf) put(t *testing.T, d *db.DB, heap, id, text string) {
	t.Helper()
	s.mu.Lock()
	s.texts[id] = text
	s.mu.Unlock()
	a := search.Analyze(search.Doc{Heap: heap, Thing: id, Kind: "note", Body: text})
	if err := d.Write(t.Context(), func(tx *db.Tx) error { a.Put(tx); return nil }); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, d *db.DB, heap, id string) {
	t.Helper()
	if err := d.Write(t.Context(), func(tx *db.Tx) error { search.Remove(tx, heap, id); return nil }); err != nil {
		t.Fatal(err)
	}
}

func newShelf() *shelf { return &shelf{texts: map[string]string{}} }

func newModel() *model { return &model{asked: map[string]int{}} }

// server is a queue as a server has one.
func server(d *db.DB, m *model, s *shelf) *job.Queue {
	q := job.New(d, slog.New(slog.DiscardHandler))
	q.Handle(meaning.NewMaker(d, m, map[string]meaning.TextOf{"note": s.text}).Jobs()...)
	return q
}

// vectors lists the things that have vectors, as heap/thing.
func vectors(t *testing.T, d *db.DB) (list []string) {
	t.Helper()
	rows, err := d.Query(t.Context(), `SELECT DISTINCT heap, thing FROM search_vector`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var heap, id string
		if err := rows.Scan(&heap, &id); err != nil {
			t.Fatal(err)
		}
		list = append(list, heap+"/"+id)
	}
	slices.Sort(list)
	return list
}

func due(t *testing.T, q *job.Queue) {
	t.Helper()
	if err := q.Due(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestVectorsFollowTheirTexts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		m, s := newModel(), newShelf()
		q := server(d, m, s)
		for i := range 40 {
			s.put(t, d, "a", fmt.Sprintf("t%02d", i), fmt.Sprint("text ", i))
		}
		s.put(t, d, "b", "other", "another heap")
		due(t, q)
		if got := vectors(t, d); len(got) != 41 {
			t.Errorf("%d things of 41 have vectors: %v", len(got), got)
		}
		asked := len(m.asked)
		due(t, q)
		s.put(t, d, "a", "t01", "text 1") // put again: its vectors are older than it
		s.put(t, d, "a", "t02", "changed")
		remove(t, d, "a", "t03")
		remove(t, d, "a", "t04") // it goes to another heap
		s.put(t, d, "b", "t04", "text 4")
		due(t, q)
		got := vectors(t, d)
		if len(m.asked) != asked+1 || m.asked["text 0"] != 1 || m.asked["text 1"] != 2 || m.asked["changed"] != 1 {
			t.Errorf("asked %v", m.asked)
		}
		if len(got) != 40 || slices.Contains(got, "a/t03") || slices.Contains(got, "a/t04") || !slices.Contains(got, "b/t04") {
			t.Errorf("vectors of %v", got)
		}
		// A thing whose text is gone is done with, and not looked at for ever.
		s.mu.Lock()
		delete(s.texts, "t05")
		s.mu.Unlock()
		a := search.Analyze(search.Doc{Heap: "a", Thing: "t05", Kind: "note", Body: "left over"})
		if err := d.Write(t.Context(), func(tx *db.Tx) error { a.Put(tx); return nil }); err != nil {
			t.Fatal(err)
		}
		due(t, q)
		due(t, server(d, m, s))
	})
}

func TestServersThatShareADatabaseEmbedEachThingOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		m, s := newModel(), newShelf()
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 3 {
			q := server(d, m, s)
			all.Go(func() { q.Run(ctx, 2) })
		}
		for i := range 100 {
			s.put(t, d, "a", fmt.Sprintf("t%02d", i), fmt.Sprint("text ", i))
		}
		for end := time.Now().Add(30 * time.Second); len(vectors(t, d)) < 100 && time.Now().Before(end); {
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(2500 * time.Millisecond) // long enough for each of them to look again
		stop()
		all.Wait()
		if n := len(vectors(t, d)); n != 100 {
			t.Errorf("%d of 100 things have vectors", n)
		}
		for text, n := range m.asked {
			if n != 1 {
				t.Errorf("%q was embedded %d times", text, n)
			}
		}
	})
}

func TestWhatAServerLeftWhenItDiedIsEmbeddedByTheNext(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		dead, alive, s := newModel(), newModel(), newShelf()
		dead.wait = make(chan struct{})
		for i := range 20 {
			s.put(t, d, "a", fmt.Sprintf("t%02d", i), fmt.Sprint("text ", i))
		}
		first := server(d, dead, s)
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _ = first.Due(ctx) }) // it hangs in its first text, as good as dead
		defer all.Wait()
		defer stop()
		second := server(d, alive, s)
		for n := 0; n == 0; {
			if err := d.One(t.Context(), `SELECT count(*) FROM job WHERE state = 'running'`, nil, &n); err != nil {
				t.Fatal(err)
			}
		}
		if due(t, second); len(alive.asked) > 0 {
			t.Error("two servers were at it at once")
		}
		if err := d.Write(t.Context(), func(tx *db.Tx) error { _, err := tx.Exec(`UPDATE job SET lease = 0`); return err }); err != nil {
			t.Fatal(err)
		}
		due(t, second)
		if got := vectors(t, d); len(got) != 20 {
			t.Errorf("vectors of %v", got)
		}
	})
}

// How far a run came is kept: the next server looks through what is newer alone, unless another model's vectors took the place of
// some meanwhile.
func TestAStartLooksThroughWhatIsNewAlone(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newShelf()
		start := func(name string) *model {
			m := newModel()
			m.name = name
			q := server(d, m, s)
			if err := meaning.Remake(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			due(t, q)
			return m
		}
		for _, id := range []string{"x", "y"} {
			s.put(t, d, "a", id, "text "+id)
		}
		start("")
		if err := d.Write(t.Context(), func(tx *db.Tx) error { return meaning.Drop(tx, "a", "x") }); err != nil {
			t.Fatal(err)
		}
		s.put(t, d, "a", "z", "text z")
		if m := start(""); m.asked["text z"] != 1 || len(m.asked) != 1 {
			t.Errorf("a second start embedded %v: only z is new", m.asked)
		}
		if m := start(" other"); len(m.asked) != 3 {
			t.Errorf("another model embedded %v of x, y, z", m.asked)
		}
		if m := start(""); len(m.asked) != 3 {
			t.Errorf("the first model embedded %v again of x, y, z, whose vectors another model's replaced", m.asked)
		}
	})
}

func TestTextThatCantBeEmbeddedHoldsUpNothing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		m, s := newModel(), newShelf()
		q := server(d, m, s)
		m.fails = "poison"
		s.put(t, d, "a", "t0", "poison")
		for i := range 30 {
			s.put(t, d, "a", fmt.Sprintf("u%02d", i), fmt.Sprint("text ", i))
		}
		due(t, q)
		if got := vectors(t, d); len(got) != 30 {
			t.Errorf("vectors of %v", got)
		}
		m.fails = ""
		time.Sleep(1200 * time.Millisecond) // the first pause
		due(t, q)
		if got := vectors(t, d); len(got) != 31 {
			t.Errorf("it was not tried again: %v", got)
		}
		// A model that is away is asked a few times, not for each thing.
		m.fails = "text"
		for i := range 30 {
			s.put(t, d, "a", fmt.Sprintf("v%02d", i), fmt.Sprint("text again ", i))
		}
		due(t, q)
		var jobs int
		if err := d.One(t.Context(), `SELECT count(*) FROM job WHERE state = 'ready' AND attempt > 0`, nil, &jobs); err != nil || jobs > 3 {
			t.Errorf("%d jobs wait, %v", jobs, err)
		}
		m.fails = ""
		time.Sleep(1200 * time.Millisecond)
		due(t, q)
		if got := vectors(t, d); len(got) != 61 {
			t.Errorf("%d of 61 have vectors after the model came back", len(got))
		}
	})
}

// What is written in a burst is embedded after it, not beside it: a write costs what it did.
func TestWritersAreLeftAloneUntilTheyPause(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		m, s := newModel(), newShelf()
		s.put(t, d, "a", "before", "before the server began")
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		q := server(d, m, s)
		all.Go(func() { q.Run(ctx, 2) })
		defer all.Wait()
		defer stop()
		for i := range 20 {
			s.put(t, d, "a", fmt.Sprintf("t%02d", i), fmt.Sprint("text ", i))
			time.Sleep(200 * time.Millisecond)
		}
		if got := vectors(t, d); len(got) > 2 { // what was there at the start, and what came while that was embedded
			t.Errorf("embedded between the writes: %v", got)
		}
		for end := time.Now().Add(20 * time.Second); len(vectors(t, d)) < 21 && time.Now().Before(end); {
			time.Sleep(50 * time.Millisecond)
		}
		if got := vectors(t, d); len(got) != 21 {
			t.Errorf("%d of 21 have vectors after the writes", len(got))
		}
	})
}
