package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"cairn/internal/db"
	"cairn/internal/embed"
	"cairn/internal/job"
	"cairn/internal/meaning"
	"cairn/internal/search"
)

// retrieval measures how well search finds what answers a question: sessions of conversations in one heap, single turns in
// a heap per conversation, abstracts. Each measure is printed for the whole and for each leg alone.
func retrieval(args []string) int {
	flags := flag.NewFlagSet("bench retrieval", flag.ContinueOnError)
	data := flags.String("data", "", "folder with locomo-dev.json and cranfield/")
	cache := flags.String("cache", "", "folder that keeps vectors for the next run")
	only := flags.String("only", "sessions,turns,cranfield,speed", "what to measure, by commas")
	if err := flags.Parse(args); err != nil || *data == "" {
		fmt.Fprintln(os.Stderr, "bench: -data is needed")
		return 2
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	dir, err := os.MkdirTemp("", "cairn-bench-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // in the temporary folder
	r := &finding{dir: dir, data: *data}
	if r.model, err = newKept(embed.Builtin(), *cache); err == nil {
		err = r.run(ctx, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	for _, line := range r.lines {
		fmt.Println(line)
	}
	return 0
}

// finding is a run.
type finding struct {
	dir, data string
	model     embed.Model
	lines     []string
}

func (r *finding) say(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// store is a database with things that were put and embedded.
type store struct {
	d          *db.DB
	fused      *search.Engine
	text       *search.Engine
	putAndDone time.Duration
}

// item is a thing to be found.
type item struct {
	doc  search.Doc
	text meaning.Text
}

// index puts things as features do, in writes of a hundred, and works off the jobs.
func (r *finding) index(ctx context.Context, name string, items []item) (*store, error) {
	begin := time.Now()
	d, err := db.Open(ctx, db.Config{Dir: filepath.Join(r.dir, name), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	texts := map[string]meaning.Text{}
	for chunk := range slices.Chunk(items, 100) {
		var as []search.Analyzed
		for _, it := range chunk {
			it.doc.Fresh = true
			texts[it.doc.Thing] = it.text
			as = append(as, search.Analyze(it.doc))
		}
		if err := d.Write(ctx, func(tx *db.Tx) error {
			for _, a := range as {
				a.Put(tx)
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	q := job.New(d, slog.Default())
	q.Handle(meaning.NewMaker(d, r.model, map[string]meaning.TextOf{"item": func(_ context.Context, id string) (meaning.Text, bool, error) {
		t, ok := texts[id]
		return t, ok, nil
	}}).Jobs()...)
	if err := q.Due(ctx); err != nil {
		return nil, err
	}
	s := &store{d: d, fused: search.New(d, 1<<30), text: search.New(d, 1<<30), putAndDone: time.Since(begin)}
	s.fused.UseModel(r.model)
	fmt.Fprintf(os.Stderr, "%s: %d things indexed and embedded in %s\n", name, len(items), s.putAndDone.Round(time.Second))
	return s, nil
}

// legs are the ways to search, the whole first.
func (s *store) legs() map[string]func(context.Context, []string, []string, string, int) (search.Result, error) {
	return map[string]func(context.Context, []string, []string, string, int) (search.Result, error){"": s.fused.Ask, "leg text ": s.text.Ask, "leg vectors ": s.fused.Nearest}
}

var legNames = []string{"leg text ", "leg vectors ", ""}

// tally sums recall and reciprocal rank over questions.
type tally struct{ at5, at10, first, questions float64 }

func (t *tally) add(found []string, wanted map[string]bool) {
	var at5, at10 float64
	first := 0
	for i, id := range found[:min(len(found), 10)] {
		if !wanted[id] {
			continue
		}
		if i < 5 {
			at5++
		}
		at10++
		if first == 0 {
			first = i + 1
		}
	}
	t.questions++
	t.at5 += at5 / float64(len(wanted))
	t.at10 += at10 / float64(len(wanted))
	if first > 0 {
		t.first += 1 / float64(first)
	}
}

// share writes .921 for 0.921.
func share(x float64) string {
	s := strconv.FormatFloat(x, 'f', 3, 64)
	if s[0] == '0' {
		return s[1:]
	}
	return s
}

func (t tally) String() string {
	n := max(t.questions, 1)
	return fmt.Sprintf("recall@5 %s recall@10 %s mrr %s", share(t.at5/n), share(t.at10/n), share(t.first/n))
}

func things(r search.Result) []string {
	ids := make([]string, len(r.Hits))
	for i, h := range r.Hits {
		ids[i] = h.Thing
	}
	return ids
}

// kept is a model whose vectors are remembered, in a file too where there is a folder for it.
type kept struct {
	embed.Model
	mu   sync.Mutex
	have map[[16]byte][]float32
	file *os.File
}

func newKept(m embed.Model, dir string) (*kept, error) {
	k := &kept{Model: m, have: map[[16]byte][]float32{}}
	if dir == "" {
		return k, nil
	}
	path := filepath.Join(dir, m.ID()+".vectors")
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	row := 16 + 4*m.Dimensions()
	for ; len(b) >= row; b = b[row:] {
		v := make([]float32, m.Dimensions())
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[16+4*i:]))
		}
		k.have[[16]byte(b[:16])] = v
	}
	k.file, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return k, err
}

func (k *kept) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, t := range texts {
		sum := sha256.Sum256([]byte(t))
		key := [16]byte(sum[:16])
		k.mu.Lock()
		v, ok := k.have[key]
		k.mu.Unlock()
		if !ok {
			vs, err := k.Model.Embed(ctx, []string{t})
			if err != nil {
				return nil, err
			}
			v = vs[0]
			if err := k.keep(key, v); err != nil {
				return nil, err
			}
		}
		out[i] = v
	}
	return out, nil
}

func (k *kept) keep(key [16]byte, v []float32) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.have[key] = v
	if k.file == nil {
		return nil
	}
	b := slices.Clone(key[:])
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	_, err := k.file.Write(b)
	return err
}
