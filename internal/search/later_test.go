package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"cairn/internal/db"
	"cairn/internal/db/dbtest"
)

// shelf is a kind of things whose texts are kept elsewhere and analyzed late.
type shelf struct {
	mu        sync.Mutex
	texts     map[string]string
	asked     int
	err       error
	meanwhile func() // happens after a text was read and before it is analyzed
}

func (s *shelf) doc(_ context.Context, id string) (Doc, bool, error) {
	if meanwhile := s.meanwhile; meanwhile != nil {
		defer func() { s.meanwhile = nil; meanwhile() }()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	text, ok := s.texts[id]
	return Doc{Heap: "h", Thing: id, Kind: "book", Body: text}, ok, s.err
}

func (s *shelf) write(t *testing.T, d *db.DB, id, text string) {
	t.Helper()
	s.mu.Lock()
	s.texts[id] = text
	if text == "" {
		delete(s.texts, id)
	}
	s.mu.Unlock()
	if err := d.Write(t.Context(), func(tx *db.Tx) error {
		if Later(tx, "h", id, "book"); text == "" {
			Remove(tx, "h", id)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// What is to be analyzed later is found by the next search all the same, on each server, and is analyzed once.
func TestLaterIsFoundAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := &shelf{texts: map[string]string{}}
		e, other := New(d, 1<<30), New(d, 1<<30)
		NewService(e, Source{Kind: "book", Doc: s.doc})
		NewService(other, Source{Kind: "book", Doc: s.doc})
		for i := range 5 {
			s.write(t, d, "a", fmt.Sprint("whale number", i))
		}
		s.write(t, d, "b", "harpoon")
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				if got := find(t, []*Engine{e, other}[i%2], "h", "whale"); !slices.Equal(got, []string{"a"}) {
					t.Errorf("%q", got)
				}
			})
		}
		all.Wait()
		if s.asked > 4 {
			t.Errorf("two things were read %d times by two servers", s.asked)
		}
		if got := find(t, e, "h", "number3"); len(got) > 0 {
			t.Errorf("an older text is found: %q", got)
		}
		s.write(t, d, "a", "")
		if got := find(t, other, "h", "whale"); len(got) > 0 {
			t.Errorf("what is gone is found: %q", got)
		}
		asked := s.asked
		find(t, e, "h", "harpoon")
		if list, err := e.waiting(t.Context(), nil); err != nil || len(list) > 0 || s.asked != asked {
			t.Errorf("%v %v, read %d times more", list, err, s.asked-asked)
		}
	})
}

// A text that can't be read holds up no search: it says that it's behind, and what waits stays.
func TestLaterThatFailsIsTold(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := &shelf{texts: map[string]string{}}
		e := New(d, 1<<30)
		NewService(e, Source{Kind: "book", Doc: s.doc})
		s.write(t, d, "a", "whale")
		s.err = errors.New("unreadable")
		r, err := e.Find(t.Context(), []string{"h"}, nil, "whale", 10)
		if err != nil || len(r.Hits) > 0 || r.Note != NoteLater {
			t.Errorf("%+v %v", r, err)
		}
		s.err = nil
		if r, err = e.Find(t.Context(), []string{"h"}, nil, "whale", 10); err != nil || len(r.Hits) != 1 || r.Note != "" {
			t.Errorf("%+v %v", r, err)
		}
	})
}

// Who writes a long text without pause keeps nobody from finding what was written before the search began.
func TestLaterIsFoundWhileItIsWrittenOn(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := &shelf{texts: map[string]string{}}
		e := New(d, 1<<30)
		NewService(e, Source{Kind: "book", Doc: s.doc})
		s.write(t, d, "a", "whale 0")
		for i := range 3 {
			s.meanwhile = func() { s.write(t, d, "a", fmt.Sprint("whale ", i+1)) }
			r, err := e.Find(t.Context(), []string{"h"}, nil, fmt.Sprint(i), 10)
			if err != nil || len(r.Hits) != 1 || r.Note != "" {
				t.Errorf("%d: %+v %v", i, r, err)
			}
		}
		if got := find(t, e, "h", "3"); !slices.Equal(got, []string{"a"}) {
			t.Errorf("the last one: %q", got)
		}
	})
}

// What was read of a text is worth nothing once the thing was removed, put with a short text, or put by another server that read later.
func TestLaterBringsNothingOldBack(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for name, meanwhile := range map[string]func(tx *db.Tx){
			"removed": func(tx *db.Tx) { Remove(tx, "h", "a") },
			"put":     func(tx *db.Tx) { Analyze(Doc{Heap: "h", Thing: "a", Kind: "book", Body: "harpoon"}).Put(tx) },
		} {
			s := &shelf{texts: map[string]string{}}
			e := New(d, 1<<30)
			NewService(e, Source{Kind: "book", Doc: s.doc})
			s.write(t, d, "a", "whale")
			s.meanwhile = func() {
				if err := d.Write(t.Context(), func(tx *db.Tx) error { meanwhile(tx); return nil }); err != nil {
					t.Error(err)
				}
			}
			if got := find(t, e, "h", "whale"); len(got) > 0 {
				t.Errorf("%s: %q", name, got)
			}
		}
		s := &shelf{texts: map[string]string{}}
		e, other := New(d, 1<<30), New(d, 1<<30)
		NewService(e, Source{Kind: "book", Doc: s.doc})
		NewService(other, Source{Kind: "book", Doc: s.doc})
		s.write(t, d, "a", "whale")
		s.meanwhile = func() {
			s.meanwhile = nil
			s.write(t, d, "a", "harpoon")
			find(t, other, "h", "harpoon")
			s.write(t, d, "a", "ship")
		}
		if err := e.settle(t.Context(), []string{"h"}); err != nil {
			t.Error(err)
		}
		var n int
		if err := d.One(t.Context(), `SELECT count(*) FROM search_passage WHERE heap = 'h' AND thing = 'a' AND tok LIKE '%whale%'`, nil, &n); err != nil || n > 0 {
			t.Errorf("the oldest text is found again: %d, %v", n, err)
		}
	})
}

// The job does what no search asked for, once the writer has paused.
func TestLaterIsDoneWithoutASearch(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := &shelf{texts: map[string]string{}}
		e := New(d, 1<<30)
		NewService(e, Source{Kind: "book", Doc: s.doc})
		j := e.Jobs()[0]
		look := func(want bool) {
			t.Helper()
			if got, err := j.Look(t.Context(), false); got != want || err != nil {
				t.Errorf("%t %v", got, err)
			}
		}
		look(false)
		for i := range 3 {
			s.write(t, d, "a", fmt.Sprint("whale ", i))
			look(false)
		}
		look(true)
		if err := j.Do(t.Context(), nil, nil); err != nil || s.asked != 1 {
			t.Errorf("read %d times, %v", s.asked, err)
		}
		look(false)
	})
}
