package search

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"cairn/internal/db"
)

// heap is one heap's index as the engine keeps it.
type heap struct {
	id    string
	model string // whose vectors are loaded; "" = none

	loading chan struct{} // holds one who reads the database into index; a channel, so that waiting can end with a ctx
	seq     atomic.Int64  // index holds all changes up to this number of the heap's counter; changed by who is loading
	vectors atomic.Int64  // and all vectors up to this one. Behind seq while they are loaded

	mu    sync.RWMutex // of index, for the short time that read rows are put into it
	index *index

	bytes atomic.Int64

	// The engine's, under its lock.
	users int
	used  int64
}

func newHeap(id, model string) *heap {
	return &heap{id: id, model: model, loading: make(chan struct{}, 1), index: newIndex()}
}

// catchUp brings the index to number seq of the heap's counter or further. When ctx ends first, the index stands at some
// number before and the next one goes on from there.
func (h *heap) catchUp(ctx context.Context, d *db.DB, seq int64) error {
	if h.holds(seq) {
		return nil
	}
	select {
	case h.loading <- struct{}{}:
		defer func() { <-h.loading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	last := h.seq.Load()
	if last > seq { // another search came after us and was first, or the database was put back to an earlier state
		err := d.One(ctx, `SELECT seq FROM heap_seq WHERE heap = $1`, []any{h.id}, &seq)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if last > seq {
			h.replace(newIndex(), 0)
			h.vectors.Store(0)
		}
	}
	err := h.load(ctx, d, seq)
	if err == nil {
		err = h.loadVectors(ctx, d)
	}
	if err != nil {
		if ctx.Err() != nil { // whatever the driver made of it
			return ctx.Err()
		}
		return fmt.Errorf("loading the search index of a heap: %w", err)
	}
	if h.index.crowded() { // who is loading may read it without the lock: nobody else changes it
		h.replace(h.index.compacted(), h.seq.Load())
	}
	return nil
}

// holds tells whether the index stands at number seq, vectors and all.
func (h *heap) holds(seq int64) bool { return h.seq.Load() == seq && h.vectors.Load() == seq }

// meant tells whether there are vectors in the index.
func (h *heap) meant() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.index.vectors.size > 0
}

func (h *heap) replace(x *index, seq int64) {
	h.mu.Lock()
	h.index = x
	h.mu.Unlock()
	h.seq.Store(seq)
	h.bytes.Store(x.bytes())
}

// revision is a thing as it stands after one change of the heap: its passages, none when it's gone.
type revision struct {
	thing, kind string
	seq         int64
	passages    []string
}

// batchPassages is how many passages are read before they are put into the index together.
const batchPassages = 512

// load reads what changed since the index's number. The rows of one number are those of one thing, all that it has now.
func (h *heap) load(ctx context.Context, d *db.DB, seq int64) error {
	if h.seq.Load() >= seq {
		return nil
	}
	rows, err := d.QueryLong(ctx, `SELECT thing, seq, kind, tok, gone FROM search_passage WHERE heap = $1 AND seq > $2
		ORDER BY seq, thing, part`, h.id, h.seq.Load())
	if err != nil {
		return err
	}
	defer rows.Close()
	var batch []revision
	passages := 0
	for rows.Next() {
		var r revision
		var tok string
		var gone bool
		if err := rows.Scan(&r.thing, &r.seq, &r.kind, &tok, &gone); err != nil {
			return err
		}
		n := len(batch) - 1
		if n < 0 || batch[n].seq != r.seq || batch[n].thing != r.thing {
			if passages >= batchPassages && batch[n].seq != r.seq {
				h.apply(batch, batch[n].seq)
				batch, passages = batch[:0], 0
			}
			batch = append(batch, r)
			n = len(batch) - 1
		}
		if passages++; !gone {
			batch[n].passages = append(batch[n].passages, tok)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if n := len(batch); n > 0 {
		seq = max(seq, batch[n-1].seq)
	}
	h.apply(batch, seq)
	return nil
}

func (h *heap) apply(batch []revision, seq int64) {
	h.mu.Lock()
	for _, r := range batch {
		h.index.put(r.thing, r.kind, r.passages)
	}
	h.bytes.Store(h.index.bytes())
	h.mu.Unlock()
	h.seq.Store(seq)
}

// embedded are the vectors that a thing got at once.
type embedded struct {
	thing  string
	seq    int64
	packed [][]byte
}

// loadVectors reads the vectors up to the index's number. Their things are there by now, but for those that are gone.
func (h *heap) loadVectors(ctx context.Context, d *db.DB) error {
	last, seq := h.vectors.Load(), h.seq.Load()
	if h.model == "" || last >= seq {
		h.vectors.Store(seq)
		return nil
	}
	rows, err := d.QueryLong(ctx, `SELECT thing, seq, vec FROM search_vector WHERE heap = $1 AND seq > $2 AND seq <= $3 AND model = $4
		ORDER BY seq, thing, part`, h.id, last, seq, h.model)
	if err != nil {
		return err
	}
	defer rows.Close()
	var batch []embedded
	count := 0
	for rows.Next() {
		var e embedded
		var vec string
		if err := rows.Scan(&e.thing, &e.seq, &vec); err != nil {
			return err
		}
		n := len(batch) - 1
		if n < 0 || batch[n].seq != e.seq || batch[n].thing != e.thing {
			if count >= batchPassages && batch[n].seq != e.seq {
				h.applyVectors(batch, batch[n].seq)
				batch, count = batch[:0], 0
			}
			batch = append(batch, e)
			n = len(batch) - 1
		}
		if packed, err := base64.StdEncoding.DecodeString(vec); err == nil && vec != "" {
			batch[n].packed = append(batch[n].packed, packed)
		}
		count++
	}
	if err := rows.Err(); err != nil {
		return err
	}
	h.applyVectors(batch, seq)
	return nil
}

func (h *heap) applyVectors(batch []embedded, seq int64) {
	h.mu.Lock()
	for _, e := range batch {
		h.index.setVectors(e.thing, e.packed)
	}
	h.bytes.Store(h.index.bytes())
	h.mu.Unlock()
	h.vectors.Store(seq)
}
