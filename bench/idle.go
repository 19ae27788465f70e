package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// idleServer measures starts, the memory of a server that nobody asks, and the list of tools.
func (b *bench) idleServer(ctx context.Context) error {
	full, err := b.seed(ctx, "idle", b.size.tasks, false)
	if err != nil {
		return err
	}
	defer full.remove()
	fresh := make([]time.Duration, 0, b.size.starts)
	again := make([]time.Duration, 0, b.size.starts)
	for range b.size.starts {
		f, err := b.scratch("fresh")
		if err != nil {
			return err
		}
		took, err := b.firstList(ctx, f)
		f.remove()
		if err != nil {
			return err
		}
		fresh = append(fresh, took)
		if took, err = b.firstList(ctx, full); err != nil {
			return err
		}
		again = append(again, took)
	}
	empty, err := b.scratch("empty")
	if err != nil {
		return err
	}
	defer empty.remove()
	freshRSS, freshFiles, listed, err := b.idleMemory(ctx, empty)
	if err != nil {
		return err
	}
	fullRSS, fullFiles, _, err := b.idleMemory(ctx, full)
	if err != nil {
		return err
	}
	b.reportIdle(fresh, again, [2]int64{freshRSS, fullRSS}, [2]int64{freshFiles, fullFiles}, listed)
	return nil
}

func (b *bench) reportIdle(fresh, again []time.Duration, rss, files [2]int64, listed []byte) {
	tasks := number(float64(b.size.tasks)) + " tasks"
	ms := func(list []time.Duration) []float64 {
		return pick(list, func(d time.Duration) float64 { return float64(d) })
	}
	t := table{title: "Start and rest", head: []string{"data", "start to first tools/list ms", "least..most", "idle RSS MiB", "of this pages of the program"}}
	t.add("fresh folder, schema made", millis(median(ms(fresh))), span(ms(fresh), millis), mebi(float64(rss[0])), mebi(float64(files[0])))
	t.add(tasks, millis(median(ms(again))), span(ms(again), millis), mebi(float64(rss[1])), mebi(float64(files[1])))
	t.note = fmt.Sprintf("%d starts each, from the start of the process to the whole answer of the first tools/list, with the program in the system's cache. Idle is %v after a single tools/list; no heap's search index is loaded.", b.size.starts, b.size.idle)
	b.rep.tables = append(b.rep.tables, t)
	var m struct {
		Result struct {
			Tools []json.RawMessage `json:"tools"`
		} `json:"result"`
	}
	if json.Unmarshal(listed, &m) == nil {
		b.rep.facts = append(b.rep.facts, fmt.Sprintf("tools/list: %s bytes, %d tools (the default list of a token that may read and write everything).", number(float64(len(listed))), len(m.Result.Tools)))
	}
	slowest := max(median(ms(fresh)), median(ms(again)))
	b.rep.want("cold start to the first tools/list (the slower folder's median)", slowest/float64(time.Millisecond), 200, "ms")
	b.rep.want("idle memory (the larger of both)", float64(slices.Max(rss[:]))/(1<<20), 40, "MiB")
}

// firstList times a server from its start to its first answer.
func (b *bench) firstList(ctx context.Context, f folder) (time.Duration, error) {
	begin := time.Now()
	s, err := b.serve(ctx, f, "--print-token")
	if err != nil {
		return 0, err
	}
	defer s.stop()
	_, err = s.ask(ctx, toolsList)
	took := time.Since(begin)
	if err != nil {
		return 0, err
	}
	return took, s.close()
}

// idleMemory gives the memory of a server at rest, and its list of tools.
func (b *bench) idleMemory(ctx context.Context, f folder) (rss, files int64, listed []byte, err error) {
	s, err := b.serve(ctx, f, "--print-token")
	if err != nil {
		return 0, 0, nil, err
	}
	defer s.stop()
	if listed, err = s.ask(ctx, toolsList); err != nil {
		return 0, 0, nil, err
	}
	select {
	case <-time.After(b.size.idle):
	case <-ctx.Done():
		return 0, 0, nil, ctx.Err()
	}
	rss, files, err = s.memory()
	return rss, files, listed, err
}
