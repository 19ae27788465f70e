// Package retrieval measures how well search finds what answers a question.
package retrieval

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/bench/made"
	"cairn/bench/table"
	"cairn/internal/app"
	"cairn/internal/config"
	"cairn/internal/embed"
	"cairn/internal/meaning"
	"cairn/internal/search"
	"cairn/internal/who"
)

// Main is `bench retrieval`: sessions of conversations in one heap, single turns in
// a heap per conversation, abstracts. Each measure is printed for the whole and for each leg alone.
func Main(args []string) int {
	flags := flag.NewFlagSet("bench retrieval", flag.ContinueOnError)
	data := flags.String("data", "", "folder with locomo-dev.json and cranfield/")
	cache := flags.String("cache", "", "folder that keeps vectors for the next run")
	only := flags.String("only", "sessions,turns,cranfield", "what to measure, by commas")
	out := flags.String("write", "", "result file that gets the table, such as bench/RESULTS.md")
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
	if r.model, err = made.Keep(embed.Builtin(), *cache); err == nil {
		err = r.run(ctx, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	for _, m := range r.measures {
		fmt.Println(m.leg + m.name + " " + m.figures)
	}
	if *out == "" {
		return 0
	}
	was, err := os.ReadFile(*out)
	if err == nil {
		var b strings.Builder
		b.WriteString(strings.TrimSuffix(string(was), Part(string(was))))
		r.table().Write(&b)
		err = os.WriteFile(*out, []byte(b.String()), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

// finding is a run.
type finding struct {
	dir, data string
	model     embed.Model
	measures  []measured
}

// measured is what one leg, or the whole, reached.
type measured struct{ leg, name, figures string }

func (r *finding) say(leg, name string, figures fmt.Stringer) {
	r.measures = append(r.measures, measured{leg, name, figures.String()})
}

const title = "Retrieval"

// table puts the legs beside each other.
func (r *finding) table() table.Table {
	t := table.Table{Title: title, Head: []string{"measure", "text alone", "vectors alone", "fused"},
		Note: "Made by `make bench-retrieval`: recall@5, recall@10 and MRR of sessions of conversations in one heap (categories 1 to 4, and each alone) and of single turns in a heap per conversation, nDCG@10 of abstracts. Things are written by the operations, embedded in the background by the built-in model, and found by `search`. Weights were picked on this data."}
	for _, m := range r.measures {
		i := slices.IndexFunc(t.Rows, func(row []string) bool { return row[0] == m.name })
		if i < 0 {
			i = len(t.Rows)
			t.Add(m.name, "", "", "")
		}
		t.Rows[i][1+slices.Index(legs, m.leg)] = strings.NewReplacer("recall@5 ", "", "recall@10 ", "", "mrr ", "", "nDCG@10 ", "").Replace(m.figures)
	}
	return t
}

// Part gives the table's section of a result file, which is its last.
func Part(results string) string {
	i := strings.Index(results, "## "+title+"\n")
	if i < 0 {
		return ""
	}
	return results[i:]
}

// product is a Cairn with things that were written by its operations, and embedded.
type product struct {
	*app.App
	text, fused *search.Engine
	heaps       map[string]string // ids by name
	keys        map[string]string // of things, by their ids
}

// item is a thing to be found: the operation that writes it, and the key that the data calls it by.
type item struct {
	key, heap, op string
	in            any
}

// open makes a Cairn with heaps.
func (r *finding) open(ctx context.Context, name string, heaps ...string) (*product, error) {
	c, err := config.Load(nil, func(k string) (string, bool) {
		return filepath.Join(r.dir, name), k == "CAIRN_DATA"
	})
	if err != nil {
		return nil, err
	}
	a, err := app.Open(ctx, c, app.Options{Log: slog.New(slog.DiscardHandler), Model: r.model})
	if err != nil {
		return nil, err
	}
	p := &product{App: a, text: search.New(a.DB, 1<<30), fused: search.New(a.DB, 1<<30), heaps: map[string]string{}, keys: map[string]string{}}
	p.fused.UseModel(r.model)
	for _, h := range heaps {
		var made struct{ ID string }
		if err := p.call(ctx, "create_heap", map[string]string{"name": h}, &made); err != nil {
			return nil, err
		}
		p.heaps[h] = made.ID
	}
	return p, nil
}

// call runs an operation as the owner.
func (p *product) call(ctx context.Context, name string, in, out any) error {
	c, err := p.Accounts.Owner(ctx, "", true)
	if err != nil {
		return err
	}
	b, err := json.Marshal(in)
	if err != nil {
		return err
	}
	res, err := p.Runner.Run(who.With(ctx, c), name, b)
	if err != nil {
		return fmt.Errorf("%s %.200s: %w", name, b, err)
	}
	return json.Unmarshal(res.JSON, out)
}

// index writes things by their operations and lets the background embed them.
func (r *finding) index(ctx context.Context, name string, heaps []string, items []item) (*product, error) {
	begin := time.Now()
	p, err := r.open(ctx, name, heaps...)
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		var made struct{ ID string }
		if err := p.call(ctx, it.op, it.in, &made); err != nil {
			return nil, err
		}
		p.keys[made.ID] = it.key
	}
	if err := meaning.Remake(ctx, p.DB); err != nil {
		return nil, err
	}
	if err := p.Jobs.Due(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "%s: %d things written and embedded in %s\n", name, len(items), time.Since(begin).Round(time.Second))
	return p, nil
}

// find gives the keys of the ten best things of a heap: by the search operation, or by one leg of it alone.
func (p *product) find(ctx context.Context, leg, heap, query string) ([]string, error) {
	var ids []string
	switch leg {
	case "":
		var out struct{ Results []struct{ ID string } }
		if err := p.call(ctx, "search", map[string]any{"query": query, "heap": heap, "limit": 10}, &out); err != nil {
			return nil, err
		}
		for _, r := range out.Results {
			ids = append(ids, r.ID)
		}
	default:
		by := p.text.Ask
		if leg == legVectors {
			by = p.fused.Nearest
		}
		found, err := by(ctx, []string{p.heaps[heap]}, nil, query, 10)
		if err != nil {
			return nil, err
		}
		for _, h := range found.Hits {
			ids = append(ids, h.Thing)
		}
	}
	for i, id := range ids {
		ids[i] = p.keys[id]
	}
	return ids, nil
}

// The legs of a search, the whole last.
const (
	legText    = "leg text "
	legVectors = "leg vectors "
)

var legs = []string{legText, legVectors, ""}

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
