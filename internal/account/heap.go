package account

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/audit"
	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

// Roles in a heap, from the one that may everything to the one that may only read.
const (
	roleOwner  = "owner"
	roleAdmin  = "admin"
	roleEditor = "editor"
	roleViewer = "viewer"
)

// manages tells whether a role lets one change the heap, its members and who sees it.
func manages(role string) bool { return role == roleOwner || role == roleAdmin }

// mostName is how many characters a name may have.
const mostName = 300

// mostHeaps an account may own: a page lists them all.
const mostHeaps = 200

// Events of heaps, kept for good: they say who could see what when.
const (
	memberChanged = "memberChanged"
	memberRemoved = "memberRemoved"
	inviteSent    = "inviteSent"
	inviteDecided = "inviteDecided"
)

func (s *Service) heapOps() []*op.Op {
	return []*op.Op{
		op.Define(op.Op{Name: "create_heap", Title: "Create heap", Area: who.Core, Effect: op.Write, Set: "admin", PersonOnly: true,
			Example: `{"name":"Club","kind":"other"}`, Doc: "Make a heap of your own: a separate space that you can share."}, s.createHeap),
		op.Define(op.Op{Name: "update_heap", Title: "Update heap", Area: who.Core, Effect: op.Write, Set: "admin", PersonOnly: true, Idempotent: true,
			Example: `{"heap":"Work","kind":"work"}`, Doc: "Rename a heap, change its kind, or archive it: an archived heap is out of everybody's reach until it is brought back."}, s.updateHeap),
		op.Define(op.Op{Name: "get_heap", Title: "Get heap", Area: who.Core, Effect: op.Read, Set: "admin", PersonOnly: true,
			Example: `{"heap":"Work"}`, Doc: "A heap with what it holds, its members, the invites that wait, and the agents and tokens that can see it."}, s.getHeap),
		op.Define(op.Op{Name: "set_member", Title: "Set member", Area: who.Core, Effect: op.Write, Set: "admin", PersonOnly: true, Idempotent: true,
			Example: `{"heap":"Work","account":"owner","role":"owner"}`, Doc: "Change a member's role. Naming another owner hands the heap over; you stay as an admin."}, s.setMember),
		op.Define(op.Op{Name: "remove_member", Title: "Remove member", Area: who.Core, Effect: op.Destroy, Set: "admin", PersonOnly: true, Confirm: true, Idempotent: true,
			Example: `{"heap":"Work","account":"nobody"}`, Doc: "Take a member out of a heap, or leave it yourself."}, s.removeMember),
	}
}

type newHeapIn struct {
	Name string `json:"name" rule:"required,min=1,max=300"`
	Kind string `json:"kind" rule:"enum=personal|work|other"`
}

type heapResult struct {
	ID     string `json:"id"`
	Result string `json:"result"`
	Heap   Heap   `json:"heap"`
}

// Heap is a heap as its members see it.
type Heap struct {
	ID         string  `json:"id"`
	Name       string  `json:"name"`
	Kind       string  `json:"kind"`
	Role       string  `json:"role"`
	OwnerName  string  `json:"owner_name"`
	Members    int     `json:"members"`
	ArchivedAt *string `json:"archived_at"`
	CreatedAt  string  `json:"created_at"`

	Holds []Holding `json:"holds,omitempty"`
}

// CleanName refuses what a name can't have and gives the rest without space around it.
func CleanName(field, name string) (string, error) {
	name = strings.Join(strings.Fields(name), " ")
	if name == "" {
		return "", fault.Bad(field, "must not be empty")
	}
	if utf8.RuneCountInString(name) > mostName {
		return "", fault.Bad(field, "may have at most %d characters", mostName)
	}
	if strings.IndexFunc(name, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) >= 0 {
		return "", fault.Bad(field, "has a control character in it: %q", name)
	}
	return name, nil
}

func (s *Service) createHeap(ctx context.Context, in newHeapIn) (out heapResult, err error) {
	name, err := CleanName("name", in.Name)
	if err != nil {
		return out, err
	}
	if in.Kind == "" {
		in.Kind = who.Other
	}
	c := who.From(ctx)
	id := db.NewID()
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		var n int
		if err := tx.One(`SELECT count(*) FROM heap WHERE owner = $1`, []any{c.Account}, &n); err != nil {
			return err
		}
		if n >= mostHeaps {
			return fault.New(fault.Conflict, "you own %d heaps, and %d is the most: rename one that you no longer need", n, mostHeaps)
		}
		if err := nameFree(tx, c.Account, name, ""); err != nil {
			return err
		}
		if err := insertHeap(tx, id, name, in.Kind, c.Account, tx.Now); err != nil {
			return err
		}
		change.Record(ctx, tx, change.Entry{Heap: id, Kind: heapKind, Thing: id, Effect: change.Create,
			After: change.Fields{"name": name, "kind": in.Kind, "archived": false}, Summary: "Made the heap " + name})
		return nil
	})
	if err != nil {
		return out, err
	}
	out.ID, out.Result = id, "created"
	out.Heap, err = s.heapOf(ctx, id)
	return out, err
}

// nameFree refuses a name that another heap of the account has: heaps are named in calls.
func nameFree(tx *db.Tx, account, name, except string) error {
	rows, err := tx.Query(`SELECT h.name FROM member m JOIN heap h ON h.id = m.heap WHERE m.account = $1 AND h.id <> $2`, account, except)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var other string
		if err := rows.Scan(&other); err != nil {
			return err
		}
		if who.Fold(other) == who.Fold(name) {
			f := fault.New(fault.Conflict, "you can reach a heap named %q already: choose another name", other)
			f.Field = "name"
			return f
		}
	}
	return rows.Err()
}

// membership finds a heap of the account, archived or not, by id or name, with the account's role in it. A heap that is not
// theirs is as absent as one that doesn't exist.
func membership(tx *db.Tx, account, heap string) (h who.Heap, err error) {
	rows, err := tx.Query(`SELECT h.id, h.name, h.kind, m.role FROM member m JOIN heap h ON h.id = m.heap WHERE m.account = $1 ORDER BY h.created_at, h.id`, account)
	if err != nil {
		return h, err
	}
	defer rows.Close()
	var found []who.Heap
	for rows.Next() {
		var h who.Heap
		if err := rows.Scan(&h.ID, &h.Name, &h.Kind, &h.Role); err != nil {
			return h, err
		}
		if h.ID == heap {
			return h, nil
		}
		if strings.EqualFold(h.Name, heap) {
			found = append(found, h)
		}
	}
	if err := rows.Err(); err != nil {
		return h, err
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		f := fault.New(fault.NotFound, "you have no heap %q", heap)
		f.Field = "heap"
		return h, f
	}
	f := fault.New(fault.Conflict, "%d heaps are named %q: give the id", len(found), heap)
	f.Field, f.Valid = "heap", who.IDs(found)
	return h, f
}

// managed is membership of a heap that the caller manages.
func managed(ctx context.Context, tx *db.Tx, heap string) (who.Heap, error) {
	h, err := membership(tx, who.From(ctx).Account, heap)
	if err == nil && !manages(h.Role) {
		err = fault.New(fault.Denied, "you are %s of the heap %q; only its owner and admins may do that", h.Role, h.Name)
	}
	return h, err
}

type updateHeapIn struct {
	Heap     string  `json:"heap" jsonschema:"id or name" rule:"required,min=1,max=300"`
	Name     *string `json:"name" rule:"min=1,max=300"`
	Kind     *string `json:"kind" rule:"enum=personal|work|other"`
	Archived *bool   `json:"archived"`
}

func (s *Service) updateHeap(ctx context.Context, in updateHeapIn) (out heapResult, err error) {
	if in.Name == nil && in.Kind == nil && in.Archived == nil {
		return out, fault.Bad("name", "or kind or archived must be given")
	}
	var name string
	if in.Name != nil {
		if name, err = CleanName("name", *in.Name); err != nil {
			return out, err
		}
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		h, err := managed(ctx, tx, in.Heap)
		if err != nil {
			return err
		}
		if in.Archived != nil {
			if err := mayArchive(h); err != nil {
				return err
			}
		}
		_, now, err := s.getHeapFields(tx, h.ID)
		if err != nil {
			return err
		}
		set := map[string]json.RawMessage{}
		put := func(field string, v any) {
			b, _ := json.Marshal(v)
			if string(now[field]) != string(b) {
				set[field] = b
			}
		}
		if in.Name != nil {
			put("name", name)
		}
		if in.Kind != nil {
			put("kind", *in.Kind)
		}
		if in.Archived != nil {
			put("archived", *in.Archived)
		}
		out.ID, out.Result = h.ID, "existing"
		if len(set) == 0 {
			return nil
		}
		out.Result = "updated"
		if err := s.putHeapFields(ctx, tx, h.ID, set); err != nil {
			return err
		}
		e := change.Entry{Heap: h.ID, Kind: heapKind, Thing: h.ID, Effect: change.Update, Before: change.Fields{}, After: change.Fields{}, Summary: "Changed the heap " + h.Name}
		for f, v := range set {
			e.Before[f], e.After[f] = now[f], v
		}
		change.Record(ctx, tx, e)
		return nil
	})
	if err != nil {
		return out, err
	}
	out.Heap, err = s.heapOf(ctx, out.ID)
	return out, err
}

func mayArchive(h who.Heap) error {
	if h.Role == roleOwner {
		return nil
	}
	return fault.New(fault.Denied, "only the owner of the heap %q may archive it", h.Name)
}

const heapKind = "heap"

func (s *Service) getHeapFields(tx *db.Tx, id string) (heap string, now map[string]json.RawMessage, err error) {
	var name, kind string
	var archived *int64
	if err := tx.One(`SELECT name, kind, archived_at FROM heap WHERE id = $1`+tx.ForUpdate(), []any{id}, &name, &kind, &archived); err != nil {
		return "", nil, err
	}
	now = map[string]json.RawMessage{}
	for f, v := range map[string]any{"name": name, "kind": kind, "archived": archived != nil} {
		now[f], _ = json.Marshal(v)
	}
	now[change.State], _ = json.Marshal(change.Live)
	return id, now, nil
}

func (s *Service) putHeapFields(ctx context.Context, tx *db.Tx, id string, set map[string]json.RawMessage) error {
	h, err := managed(ctx, tx, id) // taking a change back is no way around the roles
	if err == nil && set["archived"] != nil {
		err = mayArchive(h)
	}
	if err != nil {
		return err
	}
	for f, raw := range set {
		var err error
		switch f {
		case "name":
			var v string
			if err = json.Unmarshal(raw, &v); err != nil {
				return err
			}
			if err = nameFree(tx, who.From(ctx).Account, v, id); err == nil {
				_, err = tx.Exec(`UPDATE heap SET name = $2, updated_at = $3 WHERE id = $1`, id, v, tx.Now)
			}
		case "kind":
			var v string
			if err = json.Unmarshal(raw, &v); err == nil {
				_, err = tx.Exec(`UPDATE heap SET kind = $2, updated_at = $3 WHERE id = $1`, id, v, tx.Now)
			}
		case "archived":
			at := &tx.Now
			if string(raw) != "true" {
				at = nil
			}
			_, err = tx.Exec(`UPDATE heap SET archived_at = CAST($2 AS BIGINT), updated_at = $3 WHERE id = $1`, id, at, tx.Now)
		case change.State:
			return fault.New(fault.Conflict, "making a heap is not undone: archive it")
		default:
			err = fmt.Errorf("a heap has no field %q", f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const heapSelect = `SELECT h.id, h.name, h.kind, m.role, o.name, (SELECT count(*) FROM member x WHERE x.heap = h.id), h.archived_at, h.created_at
	FROM member m JOIN heap h ON h.id = m.heap JOIN account o ON o.id = h.owner WHERE m.account = $1`

func (s *Service) heaps(ctx context.Context, where string, args ...any) ([]Heap, error) {
	rows, err := s.db.Query(ctx, heapSelect+where+` ORDER BY h.created_at, h.id`, append([]any{who.From(ctx).Account}, args...)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []Heap{}
	for rows.Next() {
		var h Heap
		var archived *int64
		var created int64
		if err := rows.Scan(&h.ID, &h.Name, &h.Kind, &h.Role, &h.OwnerName, &h.Members, &archived, &created); err != nil {
			return nil, err
		}
		h.ArchivedAt, h.CreatedAt = stamp(archived), op.Stamp(created)
		list = append(list, h)
	}
	return list, rows.Err()
}

func (s *Service) heapOf(ctx context.Context, id string) (Heap, error) {
	list, err := s.heaps(ctx, ` AND h.id = $2`, id)
	if err == nil && len(list) == 0 {
		err = fault.New(fault.NotFound, "you have no heap %q", id)
	}
	if err != nil {
		return Heap{}, err
	}
	return list[0], nil
}

type memberIn struct {
	Heap    string `json:"heap" jsonschema:"id or name" rule:"required,min=1,max=300"`
	Account string `json:"account" jsonschema:"name or id of the account" rule:"required,min=1,max=300"`
	Role    string `json:"role" rule:"required,enum=owner|admin|editor|viewer"`
}

// member finds an account among a heap's members, by name or id, with its role.
func member(tx *db.Tx, heap who.Heap, account string) (id, name, role string, err error) {
	err = tx.One(`SELECT a.id, a.name, m.role FROM member m JOIN account a ON a.id = m.account WHERE m.heap = $2 AND (a.id = $1 OR a.name_folded = $3)`+
		strings.ReplaceAll(idFirst, "id =", "a.id ="), []any{account, heap.ID, who.Fold(account)}, &id, &name, &role)
	if db.IsNone(err) {
		f := fault.New(fault.NotFound, "the heap %q has no member %q", heap.Name, account)
		f.Field = "account"
		return "", "", "", f
	}
	return id, name, role, err
}

func (s *Service) setMember(ctx context.Context, in memberIn) (out heapResult, err error) {
	c := who.From(ctx)
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		h, err := managed(ctx, tx, in.Heap)
		if err != nil {
			return err
		}
		id, name, role, err := member(tx, h, in.Account)
		if err != nil {
			return err
		}
		out.ID, out.Result = h.ID, "existing"
		if role == in.Role {
			return nil
		}
		if h.Role != roleOwner && (manages(role) || manages(in.Role)) {
			return fault.New(fault.Denied, "only the owner of the heap %q may make or unmake its admins", h.Name)
		}
		if role == roleOwner {
			return fault.New(fault.Conflict, "a heap always has an owner: hand it over by making another member the owner")
		}
		if in.Role == roleOwner {
			n, err := tx.Exec(`UPDATE heap SET owner = $2 WHERE id = $1 AND owner = $3`, h.ID, id, c.Account)
			if err != nil {
				return err
			}
			if n == 0 {
				return fault.New(fault.Conflict, "the heap %q was handed over just now", h.Name)
			}
			if _, err := tx.Exec(`UPDATE member SET role = 'admin' WHERE heap = $1 AND account = $2`, h.ID, c.Account); err != nil {
				return err
			}
		}
		out.Result = "updated"
		if _, err := tx.Exec(`UPDATE member SET role = $3 WHERE heap = $1 AND account = $2`, h.ID, id, in.Role); err != nil {
			return err
		}
		return audit.WriteEvent(ctx, tx, memberChanged, fmt.Sprintf("heap %s: %s from %s to %s", h.ID, name, role, in.Role))
	})
	if err != nil {
		return out, err
	}
	out.Heap, err = s.heapOf(ctx, out.ID)
	return out, err
}

type removeMemberIn struct {
	Heap    string `json:"heap" jsonschema:"id or name" rule:"required,min=1,max=300"`
	Account string `json:"account" jsonschema:"name or id of the account; your own to leave" rule:"required,min=1,max=300"`
}

type doneOut struct {
	ID     string `json:"id"`
	Result string `json:"result"`
}

func (s *Service) removeMember(ctx context.Context, in removeMemberIn) (out doneOut, err error) {
	c := who.From(ctx)
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		h, err := membership(tx, c.Account, in.Heap)
		if err != nil {
			return err
		}
		out = doneOut{h.ID, "existing"}
		id, name, role, err := member(tx, h, in.Account)
		if fault.Is(err, fault.NotFound) && manages(h.Role) {
			return nil // as wished already
		}
		switch {
		case err != nil:
			return err
		case role == roleOwner:
			return fault.New(fault.Conflict, "the owner can't leave the heap %q: hand it over first, or archive it", h.Name)
		case id != c.Account && !manages(h.Role):
			return fault.New(fault.Denied, "you are %s of the heap %q; only its owner and admins may do that", h.Role, h.Name)
		case id != c.Account && role == roleAdmin && h.Role != roleOwner:
			return fault.New(fault.Denied, "only the owner of the heap %q may make or unmake its admins", h.Name)
		}
		out.Result = "updated"
		if _, err := tx.Exec(`DELETE FROM member WHERE heap = $1 AND account = $2 AND role <> 'owner'`, h.ID, id); err != nil {
			return err
		}
		return audit.WriteEvent(ctx, tx, memberRemoved, fmt.Sprintf("heap %s: %s, who was %s", h.ID, name, role))
	})
	return out, err
}
