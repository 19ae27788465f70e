package app

import (
	"context"
	"slices"
	"unicode"

	"cairn/internal/account"
	"cairn/internal/block"
	"cairn/internal/change"
	"cairn/internal/mcp"
	"cairn/internal/memory"
	"cairn/internal/op"
	"cairn/internal/search"
	"cairn/internal/task"
	"cairn/internal/who"
	"cairn/internal/words"
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
	p := passages{engine, map[string]search.Source{}}
	for _, src := range sources {
		if !src.PersonOnly { // left out for persons too, since agents read what comes of this
			p.by[src.Kind] = src
		}
	}
	return memory.Features{
		Find: p.find,
		Read: p.read,
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

// holds says what a heap holds.
func holds(tasks *task.Service, memories *memory.Service, blocks *block.Service) func(context.Context, string) ([]account.Holding, error) {
	return func(ctx context.Context, heap string) (list []account.Holding, err error) {
		for _, kind := range []struct {
			name  string
			count func(context.Context, string) (int, error)
		}{{"task", tasks.Open}, {"memory", memories.Count}, {"note", blocks.Count}} {
			n, err := kind.count(ctx, heap)
			if err != nil {
				return nil, err
			}
			list = append(list, account.Holding{Kind: kind.name, Count: n})
		}
		return list, nil
	}
}

// passages are what questions find in the kinds of things that agents may see.
type passages struct {
	engine *search.Engine
	by     map[string]search.Source
}

// find gives the best limit things for a question in heaps, of the caller's areas.
func (p passages) find(ctx context.Context, heaps []string, question string, limit int) ([]memory.Found, error) {
	c := who.From(ctx)
	var kinds []string
	for kind, src := range p.by {
		if c.MayArea(src.Area) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 || len(heaps) == 0 {
		return nil, nil
	}
	found, err := p.engine.Ask(ctx, heaps, kinds, question, limit)
	list := make([]memory.Found, len(found.Hits))
	for i, h := range found.Hits {
		list[i] = memory.Found{Kind: h.Kind, ID: h.Thing, Heap: h.Heap, Part: h.Part, Near: h.Worded || h.Score >= nearEnough}
	}
	return list, err
}

// nearEnough is the score from which a thing bears on a question that has no word in common with it. Those of things that
// have nothing to do with a question lie below .5 with the built-in model, mostly below .4.
const nearEnough = .5

// read gives titles and texts of what was found, as far as the caller may see it, and texts for chars characters.
func (p passages) read(ctx context.Context, found []memory.Found, chars int) (list []memory.Found, err error) {
	ids, cards := map[string][]string{}, map[string]map[string]search.Card{}
	for _, f := range found {
		ids[f.Kind] = append(ids[f.Kind], f.ID)
	}
	for kind, some := range ids {
		if cards[kind], err = p.by[kind].Cards(ctx, some); err != nil {
			return nil, err
		}
	}
	for _, f := range found {
		card, ok := cards[f.Kind][f.ID]
		if !ok {
			continue
		}
		if f.Title = card.Title; chars > 0 {
			if err := p.text(ctx, &f); err != nil {
				return nil, err
			}
			chars -= shown(f.Text)
		}
		list = append(list, f)
	}
	return list, nil
}

// mostShown is what a reader shows of a text at most, in characters, or little more.
const mostShown = 300

// shown counts the characters of a text that whoever shows it leaves in: at least these.
func shown(text string) (n int) {
	for _, r := range text {
		if n == mostShown {
			break
		}
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

// text sets what is found of a thing, and its moment.
func (p passages) text(ctx context.Context, f *memory.Found) error {
	page, ok, err := p.by[f.Kind].Page(ctx, f.ID)
	if err != nil || !ok {
		return err
	}
	if f.Text = words.Passage(page.Text, f.Part); f.Text == "" {
		f.Text = page.Text
	}
	f.At = momentOf(who.From(ctx), page.Metadata)
	return nil
}

// momentOf gives when a thing was, by what its page says: 0 where it says nothing. A date is its first moment in the account's
// zone.
func momentOf(c *who.Caller, page map[string]any) int64 {
	for _, field := range []string{"at", "decided_at", "date"} {
		if text, is := page[field].(string); is {
			if at, _, err := op.Moment(field, text, c.Zone); err == nil {
				return at
			}
		}
	}
	return 0
}

// documentChanges tells MCP's listeners what of the change record is about documents: of kind is a block.
func documentChanges(w *change.Watcher, kind string) mcp.Changes {
	return func(ctx context.Context, heaps []string, hear func(mcp.Change)) (func(), error) {
		return w.Watch(ctx, heaps, kind, func(h change.Heard) {
			has := func(field string) bool { return slices.Contains(h.Fields, field) }
			state, title := has(change.State), has("title")
			hear(mcp.Change{Heap: h.Heap, ID: h.Thing, Text: state || title || has("content"), List: state || title || h.Effect == change.Create})
		})
	}
}
