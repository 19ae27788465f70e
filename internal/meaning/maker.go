package meaning

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cairn/internal/db"
	"cairn/internal/embed"
	"cairn/internal/job"
)

// The kinds of job that make vectors: of all that have none of the model that is used now, and of one thing that could not be
// embedded together with others.
const (
	jobEmbedAll = "embed_all"
	jobEmbed    = "embed"
)

const (
	sweepEvery = time.Hour        // in which all is looked through, whatever has changed
	calmFor    = 2 * time.Second  // without a change what has changed is embedded
	calmAfter  = 15 * time.Second // of changes without such a pause it's embedded all the same
	bundle     = 16               // things whose vectors are written together
	bundleTime = time.Second      // after which they are written, however few
	manyFail   = 3                // things in a row that can't be embedded: then it's the model
	yield      = 3                // times as long as it worked it rests, while others use this server
	mostRest   = 50 * time.Millisecond
)

// Maker makes the vectors of things.
type Maker struct {
	// Calls counts what others ask of this server: while it moves, the maker works a part of the time only. nil = nobody does.
	Calls func() uint64

	db    *db.DB
	model embed.Model
	texts map[string]TextOf
	turn  chan struct{} // one thing is embedded at a time, whatever the number of workers: the rest of the machine is for who waits

	mu     sync.Mutex
	clear  map[string]int64 // by heap: up to this number of its counter nothing lacks vectors; nil = what is kept of it wasn't read yet
	full   time.Time        // when all was looked through last
	seen   map[string]int64 // at the last look: the counters of heaps where something may lack them
	still  time.Time        // since when they are so
	moving time.Time        // since when there are any

	waiting, made, failures atomic.Int64
}

// State is how far the making of vectors is on this server.
type State struct {
	Waiting  int64 // things that lack vectors, as far as the run that is on knows; 0 = none is on
	Made     int64 // things that got theirs since the start
	Failures int64 // things in a row that the model didn't embed
}

// State tells how far it is.
func (m *Maker) State() State { return State{m.waiting.Load(), m.made.Load(), m.failures.Load()} }

// Lacking counts, for whoever looks at a database from outside, how many things of some kinds have no vectors of a model and
// how many there are; failure is why the last run on them ended, "" where it ended well.
func Lacking(ctx context.Context, d *db.DB, model string, kinds []string) (lacking, all int64, failure string, err error) {
	args := db.Args{}
	err = d.One(ctx, `SELECT count(*), COALESCE(sum(CASE WHEN EXISTS (SELECT 1 FROM search_vector v WHERE v.heap = p.heap AND v.thing = p.thing AND v.part = 0 AND v.model = `+args.Add(model)+` AND v.seq > p.seq) THEN 0 ELSE 1 END), 0)
		FROM search_passage p WHERE p.part = 0 AND p.gone = 0 AND p.kind IN `+args.List(kinds), args, &all, &lacking)
	if err != nil {
		return 0, 0, "", err
	}
	err = d.One(ctx, `SELECT error FROM job WHERE kind IN ('`+jobEmbedAll+`', '`+jobEmbed+`') AND state = 'ready' AND attempt > 0 ORDER BY kind DESC, id LIMIT 1`, nil, &failure)
	if db.IsNone(err) {
		err = nil
	}
	return lacking, all, failure, err
}

// NewMaker makes a maker for the kinds of things that have a text.
func NewMaker(d *db.DB, m embed.Model, texts map[string]TextOf) *Maker {
	return &Maker{db: d, model: m, texts: texts, turn: make(chan struct{}, 1), full: time.Now()}
}

// Jobs are the kinds of job of this package. The first is one for all servers on a database, by its lease.
func (m *Maker) Jobs() []job.Kind {
	return []job.Kind{{Name: jobEmbedAll, Every: sweepEvery, Look: m.look, Do: m.embedAll}, {Name: jobEmbed, Do: m.embedOne}}
}

// Remake lets what lacks vectors be looked for at once, such as after another model was chosen.
func Remake(ctx context.Context, d *db.DB) error { return job.Soon(ctx, d, jobEmbedAll) }

// look tells whether something lacks vectors. What changes is left until nothing has changed for a moment: much that is
// written at once is embedded together, and when nobody waits.
func (m *Maker) look(ctx context.Context, soon bool) (bool, error) {
	seqs, err := m.changed(ctx)
	if err != nil || !soon && !m.calm(seqs) {
		return false, err
	}
	for heap, seq := range seqs {
		page, err := m.missing(ctx, heap, m.clearOf(heap), 1)
		if err != nil || len(page) > 0 {
			return err == nil, err
		}
		m.setClear(heap, seq)
	}
	return false, nil
}

// calm tells whether the counters have stood still for a moment, or moved for long.
func (m *Maker) calm(seqs map[string]int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if !maps.Equal(seqs, m.seen) {
		if len(m.seen) == 0 {
			m.moving = now
		}
		m.seen, m.still = seqs, now
	}
	return now.Sub(m.still) >= calmFor || now.Sub(m.moving) >= calmAfter
}

func (m *Maker) clearOf(heap string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clear[heap]
}

// kept names what marks are kept of: other kinds of things, or another model, may lack vectors where these don't.
func (m *Maker) kept() string {
	return m.model.ID() + " " + strings.Join(slices.Sorted(maps.Keys(m.texts)), " ")
}

// readClear reads how far earlier runs came, so that a start needn't look through everything.
func (m *Maker) readClear(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clear != nil {
		return nil
	}
	rows, err := m.db.QueryLong(ctx, `SELECT heap, seq FROM search_embedded WHERE model = $1`, m.kept())
	if err != nil {
		return err
	}
	defer rows.Close()
	kept := map[string]int64{}
	for rows.Next() {
		var heap string
		var seq int64
		if err := rows.Scan(&heap, &seq); err != nil {
			return err
		}
		kept[heap] = seq
	}
	if err := rows.Err(); err != nil {
		return err
	}
	m.clear = kept
	return nil
}

// keepClear keeps how far a run came.
func (m *Maker) keepClear(ctx context.Context, heap string, seq int64) error {
	return m.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(`INSERT INTO search_embedded (heap, model, seq) VALUES ($1, $2, $3) ON CONFLICT (heap, model) DO UPDATE SET seq = excluded.seq`, heap, m.kept(), seq)
		return err
	})
}

func (m *Maker) setClear(heap string, seq int64) {
	m.mu.Lock()
	m.clear[heap] = seq
	m.mu.Unlock()
}

// changed gives the counters of the heaps that have changed since nothing lacked vectors there.
func (m *Maker) changed(ctx context.Context) (map[string]int64, error) {
	if err := m.readClear(ctx); err != nil {
		return nil, err
	}
	rows, err := m.db.QueryLong(ctx, `SELECT heap, seq FROM heap_seq`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	seqs := map[string]int64{}
	for rows.Next() {
		var heap string
		var seq int64
		if err := rows.Scan(&heap, &seq); err != nil {
			return nil, err
		}
		if seq < m.clear[heap] { // the database was put back to an earlier state
			delete(m.clear, heap)
		}
		if seq != m.clear[heap] {
			seqs[heap] = seq
		}
	}
	return seqs, rows.Err()
}

// thing is one that lacks vectors, as it stood at a number of the heap's counter.
type thing struct {
	heap, id, kind string
	seq            int64
	vectors        [][]float32
}

// lacking is what of a heap, after a number of its counter, has no vectors of the model, or older ones than its text, and no
// job of its own.
func (m *Maker) lacking(args *db.Args, heap string, after int64) string {
	return ` FROM search_passage p WHERE p.heap = ` + args.Add(heap) + ` AND p.seq > ` + args.Add(after) + ` AND p.part = 0 AND p.gone = 0
		AND p.kind IN ` + args.List(slices.Sorted(maps.Keys(m.texts))) + `
		AND NOT EXISTS (SELECT 1 FROM search_vector v WHERE v.heap = p.heap AND v.thing = p.thing AND v.part = 0 AND v.model = ` + args.Add(m.model.ID()) + ` AND v.seq > p.seq)
		AND NOT EXISTS (SELECT 1 FROM job j WHERE j.once = '` + jobEmbed + ` ' || p.heap || ' ' || p.thing)`
}

// missing gives the next things that lack vectors, in the order of their numbers.
func (m *Maker) missing(ctx context.Context, heap string, after int64, limit int) (page []thing, err error) {
	args := db.Args{}
	rows, err := m.db.QueryLong(ctx, `SELECT p.thing, p.kind, p.seq`+m.lacking(&args, heap, after)+` ORDER BY p.seq LIMIT `+args.Add(limit), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		t := thing{heap: heap}
		if err := rows.Scan(&t.id, &t.kind, &t.seq); err != nil {
			return nil, err
		}
		page = append(page, t)
	}
	return page, rows.Err()
}

// embedAll embeds what lacks vectors now. What comes meanwhile is left to the next look, which waits for a calm moment.
func (m *Maker) embedAll(ctx context.Context, _ json.RawMessage, progress func(done, total int)) error {
	defer m.waiting.Store(0)
	return m.sweep(ctx, progress)
}

func (m *Maker) sweep(ctx context.Context, progress func(done, total int)) error {
	m.mu.Lock()
	if time.Since(m.full) > sweepEvery {
		m.full = time.Now()
		clear(m.clear)
	}
	m.mu.Unlock()
	seqs, err := m.changed(ctx)
	if err != nil {
		return err
	}
	s := sweep{m: m, progress: progress}
	for heap := range seqs {
		var n int
		args := db.Args{}
		if err := m.db.One(ctx, `SELECT count(*)`+m.lacking(&args, heap, m.clearOf(heap)), args, &n); err != nil {
			return err
		}
		s.total += n
	}
	s.tell(0)
	for _, heap := range slices.Sorted(maps.Keys(seqs)) {
		if err := s.heap(ctx, heap, seqs[heap]); err != nil {
			return err
		}
		m.setClear(heap, seqs[heap])
		if err := m.keepClear(ctx, heap, seqs[heap]); err != nil {
			return err
		}
	}
	return nil
}

// sweep is one run over what lacks vectors.
type sweep struct {
	m           *Maker
	done, total int
	progress    func(done, total int)
	failed      int // things in a row
	calls       uint64
}

// heap embeds what of a heap lacks vectors, up to a number of its counter. What changes meanwhile has a higher one by then.
func (s *sweep) heap(ctx context.Context, heap string, upTo int64) error {
	for after := s.m.clearOf(heap); ; {
		page, err := s.m.missing(ctx, heap, after, bundle)
		page = slices.DeleteFunc(page, func(t thing) bool { return t.seq > upTo })
		if err != nil || len(page) == 0 {
			return err
		}
		begin := time.Now()
		var ready []thing
		for _, t := range page {
			ok, err := s.one(ctx, &t)
			if err != nil {
				return errors.Join(err, s.m.put(ctx, heap, ready))
			}
			if after = t.seq; ok {
				ready = append(ready, t)
			}
			if time.Since(begin) > bundleTime {
				break
			}
		}
		if err := s.m.put(ctx, heap, ready); err != nil {
			return err
		}
		s.tell(len(ready))
	}
}

// tell counts what was done.
func (s *sweep) tell(more int) {
	s.done += more
	s.total = max(s.total, s.done)
	s.m.made.Add(int64(more))
	s.m.waiting.Store(int64(s.total - s.done))
	s.progress(s.done, s.total)
}

// one embeds a thing. One that can't be is left to a job of its own, so that it holds up nothing else.
func (s *sweep) one(ctx context.Context, t *thing) (ok bool, err error) {
	begin := time.Now()
	if err = s.m.embed(ctx, t); err == nil {
		s.failed = 0
		return true, s.rest(ctx, time.Since(begin))
	}
	if s.failed++; s.failed == manyFail || ctx.Err() != nil {
		return false, err
	}
	return false, s.m.db.Write(ctx, func(tx *db.Tx) error {
		_, err := job.Add(ctx, tx, jobEmbed, embedArgs{t.heap, t.id}, job.Options{Once: jobEmbed + " " + t.heap + " " + t.id})
		return err
	})
}

// rest lets others go first, where there are any.
func (s *sweep) rest(ctx context.Context, worked time.Duration) error {
	if s.m.Calls == nil {
		return nil
	}
	before := s.calls
	if s.calls = s.m.Calls(); s.calls == before {
		return nil
	}
	select {
	case <-time.After(min(yield*worked, mostRest)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// embed sets a thing's vectors. One that isn't there by now has none.
func (m *Maker) embed(ctx context.Context, t *thing) error {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	text, ok, err := m.texts[t.kind](ctx, t.id)
	if err != nil || !ok {
		return err
	}
	cut := pieces(text)
	t.vectors, err = m.model.Embed(ctx, cut)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && len(t.vectors) != len(cut):
		err = fmt.Errorf("the model gave %d vectors for %d texts", len(t.vectors), len(cut))
	}
	if err != nil {
		m.failures.Add(1)
		return err
	}
	m.failures.Store(0)
	return nil
}

const standing = `SELECT seq FROM search_passage WHERE heap = $1 AND thing = $2 AND part = 0 AND gone = 0`

// put writes the vectors of things of a heap, but of those that have changed or gone since their texts were read: a text that
// has changed comes again, and whoever removes a thing drops its vectors.
func (m *Maker) put(ctx context.Context, heap string, list []thing) error {
	if len(list) == 0 {
		return nil
	}
	return m.db.Write(ctx, func(tx *db.Tx) error {
		for _, t := range list {
			tx.Numbered(heap, func(number int64) error {
				var now int64
				err := tx.One(standing, []any{heap, t.id}, &now)
				if db.IsNone(err) || err == nil && now != t.seq {
					return nil
				}
				if err != nil {
					return err
				}
				return putVectors(tx, heap, t.id, m.model.ID(), number, t.vectors)
			})
		}
		return nil
	})
}

type embedArgs struct{ Heap, Thing string }

// embedOne embeds one thing as it stands. Where it changes meanwhile, it's one that lacks vectors again.
func (m *Maker) embedOne(ctx context.Context, args json.RawMessage, _ func(done, total int)) error {
	var a embedArgs
	if err := json.Unmarshal(args, &a); err != nil {
		return err
	}
	t := thing{heap: a.Heap, id: a.Thing}
	err := m.db.One(ctx, `SELECT kind, seq FROM search_passage WHERE heap = $1 AND thing = $2 AND part = 0 AND gone = 0`, []any{a.Heap, a.Thing}, &t.kind, &t.seq)
	if db.IsNone(err) || err == nil && m.texts[t.kind] == nil {
		return nil
	}
	if err != nil {
		return err
	}
	if err := m.embed(ctx, &t); err != nil {
		return err
	}
	return m.put(ctx, a.Heap, []thing{t})
}
