// Package audit keeps what happened: one usage row per call, audit events, and the rate windows that limits are counted in.
// Rows of calls are collected and written together off the caller's path, at most a second behind; events that record a
// change of rights are written with that change (WriteEvent). Nothing here holds a token or a body.
package audit

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

// Events, by the contract's names.
const (
	AuthAttempt       = "authAttempt"
	AuthFailure       = "authFailure"
	ToolInvoke        = "toolInvoke"
	ToolSuccess       = "toolSuccess"
	ToolFailure       = "toolFailure"
	RateLimitExceeded = "rateLimitExceeded"
	InternalError     = "internalError"
	TokenCreated      = "tokenCreated"
	TokenRevoked      = "tokenRevoked"
	AgentConnected    = "agentConnected"
	AgentPaused       = "agentPaused"
	AgentDisconnected = "agentDisconnected"
	ConsentRejected   = "consentRejected"
	RefreshReuse      = "refreshReuse"
	AccountAdmitted   = "accountAdmitted"
	AccountDisabled   = "accountDisabled"
)

// passing are the events of calls and sign-ins: many, and kept for Keep. All others say who could do what, and stay.
const passing = `'` + AuthAttempt + `', '` + AuthFailure + `', '` + ToolInvoke + `', '` + ToolSuccess + `', '` + ToolFailure + `', '` + RateLimitExceeded + `', '` + InternalError + `'`

// Event is one row of the audit.
type Event struct {
	Event, Actor, Account, Address, UserAgent, Detail string
	at                                                int64
}

// WriteEvent writes an event as part of the write that it records.
func WriteEvent(ctx context.Context, tx *db.Tx, event, detail string) error {
	e := Event{Event: event, Detail: detail, at: tx.Now}
	if c := who.From(ctx); c != nil {
		e.Actor, e.Account, e.Address, e.UserAgent = c.Actor, c.Account, c.Address, c.Client
	}
	return insertEvents(tx, []Event{e})
}

type usage struct {
	at, micros                                                   int64
	account, actor, tool, outcome, client, address, via, request string
}

// Recorder collects rows and writes them in the background. Close writes what is left.
type Recorder struct {
	db   *db.DB
	log  *slog.Logger
	keep bool // MCP_ENABLE_USAGE_LOGS

	mu     sync.Mutex
	uses   []usage
	events []Event
	used   map[string]int64 // actors whose credential was used, and when last
	lost   int
	wake   chan struct{}
	done   chan struct{}
	quit   chan struct{}

	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	total   [3]uint64 // requests, errors, tool calls; under mu
}

const (
	// delay is how long rows wait for others: well under the promised second.
	delay = 500 * time.Millisecond
	// maxWaiting bounds memory where the database doesn't answer; more rows are counted as lost and the log says so.
	maxWaiting = 50_000
	// Keep is how long usage rows are kept.
	Keep = 30 * 24 * time.Hour
)

// NewRecorder starts a recorder. With keepUsage false no usage rows are written; audit events are all the same.
func NewRecorder(d *db.DB, log *slog.Logger, keepUsage bool, reg prometheus.Registerer) *Recorder {
	r := &Recorder{db: d, log: log, keep: keepUsage, wake: make(chan struct{}, 1), done: make(chan struct{}), quit: make(chan struct{}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cairn_calls_total", Help: "Calls of operations by outcome: ok, or the kind of fault."}, []string{"op", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "cairn_call_seconds", Help: "How long calls of operations took.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}}, []string{"op"}),
	}
	if reg != nil {
		reg.MustRegister(r.calls, r.seconds)
	}
	go r.loop()
	return r
}

// Totals gives the counts since the start: HTTP requests, errors, tool calls.
func (r *Recorder) Totals() (requests, errors, tools uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total[0], r.total[1], r.total[2]
}

// Request counts one HTTP request and whether it failed.
func (r *Recorder) Request(failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total[0]++
	if failed {
		r.total[1]++
	}
}

// Call records one call of an operation: op.Runner's Record.
func (r *Recorder) Call(c op.Call) {
	outcome, event := "ok", ToolSuccess
	if c.Err != nil {
		outcome, event = fault.From(c.Err).Kind.Wire().Name, ToolFailure
	}
	r.calls.WithLabelValues(c.Op.Name, outcome).Inc()
	r.seconds.WithLabelValues(c.Op.Name).Observe(c.Took.Seconds())
	w, at := c.Caller, c.Start.UnixMicro()
	detail := c.Op.Name
	if c.Err != nil {
		detail += " " + outcome
	}
	base := Event{Actor: w.Actor, Account: w.Account, Address: w.Address, UserAgent: w.Client, at: at}
	invoke, end := base, base
	invoke.Event, invoke.Detail = ToolInvoke, c.Op.Name
	end.Event, end.Detail, end.at = event, detail, at+c.Took.Microseconds()
	events := []Event{invoke, end}
	switch outcome {
	case "internal":
		base.Event, base.Detail = InternalError, c.Op.Name+" "+w.Request
		events = append(events, base)
	case "limited":
		base.Event, base.Detail = RateLimitExceeded, c.Op.Name
		events = append(events, base)
	}
	r.add(&usage{at, c.Took.Microseconds(), w.Account, w.Actor, c.Op.Name, outcome, w.Client, w.Address, w.Via, w.Request}, events...)
}

// Used records that a token's or an agent's credential was used, for whatever: its calls are counted apart.
func (r *Recorder) Used(actor string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used == nil {
		r.used = map[string]int64{}
	}
	r.used[actor] = r.db.Now()
}

// Event records an event off the caller's path.
func (r *Recorder) Event(e Event) {
	e.at = r.db.Now()
	r.add(nil, e)
}

func (r *Recorder) add(u *usage, events ...Event) {
	r.mu.Lock()
	if len(r.uses)+len(r.events) > maxWaiting {
		r.lost++
	} else {
		if u != nil {
			r.uses = append(r.uses, *u)
		}
		r.events = append(r.events, events...)
	}
	if u != nil {
		r.total[2]++
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *Recorder) loop() {
	defer close(r.done)
	for {
		select {
		case <-r.wake:
		case <-r.quit:
			r.flush()
			return
		}
		t := time.NewTimer(delay)
		select {
		case <-t.C:
		case <-r.quit:
			t.Stop()
		}
		r.flush()
	}
}

// Close writes what is left and ends the recorder.
func (r *Recorder) Close() {
	close(r.quit)
	<-r.done
}

func (r *Recorder) flush() {
	r.mu.Lock()
	uses, events, used, lost := r.uses, r.events, r.used, r.lost
	r.uses, r.events, r.used, r.lost = nil, nil, nil, 0
	r.mu.Unlock()
	if lost > 0 {
		r.log.Error("usage rows were lost: the database was too slow", "rows", lost)
	}
	if len(uses)+len(events)+len(used) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err := r.db.Write(ctx, func(tx *db.Tx) error {
		if err := insertEvents(tx, events); err != nil {
			return err
		}
		if r.keep {
			if err := insertUsage(tx, uses); err != nil {
				return err
			}
		}
		return countUse(tx, uses, used)
	})
	if err != nil {
		r.log.Error("usage rows could not be written", "rows", len(uses)+len(events), "cause", err.Error())
	}
}

// rowsPerInsert rows go into one statement; the rest go one by one, so that there are two texts, not hundreds. More would
// cost more: SQLite looks each $n up among all of a statement's.
const rowsPerInsert = 8

func insert(tx *db.Tx, table, columns string, width int, rows [][]any) error {
	for len(rows) > 0 {
		n := 1
		if len(rows) >= rowsPerInsert {
			n = rowsPerInsert
		}
		var q strings.Builder
		q.WriteString("INSERT INTO " + table + " (" + columns + ") VALUES ")
		args := make([]any, 0, n*width)
		for i, row := range rows[:n] {
			if i > 0 {
				q.WriteString(", ")
			}
			for j := range width {
				q.WriteByte("(,"[min(j, 1)])
				q.WriteString("$" + strconv.Itoa(i*width+j+1))
			}
			q.WriteByte(')')
			args = append(args, row...)
		}
		if _, err := tx.Exec(q.String(), args...); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

func insertEvents(tx *db.Tx, events []Event) error {
	rows := make([][]any, len(events))
	for i, e := range events {
		rows[i] = []any{db.NewID(), e.at, e.Event, e.Actor, e.Account, clip(e.Address), clip(e.UserAgent), clip(e.Detail)}
	}
	return insert(tx, "audit_event", "id, at, event, actor, account, address, user_agent, detail", 8, rows)
}

func insertUsage(tx *db.Tx, uses []usage) error {
	rows := make([][]any, len(uses))
	for i, u := range uses {
		rows[i] = []any{db.NewID(), u.at, u.account, u.actor, u.tool, u.micros, u.outcome, clip(u.client), clip(u.address), u.via, u.request}
	}
	return insert(tx, "usage_log", "id, at, account, actor, tool, micros, outcome, client, address, via, request", 11, rows)
}

// clip keeps what a client says of itself short and storable: it is theirs to fill.
func clip(s string) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
	if r := []rune(s); len(r) > 300 {
		return string(r[:300])
	}
	return s
}

// countUse brings the figures that tokens and agents carry up to date.
func countUse(tx *db.Tx, uses []usage, used map[string]int64) error {
	type sum struct{ last, calls, errs, micros int64 }
	sums := map[string]*sum{}
	for actor, at := range used {
		sums[actor] = &sum{last: at}
	}
	for _, u := range uses {
		s := sums[u.actor]
		if s == nil {
			s = &sum{}
			sums[u.actor] = s
		}
		s.last = max(s.last, u.at)
		s.calls++
		s.micros += u.micros
		if u.outcome != "ok" {
			s.errs++
		}
	}
	for _, actor := range slices.Sorted(maps.Keys(sums)) { // in one order, so that replicas don't wait for each other in a circle
		table, id, _ := strings.Cut(actor, ":")
		if table != "token" && table != "agent" {
			continue
		}
		s := sums[actor]
		if _, err := tx.Exec(`UPDATE `+table+` SET calls = calls + $2, errors = errors + $3, total_us = total_us + $4,
			last_used_at = CASE WHEN last_used_at > $5 THEN last_used_at ELSE $5 END WHERE id = $1`, id, s.calls, s.errs, s.micros, s.last); err != nil {
			return err
		}
	}
	return nil
}

// Purge deletes usage rows and batched events that are older than Keep, a bounded number at a time. Events that record a
// change of rights stay.
func Purge(ctx context.Context, d *db.DB) error {
	before := db.IDAt(d.Now() - Keep.Microseconds())
	for _, q := range []string{
		`DELETE FROM usage_log WHERE id IN (SELECT id FROM usage_log WHERE id < $1 LIMIT 5000)`,
		`DELETE FROM audit_event WHERE id IN (SELECT id FROM audit_event WHERE id < $1 AND event IN (` + passing + `) LIMIT 5000)`,
	} {
		for {
			var n int64
			err := d.Write(ctx, func(tx *db.Tx) (err error) {
				n, err = tx.Exec(q, before)
				return err
			})
			if err != nil {
				return err
			}
			if n < 5000 {
				break
			}
		}
	}
	return nil
}
