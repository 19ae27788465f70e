package embed

import (
	_ "embed"
	"encoding/binary"
	"math"
	"sync"
)

// Made by scripts/embed-weights, which describes its form.
//
//go:embed weights.bin
var weights string

const (
	magic      = "use-lite-int8 1\n"
	pieces     = 8000 // of the vocabulary
	width      = 256  // of an embedding
	dimensions = 512
	hidden     = 1536 // of the feed-forward parts
	window     = 128  // tokens
)

// matrix holds int8 weights in blocks of four columns, [columns/4][rows][4], with a scale and a bias for each column.
type matrix struct {
	rows, columns int
	w             string
	scale, bias   []float32
}

type layerNorm struct{ scale, bias []float32 }

type layer struct {
	width              int // of what it reads; it writes 512
	norm, feedNorm     layerNorm
	qkv, out, up, down matrix
}

// network is the model: what isn't a string lies on the heap.
type network struct {
	vocabulary vocabulary
	embeddings string    // [pieces][width]
	scale      []float32 // by piece
	widen      matrix    // what goes around layer 0, from 256 to 512
	layers     [2]layer
	pool       matrix
	timing     []float32 // frequencies
}

var loaded = sync.OnceValue(load)

func load() *network {
	r := reader(weights)
	if r.take(len(magic)) != magic {
		panic("embed: weights.bin is of another version")
	}
	n := &network{vocabulary: r.vocabulary(), embeddings: r.take(pieces * width), scale: r.floats(pieces)}
	n.widen = r.matrix(width, dimensions)
	for i := range n.layers {
		l := &n.layers[i]
		l.width = []int{width, dimensions}[i]
		l.qkv = r.matrix(l.width, 3*l.width)
		l.out = r.matrix(l.width, dimensions)
		l.up = r.matrix(dimensions, hidden)
		l.down = r.matrix(hidden, dimensions)
	}
	n.pool = r.matrix(dimensions, dimensions)
	for i := range n.layers {
		l := &n.layers[i]
		l.norm = layerNorm{r.floats(l.width), r.floats(l.width)}
		l.feedNorm = layerNorm{r.floats(dimensions), r.floats(dimensions)}
	}
	n.timing = r.floats(width / 2)
	if r != "" {
		panic("embed: weights.bin is too long")
	}
	return n
}

// reader takes the file from its beginning; one that is too short panics, which no build with the right file does.
type reader string

func (r *reader) take(n int) string {
	s := (*r)[:n]
	*r = (*r)[n:]
	return string(s)
}

func (r *reader) floats(n int) []float32 {
	b, f := []byte(r.take(4*n)), make([]float32, n)
	for i := range f {
		f[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return f
}

func (r *reader) matrix(rows, columns int) matrix {
	return matrix{rows, columns, r.take(rows * columns), r.floats(columns), r.floats(columns)}
}

func (r *reader) vocabulary() vocabulary {
	n := int(binary.LittleEndian.Uint32([]byte(r.take(4))))
	v := vocabulary{ids: make([]uint16, n), scores: make([]float64, n), ends: make([]uint32, n+1)}
	b := []byte(r.take((2 + 8 + 4) * n))
	for i := range n {
		v.ids[i] = binary.LittleEndian.Uint16(b[2*i:])
		v.scores[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[2*n+8*i:]))
		v.ends[i+1] = binary.LittleEndian.Uint32(b[10*n+4*i:])
	}
	v.text = r.take(int(v.ends[n]))
	return v
}
