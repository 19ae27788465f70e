package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"cairn/internal/account"
	"cairn/internal/edge"
	"cairn/internal/fault"
	"cairn/internal/oauth"
	"cairn/internal/rawjson"
	"cairn/internal/signin"
	"cairn/internal/who"
)

// The consent page. It makes no web session and uses none: whoever signs in on it gets a ticket that lives in the page and
// is good for this one request, so a reload asks again.

// consent adds the pages on which people let agents in.
func (s *Server) consent(mux *http.ServeMux) {
	mux.HandleFunc("GET /oauth/authorize", s.authorize)
	mux.HandleFunc("GET /oauth/authorize/wait", s.wait)
	mux.HandleFunc("GET /oauth/authorization-requests/{id}/status", s.attemptStatus)
	mux.HandleFunc("GET /pair", s.pairPage)
	s.post(mux, "/oauth/authorize", s.consentForm)
	s.post(mux, "/oauth/authorization-requests/{id}/route", s.routeForm)
	s.post(mux, "/pair", s.pairForm)
	script(s, mux, "consent", func(q *call, in struct{ Request string }) (any, error) {
		v, err := s.OAuth.Look(q.r.Context(), in.Request, s.browser(q.w, q.r))
		if err != nil {
			return nil, err
		}
		return s.Signin.Begin(q.r.Context(), "consent:"+v.ID, q.origin)
	})
}

// browserCookie ties requests to be let in to the browser that they came by.
const browserCookie = "cairn-browser"

// browser gives the text that stands for a browser, and lets it keep that.
func (s *Server) browser(w http.ResponseWriter, r *http.Request) string {
	secure := s.Edge.Public.Scheme == "https"
	name := browserCookie
	if secure {
		name = "__Host-" + name
	}
	have := ""
	if c, err := r.Cookie(name); err == nil {
		have = c.Value
	}
	text := oauth.Browser(have)
	if text != have {
		http.SetCookie(w, &http.Cookie{Name: name, Value: text, Path: "/", MaxAge: int((24 * time.Hour).Seconds()), HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode})
	}
	return text
}

// consentPage is what the consent page and the pairing page show.
type consentPage struct {
	A         oauth.View
	Action    string // where its forms go
	Person    string
	Ticket    string
	Code      string // the pairing code, on the pairing page
	Agents    []account.Agent
	Chosen    *account.Agent // the agent that this client is already
	Heaps     []heapRow
	Areas     []area
	Seen      string
	SeenEnded *string // when what it was seen as ended
	Warning   string
	Mail      bool
	Challenge string // of a mailed code
	Who       string
	MCP       string
	Setup     bool // nobody can sign in yet: the server must be set up
}

// Has tells whether a heap is ticked at first: one that the agent has, or the only one there is.
func (p *consentPage) Has(heap string) bool {
	if p.Chosen == nil {
		return len(p.Heaps) == 1
	}
	return slices.ContainsFunc(p.Chosen.Heaps, func(h account.HeapRef) bool { return h.ID == heap })
}

// Is tells whether the agent that the client is already has this id.
func (p *consentPage) Is(agent string) bool { return p.Chosen != nil && p.Chosen.ID == agent }

// HasArea tells whether an area is ticked at first: all are, unless the agent has fewer.
func (p *consentPage) HasArea(area string) bool {
	return p.Chosen == nil || p.Chosen.Areas == nil || slices.Contains(p.Chosen.Areas, area)
}

// Today says what the agent may now, for the comparison with what is asked.
func (p *consentPage) Today() string { return rightsOf(*p.Chosen) }

// More says what is asked for beyond that.
func (p *consentPage) More() string {
	if p.A.Write && !p.Chosen.Write {
		return "to write"
	}
	return ""
}

func rightsOf(a account.Agent) string {
	names := []string{}
	for _, h := range a.Heaps {
		names = append(names, h.Name)
	}
	return agentRights(names, a.Areas, a.Write)
}

// authorize begins, or goes on with, a request to be let in.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	if err := s.Edge.Limit(r.Context(), w.Header(), nil); err != nil {
		s.problem(w, r, nil, err)
		return
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		s.badRequest(w, r, "The address that sent you here is damaged.")
		return
	}
	v, err := s.OAuth.Begin(r.Context(), q, s.browser(w, r), asker(r))
	var sent *oauth.Sent
	var bad *oauth.BadRequest
	switch {
	case errors.As(err, &sent) && sent.Stranger:
		s.render(w, r, http.StatusBadRequest, "consent-bad", &View{Data: map[string]string{
			"Message": "The request of the program that sent you here is faulty: it must correct it.", "Back": sent.Address, "Host": sent.Host, "Request": edge.From(r.Context()).Request}})
	case errors.As(err, &sent):
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, sent.Address, http.StatusFound)
	case errors.As(err, &bad):
		s.badRequest(w, r, bad.Message)
	case err != nil:
		s.problem(w, r, nil, err)
	default:
		s.showAttempt(w, r, http.StatusOK, v, &View{})
	}
}

// badRequest tells the person on our own page: nothing is sent to an address that isn't certain.
func (s *Server) badRequest(w http.ResponseWriter, r *http.Request, message string) {
	s.render(w, r, http.StatusBadRequest, "consent-bad", &View{Data: map[string]string{"Message": message, "Request": edge.From(r.Context()).Request}})
}

// showAttempt shows a request to the browser that it came by: the sign-in on it while it is open, else how it ended.
func (s *Server) showAttempt(w http.ResponseWriter, r *http.Request, status int, a oauth.View, v *View) {
	if v.Data == nil {
		v.Data = &consentPage{A: a, Action: "/oauth/authorize", Mail: s.Signin.HasMail(), MCP: s.OAuth.Resource()}
	}
	if a.State != oauth.Open {
		s.render(w, r, status, "consent-end", v)
		return
	}
	if p, ok := v.Data.(*consentPage); ok && p.Ticket == "" {
		_, needed, err := s.Signin.NeedsSetup(r.Context())
		p.Setup = err == nil && needed
	}
	v.FormAction = formAction(a)
	s.render(w, r, status, "consent", v)
}

// formAction gives the origin that a form on the page may lead to, beside this server: the client's, exactly. What a policy
// can't name (an IPv6 address) is reached by a link instead.
func formAction(a oauth.View) []string {
	u, err := url.Parse(a.Redirect)
	if err != nil || strings.Contains(u.Host, "[") {
		return nil
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return []string{u.Scheme + ":"}
	}
	return []string{u.Scheme + "://" + u.Host}
}

// goOn sends the browser back to the client with the answer.
func (s *Server) goOn(w http.ResponseWriter, r *http.Request, a oauth.View) {
	if a.Continue == "" || formAction(a) == nil {
		s.showAttempt(w, r, http.StatusOK, a, &View{})
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, a.Continue, http.StatusSeeOther)
}

// consentForm takes what the consent page sends: a proof of who sits there, a choice, or a no.
func (s *Server) consentForm(w http.ResponseWriter, r *http.Request) {
	browser := s.browser(w, r)
	a, err := s.OAuth.Look(r.Context(), r.PostFormValue("request"), browser)
	if err != nil {
		s.badRequest(w, r, "This request isn't known in this browser, or it is too old. Start again in the program that asked. Cookies must be allowed for this server.")
		return
	}
	if a.State != oauth.Open {
		s.goOn(w, r, a)
		return
	}
	page := &consentPage{A: a, Action: "/oauth/authorize", Mail: s.Signin.HasMail(), MCP: s.OAuth.Resource(), Who: r.PostFormValue("who")}
	v := &View{Data: page, Form: r.PostForm}
	act := r.PostFormValue("act")
	switch act {
	case "again": // somebody else sits down, or it is answered here after all
		s.showAttempt(w, r, http.StatusOK, a, &View{})
		return
	case "cancel":
		err = s.OAuth.Cancel(r.Context(), a.ID, browser, asker(r))
	case "prove", "send", "code":
		err = s.consentSignIn(r, a, page)
		if err == nil && page.Ticket == "" { // a code was mailed
			s.showAttempt(w, r, http.StatusOK, a, v)
			return
		}
		if err == nil {
			err = s.fillConsent(r, page, v, page.Ticket)
		}
		if err == nil {
			v.FormAction = formAction(a)
			s.render(w, r, http.StatusOK, "consent", v)
			return
		}
	case "connect", "reject":
		err = s.decideTicket(r, a, page, v, act == "connect")
	default:
		err = fault.New(fault.InvalidRequest, "the form asks for %q, which this page doesn't do: load the page again", act)
	}
	if err == nil || fault.From(err).Kind == fault.Conflict {
		if again, lerr := s.OAuth.Look(r.Context(), a.ID, browser); lerr == nil && again.State != oauth.Open {
			s.goOn(w, r, again)
			return
		}
	}
	v.Fault, v.Failed = fault.From(err), act
	if f := v.Fault; f.Kind == fault.Internal {
		s.Edge.Log.Error("the consent page failed", "request", edge.From(r.Context()).Request, "cause", err.Error())
	}
	s.showAttempt(w, r, v.Fault.API(), a, v)
}

// consentSignIn checks who sits before the consent page, and gives the page its ticket.
func (s *Server) consentSignIn(r *http.Request, a oauth.View, page *consentPage) (err error) {
	var person signin.Person
	if r.PostFormValue("act") == "prove" {
		var p signin.Proof
		if err := json.Unmarshal([]byte(r.PostFormValue("proof")), &p); err != nil {
			return fault.New(fault.InvalidRequest, "the page sent no proof of who you are: load it again, with script allowed")
		}
		if err := s.Edge.Limit(r.Context(), http.Header{}, nil); err != nil {
			return err
		}
		person, err = s.Signin.Prove(r.Context(), "consent:"+a.ID, s.origin(r), p, from(r))
	} else {
		page.Challenge, person, err = s.code(r, "consent:"+a.ID, page.Who)
	}
	if err != nil || person.Account == "" {
		return err
	}
	if person.Waiting {
		return fault.New(fault.Denied, "your account waits for the server's admin to admit it. This request is kept for ten minutes from when it began; sign in here again once you are admitted").With("reason", "waiting")
	}
	page.Ticket = s.OAuth.Ticket(a, person.Account)
	return nil
}

// fillConsent adds what the person of a ticket can choose from.
func (s *Server) fillConsent(r *http.Request, page *consentPage, v *View, ticket string) error {
	c, err := s.OAuth.Holder(r.Context(), page.A, ticket)
	if err != nil {
		return err
	}
	page.Ticket = ticket
	return s.choices(r, page, v, c)
}

// choices adds the heaps, areas and agents that a person can choose from.
func (s *Server) choices(r *http.Request, page *consentPage, v *View, c *who.Caller) error {
	info := edge.From(r.Context())
	c.Via, c.Request, c.Address, c.Client = who.ViaWeb, info.Request, info.Address, r.UserAgent()
	v.Caller, page.Person, page.Areas = c, c.AccountName, areasShown
	got, err := run[accountOut](s, who.With(r.Context(), c), "get_account", map[string]any{"holds": true})
	if err != nil {
		return err
	}
	for _, h := range got.Heaps {
		if h.ArchivedAt == nil && (h.Role == "owner" || h.Role == "admin") {
			page.Heaps = append(page.Heaps, h)
		}
	}
	known, err := s.OAuth.Known(r.Context(), page.A, c.Account)
	if err != nil {
		return err
	}
	page.Agents = known.Agents
	if known.May() {
		page.Chosen = known.Same
	}
	switch page.Seen = "New."; {
	case known.Same != nil:
		page.Seen = "You let it in before, as " + isolated(known.Same.Name) + "."
	case known.Ended != nil:
		page.Seen = "You let it in before, as " + isolated(known.Ended.Name) + "."
		page.SeenEnded = known.Ended.EndedAt
	case known.Alike != nil:
		page.Seen = "Its name looks like that of an agent you have, but it is another one."
	}
	switch {
	case known.Same != nil:
	case known.Alike != nil:
		page.Warning = "You have an agent named " + isolated(known.Alike.Name) + " already, but this is another program or another copy of it. If you didn't expect to be asked again, don't connect it."
	case page.A.ClientKind == "registered" && page.A.Loopback && page.Code != "": // it runs where the code was shown
		page.Warning = "Go on only if you started this yourself, on a device in front of you, just now: its name is what it says of itself, and its key goes to a program on that device."
	case page.A.ClientKind == "registered" && page.A.Loopback:
		page.Warning = "Go on only if you started this yourself, on this device, just now: its name is what it says of itself, and its key goes to a program on this device."
	case page.A.ClientKind == "registered":
		page.Warning = "Its name is what it says of itself. Go on only if you started this yourself and know where its key goes."
	}
	return nil
}

// choice reads what was chosen on the page. No area ticked would mean none, so it is refused there and not taken for all.
func choice(f url.Values, connect bool) (oauth.Choice, error) {
	ch := oauth.Choice{Connect: connect, Agent: f.Get("agent"), Name: f.Get("name"), Heaps: ticked(f, "heaps"), Write: f.Get("write") == "yes", Stay: f.Get("stay") == "yes", Propose: f.Get("propose_memory") == "yes"}
	if !connect {
		return ch, nil
	}
	if len(ch.Heaps) == 0 {
		return ch, fault.Bad("heaps", "must have at least one heap ticked")
	}
	if ch.Areas = ticked(f, "areas"); len(ch.Areas) == 0 {
		return ch, fault.Bad("areas", "must have at least one area ticked")
	}
	if len(ch.Areas) == len(who.Areas) {
		ch.Areas = nil
	}
	return ch, nil
}

func (s *Server) decideTicket(r *http.Request, a oauth.View, page *consentPage, v *View, connect bool) error {
	ticket := r.PostFormValue("ticket")
	if err := s.fillConsent(r, page, v, ticket); err != nil {
		return err
	}
	ch, err := choice(r.PostForm, connect)
	if err != nil {
		return err
	}
	return s.OAuth.Decide(r.Context(), a, v.Caller, ch)
}

// wait is the page of a request that is answered elsewhere: on another device with its code, or by somebody it was sent to.
func (s *Server) wait(w http.ResponseWriter, r *http.Request) {
	a, err := s.OAuth.Look(r.Context(), r.URL.Query().Get("request"), s.browser(w, r))
	if err != nil {
		s.badRequest(w, r, "This request isn't known in this browser, or it is too old. Start again in the program that asked.")
		return
	}
	page := &consentPage{A: a, Action: "/oauth/authorize", MCP: s.OAuth.Resource()}
	name := "consent-wait"
	if a.State != oauth.Open {
		name = "consent-end"
	}
	s.render(w, r, http.StatusOK, name, &View{Data: page, FormAction: formAction(a)})
}

// attemptStatus tells the browser that a request came by how it stands.
func (s *Server) attemptStatus(w http.ResponseWriter, r *http.Request) {
	a, err := s.OAuth.Look(r.Context(), r.PathValue("id"), s.browser(w, r))
	if err != nil {
		edge.Fail(w, err)
		return
	}
	b, _ := rawjson.Marshal(map[string]string{"state": a.State, "continue": a.Continue})
	edge.JSON(w, http.StatusOK, b)
}

// routeForm sends a request to somebody by name.
func (s *Server) routeForm(w http.ResponseWriter, r *http.Request) {
	err := s.Edge.Limit(r.Context(), http.Header{}, nil)
	name := strings.TrimSpace(r.PostFormValue("username"))
	if err == nil && (name == "" || len(name) > 300) {
		err = fault.Bad("username", "must be a name of at most 300 characters")
	}
	if err == nil {
		err = s.OAuth.Route(r.Context(), r.PathValue("id"), s.browser(w, r), name)
	}
	if err != nil {
		s.problem(w, r, nil, err)
		return
	}
	done(w, r, "/oauth/authorize/wait?request="+url.QueryEscape(r.PathValue("id")), "request-sent")
}

// pairPage asks for a pairing code.
func (s *Server) pairPage(w http.ResponseWriter, r *http.Request) {
	if c, ok := s.session(w, r); ok {
		s.render(w, r, http.StatusOK, "pair", &View{Caller: c, Data: &consentPage{Action: "/pair"}})
	}
}

// pairForm finds the request with a code, and then takes the choice. The code is asked of it again then: only who read it on
// the agent's page may answer.
func (s *Server) pairForm(w http.ResponseWriter, r *http.Request) {
	c, ok := s.session(w, r)
	if !ok {
		return
	}
	page := &consentPage{Action: "/pair", Code: r.PostFormValue("code")}
	v := &View{Caller: c, Data: page, Form: r.PostForm}
	act := r.PostFormValue("act")
	err := s.pair(r.Context(), r, page, v, c, act)
	switch {
	case err != nil && fault.From(err).Data["reason"] == "prove_again":
		s.askAgain(w, s.request(r, c))
		return
	case err == nil && act == "connect":
		done(w, r, "/agents", "connected")
		return
	case err == nil && act == "reject":
		done(w, r, "/agents", "rejected")
		return
	}
	status := http.StatusOK
	if err != nil {
		if v.Fault, v.Failed = fault.From(err), act; v.Failed == "" || page.A.ID == "" {
			v.Failed, page.Code = "pair", ""
		}
		status = v.Fault.API()
	}
	s.render(w, r, status, "pair", v)
}

func (s *Server) pair(ctx context.Context, r *http.Request, page *consentPage, v *View, c *who.Caller, act string) (err error) {
	if page.A, err = s.OAuth.Claim(ctx, c, page.Code); err != nil {
		return err
	}
	if err = s.choices(r, page, v, c); err != nil || act == "" {
		return err
	}
	if act == "connect" && r.PostFormValue("started") != "yes" {
		return fault.Bad("started", "must be answered with yes: let in only what you started yourself")
	}
	ch, err := choice(r.PostForm, act == "connect")
	if err == nil && ch.Connect { // the consent page asks who sits there each time; a session may be old
		err = account.Fresh(c, s.Edge.Limiter.Now())
	}
	if err != nil {
		return err
	}
	return s.OAuth.Decide(ctx, page.A, c, ch)
}
