package embed

import (
	"math"
	"math/rand/v2"
	"testing"
)

func randomUnit(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	unit(v)
	return v
}

func TestPackedVectorsKeepTheirCosines(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		a, b := randomUnit(r, 512), randomUnit(r, 512)
		for i := range b { // something of each other, or all cosines would be 0
			b[i] += a[i] * float32(r.IntN(3))
		}
		unit(b)
		pa, pb := Pack(a), Pack(b)
		if len(pa) != 516 {
			t.Fatalf("%d bytes", len(pa))
		}
		want := cosine(a, b)
		for name, got := range map[string]float32{"Dot": Dot(pa, pb), "Query": NewQuery(a).Dot(pb), "Unpack": dot(Unpack(pa), Unpack(pb))} {
			if math.Abs(float64(got)-want) > 0.002 {
				t.Errorf("%s: %.4f, want %.4f", name, got, want)
			}
		}
	}
}

func TestPackOfOddVectors(t *testing.T) {
	zero := Pack(make([]float32, 512))
	if Dot(zero, zero) != 0 || NewQuery(make([]float32, 512)).Dot(zero) != 0 || Unpack(zero)[0] != 0 {
		t.Error("the zero vector is near to something")
	}
	q, scale := Quantize([]float32{-2, 0, 1, 2})
	if int8(q[0]) != -127 || q[1] != 0 || q[2] != 64 || q[3] != 127 || scale != 2./127 {
		t.Errorf("%v, %v", q, scale)
	}
	small := Pack([]float32{1, 2, 3})
	if Dot(small, zero) != 0 || NewQuery([]float32{1, 2, 3}).Dot(zero) != 0 || Dot(nil, nil) != 0 || len(Unpack([]byte{1})) != 0 {
		t.Error("vectors of different sizes are near")
	}
	if got := NewQuery([]float32{1, 2, 3}).Dot(small); math.Abs(float64(got)-14) > 0.1 {
		t.Errorf("a size that isn't a multiple of four: %v", got)
	}
}

func TestSketchesOfNearVectorsDifferInFewBits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	a, far := randomUnit(r, 512), randomUnit(r, 512)
	near := make([]float32, 512)
	for i := range near {
		near[i] = a[i] + 0.3*far[i]
	}
	sa := Sketch(Pack(a))
	if len(sa) != 8 || Hamming(sa, sa) != 0 {
		t.Errorf("%d words, %d bits from itself", len(sa), Hamming(sa, sa))
	}
	if n, f := Hamming(sa, Sketch(Pack(near))), Hamming(sa, NewQuery(far).Sketch); n > 80 || f < 200 || f > 312 {
		t.Errorf("near differs in %d bits, far in %d", n, f)
	}
	if s := Sketch(Pack([]float32{1, -1, 1})); len(s) != 1 || s[0] != 0b101 {
		t.Errorf("%b", s)
	}
}

func BenchmarkQueryDot(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	q, p := NewQuery(randomUnit(r, 512)), Pack(randomUnit(r, 512))
	for b.Loop() {
		q.Dot(p)
	}
}
