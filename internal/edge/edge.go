// Package edge is what every HTTP request passes before a surface sees it: headers, the Host and Origin checks, CORS, who
// calls, how much they may send and how often they may call. It decides nothing about operations.
package edge

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/internal/audit"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/rawjson"
	"cairn/internal/who"
)

// Caps of bodies, in bytes.
const (
	AnonymousBody = 10 << 10 // without a valid credential
	MostBody      = 16 << 20 // with one, before the operation is known
	UsualBody     = 1 << 20  // of an operation, unless it says that its bodies are big
)

// bodyTime is how long a client may take to send a body: one that drips would hold a connection for ever.
const bodyTime = time.Minute

// lookUpTime is how long the database may take to say who calls, or how often: more would pile calls up.
const lookUpTime = 5 * time.Second

// Rates per 60 s that no configuration sets.
const anonymousRate = 100

// Edge holds what the checks need. Its fields are set once, before it serves.
type Edge struct {
	Public      *url.URL // PUBLIC_URL
	Hosts       []string // CAIRN_HOSTS: further names this server answers to
	Origins     []string // CORS: scheme://host, the host may begin with *.
	Proxies     []netip.Prefix
	Debug       bool
	DefaultRate int // calls per 60 s of a token without a rate of its own; 0 = no limit
	ByToken     func(ctx context.Context, token, address string) (*who.Caller, error)
	ByAccess    func(ctx context.Context, token, address string) (*who.Caller, error) // OAuth access tokens: good at Resource alone
	Resource    string                                                                // the path of MCP
	Limiter     *audit.Limiter
	Recorder    *audit.Recorder
	Log         *slog.Logger
	// Word puts a refusal of Wrap's into the form of the surface that the path belongs to.
	Word func(w http.ResponseWriter, r *http.Request, err error)
}

type infoKey struct{}

// Info is what is known of a request from its headers.
type Info struct {
	Request string // id
	Address string // of the client
	caller  *who.Caller
	authErr error
	failure *audit.Event // of a bad credential, to be recorded if the address may still ask: see Refuse
}

// From gives the request's info.
func From(ctx context.Context) *Info {
	i, _ := ctx.Value(infoKey{}).(*Info)
	return i
}

// isHealth tells whether a request asks for the server's health, which answers whatever the Host header says: a load balancer
// asks by address. A plain GET of the MCP paths is such a request too.
func isHealth(r *http.Request) bool {
	switch r.URL.Path {
	case "/healthz", "/readyz":
		return true
	case "/mcp", "/functions/v1/mcp-server":
		return r.Method == http.MethodGet && r.Header.Get("Mcp-Protocol-Version") == "" && r.Header.Get("Authorization") == "" &&
			!AcceptsStream(r)
	}
	return false
}

// AcceptsStream tells whether the client takes an event stream for an answer.
func AcceptsStream(r *http.Request) bool {
	return strings.Contains(strings.ToLower(strings.Join(r.Header.Values("Accept"), ",")), "text/event-stream")
}

// anyOrigin are the paths that every web page may read: discovery, registration and tokens carry no credential of a
// browser's.
func anyOrigin(path string) bool {
	return strings.HasPrefix(path, "/.well-known/") || strings.HasPrefix(path, "/oauth/.well-known/") || path == "/oauth/register" || path == "/oauth/token" || path == "/oauth/revoke"
}

// Wrap puts the checks before h.
func (e *Edge) Wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := &Info{Request: db.NewID(), Address: e.address(r)}
		rec := &recorder{ResponseWriter: w}
		start := time.Now()
		r = r.WithContext(context.WithValue(r.Context(), infoKey{}, info))
		e.headers(w.Header(), info.Request)
		defer func() {
			p := recover()
			if p != nil && p != http.ErrAbortHandler { //nolint:errorlint // the documented sentinel
				e.Log.Error("request panicked", "request", info.Request, "path", SafePath(r.URL.Path), "panic", p, "stack", string(debug.Stack()))
				if rec.aborted = rec.status != 0; !rec.aborted {
					Fail(rec, fault.New(fault.Internal, "something went wrong on the server; its log has the cause under id %s", info.Request).With("id", info.Request))
				}
			}
			e.Recorder.Request(rec.status >= 400)
			e.Log.Debug("request", "request", info.Request, "method", r.Method, "path", SafePath(r.URL.Path), "status", rec.status, "took", time.Since(start), "address", info.Address)
			if p != nil && rec.aborted {
				panic(http.ErrAbortHandler) // else half an answer would end like a whole one
			}
		}()
		if !isHealth(r) {
			if err := e.checkHost(r); err != nil {
				e.Word(rec, r, err)
				return
			}
		}
		if done := e.cors(rec, r); done {
			return
		}
		if r.Header.Get("Authorization") != "" && strings.Contains(r.URL.RawQuery, "cairn_") { // aloud, so that whoever leaks it notices; alone it counts for nothing
			e.Word(rec, r, fault.New(fault.InvalidRequest, "a token in the address is refused, since addresses are logged on the way: send it as Authorization: Bearer, and revoke this one"))
			return
		}
		h.ServeHTTP(rec, r)
	})
}

var tokenLike = regexp.MustCompile(`cairn_[a-zA-Z0-9]+`)

// SafePath is a path as it may be logged: somebody may have put a token into it.
func SafePath(path string) string { return tokenLike.ReplaceAllString(path, "cairn_[hidden]") }

// recorder remembers the status.
type recorder struct {
	http.ResponseWriter
	status  int
	aborted bool // a panic came after the answer had begun
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach what is behind.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Flush passes a flush on, for streams.
func (r *recorder) Flush() { _ = http.NewResponseController(r.ResponseWriter).Flush() }

func (e *Edge) headers(h http.Header, request string) {
	h["X-Content-Type-Options"] = []string{"nosniff"}
	h["X-Frame-Options"] = []string{"DENY"}
	h["X-Xss-Protection"] = []string{"1; mode=block"}
	h["Referrer-Policy"] = []string{"strict-origin-when-cross-origin"}
	h["Content-Security-Policy"] = []string{"default-src 'none'"}
	h["X-Request-Id"] = []string{request}
	if e.Public.Scheme == "https" {
		h["Strict-Transport-Security"] = []string{"max-age=31536000; includeSubDomains"}
	}
}

// address gives the client's address. What a proxy says counts only from proxies that are trusted.
func (e *Edge) address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	if !e.trusted(host) {
		return host
	}
	forwarded := r.Header.Values("X-Forwarded-For")
	if len(forwarded) == 0 {
		return host
	}
	hops := strings.Split(strings.Join(forwarded, ","), ",")
	for _, hop := range slices.Backward(hops) { // from the nearest: the first that is no proxy of ours is the client
		if host = hopAddress(strings.TrimSpace(hop)); !e.trusted(host) {
			break
		}
	}
	return host
}

// hopAddress reads one entry of X-Forwarded-For, which may have a port. What is no address is "unknown": nobody's, and so
// never a proxy of ours.
func hopAddress(hop string) string {
	if ap, err := netip.ParseAddrPort(hop); err == nil {
		return ap.Addr().Unmap().WithZone("").String()
	}
	if a, err := netip.ParseAddr(strings.Trim(hop, "[]")); err == nil {
		return a.Unmap().WithZone("").String()
	}
	return "unknown"
}

func (e *Edge) trusted(host string) bool {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(e.Proxies, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
}

func loopbackName(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && a.IsLoopback()
}

// ours tells whether a host (with or without a port) is a name of this server.
func (e *Edge) ours(hostport string) bool {
	hostport = strings.ToLower(hostport)
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	return loopbackName(host) || hostport == strings.ToLower(e.Public.Host) || host == strings.ToLower(e.Public.Hostname()) ||
		slices.ContainsFunc(e.Hosts, func(n string) bool { return strings.EqualFold(n, host) || strings.EqualFold(n, hostport) })
}

func (e *Edge) checkHost(r *http.Request) error {
	if !e.ours(r.Host) {
		return fault.New(fault.Denied, "the host %q is not a name of this server: set PUBLIC_URL or CAIRN_HOSTS", r.Host)
	}
	if o := r.Header.Get("Origin"); o != "" && !anyOrigin(r.URL.Path) && !e.originAllowed(o) {
		return fault.New(fault.Denied, "the origin %q may not call this server: set CAIRN_CORS_ORIGINS", o)
	}
	return nil
}

func (e *Edge) originAllowed(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && (e.ours(u.Host) || e.corsAllowed(u))
}

func (e *Edge) corsAllowed(u *url.URL) bool {
	if u.Scheme == e.Public.Scheme && u.Host == e.Public.Host || e.Debug && loopbackName(u.Hostname()) {
		return true
	}
	return slices.ContainsFunc(e.Origins, func(pattern string) bool {
		scheme, host, ok := strings.Cut(pattern, "://")
		if !ok || scheme != u.Scheme {
			return false
		}
		if suffix, wild := strings.CutPrefix(host, "*"); wild {
			return strings.HasSuffix(u.Host, suffix) && len(u.Host) > len(suffix)
		}
		return host == u.Host
	})
}

// cors answers preflights and lets the pages of allowed origins read answers. done means that the request is answered.
func (e *Edge) cors(w http.ResponseWriter, r *http.Request) (done bool) {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		h := w.Header()
		h.Add("Vary", "Origin")
		if anyOrigin(r.URL.Path) || err == nil && e.corsAllowed(u) {
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Expose-Headers", "WWW-Authenticate, Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-Request-Id")
			if r.Method == http.MethodOptions {
				h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
				h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, MCP-Protocol-Version, Mcp-Method, Mcp-Name")
				h.Set("Access-Control-Max-Age", "86400")
			}
		}
	}
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return true
	}
	return false
}

// Caller gives who calls by the request's bearer, looked up once; or why nobody does.
func (e *Edge) Caller(r *http.Request, via string) (*who.Caller, error) {
	info := From(r.Context())
	if info.caller == nil && info.authErr == nil {
		c, err := e.lookUp(r, info, via)
		detail := SafePath(r.URL.Path)
		event := audit.Event{Event: audit.AuthAttempt, Address: info.Address, UserAgent: r.UserAgent(), Detail: detail}
		if c != nil {
			event.Actor, event.Account = c.Actor, c.Account
		}
		if info.authErr = err; err == nil {
			info.caller = c
		} else {
			event.Event, event.Detail = audit.AuthFailure, detail+" "+fault.From(err).Kind.Wire().Name
		}
		if c := info.caller; c != nil {
			e.Recorder.Used(c.Actor)
			e.Recorder.Event(event)
		} else if !fault.Is(info.authErr, fault.Unauthenticated) {
			info.failure = &event
		}
	}
	return info.caller, info.authErr
}

// Again looks up anew who calls by a request's bearer, for what goes on for long after the request was let in. Nothing of it is
// recorded.
func (e *Edge) Again(ctx context.Context, r *http.Request, via string) (*who.Caller, error) {
	c, err := e.lookUp(r.WithContext(ctx), From(r.Context()), via)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// lookUp gives who calls. With an error it may give who was refused, for the record alone.
func (e *Edge) lookUp(r *http.Request, info *Info, via string) (*who.Caller, error) {
	auth := r.Header.Values("Authorization")
	scheme, token, _ := strings.Cut(strings.Join(auth, ","), " ")
	if len(auth) == 0 || !strings.EqualFold(scheme, "Bearer") || strings.TrimSpace(token) == "" {
		return nil, fault.New(fault.Unauthenticated, "Authorization header is required")
	}
	ctx, cancel := context.WithTimeout(r.Context(), lookUpTime)
	defer cancel()
	token = strings.TrimSpace(token)
	look := e.ByToken
	if strings.TrimSuffix(r.URL.Path, "/") == e.Resource && strings.Count(token, ".") == 2 { // a JWT
		look = e.ByAccess
	}
	c, err := look(ctx, token, info.Address)
	if err != nil {
		if f := fault.From(err); f.Kind == fault.Internal || f.Kind == fault.Unavailable {
			e.Log.Error("a token could not be looked up", "request", info.Request, "cause", err.Error())
			return nil, fault.Wrap(fault.Unavailable, err, "the token can't be checked right now; try again in a moment").With("reason", "unavailable")
		}
		return c, err
	}
	if c.Rate < 0 {
		c.Rate = e.DefaultRate
	}
	c.Via, c.Request, c.Address, c.Client = via, info.Request, info.Address, r.UserAgent()
	return c, nil
}

// Challenge writes the WWW-Authenticate header that goes with a fault of authentication or scope, if one does. c is who
// called, nil = nobody knows. Without a token all scopes are named, so that a client asks for all and the person chooses.
func (e *Edge) Challenge(h http.Header, f *fault.Error, c *who.Caller) {
	v := `Bearer resource_metadata="` + e.Public.String() + `/.well-known/oauth-protected-resource/mcp"`
	switch f.Kind {
	case fault.Unauthenticated:
		v += `, scope="cairn.read cairn.write"`
	case fault.TokenInvalid, fault.TokenExpired, fault.TokenInactive:
		v += `, error="invalid_token", error_description="` + strings.ReplaceAll(f.Message, `"`, `'`) + `"`
	case fault.Scope:
		scope := "cairn.read cairn.write"
		if c != nil && slices.Contains(strings.Fields(c.Scope), "offline_access") {
			scope += " offline_access"
		}
		v += `, error="insufficient_scope", scope="` + scope + `"`
	default:
		return
	}
	h.Set("WWW-Authenticate", v)
}

// JSONBody reads a JSON body of at most most bytes and checks that it is well-formed.
func JSONBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	if ct, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || ct != "application/json" {
		f := fault.New(fault.InvalidRequest, "Content-Type must be application/json")
		f.Status = http.StatusUnsupportedMediaType
		return nil, f
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		f := fault.New(fault.InvalidRequest, "a compressed body (Content-Encoding %s) is not accepted", strconv.Quote(enc))
		f.Status = http.StatusUnsupportedMediaType
		return nil, f
	}
	if r.ContentLength > most { // refused without reading
		w.Header().Set("Connection", "close")
		return nil, TooLarge(most)
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTime)) // a test's recorder has none, and needs none
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	_ = rc.SetReadDeadline(time.Time{})
	if err != nil {
		if big := new(http.MaxBytesError); errors.As(err, &big) {
			return nil, TooLarge(most)
		}
		return nil, fault.Wrap(fault.InvalidRequest, err, "the body could not be read to its end within %v", bodyTime)
	}
	if why := rawjson.Well(body); why != "" {
		return nil, fault.New(fault.Parse, "%s", why)
	}
	return body, nil
}

// TooLarge says how many bytes a body may have.
func TooLarge(most int64) *fault.Error {
	f := fault.New(fault.InvalidRequest, "the body may have at most %d bytes", most)
	f.Status = http.StatusRequestEntityTooLarge
	return f
}

// BodyCap is how much may be read of a request's body before its operation is known.
func BodyCap(c *who.Caller) int64 {
	if c == nil {
		return AnonymousBody
	}
	return MostBody
}

// Limit counts one call against the caller's rate, or the address's where c is nil, and writes the rate headers. The error
// is the refusal.
func (e *Edge) Limit(ctx context.Context, h http.Header, c *who.Caller) error {
	key, rate := e.rate(ctx, c)
	if rate == 0 {
		return nil
	}
	tctx, cancel := context.WithTimeout(ctx, lookUpTime)
	defer cancel()
	w, err := e.Limiter.Take(tctx, key, rate)
	if err != nil {
		e.Log.Error("a rate window could not be counted", "cause", err.Error())
		return fault.Wrap(fault.Unavailable, err, "the database does not answer right now; try again in a moment").With("reason", "unavailable")
	}
	rateHeaders(h, w)
	if w.Allowed {
		return nil
	}
	event := audit.Event{Event: audit.RateLimitExceeded, Actor: key, Address: From(ctx).Address, Detail: strconv.Itoa(rate) + " per minute"}
	if c != nil {
		event.Account, event.UserAgent = c.Account, c.Client
	}
	e.Recorder.Event(event)
	return w.Refusal(time.UnixMicro(e.Limiter.Now()))
}

// Uncounted writes the rate headers of a call that doesn't count.
func (e *Edge) Uncounted(ctx context.Context, h http.Header, c *who.Caller) error {
	key, rate := e.rate(ctx, c)
	if rate == 0 {
		return nil
	}
	w, err := e.Limiter.Look(ctx, key, rate)
	if err == nil {
		rateHeaders(h, w)
	}
	return err
}

// Refuse gives the answer to a request whose credential is missing or bad: err, or that its address asked too often.
func (e *Edge) Refuse(ctx context.Context, h http.Header, err error) error {
	if fault.Is(err, fault.Unavailable) {
		return err
	}
	if limited := e.Limit(ctx, h, nil); limited != nil {
		return limited
	}
	if info := From(ctx); info.failure != nil {
		e.Recorder.Event(*info.failure)
		info.failure = nil
	}
	return err
}

// rate gives the key and the calls per 60 s of a caller, or of the address where c is nil; 0 = no limit.
func (e *Edge) rate(ctx context.Context, c *who.Caller) (key string, rate int) {
	switch {
	case c == nil:
		return "address:" + audit.Place(From(ctx).Address), anonymousRate
	case !c.Limited:
		return "", 0
	}
	return c.Actor, c.Rate
}

func rateHeaders(h http.Header, w audit.Window) {
	h.Set("X-RateLimit-Limit", strconv.Itoa(w.Limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(w.Remaining))
}

// RetryAfter writes the headers that go with a refusal for too many calls; the limit shown is the one that was met.
func RetryAfter(h http.Header, f *fault.Error) {
	if s, ok := f.Data["retryAfter"].(int64); ok {
		h.Set("Retry-After", strconv.FormatInt(s, 10))
	}
	if limit, ok := f.Data["limit"].(int); ok && f.Kind == fault.Limited {
		h.Set("X-RateLimit-Limit", strconv.Itoa(limit))
		h.Set("X-RateLimit-Remaining", "0")
	}
}

// Fail answers with a fault in the form of /api: {error, message, ...} under the table's status.
func Fail(w http.ResponseWriter, err error) {
	f := fault.From(err)
	RetryAfter(w.Header(), f)
	b, _ := rawjson.Marshal(f.Body())
	JSON(w, f.API(), b)
}

// JSON answers with a JSON body.
func JSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
