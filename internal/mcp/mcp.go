// Package mcp shows operations as MCP tools, over Streamable HTTP on /mcp and over stdio. It knows operations only as a list.
//
// One mcp.Server of the SDK serves every caller; a middleware filters and guards by the caller in ctx. In front of it stands
// Handler, which reads a request once and answers plain tools/call and tools/list itself where everything about them is
// certainly right. Whatever is odd goes to the SDK, which words what is wrong. HeroMind's dialect of tools/call is answered
// here altogether.
package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/prompt"
	"cairn/internal/rawjson"
	"cairn/internal/who"
)

// Name is how the server names itself.
const Name = "Cairn"

// instructions are what a client shows its model about the whole server.
const instructions = "Cairn keeps its owner's tasks, projects and memory. Begin with get_context; get_skill {\"name\":\"cairn\"} is the guide to these tools. " +
	"Use the ids and dates that earlier answers gave. " +
	"Before working on a project call get_project_context; at the end of a session call log_session_summary. " +
	"Everything you do is recorded under your name and can be undone by the owner."

// toolTTL is how long a client may keep the list of tools, in milliseconds. A person may change what is granted at any time.
const toolTTL = 60_000

// Tools is the operations as tools, for every surface of MCP.
type Tools struct {
	runner  *op.Runner
	server  *sdk.Server
	info    json.RawMessage // serverInfo
	entries []entry
	log     *slog.Logger // of the SDK

	prompts   *prompts // nil = there are none
	documents *documents
	fixtures  bool // the SDK's server has tools that are no operations
}

// Beside is what is served beside the tools.
type Beside struct {
	Skills  []Skill
	Prompts []*prompt.Prompt
	Now     func() int64 // in microseconds since 1970 UTC; prompts ask it
	Changes Changes      // of documents
}

// entry is a tool of the list, as bytes made once.
type entry struct {
	op          *op.Op
	plain, full []byte // without and with its output schema
}

// New makes the tools of a runner, and serves what is beside them. fixtures, if not nil, adds further tools to the SDK's server:
// the conformance suite's.
func New(runner *op.Runner, version string, log *slog.Logger, fixtures func(*sdk.Server), beside Beside) *Tools {
	caps := &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Resources: &sdk.ResourceCapabilities{}, Experimental: map[string]any{}}
	if len(beside.Skills) > 0 {
		declareSkills(caps)
	}
	info, _ := json.Marshal(map[string]string{"name": Name, "version": version})
	t := &Tools{runner: runner, info: info, log: log}
	t.documents = &documents{tools: t, changes: beside.Changes}
	options := &sdk.ServerOptions{
		Instructions: instructions,
		Logger:       log,
		PageSize:     1000, // tools/list is one page here as on the direct path
		Capabilities: caps,
		SetCacheable: func(_ context.Context, req sdk.Request, c *sdk.Cacheable) {
			c.CacheScope = "private"
			if read, ok := req.GetParams().(*sdk.ReadResourceParams); ok && strings.HasPrefix(read.URI, blockScheme) {
				return // others write documents at any time: nobody keeps them
			}
			if c.TTLMs == 0 {
				c.TTLMs = toolTTL
			}
		},
	}
	if len(beside.Prompts) > 0 {
		t.prompts = &prompts{t, beside.Prompts, beside.Now}
		caps.Prompts, options.CompletionHandler = &sdk.PromptCapabilities{}, t.prompts.complete
	}
	t.server = sdk.NewServer(&sdk.Implementation{Name: Name, Version: version}, options)
	for _, o := range runner.Ops() {
		if o.Bytes {
			continue
		}
		tool := describe(o)
		t.server.AddTool(tool, t.handle)
		t.entries = append(t.entries, entry{op: o, plain: list(tool, o, false), full: list(tool, o, true)})
	}
	if len(beside.Skills) > 0 {
		if err := serveSkills(t.server, beside.Skills); err != nil {
			panic(err) // a method of the SDK's own has the name
		}
	}
	if t.prompts != nil {
		t.prompts.serve(t.server)
	}
	if runner.Find(opDocument) != nil {
		t.documents.serve(t.server)
	}
	if fixtures != nil {
		t.fixtures = true
		fixtures(t.server)
	}
	t.server.AddReceivingMiddleware(t.rescue, t.guard, joinRequest, t.documents.answer)
	return t
}

// describe makes the SDK's tool of an operation.
func describe(o *op.Op) *sdk.Tool {
	in, err := json.Marshal(o.In)
	if err != nil {
		panic(err)
	}
	destroys, open := o.Effect == op.Destroy, o.OpenWorld
	return &sdk.Tool{Name: o.Name, Title: o.Title, Description: o.Doc, InputSchema: json.RawMessage(in),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: o.Effect == op.Read, DestructiveHint: &destroys, IdempotentHint: o.Idempotent, OpenWorldHint: &open},
		Meta:        sdk.Meta(meta(o))}
}

func meta(o *op.Op) map[string]any {
	return map[string]any{"cairn/cost": o.Cost, "cairn/timeout_ms": o.Timeout.Milliseconds(), "cairn/confirm": o.Confirm}
}

// list makes a tool's bytes for tools/list: only those hints that differ from MCP's defaults are said.
func list(tool *sdk.Tool, o *op.Op, full bool) []byte {
	hints := map[string]bool{}
	if o.Effect == op.Read {
		hints["readOnlyHint"] = true
	} else if o.Effect != op.Destroy {
		hints["destructiveHint"] = false
	}
	if o.Idempotent {
		hints["idempotentHint"] = true
	}
	if !o.OpenWorld {
		hints["openWorldHint"] = false
	}
	var out *jsonschema.Schema
	if full {
		out = o.Out
	}
	b, err := rawjson.Marshal(struct {
		Name   string             `json:"name"`
		Title  string             `json:"title"`
		Doc    string             `json:"description"`
		Input  any                `json:"inputSchema"`
		Output *jsonschema.Schema `json:"outputSchema,omitempty"`
		Hints  map[string]bool    `json:"annotations,omitempty"`
		Meta   map[string]any     `json:"_meta"`
	}{tool.Name, tool.Title, tool.Description, tool.InputSchema, out, hints, meta(o)})
	if err != nil {
		panic(err)
	}
	return b
}

// Toolset is what a request's URL asks to see of the tools.
type Toolset struct {
	Sets []string // nil = the default list
	Full bool     // with output schemas
}

// ParseToolset reads ?toolsets=a,b and ?schemas=full.
func (t *Tools) ParseToolset(toolsets, schemas string) (Toolset, error) {
	set := Toolset{Full: schemas == "full"}
	if toolsets == "" {
		return set, nil
	}
	valid := t.runner.Sets()
	for name := range strings.SplitSeq(toolsets, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(valid, name) {
			f := fault.New(fault.InvalidRequest, "there is no toolset %q; valid are: %s", name, strings.Join(valid, ", "))
			f.Valid = valid
			return set, f
		}
		set.Sets = append(set.Sets, name)
	}
	return set, nil
}

type toolsetKey struct{}

// shows tells whether a caller sees an operation in a toolset. What a caller doesn't see it may still call by name, if its
// rights reach that far.
func (ts Toolset) shows(c *who.Caller, o *op.Op) bool {
	set := o.Set
	switch {
	case c == nil, !c.MayArea(o.Area), o.PersonOnly && !c.Person:
		return false
	case o.Effect != op.Read && !c.Write && c.Agent == "": // an agent sees them: its call is challenged, and it may ask for more
		return false
	case ts.Sets == nil:
		return set == ""
	case set != "":
		return slices.Contains(ts.Sets, set)
	}
	return o.Area == who.Core || slices.Contains(ts.Sets, o.Area)
}

// guard filters tools/list and refuses calls of tools the caller may not know of, on the way to the SDK's own handlers.
func (t *Tools) guard(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if m := peeked(ctx); m != nil && m.Method != method {
			return nil, &jsonrpc.Error{Code: -32600, Message: "the request's method is ambiguous"}
		}
		switch method {
		case "tools/call":
			name := ""
			if p, ok := req.GetParams().(*sdk.CallToolParamsRaw); ok {
				name = p.Name
			}
			if m := peeked(ctx); m != nil && m.Name != name {
				return nil, &jsonrpc.Error{Code: -32600, Message: "the tool's name is ambiguous"}
			}
			if o := t.runner.Find(name); o != nil && (who.From(ctx) == nil || !who.From(ctx).MayArea(o.Area)) {
				return nil, &jsonrpc.Error{Code: -32602, Message: "unknown tool " + strconv.Quote(name)}
			}
		case "resources/read":
			if p, ok := req.GetParams().(*sdk.ReadResourceParams); ok && peeked(ctx) != nil && p.URI != peeked(ctx).URI {
				return nil, &jsonrpc.Error{Code: -32600, Message: "the resource's address is ambiguous"}
			}
		case "server/discover":
			res, err := next(ctx, method, req)
			// Older versions have no stream that could tell of changes. Without a credential there is none either: the MCP Inspector
			// (2.12.0) begins to listen at once where it may, and where that is refused it never asks to be let in.
			if r, ok := res.(*sdk.DiscoverResult); ok && t.documents.changes != nil && who.From(ctx) != nil {
				r.Capabilities.Resources = &sdk.ResourceCapabilities{Subscribe: true, ListChanged: true}
			}
			return res, err
		case "initialize":
			res, err := next(ctx, method, req)
			if r, ok := res.(*sdk.InitializeResult); ok {
				return initialized{r}, err
			}
			return res, err
		case "tools/list":
			res, err := next(ctx, method, req)
			if l, ok := res.(*sdk.ListToolsResult); ok && err == nil {
				ts, _ := ctx.Value(toolsetKey{}).(Toolset)
				return t.listed(who.From(ctx), ts, l), nil
			}
			return res, err
		case "prompts/list":
			res, err := next(ctx, method, req)
			if l, ok := res.(*sdk.ListPromptsResult); ok && t.prompts != nil {
				t.prompts.visible(who.From(ctx), l)
			}
			return res, err
		}
		return next(ctx, method, req)
	}
}

// rescue answers a panic on the SDK's way, which runs on a goroutine of the SDK's: nothing above would catch it.
func (t *Tools) rescue(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				id := ""
				if c := who.From(ctx); c != nil {
					id = c.Request
				}
				t.runner.Log.Error("an MCP request panicked", "method", method, "request", id, "panic", p, "stack", string(debug.Stack()))
				f := fault.New(fault.Internal, "something went wrong on the server; its log has the cause under id %s", id).With("id", id)
				res, err = nil, &jsonrpc.Error{Code: int64(f.Kind.Wire().Code), Message: f.Message, Data: faultData(f)}
			}
		}()
		return next(ctx, method, req)
	}
}

// listed is the SDK's list with the tools as the direct path writes them. The conformance suite's tools stay as they are.
func (t *Tools) listed(c *who.Caller, ts Toolset, l *sdk.ListToolsResult) sdk.Result {
	if t.fixtures {
		l.Tools = slices.DeleteFunc(slices.Clone(l.Tools), func(tool *sdk.Tool) bool {
			o := t.runner.Find(tool.Name)
			return o != nil && !ts.shows(c, o)
		})
		return l
	}
	return toolList{l, t.listBytes(c, ts)}
}

type toolList struct {
	*sdk.ListToolsResult
	tools []byte // the member, with its name
}

// MarshalJSON puts the tools into the SDK's result.
func (l toolList) MarshalJSON() ([]byte, error) {
	rest := *l.ListToolsResult
	rest.Tools = []*sdk.Tool{}
	b, err := json.Marshal(&rest)
	return bytes.Replace(b, []byte(`"tools":[]`), l.tools, 1), err
}

// initialized says experimental: {} among the capabilities, which the SDK leaves out where it is empty.
type initialized struct{ *sdk.InitializeResult }

// MarshalJSON adds the member.
func (r initialized) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(r.InitializeResult)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	var caps map[string]json.RawMessage
	if err := json.Unmarshal(b, &members); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(members["capabilities"], &caps); err != nil {
		return nil, err
	}
	caps["experimental"] = json.RawMessage("{}")
	if members["capabilities"], err = json.Marshal(caps); err != nil {
		return nil, err
	}
	return json.Marshal(members)
}

type requestKey struct{}

// keep puts a request's ctx into itself as a value: values reach the SDK's handlers on every version, its end doesn't.
func keep(ctx context.Context) context.Context { return context.WithValue(ctx, requestKey{}, ctx) }

// joinRequest ends a handler's ctx when the request's ends.
func joinRequest(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if rc, ok := ctx.Value(requestKey{}).(context.Context); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(rc, cancel)()
		}
		return next(ctx, method, req)
	}
}

// handle runs a tool for the SDK: calls that ask for progress, and odd ones.
func (t *Tools) handle(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if token := req.Params.GetProgressToken(); token != nil {
		ctx = op.WithProgress(ctx, progress(ctx, req.Session, token))
	}
	res, err := t.runner.Run(ctx, req.Params.Name, req.Params.Arguments)
	if err != nil {
		f := fault.From(err)
		if f.Kind == fault.Internal {
			return nil, rpcError(ctx, f)
		}
		body, _ := rawjson.Marshal(f.Body())
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: string(body)}}, StructuredContent: json.RawMessage(body)}, nil
	}
	out := &sdk.CallToolResult{StructuredContent: json.RawMessage(res.JSON)}
	for _, text := range texts(res) {
		out.Content = append(out.Content, &sdk.TextContent{Text: text})
	}
	return out, nil
}

func texts(res op.Result) []string {
	if res.Texts == nil {
		return []string{string(res.JSON)}
	}
	return res.Texts
}

// progress sends notifications, never two with the same value and never one after the answer.
func progress(ctx context.Context, s *sdk.ServerSession, token any) func(done, total float64, message string) {
	var mu sync.Mutex
	last := -1.0
	return func(done, total float64, message string) {
		mu.Lock()
		defer mu.Unlock()
		if done <= last {
			return
		}
		last = done
		_ = s.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: total, Message: message})
	}
}

// faultData is the data member of a JSON-RPC error.
func faultData(f *fault.Error) json.RawMessage {
	b := f.Body()
	delete(b, "error")
	delete(b, "message")
	delete(b, "retryAfter")
	b["name"] = strings.ToUpper(f.Kind.Wire().Name)
	out, _ := rawjson.Marshal(b)
	return out
}

// listBytes joins the tools a caller sees into the members of a tools/list result.
func (t *Tools) listBytes(c *who.Caller, ts Toolset) []byte {
	var b bytes.Buffer
	b.WriteString(`"tools":[`)
	first := true
	for _, e := range t.entries {
		if !ts.shows(c, e.op) {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		if ts.Full {
			b.Write(e.full)
		} else {
			b.Write(e.plain)
		}
	}
	b.WriteByte(']')
	return b.Bytes()
}
