package memory

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"cairn/internal/db"
)

// inForce reads what stands in some heaps, as far as it is asked for: current objects that are neither private nor
// contradicted by a correction. An object is read once.
type inForce struct {
	s      *Service
	ctx    context.Context //nolint:containedctx // it lives as long as the call
	heaps  []string
	guards guards
	told   bool               // guards are read
	known  map[string]*object // by id; nil = it doesn't stand
	// newestOf holds what newest would give of as many as are asked for, by the first of the kinds, where it was read already.
	newestOf map[string][]object
}

func (s *Service) inForce(ctx context.Context, heaps []string) *inForce {
	return &inForce{s: s, ctx: ctx, heaps: heaps, known: map[string]*object{}}
}

// holds tells whether an object stands.
func (f *inForce) holds(o *object) (bool, error) {
	if !f.told {
		args := db.Args{}
		found, err := f.s.objects(f.ctx, correctionsIn(args.List(f.heaps)), args)
		if err != nil {
			return false, err
		}
		f.guards, f.told = guardsOf(found), true
	}
	return o.Status == current && o.Private == 0 && o.TrashedAt == nil && slices.Contains(f.heaps, o.Heap) &&
		f.guards.against(o.Heap, o.Kind, o.SubjectFolded, o.Statement, o.At) == "", nil
}

// manyIDs is how many ids a statement names.
const manyIDs = 100

// of gives those objects of some ids that stand, by id.
func (f *inForce) of(ids []string) (map[string]*object, error) {
	unknown := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { _, ok := f.known[id]; return ok })
	for part := range slices.Chunk(unknown, manyIDs) {
		args := db.Args{}
		list := slices.Clone(part)
		for len(list) < manyIDs { // one text of the statement, not a hundred
			list = append(list, part[0])
		}
		// Heaps and status are looked at here: named in the statement, they lead SQLite along an index over all that stands.
		found, err := f.s.objects(f.ctx, `o.id IN `+args.List(list), args)
		if err != nil {
			return nil, err
		}
		for _, id := range part {
			f.known[id] = nil
		}
		for i := range found {
			ok, err := f.holds(&found[i])
			if err != nil {
				return nil, err
			}
			if ok {
				f.known[found[i].ID] = &found[i]
			}
		}
	}
	out := map[string]*object{}
	for _, id := range ids {
		if o := f.known[id]; o != nil {
			out[id] = o
		}
	}
	return out, nil
}

// newest gives the n newest of some kinds, those of the same moment by id.
func (f *inForce) newest(n int, kinds ...string) (list []object, err error) {
	var last *object
	for len(list) < n && len(f.heaps) > 0 {
		args := db.Args{}
		of, before := args.List(kinds), ""
		if last != nil {
			before = ` AND (o.at, o.id) < (` + args.Add(last.At) + `, ` + args.Add(last.ID) + `)`
		}
		limit := ` LIMIT ` + strconv.Itoa(n)
		q := db.Latest(f.heaps, func(heap string) string {
			return `SELECT ` + objectColumns + ` FROM context o WHERE o.heap = ` + args.Add(heap) + ` AND o.status = '` + current + `' AND o.private = 0 AND o.trashed_at IS NULL AND o.kind IN ` + of + before +
				` ORDER BY o.at DESC, o.id DESC` + limit
		}, `at DESC, id DESC`+limit)
		page, err := scanObjects(f.s.db.Query(f.ctx, q, args...))
		if err != nil {
			return nil, err
		}
		for i := range page {
			ok, err := f.holds(&page[i])
			if err != nil {
				return nil, err
			}
			if ok && len(list) < n {
				list = append(list, page[i])
			}
		}
		if len(page) < n {
			break
		}
		last = &page[len(page)-1]
	}
	return list, nil
}

// best gives at most n of some kinds: those ranked first, by their rank, then the newest.
func (f *inForce) best(n int, rank map[string]int, kinds ...string) ([]object, error) {
	ids := make([]string, 0, len(rank))
	for id := range rank {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(rank[a], rank[b]) })
	ranked, err := f.of(ids)
	if err != nil {
		return nil, err
	}
	var list []object
	for _, id := range ids {
		if o := ranked[id]; o != nil && slices.Contains(kinds, o.Kind) && len(list) < n {
			list = append(list, *o)
		}
	}
	if len(list) == n {
		return list, nil
	}
	newest, ok := f.newestOf[kinds[0]]
	if !ok {
		if newest, err = f.newest(n, kinds...); err != nil {
			return nil, err
		}
	}
	for _, o := range newest {
		if _, ok := rank[o.ID]; !ok && len(list) < n {
			list = append(list, o)
		}
	}
	return list, nil
}
