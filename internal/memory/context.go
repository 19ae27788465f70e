package memory

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/meaning"
	"cairn/internal/op"
	"cairn/internal/search"
	"cairn/internal/who"
)

// kindContext names context objects in the change record, and in search those that are current and not private. Those that
// were superseded or retired are found as kindPast, and private ones and those that wait or were declined by persons alone.
const (
	kindContext = "context"
	kindPast    = "context_past"
	kindOwners  = "context_owner"
)

// kindPrivate names, in the change record alone, objects that are private: no agent sees such a change, even when its object
// is private no more.
const kindPrivate = "private_context"

// Status of a context object.
const (
	proposed   = "proposed"
	current    = "current"
	superseded = "superseded"
	retired    = "retired"
	declined   = "declined"
)

// Kinds of context objects. A correction is what the owner says is wrong, in their words, and guards against the error.
const (
	decided    = "decision"
	belief     = "belief"
	model      = "mental_model"
	learning   = "learning"
	question   = "open_question"
	preference = "preference"
	original   = "original"
	correction = "correction"
)

func (s *Service) contextOps() []*op.Op {
	return []*op.Op{
		op.Define(op.Op{Name: "capture_context", Title: "Remember", Area: area, Effect: op.Write, Idempotent: true,
			Example: `{"objects":[{"kind":"preference","statement":"I prefer tea in the morning","subject":"tea"}]}`,
			Doc:     "Remember what the person decided, believes, prefers, learned or asks: one sentence in the first person each. What is known already comes back as existing. Where an answer lists similar ones that this replaces, call supersede_context. Capture unattended only with propose."},
			s.capture),
		op.Define(op.Op{Name: "supersede_context", Title: "Change of mind", Area: area, Effect: op.Write, Idempotent: true,
			Example: `{"id":"01890a5d-ac96-774b-bcce-b302099a8057","statement":"I prefer coffee"}`,
			Doc:     "The person changed their mind: put a new statement in the place of a current one, which is kept as superseded. Say why. Not to fix an error about them: correct_context does."},
			s.supersede),
		op.Define(op.Op{Name: "correct_context", Title: "Correct an error", Area: area, Effect: op.Write, Idempotent: true, Example: `{"statement":"I don't live in Paris","subject":"home"}`,
			Doc: "The person says that something held about them is wrong. Give their own words; it stands as a guard, and what it contradicts is told no more."},
			s.correct),
	}
}

func (s *Service) contextKinds() []change.Kind {
	k := change.Kind{Name: kindContext, Area: area, Owned: true, Get: getContext, Set: s.setContext,
		Personal: []string{"standing", "supersedes"}, // they name others of the chain, private ones too, and why one took another's place
		Hide:     `EXISTS (SELECT 1 FROM context x WHERE x.id = thing AND x.private = 1)`}
	hidden := k
	hidden.Name, hidden.Hide = kindPrivate, `1 = 1`
	return []change.Kind{k, hidden}
}

func (s *Service) contextSources() []search.Source {
	none := func(context.Context, string) (search.Page, bool, error) { return search.Page{}, false, nil }
	return []search.Source{
		{Kind: kindContext, Area: area, Cards: s.contextCards, Page: s.contextPage, Text: s.contextText},
		{Kind: kindPast, Area: area, Cards: s.contextCards, Page: none, Text: s.contextText},
		{Kind: kindOwners, Area: area, PersonOnly: true, Cards: s.contextCards, Page: none, Text: s.contextText},
	}
}

// contextText gives what of an object is embedded.
func (s *Service) contextText(ctx context.Context, id string) (t meaning.Text, ok bool, err error) {
	err = s.db.One(ctx, `SELECT subject, statement FROM context WHERE id = $1`, []any{id}, &t.Title, &t.Body)
	if db.IsNone(err) {
		return t, false, nil
	}
	return t, err == nil, err
}

// object is a context object as stored.
type object struct {
	ID, Heap, Kind, Subject, SubjectFolded, Statement, Folded, Status, Actor string

	Supersedes, Successor, Reason, Source *string
	Private, At, CreatedAt, UpdatedAt     int64
	TrashedAt                             *int64
}

const objectColumns = `o.id, o.heap, o.kind, o.subject, o.subject_folded, o.statement, o.folded, o.status, o.actor, o.supersedes, o.successor, o.reason, o.source, o.private, o.at, o.created_at, o.updated_at, o.trashed_at`

func (o *object) dest() []any {
	return []any{&o.ID, &o.Heap, &o.Kind, &o.Subject, &o.SubjectFolded, &o.Statement, &o.Folded, &o.Status, &o.Actor, &o.Supersedes, &o.Successor, &o.Reason, &o.Source,
		&o.Private, &o.At, &o.CreatedAt, &o.UpdatedAt, &o.TrashedAt}
}

// Object is a context object as callers see it. Reason says why it stands no more; of a proposal, why it should replace
// another.
type Object struct {
	ID         string `json:"id"`
	Heap       string `json:"heap"`
	Kind       string `json:"kind"`
	Subject    string `json:"subject,omitempty"`
	Statement  string `json:"statement"`
	Status     string `json:"status"`
	Private    bool   `json:"private"`
	Supersedes string `json:"supersedes,omitempty"`
	Successor  string `json:"successor,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Replaces   string `json:"replaces,omitempty"` // of a proposal: the statement that it would supersede
	Actor      string `json:"actor"`
	At         string `json:"at"`
	UpdatedAt  string `json:"updated_at"`
}

func (o *object) shown() Object {
	return Object{ID: o.ID, Heap: o.Heap, Kind: o.Kind, Subject: o.Subject, Statement: o.Statement, Status: o.Status, Private: o.Private == 1, Supersedes: db.Text(o.Supersedes),
		Successor: db.Text(o.Successor), Reason: db.Text(o.Reason), Actor: o.Actor, At: op.Stamp(o.At), UpdatedAt: op.Stamp(o.UpdatedAt)}
}

// standing is whether an object counts, and what took its place and why: fields that mean nothing apart.
type standing struct {
	Status    string  `json:"status"`
	Successor *string `json:"successor"`
	Reason    *string `json:"reason"`
}

// fields gives the recorded fields.
func (o *object) fields() change.Fields {
	return change.Fields{change.State: change.StateOf(o.TrashedAt), "kind": o.Kind, "subject": o.Subject, "statement": o.Statement, "private": o.Private == 1,
		"standing": standing{o.Status, o.Successor, o.Reason}, "supersedes": o.Supersedes, "source": o.Source}
}

// doc is what of an object can be found, and by whom.
func (o *object) doc() search.Doc {
	kind := kindContext
	switch {
	case o.Private == 1 || o.Status == proposed || o.Status == declined:
		kind = kindOwners
	case o.Status != current:
		kind = kindPast
	}
	return search.Doc{Heap: o.Heap, Thing: o.ID, Kind: kind, Title: o.Subject, Body: o.Statement, Day: op.Stamp(o.At)[:len(time.DateOnly)]}
}

// visible tells whether the caller may see an object at all: no agent sees a private one.
func (o *object) visible(c *who.Caller) bool {
	_, granted := c.ByID(o.Heap)
	return granted && (c.Person || o.Private == 0)
}

// public tells whether an agent may be told of it: what waits for the owner does nothing until accepted.
func (o *object) public(c *who.Caller) bool {
	return o.visible(c) && o.TrashedAt == nil && (c.Person || o.Status != proposed && o.Status != declined)
}

// title gives an object in one line.
func (o *object) title() string {
	t := strings.Trim(change.Brief(o.Statement), `"`)
	if o.Status != current {
		t += " (" + o.Status + ")"
	}
	return t
}

func (s *Service) link(o *object) string { return s.public() + "/memory/" + o.ID }

func (s *Service) contextCards(ctx context.Context, ids []string) (map[string]search.Card, error) {
	c, cards := who.From(ctx), map[string]search.Card{}
	for part := range slices.Chunk(ids, 100) {
		args := db.Args{}
		found, err := s.objects(ctx, `o.trashed_at IS NULL AND o.id IN `+args.List(part), args)
		if err != nil {
			return nil, err
		}
		for _, o := range found {
			if o.public(c) {
				cards[o.ID] = search.Card{ID: o.ID, Title: o.title(), URL: s.link(&o)}
			}
		}
	}
	return cards, nil
}

func (s *Service) contextPage(ctx context.Context, id string) (search.Page, bool, error) {
	o := &object{}
	err := s.db.One(ctx, `SELECT `+objectColumns+` FROM context o WHERE o.id = $1`, []any{strings.ToLower(id)}, o.dest()...)
	if db.IsNone(err) || err == nil && !o.public(who.From(ctx)) {
		return search.Page{}, false, nil
	}
	if err != nil {
		return search.Page{}, false, err
	}
	before, err := s.seen(ctx, o.Supersedes)
	if err != nil {
		return search.Page{}, false, err
	}
	after, err := s.seen(ctx, o.Successor)
	if err != nil {
		return search.Page{}, false, err
	}
	reason := db.Text(o.Reason)
	if o.Successor != nil && o.Status == superseded && after == "" { // it's about what isn't to be seen
		reason = ""
	}
	m := map[string]any{"kind": o.Kind, "status": o.Status, "at": op.Stamp(o.At), "updated_at": op.Stamp(o.UpdatedAt)}
	for name, v := range map[string]string{"subject": o.Subject, "supersedes": before, "successor": after, "reason": reason} {
		if v != "" {
			m[name] = v
		}
	}
	return search.Page{Card: search.Card{ID: o.ID, Title: o.title(), URL: s.link(o)}, Text: o.Statement, Metadata: m}, true, nil
}

// seen gives the id of an object if the caller may be told of it, else "".
func (s *Service) seen(ctx context.Context, id *string) (string, error) {
	if id == nil {
		return "", nil
	}
	found, err := s.objects(ctx, `o.id = $1`, []any{*id})
	if err != nil || len(found) == 0 || !found[0].public(who.From(ctx)) {
		return "", err
	}
	return *id, nil
}

// objects reads context objects outside a write. where is SQL on the table o and what follows it.
func (s *Service) objects(ctx context.Context, where string, args []any) ([]object, error) {
	return scanObjects(s.db.Query(ctx, `SELECT `+objectColumns+` FROM context o WHERE `+where, args...))
}

// scanObjects reads the rows of a statement that selects objectColumns.
func scanObjects(rows *sql.Rows, err error) ([]object, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []object
	for rows.Next() {
		var o object
		if err := rows.Scan(o.dest()...); err != nil {
			return nil, err
		}
		found = append(found, o)
	}
	return found, rows.Err()
}

// correctionsIn says which objects are corrections that stand in a list of heaps, newest first. Where they are is read off
// their own index: SQLite would else look through all that stands, by the other one.
func correctionsIn(heaps string) string {
	const which = ` AND o.kind = 'correction' AND o.status = 'current' AND o.private = 0 AND o.trashed_at IS NULL`
	return `o.heap IN ` + heaps + which + ` AND o.at IN (SELECT g.at FROM context g WHERE g.heap IN ` + heaps + ` AND g.kind = 'correction' AND g.status = 'current')
		ORDER BY o.at DESC, o.id DESC`
}

// guard is a correction that stands: what it says without its denials, and whether it had any.
type guard struct {
	id, heap, subject string
	at                int64
	rest              []string
	denies            bool
}

type guards []guard

func guardsOf(objects []object) guards {
	var g guards
	for _, o := range objects {
		if o.Kind == correction && o.Status == current && o.TrashedAt == nil {
			rest, denies := denied(o.Statement)
			g = append(g, guard{o.ID, o.Heap, o.SubjectFolded, o.At, rest, denies})
		}
	}
	return g
}

// against gives the id of a correction that contradicts a statement of a heap, or "": it denies or quotes the statement, or
// it is about the same subject and not older.
func (g guards) against(heap, kind, subject, statement string, at int64) string {
	if kind == correction || len(g) == 0 {
		return ""
	}
	rest, denies := denied(statement)
	for _, c := range g {
		if c.heap == heap && (subject != "" && c.subject == subject && c.at >= at || opposed(c.rest, c.denies, rest, denies)) {
			return c.id
		}
	}
	return ""
}
