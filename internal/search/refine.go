package search

import (
	"context"
	"encoding/binary"
)

// The best candidates are read again as texts: words of the question count more in a title, beside each other, and together
// in one place.
const (
	refined     = 100     // so many candidates
	refineTerms = 300_000 // and so many of their terms: a bound for long texts
	pairWeight  = 0.6     // of two words that follow each other in the question and stand near each other in the text
	pairReach   = 4       // terms from one to the other
	pairOrdered = 1.5     // times as much where they follow each other in the text too
	spotWeight  = 0.2     // of all the question's words that stand in one place, the three best places of a text
	spotReach   = 30      // terms that make a place
	titleWeight = 1.2     // of a word in a title
	titleTerms  = 15      // a title of so many terms counts half
)

var spotShares = three{1, 0.5, 0.25}

// refine adds to the text scores of the best candidates.
func (a *asking) refine(ctx context.Context, best []candidate, limit int) error {
	best = best[:min(len(best), max(refined, limit+1))]
	n := min(len(a.Scored), maxRefined)
	r := &refinement{last: make([]int, n), pairs: make([]float32, n), titled: make([]bool, n), weight: make([]weight, n)}
	for i := range n {
		r.weight[i] = a.weights.of[a.Scored[i].Phrase]
	}
	asked := make([]termSets, len(a.heaps))
	left := refineTerms
	for i := range best {
		c := &best[i]
		if c.text <= 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		x, th := a.of(c)
		if left -= int(th.length); left < 0 {
			return nil
		}
		if asked[c.heap] == nil {
			asked[c.heap] = a.termSets(x, n)
		}
		r.read(x, th, asked[c.heap])
		c.text += r.sum(a.weights, th)
	}
	return nil
}

// maxRefined bounds how many phrases of a long question are looked at.
const maxRefined = 64

// termSets gives, by term, for which of the question's phrases of one term it stands.
type termSets map[uint32][]int

func (a *asking) termSets(x *index, n int) termSets {
	sets := termSets{}
	for i, s := range a.Scored[:n] {
		if ph := a.Phrases[s.Phrase]; len(ph.Terms) == 1 && !ph.Prefix {
			for _, id := range x.termsOf(ph) {
				sets[id] = append(sets[id], i)
			}
		}
	}
	return sets
}

// refinement is what was seen in one text.
type refinement struct {
	last   []int     // by phrase: where it stood last
	pairs  []float32 // by phrase: how often it and the next one stood near each other
	titled []bool    // by phrase: it stands in the title
	title  int       // terms of the title
	spots  three
	weight []weight // by phrase
}

const nowhere = -1 << 30

// read goes through a text once.
func (r *refinement) read(x *index, th *thing, asked termSets) {
	clear(r.pairs)
	clear(r.titled)
	for i := range r.last {
		r.last[i] = nowhere
	}
	r.title, r.spots = 0, three{}
	spot, from, at := float32(0), nowhere, 0
	for b := x.forward[x.offset[th.first]:x.offset[th.first+th.parts]]; len(b) > 0; {
		v, n := binary.Uvarint(b)
		b = b[n:]
		if v == breakTerm { // what stood before it was the title
			r.title = at
			for i, p := range r.last {
				r.titled[i] = p != nowhere
			}
			continue
		}
		at++
		here := asked[uint32(v)]
		if here == nil {
			continue
		}
		for _, i := range here {
			r.meet(i, at)
		}
		if at-from >= spotReach {
			r.spots.keep(spot)
			spot, from = 0, at
		}
		spot = max(spot, r.together(at))
	}
	r.spots.keep(spot)
}

// meet counts the neighbours of a phrase in the question that stood just before.
func (r *refinement) meet(i, at int) {
	if i > 0 {
		if d := at - r.last[i-1]; d == 1 {
			r.pairs[i-1] += pairOrdered
		} else if d > 0 && d <= pairReach {
			r.pairs[i-1]++
		}
	}
	if i+1 < len(r.last) {
		if d := at - r.last[i+1]; d > 0 && d <= pairReach {
			r.pairs[i]++
		}
	}
	r.last[i] = at
}

// together weighs the phrases that stand within reach before a place.
func (r *refinement) together(at int) (sum float32) {
	for i, p := range r.last {
		if at-p < spotReach {
			sum += r.weight[i].passage
		}
	}
	return sum
}

// three are the best of some values, the highest first.
type three [3]float32

func (t *three) keep(v float32) {
	for k := range t {
		if v > t[k] {
			t[k], v = v, t[k]
		}
	}
}

func (r *refinement) sum(w *weights, th *thing) (sum float32) {
	for k, s := range r.spots {
		sum += spotWeight * spotShares[k] * s
	}
	norm := w.flat + w.thing*float32(th.length)
	for i, times := range r.pairs {
		if times > 0 {
			sum += pairWeight * (r.weight[i].thing + r.weight[i+1].thing) / 2 * times / (times + norm)
		}
	}
	for i, in := range r.titled {
		if in {
			sum += titleWeight * r.weight[i].passage / (1 + float32(r.title)/titleTerms)
		}
	}
	return sum
}
