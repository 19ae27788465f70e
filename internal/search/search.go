package search

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"cairn/internal/db"
	"cairn/internal/embed"
	"cairn/internal/fault"
	"cairn/internal/meaning"
	"cairn/internal/search/query"
	"cairn/internal/when"
)

// Engine searches heaps. It keeps their indexes in memory, the least recently used ones going first. It's safe for concurrent
// use, and several engines on one database see each other's writes.
type Engine struct {
	d        *db.DB
	maxBytes int64
	model    *meaning.Questions // nil = text alone
	docs     map[string]DocOf   // by kind
	settling chan struct{}      // holds who analyzes what waits

	mu    sync.Mutex
	heaps map[string]*heap
	clock int64 // counts uses
}

// UseModel lets Ask compare meanings too, by the vectors of a model. It's called before the first search.
func (e *Engine) UseModel(m embed.Model) { e.model = meaning.NewQuestions(m) }

// New makes an engine whose indexes take about maxBytes together. What the running searches need and the heap used last
// stay beyond that.
func New(d *db.DB, maxBytes int64) *Engine {
	return &Engine{d: d, maxBytes: maxBytes, heaps: map[string]*heap{}, docs: map[string]DocOf{}, settling: make(chan struct{}, 1)}
}

// Hit is a thing found. Part is the passage that fits best: words.Passage gives its text. Score is at least 0 and has no upper
// bound; it compares hits of one search alone. Worded tells of a hit of Ask that a word of the question stands in it, in any
// form; without one only its meaning or what stands around it speaks for it.
type Hit struct {
	Heap, Thing, Kind string
	Part              int
	Score             float32
	Worded            bool
}

// Result is what a search found, the best first. More tells that there are hits beyond the limit. Note is for the reader,
// where there is something to say: NoteNothing, NoteLong or NoteLater.
type Result struct {
	Hits []Hit
	Note string
	More bool
}

// NoteNothing is the note of a query that has no word, digit or symbol in it.
const NoteNothing = "the query has no searchable characters"

// NoteLong is the note of a query with more different words than a search looks for.
var NoteLong = fmt.Sprintf("the query is long: only its first %d different words were looked for", query.MaxPhrases)

// Find looks for things with all words of the query, each as it was typed; if no heap has one, for things with any of them.
// Phrases in quotes and exclusions bind in both cases, and a word with a digit in it is never taken apart. kinds nil means
// all kinds, an empty list none. A query of nothing but exclusions is an Invalid fault; any other text is a query.
func (e *Engine) Find(ctx context.Context, heaps, kinds []string, query string, limit int) (Result, error) {
	return e.search(ctx, request{heaps: heaps, kinds: kinds, query: query, strict: true, limit: limit})
}

// FindAmong is Find where only the things named may be found. How rare a word is counts all.
func (e *Engine) FindAmong(ctx context.Context, heaps, kinds, things []string, query string, limit int) (Result, error) {
	return e.search(ctx, request{heaps: heaps, kinds: kinds, query: query, strict: true, limit: limit, among: things, some: true})
}

// Ask looks for things that answer a question: by its words, any of them, by its meaning where there is a model, by the names
// and times in it. Quotes don't bind, exclusions do. All else is as with Find.
func (e *Engine) Ask(ctx context.Context, heaps, kinds []string, query string, limit int) (Result, error) {
	return e.search(ctx, request{heaps: heaps, kinds: kinds, query: query, limit: limit})
}

// Nearest looks for things by the meaning of a text alone; without a model there are none.
func (e *Engine) Nearest(ctx context.Context, heaps, kinds []string, text string, limit int) (Result, error) {
	return e.search(ctx, request{heaps: heaps, kinds: kinds, query: text, wordless: true, limit: limit})
}

// Model tells whether the model that questions are embedded by is left alone for now, and how often in a row it failed.
func (e *Engine) Model() (paused bool, failures int) {
	if e.model == nil {
		return false, 0
	}
	return e.model.State()
}

// request is one search.
type request struct {
	heaps, kinds []string
	query        string
	strict       bool
	wordless     bool // by meaning alone
	limit        int
	among        []string // things that may be found, where some is set
	some         bool
}

// Stats tells how many heaps are in memory and about how many bytes they take.
func (e *Engine) Stats() (heaps int, bytes int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.heaps), e.bytes()
}

func (e *Engine) search(ctx context.Context, r request) (Result, error) {
	q := query.Parse(r.query, r.strict)
	if len(q.Groups) == 0 {
		if len(q.Not) > 0 {
			return Result{}, fault.New(fault.Invalid, "the query only excludes: add a word or phrase to look for")
		}
		return Result{Note: NoteNothing}, nil
	}
	seqs, behind, err := e.settled(ctx, r.heaps)
	if err != nil {
		return Result{}, err
	}
	heaps := e.pin(seqs)
	defer e.unpin(heaps)
	for _, h := range heaps {
		if err := h.catchUp(ctx, e.d, seqs[h.id]); err != nil {
			return Result{}, err
		}
	}
	var near *embed.Query
	if !r.strict && slices.ContainsFunc(heaps, (*heap).meant) {
		near = e.model.Query(ctx, r.query)
	}
	// The heaps are in the order of their ids, which is what keeps searches that wait for one another from deadlock.
	in := make([]searched, len(heaps))
	for i, h := range heaps {
		h.mu.RLock()
		defer h.mu.RUnlock()
		in[i] = searched{heap: h.id, index: h.index}
		if r.some {
			in[i].only = h.index.numbers(r.among)
		}
	}
	if r.wordless {
		q = query.Query{}
	}
	p := q.Plan(r.strict)
	var out Result
	switch {
	case p.Long:
		out.Note = NoteLong
	case behind:
		out.Note = NoteLater
	}
	if r.strict {
		out.Hits, out.More, err = rank(ctx, in, r.kinds, p, max(r.limit, 0))
	} else {
		a := asking{Plan: p, kinds: r.kinds, near: near, heaps: in, today: noDay}
		if now := time.UnixMicro(e.d.Now()).UTC(); !r.wordless {
			a.spans, a.today = when.In(r.query, now), when.Of(now)
		}
		out.Hits, out.More, err = a.rank(ctx, max(r.limit, 0))
	}
	return out, err
}

// seqs reads the counters of the heaps, and in which of them something waits to be analyzed. Heaps without one have nothing in
// them.
func (e *Engine) seqs(ctx context.Context, ids []string) (seqs map[string]int64, late []string, err error) {
	seqs = make(map[string]int64, len(ids))
	if len(ids) == 0 {
		return seqs, nil, nil
	}
	args := db.Args{}
	rows, err := e.d.Query(ctx, `SELECT s.heap, s.seq, CASE WHEN EXISTS (SELECT 1 FROM search_later l WHERE l.heap = s.heap) THEN 1 ELSE 0 END FROM heap_seq s WHERE s.heap IN `+args.List(ids), args...)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var seq, waits int64
		if err := rows.Scan(&id, &seq, &waits); err != nil {
			return nil, nil, err
		}
		if seqs[id] = seq; waits == 1 {
			late = append(late, id)
		}
	}
	return seqs, late, rows.Err()
}

// pin gives the heaps in the order of their ids. They stay in memory until unpin.
func (e *Engine) pin(seqs map[string]int64) []*heap {
	e.mu.Lock()
	defer e.mu.Unlock()
	heaps := make([]*heap, 0, len(seqs))
	for id := range seqs {
		h := e.heaps[id]
		if h == nil {
			h = newHeap(id, e.model.Model())
			e.heaps[id] = h
		}
		h.users++
		heaps = append(heaps, h)
	}
	slices.SortFunc(heaps, func(a, b *heap) int { return strings.Compare(a.id, b.id) })
	for _, h := range heaps {
		e.clock++
		h.used = e.clock
	}
	return heaps
}

// unpin lets the heaps go and, where the engine holds too much, frees those that nobody uses, the least recently used first.
func (e *Engine) unpin(heaps []*heap) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range heaps {
		h.users--
	}
	bytes := e.bytes()
	if bytes <= e.maxBytes {
		return
	}
	var idle []*heap
	for _, h := range e.heaps {
		if h.users == 0 && h.used < e.clock {
			idle = append(idle, h)
		}
	}
	slices.SortFunc(idle, func(a, b *heap) int { return int(a.used - b.used) })
	for _, h := range idle {
		if bytes <= e.maxBytes {
			return
		}
		bytes -= h.bytes.Load()
		delete(e.heaps, h.id)
	}
}

func (e *Engine) bytes() (n int64) {
	for _, h := range e.heaps {
		n += h.bytes.Load()
	}
	return n
}
