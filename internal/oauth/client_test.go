package oauth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"crypto/x509"

	"cairn/internal/apptest"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/fetch"
	"cairn/internal/oauth"
	"cairn/internal/who"
)

func TestRegistrationRefuses(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		redirect := func(u string) string {
			b, _ := json.Marshal(u)
			return `{"redirect_uris":[` + string(b) + `]}`
		}
		for _, c := range []struct{ name, body, code string }{
			{"javascript", redirect("javascript:alert(1)"), "invalid_redirect_uri"},
			{"JavaScript", redirect("JaVaScRiPt:alert(1)"), "invalid_redirect_uri"},
			{"data", redirect("data:text/html,x"), "invalid_redirect_uri"},
			{"vbscript", redirect("vbscript:x"), "invalid_redirect_uri"},
			{"file", redirect("file:///etc/passwd"), "invalid_redirect_uri"},
			{"http to another host", redirect("http://app.example/cb"), "invalid_redirect_uri"},
			{"http to this network", redirect("http://192.168.1.2/cb"), "invalid_redirect_uri"},
			{"http to every address", redirect("http://0.0.0.0/cb"), "invalid_redirect_uri"},
			{"a name that begins like this device's", redirect("http://localhost.evil.example/cb"), "invalid_redirect_uri"},
			{"a host that ends the page's policy", redirect("https://e.example;script-src/"), "invalid_redirect_uri"},
			{"a host that begins another policy", redirect("https://a,b/"), "invalid_redirect_uri"},
			{"a host that stands for all", redirect("https://*/"), "invalid_redirect_uri"},
			{"a fragment", redirect("https://app.example/cb#x"), "invalid_redirect_uri"},
			{"an empty fragment", redirect("https://app.example/cb#"), "invalid_redirect_uri"},
			{"a user", redirect("https://app.example@evil.example/cb"), "invalid_redirect_uri"},
			{"a backslash", redirect(`https://app.example\@evil.example/cb`), "invalid_redirect_uri"},
			{"a line break", redirect("https://app.example/cb\r\nX: y"), "invalid_redirect_uri"},
			{"NUL", redirect("https://app.example/cb\x00"), "invalid_redirect_uri"},
			{"a space", redirect("https://app.example/c b"), "invalid_redirect_uri"},
			{"a letter that isn't ASCII", redirect("https://exämple.example/cb"), "invalid_redirect_uri"},
			{"no host", redirect("https:///cb"), "invalid_redirect_uri"},
			{"no scheme", redirect("//app.example/cb"), "invalid_redirect_uri"},
			{"no address", redirect(""), "invalid_redirect_uri"},
			{"a scheme alone", redirect("app:"), "invalid_redirect_uri"},
			{"a port too high", redirect("http://127.0.0.1:65536/cb"), "invalid_redirect_uri"},
			{"one bad of two", `{"redirect_uris":["https://app.example/cb","javascript:x"]}`, "invalid_redirect_uri"},
			{"too long", redirect("https://app.example/" + strings.Repeat("x", 2048)), "invalid_redirect_uri"},
			{"too many", `{"redirect_uris":["https://a.example"` + strings.Repeat(`,"https://a.example"`, 20) + `]}`, "invalid_redirect_uri"},
			{"none", `{}`, "invalid_redirect_uri"},
			{"an empty list", `{"redirect_uris":[]}`, "invalid_redirect_uri"},
			{"not a list", `{"redirect_uris":"https://app.example/cb"}`, "invalid_client_metadata"},
			{"not a name", `{"client_name":5,"redirect_uris":["https://app.example/cb"]}`, "invalid_client_metadata"},
			{"a name too long", `{"client_name":"` + strings.Repeat("x", 201) + `","redirect_uris":["https://app.example/cb"]}`, "invalid_client_metadata"},
			{"another grant", `{"grant_types":["client_credentials"],"redirect_uris":["https://app.example/cb"]}`, "invalid_client_metadata"},
			{"another response", `{"response_types":["token"],"redirect_uris":["https://app.example/cb"]}`, "invalid_client_metadata"},
			{"a list", `[]`, "invalid_client_metadata"},
			{"not JSON", `redirect_uris=x`, "invalid_client_metadata"},
			{"nothing", ``, "invalid_client_metadata"},
			{"no UTF-8", "{\"client_name\":\"\xff\"}", "invalid_client_metadata"},
		} {
			t.Run(c.name, func(t *testing.T) {
				r := w.Do(t, "POST", "/oauth/register", c.body, "Content-Type: application/json", "X-Forwarded-For: "+w.elsewhere())
				if r.Status != http.StatusBadRequest || errorOf(t, r) != c.code {
					t.Errorf("%d %s, want %s", r.Status, r.Body, c.code)
				}
			})
		}
		for name, c := range map[string]struct {
			body, contentType string
			status            int
		}{"too large": {`{"client_name":"` + strings.Repeat("x", 40000) + `"}`, "application/json", 413}, "a form": {"a=b", "application/x-www-form-urlencoded", 415}} {
			if r := w.Do(t, "POST", "/oauth/register", c.body, "Content-Type: "+c.contentType, "X-Forwarded-For: "+w.elsewhere()); r.Status != c.status || errorOf(t, r) != "invalid_client_metadata" {
				t.Errorf("%s: %d %s", name, r.Status, r.Body)
			}
		}
		if n := w.count(t, `SELECT count(*) FROM oauth_client`); n != 0 {
			t.Errorf("%d refused clients are kept", n)
		}
	})
}

func TestRegistrationAnswersWhatCounts(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		body := `{"client_name":" \u202eA <script>alert(1)</script>\u0007\u0000 program\u200b ","redirect_uris":["https://app.example/cb"],"token_endpoint_auth_method":"client_secret_basic",
			"grant_types":["refresh_token","authorization_code","urn:x"],"response_types":["code","token"],"scope":"openid heaper.mcp.write cairn.read admin","logo_uri":"https://evil.example/x.png",
			"jwks":{"keys":[]},"contacts":["a@b.example"],"software_id":"s\u0000","unheard_of":{"a":[1]}}`
		r := w.Do(t, "POST", "/oauth/register", body, "Content-Type: application/json")
		var out map[string]any
		apptest.Decode(t, []byte(r.Body), &out)
		if r.Status != http.StatusCreated || out["token_endpoint_auth_method"] != "none" || out["scope"] != "cairn.read cairn.write" || out["client_name"] != "A <script>alert(1)</script> program" || out["software_id"] != "s" ||
			fmt.Sprint(out["grant_types"]) != "[refresh_token authorization_code]" || out["client_secret"] != nil || out["logo_uri"] != nil || out["client_id_issued_at"] == nil {
			t.Errorf("%d %s", r.Status, r.Body)
		}
		if r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("headers: %v", r.Header)
		}
		_, err := w.OAuth.Begin(context.Background(), w.query("a\x00b"), oauth.Browser(""), oauth.From{})
		ownPage(t, err)
	})
}

// CASES 44d.
func TestRegistrationsStayBounded(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		live := w.letIn(t, ben, everything(ben))
		var waiting string
		register := func(from, to int) {
			var wg sync.WaitGroup
			for part := range 10 {
				wg.Go(func() {
					for i := from + part; i < to; i += 10 {
						_, err := w.OAuth.Register(context.Background(), []byte(program), oauth.From{Address: fmt.Sprintf("2001:db8:0:%x::1", i/20)})
						if err != nil && !strings.Contains(err.Error(), "temporarily_unavailable") {
							t.Errorf("registration %d: %v", i, err)
							return
						}
					}
				})
			}
			wg.Wait()
		}
		waiting = w.register(t, program)
		register(0, 5000)
		w.Clock.Move(9 * time.Minute)
		w.begin(t, oauth.Browser(""), w.query(waiting)) // registered long ago, and somebody looks at it now
		w.Clock.Move(2 * time.Minute)
		register(5000, 10000)
		if n := w.count(t, `SELECT count(*) FROM oauth_client`); n > 5015 {
			t.Errorf("%d clients are kept", n)
		}
		w.tokens(t, w.refreshing(live))
		w.begin(t, oauth.Browser(""), w.query(waiting))
		w.Clock.Move(25 * time.Hour)
		if err := w.OAuth.Purge(context.Background(), w.DB); err != nil {
			t.Fatal(err)
		}
		if n := w.count(t, `SELECT count(*) FROM oauth_client`); n != 1 {
			t.Errorf("%d clients are left a day later", n)
		}
	})
}

func TestOneAddressIsCapped(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		taken := 0
		for i := range 300 {
			r := w.Do(t, "POST", "/oauth/register", program, "Content-Type: application/json", "X-Forwarded-For: 192.0.2.50")
			switch r.Status {
			case http.StatusCreated:
				taken++
			case http.StatusTooManyRequests:
				if r.Header.Get("Retry-After") == "" || errorOf(t, r) == "" {
					t.Fatalf("%d: %v %s", i, r.Header, r.Body)
				}
			default:
				t.Fatalf("%d: %d %s", i, r.Status, r.Body)
			}
		}
		if taken != 30 {
			t.Errorf("%d of 300 were taken", taken)
		}
		w.register(t, program) // others aren't locked out
		hosted := strings.Replace(program, callback, "https://connector.example/cb", 1)
		w.register(t, hosted)
		for range 200 { // nor is a hosted connector that is known, from that address or any
			if r := w.Do(t, "POST", "/oauth/register", hosted, "Content-Type: application/json", "X-Forwarded-For: 192.0.2.50"); r.Status != http.StatusCreated {
				t.Fatalf("hosted: %d %s", r.Status, r.Body)
			}
		}
		if n := w.count(t, `SELECT count(*) FROM oauth_client WHERE data LIKE '%connector.example%'`); n != 1 {
			t.Errorf("the hosted connector has %d rows", n)
		}
	})
}

func TestClientMetadataDocument(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		var base string
		fetched := 0
		server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			fetched++
			doc := `{"client_id":"` + base + r.URL.Path + `","client_name":"Doc\u202ement","redirect_uris":["` + callback + `"],"grant_types":["authorization_code","refresh_token"]`
			switch r.URL.Path {
			case "/other":
				doc = strings.Replace(doc, "/other", "/another", 1)
			case "/moved":
				http.Redirect(rw, r, "/client.json", http.StatusFound)
				return
			case "/large":
				doc += `,"x":"` + strings.Repeat("x", 70000) + `"`
			case "/html":
				doc = "<html>"
			case "/none":
				rw.WriteHeader(http.StatusNotFound)
			case "/script":
				doc = strings.Replace(doc, callback, "javascript:alert(1)", 1)
			case "/address":
				doc = strings.Replace(doc, callback, "https://192.0.2.1/cb", 1)
			}
			_, _ = rw.Write([]byte(doc + "}"))
		}))
		t.Cleanup(server.Close)
		base = server.URL
		roots := x509.NewCertPool()
		roots.AddCert(server.Certificate())
		w.OAuth.Fetcher = fetch.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, roots, "test")
		id := base + "/client.json"
		w.refused(t, w.exchange(id, "x"), http.StatusUnauthorized, "invalid_client")
		if fetched != 0 {
			t.Error("the token endpoint fetched a document")
		}
		browser := oauth.Browser("")
		v := w.begin(t, browser, w.query(id))
		if v.ClientKind != "metadata" || "https://"+v.ClientHost != base || v.ClientName != "Docment" || !v.Stay {
			t.Errorf("shown: %+v", v)
		}
		code := w.approve(t, ben, v, browser, everything(ben)).Query().Get("code")
		k := key{client: id, Tokens: w.tokens(t, w.exchange(id, code))}
		w.answers(t, k.Access, http.StatusOK)
		w.begin(t, oauth.Browser(""), w.query(id))
		if fetched != 1 {
			t.Errorf("fetched %d times within the hour", fetched)
		}
		w.Clock.Move(2 * time.Hour)
		k.Tokens = w.tokens(t, w.refreshing(k))
		if fetched != 1 {
			t.Error("a refresh fetched the document")
		}
		w.begin(t, oauth.Browser(""), w.query(id))
		if fetched != 2 {
			t.Errorf("fetched %d times after an hour", fetched)
		}
		for _, bad := range []string{"/other", "/moved", "/large", "/html", "/none", "/script", "/address", "", "/", "/../client.json", "/client.json#x"} {
			_, err := w.OAuth.Begin(ben, w.query(base+bad), oauth.Browser(""), oauth.From{})
			if ownPage(t, err); t.Failed() {
				t.Fatalf("%q", bad)
			}
		}
		for _, bad := range []string{"https://127.0.0.1:1/client.json", "https://a@" + strings.TrimPrefix(id, "https://"), strings.Replace(id, "https:", "http:", 1)} {
			_, err := w.OAuth.Begin(ben, w.query(bad), oauth.Browser(""), oauth.From{})
			ownPage(t, err)
		}
		fetched = 0
		w.OAuth.Fetcher = fetch.New(nil, roots, "test")
		_, err := w.OAuth.Begin(ben, w.query(base+"/fresh.json"), oauth.Browser(""), oauth.From{})
		if ownPage(t, err); fetched != 0 {
			t.Error("a private address was reached")
		}
		w.OAuth.Fetcher = nil
		_, err = w.OAuth.Begin(ben, w.query(id), oauth.Browser(""), oauth.From{})
		ownPage(t, err)
		w.refused(t, w.refreshing(k), http.StatusUnauthorized, "invalid_client")
	})
}

func TestPairingCode(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben, ann := w.Account(t, "Ben"), w.Account(t, "Ann")
		client := w.register(t, program)
		begin := func() (oauth.View, string) {
			b := oauth.Browser("")
			return w.begin(t, b, w.query(client)), b
		}
		claim := func(ctx context.Context, code string) (oauth.View, error) {
			return w.OAuth.Claim(ctx, caller(ctx), code)
		}
		v, _ := begin()
		typed := strings.ToLower(" " + v.Pairing[:2] + " " + v.Pairing[2:4] + "  " + v.Pairing[5:] + " ")
		got, err := claim(ben, typed)
		if err != nil || got.ID != v.ID || got.Pairing != "" || got.Continue != "" {
			t.Fatalf("claimed %+v %v", got, err)
		}
		_, wrong := claim(ben, "BBBB-BBBB")
		isFault(t, wrong, fault.NotFound)
		same := func(name string, err error) {
			t.Helper()
			if err == nil || err.Error() != wrong.Error() {
				t.Errorf("%s: %v, want %v", name, err, wrong)
			}
		}
		routed, b := begin()
		if err := w.OAuth.Route(ben, routed.ID, b, "Ann"); err != nil {
			t.Fatal(err)
		}
		_, err = claim(ben, routed.Pairing)
		same("somebody else's", err)
		isFault(t, w.OAuth.Decide(ben, routed, caller(ben), everything(ben)), fault.Conflict)
		if _, err := claim(ann, routed.Pairing); err != nil {
			t.Errorf("Ann's own: %v", err)
		}
		decided, b := begin()
		w.approve(t, ben, decided, b, everything(ben))
		_, err = claim(ben, decided.Pairing)
		same("decided", err)
		rejected, b := begin()
		if err := w.OAuth.Cancel(ben, rejected.ID, b, oauth.From{}); err != nil {
			t.Fatal(err)
		}
		_, err = claim(ben, rejected.Pairing)
		same("rejected", err)
		_, err = claim(ben, "\x00\xff")
		same("nonsense", err)
		fresh, _ := begin()
		_, err = claim(ben, fresh.Pairing)
		same("the right one after five wrong ones", err)
		if _, err := claim(ann, fresh.Pairing); err != nil {
			t.Errorf("Ann is held up by what Ben typed: %v", err)
		}
		w.Clock.Move(2 * time.Minute)
		if _, err := claim(ben, fresh.Pairing); err != nil {
			t.Errorf("after the wait: %v", err)
		}
		w.Clock.Move(9 * time.Minute)
		_, err = claim(ben, fresh.Pairing)
		same("expired", err)
	})
}

func TestRequestIsSentToSomebodyByName(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben, ann := w.Account(t, "Ben"), w.Account(t, "Ann")
		client := w.register(t, program)
		look := func(name string) oauth.View {
			b := oauth.Browser("")
			v := w.begin(t, b, w.query(client))
			if err := w.OAuth.Route(context.Background(), v.ID, b, name); err != nil {
				t.Fatalf("%q: %v", name, err)
			}
			v, err := w.OAuth.Look(context.Background(), v.ID, b)
			if err != nil || !v.Routed || v.State != oauth.Open {
				t.Errorf("%q: %+v %v", name, v, err)
			}
			return v
		}
		known := look(" bEN ")
		for _, name := range []string{"Nobody", "", "\x00", "\xff"} {
			unknown := look(name)
			if err := w.OAuth.Decide(ben, unknown, caller(ben), everything(ben)); err == nil {
				t.Errorf("a request sent to %q was answered by Ben", name)
			}
		}
		if s := string(w.Call(t, ben, "list_requests", `{}`)); !strings.Contains(s, `"count":1`) || !strings.Contains(s, known.ID) || strings.Contains(s, known.Pairing) {
			t.Errorf("Ben's inbox: %s", s)
		}
		if s := string(w.Call(t, ann, "list_requests", `{}`)); !strings.Contains(s, `"count":0`) {
			t.Errorf("Ann's inbox: %s", s)
		}
		w.Fails(t, ann, "reject_request", `{"request":"`+known.ID+`"}`, fault.NotFound)
		ticket := w.OAuth.Ticket(known, caller(ann).Account)
		_, err := w.OAuth.Holder(ann, known, ticket)
		isFault(t, err, fault.NotFound)
		ticket = w.OAuth.Ticket(known, caller(ben).Account)
		if c, err := w.OAuth.Holder(ben, known, ticket); err != nil || c.Account != caller(ben).Account {
			t.Errorf("Ben's own ticket: %v", err)
		}
		for _, bad := range []string{"", "a.b.c", strings.Replace(ticket, caller(ben).Account, caller(ann).Account, 1), ticket + "x", look("Ben").ID + ticket[36:]} {
			if _, err := w.OAuth.Holder(ben, known, bad); err == nil {
				t.Errorf("the ticket %q was taken", bad)
			}
		}
		other := look("Ben")
		_, err = w.OAuth.Holder(ben, other, ticket)
		isFault(t, err, fault.Unauthenticated) // a ticket is for one attempt
	})
}

func TestAttemptBelongsToItsBrowser(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		client, browser, foreign := w.register(t, program), oauth.Browser(""), oauth.Browser("")
		if oauth.Browser(browser) != browser || oauth.Browser("short") == "short" || browser == foreign {
			t.Error("browsers are mixed up")
		}
		v := w.begin(t, browser, w.query(client))
		for name, id := range map[string]string{"another's": v.ID, "none": "01890000-0000-7000-8000-00000000abcd", "nonsense": "\x00", "empty": ""} {
			_, err := w.OAuth.Look(ben, id, foreign)
			isFault(t, err, fault.NotFound)
			isFault(t, w.OAuth.Route(ben, id, foreign, "Ben"), fault.NotFound)
			if err := w.OAuth.Cancel(ben, id, foreign, oauth.From{}); !fault.Is(err, fault.Conflict) {
				t.Errorf("cancel %s: %v", name, err)
			}
		}
		if again := w.begin(t, browser, w.query(client)); again.ID != v.ID {
			t.Error("the same request in the same browser began anew")
		}
		for _, other := range []oauth.View{w.begin(t, foreign, w.query(client)), w.begin(t, browser, w.query(client, "state=2")), w.begin(t, browser, w.query(client, "scope=cairn.read")),
			w.begin(t, browser, w.query(client, "code_challenge="+challenge("another")))} {
			if other.ID == v.ID {
				t.Error("another request is the same attempt")
			}
		}
		to := w.approve(t, ben, v, browser, everything(ben)).String()
		if again := w.begin(t, browser, w.query(client)); again.Continue != to {
			t.Errorf("opened again it goes to %q, not %q", again.Continue, to)
		}
		_, err := w.OAuth.Look(ben, v.ID, foreign)
		isFault(t, err, fault.NotFound)
		code, _, _ := strings.Cut(to[strings.Index(to, "code=")+5:], "&")
		w.tokens(t, w.exchange(client, code))
		if again := w.begin(t, browser, w.query(client)); again.State != oauth.Redeemed || again.Continue != "" {
			t.Errorf("after redemption: %s %q", again.State, again.Continue)
		}
	})
}

// A program that takes a name of somebody's is told of, however it spells it and whatever it asks for.
func TestNamesThatLookAlikeAreToldOf(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		w.letIn(t, ben, everything(ben)) // Robin, which may write
		named := func(name, changes string) oauth.Known {
			id := w.register(t, `{"client_name":"`+name+`","redirect_uris":["`+callback+`"],"software_id":"`+db.NewID()+`"}`)
			k, err := w.OAuth.Known(ben, w.begin(t, oauth.Browser(""), w.query(id, changes)), who.From(ben).Account)
			if err != nil || k.Same != nil || k.Ended != nil {
				t.Fatal(k, err)
			}
			return k
		}
		for _, name := range []string{"Robin", "robin", "R0bin", "R o b i n", "Rob-in", "Rоbin", "Robın", "Röbin", "ＲＯＢＩＮ", "Ro\u200bbin", "Robіn"} {
			for _, scope := range []string{"scope=cairn.read cairn.write", "scope=cairn.read"} {
				if k := named(name, scope); k.Alike == nil || k.Alike.Name != "Robin" {
					t.Errorf("%q (%s) looks like nobody", name, scope)
				}
			}
		}
		for _, name := range []string{"Robinson", "Robi", "Wren", "!!!", "知更鸟"} {
			if k := named(name, "scope="); k.Alike != nil {
				t.Errorf("%q looks like %q", name, k.Alike.Name)
			}
		}
	})
}

func TestClientThatWasDisconnectedIsKnown(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben, ann := w.Account(t, "Ben"), w.Account(t, "Ann")
		k := w.letIn(t, ben, everything(ben))
		known := func(ctx context.Context, scope string) oauth.Known {
			got, err := w.OAuth.Known(ctx, w.begin(t, oauth.Browser(""), w.query(k.client, "scope="+scope)), who.From(ctx).Account)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if got := known(ben, "cairn.read"); got.Same == nil || got.May() || got.Ended != nil {
			t.Errorf("asking for less than it has, it is %+v", got)
		}
		w.Call(t, ben, "disconnect_agent", `{"agent":"`+k.agent+`"}`)
		if got := known(ben, ""); got.Same != nil || got.Ended == nil || got.Ended.ID != k.agent || got.Ended.EndedAt == nil {
			t.Errorf("after the disconnection it is %+v", got)
		}
		if got := known(ann, ""); got.Same != nil || got.Ended != nil || got.Alike != nil {
			t.Errorf("somebody else is told %+v", got)
		}
	})
}
