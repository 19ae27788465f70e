package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/who"
)

// stuck is a reader that takes nothing until it is let.
type stuck struct {
	mu   sync.Mutex
	got  bytes.Buffer
	gate chan struct{}
	fail error
}

func (s *stuck) Header() http.Header { return http.Header{} }
func (s *stuck) WriteHeader(int)     {}
func (s *stuck) Write(b []byte) (int, error) {
	<-s.gate
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return 0, s.fail
	}
	return s.got.Write(b)
}

func (s *stuck) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.String()
}

func watching(n int) *news {
	all := &news{uris: map[string]string{}, lists: true, changed: map[string]bool{}, wake: make(chan struct{}, 1)}
	for i := range n {
		all.uris[fmt.Sprint("id", i)] = fmt.Sprint("cairn://block/id", i)
	}
	return all
}

// A reader that takes nothing holds up neither who tells of changes nor memory; what it missed it hears once.
func TestSlowReaderHoldsNobodyUp(t *testing.T) {
	w := &stuck{gate: make(chan struct{})}
	c := &who.Caller{Account: "a", Actor: "token:t"}
	n := watching(3)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.tell(ctx, &stream{w: w, again: func(context.Context) (*who.Caller, error) { return c, nil }}, []byte("1"), c)
	}()
	told := make(chan struct{})
	go func() {
		defer close(told)
		for i := range 100_000 {
			n.hear(Change{ID: fmt.Sprint("id", i%5), Text: true, List: i%2 == 0})
		}
	}()
	select {
	case <-told:
	case <-time.After(time.Minute):
		t.Fatal("who tells waits for the reader")
	}
	n.mu.Lock()
	if len(n.changed) > 3 {
		t.Errorf("%d wait to be told", len(n.changed))
	}
	n.mu.Unlock()
	close(w.gate)
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end) && strings.Count(w.text(), "id2") == 0; {
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	cancel()
	<-done
	if got := w.text(); strings.Count(got, "data: ") > 8 || !strings.Contains(got, "list_changed") || strings.Contains(got, "id3") {
		t.Errorf("it heard %s", got)
	}
}

// While nobody can say who calls, nothing is told; when somebody can again, it is.
func TestNothingIsToldWhileRightsAreUnknown(t *testing.T) {
	w := &stuck{gate: make(chan struct{})}
	close(w.gate)
	c := &who.Caller{Account: "a", Actor: "token:t"}
	var mu sync.Mutex
	broken := true
	n := watching(1)
	done := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(done)
		n.tell(context.Background(), &stream{w: w, stop: stop, again: func(context.Context) (*who.Caller, error) {
			mu.Lock()
			defer mu.Unlock()
			if broken {
				return nil, errors.New("no database")
			}
			return c, nil
		}}, []byte("1"), c)
	}()
	n.hear(Change{ID: "id0", Text: true})
	time.Sleep(100 * time.Millisecond)
	if w.text() != "" {
		t.Errorf("it was told %s", w.text())
	}
	mu.Lock()
	broken = false
	mu.Unlock()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end) && w.text() == ""; {
		time.Sleep(10 * time.Millisecond)
	}
	close(stop)
	<-done
	if !strings.Contains(w.text(), "id0") {
		t.Error("what was heard meanwhile is lost")
	}
}

// A reader that is gone ends its stream.
func TestReaderThatIsGoneEndsTheStream(t *testing.T) {
	w := &stuck{gate: make(chan struct{}), fail: errors.New("gone")}
	close(w.gate)
	c := &who.Caller{}
	n := watching(1)
	n.hear(Change{ID: "id0", Text: true})
	n.tell(context.Background(), &stream{w: w, again: func(context.Context) (*who.Caller, error) { return c, nil }}, []byte("1"), c)
}

func TestStreamGivesSignsOfLife(t *testing.T) {
	t.Parallel()
	w := &stuck{gate: make(chan struct{})}
	close(w.gate)
	c := &who.Caller{}
	ctx, cancel := context.WithTimeout(context.Background(), beat+3*time.Second)
	defer cancel()
	watching(0).tell(ctx, &stream{w: w, again: func(context.Context) (*who.Caller, error) { return c, nil }}, []byte("1"), c)
	if w.text() != ": alive\n\n" {
		t.Errorf("%q in %v", w.text(), beat+3*time.Second)
	}
}
