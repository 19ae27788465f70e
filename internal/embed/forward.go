package embed

import (
	"math"
	"sync"
)

const heads = 4

// scratch is the memory of one computation, kept for the next.
type scratch struct {
	text  []byte
	steps []step
	ids   []uint16

	x, y, h, qkv, wide, sum []float32
	scores                  []float32
	packed                  []int64
	rows                    []uint16
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// embed computes the vector of a text.
func (net *network) embed(text string) []float32 {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	ids := net.vocabulary.tokens(text, s)
	n := len(ids)
	vector := make([]float32, dimensions)
	if n == 0 {
		return vector
	}
	net.begin(s, ids)
	s.y = grow(s.y, n*dimensions)
	net.widen.mul(s, s.y, s.x, n, false)
	net.layers[0].apply(s, s.y, s.x, n)
	net.layers[1].apply(s, s.y, s.y, n)

	s.sum = grow(s.sum, dimensions)
	clear(s.sum)
	for i := range n {
		for j, v := range s.y[i*dimensions:][:dimensions] {
			s.sum[j] += v
		}
	}
	for j := range s.sum {
		s.sum[j] /= float32(n)
	}
	net.pool.mul(s, vector, s.sum, 1, false)
	for j, v := range vector {
		vector[j] = float32(math.Tanh(float64(v)))
	}
	unit(vector)
	return vector
}

// unit scales a vector to length 1.
func unit(v []float32) {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return
	}
	k := float32(1 / math.Sqrt(sum))
	for i := range v {
		v[i] *= k
	}
}

// begin puts into s.x what layer 0 reads: twice the embedding and the timing signal, as the model was trained.
func (net *network) begin(s *scratch, ids []uint16) {
	s.x = grow(s.x, len(ids)*width)
	for i, id := range ids {
		x := s.x[i*width:][:width]
		w, k := net.embeddings[int(id)*width:][:width], 2*net.scale[id]
		for j := range x {
			x[j] = float32(int8(w[j])) * k
		}
		for j, f := range net.timing {
			sin, cos := math.Sincos(float64(float32(i) * f))
			x[j] += float32(sin)
			x[j+width/2] += float32(cos)
		}
	}
}

// apply adds to y, n tokens of 512, what the layer makes of x. x may be y.
func (l *layer) apply(s *scratch, y, x []float32, n int) {
	s.h = grow(s.h, n*dimensions)
	h := s.h[:n*l.width]
	s.qkv = grow(s.qkv, n*3*l.width)
	l.norm.apply(h, x)
	l.qkv.mul(s, s.qkv, h, n, false)
	attend(s, h, s.qkv, n, l.width)
	l.out.mul(s, y, h, n, true)

	// By pairs of tokens, so that what is wide stays small.
	s.wide = grow(s.wide, 2*hidden)
	for i := 0; i < n; i += 2 {
		k := min(2, n-i)
		pair := y[i*dimensions : (i+k)*dimensions]
		l.feedNorm.apply(s.h[:len(pair)], pair)
		l.up.mul(s, s.wide, s.h, k, false)
		for j, v := range s.wide[:k*hidden] {
			s.wide[j] = max(v, 0)
		}
		l.down.mul(s, pair, s.wide, k, true)
	}
}

// apply writes the rows of x to y, brought to mean 0 and variance 1, then scaled and shifted.
func (g layerNorm) apply(y, x []float32) {
	d := len(g.scale)
	for i := 0; i < len(y); i += d {
		from, to := x[i:i+d], y[i:i+d]
		var mean, variance float32
		for _, v := range from {
			mean += v
		}
		mean /= float32(d)
		for _, v := range from {
			variance += (v - mean) * (v - mean)
		}
		k := float32(1 / math.Sqrt(float64(variance/float32(d))+1e-6))
		for j, v := range from {
			to[j] = (v-mean)*k*g.scale[j] + g.bias[j]
		}
	}
}

// attend writes to out, n tokens of d, the values of all tokens weighted by how queries and keys agree, head by head.
// qkv holds queries, keys and values of a token side by side.
func attend(s *scratch, out, qkv []float32, n, d int) {
	size := d / heads
	scale := float32(1 / math.Sqrt(float64(size)))
	s.scores = grow(s.scores, n)
	clear(out)
	for i := range n {
		for at := 0; at < d; at += size {
			query := qkv[i*3*d+at:][:size]
			most := float32(math.Inf(-1))
			for j := range s.scores {
				s.scores[j] = scale * dot(query, qkv[j*3*d+d+at:][:size])
				most = max(most, s.scores[j])
			}
			var sum float32
			for j, v := range s.scores {
				s.scores[j] = float32(math.Exp(float64(v - most)))
				sum += s.scores[j]
			}
			o := out[i*d+at:][:size]
			for j, v := range s.scores {
				v /= sum
				for t, x := range qkv[j*3*d+2*d+at:][:size] {
					o[t] += v * x
				}
			}
		}
	}
}

// dot works with four sums, which a processor can add at once.
func dot(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	for len(a) >= 4 && len(b) >= 4 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		a, b = a[4:], b[4:]
	}
	return s0 + s1 + s2 + s3
}

// mul writes to dst, or adds to it, the product of n rows of src with the matrix, and the bias. It takes two rows at a
// time: one multiplication of 64 bits by an int8 weight serves both, one in the lower and one in the upper half, so that
// Go's plain integer code is as fast as four floats at once. Values become integers of at most 2^31/(128*rows), 14 to 17
// bits: so no sum leaves its half, and what rounding costs is far less than the weights' own. Rows where both are 0 are
// left out: six of seven in the second half of the feed-forward parts.
func (m *matrix) mul(s *scratch, dst, src []float32, n int, add bool) {
	s.packed = grow(s.packed, hidden)
	packed := s.packed[:m.rows]
	limit := float32(1<<31/(128*m.rows) - 1)
	for i := 0; i < n; i += 2 {
		a := src[i*m.rows:][:m.rows]
		lower := dst[i*m.columns:][:m.columns]
		var b, upper []float32
		if i+1 < n {
			b = src[(i+1)*m.rows:][:m.rows]
			upper = dst[(i+1)*m.columns:][:m.columns]
		}
		ka, kb := pack(packed, a, b, limit)
		m.pair(packed, s.squeeze(packed), lower, upper, ka, kb, add)
	}
}

// pack writes a and b, b may be nil, as integers up to limit, and gives what a unit of them is worth.
func pack(packed []int64, a, b []float32, limit float32) (ka, kb float32) {
	most := largest(a)
	if most == 0 {
		clear(packed)
	} else {
		ka = most / limit
		k := limit / most
		for i, v := range a {
			packed[i] = int64(nearest(v * k))
		}
	}
	if most = largest(b); most > 0 {
		kb = most / limit
		k := limit / most
		for i, v := range b {
			packed[i] += int64(nearest(v*k)) << 32
		}
	}
	return ka, kb
}

func largest(v []float32) float32 {
	var most float32
	for _, x := range v {
		most = max(most, math.Float32frombits(math.Float32bits(x)&^(1<<31)))
	}
	return most
}

// nearest rounds a value below 2^22 by pushing its fraction out of the mantissa.
func nearest(v float32) int32 {
	const push = 3 << 22
	return int32(math.Float32bits(v+push) - math.Float32bits(push))
}

// squeeze moves the values that aren't 0 to the front and gives their rows; or nil, leaving all as it is, where many aren't.
func (s *scratch) squeeze(packed []int64) []uint16 {
	n := 0
	for _, x := range packed {
		if x != 0 {
			n++
		}
	}
	if n > len(packed)/2 {
		return nil
	}
	s.rows = grow(s.rows, hidden)[:0]
	for row, x := range packed {
		if x != 0 {
			packed[len(s.rows)] = x
			s.rows = append(s.rows, uint16(row))
		}
	}
	return s.rows
}

func (m *matrix) pair(packed []int64, rows []uint16, lower, upper []float32, ka, kb float32, add bool) {
	for c := 0; c < m.columns; c += 4 {
		w := m.w[c*m.rows:][:4*m.rows]
		var sums [4]int64
		if rows != nil {
			sums[0], sums[1], sums[2], sums[3] = columnsAt(packed, rows, w)
		} else {
			sums[0], sums[1], sums[2], sums[3] = columns(packed, w)
		}
		for j, sum := range sums {
			j += c
			low := int32(sum)
			v := float32(low)*ka*m.scale[j] + m.bias[j]
			if add {
				v += lower[j]
			}
			lower[j] = v
			if upper == nil {
				continue
			}
			v = float32(int32((sum-int64(low))>>32))*kb*m.scale[j] + m.bias[j]
			if add {
				v += upper[j]
			}
			upper[j] = v
		}
	}
}

// columns multiplies with four columns, whose weights lie side by side. It takes four rows to a turn, and each matrix
// has a multiple of that: what Go adds to a turn costs half as much as one row.
//
//go:noinline
func columns(packed []int64, w string) (s0, s1, s2, s3 int64) {
	for len(packed) >= 4 && len(w) >= 16 {
		x := packed[0]
		s0 += x * int64(int8(w[0]))
		s1 += x * int64(int8(w[1]))
		s2 += x * int64(int8(w[2]))
		s3 += x * int64(int8(w[3]))
		x = packed[1]
		s0 += x * int64(int8(w[4]))
		s1 += x * int64(int8(w[5]))
		s2 += x * int64(int8(w[6]))
		s3 += x * int64(int8(w[7]))
		x = packed[2]
		s0 += x * int64(int8(w[8]))
		s1 += x * int64(int8(w[9]))
		s2 += x * int64(int8(w[10]))
		s3 += x * int64(int8(w[11]))
		x = packed[3]
		s0 += x * int64(int8(w[12]))
		s1 += x * int64(int8(w[13]))
		s2 += x * int64(int8(w[14]))
		s3 += x * int64(int8(w[15]))
		packed, w = packed[4:], w[16:]
	}
	return s0, s1, s2, s3
}

// columnsAt does so for the values at some rows.
func columnsAt(packed []int64, rows []uint16, w string) (s0, s1, s2, s3 int64) {
	for i, x := range packed[:len(rows)] {
		v := w[4*int(rows[i]):][:4]
		s0 += x * int64(int8(v[0]))
		s1 += x * int64(int8(v[1]))
		s2 += x * int64(int8(v[2]))
		s3 += x * int64(int8(v[3]))
	}
	return s0, s1, s2, s3
}
