package account

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"cairn/internal/audit"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

const agentChanged = "agentChanged"

func (s *Service) agentOps() []*op.Op {
	return []*op.Op{
		op.Define(op.Op{Name: "list_agents", Title: "List agents", Area: who.Core, Effect: op.Read, Set: "admin", PersonOnly: true,
			Doc: "The agents you have let in, with their rights, state and use. An admin may list those of all accounts."}, s.listAgents),
		op.Define(op.Op{Name: "get_agent", Title: "Get agent", Area: who.Core, Effect: op.Read, Set: "admin", PersonOnly: true,
			Example: `{"agent":"01890a5d-ac96-774b-bcce-b302099a8057"}`, Doc: "One agent, by id or name."}, s.getAgent),
		op.Define(op.Op{Name: "update_agent", Title: "Update agent", Area: who.Core, Effect: op.Write, Set: "admin", PersonOnly: true, Idempotent: true,
			Example: `{"agent":"01890a5d-ac96-774b-bcce-b302099a8057","write":false}`,
			Doc:     "Rename an agent, or change what it may and how often. It counts at once. A write right reaches a connection whose tokens may only read when it asks again."}, s.updateAgent),
		op.Define(op.Op{Name: "pause_agents", Title: "Pause agents", Area: who.Core, Effect: op.Write, Set: "admin", PersonOnly: true, Idempotent: true,
			Example: `{"all":"account"}`, Doc: "Hold one agent, all of your account's (tokens too), or, as the admin, all of the server's. Their calls are refused; their tokens live on."}, s.pauseAgents),
		op.Define(op.Op{Name: "resume_agents", Title: "Resume agents", Area: who.Core, Effect: op.Write, Set: "admin", PersonOnly: true, Idempotent: true,
			Example: `{"all":"account"}`, Doc: "Let agents that are paused go on. Those paused one by one stay so until they are resumed one by one."}, s.resumeAgents),
		op.Define(op.Op{Name: "disconnect_agent", Title: "Disconnect agent", Area: who.Core, Effect: op.Destroy, Set: "admin", PersonOnly: true, Idempotent: true, Confirm: true,
			Example: `{"agent":"01890a5d-ac96-774b-bcce-b302099a8057"}`, Doc: "End an agent's connection: its access and refresh tokens are dead at once. What it wrote stays."}, s.disconnectAgent),
	}
}

// HeapRef names a heap.
type HeapRef struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Agent is an agent as its owner sees it.
type Agent struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	AccountName  string    `json:"account_name"`
	ClientName   string    `json:"client_name"`
	ClientID     string    `json:"client_id"`
	ClientKind   string    `json:"client_kind"`
	RedirectHost string    `json:"redirect_host"`
	Heaps        []HeapRef `json:"heaps"`
	Write        bool      `json:"write"`
	Propose      bool      `json:"propose_memory"`
	Areas        []string  `json:"areas"` // null = all
	Rate         int       `json:"rate"`  // calls per minute, 0 = no limit
	State        string    `json:"state"` // connected, idle, paused, disconnected
	Connected    bool      `json:"connected"`
	ScopeWrite   bool      `json:"scope_write"` // whether its tokens may carry the write right without asking again
	CreatedAt    string    `json:"created_at"`
	ConnectedAt  string    `json:"connected_at"`
	AccessUntil  *string   `json:"access_until"`
	StayUntil    *string   `json:"stay_until"`
	LastUsedAt   *string   `json:"last_used_at"`
	Calls        int64     `json:"calls"`
	Errors       int64     `json:"errors"`
	PausedAt     *string   `json:"paused_at"`
	Refused      int64     `json:"refused"` // calls since it, or all, were paused
	EndedAt      *string   `json:"ended_at"`
	Address      string    `json:"address"`
	UserAgent    string    `json:"user_agent"`

	pausedSince int64 // 0 = it isn't paused
}

type agentsIn struct {
	All   bool `json:"all" jsonschema:"of all accounts; for the admin"`
	Ended bool `json:"ended" jsonschema:"those disconnected too"`
}

type agentsOut struct {
	Count  int     `json:"count"`
	Agents []Agent `json:"agents"`
}

func (s *Service) listAgents(ctx context.Context, in agentsIn) (agentsOut, error) {
	c := who.From(ctx)
	args := db.Args{}
	where := `g.account = ` + args.Add(c.Account)
	if in.All {
		if !c.Admin {
			return agentsOut{}, fault.New(fault.Denied, "only the server's admin may list the agents of all accounts")
		}
		where, args = `1 = 1`, nil
	}
	if !in.Ended {
		where += ` AND g.ended_at IS NULL`
	}
	list, err := s.agents(ctx, where, args...)
	return agentsOut{len(list), list}, err
}

// Agents lists the agents of an account that are not disconnected.
func (s *Service) Agents(ctx context.Context, account string) ([]Agent, error) {
	return s.agents(ctx, `g.account = $1 AND g.ended_at IS NULL`, account)
}

// EndedAgent gives the agent of an account that a client was last, among those that are disconnected; nil where it was none.
func (s *Service) EndedAgent(ctx context.Context, account, client string) (*Agent, error) {
	list, err := s.agents(ctx, `g.id = (SELECT y.id FROM agent y JOIN connection z ON z.agent = y.id WHERE y.account = $1 AND z.client = $2 AND y.ended_at IS NOT NULL
		ORDER BY y.ended_at DESC, y.id DESC LIMIT 1)`, account, client)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// agents reads agents with their newest connection.
func (s *Service) agents(ctx context.Context, where string, args ...any) ([]Agent, error) {
	names, err := s.heapNames(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.Query(ctx, `SELECT g.id, g.name, a.name, g.rights, g.paused_at, g.ended_at, g.created_at, g.last_used_at, g.calls, g.errors,
		a.agents_paused_at, `+serverPaused+`, c.client, c.client_name, c.facts, c.scope, c.created_at, c.access_until, c.stay_until, c.ended_at
		FROM agent g JOIN account a ON a.id = g.account JOIN connection c ON c.agent = g.id
		WHERE c.id = (SELECT x.id FROM connection x WHERE x.agent = g.id ORDER BY x.created_at DESC, x.id DESC LIMIT 1) AND `+where+`
		ORDER BY g.created_at DESC, g.id DESC`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []Agent{}
	for rows.Next() {
		a, err := s.scanAgent(rows.Scan, names)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	_ = rows.Close() // each count below takes a connection of its own
	for i := range list {
		if a := &list[i]; a.State == "paused" {
			err := s.db.One(ctx, `SELECT count(*) FROM audit_event WHERE id >= $1 AND at >= $2 AND actor = $3 AND event = $4`,
				[]any{db.IDAt(a.pausedSince), a.pausedSince, "agent:" + a.ID, audit.AuthFailure}, &a.Refused)
			if err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

func (s *Service) scanAgent(scan func(...any) error, names map[string]string) (a Agent, err error) {
	var text, facts, scope string
	var created, connected, until int64
	var paused, ended, used, allPaused, stay, connectionEnded *int64
	var server *string
	if err := scan(&a.ID, &a.Name, &a.AccountName, &text, &paused, &ended, &created, &used, &a.Calls, &a.Errors,
		&allPaused, &server, &a.ClientID, &a.ClientName, &facts, &scope, &connected, &until, &stay, &connectionEnded); err != nil {
		return a, err
	}
	var r rights
	var f Facts
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return a, err
	}
	if err := json.Unmarshal([]byte(facts), &f); err != nil {
		return a, err
	}
	a.Write, a.Propose, a.Areas, a.ScopeWrite, a.Heaps = r.Write, r.Propose, r.Areas, HasScope(scope, ScopeWrite), []HeapRef{}
	if a.Rate = AgentRate; r.Rate != nil {
		a.Rate = *r.Rate
	}
	for _, id := range r.Heaps {
		if names[id] != "" {
			a.Heaps = append(a.Heaps, HeapRef{id, names[id]})
		}
	}
	a.ClientKind, a.RedirectHost, a.Address, a.UserAgent = f.ClientKind, f.RedirectHost, f.Address, f.UserAgent
	a.CreatedAt, a.ConnectedAt, a.LastUsedAt, a.PausedAt, a.EndedAt = op.Stamp(created), op.Stamp(connected), stamp(used), stamp(paused), stamp(ended)
	now := s.db.Now()
	if ended == nil && connectionEnded == nil {
		if until > now {
			a.AccessUntil = stamp(&until)
		}
		if stay != nil && *stay > now {
			a.StayUntil = stamp(stay)
		}
		a.Connected = a.AccessUntil != nil || a.StayUntil != nil
	}
	switch {
	case ended != nil:
		a.State = "disconnected"
	case paused != nil || allPaused != nil || server != nil:
		a.State, a.pausedSince = "paused", now
		for _, at := range []*int64{paused, allPaused, settingMoment(server)} {
			if at != nil {
				a.pausedSince = min(a.pausedSince, *at)
			}
		}
	case a.Connected:
		a.State = "connected"
	default:
		a.State = "idle"
	}
	return a, nil
}

type agentIn struct {
	Agent string `json:"agent" jsonschema:"id or name" rule:"required,min=1,max=300"`
}

type agentOut struct {
	ID     string `json:"id"`
	Result string `json:"result,omitempty"`
	Agent  Agent  `json:"agent"`
}

// agent finds an agent of the caller's by id or name; an admin finds those of other accounts by id.
func (s *Service) agent(ctx context.Context, name string) (Agent, error) {
	c := who.From(ctx)
	args := db.Args{}
	id, account := args.Add(name), args.Add(c.Account)
	where := `(g.id = ` + id + ` OR g.account = ` + account + ` AND g.name = ` + id + `)`
	if !c.Admin {
		where += ` AND g.account = ` + account
	}
	list, err := s.agents(ctx, where, args...)
	if err != nil {
		return Agent{}, err
	}
	if i := slices.IndexFunc(list, func(a Agent) bool { return a.ID == name }); i >= 0 { // another may have the id for a name
		return list[i], nil
	}
	if live := slices.DeleteFunc(slices.Clone(list), func(a Agent) bool { return a.State == "disconnected" }); len(live) > 0 {
		list = live
	}
	switch {
	case len(list) == 0:
		f := fault.New(fault.NotFound, "you have no agent with the id or name %q", name)
		f.Field = "agent"
		return Agent{}, f
	case len(list) > 1:
		f := fault.New(fault.Conflict, "%d agents are named %q: give the id", len(list), name)
		f.Field = "agent"
		for _, a := range list {
			f.Valid = append(f.Valid, a.ID)
		}
		return Agent{}, f
	}
	return list[0], nil
}

func (s *Service) getAgent(ctx context.Context, in agentIn) (out agentOut, err error) {
	out.Agent, err = s.agent(ctx, in.Agent)
	out.ID = out.Agent.ID
	return out, err
}

type updateAgentIn struct {
	Agent    string   `json:"agent" jsonschema:"id or name" rule:"required,min=1,max=300"`
	Name     *string  `json:"name" rule:"min=1,max=300"`
	Heaps    []string `json:"heaps" jsonschema:"ids or names of heaps that you own or administer; all of what it may see from now on" rule:"min=1,max=50"`
	Areas    []string `json:"areas" rule:"min=1,max=50,enum=tasks|memory|library|documents|personas"`
	AllAreas *bool    `json:"all_areas" jsonschema:"all areas, later ones too"`
	Write    *bool    `json:"write"`
	Propose  *bool    `json:"propose_memory" jsonschema:"new memories wait for the owner"`
	Rate     *int     `json:"rate" jsonschema:"calls per minute, 0 = no limit; 1000 unless set" rule:"min=0,max=1000000"`
}

func (s *Service) updateAgent(ctx context.Context, in updateAgentIn) (out agentOut, err error) {
	if in.AllAreas != nil && *in.AllAreas && in.Areas != nil {
		return out, fault.Bad("areas", "can't be given together with all_areas")
	}
	a, err := s.agent(ctx, in.Agent)
	if err != nil {
		return out, err
	}
	c := who.From(ctx)
	heaps, err := heapIDs(c, in.Heaps)
	if err != nil {
		return out, err
	}
	name := a.Name
	if in.Name != nil {
		if name, err = CleanName("name", *in.Name); err != nil {
			return out, err
		}
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		var text, account string
		if err := tx.One(`SELECT rights, account FROM agent WHERE id = $1`+tx.ForUpdate(), []any{a.ID}, &text, &account); err != nil {
			return err
		}
		var old rights
		if err := json.Unmarshal([]byte(text), &old); err != nil {
			return err
		}
		now := merged(old, in, heaps)
		if wider(old, now) {
			if account != c.Account {
				return fault.New(fault.Denied, "only the account that let the agent in may widen its rights")
			}
			if err := Fresh(c, s.db.Now()); err != nil {
				return err
			}
		}
		if in.Heaps != nil {
			if err := CheckRights(tx, account, Rights{Heaps: now.Heaps, Areas: now.Areas}); err != nil {
				return err
			}
		}
		b, err := json.Marshal(now)
		if err != nil {
			return err
		}
		out.Result = "existing"
		if string(b) == text && name == a.Name {
			return nil
		}
		out.Result = "updated"
		if _, err := tx.Exec(`UPDATE agent SET name = $2, rights = $3 WHERE id = $1`, a.ID, name, string(b)); err != nil {
			return err
		}
		return audit.WriteEvent(ctx, tx, agentChanged, fmt.Sprintf("%s: from %s to %s", a.ID, text, b))
	})
	if err != nil {
		return out, err
	}
	out.ID = a.ID
	out.Agent, err = s.agent(ctx, a.ID)
	return out, err
}

// merged gives rights with what a call changes of them.
func merged(old rights, in updateAgentIn, heaps []string) rights {
	now := old
	if in.Heaps != nil {
		now.Heaps = heaps
	}
	if in.Areas != nil {
		now.Areas = in.Areas
	}
	if in.AllAreas != nil && *in.AllAreas {
		now.Areas = nil
	}
	if in.Write != nil {
		now.Write = *in.Write
	}
	if in.Propose != nil {
		now.Propose = *in.Propose
	}
	if in.Rate != nil {
		now.Rate = in.Rate
	}
	return now
}

// wider tells whether rights reach further than they did.
func wider(old, now rights) bool {
	beyond := func(old, now []string) bool { // nil = all
		if old == nil {
			return false
		}
		return now == nil || slices.ContainsFunc(now, func(v string) bool { return !slices.Contains(old, v) })
	}
	return now.Write && !old.Write || old.Propose && !now.Propose || beyond(old.Areas, now.Areas) || beyond(old.Heaps, now.Heaps)
}

type pauseIn struct {
	Agent string `json:"agent" jsonschema:"id or name" rule:"max=300"`
	All   string `json:"all" jsonschema:"whose instead of one agent" rule:"enum=account|server"`
}

type pauseOut struct {
	ID       string  `json:"id,omitempty"`
	Result   string  `json:"result"`
	PausedAt *string `json:"paused_at"`
	Refused  int64   `json:"refused"` // calls of those resumed while they were paused
}

func (s *Service) pauseAgents(ctx context.Context, in pauseIn) (pauseOut, error) {
	return s.setPause(ctx, in, true)
}

func (s *Service) resumeAgents(ctx context.Context, in pauseIn) (pauseOut, error) {
	return s.setPause(ctx, in, false)
}

func (s *Service) setPause(ctx context.Context, in pauseIn, pause bool) (out pauseOut, err error) {
	c := who.From(ctx)
	if (in.Agent == "") == (in.All == "") {
		return out, fault.Bad("agent", "or all must be given, and only one of them")
	}
	if in.All == "server" && !c.Admin {
		return out, fault.New(fault.Denied, "only the server's admin may pause all of its agents")
	}
	table, id := "account", c.Account
	column := "agents_paused_at"
	var held []Agent
	switch {
	case in.Agent != "":
		a, err := s.agent(ctx, in.Agent)
		if err != nil {
			return out, err
		}
		table, column, id, out.ID = "agent", "paused_at", a.ID, a.ID
		held = []Agent{a}
	case pause:
	case in.All == "account":
		held, err = s.Agents(ctx, c.Account)
	default:
		held, err = s.agents(ctx, `g.ended_at IS NULL`)
	}
	if err != nil {
		return out, err
	}
	for _, a := range held {
		out.Refused += a.Refused
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		at := &tx.Now
		if !pause {
			at = nil
		}
		var n int64
		switch {
		case in.All == "server" && pause:
			n, err = tx.Exec(`INSERT INTO setting (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`, pausedSetting, strconv.FormatInt(tx.Now, 10))
		case in.All == "server":
			n, err = tx.Exec(`DELETE FROM setting WHERE name = $1`, pausedSetting)
		case pause:
			n, err = tx.Exec(`UPDATE `+table+` SET `+column+` = $2 WHERE id = $1 AND `+column+` IS NULL`, id, tx.Now)
		default:
			n, err = tx.Exec(`UPDATE `+table+` SET `+column+` = NULL WHERE id = $1 AND `+column+` IS NOT NULL`, id)
		}
		if err != nil {
			return err
		}
		out.Result, out.PausedAt = "existing", stamp(at)
		if n == 0 {
			return nil
		}
		out.Result = "updated"
		what := "paused"
		if !pause {
			what = "resumed"
		}
		return audit.WriteEvent(ctx, tx, audit.AgentPaused, what+" "+in.All+out.ID)
	})
	return out, err
}

type disconnectOut struct {
	ID     string   `json:"id"`
	Result string   `json:"result"`
	Ended  endedOut `json:"ended"`
}

// endedOut says what a disconnection ended.
type endedOut struct {
	Name       string `json:"name"`
	ClientName string `json:"client_name"`
	Access     bool   `json:"access"` // an access token that had not expired
	Stay       bool   `json:"stay"`   // a refresh token
	At         string `json:"at"`
}

func (s *Service) disconnectAgent(ctx context.Context, in agentIn) (out disconnectOut, err error) {
	a, err := s.agent(ctx, in.Agent)
	if err != nil {
		return out, err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		out = disconnectOut{ID: a.ID, Result: "existing", Ended: endedOut{a.Name, a.ClientName, a.AccessUntil != nil, a.StayUntil != nil, op.Stamp(tx.Now)}}
		n, err := tx.Exec(`UPDATE agent SET ended_at = $2, paused_at = NULL WHERE id = $1 AND ended_at IS NULL`, a.ID, tx.Now)
		if err != nil || n == 0 {
			return err
		}
		out.Result = "updated"
		if err := endConnections(tx, a.ID, "disconnected"); err != nil {
			return err
		}
		return audit.WriteEvent(ctx, tx, audit.AgentDisconnected, a.ID+" "+a.Name)
	})
	return out, err
}
