package embed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
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
		least := 0.999
		if strings.Contains(r.Text, strings.Repeat("\u0301", 40)) {
			least = 0.997 // forty times one token: its rounding doesn't even out
		}
		c := cosine(embedOne(t, r.Text), r.Vector)
		if c < least {
			t.Errorf("%.60q: cosine to the reference is %.5f", r.Text, c)
		}
		if least == 0.999 {
			worst, n = min(worst, c), n+1
		}
	}
	t.Logf("worst of %d: %.5f", n, worst)
	if n < 20 {
		t.Errorf("only %d reference vectors", n)
	}
}

func TestVectorsHaveUnitLengthAndTellMeanings(t *testing.T) {
	v, err := Builtin().Embed(context.Background(), []string{"The cat sleeps on the sofa.", "A kitten is napping on the couch.", "Interest rates rose last quarter."})
	if err != nil {
		t.Fatal(err)
	}
	for i := range v {
		if d := cosine(v[i], v[i]); len(v[i]) != Builtin().Dimensions() || math.Abs(d-1) > 1e-6 || math.Abs(float64(dot(v[i], v[i]))-1) > 1e-5 {
			t.Errorf("vector %d has length %v of %d", i, dot(v[i], v[i]), len(v[i]))
		}
	}
	if near, far := cosine(v[0], v[1]), cosine(v[0], v[2]); near < far+0.2 {
		t.Errorf("cosines %.3f and %.3f", near, far)
	}
}

func TestTextsWithoutTokensGiveZero(t *testing.T) {
	for _, x := range embedOne(t, "") {
		if x != 0 {
			t.Fatal("not zero")
		}
	}
	if v, err := Builtin().Embed(context.Background(), nil); err != nil || len(v) != 0 {
		t.Errorf("%v, %v", v, err)
	}
}

func TestOnlyTheWindowCounts(t *testing.T) {
	long := strings.Repeat("The pump was mended on Monday. ", 60)
	if !slices.Equal(embedOne(t, long), embedOne(t, long+"Something else altogether.")) {
		t.Error("the end of a long text counts")
	}
	for _, huge := range []string{strings.Repeat("word ", 1<<20), strings.Repeat("漢", 1<<20), strings.Repeat("\xff", 1<<20), strings.Repeat("ﷺ", 1<<20)} {
		if ids := loaded().vocabulary.tokens(huge, new(scratch)); len(ids) == 0 || len(ids) > window {
			t.Errorf("%d tokens", len(ids))
		}
	}
}

func TestEqualTextsGiveEqualVectorsAlsoAtOnce(t *testing.T) {
	texts := []string{"a", "what did I decide about the pricing?", "漢字 😀", "", strings.Repeat("one two three ", 20)}
	var want [][]float32
	for _, x := range texts {
		want = append(want, embedOne(t, x))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			got, err := Builtin().Embed(context.Background(), texts)
			if err != nil {
				t.Error(err)
				return
			}
			for i := range got {
				if !slices.Equal(got[i], want[i]) {
					t.Errorf("%.20q: another vector", texts[i])
				}
			}
		})
	}
	wg.Wait()
}

func TestEmbedStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Builtin().Embed(ctx, []string{"a"}); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

func FuzzTokens(f *testing.F) {
	for _, r := range references(f) {
		f.Add(r.Text)
	}
	v, s := loaded().vocabulary, new(scratch)
	text := map[uint16]string{}
	for i, id := range v.ids {
		text[id] = v.piece(i)
	}
	f.Fuzz(func(t *testing.T, in string) {
		ids := slices.Clone(v.tokens(in, s))
		if !slices.Equal(ids, v.tokens(in, new(scratch))) {
			t.Error("not the same twice")
		}
		if len(ids) > window {
			t.Errorf("%d tokens", len(ids))
		}
		// The known pieces occur in the text as it is normalized, in their order.
		rest := string(normalize(nil, in))
		for _, id := range ids {
			if id == unknown {
				continue
			}
			_, after, found := strings.Cut(rest, text[id])
			if !found {
				t.Fatalf("%q: piece %q isn't in %q", in, text[id], rest)
			}
			rest = after
		}
	})
}

const shortQuery = "what did I decide about the pricing?" // 8 tokens

func BenchmarkShortQuery(b *testing.B) { bench(b, shortQuery) }
func BenchmarkPassage(b *testing.B)    { bench(b, strings.Repeat("The pump was mended on Monday. ", 16)) } // 500 characters
func BenchmarkWholeWindow(b *testing.B) {
	bench(b, strings.Repeat("The quick brown fox jumps over the lazy dog. ", 20))
}
func BenchmarkTokensOfTheWindow(b *testing.B) {
	s, text := new(scratch), strings.Repeat("The quick brown fox jumps over the lazy dog. ", 20)
	v := &loaded().vocabulary
	for b.Loop() {
		v.tokens(text, s)
	}
}

func bench(b *testing.B, text string) {
	embedOne(b, text)
	b.ReportAllocs()
	for b.Loop() {
		embedOne(b, text)
	}
	b.ReportMetric(float64(len(loaded().vocabulary.tokens(text, new(scratch)))), "tokens")
}

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		load()
	}
}
