package search

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strings"
)

// What the best things have in common, beside the words of the question, tells of others like them.
const (
	commonThings = 10 // the best ones, of each the passage that fits best
	commonTerms  = 15 // so many terms are taken
	commonLeast  = 2  // of those that so many things have
)

// common is a term that several of the best things have. weight is how much it tells, 1 for the one that tells most.
type common struct {
	term   string
	weight float32
	things int
	idf    float32
}

// feedback adds to the scores of the best candidates, which are in their order.
func (a *asking) feedback(ctx context.Context, best []candidate) error {
	terms := a.common(best[:min(len(best), commonThings)])
	if len(terms) == 0 {
		return nil
	}
	places := make([]map[uint32]int, len(a.heaps)) // of terms, by their numbers
	for h, x := range a.heaps {
		places[h] = map[uint32]int{}
		for i, t := range terms {
			if id, ok := x.terms[t.term]; ok {
				places[h][id] = i
			}
		}
	}
	has := make([]float32, len(best))
	times := make([]float32, len(terms))
	most := float32(fullText)
	left := refineTerms
	for i := range best {
		if err := ctx.Err(); err != nil {
			return err
		}
		x, th := a.of(&best[i])
		if left -= int(th.length); left < 0 {
			break
		}
		clear(times)
		for b := x.forward[x.offset[th.first]:x.offset[th.first+th.parts]]; len(b) > 0; {
			v, n := binary.Uvarint(b)
			b = b[n:]
			if k, ok := places[best[i].heap][uint32(v)]; ok {
				times[k]++
			}
		}
		norm := a.weights.flat + a.weights.thing*float32(th.length)
		for k, n := range times {
			if n > 0 {
				has[i] += terms[k].weight * terms[k].idf * n / (n + norm)
			}
		}
		most = max(most, has[i])
	}
	for i := range best {
		best[i].Score += commonWeight * has[i] / most
	}
	return nil
}

// common gives the terms that the best things have in common, those that tell most.
func (a *asking) common(best []candidate) []common {
	asked := map[string]bool{}
	for _, s := range a.Scored {
		ph := a.Phrases[s.Phrase]
		for _, t := range slices.Concat(ph.Terms, ph.Forms) {
			asked[t] = true
		}
	}
	terms := map[string]*common{}
	for i := range best {
		c := &best[i]
		x, th := a.of(c)
		ids := slices.DeleteFunc(x.appendTerms(nil, th.first+uint32(min(c.Part, int(th.parts)-1))), func(id uint32) bool { return id == breakTerm || x.post[id].symbol })
		slices.Sort(ids)
		for k := 0; k < len(ids); {
			id, from := ids[k], k
			for k < len(ids) && ids[k] == id {
				k++
			}
			name := x.names[id]
			if asked[name] {
				continue
			}
			t := terms[name]
			if t == nil {
				t = &common{term: name}
				terms[name] = t
			}
			n := float32(k - from)
			t.things++
			t.weight += n / (n + 1) * c.Score
		}
	}
	return a.telling(terms)
}

// telling weighs the terms and gives the best.
func (a *asking) telling(terms map[string]*common) []common {
	var all corpus
	for h, x := range a.heaps {
		all.add(x.among(a.shown[h]))
	}
	var list []common
	for _, t := range terms {
		if t.things < commonLeast {
			continue
		}
		passages, things := 0, 0
		for h, x := range a.heaps {
			if id, ok := x.terms[t.term]; ok {
				p, n := x.post[id].among(a.shown[h])
				passages, things = passages+p, things+n
			}
		}
		t.weight *= idf(all.passages, passages)
		t.idf = idf(all.things, things)
		list = append(list, *t)
	}
	slices.SortFunc(list, func(a, b common) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), strings.Compare(a.term, b.term))
	})
	list = list[:min(len(list), commonTerms)]
	for i := range slices.Backward(list) { // the first one last: the others are measured by it
		list[i].weight /= list[0].weight
	}
	return list
}
