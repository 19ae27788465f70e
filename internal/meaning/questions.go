package meaning

import (
	"context"
	"sync"
	"time"

	"cairn/internal/embed"
)

const (
	keptQueries  = 256
	queryBytes   = 2000             // of a question are embedded: more than any built-in window
	queryPause   = 30 * time.Second // in which a model that failed isn't asked
	queryTimeout = 2 * time.Second
)

// Questions is the model that questions are embedded by. It keeps the vectors of the last questions.
type Questions struct {
	model embed.Model

	mu       sync.Mutex
	kept     map[string]*embed.Query
	order    []string  // of kept, the oldest first
	pause    time.Time // until then searches go by text alone
	failures int
}

// NewQuestions asks a model.
func NewQuestions(m embed.Model) *Questions { return &Questions{model: m} }

// Model names the model; "" where there is none.
func (a *Questions) Model() string {
	if a == nil {
		return ""
	}
	return a.model.ID()
}

// Query embeds a question; nil where the model can't now, so that text alone decides.
func (a *Questions) Query(ctx context.Context, text string) *embed.Query {
	text = text[:min(len(text), queryBytes)]
	a.mu.Lock()
	q, known := a.kept[text]
	paused := time.Now().Before(a.pause)
	a.mu.Unlock()
	if known || paused {
		return q
	}
	mctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	vectors, err := a.model.Embed(mctx, []string{text})
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil || len(vectors) != 1 {
		if ctx.Err() == nil {
			a.failures++
			a.pause = time.Now().Add(queryPause)
		}
		return nil
	}
	q = embed.NewQuery(vectors[0])
	a.failures = 0
	if _, again := a.kept[text]; again {
		return q
	}
	if a.kept == nil {
		a.kept = map[string]*embed.Query{}
	}
	if len(a.order) == keptQueries {
		delete(a.kept, a.order[0])
		a.order = append(a.order[:0], a.order[1:]...)
	}
	a.kept[text] = q
	a.order = append(a.order, text)
	return q
}

// State tells whether the model is left alone for now, and how often in a row it failed.
func (a *Questions) State() (paused bool, failures int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Now().Before(a.pause), a.failures
}
