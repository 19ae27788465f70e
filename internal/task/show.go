package task

import (
	"context"
	"strings"

	"cairn/internal/db"
	"cairn/internal/op"
	"cairn/internal/search"
	"cairn/internal/who"
)

// Sources are the kinds of thing that search and fetch show.
func (s *Service) Sources() []search.Source {
	return []search.Source{
		{Kind: kindTask, Area: area, Card: s.taskCard, Page: s.taskPage},
		{Kind: kindProject, Area: area, Card: s.projectCard, Page: s.projectPage},
	}
}

func (s *Service) taskCard(ctx context.Context, id string) (search.Card, bool, error) {
	t, ok, err := s.visibleTask(ctx, id)
	if !ok {
		return search.Card{}, false, err
	}
	return search.Card{ID: t.ID, Title: t.Name, URL: s.url + "/tasks/" + t.ID}, true, nil
}

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
		if text(p) != "" {
			parts = append(parts, *p)
		}
	}
	whole := t.whole(who.From(ctx))
	return search.Page{Card: search.Card{ID: t.ID, Title: t.Name, URL: s.url + "/tasks/" + t.ID}, Text: strings.Join(parts, "\n\n"),
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

func (s *Service) projectCard(ctx context.Context, id string) (search.Card, bool, error) {
	p, ok, err := s.visibleProject(ctx, id)
	if !ok {
		return search.Card{}, false, err
	}
	return search.Card{ID: p.ID, Title: p.Name, URL: s.url + "/projects/" + p.ID}, true, nil
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
		parts = append(parts, e.CreatedAt[:10]+"\n"+e.Content)
	}
	return search.Page{Card: search.Card{ID: p.ID, Title: p.Name, URL: s.url + "/projects/" + p.ID}, Text: strings.Join(parts, "\n\n"),
		Metadata: map[string]any{"kind": kindProject, "archived": p.ArchivedAt != nil, "updated_at": op.Stamp(p.UpdatedAt)}}, true, nil
}
