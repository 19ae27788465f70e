package search

import (
	"context"
	"maps"
	"math/bits"
	"slices"

	"cairn/internal/embed"
	"cairn/internal/search/query"
	"cairn/internal/when"
)

// What a thing's score is made of, each part about between 0 and 1: how near its pieces are to the question in meaning, how
// well its words fit, how many of the question's names it has, whether it's of a time that the question names, how much it has
// of what the best things have in common. Here and in refine.go and feedback.go weights were picked by bench-retrieval on
// conversations and abstracts; they lie on a plateau: moving one by a third or so changes recall by .005 at most.
const (
	textWeight   = 1
	nameWeight   = 0.8
	timeWeight   = 0.2
	commonWeight = 0.12
	fullText     = 6 // a best text score below this isn't taken for 1: the words of the question are hardly there
)

// What stands just before and after a thing in its thread counts so much for it: its words, and its meaning.
const (
	textAround = 0.5
	nearAround = 0.4
)

// Candidates are the best by text and those with a piece whose sketch is among the nearest: a share of all, bounded.
const (
	textCandidates = 200
	nearShare      = 20 // one in so many
	fewestNear     = 200
	mostNear       = 1000
)

// asking is a question to be ranked.
type asking struct {
	*query.Plan
	kinds []string
	near  *embed.Query // nil = by text alone
	spans []when.Span
	today int32 // noDay = time has no say

	heaps   []searched
	scores  []*scratch // by heap
	shown   [][]bool   // by heap, by kind
	weights *weights
}

// candidate is a thing that may be an answer.
type candidate struct {
	Hit
	heap, thing               int // places
	text, near, names, timely float32
	meant                     bool // it has vectors
}

// sum makes the score of a candidate where the best text score is most.
func (c *candidate) sum(most float32) {
	c.Score = c.near + textWeight*c.text/most + nameWeight*c.names + timeWeight*c.timely
}

func (a *asking) of(c *candidate) (*index, *thing) {
	x := a.heaps[c.heap].index
	return x, &x.things[c.thing]
}

// rank gives the best hits of a question, and whether there are more, in the order of order. All that it decides by is the
// same in every index of the same things, however it grew: slots and the numbers of terms, for two, are not.
func (a *asking) rank(ctx context.Context, limit int) ([]Hit, bool, error) {
	a.scores, a.shown = make([]*scratch, len(a.heaps)), make([][]bool, len(a.heaps))
	for h, x := range a.heaps {
		a.shown[h] = x.shown(a.kinds)
	}
	matches, w, err := measure(ctx, a.heaps, a.shown, a.Plan)
	if err != nil {
		return nil, false, err
	}
	a.weights = w
	words := top{limit: max(textCandidates, limit+1)}
	for h, x := range a.heaps {
		a.scores[h] = scratches.Get().(*scratch)
		defer scratches.Put(a.scores[h])
		if err := a.scores[h].score(ctx, x.index, matches[h], a.Plan, w); err != nil {
			return nil, false, err
		}
		a.scores[h].collect(x, a.shown[h], a.Plan, &words, &words)
	}
	found, err := a.candidates(ctx, words.best())
	if err != nil {
		return nil, false, err
	}
	if err := a.compare(ctx, found); err != nil {
		return nil, false, err
	}
	a.named(matches, found)
	best := sorted(found)
	if len(a.Scored) > 0 {
		if err := a.refine(ctx, best, limit); err != nil {
			return nil, false, err
		}
		best = sorted(best)
		if err := a.feedback(ctx, best[:min(len(best), max(refined, limit+1))]); err != nil {
			return nil, false, err
		}
	}
	hits := top{limit: limit + 1}
	for _, c := range best {
		if c.Score > 0 {
			hits.add(c.Hit)
		}
	}
	shown := hits.best()
	return shown[:min(len(shown), limit)], len(shown) > limit, nil
}

// sorted makes the scores of candidates and puts the best first.
func sorted(found []candidate) []candidate {
	most := float32(fullText)
	for i := range found {
		most = max(most, found[i].text)
	}
	for i := range found {
		found[i].sum(most)
	}
	slices.SortFunc(found, func(a, b candidate) int { return order(a.Hit, b.Hit) })
	return found
}

// candidates are the best by text, the nearest by sketch and what stands around them.
func (a *asking) candidates(ctx context.Context, words []Hit) ([]candidate, error) {
	place := make(map[string]int, len(a.heaps))
	marked := make([]map[uint32]bool, len(a.heaps))
	for h, x := range a.heaps {
		place[x.heap], marked[h] = h, map[uint32]bool{}
	}
	for _, hit := range words {
		h := place[hit.Heap]
		marked[h][a.heaps[h].byID[hit.Thing]] = true
	}
	if a.near != nil {
		if err := a.nearest(ctx, marked); err != nil {
			return nil, err
		}
	}
	var found []candidate
	for h, x := range a.heaps {
		if len(x.threads) > 0 {
			for _, n := range slices.Collect(maps.Keys(marked[h])) {
				for _, m := range a.around(h, n) {
					marked[h][m] = true
				}
			}
		}
		for n := range marked[h] {
			th := &x.things[n]
			part, _ := a.scores[h].best(th)
			c := candidate{Hit: Hit{Heap: x.heap, Thing: th.id, Kind: x.kinds[th.kind], Part: part, Worded: a.scores[h].thing[n] > 0}, heap: h, thing: int(n)}
			c.text, c.timely = a.scores[h].whole(x.index, n), a.timely(th.day)
			for _, m := range a.around(h, n) {
				c.text += textAround * a.scores[h].whole(x.index, m)
			}
			found = append(found, c)
		}
	}
	return found, nil
}

// around gives what stands just before and after a thing in its thread, as if what may not be shown weren't there: it has no
// say in the order of what may.
func (a *asking) around(h int, n uint32) []uint32 {
	x := a.heaps[h].index
	return x.around(n, func(m uint32) bool { return a.shown[h][x.things[m].kind] && a.scores[h].thing[m] != excluded })
}

// whole gives a thing's text score.
func (s *scratch) whole(x *index, n uint32) float32 {
	score := s.thing[n]
	if score <= 0 {
		return 0
	}
	_, best := s.best(&x.things[n])
	return score + bestPassage*best
}

// nearest marks the things with a piece among the nearest by sketch. The cut lies between two distances, so it doesn't
// depend on the order of the pieces.
func (a *asking) nearest(ctx context.Context, marked []map[uint32]bool) error {
	const unseen = ^uint16(0)
	far := make([][]uint16, len(a.heaps))
	counts := make([]int, len(a.near.Sketch)*64+1)
	all := 0
	for h, x := range a.heaps {
		if err := ctx.Err(); err != nil {
			return err
		}
		v, s, shown := &x.vectors, a.scores[h], a.shown[h]
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
	for h, x := range a.heaps {
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

// compare sets how near each candidate is, with what stands around it. One without vectors, as it's too new, is taken to be
// as near as the others are on average, so that it stands where its words put it.
func (a *asking) compare(ctx context.Context, found []candidate) error {
	if a.near == nil {
		return nil
	}
	const one = 1 << 32
	var sum, n int64 // of whole numbers: the same in any order
	for i := range found {
		if i%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		c := &found[i]
		x, th := a.of(c)
		near, piece, pieces := x.nearness(th, a.near)
		if c.meant = pieces > 0; !c.meant {
			continue
		}
		if th.thread != noThread {
			for _, m := range a.around(c.heap, uint32(c.thing)) {
				other, _, _ := x.nearness(&x.things[m], a.near)
				near += nearAround * other
			}
			near /= 1 + nearAround
		}
		c.near = near
		if a.scores[c.heap].thing[c.thing] == 0 { // no word of it fits: what's shown is the passage about where the nearest piece is
			c.Part = piece * int(th.parts) / pieces
		}
		sum += int64(near * one)
		n++
	}
	for i := range found {
		if c := &found[i]; !c.meant && n > 0 {
			c.near = float32(float64(sum) / float64(n) / one)
		}
	}
	return nil
}

// named sets the share of the question's names that each candidate has.
func (a *asking) named(matches [][]match, found []candidate) {
	if len(a.Names) == 0 {
		return
	}
	places := make([]map[uint32]int, len(a.heaps))
	for h := range a.heaps {
		places[h] = map[uint32]int{}
	}
	for i, c := range found {
		places[c.heap][uint32(c.thing)] = i
	}
	each := 1 / float32(len(a.Names))
	for h, x := range a.heaps {
		for _, name := range a.Names {
			last := noThing
			matches[h][name].each(x.index, func(p, _ uint32) {
				n := x.thingOf[p]
				if n == last {
					return
				}
				last = n
				if i, ok := places[h][n]; ok {
					found[i].names += each
				}
			})
		}
	}
}

// What has a day counts a little more the nearer that is to today where the question names no time: so much of timeWeight on
// the day, half of it so many days from it.
const (
	fresh     = 0.25
	freshDays = 30
)

// timely gives how well a day fits the times of the question: 1 in one of them, less by the distance from it.
func (a *asking) timely(day int32) float32 {
	if day == noDay || a.today == noDay {
		return 0
	}
	if len(a.spans) == 0 {
		return fresh / (1 + float32(max(day-a.today, a.today-day))/freshDays)
	}
	var best float32
	for _, s := range a.spans {
		slack := float32(max(3, (s.To-s.From)/4))
		away := float32(s.Away(day)) / slack
		best = max(best, s.Weight/(1+away*away))
	}
	return best
}
