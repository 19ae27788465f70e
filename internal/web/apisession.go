package web

import (
	"net/http"

	"cairn/internal/fault"
	"cairn/internal/who"
)

// bySessionAlone tells whether a request has a session's cookie and no credential in its headers.
func (s *Server) bySessionAlone(r *http.Request) bool {
	if s.Signin == nil || r.Header.Get("Authorization") != "" {
		return false
	}
	_, err := r.Cookie(s.Signin.CookieName())
	return err == nil
}

// sessionCaller gives who calls by the session's cookie. The error is the refusal.
func (s *Server) sessionCaller(w http.ResponseWriter, r *http.Request) (*who.Caller, error) {
	c, err := s.bySession(w, r)
	if err == nil && c == nil {
		err = fault.New(fault.Unauthenticated, "the session is over: sign in again")
	}
	w.Header().Add("Vary", "Cookie")
	if err != nil {
		return nil, s.Edge.Refuse(r.Context(), w.Header(), err)
	}
	return c, nil
}

// tokenCaller gives who calls by a token, and counts the call. The error is the refusal.
func (s *Server) tokenCaller(w http.ResponseWriter, r *http.Request) (*who.Caller, error) {
	c, err := s.Edge.Caller(r, who.ViaHTTP)
	if err != nil {
		return nil, s.Edge.Refuse(r.Context(), w.Header(), err)
	}
	return c, s.Edge.Limit(who.With(r.Context(), c), w.Header(), c)
}

// anyCaller gives who calls, by a session where no credential is in the headers: from a page of ours where the call writes.
func (s *Server) anyCaller(w http.ResponseWriter, r *http.Request, writes bool) (*who.Caller, error) {
	if !s.bySessionAlone(r) {
		return s.tokenCaller(w, r)
	}
	if writes {
		if err := s.own(r); err != nil {
			return nil, err
		}
	}
	return s.sessionCaller(w, r)
}

// apiOrSession serves POST /api/NAME: to a page's script by the session's cookie where no credential is in the headers,
// else as api does.
func (s *Server) apiOrSession(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !s.bySessionAlone(r) {
		s.api(w, r)
		return
	}
	c, err := s.anyCaller(w, r, true)
	if err != nil {
		s.fail(w, err)
		return
	}
	s.runBody(w, r, who.With(r.Context(), c))
}
