package task

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/db"
	"cairn/internal/op"
	"cairn/internal/rawjson"
	"cairn/internal/who"
)

type rowsQuery func(q string, args ...any) (*sql.Rows, error)

func (s *Service) rows(ctx context.Context) rowsQuery {
	return func(q string, args ...any) (*sql.Rows, error) { return s.db.Query(ctx, q, args...) }
}

func scanProjects(rows *sql.Rows) ([]*project, error) {
	defer rows.Close()
	var found []*project
	for rows.Next() {
		p := &project{}
		if err := rows.Scan(p.dest()...); err != nil {
			return nil, err
		}
		found = append(found, p)
	}
	return found, rows.Err()
}

type listProjectsIn struct {
	Archived bool   `json:"include_archived"`
	Heap     string `json:"heap" jsonschema:"id or name" rule:"max=300"`
	Cursor   string `json:"cursor" rule:"max=300"`
}

// Listed is a project in the list.
type Listed struct {
	ID            string  `json:"id"`
	Name          string  `json:"name"`
	CurrentFocus  *string `json:"current_focus"`
	OpenTaskCount int     `json:"open_task_count"`
	LastActivity  string  `json:"last_activity"`
	Archived      bool    `json:"archived,omitempty"`
}

type projectsOut struct {
	Count      int      `json:"count"`
	Projects   []Listed `json:"projects"`
	More       int      `json:"more"` // projects that the answer has no room for
	NextCursor *string  `json:"next_cursor,omitempty"`
}

// maxProjects is the most that one list holds.
const maxProjects = 100

// Texts gives the line and the JSON array that HeroMind gave.
func (o projectsOut) Texts([]byte) []string {
	first := "Projects (" + strconv.Itoa(o.Count) + "):"
	last := ""
	if o.More > 0 {
		first += " (+" + strconv.Itoa(o.More) + " more)"
		last = "\nGo on with cursor " + *o.NextCursor
	}
	list, _ := rawjson.Marshal(o.Projects)
	return []string{first + "\n" + string(list) + last}
}

func (s *Service) listProjects(ctx context.Context, in listProjectsIn) (projectsOut, error) {
	out := projectsOut{Projects: []Listed{}}
	heaps, err := who.From(ctx).Readable(in.Heap)
	if err != nil {
		return out, err
	}
	key, err := op.ReadCursor(in.Cursor, 1)
	if err != nil {
		return out, err
	}
	names, err := s.projectNames(ctx, heaps, in.Archived)
	if err != nil {
		return out, err
	}
	if key != nil {
		last := projectName{id: key[0]}
		args := db.Args{}
		q := `SELECT name_folded FROM project WHERE id = ` + args.Add(last.id) + ` AND heap IN ` + args.List(who.IDs(heaps))
		if err := s.db.One(ctx, q, args, &last.folded); err != nil {
			if db.IsNone(err) {
				err = op.BadCursor()
			}
			return out, err
		}
		names = slices.DeleteFunc(names, func(n projectName) bool { return n.compare(last) <= 0 })
	}
	page := op.NewPage(0)
	page.Limit = maxProjects
	for i, n := range names {
		if i == maxProjects {
			break
		}
		l, err := s.listed(ctx, n.id)
		if err != nil {
			return out, err
		}
		l.CurrentFocus, _ = cut(l.CurrentFocus, descriptionCut)
		if !page.Fits(len(out.Projects), op.Weight(l.Name)+op.Weight(db.Text(l.CurrentFocus))+200) {
			break
		}
		out.Projects = append(out.Projects, l)
	}
	out.Count = len(out.Projects)
	if out.More = len(names) - out.Count; out.More > 0 {
		out.NextCursor = op.Cursor(names[out.Count-1].id)
	}
	return out, nil
}

type projectName struct{ id, folded string }

// compare orders by name, here and not in the database, whose collations differ.
func (n projectName) compare(m projectName) int {
	return cmp.Or(cmp.Compare(n.folded, m.folded), cmp.Compare(n.id, m.id))
}

func (s *Service) projectNames(ctx context.Context, heaps []who.Heap, archived bool) ([]projectName, error) {
	args := db.Args{}
	q := `SELECT id, name_folded FROM project WHERE trashed_at IS NULL AND heap IN ` + args.List(who.IDs(heaps))
	if !archived {
		q += ` AND archived_at IS NULL`
	}
	rows, err := s.db.Query(ctx, q, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var names []projectName
	for rows.Next() {
		var n projectName
		if err := rows.Scan(&n.id, &n.folded); err != nil {
			return nil, err
		}
		names = append(names, n)
	}
	slices.SortFunc(names, projectName.compare)
	return names, rows.Err()
}

// listed reads one project of the list: the ends of two indexes, and a count along one that holds open tasks alone.
func (s *Service) listed(ctx context.Context, id string) (Listed, error) {
	l := Listed{ID: id}
	var archived *int64
	var updated, task, log int64
	err := s.db.One(ctx, `SELECT p.name, p.current_focus, p.archived_at, p.updated_at,
		(SELECT count(*) FROM task t WHERE t.project = p.id AND t.trashed_at IS NULL AND t.completed_at IS NULL),
		coalesce((SELECT max(t.updated_at) FROM task t WHERE t.project = p.id), 0),
		coalesce((SELECT max(g.created_at) FROM project_log g WHERE g.project = p.id), 0)
		FROM project p WHERE p.id = $1`, []any{id}, &l.Name, &l.CurrentFocus, &archived, &updated, &l.OpenTaskCount, &task, &log)
	l.Archived, l.LastActivity = archived != nil, op.Stamp(max(updated, task, log))
	return l, err
}

// LogEntry is an entry of a project's log.
type LogEntry struct {
	Kind       string `json:"kind"`
	Source     string `json:"source"`
	Content    string `json:"content"`
	ContentCut bool   `json:"content_cut,omitempty"`
	CreatedAt  string `json:"created_at"`

	at int64
}

// OpenTask is an open task as a project's context shows it.
type OpenTask struct {
	ID            string  `json:"id"`
	Text          string  `json:"text"`
	DueDate       *string `json:"due_date"`
	EffortMinutes *int64  `json:"effort_minutes"`
	WorkNotes     *string `json:"work_notes"`
	WorkNotesCut  bool    `json:"work_notes_cut,omitempty"`
}

type contextOut struct {
	Project struct {
		ID           string  `json:"id"`
		Name         string  `json:"name"`
		CurrentFocus *string `json:"current_focus"`
	} `json:"project"`
	ResumeBrief *resumeBrief `json:"resume_brief"`
	RecentLog   []LogEntry   `json:"recent_log"`
	OpenTasks   []OpenTask   `json:"open_tasks"`
	OpenCount   int          `json:"open_task_count"`
}

const (
	contextLog   = 10
	contextTasks = 25
	logBytes     = 10_000 // of the log, whole entries
	logCut       = 150    // characters of the further ones
	noteCut      = 100    // characters of a task's notes where there is little room
)

func (s *Service) projectContext(ctx context.Context, in projectRef) (contextOut, error) {
	var out contextOut
	c := who.From(ctx)
	p, err := findProject(c, s.reader(ctx), s.rows(ctx), in, "", "")
	if err != nil {
		return out, err
	}
	out.Project.ID, out.Project.Name, out.Project.CurrentFocus = p.ID, p.Name, p.Focus
	read := s.db.Now()
	if out.RecentLog, err = s.recentLog(ctx, p.ID); err != nil {
		return out, err
	}
	if out.OpenTasks, err = s.openTasks(ctx, p.ID); err != nil {
		return out, err
	}
	if err := s.db.One(ctx, `SELECT count(*) FROM task WHERE project = $1 AND trashed_at IS NULL AND completed_at IS NULL`, []any{p.ID}, &out.OpenCount); err != nil {
		return out, err
	}
	if out.ResumeBrief, err = readBrief(p.Brief); err != nil {
		return out, err
	}
	if out.ResumeBrief == nil && c.Person {
		out.ResumeBrief, err = s.rebuildBrief(ctx, p, out, read)
	}
	out.fit()
	return out, err
}

// fit shortens what is long, so that the whole stays below 100 KB as sent: the log's further entries, then the tasks' notes,
// and last the list of tasks, whose count is said all the same.
func (o *contextOut) fit() {
	used := op.Weight(db.Text(o.Project.CurrentFocus))
	if o.ResumeBrief != nil {
		used += op.Weight(o.ResumeBrief.Text) + op.Weight(strings.Join(o.ResumeBrief.NextSteps, ""))
	}
	enough := used + min(logBytes, (op.PageBytes-used)/2)
	for i := range o.RecentLog {
		e := &o.RecentLog[i]
		if used+op.Weight(e.Content) > enough {
			var short *string
			if short, e.ContentCut = cut(&e.Content, logCut); e.ContentCut {
				e.Content = *short
			}
		}
		used += op.Weight(e.Content) + 120
	}
	for i := range o.OpenTasks {
		t := &o.OpenTasks[i]
		if used+op.Weight(db.Text(t.WorkNotes)) > op.PageBytes/2 {
			t.WorkNotes, t.WorkNotesCut = cut(t.WorkNotes, noteCut)
		}
		if used += op.Weight(t.Text) + op.Weight(db.Text(t.WorkNotes)) + 160; used > op.PageBytes && i > 0 {
			o.OpenTasks = o.OpenTasks[:i]
			return
		}
	}
}

func (s *Service) recentLog(ctx context.Context, project string) ([]LogEntry, error) {
	rows, err := s.db.Query(ctx, `SELECT kind, source, content, created_at FROM project_log WHERE project = $1 AND trashed_at IS NULL ORDER BY created_at DESC, id DESC LIMIT `+strconv.Itoa(contextLog), project)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []LogEntry{}
	for rows.Next() {
		var e LogEntry
		if err := rows.Scan(&e.Kind, &e.Source, &e.Content, &e.at); err != nil {
			return nil, err
		}
		e.CreatedAt = op.Stamp(e.at)
		list = append(list, e)
	}
	return list, rows.Err()
}

// openTasks gives the open tasks that are due first; those without a date come last.
func (s *Service) openTasks(ctx context.Context, project string) ([]OpenTask, error) {
	list := []OpenTask{}
	for _, dated := range []string{"IS NOT NULL", "IS NULL"} {
		rows, err := s.db.Query(ctx, `SELECT id, name, due_date, effort_minutes, work_notes FROM task WHERE project = $1 AND trashed_at IS NULL AND completed_at IS NULL AND due_date `+dated+
			fmt.Sprintf(` ORDER BY due_date, id LIMIT %d`, contextTasks), project)
		if err != nil {
			return nil, err
		}
		for rows.Next() && len(list) < contextTasks {
			var t OpenTask
			if err := rows.Scan(&t.ID, &t.Text, &t.DueDate, &t.EffortMinutes, &t.WorkNotes); err != nil {
				_ = rows.Close()
				return nil, err
			}
			list = append(list, t)
		}
		err = rows.Err()
		_ = rows.Close()
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}
