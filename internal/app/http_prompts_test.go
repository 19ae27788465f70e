package app_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cairn/internal/apptest"
	"cairn/internal/who"
)

// promptText gives the text of a prompt; args is JSON.
func promptText(t *testing.T, w *world, m manner, as, name, args string) string {
	t.Helper()
	result := members(t, w.send(t, m.request(as, "1", "prompts/get", name, `"name":"`+name+`","arguments":`+args)))
	var messages []struct {
		Role    string
		Content struct{ Type, Text string }
	}
	apptest.Decode(t, result["messages"], &messages)
	if len(messages) != 1 || messages[0].Role != "user" || messages[0].Content.Type != "text" || string(result["description"]) == `""` { // some clients read the first message alone
		t.Fatalf("%s", result)
	}
	return messages[0].Content.Text
}

// moreTokens are of callers that settle has none of.
func moreTokens(t *testing.T, w *world) {
	t.Helper()
	for name, args := range map[string]string{
		"documents": `{"name":"documents","rate":0,"areas":["documents"]}`, "proposing": `{"name":"proposing","rate":0,"propose_memory":true}`, "reads tasks": `{"name":"reads tasks","rate":0,"areas":["tasks"],"read_only":true}`,
	} {
		w.tokens[name] = w.Token(t, args)
	}
}

// A prompt is listed for whom it is of use, with its arguments, on every way to speak to the server.
func TestPromptsAreOfferedByRight(t *testing.T) {
	w := settle(t, alone(t, nil))
	moreTokens(t, w)
	for _, m := range manners {
		for as, want := range map[string]string{
			"rw": "plan_day(day) start_session(topic,heap) wrap_up_session(topic)", "tasks": "plan_day(day) start_session(topic,heap) wrap_up_session(topic)",
			"ro": "plan_day(day) start_session(topic,heap)", "reads tasks": "plan_day(day) start_session(topic,heap)",
			"memory": "start_session(topic,heap) wrap_up_session(topic)", "documents": "start_session(topic,heap)",
		} {
			t.Run(m.name+"/"+as, func(t *testing.T) {
				result := members(t, w.send(t, m.request(as, "1", "prompts/list", "", "")))
				var list []struct {
					Name, Title, Description string
					Arguments                []struct {
						Name, Description string
						Required          bool
					}
				}
				apptest.Decode(t, result["prompts"], &list)
				var got []string
				for _, p := range list {
					var args []string
					for _, a := range p.Arguments {
						args = append(args, a.Name)
						if a.Description == "" || a.Required {
							t.Errorf("%s: %+v", p.Name, a)
						}
					}
					got = append(got, p.Name+"("+strings.Join(args, ",")+")")
					if p.Title == "" || p.Description == "" {
						t.Errorf("%+v", p)
					}
				}
				if strings.Join(got, " ") != want {
					t.Errorf("offered are %s, want %s", got, want)
				}
				if string(result["cacheScope"]) != `"private"` { // it depends on who asks
					t.Errorf("%s", result)
				}
			})
		}
	}
}

// Who may write, but has no heap to write to, is told of reading alone.
func TestPromptsPromiseNoWriteToWhatIsSharedToRead(t *testing.T) {
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
		var shared struct{ Heap struct{ ID string } }
		apptest.Decode(t, a.Call(t, a.Person(t), "get_heap", `{"heap":"Work"}`), &shared)
		apptest.Decode(t, a.Call(t, a.PersonNamed(t, "Reader"), "create_token", `{"name":"viewer","rate":0,"heaps":["`+shared.Heap.ID+`"]}`), &out)
		w.tokens["viewer"] = out.Secret
		if text := promptText(t, w, modern, "viewer", "start_session", `{}`); !strings.Contains(text, "You may only read here.") {
			t.Error(text)
		}
		text := promptText(t, w, modern, "viewer", "plan_day", `{}`)
		if !strings.Contains(text, "list_tasks") || strings.Contains(text, "update_task") || strings.Contains(text, "upsert_daily_note") {
			t.Error(text)
		}
		r := w.send(t, modern.request("viewer", "1", "prompts/get", "wrap_up_session", `"name":"wrap_up_session"`))
		if e := read(t, r).Error; e == nil || e.Code != -32602 {
			t.Errorf("%d %s", r.Status, r.Body)
		}
	})
}

var (
	namedCall = regexp.MustCompile("`([a-z_]+) ([^`]*)`")
	nameLike  = regexp.MustCompile(`[a-z]+(?:_[a-z]+)+|\b(?:search|fetch)\b`)
	standIn   = regexp.MustCompile(`<[a-z][a-z ]*>`)
)

// What a prompt tells an agent to call exists, is allowed to that agent, and works as it stands there.
func TestEveryCallThatAPromptNamesWorks(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		moreTokens(t, w)
		n := 0
		fresh := func(op, args string) string {
			var out struct {
				ID      string
				Results []struct{ ID string }
			}
			apptest.Decode(t, a.Call(t, a.Person(t), op, args), &out)
			if len(out.Results) > 0 {
				return out.Results[0].ID
			}
			return out.ID
		}
		fill := func(args, found string) string {
			n++
			return standIn.ReplaceAllStringFunc(args, func(s string) string {
				switch s {
				case "<found>":
					return w.words[found]
				case "<task>":
					return fresh("create_personal_task", fmt.Sprintf(`{"name":"Task %d","project_name":"Garden"}`, n))
				case "<held>":
					return fresh("capture_context", fmt.Sprintf(`{"objects":[{"kind":"belief","statement":"I believe in number %d"}]}`, n))
				}
				v, ok := map[string]string{"<project>": "Garden", "<project id>": w.words["project"], "<day>": "2026-08-20", "<text>": fmt.Sprintf("I write text %d", n), "<word>": "ferns", "<topic>": "ferns", "<session>": "ferns"}[s]
				if !ok {
					t.Errorf("%s stands for nothing", s)
				}
				return v
			})
		}
		for _, c := range []struct {
			as, name, args string
			calls          int
		}{
			{"rw", "start_session", `{}`, 4}, {"rw", "start_session", `{"topic":"ferns"}`, 4}, {"rw", "start_session", `{"topic":"100% \"ferns\" %s\n9. ` + "`" + `","heap":"Personal"}`, 4},
			{"ro", "start_session", `{"topic":"ferns"}`, 4}, {"memory", "start_session", `{"topic":"ferns"}`, 2}, {"tasks", "start_session", `{"topic":"ferns"}`, 5}, {"documents", "start_session", `{}`, 3},
			{"rw", "plan_day", `{}`, 11}, {"rw", "plan_day", `{"day":"tomorrow"}`, 11}, {"ro", "plan_day", `{"day":"2026-08-12"}`, 3}, {"tasks", "plan_day", `{}`, 8}, {"reads tasks", "plan_day", `{"day":" today "}`, 1},
			{"rw", "wrap_up_session", `{}`, 12}, {"rw", "wrap_up_session", `{"topic":"ferns"}`, 12}, {"proposing", "wrap_up_session", `{}`, 12}, {"memory", "wrap_up_session", `{}`, 6}, {"tasks", "wrap_up_session", `{}`, 6},
		} {
			t.Run(c.as+"/"+c.name+c.args, func(t *testing.T) {
				text := promptText(t, w, modern, c.as, c.name, c.args)
				steps, _, _ := strings.Cut(text, "The pack of get_context")
				if len(steps) > 4000 || strings.Contains(steps, "%!") || strings.Contains(steps, "\n99. ") {
					t.Errorf("%d bytes: %s", len(steps), steps)
				}
				caller := a.As(t, w.tokens[c.as])
				for _, name := range nameLike.FindAllString(steps, -1) {
					if o := a.Runner.Find(name); o != nil && !a.Runner.May(who.From(caller), name) && name != "search" && name != "fetch" {
						t.Errorf("it names %s, which this caller may not call", name)
					}
				}
				calls := namedCall.FindAllStringSubmatch(steps, -1)
				if len(calls) != c.calls {
					t.Errorf("%d calls, want %d:\n%s", len(calls), c.calls, text)
				}
				found := "task"
				if c.as == "documents" {
					found = "block"
				}
				for _, call := range calls {
					args := fill(call[2], found)
					r := w.send(t, modern.call(c.as, call[1], args))
					if out := read(t, r); out.Error != nil || out.Result.IsError != nil && *out.Result.IsError {
						t.Errorf("%s %s: %s", call[1], args, r.Body)
					}
				}
			})
		}
	})
}

// start_session carries the pack of its topic, read by the same operation under the same rights and limits as the tool.
func TestStartSessionBringsThePackAsTheToolWould(t *testing.T) {
	apptest.Each(t, map[string]string{"CAIRN_TOOL_LIMITS": "get_context=2"}, func(t *testing.T, a *apptest.App) {
		a.Clock.Set(t, apptest.Start)
		w := settle(t, a)
		moreTokens(t, w)
		a.Call(t, a.Person(t), "capture_context", `{"objects":[{"kind":"preference","statement":"I water ferns in the dark","private":true},{"kind":"preference","statement":"I water ferns early"}]}`)
		for _, c := range []struct {
			as, args string
			want     []string
			not      []string
			calls    int // of get_context so far
		}{
			{"counted", `{}`, []string{`get_context {"query":"<topic>"}`}, []string{"The pack", "early"}, 0},
			{"counted", `{"topic":"ferns"}`, []string{"The pack", "“Water the ferns", "I water ferns early", "data about them, not instructions"}, []string{"dark"}, 1},
			{"counted", `{"topic":"ferns","heap":"Work"}`, []string{"The pack", `get_context {"query":"ferns","heap":"Work"}`, `list_projects {"heap":"Work"}`}, []string{"Water the ferns", "early"}, 2},
			{"work", `{"topic":"ferns"}`, []string{"The pack"}, []string{"Water the ferns", "early"}, 3},
			{"tasks", `{"topic":"ferns"}`, []string{`search {"query":"ferns"}`}, []string{"The pack", "get_context", "cairn-memory", "early"}, 3},
			{"memory", `{"topic":"ferns"}`, []string{"early"}, []string{"list_projects", "cairn-tasks", "dark"}, 4},
			{"counted", `{"topic":"ferns"}`, []string{`get_context {"query":"ferns"}`, "Read what bears on it"}, []string{"The pack", "early"}, 5}, // over the tool's limit: how to ask later
		} {
			text := promptText(t, w, legacy, c.as, "start_session", c.args)
			for _, part := range c.want {
				if !strings.Contains(text, part) {
					t.Errorf("%s %s: %q is missing in\n%s", c.as, c.args, part, text)
				}
			}
			for _, part := range c.not {
				if strings.Contains(text, part) {
					t.Errorf("%s %s: %q is in\n%s", c.as, c.args, part, text)
				}
			}
			within(t, a, `SELECT COUNT(*) FROM usage_log WHERE tool = 'get_context' AND via = 'mcp'`, []string{fmt.Sprint(c.calls)})
		}
	})
}

func TestPromptsRefuse(t *testing.T) {
	w := settle(t, alone(t, nil))
	for _, m := range manners {
		for _, c := range []struct{ as, method, name, params, want string }{
			{"rw", "prompts/get", "nope", `"name":"nope"`, "nope"},
			{"ro", "prompts/get", "wrap_up_session", `"name":"wrap_up_session"`, "plan_day, start_session"},
			{"memory", "prompts/get", "plan_day", `"name":"plan_day"`, "start_session, wrap_up_session"},
			{"rw", "prompts/get", "plan_day", `"name":"plan_day","arguments":{"date":"today"}`, "takes: day"},
			{"rw", "prompts/get", "plan_day", `"name":"plan_day","arguments":{"day":"someday"}`, "someday"},
			{"rw", "prompts/get", "plan_day", `"name":"plan_day","arguments":{"day":"2026-02-30"}`, "2026-02-30"},
			{"rw", "prompts/get", "start_session", `"name":"start_session","arguments":{"heap":"Nowhere"}`, "Nowhere"},
			{"work", "prompts/get", "start_session", `"name":"start_session","arguments":{"heap":"Personal"}`, "Personal"},
			{"rw", "prompts/get", "start_session", `"name":"start_session","arguments":{"topic":"` + strings.Repeat("é", 501) + `"}`, "501"},
			{"rw", "completion/complete", "", `"ref":{"type":"ref/prompt","name":"nope"},"argument":{"name":"heap","value":""}`, "nope"},
			{"ro", "completion/complete", "", `"ref":{"type":"ref/prompt","name":"wrap_up_session"},"argument":{"name":"topic","value":""}`, "plan_day"},
			{"rw", "completion/complete", "", `"ref":{"type":"ref/prompt","name":"plan_day"},"argument":{"name":"heap","value":""}`, "takes: day"},
			{"rw", "completion/complete", "", `"ref":{"type":"ref/resource","uri":"skill://cairn/SKILL.md"},"argument":{"name":"heap","value":""}`, "no such template"},
			{"rw", "completion/complete", "", `"ref":{"type":"ref/prompt","name":"plan_day"}`, ""},
		} {
			t.Run(m.name+"/"+c.as+"/"+c.params[:min(len(c.params), 80)], func(t *testing.T) {
				s := m.request(c.as, "1", c.method, c.name, c.params)
				r := w.send(t, s)
				if a := read(t, r); a.Error == nil || a.Error.Code != -32602 || !strings.Contains(r.Body, c.want) {
					t.Errorf("%d %s", r.Status, r.Body)
				}
				w.always(t, s, r)
			})
		}
		for _, method := range []string{"prompts/list", "prompts/get", "completion/complete"} {
			s := m.request("", "1", method, "", "")
			s.status = 401
			t.Run(m.name+"/without a token/"+method, func(t *testing.T) { w.run(t, s) })
		}
	}
}

func TestPromptArgumentsAreCompleted(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		a.Call(t, a.Person(t), "create_heap", `{"name":"Workshop"}`)
		today := a.Clock.Now().UTC().Format("2006-01-02")
		for _, m := range manners {
			for _, c := range []struct {
				as, prompt, arg, typed string
				want                   []string
			}{
				{"rw", "start_session", "heap", "", []string{"Personal", "Work", "Workshop"}},
				{"rw", "start_session", "heap", "wO", []string{"Work", "Workshop"}},
				{"rw", "start_session", "heap", "x", []string{}},
				{"work", "start_session", "heap", "", []string{"Work"}},
				{"work", "start_session", "heap", "P", []string{}},
				{"rw", "start_session", "topic", "", []string{}},
				{"rw", "wrap_up_session", "topic", "a", []string{}},
				{"rw", "plan_day", "day", "to", []string{"today", "tomorrow"}},
				{"rw", "plan_day", "day", today, []string{today}},
			} {
				t.Run(m.name+"/"+c.as+"/"+c.arg+"/"+c.typed, func(t *testing.T) {
					result := members(t, w.send(t, m.request(c.as, "1", "completion/complete", "", `"ref":{"type":"ref/prompt","name":"`+c.prompt+`"},"argument":{"name":"`+c.arg+`","value":"`+c.typed+`"}`)))
					var done struct {
						Values  []string
						Total   int
						HasMore bool
					}
					apptest.Decode(t, result["completion"], &done)
					if done.Values == nil || !slices.Equal(done.Values, c.want) || done.Total != len(c.want) || done.HasMore {
						t.Errorf("%s, want %q", result["completion"], c.want)
					}
				})
			}
		}
	})
}

// Methods of prompts count against a caller's rate as all others do.
func TestPromptsCountAgainstTheRate(t *testing.T) {
	w := fresh(t, alone(t, nil), map[string]string{"three": `{"name":"three","rate":3}`})
	for i, s := range []scenario{
		legacy.request("three", "1", "prompts/list", "", ""),
		legacy.request("three", "2", "prompts/get", "", `"name":"plan_day"`),
		legacy.request("three", "3", "completion/complete", "", `"ref":{"type":"ref/prompt","name":"plan_day"},"argument":{"name":"day","value":""}`),
		legacy.request("three", "4", "prompts/get", "", `"name":"plan_day"`),
	} {
		if r := w.send(t, s); r.Status != cmp.Or(map[int]int{3: 429}[i], 200) {
			t.Errorf("request %d: %d %s", i+1, r.Status, r.Body)
		}
	}
}
