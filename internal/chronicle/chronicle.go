// Package chronicle keeps the owner's record and what happened when: daily notes, decisions, episodes, the journal, evidence,
// meetings, people, quests and the blueprint, and a timeline over all of them. What is private reaches no agent by any tool.
package chronicle

import (
	"context"
	"slices"
	"strings"

	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/meaning"
	"cairn/internal/op"
	"cairn/internal/search"
	"cairn/internal/who"
)

// area is the area that all of this belongs to; set is the owner's part of it, off the default list.
const (
	area = "memory"
	set  = "record"
)

// Service is the record of one server.
type Service struct {
	db     *db.DB
	public func() string // the server's address, for links

	// Completions hands out the tasks completed in heaps since a moment, newest first, after the one with this id at the moment
	// below ("" = before it). nil = there are none.
	Completions func(ctx context.Context, heaps []who.Heap, since, below int64, id string, limit int,
		add func(id, heap, name string, project, sourceURL *string, at int64)) error
	// ProjectHeap gives the heap of a project, "" where there is none. nil = there are none.
	ProjectHeap func(tx *db.Tx, id string) (string, error)
	// Decided makes the context object that a decision is too and gives its id: it runs in the write that adds the decision,
	// before any row is locked. nil = there is none.
	Decided func(ctx context.Context, tx *db.Tx, heap, decision, title string, at int64) (string, error)
	// Stale hears, in the write, that the blueprint of a heap changes; Lock, before anything is locked, that it may.
	Lock, Stale func(tx *db.Tx, heap string) error
}

// New makes the service.
func New(d *db.DB, public func() string) *Service { return &Service{db: d, public: public} }

var errTaken = fault.New(fault.Conflict, "somebody else added the same just now: look and try again")

// Ops are the operations of this package.
func (s *Service) Ops() []*op.Op {
	person := func(name, title, example, doc string) op.Op {
		return op.Op{Name: name, Title: title, Area: area, Set: set, PersonOnly: true, Effect: op.Write, Example: example, Doc: doc}
	}
	look := func(name, title, example, doc string) op.Op {
		o := person(name, title, example, doc)
		o.Effect = op.Read
		return o
	}
	return []*op.Op{
		op.Define(op.Op{Name: "upsert_daily_note", Title: "Write daily note", Area: area, Effect: op.Write, Idempotent: true,
			Example: `{"external_ref":"brief-2026-08-10","date":"2026-08-10","title":"Morning brief","body":"# Today"}`,
			Doc:     "Leave the person a note on a day, in Markdown: a brief, a digest, a review. The same external_ref replaces it, so a job that runs again doesn't pile up notes."}, s.upsertNote),
		op.Define(op.Op{Name: "add_decision", Title: "Add decision", Area: area, Effect: op.Write, Idempotent: true, Example: `{"external_ref":"d1","title":"We move to Lisbon"}`,
			Doc: "Keep a decision that the person made, with why. It counts as a current decision from then on. The same external_ref gives the existing one."}, s.addDecision),
		op.Define(op.Op{Name: "get_timeline", Title: "Get timeline", Area: area, Effect: op.Read,
			Doc: "What happened, newest first, by when it happened: tasks done, journal, evidence, meetings, daily notes, decisions, episodes. The last 14 days unless since or until is given. Go on with next_cursor."}, s.timeline),
		op.Define(op.Op{Name: "add_episode", Title: "Add episode", Area: area, Effect: op.Write, Idempotent: true, Example: `{"external_ref":"e1","occurred_at":"2026-08-09","summary":"Visited the workshop"}`,
			Doc: "Keep something that happened to the person. Not for completed tasks, journal entries or decisions, which are on the timeline already. People are matched by name, never created: those not known come back in people_unknown."}, s.addEpisode),
		op.Define(person("journal", "Journal", `{"text":"A quiet day"}`, "Write a journal entry, or change one (id)."), s.journal),
		op.Define(person("evidence", "Evidence", `{"statement":"I ran 5 km"}`, "Note what shows that you are on the way, for a quest or in general, or change it (id)."), s.evidence),
		op.Define(person("meeting", "Meeting", `{"summary":"Talked about the garden"}`, "Note a meeting and who was there, or change it (id). People are matched, never created."), s.meeting),
		op.Define(person("quest", "Quest", `{"title":"Learn to sail"}`, "Begin a quest, or change one (id)."), s.quest),
		op.Define(person("blueprint", "Blueprint", `{"section":"values","text":"Honesty first"}`, "Write a section of what you stand on: foundation, values or beliefs."), s.blueprint),
		op.Define(person("person", "Person", `{"name":"Anna"}`, "Add somebody you know, or change them (id or slug)."), s.person),
		op.Define(look("list_people", "List people", "", "The people you know, by name."), s.listPeople),
		op.Define(look("get_person", "Get person", `{"person":"none"}`, "One person, with what they were part of lately."), s.getPerson),
		op.Define(look("list_quests", "List quests", "", "Your quests, those under way first."), s.listQuests),
	}
}

// spec is a kind of thing of the record: how it is made, where its page lies, and whether it may be private.
type spec struct {
	kind, path string
	blank      func() thing
	private    bool
	owner      bool // only a person takes its changes back
}

var specs = []spec{
	{kindNote, "notes", func() thing { return newNote() }, false, false},
	{kindDecision, "decisions", func() thing { return newDecision() }, false, false},
	{kindEpisode, "timeline", func() thing { return newEpisode() }, false, false},
	{kindJournal, "timeline", func() thing { return owned(kindJournal)() }, true, true},
	{kindEvidence, "timeline", func() thing { return owned(kindEvidence)() }, true, true},
	{kindMeeting, "timeline", func() thing { return owned(kindMeeting)() }, true, true},
	{kindPerson, "people", func() thing { return newPerson() }, true, true},
	{kindQuest, "quests", func() thing { return newQuest() }, false, true},
	{kindBlueprint, "blueprint", func() thing { return newBlueprint() }, true, true},
}

// Kinds are the kinds whose changes can be taken back. A change of what was private at the time has a kind of its own,
// which no agent sees; a change from before is hidden from agents while the thing is private.
func (s *Service) Kinds() (kinds []change.Kind) {
	for _, sp := range specs {
		k := change.Kind{Name: sp.kind, Area: area, PersonOnly: sp.owner, Get: getter(sp.blank), Set: s.setter(sp.blank)}
		if sp.blank().about().table == "episode" {
			k.Personal = []string{"people"} // private people may be among them
		}
		if sp.kind == kindDecision {
			k.Hide = `EXISTS (SELECT 1 FROM decision WHERE decision.id = thing AND ` + hushed + `)`
		}
		if sp.private {
			k.Hide = `NOT EXISTS (SELECT 1 FROM ` + sp.blank().about().table + ` x WHERE x.id = thing AND x.private = 0)`
			hidden := k
			hidden.Name, hidden.Hide = privately+sp.kind, `1 = 1`
			kinds = append(kinds, hidden)
		}
		kinds = append(kinds, k)
	}
	return kinds
}

// Sources are the kinds that search and fetch show. What is private is found under kinds that only persons may search.
func (s *Service) Sources() (sources []search.Source) {
	for _, sp := range specs {
		src := search.Source{Kind: sp.kind, Area: area, Cards: s.cards(sp), Page: s.page(sp), Text: s.text(sp)}
		sources = append(sources, src)
		if sp.private {
			src.Kind, src.PersonOnly = privately+sp.kind, true
			src.Page = func(context.Context, string) (search.Page, bool, error) { return search.Page{}, false, nil } // the other one has it
			sources = append(sources, src)
		}
	}
	return sources
}

func (s *Service) linkTo(sp spec, t thing) string {
	return s.public() + "/" + sp.path + "/" + t.base().ID
}

func (s *Service) cards(sp spec) func(ctx context.Context, ids []string) (map[string]search.Card, error) {
	return func(ctx context.Context, ids []string) (map[string]search.Card, error) {
		c, cards := who.From(ctx), map[string]search.Card{}
		for part := range slices.Chunk(ids, chunk) {
			args := db.Args{}
			all, err := readAll(s.query(ctx), sp.blank, `trashed_at IS NULL AND id IN `+args.List(padded(part))+forAgents(c, sp.kind), args...)
			if err != nil {
				return nil, err
			}
			for _, t := range all {
				if sees(c, t) && t.about().kind == sp.kind {
					cards[t.base().ID] = search.Card{ID: t.base().ID, Title: t.about().line, URL: s.linkTo(sp, t)}
				}
			}
		}
		return cards, nil
	}
}

func (s *Service) page(sp spec) func(ctx context.Context, id string) (search.Page, bool, error) {
	return func(ctx context.Context, id string) (search.Page, bool, error) {
		c, t := who.From(ctx), sp.blank()
		err := read(s.one(ctx), t, `id = $1 AND trashed_at IS NULL`+forAgents(c, sp.kind), strings.ToLower(id))
		if db.IsNone(err) || err == nil && (!sees(c, t) || t.about().kind != sp.kind) {
			return search.Page{}, false, nil
		}
		if err != nil {
			return search.Page{}, false, err
		}
		p := search.Page{Card: search.Card{ID: t.base().ID, Title: t.about().line, URL: s.linkTo(sp, t)}, Text: strings.TrimSpace(t.about().body),
			Metadata: map[string]any{"kind": sp.kind, "heap": t.base().Heap, "private": t.about().hidden, "updated_at": op.Stamp(t.base().UpdatedAt)}}
		if p.Text == "" {
			p.Text = t.about().line
		}
		return p, true, s.describe(ctx, t, p.Metadata)
	}
}

// text gives what of a thing is embedded: who may see it is asked where it is found.
func (s *Service) text(sp spec) meaning.TextOf {
	return func(ctx context.Context, id string) (meaning.Text, bool, error) {
		t := sp.blank()
		err := read(s.one(ctx), t, `id = $1 AND trashed_at IS NULL`, id)
		if db.IsNone(err) {
			return meaning.Text{}, false, nil
		}
		if err != nil {
			return meaning.Text{}, false, err
		}
		d := docOf(t)
		return meaning.Text{Title: d.Title, Body: d.Body}, true, nil
	}
}

// describe adds what a kind alone has to the metadata of a page.
func (s *Service) describe(ctx context.Context, t thing, m map[string]any) error {
	switch t := t.(type) {
	case *note:
		m["date"], m["source_url"], m["external_ref"] = t.Date, t.SourceURL, t.Ref
	case *decision:
		m["decided_at"], m["source_url"], m["external_ref"] = op.Stamp(int64(t.At)), t.SourceURL, t.Ref
	case *episode:
		e, err := s.shown(ctx, t)
		if err != nil {
			return err
		}
		m["kind"], m["at"], m["people"], m["project_id"], m["quest_id"], m["source_url"] = e.Kind, e.At, e.People, e.ProjectID, e.QuestID, e.SourceURL
	case *person:
		m["slug"], m["aliases"] = t.Slug, t.Aliases
	case *quest:
		m["status"], m["from"], m["until"] = t.Status, t.From, t.Until
	}
	return nil
}

// changed follows a write of a thing with what hangs on it: the Self page cites the blueprint.
func (s *Service) changed(tx *db.Tx, t thing) error {
	if t.about().kind == kindBlueprint && s.Stale != nil {
		return s.Stale(tx, t.base().Heap)
	}
	return nil
}
