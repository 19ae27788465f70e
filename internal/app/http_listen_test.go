package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/apptest"
	"cairn/internal/change"
	"cairn/internal/db/dbtest"
)

// ear is an open subscriptions/listen.
type ear struct {
	t      *testing.T
	close  context.CancelFunc
	events chan map[string]any // nil after the last
}

// listen opens one; want are the members of notifications.
func listen(t *testing.T, w *world, as, want string) *ear {
	t.Helper()
	res, cancel := opened(t, w, as, want)
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") || res.Header.Get("X-Accel-Buffering") != "no" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	e := &ear{t, cancel, make(chan map[string]any, 1000)}
	go func() {
		defer close(e.events)
		defer res.Body.Close() //nolint:errcheck // it was read
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var m map[string]any
				if json.Unmarshal([]byte(data), &m) == nil {
					e.events <- m
				}
			}
		}
	}()
	return e
}

func opened(t *testing.T, w *world, as, want string) (*http.Response, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	s := modern.request(as, `"listen:1"`, "subscriptions/listen", "", `"notifications":{`+w.fill(want)+`}`)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.Server.URL+"/mcp", strings.NewReader(s.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+w.tokens[as])
	for _, h := range s.headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	res, err := w.Server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return res, cancel
}

// next gives the next event: its method and what it says, or "end" and the result's type; "" = none came in time.
func (e *ear) next(within time.Duration) string {
	e.t.Helper()
	select {
	case m, more := <-e.events:
		if !more {
			return "gone"
		}
		params, _ := m["params"].(map[string]any)
		if m["method"] == nil {
			result, _ := m["result"].(map[string]any)
			meta, _ := result["_meta"].(map[string]any)
			return fmt.Sprint("end ", result["resultType"], " ", meta["io.modelcontextprotocol/subscriptionId"], " ", m["id"])
		}
		meta, _ := params["_meta"].(map[string]any)
		if m["jsonrpc"] != "2.0" || m["id"] != nil || meta["io.modelcontextprotocol/subscriptionId"] != "listen:1" {
			e.t.Errorf("%v", m)
		}
		delete(params, "_meta")
		said, _ := json.Marshal(params)
		return strings.TrimPrefix(m["method"].(string), "notifications/") + " " + string(said)
	case <-time.After(within):
		return ""
	}
}

// soon is how long a change may take to be told, on a busy machine.
const soon = 10 * time.Second

// hears wants these events, in any order.
func (e *ear) hears(want ...string) {
	e.t.Helper()
	var got []string
	for range want {
		got = append(got, e.next(soon))
	}
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		e.t.Fatalf("it hears %q, want %q", got, want)
	}
}

// silent wants nothing to come.
func (e *ear) silent() {
	e.t.Helper()
	if got := e.next(1500 * time.Millisecond); got != "" {
		e.t.Fatalf("it hears %q, want nothing", got)
	}
}

const ended = "end complete listen:1 listen:1"

// What a listener is told: what it asked for, can read, and changed, whoever changed it; of one change no more than one word.
func TestListenersAreToldWhatChanges(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		uri := w.fill("cairn://block/{block}")
		do := func(op, args string) { t.Helper(); a.Call(t, a.Person(t), op, w.fill(args)) }
		all := listen(t, w, "ro", `"resourcesListChanged":true,"toolsListChanged":true,"resourceSubscriptions":["cairn:block/{block}","cairn://block/{absent}","skill://cairn/SKILL.md","cairn://block/{block}"]`)
		all.hears(`subscriptions/acknowledged {"notifications":{"resourceSubscriptions":["` + w.fill("cairn:block/{block}") + `"],"resourcesListChanged":true}}`)
		one := listen(t, w, "rw", `"resourceSubscriptions":["cairn://block/{block}"]`)
		one.hears(`subscriptions/acknowledged {"notifications":{"resourceSubscriptions":["` + uri + `"]}}`)
		work := listen(t, w, "work", `"resourcesListChanged":true,"resourceSubscriptions":["cairn://block/{block}","cairn://block/{leaf}"]`)
		work.hears(`subscriptions/acknowledged {"notifications":{"resourceSubscriptions":["` + w.fill("cairn://block/{leaf}") + `"],"resourcesListChanged":true}}`)

		var doc struct{ Hash string }
		apptest.Decode(t, a.Call(t, a.Person(t), "get_document", w.fill(`{"block_id":"{block}"}`)), &doc)
		do("patch_document", `{"block_id":"{block}","base_hash":"`+doc.Hash+`","operations":[{"op":"replace_text","node_id":"@1","find":"Water","replace":"Mist"}]}`)
		updated, here, list := `resources/updated {"uri":"`+uri+`"}`, `resources/updated {"uri":"`+w.fill("cairn:block/{block}")+`"}`, `resources/list_changed {}`
		one.hears(updated)
		all.hears(here)

		do("set_property", `{"block_id":"{block}","key":"status","value":"wet"}`) // isn't in what is read
		do("pin_block", `{"block_id":"{block}","pinned":true}`)
		do("create_personal_task", `{"name":"Something else"}`)
		one.silent()

		do("create_block", `{"title":"New","heap":"Personal"}`)
		all.hears(list)
		do("delete_block", `{"block_id":"{block}"}`)
		all.hears(list, here)
		one.hears(updated)
		do("restore_block", `{"block_id":"{block}"}`)
		all.hears(list, here)
		one.hears(updated)
		work.silent()
		do("create_block", `{"title":"At work","heap":"Work"}`)
		work.hears(list)
		all.hears(list)
		one.silent()
	})
}

func TestNothingToListenToEndsAtOnce(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		for as, want := range map[string]string{"tasks": `"resourcesListChanged":true,"resourceSubscriptions":["cairn://block/{block}"]`, "rw": `"toolsListChanged":true,"promptsListChanged":true`} {
			e := listen(t, w, as, want)
			e.hears(`subscriptions/acknowledged {"notifications":{}}`)
			e.hears(ended)
			e.hears("gone")
		}
	})
}

// Who may no longer is told nothing more, and the stream ends.
func TestListeningEndsWithTheRight(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		w.tokens["brief"] = w.Token(t, `{"name":"brief","rate":0,"expires":"1h"}`)
		for _, c := range []struct{ as, op, args, back string }{
			{"rw", "revoke_token", `{"token":"rw"}`, ""},
			{"work", "update_heap", `{"heap":"Work","archived":true}`, `{"heap":"Work","archived":false}`},
			{"brief", "", "", ""},
			{"ro", "pause_agents", `{"all":"account"}`, ""},
		} {
			t.Run(c.op, func(t *testing.T) {
				e := listen(t, w, c.as, `"resourcesListChanged":true`)
				e.hears(`subscriptions/acknowledged {"notifications":{"resourcesListChanged":true}}`)
				if c.op == "" {
					a.Clock.Move(2 * time.Hour)
				} else {
					a.Call(t, a.Person(t), c.op, c.args)
				}
				a.Call(t, a.Person(t), "create_block", `{"title":"After","heap":"Personal"}`)
				e.hears(ended)
				e.hears("gone")
				if c.back != "" {
					a.Call(t, a.Person(t), c.op, c.back)
				}
			})
		}
	})
}

// An account is taken out of a heap: its listeners hear nothing of it any more, whatever is written there at that moment.
func TestListeningEndsWithMembership(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		reader := a.Account(t, "Reader")
		a.Call(t, a.Person(t), "invite_member", `{"heap":"Work","account":"reader","role":"viewer"}`)
		var out struct {
			Invites []struct{ ID string }
			Secret  string
		}
		apptest.Decode(t, a.Call(t, reader, "list_invites", `{}`), &out)
		a.Call(t, reader, "respond_invite", `{"invite_id":"`+out.Invites[0].ID+`","accept":true}`)
		apptest.Decode(t, a.Call(t, a.PersonNamed(t, "Reader"), "create_token", `{"name":"viewer","rate":0}`), &out)
		w.tokens["viewer"] = out.Secret
		e := listen(t, w, "viewer", `"resourceSubscriptions":["cairn://block/{leaf}"],"resourcesListChanged":true`)
		e.next(soon)
		a.Call(t, a.Person(t), "create_block", `{"title":"Seen","heap":"Work"}`)
		e.hears(`resources/list_changed {}`)
		a.Call(t, a.Person(t), "remove_member", `{"heap":"Work","account":"reader"}`)
		a.Call(t, a.Person(t), "delete_block", w.fill(`{"block_id":"{leaf}"}`))
		e.hears(ended)
	})
}

func TestListenersAreBounded(t *testing.T) {
	w := settle(t, alone(t, nil))
	var ears []*ear
	for range 8 {
		e := listen(t, w, "rw", `"resourcesListChanged":true`)
		e.next(soon)
		ears = append(ears, e)
	}
	res, _ := opened(t, w, "rw", `"resourcesListChanged":true`)
	if res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("the ninth: %d", res.StatusCode)
	}
	listen(t, w, "ro", `"resourcesListChanged":true`).next(soon)
	ears[0].close()
	for end := time.Now().Add(soon); ; time.Sleep(20 * time.Millisecond) {
		res, cancel := opened(t, w, "rw", `"resourcesListChanged":true`)
		if cancel(); res.StatusCode == http.StatusOK {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("one was closed, and another is refused: %d", res.StatusCode)
		}
	}
	many := strings.TrimSuffix(strings.Repeat(`"cairn://block/{block}",`, 51), ",")
	r := w.send(t, modern.request("ro", "1", "subscriptions/listen", "", `"notifications":{"resourceSubscriptions":[`+many+`]}`))
	if e := read(t, r).Error; e == nil || e.Code != -32602 || !strings.Contains(e.Message, "51") {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	r = w.send(t, modern.request("ro", "1", "subscriptions/listen", "", ""))
	if e := read(t, r).Error; e == nil || e.Code != -32602 {
		t.Errorf("without notifications: %d %s", r.Status, r.Body)
	}
}

// Before 2026-07-28 there is no stream that could tell of changes, and nothing says that there is.
func TestOlderVersionsAreNotPromisedToHear(t *testing.T) {
	w := settle(t, alone(t, nil))
	for _, m := range []manner{heroes, alias, legacy} {
		for _, method := range []string{"subscriptions/listen", "resources/subscribe", "resources/unsubscribe"} {
			params := map[bool]string{true: `"notifications":{"resourcesListChanged":true}`, false: `"uri":"cairn://block/{block}"`}[method == "subscriptions/listen"]
			r := w.send(t, m.request("rw", "1", method, "", params))
			if e := read(t, r).Error; e == nil || e.Code != -32601 {
				t.Errorf("%s %s: %d %s", m.name, method, r.Status, r.Body)
			}
		}
	}
}

// A write on one replica is told on the other.
func TestReplicasTellOfEachOthersWrites(t *testing.T) {
	env := map[string]string{"CAIRN_DATABASE_URL": dbtest.Postgres(t)}
	w := settle(t, apptest.New(t, env))
	other := apptest.New(t, env)
	other.Clock.Move(24 * time.Hour)
	e := listen(t, w, "rw", `"resourcesListChanged":true,"resourceSubscriptions":["cairn://block/{block}"]`)
	e.next(soon)
	other.Call(t, other.Person(t), "create_block", `{"title":"Elsewhere","heap":"Personal"}`)
	e.hears(`resources/list_changed {}`)
	other.Call(t, other.Person(t), "delete_block", w.fill(`{"block_id":"{block}"}`))
	e.hears(`resources/list_changed {}`, w.fill(`resources/updated {"uri":"cairn://block/{block}"}`))
}

// Whatever is committed after Watch returned is told once, in the order of the commits, however many write at the same time.
func TestWatcherMissesNothing(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := change.NewWatcher(a.DB, slog.New(slog.DiscardHandler))
		heaps := rows(t, a, `SELECT id FROM heap ORDER BY id`)
		var mu sync.Mutex
		var told []string
		a.Call(t, a.Person(t), "create_block", `{"title":"Before"}`)
		stop, err := w.Watch(context.Background(), heaps, "block", func(h change.Heard) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, h.Thing+" "+h.Effect)
		})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 20 {
					a.Call(t, a.Person(t), "create_block", `{"title":"One of many"}`)
				}
			})
		}
		all.Wait()
		want := rows(t, a, `SELECT thing FROM change WHERE kind = 'block' AND summary LIKE '%many%' ORDER BY seq`)
		for end := time.Now().Add(soon); ; time.Sleep(20 * time.Millisecond) {
			mu.Lock()
			n := len(told)
			mu.Unlock()
			if n >= len(want) || time.Now().After(end) {
				break
			}
		}
		stop()
		a.Call(t, a.Person(t), "create_block", `{"title":"After"}`)
		time.Sleep(300 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		for i := range want {
			want[i] += " create"
		}
		if len(want) != 160 || !slices.Equal(told, want) {
			t.Errorf("%d changes, %d told, in the same order: %t", len(want), len(told), slices.Equal(told, want))
		}
	})
}
