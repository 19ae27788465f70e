package chronicle

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/who"
)

type episodeIn struct {
	ExternalRef string   `json:"external_ref" jsonschema:"your own key; the same one again gives the existing episode" rule:"required,min=1,max=300"`
	OccurredAt  string   `json:"occurred_at" jsonschema:"when it happened: time (RFC 3339) or date, back to year 1" rule:"required,min=1,max=64"`
	Summary     string   `json:"summary" jsonschema:"what happened, in a sentence or two" rule:"required,min=1,max=2000"`
	Kind        string   `json:"kind" jsonschema:"one word of your own; default episode" rule:"min=1,max=60"`
	Detail      string   `json:"detail" rule:"max=20000"`
	People      []string `json:"people" jsonschema:"names of who was there, as the person knows them" rule:"max=50"`
	ProjectID   string   `json:"project_id" rule:"uuid,max=300"`
	QuestID     string   `json:"quest_id" rule:"uuid,max=300"`
	SourceURL   string   `json:"source_url" jsonschema:"http or https" rule:"url,max=2048"`
	Heap        string   `json:"heap" jsonschema:"id or name" rule:"max=300"`
}

type episodeOut struct {
	refOut
	People
	Episode Episode `json:"episode"`
}

// People says which of the people named could not be told. Nobody is made of a name.
type People struct {
	Unknown   []string    `json:"people_unknown"`
	Ambiguous []Ambiguous `json:"people_ambiguous,omitempty"`
}

// Ambiguous is a name that several people have.
type Ambiguous struct {
	Name  string   `json:"name"`
	Slugs []string `json:"slugs"` // one of these says who is meant
}

// takenKinds are the kinds of episode that have their own way in.
var takenKinds = []string{kindJournal, kindEvidence, kindMeeting, kindDecision, kindNote, kindCompleted, "note", "task", "completion", "task_completion"}

func (s *Service) addEpisode(ctx context.Context, in episodeIn) (episodeOut, error) {
	out, c := episodeOut{}, who.From(ctx)
	at, err := momentOf(ctx, "occurred_at", in.OccurredAt)
	if err != nil {
		return out, err
	}
	kind := strings.Join(strings.Fields(strings.ToLower(in.Kind)), "_")
	if slices.Contains(takenKinds, kind) {
		return out, fault.Bad("kind", "is %q: completions, decisions, notes, the journal, evidence and meetings are on the timeline already; leave it out, or give a word of your own", in.Kind)
	}
	if err := checkNames("people", in.People); err != nil {
		return out, err
	}
	e, result, err := reffed(ctx, s, in.Heap, in.ExternalRef, newEpisode, func(c *who.Caller, tx *db.Tx, e *episode) (err error) {
		e.Ref, e.Actor, e.Summary, e.Detail, e.At, e.SourceURL = &in.ExternalRef, c.Actor, strings.TrimSpace(in.Summary), db.Null(in.Detail), *at, db.Null(in.SourceURL)
		if kind != "" {
			e.Kind = kind
		}
		if e.Project, err = s.project(ctx, tx, in.ProjectID); err != nil {
			return err
		}
		if e.Quest, err = theQuest(c, tx, in.QuestID); err != nil {
			return err
		}
		e.People, out.People, err = match(c, tx.Query, e.Heap, in.People)
		return err
	}, nil)
	if err != nil {
		return out, err
	}
	if result == "existing" {
		if _, out.People, err = match(c, s.query(ctx), e.Heap, in.People); err != nil {
			return out, err
		}
	}
	out.refOut = refOut{ID: e.ID, Result: result, ExternalRef: db.Text(e.Ref), State: inTrash(e)}
	out.Episode, err = s.shown(ctx, e)
	return out, err
}

// project checks that a project lies in a heap granted.
func (s *Service) project(ctx context.Context, tx *db.Tx, id string) (*string, error) {
	if id == "" {
		return nil, nil
	}
	id = strings.ToLower(id)
	c, absent := who.From(ctx), fault.New(fault.NotFound, "there is no project with the id %s", id)
	absent.Field = "project_id"
	if s.ProjectHeap == nil || !c.MayArea("tasks") {
		return nil, absent
	}
	heap, err := s.ProjectHeap(tx, id)
	if _, granted := c.ByID(heap); err == nil && !granted {
		return nil, absent
	}
	return &id, err
}

// theQuest checks that a quest lies in a heap granted.
func theQuest(c *who.Caller, tx *db.Tx, id string) (*string, error) {
	if id == "" {
		return nil, nil
	}
	q := newQuest()
	err := read(tx.One, q, `id = $1 AND trashed_at IS NULL`, strings.ToLower(id))
	if db.IsNone(err) || err == nil && !sees(c, q) {
		e := fault.New(fault.NotFound, "there is no quest with the id %s", id)
		e.Field = "quest_id"
		return nil, e
	}
	return &q.ID, err
}

type journalIn struct {
	ID      string `json:"id" jsonschema:"of the entry to change; leave out for a new one" rule:"uuid,max=300"`
	At      string `json:"at" jsonschema:"time (RFC 3339) or date; default now" rule:"max=64"`
	Text    string `json:"text" jsonschema:"required for a new entry" rule:"min=1,max=20000"`
	Private *bool  `json:"private" jsonschema:"no agent sees it"`
	Heap    string `json:"heap" jsonschema:"id or name" rule:"max=300"`
}

type entryOut struct {
	kept
	Entry Episode `json:"entry"`
}

func (s *Service) journal(ctx context.Context, in journalIn) (entryOut, error) {
	return s.entry(ctx, kindJournal, entryIn{id: in.ID, heap: in.Heap, at: in.At, private: in.Private, field: "text", text: in.Text})
}

type evidenceIn struct {
	ID        string   `json:"id" jsonschema:"of the evidence to change; leave out for a new one" rule:"uuid,max=300"`
	At        string   `json:"at" jsonschema:"time (RFC 3339) or date; default now" rule:"max=64"`
	Statement string   `json:"statement" jsonschema:"what shows that you are on the way; required for a new one" rule:"min=1,max=2000"`
	QuestID   string   `json:"quest_id" rule:"uuid,max=300"`
	Private   *bool    `json:"private" jsonschema:"no agent sees it"`
	Clear     []string `json:"clear" jsonschema:"fields to empty" rule:"max=50,enum=quest_id"`
	Heap      string   `json:"heap" jsonschema:"id or name" rule:"max=300"`
}

func (s *Service) evidence(ctx context.Context, in evidenceIn) (entryOut, error) {
	return s.entry(ctx, kindEvidence, entryIn{id: in.ID, heap: in.Heap, at: in.At, private: in.Private, field: "statement", text: in.Statement, more: func(tx *db.Tx, e *episode) error {
		if len(in.Clear) > 0 {
			if in.QuestID != "" {
				return fault.Bad("clear", "names quest_id, which is given a value too")
			}
			e.Quest = nil
		}
		q, err := theQuest(who.From(ctx), tx, in.QuestID)
		if q != nil {
			e.Quest = q
		}
		return err
	}})
}

type meetingIn struct {
	ID      string   `json:"id" jsonschema:"of the meeting to change; leave out for a new one" rule:"uuid,max=300"`
	At      string   `json:"at" jsonschema:"time (RFC 3339) or date; default now" rule:"max=64"`
	People  []string `json:"people" jsonschema:"names, aliases or slugs; replaces who was there" rule:"max=50"`
	Summary string   `json:"summary" jsonschema:"required for a new one" rule:"min=1,max=20000"`
	Private *bool    `json:"private" jsonschema:"no agent sees it"`
	Heap    string   `json:"heap" jsonschema:"id or name" rule:"max=300"`
}

type meetingOut struct {
	entryOut
	People
}

func (s *Service) meeting(ctx context.Context, in meetingIn) (meetingOut, error) {
	if err := checkNames("people", in.People); err != nil {
		return meetingOut{}, err
	}
	people := People{Unknown: []string{}}
	out, err := s.entry(ctx, kindMeeting, entryIn{id: in.ID, heap: in.Heap, at: in.At, private: in.Private, field: "summary", text: in.Summary, more: func(tx *db.Tx, e *episode) (err error) {
		if in.People != nil {
			e.People, people, err = match(who.From(ctx), tx.Query, e.Heap, in.People)
		}
		return err
	}})
	return meetingOut{out, people}, err
}

// entryIn is what an entry of the owner's record is made or changed by. more puts in what one kind alone has.
type entryIn struct {
	id, heap, at, field, text string
	private                   *bool
	more                      func(tx *db.Tx, e *episode) error
}

func (s *Service) entry(ctx context.Context, kind string, in entryIn) (out entryOut, err error) {
	at, err := momentOf(ctx, "at", in.at)
	if err != nil {
		return out, err
	}
	if in.id == "" && in.text == "" {
		return out, fault.Bad(in.field, "is required for a new one and must be a non-empty string")
	}
	e, one, err := keep(ctx, s, in.id, in.heap, owned(kind), func(tx *db.Tx, e *episode) error {
		if in.id == "" {
			e.At, e.Actor = now(tx), who.From(ctx).Actor
		}
		if at != nil {
			e.At = *at
		}
		if in.text != "" {
			e.Summary = in.text
		}
		if in.private != nil {
			e.Private = yes(*in.private)
		}
		if in.more != nil {
			return in.more(tx, e)
		}
		return nil
	})
	if err != nil {
		return out, err
	}
	out.kept = one
	out.Entry, err = s.shown(ctx, e)
	return out, err
}

// shown gives one episode as the timeline has it.
func (s *Service) shown(ctx context.Context, e *episode) (Episode, error) {
	c := who.From(ctx)
	list := []Episode{{ID: e.ID, Heap: e.Heap, Kind: e.Kind, Summary: e.Summary, Detail: e.Detail, ProjectID: e.Project, QuestID: e.Quest, SourceURL: e.SourceURL,
		Source: e.Actor, Private: bool(e.Private), at: int64(e.At), own: true}}
	list[0].finish(c)
	err := s.namePeople(ctx, list)
	return list[0], err
}

// checkNames checks the names of people, which no schema does.
func checkNames(field string, names []string) error {
	for i, n := range names {
		if strings.TrimSpace(n) == "" {
			return fault.Bad(field, "has an empty name (the %d. of %d)", i+1, len(names))
		}
		if chars := utf8.RuneCountInString(n); chars > maxName {
			return fault.Bad(field, "has a name of %d characters, at most %d are allowed (the %d. of %d)", chars, maxName, i+1, len(names))
		}
	}
	return nil
}

// maxName is how many characters a name may have.
const maxName = 300
