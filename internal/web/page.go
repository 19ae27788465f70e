package web

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"cairn/internal/fault"
	"cairn/internal/web/docs"
	"cairn/internal/web/say"
	"cairn/internal/who"
)

//go:embed pages/*.html
var pageFiles embed.FS

// pages are the templates by name: each file of pages beside the layout and the parts defines "title" and "main", and
// "bare" where it is shown without navigation. They are parsed when the first page is shown: most processes show none.
var pages = sync.OnceValue(parsePages)

func parsePages() map[string]*template.Template {
	shared := []string{"pages/layout.html", "pages/parts.html"}
	base := template.Must(template.New("").Funcs(functions).ParseFS(pageFiles, shared...))
	files, err := fs.Glob(pageFiles, "pages/*.html")
	if err != nil {
		panic(err)
	}
	all := map[string]*template.Template{}
	for _, file := range files {
		if slices.Contains(shared, file) {
			continue
		}
		t := template.Must(template.Must(base.Clone()).ParseFS(pageFiles, file))
		all[strings.TrimSuffix(path.Base(file), ".html")] = t
	}
	return all
}

// View is what a template gets. A handler sets what it knows; render adds the rest.
type View struct {
	Caller *who.Caller // who looks, nil if nobody signed in
	Data   any         // of the page
	Fault  *fault.Error
	Failed string     // the name of the form that Fault is about
	Form   url.Values // what was sent, so that a refused form keeps its values
	// FormAction lists further origins that the page's forms may lead to, beside this server.
	FormAction []string

	Path    string // of the request
	Query   url.Values
	Theme   string // light or dark, "" = as the system has it
	Status  string // what was just done
	Version string
	Public  string // the server's address, without a slash at the end
	Frame   frame  // what the layout shows of the account
	now     int64
}

// frame is what every page of somebody signed in shows.
type frame struct {
	Account    accountInfo
	Server     serverInfo
	Invites    []invite
	Navigation []link
}

type link struct {
	Path, Label string
	Count       int
	Current     bool
}

func (s *Server) navigation(c *who.Caller, at string) []link {
	all := []link{{Path: "/docs", Label: "Documents"}, {Path: "/files", Label: "Files"}, {Path: "/agents", Label: "Agents"}, {Path: "/tokens", Label: "Tokens"}, {Path: "/heaps", Label: "Heaps"}, {Path: "/settings", Label: "Settings"}}
	if c.Admin {
		all = append(all, link{Path: "/admin/accounts", Label: "Accounts"})
	}
	for i, l := range all {
		all[i].Current = at == l.Path || strings.HasPrefix(at, l.Path+"/") || l.Path == "/docs" && strings.HasPrefix(at, "/blocks/")
	}
	return all
}

// policy is the Content-Security-Policy of pages. Nothing comes from elsewhere and nothing is inline.
func policy(formAction []string) string {
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'none'; base-uri 'none'; form-action " +
		strings.Join(append([]string{"'self'"}, formAction...), " ") + "; frame-ancestors 'none'"
}

// render answers with a page. A page is never kept: what it shows is the person's, and the back button must ask again.
func (s *Server) render(w http.ResponseWriter, r *http.Request, status int, name string, v *View) {
	t := pages()[name]
	s.complete(r, v)
	layout := "layout"
	if t.Lookup("bare") != nil || v.Caller == nil {
		layout = "bare-layout"
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, layout, v); err != nil {
		s.Edge.Log.Error("a page could not be made", "page", name, "cause", err.Error())
		http.Error(w, "The page could not be made; the server's log has the cause.", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", policy(v.FormAction))
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Add("Vary", "Cookie")
	h.Set("Content-Length", fmt.Sprint(b.Len()))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b.Bytes())
	}
}

// complete adds what the layout shows.
func (s *Server) complete(r *http.Request, v *View) {
	v.Path, v.Query, v.Version, v.Public, v.now = r.URL.Path, r.URL.Query(), s.Version, s.Edge.Public.String(), s.Edge.Limiter.Now()
	v.Theme = theme(r)
	if v.Status == "" && v.Fault == nil {
		code := v.Query.Get("done")
		v.Status = cmp.Or(say.Done[code], docs.Done[code])
	}
	if v.Caller == nil {
		return
	}
	v.Frame.Navigation = s.navigation(v.Caller, v.Path)
	got, err := run[accountOut](s, who.With(r.Context(), v.Caller), "get_account", nil)
	if err != nil { // the page itself matters more than its frame
		s.Edge.Log.Debug("the frame of a page could not be read", "cause", err.Error())
		return
	}
	v.Frame.Account, v.Frame.Server, v.Frame.Invites = got.Account, got.Server, got.Invites
	for i, l := range v.Frame.Navigation {
		if l.Path == "/heaps" {
			v.Frame.Navigation[i].Count = len(got.Invites)
		}
	}
}

// wantsPage tells whether a request is a browser's for a page: it takes HTML, and the path is none of the machines'.
func wantsPage(r *http.Request) bool {
	for _, p := range []string{"/api/", "/mcp", "/functions/", "/.well-known/", "/healthz", "/readyz", "/metrics", "/assets/", "/oauth/token", "/oauth/register", "/oauth/revoke"} {
		if strings.HasPrefix(r.URL.Path, p) {
			return false
		}
	}
	return strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "text/html")
}

// problem answers with a fault: as a page for a browser, else as JSON. What is forbidden to somebody looks to them like what
// doesn't exist.
func (s *Server) problem(w http.ResponseWriter, r *http.Request, c *who.Caller, err error) {
	if !wantsPage(r) {
		s.fail(w, err)
		return
	}
	f := fault.From(err)
	if c != nil && (f.Kind == fault.Denied || f.Kind == fault.Scope || f.Kind == fault.UnknownTool) && f.Data["reason"] == nil {
		f = fault.New(fault.NotFound, "")
	}
	status := f.API()
	if status < 400 {
		status = http.StatusInternalServerError
	}
	if status == http.StatusNotFound {
		s.render(w, r, status, "missing", &View{Caller: c})
		return
	}
	if after, ok := f.Data["retryAfter"].(int64); ok {
		w.Header().Set("Retry-After", fmt.Sprint(after))
	}
	s.render(w, r, status, "problem", &View{Caller: c, Data: f})
}
