package meaning

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

type counted struct{ asks int }

func (m *counted) ID() string      { return "counted" }
func (m *counted) Dimensions() int { return 2 }

func (m *counted) Embed(_ context.Context, texts []string) ([][]float32, error) {
	m.asks++
	return make([][]float32, len(texts)), nil
}

func TestPieces(t *testing.T) {
	if got := pieces(Text{Title: " a "}); !slices.Equal(got, []string{"a"}) {
		t.Errorf("%q", got)
	}
	if got := pieces(Text{}); got != nil {
		t.Errorf("%q", got)
	}
	body := strings.Repeat("One sentence of some words stands here. ", 60)
	got := pieces(Text{Title: "title", Body: body})
	if len(got) < 8 || !strings.HasPrefix(got[0], "title\nOne") || !strings.HasSuffix(body, got[len(got)-1]) {
		t.Errorf("%d pieces: %.30q", len(got), got)
	}
	for _, p := range got {
		if len(p) > 2*pieceChars+10 {
			t.Errorf("a piece of %d characters", len(p))
		}
	}
}

func TestQueryVectorsAreKept(t *testing.T) {
	m := &counted{}
	a := NewQuestions(m)
	for i := range keptQueries + 10 {
		a.Query(t.Context(), fmt.Sprint("q", i))
	}
	asks := m.asks
	a.Query(t.Context(), fmt.Sprint("q", keptQueries))
	if m.asks != asks || len(a.kept) != keptQueries || len(a.order) != keptQueries {
		t.Errorf("%d kept, asked %d times more", len(a.kept), m.asks-asks)
	}
	if a.Query(t.Context(), "q1"); m.asks != asks+1 {
		t.Error("the oldest was kept")
	}
}
