package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"cairn/internal/edge"
	"cairn/internal/fault"
	"cairn/internal/rawjson"
)

// Protocol versions served.
const (
	v20241105 = "2024-11-05"
	v20250326 = "2025-03-26"
	v20250618 = "2025-06-18"
	v20251125 = "2025-11-25"
	v20260728 = "2026-07-28"
)

var versions = []string{v20260728, v20251125, v20250618, v20250326, v20241105}

// dialect is how answers are worded.
type dialect int

const (
	hero   dialect = iota // HeroMind's: plain JSON-RPC errors, isError always written
	legacy                // MCP up to 2025-11-25
	modern                // MCP since 2026-07-28
)

// Members of _meta that MCP 2026-07-28 defines.
const (
	metaVersion = "io.modelcontextprotocol/protocolVersion"
	metaCaps    = "io.modelcontextprotocol/clientCapabilities"
	metaClient  = "io.modelcontextprotocol/clientInfo"
)

// message is what must be known of a JSON-RPC message before anything else happens. Members are read under their exact
// names, as the SDK's parser reads them: encoding/json alone would take METHOD for method, and two readings of one body are
// a way past every check.
type message struct {
	body    []byte
	params  json.RawMessage // nil = none
	ID      json.RawMessage // nil = none
	Method  string
	Name    string // params.name of tools/call
	URI     string // params.uri of resources/read
	Args    json.RawMessage
	cursor  json.RawMessage
	Version string // of params._meta, or of initialize
	Client  string // name of params._meta's clientInfo

	answer   bool // a response, not a request
	caps     bool // params._meta has client capabilities
	hasMeta  bool // params._meta has a protocol version
	progress bool
	odd      bool // has members that only the SDK deals with

	broke atomic.Bool // the SDK's handler met an internal fault
}

type peekedKey struct{}

// peeked gives the message that the request in ctx was taken for, or nil.
func peeked(ctx context.Context) *message {
	m, _ := ctx.Value(peekedKey{}).(*message)
	return m
}

// peek reads a message. The message is given back with an error too, as far as it was read, for the error's id.
func peek(body []byte) (*message, error) {
	m := &message{body: body}
	jsonrpc, twice, idless := "", "", true
	seen := map[string]bool{}
	bad := func(why string) (*message, error) { return m, fault.New(fault.InvalidRequest, "%s", why) }
	isObject := rawjson.Members(body, func(k string, v json.RawMessage) bool {
		if seen[k] {
			twice = k
		}
		seen[k] = true
		switch k {
		case "jsonrpc":
			jsonrpc = text(v)
		case "id":
			m.ID, idless = v, false
		case "method":
			m.Method = text(v)
		case "params":
			m.params = v
		case "result", "error":
			m.answer = true
		}
		return true
	})
	switch {
	case !isObject:
		return bad("the body must be a JSON-RPC request object")
	case twice != "":
		return bad("the member " + twice + " is given twice")
	case !idless && !goodID(m.ID):
		why := "id must be a string or a number, not null, an object, a list or a boolean"
		m.ID = nil
		return bad(why)
	case !idless && !exactID(m.ID):
		return bad("id must be a string or a whole number below 2^53")
	case jsonrpc != "2.0":
		return bad(`jsonrpc must be "2.0"`)
	case m.Method == "" && m.answer:
		return m, nil
	case m.Method == "":
		return bad("method is missing")
	case idless && !strings.HasPrefix(m.Method, "notifications/"):
		return bad("id is missing: " + m.Method + " is a request")
	case m.params != nil && m.params[0] != '{':
		return bad("params must be an object")
	}
	if m.params != nil && !m.readParams(m.params) {
		return bad("a member of params is given twice")
	}
	return m, nil
}

// withParams gives an initialize request with the params that a client left out: the SDK insists on them.
func (m *message) withParams() []byte {
	params := map[string]json.RawMessage{"protocolVersion": json.RawMessage(`"` + v20251125 + `"`), "capabilities": json.RawMessage("{}"),
		"clientInfo": json.RawMessage(`{"name":"unknown","version":"0"}`)}
	rawjson.Members(m.params, func(k string, v json.RawMessage) bool {
		params[k] = v
		return true
	})
	b, err := rawjson.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "method": m.Method, "params": params})
	if err != nil {
		return m.body
	}
	return b
}

// goodID tells whether an id is a string or a number.
func goodID(id json.RawMessage) bool {
	return len(id) > 0 && (id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9')
}

// exactID tells whether a number is one that every JSON reader gives back as it came: a whole number below 2^53.
func exactID(id json.RawMessage) bool {
	if id[0] == '"' {
		return true
	}
	n, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil && n > -(1<<53) && n < 1<<53
}

func text(v json.RawMessage) string {
	if len(v) > 0 && v[0] == '"' {
		return rawjson.String(v)
	}
	return ""
}

func (m *message) readParams(params json.RawMessage) bool {
	seen := map[string]bool{}
	once := true
	rawjson.Members(params, func(k string, v json.RawMessage) bool {
		once = once && !seen[k]
		seen[k] = true
		switch k {
		case "name":
			m.Name = text(v)
		case "arguments":
			m.Args = v
		case "protocolVersion":
			m.Version = text(v)
		case "uri":
			m.URI, m.odd = text(v), true
		case "cursor":
			m.cursor = v
		case "_meta":
			once = m.readMeta(v) && once
		default:
			m.odd = true
		}
		return true
	})
	return once
}

func (m *message) readMeta(meta json.RawMessage) bool {
	seen := map[string]bool{}
	once := true
	isObject := rawjson.Members(meta, func(k string, v json.RawMessage) bool {
		once = once && !seen[k]
		seen[k] = true
		switch k {
		case metaVersion:
			m.Version, m.hasMeta = text(v), true
		case metaCaps:
			m.caps = v[0] == '{'
		case metaClient:
			rawjson.Members(v, func(k string, v json.RawMessage) bool {
				if k == "name" {
					m.Client = text(v)
				}
				return true
			})
		case "progressToken":
			m.progress = true
		}
		return true
	})
	m.odd = m.odd || !isObject
	return once
}

// dialectOf decides the dialect of a request, and refuses a version that isn't served.
func dialectOf(r *http.Request, m *message, alias bool) (dialect, error) {
	v := r.Header.Get("Mcp-Protocol-Version")
	switch {
	case alias:
		return hero, nil
	case v == "" && m != nil && m.Method == "initialize":
		v = v20250326 // the SDK negotiates; what matters here is only how an error would be worded
		if m.Version == v20241105 {
			v = v20241105
		}
	case v == "" && m != nil && m.hasMeta:
		return modern, nil // a modern request without its header: the SDK says so
	}
	switch v {
	case "":
		if edge.AcceptsStream(r) {
			return legacy, nil // 2025-03-26, which had no header
		}
		return hero, nil
	case v20241105:
		return hero, nil
	case v20250326, v20250618, v20251125:
		return legacy, nil
	case v20260728:
		return modern, nil
	}
	return modern, errVersion(v)
}

// errVersion refuses a version in the words of MCP 2026-07-28.
func errVersion(v string) error {
	return fault.New(fault.InvalidRequest, "protocol version %q is not served", v).With("supported", versions).With("requested", v)
}
