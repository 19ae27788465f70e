package job_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/apptest"
	"cairn/internal/db"
	"cairn/internal/job"
)

func add(t *testing.T, a *apptest.App, kind string, args any, o job.Options) (added bool) {
	t.Helper()
	err := a.DB.Write(context.Background(), func(tx *db.Tx) (err error) {
		added, err = job.Add(context.Background(), tx, kind, args, o)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return added
}

func queue(a *apptest.App, kinds ...job.Kind) *job.Queue {
	q := job.New(a.DB, slog.New(slog.DiscardHandler))
	q.Handle(kinds...)
	return q
}

func states(t *testing.T, a *apptest.App, kind string) (list []string) {
	t.Helper()
	rows, err := a.DB.Query(context.Background(), `SELECT state FROM job WHERE kind = $1 ORDER BY created_at, id`, kind)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	return list
}

func expect(t *testing.T, a *apptest.App, kind string, want ...string) {
	t.Helper()
	if got := states(t, a, kind); !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", kind, got, want)
	}
}

func TestJobIsThereIfItsWriteIs(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		var saw []string
		q := queue(a, job.Kind{Name: "note", Do: func(_ context.Context, args json.RawMessage, _ func(int, int)) error {
			saw = append(saw, string(args))
			return nil
		}})
		boom := errors.New("boom")
		err := a.DB.Write(context.Background(), func(tx *db.Tx) error {
			if _, err := job.Add(context.Background(), tx, "note", 1, job.Options{}); err != nil {
				return err
			}
			return boom
		})
		if !errors.Is(err, boom) {
			t.Fatal(err)
		}
		add(t, a, "note", 2, job.Options{})
		add(t, a, "note", 3, job.Options{At: a.DB.Now() + 1e9})
		if err := q.Due(context.Background()); err != nil || !slices.Equal(saw, []string{"2"}) {
			t.Errorf("done: %v, %v", saw, err)
		}
		expect(t, a, "note", job.Done, job.Ready)
		a.Clock.Move(2000 * time.Second)
		if err := q.Due(context.Background()); err != nil || !slices.Equal(saw, []string{"2", "3"}) {
			t.Errorf("done: %v, %v", saw, err)
		}
		a.Clock.Move(8 * 24 * time.Hour)
		if err := job.Purge(context.Background(), a.DB); err != nil {
			t.Fatal(err)
		}
		expect(t, a, "note")
	})
}

func TestOnceIsOnceUntilItIsDone(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		q := queue(a, job.Kind{Name: "page", Do: func(context.Context, json.RawMessage, func(int, int)) error { return nil }})
		for i, want := range []bool{true, false, false} {
			if got := add(t, a, "page", i, job.Options{Once: "page of x"}); got != want {
				t.Errorf("addition %d: %v", i, got)
			}
		}
		if err := q.Due(context.Background()); err != nil {
			t.Fatal(err)
		}
		if !add(t, a, "page", 4, job.Options{Once: "page of x"}) {
			t.Error("after it is done it can't be added again")
		}
	})
}

func TestFailureIsTriedAgainLaterAndEnds(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		tries := 0
		q := queue(a, job.Kind{Name: "hard", Tries: 3, Do: func(context.Context, json.RawMessage, func(int, int)) error {
			if tries++; tries == 2 {
				panic("of all things\x00")
			}
			return errors.New("no luck")
		}})
		add(t, a, "hard", nil, job.Options{})
		for range 5 {
			if err := q.Due(context.Background()); err != nil {
				t.Fatal(err)
			}
			if err := q.Due(context.Background()); err != nil { // not due again at once
				t.Fatal(err)
			}
			a.Clock.Move(5 * time.Minute)
		}
		if tries != 3 {
			t.Errorf("%d tries", tries)
		}
		expect(t, a, "hard", job.Failed)
	})
}

func TestJobOfAProcessThatDiedIsTakenOver(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		began, release := make(chan struct{}), make(chan struct{})
		var done atomic.Int32
		first := queue(a, job.Kind{Name: "long", Do: func(ctx context.Context, _ json.RawMessage, _ func(int, int)) error {
			close(began)
			<-release // a process that hangs without its lease being renewed: the clock jumps
			return errors.New("too late")
		}})
		second := queue(a, job.Kind{Name: "long", Do: func(context.Context, json.RawMessage, func(int, int)) error { done.Add(1); return nil }})
		add(t, a, "long", nil, job.Options{})
		var all sync.WaitGroup
		all.Go(func() { _ = first.Due(context.Background()) })
		<-began
		if err := second.Due(context.Background()); err != nil || done.Load() != 0 {
			t.Errorf("two processes had it at once: %v", err)
		}
		a.Clock.Move(2 * time.Minute)
		if err := second.Due(context.Background()); err != nil || done.Load() != 1 {
			t.Errorf("nobody took it over: %v", err)
		}
		close(release)
		all.Wait()
		expect(t, a, "long", job.Done) // what the first says afterwards counts for nothing
	})
}

func TestTwoQueuesDoEachJobOnce(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		var mu sync.Mutex
		seen := map[string]int{}
		kind := job.Kind{Name: "one", Do: func(_ context.Context, args json.RawMessage, _ func(int, int)) error {
			mu.Lock()
			seen[string(args)]++
			mu.Unlock()
			return nil
		}}
		for i := range 60 {
			add(t, a, "one", i, job.Options{})
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := queue(a, kind).Due(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for args, n := range seen {
			if n != 1 {
				t.Errorf("job %s was done %d times", args, n)
			}
		}
		if len(seen) != 60 {
			t.Errorf("%d of 60 jobs were done", len(seen))
		}
	})
}

func TestCancelledJobStops(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		began := make(chan struct{})
		kind := job.Kind{Name: "endless", Do: func(ctx context.Context, _ json.RawMessage, _ func(int, int)) error {
			close(began)
			<-ctx.Done()
			return ctx.Err()
		}}
		here, elsewhere := queue(a, kind), queue(a, kind)
		add(t, a, "endless", nil, job.Options{})
		add(t, a, "endless", nil, job.Options{At: a.DB.Now() + 1e12})
		var all sync.WaitGroup
		all.Go(func() { _ = here.Due(context.Background()) })
		<-began
		rows, err := a.DB.Query(context.Background(), `SELECT id FROM job ORDER BY created_at, id`)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		_ = rows.Close()
		for _, id := range ids { // by another process: it is heard of within seconds
			if stopped, err := elsewhere.Cancel(context.Background(), id); err != nil || !stopped {
				t.Errorf("%v %v", stopped, err)
			}
		}
		all.Wait()
		expect(t, a, "endless", job.Cancelled, job.Cancelled)
		if stopped, err := elsewhere.Cancel(context.Background(), ids[0]); err != nil || stopped {
			t.Errorf("a job that ended was cancelled: %v %v", stopped, err)
		}
	})
}

func TestStoppingProcessGivesItsJobBack(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		began := make(chan struct{}, 1)
		q := queue(a, job.Kind{Name: "slow", Tries: 1, Do: func(ctx context.Context, _ json.RawMessage, progress func(int, int)) error {
			progress(3, 10)
			began <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}}, job.Kind{Name: "hourly", Every: time.Hour, Do: func(context.Context, json.RawMessage, func(int, int)) error { return nil }})
		add(t, a, "slow", nil, job.Options{})
		ctx, stop := context.WithCancel(context.Background())
		var all sync.WaitGroup
		all.Go(func() { q.Run(ctx, 2) })
		<-began
		stop()
		all.Wait()
		expect(t, a, "slow", job.Ready) // its one attempt isn't used up
		expect(t, a, "hourly", job.Ready)
	})
}

func TestKindThatLooksForWorkItselfRunsWhenThereIsSome(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		waiting, runs := 0, 0
		fail := errors.New("not now")
		var failing error
		q := queue(a, job.Kind{Name: "sweep", Every: time.Hour, Look: func(context.Context, bool) (bool, error) { return waiting > 0, nil },
			Do: func(context.Context, json.RawMessage, func(int, int)) error {
				runs++
				if failing == nil {
					waiting = 0
				}
				return failing
			}})
		due := func(want int) {
			t.Helper()
			if err := q.Due(context.Background()); err != nil || runs != want {
				t.Errorf("%d runs, want %d, %v", runs, want, err)
			}
		}
		due(0)
		waiting = 3
		due(1)
		due(1)
		waiting = 1
		due(2)
		a.Clock.Move(61 * time.Minute)
		due(3) // its time has come
		waiting, failing = 1, fail
		due(4)
		due(4) // it failed and waits, though there is work
		failing = nil
		a.Clock.Move(2 * time.Second)
		due(5)
		expect(t, a, "sweep", job.Ready)
	})
}
