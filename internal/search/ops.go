package search

import (
	"context"
	"slices"

	"cairn/internal/fault"
	"cairn/internal/meaning"
	"cairn/internal/op"
	"cairn/internal/who"
)

// Card is a found thing in one line.
type Card struct{ ID, Title, URL string }

// Page is a thing whole, as fetch gives it.
type Page struct {
	Card
	Text     string
	Metadata map[string]any
}

// Source is how a kind of thing is shown. The feature that owns the things gives it.
type Source struct {
	Kind, Area string
	PersonOnly bool // no agent may search it: a kind of private things
	// Cards gives the lines of things by their ids, leaving out what the caller may not see and what is gone.
	Cards func(ctx context.Context, ids []string) (map[string]Card, error)
	// Page gives a thing whole.
	Page func(ctx context.Context, id string) (p Page, ok bool, err error)
	Text meaning.TextOf // nil = these things aren't embedded
	Doc  DocOf          // nil = their writes never call Later
}

func (s Source) seen(c *who.Caller) bool { return c.MayArea(s.Area) && (c.Person || !s.PersonOnly) }

// Service is search and fetch over everything, the pair of tools that ChatGPT expects.
type Service struct {
	engine  *Engine
	sources []Source
}

// NewService makes the service over the kinds of things that features give.
func NewService(e *Engine, sources ...Source) *Service {
	for _, src := range sources {
		if src.Doc != nil {
			e.docs[src.Kind] = src.Doc
		}
	}
	return &Service{e, sources}
}

// Texts gives what is to be embedded, by kind.
func (s *Service) Texts() map[string]meaning.TextOf {
	texts := map[string]meaning.TextOf{}
	for _, src := range s.sources {
		if src.Text != nil {
			texts[src.Kind] = src.Text
		}
	}
	return texts
}

// Ops are the operations of this package.
func (s *Service) Ops() []*op.Op {
	return []*op.Op{
		op.Define(op.Op{Name: "search", Title: "Search", Area: who.Core, Effect: op.Read, Example: `{"query":"garden"}`,
			Doc: "Find things in everything you may read, by a question or words, best first. fetch gives one whole."}, s.search),
		op.Define(op.Op{Name: "fetch", Title: "Fetch", Area: who.Core, Effect: op.Read, Example: `{"id":"none"}`,
			Doc: "One thing whole, by an id from search."}, s.fetch),
	}
}

type searchIn struct {
	Query string `json:"query" rule:"required,min=1,max=10000"`
	Heap  string `json:"heap" jsonschema:"id or name" rule:"max=300"`
	Limit int    `json:"limit" jsonschema:"default 20" rule:"min=1,max=200"`
}

type result struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	URL   string `json:"url"`
}

type searchOut struct {
	Results []result `json:"results"`
	Note    string   `json:"note,omitempty"`
}

// defaultResults is how many results search gives where it isn't told.
const defaultResults = 20

func (s *Service) search(ctx context.Context, in searchIn) (searchOut, error) {
	c, out := who.From(ctx), searchOut{Results: []result{}}
	heaps, err := c.Readable(in.Heap)
	if err != nil {
		return out, err
	}
	ids := who.IDs(heaps)
	by := map[string]Source{}
	var kinds []string
	for _, src := range s.sources {
		if src.seen(c) {
			by[src.Kind] = src
			kinds = append(kinds, src.Kind)
		}
	}
	if len(kinds) == 0 || len(ids) == 0 {
		return out, nil
	}
	limit := in.Limit
	if limit == 0 {
		limit = defaultResults
	}
	found, err := s.engine.Ask(ctx, ids, kinds, in.Query, limit)
	if err != nil {
		return out, err
	}
	out.Note = found.Note
	cards, err := s.cards(ctx, by, found.Hits)
	if err != nil {
		return out, err
	}
	for _, h := range found.Hits {
		if card, ok := cards[h.Kind][h.Thing]; ok {
			out.Results = append(out.Results, result(card))
		}
	}
	return out, nil
}

// cards reads the lines of all hits, a kind at a time.
func (s *Service) cards(ctx context.Context, by map[string]Source, hits []Hit) (map[string]map[string]Card, error) {
	ids := map[string][]string{}
	for _, h := range hits {
		ids[h.Kind] = append(ids[h.Kind], h.Thing)
	}
	cards := map[string]map[string]Card{}
	for kind, list := range ids {
		var err error
		if cards[kind], err = by[kind].Cards(ctx, list); err != nil {
			return nil, err
		}
	}
	return cards, nil
}

type fetchIn struct {
	ID string `json:"id" rule:"required,min=1,max=300"`
}

type fetchOut struct {
	ID       string         `json:"id"`
	Title    string         `json:"title"`
	Text     string         `json:"text"`
	URL      string         `json:"url"`
	Metadata map[string]any `json:"metadata"`
}

func (s *Service) fetch(ctx context.Context, in fetchIn) (fetchOut, error) {
	c := who.From(ctx)
	var kinds []string
	for _, src := range s.sources {
		if !src.seen(c) || slices.Contains(kinds, src.Kind) {
			continue
		}
		kinds = append(kinds, src.Kind)
		p, ok, err := src.Page(ctx, in.ID)
		if err != nil {
			return fetchOut{}, err
		}
		if ok {
			return fetchOut{p.ID, p.Title, p.Text, p.URL, p.Metadata}, nil
		}
	}
	return fetchOut{}, fault.New(fault.NotFound, "there is nothing with the id %q: take an id from search", in.ID)
}
