package block

import (
	"context"
	"database/sql"
	"strings"

	"cairn/internal/block/past"
	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/doc"
	"cairn/internal/search"
	"cairn/internal/who"
)

// rowsQuery is the part of db.DB and db.Tx that reading several rows needs.
type rowsQuery = func(q string, args ...any) (*sql.Rows, error)

func (s *Service) rows(ctx context.Context) rowsQuery {
	return func(q string, args ...any) (*sql.Rows, error) { return s.db.Query(ctx, q, args...) }
}

// lockHeap lets one write at a time change what is whose parent in a heap, so that two don't make a circle together. It comes
// before all else that a write locks.
func lockHeap(tx *db.Tx, heap string) error {
	var id string
	return tx.One(`SELECT id FROM heap WHERE id = $1`+tx.ForUpdate(), []any{heap}, &id)
}

// insert stores a new block; false where its external_ref is taken.
func insert(tx *db.Tx, r *row, d *doc.Doc, refs refs) (bool, error) {
	n, err := tx.Exec(`INSERT INTO block (id, heap, type, title, title_folded, hash, content_hash, version, external_ref, pinned, actor, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12) ON CONFLICT (heap, external_ref) WHERE external_ref IS NOT NULL DO NOTHING`,
		r.ID, r.Heap, r.Type, r.Title, who.Fold(r.Title), r.Hash, r.ContentHash, r.Version, r.ExternalRef, r.Pinned, r.Actor, tx.Now)
	if err != nil || n == 0 {
		return false, err
	}
	r.CreatedAt, r.UpdatedAt = tx.Now, tx.Now
	if err := past.Begin(tx, r.newest(), d.JSON()); err != nil {
		return false, err
	}
	return true, refs.store(tx, r)
}

// update writes what of a block can change; the document is another where st isn't nil.
func update(tx *db.Tx, old, r *row, st *step) error {
	if st != nil {
		r.Title, r.Hash, r.ContentHash, r.Version = st.To.Title(), st.To.Hash(), st.To.ContentHash(), old.Version+1
		if err := past.Advance(tx, r.newest(), st.Step); err != nil {
			return err
		}
		if err := st.refs.store(tx, r); err != nil {
			return err
		}
	}
	r.UpdatedAt = tx.Now
	_, err := tx.Exec(`UPDATE block SET title = $2, title_folded = $3, hash = $4, content_hash = $5, version = $6, pinned = $7, trashed_at = $8, updated_at = $9 WHERE id = $1`,
		r.ID, r.Title, who.Fold(r.Title), r.Hash, r.ContentHash, r.Version, r.Pinned, r.TrashedAt, r.UpdatedAt)
	return err
}

// maxTries is how often a change is worked out anew because another came first.
const maxTries = 20

// made is what a change of a document comes to; a nil document changes nothing.
type made struct {
	d       *doc.Doc
	summary string
}

// rewrite changes a block's document. work gives the new one for the newest; it runs again where another write came first, and
// what it finds wrong ends it. All that takes long happens before the write. dry leaves it at that. The documents and the row
// that come back are those of before and after.
func (s *Service) rewrite(ctx context.Context, id string, dry bool, work func(r *row, d *doc.Doc) (made, error)) (r *row, before, after *doc.Doc, err error) {
	done, err := s.turns.Take(ctx, strings.ToLower(id))
	if err != nil {
		return nil, nil, nil, err
	}
	defer done()
	c := who.From(ctx)
	for range maxTries {
		r, before, err = s.document(ctx, id)
		if err != nil {
			return nil, nil, nil, err
		}
		if err := r.writable(c, false); err != nil {
			return nil, nil, nil, err
		}
		m, err := work(r, before)
		if err != nil {
			return nil, nil, nil, err
		}
		if m.d == nil || m.d.Hash() == r.Hash {
			return r, before, before, nil
		}
		if err := checkSize(m.d); err != nil {
			return nil, nil, nil, err
		}
		if dry {
			return r, before, m.d, nil
		}
		won, err := s.write(ctx, r, before, m)
		if err != nil {
			return nil, nil, nil, err
		}
		if won {
			return r, before, m.d, nil
		}
	}
	return nil, nil, nil, errBusy
}

// write stores a document in place of before, if that is still the newest, and sets r to what the block is then.
func (s *Service) write(ctx context.Context, r *row, before *doc.Doc, m made) (won bool, err error) {
	c := who.From(ctx)
	st := plan(before, m.d)
	found := *r
	found.Title = m.d.Title()
	put := findable(&found, m.d, false)
	var now row
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		won = false
		old, err := load(ctx, tx.One, "block_id", r.ID, tx.ForEdit())
		if err != nil {
			return err
		}
		if err := old.writable(c, false); err != nil {
			return err
		}
		if old.Hash != r.Hash || old.Version != r.Version {
			return nil
		}
		now = *old
		now.Actor = c.Actor
		if err := update(tx, old, &now, &st); err != nil {
			return err
		}
		was, is := change.Diff(old.texts(), now.texts())
		change.Record(ctx, tx, change.Entry{Heap: r.Heap, Kind: kind, Thing: r.ID, Effect: change.Update, Before: was, After: is, Summary: m.summary})
		put(tx)
		won = true
		return nil
	})
	if won && err == nil {
		*r = now
		s.docs.Docs.Put(now.Hash, m.d)
	}
	return won, err
}

// edit changes a block otherwise than in its document. lock says that parents may change; do gets the block and gives the
// recorded fields before and after, none where nothing changes.
func (s *Service) edit(ctx context.Context, id, effect, summary string, trashedToo, lock bool, do func(tx *db.Tx, r *row) (before, after change.Fields, err error)) (r *row, changed bool, err error) {
	c := who.From(ctx)
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		changed = false
		if lock {
			at, err := load(ctx, tx.One, "block_id", id, "")
			if err != nil {
				return err
			}
			if err := lockHeap(tx, at.Heap); err != nil {
				return err
			}
		}
		var err error
		if r, err = load(ctx, tx.One, "block_id", id, tx.ForEdit()); err != nil {
			return err
		}
		if err := r.writable(c, trashedToo); err != nil {
			return err
		}
		old := *r
		before, after, err := do(tx, r)
		if err != nil || len(after) == 0 {
			return err
		}
		changed = true
		if err := update(tx, &old, r, nil); err != nil {
			return err
		}
		change.Record(ctx, tx, change.Entry{Heap: r.Heap, Kind: kind, Thing: r.ID, Effect: effect, Before: before, After: after, Summary: summary + " " + r.label()})
		return nil
	})
	return r, changed, err
}

// texts are the recorded fields of the document. content is a hash: the version that has it is kept.
func (r *row) texts() change.Fields {
	return change.Fields{"title": r.Title, "content": r.ContentHash}
}

// marks are the other recorded fields of a block alone.
func (r *row) marks() change.Fields {
	return change.Fields{change.State: change.StateOf(r.TrashedAt), "pinned": r.Pinned == 1}
}

// index makes a block findable, or not where it is in the trash.
func index(tx *db.Tx, r *row, d *doc.Doc) {
	if r.TrashedAt != nil {
		search.Remove(tx, r.Heap, r.ID)
		return
	}
	findable(r, d, false)(tx)
}

// findable is what makes a block findable, worked out before the write. A large document is left to be analyzed
// after it.
func findable(r *row, d *doc.Doc, fresh bool) func(tx *db.Tx) {
	if past.Large(d) {
		return func(tx *db.Tx) { search.Later(tx, r.Heap, r.ID, kind) }
	}
	what := searchable(r, d)
	what.Fresh = fresh
	return search.Analyze(what).Put
}
