package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"cairn/bench/made"
	"cairn/bench/table"
)

// killers is how many connections create while the server is killed.
const killers = 16

// kill kills a server under load again and again and looks whether everything it had acknowledged is there.
func (b *bench) kill(ctx context.Context) error {
	f, err := b.seed(ctx, "kill", 1, false)
	if err != nil {
		return err
	}
	defer f.remove()
	acked := map[string]bool{}
	present, lost, worst := 0, 0, time.Duration(0)
	for round := range b.size.kills {
		if err := b.killOnce(ctx, f, round, acked); err != nil {
			return err
		}
		begin := time.Now()
		s, err := b.serve(ctx, f)
		if err != nil {
			return err
		}
		worst = max(worst, time.Since(begin))
		refs, err := s.refs(ctx)
		s.stop()
		if err != nil {
			return err
		}
		present, lost = len(refs), 0
		for ref := range acked {
			if !refs[ref] {
				lost++
			}
		}
	}
	sound, err := b.sound(ctx, f)
	if err != nil {
		return err
	}
	t := table.Table{Title: "kill -9 under load", Head: []string{"kills", "acknowledged creates", "of these present", "lost", "present without an answer", "slowest start after it s", "database"}}
	t.Add(number(float64(b.size.kills)), number(float64(len(acked))), number(float64(len(acked)-lost)), number(float64(lost)), number(float64(present-(len(acked)-lost))), fmt.Sprintf("%.2f", worst.Seconds()), sound)
	t.Note = fmt.Sprintf("%d connections create tasks, each with an external_ref of its own, until the server is killed; after each restart all tasks are listed and compared with the answers so far. "+
		"A task present without an answer was on the disk when the server died before it could answer: at most one a connection and kill. A loss of power can't be shown here; synchronous FULL is what stands for it.", killers)
	b.rep.tables = append(b.rep.tables, t)
	b.rep.want("acknowledged writes lost by kill -9", float64(lost), 0, "")
	if extra := present - (len(acked) - lost); extra > killers*b.size.kills {
		return fmt.Errorf("%d tasks are present that nobody was told of, and %d kills leave at most %d", extra, b.size.kills, killers*b.size.kills)
	}
	return nil
}

// killOnce adds the refs that were acknowledged until the server died.
func (b *bench) killOnce(ctx context.Context, f folder, round int, acked map[string]bool) error {
	s, err := b.serve(ctx, f)
	if err != nil {
		return err
	}
	defer s.stop()
	var mu sync.Mutex
	ref := func(i int) string { return fmt.Sprintf("kill-%d-%d", round, i) }
	dies := make(chan struct{})
	time.AfterFunc(b.size.writeFor/4+time.Duration(made.NewWords(uint64(round)).Int64N(int64(b.size.writeFor)/4)), func() {
		close(dies)
		s.stop()
	})
	_, err = s.drive(ctx, load{conns: killers, until: time.Minute,
		body: func(i int) []byte {
			t := made.NewTask(i, false)
			t.ExternalRef = ref(i)
			return toolCall(i, "create_personal_task", t)
		},
		seen: func(i int, _ []byte) {
			mu.Lock()
			defer mu.Unlock()
			acked[ref(i)] = true
		}})
	select {
	case <-dies:
	default:
		return fmt.Errorf("the server did not live until it was killed: %w", err)
	}
	<-s.done
	return ctx.Err()
}

// refs lists the external refs of all tasks.
func (c *child) refs(ctx context.Context) (map[string]bool, error) {
	k, err := dial(ctx, c)
	if err != nil {
		return nil, err
	}
	defer k.close()
	refs, args := map[string]bool{}, map[string]any{"limit": 200}
	for {
		answer, err := k.post(toolCall(0, "list_tasks", args))
		if err != nil {
			return nil, err
		}
		var page struct {
			Tasks []struct {
				Ref *string `json:"external_ref"`
			} `json:"tasks"`
			Next string `json:"next_cursor"`
		}
		if err := structured(answer, &page); err != nil {
			return nil, err
		}
		for _, t := range page.Tasks {
			if t.Ref != nil {
				refs[*t.Ref] = true
			}
		}
		if page.Next == "" {
			return refs, nil
		}
		args["cursor"] = page.Next
	}
}

// sound says what `cairn doctor` finds about the database.
func (b *bench) sound(ctx context.Context, f folder) (string, error) {
	out, _ := exec.CommandContext(ctx, b.cairn, "doctor", "--json", "--data", f.dir).Output() // other checks may fail here
	var checks struct {
		Checks []struct {
			Name string `json:"name"`
			OK   bool   `json:"ok"`
			Says string `json:"says"`
		} `json:"checks"`
	}
	if err := json.Unmarshal(out, &checks); err != nil {
		return "", fmt.Errorf("cairn doctor: %w: %.300s", err, out)
	}
	for _, c := range checks.Checks {
		if c.Name == "database" {
			if c.OK {
				return "sound", nil
			}
			return "", fmt.Errorf("cairn doctor: %s", c.Says)
		}
	}
	return "", fmt.Errorf("cairn doctor says nothing of the database: %.300s", out)
}
