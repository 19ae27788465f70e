// Package web shows operations as POST /api/NAME, and serves what belongs to the server as a whole: health, metrics and the
// discovery documents. It knows operations only as a list.
package web

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"cairn/internal/edge"
	"cairn/internal/fault"
	"cairn/internal/oauth"
	"cairn/internal/op"
	"cairn/internal/rawjson"
	"cairn/internal/signin"
	"cairn/internal/web/files"
	"cairn/internal/who"
)

// MCP is the handler of the MCP paths, which words its own refusals.
type MCP interface {
	http.Handler
	Refuse(w http.ResponseWriter, r *http.Request, err error)
}

// Server is what the routes need.
type Server struct {
	Runner  *op.Runner
	Edge    *edge.Edge
	MCP     MCP
	Metrics http.Handler
	Ready   func(ctx context.Context) error
	Stop    <-chan struct{} // closed when the server is about to stop: /readyz says no from then on
	Version string
	OAuth   *oauth.Service

	Files *files.Server

	Signin *signin.Service // nil: nobody can sign in on the web

	Posts []string // the paths that take a page's form, as Handler found them
}

// Handler gives all routes, behind the checks of edge.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/mcp", "/mcp/{$}", "/functions/v1/mcp-server", "/functions/v1/mcp-server/{$}"} {
		mux.Handle(path, s.MCP)
	}
	mux.HandleFunc("/api/{name}", s.apiOrSession)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { edge.JSON(w, http.StatusOK, []byte(`{"status":"ok"}`)) })
	mux.HandleFunc("GET /readyz", s.ready)
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("GET /.well-known/oauth-protected-resource", s.resource)
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", s.resource)
	mux.HandleFunc("GET /{$}", s.front)
	s.authServer(mux)
	s.routes(mux)
	mux.HandleFunc("/", s.nothing)
	s.Edge.Word = func(w http.ResponseWriter, r *http.Request, err error) {
		if strings.HasPrefix(r.URL.Path, "/mcp") || strings.HasPrefix(r.URL.Path, "/functions/v1/") {
			s.MCP.Refuse(w, r, err)
			return
		}
		s.problem(w, r, nil, err)
	}
	return s.Edge.Wrap(mux)
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	select {
	case <-s.Stop:
		edge.JSON(w, http.StatusServiceUnavailable, []byte(`{"status":"stopping"}`))
		return
	default:
	}
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if err := s.Ready(ctx); err != nil {
		s.Edge.Log.Error("not ready", "cause", err.Error())
		edge.JSON(w, http.StatusServiceUnavailable, []byte(`{"status":"unavailable","component":"database"}`))
		return
	}
	edge.JSON(w, http.StatusOK, []byte(`{"status":"ok"}`))
}

// metrics are for the machine itself and for the admin's tokens.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	if a, err := netip.ParseAddr(edge.From(r.Context()).Address); err != nil || !a.Unmap().IsLoopback() {
		c, err := s.Edge.Caller(r, who.ViaHTTP)
		if err == nil && !c.Admin {
			err = fault.New(fault.Denied, "metrics are open to loopback and to the admin's tokens")
		}
		if err != nil {
			s.fail(w, s.Edge.Refuse(r.Context(), w.Header(), err))
			return
		}
	}
	s.Metrics.ServeHTTP(w, r)
}

// resource is the protected resource's metadata (RFC 9728).
func (s *Server) resource(w http.ResponseWriter, _ *http.Request) {
	base := s.Edge.Public.String()
	b, _ := rawjson.Marshal(map[string]any{
		"resource": base + "/mcp", "resource_name": "Cairn", "authorization_servers": []string{base},
		"scopes_supported": []string{"cairn.read", "cairn.write"}, "bearer_methods_supported": []string{"header"},
	})
	w.Header().Set("Cache-Control", "public, max-age=300")
	edge.JSON(w, http.StatusOK, b)
}

// api runs one operation: the body is its arguments, the answer its object.
func (s *Server) api(w http.ResponseWriter, r *http.Request) {
	c, err := s.Edge.Caller(r, who.ViaHTTP)
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST, OPTIONS")
		f := fault.New(fault.InvalidRequest, "%s is not served here: send the arguments by POST", r.Method)
		f.Status = http.StatusMethodNotAllowed
		if c != nil {
			_ = s.Edge.Uncounted(r.Context(), w.Header(), c) // the refusal itself matters more
		}
		s.fail(w, f)
		return
	}
	if c, err = s.tokenCaller(w, r); err != nil {
		s.fail(w, err)
		return
	}
	s.runBody(w, r, who.With(r.Context(), c))
}

// runBody runs the operation that the path names as the caller in ctx: its right to it comes before its body is read.
func (s *Server) runBody(w http.ResponseWriter, r *http.Request, ctx context.Context) { //nolint:revive // w and r come first, as in any handler
	ctx, o, err := s.Runner.Admit(ctx, r.PathValue("name"))
	if err != nil {
		s.fail(w, err)
		return
	}
	most := int64(edge.UsualBody)
	if o.Big {
		most = edge.MostBody
	}
	body, err := edge.JSONBody(w, r, most)
	if err == nil && !strings.HasPrefix(string(rawjson.Trim(body)), "{") {
		err = fault.New(fault.InvalidRequest, "the body must be the arguments as a JSON object")
	}
	if err != nil {
		s.fail(w, err)
		return
	}
	res, err := s.Runner.Run(ctx, o.Name, body)
	if err != nil {
		s.fail(w, err)
		return
	}
	edge.JSON(w, http.StatusOK, res.JSON)
}

func (s *Server) fail(w http.ResponseWriter, err error) {
	s.Edge.Challenge(w.Header(), fault.From(err), nil)
	edge.Fail(w, err)
}
