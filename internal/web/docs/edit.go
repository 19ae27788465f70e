package docs

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/fault"
)

// EditPage is the form with a document's Markdown; where the document moved meanwhile, with what changed too.
type EditPage struct {
	Path, Name string
	Title      string
	Markdown   string
	Hash       string // of the version that the text is to be saved on
	Unsaid     int
	Writable   bool
	Sent       *string   // the text of a form that was refused
	Conflict   *Conflict // nil: the text is saved on the version it was written from
}

// Conflict is what others changed while a text was written.
type Conflict struct {
	Hash     string  `json:"hash"`
	Title    string  `json:"title"`
	Markdown string  `json:"markdown"`
	Joined   bool    `json:"joined"`
	Titles   bool    `json:"titles"`
	Clashes  []Clash `json:"clashes"`
	Changes  []Line  `json:"changes"`
	More     int     `json:"more"`
	Mine     string  `json:"-"` // the text as it was sent
}

// Clash is a block that both changed.
type Clash struct {
	Mine   *string `json:"mine"`
	Theirs *string `json:"theirs"`
	Parts  []Piece `json:"parts"`
	By     *Author `json:"by"`
}

// Line is a block that differs between two versions.
type Line struct {
	Sign  string  `json:"sign"`
	Type  string  `json:"type"`
	Was   string  `json:"was"`
	Alike bool    `json:"alike"`
	Parts []Piece `json:"parts"`
	By    *Author `json:"by"` // who changed it last, where that is told
}

// Piece is text of a line: "-" went, "+" came.
type Piece struct {
	Sign string `json:"sign"`
	Text string `json:"text"`
}

// Word says what happened to a block.
func (l Line) Word() string {
	return map[string]string{"+": "Added", "-": "Removed", ">": "Moved", "~": "Changed"}[l.Sign]
}

// Kind names what a block is.
func (l Line) Kind() string { return kinds(l.Type) }

// Before names what it was, where it is another kind now.
func (l Line) Before() string { return kinds(l.Was) }

func kinds(name string) string { return strings.ReplaceAll(name, "_", " ") }

func edit(q *Request) (*EditPage, error) {
	now, err := call[struct {
		Title    string `json:"title"`
		Hash     string `json:"hash"`
		Markdown string `json:"markdown"`
		Unsaid   int    `json:"unsaid"`
		Writable bool   `json:"writable"`
	}](q, "get_markdown", map[string]any{"block_id": q.ID})
	if err != nil {
		return nil, err
	}
	p := &EditPage{Path: "/blocks/" + url.PathEscape(q.ID), Name: nameOf(now.Title, ""), Title: now.Title, Markdown: now.Markdown, Hash: now.Hash, Unsaid: now.Unsaid, Writable: now.Writable}
	if q.Form == nil {
		return p, nil
	}
	// A text that was not saved is shown again: beside what others changed, where that is why.
	p.Title, p.Markdown = q.Form.Get("title"), unix(q.Form.Get("content"))
	sent := p.Markdown
	p.Sent = &sent
	base := q.Form.Get("base_hash")
	if base == now.Hash {
		return p, nil
	}
	c, err := call[Conflict](q, "join_draft", map[string]any{"block_id": q.ID, "base_hash": base, "markdown": p.Markdown, "title": p.Title})
	if err != nil {
		p.Hash = base
		return p, nil //nolint:nilerr // the form says already why the text was not saved, and still holds it
	}
	c.Mine = p.Markdown
	for i := range c.Clashes {
		c.Clashes[i].By = orNamed(c.Clashes[i].By, q)
	}
	for i := range c.Changes {
		c.Changes[i].By = orNamed(c.Changes[i].By, q)
	}
	p.Title, p.Markdown, p.Hash, p.Conflict = c.Title, c.Markdown, c.Hash, &c
	return p, nil
}

func orNamed(a *Author, q *Request) *Author {
	if a == nil {
		return nil
	}
	n := a.named(q)
	return &n
}

func save(q *Request) (to, done string, err error) {
	out, err := call[struct {
		Result  string `json:"result"`
		Rebased bool   `json:"rebased"`
	}](q, "replace_document", map[string]any{"block_id": q.ID, "base_hash": q.Form.Get("base_hash"), "content": unix(q.Form.Get("content")), "title": q.Form.Get("title"),
		"confirm_rebuild": true, "rebase": true, "allow_dropped_children": q.Form.Get("drop") == "yes"})
	done = "doc-saved"
	switch {
	case out.Result == "existing":
		done = "doc-same"
	case out.Rebased:
		done = "doc-joined"
	}
	return "/blocks/" + url.PathEscape(q.ID), done, err
}

// HistoryPage is who changed a block, and when.
type HistoryPage struct {
	Path, Name string
	Hash       string // of the newest version
	Newest     int64
	Writable   bool
	Events     []Event
	Agents     bool // those of agents alone
	Next       string
	Other      string // the address with the other choice of authors
	From, To   int64  // what the form that compares begins with
}

// Event is one change of a block.
type Event struct {
	ChangeID   string  `json:"change_id"`
	At         string  `json:"at"`
	Actor      string  `json:"actor"`
	ActorName  string  `json:"actor_name"`
	OnBehalf   string  `json:"on_behalf"`
	BehalfName string  `json:"on_behalf_name"`
	Tool       string  `json:"tool"`
	Summary    string  `json:"summary"`
	Version    int64   `json:"version"`
	Undoes     *string `json:"undoes"`
	By         Author  `json:"-"`
	For        string  `json:"-"` // the person behind an agent
}

// Before is the version that the change was made on.
func (e Event) Before() int64 { return e.Version - 1 }

// Undone tells whether undo_change can take the change back: not that the block was made.
func (e Event) Undone() bool { return !strings.HasPrefix(e.Tool, "create_") }

// looked is how many pages of changes are looked through for those of agents.
const looked = 10

func history(q *Request) (*HistoryPage, error) {
	p := &HistoryPage{Path: "/blocks/" + url.PathEscape(q.ID), Agents: q.Query.Get("by") == "agents"}
	got, err := call[showOut](q, "show_document", map[string]any{"block_id": q.ID})
	if err != nil {
		return nil, err
	}
	p.Name, p.Hash, p.Newest, p.Writable = nameOf(got.Title, ""), got.Hash, got.Newest, got.Writable
	p.From, p.To = max(1, p.Newest-1), p.Newest
	cursor := q.Query.Get("cursor")
	for range looked {
		out, err := call[struct {
			Events []Event `json:"events"`
			Next   string  `json:"next_cursor"`
		}](q, "get_provenance", without(map[string]any{"block_id": q.ID, "limit": perPage, "cursor": cursor}))
		if err != nil {
			return nil, err
		}
		for _, e := range out.Events {
			e.By = Author{Actor: e.Actor, Name: e.ActorName, Agent: strings.HasPrefix(e.Actor, "agent:")}.named(q)
			if e.OnBehalf != "" && e.OnBehalf != e.Actor {
				e.For = Author{Actor: e.OnBehalf, Name: e.BehalfName}.named(q).Name
			}
			if !p.Agents || e.By.Agent {
				p.Events = append(p.Events, e)
			}
		}
		if cursor = out.Next; cursor == "" || len(p.Events) >= perPage/2 {
			break
		}
	}
	by := url.Values{}
	if !p.Agents {
		by.Set("by", "agents")
	}
	p.Other = strings.TrimSuffix(p.Path+"/history?"+by.Encode(), "?")
	if cursor != "" {
		next := url.Values{"cursor": {cursor}}
		if p.Agents {
			next.Set("by", "agents")
		}
		p.Next = p.Path + "/history?" + next.Encode()
	}
	return p, nil
}

func restoreVersion(q *Request) (to, done string, err error) {
	err = q.Call("restore_version", map[string]any{"block_id": q.ID, "version": number(q.Form.Get("version"), mostVersions), "base_hash": q.Form.Get("base_hash")}, nil)
	return "/blocks/" + url.PathEscape(q.ID), "doc-version", err
}

// undo takes one change back. That it was left alone, since others came after it, is no fault: the page says so.
func undo(q *Request) (to, done string, err error) {
	out, err := call[struct {
		Undone []struct{} `json:"undone"`
		Left   []struct {
			Why string `json:"why"`
		} `json:"left"`
	}](q, "undo_change", map[string]any{"change_id": q.Form.Get("change")})
	if err == nil && len(out.Undone) == 0 && len(out.Left) > 0 {
		return "", "", fault.New(fault.Conflict, "it was left as it is: %s", out.Left[0].Why)
	}
	return "", "doc-undone", err
}

// ChangesPage is what differs between two versions.
type ChangesPage struct {
	Path, Name string
	Added      int    `json:"added"`
	Removed    int    `json:"removed"`
	Moved      int    `json:"moved"`
	Edited     int    `json:"edited"`
	From       int64  `json:"from_version"`
	To         int64  `json:"to_version"`
	Newest     int64  `json:"newest_version"`
	Title      string `json:"title"`
	Hash       string `json:"hash"`
	Lines      []Line `json:"lines"`
	More       int    `json:"more"`
}

func changes(q *Request) (*ChangesPage, error) {
	from, to := number(q.Query.Get("from"), mostVersions), number(q.Query.Get("to"), mostVersions)
	if to > 0 && from > to {
		from, to = to, from
	}
	p, err := call[ChangesPage](q, "show_changes", without(map[string]any{"block_id": q.ID, "from_version": max(from, 1), "to_version": to}))
	p.Path, p.Name = "/blocks/"+url.PathEscape(q.ID), nameOf(p.Title, "")
	return &p, err
}

// Same tells that the two versions are alike.
func (p *ChangesPage) Same() bool { return len(p.Lines) == 0 }

// Counts says how much differs.
func (p *ChangesPage) Counts() string {
	var parts []string
	for _, c := range []struct {
		n    int
		word string
	}{{p.Edited, "changed"}, {p.Added, "added"}, {p.Removed, "removed"}, {p.Moved, "moved"}} {
		if c.n > 0 {
			parts = append(parts, strconv.Itoa(c.n)+" "+c.word)
		}
	}
	return strings.Join(slices.Compact(parts), ", ")
}
