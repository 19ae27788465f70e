package oauth

import (
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"cairn/internal/account"
	"cairn/internal/audit"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

// States of an attempt.
const (
	Open     = "open"
	Approved = "approved" // decided; the client has not fetched its tokens yet
	Rejected = "rejected"
	Redeemed = "redeemed"
	Expired  = "expired" // shown, never stored
)

// request is what a client asks for, kept with its attempt.
type request struct {
	Redirect   string `json:"redirect_uri"`
	State      string `json:"state"`
	HasState   bool   `json:"has_state"`
	Challenge  string `json:"challenge"`
	Write      bool   `json:"write"`
	Stay       bool   `json:"stay"`
	ClientName string `json:"client_name"`
	ClientKind string `json:"client_kind"`
}

// decision is what a person decided, kept until the client fetches its tokens.
type decision struct {
	Agent  string         `json:"agent"` // "" = a new one
	Name   string         `json:"name"`
	Rights account.Rights `json:"rights"`
	Stay   bool           `json:"stay"`
}

type attempt struct {
	id, client, state, address, agent string
	recipient, decidedBy, decision    *string
	created, expires                  int64
	request
}

// View is an attempt as pages show it. All text from the client is untrusted.
type View struct {
	ID           string
	State        string
	ClientID     string
	ClientName   string // at most 200 characters, without control signs
	ClientKind   string // registered, or metadata: then ClientHost vouches
	ClientHost   string
	ClientSince  int64
	Redirect     string // whole
	RedirectHost string // host and port, or the scheme of a program's own
	Loopback     bool
	Write, Stay  bool // what may be granted at most
	Address      string
	UserAgent    string
	CreatedAt    int64
	ExpiresAt    int64
	Routed       bool   // it was sent to somebody by name
	Pairing      string // for the browser that asked alone
	Continue     string // where the browser that asked goes on to, once it is decided; for that browser alone
	recipient    string
}

// BadRequest is a request that can't be answered to the client, because who it is or where it wants its answer isn't
// certain: the person is told on our own page.
type BadRequest struct{ Message string }

// Error gives the message.
func (e *BadRequest) Error() string { return e.Message }

// Sent is a request that is answered to the client at once, with an error: the browser goes to Address. Stranger says that
// Address lies elsewhere and nobody ever let the client in: then the person should see where they are being sent, since
// whoever registers could else use this server's name to lead people to any page (RFC 9700 section 4.11.2).
type Sent struct {
	Address, Host string
	Stranger      bool
}

// Error says that the browser is sent back.
func (e *Sent) Error() string { return "the request is answered to the client" }

var (
	challengeForm = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
	cookieForm    = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
)

// Browser gives the text that ties attempts to a browser: the one it has, if it is one of ours in form, else a new one.
func Browser(have string) string {
	if cookieForm.MatchString(have) {
		return have
	}
	return random(32)
}

// Begin starts an attempt for an authorization request (RFC 6749 section 4.1.1, RFC 7636, RFC 8707), or gives the one that
// the same browser began with the same request. Its faults are *BadRequest and *Sent.
func (s *Service) Begin(ctx context.Context, q url.Values, browser string, from From) (View, error) {
	c, redirect, err := s.whoAsks(ctx, q)
	if err != nil {
		return View{}, err
	}
	r := request{Redirect: redirect, State: q.Get("state"), HasState: q.Has("state"), Challenge: q.Get("code_challenge"), ClientName: c.Name, ClientKind: c.Kind}
	if code, why := s.wrong(q); code != "" {
		if len(r.State) > mostURL {
			r.State, r.HasState = "", false
		}
		sent := &Sent{Address: s.answer(r, url.Values{"error": {code}, "error_description": {why}})}
		if u, err := url.Parse(redirect); err == nil {
			sent.Host, sent.Stranger = u.Host, u.Scheme == schemeHTTPS && !c.Used
		}
		return View{}, sent
	}
	r.Write, r.Stay = onOffer(c, q.Get("scope"))
	print := sum(strings.Join([]string{c.ID, redirect, r.State, r.Challenge, q.Get("scope"), q.Get("resource")}, "\x00"))
	have, err := s.find(ctx, `cookie = $1 AND print = $2 AND expires_at > $3 ORDER BY created_at DESC LIMIT 1`, sum(browser), print, s.db.Now())
	if err == nil {
		return s.view(ctx, have, true)
	}
	if !db.IsNone(err) {
		return View{}, err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return View{}, err
	}
	id := db.NewID()
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(`INSERT INTO oauth_attempt (id, client, request, print, cookie, pairing, state, address, user_agent, created_at, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, 'open', $7, $8, $9, $10)`,
			id, c.ID, string(text), print, sum(browser), s.pairingHash(s.pairing(id)), from.Address, clip(clean(from.UserAgent)), tx.Now, tx.Now+AttemptLife.Microseconds())
		return err
	})
	if err != nil {
		return View{}, err
	}
	a, err := s.find(ctx, `id = $1`, id)
	if err != nil {
		return View{}, err
	}
	return s.view(ctx, a, true)
}

// whoAsks finds the client and the address that its answer goes to. Until both are certain nothing is sent anywhere.
func (s *Service) whoAsks(ctx context.Context, q url.Values) (c Client, redirect string, err error) {
	if len(q["client_id"]) != 1 || q.Get("client_id") == "" {
		return c, "", &BadRequest{"The program that sent you here didn't say which program it is (client_id)."}
	}
	c, err = s.client(ctx, q.Get("client_id"), true)
	if e, ok := err.(*Error); ok { //nolint:errorlint // client gives it bare
		if c.ID == "" && strings.HasPrefix(q.Get("client_id"), schemeHTTPS+"://") && s.Fetcher != nil {
			return c, "", &BadRequest{"What the program says of itself could not be read: " + e.Description + ". Try again in a moment."}
		}
		return c, "", &BadRequest{"The program that sent you here isn't known to this server. Remove this server from that program and add it again."}
	}
	if err != nil {
		return c, "", err
	}
	switch list := q["redirect_uri"]; {
	case len(list) == 0 && len(c.RedirectURIs) == 1:
		return c, c.RedirectURIs[0], nil
	case len(list) != 1:
		return c, "", &BadRequest{"The program that sent you here didn't say where to go back to (redirect_uri)."}
	case !fits(c.RedirectURIs, list[0]):
		return c, "", &BadRequest{"The program that sent you here wants its answer at an address that it didn't register. Nothing was sent there."}
	default:
		return c, list[0], nil
	}
}

// wrong finds what the client is to be told of its request, or "".
func (s *Service) wrong(q url.Values) (code, why string) {
	for name, values := range q {
		if len(values) > 1 && name != "resource" {
			return "invalid_request", name + " is given more than once"
		}
	}
	resources := q["resource"]
	switch {
	case q.Has("request"):
		return "request_not_supported", "request objects aren't taken"
	case q.Has("request_uri"):
		return "request_uri_not_supported", "request_uri isn't taken"
	case q.Get("response_type") != "code":
		return "unsupported_response_type", "response_type must be code"
	case q.Get("code_challenge") == "":
		return "invalid_request", "code_challenge is missing: PKCE with S256 is required"
	case q.Get("code_challenge_method") != "S256":
		return "invalid_request", "code_challenge_method must be S256"
	case !challengeForm.MatchString(q.Get("code_challenge")):
		return "invalid_request", "code_challenge must be 43 characters of base64url"
	case len(q.Get("state")) > mostURL || !utf8.ValidString(q.Get("state")):
		return "invalid_request", "state may have at most 2048 bytes of UTF-8"
	case slices.ContainsFunc(resources, func(r string) bool { return !s.ours(r) }):
		return "invalid_target", "resource must be " + s.Resource()
	case len(resources) > 1 && slices.ContainsFunc(resources[1:], func(r string) bool { return r != resources[0] }):
		return "invalid_target", "one resource can be asked for at a time"
	case slices.Contains(strings.Fields(q.Get("prompt")), "none"):
		return "interaction_required", "consent is always asked of the person"
	}
	return "", ""
}

// onOffer gives what may be granted at most: what is asked for and was registered; no scope asked for is all that was.
func onOffer(c Client, asked string) (write, stay bool) {
	all := c.Scope
	if !account.HasScope(all, account.ScopeRead) && !account.HasScope(all, account.ScopeWrite) { // it registered none of the two
		all += " " + account.ScopeRead + " " + account.ScopeWrite
	}
	scope := known(asked)
	if strings.TrimSpace(asked) == "" {
		scope = all
	}
	write = account.HasScope(scope, account.ScopeWrite) && account.HasScope(all, account.ScopeWrite)
	stay = account.HasScope(scope, account.ScopeStay) || account.HasScope(all, account.ScopeStay) || slices.Contains(c.GrantTypes, grantRefresh)
	return write, stay
}

// answer is where the browser goes with the answer to a request (RFC 6749 section 4.1.2, RFC 9207).
func (s *Service) answer(r request, params url.Values) string {
	if r.HasState {
		params.Set("state", r.State)
	}
	params.Set("iss", s.Issuer())
	sep := "?"
	if strings.Contains(r.Redirect, "?") {
		sep = "&"
	}
	return r.Redirect + sep + params.Encode()
}

// pairingSigns are those of pairing codes: none looks like another, and no word comes about.
const pairingSigns = "BCDFGHJKMNPQRSTVWXZ23456789"

// pairing gives an attempt's pairing code: always the same, and known to nobody without the server's secret.
func (s *Service) pairing(id string) string {
	b := s.derive("pairing", id)
	out := make([]byte, 0, 9)
	for i := range 8 {
		if i == 4 {
			out = append(out, '-')
		}
		n := int(b[2*i])<<8 | int(b[2*i+1])
		out = append(out, pairingSigns[n%len(pairingSigns)])
	}
	return string(out)
}

// pairingHash is what is stored of a pairing code, as it may be typed: without regard to case, spaces and dashes.
func (s *Service) pairingHash(code string) string {
	code = strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' || r == '\u00a0' || r == '\u2010' || r == '\u2011' || r == '\u2013' {
			return -1
		}
		return r
	}, strings.ToUpper(code))
	return s.token("pairing hash", code)
}

func (s *Service) find(ctx context.Context, where string, args ...any) (attempt, error) {
	var a attempt
	var text string
	err := s.db.One(ctx, attemptSelect+where, args, a.dest(&text)...)
	if err == nil {
		err = json.Unmarshal([]byte(text), &a.request)
	}
	return a, err
}

const attemptSelect = `SELECT id, client, request, state, address, user_agent, recipient, decided_by, decision, created_at, expires_at FROM oauth_attempt WHERE `

func (a *attempt) dest(text *string) []any {
	return []any{&a.id, &a.client, text, &a.state, &a.address, &a.agent, &a.recipient, &a.decidedBy, &a.decision, &a.created, &a.expires}
}

// Look gives an attempt as the browser that began it may see it. Any other browser is told what it is told of one that
// doesn't exist.
func (s *Service) Look(ctx context.Context, id, browser string) (View, error) {
	if !storable(id) {
		id = ""
	}
	a, err := s.find(ctx, `id = $1 AND cookie = $2`, id, sum(browser))
	if db.IsNone(err) {
		return View{}, fault.New(fault.NotFound, "there is no such request in this browser, or it is too old")
	}
	if err != nil {
		return View{}, err
	}
	return s.view(ctx, a, true)
}

// view makes what pages show; mine says that it is for the browser that asked.
func (s *Service) view(ctx context.Context, a attempt, mine bool) (View, error) {
	v := View{ID: a.id, State: a.state, ClientID: a.client, ClientName: a.ClientName, ClientKind: a.ClientKind, Redirect: a.Redirect,
		Write: a.Write, Stay: a.Stay, Address: a.address, UserAgent: a.agent, CreatedAt: a.created, ExpiresAt: a.expires, Routed: a.recipient != nil}
	if a.recipient != nil {
		v.recipient = *a.recipient
	}
	if (a.state == Open || a.state == Approved) && a.expires <= s.db.Now() {
		v.State = Expired
	}
	if v.ClientName == "" {
		v.ClientName = "A program without a name"
	}
	v.RedirectHost, v.Loopback = redirectHost(a.Redirect)
	if a.ClientKind == kindMetadata {
		if u, err := url.Parse(a.client); err == nil {
			v.ClientHost = u.Host
		}
	}
	if c, _, err := s.readClient(ctx, a.client); err == nil {
		v.ClientSince = c.CreatedAt
	} else if !db.IsNone(err) {
		return v, err
	}
	if mine {
		v.Pairing = s.pairing(a.id)
		switch v.State {
		case Approved:
			v.Continue = s.answer(a.request, url.Values{"code": {s.code(a.id)}})
		case Rejected:
			v.Continue = s.answer(a.request, url.Values{"error": {"access_denied"}, "error_description": {"the person said no"}})
		}
	}
	return v, nil
}

// redirectHost names where an answer goes: host and port, or the scheme of a program's own.
func redirectHost(address string) (host string, loopback bool) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return address, false
	case u.Scheme != schemeHTTP && u.Scheme != schemeHTTPS:
		return u.Scheme + ":", false
	}
	return u.Host, u.Scheme == schemeHTTP // http to other hosts isn't taken
}

// code is an attempt's authorization code: derived, so that a page opened again finds the same one and only its hash is kept.
func (s *Service) code(id string) string { return s.token("code", id) }

// Route sends an attempt to the account with a name: it waits in that account's inbox, and nobody else can answer it from
// then on. Whether there is such an account isn't told.
func (s *Service) Route(ctx context.Context, id, browser, name string) error {
	if !storable(id) {
		id = ""
	}
	name = clean(name)
	return s.db.Write(ctx, func(tx *db.Tx) error {
		var state string
		var expires int64
		err := tx.One(`SELECT state, expires_at FROM oauth_attempt WHERE id = $1 AND cookie = $2`+tx.ForUpdate(), []any{id, sum(browser)}, &state, &expires)
		if db.IsNone(err) || err == nil && (state != Open || expires <= tx.Now) {
			return fault.New(fault.NotFound, "there is no such open request in this browser, or it is too old")
		}
		if err != nil {
			return err
		}
		recipient := "nobody" // no account's id: it can't be answered by anybody else either
		err = tx.One(`SELECT a.id FROM account a WHERE a.name_folded = $1 AND a.disabled_at IS NULL
			AND (SELECT count(*) FROM oauth_attempt t WHERE t.recipient = a.id AND t.state = 'open' AND t.expires_at > $2) < $3`, []any{who.Fold(name), tx.Now, mostInbox}, &recipient)
		if err != nil && !db.IsNone(err) {
			return err
		}
		_, err = tx.Exec(`UPDATE oauth_attempt SET recipient = $2 WHERE id = $1`, id, recipient)
		return err
	})
}

// mostInbox requests may wait for one account.
const mostInbox = 20

type requestsOut struct {
	Count    int         `json:"count"`
	Requests []requested `json:"requests"`
}

type requested struct {
	ID           string `json:"id"`
	ClientName   string `json:"client_name"`
	RedirectHost string `json:"redirect_host"`
	AsksWrite    bool   `json:"asks_write"`
	AsksStay     bool   `json:"asks_stay"`
	Address      string `json:"address"`
	UserAgent    string `json:"user_agent"`
	CreatedAt    string `json:"created_at"`
	ExpiresAt    string `json:"expires_at"`
}

func (s *Service) listRequests(ctx context.Context, _ struct{}) (requestsOut, error) {
	rows, err := s.db.Query(ctx, attemptSelect+`recipient = $1 AND state = 'open' AND expires_at > $2 ORDER BY created_at, id`, who.From(ctx).Account, s.db.Now())
	if err != nil {
		return requestsOut{}, err
	}
	defer rows.Close()
	var list []attempt
	for rows.Next() {
		var a attempt
		var text string
		if err := rows.Scan(a.dest(&text)...); err != nil {
			return requestsOut{}, err
		}
		if err := json.Unmarshal([]byte(text), &a.request); err != nil {
			return requestsOut{}, err
		}
		list = append(list, a)
	}
	out := requestsOut{Count: len(list), Requests: []requested{}}
	for _, a := range list { // not while the rows are open: each view takes a connection of its own
		v, err := s.view(ctx, a, false)
		if err != nil {
			return out, err
		}
		out.Requests = append(out.Requests, requested{v.ID, v.ClientName, v.RedirectHost, v.Write, v.Stay, v.Address, v.UserAgent, op.Stamp(v.CreatedAt), op.Stamp(v.ExpiresAt)})
	}
	return out, rows.Err()
}

type rejectIn struct {
	Request string `json:"request" rule:"required,uuid,max=300"`
}

type rejectOut struct {
	ID     string `json:"id"`
	Result string `json:"result"`
}

func (s *Service) rejectRequest(ctx context.Context, in rejectIn) (out rejectOut, err error) {
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		c := who.From(ctx)
		var state string
		err := tx.One(`SELECT state FROM oauth_attempt WHERE id = $1 AND recipient = $2`+tx.ForUpdate(), []any{in.Request, c.Account}, &state)
		if db.IsNone(err) {
			return fault.New(fault.NotFound, "there is no request %q for you", in.Request)
		}
		if err != nil {
			return err
		}
		if out = (rejectOut{in.Request, "existing"}); state != Open {
			return nil
		}
		out.Result = "updated"
		return reject(ctx, tx, in.Request, c.Account)
	})
	return out, err
}

func reject(ctx context.Context, tx *db.Tx, id, by string) error {
	n, err := tx.Exec(`UPDATE oauth_attempt SET state = 'rejected', decided_by = $2, decided_at = $3 WHERE id = $1 AND state = 'open' AND expires_at > $3`, id, by, tx.Now)
	if err != nil {
		return err
	}
	if n == 0 {
		return errAnswered
	}
	return audit.WriteEvent(ctx, tx, audit.ConsentRejected, id)
}

// errAnswered is what whoever comes second gets.
var errAnswered = fault.New(fault.Conflict, "this request was answered already, or it is too old")
