package task

import (
	"context"
	"strings"

	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

type createIn struct {
	Name        string `json:"name" jsonschema:"what is to be done" rule:"required,min=1,max=500"`
	DueDate     string `json:"due_date" jsonschema:"day the action is needed, YYYY-MM-DD; default today. It shows from then on, each day until done" rule:"date,max=64"`
	StartDate   string `json:"start_date" jsonschema:"informational only" rule:"date,max=64"`
	Description string `json:"description" rule:"max=20000"`
	SourceURL   string `json:"source_url" jsonschema:"http or https" rule:"url,max=2048"`
	ExternalRef string `json:"external_ref" jsonschema:"your own key; the same one again gives the existing task" rule:"min=1,max=300"`
	ProjectID   string `json:"project_id" rule:"uuid,max=300"`
	ProjectName string `json:"project_name" rule:"min=1,max=300"`
	Heap        string `json:"heap" jsonschema:"id or name; default: the heap of the fitting kind" rule:"max=300"`
}

type createOut struct {
	One
	Ignored []string `json:"ignored"`

	created string // for the text: when, in the account's zone
}

// Texts words the answer as HeroMind did, with the answer itself behind.
func (o createOut) Texts(json []byte) []string {
	t := o.Task
	first := `✅ Successfully created ` + t.Category + ` task: "` + t.Text + `"`
	last := "The task is on the list and stays due until it is done."
	if o.Result == "existing" {
		first = `ℹ️ Task already exists: "` + t.Text + `"`
		last = "Nothing was added: a task with this external_ref is there already."
		if o.State == change.Trashed {
			last = "Nothing was added: a task with this external_ref is in the trash; restore_task takes it out."
		}
	}
	due := "none"
	if t.DueDate != nil {
		due = human(*t.DueDate)
	}
	lines := []string{first, "", "📋 Task ID: " + t.ID, "🏷️ Category: " + t.Category, "📅 Due Date: " + due, "⏰ Created: " + o.created, "", last}
	if len(o.Ignored) > 0 {
		lines = append(lines, "Ignored, as no such argument is known: "+strings.Join(o.Ignored, ", "))
	}
	return []string{strings.Join(lines, "\n"), string(json)}
}

// fits says which kinds of heap a category's tasks may lie in.
func fits(cat string) func(kind string) bool {
	return func(kind string) bool { return category(kind) == cat }
}

func (s *Service) create(ctx context.Context, in createIn, cat string) (createOut, error) {
	c := who.From(ctx)
	var t *row
	result := ""
	err := s.db.Write(ctx, func(tx *db.Tx) (err error) {
		if in.ExternalRef != "" {
			if t, err = byRef(c, tx.One, in.ExternalRef, tx.ForUpdate()); err != nil {
				return err
			}
			if t != nil {
				result = "existing"
				return fill(ctx, tx, t, in)
			}
		}
		result = "created"
		heap, project, err := s.destination(ctx, tx, in, cat)
		if err != nil {
			return err
		}
		today := c.Day(tx.Wall)
		t = &row{ID: db.NewID(), Heap: heap, Project: project, Name: strings.TrimSpace(in.Name), Description: db.Null(in.Description), SourceURL: db.Null(in.SourceURL),
			StartDate: db.Null(op.Day(in.StartDate)), DueDate: &today, ExternalRef: db.Null(in.ExternalRef)}
		if d := op.Day(in.DueDate); d != "" {
			t.DueDate = &d
		}
		if err := insert(ctx, tx, t); err != nil || t.CreatedAt != 0 {
			return err
		}
		// On PostgreSQL another write made the ref in between.
		result = "existing"
		if t, err = byRef(c, tx.One, in.ExternalRef, tx.ForUpdate()); err != nil {
			return err
		}
		return fill(ctx, tx, t, in)
	})
	if err != nil {
		return createOut{}, err
	}
	out := createOut{One: t.one(c, result), Ignored: op.Ignored(ctx), created: c.Time(t.CreatedAt).Format("Jan 2, 2006, 3:04 PM")}
	if out.Ignored == nil {
		out.Ignored = []string{}
	}
	return out, nil
}

// fill adds a description or source_url that an existing task lacks and leaves all else of it alone. A trashed task stays as
// it is.
func fill(ctx context.Context, tx *db.Tx, t *row, in createIn) error {
	if t.TrashedAt != nil {
		return nil
	}
	if h, _ := who.From(ctx).ByID(t.Heap); !h.Writable() {
		return nil
	}
	old := *t
	if db.Text(t.Description) == "" && in.Description != "" {
		t.Description = &in.Description
	}
	if db.Text(t.SourceURL) == "" && in.SourceURL != "" {
		t.SourceURL = &in.SourceURL
	}
	_, err := save(ctx, tx, &old, t, change.Update, "Filled in")
	return err
}

// destination decides the heap of a new task, and its project if one is named: a task lies in its project's heap, and that
// heap must fit the tool.
func (s *Service) destination(ctx context.Context, tx *db.Tx, in createIn, cat string) (heap string, project *string, err error) {
	c := who.From(ctx)
	if in.ProjectID == "" && in.ProjectName == "" {
		h, err := c.Target(in.Heap, fits(cat))
		return h.ID, nil, err
	}
	p, err := loadProject(c, tx, projectRef{in.ProjectID, in.ProjectName}, in.Heap)
	if err != nil {
		return "", nil, err
	}
	h, _ := c.ByID(p.Heap)
	if category(h.Kind) != cat {
		return "", nil, fault.New(fault.Conflict, "project %q lies in the heap %s, which is %s: use create_%s_task", p.Name, h.Name, category(h.Kind), category(h.Kind))
	}
	return p.Heap, &p.ID, nil
}
