package search

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"cairn/internal/db"
	"cairn/internal/db/dbtest"
)

// benchNotes is how many notes the benchmarks search.
const benchNotes = 100_000

// zipf draws words as they occur in text: from 20,000, the commonest in most notes.
type zipf struct {
	r *rand.Rand
	z *rand.Zipf
}

func newZipf(seed uint64) zipf {
	r := rand.New(rand.NewPCG(seed, 0))
	return zipf{r, rand.NewZipf(r, 1.1, 4, 20_000)}
}

// spell gives the word of a rank; none is a stop word or changed by stemming into another's.
func spell(rank uint64) string {
	b := []byte("w")
	for ; rank > 0; rank /= 20 {
		b = append(b, "bcdfghjklmnpqrtvwxzy"[rank%20])
	}
	return string(append(b, 'a'))
}

func (z zipf) text(words int) string {
	var b strings.Builder
	for i := range words {
		if i > 0 {
			b.WriteString([]string{" ", " ", " ", " ", ", ", ". "}[z.r.IntN(6)])
		}
		b.WriteString(spell(z.z.Uint64()))
	}
	return b.String()
}

// between gives five words of the ranks from..to.
func (z zipf) between(from, to int) string {
	var ws []string
	for range 5 {
		ws = append(ws, spell(uint64(from+z.r.IntN(to-from))))
	}
	return strings.Join(ws, " ")
}

// fill writes notes of 35 to 80 words.
func fill(b *testing.B, d *db.DB, n int) {
	b.Helper()
	z := newZipf(1)
	for done := 0; done < n; done += 1000 {
		var as []Analyzed
		for range min(1000, n-done) {
			as = append(as, Analyze(Doc{Heap: "h", Thing: db.NewID(), Kind: "note", Body: z.text(35 + z.r.IntN(46)), Fresh: true}))
		}
		if err := d.Write(b.Context(), func(tx *db.Tx) error {
			for _, a := range as {
				a.Put(tx)
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
}

func benchDB(b *testing.B, c db.Config) *db.DB {
	b.Helper()
	c.Log = slog.New(slog.DiscardHandler)
	d, err := db.Open(context.Background(), c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	fill(b, d, benchNotes)
	return d
}

// BenchmarkEngine searches 100,000 notes on each database; run it under scripts/with-postgres.
func BenchmarkEngine(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) { benchEngine(b, benchDB(b, db.Config{Dir: b.TempDir()})) })
	b.Run("postgres", func(b *testing.B) { benchEngine(b, benchDB(b, db.Config{URL: dbtest.Postgres(b)})) })
}

func benchEngine(b *testing.B, d *db.DB) {
	heaps := []string{"h"}
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			if _, err := New(d, 1<<30).Ask(b.Context(), heaps, nil, "wba wca wda wfa wga", 10); err != nil {
				b.Fatal(err)
			}
		}
	})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	e := New(d, 1<<30)
	z := newZipf(2)
	queries := map[string]func() string{
		"five as they occur":     func() string { return z.text(5) },
		"five of the commonest":  func() string { return z.between(0, 30) },
		"five of ranks 60-600":   func() string { return z.between(60, 600) },
		"one rare":               func() string { return spell(uint64(5000 + z.r.IntN(10_000))) },
		"the commonest":          func() string { return spell(0) },
		"phrase of two common":   func() string { return `"` + spell(uint64(z.r.IntN(20))) + " " + spell(uint64(z.r.IntN(20))) + `"` },
		"one but not a common":   func() string { return spell(uint64(100+z.r.IntN(100))) + " -" + spell(uint64(z.r.IntN(30))) },
		"five different or else": func() string { return strings.ReplaceAll(z.between(60, 600), " ", " OR ") },
	}
	if _, err := e.Ask(b.Context(), heaps, nil, "wba", 10); err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	for name, query := range queries {
		for _, how := range []string{"find", "ask"} {
			b.Run(how+" "+name, func(b *testing.B) {
				search := e.Find
				if how == "ask" {
					search = e.Ask
				}
				for b.Loop() {
					if _, err := search(b.Context(), heaps, nil, query(), 10); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
	b.Run("two at once", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			z := newZipf(3)
			for p.Next() {
				if _, err := e.Ask(b.Context(), heaps, nil, z.text(5), 10); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("put and find", func(b *testing.B) {
		for b.Loop() {
			a := Analyze(Doc{Heap: "h", Thing: db.NewID(), Kind: "note", Body: z.text(57), Fresh: true})
			if err := d.Write(b.Context(), func(tx *db.Tx) error { a.Put(tx); return nil }); err != nil {
				b.Fatal(err)
			}
			if _, err := e.Ask(b.Context(), heaps, nil, spell(9000), 10); err != nil {
				b.Fatal(err)
			}
		}
		_, bytes := e.Stats()
		b.ReportMetric(float64(bytes)/1e6, "MB-by-Stats")
		b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/1e6, "MB-by-runtime")
	})
}

func BenchmarkAnalyze(b *testing.B) {
	z := newZipf(4)
	for name, text := range map[string]string{
		"note of 57 words": z.text(57),
		"note of English":  "The pump was mended on Monday, after the valves had been leaking for nearly three weeks; nobody knows why they weren't replaced earlier. Next inspection: 2026-03-14, see REQ-042 for the details of the planning and its consequences.",
		"note of Chinese":  strings.Repeat("早上先买咖啡豆再去开会，然后写一份报告。", 5),
		"note of Russian":  strings.Repeat("Насос починили в понедельник, клапаны текли три недели. ", 4),
		"1.5 MB":           z.text(300_000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Analyze(Doc{Body: text})
			}
		})
	}
}

func BenchmarkIndex(b *testing.B) {
	z := newZipf(5)
	var notes [][]string
	for range 20_000 {
		notes = append(notes, Analyze(Doc{Body: z.text(57)}).passages)
	}
	b.Run("20,000 notes", func(b *testing.B) {
		for b.Loop() {
			x := newIndex()
			for i, n := range notes {
				x.put(fmt.Sprint(i), "note", n)
			}
		}
	})
}
