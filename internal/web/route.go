package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/rawjson"
	"cairn/internal/who"
)

// screen is one page of somebody signed in: what it shows, and what its forms do. It holds no rules: it runs operations.
type screen struct {
	page string // template
	load func(q *request) (any, error)
	acts map[string]act // by the form's field "act"
	most int64          // bytes that its forms may send; 0 = formBytes
}

// act is what a form does: it runs an operation and goes on to a page that says so.
type act struct {
	op   string
	args func(f url.Values, q *request) map[string]any
	done string // code of the text that says it was done
	to   string // the page to go on to; "" = the form's own
	// do stands for all of these: it gives the page to go on to and the code of what was done.
	do func(q *request) (to, done string, err error)
	// show gives a page to answer with instead of going on: for what is shown once only.
	show func(q *request, result json.RawMessage) (page string, data any, err error)
}

// question is what the page "confirm" asks before something that can't be undone.
type question struct {
	Title, Back, BackLabel string
	Text                   []string
	Act, Button            string
}

// request is one request of a person's for a screen.
type request struct {
	s      *Server
	ctx    context.Context
	r      *http.Request
	caller *who.Caller
	id     string // of the thing that the path names
}

// run calls an operation and reads its object.
func run[T any](s *Server, ctx context.Context, name string, args any) (out T, err error) { //nolint:revive // the server comes first, as a method's would
	b := []byte("{}")
	if args != nil {
		if b, err = rawjson.Marshal(args); err != nil {
			return out, err
		}
	}
	res, err := s.Runner.Run(ctx, name, b)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(res.JSON, &out); err != nil {
		return out, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}

// get calls an operation as the request's person.
func get[T any](q *request, name string, args any) (T, error) { return run[T](q.s, q.ctx, name, args) }

// show serves a screen by GET and its forms by POST.
func (s *Server) show(mux *http.ServeMux, path string, sc screen) {
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		if c, ok := s.session(w, r); ok {
			s.answer(w, s.request(r, c), sc, &View{Caller: c}, http.StatusOK)
		}
	})
	if sc.acts == nil {
		return
	}
	s.Posts = append(s.Posts, path)
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		if err := s.own(r); err != nil {
			s.problem(w, r, nil, err)
			return
		}
		c, ok := s.session(w, r) // before the body: not everybody may have a large one read
		if ok && s.form(w, r, cmp.Or(sc.most, formBytes)) {
			s.act(w, s.request(r, c), sc)
		}
	})
}

// post serves a form, behind the checks that every form passes.
func (s *Server) post(mux *http.ServeMux, path string, h http.HandlerFunc) {
	s.Posts = append(s.Posts, path)
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		if s.form(w, r, formBytes) {
			h(w, r)
		}
	})
}

func (s *Server) request(r *http.Request, c *who.Caller) *request {
	return &request{s: s, ctx: who.With(r.Context(), c), r: r, caller: c, id: r.PathValue("id")}
}

// answer shows a screen, with what it holds now.
func (s *Server) answer(w http.ResponseWriter, q *request, sc screen, v *View, status int) {
	data, err := sc.load(q)
	if err != nil {
		s.problem(w, q.r, q.caller, err)
		return
	}
	v.Data = data
	s.render(w, q.r, status, sc.page, v)
}

// act does what a form asks for.
func (s *Server) act(w http.ResponseWriter, q *request, sc screen) {
	f := q.r.PostForm
	name := f.Get("act")
	a, ok := sc.acts[name]
	if !ok {
		s.problem(w, q.r, q.caller, fault.New(fault.InvalidRequest, "the form asks for %q, which this page doesn't do: load the page again", name))
		return
	}
	if a.do != nil {
		to, code, err := a.do(q)
		if err != nil {
			s.refused(w, q, sc, name, err)
			return
		}
		done(w, q.r, cmp.Or(to, q.r.URL.Path), code)
		return
	}
	result, err := get[json.RawMessage](q, a.op, a.args(f, q))
	if err != nil {
		s.refused(w, q, sc, name, err)
		return
	}
	if a.show != nil {
		page, data, err := a.show(q, result)
		if err != nil {
			s.problem(w, q.r, q.caller, err)
			return
		}
		s.render(w, q.r, http.StatusOK, page, &View{Caller: q.caller, Data: data, Form: f})
		return
	}
	to := strings.ReplaceAll(a.to, "{id}", url.PathEscape(q.id))
	if to == "" {
		to = q.r.URL.Path
	}
	done(w, q.r, to, a.done)
}

// refused shows a form again with what is wrong with it, or asks who it is where too long has passed since that was shown.
func (s *Server) refused(w http.ResponseWriter, q *request, sc screen, form string, err error) {
	f := fault.From(err)
	if f.Kind == fault.Denied && f.Data["reason"] == "prove_again" {
		s.askAgain(w, q)
		return
	}
	s.answer(w, q, sc, &View{Caller: q.caller, Fault: f, Failed: form, Form: q.r.PostForm}, f.API())
}

// always gives the same arguments.
func always(args map[string]any) func(url.Values, *request) map[string]any {
	return func(url.Values, *request) map[string]any { return args }
}

// thing gives the arguments of an operation on the thing that the path names.
func thing(name string) func(url.Values, *request) map[string]any {
	return func(_ url.Values, q *request) map[string]any { return map[string]any{name: q.id} }
}

// field gives the arguments of an operation on what a field of the form names.
func field(names ...string) func(url.Values, *request) map[string]any {
	return func(f url.Values, _ *request) map[string]any {
		m := map[string]any{}
		for _, n := range names {
			m[n] = f.Get(n)
		}
		return m
	}
}

// lines splits what a text field holds at ends of lines, commas and spaces.
func lines(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' || r == ',' || r == ' ' || r == '\t' })
}

// ticked gives the values of tick boxes, each once: five times one area must not count as five areas. None of them is an
// empty list, which operations refuse where it would mean all.
func ticked(f url.Values, name string) []string {
	list := []string{}
	for _, v := range f[name] {
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}
