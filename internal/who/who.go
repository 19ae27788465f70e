// Package who says who calls: a person, or an agent or token on a person's behalf, with the heaps, areas and right granted.
// A Caller is made anew for each request by the surface that checked the credential and travels in the request's ctx;
// operations ask it and nothing else. No caller in ctx means that nothing is allowed.
package who

import (
	"context"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"cairn/internal/fault"
)

// Heap kinds.
const (
	Personal = "personal"
	Work     = "work"
	Other    = "other"
)

// Surfaces a call can come by.
const (
	ViaMCP  = "mcp"
	ViaHTTP = "http"
	ViaCLI  = "cli"
	ViaWeb  = "web"
)

// Core is the area that every caller has.
const Core = "core"

// Areas are the grantable areas, in the order in which they are shown.
var Areas = []string{"tasks", "memory", "library", "documents", "personas"}

// Heap is a heap that the caller may reach, with the account's role in it: owner, admin, editor or viewer.
type Heap struct {
	ID, Name, Kind, Role string
}

// Writable tells whether the role lets one write.
func (h Heap) Writable() bool { return h.Role != "viewer" && h.Role != "" }

// Fold makes names that a person takes for the same the same: case, composition and the amount of space don't count.
func Fold(name string) string {
	return norm.NFKC.String(cases.Fold().String(norm.NFKC.String(strings.Join(strings.Fields(name), " "))))
}

// Caller is who calls, for one request.
type Caller struct {
	Account     string // id
	AccountName string
	Admin       bool // the account administers the server
	Zone        *time.Location
	Actor       string // who did it, as the change record names it: "account:ID", "token:ID", "agent:ID" or "stdio:ID"
	Token       string // the API token's id, "" without one
	Agent       string // the id of the agent that an OAuth access token speaks for, "" without one
	Scope       string // of an access token, as granted
	Session     string // the web session's id, "" without one
	Proved      int64  // of a person: when they last showed who they are, in microseconds since 1970 UTC
	Person      bool   // a web session, or the command line on the machine itself; never a token or an agent
	Write       bool   // the right: read and write, or read alone
	Propose     bool   // new memories wait for the owner
	Areas       []string
	AllAreas    bool
	Heaps       []Heap // oldest first; archived ones are not among them
	Limited     bool   // rate limits bind this caller; false on local data
	Rate        int    // calls per 60 s if Limited: 0 = no limit; below 0 = the server's default, which edge puts in
	Via         string
	Client      string // User-Agent, or what the client called itself
	Address     string
	Request     string // one id per request, also in the log and the change record
}

type key struct{}

// With puts a caller into ctx.
func With(ctx context.Context, c *Caller) context.Context { return context.WithValue(ctx, key{}, c) }

// From gives the caller in ctx, or nil.
func From(ctx context.Context) *Caller {
	c, _ := ctx.Value(key{}).(*Caller)
	return c
}

// MayArea tells whether an area is granted.
func (c *Caller) MayArea(area string) bool {
	return area == Core || c.AllAreas || slices.Contains(c.Areas, area)
}

// IDs gives the ids of heaps.
func IDs(hs []Heap) []string {
	out := make([]string, len(hs))
	for i, h := range hs {
		out[i] = h.ID
	}
	return out
}

// ByID gives a granted heap by its id.
func (c *Caller) ByID(id string) (Heap, bool) {
	for _, h := range c.Heaps {
		if h.ID == id {
			return h, true
		}
	}
	return Heap{}, false
}

// named finds a granted heap by id or, without regard to case, by name.
func (c *Caller) named(s string) (Heap, error) {
	if h, ok := c.ByID(s); ok {
		return h, nil
	}
	var found []Heap
	for _, h := range c.Heaps {
		if strings.EqualFold(h.Name, s) {
			found = append(found, h)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		e := fault.New(fault.NotFound, "there is no heap %q among those granted to you", s)
		e.Field, e.Valid = "heap", names(c.Heaps)
		return Heap{}, e
	}
	e := fault.New(fault.Conflict, "%d heaps are named %q: give the id", len(found), s)
	e.Field, e.Valid = "heap", IDs(found)
	return Heap{}, e
}

func names(hs []Heap) []string {
	out := make([]string, len(hs))
	for i, h := range hs {
		out[i] = h.Name
	}
	return out
}

// Readable gives the heaps that a read covers: the one asked for by id or name, or all granted where heap is "".
func (c *Caller) Readable(heap string) ([]Heap, error) {
	if heap == "" {
		return c.Heaps, nil
	}
	h, err := c.named(heap)
	if err != nil {
		return nil, err
	}
	return []Heap{h}, nil
}

// Target gives the heap that a new thing goes to: the one asked for if it fits, else the oldest that fits. fits says which
// kinds do ("" = any, and then a personal heap comes before others).
func (c *Caller) Target(heap string, fits func(kind string) bool) (Heap, error) {
	usable := slices.DeleteFunc(slices.Clone(c.Heaps), func(h Heap) bool { return !h.Writable() || fits != nil && !fits(h.Kind) })
	if heap != "" {
		h, err := c.named(heap)
		if err != nil {
			return Heap{}, err
		}
		if !slices.Contains(usable, h) {
			why := "is of kind " + h.Kind
			if !h.Writable() {
				why = "is shared with you to read only"
			}
			e := fault.Bad("heap", "%q doesn't fit: it %s; fitting here: %s", h.Name, why, list(usable))
			e.Valid = names(usable)
			return Heap{}, e
		}
		return h, nil
	}
	if fits == nil {
		for _, h := range usable {
			if h.Kind == Personal {
				return h, nil
			}
		}
	}
	if len(usable) == 0 {
		e := fault.Bad("heap", "is missing: none of the heaps granted to you (%s) fits this tool", list(c.Heaps))
		e.Valid = []string{}
		return Heap{}, e
	}
	return usable[0], nil
}

func list(hs []Heap) string {
	if len(hs) == 0 {
		return "none"
	}
	return strings.Join(names(hs), ", ")
}

// Day gives the calendar date of a moment (microseconds since 1970 UTC) in the account's zone, as YYYY-MM-DD.
func (c *Caller) Day(micros int64) string { return c.Time(micros).Format(time.DateOnly) }

// Time gives a moment in the account's zone.
func (c *Caller) Time(micros int64) time.Time {
	zone := c.Zone
	if zone == nil {
		zone = time.UTC
	}
	return time.UnixMicro(micros).In(zone)
}
