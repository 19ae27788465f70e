package db_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/db"
	"cairn/internal/db/dbtest"
)

func put(tx *db.Tx, id string) error {
	_, err := tx.Exec(`INSERT INTO audit_event (id, at, event, actor, account, address, user_agent, detail) VALUES ($1, $2, 'e', '', '', '', '', '')`, id, tx.Now)
	return err
}

func count(t *testing.T, d *db.DB) (n int) {
	t.Helper()
	if err := d.One(context.Background(), `SELECT count(*) FROM audit_event`, nil, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Writes of all kinds at once: those that failed, panicked or were cancelled leave nothing, the others are all there.
func TestAcknowledgedWritesAreExactlyTheRows(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if err := d.Write(context.Background(), func(tx *db.Tx) error { return put(tx, "taken") }); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		good := 1
		for i := range 400 {
			wg.Go(func() {
				defer func() {
					if p := recover(); p != nil && p != "boom" {
						t.Errorf("panic %v", p)
					}
				}()
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if i%7 == 0 {
					cancel()
				}
				err := d.Write(ctx, func(tx *db.Tx) error {
					if err := put(tx, fmt.Sprint(i)); err != nil {
						return err
					}
					switch i % 5 {
					case 1:
						return errors.New("no")
					case 2:
						panic("boom")
					case 3:
						return put(tx, "taken") // breaks the constraint
					}
					return nil
				})
				if err == nil {
					mu.Lock()
					good++
					mu.Unlock()
				} else if i%5 == 3 && i%7 != 0 && !db.IsUnique(err) {
					t.Errorf("write %d: %v is not a broken unique constraint", i, err)
				}
			})
		}
		wg.Wait()
		if n := count(t, d); n != good {
			t.Errorf("%d rows, %d writes acknowledged", n, good)
		}
	})
}

func TestWritersThatWaitTogetherShareACommit(t *testing.T) {
	d, err := db.Open(context.Background(), db.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for j := range 10 {
				if err := d.Write(context.Background(), func(tx *db.Tx) error { return put(tx, fmt.Sprint(i, j)) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if writes, commits := d.Counts(); writes != 640 || commits >= writes {
		t.Errorf("%d writes in %d commits", writes, commits)
	}
}

// The time of a write grows strictly, also where the clock stands still, and across two processes on one folder.
func TestNowGrowsAcrossProcesses(t *testing.T) {
	dir := t.TempDir()
	still := func() time.Time { return time.UnixMicro(1_000_000) }
	var last int64
	for range 3 {
		d, err := db.Open(context.Background(), db.Config{Dir: dir, Clock: still})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			err := d.Write(context.Background(), func(tx *db.Tx) error {
				if tx.Now <= last {
					t.Errorf("%d after %d", tx.Now, last)
				}
				last = tx.Now
				tx.Numbered("h", func(int64) error { return nil })
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		_ = d.Close()
	}
}

// Within a heap, numbers come in the order of commits without a gap that a reader could step over.
func TestNumbersComeInTheOrderOfCommits(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := context.Background()
		var wg sync.WaitGroup
		stop := make(chan struct{})
		missed := make(chan int, 1)
		go func() { // a poller that asks for what is newer than the last it saw
			seen, last := 0, int64(0)
			for done := false; ; {
				select {
				case <-stop:
					done = true
				default:
				}
				rows, err := d.Query(ctx, `SELECT seq FROM search_passage WHERE heap = 'h' AND seq > $1 ORDER BY seq`, last)
				if err != nil {
					t.Error(err)
					break
				}
				for rows.Next() {
					if err := rows.Scan(&last); err != nil {
						t.Error(err)
					}
					seen++
				}
				_ = rows.Close()
				if done {
					missed <- 400 - seen
					return
				}
			}
		}()
		for w := range 8 {
			wg.Go(func() {
				for i := range 50 {
					err := d.Write(ctx, func(tx *db.Tx) error {
						tx.Numbered("h", func(seq int64) error {
							_, err := tx.Exec(`INSERT INTO search_passage (heap, thing, part, seq, kind, analyzer, tok) VALUES ('h', $1, 0, $2, 'k', 1, '')`, fmt.Sprint(w, "/", i), seq)
							return err
						})
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		close(stop)
		if n := <-missed; n != 0 {
			t.Errorf("a reader missed %d of 400 rows", n)
		}
	})
}

func TestSecondServerOnAFolderIsRefused(t *testing.T) {
	dir := t.TempDir()
	release, err := db.LockServer(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.LockServer(dir); err == nil || !strings.Contains(err.Error(), "another cairn serve") {
		t.Errorf("second server: %v", err)
	}
	release()
	if release, err = db.LockServer(dir); err != nil {
		t.Error(err)
	} else {
		release()
	}
}

func TestParallelStartsOnAFreshFolder(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			d, err := db.Open(context.Background(), db.Config{Dir: dir})
			if err != nil {
				t.Error(err)
				return
			}
			_ = d.Close()
		})
	}
	wg.Wait()
}

func TestPasswordOfADatabaseURLIsNotShown(t *testing.T) {
	_, err := db.Open(context.Background(), db.Config{URL: "postgres://u:hunter2@127.0.0.1:1/x?connect_timeout=1"})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
	_, err = db.Open(context.Background(), db.Config{URL: "postgres://u:hunter2@[bad/x"})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

// A write that fails after its caller has gone leaves nothing, though it was the first of a transaction that others joined.
func TestRefusedWriteOfACancelledCallerIsCommittedWithAnothers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx, cancel := context.WithCancel(context.Background())
		second := make(chan error, 1)
		err := d.Write(ctx, func(tx *db.Tx) error {
			if err := put(tx, "refused"); err != nil {
				return err
			}
			go func() {
				second <- d.Write(context.Background(), func(tx *db.Tx) error { return put(tx, "kept") })
			}()
			time.Sleep(50 * time.Millisecond) // until the second waits; without it the test can't fail, but doesn't fail wrongly
			cancel()
			return errors.New("refused")
		})
		if err == nil || <-second != nil {
			t.Fatal(err)
		}
		var ids int
		if err := d.One(context.Background(), `SELECT count(*) FROM audit_event WHERE id = 'refused'`, nil, &ids); err != nil || ids != 0 || count(t, d) != 1 {
			t.Errorf("%d rows of the refused write, %d in all", ids, count(t, d))
		}
	})
}

// A part of a write may fail, even by a broken constraint, and the rest goes on.
func TestPartOfAWriteFailsAlone(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		err := d.Write(context.Background(), func(tx *db.Tx) error {
			if err := put(tx, "a"); err != nil {
				return err
			}
			err := tx.Try(func() error {
				tx.Numbered("h", func(int64) error { return errors.New("a failed part's end ran") })
				if err := put(tx, "b"); err != nil {
					return err
				}
				return put(tx, "a")
			})
			if !db.IsUnique(err) {
				t.Errorf("%v", err)
			}
			return tx.Try(func() error { return put(tx, "c") })
		})
		if err != nil || count(t, d) != 2 {
			t.Errorf("%v, %d rows", err, count(t, d))
		}
	})
}

// A caller who goes away while the write runs gets a plain answer, and nothing is written.
func TestCancelledWriteIsNoInternalFault(t *testing.T) {
	d, err := db.Open(context.Background(), db.Config{URL: dbtest.Postgres(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := context.WithCancel(context.Background())
	err = d.Write(ctx, func(tx *db.Tx) error {
		cancel()
		return put(tx, "x")
	})
	if !errors.Is(err, context.Canceled) || count(t, d) != 0 {
		t.Errorf("%v, %d rows", err, count(t, d))
	}
}
