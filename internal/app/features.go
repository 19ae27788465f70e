package app

import (
	"context"
	"time"

	"cairn/internal/memory"
	"cairn/internal/search"
	"cairn/internal/task"
	"cairn/internal/who"
)

// features hands to the memory's packs what other features know.
func features(engine *search.Engine, sources []search.Source, tasks *task.Service) memory.Features {
	granted := func(ctx context.Context, heaps []string) []string {
		if who.From(ctx).MayArea("tasks") {
			return heaps
		}
		return nil
	}
	entries := func(list []task.Entry, err error) ([]memory.Found, error) {
		found := make([]memory.Found, len(list))
		for i, e := range list {
			found[i] = memory.Found{Kind: e.Kind, ID: e.ID, Heap: e.Heap, Title: e.Title, Text: e.Why}
		}
		return found, err
	}
	return memory.Features{
		Find: func(ctx context.Context, heaps []string, query string, limit int) ([]memory.Found, error) {
			return passages(ctx, engine, sources, heaps, query, limit)
		},
		Today: func(ctx context.Context, heaps []string, day string) ([]memory.Found, error) {
			return entries(tasks.Today(ctx, granted(ctx, heaps), day))
		},
		Week: func(ctx context.Context, heaps []string, day string) ([]memory.Found, error) {
			return entries(tasks.Week(ctx, granted(ctx, heaps), day))
		},
		Projects: func(ctx context.Context, heaps []string) ([]memory.Found, error) {
			return entries(tasks.Projects(ctx, granted(ctx, heaps)))
		},
	}
}

// passages gives the best limit passages for a question in heaps, one of each thing, of everything that an agent with the
// caller's areas may see: what is for persons alone is left out for persons too, since agents read what comes of this.
func passages(ctx context.Context, engine *search.Engine, sources []search.Source, heaps []string, question string, limit int) ([]memory.Found, error) {
	c := who.From(ctx)
	by := map[string]search.Source{}
	var kinds []string
	for _, src := range sources {
		if c.MayArea(src.Area) && !src.PersonOnly {
			by[src.Kind] = src
			kinds = append(kinds, src.Kind)
		}
	}
	if len(kinds) == 0 || len(heaps) == 0 {
		return nil, nil
	}
	found, err := engine.Ask(ctx, heaps, kinds, question, limit)
	if err != nil {
		return nil, err
	}
	ids := map[string][]string{}
	for _, h := range found.Hits {
		ids[h.Kind] = append(ids[h.Kind], h.Thing)
	}
	cards := map[string]map[string]search.Card{}
	for kind, list := range ids {
		if cards[kind], err = by[kind].Cards(ctx, list); err != nil {
			return nil, err
		}
	}
	var list []memory.Found
	for _, h := range found.Hits {
		card, ok := cards[h.Kind][h.Thing]
		if !ok {
			continue
		}
		f := memory.Found{Kind: h.Kind, ID: h.Thing, Heap: h.Heap, Title: card.Title}
		p, ok, err := by[h.Kind].Page(ctx, h.Thing)
		if err != nil {
			return nil, err
		}
		if ok {
			if f.Text = search.Passage(p.Text, h.Part); f.Text == "" {
				f.Text = p.Text
			}
			if text, is := p.Metadata["at"].(string); is {
				if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
					f.At = at.UnixMicro()
				}
			}
		}
		list = append(list, f)
	}
	return list, nil
}
