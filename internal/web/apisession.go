package web

import (
	"net/http"
	"strings"

	"cairn/internal/edge"
	"cairn/internal/fault"
	"cairn/internal/rawjson"
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
	err := s.own(r)
	if err != nil {
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
	ctx, o, err := s.Runner.Admit(who.With(r.Context(), c), r.PathValue("name"))
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
