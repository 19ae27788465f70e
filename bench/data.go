package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"cairn/bench/made"
	"cairn/internal/app"
	"cairn/internal/config"
	"cairn/internal/meaning"
	"cairn/internal/who"
)

// folder is a data folder with tasks in it.
type folder struct {
	dir   string
	token string
	ids   []string // of its tasks
}

// zone is the time zone of the account: one with summer time, since UTC would cost less than most people's.
const zone = "Europe/Berlin"

// seeders is how many create tasks together while a folder is filled: they share commits.
const seeders = 64

// caller calls an operation of an open Cairn as its owner and reads what it gives.
type caller func(op string, args, into any) error

// seed makes a folder with n open tasks and a token without a rate, through the product's own operations.
func (b *bench) seed(ctx context.Context, name string, n int, long bool) (folder, error) {
	f, err := b.scratch(name)
	if err != nil {
		return f, err
	}
	f.ids = make([]string, n)
	return f, b.in(ctx, &f, func(ctx context.Context, _ *app.App, call caller) error {
		return together(ctx, n, func(i int) error {
			var out struct{ ID string }
			err := call("create_personal_task", made.NewTask(i, long), &out)
			f.ids[i] = out.ID
			return err
		})
	})
}

// in opens a folder, makes its token, lets fill put something there, and gives vectors to it.
func (b *bench) in(ctx context.Context, f *folder, fill func(context.Context, *app.App, caller) error) error {
	return b.open(ctx, f, func(a *app.App) error {
		owner, err := a.Accounts.Owner(ctx, "", true)
		if err != nil {
			return err
		}
		owner.Via = who.ViaCLI
		ctx := who.With(ctx, owner)
		call := func(op string, args, into any) error { return operate(ctx, a, op, args, into) }
		var token struct{ Secret string }
		if err := call("set_account", map[string]string{"zone": zone}, &struct{}{}); err != nil {
			return err
		}
		if err := call("create_token", map[string]any{"name": "bench", "rate": 0}, &token); err != nil {
			return err
		}
		f.token = token.Secret
		if err := fill(ctx, a, call); err != nil {
			return err
		}
		return embedded(ctx, a)
	})
}

// open opens a folder for as long as do takes.
func (b *bench) open(ctx context.Context, f *folder, do func(*app.App) error) error {
	c, err := config.Load(map[string]string{"data": f.dir}, func(string) (string, bool) { return "", false })
	if err != nil {
		return err
	}
	a, err := app.Open(ctx, c, app.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	err = errors.Join(do(a), a.Close())
	settle()
	return err
}

// embedded gives made-up vectors to all that has none, so that no server begins by embedding it.
func embedded(ctx context.Context, a *app.App) error {
	m, err := made.NewVectors(ctx, made.Question)
	if err != nil {
		return err
	}
	if err := m.Fill(ctx, a.DB); err != nil {
		return err
	}
	if err := meaning.Remake(ctx, a.DB); err != nil { // sees that nothing lacks vectors, and keeps that
		return err
	}
	return a.Jobs.Due(ctx)
}

// operate runs an operation as the caller in ctx and reads what it gives.
func operate(ctx context.Context, a *app.App, op string, args, into any) error {
	b, err := json.Marshal(args)
	if err != nil {
		return err
	}
	res, err := a.Runner.Run(ctx, op, b)
	if err != nil {
		return fmt.Errorf("%s %.200s: %w", op, b, err)
	}
	return json.Unmarshal(res.JSON, into)
}

// together does n things, many at once: they share commits. The first error ends it.
func together(ctx context.Context, n int, do func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(seeders, n) {
		all.Go(func() {
			for i := int(next.Add(1) - 1); i < n && ctx.Err() == nil; i = int(next.Add(1) - 1) {
				if err := do(i); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// scratch makes an empty folder.
func (b *bench) scratch(name string) (folder, error) {
	dir, err := os.MkdirTemp(b.dir, name+"-")
	return folder{dir: dir}, err
}

// copyOf makes a fresh copy of a folder.
func (b *bench) copyOf(f folder) (folder, error) {
	c, err := b.scratch("copy")
	if err != nil {
		return f, err
	}
	if err := os.CopyFS(c.dir, os.DirFS(f.dir)); err != nil {
		c.remove()
		return f, err
	}
	settle()
	c.token, c.ids = f.token, f.ids
	return c, nil
}

// remove deletes the folder; what is left of it goes with the whole temporary folder in the end.
func (f folder) remove() { _ = os.RemoveAll(f.dir) }
