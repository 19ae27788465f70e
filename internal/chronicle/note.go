package chronicle

import (
	"context"
	"strings"

	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/op"
	"cairn/internal/rawjson"
	"cairn/internal/who"
)

type noteIn struct {
	ExternalRef string `json:"external_ref" jsonschema:"your own key; the same one again replaces the note" rule:"required,min=1,max=300"`
	Date        string `json:"date" jsonschema:"the day it is about, YYYY-MM-DD" rule:"required,date,max=64"`
	Title       string `json:"title" rule:"required,min=1,max=300"`
	Body        string `json:"body" jsonschema:"Markdown" rule:"required,min=1,max=20000"`
	SourceURL   string `json:"source_url" jsonschema:"http or https" rule:"url,max=2048"`
	Heap        string `json:"heap" jsonschema:"id or name" rule:"max=300"`
}

// Note is a daily note without its body, which whoever wrote it has.
type Note struct {
	ID        string  `json:"id"`
	Heap      string  `json:"heap"`
	Date      string  `json:"date"`
	Title     string  `json:"title"`
	SourceURL *string `json:"source_url"`
	CreatedAt string  `json:"created_at"`
	UpdatedAt string  `json:"updated_at"`
}

// refOut begins the answers about things with an external_ref. State is set where the thing lies in the trash: then nothing
// was changed.
type refOut struct {
	ID          string `json:"id"`
	Result      string `json:"result"` // created, updated or existing
	ExternalRef string `json:"external_ref"`
	Date        string `json:"date,omitempty"`
	State       string `json:"state,omitempty"`
}

func (o refOut) texts() []string {
	b, _ := rawjson.Marshal(o) // texts alone: it always marshals
	return []string{string(b)}
}

type noteOut struct {
	refOut
	Note Note `json:"note"`
}

// Texts gives the short answer as HeroMind did.
func (o noteOut) Texts([]byte) []string { return o.texts() }

func (s *Service) upsertNote(ctx context.Context, in noteIn) (noteOut, error) {
	fill := func(_ *db.Tx, n *note) error {
		n.Date, n.Title, n.Body, n.SourceURL = op.Day(in.Date), strings.TrimSpace(in.Title), in.Body, db.Null(in.SourceURL)
		return nil
	}
	n, result, err := reffed(ctx, s, in.Heap, in.ExternalRef, newNote, func(c *who.Caller, tx *db.Tx, n *note) error {
		n.Ref, n.Actor = in.ExternalRef, c.Actor
		return fill(tx, n)
	}, fill)
	if err != nil {
		return noteOut{}, err
	}
	return noteOut{refOut{n.ID, result, n.Ref, n.Date, inTrash(n)}, Note{n.ID, n.Heap, n.Date, n.Title, n.SourceURL, op.Stamp(n.CreatedAt), op.Stamp(n.UpdatedAt)}}, nil
}

// inTrash gives the state of a thing if it is in the trash.
func inTrash(t thing) string {
	if t.base().TrashedAt != nil {
		return change.Trashed
	}
	return ""
}

// reffed makes the thing with an external_ref, or finds it in any heap granted. made puts what was given into a new one; again,
// if not nil, into one that was there. What is in the trash stays there as it is.
func reffed[T thing](ctx context.Context, s *Service, heap, external string, blank func() T, made func(c *who.Caller, tx *db.Tx, t T) error, again func(tx *db.Tx, t T) error) (t T, result string, err error) {
	c := who.From(ctx)
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		for try := 1; ; try++ {
			found, ok, err := byRef(c, tx.One, blank, external, tx.ForUpdate())
			if err != nil {
				return err
			}
			if ok {
				t, result = found, "existing"
				if again == nil || t.base().TrashedAt != nil {
					return nil
				}
				if err := writable(c, t.base().Heap); err != nil {
					return err
				}
				result = "updated"
				_, err := alter(ctx, s, tx, t, again)
				return err
			}
			h, err := c.Target(heap, nil)
			if err != nil {
				return err
			}
			t, result = blank(), "created"
			t.base().ID, t.base().Heap = db.NewID(), h.ID
			if err := made(c, tx, t); err != nil {
				return err
			}
			err = insert(ctx, tx, t)
			if err != nil || t.base().CreatedAt != 0 {
				if err == nil {
					err = s.changed(tx, t)
				}
				return err
			}
			if try == 2 { // on PostgreSQL another write may make the ref in between, once
				return errTaken
			}
		}
	})
	return t, result, err
}

type decisionIn struct {
	ExternalRef string `json:"external_ref" jsonschema:"your own key; the same one again gives the existing decision" rule:"required,min=1,max=300"`
	Title       string `json:"title" jsonschema:"what was decided, in one sentence" rule:"required,min=1,max=300"`
	Detail      string `json:"detail" jsonschema:"why, what else was weighed" rule:"max=20000"`
	DecidedAt   string `json:"decided_at" jsonschema:"time (RFC 3339) or date; default now" rule:"max=64"`
	SourceURL   string `json:"source_url" jsonschema:"http or https" rule:"url,max=2048"`
	Heap        string `json:"heap" jsonschema:"id or name" rule:"max=300"`
}

// Decision is a decision without its detail.
type Decision struct {
	ID        string  `json:"id"`
	Heap      string  `json:"heap"`
	Title     string  `json:"title"`
	DecidedAt string  `json:"decided_at"`
	SourceURL *string `json:"source_url"`
	ContextID *string `json:"context_id"` // the context object that came with it
	CreatedAt string  `json:"created_at"`
}

type decisionOut struct {
	refOut
	Decision *Decision `json:"decision,omitempty"` // not where the owner made it private
}

// Texts gives the short answer as HeroMind did.
func (o decisionOut) Texts([]byte) []string { return o.texts() }

func (s *Service) addDecision(ctx context.Context, in decisionIn) (decisionOut, error) {
	at, err := momentOf(ctx, "decided_at", in.DecidedAt)
	if err != nil {
		return decisionOut{}, err
	}
	d, result, err := reffed(ctx, s, in.Heap, in.ExternalRef, newDecision, func(c *who.Caller, tx *db.Tx, d *decision) error {
		d.Ref, d.Actor, d.Title, d.Detail, d.SourceURL = in.ExternalRef, c.Actor, strings.TrimSpace(in.Title), db.Null(in.Detail), db.Null(in.SourceURL)
		d.At = now(tx)
		if at != nil {
			d.At = *at
		}
		if s.Decided == nil {
			return nil
		}
		id, err := s.Decided(ctx, tx, d.Heap, d.ID, d.Title, int64(d.At))
		d.Context = &id
		return err
	}, nil)
	if err != nil {
		return decisionOut{}, err
	}
	out := decisionOut{refOut: refOut{ID: d.ID, Result: result, ExternalRef: d.Ref, State: inTrash(d)}}
	c := who.From(ctx)
	if result == "existing" && !c.Person {
		unseen := forAgents(c, kindDecision)
		if d.Actor == c.Actor { // who wrote it may see that it waits
			unseen = ` AND NOT ` + hushed
		}
		err := s.db.One(ctx, `SELECT id FROM decision WHERE id = $1`+unseen, []any{d.ID}, &d.ID)
		if db.IsNone(err) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
	}
	out.Decision = &Decision{d.ID, d.Heap, d.Title, op.Stamp(int64(d.At)), d.SourceURL, d.Context, op.Stamp(d.CreatedAt)}
	return out, nil
}

// hushed tells of a row of decision that the owner made the context object that came with it private: so is it, then.
const hushed = `EXISTS (SELECT 1 FROM context x WHERE x.id = decision.context AND x.private = 1)`

// waiting tells of a row of decision that its context object waits for the owner, or was declined: then nobody decided it.
const waiting = `EXISTS (SELECT 1 FROM context x WHERE x.id = decision.context AND x.status IN ('proposed', 'declined'))`

// forAgents ends a condition on things of a kind with what keeps from agents what is private or not yet decided.
func forAgents(c *who.Caller, kind string) string {
	if c.Person || kind != kindDecision {
		return "" // other kinds have a mark of their own
	}
	return ` AND NOT ` + hushed + ` AND NOT ` + waiting
}

// momentOf reads when something happened in the account's zone; nil where nothing was given.
func momentOf(ctx context.Context, field, s string) (*moment, error) {
	if s == "" {
		return nil, nil
	}
	at, _, err := op.Moment(field, s, who.From(ctx).Zone)
	m := moment(at)
	return &m, err
}
