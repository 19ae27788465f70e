package oauth

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/internal/account"
	"cairn/internal/audit"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/who"
)

// Choice is what a person chose on the consent page.
type Choice struct {
	Connect bool
	Agent   string // an agent they have, "" = a new one named Name
	Name    string
	Heaps   []string // ids
	Areas   []string // nil = all
	Write   bool
	Stay    bool
	Propose bool
}

// Ticket lets whoever has just shown who they are on the consent page answer that one attempt, without a web session. It
// lives in the page alone and as long as the attempt.
func (s *Service) Ticket(v View, person string) string {
	until := strconv.FormatInt(v.ExpiresAt, 10)
	return person + "." + until + "." + s.token("ticket", v.ID, person, until)
}

// holder gives the account that a ticket for an attempt names.
func (s *Service) holder(attempt, ticket string) (person string, err error) {
	parts := strings.Split(ticket, ".")
	if len(parts) != 3 || !hmac.Equal([]byte(parts[2]), []byte(s.token("ticket", attempt, parts[0], parts[1]))) {
		return "", fault.New(fault.Unauthenticated, "sign in again: this page no longer knows who you are")
	}
	if until, err := strconv.ParseInt(parts[1], 10, 64); err != nil || until <= s.db.Now() {
		return "", fault.New(fault.Unauthenticated, "this request is too old: start it again in the program that asked")
	}
	return parts[0], nil
}

// Holder gives the person that a ticket stands for, with their heaps, and refuses an account that may not let anybody in.
func (s *Service) Holder(ctx context.Context, v View, ticket string) (*who.Caller, error) {
	id, err := s.holder(v.ID, ticket)
	if err != nil {
		return nil, err
	}
	c, err := s.accounts.Person(ctx, id)
	if err != nil {
		return nil, err
	}
	if v.recipient != "" && v.recipient != id {
		return nil, fault.New(fault.NotFound, "this request was sent to somebody else: only they can answer it")
	}
	return c, nil
}

// Claim finds the open attempt with a pairing code, for a signed-in person. A code that is wrong, used up, too old or meant
// for somebody else gets one and the same answer, and so does everything after five tries in a minute.
func (s *Service) Claim(ctx context.Context, c *who.Caller, code string) (View, error) {
	none := fault.New(fault.NotFound, "that code isn't right, or it is used up or too old. Look at the agent's own page for it; after five tries wait a minute")
	none.Field = "code"
	a, err := s.find(ctx, `pairing = $1`, s.pairingHash(code))
	if err != nil && !db.IsNone(err) {
		return View{}, err
	}
	if err != nil || a.state != Open || a.expires <= s.db.Now() || a.recipient != nil && *a.recipient != c.Account {
		w, err := s.limiter.Take(ctx, "pairing:"+c.Account, pairingRate)
		if err == nil && !w.Allowed {
			s.refused("pairing:"+c.Account, From{Address: c.Address, UserAgent: c.Client})
		}
		if err == nil {
			err = none
		}
		return View{}, err
	}
	// The right code counts too once too many wrong ones came: a guesser must not learn that one was right.
	if w, err := s.limiter.Look(ctx, "pairing:"+c.Account, pairingRate); err != nil || w.Remaining <= 0 {
		if err != nil {
			return View{}, err
		}
		return View{}, none
	}
	return s.view(ctx, a, false)
}

// pairingRate is how many wrong codes a minute an account may type.
const pairingRate = 5

// Decide answers an attempt for the person in a caller: once, however often it is sent. Nothing is granted yet: that is when
// the client fetches its tokens, if what was chosen still holds then.
func (s *Service) Decide(ctx context.Context, v View, c *who.Caller, ch Choice) error {
	if v.recipient != "" && v.recipient != c.Account {
		return errAnswered
	}
	ctx = who.With(ctx, c)
	if !ch.Connect {
		return s.db.Write(ctx, func(tx *db.Tx) error { return reject(ctx, tx, v.ID, c.Account) })
	}
	d, err := s.decided(ctx, v, c, ch)
	if err != nil {
		return err
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx *db.Tx) error {
		if err := account.CheckRights(tx, c.Account, d.Rights); err != nil {
			return err
		}
		n, err := tx.Exec(`UPDATE oauth_attempt SET state = 'approved', decided_by = $2, decision = $3, code = $4, decided_at = $5 WHERE id = $1 AND state = 'open' AND expires_at > $5
			AND (recipient IS NULL OR recipient = $2)`, v.ID, c.Account, string(text), sum(s.code(v.ID)), tx.Now)
		if err != nil {
			return err
		}
		if n == 0 {
			return errAnswered
		}
		return nil
	})
}

func (s *Service) decided(ctx context.Context, v View, c *who.Caller, ch Choice) (d decision, err error) {
	if ch.Write && !v.Write {
		return d, fault.Bad("write", "wasn't asked for: the program asked to read alone")
	}
	if slices.ContainsFunc(ch.Heaps, func(h string) bool { return !storable(h) }) {
		return d, fault.Bad("heaps", "has an id in it that is none")
	}
	d = decision{Agent: ch.Agent, Name: ch.Name, Stay: ch.Stay && v.Stay,
		Rights: account.Rights{Write: ch.Write, Propose: ch.Write && ch.Propose, Areas: ch.Areas, Heaps: ch.Heaps}}
	if ch.Agent != "" {
		agents, err := s.accounts.Agents(ctx, c.Account)
		if err != nil {
			return d, err
		}
		if !slices.ContainsFunc(agents, func(a account.Agent) bool { return a.ID == ch.Agent && covers(v, a) }) {
			f := fault.New(fault.NotFound, "you have no agent %q that this request fits", ch.Agent)
			f.Field = "agent"
			return d, f
		}
		return d, nil
	}
	if d.Name = strings.TrimSpace(ch.Name); d.Name == "" {
		d.Name = v.ClientName
	}
	d.Name, err = account.CleanName("name", d.Name)
	return d, err
}

// letIn makes the connection that was decided, and tells the account about it.
func (s *Service) letIn(ctx context.Context, tx *db.Tx, a attempt, d decision) (connection, scope string, err error) {
	scope = account.ScopeRead
	if d.Rights.Write {
		scope += " " + account.ScopeWrite
	}
	if d.Stay {
		scope += " " + account.ScopeStay
	}
	host, _ := redirectHost(a.Redirect)
	connection, err = account.LetIn(ctx, tx, account.Letting{Account: *a.decidedBy, Agent: d.Agent, Name: d.Name, Rights: d.Rights, Client: a.client, ClientName: a.ClientName,
		Facts: account.Facts{ClientKind: a.ClientKind, RedirectHost: host, Address: a.address, UserAgent: a.agent}, Scope: scope, Resource: s.Resource()})
	return connection, scope, err
}

// tell mails the account that an agent was let in: whoever got hold of a session shouldn't do so unseen.
func (s *Service) tell(a attempt, d decision) {
	if s.Notify == nil || a.decidedBy == nil {
		return
	}
	what := "read"
	if d.Rights.Write {
		what = "read and write"
	}
	name := d.Name
	if name == "" {
		name = a.ClientName
	}
	s.Notify(*a.decidedBy, "New agent let in: "+name, fmt.Sprintf("%q (it calls itself %q) was let into your Cairn at %s to %s.\n\nIf that wasn't you, disconnect it: %s/agents\n",
		name, a.ClientName, time.UnixMicro(s.db.Now()).UTC().Format("2006-01-02 15:04 MST"), what, s.Issuer()))
}

// Cancel answers an attempt with no, from the browser that began it: nobody need sign in for that.
func (s *Service) Cancel(ctx context.Context, id, browser string, from From) error {
	if !storable(id) {
		return errAnswered
	}
	return s.db.Write(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(`UPDATE oauth_attempt SET state = 'rejected', decided_at = $3 WHERE id = $1 AND cookie = $2 AND state = 'open' AND expires_at > $3`, id, sum(browser), tx.Now)
		if err != nil {
			return err
		}
		if n == 0 {
			return errAnswered
		}
		return audit.WriteEvent(who.With(ctx, &who.Caller{Address: from.Address, Client: from.UserAgent}), tx, audit.ConsentRejected, id+" unsigned")
	})
}
