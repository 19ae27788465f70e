package search

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"

	"cairn/internal/search/query"
)

// A thing's score is Okapi BM25 of the whole thing plus bestPassage times that of its best passage.
const (
	bm25K1      = 1.2
	bm25B       = 0.75
	bestPassage = 0.5
)

// searched is an index with the heap it's of. The caller of rank holds its lock.
type searched struct {
	heap string
	*index
	only map[uint32]bool // the things that may be found; nil = any
}

// rank gives the best limit hits of a plan over several heaps, and whether there are more. They are searched as if they were
// one: how rare a word is, and how long a usual text, is counted over all heaps together. With counts of their own each, the
// few things of a small heap would get low scores (in two notes no word is rare) and be drowned by a large one, or push
// themselves in front with a word that is rare only there. The price is that a thing's score depends on which other heaps
// are searched, as it depends on the other things in them.
//
// Hits are strict ones if any heap has one, else loose ones; by score, then by thing, the newest UUIDv7 first, then by heap.
func rank(ctx context.Context, heaps []searched, kinds []string, p *query.Plan, limit int) ([]Hit, bool, error) {
	shown := make([][]bool, len(heaps))
	for h, x := range heaps {
		shown[h] = x.shown(kinds)
	}
	matches, w, err := measure(ctx, heaps, shown, p)
	if err != nil {
		return nil, false, err
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	strict, loose := top{limit: limit + 1}, top{limit: limit + 1}
	for h, x := range heaps {
		if err := s.score(ctx, x.index, matches[h], p, w); err != nil {
			return nil, false, err
		}
		s.collect(x, shown[h], p, &strict, &loose)
	}
	hits := strict.best()
	if len(hits) == 0 {
		hits = loose.best()
	}
	if len(hits) > limit {
		return hits[:limit], true, nil
	}
	return hits, false, nil
}

// measure finds where each phrase stands in each heap, and what it weighs among the kinds that are shown.
func measure(ctx context.Context, heaps []searched, shown [][]bool, p *query.Plan) ([][]match, *weights, error) {
	matches := make([][]match, len(heaps))
	var all corpus
	passages, things := make([]int, len(p.Phrases)), make([]int, len(p.Phrases))
	for h, x := range heaps {
		all.add(x.among(shown[h]))
		matches[h] = make([]match, len(p.Phrases))
		for i, ph := range p.Phrases {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			m := x.match(ph, shown[h])
			matches[h][i] = m
			passages[i] += m.passages
			things[i] += m.things
		}
	}
	w := &weights{
		of:      make([]weight, len(p.Phrases)),
		flat:    bm25K1 * (1 - bm25B),
		passage: float32(bm25K1 * bm25B * float64(all.passages) / float64(max(all.tokens, 1))),
		thing:   float32(bm25K1 * bm25B * float64(all.things) / float64(max(all.tokens, 1))),
	}
	for i := range w.of {
		w.of[i] = weight{idf(all.passages, passages[i]), idf(all.things, things[i])}
	}
	return matches, w, nil
}

// weights are the parts of BM25 that are the same for all heaps of a search.
type weights struct {
	of             []weight // by phrase
	flat           float32  // of a text's norm, what doesn't depend on its length
	passage, thing float32  // what each token adds to it
}

type weight struct{ passage, thing float32 }

// idf is the weight of a phrase that stands in df of n texts. One that stands in most of them still counts a little.
func idf(n, df int) float32 {
	return float32(max(math.Log((float64(n)-float64(df)+.5)/(float64(df)+.5)), 1e-6) * (bm25K1 + 1))
}

// scratch holds the scores of the passages and things of one heap.
type scratch struct {
	passage, thing []float32
	met            []uint32 // by thing: of so many groups in a row it has a phrase
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func cleared[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/8)
	}
	s = s[:n]
	clear(s)
	return s
}

const excluded = -1 // a score

// score sets the score of each passage, that of each whole thing and the groups it has met. Things with an excluded phrase
// get excluded. A thing's sum is made phrase by phrase in the query's order, so it is the same in every index.
func (s *scratch) score(ctx context.Context, x *index, matches []match, p *query.Plan, w *weights) error {
	s.passage, s.thing = cleared(s.passage, len(x.thingOf)), cleared(s.thing, len(x.things))
	for _, ph := range p.Scored {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.addPhrase(x, &matches[ph.Phrase], ph.Times, w.of[ph.Phrase], w)
	}
	if len(p.Groups) > 0 {
		s.met = cleared(s.met, len(x.things))
	}
	for g, group := range p.Groups {
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, i := range group {
			matches[i].each(x, func(passage, _ uint32) {
				if m := &s.met[x.thingOf[passage]]; *m == uint32(g) {
					*m++
				}
			})
		}
	}
	for _, i := range p.Not {
		matches[i].each(x, func(passage, _ uint32) { s.thing[x.thingOf[passage]] = excluded })
	}
	return nil
}

func (s *scratch) addPhrase(x *index, m *match, times float32, idf weight, w *weights) {
	inPassage, inThing := idf.passage*times, idf.thing*times
	const none = math.MaxUint32
	current, sum := uint32(none), float32(0)
	flush := func() {
		if current != none {
			s.thing[current] += inThing * sum / (sum + w.flat + w.thing*float32(x.things[current].length))
		}
	}
	m.each(x, func(p, n uint32) {
		f := float32(n)
		s.passage[p] += inPassage * f / (f + w.flat + w.passage*float32(x.length[p]))
		if th := x.thingOf[p]; th != current {
			flush()
			current, sum = th, 0
		}
		sum += f
	})
	flush()
}

// collect hands the things of a heap that may be seen to strict or, while nothing is strict, to loose.
func (s *scratch) collect(x searched, shown []bool, p *query.Plan, strict, loose *top) {
	// From the newest on: among equal scores, what comes later mostly loses at the first comparison.
	for i := len(x.things) - 1; i >= 0; i-- {
		score := s.thing[i]
		if score <= 0 {
			continue
		}
		th := &x.things[i]
		if th.dead || !shown[th.kind] || x.only != nil && !x.only[uint32(i)] {
			continue
		}
		to := strict
		if len(p.Groups) > 0 && s.met[i] < uint32(len(p.Groups)) {
			if len(strict.hits) > 0 || s.met[i] < uint32(p.Binding) {
				continue
			}
			to = loose
		}
		part, best := s.best(th)
		if score += bestPassage * best; score >= to.least {
			to.add(Hit{Heap: x.heap, Thing: th.id, Kind: x.kinds[th.kind], Part: part, Score: score})
		}
	}
}

// best gives the passage of a thing with the best score.
func (s *scratch) best(th *thing) (part int, best float32) {
	for k, sc := range s.passage[th.first : th.first+th.parts] {
		if sc > best {
			part, best = k, sc
		}
	}
	return part, best
}

// shown tells which of the index's kinds are among kinds; nil are all.
func (x *index) shown(kinds []string) []bool {
	shown := make([]bool, len(x.kinds))
	for i, k := range x.kinds {
		shown[i] = kinds == nil || slices.Contains(kinds, k)
	}
	return shown
}

// among counts what lives of the kinds that are shown.
func (x *index) among(shown []bool) (all corpus) {
	for kind, c := range x.byKind {
		if shown[kind] {
			all.add(c)
		}
	}
	return all
}

// top keeps the best limit of the hits it's given.
type top struct {
	limit int
	hits  []Hit   // up to twice as many, in no order
	least float32 // a lower score has no place any more
}

func (t *top) add(h Hit) {
	if t.hits = append(t.hits, h); len(t.hits) >= 2*t.limit+64 {
		t.best()
	}
}

// best gives the best hits in their order.
func (t *top) best() []Hit {
	slices.SortFunc(t.hits, order)
	if len(t.hits) >= t.limit {
		t.hits = t.hits[:t.limit]
		t.least = t.hits[t.limit-1].Score
	}
	return t.hits
}

func order(a, b Hit) int {
	if a.Score != b.Score {
		return cmp.Compare(b.Score, a.Score)
	}
	if c := strings.Compare(b.Thing, a.Thing); c != 0 {
		return c
	}
	return strings.Compare(a.Heap, b.Heap)
}
