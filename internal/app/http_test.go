package app_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cairn/internal/apptest"
)

// scenario is one request, and what its answer must and must not be. {name} in do, headers, body and want stands for one of
// the world's words.
type scenario struct {
	name    string
	do      string   // "METHOD /path"; "" = "POST /mcp"
	as      string   // whose token; "" = none
	headers []string // beside Content-Type: application/json on a POST; "-Content-Type" leaves that out
	body    string
	status  int
	header  []string // "Name: part of its value", or "-Name" for a header that must not be there
	want    []string // parts of the body, ids apart from white space
	not     []string // parts that must not be in the body
}

// world is an application with something in it and tokens of every sort.
type world struct {
	*apptest.App
	tokens map[string]string
	words  map[string]string
}

// tokens of every world, by name: what create_token is called with.
var tokenArgs = map[string]string{
	"rw":      `{"name":"rw","rate":0}`,
	"ro":      `{"name":"ro","rate":0,"read_only":true}`,
	"memory":  `{"name":"memory","rate":0,"areas":["memory"]}`,
	"tasks":   `{"name":"tasks","rate":0,"areas":["tasks"]}`,
	"work":    `{"name":"work","rate":0,"heaps":["Work"]}`,
	"expired": `{"name":"expired","rate":0,"expires":"1h"}`,
	"revoked": `{"name":"revoked","rate":0}`,
	"distant": `{"name":"distant","rate":0,"allow_ip":["192.0.2.0/24"]}`,
	"spent":   `{"name":"spent","rate":1}`,
	"counted": `{"name":"counted"}`,
}

// absent is an id that nothing has.
const absent = "01890000-0000-7000-8000-00000000abcd"

// settle puts things into an application.
func settle(t testing.TB, a *apptest.App) *world {
	t.Helper()
	w := &world{App: a, tokens: map[string]string{}, words: map[string]string{"absent": absent, "host": strings.TrimPrefix(a.Server.URL, "http://"), "url": a.Server.URL}}
	for name, args := range tokenArgs {
		w.tokens[name] = a.Token(t, args)
		w.words["token:"+name] = w.tokens[name]
	}
	a.Clock.Move(2 * 3600e9) // past the expired one's hour
	person := a.Person(t)
	a.Call(t, person, "revoke_token", `{"token":"revoked"}`)
	made := func(word, op, args string) { // each in a request of its own
		var out struct{ ID string }
		apptest.Decode(t, a.Call(t, a.Person(t), op, args), &out)
		w.words[word] = out.ID
	}
	made("project", "create_project", `{"name":"Garden","heap":"Personal"}`)
	made("task", "create_personal_task", `{"name":"Water the ferns","external_ref":"ferns","project_name":"Garden"}`)
	a.Clock.Move(3600e9) // what comes now is another run
	made("job", "create_work_task", `{"name":"Read the draft","external_ref":"draft"}`)
	made("guard", "correct_context", `{"statement":"The ivy isn't mine","heap":"Personal"}`)
	made("quest", "quest", `{"title":"Grow ferns","heap":"Personal"}`)
	made("tag", "create_block", `{"type":"tag","title":"Fern","heap":"Personal"}`)
	made("block", "create_block", `{"title":"About ferns","content":"Water the ferns","heap":"Personal"}`)
	made("leaf", "create_block", `{"title":"Leaf","heap":"Work"}`)
	made("view", "save_view", `{"name":"Ferns","heap":"Personal"}`)
	a.Call(t, person, "person", `{"name":"Fern Gardener","heap":"Personal"}`)
	made("trashed", "create_personal_task", `{"name":"Gone","external_ref":"gone"}`)
	a.Call(t, person, "delete_task", `{"external_ref":"gone"}`)
	a.Call(t, person, "create_project", `{"name":"Twice","heap":"Personal"}`)
	a.Call(t, person, "create_project", `{"name":"Twice","heap":"Work"}`)
	if r := a.Do(t, "POST", "/api/list_heaps", "{}", "Content-Type: application/json", "Authorization: Bearer "+w.tokens["spent"]); r.Status != http.StatusOK {
		t.Fatalf("the first call of a rate of one: %d %s", r.Status, r.Body)
	}
	return w
}

// scenarios runs a table on both databases, each on one world.
func scenarios(t *testing.T, env map[string]string, table []scenario) {
	t.Helper()
	apptest.Each(t, env, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		for _, s := range table {
			t.Run(s.name, func(t *testing.T) { w.run(t, s) })
		}
	})
}

// plainly runs a table on SQLite alone: what it is about never reaches the database.
func plainly(t *testing.T, env map[string]string, table []scenario) {
	t.Helper()
	w := settle(t, alone(t, env))
	for _, s := range table {
		t.Run(s.name, func(t *testing.T) { w.run(t, s) })
	}
}

// alone is an application on SQLite.
func alone(t *testing.T, env map[string]string) *apptest.App {
	t.Helper()
	all := map[string]string{"CAIRN_DATA": t.TempDir()}
	maps.Copy(all, env)
	return apptest.New(t, all)
}

// fill puts the world's words in.
func (w *world) fill(s string) string {
	if len(s) > 64<<10 || !strings.Contains(s, "{") { // none of the large bodies has words
		return s
	}
	return wordForm.ReplaceAllStringFunc(s, func(m string) string {
		if v, ok := w.words[m[1:len(m)-1]]; ok {
			return v
		}
		return m
	})
}

var wordForm = regexp.MustCompile(`\{[a-z:]+\}`)

// send makes the request of a scenario.
func (w *world) send(t testing.TB, s scenario) apptest.Response {
	t.Helper()
	method, path, ok := strings.Cut(w.fill(s.do), " ")
	if !ok {
		method, path = http.MethodPost, "/mcp"
	}
	headers := slices.Clone(s.headers)
	if i := slices.Index(headers, "-Content-Type"); i >= 0 {
		headers = slices.Delete(headers, i, i+1)
	} else if method == http.MethodPost && !slices.ContainsFunc(headers, func(h string) bool { return strings.HasPrefix(h, "Content-Type: ") }) {
		headers = append(headers, "Content-Type: application/json")
	}
	if s.as != "" {
		if w.tokens[s.as] == "" {
			t.Fatalf("no token is named %q", s.as)
		}
		headers = append(headers, "Authorization: Bearer "+w.tokens[s.as])
	}
	for i := range headers {
		headers[i] = w.fill(headers[i])
	}
	return w.Do(t, method, path, w.fill(s.body), headers...)
}

func (w *world) run(t *testing.T, s scenario) {
	t.Helper()
	r := w.send(t, s)
	if r.Status != s.status {
		t.Errorf("status %d, want %d", r.Status, s.status)
	}
	for _, h := range s.header {
		h = w.fill(h)
		if name, gone := strings.CutPrefix(h, "-"); gone {
			if v, ok := r.Header[http.CanonicalHeaderKey(name)]; ok {
				t.Errorf("there is a header %s: %q", name, v)
			}
			continue
		}
		name, part, _ := strings.Cut(h, ": ")
		if v := strings.Join(r.Header.Values(name), "\n"); v == "" || !strings.Contains(v, part) {
			t.Errorf("header %s is %q, want %q in it", name, v, part)
		}
	}
	for _, part := range s.want {
		if part = w.fill(part); !strings.Contains(r.Body, part) {
			t.Errorf("%s is missing", part)
		}
	}
	for _, part := range s.not {
		if part = w.fill(part); strings.Contains(r.Body, part) {
			t.Errorf("%s is there", part)
		}
	}
	w.always(t, s, r)
	if t.Failed() {
		t.Logf("%s %s\n%d %v\n%s", s.do, clip(s.body), r.Status, r.Header, clip(r.Body))
	}
}

// inside are texts that only the inside of the server knows: Go's, the drivers' and SQL's.
var inside = regexp.MustCompile(`(?i)goroutine |panic|runtime error|\.go:\d|sql: |sqlite|pgx|postgres|\bSQLSTATE|constraint|syntax error|no such table|` +
	`SELECT .* FROM|INSERT INTO|UPDATE \w+ SET|json: |invalid character|unexpected end|http: |context (canceled|deadline)|nil pointer|unmarshal|\*[a-z]+\.[A-Z]\w+|interface conversion|strconv\.`)

// always checks what holds for every answer.
func (w *world) always(t *testing.T, s scenario, r apptest.Response) {
	t.Helper()
	for name, value := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "X-XSS-Protection": "1; mode=block",
		"Referrer-Policy": "strict-origin-when-cross-origin", "Content-Security-Policy": "default-src 'none'"} {
		if got := r.Header.Get(name); got != value {
			t.Errorf("header %s is %q, want %q", name, got, value)
		}
	}
	if r.Header.Get("Mcp-Session-Id") != "" {
		t.Error("the answer has a session id")
	}
	all := r.Body
	for k, vs := range r.Header {
		all += "\n" + k + ": " + strings.Join(vs, ",")
	}
	for name, token := range w.tokens {
		if strings.Contains(all, token) {
			t.Errorf("the answer has the token of %s in it", name)
		}
	}
	if r.Status >= http.StatusBadRequest || strings.Contains(r.Body, "rror") {
		if m := inside.FindString(r.Body); m != "" && !strings.Contains(w.fill(s.body), m) {
			t.Errorf("the answer tells of the inside: %q", m)
		}
	}
	if len(r.Body) == 0 {
		return
	}
	switch ct := r.Header.Get("Content-Type"); {
	case strings.HasPrefix(ct, "application/json"):
		if !json.Valid([]byte(r.Body)) {
			t.Error("the body is not JSON")
		}
	case strings.HasPrefix(ct, "text/event-stream"), strings.HasPrefix(ct, "text/plain") && r.Status == http.StatusOK:
	default:
		t.Errorf("an answer of type %q", ct)
	}
}

func clip(s string) string {
	if len(s) > 1500 {
		return s[:1000] + " ... " + s[len(s)-400:]
	}
	return s
}

// manner is a way to speak to the server.
type manner struct {
	name    string
	path    string
	headers []string
	modern  bool // with _meta and the headers that mirror the body
	hero    bool // errors and answers in HeroMind's words
}

var (
	heroes = manner{name: "hero", path: "/mcp", hero: true}
	alias  = manner{name: "alias", path: "/functions/v1/mcp-server", hero: true}
	legacy = manner{name: "legacy", path: "/mcp", headers: []string{"Accept: application/json, text/event-stream", "MCP-Protocol-Version: 2025-11-25"}}
	modern = manner{name: "modern", path: "/mcp", modern: true, headers: []string{"Accept: application/json, text/event-stream", "MCP-Protocol-Version: 2026-07-28"}}

	manners = []manner{heroes, alias, legacy, modern}
)

// meta is what a request of MCP 2026-07-28 says of itself.
const meta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"probe","version":"1"}`

// request words a request; params are the members of params, "" for none; name is params.name where there is one.
func (m manner) request(as, id, method, name, params string) scenario {
	s := scenario{do: "POST " + m.path, as: as, headers: slices.Clone(m.headers)}
	if m.modern {
		s.headers = append(s.headers, "Mcp-Method: "+method)
		if name != "" {
			s.headers = append(s.headers, "Mcp-Name: "+name)
		}
		if params != "" {
			params += ","
		}
		params += `"_meta":{` + meta + `}`
	}
	s.body = `{"jsonrpc":"2.0","id":` + id + `,"method":` + strconv.Quote(method)
	if params != "" {
		s.body += `,"params":{` + params + `}`
	}
	s.body += "}"
	return s
}

// call words a call of a tool.
func (m manner) call(as, tool, args string) scenario {
	return m.request(as, "7", "tools/call", tool, `"name":`+strconv.Quote(tool)+`,"arguments":`+args)
}

// answer is a JSON-RPC answer.
type answer struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  *struct {
		IsError    *bool             `json:"isError"`
		ResultType string            `json:"resultType"`
		Content    []json.RawMessage `json:"content"`
		Structured map[string]any    `json:"structuredContent"`
		Tools      []map[string]any  `json:"tools"`
	} `json:"result"`
	Error *struct {
		Code    int            `json:"code"`
		Message string         `json:"message"`
		Data    map[string]any `json:"data"`
	} `json:"error"`
}

// read reads an answer, from a stream too: its last event.
func read(t testing.TB, r apptest.Response) (a answer) {
	t.Helper()
	body := r.Body
	if strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
		for line := range strings.Lines(r.Body) {
			if d, ok := strings.CutPrefix(line, "data: "); ok {
				body = d
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &a); err != nil {
		t.Fatalf("%d %s: %v", r.Status, clip(r.Body), err)
	}
	return a
}
