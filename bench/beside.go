package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"cairn/bench/made"
	"cairn/bench/table"
)

// connections is how many the comparison runs with.
const connections = 8

// contender is one row of the comparison: a server and what it is asked.
type contender struct {
	name  string
	start func(context.Context) (*child, func(), error) // and what removes its data
	body  func(i int) []byte
	more  int // times as many requests as the others
	rows  int // tasks that an answer must list; 0 = it lists none
	costs []cost
	rss   []int64 // after the load
}

// beside compares Cairn with a plain server and a bare SDK server. In each round each of them is a fresh process; the ratio
// is taken within the round, since the machine's own speed drifts between rounds.
func (b *bench) beside(ctx context.Context) error {
	short, err := b.seed(ctx, "short", b.size.tasks, false)
	if err != nil {
		return err
	}
	defer short.remove()
	long, err := b.seed(ctx, "long", b.size.tasks, true)
	if err != nil {
		return err
	}
	defer long.remove()
	rows := b.contenders(short, long)
	for round := range b.size.rounds {
		for i := range rows {
			if err := rows[(i+round)%len(rows)].round(ctx, b.size.besideReqs); err != nil {
				return err
			}
		}
	}
	anchor := rows[1]
	t := table.Table{Title: "Beside a plain server and a bare go-sdk server", Head: []string{"server and call", "CPU µs/request", "least..most", "× bare", "least..most", "requests/s", "p50 ms", "p99 ms", "answer bytes", "RSS MiB after"}}
	for _, c := range rows {
		ratios := c.ratios(anchor)
		cpu := pick(c.costs, func(k cost) float64 { return micros(k.cpu) })
		t.Add(c.name, number(median(cpu)), span(cpu, number), fmt.Sprintf("%.2f", median(ratios)), span(ratios, func(f float64) string { return fmt.Sprintf("%.2f", f) }),
			number(median(pick(c.costs, func(k cost) float64 { return k.rate() }))), millis(median(pick(c.costs, func(k cost) float64 { return float64(k.wait(.5)) }))),
			millis(median(pick(c.costs, func(k cost) float64 { return float64(k.wait(.99)) }))), number(float64(c.costs[0].bytes)/float64(c.costs[0].requests)), mebi(median(pick(c.rss, func(n int64) float64 { return float64(n) }))))
	}
	t.Note = fmt.Sprintf("%d rounds, %s requests each at %d connections (the echo: %s), each in a fresh server process, the contenders in turn. "+
		"CPU is user and kernel time of the server process by requests, with what it does in the background until %.1f s after the last answer. "+
		"× bare is the median of the rounds' own ratios. Cairn checks a real token in each call, writes change record, audit and usage rows, and its writes are on the disk before it answers. "+
		"Short tasks are a name of 3 to 9 words and, each third, a description of 10 to 25; long ones have 35 to 80. The account's zone is %s. The client runs on the same cores: requests/s would be higher without it.",
		b.size.rounds, number(float64(b.size.besideReqs)), connections, number(float64(b.size.besideReqs*rows[0].more)), flushed.Seconds(), zone)
	b.rep.tables = append(b.rep.tables, t)
	b.rep.want("list_tasks, 50 of "+number(float64(b.size.tasks))+" short: CPU, times the bare server's", median(rows[2].ratios(anchor)), 1.0, "×")
	b.rep.want("create_personal_task: CPU, times the bare server's", median(rows[4].ratios(anchor)), 1.2, "×")
	return nil
}

func (b *bench) contenders(short, long folder) []*contender {
	peer := func(name string) func(context.Context) (*child, func(), error) {
		return func(ctx context.Context) (*child, func(), error) {
			c, err := start(ctx, name, b.self, name)
			return c, func() {}, err
		}
	}
	cairn := func(f folder) func(context.Context) (*child, func(), error) {
		return func(ctx context.Context) (*child, func(), error) {
			f, err := b.copyOf(f)
			if err != nil {
				return nil, nil, err
			}
			c, err := b.serve(ctx, f)
			if err != nil {
				f.remove()
			}
			return c, f.remove, err
		}
	}
	noop := func(i int) []byte { return toolCall(i, "noop", made.Task{Name: "nothing to be done"}) }
	list := func(i int) []byte { return toolCall(i, "list_tasks", struct{}{}) }
	of := number(float64(b.size.tasks))
	return []*contender{
		{name: "net/http JSON echo", start: peer("echo"), body: noop, more: 4},
		{name: "bare go-sdk, no-op tool", start: peer("bare"), body: noop, more: 1},
		{name: "list_tasks, 50 of " + of + " short", start: cairn(short), body: list, more: 1, rows: 50},
		{name: "list_tasks, 50 of " + of + " long", start: cairn(long), body: list, more: 1, rows: 50},
		{name: "create_personal_task", start: cairn(short), body: func(i int) []byte { return toolCall(i, "create_personal_task", made.NewTask(1_000_000+i, false)) }, more: 1},
		{name: "complete_task, each another", start: cairn(short), body: func(i int) []byte {
			return toolCall(i, "complete_task", map[string]string{"task_id": short.ids[i]})
		}, more: 1},
	}
}

func (c *contender) round(ctx context.Context, requests int) error {
	s, remove, err := c.start(ctx)
	if err != nil {
		return err
	}
	defer remove()
	defer s.stop()
	k, err := s.weigh(ctx, load{conns: connections, total: requests * c.more, body: c.body})
	if err != nil {
		return err
	}
	rss, _, err := s.memory()
	if err != nil {
		return err
	}
	c.costs, c.rss = append(c.costs, k), append(c.rss, rss)
	return c.check(ctx, s)
}

// check looks into an answer: a short list would be a cheap one.
func (c *contender) check(ctx context.Context, s *child) error {
	if c.rows == 0 {
		return nil
	}
	answer, err := s.ask(ctx, c.body(0))
	if err != nil {
		return err
	}
	var page struct{ Tasks []json.RawMessage }
	if err := structured(answer, &page); err != nil {
		return err
	}
	if len(page.Tasks) != c.rows {
		return fmt.Errorf("%s: the answer lists %d tasks, not %d", c.name, len(page.Tasks), c.rows)
	}
	return nil
}

func (c *contender) ratios(anchor *contender) []float64 {
	list := make([]float64, len(c.costs))
	for i := range list {
		list[i] = float64(c.costs[i].cpu) / float64(anchor.costs[i].cpu)
	}
	return list
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
