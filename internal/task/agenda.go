package task

import (
	"context"
	"time"

	"cairn/internal/db"
)

// Entry is a task or project in one line, for those who show what is on.
type Entry struct {
	Kind, ID, Heap, Title string
	Why                   string // such as "due 2026-08-10"
	At                    int64  // last changed, in microseconds since 1970 UTC
}

// mostOnAgenda entries are given of a day or week: more than anybody does in it.
const mostOnAgenda = 50

// Today gives the open tasks of heaps that are due, overdue or chosen for a day (YYYY-MM-DD): those chosen first, then the
// longest due.
func (s *Service) Today(ctx context.Context, heaps []string, day string) ([]Entry, error) {
	args := db.Args{}
	d := args.Add(day)
	return s.entries(ctx, `SELECT 'task', id, heap, name, CASE WHEN focused_date = `+d+` THEN 'chosen for today' WHEN due_date < `+d+` THEN 'was due ' || due_date ELSE 'due today' END, updated_at
		FROM task WHERE heap IN `+args.List(heaps)+` AND trashed_at IS NULL AND completed_at IS NULL AND (focused_date = `+d+` OR due_date <= `+d+`)
		ORDER BY CASE WHEN focused_date = `+d+` THEN 0 ELSE 1 END, COALESCE(due_date, ''), id LIMIT 50`, args)
}

// Week gives the open tasks of heaps that are due in the seven days from a day on, that day among them.
func (s *Service) Week(ctx context.Context, heaps []string, day string) ([]Entry, error) {
	from, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return nil, err
	}
	args := db.Args{}
	return s.entries(ctx, `SELECT 'task', id, heap, name, 'due ' || due_date, updated_at FROM task
		WHERE heap IN `+args.List(heaps)+` AND trashed_at IS NULL AND completed_at IS NULL AND due_date >= `+args.Add(day)+` AND due_date < `+args.Add(from.AddDate(0, 0, 7).Format(time.DateOnly))+`
		ORDER BY due_date, id LIMIT 50`, args)
}

// Projects gives the projects of heaps that are neither archived nor in the trash, those changed last first.
func (s *Service) Projects(ctx context.Context, heaps []string) ([]Entry, error) {
	args := db.Args{}
	return s.entries(ctx, `SELECT 'project', id, heap, name, COALESCE(current_focus, ''), updated_at FROM project
		WHERE heap IN `+args.List(heaps)+` AND trashed_at IS NULL AND archived_at IS NULL ORDER BY updated_at DESC, id DESC LIMIT 50`, args)
}

// Open counts the open tasks of a heap.
func (s *Service) Open(ctx context.Context, heap string) (n int, err error) {
	err = s.db.One(ctx, `SELECT count(*) FROM task WHERE heap = $1 AND trashed_at IS NULL AND completed_at IS NULL`, []any{heap}, &n)
	return n, err
}

func (s *Service) entries(ctx context.Context, q string, args db.Args) ([]Entry, error) {
	rows, err := s.db.Query(ctx, q, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := make([]Entry, 0, mostOnAgenda)
	for rows.Next() {
		var e Entry
		if err := rows.Scan(&e.Kind, &e.ID, &e.Heap, &e.Title, &e.Why, &e.At); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, rows.Err()
}
