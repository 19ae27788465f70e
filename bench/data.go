package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"cairn/internal/app"
	"cairn/internal/config"
	"cairn/internal/who"
)

// words draws words as they occur in text: from 20,000, by a Zipf distribution. Equal seeds draw equal words.
type words struct {
	*rand.Rand
	zipf *rand.Zipf
}

const vocabulary = 20_000

func newWords(seed uint64) words {
	r := rand.New(rand.NewPCG(seed, 1))
	return words{r, rand.NewZipf(r, 1.1, 4, vocabulary-1)}
}

// word spells the word of a rank, 0 being the commonest. Common words are short, as in any language; the x at the end keeps
// them from being stop words and from being taken for forms of each other.
func word(rank uint64) string {
	const consonants, vowels = "bcdfghjklmnpqrstvwyz", "aeiou"
	const syllables = uint64(len(consonants) * len(vowels))
	var b []byte
	for n := rank + 1; n > 0; n = (n - 1) / syllables { // bijective, so that no two ranks spell alike
		s := (n - 1) % syllables
		b = append(b, consonants[s/uint64(len(vowels))], vowels[s%uint64(len(vowels))])
	}
	return string(append(b, 'x'))
}

// text gives from..to words as they occur.
func (w words) text(from, to int) string {
	list := make([]string, from+w.IntN(to-from+1))
	for i := range list {
		list[i] = word(w.zipf.Uint64())
	}
	return strings.Join(list, " ")
}

// ranked gives n words from among the ranks from..to, each as likely.
func (w words) ranked(n, from, to int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = word(uint64(from + w.IntN(to-from)))
	}
	return strings.Join(list, " ")
}

// taskArgs are the arguments of a task.
type taskArgs struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	DueDate     string `json:"due_date,omitempty"`
	ExternalRef string `json:"external_ref,omitempty"`
}

// newTask makes the task of a number: a short one as people make them, each third with a description of 10 to 25 words; or
// a long one with 35 to 80.
func newTask(i int, long bool) taskArgs {
	w := newWords(uint64(i))
	t := taskArgs{Name: w.text(3, 9), DueDate: "2026-10-" + string([]byte{'1' + byte(i%2), '0' + byte(i/2%10)})}
	if long {
		t.Description = w.text(35, 80)
	} else if i%3 == 0 {
		t.Description = w.text(10, 25)
	}
	return t
}

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

// seed makes a folder with n open tasks and a token without a rate, through the product's own operations.
func (b *bench) seed(ctx context.Context, name string, n int, long bool) (folder, error) {
	f, err := b.scratch(name)
	if err != nil {
		return f, err
	}
	f.ids = make([]string, n)
	c, err := config.Load(map[string]string{"data": f.dir}, func(string) (string, bool) { return "", false })
	if err != nil {
		return f, err
	}
	a, err := app.Open(ctx, c, app.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return f, err
	}
	err = f.fill(ctx, a, n, long)
	if cerr := a.Close(); err == nil {
		err = cerr
	}
	settle()
	return f, err
}

func (f *folder) fill(ctx context.Context, a *app.App, n int, long bool) error {
	owner, err := a.Accounts.Owner(ctx, "", true)
	if err != nil {
		return err
	}
	owner.Via = who.ViaCLI
	ctx, cancel := context.WithCancelCause(who.With(ctx, owner))
	defer cancel(nil)
	call := func(op string, args, into any) error {
		b, err := json.Marshal(args)
		if err != nil {
			return err
		}
		res, err := a.Runner.Run(ctx, op, b)
		if err != nil {
			return err
		}
		return json.Unmarshal(res.JSON, into)
	}
	var token struct{ Secret string }
	if err := call("set_account", map[string]string{"zone": zone}, &struct{}{}); err != nil {
		return err
	}
	if err := call("create_token", map[string]any{"name": "bench", "rate": 0}, &token); err != nil {
		return err
	}
	f.token = token.Secret
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(seeders, n) {
		all.Go(func() {
			for i := int(next.Add(1) - 1); i < n && ctx.Err() == nil; i = int(next.Add(1) - 1) {
				var out struct{ ID string }
				if err := call("create_personal_task", newTask(i, long), &out); err != nil {
					cancel(err)
					return
				}
				f.ids[i] = out.ID
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
