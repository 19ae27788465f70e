package search

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"

	"cairn/internal/db"
	"cairn/internal/db/dbtest"
	"cairn/internal/job"
	"cairn/internal/meaning"
	"cairn/internal/search/query"
)

// TestWhatMayNotBeSeenChangesNothing searches a heap that holds secrets among notes, and one that holds the notes alone. Whoever
// may see notes only must get the same things in the same order with the same scores from both, or order and scores would tell
// what words the secrets have, and that there are some.
func TestWhatMayNotBeSeenChangesNothing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		e, texts := New(d, 1<<30), map[string]string{}
		m := newBags()
		e.UseModel(m)
		text := func(_ context.Context, id string) (meaning.Text, bool, error) {
			return meaning.Text{Body: texts[id]}, true, nil
		}
		q := job.New(d, slog.New(slog.DiscardHandler))
		q.Handle(meaning.NewMaker(d, m, NewService(e, Source{Kind: "note", Text: text}, Source{Kind: "secret", Text: text}).Texts()).Jobs()...)
		r := rand.New(rand.NewPCG(5, 6))
		var drawn []string
		for round := range 4 {
			for range 60 {
				id := fmt.Sprint(r.IntN(80))
				kind := []string{"note", "secret", "secret"}[r.IntN(3)] // it's toggled back and forth, too
				texts[id] = drawText(r, 30)
				drawn = append(drawn, texts[id])
				doc := Doc{Heap: "both", Thing: id, Kind: kind, Body: texts[id]}
				if r.IntN(2) == 0 {
					doc.Thread, doc.At = "talk", int64(r.IntN(40))*60e6
				}
				put(t, d, doc)
				if doc.Heap = "alone"; kind == "note" {
					put(t, d, doc)
				} else {
					remove(t, d, "alone", id)
				}
			}
			if err := q.Due(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 40 {
				text := drawQuery(r, drawn)
				if text == "" || len(query.Parse(text, false).Groups) == 0 || len(query.Parse(text, true).Groups) == 0 {
					continue
				}
				for name, search := range map[string]func(ctx context.Context, heaps, kinds []string, query string, limit int) (Result, error){
					"Ask": e.Ask, "Find": e.Find, "Nearest": e.Nearest} {
					limit := 1 + r.IntN(30)
					both, err := search(t.Context(), []string{"both"}, []string{"note"}, text, limit)
					if err != nil {
						t.Fatal(err)
					}
					alone, err := search(t.Context(), []string{"alone"}, []string{"note"}, text, limit)
					if err != nil {
						t.Fatal(err)
					}
					for i := range both.Hits {
						both.Hits[i].Heap = "alone"
					}
					if !slices.Equal(both.Hits, alone.Hits) || both.More != alone.More {
						t.Fatalf("round %d, %s(%q, %d) tells of what it may not show:\n%v\n%v", round, name, text, limit, both.Hits, alone.Hits)
					}
				}
			}
		}
	})
}

// TestWhatIsHiddenBetweenTwoStandsBetweenNobody: a hidden thing between two of a thread doesn't keep one from helping to find
// the other, which would tell that it's there.
func TestWhatIsHiddenBetweenTwoStandsBetweenNobody(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		e := New(d, 1<<30)
		put(t, d, turn("1", "turn", "talk", 0, "what shall we plant in the garden"), turn("2", "hidden", "talk", 1, "a secret"), turn("3", "turn", "talk", 2, "leeks I guess"))
		if got := ask(t, e, "garden", "turn"); !slices.Equal(got, []string{"1", "3"}) {
			t.Errorf("got %q", got)
		}
	})
}
