package web

import (
	"context"
	"net/http"
	"time"
)

// front tells somebody who opens the server's address what it is; who is signed in goes on to their own pages.
func (s *Server) front(w http.ResponseWriter, r *http.Request) {
	if !wantsPage(r) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("Cairn is running. Agents connect to " + s.Edge.Public.String() + "/mcp with a token from `cairn token create --name NAME`.\n"))
		return
	}
	if c, err := s.bySession(w, r); err == nil && c != nil {
		redirect(w, r, "/agents")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	status, healthy := http.StatusOK, true
	if err := s.Ready(ctx); err != nil {
		status, healthy = http.StatusServiceUnavailable, false
	}
	s.render(w, r, status, "front", &View{Data: map[string]any{"Healthy": healthy}})
}

// help says where to read on.
func (s *Server) help(w http.ResponseWriter, r *http.Request) {
	c, err := s.bySession(w, r)
	if err != nil {
		c = nil
	}
	s.render(w, r, http.StatusOK, "help", &View{Caller: c})
}

// nothing answers what no route serves.
func (s *Server) nothing(w http.ResponseWriter, r *http.Request) {
	c, err := s.bySession(w, r)
	if err != nil {
		c = nil
	}
	s.problem(w, r, c, notServed(r.URL.Path))
}
