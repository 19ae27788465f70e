package search

import (
	"cairn/internal/words"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// index holds the passages of one heap in memory. Passages are numbered as they come, those of a thing one after the other.
// A thing that changes is put anew at the end and its old passages are dead: they stay in the postings, but every count that
// a score depends on is of the living alone. So a score does not depend on the order in which things came, nor on whether
// an index was loaded at once or grew, and it is the same on every replica.
//
// They are counted kind by kind, and a search counts those kinds alone that it may show: how rare a word is in what a caller
// may not see has no say in the order of what it finds.
//
// An index isn't safe for concurrent use: see heap.
type index struct {
	terms  map[string]uint32
	post   []posting         // by term
	starts map[rune][]uint32 // terms of unspaced scripts by their first character

	// By passage.
	thingOf []uint32
	length  []uint16 // tokens, symbols not counted: they don't make a text longer
	offset  []uint32 // where a passage starts in forward; one more than passages. 4 GiB are some billion tokens
	forward []byte   // the terms of all passages in their order, as varints: a phrase is a run of bytes in it

	things []thing
	byID   map[string]uint32
	kinds  []string

	vectors vectors
	threads threads
	names   []string // by term

	living corpus
	byKind []corpus // living of each kind
	size   int64    // bytes: what grows bit by bit; see bytes

	ids []uint32 // scratch
}

// corpus is what a score must know of all that is searched.
type corpus struct {
	passages, things int
	tokens           int64
}

func (c *corpus) add(o corpus) {
	c.passages += o.passages
	c.things += o.things
	c.tokens += o.tokens
}

type thing struct {
	id      string
	first   uint32 // passage
	parts   uint32
	length  uint32 // tokens
	vectors uint32 // its first slot plus 1; 0 = none
	kind    uint16 // place in kinds
	dead    bool
	moment
}

// posting lists the passages that hold a term: for each a varint of its distance from the one before, times two, plus one
// where the term stands there once; else a varint of how often follows.
type posting struct {
	list   []byte
	last   uint32 // the newest passage in list
	symbol bool
	counts []counted
}

// counted is how many living passages and things of a kind hold a term.
type counted struct {
	kind             uint16
	passages, things uint32
}

const countedSize = 12 // bytes

// of gives the count of a kind.
func (t *posting) of(kind uint16) *counted {
	for i := range t.counts {
		if t.counts[i].kind == kind {
			return &t.counts[i]
		}
	}
	t.counts = append(t.counts, counted{kind: kind})
	return &t.counts[len(t.counts)-1]
}

// among counts the living passages and things of the kinds that are shown.
func (t *posting) among(shown []bool) (passages, things int) {
	for _, c := range t.counts {
		if shown[c.kind] {
			passages += int(c.passages)
			things += int(c.things)
		}
	}
	return passages, things
}

// breakTerm is the term of separatorToken. It's in forward alone.
const breakTerm = 0

func newIndex() *index {
	return &index{
		terms:  map[string]uint32{separatorToken: breakTerm},
		post:   make([]posting, 1),
		starts: map[rune][]uint32{},
		offset: make([]uint32, 1),
		byID:   map[string]uint32{},

		threads: threads{},
		names:   []string{separatorToken},
	}
}

// put adds a thing or puts another version of it in its place, which keeps its vectors until there are new ones. Passages are
// tokens with single spaces between.
func (x *index) put(id, kind string, passages []string) {
	vectors := x.drop(id)
	if len(passages) == 0 {
		x.vectors.release(vectors)
		return
	}
	id = strings.Clone(id)
	x.addThing(id, x.kind(kind))
	th := &x.things[len(x.things)-1]
	th.vectors = vectors
	x.vectors.hand(vectors, uint32(len(x.things)-1))
	var first string
	th.moment, first = momentOf(passages[0])
	x.join(uint32(len(x.things) - 1))
	for i, p := range passages {
		if i == 0 {
			p = first
		}
		x.ids = x.ids[:0]
		for t := range strings.SplitSeq(p, " ") {
			if t != "" {
				x.ids = append(x.ids, x.term(t))
			}
		}
		x.addPassage(x.ids)
	}
}

// numbers gives the places of those of some things that are here.
func (x *index) numbers(ids []string) map[uint32]bool {
	set := make(map[uint32]bool, len(ids))
	for _, id := range ids {
		if n, ok := x.byID[id]; ok {
			set[n] = true
		}
	}
	return set
}

func (x *index) addThing(id string, kind uint16) {
	n := uint32(len(x.things))
	x.byID[id] = n
	x.things = append(x.things, thing{id: id, kind: kind, first: uint32(len(x.thingOf)), moment: moment{day: noDay}})
	x.living.things++
	x.byKind[kind].things++
	x.size += int64(len(id))
}

// addPassage adds the next passage of the newest thing.
func (x *index) addPassage(ids []uint32) {
	p, th := uint32(len(x.thingOf)), uint32(len(x.things)-1)
	length := 0
	for _, id := range ids {
		x.forward = binary.AppendUvarint(x.forward, uint64(id))
		if id != breakTerm && !x.post[id].symbol {
			length++
		}
	}
	length = min(length, math.MaxUint16)
	x.thingOf = append(x.thingOf, th)
	x.length = append(x.length, uint16(length))
	x.offset = append(x.offset, uint32(len(x.forward)))
	x.things[th].parts++
	x.things[th].length += uint32(length)
	kind := x.things[th].kind
	x.living.add(corpus{passages: 1, tokens: int64(length)})
	x.byKind[kind].add(corpus{passages: 1, tokens: int64(length)})

	slices.Sort(ids)
	for i := 0; i < len(ids); {
		id, from := ids[i], i
		for i < len(ids) && ids[i] == id {
			i++
		}
		if id != breakTerm {
			x.size += x.post[id].add(p, uint64(i-from), x.thingOf, kind)
		}
	}
}

// add appends a passage, whose thing is the newest and of this kind, and gives by how many bytes the posting grew.
func (t *posting) add(p uint32, times uint64, thingOf []uint32, kind uint16) int64 {
	before := cap(t.list) + countedSize*cap(t.counts)
	n := t.of(kind)
	if len(t.list) == 0 || thingOf[t.last] != thingOf[p] {
		n.things++
	}
	delta := uint64(p - t.last)
	t.last = p
	n.passages++
	if times == 1 {
		t.list = binary.AppendUvarint(t.list, delta<<1|1)
	} else {
		t.list = binary.AppendUvarint(t.list, delta<<1)
		t.list = binary.AppendUvarint(t.list, times)
	}
	return int64(cap(t.list) + countedSize*cap(t.counts) - before)
}

// each calls f with each passage of the list, dead ones too, and how often the term stands there.
func (t *posting) each(f func(p, times uint32)) {
	b, p := t.list, uint32(0)
	for i := 0; i < len(b); {
		v := uint32(b[i])
		i++
		if v >= 0x80 {
			rest, n := binary.Uvarint(b[i:])
			v = v&0x7F | uint32(rest)<<7
			i += n
		}
		p += v >> 1
		if v&1 == 1 {
			f(p, 1)
			continue
		}
		times, n := binary.Uvarint(b[i:])
		i += n
		f(p, uint32(times))
	}
}

// term gives the number of a term, a new one where it's new.
func (x *index) term(t string) uint32 {
	if id, ok := x.terms[t]; ok {
		return id
	}
	id := uint32(len(x.post))
	t = strings.Clone(t) // it's part of a passage's text, which shall not be kept
	x.terms[t] = id
	x.names = append(x.names, t)
	first, _ := utf8.DecodeRuneInString(t)
	c := words.ClassOf(first)
	x.post = append(x.post, posting{symbol: c == words.Symbol})
	if c == words.RunChar {
		x.starts[first] = append(x.starts[first], id)
	}
	x.size += int64(len(t))
	return id
}

func (x *index) kind(kind string) uint16 {
	i := slices.Index(x.kinds, kind)
	if i < 0 {
		i = len(x.kinds)
		x.kinds = append(x.kinds, strings.Clone(kind))
		x.byKind = append(x.byKind, corpus{})
	}
	return uint16(i)
}

// drop takes a thing out, if it's there, and gives the list of its vectors.
func (x *index) drop(id string) (vectors uint32) {
	n, ok := x.byID[id]
	if !ok {
		return 0
	}
	delete(x.byID, id)
	x.leave(n)
	th := &x.things[n]
	th.dead = true
	gone := corpus{-int(th.parts), -1, -int64(th.length)}
	x.living.add(gone)
	x.byKind[th.kind].add(gone)
	var all []uint32
	for p := th.first; p < th.first+th.parts; p++ {
		from := len(all)
		all = x.appendTerms(all, p)
		slices.Sort(all[from:])
		all = all[:from+len(slices.Compact(all[from:]))]
		for _, id := range all[from:] {
			x.post[id].of(th.kind).passages--
		}
	}
	slices.Sort(all)
	for _, id := range slices.Compact(all) {
		x.post[id].of(th.kind).things--
	}
	vectors, th.vectors = th.vectors, 0
	return vectors
}

// appendTerms appends the terms of a passage in their order. breakTerm is among them; what its posting counts is never read.
func (x *index) appendTerms(to []uint32, p uint32) []uint32 {
	for b := x.forward[x.offset[p]:x.offset[p+1]]; len(b) > 0; {
		v, n := binary.Uvarint(b)
		to = append(to, uint32(v))
		b = b[n:]
	}
	return to
}

// crowded tells that more than a fifth of the passages are dead, so that compacted is worth its time.
func (x *index) crowded() bool {
	dead := len(x.thingOf) - x.living.passages
	return dead > 64 && dead*5 > len(x.thingOf)
}

// compacted gives an index of the living things. It leaves x as it is, so that searches may go on in it meanwhile; the blocks
// of vectors are those of both.
func (x *index) compacted() *index {
	y := newIndex()
	y.kinds, y.byKind = slices.Clone(x.kinds), make([]corpus, len(x.kinds))
	y.vectors = x.vectors
	y.vectors.owner, y.vectors.next = slices.Clone(x.vectors.owner), slices.Clone(x.vectors.next)
	newID := make([]uint32, len(x.post)) // 0: not yet known, or breakTerm, which is 0 in each
	var ids []uint32
	for _, th := range x.things {
		if th.dead {
			continue
		}
		y.addThing(th.id, th.kind)
		n := len(y.things) - 1
		y.things[n].vectors, y.things[n].moment = th.vectors, th.moment
		y.join(uint32(n))
		y.vectors.hand(th.vectors, uint32(n))
		for p := th.first; p < th.first+th.parts; p++ {
			ids = x.appendTerms(ids[:0], p)
			for i, id := range ids {
				if newID[id] == 0 && id != breakTerm {
					newID[id] = y.term(x.names[id])
				}
				ids[i] = newID[id]
			}
			y.addPassage(ids)
		}
	}
	return y
}

// bytes estimates what the index holds in memory, from the sizes of its slices and of the entries of its maps with slack.
func (x *index) bytes() int64 {
	const entry, post, thing = 40, 56, 60
	return 1024 + x.size + int64(entry*(len(x.terms)+len(x.byID))+(post+16)*cap(x.post)+thing*cap(x.things)+
		4*cap(x.thingOf)+2*cap(x.length)+4*cap(x.offset)+cap(x.forward)) + x.vectors.bytes()
}
