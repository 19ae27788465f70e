package search

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"strings"

	"cairn/internal/embed"
	"cairn/internal/when"
)

// What a thing's score is made of, each part between 0 and 1: how near its pieces are to the question in meaning, how well
// its words fit, how many of the question's names it has, whether it's of a time that the question names. The weights were
// picked on sessions of conversations by bench-retrieval, where they lie on a plateau: moving one by a third or so changes recall by .005 at most.
const (
	textWeight = 0.75
	nameWeight = 0.5
	timeWeight = 0.2
	fullText   = 6 // a best text score below this isn't taken for 1: the words of the question are hardly there
)

// Candidates are the best by text and those with a piece whose sketch is among the nearest: a share of all, bounded.
const (
	textCandidates = 200
	nearShare      = 20 // one in so many
	fewestNear     = 200
	mostNear       = 5000
)

// asking is a question to be ranked.
type asking struct {
	*plan
	kinds []string
	near  *embed.Query // nil = by text alone
	spans []when.Span
}

// candidate is a thing that may be an answer.
type candidate struct {
	Hit
	heap, thing int // places
	near        float32
	meant       bool // it has vectors
}

// rank gives the best hits of a question, and whether there are more, in the order of order. All that it decides by is the
// same in every index of the same things, however it grew: slots, for one, are not.
func (a *asking) rank(ctx context.Context, heaps []searched, limit int) ([]Hit, bool, error) {
	matches, w, err := measure(ctx, heaps, a.plan)
	if err != nil {
		return nil, false, err
	}
	scores := make([]*scratch, len(heaps))
	words := top{limit: max(textCandidates, limit+1)}
	for h, x := range heaps {
		scores[h] = scratches.Get().(*scratch)
		defer scratches.Put(scores[h])
		if err := scores[h].score(ctx, x.index, matches[h], a.plan, w); err != nil {
			return nil, false, err
		}
		scores[h].collect(x, a.kinds, a.plan, &words, &words)
	}
	found, err := a.candidates(ctx, heaps, scores, words.hits)
	if err != nil {
		return nil, false, err
	}
	if err := a.compare(ctx, heaps, found); err != nil {
		return nil, false, err
	}
	named := a.named(heaps, matches, found)
	most := float32(fullText)
	if len(words.hits) > 0 {
		most = max(most, words.hits[0].Score)
	}
	best := top{limit: limit + 1}
	for i, c := range found {
		c.Score = c.near + textWeight*c.Score/most + nameWeight*named[i] + timeWeight*a.timely(heaps[c.heap].things[c.thing].day)
		if c.Score > 0 {
			best.add(c.Hit)
		}
	}
	if len(best.hits) > limit {
		return best.hits[:limit], true, nil
	}
	return best.hits, false, nil
}

// candidates are the best by text and the nearest by sketch.
func (a *asking) candidates(ctx context.Context, heaps []searched, scores []*scratch, words []Hit) ([]candidate, error) {
	place := make(map[string]int, len(heaps))
	marked := make([]map[uint32]bool, len(heaps))
	for h, x := range heaps {
		place[x.heap], marked[h] = h, map[uint32]bool{}
	}
	for _, hit := range words {
		h := place[hit.Heap]
		marked[h][heaps[h].byID[hit.Thing]] = true
	}
	if a.near != nil {
		if err := a.nearest(ctx, heaps, scores, marked); err != nil {
			return nil, err
		}
	}
	var found []candidate
	for h, x := range heaps {
		for n := range marked[h] {
			th := &x.things[n]
			part, best := scores[h].best(th)
			c := candidate{Hit: Hit{Heap: x.heap, Thing: th.id, Kind: x.kinds[th.kind], Part: part}, heap: h, thing: int(n)}
			if score := scores[h].thing[n]; score > 0 {
				c.Score = score + bestPassage*best
			}
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(strings.Compare(b.Thing, a.Thing), strings.Compare(a.Heap, b.Heap))
	})
	return found, nil
}

// nearest marks the things with a piece among the nearest by sketch. The cut lies between two distances, so it doesn't
// depend on the order of the pieces.
func (a *asking) nearest(ctx context.Context, heaps []searched, scores []*scratch, marked []map[uint32]bool) error {
	const unseen = ^uint16(0)
	far := make([][]uint16, len(heaps))
	counts := make([]int, len(a.near.Sketch)*64+1)
	all := 0
	for h, x := range heaps {
		if err := ctx.Err(); err != nil {
			return err
		}
		v, s := &x.vectors, scores[h]
		shown := x.shown(a.kinds)
		far[h] = make([]uint16, len(v.owner))
		same := v.words == len(a.near.Sketch)
		for slot, n := range v.owner {
			if !same || n == noThing || s.thing[n] == excluded || !shown[x.things[n].kind] {
				far[h][slot] = unseen
				continue
			}
			d := hamming(a.near.Sketch, v.sketch(uint32(slot)))
			far[h][slot] = uint16(d)
			counts[d]++
			all++
		}
	}
	want := min(max(all/nearShare, fewestNear), mostNear)
	cut, taken := -1, 0
	for cut+1 < len(counts) && (taken == 0 || taken+counts[cut+1] <= want) {
		cut++
		taken += counts[cut]
	}
	for h, x := range heaps {
		for slot, d := range far[h] {
			if d != unseen && int(d) <= cut {
				marked[h][x.vectors.owner[slot]] = true
			}
		}
	}
	return nil
}

func hamming(a, b []uint64) (n int) {
	if len(a) == 8 && len(b) == 8 {
		a, b := (*[8]uint64)(a), (*[8]uint64)(b)
		return bits.OnesCount64(a[0]^b[0]) + bits.OnesCount64(a[1]^b[1]) + bits.OnesCount64(a[2]^b[2]) + bits.OnesCount64(a[3]^b[3]) +
			bits.OnesCount64(a[4]^b[4]) + bits.OnesCount64(a[5]^b[5]) + bits.OnesCount64(a[6]^b[6]) + bits.OnesCount64(a[7]^b[7])
	}
	return embed.Hamming(a, b)
}

// compare sets how near each candidate is. One without vectors, as it's too new, is taken to be as near as the others are on
// average, so that it stands where its words put it.
func (a *asking) compare(ctx context.Context, heaps []searched, found []candidate) error {
	if a.near == nil {
		return nil
	}
	var sum float64
	n := 0
	for i := range found {
		if i%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		c := &found[i]
		x := heaps[c.heap]
		th := &x.things[c.thing]
		near, piece, pieces := x.nearness(th, a.near)
		if c.near, c.meant = near, pieces > 0; !c.meant {
			continue
		}
		if c.Score == 0 { // no word of it fits: what's shown is the passage about where the nearest piece is
			c.Part = piece * int(th.parts) / pieces
		}
		sum += float64(near)
		n++
	}
	for i := range found {
		if c := &found[i]; !c.meant && n > 0 {
			c.near = float32(sum / float64(n))
		}
	}
	return nil
}

// named gives the share of the question's names that each candidate has.
func (a *asking) named(heaps []searched, matches [][]match, found []candidate) []float32 {
	share := make([]float32, len(found))
	if len(a.names) == 0 {
		return share
	}
	places := make([]map[uint32]int, len(heaps))
	for h := range heaps {
		places[h] = map[uint32]int{}
	}
	for i, c := range found {
		places[c.heap][uint32(c.thing)] = i
	}
	each := 1 / float32(len(a.names))
	for h, x := range heaps {
		for _, name := range a.names {
			last := noThing
			matches[h][name].each(x.index, func(p, _ uint32) {
				n := x.thingOf[p]
				if n == last {
					return
				}
				last = n
				if i, ok := places[h][n]; ok {
					share[i] += each
				}
			})
		}
	}
	return share
}

// timely gives how well a day fits the times of the question: 1 in one of them, less by the distance from it.
func (a *asking) timely(day int32) float32 {
	var best float32
	if day == noDay {
		return 0
	}
	for _, s := range a.spans {
		slack := float32(max(3, (s.To-s.From)/4))
		away := float32(s.Away(day)) / slack
		best = max(best, s.Weight/(1+away*away))
	}
	return best
}
