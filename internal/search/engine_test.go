package search

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cairn/internal/db"
	"cairn/internal/db/dbtest"
	"cairn/internal/fault"
	"cairn/internal/search/query"
	"cairn/internal/words"
)

func TestOwnWritesAndReplicas(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a, b := New(d, 1<<30), New(d, 1<<30)
		both := func(query string, want ...string) {
			t.Helper()
			for name, e := range map[string]*Engine{"a": a, "b": b, "a fresh one": New(d, 1<<30)} {
				if got := find(t, e, "h", query); !slices.Equal(got, want) {
					t.Errorf("%s finds %q by %q, want %q", name, got, query, want)
				}
			}
		}
		both("pump")
		put(t, d, Doc{Heap: "h", Thing: "1", Kind: "note", Title: "Pump", Body: "mended", Fresh: true})
		both("pump", "1")
		both(`"pump mended"`) // a title and a body are no phrase
		put(t, d, Doc{Heap: "h", Thing: "2", Kind: "note", Body: strings.Repeat("A valve of the other pump. ", 200), Fresh: true})
		both("valve", "2")
		put(t, d, Doc{Heap: "h", Thing: "2", Kind: "note", Body: "a hose"}) // shorter than before
		both("valve")
		both("hose", "2")
		put(t, d, Doc{Heap: "h", Thing: "1", Kind: "note"}) // nothing left
		both("pump")
		put(t, d, Doc{Heap: "h", Thing: "1", Kind: "task", Body: "pump"})
		both("pump", "1")
		remove(t, d, "h", "1")
		remove(t, d, "h", "never there")
		both("pump")
		both("hose", "2")
	})
}

func TestOneWriteOfSeveralThings(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			for _, h := range []string{"h2", "h1"} {
				for _, doc := range notes(h, "red pump", "blue pump") {
					Analyze(doc).Put(tx)
				}
				Remove(tx, h, "red pump")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		failed := errors.New("no")
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			Analyze(notes("h1", "green pump")[0]).Put(tx)
			return failed
		}); err != failed {
			t.Fatal(err)
		}
		r, err := New(d, 1<<30).Find(t.Context(), []string{"h1", "h2", "h1", "none"}, nil, "pump", 10)
		if got := found(r); err != nil || !slices.Equal(got, []string{"blue pump", "blue pump"}) || r.Hits[0].Heap != "h1" {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestKindsLimitAndParts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		e := New(d, 1<<30)
		for i := range 5 {
			put(t, d, Doc{Heap: "h", Thing: fmt.Sprint("t", i), Kind: []string{"note", "task"}[i%2], Body: "pump", Fresh: true})
		}
		filler := strings.Repeat("Nothing to see in this sentence. ", 40)
		put(t, d, Doc{Heap: "h", Thing: "long", Kind: "note", Title: "Long", Body: filler + "The gasket leaks. " + filler, Fresh: true})
		for _, c := range []struct {
			kinds []string
			limit int
			want  string
			more  bool
		}{
			{nil, 10, "[t4 t3 t2 t1 t0]", false},
			{nil, 5, "[t4 t3 t2 t1 t0]", false},
			{nil, 2, "[t4 t3]", true},
			{[]string{"task"}, 10, "[t3 t1]", false},
			{[]string{"note", "none"}, 2, "[t4 t2]", true},
			{[]string{}, 10, "[]", false},
			{nil, 0, "[]", true},
		} {
			r, err := e.Find(t.Context(), []string{"h"}, c.kinds, "pump", c.limit)
			if got := fmt.Sprint(found(r)); err != nil || got != c.want || r.More != c.more {
				t.Errorf("kinds %q, limit %d: %s, more %t, %v", c.kinds, c.limit, got, r.More, err)
			}
		}
		r, err := e.Find(t.Context(), []string{"h"}, nil, "gasket", 10)
		if err != nil || len(r.Hits) != 1 || r.Hits[0].Part != 1 || r.Hits[0].Kind != "note" {
			t.Fatalf("%+v, %v", r, err)
		}
		if p := words.Passage(filler+"The gasket leaks. "+filler, r.Hits[0].Part); !strings.Contains(p, "gasket") {
			t.Errorf("the best passage is %q", p)
		}
		if r, err := e.Find(t.Context(), nil, nil, "pump", 10); err != nil || len(r.Hits) > 0 {
			t.Errorf("no heaps: %+v, %v", r, err)
		}
	})
}

// TestPhraseAcrossPassages looks for what lies on the edge of two passages.
func TestPhraseAcrossPassages(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		e := New(d, 1<<30)
		for name, body := range map[string]string{"words": strings.Repeat("lorem ipsum ", 300), "run": strings.Repeat("早上先买再去开会", 300)} {
			end := words.PassageEnd(body)
			put(t, d, Doc{Heap: "h", Thing: name, Kind: "note", Body: body, Fresh: true})
			piece := body[end-12 : end+12]
			if got := find(t, e, "h", `"`+piece+`"`); !slices.Equal(got, []string{name}) {
				t.Errorf("%q found %q", piece, got)
			}
		}
	})
}

func TestPhraseBelongsToThePassageItBeginsIn(t *testing.T) {
	x := newIndex()
	x.put("t", "note", []string{"a b", "", "c d a b", "c"})
	for text, want := range map[string][]place{
		"a b": {{0, 1}, {2, 1}}, "b c": {{0, 1}, {2, 1}}, "c d": {{2, 1}}, "d a": {{2, 1}}, "a b c": {{0, 1}, {2, 1}}, "d c": nil,
	} {
		if got := x.match(query.Phrase{Terms: strings.Fields(text)}, x.shown(nil)).list; !slices.Equal(got, want) {
			t.Errorf("%q stands at %v, want %v", text, got, want)
		}
	}
}

// TestHeapsAreSearchedAsOne compares a search of several heaps with one of a heap that holds all their things.
func TestHeapsAreSearchedAsOne(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := rand.New(rand.NewPCG(1, 2))
		for i := range 120 {
			doc := Doc{Heap: "large", Thing: fmt.Sprintf("%03d", i), Kind: "note", Body: draw(r, 5+r.IntN(60)), Fresh: true}
			if i%10 == 0 {
				doc.Heap = "small"
			}
			put(t, d, doc)
			doc.Heap = "all"
			put(t, d, doc)
		}
		e := New(d, 1<<30)
		for range 100 {
			query := draw(r, 1+r.IntN(4))
			for _, search := range []func(context.Context, []string, []string, string, int) (Result, error){e.Find, e.Ask} {
				one, err := search(t.Context(), []string{"all"}, nil, query, 20)
				if err != nil {
					t.Fatal(err)
				}
				two, err := search(t.Context(), []string{"small", "large"}, nil, query, 20)
				if err != nil {
					t.Fatal(err)
				}
				for i := range two.Hits {
					two.Hits[i].Heap = "all"
				}
				if !slices.Equal(one.Hits, two.Hits) || one.More != two.More {
					t.Fatalf("%q: %+v in one heap, %+v in two", query, one, two)
				}
			}
		}
	})
}

// TestSmallHeapBesideLarge pins what scores by each heap's own counts would get wrong.
func TestSmallHeapBesideLarge(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var docs []Doc
		for i := range 200 {
			docs = append(docs, notes("large", fmt.Sprintf("weekly report of the office %d", i))...)
		}
		docs = append(docs, notes("large", "a long note that somewhere mentions the boiler besides much else that nobody asked for in this question at all")...)
		docs = append(docs, notes("small", "boiler serviced", "boiler report", "boiler manual")...)
		put(t, d, docs...)
		e := New(d, 1<<30)
		r, err := e.Ask(t.Context(), []string{"large", "small"}, nil, "boiler", 4)
		if got := found(r); err != nil || len(got) != 4 || r.Hits[3].Heap != "large" {
			t.Errorf("the small heap, where each note has the word, vanishes: %q, %v", got, err)
		}
		r, err = e.Ask(t.Context(), []string{"large", "small"}, nil, "weekly report", 4)
		if got := found(r); err != nil || r.Hits[0].Heap != "large" || slices.Contains(got, "boiler report") {
			t.Errorf("the small heap, where the word is rarer, drowns the large one: %q, %v", got, err)
		}
	})
}

// draw draws from a small vocabulary, the first words often, so that searches have ties, phrases and misses.
func draw(r *rand.Rand, n int) string {
	all := []string{"pump", "valve", "the", "red", "REQ-1", "REQ-2", "咖啡豆", "会", "🚀", "don't", "hose", "C++", "gasket", "boiler", "41.2"}
	var b strings.Builder
	for range n {
		b.WriteString(all[min(r.IntN(len(all)), r.IntN(len(all)))])
		b.WriteString([]string{" ", " ", " ", ". "}[r.IntN(4)])
	}
	return b.String()
}

// TestAnyHistoryGivesTheSame runs random writes and searches beside an engine that has seen them all, one that looks now and
// then, and one that is fresh in the end. All must give the same hits with the same scores.
func TestAnyHistoryGivesTheSame(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := 0
		rapid.Check(t, func(rt *rapid.T) {
			n++
			heaps := []string{fmt.Sprint("x", n), fmt.Sprint("y", n)}
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
			always, sometimes := New(d, 1<<30), New(d, 1) // the second keeps one heap at a time
			for range rapid.IntRange(1, 25).Draw(rt, "writes") {
				err := d.Write(context.Background(), func(tx *db.Tx) error {
					for range 1 + r.IntN(3) {
						heap, thing := heaps[r.IntN(2)], fmt.Sprint("t", r.IntN(8))
						if r.IntN(4) == 0 {
							Remove(tx, heap, thing)
							continue
						}
						Analyze(Doc{Heap: heap, Thing: thing, Kind: []string{"a", "b"}[r.IntN(2)], Title: draw(r, 2), Body: draw(r, []int{0, 5, 600}[r.IntN(3)])}).Put(tx)
					}
					return nil
				})
				if err != nil {
					rt.Fatal(err)
				}
				find(t, always, heaps[0], "pump")
				find(t, always, heaps[1], "pump")
				if r.IntN(8) == 0 {
					find(t, sometimes, heaps[r.IntN(2)], "red")
				}
			}
			fresh := New(d, 1<<30)
			for range 5 {
				text := draw(r, 1+r.IntN(3))
				if r.IntN(3) == 0 {
					text = `"` + draw(r, 2) + `" -` + draw(r, 1)
				}
				kinds := [][]string{nil, {"a"}}[r.IntN(2)]
				limit := 1 + r.IntN(12)
				var results []string
				for _, e := range []*Engine{always, sometimes, fresh} {
					res, err := e.Find(context.Background(), heaps, kinds, text, limit)
					if err != nil && !fault.Is(err, fault.Invalid) {
						rt.Fatal(err)
					}
					results = append(results, fmt.Sprintf("%+v", res))
				}
				if results[0] != results[1] || results[0] != results[2] {
					rt.Fatalf("%q finds %s always, %s sometimes, %s fresh", text, results[0], results[1], results[2])
				}
			}
		})
	})
}

func TestCompaction(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	x, live := newIndex(), map[string][]string{}
	for i := range 600 {
		id := fmt.Sprint("t", r.IntN(60))
		if i%5 == 0 {
			x.put(id, "note", nil)
			delete(live, id)
			continue
		}
		ps := Analyze(Doc{Title: "T", Body: draw(r, 1+r.IntN(400))}).passages
		x.put(id, "note", ps)
		live[id] = ps
	}
	if !x.crowded() {
		t.Fatal("there is little to compact")
	}
	y, fresh := x.compacted(), newIndex()
	for id, ps := range live {
		fresh.put(id, "note", ps)
	}
	if y.crowded() || len(y.thingOf) != y.living.passages || y.living != fresh.living || x.living != fresh.living {
		t.Errorf("living: %+v before, %+v compacted, %+v fresh", x.living, y.living, fresh.living)
	}
	if y.bytes() >= x.bytes() {
		t.Errorf("%d bytes before, %d after", x.bytes(), y.bytes())
	}
	for range 200 {
		text := draw(r, 1+r.IntN(3))
		var got [3]string
		for i, ix := range []*index{x, y, fresh} {
			hits, _, err := rank(t.Context(), []searched{{heap: "h", index: ix}}, nil, query.Parse(text, true).Plan(true), 20)
			if err != nil {
				t.Fatal(err)
			}
			got[i] = fmt.Sprint(hits)
		}
		if got[0] != got[1] || got[0] != got[2] {
			t.Fatalf("%q: %s before, %s compacted, %s fresh", text, got[0], got[1], got[2])
		}
	}
}

func TestCompactionWhileSearching(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		e := New(d, 1<<30)
		for i := range 300 {
			put(t, d, Doc{Heap: "h", Thing: fmt.Sprint("t", i%40), Kind: "note", Body: fmt.Sprint("pump number ", i)})
			if got := find(t, e, "h", fmt.Sprint("number ", i)); len(got) == 0 || got[0] != fmt.Sprint("t", i%40) {
				t.Fatalf("after %d: %q", i, got)
			}
		}
		if x := e.heaps["h"].index; len(x.thingOf) > 40+65+40 {
			t.Errorf("%d passages of 40 things", len(x.thingOf))
		}
	})
}

func TestEngineForgetsTheLeastUsed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, h := range []string{"a", "b", "c"} {
			put(t, d, Doc{Heap: h, Thing: "1", Kind: "note", Body: strings.Repeat("pump "+h+" ", 3000), Fresh: true})
		}
		e := New(d, 1<<30)
		find(t, e, "a", "pump")
		_, one := e.Stats()
		if one < 1000 || one > 200_000 {
			t.Errorf("%d bytes for 6,000 words", one)
		}
		e = New(d, one*5/2)
		for _, h := range []string{"a", "b", "a", "c"} {
			if got := find(t, e, h, "pump"); len(got) != 1 {
				t.Errorf("heap %s: %q", h, got)
			}
		}
		if n, bytes := e.Stats(); n != 2 || bytes > one*5/2 || e.heaps["b"] != nil {
			t.Errorf("%d heaps in %d bytes, b among them: %t", n, bytes, e.heaps["b"] != nil)
		}
		e = New(d, 0) // too small for anything: the last one stays
		for range 2 {
			r, err := e.Find(t.Context(), []string{"a", "b", "c"}, nil, "pump", 10)
			if n, _ := e.Stats(); err != nil || len(r.Hits) != 3 || n != 1 {
				t.Errorf("%d hits, %d heaps, %v", len(r.Hits), n, err)
			}
		}
	})
}

func TestLoadThatIsCancelled(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := rand.New(rand.NewPCG(5, 6))
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			for i := range 4000 {
				Analyze(Doc{Heap: "h", Thing: fmt.Sprintf("%04d", i), Kind: "note", Body: draw(r, 30), Fresh: true}).Put(tx)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		e := New(d, 1<<30)
		cancelled := 0
		for range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Duration(r.IntN(8000))*time.Microsecond, cancel)
			_, err := e.Find(ctx, []string{"h"}, nil, "pump valve", 10)
			if errors.Is(err, context.Canceled) {
				cancelled++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		done, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := New(d, 1<<30).Find(done, []string{"h"}, nil, "pump", 10); !errors.Is(err, context.Canceled) {
			t.Errorf("a search that was cancelled before: %v", err)
		}
		t.Logf("%d loads cancelled", cancelled)
		got, err := e.Find(t.Context(), []string{"h"}, nil, "pump valve", 100)
		if err != nil {
			t.Fatal(err)
		}
		want, err := New(d, 1<<30).Find(t.Context(), []string{"h"}, nil, "pump valve", 100)
		if err != nil || len(want.Hits) != 100 || !slices.Equal(got.Hits, want.Hits) {
			t.Errorf("after it: %d hits, fresh %d, %v", len(got.Hits), len(want.Hits), err)
		}
		if n := e.heaps["h"].index.living.things; n != 4000 {
			t.Errorf("%d things in the index", n)
		}
	})
}

// TestDatabasePutBack takes the database back to an earlier state under a running engine.
func TestDatabasePutBack(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		e := New(d, 1<<30)
		put(t, d, notes("h", "old pump", "new pump")...)
		if got := find(t, e, "h", "pump"); len(got) != 2 {
			t.Fatal(got)
		}
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			if _, err := tx.Exec(`DELETE FROM search_passage WHERE seq > 1`); err != nil {
				return err
			}
			_, err := tx.Exec(`UPDATE heap_seq SET seq = 1`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := find(t, e, "h", "pump"); !slices.Equal(got, []string{"old pump"}) {
			t.Errorf("found %q", got)
		}
	})
}

func TestPutAndFindInParallel(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		engines := []*Engine{New(d, 1<<30), New(d, 1)}
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(w), 7))
				for i := range 25 {
					heap, word := fmt.Sprint("h", w%2), fmt.Sprintf("unique%dx%d", w, i)
					thing := fmt.Sprint(w, "-", i%10)
					a := Analyze(Doc{Heap: heap, Thing: thing, Kind: "note", Body: word + " " + draw(r, 300)})
					if err := d.Write(context.Background(), func(tx *db.Tx) error { a.Put(tx); return nil }); err != nil {
						t.Error(err)
						return
					}
					for _, e := range engines { // own writes are seen at once, by every engine
						res, err := e.Find(context.Background(), []string{"h0", "h1"}, nil, word, 10)
						if got := found(res); err != nil || !slices.Equal(got, []string{thing}) {
							t.Errorf("%s: %q, %v", word, got, err)
						}
					}
				}
			})
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(w), 8))
				for i := range 50 {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+r.IntN(20))*time.Millisecond)
					_, err := engines[i%2].Ask(ctx, []string{"h1", "h0"}, nil, draw(r, 4), 10)
					if err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
					engines[0].Stats()
					cancel()
				}
			})
		}
		wg.Wait()
	})
}
