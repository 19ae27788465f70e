package account

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"cairn/internal/audit"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/who"
)

// Scopes of access tokens. A grant has one right: reading alone, or reading and writing.
const (
	ScopeRead  = "cairn.read"
	ScopeWrite = "cairn.write"
	ScopeStay  = "offline_access"
)

// AgentRate is how many calls a minute a connected agent may make.
const AgentRate = 1000

// Rights are what an agent may. Heaps are ids; Areas nil means all, later ones too.
type Rights struct {
	Write   bool
	Propose bool
	Areas   []string
	Heaps   []string
}

func (r Rights) stored() string {
	b, _ := json.Marshal(rights{Write: r.Write, Propose: r.Propose, Areas: r.Areas, Heaps: r.Heaps})
	return string(b)
}

// Facts are what was known of a client when it was let in, kept with its connection.
type Facts struct {
	ClientKind   string `json:"client_kind"`   // registered, or metadata
	RedirectHost string `json:"redirect_host"` // where its key went
	Address      string `json:"address"`
	UserAgent    string `json:"user_agent"`
}

// Letting is one act of letting a client in.
type Letting struct {
	Account            string // who lets it in
	Agent              string // the agent it continues, "" = a new one named Name
	Name               string
	Rights             Rights
	Client, ClientName string
	Facts              Facts
	Scope, Resource    string
}

// LetIn makes the connection of a client that a person has let in, as part of a write, and gives its id. A connection that
// the agent had ends. Rights that reach beyond what the account owns or administers are refused.
func LetIn(ctx context.Context, tx *db.Tx, l Letting) (connection string, err error) {
	if err := stillOpen(tx, l.Account); err != nil {
		return "", err
	}
	if err := CheckRights(tx, l.Account, l.Rights); err != nil {
		return "", err
	}
	agent := l.Agent
	if agent == "" {
		agent = db.NewID()
		name, err := CleanName("name", l.Name)
		if err != nil {
			return "", err
		}
		if _, err := tx.Exec(`INSERT INTO agent (id, account, name, rights, created_at) VALUES ($1, $2, $3, $4, $5)`, agent, l.Account, name, l.Rights.stored(), tx.Now); err != nil {
			return "", err
		}
	} else {
		if err := replaceRights(tx, l); err != nil {
			return "", err
		}
		if err := endConnections(tx, agent, "replaced by a new connection"); err != nil {
			return "", err
		}
	}
	facts, err := json.Marshal(l.Facts)
	if err != nil {
		return "", err
	}
	connection = db.NewID()
	_, err = tx.Exec(`INSERT INTO connection (id, agent, client, client_name, facts, scope, resource, created_at, access_until) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)`,
		connection, agent, l.Client, l.ClientName, string(facts), l.Scope, l.Resource, tx.Now)
	if err != nil {
		return "", err
	}
	return connection, audit.WriteEvent(ctx, tx, audit.AgentConnected, fmt.Sprintf("%s %s: %s for %s", agent, l.ClientName, l.Scope, l.Rights.stored()))
}

// stillOpen refuses an account that was disabled, as part of a write, and keeps it as it is until the write is done.
func stillOpen(tx *db.Tx, account string) error {
	var disabled, admitted *int64
	err := tx.One(`SELECT disabled_at, admitted_at FROM account WHERE id = $1`+tx.ForUpdate(), []any{account}, &disabled, &admitted)
	if err == nil && (disabled != nil || admitted == nil) {
		err = fault.New(fault.TokenInactive, "the account is disabled")
	}
	return err
}

// replaceRights gives the agent that a letting continues its new rights; a rate of its own stays.
func replaceRights(tx *db.Tx, l Letting) error {
	var text string
	err := tx.One(`SELECT rights FROM agent WHERE id = $1 AND account = $2 AND ended_at IS NULL`+tx.ForUpdate(), []any{l.Agent, l.Account}, &text)
	if db.IsNone(err) {
		return fault.New(fault.NotFound, "you have no agent %q", l.Agent)
	}
	var r rights
	if err == nil {
		err = json.Unmarshal([]byte(text), &r)
	}
	if err != nil {
		return err
	}
	r.Write, r.Propose, r.Areas, r.Heaps = l.Rights.Write, l.Rights.Propose, l.Rights.Areas, l.Rights.Heaps
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = tx.Exec(`UPDATE agent SET rights = $2 WHERE id = $1`, l.Agent, string(b))
	return err
}

// CheckRights refuses, as part of a write, rights without a heap, over heaps that the account doesn't own or administer, or over unknown areas.
func CheckRights(tx *db.Tx, account string, r Rights) error {
	if len(r.Heaps) == 0 {
		return fault.Bad("heaps", "must name at least one heap")
	}
	for _, a := range r.Areas {
		if !slices.Contains(who.Areas, a) {
			f := fault.Bad("areas", "has %q in it, which is no area", a)
			f.Valid = who.Areas
			return f
		}
	}
	if r.Areas != nil && len(r.Areas) == 0 {
		return fault.Bad("areas", "must name at least one area")
	}
	for _, id := range r.Heaps {
		var role string
		err := tx.One(`SELECT m.role FROM member m JOIN heap h ON h.id = m.heap WHERE m.account = $1 AND m.heap = $2 AND h.archived_at IS NULL`, []any{account, id}, &role)
		if db.IsNone(err) || err == nil && !manages(role) {
			f := fault.New(fault.NotFound, "there is no heap %q that you own or administer", id)
			f.Field = "heaps"
			return f
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// endConnections ends what lives of an agent's connections; every token of theirs is dead at once.
func endConnections(tx *db.Tx, agent, why string) error {
	_, err := tx.Exec(`UPDATE connection SET ended_at = $2, ended_why = $3 WHERE agent = $1 AND ended_at IS NULL`, agent, tx.Now, why)
	return err
}

// EndConnection ends one connection, as part of a write. ended is false where it had ended before.
func EndConnection(tx *db.Tx, connection, why string) (ended bool, err error) {
	n, err := tx.Exec(`UPDATE connection SET ended_at = $2, ended_why = $3 WHERE id = $1 AND ended_at IS NULL`, connection, tx.Now, why)
	return n > 0, err
}

// Standing is a connection with what is decided of it at this moment.
type Standing struct {
	Agent, Account, Client, Scope string
	Write                         bool // what the grant says now
}

// Stands reads a connection as part of a write, locked, and refuses one that has ended, for whatever reason: disconnected,
// the account disabled.
func Stands(tx *db.Tx, connection string) (s Standing, err error) {
	var text string
	var ended, agentEnded, disabled, admitted *int64
	lock := tx.ForUpdate()
	if lock != "" {
		lock += " OF c"
	}
	err = tx.One(`SELECT c.agent, g.account, c.client, c.scope, g.rights, c.ended_at, g.ended_at, a.disabled_at, a.admitted_at
		FROM connection c JOIN agent g ON g.id = c.agent JOIN account a ON a.id = g.account WHERE c.id = $1`+lock,
		[]any{connection}, &s.Agent, &s.Account, &s.Client, &s.Scope, &text, &ended, &agentEnded, &disabled, &admitted)
	var r rights
	if err == nil {
		err = json.Unmarshal([]byte(text), &r)
	}
	switch {
	case db.IsNone(err):
		return s, fault.New(fault.TokenInactive, "there is no such connection")
	case err != nil:
		return s, err
	case ended != nil || agentEnded != nil:
		return s, fault.New(fault.TokenInactive, "the agent was disconnected")
	case disabled != nil || admitted == nil:
		return s, fault.New(fault.TokenInactive, "the account is disabled")
	}
	s.Write = r.Write
	return s, nil
}

// ByConnection gives the caller behind an access token whose signature and claims were found good: scope and resource as
// the token says. What the grant says now is read afresh, and both must allow. Of an agent that is paused the fault comes
// with a caller that may do nothing, so that the refusal can be recorded as its.
func (s *Service) ByConnection(ctx context.Context, connection, scope string) (*who.Caller, error) {
	var (
		c                                    who.Caller
		text, zone                           string
		ended, agentEnded, paused, allPaused *int64
		disabled, admitted                   *int64
		heaps, server                        *string
		r                                    rights
	)
	err := s.db.One(ctx, `SELECT g.id, g.rights, c.ended_at, g.ended_at, g.paused_at, a.id, a.name, a.zone, a.disabled_at, a.admitted_at, a.agents_paused_at, `+serverPaused+`, `+heapsColumn+`
		FROM connection c JOIN agent g ON g.id = c.agent JOIN account a ON a.id = g.account WHERE c.id = $1`, []any{connection, fieldEnd, heapEnd},
		&c.Agent, &text, &ended, &agentEnded, &paused, &c.Account, &c.AccountName, &zone, &disabled, &admitted, &allPaused, &server, &heaps)
	if err == nil {
		err = json.Unmarshal([]byte(text), &r)
	}
	switch {
	case db.IsNone(err):
		return nil, fault.New(fault.TokenInactive, "The connection has ended")
	case err != nil:
		return nil, err
	case ended != nil || agentEnded != nil || disabled != nil || admitted == nil:
		return nil, fault.New(fault.TokenInactive, "The agent was disconnected, or its account is disabled")
	}
	c.Actor = "agent:" + c.Agent
	if paused != nil || allPaused != nil || server != nil {
		return &who.Caller{Actor: c.Actor, Account: c.Account}, errPaused
	}
	c.Zone, c.Scope = location(zone), scope
	c.Write, c.Propose = r.Write && HasScope(scope, ScopeWrite), r.Propose
	c.Areas, c.AllAreas, c.Limited, c.Rate = r.Areas, r.Areas == nil, true, AgentRate
	if r.Rate != nil {
		c.Rate = *r.Rate
	}
	c.Heaps = slices.DeleteFunc(readHeaps(heaps, append([]string{}, r.Heaps...)), func(h who.Heap) bool { return !manages(h.Role) })
	return &c, nil
}

// HasScope tells whether a scope text names a scope.
func HasScope(scopes, scope string) bool { return slices.Contains(strings.Fields(scopes), scope) }

// proofAge is how old a person's proof may be for what widens access.
const proofAge = 15 * time.Minute

// Fresh refuses a person whose proof of who they are is too old for what widens access.
func Fresh(c *who.Caller, now int64) error {
	if c.Person && now-c.Proved <= proofAge.Microseconds() {
		return nil
	}
	return fault.New(fault.Denied, "show again who you are: this needs a sign-in of the last %d minutes", int(proofAge.Minutes())).With("reason", "prove_again")
}
