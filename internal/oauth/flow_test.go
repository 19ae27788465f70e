package oauth_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"cairn/internal/apptest"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/oauth"
	"cairn/internal/who"
)

const (
	callback = "http://127.0.0.1/callback"
	verifier = "a-verifier-of-forty-three-characters-or-more.~_"
	program  = `{"client_name":"Robin's program","redirect_uris":["` + callback + `"],"grant_types":["authorization_code","refresh_token"]}`
)

// world is an application that programs connect to.
type world struct {
	*apptest.App
	sent atomic.Int64
}

// each runs f on both databases.
func each(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) { f(t, &world{App: a}) })
}

// elsewhere gives another address for each request: limits per address have tests of their own.
func (w *world) elsewhere() string {
	n := w.sent.Add(1)
	return fmt.Sprintf("198.18.%d.%d", n/250, n%250+1)
}

// post sends a form.
func (w *world) post(t testing.TB, path string, form url.Values) apptest.Response {
	t.Helper()
	return w.Do(t, "POST", path, form.Encode(), "Content-Type: application/x-www-form-urlencoded", "X-Forwarded-For: "+w.elsewhere())
}

// register takes a client in and gives its id.
func (w *world) register(t testing.TB, metadata string) string {
	t.Helper()
	r := w.Do(t, "POST", "/oauth/register", metadata, "Content-Type: application/json", "X-Forwarded-For: "+w.elsewhere())
	var out oauth.Registered
	apptest.Decode(t, []byte(r.Body), &out)
	if r.Status != http.StatusCreated || out.ID == "" {
		t.Fatalf("register: %d %s", r.Status, r.Body)
	}
	return out.ID
}

// challenge is what a client sends ahead of its verifier.
func challenge(verifier string) string {
	h := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(h[:])
}

// query is a good authorization request with some parameters ("name=value", "-name" to leave one out, "+name=value" to add
// one more) put otherwise.
func (w *world) query(client string, changes ...string) url.Values {
	q := url.Values{"client_id": {client}, "redirect_uri": {"http://127.0.0.1:51717/callback"}, "response_type": {"code"}, "state": {"s t&=ä"},
		"code_challenge": {challenge(verifier)}, "code_challenge_method": {"S256"}, "resource": {w.OAuth.Resource()}}
	for _, c := range changes {
		name, value, _ := strings.Cut(c, "=")
		switch name[0] {
		case '-':
			q.Del(name[1:])
		case '+':
			q.Add(name[1:], value)
		default:
			q.Set(name, value)
		}
	}
	return q
}

// begin starts an attempt that must be taken.
func (w *world) begin(t testing.TB, browser string, q url.Values) oauth.View {
	t.Helper()
	v, err := w.OAuth.Begin(context.Background(), q, browser, oauth.From{Address: "192.0.2.7", UserAgent: "a browser"})
	if err != nil {
		t.Fatalf("begin: %v", err)
	}
	return v
}

// everything is a choice that gives all there is in the person's heaps.
func everything(ctx context.Context) oauth.Choice {
	return oauth.Choice{Connect: true, Name: "Robin", Heaps: who.IDs(who.From(ctx).Heaps), Write: true, Stay: true}
}

// key is what a client holds once it was let in.
type key struct {
	oauth.Tokens
	client, agent, browser, code string
	view                         oauth.View
}

// approve lets a person say yes and gives where the browser goes on to.
func (w *world) approve(t testing.TB, ctx context.Context, v oauth.View, browser string, c oauth.Choice) *url.URL {
	t.Helper()
	if err := w.OAuth.Decide(ctx, v, who.From(ctx), c); err != nil {
		t.Fatalf("decide: %v", err)
	}
	v, err := w.OAuth.Look(ctx, v.ID, browser)
	if err != nil || v.State != oauth.Approved {
		t.Fatalf("after the decision: %v %v", v.State, err)
	}
	u, err := url.Parse(v.Continue)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// exchange is the form with which a code is redeemed.
func (w *world) exchange(client, code string) url.Values {
	return url.Values{"grant_type": {"authorization_code"}, "client_id": {client}, "code": {code}, "code_verifier": {verifier},
		"redirect_uri": {"http://127.0.0.1:51717/callback"}, "resource": {w.OAuth.Resource()}}
}

func (w *world) refreshing(k key) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "client_id": {k.client}, "refresh_token": {k.Refresh}}
}

// letIn goes the whole way for a person. changes are those of query.
func (w *world) letIn(t testing.TB, ctx context.Context, c oauth.Choice, changes ...string) key {
	t.Helper()
	k := key{client: w.register(t, program), browser: oauth.Browser("")}
	k.view = w.begin(t, k.browser, w.query(k.client, changes...))
	k.code = w.approve(t, ctx, k.view, k.browser, c).Query().Get("code")
	k.Tokens = w.tokens(t, w.exchange(k.client, k.code))
	if err := w.DB.One(ctx, `SELECT agent FROM connection ORDER BY created_at DESC, id DESC LIMIT 1`, nil, &k.agent); err != nil {
		t.Fatal(err)
	}
	return k
}

// tokens sends a token request that must work.
func (w *world) tokens(t testing.TB, form url.Values) (out oauth.Tokens) {
	t.Helper()
	r := w.post(t, "/oauth/token", form)
	if r.Status != http.StatusOK {
		t.Fatalf("token: %d %s", r.Status, r.Body)
	}
	if r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("a token answer may be stored: %q", r.Header.Get("Cache-Control"))
	}
	apptest.Decode(t, []byte(r.Body), &out)
	return out
}

// refused sends a token request that must fail with an OAuth error.
func (w *world) refused(t testing.TB, form url.Values, status int, code string) {
	t.Helper()
	r := w.post(t, "/oauth/token", form)
	if r.Status != status || errorOf(t, r) != code {
		t.Errorf("token: %d %s, want %d %s", r.Status, r.Body, status, code)
	}
}

// errorOf reads an OAuth error; it must be JSON with a code and a description.
func errorOf(t testing.TB, r apptest.Response) string {
	t.Helper()
	var e struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if err := json.Unmarshal([]byte(r.Body), &e); err != nil || e.Error == "" || e.Description == "" || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		t.Fatalf("no OAuth error: %d %s %q", r.Status, r.Header.Get("Content-Type"), r.Body)
	}
	return e.Error
}

// call calls a tool with a bearer.
func (w *world) call(t testing.TB, token, tool, args string) apptest.Response {
	t.Helper()
	return w.Do(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":`+strconv.Quote(tool)+`,"arguments":`+args+`}}`,
		"Content-Type: application/json", "Authorization: Bearer "+token)
}

// answers says which status a read gets with a bearer.
func (w *world) answers(t testing.TB, token string, status int) apptest.Response {
	t.Helper()
	r := w.call(t, token, "list_heaps", `{}`)
	if r.Status != status {
		t.Errorf("list_heaps: %d %s, want %d", r.Status, r.Body, status)
	}
	return r
}

// count runs a query that gives one number.
func (w *world) count(t testing.TB, q string, args ...any) (n int) {
	t.Helper()
	if err := w.DB.One(context.Background(), q, args, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (w *world) events(t testing.TB, event string) int {
	t.Helper()
	return w.count(t, `SELECT count(*) FROM audit_event WHERE event = $1`, event)
}

// isFault wants a fault of a kind.
func isFault(t testing.TB, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("%v, want %s", err, kind.Wire().Name)
	}
}

func TestProgramConnectsFromRegistrationToCall(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		client := w.register(t, program)
		browser := oauth.Browser("")
		v := w.begin(t, browser, w.query(client))
		if v.State != oauth.Open || v.ClientName != "Robin's program" || v.RedirectHost != "127.0.0.1:51717" || !v.Loopback || !v.Write || !v.Stay || v.Continue != "" {
			t.Errorf("the consent page would show %+v", v)
		}
		to := w.approve(t, ben, v, browser, everything(ben))
		q := to.Query()
		if to.Host != "127.0.0.1:51717" || to.Path != "/callback" || q.Get("state") != "s t&=ä" || q.Get("iss") != w.OAuth.Issuer() || q.Get("code") == "" || q.Has("error") {
			t.Errorf("the browser goes to %s", to)
		}
		out := w.tokens(t, w.exchange(client, q.Get("code")))
		if out.Type != "Bearer" || out.ExpiresIn != 3600 || out.Scope != "cairn.read cairn.write offline_access" || out.Refresh == "" {
			t.Errorf("tokens: %+v", out)
		}
		r := w.Do(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Content-Type: application/json", "Authorization: Bearer "+out.Access)
		if r.Status != http.StatusOK || !strings.Contains(r.Body, `"create_personal_task"`) || r.Header.Get("X-RateLimit-Limit") != "1000" {
			t.Errorf("tools/list: %d %v %.300s", r.Status, r.Header, r.Body)
		}
		if r := w.call(t, out.Access, "create_personal_task", `{"name":"Water the ferns"}`); r.Status != http.StatusOK || !strings.Contains(r.Body, "Water the ferns") {
			t.Errorf("the write: %d %s", r.Status, r.Body)
		}
		if tasks := string(w.Call(t, ben, "list_tasks", `{}`)); !strings.Contains(tasks, "Water the ferns") {
			t.Errorf("Ben sees %s", tasks)
		}
		if n := w.events(t, "agentConnected"); n != 1 {
			t.Errorf("%d agents are recorded as connected", n)
		}
		if n := w.count(t, `SELECT count(*) FROM oauth_client WHERE id = $1 AND used_at IS NOT NULL`, client); n != 1 {
			t.Error("a program that was let in counts as one that never was")
		}
	})
}

func TestPersonSaysNoAndProgramHearsIt(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		client := w.register(t, program)
		for name, no := range map[string]func(v oauth.View, browser string) error{
			"signed in": func(v oauth.View, _ string) error { return w.OAuth.Decide(ben, v, who.From(ben), oauth.Choice{}) },
			"without": func(v oauth.View, b string) error {
				return w.OAuth.Cancel(context.Background(), v.ID, b, oauth.From{Address: "192.0.2.7"})
			},
			"in an inbox": func(v oauth.View, b string) error {
				if err := w.OAuth.Route(context.Background(), v.ID, b, "ben"); err != nil {
					return err
				}
				w.Call(t, ben, "reject_request", `{"request":"`+v.ID+`"}`)
				if s := string(w.Call(t, ben, "reject_request", `{"request":"`+v.ID+`"}`)); !strings.Contains(s, "existing") {
					t.Errorf("rejected twice: %s", s)
				}
				return nil
			},
		} {
			browser := oauth.Browser("")
			v := w.begin(t, browser, w.query(client))
			if err := no(v, browser); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			v, err := w.OAuth.Look(context.Background(), v.ID, browser)
			if err != nil || v.State != oauth.Rejected {
				t.Fatalf("%s: %v %v", name, v.State, err)
			}
			u, _ := url.Parse(v.Continue)
			if q := u.Query(); q.Get("error") != "access_denied" || q.Get("iss") != w.OAuth.Issuer() || q.Get("state") != "s t&=ä" || q.Has("code") {
				t.Errorf("%s: the browser goes to %s", name, v.Continue)
			}
			isFault(t, w.OAuth.Decide(ben, v, who.From(ben), everything(ben)), fault.Conflict)
		}
		if n := w.events(t, "consentRejected"); n != 3 {
			t.Errorf("%d rejections are recorded", n)
		}
	})
}

// What the client got wrong, once it is certain who it is and where its answers go, is told to the client (RFC 6749
// section 4.1.2.1), with iss (RFC 9207).
func TestClientIsToldOfItsMistakes(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		client := w.register(t, program)
		for name, c := range map[string]struct{ code, change string }{
			"no PKCE":                  {"invalid_request", "-code_challenge"},
			"plain PKCE":               {"invalid_request", "code_challenge_method=plain"},
			"PKCE without a method":    {"invalid_request", "-code_challenge_method"},
			"a short challenge":        {"invalid_request", "code_challenge=abc"},
			"a challenge not base64":   {"invalid_request", "code_challenge=" + strings.Repeat("=", 43)},
			"token instead of code":    {"unsupported_response_type", "response_type=token"},
			"no response type":         {"unsupported_response_type", "-response_type"},
			"another's resource":       {"invalid_target", "resource=https://other.example/mcp"},
			"a resource too deep":      {"invalid_target", "resource=" + w.OAuth.Issuer() + "/mcp/x"},
			"the server as resource":   {"invalid_target", "resource=" + w.OAuth.Issuer()},
			"a resource with fragment": {"invalid_target", "resource=" + w.OAuth.Resource() + "#x"},
			"two resources":            {"invalid_target", "+resource=https://other.example/mcp"},
			"a scope twice":            {"invalid_request", "+scope=cairn.read"},
			"a challenge twice":        {"invalid_request", "+code_challenge=" + challenge("another")},
			"a request object":         {"request_not_supported", "request=eyJ"},
			"a request by address":     {"request_uri_not_supported", "request_uri=https://other.example/r"},
			"no question to anybody":   {"interaction_required", "prompt=none"},
		} {
			t.Run(name, func(t *testing.T) {
				q := w.query(client, c.change)
				if c.change[0] == '+' && strings.Contains(c.change, "scope") {
					q.Add("scope", "cairn.write")
				}
				_, err := w.OAuth.Begin(context.Background(), q, oauth.Browser(""), oauth.From{})
				var sent *oauth.Sent
				if !errors.As(err, &sent) {
					t.Fatalf("%v, want it told to the client", err)
				}
				u, _ := url.Parse(sent.Address)
				if a := u.Query(); u.Host != "127.0.0.1:51717" || a.Get("error") != c.code || a.Get("iss") != w.OAuth.Issuer() || a.Get("state") != "s t&=ä" || a.Get("error_description") == "" {
					t.Errorf("sent to %s, want %s", sent.Address, c.code)
				}
			})
		}
		if n := w.count(t, `SELECT count(*) FROM oauth_attempt`); n != 0 {
			t.Errorf("%d attempts were kept of wrong requests", n)
		}
	})
}

func TestOversizedStateIsNotSentBack(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		_, err := w.OAuth.Begin(context.Background(), w.query(w.register(t, program), "state="+strings.Repeat("x", 3000)), oauth.Browser(""), oauth.From{})
		var sent *oauth.Sent
		if !errors.As(err, &sent) || len(sent.Address) > 500 || !strings.Contains(sent.Address, "error=invalid_request") {
			t.Errorf("%v", err)
		}
		v := w.begin(t, oauth.Browser(""), w.query(w.register(t, program), "-state"))
		if err := w.OAuth.Decide(context.Background(), v, who.From(w.Person(t)), oauth.Choice{}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestResourceIsTakenInEveryWriting(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		for _, resource := range []string{w.OAuth.Resource() + "/", w.OAuth.Resource() + "?tools=tasks", strings.Replace(w.OAuth.Resource(), "http:", "HTTP:", 1)} {
			k := w.letIn(t, ben, everything(ben), "resource="+resource)
			if got := claims(t, k.Access)["aud"]; got != w.OAuth.Resource() {
				t.Errorf("%s: the audience is %v", resource, got)
			}
			w.answers(t, k.Access, http.StatusOK)
			again := w.refreshing(k)
			again.Set("resource", resource)
			w.tokens(t, again)
		}
		k := w.letIn(t, ben, everything(ben), "-resource")
		w.answers(t, k.Access, http.StatusOK)
	})
}

// CASES 44a.
func TestRedirectFitsOnLoopbackPortsAlone(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		fixed := w.register(t, `{"redirect_uris":["http://127.0.0.1/callback","http://localhost/callback","http://[::1]/callback","http://127.0.0.1:33418","https://app.example/cb","https://app.example:8443/cb?a=1","com.example.app:/cb"]}`)
		for redirect, right := range map[string]bool{
			"http://127.0.0.1:51717/callback":                   true,
			"http://127.0.0.1/callback":                         true,
			"http://localhost:51717/callback":                   true,
			"http://[::1]:51717/callback":                       true,
			"http://127.0.0.1:33418":                            true,
			"http://127.0.0.1:33418/":                           true,
			"http://127.0.0.1:9":                                true,
			"https://app.example/cb":                            true,
			"https://app.example:8443/cb?a=1":                   true,
			"com.example.app:/cb":                               true,
			"http://127.0.0.1:51717/callback/":                  false,
			"http://127.0.0.1:51717/other":                      false,
			"http://127.0.0.1:51717/callback?x=1":               false,
			"http://127.0.0.1:51717/callback#x":                 false,
			"http://127.0.0.1:51717/a/../callback":              false,
			"https://127.0.0.1:51717/callback":                  false,
			"http://127.0.0.2:51717/callback":                   false,
			"http://0.0.0.0:51717/callback":                     false,
			"http://127.1:51717/callback":                       false,
			"http://2130706433:51717/callback":                  false,
			"http://127.0.0.1.example.org:1/callback":           false,
			"http://localhost.evil.example:1/callback":          false,
			"http://localhost@evil.example/callback":            false,
			"http://127.0.0.1:1@evil.example/callback":          false,
			"http://evil.example/callback":                      false,
			`http://127.0.0.1:1\@evil.example/callback`:         false,
			"https://app.example:444/cb":                        false,
			"https://app.example/cb/":                           false,
			"https://app.example/CB":                            false,
			"https://APP.example/cb":                            false,
			"https://app.example/cb?x":                          false,
			"https://app.example.evil.example/cb":               false,
			"http://app.example/cb":                             false,
			"https://app.example:8443/cb":                       false,
			"com.example.app:/other":                            false,
			"com.example.app://evil.example/cb":                 false,
			"javascript:alert(1)":                               false,
			"//evil.example/cb":                                 false,
			"/callback":                                         false,
			"http://127.0.0.1:51717/callback\r\nLocation: x":    false,
			"http://127.0.0.1:51717/callback\x00":               false,
			"http://127.0.0.1:99999999999999999999999/callback": false,
		} {
			t.Run(redirect, func(t *testing.T) {
				v, err := w.OAuth.Begin(context.Background(), w.query(fixed, "redirect_uri="+redirect), oauth.Browser(""), oauth.From{})
				if right {
					if err != nil || v.Redirect != redirect {
						t.Errorf("refused: %v", err)
					}
					return
				}
				ownPage(t, err)
			})
		}
	})
}

// ownPage wants a request refused where nothing is sent anywhere.
func ownPage(t testing.TB, err error) {
	t.Helper()
	var bad *oauth.BadRequest
	if !errors.As(err, &bad) || bad.Message == "" {
		t.Errorf("%v, want it refused on our own page", err)
	}
}

func TestNothingIsSentBeforeTheClientIsCertain(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		one, two := w.register(t, program), w.register(t, `{"redirect_uris":["https://a.example/cb","https://b.example/cb"]}`)
		for name, q := range map[string]url.Values{
			"no client":                  w.query(one, "-client_id"),
			"an empty client":            w.query(""),
			"an unknown client":          w.query("01890000-0000-7000-8000-00000000abcd"),
			"two clients":                w.query(one, "+client_id="+two),
			"one client twice":           w.query(one, "+client_id="+one),
			"a client too long":          w.query(strings.Repeat("x", 5000)),
			"a document, none are taken": w.query("https://app.example/client.json"),
			"no redirect of two":         w.query(two, "-redirect_uri"),
			"two redirects":              w.query(one, "+redirect_uri=http://127.0.0.1:1/callback"),
			"an empty redirect":          w.query(one, "redirect_uri="),
			"another client's redirect":  w.query(one, "redirect_uri=https://a.example/cb"),
			"errors too, no client":      w.query("nobody", "-code_challenge"),
			"errors too, bad redirect":   w.query(one, "redirect_uri=https://evil.example/", "response_type=token"),
			"a NUL in the client":        w.query("a\x00b"),
			"no UTF-8 in the client":     w.query("a\xff"),
		} {
			t.Run(name, func(t *testing.T) {
				_, err := w.OAuth.Begin(context.Background(), q, oauth.Browser(""), oauth.From{})
				ownPage(t, err)
			})
		}
		if v := w.begin(t, oauth.Browser(""), w.query(one, "-redirect_uri")); v.Redirect != callback {
			t.Errorf("the one registered address was not taken: %q", v.Redirect)
		}
	})
}

func caller(ctx context.Context) *who.Caller { return who.From(ctx) }

// RFC 9700 section 4.11.2: whoever registers must not use this server's name to lead people to a page of theirs.
func TestStrangersMistakeLeadsNowhereByItself(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		hosted := `{"redirect_uris":["https://program.example/back"]}`
		client := w.register(t, hosted)
		q := url.Values{"client_id": {client}, "redirect_uri": {"https://program.example/back"}, "response_type": {"token"}, "state": {"s"}}
		faulty := func() *oauth.Sent {
			var sent *oauth.Sent
			if _, err := w.OAuth.Begin(context.Background(), q, oauth.Browser(""), oauth.From{}); !errors.As(err, &sent) {
				t.Fatalf("%v", err)
			}
			return sent
		}
		if s := faulty(); !s.Stranger || s.Host != "program.example" {
			t.Errorf("a client that nobody let in: %+v", s)
		}
		r := w.Do(t, "GET", "/oauth/authorize?"+q.Encode(), "", "Accept: text/html")
		if r.Status != 400 || r.Header.Get("Location") != "" || !strings.Contains(r.Body, `href="https://program.example/back?error=`) {
			t.Errorf("%d %q %s", r.Status, r.Header.Get("Location"), r.Body)
		}
		err := w.DB.Write(context.Background(), func(tx *db.Tx) error {
			_, err := tx.Exec(`UPDATE oauth_client SET used_at = 1 WHERE id = $1`, client)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if s := faulty(); s.Stranger {
			t.Errorf("a client that somebody let in: %+v", s)
		}
	})
}
