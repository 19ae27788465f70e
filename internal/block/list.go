package block

import (
	"context"
	"slices"
	"strconv"

	"cairn/internal/block/filter"
	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/op"
	"cairn/internal/search"
	"cairn/internal/who"
)

type narrow struct {
	Type   string `json:"type" rule:"enum=note|tag|collection|file|image"`
	Tag    string `json:"tag" jsonschema:"id or title: only blocks right below it" rule:"min=1,max=300"`
	Heap   string `json:"heap" jsonschema:"id or name" rule:"max=300"`
	Limit  int    `json:"limit" jsonschema:"default 50" rule:"min=1,max=200"`
	Cursor string `json:"cursor" rule:"max=300"`
}

type listIn struct {
	narrow
	Pinned   bool `json:"pinned" jsonschema:"only those pinned"`
	Unlinked bool `json:"unlinked" jsonschema:"only those without a tag, a link or a backlink"`
	Trashed  bool `json:"trashed" jsonschema:"those in the trash instead"`

	Properties []filter.Condition `json:"properties" jsonschema:"conditions that all must be met" rule:"max=10"`
}

type searchIn struct {
	Query string `json:"query" jsonschema:"words, \"a phrase\", -without, this OR that" rule:"required,max=10000"`
	narrow
}

// Listed is a block in a list.
type Listed struct {
	ID        string `json:"id"`
	Heap      string `json:"heap"`
	Type      string `json:"type"`
	Title     string `json:"title"`
	Tags      []Ref  `json:"tags"`
	Pinned    bool   `json:"pinned"`
	State     string `json:"state"`
	Hash      string `json:"hash"`
	UpdatedAt string `json:"updated_at"`
}

type listOut struct {
	Count      int      `json:"count"`
	Blocks     []Listed `json:"blocks"`
	NextCursor *string  `json:"next_cursor,omitempty"`
	Note       string   `json:"note,omitempty"`
}

func (r *row) listed(tags []Ref) Listed {
	return Listed{ID: r.ID, Heap: r.Heap, Type: r.Type, Title: r.Title, Tags: append([]Ref{}, tags...), Pinned: r.Pinned == 1,
		State: change.StateOf(r.TrashedAt), Hash: r.Hash, UpdatedAt: op.Stamp(r.UpdatedAt)}
}

func weight(r *row, tags []Ref) int {
	n := op.Weight(r.Title) + 330
	for _, t := range tags {
		n += op.Weight(t.Title) + 90
	}
	return n
}

func (s *Service) list(ctx context.Context, in listIn) (listOut, error) {
	out := listOut{Blocks: []Listed{}}
	heaps, err := who.From(ctx).Readable(in.Heap)
	if err != nil || len(heaps) == 0 {
		return out, err
	}
	q := filter.Query{Type: in.Type, Pinned: in.Pinned, Unlinked: in.Unlinked, Trashed: in.Trashed}
	if in.Tag != "" {
		t, err := tagNamed(s.reader(ctx), heaps, "tag", in.Tag)
		if err != nil {
			return out, err
		}
		heaps, q.Tags = heapOf(heaps, t.Heap), []string{t.ID}
	}
	for i, c := range in.Properties {
		if c, err = c.Check("properties[" + strconv.Itoa(i) + "]"); err != nil {
			return out, err
		}
		q.Properties = append(q.Properties, c)
	}
	return out, s.newest(ctx, &out, q, heaps, in.Limit, in.Cursor)
}

func heapOf(heaps []who.Heap, id string) []who.Heap {
	return slices.DeleteFunc(slices.Clone(heaps), func(h who.Heap) bool { return h.ID != id })
}

// newest puts a page of blocks into an answer, newest-updated first.
func (s *Service) newest(ctx context.Context, out *listOut, q filter.Query, heaps []who.Heap, limit int, cursor string) error {
	after, err := op.ReadCursor(cursor, 2)
	if err != nil {
		return err
	}
	page, err := filter.Newest(ctx, s.db, who.IDs(heaps), q, after, op.NewPage(limit).Limit)
	if err != nil {
		return err
	}
	if page.Next != nil {
		out.NextCursor = op.Cursor(page.Next...)
	}
	ids, places := make([]string, len(page.Rows)), map[string][]string{}
	for i, r := range page.Rows {
		ids[i], places[r.ID] = r.ID, r.At
	}
	found, err := s.ordered(ctx, ids, q.Trashed)
	if err != nil {
		return err
	}
	return s.fill(ctx, limit, out, found, func(r *row) *string { return op.Cursor(places[r.ID]...) })
}

// ordered reads blocks in the order of ids; those that are gone by now are left out.
func (s *Service) ordered(ctx context.Context, ids []string, trashed bool) ([]*row, error) {
	rows, err := s.byIDs(ctx, ids, map[bool]string{true: " AND b.trashed_at IS NOT NULL", false: live}[trashed], nil)
	at := make(map[string]int, len(ids))
	for i, id := range ids {
		at[id] = i
	}
	slices.SortFunc(rows, func(a, b *row) int { return at[a.ID] - at[b.ID] })
	return rows, err
}

// live is what blocks that aren't in the trash meet.
const live = " AND b.trashed_at IS NULL"

func scan(rows rowsQuery, q string, args ...any) ([]*row, error) {
	res, err := rows(q, args...)
	if err != nil {
		return nil, err
	}
	defer res.Close()
	var found []*row
	for res.Next() {
		r := &row{}
		if err := res.Scan(r.dest()...); err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	return found, res.Err()
}

// fill puts rows with their tags into an answer, as many as fit; cursor names the place after a row.
func (s *Service) fill(ctx context.Context, limit int, out *listOut, found []*row, cursor func(r *row) *string) error {
	ids := make([]string, len(found))
	for i, r := range found {
		ids[i] = r.ID
	}
	tags, err := s.tagsOf(ctx, ids)
	if err != nil {
		return err
	}
	page := op.NewPage(limit)
	for i, r := range found {
		if !page.Fits(i, weight(r, tags[r.ID])) {
			out.NextCursor = cursor(found[i-1])
			break
		}
		out.Blocks = append(out.Blocks, r.listed(tags[r.ID]))
	}
	out.Count = len(out.Blocks)
	return nil
}

// maxFound bounds how far into what a query finds a list looks.
const maxFound = 1 << 21

// search reads the blocks that a query finds, best match first, as far as they pass the filters. The cursor counts how many found
// ones were passed so far.
func (s *Service) search(ctx context.Context, in searchIn) (listOut, error) {
	heaps, err := who.From(ctx).Readable(in.Heap)
	if err != nil || len(heaps) == 0 {
		return listOut{Blocks: []Listed{}}, err
	}
	args, cond := db.Args{}, live
	if in.Type != "" {
		cond += " AND b.type = " + args.Add(in.Type)
	}
	key, err := op.ReadCursor(in.Cursor, 1)
	if err != nil {
		return listOut{}, err
	}
	start := 0
	if key != nil {
		if start, err = strconv.Atoi(key[0]); err != nil || start < 0 || start > maxFound {
			return listOut{}, op.BadCursor()
		}
	}
	limit := op.NewPage(in.Limit).Limit
	want := start + limit + 1
	find := s.find.Find
	if in.Tag != "" {
		below, err := s.below(ctx, heaps, in.Tag)
		if err != nil {
			return listOut{Blocks: []Listed{}}, err
		}
		find = func(ctx context.Context, heaps, kinds []string, query string, limit int) (search.Result, error) {
			return s.find.FindAmong(ctx, heaps, kinds, below, query, limit)
		}
	}
	for ; ; want *= 8 { // filters may leave few of the best: then look further
		res, err := find(ctx, who.IDs(heaps), []string{kind}, in.Query, want)
		if err != nil {
			return listOut{}, err
		}
		out := listOut{Blocks: []Listed{}, Note: res.Note}
		found, place, err := s.passing(ctx, res.Hits, start, limit+1, cond, args)
		if err != nil {
			return out, err
		}
		if len(found) <= limit && res.More && want <= maxFound {
			continue
		}
		if len(found) > limit {
			found, out.NextCursor = found[:limit], op.Cursor(strconv.Itoa(place[limit]))
		}
		return out, s.fill(ctx, in.Limit, &out, found, func(r *row) *string { return op.Cursor(strconv.Itoa(place[slices.Index(found, r)+1])) })
	}
}

// below gives the ids of the blocks right below a tag.
func (s *Service) below(ctx context.Context, heaps []who.Heap, name string) ([]string, error) {
	t, err := tagNamed(s.reader(ctx), heaps, "tag", name)
	if err != nil {
		return nil, err
	}
	return column(s.rows(ctx), `SELECT from_block FROM relation WHERE to_block = $1 AND kind = 'tag'`, t.ID)
}

// passing gives the first limit of the hits from start on that pass the filters, with their places among the hits.
func (s *Service) passing(ctx context.Context, hits []search.Hit, start, limit int, cond string, args db.Args) (found []*row, place []int, err error) {
	for i := min(start, len(hits)); i < len(hits) && len(found) < limit; {
		var ids []string
		var at []int
		for ; i < len(hits) && len(ids) < min(atOnce, limit); i++ {
			ids, at = append(ids, hits[i].Thing), append(at, i)
		}
		rows, err := s.byIDs(ctx, ids, cond, args)
		if err != nil {
			return nil, nil, err
		}
		by := make(map[string]*row, len(rows))
		for _, r := range rows {
			by[r.ID] = r
		}
		for j, id := range ids {
			if r := by[id]; r != nil && len(found) < limit {
				found, place = append(found, r), append(place, at[j])
			}
		}
	}
	return found, place, nil
}

// byIDs reads those of the blocks that are there and pass cond.
func (s *Service) byIDs(ctx context.Context, ids []string, cond string, args db.Args) (found []*row, err error) {
	for part := range slices.Chunk(ids, atOnce) {
		args := slices.Clone(args)
		list, err := scan(s.rows(ctx), `SELECT `+columns+` FROM block b WHERE b.id IN `+args.List(padded(part))+cond, args...)
		if err != nil {
			return nil, err
		}
		found = append(found, list...)
	}
	return found, nil
}

type tagsIn struct {
	Query  string `json:"query" jsonschema:"part of the title" rule:"max=300"`
	Heap   string `json:"heap" jsonschema:"id or name" rule:"max=300"`
	Limit  int    `json:"limit" jsonschema:"default 50" rule:"min=1,max=200"`
	Cursor string `json:"cursor" rule:"max=300"`
}

// Tag is a tag with its own parents, and how many blocks are right below it.
type Tag struct {
	ID       string `json:"id"`
	Heap     string `json:"heap"`
	Title    string `json:"title"`
	Parents  []Ref  `json:"parents"`
	Children int    `json:"children"`
}

type tagsOut struct {
	Count      int     `json:"count"`
	Tags       []Tag   `json:"tags"`
	NextCursor *string `json:"next_cursor,omitempty"`
}

func (s *Service) listTags(ctx context.Context, in tagsIn) (tagsOut, error) {
	out := tagsOut{Tags: []Tag{}}
	heaps, err := who.From(ctx).Readable(in.Heap)
	if err != nil || len(heaps) == 0 {
		return out, err
	}
	lines := listOut{}
	if err := s.newest(ctx, &lines, filter.Query{Type: tag, Title: who.Fold(in.Query)}, heaps, in.Limit, in.Cursor); err != nil {
		return out, err
	}
	out.NextCursor = lines.NextCursor
	ids := make([]string, len(lines.Blocks))
	for i, l := range lines.Blocks {
		ids[i] = l.ID
	}
	children, err := filter.Children(ctx, s.db, who.IDs(heaps), ids)
	for _, l := range lines.Blocks {
		out.Tags = append(out.Tags, Tag{ID: l.ID, Heap: l.Heap, Title: l.Title, Parents: l.Tags, Children: children[l.ID]})
	}
	out.Count = len(out.Tags)
	return out, err
}

// Count gives how many notes a heap holds.
func (s *Service) Count(ctx context.Context, heap string) (n int, err error) {
	err = s.db.One(ctx, `SELECT count(*) FROM block WHERE heap = $1 AND type = 'note' AND trashed_at IS NULL`, []any{heap}, &n)
	return n, err
}
