package search

import (
	"slices"

	"cairn/internal/embed"
)

// blockRows is how many vectors are kept in one piece of memory: growing copies nothing and holds little in reserve.
const blockRows = 64

// vectors are those of the pieces of a heap's things, each packed and with its sketch: 580 bytes for 512 dimensions and 8 to
// 10 more. A slot is a vector's place; those of a thing are a list that begins at thing.vectors.
type vectors struct {
	size   int // of a packed vector in bytes; 0 = there was none yet
	words  int // of a sketch
	blocks []block
	owner  []uint32 // by slot: place in index.things, or noThing
	next   []uint32 // by slot: the next one of the thing, or of those that are free, plus 1; 0 = none
	free   uint32   // the first free slot plus 1
}

type block struct {
	packed   []byte
	sketches []uint64
}

const noThing = ^uint32(0)

func (v *vectors) packed(slot uint32) []byte {
	i := int(slot%blockRows) * v.size
	return v.blocks[slot/blockRows].packed[i : i+v.size]
}

func (v *vectors) sketch(slot uint32) []uint64 {
	i := int(slot%blockRows) * v.words
	return v.blocks[slot/blockRows].sketches[i : i+v.words]
}

// add keeps a vector and gives its slot. Of another size than the first it can't be compared and isn't kept.
func (v *vectors) add(packed []byte, owner uint32) (slot uint32, ok bool) {
	sketch := embed.Sketch(packed)
	if v.size == 0 {
		v.size, v.words = len(packed), len(sketch)
	}
	if len(packed) != v.size || v.words == 0 {
		return 0, false
	}
	if v.free != 0 {
		slot = v.free - 1
		v.free = v.next[slot]
	} else {
		slot = uint32(len(v.owner))
		if slot%blockRows == 0 {
			v.blocks = append(v.blocks, block{make([]byte, blockRows*v.size), make([]uint64, blockRows*v.words)})
		}
		v.owner, v.next = append(v.owner, 0), append(v.next, 0)
	}
	copy(v.packed(slot), packed)
	copy(v.sketch(slot), sketch)
	v.owner[slot], v.next[slot] = owner, 0
	return slot, true
}

// release frees the slots of a list.
func (v *vectors) release(first uint32) {
	for first != 0 {
		slot := first - 1
		first = v.next[slot]
		v.owner[slot], v.next[slot] = noThing, v.free
		v.free = slot + 1
	}
}

// hand gives a list another owner.
func (v *vectors) hand(first, owner uint32) {
	for ; first != 0; first = v.next[first-1] {
		v.owner[first-1] = owner
	}
}

func (v *vectors) bytes() int64 {
	return int64(len(v.blocks))*int64(blockRows*(v.size+8*v.words)+48) + int64(4*cap(v.owner)+4*cap(v.next))
}

// setVectors gives a thing other vectors, in the order of its pieces. A thing that isn't here has none.
func (x *index) setVectors(id string, packed [][]byte) {
	n, ok := x.byID[id]
	if !ok {
		return
	}
	th := &x.things[n]
	x.vectors.release(th.vectors)
	th.vectors = 0
	for _, p := range slices.Backward(packed) {
		if slot, ok := x.vectors.add(p, n); ok {
			x.vectors.next[slot] = th.vectors
			th.vectors = slot + 1
		}
	}
}

// nearness is how near a thing's pieces are to a question: the three best weigh 1, 3/4, 1/2. best is the piece that's nearest,
// of so many.
func (x *index) nearness(th *thing, q *embed.Query) (near float32, best, pieces int) {
	var top three
	for slot := th.vectors; slot != 0; slot = x.vectors.next[slot-1] {
		d := max(q.Dot(x.vectors.packed(slot-1)), 0)
		if pieces == 0 || d > top[0] {
			best = pieces
		}
		pieces++
		top.keep(d)
	}
	weights := [...]float32{0, 1, 1.75, 2.25}
	return (top[0] + top[1]*3/4 + top[2]/2) / weights[min(max(pieces, 1), 3)], best, pieces
}
