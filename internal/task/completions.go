package task

import (
	"context"
	"strconv"

	"cairn/internal/db"
	"cairn/internal/who"
)

// Completions hands out the tasks completed in heaps since a moment, newest first, after the task with this id completed at the
// moment below ("" = before that moment).
func (s *Service) Completions(ctx context.Context, heaps []who.Heap, since, below int64, id string, limit int,
	add func(id, heap, name string, project, sourceURL *string, at int64)) error {
	args := db.Args{since, below, id}
	order := `completed_at DESC, id DESC LIMIT ` + strconv.Itoa(limit)
	rows, err := s.db.Query(ctx, db.Latest(heaps, func(h who.Heap) string {
		return `SELECT id, heap, name, project, source_url, completed_at FROM task WHERE heap = ` + args.Add(h.ID) + ` AND trashed_at IS NULL AND completed_at IS NOT NULL
			AND completed_at >= $1 AND (completed_at, id) < ($2, $3) ORDER BY ` + order
	}, order), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id, heap, name string
		var project, sourceURL *string
		var at int64
		if err := rows.Scan(&id, &heap, &name, &project, &sourceURL, &at); err != nil {
			return err
		}
		add(id, heap, name, project, sourceURL, at)
	}
	return rows.Err()
}

// ProjectHeap gives the heap of a project that isn't in the trash, "" where there is none.
func (s *Service) ProjectHeap(tx *db.Tx, id string) (heap string, err error) {
	err = tx.One(`SELECT heap FROM project WHERE id = $1 AND trashed_at IS NULL`, []any{id}, &heap)
	if db.IsNone(err) {
		return "", nil
	}
	return heap, err
}
