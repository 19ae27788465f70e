package web

import (
	"net/http"

	"cairn/internal/fault"
)

// routes adds the pages.
func (s *Server) routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /assets/{name}", s.asset)
	mux.HandleFunc("GET /help", s.help)
}

func notServed(path string) error { return fault.New(fault.NotFound, "there is nothing at %s", path) }
