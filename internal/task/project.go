package task

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/search"
	"cairn/internal/who"
)

func (s *Service) projectOps() []*op.Op {
	return []*op.Op{
		op.Define(op.Op{Name: "list_projects", Title: "List projects", Area: area, Effect: op.Read,
			Doc: "Projects by name, with their focus, open tasks and last activity."}, s.listProjects),
		op.Define(op.Op{Name: "get_project_context", Title: "Get project context", Area: area, Effect: op.Read, Example: `{"project_name":"none"}`,
			Doc: "Where a project stands: focus, resume brief, the last log entries, open tasks. Call it before working on a project."}, s.projectContext),
		op.Define(op.Op{Name: "log_session_summary", Title: "Log session summary", Area: area, Effect: op.Write, Example: `{"project_name":"none","summary":"x"}`,
			Doc: "At the end of a working session: write what was done into the project's log, complete tasks and add new ones, all or nothing."}, s.logSession),
		op.Define(op.Op{Name: "create_project", Title: "Create project", Area: area, Effect: op.Write, Idempotent: true, Example: `{"name":"Garden"}`,
			Doc: "Begin a project. A project of that name in the heap is given back as it is."}, s.createProject),
		op.Define(op.Op{Name: "update_project", Title: "Update project", Area: area, Effect: op.Write, Idempotent: true, Example: `{"project_name":"none","current_focus":"x"}`,
			Doc: "Rename a project, set its focus, archive it or take it back (archived=false)."}, s.updateProject),
	}
}

// project is a project as stored.
type project struct {
	ID, Heap, Name        string
	Focus, Brief          *string
	ArchivedAt, TrashedAt *int64
	CreatedAt, UpdatedAt  int64
}

const projectColumns = `p.id, p.heap, p.name, p.current_focus, p.resume_brief, p.archived_at, p.trashed_at, p.created_at, p.updated_at`

func (p *project) dest() []any {
	return []any{&p.ID, &p.Heap, &p.Name, &p.Focus, &p.Brief, &p.ArchivedAt, &p.TrashedAt, &p.CreatedAt, &p.UpdatedAt}
}

func (p *project) fields() change.Fields {
	f := change.Fields{change.State: stateOf(p.TrashedAt), "name": p.Name, "current_focus": p.Focus, "archived": p.ArchivedAt != nil, "resume_brief": nil}
	if p.Brief != nil {
		f["resume_brief"] = json.RawMessage(*p.Brief)
	}
	return f
}

func (p *project) doc() search.Doc {
	return search.Doc{Heap: p.Heap, Thing: p.ID, Kind: kindProject, Title: p.Name, Body: db.Text(p.Focus)}
}

// projectRef names a project: by its id, which wins, or by its name, in which case doesn't count.
type projectRef struct {
	ProjectID   string `json:"project_id" jsonschema:"or project_name" rule:"uuid,max=300"`
	ProjectName string `json:"project_name" rule:"min=1,max=300"`
}

// loadProject finds the project a caller means among the heaps granted, to write to it, and locks it.
func loadProject(c *who.Caller, tx *db.Tx, r projectRef, heap string) (*project, error) {
	p, err := findProject(c, tx.One, tx.Query, r, heap, tx.ForUpdate())
	if err != nil {
		return nil, err
	}
	if h, _ := c.ByID(p.Heap); !h.Writable() {
		return nil, fault.New(fault.Conflict, "project %q lies in the heap %s, which is shared with you to read only", p.Name, h.Name)
	}
	return p, nil
}

func findProject(c *who.Caller, one querier, query rowsQuery, r projectRef, heap, end string) (*project, error) {
	heaps, err := c.Readable(heap)
	if err != nil {
		return nil, err
	}
	if r.ProjectID != "" {
		p := &project{}
		err := one(`SELECT `+projectColumns+` FROM project p WHERE p.id = $1 AND p.trashed_at IS NULL`+end, []any{strings.ToLower(r.ProjectID)}, p.dest()...)
		in := slices.ContainsFunc(heaps, func(h who.Heap) bool { return h.ID == p.Heap })
		if db.IsNone(err) || err == nil && !in {
			return nil, fault.New(fault.NotFound, "there is no project with the id %s", r.ProjectID)
		}
		return p, err
	}
	if r.ProjectName == "" {
		return nil, fault.Bad("project_id", "or project_name is required and must be a non-empty string")
	}
	args := db.Args{}
	q := `SELECT ` + projectColumns + ` FROM project p WHERE p.name_folded = ` + args.Add(who.Fold(r.ProjectName)) + ` AND p.trashed_at IS NULL AND p.heap IN ` + args.List(who.IDs(heaps)) + ` ORDER BY p.created_at, p.id` + end
	rows, err := query(q, args...)
	if err != nil {
		return nil, err
	}
	found, err := scanProjects(rows)
	if err != nil {
		return nil, err
	}
	switch len(found) {
	case 0:
		return nil, fault.New(fault.NotFound, "there is no project named %q: list_projects has them all", r.ProjectName)
	case 1:
		return found[0], nil
	}
	e := fault.New(fault.Conflict, "%d projects are named %q: give project_id", len(found), r.ProjectName)
	candidates := make([]map[string]string, len(found))
	for i, p := range found {
		h, _ := c.ByID(p.Heap)
		candidates[i] = map[string]string{"id": p.ID, "name": p.Name, "heap": h.Name}
	}
	return nil, e.With("candidates", candidates)
}

type projectIn struct {
	Name  string `json:"name" rule:"required,min=1,max=300"`
	Focus string `json:"current_focus" jsonschema:"what matters now" rule:"max=2000"`
	Heap  string `json:"heap" jsonschema:"id or name" rule:"max=300"`
}

// Project is a project as callers see it.
type Project struct {
	ID           string  `json:"id"`
	Name         string  `json:"name"`
	CurrentFocus *string `json:"current_focus"`
	Archived     bool    `json:"archived"`
	Heap         string  `json:"heap"`
	CreatedAt    string  `json:"created_at"`
	UpdatedAt    string  `json:"updated_at"`
}

type projectOut struct {
	ID      string   `json:"id"`
	Result  string   `json:"result"`
	Changed []string `json:"changed,omitempty"`
	Project Project  `json:"project"`
}

func (p *project) out(result string) projectOut {
	return projectOut{ID: p.ID, Result: result, Project: Project{p.ID, p.Name, p.Focus, p.ArchivedAt != nil, p.Heap, op.Stamp(p.CreatedAt), op.Stamp(p.UpdatedAt)}}
}

func (s *Service) createProject(ctx context.Context, in projectIn) (projectOut, error) {
	h, err := who.From(ctx).Target(in.Heap, nil)
	if err != nil {
		return projectOut{}, err
	}
	var out projectOut
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		p := &project{ID: db.NewID(), Heap: h.ID, Name: strings.TrimSpace(in.Name), Focus: db.Null(in.Focus), CreatedAt: tx.Now, UpdatedAt: tx.Now}
		n, err := tx.Exec(`INSERT INTO project (id, heap, name, name_folded, current_focus, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $6)
			ON CONFLICT (heap, name_folded) WHERE trashed_at IS NULL DO NOTHING`, p.ID, p.Heap, p.Name, who.Fold(p.Name), p.Focus, tx.Now)
		if err != nil {
			return err
		}
		if n == 0 {
			err := tx.One(`SELECT `+projectColumns+` FROM project p WHERE p.heap = $1 AND p.name_folded = $2 AND p.trashed_at IS NULL`, []any{h.ID, who.Fold(p.Name)}, p.dest()...)
			out = p.out("existing")
			return err
		}
		change.Record(ctx, tx, change.Entry{Heap: p.Heap, Kind: kindProject, Thing: p.ID, Effect: change.Create, After: p.fields(), Summary: "Created project " + change.Brief(p.Name)})
		d := p.doc()
		d.Fresh = true
		search.Analyze(d).Put(tx)
		out = p.out("created")
		return nil
	})
	return out, err
}

type updateProjectIn struct {
	projectRef
	Name     *string  `json:"name" rule:"min=1,max=300"`
	Focus    *string  `json:"current_focus" rule:"max=2000"`
	Archived *bool    `json:"archived"`
	Clear    []string `json:"clear" jsonschema:"fields to empty" rule:"max=50,enum=current_focus"`
}

func (s *Service) updateProject(ctx context.Context, in updateProjectIn) (projectOut, error) {
	if in.Name == nil && in.Focus == nil && in.Archived == nil && len(in.Clear) == 0 {
		return projectOut{}, fault.Bad("name", "or another field to change must be given")
	}
	if in.Focus != nil && len(in.Clear) > 0 {
		return projectOut{}, fault.Bad("clear", "names current_focus, which is given a value too")
	}
	c := who.From(ctx)
	var out projectOut
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		p, err := loadProject(c, tx, in.projectRef, "")
		if err != nil {
			return err
		}
		old := *p
		if in.Name != nil {
			p.Name = strings.TrimSpace(*in.Name)
		}
		if in.Focus != nil {
			p.Focus = db.Null(*in.Focus)
		}
		if len(in.Clear) > 0 {
			p.Focus = nil
		}
		if in.Archived != nil {
			p.ArchivedAt = db.Since(*in.Archived, p.ArchivedAt, tx.Now)
		}
		changed, err := saveProject(ctx, tx, &old, p, "Changed project")
		if err != nil {
			return err
		}
		out = p.out(map[bool]string{true: "updated", false: "existing"}[len(changed) > 0])
		out.Changed = changed
		return nil
	})
	return out, err
}

// saveProject stores a change of a project and records it; the names of the fields changed come back.
func saveProject(ctx context.Context, tx *db.Tx, old, p *project, summary string) ([]string, error) {
	before, after := diff(old.fields(), p.fields())
	if len(after) == 0 {
		return nil, nil
	}
	if err := storeProject(tx, old, p); err != nil {
		return nil, err
	}
	change.Record(ctx, tx, change.Entry{Heap: p.Heap, Kind: kindProject, Thing: p.ID, Effect: change.Update, Before: before, After: after, Summary: summary + " " + change.Brief(p.Name)})
	return slices.Sorted(maps.Keys(after)), nil
}

func storeProject(tx *db.Tx, old, p *project) error {
	p.UpdatedAt = tx.Now
	_, err := tx.Exec(`UPDATE project SET name = $2, name_folded = $3, current_focus = $4, resume_brief = $5, archived_at = $6, trashed_at = $7, updated_at = $8 WHERE id = $1`,
		p.ID, p.Name, who.Fold(p.Name), p.Focus, p.Brief, p.ArchivedAt, p.TrashedAt, p.UpdatedAt)
	if db.IsUnique(err) {
		return fault.New(fault.Conflict, "another project in that heap is named %q", p.Name)
	}
	if err != nil {
		return err
	}
	switch was, is := old.doc(), p.doc(); {
	case p.TrashedAt != nil:
		if old.TrashedAt == nil {
			search.Remove(tx, p.Heap, p.ID)
		}
	case was != is || old.TrashedAt != nil:
		search.Analyze(is).Put(tx)
	}
	return nil
}

func getProjectFields(tx *db.Tx, id string) (string, map[string]json.RawMessage, error) {
	p := &project{}
	if err := tx.One(`SELECT `+projectColumns+` FROM project p WHERE p.id = $1`+tx.ForUpdate(), []any{id}, p.dest()...); err != nil {
		return "", nil, err
	}
	now, err := change.Raw(p.fields())
	return p.Heap, now, err
}

// setProjectFields writes recorded fields back. A project goes to the trash only without live tasks: they would hang in
// nothing.
func (s *Service) setProjectFields(_ context.Context, tx *db.Tx, id string, set map[string]json.RawMessage) error {
	old := &project{}
	if err := tx.One(`SELECT `+projectColumns+` FROM project p WHERE p.id = $1`+tx.ForUpdate(), []any{id}, old.dest()...); err != nil {
		return err
	}
	p := *old
	state, archived := stateOf(p.TrashedAt), p.ArchivedAt != nil
	var resume json.RawMessage
	targets := map[string]any{change.State: &state, "name": &p.Name, "current_focus": &p.Focus, "archived": &archived, "resume_brief": &resume}
	for f, v := range set {
		target, ok := targets[f]
		if !ok {
			return fmt.Errorf("a project has no field %q", f)
		}
		if err := json.Unmarshal(v, target); err != nil {
			return fmt.Errorf("project field %s: %w", f, err)
		}
	}
	p.TrashedAt = db.Since(state == change.Trashed, old.TrashedAt, tx.Now)
	p.ArchivedAt = db.Since(archived, old.ArchivedAt, tx.Now)
	if _, ok := set["resume_brief"]; ok {
		p.Brief = nil
		if string(resume) != "null" {
			p.Brief = db.Null(string(resume))
		}
	}
	if p.TrashedAt != nil && old.TrashedAt == nil {
		var n int
		if err := tx.One(`SELECT count(*) FROM task WHERE project = $1 AND trashed_at IS NULL`, []any{id}, &n); err != nil {
			return err
		}
		if n > 0 {
			return fault.New(fault.Conflict, "the project still has tasks (%d): undo or move them first", n)
		}
	}
	return storeProject(tx, old, &p)
}
