package app_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"cairn/internal/apptest"
	"cairn/internal/db"
	"cairn/internal/op"
)

// A token that may only read writes nothing, whatever the tool and the way in (CASES 41).
func TestReadOnlyTokenIsRefusedByEveryWriteTool(t *testing.T) {
	challenge := []string{`WWW-Authenticate: error="insufficient_scope", scope="cairn.read cairn.write"`}
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		n := 0
		for _, o := range a.Runner.Ops() {
			if o.Effect == op.Read {
				continue
			}
			n++
			code, kind, header := `"code":-32008`, `"error":"scope"`, challenge
			if o.PersonOnly {
				code, kind, header = `"code":-32001`, `"error":"denied"`, []string{"-WWW-Authenticate"}
			}
			t.Run(o.Name, func(t *testing.T) {
				for _, m := range manners {
					for _, args := range []string{o.Example, `{}`, `{"nonsense":1}`} { // refused before the arguments are looked at
						s := m.call("ro", o.Name, args)
						s.status, s.header, s.want = http.StatusForbidden, header, []string{code, `"id":7`}
						w.run(t, s)
					}
				}
				w.run(t, scenario{do: "POST /api/" + o.Name, as: "ro", body: o.Example, status: http.StatusForbidden, header: header, want: []string{kind}})
				r := w.send(t, scenario{as: "ro", body: batchOf(heroes.call("ro", o.Name, o.Example).body, heroes.call("ro", "list_heaps", "{}").body, heroes.call("ro", o.Name, "{}").body)})
				if r.Status != http.StatusOK || strings.Count(r.Body, code) != 2 || !strings.Contains(r.Body, `"heaps":[`) {
					t.Errorf("batch: %d %s", r.Status, r.Body)
				}
			})
		}
		if n < 12 {
			t.Errorf("only %d operations write", n)
		}
		var changes struct{ Changes []struct{ Actor string } }
		apptest.Decode(t, a.Call(t, a.Person(t), "list_changes", `{"limit":200}`), &changes)
		for _, c := range changes.Changes {
			if strings.HasPrefix(c.Actor, "token:") {
				t.Errorf("a token wrote: %+v", c)
			}
		}
	})
}

// reach is a call with {x}, which stands for something in a heap that isn't granted and then for what doesn't exist.
type reach struct{ tool, args, forbidden, absent string }

// Each tool that takes an id, a name or a ref of a thing must be here: the test sees to it.
var reaches = []reach{
	{"fetch", `{"id":"{x}"}`, "{task}", "{absent}"},
	{"fetch", `{"id":"{x}"}`, "{project}", "{absent}"},
	{"search", `{"query":"ferns {x}"}`, "Garden", "Nowhere"},
	{"search", `{"query":"ferns","heap":"{x}"}`, "Personal", "Nowhere"},
	{"list_tasks", `{"project_id":"{x}"}`, "{project}", "{absent}"},
	{"list_tasks", `{"external_ref":"{x}"}`, "ferns", "nosuch"},
	{"list_tasks", `{"external_ref_prefix":"{x}"}`, "fern", "nosu"},
	{"list_tasks", `{"query":"{x}"}`, "ferns", "nosuch"},
	{"list_tasks", `{"heap":"{x}"}`, "Personal", "Nowhere"},
	{"get_task", `{"task_id":"{x}"}`, "{task}", "{absent}"},
	{"get_task", `{"external_ref":"{x}"}`, "ferns", "nosuch"},
	{"get_task", `{"task_id":"{x}"}`, "{trashed}", "{absent}"},
	{"complete_task", `{"task_id":"{x}"}`, "{task}", "{absent}"},
	{"complete_task", `{"external_ref":"{x}"}`, "ferns", "nosuch"},
	{"update_task", `{"task_id":"{x}","name":"y"}`, "{task}", "{absent}"},
	{"update_task", `{"external_ref":"{x}","name":"y"}`, "ferns", "nosuch"},
	{"update_task", `{"external_ref":"draft","project_id":"{x}"}`, "{project}", "{absent}"},
	{"delete_task", `{"task_id":"{x}"}`, "{task}", "{absent}"},
	{"delete_task", `{"external_ref":"{x}"}`, "ferns", "nosuch"},
	{"restore_task", `{"task_id":"{x}"}`, "{trashed}", "{absent}"},
	{"restore_task", `{"external_ref":"{x}"}`, "gone", "nosuch"},
	{"create_work_task", `{"name":"y","project_id":"{x}"}`, "{project}", "{absent}"},
	{"create_work_task", `{"name":"y","project_name":"{x}"}`, "Garden", "Nowhere"},
	{"create_work_task", `{"name":"y","heap":"{x}"}`, "Personal", "Nowhere"},
	{"create_personal_task", `{"name":"y","project_id":"{x}"}`, "{project}", "{absent}"},
	{"create_personal_task", `{"name":"y","heap":"{x}"}`, "Personal", "Nowhere"},
	{"create_project", `{"name":"y","heap":"{x}"}`, "Personal", "Nowhere"},
	{"list_projects", `{"heap":"{x}"}`, "Personal", "Nowhere"},
	{"list_projects", `{"cursor":"{x}"}`, "{mark}", "{nomark}"},
	{"get_project_context", `{"project_id":"{x}"}`, "{project}", "{absent}"},
	{"get_project_context", `{"project_name":"{x}"}`, "Garden", "Nowhere"},
	{"update_project", `{"project_id":"{x}","name":"y"}`, "{project}", "{absent}"},
	{"update_project", `{"project_name":"{x}","name":"y"}`, "Garden", "Nowhere"},
	{"log_session_summary", `{"project_id":"{x}","summary":"y"}`, "{project}", "{absent}"},
	{"log_session_summary", `{"project_name":"{x}","summary":"y"}`, "Garden", "Nowhere"},
	{"log_session_summary", `{"project_name":"Twice","summary":"y","completed_task_ids":["{x}"]}`, "{task}", "{absent}"},
	{"fetch", `{"id":"{x}"}`, "{guard}", "{absent}"},
	{"capture_context", `{"objects":[{"kind":"belief","statement":"y"}],"heap":"{x}"}`, "Personal", "Nowhere"},
	{"supersede_context", `{"id":"{x}","statement":"y"}`, "{guard}", "{absent}"},
	{"correct_context", `{"statement":"y","heap":"{x}"}`, "Personal", "Nowhere"},
	{"get_self", `{"heap":"{x}"}`, "Personal", "Nowhere"},
	{"upsert_daily_note", `{"external_ref":"y","date":"2026-08-10","title":"y","body":"y","heap":"{x}"}`, "Personal", "Nowhere"},
	{"add_decision", `{"external_ref":"y","title":"y","heap":"{x}"}`, "Personal", "Nowhere"},
	{"add_episode", `{"external_ref":"y","occurred_at":"2026-08-10","summary":"y","heap":"{x}"}`, "Personal", "Nowhere"},
	{"add_episode", `{"external_ref":"y","occurred_at":"2026-08-10","summary":"y","project_id":"{x}"}`, "{project}", "{absent}"},
	{"add_episode", `{"external_ref":"y","occurred_at":"2026-08-10","summary":"y","quest_id":"{x}"}`, "{quest}", "{absent}"},
	{"get_timeline", `{"heap":"{x}"}`, "Personal", "Nowhere"},
	{"get_timeline", `{"person_slug":"{x}"}`, "fern-gardener", "no-gardener"},
	{"fetch", `{"id":"{x}"}`, "{quest}", "{absent}"},
	{"list_changes", `{"thing":"{x}"}`, "{quest}", "{absent}"},
	{"list_changes", `{"thing":"{x}"}`, "{guard}", "{absent}"},
	{"list_changes", `{"thing":"{x}"}`, "{task}", "{absent}"},
	{"list_changes", `{"request":"{x}"}`, "{request}", "{absent}"},
	{"list_changes", `{"change_id":"{x}"}`, "{change}", "{absent}"},
	{"list_changes", `{"run":"{x}"}`, "{run}", "{absent}"},
	{"list_changes", `{"heap":"{x}"}`, "Personal", "Nowhere"},
	{"undo_change", `{"change_id":"{x}"}`, "{change}", "{absent}"},
	{"undo_change", `{"request":"{x}"}`, "{request}", "{absent}"},
	{"undo_change", `{"run":"{x}"}`, "{run}", "{absent}"},
	{"respond_invite", `{"invite_id":"{x}","accept":true}`, "{invite}", "{absent}"},
	{"fetch", `{"id":"{x}"}`, "{block}", "{absent}"},
	{"list_changes", `{"thing":"{x}"}`, "{block}", "{absent}"},
	{"create_block", `{"title":"y","heap":"{x}"}`, "Personal", "Nowhere"},
	{"create_block", `{"title":"y","tags":["{x}"]}`, "{tag}", "{absent}"},
	{"create_block", `{"title":"y","tags":["{x}"]}`, "Fern", "None"},
	{"get_block", `{"block_id":"{x}"}`, "{block}", "{absent}"},
	{"get_document", `{"block_id":"{x}"}`, "{block}", "{absent}"},
	{"get_provenance", `{"block_id":"{x}"}`, "{block}", "{absent}"},
	{"list_relations", `{"block_id":"{x}"}`, "{block}", "{absent}"},
	{"patch_document", `{"block_id":"{x}","base_hash":"0","operations":[{"op":"delete","node_id":"@1"}]}`, "{block}", "{absent}"},
	{"replace_document", `{"block_id":"{x}","base_hash":"0","content":"y","confirm_rebuild":true}`, "{block}", "{absent}"},
	{"update_block_title", `{"block_id":"{x}","base_hash":"0","title":"y"}`, "{block}", "{absent}"},
	{"delete_block", `{"block_id":"{x}"}`, "{block}", "{absent}"},
	{"restore_block", `{"block_id":"{x}"}`, "{block}", "{absent}"},
	{"pin_block", `{"block_id":"{x}"}`, "{block}", "{absent}"},
	{"save_view", `{"view_id":"{x}","name":"y"}`, "{view}", "{absent}"},
	{"save_view", `{"name":"y","heap":"{x}"}`, "Personal", "Nowhere"},
	{"save_view", `{"name":"y","filter":{"tag":"{x}"}}`, "{tag}", "{absent}"},
	{"save_view", `{"name":"y","filter":{"tag":"{x}"}}`, "Fern", "None"},
	{"list_views", `{"heap":"{x}"}`, "Personal", "Nowhere"},
	{"run_view", `{"view_id":"{x}"}`, "{view}", "{absent}"},
	{"delete_view", `{"view_id":"{x}"}`, "{view}", "{absent}"},
	{"list_changes", `{"thing":"{x}"}`, "{view}", "{absent}"},
	{"set_property", `{"block_id":"{x}","key":"k","value":1}`, "{block}", "{absent}"},
	{"set_property", `{"block_id":"{leaf}","key":"k","type":"reference","value":"{x}"}`, "{block}", "{absent}"},
	{"remove_property", `{"block_id":"{x}","key":"k"}`, "{block}", "{absent}"},
	{"read_version", `{"block_id":"{x}","version":1}`, "{block}", "{absent}"},
	{"compare_versions", `{"block_id":"{x}","from_version":1}`, "{block}", "{absent}"},
	{"restore_version", `{"block_id":"{x}","version":1,"base_hash":"0"}`, "{block}", "{absent}"},
	{"add_relation", `{"from":"{x}","to":"{leaf}","kind":"mention"}`, "{block}", "{absent}"},
	{"add_relation", `{"from":"{leaf}","to":"{x}","kind":"tag"}`, "{tag}", "{absent}"},
	{"remove_relation", `{"from":"{x}","to":"{leaf}","kind":"mention"}`, "{block}", "{absent}"},
	{"remove_relation", `{"from":"{leaf}","to":"{x}","kind":"tag"}`, "{tag}", "{absent}"},
	{"list_blocks", `{"heap":"{x}"}`, "Personal", "Nowhere"},
	{"list_blocks", `{"tag":"{x}"}`, "{tag}", "{absent}"},
	{"list_blocks", `{"tag":"{x}"}`, "Fern", "None"},
	{"search_blocks", `{"query":"y","heap":"{x}"}`, "Personal", "Nowhere"},
	{"search_blocks", `{"query":"{x}"}`, "ferns", "nosuch"},
	{"search_blocks", `{"query":"y","tag":"{x}"}`, "{tag}", "{absent}"},
	{"list_files", `{"block_id":"{x}"}`, "{block}", "{absent}"},
	{"list_files", `{"heap":"{x}"}`, "Personal", "Nowhere"},
	{"read_file", `{"file_id":"{x}"}`, "{block}", "{absent}"},
	{"upload_file", `{"name":"y","heap":"{x}"}`, "Personal", "Nowhere"},
	{"list_tags", `{"heap":"{x}"}`, "Personal", "Nowhere"},
	{"list_tags", `{"query":"{x}"}`, "Fern", "None"},
	{"get_context", `{"query":"y","heap":"{x}"}`, "Personal", "Nowhere"},
	{"trace_lineage", `{"idea":"y","heap":"{x}"}`, "Personal", "Nowhere"},
}

// inviteSomebody gives the id of an invite that is somebody else's.
func inviteSomebody(t *testing.T, a *apptest.App) string {
	t.Helper()
	a.Account(t, "Somebody Else")
	a.Call(t, a.Person(t), "invite_member", `{"heap":"Work","account":"somebody else","role":"viewer"}`)
	var out struct{ Invites []struct{ ID string } }
	apptest.Decode(t, a.Call(t, a.Person(t), "get_heap", `{"heap":"Work"}`), &out)
	return out.Invites[0].ID
}

func TestForbiddenAndAbsentLookAlike(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		var changes struct {
			Changes []struct{ ID, Request, Run string }
		}
		apptest.Decode(t, a.Call(t, a.Person(t), "list_changes", `{"thing":"`+w.words["task"]+`"}`), &changes)
		w.words["change"], w.words["request"], w.words["run"] = changes.Changes[0].ID, changes.Changes[0].Request, changes.Changes[0].Run
		w.words["invite"] = inviteSomebody(t, a)
		w.words["mark"], w.words["nomark"] = *op.Cursor(w.words["project"]), *op.Cursor(absent)
		before, blocks := a.Call(t, a.Person(t), "list_tasks", `{"heap":"Personal","limit":200}`), a.Call(t, a.Person(t), "list_blocks", `{"heap":"Personal"}`)
		for _, m := range []manner{heroes, modern, {name: "api"}} {
			for _, c := range reaches {
				t.Run(m.name+"/"+c.tool+"/"+c.args, func(t *testing.T) {
					ask := func(x string) (int, string) {
						args := strings.ReplaceAll(c.args, "{x}", w.fill(x))
						s := scenario{do: "POST /api/" + c.tool, as: "work", body: args}
						if m.path != "" {
							s = m.call("work", c.tool, args)
						}
						r := w.send(t, s)
						w.always(t, s, r)
						body := strings.NewReplacer(w.fill(x), "X", strings.ToLower(w.fill(x)), "X").Replace(r.Body)
						return r.Status, requestID.ReplaceAllString(body, "ID")
					}
					status1, body1 := ask(c.forbidden)
					status2, body2 := ask(c.absent)
					if status1 != status2 || body1 != body2 {
						t.Errorf("forbidden: %d %s\nabsent:    %d %s", status1, clip(body1), status2, clip(body2))
					}
					if strings.Contains(body1, "Water the ferns") || strings.Contains(body1, `"text":"Gone"`) {
						t.Errorf("the answer tells of another heap: %s", body1)
					}
				})
			}
		}
		if now := a.Call(t, a.Person(t), "list_blocks", `{"heap":"Personal"}`); string(now) != string(blocks) {
			t.Errorf("a token without the heap changed it:\n%s\n%s", blocks, now)
		}
		if after := a.Call(t, a.Person(t), "list_tasks", `{"heap":"Personal","limit":200}`); string(after) != string(before) {
			t.Errorf("a token without the heap changed it:\n%s\n%s", before, after)
		}
		everyReach(t, a)
	})
}

// everyReach fails for an argument that names a thing and isn't among the reaches.
func everyReach(t *testing.T, a *apptest.App) {
	t.Helper()
	naming := []string{"id", "task_id", "project_id", "project_name", "change_id", "request", "run", "thing", "heap", "external_ref", "completed_task_ids", "tag", "tags", "to"}
	for _, o := range a.Runner.Ops() {
		if o.PersonOnly {
			continue
		}
		for name := range o.In.Properties {
			isName := slices.Contains(naming, name) || strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "_ids") || strings.HasSuffix(name, "_slug")
			making := name == "external_ref" && slices.ContainsFunc([]string{"create_", "add_", "upsert_"}, func(p string) bool { return strings.HasPrefix(o.Name, p) })
			known := slices.ContainsFunc(reaches, func(c reach) bool { return c.tool == o.Name && strings.Contains(c.args, `"`+name+`":`) })
			if isName && !making && !known && (o.Name != "create_personal_task" || name != "project_name") && (o.Name != "run_view" || name != "to") {
				t.Errorf("%s takes %s, and no case reaches for what isn't granted by it", o.Name, name)
			}
		}
	}
}

// A ref that another heap has is free in a heap of one's own.
func TestRefOfAnotherHeapIsNoExistingTask(t *testing.T) {
	scenarios(t, nil, []scenario{
		{name: "task", as: "work", body: heroes.call("", "create_work_task", `{"name":"mine","external_ref":"ferns"}`).body, status: 200, want: []string{`"result":"created"`}, not: []string{"Water", "{task}"}},
		{name: "project", as: "work", body: heroes.call("", "create_project", `{"name":"Garden"}`).body, status: 200, want: []string{`"result":"created"`}, not: []string{"{project}"}},
		{name: "heaps", as: "work", body: heroes.call("", "list_heaps", `{}`).body, status: 200, want: []string{`"count":1`, `"Work"`}, not: []string{"Personal"}},
		{name: "projects", as: "work", body: heroes.call("", "list_projects", `{}`).body, status: 200, want: []string{"Twice"}, not: []string{`"id":"{project}"`}},
		{name: "personal task", as: "work", body: heroes.call("", "create_personal_task", `{"name":"x"}`).body, status: 200, want: []string{`"code":-32602`, "heap"}, not: []string{"Personal"}},
	})
}

func TestTokensEndAtOnce(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		fine := scenario{as: "rw", body: list, status: 200}
		w.run(t, fine)
		a.Call(t, a.Person(t), "revoke_token", `{"token":"rw"}`)
		w.run(t, scenario{as: "rw", body: list, status: 401, want: []string{`"code":-32004`}})
		w.run(t, scenario{do: "POST /api/list_heaps", as: "rw", body: "{}", status: 401, want: []string{`"error":"token_inactive"`}})

		w.tokens["brief"] = a.Token(t, `{"name":"brief","rate":0,"expires":"1h"}`)
		fine.as = "brief"
		a.Clock.Move(3600e9 - 1e6)
		w.run(t, fine)
		a.Clock.Move(1e6)
		w.run(t, scenario{as: "brief", body: list, status: 401, want: []string{`"code":-32003`}})

		if err := a.DB.Write(context.Background(), func(tx *db.Tx) error {
			_, err := tx.Exec(`UPDATE heap SET archived_at = $1 WHERE name = 'Work'`, tx.Now)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		w.run(t, scenario{do: "POST /api/list_heaps", as: "work", body: "{}", status: 200, want: []string{`{"count":0,"heaps":[]}`}})
		if err := a.DB.Write(context.Background(), func(tx *db.Tx) error {
			_, err := tx.Exec(`UPDATE account SET disabled_at = $1`, tx.Now)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for _, as := range []string{"ro", "work", "tasks"} {
			w.run(t, scenario{as: as, body: list, status: 401, want: []string{`"code":-32004`}, header: []string{`WWW-Authenticate: error="invalid_token"`}})
		}
	})
}
