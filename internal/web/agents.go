package web

import (
	"net/url"
	"slices"

	"cairn/internal/web/say"
	"cairn/internal/who"
)

type agentsPage struct {
	Agents   []agent
	Requests []pairing
	Ended    bool // those that are disconnected are listed too
}

// Pausable tells whether there is an agent that Pause all would stop.
func (p agentsPage) Pausable() bool {
	return slices.ContainsFunc(p.Agents, func(a agent) bool { return a.State != "disconnected" })
}

func (q *request) agents(ended bool) ([]agent, error) {
	out, err := get[struct {
		Agents []agent `json:"agents"`
	}](q, "list_agents", map[string]any{"ended": ended})
	return out.Agents, err
}

func (q *request) agent() (agent, error) {
	out, err := get[struct {
		Agent agent `json:"agent"`
	}](q, "get_agent", map[string]any{"agent": q.id})
	return out.Agent, err
}

var agentsScreen = screen{
	page: "agents",
	load: func(q *request) (any, error) {
		p := agentsPage{Ended: q.r.URL.Query().Get("all") == "1"}
		var err error
		if p.Agents, err = q.agents(p.Ended); err != nil {
			return nil, err
		}
		requests, err := get[struct {
			Requests []pairing `json:"requests"`
		}](q, "list_requests", nil)
		p.Requests = requests.Requests
		return p, err
	},
	acts: map[string]act{
		"pause-all":  {op: "pause_agents", args: always(map[string]any{"all": "account"}), done: "all-paused"},
		"resume-all": {op: "resume_agents", args: always(map[string]any{"all": "account"}), done: "all-resumed"},
		"pause":      {op: "pause_agents", args: field("agent"), done: "paused"},
		"resume":     {op: "resume_agents", args: field("agent"), done: "resumed"},
	},
}

type agentPage struct {
	Agent agent
	Heaps []heapRow // those that may be granted
	Areas []area
}

type area struct{ Name, Label, About string }

// areasShown are the areas with the most sensitive thing in each, so that nobody grants one unawares.
var areasShown = []area{
	{"tasks", "Tasks", "What you plan, have done and put off."},
	{"memory", "Memory", "What you believe and prefer; your journal, evidence, meetings and people. Nothing that you marked private."},
	{"library", "Library", "What you read and collect."},
	{"documents", "Documents", "What you write."},
	{"personas", "Personas", "The voices you work with."},
}

// openHeaps gives the heaps of the account that are not archived.
func (q *request) openHeaps() ([]heapRow, error) {
	out, err := get[accountOut](q, "get_account", map[string]any{"holds": true})
	return slices.DeleteFunc(out.Heaps, func(h heapRow) bool { return h.ArchivedAt != nil }), err
}

var agentScreen = screen{
	page: "agent",
	load: func(q *request) (any, error) {
		a, err := q.agent()
		if err != nil {
			return nil, err
		}
		heaps, err := q.openHeaps()
		return agentPage{a, heaps, areasShown}, err
	},
	acts: map[string]act{
		"pause":  {op: "pause_agents", args: thing("agent"), done: "paused"},
		"resume": {op: "resume_agents", args: thing("agent"), done: "resumed"},
		"rights": {op: "update_agent", done: "saved", args: func(f url.Values, q *request) map[string]any {
			args := map[string]any{"agent": q.id, "name": f.Get("name"), "heaps": ticked(f, "heaps"), "write": f.Get("write") == "yes",
				"propose_memory": f.Get("propose_memory") == "yes", "rate": number(f.Get("rate"))}
			if len(ticked(f, "areas")) == len(who.Areas) {
				args["all_areas"] = true
			} else {
				args["areas"] = ticked(f, "areas")
			}
			return args
		}},
	},
}

var disconnectScreen = screen{
	page: "confirm",
	load: func(q *request) (any, error) {
		a, err := q.agent()
		name := isolated(a.Name)
		return question{Title: "Disconnect " + name + "?", Back: "/agents/" + q.id, BackLabel: name, Act: "disconnect", Button: "Disconnect " + name,
			Text: []string{"It can do nothing from now on. What it wrote stays; what it has read it keeps.", "To let it in again, connect it anew."}}, err
	},
	acts: map[string]act{"disconnect": {op: "disconnect_agent", args: thing("agent"), done: "disconnected", to: "/agents"}},
}

var connectScreen = screen{
	page: "connect",
	load: func(q *request) (any, error) {
		all := say.Clients(q.s.Edge.Public.String() + "/mcp")
		at := max(0, slices.IndexFunc(all, func(c say.Client) bool { return c.ID == q.r.URL.Query().Get("client") }))
		return map[string]any{"Clients": all, "Chosen": all[at]}, nil
	},
}
