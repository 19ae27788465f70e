package block

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"cairn/internal/block/filter"
	"cairn/internal/block/past"
	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/doc"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

// Kinds and origins of relations.
const (
	relTag     = "tag"
	relMention = "mention"
	relFile    = "file"

	bySet     = "set"
	byContent = "content"
)

// maxRelations is how many tags, or links set, one block may have.
const maxRelations = 200

// refs is what a document refers to, where that isn't what the one before it did.
type refs struct {
	changed bool
	ids     map[string][]string // by kind
}

func refIDs(d *doc.Doc) map[string][]string {
	ids, seen := map[string][]string{relMention: nil, relFile: nil}, map[string]bool{}
	for _, r := range d.Refs() {
		k := relMention
		if r.Kind == "file" {
			k = relFile
		}
		if !seen[k+r.ID] {
			seen[k+r.ID] = true
			ids[k] = append(ids[k], r.ID)
		}
	}
	return ids
}

func newRefs(from, to *doc.Doc) refs {
	a, b := refIDs(from), refIDs(to)
	for _, k := range []string{relMention, relFile} {
		slices.Sort(a[k])
		slices.Sort(b[k])
	}
	return refs{!slices.Equal(a[relMention], b[relMention]) || !slices.Equal(a[relFile], b[relFile]), b}
}

// atOnce is how many relations one statement writes.
const atOnce = 200

// store keeps what is referred to as relations: blocks of the same heap, and files.
func (rs refs) store(tx *db.Tx, r *row) error {
	if !rs.changed {
		return nil
	}
	was, err := column(tx.Query, `DELETE FROM relation WHERE from_block = $1 AND origin = 'content' RETURNING to_block`, r.ID)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(rs.ids[relMention], atOnce) {
		args := db.Args{r.ID, tx.Now, r.Heap}
		if _, err := tx.Exec(`INSERT INTO relation (from_block, to_block, kind, origin, at) SELECT CAST($1 AS TEXT), b.id, 'mention', 'content', CAST($2 AS BIGINT)
			FROM block b WHERE b.heap = $3 AND b.id <> $1 AND b.id IN `+args.List(padded(part))+tx.ForReference(), args...); err != nil {
			return err
		}
	}
	for _, id := range rs.ids[relFile] {
		if _, err := tx.Exec(`INSERT INTO relation (from_block, to_block, kind, origin, at) VALUES ($1, $2, 'file', 'content', $3)`, r.ID, id, tx.Now); err != nil {
			return err
		}
	}
	return links(tx, r.ID, was, slices.Concat(rs.ids[relMention], rs.ids[relFile]))
}

// links keeps what the filter unlinked reads, after relations of a block came and went.
func links(tx *db.Tx, id string, was, is []string) error {
	if len(is) > 0 {
		if err := filter.Linked(tx, append(slices.Clone(is), id)...); err != nil {
			return err
		}
	}
	gone := slices.DeleteFunc(was, func(to string) bool { return slices.Contains(is, to) })
	if len(gone) == 0 {
		return nil
	}
	return filter.Unlinked(tx, append(gone, id)...)
}

// padded is db.Padded to the lengths of this package.
func padded(ids []string) []string { return db.Padded(ids, 20, atOnce) }

// set gives the ids that a block is related to by relations that were set, sorted.
func setTo(rows rowsQuery, id, relKind string) ([]string, error) {
	return column(rows, `SELECT to_block FROM relation WHERE from_block = $1 AND kind = $2 AND origin = 'set' ORDER BY to_block`, id, relKind)
}

// column reads rows of one text each, sorted; an empty list, not nil, where there are none.
func column(rows rowsQuery, q string, args ...any) ([]string, error) {
	list, err := db.Column(rows(q, args...))
	slices.Sort(list)
	return append([]string{}, list...), err
}

// relate sets what a block is related to: exactly these, checked already.
func relate(tx *db.Tx, id, relKind string, to []string) error {
	was, err := column(tx.Query, `DELETE FROM relation WHERE from_block = $1 AND kind = $2 AND origin = 'set' RETURNING to_block`, id, relKind)
	if err != nil {
		return err
	}
	for _, t := range to {
		if _, err := tx.Exec(`INSERT INTO relation (from_block, to_block, kind, origin, at) VALUES ($1, $2, $3, 'set', $4)`, id, t, relKind, tx.Now); err != nil {
			return err
		}
	}
	return links(tx, id, was, to)
}

// mayRelate refuses a relation that can't be: to another heap, to what is no tag, to the block itself, or around in a circle.
func mayRelate(tx *db.Tx, r, to *row, relKind string) error {
	switch {
	case to.Heap != r.Heap:
		return fault.New(fault.Conflict, "the blocks lie in different heaps: a relation stays within one")
	case to.ID == r.ID:
		return fault.Bad("to", "is the block itself")
	case relKind == relMention:
		return nil
	case to.Type != tag && to.Type != collection:
		return fault.Bad("to", "is a %s: only a tag or a collection can be a parent", to.Type)
	}
	var n int
	err := tx.One(`WITH RECURSIVE up(id) AS (SELECT CAST($1 AS TEXT) UNION SELECT r.to_block FROM up JOIN relation r ON r.from_block = up.id AND r.kind = 'tag')
		SELECT count(*) FROM up WHERE id = $2`, []any{to.ID, r.ID}, &n)
	if err == nil && n > 0 {
		err = fault.New(fault.Conflict, "%s stands below the block already: tagging would make a circle", to.label())
	}
	return err
}

type relateIn struct {
	From string `json:"from" jsonschema:"block that gets the tag or has the link" rule:"required,uuid,max=64"`
	To   string `json:"to" jsonschema:"tag, collection, or block linked to" rule:"required,uuid,max=64"`
	Kind string `json:"kind" rule:"required,enum=tag|mention"`
}

type relateOut struct {
	ID     string `json:"id"`
	Result string `json:"result"` // created, existing, removed, or absent (there was none)
	From   Ref    `json:"from"`
	To     Ref    `json:"to"`
	Kind   string `json:"kind"`
	Hash   string `json:"hash"`
}

func field(relKind string) string {
	if relKind == relTag {
		return "tags"
	}
	return "links"
}

func (s *Service) addRelation(ctx context.Context, in relateIn) (relateOut, error) {
	return s.changeRelation(ctx, in, "created", "existing", "Related", func(tx *db.Tx, r, to *row, have []string) ([]string, error) {
		if slices.Contains(have, to.ID) {
			return have, nil
		}
		if to.TrashedAt != nil {
			return nil, fault.New(fault.Conflict, "%s is in the trash: restore_block first", to.label())
		}
		if len(have) >= maxRelations {
			return nil, fault.New(fault.Conflict, "the block has %d %s already, the most there may be", len(have), field(in.Kind))
		}
		if err := mayRelate(tx, r, to, in.Kind); err != nil {
			return nil, err
		}
		return append(slices.Clone(have), to.ID), nil
	})
}

func (s *Service) removeRelation(ctx context.Context, in relateIn) (relateOut, error) {
	return s.changeRelation(ctx, in, "removed", "absent", "Took a relation from", func(tx *db.Tx, r, to *row, have []string) ([]string, error) {
		if i := slices.Index(have, to.ID); i >= 0 {
			return slices.Delete(slices.Clone(have), i, i+1), nil
		}
		var n int
		err := tx.One(`SELECT count(*) FROM relation WHERE from_block = $1 AND to_block = $2 AND kind = $3`, []any{r.ID, to.ID, in.Kind}, &n)
		if err == nil && n > 0 {
			err = fault.New(fault.Conflict, "the block mentions %s in its document: patch_document takes that away", to.label())
		}
		return have, err
	})
}

func (s *Service) changeRelation(ctx context.Context, in relateIn, done, not, summary string, do func(tx *db.Tx, r, to *row, have []string) ([]string, error)) (relateOut, error) {
	var to *row
	r, changed, err := s.edit(ctx, in.From, change.Update, summary, false, true, func(tx *db.Tx, r *row) (before, after change.Fields, err error) {
		if to, err = load(ctx, tx.One, "to", in.To, ""); err != nil {
			return nil, nil, err
		}
		have, err := setTo(tx.Query, r.ID, in.Kind)
		if err != nil {
			return nil, nil, err
		}
		now, err := do(tx, r, to, have)
		if err != nil {
			return nil, nil, err
		}
		slices.Sort(now)
		if slices.Equal(have, now) {
			return nil, nil, nil
		}
		return change.Fields{field(in.Kind): have}, change.Fields{field(in.Kind): now}, relate(tx, r.ID, in.Kind, now)
	})
	if err != nil {
		return relateOut{}, err
	}
	out := relateOut{ID: r.ID, Result: not, From: r.ref(), To: to.ref(), Kind: in.Kind, Hash: r.Hash}
	if changed {
		out.Result = done
	}
	return out, nil
}

func (r *row) ref() Ref { return Ref{r.ID, r.Type, r.Title} }

// Relation is one end of a relation, seen from a block.
type Relation struct {
	Direction string `json:"direction"` // out: from the block asked for; in: to it
	Kind      string `json:"kind"`
	Origin    string `json:"origin"` // set, or content: the document mentions it
	Block     Ref    `json:"block"`
}

type relationsIn struct {
	BlockID   string `json:"block_id" rule:"required,uuid,max=64"`
	Direction string `json:"direction" jsonschema:"out: its tags and what it mentions; in: its children and backlinks; default both" rule:"enum=in|out|both"`
	Kind      string `json:"kind" rule:"enum=tag|mention"`
	Limit     int    `json:"limit" jsonschema:"default 50" rule:"min=1,max=200"`
	Cursor    string `json:"cursor" rule:"max=300"`
}

type relationsOut struct {
	Count      int        `json:"count"`
	Relations  []Relation `json:"relations"`
	NextCursor *string    `json:"next_cursor,omitempty"`
}

func (s *Service) listRelations(ctx context.Context, in relationsIn) (relationsOut, error) {
	out := relationsOut{Relations: []Relation{}}
	r, err := load(ctx, s.one(ctx), "block_id", in.BlockID, "")
	if err != nil {
		return out, err
	}
	key, err := op.ReadCursor(in.Cursor, 4)
	if err != nil {
		return out, err
	}
	if key == nil {
		key = []string{"", "", "", ""}
	}
	page := op.NewPage(in.Limit)
	for _, direction := range []string{"in", "out"} {
		if in.Direction != "" && in.Direction != "both" && in.Direction != direction || direction < key[0] {
			continue
		}
		after := []string{"", "", ""}
		if key[0] == direction {
			after = key[1:]
		}
		list, err := s.relations(ctx, r, direction, in.Kind, after, page.Limit+1)
		if err != nil {
			return out, err
		}
		for _, l := range list {
			if !page.Fits(len(out.Relations), op.Weight(l.Block.Title)+220) {
				last := out.Relations[len(out.Relations)-1]
				out.NextCursor = op.Cursor(last.Direction, last.Kind, last.Block.ID, last.Origin)
				return out, nil
			}
			out.Relations = append(out.Relations, l)
			out.Count++
		}
	}
	return out, nil
}

// relations reads relations of a block in one direction, in the order of their kinds and ids, after the keys given. Ends in the
// trash are left out.
func (s *Service) relations(ctx context.Context, r *row, direction, relKind string, after []string, limit int) ([]Relation, error) {
	mine, other := "to_block", "from_block"
	if direction == "out" {
		mine, other = other, mine
	}
	args := db.Args{r.ID, r.Heap}
	cond := ""
	if relKind != "" {
		cond = " AND r.kind = " + args.Add(relKind)
	}
	q := fmt.Sprintf(`SELECT r.kind, r.origin, b.id, b.type, b.title FROM relation r JOIN block b ON b.id = r.%s WHERE r.%s = $1 AND b.heap = $2 AND b.trashed_at IS NULL
		AND r.kind <> 'file'%s AND (r.kind, r.%s, r.origin) > (%s, %s, %s) ORDER BY r.kind, r.%s, r.origin LIMIT %d`,
		other, mine, cond, other, args.Add(after[0]), args.Add(after[1]), args.Add(after[2]), other, limit)
	rows, err := s.db.Query(ctx, q, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []Relation
	for rows.Next() {
		l := Relation{Direction: direction}
		if err := rows.Scan(&l.Kind, &l.Origin, &l.Block.ID, &l.Block.Type, &l.Block.Title); err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	return list, rows.Err()
}

// tagsOf gives the parents of blocks, by the blocks' ids, in the order of their titles. Those in the trash are left out.
func (s *Service) tagsOf(ctx context.Context, ids []string) (map[string][]Ref, error) {
	tags := map[string][]Ref{}
	for part := range slices.Chunk(ids, atOnce) {
		args := db.Args{}
		rows, err := s.db.Query(ctx, `SELECT r.from_block, b.id, b.type, b.title FROM relation r JOIN block b ON b.id = r.to_block
			WHERE r.kind = 'tag' AND b.trashed_at IS NULL AND r.from_block IN `+args.List(padded(part)), args...)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var id string
			var t Ref
			if err := rows.Scan(&id, &t.ID, &t.Type, &t.Title); err != nil {
				_ = rows.Close()
				return nil, err
			}
			tags[id] = append(tags[id], t)
		}
		_ = rows.Close()
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	for _, l := range tags {
		slices.SortFunc(l, func(a, b Ref) int { return strings.Compare(a.Title+"\x00"+a.ID, b.Title+"\x00"+b.ID) })
	}
	return tags, nil
}

// tagNamed finds a tag or collection by id or title in heaps.
func tagNamed(in past.Reader, heaps []who.Heap, argument, name string) (*row, error) {
	args := db.Args{strings.ToLower(strings.TrimSpace(name)), who.Fold(name)}
	rows, err := in.Rows(`SELECT `+columns+` FROM block b WHERE b.heap IN `+args.List(who.IDs(heaps))+` AND b.type IN ('tag', 'collection') AND b.trashed_at IS NULL
		AND (b.id = $1 OR b.title_folded = $2) ORDER BY b.created_at, b.id LIMIT 20`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []*row
	for rows.Next() {
		r := &row{}
		if err := rows.Scan(r.dest()...); err != nil {
			return nil, err
		}
		if r.ID == args[0] {
			return r, nil
		}
		found = append(found, r)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	switch len(found) {
	case 0:
		e := fault.New(fault.NotFound, "there is no tag or collection %s: list_tags shows those there are, create_block makes one (type tag)", change.Brief(name))
		e.Field = argument
		return nil, e
	case 1:
		return found[0], nil
	}
	candidates := make([]map[string]string, len(found))
	for i, r := range found {
		candidates[i] = map[string]string{"id": r.ID, "title": r.Title, "heap": r.Heap}
	}
	e := fault.New(fault.Conflict, "%d tags are called %q: give the id of one", len(found), name)
	e.Field = argument
	return nil, e.With("candidates", candidates)
}
