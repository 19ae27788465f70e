package op

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"cairn/internal/fault"
	"cairn/internal/who"
)

// Call is what is recorded of one call.
type Call struct {
	Op     *Op
	Caller *who.Caller
	Start  time.Time
	Took   time.Duration
	Err    error // nil = it worked
}

// Runner runs operations and applies every rule to each call.
type Runner struct {
	// Limit refuses a call over its tool's limit. nil = there are none.
	Limit func(ctx context.Context, c *who.Caller, o *Op) error
	// Record hears of every call of an operation by somebody, refused or not. It must not block. nil = nobody does.
	Record func(Call)
	Log    *slog.Logger

	ops    []*Op
	byName map[string]*Op
}

// NewRunner makes a runner of the given operations. Two with one name are a fault of the program.
func NewRunner(log *slog.Logger, ops ...*Op) *Runner {
	r := &Runner{Log: log, byName: map[string]*Op{}}
	for _, o := range ops {
		if r.byName[o.Name] != nil {
			panic("two operations are named " + o.Name)
		}
		r.byName[o.Name] = o
		r.ops = append(r.ops, o)
	}
	slices.SortStableFunc(r.ops, func(a, b *Op) int { return areaRank(a) - areaRank(b) })
	return r
}

func areaRank(o *Op) int { return slices.Index(who.Areas, o.Area) } // core is -1: first

// Ops lists all operations, by area, then as their feature lists them.
func (r *Runner) Ops() []*Op { return r.ops }

// Find gives an operation by name, or nil.
func (r *Runner) Find(name string) *Op { return r.byName[name] }

// Sets lists the names that narrow or widen the list: core, the areas, and the sets off the default list.
func (r *Runner) Sets() []string {
	return slices.Concat([]string{who.Core}, who.Areas, []string{"record", "panels", "admin"})
}

type admittedKey struct{}

// From gives the operation that runs in ctx, or nil.
func From(ctx context.Context) *Op {
	o, _ := ctx.Value(admittedKey{}).(*Op)
	return o
}

// Admit decides whether the caller in ctx may call an operation now, and counts the call against the tool's limit. Run does
// it; a surface that must know before it answers (an HTTP status) calls it first and hands the ctx it gets on to Run, which
// then doesn't count twice.
func (r *Runner) Admit(ctx context.Context, name string) (context.Context, *Op, error) {
	o, c := r.byName[name], who.From(ctx)
	err := r.may(c, o, name)
	if err == nil && o.Bytes && StreamFrom(ctx) == nil {
		err = fault.New(fault.UnknownTool, "%s moves the bytes of a file and is no tool: send them by POST /api/files, get them by GET /files/ID, or use `cairn file`", name)
	}
	if err == nil && r.Limit != nil {
		err = r.Limit(ctx, c, o)
	}
	if err != nil {
		if o != nil && c != nil {
			r.record(Call{Op: o, Caller: c, Start: time.Now(), Err: err})
		}
		return ctx, o, err
	}
	return context.WithValue(ctx, admittedKey{}, o), o, nil
}

// May tells whether a caller's rights reach to an operation. No limit counts it.
func (r *Runner) May(c *who.Caller, name string) bool { return r.may(c, r.byName[name], name) == nil }

func (r *Runner) may(c *who.Caller, o *Op, name string) error {
	switch {
	case c == nil:
		return fault.New(fault.Unauthenticated, "Authorization header is required")
	case o == nil || !c.MayArea(o.Area):
		return fault.New(fault.UnknownTool, "there is no tool %q, or its area is not granted to you", name)
	case o.PersonOnly && !c.Person:
		return fault.New(fault.Denied, "%s is for a person only: on the web, or by the command line on the server's machine", o.Name)
	case o.Effect != Read && !c.Write:
		return fault.New(fault.Scope, "%s writes, and you may only read", o.Name)
	}
	return nil
}

// Run calls an operation with the caller in ctx.
func (r *Runner) Run(ctx context.Context, name string, args json.RawMessage) (Result, error) {
	o := From(ctx)
	if o == nil || o.Name != name {
		var err error
		if ctx, o, err = r.Admit(ctx, name); err != nil {
			return Result{}, err
		}
	}
	c := who.From(ctx)
	start := time.Now()
	res, err := r.call(ctx, o, args)
	if err != nil && fault.From(err).Kind == fault.Internal {
		err = r.internal(c, o, err)
	}
	r.record(Call{Op: o, Caller: c, Start: start, Took: time.Since(start), Err: err})
	return res, err
}

func (r *Runner) record(call Call) {
	if r.Record != nil {
		r.Record(call)
	}
}

func (r *Runner) call(ctx context.Context, o *Op, args json.RawMessage) (res Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	res, err = o.call(ctx, args)
	if err != nil && errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		f := fault.Wrap(fault.Unavailable, err, "%s took longer than %v and was stopped", o.Name, o.Timeout).With("reason", "timeout")
		f.Status = 504
		return res, f
	}
	if err != nil && errors.Is(err, context.Canceled) {
		return res, fault.Wrap(fault.Unavailable, err, "the call was cancelled").With("reason", "unavailable")
	}
	return res, err
}

// internal logs the cause under the request's id and gives the caller that id alone.
func (r *Runner) internal(c *who.Caller, o *Op, err error) error {
	r.Log.Error("operation failed", "op", o.Name, "request", c.Request, "actor", c.Actor, "cause", err.Error())
	return fault.Wrap(fault.Internal, err, "something went wrong on the server; its log has the cause under id %s", c.Request).With("id", c.Request)
}
