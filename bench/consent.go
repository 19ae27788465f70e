package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cairn/bench/made"
	"cairn/bench/table"
	"cairn/internal/signin"
)

// atOnce attempts to be let in run at the same time.
const atOnce = 200

// phrase is the one that the benchmark's person signs in by: BIP39's own example.
const phrase = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"

// consent measures what an OAuth call costs beside one with an API token, and how many consents a server takes at once.
func (b *bench) consent(ctx context.Context) error {
	f, err := b.seed(ctx, "oauth", b.size.tasks, false)
	if err != nil {
		return err
	}
	defer f.remove()
	s, err := b.serve(ctx, f)
	if err != nil {
		return err
	}
	defer s.stop()
	p, err := b.person(ctx, s, f)
	if err != nil {
		return err
	}
	if err := b.oauthCalls(ctx, s, f, p); err != nil {
		return err
	}
	return b.attempts(ctx, s, p)
}

// person is somebody with a phrase, and what they grant.
type person struct {
	base  string
	key   ed25519.PrivateKey
	heaps []string
}

// person gives the folder's account a phrase, by a link that the command line makes.
func (b *bench) person(ctx context.Context, s *child, f folder) (*person, error) {
	link, err := b.command(ctx, f, "account", "link")
	if err != nil {
		return nil, err
	}
	_, secret, _ := strings.Cut(strings.TrimSpace(link), "#")
	p := &person{base: "http://" + s.addr, key: signin.PhraseKey(phrase)}
	v := p.visitor(0)
	proof, err := v.proof(ctx, "challenge", map[string]string{"purpose": "set-up"})
	if err != nil {
		return nil, err
	}
	proof["secret"], proof["name"], proof["zone"] = secret, "owner", "UTC"
	if _, err := v.script(ctx, "set-up", proof); err != nil {
		return nil, err
	}
	out, err := b.command(ctx, f, "call", "list_heaps", "--json")
	if err != nil {
		return nil, err
	}
	var heaps struct{ Heaps []struct{ ID string } }
	if err := json.Unmarshal([]byte(out), &heaps); err != nil {
		return nil, err
	}
	for _, h := range heaps.Heaps {
		p.heaps = append(p.heaps, h.ID)
	}
	return p, nil
}

// command runs the built program on a folder.
func (b *bench) command(ctx context.Context, f folder, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, b.cairn, append(args, "--data", f.dir)...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return "", fmt.Errorf("cairn %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// visitor is one browser, at an address of its own: the server's limits are per address.
type visitor struct {
	p      *person
	client *http.Client
	from   string
}

func (p *person) visitor(i int) *visitor {
	jar, _ := cookiejar.New(nil) // it fails for no options
	return &visitor{p: p, from: fmt.Sprintf("198.51.%d.%d", 100+i/250, 1+i%250),
		client: &http.Client{Jar: jar, Timeout: requestLimit, Transport: consentTransport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

var consentTransport = &http.Transport{MaxIdleConnsPerHost: 2 * atOnce}

func (v *visitor) send(ctx context.Context, method, path, kind, body string) (*http.Response, string, error) {
	r, err := http.NewRequestWithContext(ctx, method, v.p.base+path, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	r.Header.Set("X-Forwarded-For", v.from)
	r.Header.Set("Origin", v.p.base)
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	res, err := v.client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 400 {
		err = fmt.Errorf("%s %s: %d %.300s", method, path, res.StatusCode, b)
	}
	return res, string(b), err
}

func (v *visitor) script(ctx context.Context, name string, body any) ([]byte, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	_, out, err := v.send(ctx, http.MethodPost, "/api/account/"+name, "application/json", string(b))
	return []byte(out), err
}

func (v *visitor) form(ctx context.Context, path string, f url.Values) (*http.Response, string, error) {
	return v.send(ctx, http.MethodPost, path, "application/x-www-form-urlencoded", f.Encode())
}

// proof asks for a challenge and signs it, as the page does.
func (v *visitor) proof(ctx context.Context, path string, body any) (map[string]any, error) {
	out, err := v.script(ctx, path, body)
	if err != nil {
		return nil, err
	}
	var c struct{ ID, Message string }
	if err := json.Unmarshal(out, &c); err != nil {
		return nil, err
	}
	public, _ := v.p.key.Public().(ed25519.PublicKey)
	return map[string]any{"challenge": c.ID, "phrase": map[string]string{"public": hex.EncodeToString(public), "signature": hex.EncodeToString(ed25519.Sign(v.p.key, []byte(c.Message)))}}, nil
}

var hidden = regexp.MustCompile(`name="(request|ticket)" value="([^"]+)"`)

// connect goes the whole way: registration, consent, code, tokens. It gives the access token.
func (v *visitor) connect(ctx context.Context, client, name string) (access string, err error) {
	const redirect = "http://127.0.0.1:5999/callback"
	verifier := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%-32.32s", name))
	digest := sha256.Sum256([]byte(verifier))
	q := url.Values{"response_type": {"code"}, "client_id": {client}, "redirect_uri": {redirect}, "code_challenge": {base64.RawURLEncoding.EncodeToString(digest[:])},
		"code_challenge_method": {"S256"}, "state": {name}, "resource": {v.p.base + "/mcp"}}
	_, page, err := v.send(ctx, http.MethodGet, "/oauth/authorize?"+q.Encode(), "", "")
	if err != nil {
		return "", err
	}
	request := hidden.FindStringSubmatch(page)
	if request == nil {
		return "", fmt.Errorf("no request on the page: %.300s", page)
	}
	proof, err := v.proof(ctx, "consent", map[string]string{"request": request[2]})
	if err != nil {
		return "", err
	}
	text, _ := json.Marshal(proof)
	_, page, err = v.form(ctx, "/oauth/authorize", url.Values{"request": {request[2]}, "act": {"prove"}, "proof": {string(text)}})
	if err != nil {
		return "", err
	}
	f := url.Values{"act": {"connect"}, "heaps": v.p.heaps, "areas": {"tasks", "memory", "library", "documents", "personas"}, "write": {"yes"}, "stay": {"yes"}, "name": {name}}
	for _, m := range hidden.FindAllStringSubmatch(page, -1) {
		f.Set(m[1], m[2])
	}
	res, page, err := v.form(ctx, "/oauth/authorize", f)
	if err != nil {
		return "", err
	}
	back, err := url.Parse(res.Header.Get("Location"))
	if err != nil || back.Query().Get("code") == "" {
		return "", fmt.Errorf("no code came back: %s %.300s", res.Header.Get("Location"), page)
	}
	_, out, err := v.form(ctx, "/oauth/token", url.Values{"grant_type": {"authorization_code"}, "client_id": {client}, "code": {back.Query().Get("code")}, "code_verifier": {verifier}, "redirect_uri": {redirect}})
	if err != nil {
		return "", err
	}
	var t struct {
		Access string `json:"access_token"`
	}
	return t.Access, json.Unmarshal([]byte(out), &t)
}

func (v *visitor) register(ctx context.Context) (string, error) {
	_, out, err := v.send(ctx, http.MethodPost, "/oauth/register", "application/json", `{"client_name":"bench","redirect_uris":["http://127.0.0.1/callback"],"grant_types":["authorization_code","refresh_token"]}`)
	if err != nil {
		return "", err
	}
	var c struct {
		ID string `json:"client_id"`
	}
	return c.ID, json.Unmarshal([]byte(out), &c)
}

// oauthCalls compares a call with an access token and one with an API token, in turn on one server.
func (b *bench) oauthCalls(ctx context.Context, s *child, f folder, p *person) error {
	v := p.visitor(0)
	client, err := v.register(ctx)
	if err != nil {
		return err
	}
	access, err := v.connect(ctx, client, "costs")
	if err != nil {
		return err
	}
	if _, err := b.command(ctx, f, "call", "update_agent", `{"agent":"costs","rate":0}`); err != nil { // a connected agent makes 1,000 calls a minute at most
		return err
	}
	t := table.Table{Title: "A call with an access token beside one with an API token", Head: []string{"call", "API token: CPU µs", "access token: CPU µs", "ratio", "least..most"}}
	api := s.token
	defer func() { s.token = api }()
	worst := 0.0
	for _, c := range []struct {
		name string
		body func(i int) []byte
	}{
		{"list_tasks", func(i int) []byte { return toolCall(i, "list_tasks", struct{}{}) }},
		{"create_personal_task", func(i int) []byte { return toolCall(i, "create_personal_task", made.NewTask(5_000_000+i, false)) }},
	} {
		costs := map[string][]float64{}
		for range b.size.rounds {
			for _, token := range []string{api, access} {
				s.token = token
				k, err := s.weigh(ctx, load{conns: connections, total: b.size.besideReqs / 2, body: c.body})
				if err != nil {
					return err
				}
				costs[token] = append(costs[token], micros(k.cpu))
			}
		}
		var ratios []float64
		for i := range costs[api] {
			ratios = append(ratios, costs[access][i]/costs[api][i])
		}
		t.Add(c.name, number(median(costs[api])), number(median(costs[access])), fmt.Sprintf("%.2f", median(ratios)), span(ratios, func(f float64) string { return fmt.Sprintf("%.2f", f) }))
		worst = max(worst, median(ratios))
	}
	t.Note = fmt.Sprintf("%d rounds of %s calls each at %d connections, in turn on one server. The signature of an access token is checked once and remembered; its connection, agent and account are read on every call.", b.size.rounds, number(float64(b.size.besideReqs/2)), connections)
	b.rep.tables = append(b.rep.tables, t)
	b.rep.want("a call with an access token: CPU, times one with an API token", worst, 1.2, "×")
	return nil
}

// attempts lets atOnce browsers be let in at the same time, several times each, and counts what the server kept of it.
func (b *bench) attempts(ctx context.Context, s *child, p *person) error {
	each := b.size.consents
	client, err := p.visitor(0).register(ctx)
	if err != nil {
		return err
	}
	var done atomic.Int64
	var first atomic.Pointer[error]
	var tokens sync.Map
	waits := make([][]time.Duration, atOnce)
	var all sync.WaitGroup
	begin := time.Now()
	for i := range atOnce {
		all.Go(func() {
			v := p.visitor(i + 1)
			for j := range each {
				sent := time.Now()
				access, err := v.connect(ctx, client, fmt.Sprintf("agent %d-%d", i, j))
				if err != nil {
					first.CompareAndSwap(nil, &err)
					return
				}
				waits[i] = append(waits[i], time.Since(sent))
				tokens.Store(access, true)
				done.Add(1)
			}
		})
	}
	all.Wait()
	took := time.Since(begin)
	if err := first.Load(); err != nil {
		return *err
	}
	flat := slices.Concat(waits...)
	slices.Sort(flat)
	lost := 0
	api := s.token
	defer func() { s.token = api }()
	tokens.Range(func(k, _ any) bool { // each token opens what was granted
		access, _ := k.(string)
		s.token = access
		answer, err := s.ask(ctx, toolsList)
		if err != nil || !bytes.Contains(answer, []byte("create_personal_task")) {
			lost++
		}
		return true
	})
	t := table.Table{Title: "Consents at once", Head: []string{"browsers at once", "consents", "per second", "p50 ms", "p99 ms", "lost"}}
	n := int(done.Load())
	t.Add(number(atOnce), number(float64(n)), number(float64(n)/took.Seconds()), millis(float64(quantile(flat, .5))), millis(float64(quantile(flat, .99))), number(float64(lost)))
	t.Note = "A consent is the whole way: the page, a sign-in on it by phrase, the choice, the code, the tokens: six requests and five durable writes, each browser at an address of its own. Afterwards each access token lists its tools; one that can't is lost. The client signs and runs on the same cores."
	b.rep.tables = append(b.rep.tables, t)
	b.rep.want("consents lost, of "+number(float64(n))+" with "+number(atOnce)+" at once", float64(lost), 0, "")
	return nil
}
