package memory

import (
	"context"
	"strconv"

	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/who"
)

const (
	maxWaiting = 200 // proposals of one agent
	maxSimilar = 20  // ids that an answer lists
)

// told is what a caller says of an object.
type told struct {
	Kind      string `json:"kind" rule:"required,enum=decision|belief|mental_model|learning|open_question|preference|original|correction"`
	Statement string `json:"statement" jsonschema:"one sentence, first person" rule:"required,min=1,max=2000"`
	Subject   string `json:"subject" jsonschema:"what it is about, in a word or two; the same for the same thing" rule:"max=300"`
	Private   bool   `json:"private" jsonschema:"no agent sees it again"`
}

type captureIn struct {
	Objects []told `json:"objects" rule:"required,min=1,max=20"`
	Propose bool   `json:"propose" jsonschema:"wait for the owner to accept"`
	Heap    string `json:"heap" jsonschema:"id or name" rule:"max=300"`
}

// Captured says what became of one object.
type Captured struct {
	ID       string   `json:"id"`
	Result   string   `json:"result"` // created or existing
	Kind     string   `json:"kind"`
	Subject  string   `json:"subject,omitempty"`
	Status   string   `json:"status"`
	Similar  []string `json:"similar,omitempty"`  // current ones of the same kind and subject, or the correction it runs into
	Stripped int      `json:"stripped,omitempty"` // hidden characters that were taken out
	Note     string   `json:"note,omitempty"`
}

type captureOut struct {
	Results []Captured `json:"results"`
}

func (s *Service) capture(ctx context.Context, in captureIn) (captureOut, error) {
	var out captureOut
	h, err := who.From(ctx).Target(in.Heap, nil)
	if err != nil {
		return out, err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		out = captureOut{Results: make([]Captured, 0, len(in.Objects))}
		if err := lockContext(tx, h.ID); err != nil {
			return err
		}
		for _, t := range in.Objects {
			_, c, err := s.makeContext(ctx, tx, h.ID, t, made{Propose: in.Propose})
			if err != nil {
				return err
			}
			out.Results = append(out.Results, c)
		}
		return nil
	})
	return out, err
}

// made says how an object comes to be.
type made struct {
	Propose bool
	Source  string // the thing it comes with, such as "decision:ID"
	At      int64  // when it was so; 0 = now
}

// makeContext makes a context object, or finds the one that says the same, as part of a write. The caller has locked the heap
// (lockContext).
func (s *Service) makeContext(ctx context.Context, tx *db.Tx, heap string, t told, m made) (*object, Captured, error) {
	c := who.From(ctx)
	o, stripped, err := t.object(heap)
	if err != nil {
		return nil, Captured{}, err
	}
	same, err := nearDuplicate(tx, c, o)
	if err != nil {
		return nil, Captured{}, err
	}
	if same != nil {
		out := captured(same, "existing", stripped)
		if same.Status != superseded {
			return same, out, nil
		}
		next, err := living(tx, same.Successor)
		if err == nil && next != nil && next.visible(c) {
			out.Similar, out.Note = []string{next.ID}, "the owner changed their mind since: supersede the one named in similar if they are back at this"
		}
		return same, out, err
	}
	near, err := s.neighbours(tx, o, c)
	if err != nil {
		return nil, Captured{}, err
	}
	o.Status, o.Source, o.At = current, db.Null(m.Source), m.At
	note := ""
	if guard, err := guardedBy(tx, c, o); err != nil {
		return nil, Captured{}, err
	} else if guard != "" {
		o.Status, note = proposed, "the owner corrected something about this, so it waits for them: the correction is named in similar"
		near = append([]string{guard}, near...)
	}
	if m.Propose || c.Propose {
		o.Status = proposed
	}
	if err := s.add(ctx, tx, o); err != nil {
		return nil, Captured{}, err
	}
	out := captured(o, "created", stripped)
	out.Similar, out.Note = near, note
	return o, out, nil
}

func captured(o *object, result string, stripped int) Captured {
	return Captured{ID: o.ID, Result: result, Kind: o.Kind, Subject: o.Subject, Status: o.Status, Stripped: stripped}
}

// object makes what is told into an object, cleaned.
func (t told) object(heap string) (*object, int, error) {
	statement, a := clean(t.Statement)
	subject, b := clean(t.Subject)
	if statement == "" {
		return nil, 0, fault.Bad("statement", "is required and must be a non-empty string")
	}
	return &object{Heap: heap, Kind: t.Kind, Statement: statement, Subject: subject, SubjectFolded: foldSubject(subject), Folded: fold(statement), Private: db.Flag(t.Private)}, a + b, nil
}

// add stores a new object, if its maker has not too many that wait.
func (s *Service) add(ctx context.Context, tx *db.Tx, o *object) error {
	if o.Status == proposed {
		var n int
		actor := who.From(ctx).Actor
		if err := tx.One(`SELECT count(*) FROM context WHERE actor = $1 AND status = 'proposed' AND trashed_at IS NULL`, []any{actor}, &n); err != nil {
			return err
		}
		if n >= maxWaiting {
			return fault.New(fault.Conflict, "%d of your proposals wait for the owner, which is the most: nothing was added; tell them to look through those", n).With("waiting", n)
		}
	}
	return insertContext(ctx, tx, o)
}

// nearDuplicate finds the object that says the same as o: of the same kind, its statement of the same essence, of the same
// subject where both have one. The one that stands comes before one that waits, that before one that doesn't any more. A
// person is never held to what they declined or gave up; an agent is, and it meets none of the private ones except its own as
// it wrote them.
func nearDuplicate(tx *db.Tx, c *who.Caller, o *object) (*object, error) {
	found, err := selectContext(tx, `o.heap = $1 AND o.folded = $2 AND o.kind = $3 AND o.trashed_at IS NULL AND ($4 = '' OR o.subject_folded = '' OR o.subject_folded = $4)
		ORDER BY CASE o.status WHEN 'current' THEN 0 WHEN 'proposed' THEN 1 WHEN 'declined' THEN 2 WHEN 'retired' THEN 3 ELSE 4 END, CASE WHEN o.subject_folded = $4 THEN 0 ELSE 1 END, o.id`,
		o.Heap, o.Folded, o.Kind, o.SubjectFolded)
	if err != nil {
		return nil, err
	}
	for i := range found {
		f := &found[i]
		if c.Person {
			if f.Status == current || f.Status == proposed {
				return f, nil
			}
			continue
		}
		if f.Private == 0 || f.Actor == c.Actor && f.CreatedAt == f.UpdatedAt && f.Statement == o.Statement && o.Private == 1 {
			return f, nil
		}
	}
	return nil, nil
}

// sameSubject says which current objects of a heap ($1) are of a subject ($2) and kind ($3), the newest maxSimilar of them; $4 is
// 1 where private ones count. Status is in it as an expression: else it leads SQLite along an index over all that stands. And
// without a subject that isn't empty no index by subject is used.
var sameSubject = `o.heap = $1 AND o.subject_folded = $2 AND o.subject_folded <> '' AND o.kind = $3 AND o.status || '' = 'current' AND o.private <= $4
	AND o.trashed_at IS NULL ORDER BY o.at DESC, o.id DESC LIMIT ` + strconv.Itoa(maxSimilar)

// neighbours gives the ids of current objects of the same kind and subject, newest first.
func (s *Service) neighbours(tx *db.Tx, o *object, c *who.Caller) ([]string, error) {
	if o.SubjectFolded == "" {
		return nil, nil
	}
	found, err := selectContext(tx, sameSubject, o.Heap, o.SubjectFolded, o.Kind, db.Flag(c.Person))
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, f := range found {
		if f.visible(c) {
			ids = append(ids, f.ID)
		}
	}
	return ids, nil
}

// guardedBy gives the id of a correction that speaks against what an agent says, or "". A person may say what they like.
func guardedBy(tx *db.Tx, c *who.Caller, o *object) (string, error) {
	if c.Person || o.Kind == correction {
		return "", nil
	}
	found, err := selectContext(tx, correctionsIn(`($1)`), o.Heap)
	if err != nil {
		return "", err
	}
	return guardsOf(found).against(o.Heap, o.Kind, o.SubjectFolded, o.Statement, 0), nil
}

type supersedeIn struct {
	ID        string `json:"id" jsonschema:"the current one" rule:"required,uuid,max=300"`
	Statement string `json:"statement" jsonschema:"one sentence, first person" rule:"required,min=1,max=2000"`
	Reason    string `json:"reason" jsonschema:"why the person changed their mind" rule:"max=2000"`
}

type supersedeOut struct {
	ID         string `json:"id"`
	Supersedes string `json:"supersedes"`
	Result     string `json:"result"`
	Status     string `json:"status"`
	Stripped   int    `json:"stripped,omitempty"`
	Note       string `json:"note,omitempty"`
}

func (s *Service) supersede(ctx context.Context, in supersedeIn) (supersedeOut, error) {
	var out supersedeOut
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		old, err := loadContext(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		o, stripped, err := told{Kind: old.Kind, Subject: old.Subject, Statement: in.Statement, Private: old.Private == 1}.object(old.Heap)
		if err != nil {
			return err
		}
		reason, n := clean(in.Reason)
		out, err = s.replace(ctx, tx, old, o, db.Null(reason))
		out.Stripped = stripped + n
		return err
	})
	return out, err
}

// replace puts o in the place of old, or proposes to.
func (s *Service) replace(ctx context.Context, tx *db.Tx, old, o *object, reason *string) (supersedeOut, error) {
	c := who.From(ctx)
	out := supersedeOut{Supersedes: old.ID}
	same, err := nearDuplicate(tx, c, o)
	if err != nil {
		return out, err
	}
	if same != nil && same.ID != old.ID && db.Text(same.Supersedes) == old.ID && same.Status != retired { // said before: a retry, or declined
		out.ID, out.Result, out.Status = same.ID, "existing", same.Status
		return out, nil
	}
	if err := replaceable(tx, c, old); err != nil {
		return out, err
	}
	if same != nil && same.ID == old.ID {
		return out, fault.New(fault.Conflict, "the new statement says the same as the one it would supersede").With("id", old.ID)
	}
	guard, err := guardedBy(tx, c, o)
	if err != nil {
		return out, err
	}
	asks := c.Propose || !c.Person && (old.Kind == correction || guard != "") // an error comes back by the owner's own hand alone
	switch {
	case same != nil && same.Status == declined:
		out.ID, out.Result, out.Status, out.Note = same.ID, "existing", declined, "the owner declined this"
		return out, nil
	case same != nil && same.Status == current && !asks: // the new view is there already: link the two
		out.ID, out.Result, out.Status = same.ID, "existing", current
		return out, s.joinChain(ctx, tx, old, same, reason)
	}
	o.ID, o.Supersedes = db.NewID(), &old.ID
	out.ID, out.Result, out.Status = o.ID, "created", current
	if asks {
		o.Status, o.Reason, out.Status = proposed, reason, proposed
		return out, s.add(ctx, tx, o)
	}
	o.Status = current
	if err := retireFor(ctx, tx, old, o.ID, reason); err != nil {
		return out, err
	}
	return out, s.add(ctx, tx, o)
}

// replaceable refuses to supersede what doesn't stand, and names what does.
func replaceable(tx *db.Tx, c *who.Caller, old *object) error {
	switch old.Status {
	case current:
		return nil
	case superseded:
		next, err := living(tx, old.Successor)
		if err != nil {
			return err
		}
		if next == nil { // its successor was taken back
			return nil
		}
		if !next.visible(c) {
			return fault.New(fault.Conflict, "it was superseded already").With("id", old.ID)
		}
		return fault.New(fault.Conflict, "it was superseded already, by %s: supersede that one", next.ID).With("successor", next.ID)
	}
	return fault.New(fault.Conflict, "it is %s, so it can't be superseded", old.Status).With("id", old.ID).With("status", old.Status)
}

// retireFor marks an object as superseded by another.
func retireFor(ctx context.Context, tx *db.Tx, old *object, successor string, reason *string) error {
	was := *old
	old.Status, old.Successor, old.Reason = superseded, &successor, reason
	_, err := saveContext(ctx, tx, &was, old, "Superseded")
	return err
}

// joinChain makes a current object the successor of another. It can't be one of those that the other came from: they don't stand.
func (s *Service) joinChain(ctx context.Context, tx *db.Tx, old, o *object, reason *string) error {
	for prev := old.Supersedes; prev != nil; {
		if *prev == o.ID {
			return fault.New(fault.Conflict, "%s came before it in the same chain", o.ID).With("id", o.ID)
		}
		p, err := living(tx, prev)
		if err != nil {
			return err
		}
		if p == nil {
			break
		}
		prev = p.Supersedes
	}
	return retireFor(ctx, tx, old, o.ID, reason)
}

type correctIn struct {
	Statement string `json:"statement" jsonschema:"the owner's own words" rule:"required,min=1,max=2000"`
	Subject   string `json:"subject" jsonschema:"the subject of what is wrong" rule:"max=300"`
	Heap      string `json:"heap" jsonschema:"id or name" rule:"max=300"`
}

type correctOut struct {
	Captured
	Contradicts []string `json:"contradicts,omitempty"` // ids of current ones that are told no more
}

func (s *Service) correct(ctx context.Context, in correctIn) (correctOut, error) {
	c := who.From(ctx)
	var out correctOut
	h, err := c.Target(in.Heap, nil)
	if err != nil {
		return out, err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		out = correctOut{}
		if err := lockContext(tx, h.ID); err != nil {
			return err
		}
		o, res, err := s.makeContext(ctx, tx, h.ID, told{Kind: correction, Statement: in.Statement, Subject: in.Subject}, made{})
		if err != nil {
			return err
		}
		out.Captured = res
		if o.Status != current {
			return nil
		}
		all, err := selectContext(tx, `o.heap = $1 AND o.status = 'current' AND o.private = 0 AND o.trashed_at IS NULL ORDER BY o.at DESC, o.id DESC`, h.ID)
		g := guardsOf([]object{*o})
		for _, f := range all {
			if len(out.Contradicts) < maxSimilar && g.against(h.ID, f.Kind, f.SubjectFolded, f.Statement, f.At) != "" {
				out.Contradicts = append(out.Contradicts, f.ID)
			}
		}
		return err
	})
	return out, err
}
