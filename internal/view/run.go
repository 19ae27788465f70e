package view

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"cairn/internal/block"
	"cairn/internal/block/filter"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

type runIn struct {
	ViewID string `json:"view_id" rule:"required,uuid,max=64"`
	Group  string `json:"group" jsonschema:"of a board: a group's key, as its groups give it" rule:"min=1,max=1000"`
	From   string `json:"from" jsonschema:"of a calendar: first day" rule:"date,max=64"`
	To     string `json:"to" jsonschema:"of a calendar: last day" rule:"date,max=64"`
	Limit  int    `json:"limit" jsonschema:"default 50" rule:"min=1,max=200"`
	Cursor string `json:"cursor" rule:"max=2000"`
}

// Group is one of a board's. More tells that there are more than count, which weren't counted.
type Group struct {
	Group string          `json:"group"` // to ask for its blocks by
	Type  string          `json:"type,omitempty"`
	Value json.RawMessage `json:"value,omitempty"` // none: blocks without the property
	Title string          `json:"title,omitempty"` // of the block that a reference names
	Count int             `json:"count"`
	More  bool            `json:"more,omitempty"`
}

type runOut struct {
	View       View         `json:"view"`
	From       string       `json:"from,omitempty"` // of a calendar
	To         string       `json:"to,omitempty"`
	Groups     []Group      `json:"groups,omitempty"`
	Count      int          `json:"count"`
	Blocks     []block.Line `json:"blocks"`
	NextCursor *string      `json:"next_cursor,omitempty"`
	Note       string       `json:"note,omitempty"`
}

// Limits of what a view shows.
const (
	ungrouped = "-" // the key of the group without the property
	maxGroups = 50
	maxDays   = 366
	counted   = 5000 // blocks looked at to count a board's groups, over all of them
	cursorLen = 3
)

func (s *Service) run(ctx context.Context, in runIn) (runOut, error) {
	out := runOut{Blocks: []block.Line{}}
	r, err := load(ctx, s.one(ctx), in.ViewID, "")
	if err == nil {
		err = r.there()
	}
	if err != nil {
		return out, err
	}
	out.View = r.view()
	h, _ := who.From(ctx).ByID(r.Heap)
	q, note, err := s.query(ctx, h, r)
	if err != nil {
		return out, err
	}
	out.Note = note
	if in.Group != "" && r.Layout != board {
		return out, fault.Bad("group", "is for boards, and the view is a %s", r.Layout)
	}
	if (in.From != "" || in.To != "") && r.Layout != calendar {
		return out, fault.Bad("from", "and to are for calendars, and the view is a %s", r.Layout)
	}
	switch r.Layout {
	case board:
		if in.Group == "" {
			return out, s.groups(ctx, h, r, q, &out)
		}
		q.Group = &filter.Group{Key: r.body.GroupBy, Head: in.Group}
		if in.Group == ungrouped {
			q.Group.Head = ""
		}
	case calendar:
		if err := days(who.From(ctx), s.db.Now(), in, &out); err != nil {
			return out, err
		}
		q.Sort = filter.Sort{By: "property", Key: r.body.Date}
		q.Properties = append(q.Properties, on(r.body.Date, "after", out.From, -1), on(r.body.Date, "before", out.To, 1))
	}
	return out, s.page(ctx, r, q, in, &out)
}

// on is the condition that a date is before or after another, by so many days from a day on.
func on(key, operator, day string, by int) filter.Condition {
	at, _ := time.Parse(time.DateOnly, day)
	text, _ := json.Marshal(at.AddDate(0, 0, by).Format(time.DateOnly))
	return filter.Condition{Key: key, Op: operator, Value: text}
}

// days sets the days that a calendar shows.
func days(c *who.Caller, now int64, in runIn, out *runOut) error {
	out.From, out.To = op.Day(in.From), op.Day(in.To)
	today, _ := time.Parse(time.DateOnly, c.Day(now))
	first := today.AddDate(0, 0, 1-today.Day())
	switch {
	case out.From == "" && out.To == "":
		out.From, out.To = first.Format(time.DateOnly), first.AddDate(0, 1, -1).Format(time.DateOnly)
	case out.From == "" || out.To == "":
		return fault.Bad("from", "and to must be given together")
	}
	from, _ := time.Parse(time.DateOnly, out.From)
	to, _ := time.Parse(time.DateOnly, out.To)
	if from.Year() < 2 || to.Year() > 9998 {
		return fault.Bad("from", "and to must lie between the years 2 and 9998")
	}
	if n := int(to.Sub(from).Hours()/24) + 1; n < 1 || n > maxDays {
		return fault.Bad("to", "must be from 0 to %d days after from", maxDays-1)
	}
	return nil
}

// query puts a view's filter and order into what block/filter takes.
func (s *Service) query(ctx context.Context, h who.Heap, r *row) (q filter.Query, note string, err error) {
	q.Heap = h.ID
	if r.body.Sort != nil {
		q.Sort = *r.body.Sort
	}
	f := r.body.Filter
	if f == nil {
		return q, "", nil
	}
	q.Type, q.Pinned, q.Unlinked, q.Properties = f.Type, f.Pinned, f.Unlinked, slices.Clone(f.Properties)
	if f.Tag != "" {
		q.Tags = []string{f.Tag}
		if f.Deep {
			if q.Tags, err = filter.Below(ctx, s.db, f.Tag, maxTags+1); err != nil {
				return q, "", err
			}
			if len(q.Tags) > maxTags {
				q.Tags, note = q.Tags[:maxTags], fmt.Sprintf("only the first %d tags below the view's are looked at", maxTags)
			}
		}
	}
	if f.Words != "" {
		found, err := s.find.Find(ctx, []string{h.ID}, []string{"block"}, f.Words, filter.Most)
		if err != nil {
			return q, "", err
		}
		q.Among = make([]string, len(found.Hits))
		for i, hit := range found.Hits {
			q.Among[i] = hit.Thing
		}
		if note = and(note, found.Note); found.More {
			note = and(note, fmt.Sprintf("only the best %d that the words find are looked at", filter.Most))
		}
	}
	return q, note, nil
}

// and puts a note beside what was to be said already.
func and(note, more string) string {
	if note == "" || more == "" {
		return note + more
	}
	return note + "; " + more
}

// page puts one page of blocks into the answer.
func (s *Service) page(ctx context.Context, r *row, q filter.Query, in runIn, out *runOut) error {
	after, err := op.ReadCursor(in.Cursor, cursorLen)
	if err != nil {
		return err
	}
	for len(after) > 0 && after[len(after)-1] == "" {
		after = after[:len(after)-1]
	}
	limit := op.NewPage(in.Limit)
	p, err := filter.Find(ctx, s.db, q, after, limit.Limit)
	if err != nil {
		return err
	}
	out.NextCursor = cursor(p.Next)
	ids, places := make([]string, len(p.Rows)), map[string][]string{}
	for i, row := range p.Rows {
		ids[i], places[row.ID] = row.ID, row.At
	}
	lines, err := s.blocks.Lines(ctx, ids, r.keys())
	if err != nil {
		return err
	}
	for i, l := range lines {
		if !limit.Fits(i, l.Weight()) {
			out.NextCursor = cursor(places[lines[i-1].ID])
			break
		}
		out.Blocks = append(out.Blocks, l)
	}
	out.Count = len(out.Blocks)
	return nil
}

func cursor(at []string) *string {
	if at == nil {
		return nil
	}
	return op.Cursor(append(slices.Clone(at), make([]string, cursorLen-len(at))...)...)
}

// groups counts a board's.
func (s *Service) groups(ctx context.Context, h who.Heap, r *row, q filter.Query, out *runOut) error {
	values, err := filter.Values(ctx, s.db, h.ID, r.body.GroupBy, maxGroups+1)
	if err != nil {
		return err
	}
	if len(values) > maxGroups {
		values = values[:maxGroups]
		out.Note = and(out.Note, fmt.Sprintf("the board has more than %d groups: only the first are shown", maxGroups))
	}
	var refs []string
	for _, v := range values {
		g := Group{Group: v.Head, Type: v.Type, Value: v.JSON}
		if v.Type == "reference" {
			var id string
			if json.Unmarshal(v.JSON, &id) == nil {
				refs = append(refs, id)
			}
		}
		out.Groups = append(out.Groups, g)
	}
	out.Groups = append(out.Groups, Group{Group: ungrouped})
	each := min(max(counted/len(out.Groups), 100), 1000)
	lines, err := s.blocks.Lines(ctx, refs, nil)
	if err != nil {
		return err
	}
	titles := map[string]string{}
	for _, l := range lines {
		if l.Heap == h.ID {
			titles[l.ID] = l.Title
		}
	}
	for i := range out.Groups {
		g := &out.Groups[i]
		of := q
		of.Group = &filter.Group{Key: r.body.GroupBy, Head: g.Group}
		if g.Group == ungrouped {
			of.Group.Head = ""
		}
		if g.Count, g.More, err = filter.Count(ctx, s.db, of, each); err != nil {
			return err
		}
		var id string
		if g.Type == "reference" && json.Unmarshal(g.Value, &id) == nil {
			g.Title = titles[id]
		}
	}
	return nil
}
