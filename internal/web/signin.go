package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"cairn/internal/edge"
	"cairn/internal/fault"
	"cairn/internal/rawjson"
	"cairn/internal/signin"
	"cairn/internal/who"
)

// origin gives the scheme and host of the page that a request came from. The checks of own come first: it is ours.
func (s *Server) origin(r *http.Request) string {
	if o := r.Header.Get("Origin"); o != "" && o != "null" {
		return o
	}
	if r.Host == s.Edge.Public.Host {
		return s.Edge.Public.Scheme + "://" + r.Host
	}
	return "http://" + r.Host
}

func from(r *http.Request) signin.From {
	return signin.From{Address: edge.From(r.Context()).Address, UserAgent: r.UserAgent()}
}

// start signs somebody in who has just shown who they are.
func (s *Server) start(w http.ResponseWriter, r *http.Request, p signin.Person) error {
	value, _, err := s.Signin.Start(r.Context(), p, from(r))
	if err == nil {
		http.SetCookie(w, s.Signin.Cookie(value))
	}
	return err
}

// signOut ends the session, of an account that waits to be admitted too.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request) {
	if err := s.endSession(w, r); err != nil {
		s.problem(w, r, nil, err)
		return
	}
	done(w, r, "/sign-in", "signed-out")
}

func (s *Server) endSession(w http.ResponseWriter, r *http.Request) error {
	cookie, err := r.Cookie(s.Signin.CookieName())
	if err != nil {
		return nil
	}
	if _, session, _ := s.Signin.ByCookie(r.Context(), cookie.Value, from(r)); session != nil { // a waiting account's is given beside a fault
		if err := s.Signin.End(r.Context(), *session, from(r)); err != nil {
			return err
		}
	}
	http.SetCookie(w, s.Signin.Clear())
	return nil
}

// signInPage is what the sign-in page shows.
type signInPage struct {
	Next      string
	Mail      bool
	Setup     bool   // nobody can sign in yet: the server must be set up
	Challenge string // a code was mailed for this one
	Who       string
}

func (s *Server) signInShows(r *http.Request) signInPage {
	p := signInPage{Next: local(r.FormValue("next"), "/agents"), Mail: s.Signin.HasMail(), Who: r.PostFormValue("who")}
	_, needed, err := s.Signin.NeedsSetup(r.Context())
	p.Setup = err == nil && needed
	return p
}

func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	if c, err := s.bySession(w, r); err == nil && c != nil {
		redirect(w, r, local(r.FormValue("next"), "/agents"))
		return
	}
	s.render(w, r, http.StatusOK, "sign-in", &View{Data: s.signInShows(r)})
}

// signInForm serves mailed codes, which work without script too.
func (s *Server) signInForm(w http.ResponseWriter, r *http.Request) {
	page, act := s.signInShows(r), r.PostFormValue("act")
	challenge, person, err := s.code(r, "sign-in", page.Who)
	if err == nil && act == "code" {
		if err = s.start(w, r, person); err == nil {
			redirect(w, r, page.Next)
			return
		}
	}
	v := &View{Data: &page, Form: r.PostForm}
	page.Challenge = challenge
	status := http.StatusOK
	if err != nil {
		v.Fault, v.Failed = fault.From(err), act
		status = v.Fault.API()
	}
	s.render(w, r, status, "sign-in", v)
}

// code mails a code, or takes the one that was mailed, as the form says.
func (s *Server) code(r *http.Request, purpose, name string) (challenge string, p signin.Person, err error) {
	if err := s.Edge.Limit(r.Context(), http.Header{}, nil); err != nil {
		return "", p, err
	}
	if r.PostFormValue("act") == "send" {
		challenge, err = s.Signin.SendCode(r.Context(), purpose, s.origin(r), name, from(r))
		return challenge, p, err
	}
	challenge = r.PostFormValue("challenge")
	proof := signin.Proof{Challenge: challenge, Code: strings.TrimSpace(r.PostFormValue("code"))}
	if c := who.From(r.Context()); c != nil {
		return challenge, p, s.Signin.ProveAgain(r.Context(), s.origin(r), proof, from(r))
	}
	p, err = s.Signin.Prove(r.Context(), purpose, s.origin(r), proof, from(r))
	return challenge, p, err
}

// provePage is what the page shows that asks somebody signed in to show again who they are.
type provePage struct {
	To        string
	Kept      []kept // the form that is sent again afterwards; none: the page To is opened
	Mail      bool
	Proved    bool
	Challenge string
}

type kept struct{ Name, Value string }

// keep gives the fields of a form whose names begin with a prefix, without it.
func keep(form url.Values, prefix string) (list []kept) {
	for name, values := range form {
		if name, ok := strings.CutPrefix(name, prefix); ok {
			for _, v := range values {
				list = append(list, kept{name, v})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b kept) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// askAgain asks the person to show again who they are. The page keeps the form and sends it again afterwards.
func (s *Server) askAgain(w http.ResponseWriter, q *request) {
	fields := keep(q.r.PostForm, "")
	s.render(w, q.r, http.StatusForbidden, "prove", &View{Caller: q.caller, Data: &provePage{To: q.r.URL.Path, Kept: fields, Mail: s.Signin.HasMail()}})
}

func (s *Server) prove(w http.ResponseWriter, r *http.Request) {
	if c, ok := s.session(w, r); ok {
		s.render(w, r, http.StatusOK, "prove", &View{Caller: c, Data: &provePage{To: local(r.FormValue("next"), "/settings"), Mail: s.Signin.HasMail()}})
	}
}

// proveForm serves mailed codes for the page that asks again.
func (s *Server) proveForm(w http.ResponseWriter, r *http.Request) {
	c, ok := s.session(w, r)
	if !ok {
		return
	}
	page := &provePage{To: local(r.PostFormValue("to"), "/settings"), Mail: s.Signin.HasMail()}
	page.Kept = keep(r.PostForm, "kept:")
	r = r.WithContext(who.With(r.Context(), c))
	challenge, _, err := s.code(r, "prove:"+c.Session, c.AccountName)
	page.Challenge = challenge
	v := &View{Caller: c, Data: page, Form: r.PostForm}
	status := http.StatusOK
	switch {
	case err != nil:
		v.Fault, v.Failed = fault.From(err), r.PostFormValue("act")
		status = v.Fault.API()
	case r.PostFormValue("act") != "send" && len(page.Kept) == 0:
		redirect(w, r, page.To)
		return
	case r.PostFormValue("act") != "send":
		page.Proved = true
	}
	s.render(w, r, status, "prove", v)
}

func (s *Server) setUp(w http.ResponseWriter, r *http.Request) {
	s.render(w, r, http.StatusOK, "setup", &View{})
}

func (s *Server) signUp(w http.ResponseWriter, r *http.Request) {
	s.render(w, r, http.StatusOK, "sign-up", &View{})
}

// call is one request of a page's script for signing in.
type call struct {
	s      *Server
	w      http.ResponseWriter
	r      *http.Request
	origin string
	from   signin.From
}

// script serves what a page's script asks for: JSON in and out, from our own pages alone.
func script[T any](s *Server, mux *http.ServeMux, name string, h func(q *call, in T) (any, error)) {
	path := "/api/account/" + name
	s.Posts = append(s.Posts, path)
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		out, err := func() (any, error) {
			if err := s.own(r); err != nil {
				return nil, err
			}
			if err := s.Edge.Limit(r.Context(), w.Header(), nil); err != nil {
				return nil, err
			}
			body, err := edge.JSONBody(w, r, formBytes)
			if err != nil {
				return nil, err
			}
			var in T
			if err := json.Unmarshal(body, &in); err != nil {
				return nil, fault.Wrap(fault.InvalidRequest, err, "the body must be a JSON object as this page's script sends it: load the page again")
			}
			return h(&call{s: s, w: w, r: r, origin: s.origin(r), from: from(r)}, in)
		}()
		if err != nil {
			s.fail(w, err)
			return
		}
		b, err := rawjson.Marshal(out)
		if err != nil {
			s.fail(w, err)
			return
		}
		w.Header().Add("Vary", "Cookie")
		edge.JSON(w, http.StatusOK, b)
	})
}

// person puts who is signed in into the request's ctx.
func (q *call) person() (*who.Caller, error) {
	c, err := q.s.bySession(q.w, q.r)
	if err == nil && c == nil {
		err = fault.New(fault.Unauthenticated, "you are signed out: sign in and try again")
	}
	if err != nil {
		return nil, err
	}
	q.r = q.r.WithContext(who.With(q.r.Context(), c))
	return c, nil
}

type empty struct{}

type waits struct {
	Waiting bool `json:"waiting"`
}

// scripts adds the routes that signing in needs.
func (s *Server) scripts(mux *http.ServeMux) {
	script(s, mux, "challenge", func(q *call, in struct{ Purpose string }) (any, error) {
		switch in.Purpose {
		case "sign-in", "sign-up", "set-up":
		case "add", "prove":
			c, err := q.person()
			if err != nil {
				return nil, err
			}
			in.Purpose += ":" + map[string]string{"add": c.Account, "prove": c.Session}[in.Purpose]
		default:
			return nil, fault.Bad("purpose", "is %q, must be sign-in, sign-up, set-up, add or prove", in.Purpose)
		}
		return q.s.Signin.Begin(q.r.Context(), in.Purpose, q.origin)
	})
	script(s, mux, "code", func(q *call, in struct{ Who string }) (any, error) {
		id, err := q.s.Signin.SendCode(q.r.Context(), "sign-in", q.origin, in.Who, q.from)
		return map[string]string{"challenge": id}, err
	})
	script(s, mux, "sign-in", func(q *call, in signin.Proof) (any, error) {
		p, err := q.s.Signin.Prove(q.r.Context(), "sign-in", q.origin, in, q.from)
		return waits{p.Waiting}, q.begin(p, err)
	})
	script(s, mux, "sign-up", func(q *call, in signin.SignUpIn) (any, error) {
		p, err := q.s.Signin.SignUp(q.r.Context(), in, q.origin, q.from)
		return waits{p.Waiting}, q.begin(p, err)
	})
	script(s, mux, "link", func(q *call, in struct{ Secret string }) (any, error) {
		l, err := q.s.Signin.Linked(q.r.Context(), in.Secret, q.from)
		return map[string]any{"name": l.Name, "zone": l.Zone, "email": l.Email, "has_phrase": l.HasPhrase}, err
	})
	script(s, mux, "set-up", func(q *call, in signin.SetUpIn) (any, error) {
		p, err := q.s.Signin.SetUp(q.r.Context(), in, q.origin, q.from)
		return waits{p.Waiting}, q.begin(p, err)
	})
	s.ownScripts(mux)
}

// ownScripts adds those for somebody who is signed in.
func (s *Server) ownScripts(mux *http.ServeMux) {
	script(s, mux, "sign-out", func(q *call, _ empty) (any, error) { return empty{}, q.s.endSession(q.w, q.r) })
	script(s, mux, "prove", func(q *call, in signin.Proof) (any, error) {
		if _, err := q.person(); err != nil {
			return nil, err
		}
		return empty{}, q.s.Signin.ProveAgain(q.r.Context(), q.origin, in, q.from)
	})
	script(s, mux, "phrase", func(q *call, in signin.Proof) (any, error) {
		if _, err := q.person(); err != nil {
			return nil, err
		}
		if in.Phrase == nil {
			return nil, fault.Bad("phrase", "is missing: it must be the new phrase's public key and signature")
		}
		return empty{}, q.s.Signin.AddPhrase(q.r.Context(), q.origin, in.Challenge, *in.Phrase, q.from)
	})
	script(s, mux, "passkey/begin", func(q *call, _ empty) (any, error) {
		if _, err := q.person(); err != nil {
			return nil, err
		}
		id, options, err := q.s.Signin.BeginPasskey(q.r.Context(), q.origin)
		return map[string]any{"challenge": id, "options": options}, err
	})
	script(s, mux, "passkey/finish", func(q *call, in struct {
		Challenge, Name string
		Passkey         json.RawMessage
	}) (any, error) {
		if _, err := q.person(); err != nil {
			return nil, err
		}
		id, err := q.s.Signin.FinishPasskey(q.r.Context(), q.origin, in.Challenge, in.Name, in.Passkey)
		return map[string]string{"id": id}, err
	})
}

// begin starts a session for somebody who has shown who they are.
func (q *call) begin(p signin.Person, err error) error {
	if err != nil {
		return err
	}
	return q.s.start(q.w, q.r, p)
}
