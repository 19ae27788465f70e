package web

import (
	"net/http"

	"cairn/internal/fault"
	"cairn/internal/who"
)

// apiOrSession serves POST /api/NAME: to a page's script by the session's cookie where no credential is in the headers,
// else as api does.
func (s *Server) apiOrSession(w http.ResponseWriter, r *http.Request) {
	if s.Signin == nil || r.Method != http.MethodPost || r.Header.Get("Authorization") != "" {
		s.api(w, r)
		return
	}
	if _, err := r.Cookie(s.Signin.CookieName()); err != nil {
		s.api(w, r)
		return
	}
	if err := s.own(r); err != nil {
		s.fail(w, err)
		return
	}
	c, err := s.bySession(w, r)
	if err == nil && c == nil {
		err = fault.New(fault.Unauthenticated, "the session is over: sign in again")
	}
	if err != nil {
		s.fail(w, s.Edge.Refuse(r.Context(), w.Header(), err))
		return
	}
	w.Header().Add("Vary", "Cookie")
	s.runBody(w, r, who.With(r.Context(), c))
}
