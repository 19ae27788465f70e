package change

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"cairn/internal/db"
	"cairn/internal/rawjson"
)

// How soon a watcher looks: at what this process wrote, and at what others did.
const (
	lookOwn    = 100 * time.Millisecond
	lookOthers = time.Second
)

// apart is how far the times of two writes may be from the order of their numbers, in microseconds: a write may last half a
// minute, and the clocks of replicas differ.
const apart = 120_000_000

// atOnce is how many heaps one statement asks about.
const atOnce = 500

// Heard is one change, as a listener is told.
type Heard struct {
	Heap, Thing, Effect string
	Fields              []string // that changed
}

// Watcher tells listeners in this process what changed, whoever wrote it: it looks at the counters of the heaps that are listened
// to (db.Tx.Numbered), once for all listeners, and at the record where a counter has moved. Without listeners it does nothing.
type Watcher struct {
	db  *db.DB
	log *slog.Logger

	mu    sync.Mutex
	seen  map[string]mark // by heap that somebody listens to
	ears  map[*ear]bool
	awake bool // a goroutine looks
}

type mark struct{ seq, at int64 }

type ear struct {
	heaps []string
	kind  string
	hear  func(Heard)
}

// NewWatcher makes a watcher.
func NewWatcher(d *db.DB, log *slog.Logger) *Watcher {
	return &Watcher{db: d, log: log, seen: map[string]mark{}, ears: map[*ear]bool{}}
}

// Watch tells hear of changes of a kind of thing in heaps, in the order of their commits within a heap, until stop is called.
// All that is committed after Watch returned is told; hear must not block.
func (w *Watcher) Watch(ctx context.Context, heaps []string, kind string, hear func(Heard)) (stop func(), err error) {
	marks, err := w.marks(ctx, heaps)
	if err != nil {
		return nil, err
	}
	e := &ear{slices.Clone(heaps), kind, hear}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range heaps {
		if _, ok := w.seen[h]; !ok {
			w.seen[h] = marks[h]
		}
	}
	w.ears[e] = true
	if !w.awake {
		w.awake = true
		go w.run()
	}
	return func() { w.forget(e) }, nil
}

func (w *Watcher) forget(e *ear) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ears, e)
	used := map[string]bool{}
	for e := range w.ears {
		for _, h := range e.heaps {
			used[h] = true
		}
	}
	maps.DeleteFunc(w.seen, func(h string, _ mark) bool { return !used[h] })
}

// marks reads the counters of heaps. A heap without one has had no write.
func (w *Watcher) marks(ctx context.Context, heaps []string) (map[string]mark, error) {
	found := map[string]mark{}
	for part := range slices.Chunk(heaps, atOnce) {
		args := db.Args{}
		rows, err := w.db.Query(ctx, `SELECT heap, seq, at FROM heap_seq WHERE heap IN `+args.List(part), args...)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var h string
			var m mark
			if err := rows.Scan(&h, &m.seq, &m.at); err != nil {
				rows.Close() //nolint:errcheck,sqlclosecheck // the scan's error says more
				return nil, err
			}
			found[h] = m
		}
		if err := rows.Close(); err != nil {
			return nil, err
		}
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// run looks until nobody listens.
func (w *Watcher) run() {
	tick := time.NewTicker(lookOwn)
	defer tick.Stop()
	looked, writes, failed := time.Now(), int64(-1), false
	for range tick.C {
		w.mu.Lock()
		if len(w.ears) == 0 {
			w.awake = false
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		n, _ := w.db.Counts()
		if n == writes && time.Since(looked) < lookOthers {
			continue
		}
		began := time.Now()
		err := w.look()
		if err != nil && !failed {
			w.log.Error("changes can't be read; who listens to them hears of them late", "cause", err.Error())
		}
		failed = err != nil
		looked, writes = time.Now(), n
		if took := time.Since(began); took > lookOwn { // a database that is busy gets its rest
			time.Sleep(min(5*took, lookOthers))
		}
	}
}

// look tells what came since the last look. What it can't read it reads the next time.
func (w *Watcher) look() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	w.mu.Lock()
	seen := maps.Clone(w.seen)
	w.mu.Unlock()
	now, err := w.marks(ctx, slices.Collect(maps.Keys(seen)))
	if err != nil {
		return err
	}
	for heap, m := range now {
		if m.seq <= seen[heap].seq {
			continue
		}
		if err := w.tell(ctx, heap, seen[heap], m); err != nil {
			return err
		}
		w.mu.Lock()
		if _, ok := w.seen[heap]; ok {
			w.seen[heap] = m
		}
		w.mu.Unlock()
	}
	return nil
}

// tell reads the record of a heap from one mark to another.
func (w *Watcher) tell(ctx context.Context, heap string, from, to mark) error {
	w.mu.Lock()
	byKind := map[string][]*ear{}
	for e := range w.ears {
		if slices.Contains(e.heaps, heap) {
			byKind[e.kind] = append(byKind[e.kind], e)
		}
	}
	w.mu.Unlock()
	args := db.Args{heap, from.at - apart, from.seq, to.seq}
	rows, err := w.db.Query(ctx, `SELECT kind, thing, effect, after FROM change WHERE heap = $1 AND at > $2 AND seq > $3 AND seq <= $4 AND kind IN `+
		args.List(slices.Collect(maps.Keys(byKind)))+` ORDER BY seq`, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		c := Heard{Heap: heap}
		var kind, after string
		if err := rows.Scan(&kind, &c.Thing, &c.Effect, &after); err != nil {
			return err
		}
		rawjson.Members([]byte(after), func(k string, _ json.RawMessage) bool {
			c.Fields = append(c.Fields, k)
			return true
		})
		for _, e := range byKind[kind] {
			e.hear(c)
		}
	}
	return rows.Err()
}
