package block

import (
	"context"

	"cairn/internal/block/past"
	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/doc"
	"cairn/internal/fault"
	"cairn/internal/who"
)

// store writes a new block; false where its external_ref is taken.
func (s *Service) store(ctx context.Context, r *row, d *doc.Doc, h who.Heap, tags []string) (made bool, err error) {
	put, err := first(r, d)
	if err != nil {
		return false, err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		made = false
		if len(tags) > 0 {
			if err := lockHeap(tx, r.Heap); err != nil { // before the block's row refers to the heap's: two that did both would wait for each other
				return err
			}
		}
		up, err := parents(past.Inside(tx), h, tags)
		if err != nil {
			return err
		}
		made, err = put(ctx, tx, up)
		return err
	})
	return made, err
}

// first works out what storing a new block takes. What it gives stores it below those of up, as part of a write, and records it;
// false where its external_ref is taken.
func first(r *row, d *doc.Doc) (func(ctx context.Context, tx *db.Tx, up []string) (bool, error), error) {
	empty, err := doc.New("", nil, db.NewID)
	if err != nil {
		return nil, err
	}
	refs, put := newRefs(empty, d), findable(r, d, true)
	return func(ctx context.Context, tx *db.Tx, up []string) (bool, error) {
		if made, err := insert(tx, r, d, refs); err != nil || !made {
			return made, err
		}
		if err := relate(tx, r.ID, relTag, up); err != nil {
			return false, err
		}
		after := r.marks()
		after["title"], after["content"], after["tags"], after["type"], after["external_ref"] = r.Title, r.ContentHash, up, r.Type, r.ExternalRef
		change.Record(ctx, tx, change.Entry{Heap: r.Heap, Kind: kind, Thing: r.ID, Effect: change.Create, After: after, Summary: "Created " + r.label()})
		put(tx)
		return true, nil
	}, nil
}

// AddFile stores the block of a file as part of a write, and records it: typ is file or image, the title the file's name. The
// caller may write to the heap.
func AddFile(ctx context.Context, tx *db.Tx, id, heap, typ, title string) error {
	d, err := doc.New(title, nil, db.NewID)
	if err != nil {
		return err
	}
	put, err := first(&row{ID: id, Heap: heap, Type: typ, Title: title, Hash: d.Hash(), ContentHash: d.ContentHash(), Version: 1, Actor: who.From(ctx).Actor}, d)
	if err == nil {
		_, err = put(ctx, tx, []string{})
	}
	return err
}

// byRef finds the block with an external_ref in the heaps granted; nil if there is none. Several are an error that names them: a
// ref is unique in one heap only.
func (s *Service) byRef(ctx context.Context, external string) (*row, error) {
	c := who.From(ctx)
	var found []*row
	for _, h := range c.Heaps {
		r := &row{}
		err := s.db.One(ctx, `SELECT `+columns+` FROM block b WHERE b.heap = $1 AND b.external_ref = $2`, []any{h.ID, external}, r.dest()...)
		if err == nil {
			found = append(found, r)
		} else if !db.IsNone(err) {
			return nil, err
		}
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return found[0], nil
	}
	candidates := make([]map[string]string, len(found))
	for i, r := range found {
		h, _ := c.ByID(r.Heap)
		candidates[i] = map[string]string{"id": r.ID, "title": r.Title, "heap": h.Name}
	}
	return nil, fault.New(fault.Conflict, "%d blocks in different heaps have the external_ref %q: give block_id", len(found), external).With("candidates", candidates)
}

type idIn struct {
	BlockID string `json:"block_id" rule:"required,uuid,max=64"`
}

func (s *Service) trash(ctx context.Context, in idIn) (One, error) {
	return s.put(ctx, in.BlockID, change.Delete, "Deleted", func(tx *db.Tx, r *row) {
		if r.TrashedAt == nil {
			r.TrashedAt = &tx.Now
		}
	})
}

func (s *Service) restore(ctx context.Context, in idIn) (One, error) {
	return s.put(ctx, in.BlockID, change.Restore, "Restored", func(_ *db.Tx, r *row) { r.TrashedAt = nil })
}

type pinIn struct {
	BlockID string `json:"block_id" rule:"required,uuid,max=64"`
	Pinned  *bool  `json:"pinned" jsonschema:"default true"`
}

func (s *Service) pin(ctx context.Context, in pinIn) (One, error) {
	to, summary := int64(1), "Pinned"
	if in.Pinned != nil && !*in.Pinned {
		to, summary = 0, "Unpinned"
	}
	return s.put(ctx, in.BlockID, change.Update, summary, func(_ *db.Tx, r *row) { r.Pinned = to })
}

// put changes a block's marks: whether it is in the trash, whether it is pinned.
func (s *Service) put(ctx context.Context, id, effect, summary string, do func(tx *db.Tx, r *row)) (One, error) {
	r, changed, err := s.edit(ctx, id, effect, summary, effect != change.Update, false, func(tx *db.Tx, r *row) (change.Fields, change.Fields, error) {
		old := *r
		do(tx, r)
		before, after := change.Diff(old.marks(), r.marks())
		if _, moved := after[change.State]; !moved {
			return before, after, nil
		}
		d, err := s.current(past.Inside(tx), r)
		if err == nil && d == nil {
			err = errBusy
		}
		if err == nil {
			index(tx, r, d)
		}
		return before, after, err
	})
	if err != nil {
		return One{}, err
	}
	if changed {
		return s.answer(ctx, r, "updated")
	}
	return s.answer(ctx, r, "existing")
}
