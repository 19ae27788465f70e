package search

import (
	"context"

	"cairn/internal/who"
)

// Found is a passage that bears on a question, with the thing it is of.
type Found struct {
	Kind, ID, Heap, Title, Text string
	At                          any // as the thing's page gives it under "at", nil = none
}

// Passages gives the best limit passages for a question in heaps, one of each thing, of everything that an agent with the
// caller's areas may see: what is for persons alone is left out for persons too, since agents read what comes of this.
func (s *Service) Passages(ctx context.Context, heaps []string, question string, limit int) ([]Found, error) {
	c := who.From(ctx)
	by := map[string]Source{}
	var kinds []string
	for _, src := range s.sources {
		if c.MayArea(src.Area) && !src.PersonOnly {
			by[src.Kind] = src
			kinds = append(kinds, src.Kind)
		}
	}
	if len(kinds) == 0 || len(heaps) == 0 {
		return nil, nil
	}
	found, err := s.engine.Ask(ctx, heaps, kinds, question, limit)
	if err != nil {
		return nil, err
	}
	cards, err := s.cards(ctx, by, found.Hits)
	if err != nil {
		return nil, err
	}
	var list []Found
	for _, h := range found.Hits {
		card, ok := cards[h.Kind][h.Thing]
		if !ok {
			continue
		}
		f := Found{Kind: h.Kind, ID: h.Thing, Heap: h.Heap, Title: card.Title}
		p, ok, err := by[h.Kind].Page(ctx, h.Thing)
		if err != nil {
			return nil, err
		}
		if ok {
			if f.Text, f.At = Passage(p.Text, h.Part), p.Metadata["at"]; f.Text == "" {
				f.Text = p.Text
			}
		}
		list = append(list, f)
	}
	return list, nil
}
