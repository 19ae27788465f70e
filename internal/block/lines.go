package block

import (
	"context"
	"slices"

	"cairn/internal/db"
	"cairn/internal/op"
	"cairn/internal/who"
)

// Line is a block as a saved view shows it, with the properties asked for.
type Line struct {
	Listed
	CreatedAt  string     `json:"created_at"`
	Properties []Property `json:"properties"`
}

// Weight is about how many bytes the line takes in an answer.
func (l Line) Weight() int {
	n := weight(&row{Title: l.Title}, l.Tags) + 40
	for _, p := range l.Properties {
		n += op.Weight(p.Key) + op.Weight(string(p.Value)) + 40
	}
	return n
}

// Lines gives blocks that aren't in the trash in the order of ids, with their properties of these keys. The ids are those of
// blocks that the caller may see.
func (s *Service) Lines(ctx context.Context, ids, keys []string) ([]Line, error) {
	found, err := s.ordered(ctx, ids, false)
	if err != nil {
		return nil, err
	}
	tags, err := s.tagsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	lines, at := make([]Line, len(found)), map[string]int{}
	for i, r := range found {
		lines[i], at[r.ID] = Line{r.listed(tags[r.ID]), op.Stamp(r.CreatedAt), []Property{}}, i
	}
	if len(keys) == 0 {
		return lines, nil
	}
	for part := range slices.Chunk(ids, atOnce) {
		args := db.Args{}
		rows, err := s.db.Query(ctx, `SELECT block, key, type, value FROM property WHERE block IN `+args.List(padded(part))+` AND key IN `+args.List(padded(keys)), args...)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var id, value string
			var p Property
			if err := rows.Scan(&id, &p.Key, &p.Type, &value); err != nil {
				_ = rows.Close()
				return nil, err
			}
			if i, there := at[id]; there {
				p.Value = []byte(value)
				lines[i].Properties = append(lines[i].Properties, p)
			}
		}
		_ = rows.Close()
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	for _, l := range lines {
		slices.SortFunc(l.Properties, func(a, b Property) int { return slices.Index(keys, a.Key) - slices.Index(keys, b.Key) })
	}
	return lines, nil
}

// Parent finds a tag or collection of a heap by id or title; argument names it in a fault.
func (s *Service) Parent(ctx context.Context, h who.Heap, argument, name string) (Ref, error) {
	r, err := tagNamed(s.reader(ctx), []who.Heap{h}, argument, name)
	if err != nil {
		return Ref{}, err
	}
	return r.ref(), nil
}
