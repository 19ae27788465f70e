// Package job is durable background work: a job is added in the transaction of the write that it follows from, so it is
// there if and only if that write is, and it is done at least once, by one process at a time, after crashes and restarts too.
// What a job does must therefore be harmless when it is done twice.
package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"cairn/internal/db"
	"cairn/internal/who"
)

// States of a job.
const (
	Ready      = "ready" // waits for its time
	Running    = "running"
	Cancelling = "cancelling" // runs, and was told to stop
	Done       = "done"
	Failed     = "failed"
	Cancelled  = "cancelled"
)

const (
	usualTry  = 8                  // attempts of a kind that names none
	usualHold = time.Minute        // lease of a kind that names none
	keep      = 7 * 24 * time.Hour // how long finished jobs can be looked at
)

// Kind is a sort of job.
type Kind struct {
	Name  string
	Tries int           // attempts before it has failed; 0 = 8
	Hold  time.Duration // how long one process may be silent before another takes the job over; 0 = a minute
	Every time.Duration // > 0: it comes back so long after it ended
	// Look tells whether there is something to do now, for a periodic kind whose work can be seen in the data: its job runs at
	// once then, unless the last run failed and waits. It's asked again and again while the queue has nothing else, so it must be
	// cheap. soon: don't wait for a better moment. nil = time alone decides.
	Look func(ctx context.Context, soon bool) (bool, error)
	// Do does the work. Its ctx ends when the process stops, the job is cancelled, or another process has taken it over.
	// progress tells how far it is; it may be called often.
	Do func(ctx context.Context, args json.RawMessage, progress func(done, total int)) error
}

// Queue works jobs off.
type Queue struct {
	db    *db.DB
	log   *slog.Logger
	kinds map[string]Kind

	mu      sync.Mutex
	running map[string]context.CancelCauseFunc
}

// New makes a queue. Kinds are added before it runs.
func New(d *db.DB, log *slog.Logger) *Queue {
	return &Queue{db: d, log: log, kinds: map[string]Kind{}, running: map[string]context.CancelCauseFunc{}}
}

// Handle adds kinds. Two of one name are a fault of the program.
func (q *Queue) Handle(kinds ...Kind) {
	for _, k := range kinds {
		if _, twice := q.kinds[k.Name]; twice {
			panic("two kinds of job are named " + k.Name)
		}
		if k.Tries == 0 {
			k.Tries = usualTry
		}
		if k.Hold == 0 {
			k.Hold = usualHold
		}
		q.kinds[k.Name] = k
	}
}

// Options of a job that is added.
type Options struct {
	At   int64  // not before this moment, in microseconds since 1970 UTC; 0 = now
	Once string // there is at most one waiting or running job with this text; "" = any number
}

// Add adds a job as part of a write. Call Wake after the write. It tells whether it was added: a Once that is taken adds
// nothing.
func Add(ctx context.Context, tx *db.Tx, kind string, args any, o Options) (added bool, err error) {
	b, err := json.Marshal(args)
	if err != nil {
		return false, err
	}
	var once *string
	if o.Once != "" {
		once = &o.Once
	}
	at := o.At
	if at == 0 {
		at = tx.Wall // tx.Now may run ahead of the clock, by which jobs are due
	}
	account := ""
	if c := who.From(ctx); c != nil {
		account = c.Account
	}
	n, err := tx.Exec(`INSERT INTO job (id, kind, args, state, account, run_at, once, created_at) VALUES ($1, $2, $3, 'ready', $4, $5, $6, $7) ON CONFLICT (once) DO NOTHING`,
		db.NewID(), kind, string(b), account, at, once, tx.Now)
	return n > 0, err
}

// Run works until ctx ends, then waits for the running jobs, whose ctx ends too. A periodic kind begins here, if it isn't
// there yet.
func (q *Queue) Run(ctx context.Context, workers int) {
	q.begin(ctx)
	var all sync.WaitGroup
	slots := make(chan struct{}, workers)
	for ctx.Err() == nil {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		j, err := q.claim(ctx)
		if j == nil {
			<-slots
			found := false
			if err == nil {
				found, err = q.look(ctx, false)
			}
			if !found {
				q.sleep(ctx, err)
			}
			continue
		}
		all.Go(func() {
			defer func() { <-slots }()
			q.work(ctx, j)
		})
	}
	all.Wait()
}

// Due works off what is due and returns when nothing is, or when ctx ends: for commands, which don't stay.
func (q *Queue) Due(ctx context.Context) error {
	for ctx.Err() == nil {
		j, err := q.claim(ctx)
		if err != nil {
			return err
		}
		if j == nil {
			if found, err := q.look(ctx, true); err != nil || !found {
				return err
			}
			continue
		}
		q.work(ctx, j)
	}
	return ctx.Err()
}

func (q *Queue) begin(ctx context.Context) {
	for name, k := range q.kinds {
		if k.Every == 0 {
			continue
		}
		err := q.db.Write(ctx, func(tx *db.Tx) error {
			_, err := Add(ctx, tx, name, struct{}{}, Options{Once: everyOf(name)})
			return err
		})
		if err != nil && ctx.Err() == nil {
			q.log.Error("a periodic job could not be added", "kind", name, "cause", err.Error())
		}
	}
}

func everyOf(kind string) string { return "every " + kind }

// look asks the kinds that look for work themselves, and makes the jobs due of those that found some. It tells whether there
// is such a job. One that runs, here or elsewhere, or that failed and waits, stays as it is.
func (q *Queue) look(ctx context.Context, soon bool) (found bool, err error) {
	for name, k := range q.kinds {
		if k.Look == nil {
			continue
		}
		var one int
		err := q.db.One(ctx, `SELECT 1 FROM job WHERE once = $1 AND (state <> 'ready' OR attempt > 0)`, []any{everyOf(name)}, &one)
		if err == nil {
			continue
		}
		if !db.IsNone(err) {
			return found, err
		}
		some, err := k.Look(ctx, soon)
		if err != nil {
			return found, fmt.Errorf("looking for jobs of the kind %s: %w", name, err)
		}
		if !some {
			continue
		}
		if err := Soon(ctx, q.db, name); err != nil {
			return found, err
		}
		found = true
	}
	return found, nil
}

// Soon makes the job of a periodic kind due, unless it runs, or its last run failed and it waits.
func Soon(ctx context.Context, d *db.DB, kind string) error {
	return d.Write(ctx, func(tx *db.Tx) error {
		if _, err := Add(ctx, tx, kind, struct{}{}, Options{Once: everyOf(kind)}); err != nil {
			return err
		}
		_, err := tx.Exec(`UPDATE job SET run_at = $2 WHERE once = $1 AND state = 'ready' AND attempt = 0 AND run_at > $2`, everyOf(kind), tx.Wall)
		return err
	})
}

// sleep waits until something may be due.
func (q *Queue) sleep(ctx context.Context, failed error) {
	d := q.poll()
	if failed != nil {
		if ctx.Err() == nil {
			q.log.Error("jobs could not be looked for", "cause", failed.Error())
		}
		d = time.Second
	} else {
		var next *int64
		err := q.db.One(ctx, `SELECT min(at) FROM (SELECT min(run_at) AS at FROM job WHERE state = 'ready'
			UNION ALL SELECT min(lease) FROM job WHERE state IN ('running', 'cancelling')) x`, nil, &next)
		if err == nil && next != nil {
			d = min(d, max(time.Duration(*next-q.db.Now())*time.Microsecond, time.Millisecond))
		}
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// poll is how often an idle queue looks for jobs, which any process may have added.
func (q *Queue) poll() time.Duration {
	if q.db.Postgres() {
		return 2 * time.Second
	}
	return time.Second
}

type row struct {
	id, kind, args string
	attempt        int64
}

const due = `(state = 'ready' AND run_at <= $1 OR state = 'running' AND lease <= $1)`

// claim takes one job that is due, or gives nil. It looks through the readers first: an idle queue never holds up the
// writer. Whoever was told to stop and has gone silent is taken to have stopped.
func (q *Queue) claim(ctx context.Context) (*row, error) {
	now := q.db.Now()
	var one int
	err := q.db.One(ctx, `SELECT 1 FROM job WHERE `+due+` OR state = 'cancelling' AND lease <= $1 LIMIT 1`, []any{now}, &one)
	if db.IsNone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var j *row
	err = q.db.Write(ctx, func(tx *db.Tx) error {
		j = nil
		if _, err := tx.Exec(`UPDATE job SET state = 'cancelled', once = NULL, finished_at = $1 WHERE state = 'cancelling' AND lease <= $1`, now); err != nil {
			return err
		}
		lock := tx.ForUpdate()
		if lock != "" {
			lock += " SKIP LOCKED"
		}
		got := row{}
		// The state is asked again outside: without it two processes can take one job. And = rather than IN: PostgreSQL runs a
		// sub-select of IN once a row, with another job locked each time, and all of them would be taken and one done.
		err := tx.One(`UPDATE job SET state = 'running', attempt = attempt + 1, lease = $2 WHERE id = (SELECT id FROM job WHERE `+due+` ORDER BY run_at, id LIMIT 1`+lock+`)
			AND `+due+` RETURNING id, kind, args, attempt`, []any{now, now + usualHold.Microseconds()}, &got.id, &got.kind, &got.args, &got.attempt)
		if db.IsNone(err) {
			return nil
		}
		j = &got
		return err
	})
	if err != nil {
		return nil, err
	}
	return j, nil
}

var errStopped = errors.New("the job was cancelled")
var errLost = errors.New("another process took the job over")

func (q *Queue) work(ctx context.Context, j *row) {
	k, known := q.kinds[j.kind]
	jctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	q.mu.Lock()
	q.running[j.id] = cancel
	q.mu.Unlock()
	stop := make(chan struct{})
	var renewing sync.WaitGroup
	p := &progress{}
	if known {
		renewing.Go(func() { q.renew(jctx, j, k.Hold, p, cancel, stop) })
	}
	err := fmt.Errorf("there is no kind of job %q in this version", j.kind)
	if known {
		err = safely(func() error { return k.Do(jctx, json.RawMessage(j.args), p.set) })
	}
	close(stop)
	renewing.Wait()
	q.mu.Lock()
	delete(q.running, j.id)
	q.mu.Unlock()
	q.finish(ctx, j, k, context.Cause(jctx), err, p)
}

func safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

type progress struct {
	mu          sync.Mutex
	done, total int
}

func (p *progress) set(done, total int) {
	p.mu.Lock()
	p.done, p.total = done, total
	p.mu.Unlock()
}

func (p *progress) get() (done, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done, p.total
}

// renew keeps the lease while the job runs, writes how far it is, and hears of a cancellation by another process.
func (q *Queue) renew(ctx context.Context, j *row, hold time.Duration, p *progress, cancel context.CancelCauseFunc, stop <-chan struct{}) {
	every := min(hold/3, 2*time.Second)
	t := time.NewTicker(every)
	defer t.Stop()
	var told [2]int
	renewed := q.db.Now()
	for {
		select {
		case <-stop:
			return
		case <-ctx.Done():
			return
		case <-t.C:
		}
		done, total := p.get()
		now := q.db.Now()
		if told == [2]int{done, total} && now-renewed < (hold/3).Microseconds() {
			var state string
			if err := q.db.One(ctx, `SELECT state FROM job WHERE id = $1`, []any{j.id}, &state); err == nil && state == Cancelling {
				cancel(errStopped)
			}
			continue
		}
		var state string
		err := q.db.Write(ctx, func(tx *db.Tx) error {
			return tx.One(`UPDATE job SET lease = $3, done = $4, total = $5 WHERE id = $1 AND attempt = $2 AND state IN ('running', 'cancelling') RETURNING state`,
				[]any{j.id, j.attempt, now + hold.Microseconds(), done, total}, &state)
		})
		switch {
		case db.IsNone(err):
			cancel(errLost)
			return
		case err == nil && state == Cancelling:
			cancel(errStopped)
		case err == nil:
			told, renewed = [2]int{done, total}, now
		}
	}
}

// finish writes how a run ended. A run that lost its lease changes nothing.
func (q *Queue) finish(ctx context.Context, j *row, k Kind, cause, err error, p *progress) {
	stopping := ctx.Err() != nil && !errors.Is(cause, errStopped)
	wctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	done, total := p.get()
	set, args := "", []any{j.id, j.attempt, done, total}
	now := q.db.Now()
	switch {
	case errors.Is(cause, errLost):
		return
	case errors.Is(cause, errStopped):
		set, args = `state = 'cancelled', once = NULL, finished_at = $5`, append(args, now)
	case err == nil && k.Every > 0:
		set, args = `state = 'ready', attempt = 0, error = '', run_at = $5`, append(args, now+k.Every.Microseconds())
	case err == nil:
		set, args = `state = 'done', once = NULL, error = '', finished_at = $5`, append(args, now)
	case stopping: // the process stops: not the job's fault, so it isn't counted
		set, args = `state = 'ready', attempt = attempt - 1, run_at = $5`, append(args, now)
	case j.attempt >= int64(max(k.Tries, 1)) && k.Every == 0:
		set, args = `state = 'failed', once = NULL, error = $6, finished_at = $5`, append(args, now, short(err))
	default: // attempt^4 seconds, and a tenth more by chance
		wait := min(j.attempt*j.attempt*j.attempt*j.attempt, 3600) * 1e6
		set, args = `state = 'ready', error = $6, run_at = $5`, append(args, now+wait+rand.Int64N(wait/10+1), short(err))
	}
	if err != nil && !stopping && !errors.Is(cause, errStopped) {
		q.log.Error("a job failed", "kind", j.kind, "job", j.id, "attempt", j.attempt, "cause", err.Error())
	}
	werr := q.db.Write(wctx, func(tx *db.Tx) error {
		_, err := tx.Exec(`UPDATE job SET done = $3, total = $4, `+set+` WHERE id = $1 AND attempt = $2 AND state IN ('running', 'cancelling')`, args...)
		return err
	})
	if werr != nil {
		q.log.Error("how a job ended could not be written; it runs again when its lease is over", "kind", j.kind, "job", j.id, "cause", werr.Error())
	}
}

// short is an error as it is kept: no NUL, and not a whole stack.
func short(err error) string {
	text := strings.ToValidUTF8(strings.ReplaceAll(err.Error(), "\x00", ""), "\uFFFD")
	if r := []rune(text); len(r) > 500 {
		return string(r[:500])
	}
	return text
}

// Cancel stops a job, wherever it runs. It tells whether there was one to stop.
func (q *Queue) Cancel(ctx context.Context, id string) (bool, error) {
	var n int64
	err := q.db.Write(ctx, func(tx *db.Tx) error {
		waiting, err := tx.Exec(`UPDATE job SET state = 'cancelled', once = NULL, finished_at = $2 WHERE id = $1 AND state = 'ready'`, id, tx.Now)
		if err != nil {
			return err
		}
		n, err = tx.Exec(`UPDATE job SET state = 'cancelling' WHERE id = $1 AND state = 'running'`, id)
		n += waiting
		return err
	})
	q.mu.Lock()
	defer q.mu.Unlock()
	if cancel := q.running[id]; err == nil && n > 0 && cancel != nil {
		cancel(errStopped)
	}
	return n > 0, err
}

// Purge deletes jobs that ended long ago.
func Purge(ctx context.Context, d *db.DB) error {
	return d.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(`DELETE FROM job WHERE finished_at < $1`, tx.Now-keep.Microseconds())
		return err
	})
}
