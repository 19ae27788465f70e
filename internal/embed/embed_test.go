package embed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
)

// reference holds what the JavaScript of the weights' own package (with its model at full precision) says of a text: the
// tokens, cut nowhere, and for some the vector in ten-thousandths.
type reference struct {
	Text   string
	IDs    []uint16
	Vector []float32
}

func references(t testing.TB) []reference {
	t.Helper()
	b, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []reference
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func embedOne(t testing.TB, text string) []float32 {
	t.Helper()
	v, err := Builtin().Embed(context.Background(), []string{text})
	if err != nil {
		t.Fatal(err)
	}
	return v[0]
}

// cosine is computed in full, so that it holds for vectors of any length.
func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i, x := range a {
		ab += float64(x) * float64(b[i])
		aa += float64(x) * float64(x)
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

func TestWeightsAreTheScriptsOwn(t *testing.T) {
	const want = "70b22700cab31221e2fc9420ed72f12c4f296f59f29221be4c00572a6205f17e"
	sum := sha256.Sum256([]byte(weights))
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("weights.bin has SHA-256 %s, scripts/embed-weights makes %s", got, want)
	}
}

func TestTokensAreTheReferences(t *testing.T) {
	for _, r := range references(t) {
		got := loaded().vocabulary.tokens(r.Text, new(scratch))
		if want := r.IDs[:min(len(r.IDs), window)]; !slices.Equal(got, want) {
			t.Errorf("%.60q: tokens %v, want %v", r.Text, got, want)
		}
	}
}

func TestVectorsAreNearTheReferences(t *testing.T) {
	worst, n := 1.0, 0
	for _, r := range references(t) {
		if r.Vector == nil {
			continue
		}
		n++
		c := cosine(embedOne(t, r.Text), r.Vector)
		worst = min(worst, c)
		t.Logf("%.60q %.5f", r.Text, c)
		if c < 0.999 {
			t.Errorf("%.60q: cosine to the reference is %.5f", r.Text, c)
		}
	}
	t.Logf("worst of %d: %.5f", n, worst)
	if n < 10 {
		t.Errorf("only %d reference vectors", n)
	}
}
