// Package task keeps tasks and projects: what is to be done, when, and what happened in a project so far. Every rule about
// them lives here, in the operations, whatever surface a call comes by.
package task

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/op"
	"cairn/internal/search"
	"cairn/internal/who"
)

// Kinds of things, in the change record and in search.
const (
	kindTask    = "task"
	kindProject = "project"
	kindLog     = "project_log"
)

// area is the grantable area that all operations here belong to.
const area = "tasks"

// finder is what listing by query needs of search.
type finder interface {
	Find(ctx context.Context, heaps, kinds []string, query string, limit int) (search.Result, error)
}

// Service is the tasks and projects of one server.
type Service struct {
	db   *db.DB
	find finder
	url  *url.URL // PUBLIC_URL, for links to things
}

// New makes the service.
func New(d *db.DB, find finder, publicURL *url.URL) *Service {
	return &Service{db: d, find: find, url: publicURL}
}

// Ops are the operations of this package.
func (s *Service) Ops() []*op.Op {
	return append([]*op.Op{
		op.Define(op.Op{Name: "create_personal_task", Title: "Create personal task", Area: area, Effect: op.Write, Loose: true, Example: `{"name":"Call the dentist"}`,
			Doc: "Add a task to the person's private life. Set due_date to the day the action is needed, never one shared date for a batch. Give external_ref where the task stands for something elsewhere: the same ref never makes a second task."},
			func(ctx context.Context, in createIn) (createOut, error) { return s.create(ctx, in, who.Personal) }),
		op.Define(op.Op{Name: "create_work_task", Title: "Create work task", Area: area, Effect: op.Write, Loose: true, Example: `{"name":"Review the draft"}`,
			Doc: "Add a task to the person's work. Set due_date to the day the action is needed, never one shared date for a batch. Give external_ref where the task stands for something elsewhere: the same ref never makes a second task."},
			func(ctx context.Context, in createIn) (createOut, error) { return s.create(ctx, in, who.Work) }),
		op.Define(op.Op{Name: "list_tasks", Title: "List tasks", Area: area, Effect: op.Read,
			Doc: "Tasks, newest-updated first, narrowed by any filter. An open task stays due until it is done: for what is on today ask completed=false, due_to=today. query finds by words (best match first). Long descriptions are cut; get_task has them whole. Go on with next_cursor."},
			s.list),
		op.Define(op.Op{Name: "get_task", Title: "Get task", Area: area, Effect: op.Read, Example: `{"external_ref":"none"}`,
			Doc: "One task whole, by id or external_ref, also from the trash."}, s.get),
		op.Define(op.Op{Name: "complete_task", Title: "Complete task", Area: area, Effect: op.Write, Idempotent: true, Example: `{"external_ref":"none"}`,
			Doc: "Mark a task done, or open again with completed=false. Completing it twice changes nothing and keeps the first date."}, s.complete),
		op.Define(op.Op{Name: "update_task", Title: "Update task", Area: area, Effect: op.Write, Idempotent: true, Example: `{"external_ref":"none","name":"x"}`,
			Doc: "Change fields of a task; those not given stay. clear empties fields. A project in another heap takes the task there. Tasks don't repeat."}, s.update),
		op.Define(op.Op{Name: "delete_task", Title: "Delete task", Area: area, Effect: op.Destroy, Idempotent: true, Example: `{"external_ref":"none"}`,
			Doc: "Put a task into the trash. Not for tasks that are done: complete those."}, s.trash),
		op.Define(op.Op{Name: "restore_task", Title: "Restore task", Area: area, Effect: op.Write, Idempotent: true, Example: `{"external_ref":"none"}`,
			Doc: "Take a task back out of the trash."}, s.restore),
	}, s.projectOps()...)
}

// Kinds are the kinds of thing whose changes can be undone here.
func (s *Service) Kinds() []change.Kind {
	return []change.Kind{
		{Name: kindTask, Area: area, Get: getTaskFields, Set: s.setTaskFields},
		{Name: kindProject, Area: area, Get: getProjectFields, Set: s.setProjectFields},
		{Name: kindLog, Area: area, Get: getLogFields, Set: setLogFields},
	}
}

// row is a task as stored.
type row struct {
	ID, Heap, Name                                               string
	Project, Description, SourceURL, WorkNotes                   *string
	StartDate, DueDate, FocusedDate, ExternalRef, CompletionDate *string
	Effort, CompletedAt, TrashedAt                               *int64
	Starred, CreatedAt, UpdatedAt                                int64
}

const columns = `t.id, t.heap, t.name, t.project, t.description, t.source_url, t.work_notes, t.start_date, t.due_date, t.focused_date, t.external_ref, t.completion_date, t.effort_minutes, t.completed_at, t.trashed_at, t.starred, t.created_at, t.updated_at`

func (r *row) dest() []any {
	return []any{&r.ID, &r.Heap, &r.Name, &r.Project, &r.Description, &r.SourceURL, &r.WorkNotes, &r.StartDate, &r.DueDate, &r.FocusedDate,
		&r.ExternalRef, &r.CompletionDate, &r.Effort, &r.CompletedAt, &r.TrashedAt, &r.Starred, &r.CreatedAt, &r.UpdatedAt}
}

// listColumns are what lists show: every column that is read costs.
const listColumns = `t.id, t.heap, t.name, t.project, substr(t.description, 1, 301), t.source_url, t.start_date, t.due_date, t.focused_date, t.external_ref, t.completion_date, t.starred, t.created_at, t.updated_at`

func (r *row) listDest() []any {
	return []any{&r.ID, &r.Heap, &r.Name, &r.Project, &r.Description, &r.SourceURL, &r.StartDate, &r.DueDate, &r.FocusedDate, &r.ExternalRef, &r.CompletionDate, &r.Starred, &r.CreatedAt, &r.UpdatedAt}
}

// stateOf says whether a thing is there or in the trash.
func stateOf(trashed *int64) string {
	if trashed != nil {
		return change.Trashed
	}
	return change.Live
}

// doc is what of a task can be found.
func (r *row) doc() search.Doc {
	return search.Doc{Heap: r.Heap, Thing: r.ID, Kind: kindTask, Title: r.Name, Body: db.Text(r.Description) + "\n" + db.Text(r.WorkNotes), Day: db.Text(r.DueDate)}
}

// category is work in a heap of kind work and personal in every other.
func category(kind string) string {
	if kind == who.Work {
		return who.Work
	}
	return who.Personal
}

// Task is a task as callers see it. Times are RFC 3339, dates YYYY-MM-DD; what is not set is null.
type Task struct {
	ID             string  `json:"id"`
	Text           string  `json:"text"`
	Description    *string `json:"description"`
	DescriptionCut bool    `json:"description_cut,omitempty"`
	SourceURL      *string `json:"source_url"`
	Category       string  `json:"category"`
	Completed      bool    `json:"completed"`
	CompletionDate *string `json:"completion_date"`
	StartDate      *string `json:"start_date"`
	DueDate        *string `json:"due_date"`
	FocusedDate    *string `json:"focused_date"`
	Starred        bool    `json:"starred"`
	ExternalRef    *string `json:"external_ref"`
	ProjectID      *string `json:"project_id"`
	CreatedAt      string  `json:"created_at"`
	UpdatedAt      string  `json:"updated_at"`
}

// Whole is a task with the fields that lists leave out.
type Whole struct {
	Task
	EffortMinutes *int64  `json:"effort_minutes"`
	WorkNotes     *string `json:"work_notes"`
	Heap          string  `json:"heap"`
	State         string  `json:"state"` // live or trashed
}

func (r *row) task(c *who.Caller) Task {
	h, _ := c.ByID(r.Heap)
	return Task{ID: r.ID, Text: r.Name, Description: r.Description, SourceURL: r.SourceURL, Category: category(h.Kind), Completed: r.CompletionDate != nil,
		CompletionDate: r.CompletionDate, StartDate: r.StartDate, DueDate: r.DueDate, FocusedDate: r.FocusedDate, Starred: r.Starred == 1,
		ExternalRef: r.ExternalRef, ProjectID: r.Project, CreatedAt: op.Stamp(r.CreatedAt), UpdatedAt: op.Stamp(r.UpdatedAt)}
}

func (r *row) whole(c *who.Caller) Whole {
	return Whole{Task: r.task(c), EffortMinutes: r.Effort, WorkNotes: r.WorkNotes, Heap: r.Heap, State: stateOf(r.TrashedAt)}
}

// One is an answer about one task.
type One struct {
	ID             string   `json:"id"`
	Result         string   `json:"result"` // created, existing (nothing was changed) or updated
	ExternalRef    *string  `json:"external_ref"`
	State          string   `json:"state"`
	Completed      bool     `json:"completed"`
	CompletionDate *string  `json:"completion_date"`
	Changed        []string `json:"changed,omitempty"`
	Task           Whole    `json:"task"`
}

func (r *row) one(c *who.Caller, result string) One {
	return One{ID: r.ID, Result: result, ExternalRef: r.ExternalRef, State: stateOf(r.TrashedAt), Completed: r.CompletedAt != nil, CompletionDate: r.CompletionDate, Task: r.whole(c)}
}

// human writes a date the way people read it: Jan 15, 2024.
func human(day string) string {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return day
	}
	return t.Format("Jan 2, 2006")
}

// fields gives the recorded fields of a task. place holds heap and project together, since a task lies in its project's
// heap; completion holds the date and the moment, since neither means anything without the other.
func (r *row) fields() change.Fields {
	f := change.Fields{change.State: stateOf(r.TrashedAt), "name": r.Name, "starred": r.Starred == 1, "place": place{r.Heap, r.Project}, "completion": nil,
		"description": r.Description, "source_url": r.SourceURL, "work_notes": r.WorkNotes, "effort_minutes": r.Effort,
		"start_date": r.StartDate, "due_date": r.DueDate, "focused_date": r.FocusedDate, "external_ref": r.ExternalRef}
	if r.CompletedAt != nil {
		f["completion"] = completion{*r.CompletionDate, *r.CompletedAt}
	}
	return f
}

type place struct {
	Heap      string  `json:"heap"`
	ProjectID *string `json:"project_id"`
}

type completion struct {
	Date string `json:"date"`
	At   int64  `json:"at"`
}

// diff gives the recorded fields in which two states of a thing differ.
func diff(old, now change.Fields) (before, after change.Fields) {
	before, after = change.Fields{}, change.Fields{}
	for k, v := range now {
		a, _ := json.Marshal(old[k])
		b, _ := json.Marshal(v)
		if string(a) != string(b) {
			before[k], after[k] = old[k], v
		}
	}
	return before, after
}
