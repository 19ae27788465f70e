package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/apptest"
	"cairn/internal/db"
)

// speaking is a manner in a version, with answers as JSON.
func speaking(version string) manner {
	m := manner{name: version, path: "/mcp", modern: version == "2026-07-28", headers: []string{"Accept: application/json", "MCP-Protocol-Version: " + version}}
	if version == "" {
		m.name, m.headers = "plain", nil
	}
	return m
}

// same are the calls whose answers must not depend on who gives them: the direct path or the SDK.
var same = []struct{ name, as, id, tool, args string }{
	{"a list", "rw", "1", "list_tasks", `{}`},
	{"texts", "rw", "1", "create_work_task", `{"name":"Read the draft","external_ref":"draft","other":1}`},
	{"one thing", "rw", "1", "get_task", `{"task_id":"{task}"}`},
	{"text and JSON", "rw", "1", "list_projects", `{}`},
	{"search", "rw", "1", "search", `{"query":"ferns"}`},
	{"not found", "rw", "1", "get_task", `{"task_id":"{absent}"}`},
	{"conflict", "rw", "1", "get_project_context", `{"project_name":"Twice"}`},
	{"bad arguments", "rw", "1", "create_personal_task", `{"due_date":"soon"}`},
	{"unknown arguments", "rw", "1", "list_heaps", `{"x":1}`},
	{"arguments twice", "rw", "1", "list_tasks", `{"limit":1,"limit":2}`},
	{"arguments of a wrong type", "rw", "1", "list_heaps", `[]`},
	{"arguments as text", "rw", "1", "list_heaps", `"{}"`},
	{"arguments null", "rw", "1", "list_heaps", `null`},
	{"string id", "rw", `"abc-1"`, "list_heaps", `{}`},
	{"empty id", "rw", `""`, "list_heaps", `{}`},
	{"id in signs", "rw", `"é😀\"\\ <&>"`, "list_heaps", `{}`},
	{"id 0", "rw", "0", "list_heaps", `{}`},
	{"negative id", "rw", "-5", "list_heaps", `{}`},
	{"id of 15 digits", "rw", "999999999999999", "list_heaps", `{}`},
	{"id above 2^53", "rw", "9007199254740993", "list_heaps", `{}`},
	{"id above 2^63", "rw", "123456789012345678901234567890", "list_heaps", `{}`},
	{"fractional id", "rw", "1.5", "list_heaps", `{}`},
	{"id with an exponent", "rw", "1e3", "list_heaps", `{}`},
	{"huge id", "rw", "1e400", "list_heaps", `{}`},
	{"unknown tool", "rw", "1", "nosuch", `{}`},
	{"tool of an area not granted", "memory", "1", "list_tasks", `{}`},
	{"scope", "ro", "1", "create_work_task", `{"name":"x"}`},
	{"rate", "spent", "1", "list_heaps", `{}`},
	{"persons only", "rw", "1", "list_tokens", `{}`},
}

// both sends a request as it is and in a form that the direct path leaves to the SDK.
func (w *world) both(t *testing.T, s scenario) (direct, sdk apptest.Response) {
	t.Helper()
	odd := s
	odd.body = strings.Replace(s.body, `"params":{`, `"params":{"trace":{"odd":"but legal"},`, 1)
	if odd.body == s.body {
		odd.body = strings.TrimSuffix(s.body, "}") + `,"params":{"trace":{"odd":"but legal"}}}`
	}
	return w.send(t, s), w.send(t, odd)
}

// counting is what differs between two refusals for the rate.
var counting = regexp.MustCompile(`"current":\d+`)

var requestID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

// exact compares JSON with numbers as they are written.
func exact(t *testing.T, body string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", clip(body), err)
	}
	return v
}

// sameID tells whether two ids are one string or one number.
func sameID(t *testing.T, a, b string) bool {
	t.Helper()
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	return okX && okY && x.Cmp(y) == 0 || !okX && !okY && exact(t, a) == exact(t, b)
}

func alike(t *testing.T, direct, sdk apptest.Response) {
	t.Helper()
	if direct.Status != sdk.Status {
		t.Errorf("status %d directly, %d by the SDK", direct.Status, sdk.Status)
	}
	steady := func(r apptest.Response) any { return exact(t, counting.ReplaceAllString(r.Body, `"current":0`)) }
	if d := cmp.Diff(steady(direct), steady(sdk)); d != "" {
		t.Errorf("directly (-) and by the SDK (+):\n%s", clip(d))
	}
	for _, h := range []string{"Content-Type", "WWW-Authenticate", "Retry-After", "X-RateLimit-Limit"} {
		if a, b := direct.Header.Get(h), sdk.Header.Get(h); a != b {
			t.Errorf("%s is %q directly, %q by the SDK", h, a, b)
		}
	}
}

func TestDirectPathAndSDKAnswerAlike(t *testing.T) {
	w := settle(t, alone(t, nil))
	for _, v := range []string{"", "2025-03-26", "2025-11-25", "2026-07-28"} {
		m := speaking(v)
		for _, c := range same {
			t.Run(m.name+"/"+c.name, func(t *testing.T) {
				s := m.request(c.as, c.id, "tools/call", c.tool, `"name":"`+c.tool+`","arguments":`+c.args)
				direct, sdk := w.both(t, s)
				alike(t, direct, sdk)
				for _, r := range []apptest.Response{direct, sdk} {
					if got := read(t, r).ID; !sameID(t, string(got), c.id) {
						t.Errorf("asked with id %s, answered with %s", c.id, got)
					}
					w.always(t, s, r)
				}
			})
		}
		for _, q := range []string{"", "?toolsets=record", "?toolsets=tasks", "?schemas=full"} {
			for _, as := range []string{"rw", "ro", "memory"} {
				t.Run(m.name+"/tools list"+q+"/"+as, func(t *testing.T) {
					s := m.request(as, `"l"`, "tools/list", "", "")
					s.do += q
					direct, sdk := w.both(t, s)
					if a, b := toolNames(t, direct), toolNames(t, sdk); !slices.Equal(a, b) {
						t.Errorf("order: %v directly, %v by the SDK", a, b)
					}
					alike(t, direct, sdk)
				})
			}
		}
	}
}

// What one caller may read is for no cache, whoever made the answer.
func TestAnswersAreNotStored(t *testing.T) {
	a := alone(t, nil)
	w := settle(t, a)
	for _, m := range manners {
		direct, sdk := w.both(t, m.call("rw", "list_heaps", `{}`))
		failed := w.send(t, m.call("", "list_heaps", `{}`))
		for path, r := range map[string]apptest.Response{"direct": direct, "sdk": sdk, "error": failed} {
			if got := r.Header.Get("Cache-Control"); !strings.Contains(got, "no-store") {
				t.Errorf("%s %s: Cache-Control is %q", m.name, path, got)
			}
		}
	}
}

func TestInternalErrorIsAlikeByTheSDK(t *testing.T) {
	a := alone(t, nil)
	w := settle(t, a)
	if err := a.DB.Write(context.Background(), func(tx *db.Tx) error {
		_, err := tx.Exec(`ALTER TABLE project_log RENAME TO project_log_away`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"", "2025-11-25", "2026-07-28"} {
		m := speaking(v)
		t.Run(m.name, func(t *testing.T) {
			direct, sdk := w.both(t, m.call("rw", "get_project_context", `{"project_id":"{project}"}`))
			direct.Body, sdk.Body = requestID.ReplaceAllString(direct.Body, "ID"), requestID.ReplaceAllString(sdk.Body, "ID")
			alike(t, direct, sdk)
		})
	}
}

// A cursor of the list that nobody gave is the client's fault, and may not end the server. It once did: so this runs in a
// process of its own.
func TestBadListCursorIsRefused(t *testing.T) {
	if os.Getenv("CAIRN_TEST_CURSOR") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestBadListCursorIsRefused$", "-test.v=false")
		cmd.Env = append(os.Environ(), "CAIRN_TEST_CURSOR=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, clip(string(out)))
		}
		return
	}
	var table []scenario
	for _, m := range manners {
		for _, cursor := range []string{`"zzz"`, `"bm9uZQ=="`, `5`, `{}`, `null`, `""`} {
			s := m.request("rw", "1", "tools/list", "", `"cursor":`+cursor)
			s.name = m.name + "/" + cursor
			s.status, s.want = 200, []string{`"id":1`}
			switch {
			case cursor == `""` || cursor == `null`:
				s.want = append(s.want, `"tools":[`)
			case m.modern:
				s.status, s.want = 400, append(s.want, `"code":-32602`)
			case !strings.HasPrefix(cursor, `"`):
				s.status, s.want = 400, append(s.want, `"code":-326`)
			default:
				s.want = append(s.want, `"code":-32602`)
			}
			table = append(table, s)
		}
	}
	plainly(t, nil, table)
}

// events reads an SSE body: the data of each event.
func events(t testing.TB, r apptest.Response) (list []map[string]any) {
	t.Helper()
	for line := range strings.Lines(r.Body) {
		if d, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
			var e map[string]any
			apptest.Decode(t, []byte(d), &e)
			list = append(list, e)
		}
	}
	return list
}

func TestProgressOfUndo(t *testing.T) {
	session := `{"project_id":"{project}","summary":"planted","new_tasks":[{"text":"a"},{"text":"b"},{"text":"c"},{"text":"d"}]}`
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		for _, m := range []manner{legacy, modern} {
			for _, token := range []string{`"p-1"`, `42`} {
				t.Run(m.name+"/"+token, func(t *testing.T) {
					r := w.send(t, m.call("rw", "log_session_summary", session))
					s := m.call("rw", "undo_change", `{"request":"`+r.Header.Get("X-Request-Id")+`"}`)
					if s.body = strings.Replace(s.body, `"_meta":{`, `"_meta":{"progressToken":`+token+`,`, 1); !m.modern {
						s.body = strings.Replace(s.body, `"params":{`, `"params":{"_meta":{"progressToken":`+token+`},`, 1)
					}
					r = w.send(t, s)
					w.always(t, s, r)
					if r.Status != 200 || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") || r.Header.Get("X-Accel-Buffering") != "no" {
						t.Fatalf("%d %v %s", r.Status, r.Header, r.Body)
					}
					list := events(t, r)
					last := 0.0
					for _, e := range list[:len(list)-1] {
						p, _ := e["params"].(map[string]any)
						n, _ := p["progress"].(float64)
						if got, _ := json.Marshal(p["progressToken"]); e["method"] != "notifications/progress" || string(got) != token || n <= last || p["total"] != 5.0 || p["message"] == "" {
							t.Errorf("after %v: %v", last, e)
						}
						last = n
					}
					if len(list) < 3 || last != 5 {
						t.Errorf("progress ended at %v with %d events", last, len(list))
					}
					if out := read(t, r); string(out.ID) != "7" || out.Result == nil || len(out.Result.Structured["undone"].([]any)) != 5 {
						t.Errorf("the answer is %v", list[len(list)-1])
					}
				})
			}
			t.Run(m.name+"/answer as JSON", func(t *testing.T) {
				plain := m
				plain.headers = append([]string{"Accept: application/json"}, m.headers[1:]...)
				r := w.send(t, plain.call("rw", "log_session_summary", session))
				s := plain.call("rw", "undo_change", `{"request":"`+r.Header.Get("X-Request-Id")+`"}`)
				s.body = strings.Replace(s.body, `"_meta":{`, `"_meta":{"progressToken":1,`, 1)
				if r = w.send(t, s); r.Header.Get("Content-Type") != "application/json" || !strings.Contains(r.Body, `"undone":[{`) {
					t.Errorf("%d %v %s", r.Status, r.Header, r.Body)
				}
			})
		}
	})
}

// A client that goes away while its call waits ends the call: nothing is written, and its outcome is not ok.
func TestClosingTheConnectionCancels(t *testing.T) {
	a := alone(t, nil)
	w := settle(t, a)
	free, held := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- a.DB.Write(context.Background(), func(*db.Tx) error { close(held); <-free; return nil })
	}()
	<-held
	all := []manner{heroes, legacy, modern, speaking("2025-11-25"), speaking("2026-07-28")}
	var want []string
	for i, m := range all {
		for _, path := range []string{"direct", "sdk"} {
			name := fmt.Sprintf("cancelled %d %s", i, path)
			s := m.call("rw", "create_work_task", `{"name":"`+name+`"}`)
			if path == "sdk" {
				s.body = strings.Replace(s.body, `"params":{`, `"params":{"trace":1,`, 1)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 150*time.Millisecond)
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.Server.URL+"/mcp", strings.NewReader(s.body))
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range append(s.headers, "Content-Type: application/json", "User-Agent: "+name, "Authorization: Bearer "+w.tokens["rw"]) {
				k, v, _ := strings.Cut(h, ": ")
				r.Header.Set(k, v)
			}
			if res, err := a.Server.Client().Do(r); err == nil {
				_ = res.Body.Close()
			}
			cancel()
			want = append(want, name)
		}
	}
	time.Sleep(100 * time.Millisecond) // for the server to notice the last
	close(free)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.run(t, scenario{do: "POST /api/create_work_task", as: "rw", body: `{"name":"last in the queue"}`, status: 200})
	r := w.send(t, scenario{do: "POST /api/list_tasks", as: "rw", body: `{"limit":200}`})
	for _, name := range want {
		if strings.Contains(r.Body, name) {
			t.Errorf("%s was written after its client had gone", name)
		}
	}
}
