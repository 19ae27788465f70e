package web

import (
	"net/url"
	"slices"

	"cairn/internal/fault"
	"cairn/internal/who"
)

var heapKinds = [][2]string{{who.Personal, "Personal"}, {who.Work, "Work"}, {who.Other, "Other"}}

// rolesGiven are the roles that somebody can be given, with what each may do.
var rolesGiven = [][2]string{{"viewer", "Viewer: reads"}, {"editor", "Editor: reads and writes"}, {"admin", "Admin: writes and invites"}}

type heapsPage struct {
	Open, Archived []heapRow
	Invites        []invite
	Kinds          [][2]string
}

var heapsScreen = screen{
	page: "heaps",
	load: func(q *request) (any, error) {
		out, err := get[accountOut](q, "get_account", nil)
		p := heapsPage{Invites: out.Invites, Kinds: heapKinds}
		for _, h := range out.Heaps {
			if h.ArchivedAt == nil {
				p.Open = append(p.Open, h)
			} else {
				p.Archived = append(p.Archived, h)
			}
		}
		return p, err
	},
	acts: map[string]act{
		"create": {op: "create_heap", args: field("name", "kind"), done: "heap-created"},
		"accept": {op: "respond_invite", done: "accepted", args: func(f url.Values, _ *request) map[string]any {
			return map[string]any{"invite_id": f.Get("invite"), "accept": true}
		}},
		"decline": {op: "respond_invite", done: "declined", args: func(f url.Values, _ *request) map[string]any {
			return map[string]any{"invite_id": f.Get("invite"), "accept": false}
		}},
	},
}

type heapPage struct {
	heapOut
	Kinds, Roles [][2]string
	Manage       bool   // the caller may rename it and say who is in it
	Me           string // the caller's account
}

// Waiting gives the invitations that nobody has answered.
func (p heapPage) Waiting() []invite {
	return slices.DeleteFunc(slices.Clone(p.Invites), func(i invite) bool {
		return i.State != "pending"
	})
}

func (q *request) heap() (heapOut, error) {
	return get[heapOut](q, "get_heap", map[string]any{"heap": q.id})
}

func inHeap(names ...string) func(url.Values, *request) map[string]any {
	return func(f url.Values, q *request) map[string]any {
		m := field(names...)(f, q)
		m["heap"] = q.id
		return m
	}
}

var heapScreen = screen{
	page: "heap",
	load: func(q *request) (any, error) {
		out, err := q.heap()
		return heapPage{out, heapKinds, rolesGiven, out.Heap.Role == "owner" || out.Heap.Role == "admin", q.caller.Account}, err
	},
	acts: map[string]act{
		"change":   {op: "update_heap", args: inHeap("name", "kind"), done: "saved"},
		"archive":  {op: "update_heap", done: "heap-archived", args: func(_ url.Values, q *request) map[string]any { return map[string]any{"heap": q.id, "archived": true} }},
		"restore":  {op: "update_heap", done: "heap-restored", args: func(_ url.Values, q *request) map[string]any { return map[string]any{"heap": q.id, "archived": false} }},
		"role":     {op: "set_member", args: inHeap("account", "role"), done: "member-set"},
		"invite":   {op: "invite_member", args: inHeap("account", "role"), done: "invited"},
		"withdraw": {op: "withdraw_invite", args: field("invite"), done: "withdrawn"},
	},
}

// removeScreen asks before a member is taken out of a heap, or leaves it.
var removeScreen = screen{
	page: "confirm",
	load: func(q *request) (any, error) {
		out, err := q.heap()
		if err != nil {
			return nil, err
		}
		account := q.r.PathValue("account")
		i := slices.IndexFunc(out.Members, func(m member) bool { return m.Account == account })
		if i < 0 {
			return nil, fault.New(fault.NotFound, "the heap has no member %q", account)
		}
		back, name, heap := "/heaps/"+q.id, isolated(out.Members[i].Name), isolated(out.Heap.Name)
		if account == q.caller.Account {
			return question{Title: "Leave " + heap + "?", Back: back, BackLabel: heap, Act: "leave", Button: "Leave " + heap,
				Text: []string{"You and your agents see nothing of it from now on. What you wrote stays there.", "To come back, you need a new invitation."}}, nil
		}
		return question{Title: "Remove " + name + " from " + heap + "?", Back: back, BackLabel: heap, Act: "remove", Button: "Remove " + name,
			Text: []string{name + " and their agents see nothing of this heap from now on. What they wrote stays."}}, nil
	},
	acts: map[string]act{
		"leave":  {op: "remove_member", args: memberOfPath, done: "heap-left", to: "/heaps"},
		"remove": {op: "remove_member", args: memberOfPath, done: "member-removed", to: "/heaps/{id}"},
	},
}

func memberOfPath(_ url.Values, q *request) map[string]any {
	return map[string]any{"heap": q.id, "account": q.r.PathValue("account")}
}
