package embed

import (
	"math"
	"math/rand/v2"
	"testing"
)

// newMatrix makes one whose weights are what f says.
func newMatrix(rows, columns int, f func(row, column int) int8) *matrix {
	w, scale, bias := make([]byte, rows*columns), make([]float32, columns), make([]float32, columns)
	for c := range columns {
		scale[c], bias[c] = 1/float32(c+1), float32(c)
		for r := range rows {
			w[c/4*4*rows+4*r+c%4] = byte(f(r, c))
		}
	}
	return &matrix{rows, columns, string(w), scale, bias}
}

// checkMul compares mul with the same in float64.
func checkMul(t *testing.T, m *matrix, src []float32, n int) {
	t.Helper()
	for _, add := range []bool{false, true} {
		dst := make([]float32, n*m.columns)
		for i := range dst {
			dst[i] = 1
		}
		m.mul(new(scratch), dst, src, n, add)
		for i := range n {
			for c := range m.columns {
				var sum, size float64
				for r, x := range src[i*m.rows:][:m.rows] {
					v := float64(x) * float64(int8(m.w[c/4*4*m.rows+4*r+c%4])) * float64(m.scale[c])
					sum += v
					size += math.Abs(v)
				}
				sum += float64(m.bias[c])
				if add {
					sum++
				}
				if got := float64(dst[i*m.columns+c]); math.Abs(got-sum) > 2e-4*size+1e-5*math.Abs(sum) {
					t.Fatalf("%d rows, row %d of %d, column %d, add %v: %v, want %v", m.rows, i, n, c, add, got, sum)
				}
			}
		}
	}
}

func TestProductsOfTwoRowsAtATime(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, rows := range []int{width, dimensions, hidden} {
		random := newMatrix(rows, 8, func(int, int) int8 { return int8(r.IntN(255) - 127) })
		extreme := newMatrix(rows, 8, func(_, c int) int8 { return int8(127 - 254*(c%2)) }) // all of one sign
		for n := 1; n <= 3; n++ {
			full, same, few := make([]float32, n*rows), make([]float32, n*rows), make([]float32, n*rows)
			for i := range full {
				full[i] = float32(r.NormFloat64())
				same[i] = []float32{3, -3, 3e-9}[i/rows]
				if i%17 == 0 {
					few[i] = float32(r.Float64())
				}
			}
			for _, src := range [][]float32{full, same, few, make([]float32, n*rows)} {
				checkMul(t, random, src, n)
				checkMul(t, extreme, src, n) // the sums reach the limit of their halves
			}
		}
	}
}
