package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cairn/bench/host"
	"cairn/bench/made"
	"cairn/bench/table"
	"cairn/internal/audit"
	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/search"
	"cairn/internal/who"
)

// writers are the numbers of connections that create at once.
var writers = []int{1, 8, 32}

// written is what a number of writers reached.
type written struct {
	rate, p50, p99, perCommit []float64
	shared, alone             []float64 // inside one process, with and without sharing commits
}

// writes measures durable creates, and what sharing commits brings.
func (b *bench) writes(ctx context.Context) error {
	all := map[int]*written{}
	for _, n := range writers {
		all[n] = &written{}
	}
	for run := range b.size.writeRuns {
		for i := range writers {
			n := writers[(i+run)%len(writers)]
			if err := b.creates(ctx, n, all[n]); err != nil {
				return err
			}
			for _, alone := range []bool{run%2 == 0, run%2 == 1} {
				rate, err := b.inProcess(ctx, n, alone)
				if err != nil {
					return err
				}
				if alone {
					all[n].alone = append(all[n].alone, rate)
				} else {
					all[n].shared = append(all[n].shared, rate)
				}
			}
		}
	}
	t := table.Table{Title: "Durable writes", Head: []string{"at once", "creates/s", "least..most", "p50 ms", "p99 ms", "writes a commit", "in process, shared: writes/s", "each its own commit: writes/s"}}
	for _, n := range writers {
		w := all[n]
		t.Add(number(float64(n)), number(median(w.rate)), span(w.rate, number), millis(median(w.p50)), millis(median(w.p99)), fmt.Sprintf("%.1f", median(w.perCommit)), number(median(w.shared)), number(median(w.alone)))
	}
	t.Note = fmt.Sprintf("SQLite with synchronous FULL. Creates are create_personal_task over HTTP on a fresh folder, %d runs of %v; writes a commit is the growth of cairn_db_writes_total by that of cairn_db_commits_total. "+
		"The last two columns are db.Write in this process with as many goroutines, each write being a change, a search passage and an audit row: once as the server does it, once behind a lock that lets one write in at a time, so that each has a commit of its own. "+
		"A write of 4 KiB with fsync took %s ms here (median of %d).",
		b.size.writeRuns, b.size.writeFor, millis(float64(b.rep.machine.Fsync)), host.Fsyncs)
	b.rep.tables = append(b.rep.tables, t)
	b.rep.wantLeast("durable creates a second at 8 connections", median(all[8].rate), 2000, "/s")
	return nil
}

func (b *bench) creates(ctx context.Context, conns int, w *written) error {
	f, err := b.seed(ctx, "writes", 1, false)
	if err != nil {
		return err
	}
	defer f.remove()
	s, err := b.serve(ctx, f)
	if err != nil {
		return err
	}
	defer s.stop()
	body := func(i int) []byte { return toolCall(i, "create_personal_task", made.NewTask(i, false)) }
	if _, err := s.drive(ctx, load{conns: conns, until: b.size.writeFor / 5, body: body}); err != nil {
		return err
	}
	writes, commits, err := s.commits(ctx)
	if err != nil {
		return err
	}
	o, err := s.drive(ctx, load{conns: conns, until: b.size.writeFor, body: body})
	if err != nil {
		return err
	}
	writes2, commits2, err := s.commits(ctx)
	w.rate, w.p50, w.p99 = append(w.rate, o.rate()), append(w.p50, float64(o.wait(.5))), append(w.p99, float64(o.wait(.99)))
	w.perCommit = append(w.perCommit, (writes2-writes)/(commits2-commits))
	return err
}

// commits reads how many writes and commits a server has counted.
func (c *child) commits(ctx context.Context) (writes, commits float64, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.addr+"/metrics", nil)
	if err != nil {
		return 0, 0, err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, 0, err
	}
	defer res.Body.Close()
	found, err := host.Metrics(res.Body, "cairn_db_writes_total", "cairn_db_commits_total")
	if err != nil {
		return 0, 0, err
	}
	return found[0], found[1], nil
}

// inProcess gives the durable writes a second of n goroutines. alone keeps them from sharing commits.
func (b *bench) inProcess(ctx context.Context, n int, alone bool) (float64, error) {
	f, err := b.scratch("in-process")
	if err != nil {
		return 0, err
	}
	defer f.remove()
	d, err := db.Open(ctx, db.Config{Dir: f.dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return 0, err
	}
	defer d.Close()
	ctx, cancel := context.WithCancelCause(who.With(ctx, &who.Caller{Account: "bench", Actor: "account:bench", Person: true}))
	defer cancel(nil)
	var turn sync.Mutex
	var done atomic.Int64
	var all sync.WaitGroup
	begin := time.Now()
	for g := range n {
		all.Go(func() {
			for i := 0; time.Since(begin) < b.size.writeFor/2 && ctx.Err() == nil; i++ {
				fn := oneWrite(ctx, g*1_000_000+i)
				if alone {
					turn.Lock()
				}
				err := d.Write(ctx, fn)
				if alone {
					turn.Unlock()
				}
				if err != nil {
					cancel(err)
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	return float64(done.Load()) / time.Since(begin).Seconds(), context.Cause(ctx)
}

// oneWrite makes a write of about what creating a task writes, out of the parts that the product has for it.
func oneWrite(ctx context.Context, i int) func(*db.Tx) error {
	t, id := made.NewTask(i, false), db.NewID()
	doc := search.Analyze(search.Doc{Heap: "bench", Thing: id, Kind: "task", Title: t.Name, Body: t.Description, Fresh: true})
	return func(tx *db.Tx) error {
		change.Record(ctx, tx, change.Entry{Heap: "bench", Kind: "task", Thing: id, Effect: change.Create,
			After: change.Fields{change.State: change.Live, "name": t.Name, "description": t.Description, "due_date": t.DueDate}, Summary: "Created task " + t.Name})
		doc.Put(tx)
		return audit.WriteEvent(ctx, tx, audit.ToolSuccess, strings.Repeat("x", len(t.Name)))
	}
}
