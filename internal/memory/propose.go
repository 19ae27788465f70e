package memory

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

const noObject = `{"id":"01890a5d-ac96-774b-bcce-b302099a8057"}`

// proposalOps are what the owner does with context objects, and with what agents propose.
func (s *Service) proposalOps() []*op.Op {
	return []*op.Op{
		op.Define(op.Op{Name: "list_proposals", Title: "List proposals", Area: area, Effect: op.Read, Set: record, PersonOnly: true,
			Doc: "What agents propose to remember and waits for the owner, newest first. A proposal that would replace something says what."}, s.proposals),
		op.Define(op.Op{Name: "accept_proposal", Title: "Accept a proposal", Area: area, Effect: op.Write, Set: record, PersonOnly: true, Idempotent: true, Example: noObject,
			Doc: "Let a proposal stand, in other words where statement is given. What it would replace is superseded."}, s.accept),
		op.Define(op.Op{Name: "edit_proposal", Title: "Edit a proposal", Area: area, Effect: op.Write, Set: record, PersonOnly: true, Idempotent: true, Example: noObject[:len(noObject)-1] + `,"statement":"x"}`,
			Doc: "Change what a proposal says while it waits."}, s.editProposal),
		op.Define(op.Op{Name: "decline_proposal", Title: "Decline a proposal", Area: area, Effect: op.Write, Set: record, PersonOnly: true, Idempotent: true, Example: noObject,
			Doc: "Turn a proposal down. It stays declined when it is proposed again."}, s.decline),
		op.Define(op.Op{Name: "retire_context", Title: "Retire from memory", Area: area, Effect: op.Write, Set: record, PersonOnly: true, Idempotent: true, Example: noObject,
			Doc: "Let something that was right stand no more, with nothing in its place. It is kept as retired."}, s.retire),
		op.Define(op.Op{Name: "set_context_private", Title: "Make private", Area: area, Effect: op.Write, Set: record, PersonOnly: true, Idempotent: true,
			Example: noObject[:len(noObject)-1] + `,"private":true}`,
			Doc:     "Keep something in memory from every agent, or let them see it again with private=false."}, s.setPrivate),
		op.Define(op.Op{Name: "list_context", Title: "List memory", Area: area, Effect: op.Read, Set: record, PersonOnly: true,
			Doc: "What is held about the person, newest first or, with a query, best match first. Narrow by status, kind or subject. Go on with next_cursor."}, s.listContext),
	}
}

type objectOut struct {
	ID      string `json:"id"`
	Result  string `json:"result"` // updated, or existing where nothing changed
	Context Object `json:"context"`
}

// change runs an owner's change of one object: set gets it and changes it.
func (s *Service) change(ctx context.Context, id, summary string, set func(tx *db.Tx, o *object) error) (objectOut, error) {
	var out objectOut
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		o, err := loadContext(ctx, tx, id)
		if err != nil {
			return err
		}
		was := *o
		if err := set(tx, o); err != nil {
			return err
		}
		changed, err := saveContext(ctx, tx, &was, o, summary)
		out = objectOut{ID: o.ID, Result: "updated", Context: o.shown()}
		if !changed {
			out.Result = "existing"
		}
		return err
	})
	return out, err
}

// restate gives an object other words.
func restate(o *object, statement string) error {
	if statement == "" {
		return nil
	}
	statement, _ = clean(statement)
	if statement == "" {
		return fault.Bad("statement", "must be a non-empty string")
	}
	o.Statement = statement
	o.Folded = fold(statement)
	return nil
}

type acceptIn struct {
	ID        string `json:"id" rule:"required,uuid,max=300"`
	Statement string `json:"statement" jsonschema:"in other words" rule:"min=1,max=2000"`
}

func (s *Service) accept(ctx context.Context, in acceptIn) (objectOut, error) {
	return s.change(ctx, in.ID, "Accepted", func(tx *db.Tx, o *object) error {
		switch o.Status {
		case current:
			if in.Statement != "" && in.Statement != o.Statement {
				return fault.New(fault.Conflict, "it was accepted already: supersede_context changes what stands").With("id", o.ID)
			}
			return nil
		case proposed, declined:
		default:
			return fault.New(fault.Conflict, "it is %s, and no proposal", o.Status).With("id", o.ID)
		}
		if err := restate(o, in.Statement); err != nil {
			return err
		}
		same, err := nearDuplicate(tx, who.From(ctx), o)
		if err != nil {
			return err
		}
		if same != nil && same.ID != o.ID && same.Status == current {
			return fault.New(fault.Conflict, "%s says the same already: decline this one", same.ID).With("id", same.ID)
		}
		o.Status, o.Reason = current, nil
		return s.acceptChange(ctx, tx, o)
	})
}

// acceptChange supersedes what an accepted proposal was to replace. The reason that came with the proposal goes to that.
func (s *Service) acceptChange(ctx context.Context, tx *db.Tx, o *object) error {
	old, err := living(tx, o.Supersedes)
	if err != nil || old == nil || old.Status == retired {
		return err
	}
	if old.ID == o.ID {
		return nil
	}
	if err := replaceable(tx, who.From(ctx), old); err != nil {
		return err
	}
	var reason *string
	if err := tx.One(`SELECT reason FROM context WHERE id = $1 AND status = 'proposed'`, []any{o.ID}, &reason); err != nil && !db.IsNone(err) {
		return err
	}
	return retireFor(ctx, tx, old, o.ID, reason)
}

type editIn struct {
	ID        string  `json:"id" rule:"required,uuid,max=300"`
	Statement string  `json:"statement" rule:"min=1,max=2000"`
	Subject   *string `json:"subject" rule:"max=300"`
	Kind      string  `json:"kind" rule:"enum=decision|belief|mental_model|learning|open_question|preference|original|correction"`
	Private   *bool   `json:"private"`
}

func (s *Service) editProposal(ctx context.Context, in editIn) (objectOut, error) {
	if in.Statement == "" && in.Subject == nil && in.Kind == "" && in.Private == nil {
		return objectOut{}, fault.Bad("statement", "or another field to change must be given")
	}
	return s.change(ctx, in.ID, "Edited", func(_ *db.Tx, o *object) error {
		if o.Status != proposed {
			return fault.New(fault.Conflict, "it is %s, and waits no more", o.Status).With("id", o.ID)
		}
		if in.Subject != nil {
			o.Subject, _ = clean(*in.Subject)
		}
		if in.Kind != "" {
			o.Kind = in.Kind
		}
		if in.Private != nil {
			o.Private = db.Flag(*in.Private)
		}
		return restate(o, in.Statement)
	})
}

type endIn struct {
	ID     string `json:"id" rule:"required,uuid,max=300"`
	Reason string `json:"reason" rule:"max=2000"`
}

func (s *Service) decline(ctx context.Context, in endIn) (objectOut, error) {
	return s.end(ctx, in, "Declined", proposed, declined)
}

func (s *Service) retire(ctx context.Context, in endIn) (objectOut, error) {
	return s.end(ctx, in, "Retired", current, retired)
}

// end takes an object from one status to another, with a reason; a second time changes nothing.
func (s *Service) end(ctx context.Context, in endIn, summary, from, to string) (objectOut, error) {
	return s.change(ctx, in.ID, summary, func(_ *db.Tx, o *object) error {
		if o.Status == to {
			return nil
		}
		if o.Status != from {
			return fault.New(fault.Conflict, "it is %s, not %s", o.Status, from).With("id", o.ID).With("status", o.Status)
		}
		reason, _ := clean(in.Reason)
		o.Status, o.Reason = to, db.Null(reason)
		return nil
	})
}

type privateIn struct {
	ID      string `json:"id" rule:"required,uuid,max=300"`
	Private bool   `json:"private" rule:"required"`
}

func (s *Service) setPrivate(ctx context.Context, in privateIn) (objectOut, error) {
	summary := "Made visible to agents:"
	if in.Private {
		summary = "Made private:"
	}
	return s.change(ctx, in.ID, summary, func(_ *db.Tx, o *object) error {
		o.Private = db.Flag(in.Private)
		return nil
	})
}

type contextListIn struct {
	Status  string `json:"status" rule:"enum=proposed|current|superseded|retired|declined"`
	Kind    string `json:"kind" rule:"enum=decision|belief|mental_model|learning|open_question|preference|original|correction"`
	Subject string `json:"subject" rule:"max=300"`
	Query   string `json:"query" rule:"max=10000"`
	Heap    string `json:"heap" jsonschema:"id or name" rule:"max=300"`
	Limit   int    `json:"limit" rule:"min=1,max=200"`
	Cursor  string `json:"cursor" rule:"max=300"`
}

type contextListOut struct {
	Count      int      `json:"count"`
	Context    []Object `json:"context"`
	NextCursor *string  `json:"next_cursor,omitempty"`
	Note       string   `json:"note,omitempty"`
}

type proposalsIn struct {
	Heap   string `json:"heap" jsonschema:"id or name" rule:"max=300"`
	Limit  int    `json:"limit" rule:"min=1,max=200"`
	Cursor string `json:"cursor" rule:"max=300"`
}

type proposalsOut struct {
	Count      int      `json:"count"`
	Proposals  []Object `json:"proposals"`
	NextCursor *string  `json:"next_cursor,omitempty"`
}

func (s *Service) proposals(ctx context.Context, in proposalsIn) (proposalsOut, error) {
	l, err := s.listContext(ctx, contextListIn{Status: proposed, Heap: in.Heap, Limit: in.Limit, Cursor: in.Cursor})
	if err != nil {
		return proposalsOut{}, err
	}
	return proposalsOut{l.Count, l.Context, l.NextCursor}, s.addReplaced(ctx, l.Context)
}

// addReplaced puts beside proposals what they would supersede.
func (s *Service) addReplaced(ctx context.Context, list []Object) error {
	args := db.Args{}
	var ids []string
	for _, o := range list {
		if o.Supersedes != "" {
			ids = append(ids, o.Supersedes)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	found, err := s.objects(ctx, `o.id IN `+args.List(ids), args)
	if err != nil {
		return err
	}
	for i := range list {
		if at := slices.IndexFunc(found, func(f object) bool { return f.ID == list[i].Supersedes }); at >= 0 {
			list[i].Replaces = found[at].Statement
		}
	}
	return nil
}

// weight is about how many bytes an object takes in an answer.
func (o *object) weight() int {
	return op.Weight(o.Statement) + op.Weight(o.Subject) + op.Weight(db.Text(o.Reason)) + 500
}

// mostFound bounds how many objects a query looks through.
const mostFound = 1000

func (s *Service) listContext(ctx context.Context, in contextListIn) (contextListOut, error) {
	out := contextListOut{Context: []Object{}}
	heaps, err := who.From(ctx).Readable(in.Heap)
	if err != nil || len(heaps) == 0 {
		return out, err
	}
	args := db.Args{}
	conds := []string{`o.trashed_at IS NULL`, `o.heap IN ` + args.List(who.IDs(heaps))}
	for _, f := range []struct{ column, v string }{{"status", in.Status}, {"kind", in.Kind}, {"subject_folded", foldSubject(in.Subject)}} {
		if f.v != "" {
			conds = append(conds, "o."+f.column+" = "+args.Add(f.v))
		}
	}
	page := op.NewPage(in.Limit)
	if in.Query != "" {
		return s.findContext(ctx, in, who.IDs(heaps), conds, args, page)
	}
	key, err := op.ReadCursor(in.Cursor, 2)
	if err != nil {
		return out, err
	}
	if key != nil {
		at, err := strconv.ParseInt(key[0], 10, 64)
		if err != nil {
			return out, op.BadCursor()
		}
		conds = append(conds, `(o.at, o.id) < (`+args.Add(at)+`, `+args.Add(key[1])+`)`)
	}
	found, err := s.objects(ctx, strings.Join(conds, " AND ")+` ORDER BY o.at DESC, o.id DESC LIMIT `+strconv.Itoa(page.Limit+1), args)
	if err != nil {
		return out, err
	}
	for i, o := range found {
		if !page.Fits(i, o.weight()) {
			last := found[i-1]
			out.NextCursor = op.Cursor(strconv.FormatInt(last.At, 10), last.ID)
			break
		}
		out.Context = append(out.Context, o.shown())
	}
	out.Count = len(out.Context)
	return out, nil
}

// findContext lists by words, best match first. It has no next page: a narrower query finds what lies further down.
func (s *Service) findContext(ctx context.Context, in contextListIn, heaps, conds []string, args db.Args, page *op.Page) (contextListOut, error) {
	out := contextListOut{Context: []Object{}}
	if in.Cursor != "" {
		return out, op.BadCursor()
	}
	found, err := s.engine.Find(ctx, heaps, []string{kindContext, kindPast, kindOwners}, in.Query, mostFound)
	if err != nil {
		return out, err
	}
	out.Note = found.Note
	ids := make([]string, len(found.Hits))
	for i, h := range found.Hits {
		ids[i] = h.Thing
	}
	conds = append(conds, `o.id IN `+args.List(ids))
	rows, err := s.objects(ctx, strings.Join(conds, " AND "), args)
	if err != nil {
		return out, err
	}
	slices.SortFunc(rows, func(a, b object) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
	for i, o := range rows {
		if !page.Fits(i, o.weight()) {
			out.Note = "there are more: narrow the query"
			break
		}
		out.Context = append(out.Context, o.shown())
	}
	out.Count = len(out.Context)
	return out, nil
}
