package search

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/db"
	"cairn/internal/db/dbtest"
	"cairn/internal/embed"
	"cairn/internal/job"
	"cairn/internal/meaning"
	"cairn/internal/search/query"
)

// bags is a model of words: a text's vector is the sum of a random one per word, so texts with common words are near. Words
// that mean the same, by the table, have the same vector.
type bags struct {
	id   string
	same map[string]string
	fail bool
	mu   sync.Mutex
	asks int
}

func (m *bags) ID() string      { return m.id }
func (m *bags) Dimensions() int { return 512 }

func (m *bags) Embed(_ context.Context, texts []string) ([][]float32, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asks++
	if m.fail {
		return nil, errors.New("away")
	}
	out := make([][]float32, len(texts))
	for i, t := range texts {
		v := make([]float32, 512)
		for w := range strings.FieldsSeq(strings.ToLower(t)) {
			if s := m.same[w]; s != "" {
				w = s
			}
			h := fnv.New64a()
			_, _ = h.Write([]byte(m.id + w))
			r := rand.New(rand.NewPCG(h.Sum64(), 1))
			for k := range v {
				v[k] += float32(r.NormFloat64())
			}
		}
		var sum float64
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		for k := range v {
			v[k] /= float32(max(math.Sqrt(sum), 1e-9))
		}
		out[i] = v
	}
	return out, nil
}

func newBags() *bags {
	return &bags{id: "bags", same: map[string]string{"guitar": "instrument", "dog": "puppy", "physician": "doctor"}}
}

// withModel is an engine with a model, and a queue that works off what's to be embedded. The things' texts are their ids.
func withModel(t testing.TB, d *db.DB, m embed.Model) (*Engine, func()) {
	e := New(d, 1<<30)
	e.UseModel(m)
	s := NewService(e, Source{Kind: "note", Text: func(_ context.Context, id string) (meaning.Text, bool, error) {
		return meaning.Text{Body: id}, true, nil
	}},
		Source{Kind: "mute"})
	q := job.New(d, slog.New(slog.DiscardHandler))
	q.Handle(meaning.NewMaker(d, m, s.Texts()).Jobs()...)
	return e, func() {
		t.Helper()
		if err := q.Due(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func ask(t testing.TB, e *Engine, query string, kinds ...string) []string {
	t.Helper()
	r, err := e.Ask(context.Background(), []string{"h"}, kinds, query, 100)
	if err != nil {
		t.Fatalf("Ask(%q): %v", query, err)
	}
	return found(r)
}

func TestAskByMeaning(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		m := newBags()
		e, work := withModel(t, d, m)
		replica, _ := withModel(t, d, m)
		put(t, d, notes("h", "the guitar hangs there", "a dog sleeps", "seven physicians met", "an instrument maker")...)
		put(t, d, Doc{Heap: "h", Thing: "mute guitar", Kind: "mute", Body: "mute guitar"})
		if got := ask(t, e, "which instrument"); !slices.Equal(got, []string{"an instrument maker"}) {
			t.Errorf("before there are vectors: %q", got)
		}
		work()
		for name, e := range map[string]*Engine{"own": e, "replica": replica} {
			got := ask(t, e, "which instrument")
			if len(got) < 2 || got[0] != "an instrument maker" || got[1] != "the guitar hangs there" {
				t.Errorf("%s: %q", name, got)
			}
			if got := ask(t, e, "puppy"); len(got) == 0 || got[0] != "a dog sleeps" {
				t.Errorf("%s, no word in common: %q", name, got)
			}
			if got := ask(t, e, "instrument", "mute"); len(got) > 0 {
				t.Errorf("%s: kinds let %q through", name, got)
			}
			if got := ask(t, e, "instrument -hangs"); slices.Contains(got, "the guitar hangs there") {
				t.Errorf("%s: what is excluded comes by its meaning: %q", name, got)
			}
			if got := find(t, e, "h", "puppy"); len(got) > 0 {
				t.Errorf("%s: Find by meaning: %q", name, got)
			}
		}
		remove(t, d, "h", "a dog sleeps")
		work()
		var rows int
		if err := d.One(t.Context(), `SELECT count(*) FROM search_vector WHERE thing = $1`, []any{"a dog sleeps"}, &rows); err != nil || rows > 0 {
			t.Errorf("%d vectors of a removed thing, %v", rows, err)
		}
		for _, e := range []*Engine{e, replica} {
			if got := ask(t, e, "puppy"); slices.Contains(got, "a dog sleeps") {
				t.Errorf("removed and found: %q", got)
			}
		}
		put(t, d, notes("h", "a dog sleeps")...)
		work()
		if got := ask(t, replica, "puppy"); len(got) == 0 || got[0] != "a dog sleeps" {
			t.Errorf("put back: %q", got)
		}
		// Another model: what is there counts for nothing until it's made anew.
		other := newBags()
		other.id = "other"
		e2, work2 := withModel(t, d, other)
		if got := ask(t, e2, "puppy"); len(got) > 0 {
			t.Errorf("vectors of another model were used: %q", got)
		}
		if err := meaning.Remake(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		work2()
		if got := ask(t, e2, "puppy"); len(got) == 0 || got[0] != "a dog sleeps" {
			t.Errorf("made anew: %q", got)
		}
		var models, done, total int
		if err := d.One(t.Context(), `SELECT count(DISTINCT model) FROM search_vector`, nil, &models); err != nil || models != 1 {
			t.Errorf("vectors of %d models, %v", models, err)
		}
		if err := d.One(t.Context(), `SELECT done, total FROM job WHERE kind = 'embed_all'`, nil, &done, &total); err != nil || done != 4 || total != 4 {
			t.Errorf("progress %d of %d, %v", done, total, err)
		}
		asks := other.asks
		if err := meaning.Remake(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		work2()
		if other.asks != asks {
			t.Errorf("nothing was missing and the model was asked")
		}
	})
}

func TestModelThatFails(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		m := newBags()
		e, work := withModel(t, d, m)
		put(t, d, notes("h", "a dog sleeps", "the puppy eats")...)
		work()
		m.fail = true
		if got := ask(t, e, "puppy"); !slices.Equal(got, []string{"the puppy eats"}) {
			t.Errorf("with a model that fails: %q", got)
		}
		asks := m.asks
		ask(t, e, "dog")
		if open, failures := e.Model(); m.asks != asks || !open || failures != 1 {
			t.Errorf("the model was asked again at once: %d, %t, %d", m.asks-asks, open, failures)
		}
		put(t, d, notes("h", "a cat")...)
		work()
		var state string
		if err := d.One(t.Context(), `SELECT state FROM job WHERE once = $1`, []any{"embed h a cat"}, &state); err != nil || state != job.Ready {
			t.Errorf("the job that failed is %q, %v", state, err)
		}
		if got := find(t, e, "h", "cat"); len(got) != 1 {
			t.Errorf("not found: %q", got)
		}
	})
}

// TestVectorsOfAnyHistory compares an engine that has seen changes with a fresh one, while others search.
func TestVectorsOfAnyHistory(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		m := newBags()
		e, work := withModel(t, d, m)
		r := rand.New(rand.NewPCG(3, 4))
		stop := make(chan struct{})
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						if _, err := e.Ask(context.Background(), []string{"h"}, nil, "w1 w2 Anna", 10); err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		names := make([]string, 30)
		for i := range names {
			names[i] = drawText(r, 20) + " Anna"
		}
		for round := range 6 {
			for range 20 {
				n := names[r.IntN(len(names))]
				if r.IntN(3) == 0 {
					remove(t, d, "h", n)
				} else {
					put(t, d, Doc{Heap: "h", Thing: n, Kind: "note", Body: n + fmt.Sprint(" v", r.IntN(9))})
				}
			}
			work()
			fresh, _ := withModel(t, d, m)
			for range 10 {
				q := drawQuery(r, names)
				if strings.HasPrefix(q, "-") || len(query.Parse(q, false).Groups) == 0 {
					continue
				}
				a, err := e.Ask(t.Context(), []string{"h"}, nil, q, 100)
				if err != nil {
					t.Fatal(err)
				}
				b, err := fresh.Ask(t.Context(), []string{"h"}, nil, q, 100)
				if err != nil || !slices.Equal(a.Hits, b.Hits) {
					t.Fatalf("round %d, %q: %v\n%v\n%v", round, q, err, a.Hits, b.Hits)
				}
			}
		}
		close(stop)
		all.Wait()
	})
}

// filled is an index of n things with a random vector each.
func filled(n int) (*index, [][]float32) {
	x := newIndex()
	r := rand.New(rand.NewPCG(5, 6))
	all := make([][]float32, n)
	for i := range all {
		v := make([]float32, 512)
		var sum float64
		for k := range v {
			v[k] = float32(r.NormFloat64())
			sum += float64(v[k]) * float64(v[k])
		}
		for k := range v {
			v[k] /= float32(math.Sqrt(sum))
		}
		id := fmt.Sprintf("t%06d", i)
		x.put(id, "note", []string{"w"})
		x.setVectors(id, [][]byte{embed.Pack(v)})
		all[i] = v
	}
	return x, all
}

func TestMemoryOfVectors(t *testing.T) {
	x, _ := filled(100_000)
	if got := x.vectors.bytes(); got > 60e6 || got < 58e6 {
		t.Errorf("100,000 vectors take %.1f MB, at most 60 are meant", float64(got)/1e6)
	}
	for i := range 50_000 {
		x.setVectors(fmt.Sprintf("t%06d", i), nil)
	}
	before := x.vectors.bytes()
	for i := range 50_000 {
		x.setVectors(fmt.Sprintf("t%06d", i), [][]byte{make([]byte, 516)})
	}
	if got := x.vectors.bytes(); got != before {
		t.Errorf("freed slots were not used again: %d bytes more", got-before)
	}
}

// TestSketchesFindTheNearest compares what the sketches let through with all vectors, at neighbours as near as texts' are.
func TestSketchesFindTheNearest(t *testing.T) {
	x, all := filled(6000)
	r := rand.New(rand.NewPCG(7, 8))
	for i := range all { // texts come in subjects
		base := all[i%300]
		for k := range all[i] {
			all[i][k] = base[k] + float32(r.NormFloat64())*.05
		}
		x.setVectors(fmt.Sprintf("t%06d", i), [][]byte{embed.Pack(all[i])})
	}
	hit, want := 0, 0
	for range 30 {
		v := slices.Clone(all[r.IntN(len(all))])
		for k := range v {
			v[k] += float32(r.NormFloat64()) * .08
		}
		q := embed.NewQuery(v)
		exact := make([]float32, len(all))
		order := make([]int, len(all))
		for i := range all {
			exact[i], order[i] = q.Dot(embed.Pack(all[i])), i
		}
		slices.SortFunc(order, func(a, b int) int { return -int(math.Copysign(1, float64(exact[a]-exact[b]))) })
		a := asking{Plan: &query.Plan{}, near: q, heaps: []searched{{heap: "h", index: x}}}
		hits, _, err := a.rank(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range order[:10] {
			want++
			if slices.ContainsFunc(hits, func(h Hit) bool { return h.Thing == fmt.Sprintf("t%06d", i) }) {
				hit++
			}
		}
	}
	if share := float64(hit) / float64(want); share < .95 {
		t.Errorf("%.3f of the nearest ten were found", share)
	}
}

func TestTimesAndNames(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		e := New(d, 1<<30)
		for i, day := range []string{"2023-05-08", "2023-07-20", "", "2022-05-09"} {
			put(t, d, Doc{Heap: "h", Thing: fmt.Sprint(i, " ", day), Kind: "note", Title: "walk", Body: "we took a walk", Day: day})
		}
		put(t, d, Doc{Heap: "h", Thing: "title", Kind: "note", Title: "walk, 2021-05-08", Body: "we took a walk"})
		for query, want := range map[string]string{"walk in May 2023": "0 2023-05-08", "the walk of 19 July 2023": "1 2023-07-20", "walk on 2022-05-10": "3 2022-05-09", "walk on May 7, 2021": "title"} {
			if got := ask(t, e, query); len(got) != 5 || got[0] != want {
				t.Errorf("%s: %q", query, got)
			}
		}
		today := time.Now().UTC()
		for thing, age := range map[string]int{"a new": 3, "b old": 400, "c coming": -2} {
			put(t, d, Doc{Heap: "h2", Thing: thing, Kind: "note", Body: "the boiler", Day: today.AddDate(0, 0, -age).Format(time.DateOnly)})
		}
		if r, err := e.Ask(t.Context(), []string{"h2"}, nil, "boiler", 10); err != nil || !slices.Equal(found(r), []string{"c coming", "a new", "b old"}) {
			t.Errorf("what is nearest to today isn't first: %q, %v", found(r), err)
		}
		put(t, d, notes("n", "Anna paints and paints and paints, paints", "a portrait that Bob paints")...)
		r, err := e.Ask(t.Context(), []string{"n"}, nil, "what paints Bob?", 10)
		if got := found(r); err != nil || len(got) != 2 || got[0] != "a portrait that Bob paints" {
			t.Errorf("%q, %v", got, err)
		}
	})
}
