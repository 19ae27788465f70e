package search

import (
	"bytes"
	"encoding/binary"
	"slices"

	"cairn/internal/search/query"
)

// match tells where a phrase stands in an index: in the posting of a term, or in a list made for this search.
type match struct {
	term     uint32 // breakTerm: none
	list     []place
	passages int // living and shown
	things   int // living and shown
}

// place is a passage, and how often a phrase stands there.
type place struct{ passage, times uint32 }

// each calls f with each passage, ascending, and how often the phrase stands there. Dead passages may be among them.
func (m *match) each(x *index, f func(p, times uint32)) {
	if m.term != breakTerm {
		x.post[m.term].each(f)
		return
	}
	for _, l := range m.list {
		f(l.passage, l.times)
	}
}

// match finds a phrase and counts where it stands among the kinds that are shown.
func (x *index) match(p query.Phrase, shown []bool) match {
	last := len(p.Terms) - 1
	switch {
	case len(p.Forms) > 0:
		ids := x.termsOf(p)
		if len(ids) == 1 {
			return x.posted(ids[0], shown)
		}
		return x.listed(x.anyOf(ids), shown)
	case p.Prefix && last == 0:
		return x.listed(x.anyOf(x.startingWith(p.Terms[0])), shown)
	case last == 0:
		if id, ok := x.terms[p.Terms[0]]; ok && id != breakTerm {
			return x.posted(id, shown)
		}
		return match{}
	}
	exact := p.Terms
	if p.Prefix {
		exact = p.Terms[:last]
	}
	ids := make([]uint32, len(exact))
	for i, t := range exact {
		id, ok := x.terms[t]
		if !ok || id == breakTerm {
			return match{}
		}
		ids[i] = id
	}
	var next map[uint32]bool
	if p.Prefix {
		next = map[uint32]bool{}
		for _, id := range x.startingWith(p.Terms[last]) {
			next[id] = true
		}
	}
	return x.listed(x.phrase(ids, next), shown)
}

func (x *index) posted(id uint32, shown []bool) match {
	passages, things := x.post[id].among(shown)
	return match{term: id, passages: passages, things: things}
}

// termsOf gives the terms that stand for a phrase of one term.
func (x *index) termsOf(p query.Phrase) (ids []uint32) {
	for i := -1; i < len(p.Forms); i++ {
		t := p.Terms[0]
		if i >= 0 {
			t = p.Forms[i]
		}
		if id, ok := x.terms[t]; ok && id != breakTerm {
			ids = append(ids, id)
		}
	}
	return ids
}

// listed counts the passages and things of a list of living passages.
func (x *index) listed(l []place, shown []bool) match {
	m := match{list: l}
	for i, p := range l {
		if !shown[x.things[x.thingOf[p.passage]].kind] {
			continue
		}
		if m.passages++; i == 0 || x.thingOf[p.passage] != x.thingOf[l[i-1].passage] {
			m.things++
		}
	}
	return m
}

// startingWith gives the terms that begin with the one character of t.
func (x *index) startingWith(t string) []uint32 {
	for _, r := range t {
		return x.starts[r]
	}
	return nil
}

// anyOf gives where any of the terms stands.
func (x *index) anyOf(ids []uint32) []place {
	times := make([]uint32, len(x.thingOf))
	n := 0
	for _, id := range ids {
		x.post[id].each(func(p, k uint32) {
			if times[p] == 0 {
				n++
			}
			times[p] += k
		})
	}
	l := make([]place, 0, n)
	for p, k := range times {
		if k > 0 && !x.things[x.thingOf[p]].dead {
			l = append(l, place{uint32(p), k})
		}
	}
	return l
}

// phrase gives where the terms stand one after the other and, if next isn't nil, before one of next. It looks at whole
// things, so a phrase may lie across the edge of two passages: it's counted for the first.
func (x *index) phrase(ids []uint32, next map[uint32]bool) []place {
	var pattern []byte
	for _, id := range ids {
		pattern = binary.AppendUvarint(pattern, uint64(id))
	}
	var l []place
	for _, n := range x.thingsWithAll(ids) {
		th := &x.things[n]
		start := x.offset[th.first]
		text := x.forward[start:x.offset[th.first+th.parts]]
		p := th.first
		for at := 0; ; at++ {
			i := bytes.Index(text[at:], pattern)
			if i < 0 {
				break
			}
			at += i
			if at > 0 && text[at-1] >= 0x80 { // in the middle of another varint
				continue
			}
			if next != nil {
				if v, n := binary.Uvarint(text[at+len(pattern):]); n <= 0 || !next[uint32(v)] {
					continue
				}
			}
			for x.offset[p+1]-start <= uint32(at) {
				p++
			}
			if k := len(l) - 1; k >= 0 && l[k].passage == p {
				l[k].times++
			} else {
				l = append(l, place{p, 1})
			}
		}
	}
	return l
}

// thingsWithAll gives the living things, ascending, that hold every term.
func (x *index) thingsWithAll(ids []uint32) []uint32 {
	ids = slices.Clone(ids)
	slices.SortFunc(ids, func(a, b uint32) int { // the rarest first; equal ones beside each other
		if d := len(x.post[a].list) - len(x.post[b].list); d != 0 {
			return d
		}
		return int(a) - int(b)
	})
	ids = slices.Compact(ids)
	var found []uint32
	x.post[ids[0]].each(func(p, _ uint32) {
		th := x.thingOf[p]
		if k := len(found); !x.things[th].dead && (k == 0 || found[k-1] != th) {
			found = append(found, th)
		}
	})
	for _, id := range ids[1:] {
		if len(found) == 0 {
			break
		}
		i, kept := 0, 0
		x.post[id].each(func(p, _ uint32) {
			th := x.thingOf[p]
			for i < len(found) && found[i] < th {
				i++
			}
			if i < len(found) && found[i] == th {
				found[kept] = th
				kept, i = kept+1, i+1
			}
		})
		found = found[:kept]
	}
	return found
}
