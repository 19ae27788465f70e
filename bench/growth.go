package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"cairn/bench/made"
	"cairn/bench/table"
	"cairn/internal/app"
)

// grown is one size of the data and what was measured on it.
type grown struct {
	tasks        int
	folder       folder
	large        bool // too large to copy each round: it grows by what a round creates
	list, create []cost
	cold         []time.Duration // first searches of a fresh server
	coldCPU      []time.Duration
	search, find outcome // the search tool, and list_tasks with query
	content      outcome
	searchCPU    time.Duration // a search
	rss          int64         // with the heap loaded
}

// growth measures create, list and search over ever more tasks.
func (b *bench) growth(ctx context.Context) error {
	var sizes []*grown
	for i, n := range b.size.grow {
		f, err := b.seed(ctx, fmt.Sprintf("grown-%d", n), n, true)
		if err != nil {
			return err
		}
		defer f.remove()
		sizes = append(sizes, &grown{tasks: n, folder: f, large: i == len(b.size.grow)-1})
	}
	for _, g := range sizes {
		if err := b.searchRound(ctx, g); err != nil {
			return err
		}
	}
	for round := range b.size.growRounds {
		for i := range sizes {
			if err := b.growRound(ctx, sizes[(i+round)%len(sizes)], round); err != nil {
				return err
			}
		}
	}
	b.reportGrowth(sizes)
	return nil
}

func (b *bench) growRound(ctx context.Context, g *grown, round int) error {
	f := g.folder
	if g.large && round > 0 { // what the round before created
		if err := b.open(ctx, &f, func(a *app.App) error { return embedded(ctx, a) }); err != nil {
			return err
		}
	} else if !g.large {
		c, err := b.copyOf(f)
		if err != nil {
			return err
		}
		defer c.remove()
		f = c
	}
	s, err := b.serve(ctx, f)
	if err != nil {
		return err
	}
	defer s.stop()
	l, err := s.weigh(ctx, load{conns: connections, total: b.size.growReqs, body: func(i int) []byte { return toolCall(i, "list_tasks", struct{}{}) }})
	if err != nil {
		return err
	}
	c, err := s.weigh(ctx, load{conns: connections, total: b.size.growReqs, body: func(i int) []byte {
		return toolCall(i, "create_personal_task", made.NewTask(1_000_000*(round+1)+i, true))
	}})
	if err != nil {
		return err
	}
	g.list, g.create = append(g.list, l), append(g.create, c)
	return s.close()
}

// searchRound times first searches, each in a fresh server, and in the last of these warm ones, one at a time.
func (b *bench) searchRound(ctx context.Context, g *grown) error {
	for range b.size.colds - 1 {
		s, err := b.coldSearch(ctx, g)
		if err != nil {
			return err
		}
		s.stop()
	}
	s, err := b.coldSearch(ctx, g)
	if err != nil {
		return err
	}
	defer s.stop()
	w := made.NewWords(7)
	queries := func(tool string, query func() string) load {
		list := make([][]byte, b.size.searches)
		for i := range list {
			list[i] = toolCall(i, tool, map[string]string{"query": query()})
		}
		return load{conns: 1, total: len(list), body: func(i int) []byte { return list[i%len(list)] }}
	}
	asTheyOccur := func() string { return w.Text(5, 5) }
	k, err := s.weigh(ctx, queries("search", asTheyOccur))
	if err != nil {
		return err
	}
	g.search, g.searchCPU = k.outcome, k.cpu
	if g.content, err = s.drive(ctx, queries("search", func() string { return w.Ranked(5, 60, 600) })); err != nil {
		return err
	}
	if g.find, err = s.drive(ctx, queries("list_tasks", asTheyOccur)); err != nil {
		return err
	}
	g.rss, _, err = s.memory()
	return err
}

// coldSearch starts a server whose first search is timed.
func (b *bench) coldSearch(ctx context.Context, g *grown) (*child, error) {
	s, err := b.serve(ctx, g.folder)
	if err != nil {
		return nil, err
	}
	if err := g.first(ctx, s); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (g *grown) first(ctx context.Context, s *child) error {
	before, err := s.cpu()
	if err != nil {
		return err
	}
	begin := time.Now()
	answer, err := s.ask(ctx, toolCall(0, "search", map[string]string{"query": made.NewWords(8).Text(5, 5)}))
	took := time.Since(begin)
	if err != nil {
		return err
	}
	after, err := s.cpu()
	if err != nil {
		return err
	}
	var found struct{ Results []json.RawMessage }
	if err := structured(answer, &found); err != nil {
		return err
	}
	if len(found.Results) == 0 {
		return errors.New("the search found nothing")
	}
	g.cold, g.coldCPU = append(g.cold, took), append(g.coldCPU, after-before)
	return nil
}

func (b *bench) reportGrowth(sizes []*grown) {
	least, most := sizes[0], sizes[len(sizes)-1]
	cpus := func(costs []cost) []float64 { return pick(costs, func(k cost) float64 { return micros(k.cpu) }) }
	p50 := func(costs []cost) string {
		return millis(median(pick(costs, func(k cost) float64 { return float64(k.wait(.5)) })))
	}
	t := table.Table{Title: "Growth of list and create", Head: []string{"tasks", "list_tasks CPU µs", "least..most", "p50 ms", "× first", "create CPU µs", "least..most", "p50 ms", "× first"}}
	s := table.Table{Title: "Growth of search", Head: []string{"tasks", "first search s", "its CPU s", "search p50 ms", "p95 ms", "CPU µs", "of ranks 60..600 p50 ms", "p95 ms", "list_tasks query p50 ms", "p95 ms", "RSS MiB"}}
	ratio := func(a, b []cost) float64 { return median(cpus(a)) / median(cpus(b)) }
	for _, g := range sizes {
		t.Add(number(float64(g.tasks)), number(median(cpus(g.list))), span(cpus(g.list), number), p50(g.list), fmt.Sprintf("%.2f", ratio(g.list, least.list)),
			number(median(cpus(g.create))), span(cpus(g.create), number), p50(g.create), fmt.Sprintf("%.2f", ratio(g.create, least.create)))
		s.Add(number(float64(g.tasks)), fmt.Sprintf("%.2f", slices.Max(g.cold).Seconds()), fmt.Sprintf("%.2f", slices.Max(g.coldCPU).Seconds()), millis(float64(g.search.wait(.5))), millis(float64(g.search.wait(.95))), number(micros(g.searchCPU)),
			millis(float64(g.content.wait(.5))), millis(float64(g.content.wait(.95))), millis(float64(g.find.wait(.5))), millis(float64(g.find.wait(.95))), mebi(float64(g.rss)))
	}
	t.Note = fmt.Sprintf("Long tasks. %d rounds, the sizes in turn, %s requests of each kind at %d connections in a fresh server. The largest folder grows by what its rounds create, which gets made-up vectors between them; the others are fresh each round.",
		b.size.growRounds, number(float64(b.size.growReqs)), connections)
	s.Note = fmt.Sprintf("Five words a query, %s different queries of each kind, one at a time, timed by the client over HTTP. Words are drawn as they occur in the tasks' text (Zipf 1.1, %s words), the commonest in most tasks; "+
		"beside that from the ranks 60 to 600. The first search loads the heap, in a fresh process with the file in the system's cache: the slowest of %d. RSS is with the heap loaded, after these searches.",
		number(float64(b.size.searches)), number(made.Vocabulary), b.size.colds)
	b.rep.tables = append(b.rep.tables, t, s)
	at := func(what string) string {
		return what + " at " + number(float64(most.tasks)) + " tasks"
	}
	by := ": CPU, times that at " + number(float64(least.tasks))
	b.rep.want(at("create_personal_task")+by, ratio(most.create, least.create), 1.3, "×")
	b.rep.want(at("list_tasks")+by, ratio(most.list, least.list), 1.3, "×")
	b.rep.want(at("five-word search")+", warm, p50", float64(most.search.wait(.5))/float64(time.Millisecond), 5, "ms")
	b.rep.want(at("first search"), slices.Max(most.cold).Seconds(), 2, "s")
}
