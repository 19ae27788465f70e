package task

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cairn/internal/db"
	"cairn/internal/op"
	"cairn/internal/search"
	"cairn/internal/who"
)

type listIn struct {
	UpdatedSince string `json:"updated_since" jsonschema:"time (RFC 3339) or date, inclusive" rule:"max=64"`
	Completed    *bool  `json:"completed"`
	Category     string `json:"category" rule:"enum=personal|work"`
	ExternalRef  string `json:"external_ref" rule:"min=1,max=300"`
	RefPrefix    string `json:"external_ref_prefix" rule:"min=1,max=300"`
	ProjectID    string `json:"project_id" rule:"uuid,max=300"`
	DueFrom      string `json:"due_from" jsonschema:"inclusive" rule:"date,max=64"`
	DueTo        string `json:"due_to" jsonschema:"inclusive" rule:"date,max=64"`
	Starred      *bool  `json:"starred"`
	Query        string `json:"query" jsonschema:"words, \"a phrase\", -without, this OR that" rule:"max=10000"`
	Heap         string `json:"heap" jsonschema:"id or name" rule:"max=300"`
	Limit        int    `json:"limit" jsonschema:"default 50" rule:"min=1,max=200"`
	Cursor       string `json:"cursor" rule:"max=300"`
}

type listOut struct {
	Count      int     `json:"count"`
	Tasks      []Task  `json:"tasks"`
	NextCursor *string `json:"next_cursor,omitempty"`
	Note       string  `json:"note,omitempty"`
}

// descriptionCut is how much of a description a list shows, in characters. listColumns reads one more, to know whether it was
// cut.
const descriptionCut = 300

// cut shortens s to n characters.
func cut(s *string, n int) (*string, bool) {
	if s == nil || len(*s) <= n || utf8.RuneCountInString(*s) <= n {
		return s, false
	}
	short := string([]rune(*s)[:n])
	return &short, true
}

// add puts a task on the page if it still fits.
func (o *listOut) add(page *op.Page, c *who.Caller, r *row) bool {
	t := r.task(c)
	t.Description, t.DescriptionCut = cut(t.Description, descriptionCut)
	if !page.Fits(len(o.Tasks), op.Weight(t.Text)+op.Weight(db.Text(t.Description))+op.Weight(db.Text(t.SourceURL))+op.Weight(db.Text(t.ExternalRef))+420) {
		return false
	}
	o.Tasks = append(o.Tasks, t)
	o.Count = len(o.Tasks)
	return true
}

func (s *Service) list(ctx context.Context, in listIn) (listOut, error) {
	c := who.From(ctx)
	heaps, err := c.Readable(in.Heap)
	if err != nil {
		return listOut{}, err
	}
	if in.Category != "" {
		heaps = slices.DeleteFunc(slices.Clone(heaps), func(h who.Heap) bool { return category(h.Kind) != in.Category })
	}
	if len(heaps) == 0 {
		return listOut{Tasks: []Task{}}, nil
	}
	args := db.Args{}
	where, err := in.where(c, &args)
	if err != nil {
		return listOut{}, err
	}
	if in.Query != "" {
		return s.listFound(ctx, in, heaps, where, args)
	}
	key, err := op.ReadCursor(in.Cursor, 2)
	if err != nil {
		return listOut{}, err
	}
	if key != nil {
		at, err := strconv.ParseInt(key[0], 10, 64)
		if err != nil {
			return listOut{}, op.BadCursor()
		}
		where += fmt.Sprintf(" AND (updated_at, id) < (%s, %s)", args.Add(at), args.Add(key[1]))
	}
	return s.listUpdated(ctx, op.NewPage(in.Limit), heaps, where, args, in.ProjectID != "")
}

// listUpdated reads a page newest-updated first: the keys heap by heap along their index, then the rows of the page alone.
// narrow says that a filter has an index of its own that leaves few.
func (s *Service) listUpdated(ctx context.Context, page *op.Page, heaps []who.Heap, where string, args db.Args, narrow bool) (listOut, error) {
	c, out := who.From(ctx), listOut{Tasks: make([]Task, 0, page.Limit)}
	end := `ORDER BY updated_at DESC, id DESC LIMIT ` + strconv.Itoa(page.Limit+1)
	heap := `heap`
	if narrow {
		heap = `heap || ''` // no column alone: else SQLite walks the heap's whole index, which is in order, rather than the narrow one
	}
	keys := db.Latest(heaps, func(h who.Heap) string {
		return `SELECT id, updated_at FROM task WHERE ` + heap + ` = ` + args.Add(h.ID) + ` AND trashed_at IS NULL` + where + ` ` + end
	}, strings.TrimPrefix(end, "ORDER BY "))
	rows, err := s.db.Query(ctx, `SELECT `+listColumns+` FROM (`+keys+`) AS k JOIN task t ON t.id = k.id ORDER BY k.updated_at DESC, k.id DESC`, args...)
	if err != nil {
		return out, err
	}
	var last row
	return out, each(rows, func(r *row) bool {
		if !out.add(page, c, r) {
			out.NextCursor = op.Cursor(strconv.FormatInt(last.UpdatedAt, 10), last.ID)
			return false
		}
		last = *r
		return true
	})
}

// each reads rows until f has enough.
func each(rows *sql.Rows, f func(*row) bool) error {
	defer rows.Close()
	var r row
	dest := r.listDest()
	for rows.Next() {
		r = row{}
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		if !f(&r) {
			return nil
		}
	}
	return rows.Err()
}

// where words the filters, apart from heap and query.
func (in listIn) where(c *who.Caller, args *db.Args) (string, error) {
	var b strings.Builder
	and := func(format string, v any) { fmt.Fprintf(&b, " AND "+format, args.Add(v)) }
	if in.UpdatedSince != "" {
		since, err := op.Since("updated_since", in.UpdatedSince, c.Zone)
		if err != nil {
			return "", err
		}
		and("updated_at >= %s", since)
	}
	if in.Completed != nil {
		b.WriteString(map[bool]string{true: " AND completed_at IS NOT NULL", false: " AND completed_at IS NULL"}[*in.Completed])
	}
	if in.ExternalRef != "" {
		and("external_ref = %s", in.ExternalRef)
	}
	if in.RefPrefix != "" { // not LIKE: % and _ are characters like any other
		fmt.Fprintf(&b, " AND external_ref IS NOT NULL AND substr(external_ref, 1, CAST(%s AS INTEGER)) = %s", args.Add(utf8.RuneCountInString(in.RefPrefix)), args.Add(in.RefPrefix))
	}
	if in.ProjectID != "" {
		and("project = %s", strings.ToLower(in.ProjectID))
	}
	if d := op.Day(in.DueFrom); d != "" {
		and("due_date >= %s", d)
	}
	if d := op.Day(in.DueTo); d != "" {
		and("due_date <= %s", d)
	}
	if in.Starred != nil {
		b.WriteString(map[bool]string{true: " AND starred = 1", false: " AND starred = 0"}[*in.Starred])
	}
	return b.String(), nil
}

// maxFound bounds how far into what a query finds a list looks.
const maxFound = 1 << 21

// chunk is how many found tasks are read at a time: one text for the statement cache.
const chunk = 100

// listFound reads the tasks that a query finds, best match first, as far as they pass the filters. The cursor counts how
// many found ones were passed so far.
func (s *Service) listFound(ctx context.Context, in listIn, heaps []who.Heap, where string, args db.Args) (listOut, error) {
	c, out := who.From(ctx), listOut{Tasks: []Task{}}
	key, err := op.ReadCursor(in.Cursor, 1)
	if err != nil {
		return out, err
	}
	start := 0
	if key != nil {
		if start, err = strconv.Atoi(key[0]); err != nil || start < 0 || start > maxFound {
			return out, op.BadCursor()
		}
	}
	ids := who.IDs(heaps)
	for want := start + op.NewPage(in.Limit).Limit + 1; ; want *= 4 { // filters may leave few of the best: then look further
		page := op.NewPage(in.Limit)
		res, err := s.find.Find(ctx, ids, []string{kindTask}, in.Query, want)
		if err != nil {
			return out, err
		}
		out = listOut{Tasks: []Task{}, Note: res.Note}
		full := false
		for i := min(start, len(res.Hits)); i < len(res.Hits) && !full; {
			n := min(chunk, len(res.Hits)-i)
			found, err := s.byID(ctx, res.Hits[i:i+n], where, args)
			if err != nil {
				return out, err
			}
			for _, h := range res.Hits[i : i+n] {
				if r := found[h.Thing]; r != nil && !out.add(page, c, r) {
					out.NextCursor, full = op.Cursor(strconv.Itoa(i)), true
					break
				}
				i++
			}
		}
		if full || !res.More || want > maxFound {
			return out, nil
		}
	}
}

// byID reads those of the found tasks that pass the filters.
func (s *Service) byID(ctx context.Context, hits []search.Hit, where string, args db.Args) (map[string]*row, error) {
	args = slices.Clone(args)
	ids := make([]string, len(hits))
	for i, h := range hits {
		ids[i] = h.Thing
	}
	rows, err := s.db.Query(ctx, `SELECT `+listColumns+` FROM task t WHERE id IN `+args.List(padded(ids))+` AND trashed_at IS NULL`+where, args...)
	if err != nil {
		return nil, err
	}
	found := make(map[string]*row, len(hits))
	return found, each(rows, func(r *row) bool {
		t := *r
		found[t.ID] = &t
		return true
	})
}
