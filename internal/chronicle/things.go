package chronicle

import (
	"slices"
	"strings"

	"cairn/internal/db"
	"cairn/internal/words"
)

// Kinds of things of the record, in the change record, in search and on the timeline.
const (
	kindNote      = "daily_note"
	kindDecision  = "decision"
	kindEpisode   = "episode"
	kindJournal   = "journal"
	kindEvidence  = "evidence"
	kindMeeting   = "meeting"
	kindPerson    = "person"
	kindQuest     = "quest"
	kindBlueprint = "blueprint"
	kindCompleted = "task_completed" // on the timeline alone
)

// DecisionKind is the kind of decisions, for those who ask whether one still stands.
const DecisionKind = kindDecision

// note is a daily note: what an agent wrote about a day.
type note struct {
	core
	Ref, Date, Title, Body string
	SourceURL              *string
	Actor                  string
}

func newNote() *note         { return &note{} }
func (n *note) about() about { return about{kindNote, "daily_note", n.Title, n.Body, false} }
func (n *note) copy() thing  { c := *n; return &c }
func (n *note) cols() []col {
	return []col{{"external_ref", &n.Ref, true}, {"date", &n.Date, false}, {"title", &n.Title, false}, {"body", &n.Body, false},
		{"source_url", &n.SourceURL, false}, {"actor", &n.Actor, true}}
}

// decision is what was decided, when. context is the id of the context object that came with it.
type decision struct {
	core
	Ref, Title string
	Detail     *string
	At         moment
	SourceURL  *string
	Context    *string
	Actor      string
}

func newDecision() *decision { return &decision{} }
func (d *decision) about() about {
	return about{kindDecision, "decision", d.Title, db.Text(d.Detail), false}
}
func (d *decision) copy() thing { c := *d; return &c }
func (d *decision) cols() []col {
	return []col{{"external_ref", &d.Ref, true}, {"title", &d.Title, false}, {"detail", &d.Detail, false}, {"decided_at", &d.At, false},
		{"source_url", &d.SourceURL, false}, {"context", &d.Context, true}, {"actor", &d.Actor, true}}
}

// episode is something that happened. Kind is journal, evidence or meeting, which are the owner's, or an agent's own word.
// People are ids, in order.
type episode struct {
	core
	Ref                       *string
	Kind, Summary             string
	Detail                    *string
	At                        moment
	Project, Quest, SourceURL *string
	Private                   yes
	Actor                     string
	People                    []string
}

func newEpisode() *episode { return &episode{Kind: kindEpisode, People: []string{}} }

// owned makes the blank of one of the owner's kinds.
func owned(kind string) func() *episode {
	return func() *episode { return &episode{Kind: kind, People: []string{}} }
}

func (e *episode) kind() string {
	switch e.Kind {
	case kindJournal, kindEvidence, kindMeeting:
		return e.Kind
	}
	return kindEpisode
}
func (e *episode) line() string {
	first, _, _ := strings.Cut(strings.TrimSpace(e.Summary), "\n")
	if short, was := words.Shorten(first, lineChars); was {
		return short + "…"
	}
	return first
}
func (e *episode) about() about {
	return about{e.kind(), "episode", e.line(), e.Summary + "\n" + db.Text(e.Detail), bool(e.Private)}
}
func (e *episode) copy() thing {
	c := *e
	c.People = slices.Clone(e.People)
	return &c
}
func (e *episode) cols() []col {
	return []col{{"external_ref", &e.Ref, true}, {"kind", &e.Kind, true}, {"summary", &e.Summary, false}, {"detail", &e.Detail, false}, {"at", &e.At, false},
		{"project", &e.Project, false}, {"quest", &e.Quest, false}, {"source_url", &e.SourceURL, false}, {"private", &e.Private, false}, {"actor", &e.Actor, true}}
}

// lineChars is how much of a text stands for it where it has no title.
const lineChars = 120

// link stores who was there.
func (e *episode) link(tx *db.Tx) error {
	if _, err := tx.Exec(`DELETE FROM episode_person WHERE episode = $1`, e.ID); err != nil {
		return err
	}
	for _, p := range e.People {
		// A person who is gone by now is no longer one of them.
		if _, err := tx.Exec(`INSERT INTO episode_person (episode, person) SELECT $1, id FROM person WHERE id = $2 ON CONFLICT DO NOTHING`, e.ID, p); err != nil {
			return err
		}
	}
	return nil
}

func (e *episode) readPeople(query rowsQuery) error {
	list, err := db.Column(query(`SELECT person FROM episode_person WHERE episode = $1`, e.ID))
	slices.Sort(list)
	e.People = append([]string{}, list...)
	return err
}

// person is somebody the owner knows.
type person struct {
	core
	Slug, Name string
	Aliases    texts
	Private    yes
}

func newPerson() *person { return &person{Aliases: texts{}} }
func (p *person) about() about {
	return about{kindPerson, "person", p.Name, strings.Join(p.Aliases, "\n"), bool(p.Private)}
}
func (p *person) copy() thing { c := *p; return &c }
func (p *person) cols() []col {
	return []col{{"slug", &p.Slug, true}, {"name", &p.Name, false}, {"aliases", &p.Aliases, false}, {"private", &p.Private, false}}
}

// quest is what the owner is after for a while.
type quest struct {
	core
	Title       string
	Why         *string
	Status      string
	From, Until *string
}

func newQuest() *quest        { return &quest{Status: "active"} }
func (q *quest) about() about { return about{kindQuest, "quest", q.Title, db.Text(q.Why), false} }
func (q *quest) copy() thing  { c := *q; return &c }
func (q *quest) cols() []col {
	return []col{{"title", &q.Title, false}, {"why", &q.Why, false}, {"status", &q.Status, false}, {"from_date", &q.From, false}, {"until_date", &q.Until, false}}
}

// blueprint is a section of what the owner stands on.
type blueprint struct {
	core
	Section, Text string
	Private       yes
}

func newBlueprint() *blueprint { return &blueprint{} }
func (b *blueprint) about() about {
	return about{kindBlueprint, "blueprint", "Blueprint: " + b.Section, b.Text, bool(b.Private)}
}
func (b *blueprint) copy() thing { c := *b; return &c }
func (b *blueprint) cols() []col {
	return []col{{"section", &b.Section, true}, {"text", &b.Text, false}, {"private", &b.Private, false}}
}
