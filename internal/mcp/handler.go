package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/edge"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/rawjson"
	"cairn/internal/who"
)

// Paths of MCP. The alias is HeroMind's own and speaks its dialect always.
const (
	Path  = "/mcp"
	Alias = "/functions/v1/mcp-server"
)

// maxBatch is the most messages of a batch.
const maxBatch = 20

// Handler serves MCP over HTTP, without sessions: any replica answers any request.
type Handler struct {
	tools  *Tools
	edge   *edge.Edge
	health func(ctx context.Context) any // the answer to a plain GET
	stop   <-chan struct{}
	sse    http.Handler
	json   http.Handler
}

// NewHandler makes the handler. health gives the body that a plain GET is answered with; stop is closed when the server is
// about to stop, which ends streams that would never end by themselves.
func NewHandler(t *Tools, e *edge.Edge, health func(ctx context.Context) any, stop <-chan struct{}) *Handler {
	make := func(jsonAnswers bool) http.Handler {
		return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return t.server }, &sdk.StreamableHTTPOptions{
			Stateless: true, JSONResponse: jsonAnswers, MaxRequestBodyBytes: -1, DisableLocalhostProtection: true, PropagateRequestCancellation: true, Logger: t.log,
		})
	}
	return &Handler{tools: t, edge: e, health: health, stop: stop, sse: make(false), json: make(true)}
}

// request is one HTTP request on its way.
type request struct {
	h       *Handler
	w       http.ResponseWriter
	r       *http.Request
	alias   bool
	caller  *who.Caller
	authErr error
	again   func(ctx context.Context) (*who.Caller, error) // looks up anew who calls
	toolset Toolset
}

// ServeHTTP answers a request to Path or Alias.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request{h: h, w: w, r: r, alias: strings.HasPrefix(r.URL.Path, Alias)}
	if r.Method != http.MethodPost {
		q.other()
		return
	}
	q.caller, q.authErr = h.edge.Caller(r, who.ViaMCP)
	q.again = func(ctx context.Context) (*who.Caller, error) { return h.edge.Again(ctx, r, who.ViaMCP) }
	if fault.Is(q.authErr, fault.Unavailable) {
		q.fail(nil, q.dialect(nil), q.authErr)
		return
	}
	body, err := edge.JSONBody(w, r, edge.BodyCap(q.caller))
	if err != nil {
		q.fail(nil, q.dialect(nil), err)
		return
	}
	if list, isBatch := rawjson.Elements(body); isBatch {
		q.batch(list)
		return
	}
	q.one(body)
}

// Refuse answers a request that never got as far as being read.
func (h *Handler) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	q := &request{h: h, w: w, r: r, alias: strings.HasPrefix(r.URL.Path, Alias)}
	q.fail(nil, q.dialect(nil), err)
}

// other answers what isn't a POST.
func (q *request) other() {
	var err error
	q.caller, err = q.h.edge.Caller(q.r, who.ViaMCP)
	if q.r.Method == http.MethodGet && !edge.AcceptsStream(q.r) && q.r.Header.Get("Mcp-Protocol-Version") == "" {
		b, _ := rawjson.Marshal(q.h.health(q.r.Context()))
		edge.JSON(q.w, http.StatusOK, b)
		return
	}
	if err != nil {
		q.fail(nil, q.dialect(nil), q.h.edge.Refuse(q.r.Context(), q.w.Header(), err))
		return
	}
	q.w.Header().Set("Allow", "GET, POST, OPTIONS")
	f := fault.New(fault.InvalidRequest, "%s is not served here: send JSON-RPC by POST; there are no sessions and no GET stream", q.r.Method)
	f.Status = http.StatusMethodNotAllowed
	q.fail(nil, q.dialect(nil), f)
}

// dialect is the request's dialect where its message can't say more, or its version is odd.
func (q *request) dialect(m *message) dialect {
	d, _ := dialectOf(q.r, m, q.alias)
	return d
}

// one answers one message.
func (q *request) one(body []byte) {
	m, err := peek(body)
	d, verr := dialectOf(q.r, m, q.alias)
	if err == nil {
		err = verr
	}
	if err == nil {
		err = q.admit(m)
	}
	if err == nil && slices.Contains(since2026, m.Method) && d != modern {
		err = fault.New(fault.UnknownMethod, "there is no method %q before MCP 2026-07-28", m.Method)
	}
	if err == nil {
		q.toolset, err = q.h.tools.ParseToolset(q.r.URL.Query().Get("toolsets"), q.r.URL.Query().Get("schemas"))
	}
	if err != nil {
		q.fail(m.ID, d, err)
		return
	}
	if m.answer || m.ID == nil { // answers to requests we never make, and notifications: nothing to say
		q.w.WriteHeader(http.StatusAccepted)
		return
	}
	if m.Method == "initialize" {
		m.body = m.withParams()
	}
	ctx := context.WithValue(q.r.Context(), peekedKey{}, m)
	if q.caller != nil {
		if m.Client != "" {
			q.caller.Client = m.Client
		}
		ctx = who.With(ctx, q.caller)
	}
	ctx = context.WithValue(ctx, toolsetKey{}, q.toolset)
	if name := q.h.tools.documents.runs(q.caller, m); name != "" {
		actx, _, err := q.h.tools.runner.Admit(ctx, name)
		if err != nil {
			q.fail(m.ID, d, err)
			return
		}
		ctx = actx
	}
	if m.Method == "tools/call" {
		actx, o, err := q.h.tools.runner.Admit(ctx, m.Name)
		switch {
		case fault.Is(err, fault.UnknownTool) && q.h.tools.fixtures: // the SDK may know it
		case err != nil:
			q.fail(m.ID, d, err)
			return
		case !o.Big && len(body) > edge.UsualBody:
			q.fail(m.ID, d, edge.TooLarge(edge.UsualBody))
			return
		default:
			ctx = actx
		}
	}
	q.r = q.r.WithContext(keep(ctx))
	if out, err := q.direct(ctx, m, d); err != nil {
		q.fail(m.ID, d, err)
	} else if out != nil {
		edge.JSON(q.w, http.StatusOK, out)
	} else {
		q.sdk(m)
	}
}

// since2026 are methods that older versions haven't.
var since2026 = []string{"server/discover", "subscriptions/listen"}

// open are the methods that need no token.
var open = []string{"initialize", "server/discover"}

// admit checks the credential and the rate.
func (q *request) admit(m *message) error {
	free := slices.Contains(open, m.Method)
	ctx, h := q.r.Context(), q.w.Header()
	if q.authErr != nil && (!free || !fault.Is(q.authErr, fault.Unauthenticated)) {
		return q.h.edge.Refuse(ctx, h, q.authErr)
	}
	if q.alias && q.caller != nil && q.caller.Token == "" {
		return fault.New(fault.TokenInvalid, "this path takes API tokens alone")
	}
	if q.caller != nil && m.Method == "initialize" {
		return q.h.edge.Uncounted(ctx, h, q.caller)
	}
	return q.h.edge.Limit(ctx, h, q.caller)
}

// direct answers what is certainly right without the SDK; nil means that it doesn't.
func (q *request) direct(ctx context.Context, m *message, d dialect) ([]byte, error) {
	if d != hero && !q.sure(m, d) {
		return nil, nil
	}
	switch m.Method {
	case "tools/call":
		if d != hero && (q.h.tools.runner.Find(m.Name) == nil || m.progress && edge.AcceptsStream(q.r)) {
			return nil, nil
		}
		return q.call(ctx, m, d)
	case "tools/list":
		if m.odd || q.h.tools.fixtures {
			return nil, nil
		}
		if c := string(m.cursor); c != "" && c != "null" && c != `""` {
			return nil, badCursor(c)
		}
		out := begin(m.ID, d, q.h.tools.info, 64<<10)
		out = append(out, q.h.tools.listBytes(q.caller, q.toolset)...)
		return append(out, `,"ttlMs":`+strconv.Itoa(toolTTL)+`,"cacheScope":"private"}}`...), nil
	}
	return nil, nil
}

// badCursor refuses a cursor of tools/list, which is one page.
func badCursor(c string) error {
	if c[0] != '"' {
		f := fault.Bad("cursor", "must be a string")
		f.Status = http.StatusBadRequest
		return f
	}
	return fault.Bad("cursor", "is not one that this list gave: the list is one page")
}

// sure tells whether a request is by the book, so that the SDK would have nothing to say about its form.
func (q *request) sure(m *message, d dialect) bool {
	h := q.r.Header
	if m.odd || bytes.IndexByte(m.ID, '\\') >= 0 || h.Get("Last-Event-Id") != "" {
		return false
	}
	if d != modern {
		return !m.hasMeta
	}
	return m.hasMeta && m.Version == v20260728 && h.Get("Mcp-Protocol-Version") == v20260728 && m.caps && h.Get("Mcp-Method") == m.Method &&
		(m.Method != "tools/call" || h.Get("Mcp-Name") == m.Name)
}

// begin starts a JSON-RPC result.
func begin(id json.RawMessage, d dialect, info []byte, size int) []byte {
	out := make([]byte, 0, size)
	out = append(append(append(out, `{"jsonrpc":"2.0","id":`...), id...), `,"result":{`...)
	if d == modern {
		out = append(append(append(out, `"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":`...), info...), `},`...)
	}
	return out
}

// call runs a tool and words its answer.
func (q *request) call(ctx context.Context, m *message, d dialect) ([]byte, error) {
	res, err := q.h.tools.runner.Run(ctx, m.Name, m.Args)
	failed := err != nil
	if failed {
		f := fault.From(err)
		code := f.Kind.Wire().Code
		if f.Kind == fault.Internal || d == hero && code != 0 {
			return nil, err
		}
		body, _ := rawjson.Marshal(f.Body())
		res = op.Result{JSON: body}
	}
	size := 300 + 2*len(res.JSON) + len(res.JSON)/4
	for _, s := range res.Texts {
		size += len(s) + len(s)/4
	}
	out := begin(m.ID, d, q.h.tools.info, size)
	out = append(out, `"content":[`...)
	if res.Texts == nil {
		out = append(rawjson.Quote(append(out, `{"type":"text","text":`...), res.JSON), '}')
	}
	for i, s := range res.Texts {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(rawjson.Quote(append(out, `{"type":"text","text":`...), []byte(s)), '}')
	}
	out = append(append(out, `],"structuredContent":`...), res.JSON...)
	switch {
	case failed:
		out = append(out, `,"isError":true`...)
	case d == hero:
		out = append(out, `,"isError":false`...)
	}
	return append(out, `}}`...), nil
}

// fail answers with a JSON-RPC error under the table's HTTP status.
func (q *request) fail(id json.RawMessage, d dialect, err error) {
	f := fault.From(err)
	if h := q.w.Header(); q.caller != nil && h.Get("X-RateLimit-Limit") == "" {
		_ = q.h.edge.Uncounted(q.r.Context(), h, q.caller) // the refusal itself matters more
	}
	q.h.edge.Challenge(q.w.Header(), f, q.caller)
	edge.RetryAfter(q.w.Header(), f)
	status := f.HTTP()
	if d == modern && (f.Kind == fault.UnknownTool || f.Kind == fault.Invalid) {
		status = http.StatusBadRequest // MCP 2026-07-28 asks for it with -32602
	}
	edge.JSON(q.w, status, errorBody(id, d, f))
}

// errorBody words a fault as a JSON-RPC error.
func errorBody(id json.RawMessage, d dialect, f *fault.Error) []byte {
	if id == nil {
		id = json.RawMessage("null")
		if d == hero {
			id = json.RawMessage(`"unknown"`)
		}
	}
	code, message := f.Kind.Wire().Code, f.Message
	if code == 0 || f.Kind == fault.UnknownTool && d != hero {
		code = fault.Invalid.Wire().Code
	}
	if f.Kind == fault.Invalid && d == hero {
		message = "Invalid tool arguments: " + message
	}
	data := faultData(f)
	if f.Data["supported"] != nil {
		code = -32022
		data, _ = rawjson.Marshal(map[string]any{"supported": f.Data["supported"], "requested": f.Data["requested"]})
	}
	b, _ := rawjson.Marshal(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   struct {
			Code    int             `json:"code"`
			Message string          `json:"message"`
			Data    json.RawMessage `json:"data"`
		} `json:"error"`
	}{"2.0", id, struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}{code, message, data}})
	return b
}

// batch answers a batch: each message on its own, with its own answer or error, each counted.
func (q *request) batch(list []json.RawMessage) {
	v := q.r.Header.Get("Mcp-Protocol-Version")
	d := q.dialect(nil)
	switch {
	case q.authErr != nil:
		q.fail(nil, d, q.h.edge.Refuse(q.r.Context(), q.w.Header(), q.authErr))
		return
	case v != "" && v != v20241105 && v != v20250326 && !q.alias:
		q.fail(nil, d, fault.New(fault.InvalidRequest, "protocol version %s has no batches: send one message a request", v))
		return
	case len(list) == 0:
		q.fail(nil, d, fault.New(fault.InvalidRequest, "the batch is empty"))
		return
	case len(list) > maxBatch:
		q.fail(nil, d, fault.New(fault.InvalidRequest, "the batch has %d messages, at most %d are taken", len(list), maxBatch))
		return
	}
	out := []byte{'['}
	for _, body := range list {
		caller := *q.caller
		b := &buffer{header: http.Header{}}
		r := q.r.Clone(q.r.Context())
		r.Header.Set("Accept", "application/json")
		if d == legacy {
			r.Header.Set("Mcp-Protocol-Version", v20250326)
		}
		sub := &request{h: q.h, w: b, r: r, alias: q.alias, caller: &caller, again: q.again}
		sub.one(body)
		for _, k := range []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "Retry-After"} {
			if v, ok := b.header[k]; ok {
				q.w.Header()[k] = v
			}
		}
		if b.Len() > 0 {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, bytes.TrimSpace(b.Bytes())...)
		}
	}
	if len(out) == 1 { // notifications alone
		q.w.WriteHeader(http.StatusAccepted)
		return
	}
	edge.JSON(q.w, http.StatusOK, append(out, ']'))
}

// buffer holds an answer back.
type buffer struct {
	bytes.Buffer
	header http.Header
}

// Header and WriteHeader make it a ResponseWriter; a message of a batch has no status of its own.
func (b *buffer) Header() http.Header { return b.header }

// WriteHeader drops the status.
func (b *buffer) WriteHeader(int) {}

// sdk hands the request on to the SDK.
func (q *request) sdk(m *message) {
	if err := m.typed(); err != nil {
		q.fail(m.ID, q.dialect(m), err)
		return
	}
	h := q.h.json
	if q.alias {
		q.r.Header.Del("Mcp-Protocol-Version") // HeroMind's dialect, whatever it says
	} else if edge.AcceptsStream(q.r) {
		h = q.h.sse
		q.w.Header().Set("X-Accel-Buffering", "no") // nginx would hold a stream back
	}
	q.r.Header["Accept"] = []string{"application/json, text/event-stream"}
	q.r.Header.Del("Mcp-Session-Id") // there are no sessions: an unknown one is ignored
	q.r.Body, q.r.ContentLength = io.NopCloser(bytes.NewReader(m.body)), int64(len(m.body))
	w := &rewriter{ResponseWriter: q.w, m: m, d: q.dialect(m)}
	if m.Method == "subscriptions/listen" {
		leave, err := q.h.tools.documents.listening.enter(q.caller.Actor)
		if err != nil {
			q.fail(m.ID, q.dialect(m), err)
			return
		}
		defer leave()
		q.r = q.r.WithContext(keep(context.WithValue(q.r.Context(), streamKey{}, &stream{w, q.h.stop, q.again})))
	}
	h.ServeHTTP(w, q.r)
	w.finish()
}

// rewriter turns the SDK's refusals in plain text into JSON-RPC errors.
type rewriter struct {
	http.ResponseWriter
	m      *message
	d      dialect
	begun  bool
	status int
	text   *bytes.Buffer
}

func (w *rewriter) WriteHeader(status int) {
	w.begun = true
	if status >= 400 && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.status, w.text = status, new(bytes.Buffer)
		return
	}
	if status == http.StatusOK && w.m.broke.Load() {
		status = fault.Internal.Wire().MCP
	}
	w.Header().Set("Cache-Control", "no-store, no-transform") // no-transform: a proxy must not hold a stream back to compress it
	w.ResponseWriter.WriteHeader(status)
}

func (w *rewriter) Write(b []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	if w.text != nil {
		return w.text.Write(b)
	}
	return w.ResponseWriter.Write(b)
}

// Flush and Unwrap pass streams on.
func (w *rewriter) Flush() {
	if w.text == nil {
		w.begun = true
		_ = http.NewResponseController(w.ResponseWriter).Flush()
	}
}

// Unwrap gives the writer behind.
func (w *rewriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *rewriter) finish() {
	if w.text == nil {
		return
	}
	why := strings.TrimSpace(w.text.String())
	if strings.Contains(why, "malformed payload") { // goes on in Go's words
		why = "the body can't be read as a request of MCP: it is nested too deep, or a member has a wrong type"
	}
	f := fault.New(fault.InvalidRequest, "%s", why)
	if f.Status = w.status; strings.Contains(f.Message, "JSON RPC not handled") {
		f = fault.New(fault.UnknownMethod, "there is no method %q", w.m.Method)
	}
	edge.JSON(w.ResponseWriter, f.HTTP(), errorBody(w.m.ID, w.d, f))
}
