package file

import (
	"context"
	"database/sql"
	"strconv"
	"strings"

	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

type listIn struct {
	BlockID string `json:"block_id" jsonschema:"of a file, or of a block whose document shows files" rule:"uuid,max=64"`
	Heap    string `json:"heap" jsonschema:"id or name" rule:"max=300"`
	Trashed bool   `json:"trashed" jsonschema:"those in the trash instead"`
	Limit   int    `json:"limit" jsonschema:"default 50" rule:"min=1,max=200"`
	Cursor  string `json:"cursor" rule:"max=300"`
}

type listOut struct {
	Count      int     `json:"count"`
	Files      []File  `json:"files"`
	NextCursor *string `json:"next_cursor,omitempty"`
}

func (s *Service) list(ctx context.Context, in listIn) (listOut, error) {
	out := listOut{Files: []File{}}
	var found []*row
	var err error
	if in.BlockID != "" {
		if in.Heap != "" || in.Trashed {
			return out, fault.Bad("block_id", "names a block, and heap or trashed all files of a heap: give one of them")
		}
		found, err = s.ofBlock(ctx, in)
	} else {
		found, err = s.ofHeaps(ctx, in)
	}
	if err != nil {
		return out, err
	}
	p := op.NewPage(in.Limit)
	for _, r := range found {
		if !p.Fits(len(out.Files), op.Weight(r.Name)+1100) {
			last := out.Files[len(out.Files)-1].ID
			for _, r := range found {
				if r.ID == last {
					out.NextCursor = op.Cursor(strconv.FormatInt(r.UpdatedAt, 10), r.ID)
				}
			}
			break
		}
		out.Files = append(out.Files, s.shown(r))
	}
	out.Count = len(out.Files)
	return out, nil
}

// after words that rows come after a cursor: newest-updated first.
func after(cursor string, args *db.Args) (string, error) {
	key, err := op.ReadCursor(cursor, 2)
	if err != nil || key == nil {
		return "", err
	}
	at, err := strconv.ParseInt(key[0], 10, 64)
	if err != nil {
		return "", op.BadCursor()
	}
	return " AND (k.updated_at, k.id) < (" + args.Add(at) + ", " + args.Add(key[1]) + ")", nil
}

func (s *Service) ofHeaps(ctx context.Context, in listIn) ([]*row, error) {
	heaps, err := who.From(ctx).Readable(in.Heap)
	if err != nil || len(heaps) == 0 {
		return nil, err
	}
	q, args, err := inHeaps(who.IDs(heaps), in)
	if err != nil {
		return nil, err
	}
	return scan(s.db.Query(ctx, q, args...))
}

// inHeaps words the page of the files of heaps, one more than fit on it. Where only the trash is looked at, its index is chosen and
// not that of types, by which SQLite would pass all that is not in it.
func inHeaps(heaps []string, in listIn) (string, db.Args, error) {
	args := db.Args{}
	cond, err := after(in.Cursor, &args)
	if err != nil {
		return "", nil, err
	}
	typed := "k.type"
	if in.Trashed {
		cond, typed = " AND k.trashed_at IS NOT NULL"+cond, "k.type || ''"
	} else {
		cond = " AND k.trashed_at IS NULL" + cond
	}
	end := ` DESC LIMIT ` + strconv.Itoa(op.NewPage(in.Limit).Limit+1)
	type part struct{ heap, typ string }
	var parts []part
	for _, h := range heaps {
		parts = append(parts, part{h, typeFile}, part{h, typeImage})
	}
	return db.Latest(parts, func(p part) string {
		return `SELECT ` + columns + from + `WHERE k.heap = ` + args.Add(p.heap) + ` AND ` + typed + ` = '` + p.typ + `'` + cond + ` ORDER BY k.updated_at DESC, k.id` + end
	}, `updated_at DESC, id`+end), args, nil
}

// ofBlock gives the file that a block is, and those that its document shows, also from the trash.
func (s *Service) ofBlock(ctx context.Context, in listIn) ([]*row, error) {
	c, heap := who.From(ctx), ""
	err := s.db.One(ctx, `SELECT heap FROM block WHERE id = $1`, []any{strings.ToLower(in.BlockID)}, &heap)
	if _, granted := c.ByID(heap); db.IsNone(err) || err == nil && !granted {
		e := fault.New(fault.NotFound, "there is no block with the id %s", in.BlockID)
		e.Field = "block_id"
		return nil, e
	}
	if err != nil {
		return nil, err
	}
	q, args, err := shownBy(who.IDs(c.Heaps), in)
	if err != nil {
		return nil, err
	}
	return scan(s.db.Query(ctx, q, args...))
}

// shownBy words the page of the files of a block, one more than fit on it. The CROSS JOIN makes SQLite begin with those few: in the
// order of the page it would pass all blocks of the heaps.
func shownBy(heaps []string, in listIn) (string, db.Args, error) {
	args := db.Args{strings.ToLower(in.BlockID)}
	cond, err := after(in.Cursor, &args)
	if err != nil {
		return "", nil, err
	}
	return `SELECT ` + columns + ` FROM (SELECT CAST($1 AS TEXT) AS id UNION SELECT to_block FROM relation WHERE from_block = $1 AND kind = 'file') o CROSS JOIN block k ` + bytesOfBlock +
		`WHERE k.id = o.id AND k.heap IN ` + args.List(heaps) + cond + ` ORDER BY k.updated_at DESC, k.id DESC LIMIT ` + strconv.Itoa(op.NewPage(in.Limit).Limit+1), args, nil
}

func scan(rows *sql.Rows, err error) (list []*row, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		r := &row{}
		if err := rows.Scan(r.dest()...); err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, rows.Err()
}
