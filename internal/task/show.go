package task

import (
	"context"
	"slices"
	"strings"

	"cairn/internal/db"
	"cairn/internal/meaning"
	"cairn/internal/op"
	"cairn/internal/search"
	"cairn/internal/who"
)

// Sources are the kinds of thing that search and fetch show.
func (s *Service) Sources() []search.Source {
	return []search.Source{
		{Kind: kindTask, Area: area, Cards: s.cards("task", "tasks"), Page: s.taskPage, Text: s.taskText},
		{Kind: kindProject, Area: area, Cards: s.cards("project", "projects"), Page: s.projectPage, Text: s.projectText},
	}
}

// taskText and projectText give what of a task and a project is embedded.
func (s *Service) taskText(ctx context.Context, id string) (meaning.Text, bool, error) {
	t := &row{}
	err := s.db.One(ctx, `SELECT name, description, work_notes FROM task WHERE id = $1`, []any{id}, &t.Name, &t.Description, &t.WorkNotes)
	return embedded(t.doc(), err)
}

func (s *Service) projectText(ctx context.Context, id string) (meaning.Text, bool, error) {
	p := &project{}
	err := s.db.One(ctx, `SELECT name, current_focus FROM project WHERE id = $1`, []any{id}, &p.Name, &p.Focus)
	return embedded(p.doc(), err)
}

func embedded(d search.Doc, err error) (meaning.Text, bool, error) {
	if db.IsNone(err) {
		return meaning.Text{}, false, nil
	}
	return meaning.Text{Title: d.Title, Body: d.Body}, err == nil, err
}

// cards reads the lines of tasks or projects, whose links begin with path.
func (s *Service) cards(table, path string) func(ctx context.Context, ids []string) (map[string]search.Card, error) {
	return func(ctx context.Context, ids []string) (map[string]search.Card, error) {
		c, cards := who.From(ctx), map[string]search.Card{}
		for part := range slices.Chunk(ids, chunk) {
			args := db.Args{}
			rows, err := s.db.Query(ctx, `SELECT id, heap, name FROM `+table+` WHERE trashed_at IS NULL AND id IN `+args.List(padded(part)), args...)
			if err != nil {
				return nil, err
			}
			for rows.Next() {
				var id, heap, name string
				if err := rows.Scan(&id, &heap, &name); err != nil {
					_ = rows.Close()
					return nil, err
				}
				if _, granted := c.ByID(heap); granted {
					cards[id] = search.Card{ID: id, Title: name, URL: s.url.JoinPath(path, id).String()}
				}
			}
			err = rows.Err()
			_ = rows.Close()
			if err != nil {
				return nil, err
			}
		}
		return cards, nil
	}
}

// padded is db.Padded to the lengths of this package.
func padded(ids []string) []string { return db.Padded(ids, 20, chunk) }

func (s *Service) visibleTask(ctx context.Context, id string) (*row, bool, error) {
	t := &row{}
	err := s.db.One(ctx, `SELECT `+columns+` FROM task t WHERE t.id = $1 AND t.trashed_at IS NULL`, []any{strings.ToLower(id)}, t.dest()...)
	if db.IsNone(err) {
		return nil, false, nil
	}
	_, granted := who.From(ctx).ByID(t.Heap)
	return t, err == nil && granted, err
}

func (s *Service) taskPage(ctx context.Context, id string) (search.Page, bool, error) {
	t, ok, err := s.visibleTask(ctx, id)
	if !ok {
		return search.Page{}, false, err
	}
	var parts []string
	for _, p := range []*string{&t.Name, t.Description, t.WorkNotes} {
		if db.Text(p) != "" {
			parts = append(parts, *p)
		}
	}
	whole := t.whole(who.From(ctx))
	return search.Page{Card: search.Card{ID: t.ID, Title: t.Name, URL: s.url.JoinPath("tasks", t.ID).String()}, Text: strings.Join(parts, "\n\n"),
		Metadata: map[string]any{"kind": kindTask, "category": whole.Category, "completed": whole.Completed, "due_date": t.DueDate, "source_url": t.SourceURL, "project_id": t.Project, "updated_at": whole.UpdatedAt}}, true, nil
}

func (s *Service) visibleProject(ctx context.Context, id string) (*project, bool, error) {
	p := &project{}
	err := s.db.One(ctx, `SELECT `+projectColumns+` FROM project p WHERE p.id = $1 AND p.trashed_at IS NULL`, []any{strings.ToLower(id)}, p.dest()...)
	if db.IsNone(err) {
		return nil, false, nil
	}
	_, granted := who.From(ctx).ByID(p.Heap)
	return p, err == nil && granted, err
}

func (s *Service) projectPage(ctx context.Context, id string) (search.Page, bool, error) {
	p, ok, err := s.visibleProject(ctx, id)
	if !ok {
		return search.Page{}, false, err
	}
	entries, err := s.recentLog(ctx, p.ID)
	if err != nil {
		return search.Page{}, false, err
	}
	parts := []string{p.Name}
	if p.Focus != nil {
		parts = append(parts, "Focus: "+*p.Focus)
	}
	for _, e := range entries {
		parts = append(parts, who.From(ctx).Day(e.at)+"\n"+e.Content)
	}
	return search.Page{Card: search.Card{ID: p.ID, Title: p.Name, URL: s.url.JoinPath("projects", p.ID).String()}, Text: strings.Join(parts, "\n\n"),
		Metadata: map[string]any{"kind": kindProject, "archived": p.ArchivedAt != nil, "updated_at": op.Stamp(p.UpdatedAt)}}, true, nil
}
