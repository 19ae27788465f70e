package account

import (
	"context"
	"slices"

	"cairn/internal/audit"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

func (s *Service) peopleOps() []*op.Op {
	return []*op.Op{
		op.Define(op.Op{Name: "get_account", Title: "Get account", Area: who.Core, Effect: op.Read, Set: "admin", PersonOnly: true,
			Doc: "Your own account, all of its heaps, archived ones too, and the invites that wait for you."}, s.getOwnAccount),
		op.Define(op.Op{Name: "list_accounts", Title: "List accounts", Area: who.Core, Effect: op.Read, Set: "admin", PersonOnly: true,
			Doc: "All accounts of the server, those that wait to be admitted first. For the admin."}, s.listAccounts),
		op.Define(op.Op{Name: "admit_account", Title: "Admit account", Area: who.Core, Effect: op.Write, Set: "admin", PersonOnly: true, Idempotent: true,
			Example: `{"account":"owner"}`, Doc: "Let an account that signed up use the server. For the admin."}, s.admitAccount),
		op.Define(op.Op{Name: "disable_account", Title: "Disable account", Area: who.Core, Effect: op.Destroy, Set: "admin", PersonOnly: true, Idempotent: true, Confirm: true,
			Example: `{"account":"nobody"}`, Doc: "Close an account: every session, token and agent of it is dead at once. Its data stays. For the admin."}, s.disableAccount),
		op.Define(op.Op{Name: "enable_account", Title: "Enable account", Area: who.Core, Effect: op.Write, Set: "admin", PersonOnly: true, Idempotent: true,
			Example: `{"account":"owner"}`, Doc: "Open an account that was disabled. It signs in anew; tokens and agents that it had stay dead. For the admin."}, s.enableAccount),
	}
}

type ownIn struct {
	Holds bool `json:"holds" jsonschema:"say of each heap what it holds"`
}

type ownOut struct {
	Account ownAccount `json:"account"`
	Server  struct {
		AgentsPausedAt *string `json:"agents_paused_at"`
		Mail           bool    `json:"mail"` // the server can send mail
	} `json:"server"`
	Heaps   []Heap   `json:"heaps"`
	Invites []Invite `json:"invites"`
}

type ownAccount struct {
	ID             string  `json:"id"`
	Name           string  `json:"name"`
	Zone           string  `json:"zone"`
	Email          string  `json:"email"`
	EmailConfirmed bool    `json:"email_confirmed"`
	Admin          bool    `json:"admin"`
	AgentsPausedAt *string `json:"agents_paused_at"`
}

func (s *Service) getOwnAccount(ctx context.Context, in ownIn) (out ownOut, err error) {
	c := who.From(ctx)
	a := &out.Account
	var admin int64
	var email, server *string
	var confirmed, paused *int64
	err = s.db.One(ctx, `SELECT a.id, a.name, a.zone, a.email, a.email_confirmed_at, a.admin, a.agents_paused_at, `+serverPaused+` FROM account a WHERE a.id = $1`,
		[]any{c.Account}, &a.ID, &a.Name, &a.Zone, &email, &confirmed, &admin, &paused, &server)
	if err != nil {
		return out, err
	}
	if email != nil {
		a.Email = *email
	}
	a.EmailConfirmed, a.Admin, a.AgentsPausedAt = confirmed != nil, admin == 1, stamp(paused)
	out.Server.AgentsPausedAt, out.Server.Mail = stamp(settingMoment(server)), s.Mail
	if out.Heaps, err = s.heaps(ctx, ``); err != nil {
		return out, err
	}
	for i := range out.Heaps {
		if in.Holds {
			if err := s.weigh(ctx, &out.Heaps[i]); err != nil {
				return out, err
			}
		}
	}
	out.Invites, err = s.invites(ctx, `i.account`, c.Account)
	return out, err
}

type accountsOut struct {
	Count    int       `json:"count"`
	Accounts []Account `json:"accounts"`
}

// Account is an account as the admin sees it.
type Account struct {
	ID         string  `json:"id"`
	Name       string  `json:"name"`
	Email      string  `json:"email"`
	Admin      bool    `json:"admin"`
	State      string  `json:"state"` // waiting, active, disabled
	CreatedAt  string  `json:"created_at"`
	LastSeenAt *string `json:"last_seen_at"`
	Agents     int     `json:"agents"`
	Tokens     int     `json:"tokens"`
	Sessions   int     `json:"sessions"`
}

func adminOnly(ctx context.Context) error {
	if !who.From(ctx).Admin {
		return fault.New(fault.Denied, "only the server's admin may do that")
	}
	return nil
}

func (s *Service) listAccounts(ctx context.Context, _ struct{}) (out accountsOut, err error) {
	if err := adminOnly(ctx); err != nil {
		return out, err
	}
	out.Accounts, err = s.accountsFor(ctx, "")
	out.Count = len(out.Accounts)
	return out, err
}

// accountsFor gives one account by its id, or all where id is "".
func (s *Service) accountsFor(ctx context.Context, id string) ([]Account, error) {
	rows, err := s.db.Query(ctx, `SELECT a.id, a.name, COALESCE(a.email, ''), a.admin, a.disabled_at, a.admitted_at, a.created_at,
		(SELECT max(x.seen_at) FROM session x WHERE x.account = a.id),
		(SELECT count(*) FROM agent x WHERE x.account = a.id AND x.ended_at IS NULL),
		(SELECT count(*) FROM token x WHERE x.account = a.id AND x.revoked_at IS NULL AND (x.expires_at IS NULL OR x.expires_at > $2)),
		(SELECT count(*) FROM session x WHERE x.account = a.id AND x.expires_at > $2)
		FROM account a WHERE $1 = '' OR a.id = $1 ORDER BY CASE WHEN a.admitted_at IS NULL AND a.disabled_at IS NULL THEN 0 ELSE 1 END, a.created_at, a.id`, id, s.db.Now())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []Account{}
	for rows.Next() {
		var a Account
		var admin, created int64
		var disabled, admitted, seen *int64
		if err := rows.Scan(&a.ID, &a.Name, &a.Email, &admin, &disabled, &admitted, &created, &seen, &a.Agents, &a.Tokens, &a.Sessions); err != nil {
			return nil, err
		}
		a.Admin, a.CreatedAt, a.LastSeenAt, a.State = admin == 1, op.Stamp(created), stamp(seen), "active"
		switch {
		case disabled != nil:
			a.State = "disabled"
		case admitted == nil:
			a.State = "waiting"
		}
		list = append(list, a)
	}
	return list, rows.Err()
}

type whichAccountIn struct {
	Account string `json:"account" jsonschema:"name or id" rule:"required,min=1,max=300"`
}

type accountResult struct {
	ID      string  `json:"id"`
	Result  string  `json:"result"`
	Account Account `json:"account"`
}

func (s *Service) admitAccount(ctx context.Context, in whichAccountIn) (accountResult, error) {
	return s.decide(ctx, in.Account, func(tx *db.Tx, id string) (bool, error) {
		n, err := tx.Exec(`UPDATE account SET admitted_at = $2 WHERE id = $1 AND admitted_at IS NULL`, id, tx.Now)
		if err != nil || n == 0 {
			return false, err
		}
		return true, audit.WriteEvent(ctx, tx, audit.AccountAdmitted, id)
	})
}

func (s *Service) disableAccount(ctx context.Context, in whichAccountIn) (accountResult, error) {
	return s.decide(ctx, in.Account, func(tx *db.Tx, id string) (bool, error) {
		if id == who.From(ctx).Account {
			return false, fault.New(fault.Conflict, "you can't disable your own account")
		}
		n, err := tx.Exec(`UPDATE account SET disabled_at = $2 WHERE id = $1 AND disabled_at IS NULL`, id, tx.Now)
		if err != nil || n == 0 {
			return false, err
		}
		for _, q := range []string{
			`UPDATE token SET revoked_at = $2 WHERE account = $1 AND revoked_at IS NULL`,
			`UPDATE connection SET ended_at = $2, ended_why = 'the account was disabled' WHERE ended_at IS NULL AND agent IN (SELECT id FROM agent WHERE account = $1)`,
			`UPDATE agent SET ended_at = $2 WHERE account = $1 AND ended_at IS NULL`,
			`UPDATE oauth_attempt SET state = 'rejected', decided_at = $2 WHERE decided_by = $1 AND state = 'approved'`,
		} {
			if _, err := tx.Exec(q, id, tx.Now); err != nil {
				return false, err
			}
		}
		if _, err := tx.Exec(`DELETE FROM session WHERE account = $1`, id); err != nil {
			return false, err
		}
		if _, err := tx.Exec(`DELETE FROM challenge WHERE account = $1`, id); err != nil {
			return false, err
		}
		return true, audit.WriteEvent(ctx, tx, audit.AccountDisabled, id)
	})
}

func (s *Service) enableAccount(ctx context.Context, in whichAccountIn) (accountResult, error) {
	return s.decide(ctx, in.Account, func(tx *db.Tx, id string) (bool, error) {
		n, err := tx.Exec(`UPDATE account SET disabled_at = NULL WHERE id = $1 AND disabled_at IS NOT NULL`, id)
		if err != nil || n == 0 {
			return false, err
		}
		return true, audit.WriteEvent(ctx, tx, audit.AccountAdmitted, id+" enabled again")
	})
}

// idFirst ends a look-up by id ($1) or name: anybody may take somebody's id for a name, and must not get what is meant for them.
const idFirst = ` ORDER BY CASE WHEN id = $1 THEN 0 ELSE 1 END LIMIT 1`

// decide runs an admin's decision about an account, found by name or id.
func (s *Service) decide(ctx context.Context, account string, f func(tx *db.Tx, id string) (changed bool, err error)) (out accountResult, err error) {
	if err := adminOnly(ctx); err != nil {
		return out, err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		err := tx.One(`SELECT id FROM account WHERE id = $1 OR name_folded = $2`+idFirst+tx.ForUpdate(), []any{account, who.Fold(account)}, &out.ID)
		if db.IsNone(err) {
			f := fault.New(fault.NotFound, "there is no account %q", account)
			f.Field = "account"
			return f
		}
		if err != nil {
			return err
		}
		changed, err := f(tx, out.ID)
		out.Result = "existing"
		if changed {
			out.Result = "updated"
		}
		return err
	})
	if err != nil {
		return out, err
	}
	list, err := s.accountsFor(ctx, out.ID)
	if err == nil {
		out.Account = list[0]
	}
	return out, err
}

type heapViewIn struct {
	Heap string `json:"heap" jsonschema:"id or name" rule:"required,min=1,max=300"`
}

type heapView struct {
	Heap    Heap         `json:"heap"`
	Members []memberView `json:"members"`
	Invites []Invite     `json:"invites"`
	Agents  []seer       `json:"agents"`
}

type memberView struct {
	Account string `json:"account"`
	Name    string `json:"name"`
	Role    string `json:"role"`
	Since   string `json:"since"`
}

// seer is an agent or token that can see a heap. Whose they are is shown; their rights are shown to those who manage the heap.
type seer struct {
	ID          string   `json:"id"`
	Kind        string   `json:"kind"` // agent, token
	Name        string   `json:"name"`
	AccountName string   `json:"account_name"`
	Write       bool     `json:"write"`
	Areas       []string `json:"areas"`
	State       string   `json:"state"`
}

func (s *Service) getHeap(ctx context.Context, in heapViewIn) (out heapView, err error) {
	c := who.From(ctx)
	all, err := s.heaps(ctx, ``)
	if err != nil {
		return out, err
	}
	fits := slices.DeleteFunc(slices.Clone(all), func(h Heap) bool { return h.ID != in.Heap })
	if len(fits) == 0 {
		fits = slices.DeleteFunc(slices.Clone(all), func(h Heap) bool { return who.Fold(h.Name) != who.Fold(in.Heap) })
	}
	switch len(fits) {
	case 0:
		f := fault.New(fault.NotFound, "you have no heap %q", in.Heap)
		f.Field = "heap"
		return out, f
	case 1:
	default:
		f := fault.New(fault.Conflict, "%d heaps are named %q: give the id", len(fits), in.Heap)
		f.Field = "heap"
		for _, h := range fits {
			f.Valid = append(f.Valid, h.ID)
		}
		return out, f
	}
	out = heapView{Heap: fits[0], Members: []memberView{}, Invites: []Invite{}, Agents: []seer{}}
	rows, err := s.db.Query(ctx, `SELECT a.id, a.name, m.role, m.created_at FROM member m JOIN account a ON a.id = m.account WHERE m.heap = $1 ORDER BY m.created_at, a.id`, out.Heap.ID)
	if err != nil {
		return out, err
	}
	defer rows.Close()
	for rows.Next() {
		var m memberView
		var at int64
		if err := rows.Scan(&m.Account, &m.Name, &m.Role, &at); err != nil {
			return out, err
		}
		m.Since = op.Stamp(at)
		out.Members = append(out.Members, m)
	}
	if err := rows.Err(); err != nil {
		return out, err
	}
	if err := s.weigh(ctx, &out.Heap); err != nil {
		return out, err
	}
	if manages(out.Heap.Role) {
		if out.Invites, err = s.invites(ctx, `i.heap`, out.Heap.ID); err != nil {
			return out, err
		}
	}
	out.Agents, err = s.seers(ctx, out.Heap, out.Members, c.Account)
	return out, err
}

// weigh adds to a heap what it holds.
func (s *Service) weigh(ctx context.Context, h *Heap) (err error) {
	if s.Holds != nil {
		h.Holds, err = s.Holds(ctx, h.ID)
	}
	return err
}

// seers lists the agents and tokens that can see a heap: all of them for those who manage it, else the caller's own.
func (s *Service) seers(ctx context.Context, h Heap, members []memberView, self string) ([]seer, error) {
	list := []seer{}
	for _, m := range members {
		if m.Account != self && !manages(h.Role) {
			continue
		}
		if manages(m.Role) { // agents see only what their account owns or administers
			agents, err := s.Agents(ctx, m.Account)
			if err != nil {
				return nil, err
			}
			for _, a := range agents {
				if slices.ContainsFunc(a.Heaps, func(r HeapRef) bool { return r.ID == h.ID }) {
					list = append(list, seer{a.ID, "agent", a.Name, m.Name, a.Write, a.Areas, a.State})
				}
			}
		}
		tokens, err := s.tokens(ctx, `t.account = $1`, m.Account)
		if err != nil {
			return nil, err
		}
		for _, t := range tokens {
			if t.State == "active" && (t.heapIDs == nil || slices.Contains(t.heapIDs, h.ID)) {
				list = append(list, seer{t.ID, "token", t.Name, m.Name, !t.ReadOnly, t.Areas, t.State})
			}
		}
	}
	return list, nil
}
