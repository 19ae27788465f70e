package web

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// front tells somebody who opens the server's address what it is and how it is; who is signed in goes on to their own pages.
func (s *Server) front(w http.ResponseWriter, r *http.Request) {
	page := wantsPage(r)
	if page {
		if c, err := s.bySession(w, r); err == nil && c != nil {
			redirect(w, r, "/docs")
			return
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	status, health := http.StatusOK, "healthy"
	if err := s.Ready(ctx); err != nil {
		status, health = http.StatusServiceUnavailable, "not healthy: its database doesn't answer"
	}
	if page {
		s.render(w, r, status, "front", &View{Data: map[string]any{"Healthy": status == http.StatusOK}})
		return
	}
	public := s.Edge.Public.String()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintf(w, "Cairn %s is running, %s.\nMCP URL: %s/mcp\nAdd it to your agent as an MCP server: a page opens on which you choose what the agent may see.\nFor scripts: a token from `cairn token create --name NAME`. Pages: open %s in a browser.\n", s.Version, health, public, public)
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
