package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"cairn/internal/db"
	"cairn/internal/db/dbtest"
	"cairn/internal/search/query"
)

// plainThing is a thing as a reference search sees it: tokens in a row, and in which passage each is.
type plainThing struct {
	tokens   []string
	part     []int
	passages int
}

func newPlainThing(passages []string) plainThing {
	th := plainThing{passages: len(passages)}
	for i, p := range passages {
		for _, t := range strings.Fields(p) {
			th.tokens = append(th.tokens, t)
			th.part = append(th.part, i)
		}
	}
	return th
}

// lengths gives the tokens of each passage that count.
func (th plainThing) lengths() []int {
	ls := make([]int, th.passages)
	for i, t := range th.tokens {
		if t != separatorToken && t != "🚀" {
			ls[th.part[i]]++
		}
	}
	return ls
}

// times counts a phrase by passage.
func (th plainThing) times(p query.Phrase) (n []int, total int) {
	n = make([]int, th.passages)
	for i := 0; i+len(p.Terms) <= len(th.tokens); i++ {
		ok := true
		for k, t := range p.Terms {
			have := th.tokens[i+k]
			if p.Prefix && k == len(p.Terms)-1 {
				ok = ok && strings.HasPrefix(have, t)
			} else {
				ok = ok && have == t
			}
		}
		if ok {
			n[th.part[i]]++
			total++
		}
	}
	return n, total
}

// plainSearch is a search by the definitions, one thing after the other: the score of each match.
func plainSearch(things map[string]plainThing, q query.Query, strict bool) map[string]float64 {
	var passages, tokens float64
	for _, th := range things {
		passages += float64(th.passages)
		for _, l := range th.lengths() {
			tokens += float64(l)
		}
	}
	idf := func(n, df float64) float64 { return max(math.Log((n-df+.5)/(df+.5)), 1e-6) * 2.2 }
	bm25 := func(times, length, avg float64) float64 { return times / (times + 1.2*(.25+.75*length/avg)) }
	whole, parts := map[string]float64{}, map[string][]float64{}
	for _, g := range q.Content(false) {
		for _, o := range g {
			for _, p := range o.Loose {
				var dfPassages, dfThings float64
				for _, th := range things {
					n, total := th.times(p)
					for _, k := range n {
						dfPassages += min(float64(k), 1)
					}
					dfThings += min(float64(total), 1)
				}
				for id, th := range things {
					n, total := th.times(p)
					if total == 0 {
						continue
					}
					if parts[id] == nil {
						parts[id] = make([]float64, th.passages)
					}
					length := 0
					for i, l := range th.lengths() {
						length += l
						if n[i] > 0 {
							parts[id][i] += idf(passages, dfPassages) * bm25(float64(n[i]), float64(l), tokens/passages)
						}
					}
					whole[id] += idf(float64(len(things)), dfThings) * bm25(float64(total), float64(length), tokens/float64(len(things)))
				}
			}
		}
	}
	has := func(th plainThing, g []query.Operand) bool {
		return slices.ContainsFunc(g, func(o query.Operand) bool { _, n := th.times(o.Phrase); return n > 0 })
	}
	strictly, loosely := map[string]float64{}, map[string]float64{}
	for id, score := range whole {
		score += .5 * slices.Max(parts[id])
		all, bound, excluded := true, true, false
		for _, g := range q.Content(false) {
			met := has(things[id], g)
			all = all && met
			bound = bound && (met || slices.ContainsFunc(g, func(o query.Operand) bool { return !o.Quoted }))
		}
		for _, p := range q.Not {
			_, n := things[id].times(p)
			excluded = excluded || n > 0
		}
		switch {
		case excluded:
		case all || !strict:
			strictly[id] = score
		case bound:
			loosely[id] = score
		}
	}
	if len(strictly) > 0 {
		return strictly
	}
	return loosely
}

// drawText draws from 400 words, so that terms take one and two bytes, and some pieces of other sorts.
func drawText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		switch r.IntN(12) {
		case 0:
			b.WriteString([]string{"the", "REQ-1", "REQ-2", "🚀", "咖啡豆", "会议", "开会", "用Go语言", "C++", "don't", "state-of-the-art"}[r.IntN(11)])
		default:
			fmt.Fprintf(&b, "w%d", min(r.IntN(400), r.IntN(400), r.IntN(400)))
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// drawQuery draws a query, mostly of pieces of the texts, so that phrases match now and then.
func drawQuery(r *rand.Rand, texts []string) string {
	var q []string
	for range 1 + r.IntN(3) {
		ws := strings.Fields(texts[r.IntN(len(texts))])
		from := r.IntN(len(ws))
		piece := ws[from:min(from+1+r.IntN(3), len(ws))]
		switch r.IntN(8) {
		case 0:
			q = append(q, `"`+strings.Join(piece, " ")+`"`)
		case 1:
			q = append(q, `-"`+strings.Join(piece, " ")+`"`)
		case 2:
			q = append(q, strings.Join(piece, "-"))
		case 3:
			q = append(q, drawText(r, 1), "OR", piece[0])
		case 4:
			q = append(q, []string{"会", "豆", "啡豆", "用Go", "咖啡豆 会", "\"w1 🚀", "REQ-3"}[r.IntN(7)])
		default:
			q = append(q, piece[0])
		}
	}
	return strings.Join(q, " ")
}

// TestAgainstPlainCounting compares an index that has seen changes with a search by the definitions.
func TestAgainstPlainCounting(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	hits := 0
	for range 12 {
		x, things := newIndex(), map[string]plainThing{}
		var texts []string
		for range 60 {
			id := fmt.Sprint("t", r.IntN(40))
			text := drawText(r, []int{3, 30, 450}[r.IntN(3)])
			ps := Analyze(Doc{Title: drawText(r, 2), Body: text}).passages
			x.put(id, "note", ps)
			things[id] = newPlainThing(ps)
			texts = append(texts, text)
		}
		for range 150 {
			text := drawQuery(r, texts)
			strict := r.IntN(4) > 0
			q := query.Parse(text, strict)
			if len(q.Groups) == 0 {
				continue
			}
			got, _, err := rank(t.Context(), []searched{{heap: "h", index: x}}, nil, q.Plan(strict), 100)
			if err != nil {
				t.Fatal(err)
			}
			want := plainSearch(things, q, strict)
			hits += len(want)
			for i, h := range got {
				if w, ok := want[h.Thing]; !ok || math.Abs(w-float64(h.Score)) > 1e-4*w+1e-9 {
					t.Fatalf("%q, strict %t: %s has the score %g, want %g, %t", text, strict, h.Thing, h.Score, w, ok)
				}
				if i > 0 && order(got[i-1], h) >= 0 {
					t.Fatalf("%q: %+v before %+v", text, got[i-1], h)
				}
			}
			if len(got) != len(want) {
				t.Fatalf("%q, strict %t: %d hits, want %d", text, strict, len(got), len(want))
			}
		}
	}
	if hits < 5000 {
		t.Errorf("only %d hits", hits)
	}
}

// FindAmong finds what Find does, as far as it's among the things named, in the same order and with the same scores.
func TestFindAmongIsFindOfThese(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		e, r := New(d, 1<<30), rand.New(rand.NewPCG(5, 5))
		var all []string
		for i := range 300 {
			id := fmt.Sprint("t", i)
			put(t, d, Doc{Heap: "h", Thing: id, Kind: "note", Body: draw(r, 12), Fresh: true})
			all = append(all, id)
		}
		for range 60 {
			text := draw(r, 1+r.IntN(3))
			among := slices.DeleteFunc(slices.Clone(all), func(string) bool { return r.IntN(3) > 0 })
			got, err := e.FindAmong(t.Context(), []string{"h"}, nil, append(among, "elsewhere"), text, 10)
			if err != nil {
				t.Fatal(err)
			}
			every, err := e.Find(t.Context(), []string{"h"}, nil, text, 1000)
			if err != nil {
				t.Fatal(err)
			}
			want := slices.DeleteFunc(every.Hits, func(h Hit) bool { return !slices.Contains(among, h.Thing) })
			if len(want) == 0 {
				continue // then any of the words will do
			}
			if more := len(want) > 10; got.More != more || !slices.Equal(got.Hits, want[:min(len(want), 10)]) {
				t.Fatalf("%q: %v, want %v", text, got, want)
			}
		}
		if r, err := e.FindAmong(t.Context(), []string{"h"}, nil, nil, draw(r, 1), 10); err != nil || len(r.Hits) > 0 {
			t.Errorf("among none: %v %v", r, err)
		}
	})
}
