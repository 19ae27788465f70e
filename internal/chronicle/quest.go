package chronicle

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

type questIn struct {
	ID     string   `json:"id" jsonschema:"of the quest to change; leave out for a new one" rule:"uuid,max=300"`
	Title  *string  `json:"title" jsonschema:"required for a new one" rule:"min=1,max=300"`
	Why    *string  `json:"why" rule:"min=1,max=2000"`
	Status string   `json:"status" jsonschema:"default active" rule:"enum=active|paused|done|dropped"`
	From   string   `json:"from" rule:"date,max=64"`
	Until  string   `json:"until" rule:"date,max=64"`
	Clear  []string `json:"clear" jsonschema:"fields to empty" rule:"max=50,enum=why|from|until"`
	Heap   string   `json:"heap" jsonschema:"id or name" rule:"max=300"`
}

// Quest is a quest as callers see it.
type Quest struct {
	ID        string  `json:"id"`
	Title     string  `json:"title"`
	Why       *string `json:"why"`
	Status    string  `json:"status"`
	From      *string `json:"from"`
	Until     *string `json:"until"`
	Heap      string  `json:"heap"`
	CreatedAt string  `json:"created_at"`
	UpdatedAt string  `json:"updated_at"`
}

func (q *quest) shown() Quest {
	return Quest{q.ID, q.Title, q.Why, q.Status, q.From, q.Until, q.Heap, op.Stamp(q.CreatedAt), op.Stamp(q.UpdatedAt)}
}

type questOut struct {
	kept
	Quest Quest `json:"quest"`
}

func (s *Service) quest(ctx context.Context, in questIn) (questOut, error) {
	if in.ID == "" && in.Title == nil {
		return questOut{}, fault.Bad("title", "is required for a new one and must be a non-empty string")
	}
	for field, given := range map[string]bool{"why": in.Why != nil, "from": in.From != "", "until": in.Until != ""} {
		if given && slices.Contains(in.Clear, field) {
			return questOut{}, fault.Bad("clear", "names %s, which is given a value too", field)
		}
	}
	q, one, err := keep(ctx, s, in.ID, in.Heap, newQuest, func(_ *db.Tx, q *quest) error {
		if in.Title != nil {
			q.Title = strings.TrimSpace(*in.Title)
		}
		if in.Why != nil {
			q.Why = in.Why
		}
		if in.Status != "" {
			q.Status = in.Status
		}
		for field, target := range map[string]**string{"why": &q.Why, "from": &q.From, "until": &q.Until} {
			if slices.Contains(in.Clear, field) {
				*target = nil
			}
		}
		if d := op.Day(in.From); d != "" {
			q.From = &d
		}
		if d := op.Day(in.Until); d != "" {
			q.Until = &d
		}
		if q.From != nil && q.Until != nil && *q.Until < *q.From {
			return fault.Bad("until", "is %s, before from (%s)", *q.Until, *q.From)
		}
		return nil
	})
	if err != nil {
		return questOut{}, err
	}
	return questOut{one, q.shown()}, nil
}

// quests reads the quests of heaps, those under way first.
func quests(query rowsQuery, heaps []who.Heap) ([]*quest, error) {
	args := db.Args{}
	all, err := readAll(query, newQuest, `heap IN `+args.List(who.IDs(heaps))+` AND trashed_at IS NULL`, args...)
	order := []string{"active", "paused", "done", "dropped"}
	slices.SortFunc(all, func(a, b *quest) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Status), slices.Index(order, b.Status)), -cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return all, err
}

type questsOut struct {
	Count      int     `json:"count"`
	Quests     []Quest `json:"quests"`
	NextCursor *string `json:"next_cursor,omitempty"`
}

func (s *Service) listQuests(ctx context.Context, in listIn) (questsOut, error) {
	out := questsOut{Quests: []Quest{}}
	heaps, err := who.From(ctx).Readable(in.Heap)
	if err != nil {
		return out, err
	}
	all, err := quests(s.query(ctx), heaps)
	if err != nil {
		return out, err
	}
	out.Quests, out.NextCursor, err = pageOf(all, in, (*quest).shown, func(q *quest) int { return op.Weight(q.Title + db.Text(q.Why)) })
	out.Count = len(out.Quests)
	return out, err
}

type blueprintIn struct {
	Section string `json:"section" rule:"required,enum=foundation|values|beliefs"`
	Text    string `json:"text" jsonschema:"replaces the section; required unless only private is given" rule:"min=1,max=20000"`
	Private *bool  `json:"private" jsonschema:"no agent sees it"`
	Heap    string `json:"heap" jsonschema:"id or name" rule:"max=300"`
}

// Blueprint is a section of what the owner stands on.
type Blueprint struct {
	ID        string `json:"id"`
	Section   string `json:"section"`
	Text      string `json:"text"`
	TextCut   bool   `json:"text_cut,omitempty"`
	Private   bool   `json:"private"`
	Heap      string `json:"heap"`
	UpdatedAt string `json:"updated_at"`
}

type blueprintOut struct {
	kept
	Blueprint Blueprint `json:"blueprint"`
}

// blueprint writes a section. There is one of each in a heap, also after it was in the trash.
func (s *Service) blueprint(ctx context.Context, in blueprintIn) (out blueprintOut, err error) {
	c := who.From(ctx)
	h, err := c.Target(in.Heap, nil)
	if err != nil {
		return out, err
	}
	set := func(_ *db.Tx, b *blueprint) error {
		b.TrashedAt = nil
		if in.Text != "" {
			b.Text = in.Text
		}
		if b.Text == "" {
			return fault.Bad("text", "is required and must be a non-empty string")
		}
		if in.Private != nil {
			b.Private = yes(*in.Private)
		}
		return nil
	}
	var b *blueprint
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		b = newBlueprint()
		if s.Lock != nil {
			if err := s.Lock(tx, h.ID); err != nil {
				return err
			}
		}
		err := read(tx.One, b, `heap = $1 AND section = $2`+tx.ForUpdate(), h.ID, in.Section)
		if err == nil {
			out.kept, err = alter(ctx, s, tx, b, set)
			return err
		}
		if !db.IsNone(err) {
			return err
		}
		b.ID, b.Heap, b.Section = db.NewID(), h.ID, in.Section
		if err := set(tx, b); err != nil {
			return err
		}
		if err := insert(ctx, tx, b); err != nil {
			return err
		}
		if b.CreatedAt == 0 {
			return errTaken
		}
		out.kept = kept{ID: b.ID, Result: "created"}
		return s.changed(tx, b)
	})
	if err != nil {
		return out, err
	}
	short, was := cut(&b.Text, detailChars)
	out.Blueprint = Blueprint{b.ID, b.Section, *short, was, bool(b.Private), b.Heap, op.Stamp(b.UpdatedAt)}
	return out, nil
}
