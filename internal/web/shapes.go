package web

import "strings"

// What operations answer, as far as pages show it.

type accountInfo struct {
	ID             string  `json:"id"`
	Name           string  `json:"name"`
	Zone           string  `json:"zone"`
	Email          string  `json:"email"`
	EmailConfirmed bool    `json:"email_confirmed"`
	Admin          bool    `json:"admin"`
	AgentsPausedAt *string `json:"agents_paused_at"`
}

type serverInfo struct {
	AgentsPausedAt *string `json:"agents_paused_at"`
	Mail           bool    `json:"mail"`
}

type invite struct {
	ID        string `json:"id"`
	HeapName  string `json:"heap_name"`
	Name      string `json:"name"` // of whom it is for
	Role      string `json:"role"`
	State     string `json:"state"`
	Inviter   string `json:"inviter"`
	CreatedAt string `json:"created_at"`
}

type heapRow struct {
	ID         string  `json:"id"`
	Name       string  `json:"name"`
	Kind       string  `json:"kind"`
	Role       string  `json:"role"`
	OwnerName  string  `json:"owner_name"`
	ArchivedAt *string `json:"archived_at"`
	CreatedAt  string  `json:"created_at"`
	Members    int     `json:"members"`

	Held []struct {
		Kind  string `json:"kind"`
		Count int    `json:"count"`
	} `json:"holds"` // where it was asked for
}

// About says of what kind a heap is, where its name doesn't, whether others see it, and what is in it.
func (h heapRow) About() string {
	text := kindText(h.Kind)
	if text == h.Name {
		text = ""
	}
	if h.Members > 1 {
		text = kindText(h.Kind) + ", shared: " + plural(h.Members, "member", "members")
	}
	if h.Held == nil {
		return text
	}
	if text != "" {
		text += ". "
	}
	return text + h.Holds()
}

type accountOut struct {
	Account accountInfo `json:"account"`
	Server  serverInfo  `json:"server"`
	Heaps   []heapRow   `json:"heaps"`
	Invites []invite    `json:"invites"`
}

type member struct {
	Account string `json:"account"`
	Name    string `json:"name"`
	Role    string `json:"role"`
	Since   string `json:"since"`
}

type heapAgent struct {
	ID          string   `json:"id"`
	Kind        string   `json:"kind"`
	Name        string   `json:"name"`
	AccountName string   `json:"account_name"`
	Write       bool     `json:"write"`
	Areas       []string `json:"areas"`
	State       string   `json:"state"`
}

type heapOut struct {
	Heap    heapRow     `json:"heap"`
	Members []member    `json:"members"`
	Invites []invite    `json:"invites"`
	Agents  []heapAgent `json:"agents"`
}

// Holds says what is in the heap, in words.
func (h heapRow) Holds() string {
	var parts []string
	for _, k := range h.Held {
		if k.Count == 0 {
			continue
		}
		switch k.Kind {
		case "task":
			parts = append(parts, plural(k.Count, "open task", "open tasks"))
		case "memory":
			parts = append(parts, plural(k.Count, "memory", "memories"))
		case "note":
			parts = append(parts, plural(k.Count, "note", "notes"))
		}
	}
	if len(parts) == 0 {
		return "Nothing in it yet."
	}
	return sentence(strings.Join(parts, ", "))
}

type named struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type agent struct {
	ID            string   `json:"id"`
	Name          string   `json:"name"`
	AccountName   string   `json:"account_name"`
	ClientName    string   `json:"client_name"`
	ClientKind    string   `json:"client_kind"`
	RedirectHost  string   `json:"redirect_host"`
	Heaps         []named  `json:"heaps"`
	Write         bool     `json:"write"`
	ProposeMemory bool     `json:"propose_memory"`
	Areas         []string `json:"areas"`
	State         string   `json:"state"`
	Connected     bool     `json:"connected"`
	CreatedAt     string   `json:"created_at"`
	ConnectedAt   *string  `json:"connected_at"`
	AccessUntil   *string  `json:"access_until"`
	StayUntil     *string  `json:"stay_until"`
	LastUsedAt    *string  `json:"last_used_at"`
	Calls         int      `json:"calls"`
	Errors        int      `json:"errors"`
	PausedAt      *string  `json:"paused_at"`
	EndedAt       *string  `json:"ended_at"`
	Refused       int      `json:"refused"`
	Rate          int      `json:"rate"`
	ScopeWrite    bool     `json:"scope_write"`
	Address       string   `json:"address"`
	UserAgent     string   `json:"user_agent"`
}

// Rights says what the agent may do, in one sentence.
func (a agent) Rights() string { return agentRights(names(a.Heaps), a.Areas, a.Write) }

// Connection says of an agent that is paused whether it is connected all the same, and what it tried meanwhile.
func (a agent) Connection() string {
	text := "Not connected."
	if a.Connected {
		text = "Still connected."
	}
	if a.Refused > 0 {
		text += " " + plural(a.Refused, "call", "calls") + " refused since it was paused."
	}
	return text
}

// Has tells whether a heap is granted, HasArea whether an area is.
func (a agent) Has(heap string) bool {
	for _, h := range a.Heaps {
		if h.ID == heap {
			return true
		}
	}
	return false
}

// HasArea tells whether an area is granted.
func (a agent) HasArea(area string) bool { return hasArea(a.Areas, area) }

func hasArea(areas []string, area string) bool {
	for _, a := range areas {
		if a == area {
			return true
		}
	}
	return areas == nil
}

func names(list []named) []string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = n.Name
	}
	return out
}

type pairing struct {
	ID           string `json:"id"`
	ClientName   string `json:"client_name"`
	RedirectHost string `json:"redirect_host"`
	AsksWrite    bool   `json:"asks_write"`
	AsksStay     bool   `json:"asks_stay"`
	Address      string `json:"address"`
	UserAgent    string `json:"user_agent"`
	CreatedAt    string `json:"created_at"`
	ExpiresAt    string `json:"expires_at"`
}

type token struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Account    string   `json:"account"`
	State      string   `json:"state"`
	ReadOnly   bool     `json:"read_only"`
	Propose    bool     `json:"propose_memory"`
	Areas      []string `json:"areas"`
	Heaps      []string `json:"heaps"`
	AllowIP    []string `json:"allow_ip"`
	Rate       *int     `json:"rate"`
	CreatedAt  string   `json:"created_at"`
	ExpiresAt  *string  `json:"expires_at"`
	LastUsedAt *string  `json:"last_used_at"`
	Calls      int      `json:"calls"`
	Errors     int      `json:"errors"`
}

// Rights says what the token may do, in one sentence.
func (t token) Rights() string { return agentRights(t.Heaps, t.Areas, !t.ReadOnly) }

type accountRow struct {
	ID         string  `json:"id"`
	Name       string  `json:"name"`
	Email      string  `json:"email"`
	Admin      bool    `json:"admin"`
	State      string  `json:"state"`
	CreatedAt  string  `json:"created_at"`
	LastSeenAt *string `json:"last_seen_at"`
	Agents     int     `json:"agents"`
	Tokens     int     `json:"tokens"`
	Sessions   int     `json:"sessions"`
}

type webSession struct {
	ID        string `json:"id"`
	Method    string `json:"method"`
	Address   string `json:"address"`
	Client    string `json:"client"`
	CreatedAt string `json:"created_at"`
	SeenAt    string `json:"seen_at"`
	Current   bool   `json:"current"`
}

type signInMethod struct {
	ID         string  `json:"id"`
	Kind       string  `json:"kind"`
	Name       string  `json:"name"`
	Host       string  `json:"host"`
	CreatedAt  string  `json:"created_at"`
	LastUsedAt *string `json:"last_used_at"`
}
