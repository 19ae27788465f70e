package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"cairn/bench/made"
	"cairn/bench/table"
	"cairn/internal/db"
)

// reads are what is asked while things are embedded, by tool.
var reads = []string{"list_tasks", "search"}

// readFor is how long one of them is asked before it's the other's turn.
const readFor = 500 * time.Millisecond

// captures measures how soon a thousand captures have vectors, alone and beside reads, and what that does to the reads.
func (b *bench) captures(ctx context.Context) error {
	f, err := b.remembered(ctx, b.size.packItems[0])
	if err != nil {
		return err
	}
	defer f.remove()
	s, err := b.serve(ctx, f)
	if err != nil {
		return err
	}
	defer s.stop()
	d, err := sql.Open("sqlite", "file:"+filepath.Join(f.dir, db.FileName)+"?mode=ro")
	if err != nil {
		return err
	}
	defer d.Close()
	alone, err := b.capture(ctx, s, d, 0, func() error { time.Sleep(50 * time.Millisecond); return nil })
	if err != nil {
		return err
	}
	quiet, busy := map[string][]time.Duration{}, map[string][]time.Duration{}
	for range 10 {
		if err := b.read(ctx, s, quiet); err != nil {
			return err
		}
	}
	beside, err := b.capture(ctx, s, d, 1, func() error { return b.read(ctx, s, busy) })
	if err != nil {
		return err
	}
	for _, waits := range []map[string][]time.Duration{quiet, busy} {
		for _, w := range waits {
			slices.Sort(w)
		}
	}
	n := number(float64(b.size.captures))
	t := table.Table{Title: "Embedding in the background", Head: []string{n + " captures", "all have vectors after s", "CPU ms each, with the capture", "list_tasks p50 ms", "p95 ms", "search p50 ms", "p95 ms"}}
	row := func(name string, k *captured, waits map[string][]time.Duration) {
		cells := []string{name, "", ""}
		if k != nil {
			cells[1] = fmt.Sprintf("%.1f", k.took.Seconds())
			if waits == nil {
				cells[2] = millis(float64(k.cpu) / float64(b.size.captures))
			}
		}
		for _, tool := range reads {
			if waits == nil {
				cells = append(cells, "", "")
				continue
			}
			cells = append(cells, millis(float64(quantile(waits[tool], .5))), millis(float64(quantile(waits[tool], .95))))
		}
		t.Add(cells...)
	}
	row("with nobody else", alone, nil)
	row("reads alone", nil, quiet)
	row("beside reads", beside, busy)
	t.Note = fmt.Sprintf("capture_context with 20 objects a call, one call after the other, into a memory of %s items; from the first call until the last object has its vector, as the database file shows. "+
		"The server waits until nothing has changed for two seconds before it embeds. Reads go on all the time, one at a time, half a second of list_tasks and half a second of search by turns, each search another question.", number(float64(b.size.packItems[0])))
	b.rep.tables = append(b.rep.tables, t)
	b.rep.want(n+" captures beside reads: until all have vectors", beside.took.Seconds(), 120, "s")
	for _, tool := range reads {
		for _, share := range []float64{.5, .95} {
			b.rep.want(fmt.Sprintf("%s while they are embedded, p%.0f, times that without", tool, 100*share), float64(quantile(busy[tool], share))/float64(quantile(quiet[tool], share)), 1.5, "×")
		}
	}
	return nil
}

// captured is how long it took until all of some captures had vectors.
type captured struct {
	took, cpu time.Duration
}

// capture captures and waits for the vectors, doing something over and over meanwhile.
func (b *bench) capture(ctx context.Context, s *child, d *sql.DB, round int, meanwhile func() error) (*captured, error) {
	before, err := s.cpu()
	if err != nil {
		return nil, err
	}
	const each = 20
	k, err := dial(ctx, s)
	if err != nil {
		return nil, err
	}
	defer k.close()
	begin := time.Now()
	done := make(chan error, 1)
	go func() {
		for i := range b.size.captures / each {
			if _, err := k.post(toolCall(i, "capture_context", map[string]any{"objects": made.Objects(1_000_000*(round+1)+i, each)})); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for written := false; ; {
		if err := meanwhile(); err != nil {
			return nil, err
		}
		select {
		case err := <-done:
			if err != nil {
				return nil, err
			}
			written = true
		default:
		}
		var lacking int
		if err := d.QueryRowContext(ctx, `SELECT count(*) FROM search_passage p WHERE part = 0 AND gone = 0 AND NOT EXISTS (SELECT 1 FROM search_vector v WHERE v.heap = p.heap AND v.thing = p.thing)`).Scan(&lacking); err != nil {
			return nil, err
		}
		switch {
		case written && lacking == 0:
			after, err := s.cpu()
			return &captured{time.Since(begin), after - before}, err
		case time.Since(begin) > 10*time.Minute:
			return nil, errors.New("the vectors don't come")
		}
	}
}

// read asks each of the reads for a while.
func (b *bench) read(ctx context.Context, s *child, waits map[string][]time.Duration) error {
	for _, tool := range reads {
		from := 10_000 + len(waits[tool])
		o, err := s.drive(ctx, load{conns: 1, until: readFor, body: func(i int) []byte {
			if tool == "search" {
				return toolCall(i, tool, map[string]string{"query": made.Question(from + i)})
			}
			return toolCall(i, tool, struct{}{})
		}})
		if err != nil {
			return err
		}
		waits[tool] = append(waits[tool], o.waits...)
	}
	return nil
}
