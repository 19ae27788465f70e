package account

import (
	"context"
	"fmt"

	"cairn/internal/audit"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

// mostInvites may wait for one account: whoever is invited can't be buried.
const mostInvites = 50

func (s *Service) inviteOps() []*op.Op {
	return []*op.Op{
		op.Define(op.Op{Name: "list_invites", Title: "List invites", Area: "documents", Effect: op.Read,
			Doc: "Invites to other people's heaps that wait for your owner's answer."}, s.listInvites),
		op.Define(op.Op{Name: "respond_invite", Title: "Respond to invite", Area: "documents", Effect: op.Write, Confirm: true,
			Example: `{"invite_id":"01890a5d-ac96-774b-bcce-b302099a8057","accept":false}`,
			Doc:     "Accept or decline an invite to a heap, on your owner's word only. You see the heap yourself only once it is granted to you."}, s.respondInvite),
		op.Define(op.Op{Name: "invite_member", Title: "Invite member", Area: who.Core, Effect: op.Write, Set: "admin", PersonOnly: true, Idempotent: true,
			Example: `{"heap":"Work","account":"nobody","role":"viewer"}`, Doc: "Invite an account to a heap by its name. It becomes a member when it accepts."}, s.inviteMember),
		op.Define(op.Op{Name: "withdraw_invite", Title: "Withdraw invite", Area: who.Core, Effect: op.Destroy, Set: "admin", PersonOnly: true, Idempotent: true,
			Example: `{"invite":"01890a5d-ac96-774b-bcce-b302099a8057"}`, Doc: "Take back an invite that waits."}, s.withdrawInvite),
	}
}

// Invite is an invite to a heap, as either side sees it.
type Invite struct {
	ID        string `json:"id"`
	Heap      string `json:"heap"`
	HeapName  string `json:"heap_name"`
	Name      string `json:"name"` // of the account invited
	Role      string `json:"role"`
	State     string `json:"state"`
	Inviter   string `json:"inviter"`
	CreatedAt string `json:"created_at"`
}

type invitesOut struct {
	Count   int      `json:"count"`
	Invites []Invite `json:"invites"`
}

func (s *Service) invites(ctx context.Context, where string, arg any) ([]Invite, error) {
	rows, err := s.db.Query(ctx, `SELECT i.id, h.id, h.name, a.name, i.role, i.state, b.name, i.created_at FROM invite i JOIN heap h ON h.id = i.heap
		JOIN account a ON a.id = i.account JOIN account b ON b.id = i.inviter WHERE i.state = 'pending' AND h.archived_at IS NULL AND `+where+` = $1 ORDER BY i.created_at, i.id LIMIT 200`, arg)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []Invite{}
	for rows.Next() {
		var i Invite
		var created int64
		if err := rows.Scan(&i.ID, &i.Heap, &i.HeapName, &i.Name, &i.Role, &i.State, &i.Inviter, &created); err != nil {
			return nil, err
		}
		i.CreatedAt = op.Stamp(created)
		list = append(list, i)
	}
	return list, rows.Err()
}

func (s *Service) listInvites(ctx context.Context, _ struct{}) (invitesOut, error) {
	list, err := s.invites(ctx, `i.account`, who.From(ctx).Account)
	return invitesOut{len(list), list}, err
}

type inviteIn struct {
	Heap    string `json:"heap" jsonschema:"id or name" rule:"required,min=1,max=300"`
	Account string `json:"account" jsonschema:"name of the account" rule:"required,min=1,max=300"`
	Role    string `json:"role" rule:"required,enum=admin|editor|viewer"`
}

type inviteOut struct {
	Result string `json:"result"` // sent, whether or not there is such an account: the answer must not tell who has one
}

func (s *Service) inviteMember(ctx context.Context, in inviteIn) (out inviteOut, err error) {
	c := who.From(ctx)
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		out.Result = "sent"
		h, err := managed(ctx, tx, in.Heap)
		if err != nil {
			return err
		}
		if in.Role == roleAdmin && h.Role != roleOwner {
			return fault.New(fault.Denied, "only the owner of the heap %q may make or unmake its admins", h.Name)
		}
		if id, name, role, err := member(tx, h, in.Account); err == nil {
			f := fault.New(fault.Conflict, "%s is %s of the heap %q already: change the role instead", name, role, h.Name)
			f.Field = "account"
			return f.With("account", id)
		}
		var id string
		var waiting int
		err = tx.One(`SELECT a.id, (SELECT count(*) FROM invite i WHERE i.account = a.id AND i.state = 'pending') FROM account a
			WHERE a.name_folded = $1 AND a.disabled_at IS NULL AND a.admitted_at IS NOT NULL`, []any{who.Fold(in.Account)}, &id, &waiting)
		if db.IsNone(err) || err == nil && waiting >= mostInvites {
			return nil
		}
		if err != nil {
			return err
		}
		n, err := tx.Exec(`INSERT INTO invite (id, heap, account, role, inviter, state, created_at) VALUES ($1, $2, $3, $4, $5, 'pending', $6)
			ON CONFLICT (heap, account) WHERE state = 'pending' DO UPDATE SET role = excluded.role, inviter = excluded.inviter`, db.NewID(), h.ID, id, in.Role, c.Account, tx.Now)
		if err != nil || n == 0 {
			return err
		}
		return audit.WriteEvent(ctx, tx, inviteSent, fmt.Sprintf("heap %s: %s as %s", h.ID, id, in.Role))
	})
	return out, err
}

type respondIn struct {
	InviteID string `json:"invite_id" rule:"required,uuid,max=300"`
	Accept   *bool  `json:"accept" rule:"required"`
}

type respondOut struct {
	ID     string `json:"id"`
	Result string `json:"result"`
	Heap   string `json:"heap"`
	Role   string `json:"role"`
	State  string `json:"state"`
}

func (s *Service) respondInvite(ctx context.Context, in respondIn) (out respondOut, err error) {
	c := who.From(ctx)
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		var heap, role, state, inviterRole string
		err := tx.One(`SELECT i.heap, i.role, i.state, COALESCE((SELECT m.role FROM member m WHERE m.heap = i.heap AND m.account = i.inviter), '')
			FROM invite i JOIN heap h ON h.id = i.heap WHERE i.id = $1 AND i.account = $2 AND h.archived_at IS NULL`, []any{in.InviteID, c.Account}, &heap, &role, &state, &inviterRole)
		if db.IsNone(err) {
			return fault.New(fault.NotFound, "there is no invite %q for you", in.InviteID)
		}
		if err != nil {
			return err
		}
		wanted := "declined"
		if *in.Accept {
			wanted = "accepted"
		}
		out = respondOut{in.InviteID, "existing", heap, role, state}
		if state == wanted {
			return nil
		}
		if state != "pending" {
			return fault.New(fault.Conflict, "the invite is %s already", state)
		}
		if *in.Accept && (!manages(inviterRole) || role == roleAdmin && inviterRole != roleOwner) { // whoever invited may no longer do so
			return fault.New(fault.Conflict, "the invite no longer holds: who sent it may not give that role any more")
		}
		out.Result, out.State = "updated", wanted
		n, err := tx.Exec(`UPDATE invite SET state = $2, decided_at = $3 WHERE id = $1 AND state = 'pending'`, in.InviteID, wanted, tx.Now)
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.New(fault.Conflict, "the invite was answered just now")
		}
		if *in.Accept {
			if _, err := tx.Exec(`INSERT INTO member (heap, account, role, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (account, heap) DO NOTHING`, heap, c.Account, role, tx.Now); err != nil {
				return err
			}
		}
		return audit.WriteEvent(ctx, tx, inviteDecided, fmt.Sprintf("heap %s: %s as %s", heap, wanted, role))
	})
	return out, err
}

type withdrawIn struct {
	Invite string `json:"invite" rule:"required,uuid,max=300"`
}

func (s *Service) withdrawInvite(ctx context.Context, in withdrawIn) (out doneOut, err error) {
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		var heap, state string
		err := tx.One(`SELECT heap, state FROM invite WHERE id = $1`, []any{in.Invite}, &heap, &state)
		if err == nil {
			_, err = managed(ctx, tx, heap)
		}
		if err != nil {
			if db.IsNone(err) || fault.From(err).Kind != fault.Internal { // absent and forbidden are alike
				return fault.New(fault.NotFound, "there is no invite %q of yours", in.Invite)
			}
			return err
		}
		out = doneOut{in.Invite, "existing"}
		if state != "pending" {
			return nil
		}
		out.Result = "updated"
		if _, err := tx.Exec(`UPDATE invite SET state = 'withdrawn', decided_at = $2 WHERE id = $1 AND state = 'pending'`, in.Invite, tx.Now); err != nil {
			return err
		}
		return audit.WriteEvent(ctx, tx, inviteDecided, fmt.Sprintf("heap %s: withdrawn", heap))
	})
	return out, err
}
