package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cairn/bench/made"
	"cairn/bench/table"
	"cairn/internal/app"
	"cairn/internal/embed"
)

// mostOpen is how many tasks are open at most: years add tasks that are done.
const mostOpen = 1000

// packed is one number of items and what was measured on it.
type packed struct {
	items  int
	folder folder
	first  time.Duration
	packs  cost
	rss    int64
}

// packs measures the way from a query to a pack.
func (b *bench) packs(ctx context.Context) error {
	var all []*packed
	for _, n := range b.size.packItems {
		p := &packed{items: n}
		var err error
		if p.folder, err = b.remembered(ctx, n); err != nil {
			return err
		}
		defer p.folder.remove()
		if err := b.packRound(ctx, p); err != nil {
			return err
		}
		all = append(all, p)
	}
	alone, err := b.embedding(ctx)
	if err != nil {
		return err
	}
	t := table.Table{Title: "From a query to a pack", Head: []string{"items", "get_context p50 ms", "p95 ms", "least..most", "CPU ms", "of it the query's embedding, ms", "first one s", "characters", "RSS MiB"}}
	for _, p := range all {
		w := p.packs.waits
		t.Add(number(float64(p.items)), millis(float64(p.packs.wait(.5))), millis(float64(p.packs.wait(.95))), millis(float64(w[0]))+".."+millis(float64(w[len(w)-1])),
			millis(float64(p.packs.cpu)), millis(float64(alone)), fmt.Sprintf("%.2f", p.first.Seconds()), number(float64(p.packs.bytes)/float64(p.packs.requests)), mebi(float64(p.rss)))
	}
	t.Note = fmt.Sprintf("get_context with a query of about eight tokens, %s different ones, one at a time, timed by the client over HTTP; the first one loads the heap and compiles the Self page. "+
		"Of the items 30 %% are context objects of all kinds, 10 %% daily notes, 20 %% episodes, 40 %% tasks, of which one in ten is open, %s at most; all made by the product's operations, with made-up vectors. The embedding is the built-in model's, of the same queries, in this process.",
		number(float64(b.size.packs)), number(mostOpen))
	b.rep.tables = append(b.rep.tables, t)
	limits := []float64{12, 20}
	for i, p := range all {
		b.rep.want("query to pack with "+number(float64(p.items))+" items, warm, p50", float64(p.packs.wait(.5))/float64(time.Millisecond), limits[min(i, 1)], "ms")
	}
	return nil
}

// embedding is the median time of embedding a query alone.
func (b *bench) embedding(ctx context.Context) (time.Duration, error) {
	took := make([]time.Duration, 50)
	for i := range took {
		begin := time.Now()
		if _, err := embed.Builtin().Embed(ctx, []string{made.Question(i)}); err != nil {
			return 0, err
		}
		took[i] = time.Since(begin)
	}
	slices.Sort(took)
	return quantile(took, .5), nil
}

func (b *bench) packRound(ctx context.Context, p *packed) error {
	s, err := b.serve(ctx, p.folder)
	if err != nil {
		return err
	}
	defer s.stop()
	ask := func(i int) []byte { return toolCall(i, "get_context", map[string]string{"query": made.Question(i)}) }
	begin := time.Now()
	answer, err := s.ask(ctx, ask(-1))
	if err != nil {
		return err
	}
	p.first = time.Since(begin)
	var pack struct{ Pack string }
	if err := structured(answer, &pack); err != nil {
		return err
	}
	for _, section := range []string{"## Who they are", "## Preferences", "## Decisions", "## Passages", "## Recently", "## Today"} {
		if !strings.Contains(pack.Pack, section) {
			return errors.New("the pack has no section " + section)
		}
	}
	if p.packs, err = s.weigh(ctx, load{conns: 1, total: b.size.packs, body: ask}); err != nil {
		return err
	}
	p.rss, _, err = s.memory()
	return err
}

// remembered makes a folder with n items of all sorts, as somebody's memory has them after years.
func (b *bench) remembered(ctx context.Context, n int) (folder, error) {
	f, err := b.scratch(fmt.Sprintf("memory-%d", n))
	if err != nil {
		return f, err
	}
	return f, b.in(ctx, &f, func(ctx context.Context, a *app.App, call caller) error {
		day := func(i int) string { return time.Now().AddDate(0, 0, -i).Format(time.DateOnly) }
		err := together(ctx, n*3/10/20, func(i int) error {
			return call("capture_context", map[string]any{"objects": made.Objects(i, 20)}, &struct{}{})
		})
		if err != nil {
			return err
		}
		err = together(ctx, n/10, func(i int) error {
			w := made.NewWords(uint64(2_000_000 + i))
			return call("upsert_daily_note", map[string]string{"external_ref": fmt.Sprint("n", i), "date": day(i), "title": w.Said("The %s and the %s, %s"), "body": w.Said("Worked on the %s; then came the %s. %s.") + "\n\n" + w.Text(30, 60)}, &struct{}{})
		})
		if err != nil {
			return err
		}
		err = together(ctx, n/5, func(i int) error {
			w := made.NewWords(uint64(3_000_000 + i))
			return call("add_episode", map[string]string{"external_ref": fmt.Sprint("e", i), "occurred_at": day(i / 4), "summary": w.Said("Met about the %s and the %s, %s", "The %s came back from the %s %s"), "detail": w.Text(5, 30)}, &struct{}{})
		})
		if err != nil {
			return err
		}
		return together(ctx, n*4/10, func(i int) error {
			w := made.NewWords(uint64(4_000_000 + i))
			var task struct{ ID string }
			if err := call("create_personal_task", made.Task{Name: w.Said("Prepare the %s for the %s %s", "Call about the %s and %s %s"), Description: w.Text(0, 25), DueDate: day(i*37%1300 - 1000)}, &task); err != nil || i < min(n/25, mostOpen) {
				return err
			}
			return call("complete_task", map[string]string{"task_id": task.ID}, &struct{}{})
		})
	})
}
