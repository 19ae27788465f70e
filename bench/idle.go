package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"cairn/bench/table"
)

// rested is what starts on one kind of folder showed.
type rested struct {
	name       string
	took       []time.Duration // from the start to the first answer
	rss, files []int64         // at rest
}

// idleServer measures starts, the memory of a server that nobody asks, and the list of tools.
func (b *bench) idleServer(ctx context.Context) error {
	full, err := b.seed(ctx, "idle", b.size.tasks, false)
	if err != nil {
		return err
	}
	defer full.remove()
	var listed []byte
	fresh, again := &rested{name: "fresh folder, schema made"}, &rested{name: number(float64(b.size.tasks)) + " tasks"}
	for range b.size.starts {
		f, err := b.scratch("fresh")
		if err != nil {
			return err
		}
		_, err = b.rest(ctx, f, fresh)
		f.remove()
		if err != nil {
			return err
		}
		if listed, err = b.rest(ctx, full, again); err != nil {
			return err
		}
	}
	b.reportIdle([]*rested{fresh, again}, listed)
	return nil
}

// rest times a server from its start to its first answer, the list of tools, and reads its memory a while later.
func (b *bench) rest(ctx context.Context, f folder, r *rested) ([]byte, error) {
	begin := time.Now()
	s, err := b.serve(ctx, f, "--print-token")
	if err != nil {
		return nil, err
	}
	defer s.stop()
	listed, err := s.ask(ctx, toolsList)
	took := time.Since(begin)
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(b.size.idle):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	rss, files, err := s.memory()
	if err != nil {
		return nil, err
	}
	r.took, r.rss, r.files = append(r.took, took), append(r.rss, rss), append(r.files, files)
	return listed, s.close()
}

func (b *bench) reportIdle(rows []*rested, listed []byte) {
	t := table.Table{Title: "Start and rest", Head: []string{"data", "start to first tools/list ms", "least..most", "idle RSS MiB", "least..most", "of it the program's pages"}}
	slowest, largest := 0.0, int64(0)
	for _, r := range rows {
		took := pick(r.took, func(d time.Duration) float64 { return float64(d) })
		rss := pick(r.rss, func(n int64) float64 { return float64(n) })
		t.Add(r.name, millis(median(took)), span(took, millis), mebi(median(rss)), span(rss, mebi), mebi(median(pick(r.files, func(n int64) float64 { return float64(n) }))))
		slowest, largest = max(slowest, median(took)), max(largest, slices.Max(r.rss))
	}
	t.Note = fmt.Sprintf("%d starts each, from the start of the process to the whole answer of the first tools/list, with the program in the system's cache. Idle is %v after that answer; no heap's search index is loaded.", b.size.starts, b.size.idle)
	b.rep.tables = append(b.rep.tables, t)
	b.rep.want("cold start to the first tools/list (the slower folder's median)", slowest/float64(time.Millisecond), 200, "ms")
	b.rep.want("idle memory (the largest of all starts)", float64(largest)/(1<<20), 40, "MiB")
	var m struct {
		Result struct {
			Tools []json.RawMessage `json:"tools"`
		} `json:"result"`
	}
	if json.Unmarshal(listed, &m) == nil {
		b.rep.facts = append(b.rep.facts, fmt.Sprintf("tools/list: %s bytes, %d tools (the default list of a token that may read and write everything).", number(float64(len(listed))), len(m.Result.Tools)))
	}
}
