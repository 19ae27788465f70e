package web_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/account"
	"cairn/internal/audit"
	"cairn/internal/db"
	"cairn/internal/edge"
	"cairn/internal/fault"
	"cairn/internal/mcp"
	"cairn/internal/op"
	"cairn/internal/signin"
	"cairn/internal/web"
	"cairn/internal/web/files"
	"cairn/internal/who"
)

// hostile is a name as somebody could choose it who wants a page to run it.
const hostile = `<script>alert(1)</script>"'&\u202e`

// answers are what the operations that pages call answer in these tests.
var answers = map[string]string{
	"get_account": `{"account":{"id":"a1","name":"Ana","zone":"Europe/Vienna","email":"ana@example.org","email_confirmed":true,"admin":true,"agents_paused_at":null},
		"server":{"agents_paused_at":null,"mail":true},"heaps":[{"id":"h1","name":"Personal","kind":"personal","role":"owner","archived_at":null,"members":1},
		{"id":"h2","name":"Studio NAME","kind":"work","role":"owner","archived_at":null,"members":3},{"id":"h3","name":"Old","kind":"other","role":"owner","archived_at":"2026-10-01T08:00:00.000Z","members":1}],
		"invites":[{"id":"i1","heap_name":"Family NAME","role":"editor","inviter":"Ben NAME","created_at":"2026-11-29T08:00:00.000Z"}]}`,
	"list_agents": `{"count":3,"agents":[AGENT,
		{"id":"g2","name":"Hermes","account_name":"Ana","client_name":"Hermes","client_kind":"metadata","redirect_host":"hermes.example","heaps":[{"id":"h1","name":"Personal"},{"id":"h2","name":"Work"}],"write":true,"propose_memory":true,"areas":["tasks","memory"],"state":"paused","connected":true,"created_at":"2026-10-01T08:00:00.000Z","connected_at":"2026-10-01T08:00:00.000Z","access_until":null,"stay_until":"2027-01-01T08:00:00.000Z","last_used_at":"2026-11-29T08:00:00.000Z","calls":12,"errors":0,"paused_at":"2026-11-30T08:00:00.000Z","ended_at":null,"scope_write":true,"address":"203.0.113.7","user_agent":"hermes/1"},
		{"id":"g3","name":"Claude Code","account_name":"Ana","client_name":"Claude Code","client_kind":"registered","redirect_host":"localhost","heaps":[{"id":"h2","name":"Work"}],"write":false,"propose_memory":false,"areas":null,"state":"idle","connected":true,"created_at":"2026-10-01T08:00:00.000Z","connected_at":"2026-10-01T08:00:00.000Z","access_until":"2026-12-01T08:00:00.000Z","stay_until":null,"last_used_at":null,"calls":0,"errors":0,"paused_at":null,"ended_at":null,"scope_write":false,"address":"","user_agent":""}]}`,
	"get_agent":     `{"agent":AGENT}`,
	"list_requests": `{"count":1,"requests":[{"id":"r1","client_name":"cairn-cli NAME","redirect_host":"","asks_write":true,"asks_stay":true,"address":"203.0.113.7","user_agent":"cli/1","created_at":"2026-11-30T09:00:00.000Z","expires_at":"2026-11-30T09:10:00.000Z"}]}`,
	"list_tokens":   `{"count":2,"tokens":[TOKEN,{"id":"t2","name":"Old","account":"Ana","state":"revoked","read_only":true,"propose_memory":false,"created_at":"2026-11-01T08:00:00.000Z","expires_at":null,"last_used_at":null,"calls":0,"errors":0}]}`,
	"create_token":  `{"id":"t1","result":"created","secret":"cairn_abcdefghijklmnopqrstuvwxyz234567abcdefghijklmnopqrst","token":TOKEN}`,
	"get_heap": `{"heap":{"holds":[{"kind":"task","count":3},{"kind":"memory","count":1},{"kind":"note","count":0}],"id":"h2","name":"Studio NAME","kind":"work","role":"owner","owner_name":"Ana","archived_at":null,"created_at":"2026-10-01T08:00:00.000Z"},
		"members":[{"account":"a1","name":"Ana","role":"owner","since":"2026-10-01T08:00:00.000Z"},{"account":"a2","name":"Ben NAME","role":"editor","since":"2026-11-01T08:00:00.000Z"}],
		"invites":[{"id":"i2","name":"Cleo NAME","role":"viewer","state":"pending","created_at":"2026-11-29T08:00:00.000Z","inviter":"Ana"}],
		"agents":[{"id":"g1","kind":"agent","name":"Claude NAME","account_name":"Ana","write":true,"areas":null,"state":"connected"},{"id":"t1","kind":"token","name":"Script","account_name":"Ben NAME","write":false,"areas":["tasks"],"state":"active"}]}`,
	"list_sessions": `{"count":2,"sessions":[{"id":"s1","method":"phrase","address":"127.0.0.1","client":"Firefox on Linux NAME","created_at":"2026-11-30T08:00:00.000Z","seen_at":"2026-11-30T09:00:00.000Z","current":true},{"id":"s2","method":"passkey","address":"198.51.100.4","client":"Safari on iPhone","created_at":"2026-11-20T08:00:00.000Z","seen_at":"2026-11-28T09:00:00.000Z","current":false}]}`,
	"list_sign_in":  `{"count":2,"methods":[{"id":"c1","kind":"phrase","name":"","host":"","created_at":"2026-10-01T08:00:00.000Z","last_used_at":"2026-11-30T08:00:00.000Z"},{"id":"c2","kind":"passkey","name":"Laptop NAME","host":"cairn.test","created_at":"2026-10-01T08:00:00.000Z","last_used_at":null}],"email":null,"email_confirmed":false}`,
	"list_accounts": `{"count":3,"accounts":[{"id":"a1","name":"Ana","email":"ana@example.org","admin":true,"state":"active","created_at":"2026-10-01T08:00:00.000Z","last_seen_at":"2026-11-30T08:00:00.000Z","agents":3,"tokens":1,"sessions":2},
		{"id":"a2","name":"Ben NAME","email":"","admin":false,"state":"waiting","created_at":"2026-11-29T08:00:00.000Z","last_seen_at":null,"agents":0,"tokens":0,"sessions":1},{"id":"a3","name":"Cleo","email":"","admin":false,"state":"disabled","created_at":"2026-11-01T08:00:00.000Z","last_seen_at":null,"agents":0,"tokens":0,"sessions":0}]}`,
	"list_files": `{"count":2,"files":[{"id":"f1","heap":"h2","name":"NAME.jpg","media_type":"image/jpeg","size":123456,"sha256":"0","width":400,"height":300,"state":"live","by":"account:a1","created_at":"2026-11-30T08:00:00.000Z","url":"","thumbnails":[{"size":"s","width":160,"height":120,"url":""}]},
		{"id":"f2","heap":"h1","name":"NAME.svg","media_type":"image/svg+xml","size":7,"sha256":"0","width":null,"height":null,"state":"live","by":"account:a1","created_at":"2026-11-30T08:00:00.000Z","url":"","thumbnails":[]}],"next_cursor":"c"}`,
	"list_blocks":      `{"count":2,"blocks":[{"id":"b1","heap":"h2","type":"note","title":"Garden NAME","tags":[{"id":"b2","type":"tag","title":"Tag NAME"}],"pinned":true,"state":"live","hash":"x1","updated_at":"2026-11-30T08:00:00.000Z"},{"id":"b2","heap":"h1","type":"tag","title":"","tags":[],"pinned":false,"state":"live","hash":"x2","updated_at":"2026-11-29T08:00:00.000Z"}],"next_cursor":"c1"}`,
	"search_blocks":    `{"count":0,"blocks":[],"note":"NAME"}`,
	"list_tags":        `{"count":1,"tags":[{"id":"b2","heap":"h2","title":"Tag NAME","parents":[],"children":3}]}`,
	"get_block":        `{"block":{"id":"b1","heap":"h2","type":"tag","title":"Garden NAME","state":"live","pinned":true,"tags":[{"id":"b2","type":"tag","title":"Tag NAME"}],"properties":[{"key":"k NAME","type":"text","value":"v NAME"},{"key":"u","type":"url","value":"javascript:NAME"},{"key":"r","type":"reference","value":"b2"},{"key":"n","type":"number","value":7}],"hash":"x1","content_hash":"y1","version":3,"external_ref":null,"created_at":"2026-11-29T08:00:00.000Z","updated_at":"2026-11-30T08:00:00.000Z"},"relations":[{"direction":"out","kind":"mention","origin":"content","block":{"id":"b3","type":"note","title":"NAME"}}],"backlinks":[{"direction":"in","kind":"mention","origin":"set","block":{"id":"b4","type":"note","title":"NAME"}}],"more_relations":true,"files":["f1"]}`,
	"show_document":    `{"block_id":"b1","title":"Garden NAME","hash":"x1","version":3,"newest_version":3,"trashed":false,"writable":true,"part":1,"parts":2,"blocks":900,"nodes":[{"type":"paragraph","node_id":"n1","content":[{"type":"text","text":"NAME"},{"type":"mention","attrs":{"block":"b3","label":"NAME"}}]},{"type":"heading","node_id":"n2","attrs":{"level":1},"content":[{"type":"text","text":"NAME"}]}],"authors":{"n1":{"actor":"agent:g1","name":"Claude NAME","agent":true,"at":"2026-11-30T08:00:00.000Z"}}}`,
	"show_changes":     `{"block_id":"b1","title":"Garden NAME","hash":"x1","from_version":1,"to_version":3,"newest_version":3,"added":1,"removed":0,"moved":0,"edited":1,"lines":[{"sign":"~","type":"paragraph","level":0,"node_id":"n1","parts":[{"text":"NAME"},{"sign":"-","text":"NAME"},{"sign":"+","text":"NAME"}]},{"sign":"+","type":"list_item","level":1,"node_id":"n2","was":"task_item","parts":[{"text":"NAME"}]}],"more":2}`,
	"get_markdown":     `{"block_id":"b1","title":"Garden NAME","hash":"x1","markdown":"# </textarea>NAME","unsaid":1,"writable":true}`,
	"join_draft":       `{"block_id":"b1","hash":"x2","title":"Garden NAME","markdown":"</textarea>NAME","joined":true,"titles":false,"clashes":[{"node_id":"n1","mine":"NAME","theirs":"NAME","parts":[{"sign":"-","text":"NAME"}],"by":{"actor":"agent:g1","name":"Claude NAME","agent":true,"at":"2026-11-30T08:00:00.000Z"}}],"changes":[{"sign":"~","type":"paragraph","level":0,"node_id":"n1","parts":[{"text":"NAME"}],"by":null}],"more":0}`,
	"get_provenance":   `{"block_id":"b1","count":2,"events":[{"change_id":"e2","at":"2026-11-30T08:00:00.000Z","actor":"agent:g1","actor_name":"Claude NAME","on_behalf":"account:a1","on_behalf_name":"Ana NAME","tool":"patch_document","via":"mcp","summary":"Patched NAME","version":3,"undoes":null},{"change_id":"e1","at":"2026-11-29T08:00:00.000Z","actor":"account:a1","actor_name":"Ana","tool":"create_block","via":"web","summary":"Created NAME","version":1,"undoes":null}],"next_cursor":"c2"}`,
	"create_block":     `{"id":"b9","result":"created"}`,
	"replace_document": `{"id":"b1","result":"updated","rebased":true}`,
	"undo_change":      `{"undone":[{}],"left":[]}`, "purge_block": `{}`, "pin_block": `{}`, "delete_block": `{}`, "restore_block": `{}`, "add_relation": `{}`, "remove_relation": `{}`, "set_property": `{}`, "remove_property": `{}`, "restore_version": `{}`,
	"set_account": `{}`, "create_heap": `{"id":"h9"}`, "update_heap": `{}`, "set_member": `{}`, "remove_member": `{}`, "invite_member": `{}`, "withdraw_invite": `{}`,
	"respond_invite": `{}`, "update_agent": `{}`, "pause_agents": `{}`, "resume_agents": `{}`, "disconnect_agent": `{}`, "revoke_token": `{}`, "admit_account": `{}`,
	"disable_account": `{}`, "enable_account": `{}`, "end_session": `{}`, "remove_sign_in": `{}`, "set_email": `{"result":"sent","challenge":"m1"}`, "confirm_email": `{}`,
}

const anAgent = `{"id":"g1","name":"Claude NAME","account_name":"Ana","client_name":"Claude NAME","client_kind":"registered","redirect_host":"claude.ai","heaps":[{"id":"h2","name":"Studio NAME"}],"write":true,"propose_memory":true,"areas":null,"state":"connected","connected":true,"created_at":"2026-11-01T08:00:00.000Z","connected_at":"2026-11-01T08:00:00.000Z","access_until":"2026-11-30T12:00:00.000Z","stay_until":"2027-02-01T08:00:00.000Z","last_used_at":"2026-11-30T08:45:00.000Z","calls":482,"errors":3,"paused_at":null,"ended_at":null,"scope_write":true,"address":"203.0.113.7","user_agent":"claude/1 NAME"}`
const aToken = `{"id":"t1","name":"backup NAME","account":"Ana","state":"active","read_only":true,"propose_memory":false,"areas":["tasks"],"heaps":["Studio NAME"],"allow_ip":["192.0.2.0/24"],"created_at":"2026-11-01T08:00:00.000Z","expires_at":"2027-02-01T08:00:00.000Z","last_used_at":"2026-11-30T08:00:00.000Z","calls":31,"errors":1}`

// site is the pages over operations that answer as they are told, with a person signed in.
type site struct {
	*httptest.Server
	signin *signin.Service
	web    *web.Server
	cookie string

	mu      sync.Mutex
	called  []string          // operations that were called, with the names of their arguments
	faults  map[string]error  // what operations answer instead
	answers map[string]string // other answers than those above
}

// newSite makes a site; name stands in every name that somebody else chose.
func newSite(t testing.TB, name string) *site {
	t.Helper()
	ctx, log := context.Background(), slog.New(slog.DiscardHandler)
	d, err := db.Open(ctx, db.Config{Dir: t.TempDir(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	x := &site{faults: map[string]error{}, answers: map[string]string{}}
	x.Server = httptest.NewUnstartedServer(nil)
	public := &url.URL{Scheme: "http", Host: x.Listener.Addr().String()}
	accounts := account.New(d, 90*24*time.Hour)
	if _, err := accounts.Bootstrap(ctx); err != nil {
		t.Fatal(err)
	}
	owner, err := accounts.Owner(ctx, "", true)
	if err != nil {
		t.Fatal(err)
	}
	x.signin = signin.New(d, accounts, nil, public, log)
	x.cookie, _, err = x.signin.Start(ctx, signin.Person{Account: owner.Account, Method: signin.Phrase}, signin.From{Address: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	quoted, _ := json.Marshal(name)
	var ops []*op.Op
	for n, answer := range answers {
		answer = strings.ReplaceAll(strings.ReplaceAll(answer, "AGENT", anAgent), "TOKEN", aToken)
		answer = strings.ReplaceAll(answer, "NAME", string(quoted[1:len(quoted)-1]))
		ops = append(ops, op.Define(op.Op{Name: n, Title: n, Doc: n, Area: who.Core, Effect: op.Write, PersonOnly: true, Loose: true}, func(ctx context.Context, _ struct{}) (json.RawMessage, error) {
			args := op.Ignored(ctx)
			slices.Sort(args)
			x.mu.Lock()
			defer x.mu.Unlock()
			x.called = append(x.called, n+" "+strings.Join(args, " "))
			if other := x.answers[n]; other != "" {
				return json.RawMessage(other), x.faults[n]
			}
			return json.RawMessage(answer), x.faults[n]
		}))
	}
	runner := op.NewRunner(log, ops...)
	recorder := audit.NewRecorder(d, log, true, nil)
	e := &edge.Edge{Public: public, Limiter: audit.NewLimiter(d), Recorder: recorder, Log: log,
		ByToken: func(context.Context, string, string) (*who.Caller, error) {
			return nil, fault.New(fault.TokenInvalid, "The token is not valid")
		}}
	stop := make(chan struct{})
	x.web = &web.Server{Runner: runner, Edge: e, Files: &files.Server{Runner: runner, Most: 1 << 20}, MCP: mcp.NewHandler(mcp.New(runner, "test", log, nil, mcp.Beside{}), e, func(context.Context) any { return nil }, stop), Metrics: http.NotFoundHandler(),
		Ready: d.Ping, Stop: stop, Version: "test", Signin: x.signin}
	x.Config.Handler = x.web.Handler()
	x.Start()
	x.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.Cleanup(func() {
		x.Close()
		x.signin.Close()
		recorder.Close()
		_ = d.Close()
	})
	return x
}
