// Package account keeps people, their heaps and memberships, and the API tokens they hand to agents. It turns a credential
// into a who.Caller, anew on each request, so that a revoked token or a changed membership counts at once.
package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // zones must be known on machines without a zone database too

	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

// Service is the accounts of one server.
type Service struct {
	db *db.DB
	// DefaultExpiry is how long a token lives where its maker doesn't say.
	DefaultExpiry time.Duration
	// Mail tells whether the server can send mail; set once, before it serves.
	Mail bool
	// Holds says what a heap holds: how many things of which kinds. Nil = it isn't said.
	Holds func(ctx context.Context, heap string) ([]Holding, error)
}

// Holding is how many things of a kind are in a heap.
type Holding struct {
	Kind  string `json:"kind"` // task (an open one), memory, note
	Count int    `json:"count"`
}

// New makes the service.
func New(d *db.DB, defaultExpiry time.Duration) *Service {
	return &Service{db: d, DefaultExpiry: defaultExpiry}
}

// Newcomer is what somebody says of themselves who gets an account.
type Newcomer struct {
	Name, Zone      string
	Admin, Admitted bool
}

// Create makes an account with its Personal and Work heaps, as part of a write. A name that is taken is a Conflict.
func Create(tx *db.Tx, n Newcomer) (id string, err error) {
	id = db.NewID()
	var admitted *int64
	if n.Admitted {
		admitted = &tx.Now
	}
	admin := 0
	if n.Admin {
		admin = 1
	}
	made, err := tx.Exec(`INSERT INTO account (id, name, name_folded, zone, admin, admitted_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (name_folded) DO NOTHING`,
		id, n.Name, who.Fold(n.Name), n.Zone, admin, admitted, tx.Now)
	if err != nil {
		return "", err
	}
	if made == 0 {
		f := fault.New(fault.Conflict, "there is an account named %q already", n.Name)
		f.Field = "name"
		return "", f
	}
	for i, kind := range []string{who.Personal, who.Work} {
		heap, at := db.NewID(), tx.Now+int64(i) // the order of making counts: the personal one is the older
		name := strings.ToUpper(kind[:1]) + kind[1:]
		if err := insertHeap(tx, heap, name, kind, id, at); err != nil {
			return "", err
		}
	}
	return id, nil
}

func insertHeap(tx *db.Tx, heap, name, kind, owner string, at int64) error {
	if _, err := tx.Exec(`INSERT INTO heap (id, name, kind, owner, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $5)`, heap, name, kind, owner, at); err != nil {
		return err
	}
	_, err := tx.Exec(`INSERT INTO member (heap, account, role, created_at) VALUES ($1, $2, 'owner', $3)`, heap, owner, at)
	return err
}

// Bootstrap makes the first account, the admin, with its Personal and Work heaps, where there is none yet. created tells
// whether it did.
func (s *Service) Bootstrap(ctx context.Context) (created bool, err error) {
	if n, err := s.accounts(ctx); err != nil || n > 0 {
		return false, err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		created = false
		var n int
		if err := tx.One(`SELECT count(*) FROM account`, nil, &n); err != nil || n > 0 {
			return err
		}
		// Processes may start together on one fresh database: the unique name lets one of them win.
		_, err := Create(tx, Newcomer{Name: "owner", Zone: systemZone(), Admin: true, Admitted: true})
		if fault.Is(err, fault.Conflict) {
			return nil
		}
		created = err == nil
		return err
	})
	return created, err
}

func (s *Service) accounts(ctx context.Context) (n int, err error) {
	err = s.db.One(ctx, `SELECT count(*) FROM account`, nil, &n)
	return n, err
}

// systemZone names the machine's time zone, or UTC where it can't be told.
func systemZone() string {
	candidates := []string{strings.TrimPrefix(os.Getenv("TZ"), ":")}
	if target, err := filepath.EvalSymlinks("/etc/localtime"); err == nil {
		if _, zone, ok := strings.Cut(filepath.ToSlash(target), "zoneinfo/"); ok {
			candidates = append(candidates, zone)
		}
	}
	if b, err := os.ReadFile("/etc/timezone"); err == nil {
		candidates = append(candidates, strings.TrimSpace(string(b)))
	}
	for _, name := range candidates {
		if name != "" && name != "Local" {
			if _, err := time.LoadLocation(name); err == nil {
				return name
			}
		}
	}
	return "UTC"
}

// Owner gives the caller for whoever works on the machine itself: the account named, or the first one where name is "".
// person says whether it is the person (the command line) or a program on their behalf (stdio).
func (s *Service) Owner(ctx context.Context, name string, person bool) (*who.Caller, error) {
	q, args := `SELECT id FROM account WHERE disabled_at IS NULL AND admitted_at IS NOT NULL ORDER BY created_at, id LIMIT 1`, []any(nil)
	if name != "" {
		q, args = `SELECT id FROM account WHERE name_folded = $1 AND disabled_at IS NULL AND admitted_at IS NOT NULL`, []any{who.Fold(name)}
	}
	var id string
	if err := s.db.One(ctx, q, args, &id); err != nil {
		if db.IsNone(err) {
			return nil, fault.New(fault.NotFound, "there is no account %q", name)
		}
		return nil, err
	}
	c, paused, err := s.caller(ctx, id)
	if err != nil {
		return nil, err
	}
	c.Request = db.NewID()
	if person {
		c.Person, c.Proved = true, s.db.Now()
		return c, nil
	}
	c.Actor = "stdio:" + c.Account // an agent on the machine itself; what it does is not the person's doing
	if paused {
		return nil, errPaused
	}
	return c, nil
}

// Person gives the caller for somebody who has signed in to an account. An account that is disabled, or waits to be
// admitted, calls nothing.
func (s *Service) Person(ctx context.Context, id string) (*who.Caller, error) {
	c, _, err := s.caller(ctx, id)
	if err != nil {
		return nil, err
	}
	c.Person, c.Via = true, who.ViaWeb
	return c, nil
}

// errPaused is what an agent gets while its owner, or the server's admin, has paused it. Its tokens live on.
var errPaused = fault.New(fault.Denied, "paused by the owner: nothing was done. Its owner can resume it under Agents; don't try again before")

// caller gives an account with all its heaps and rights, and whether its agents are paused.
func (s *Service) caller(ctx context.Context, id string) (c *who.Caller, paused bool, err error) {
	c = &who.Caller{AllAreas: true, Write: true}
	var zone string
	var admin int64
	var heaps, server *string
	var disabled, admitted, pausedAt *int64
	err = s.db.One(ctx, `SELECT a.id, a.name, a.zone, a.admin, a.disabled_at, a.admitted_at, a.agents_paused_at, `+serverPaused+`, `+heapsColumn+` FROM account a WHERE a.id = $1`,
		[]any{id, fieldEnd, heapEnd}, &c.Account, &c.AccountName, &zone, &admin, &disabled, &admitted, &pausedAt, &server, &heaps)
	switch {
	case db.IsNone(err):
		return nil, false, fault.New(fault.TokenInactive, "there is no such account")
	case err != nil:
		return nil, false, err
	case disabled != nil:
		return nil, false, fault.New(fault.TokenInactive, "the account is disabled")
	case admitted == nil:
		return nil, false, fault.New(fault.Denied, "the account %q waits for the server's admin to admit it", c.AccountName).With("reason", "waiting")
	}
	c.Heaps = readHeaps(heaps, nil)
	c.Zone, c.Admin = location(zone), admin == 1
	c.Actor = "account:" + c.Account
	return c, pausedAt != nil || server != nil, nil
}

// pausedSetting is the setting that holds all agents of the server while it is there; its value is since when.
const pausedSetting = "agents_paused_at"

// serverPaused is the column of pausedSetting.
const serverPaused = `(SELECT value FROM setting WHERE name = '` + pausedSetting + `')`

// Control characters that end a field and a heap in heapsColumn; no heap's name may hold one.
const (
	fieldEnd = "\x1f"
	heapEnd  = "\x1e"
)

// heapsColumn gives all heaps of the account a in one text, those it has had longest first: what names no heap goes to the
// first that fits, which mustn't change because somebody shares an older heap. The caller is looked up on every request, and
// each column of each row costs. $2 is fieldEnd and $3 heapEnd.
const heapsColumn = `(SELECT string_agg(h.id || CAST($2 AS TEXT) || h.name || CAST($2 AS TEXT) || h.kind || CAST($2 AS TEXT) || m.role, CAST($3 AS TEXT) ORDER BY m.created_at, h.created_at, h.id)
	FROM member m JOIN heap h ON h.id = m.heap WHERE m.account = a.id AND h.archived_at IS NULL)`

// readHeaps reads heapsColumn, leaving out heaps that are not among only (nil = all).
func readHeaps(text *string, only []string) []who.Heap {
	if text == nil {
		return nil
	}
	var heaps []who.Heap
	for h := range strings.SplitSeq(*text, heapEnd) {
		f := strings.Split(h, fieldEnd)
		if len(f) == 4 && (only == nil || slices.Contains(only, f[0])) {
			heaps = append(heaps, who.Heap{ID: f[0], Name: f[1], Kind: f[2], Role: f[3]})
		}
	}
	return heaps
}

// zones keeps the zones that were asked for: reading one from the zone database takes longer than the rest of a request.
var zones sync.Map

func location(zone string) *time.Location {
	if l, ok := zones.Load(zone); ok {
		return l.(*time.Location)
	}
	l, err := time.LoadLocation(zone)
	if err != nil {
		return time.UTC
	}
	zones.Store(zone, l)
	return l
}

// Ops are the operations of this package.
func (s *Service) Ops() []*op.Op {
	return slices.Concat(s.ownOps(), s.heapOps(), s.inviteOps(), s.agentOps(), s.peopleOps())
}

func (s *Service) ownOps() []*op.Op {
	return []*op.Op{
		op.Define(op.Op{Name: "list_heaps", Title: "List heaps", Area: who.Core, Effect: op.Read,
			Doc: "The heaps (separate spaces) you may use, oldest first, with kind and role. Tasks made without a heap go to the heap of the fitting kind."},
			s.listHeaps),
		op.Define(op.Op{Name: "set_account", Title: "Set account", Area: who.Core, Effect: op.Write, Set: "admin", PersonOnly: true, Idempotent: true,
			Example: `{"zone":"UTC"}`, Doc: "Change the name or the time zone of your own account."},
			s.setAccount),
		op.Define(op.Op{Name: "create_token", Title: "Create token", Area: who.Core, Effect: op.Write, Set: "admin", PersonOnly: true,
			Example: `{"name":"laptop"}`, Doc: "Make an API token for an agent. It is shown once."},
			s.createToken),
		op.Define(op.Op{Name: "list_tokens", Title: "List tokens", Area: who.Core, Effect: op.Read, Set: "admin", PersonOnly: true,
			Doc: "Your API tokens with their rights and use; never the tokens themselves."},
			s.listTokens),
		op.Define(op.Op{Name: "revoke_token", Title: "Revoke token", Area: who.Core, Effect: op.Destroy, Set: "admin", PersonOnly: true, Idempotent: true, Confirm: true,
			Example: `{"token":"laptop"}`, Doc: "End an API token at once, by id or name."},
			s.revokeToken),
	}
}

type heapsOut struct {
	Count int       `json:"count"`
	Heaps []heapOut `json:"heaps"`
}

type heapOut struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Kind string `json:"kind"`
	Role string `json:"role"`
}

func (s *Service) listHeaps(ctx context.Context, _ struct{}) (heapsOut, error) {
	out := heapsOut{Heaps: []heapOut{}}
	for _, h := range who.From(ctx).Heaps {
		out.Heaps = append(out.Heaps, heapOut{h.ID, h.Name, h.Kind, h.Role})
	}
	out.Count = len(out.Heaps)
	return out, nil
}

type accountIn struct {
	Name *string `json:"name" rule:"min=1,max=300"`
	Zone *string `json:"zone" jsonschema:"IANA name such as Europe/Vienna" rule:"min=1,max=100"`
}

type accountOut struct {
	ID      string `json:"id"`
	Result  string `json:"result"`
	Account struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		Zone string `json:"zone"`
	} `json:"account"`
}

func (s *Service) setAccount(ctx context.Context, in accountIn) (out accountOut, err error) {
	if in.Name == nil && in.Zone == nil {
		return out, fault.Bad("name", "or zone must be given")
	}
	if in.Name != nil {
		name, err := CleanName("name", *in.Name)
		if err != nil {
			return out, err
		}
		in.Name = &name
	}
	if in.Zone != nil {
		if l, err := time.LoadLocation(*in.Zone); err != nil || l == time.Local {
			return out, fault.Bad("zone", "is %q, must be an IANA zone such as Europe/Vienna or UTC", *in.Zone)
		}
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		id := who.From(ctx).Account
		_, now, err := s.getAccount(tx, id)
		if err != nil {
			return err
		}
		set := map[string]json.RawMessage{}
		for f, v := range map[string]*string{"name": in.Name, "zone": in.Zone} {
			if v != nil {
				set[f], _ = json.Marshal(strings.TrimSpace(*v))
			}
		}
		e := change.Entry{Kind: accountKind, Thing: id, Effect: change.Update, Before: change.Fields{}, After: change.Fields{}, Summary: "Changed the account"}
		for f, v := range set {
			if string(now[f]) != string(v) {
				e.Before[f], e.After[f] = now[f], v
			}
		}
		out.ID, out.Result, out.Account.ID = id, "existing", id
		if len(e.After) > 0 {
			if err := s.putAccount(ctx, tx, id, set); err != nil {
				return err
			}
			change.Record(ctx, tx, e)
			out.Result = "updated"
		}
		return tx.One(`SELECT name, zone FROM account WHERE id = $1`, []any{id}, &out.Account.Name, &out.Account.Zone)
	})
	return out, err
}

const accountKind = "account"

// Kinds are the kinds of thing whose changes can be undone here.
func (s *Service) Kinds() []change.Kind {
	return []change.Kind{
		{Name: accountKind, Area: who.Core, PersonOnly: true, Get: s.getAccount, Set: s.putAccount},
		{Name: heapKind, Area: who.Core, PersonOnly: true, Get: s.getHeapFields, Set: s.putHeapFields},
	}
}

func (s *Service) getAccount(tx *db.Tx, id string) (heap string, now map[string]json.RawMessage, err error) {
	var name, zone string
	if err := tx.One(`SELECT name, zone FROM account WHERE id = $1`+tx.ForUpdate(), []any{id}, &name, &zone); err != nil {
		return "", nil, err
	}
	now = map[string]json.RawMessage{}
	now["name"], _ = json.Marshal(name)
	now["zone"], _ = json.Marshal(zone)
	return "", now, nil
}

func (s *Service) putAccount(_ context.Context, tx *db.Tx, id string, set map[string]json.RawMessage) error {
	for f, raw := range set {
		var v string
		if err := json.Unmarshal(raw, &v); err != nil {
			return err
		}
		var err error
		switch f {
		case "name":
			_, err = tx.Exec(`UPDATE account SET name = $2, name_folded = $3 WHERE id = $1`, id, v, who.Fold(v))
		case "zone":
			_, err = tx.Exec(`UPDATE account SET zone = $2 WHERE id = $1`, id, v)
		default:
			err = fmt.Errorf("an account has no field %q", f)
		}
		if db.IsUnique(err) {
			return fault.New(fault.Conflict, "there is an account named %q already", v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settingMoment gives the moment that a setting holds, in microseconds since 1970; nil where it holds none.
func settingMoment(v *string) *int64 {
	if v == nil {
		return nil
	}
	at, err := strconv.ParseInt(*v, 10, 64)
	if err != nil {
		return nil
	}
	return &at
}

// errNoToken is what an unknown token gets, whatever is wrong with it: an attacker learns nothing from the words.
var errNoToken = errors.New("no such token")
