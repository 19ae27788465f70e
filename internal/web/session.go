package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"cairn/internal/edge"
	"cairn/internal/fault"
	"cairn/internal/who"
)

// lookUpTime is how long the database may take to say whose session a cookie is.
const lookUpTime = 5 * time.Second

// formBytes is the most that a page's form may send.
const formBytes = 64 << 10

// bySession gives who a request's cookie speaks for: nil without a cookie, or with one that is over.
func (s *Server) bySession(w http.ResponseWriter, r *http.Request) (*who.Caller, error) {
	if s.Signin == nil {
		return nil, nil
	}
	cookie, err := r.Cookie(s.Signin.CookieName())
	if err != nil || cookie.Value == "" {
		return nil, nil
	}
	info := edge.From(r.Context())
	ctx, cancel := context.WithTimeout(r.Context(), lookUpTime)
	defer cancel()
	c, session, err := s.Signin.ByCookie(ctx, cookie.Value, from(r))
	if session != nil && session.Renewed {
		http.SetCookie(w, s.Signin.Cookie(cookie.Value))
	}
	if over := []fault.Kind{fault.Unauthenticated, fault.TokenInvalid, fault.TokenExpired, fault.TokenInactive}; err != nil {
		if slices.Contains(over, fault.From(err).Kind) {
			return nil, nil
		}
		return nil, err
	}
	c.Via, c.Request, c.Address, c.Client = who.ViaWeb, info.Request, info.Address, r.UserAgent()
	return c, nil
}

// session gives who is signed in. Where nobody is, it answers, and ok is false: with the sign-in page, which comes back
// here, or with a page that says what the account waits for.
func (s *Server) session(w http.ResponseWriter, r *http.Request) (c *who.Caller, ok bool) {
	c, err := s.bySession(w, r)
	switch {
	case err != nil && fault.From(err).Data["reason"] == "waiting":
		s.render(w, r, http.StatusForbidden, "waiting", &View{})
		return nil, false
	case err != nil:
		s.problem(w, r, nil, err)
		return nil, false
	case c == nil:
		to := "/sign-in"
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			to += "?next=" + url.QueryEscape(r.URL.RequestURI())
		}
		redirect(w, r, to)
		return nil, false
	}
	return c, true
}

// local gives a path of this server to go on to, or fallback where next is none: a page must not send people elsewhere.
func local(next, fallback string) string {
	if len(next) == 0 || next[0] != '/' || len(next) > 1 && (next[1] == '/' || next[1] == '\\') {
		return fallback
	}
	if u, err := url.Parse(next); err != nil || u.Host != "" || u.Scheme != "" || strings.ContainsAny(next, "\\\t\r\n") {
		return fallback
	}
	return next
}

// redirect answers a request with the page to look at next.
func redirect(w http.ResponseWriter, r *http.Request, to string) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Add("Vary", "Cookie")
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// done redirects to a page whose status line says what was done; code is one of say.Done or docs.Done.
func done(w http.ResponseWriter, r *http.Request, to, code string) {
	sep := "?"
	if strings.Contains(to, "?") {
		sep = "&"
	}
	redirect(w, r, to+sep+"done="+code)
}

// own refuses what a page of another server, or no page at all, sends with a browser's cookie.
func (s *Server) own(r *http.Request) error {
	if err := s.crossOrigin().Check(r); err != nil {
		return fault.Wrap(fault.Denied, err, "this came from a page of another site, and nothing was done: open the page here and try again").With("reason", "origin")
	}
	if r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == "" {
		return fault.New(fault.Denied, "the browser doesn't say which page this came from, and nothing was done: use a current browser, and no proxy that removes the Origin header").With("reason", "origin")
	}
	return nil
}

func (s *Server) crossOrigin() *http.CrossOriginProtection {
	p := http.NewCrossOriginProtection()
	if err := p.AddTrustedOrigin(s.Edge.Public.Scheme + "://" + s.Edge.Public.Host); err != nil {
		s.Edge.Log.Error("PUBLIC_URL is no origin", "cause", err.Error())
	}
	return p
}

// form reads a page's form of at most that many bytes, after the checks that every form passes. Where it answers itself, ok is false.
func (s *Server) form(w http.ResponseWriter, r *http.Request, most int64) (ok bool) {
	err := s.own(r)
	if err == nil {
		rc := http.NewResponseController(w)
		_ = rc.SetReadDeadline(time.Now().Add(30 * time.Second)) // a test's recorder has none
		r.Body = http.MaxBytesReader(w, r.Body, most)
		if r.ContentLength > most {
			err = edge.TooLarge(most)
		} else if perr := r.ParseForm(); perr != nil {
			err = fault.Wrap(fault.InvalidRequest, perr, "the form could not be read")
		}
		_ = rc.SetReadDeadline(time.Time{})
	}
	if err != nil {
		s.problem(w, r, nil, err)
		return false
	}
	return true
}

// themeCookie keeps the choice of light or dark; it holds nothing else.
const themeCookie = "cairn_theme"

func theme(r *http.Request) string {
	if c, err := r.Cookie(themeCookie); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}
