package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// undoing TOOL ARGUMENTS calls a tool three times and takes it back by change, by request and by run: one of them, in turn,
// on the command line (on PostgreSQL only now and then), the others over /api. Each time a dry run changes nothing, the undo restores what was, undoing the
// undo brings back what came, and nothing is left over. At the end the tool's work stands.
func undoing(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 2, "undoing TOOL ARGUMENTS")
	u := &undoer{ts: ts, tool: args[0], args: args[1]}
	turn := of(ts).undone
	of(ts).undone++
	shell := !strings.HasPrefix(ts.Getenv("DB"), "--database-url") || turn/3%3 == 0 // starting programs is what takes long here
	for i, way := range []string{"run", "change", "request"} {
		u.round(way, shell && i == turn%3)
		if u.cli = false; way == "run" { // away with it, so that the tool can do it once more
			u.undo(way, u.did, false)
		} else if way == "change" {
			u.again(way)
		}
	}
}

// undoer does one tool's call and undoes it.
type undoer struct {
	ts         *testscript.TestScript
	tool, args string
	cli        bool
	token      string // of the caller, over /api
	did        []recorded
	last       []undoAnswer
}

type undoAnswer struct {
	Undone    []struct{ Thing string }
	Left      []json.RawMessage
	ChangeIDs []string `json:"change_ids"`
	Request   string
	Run       string
}

type recorded struct{ ID, Request, Run, Thing, Op string }

// api calls a tool over /api and gives its answer.
func (u *undoer) api(token, name, args string) []byte {
	r := send(u.ts.Getenv("URL")+"/api/"+name, token, args, nil)
	u.ts.Check(r.err)
	if r.status != 200 {
		u.ts.Fatalf("%s %s: %d %s", name, args, r.status, r.body)
	}
	return r.body
}

func (u *undoer) command(args ...string) []byte {
	u.ts.Check(u.ts.Exec("cairn", append([]string{u.ts.Getenv("DB")}, args...)...))
	return []byte(u.ts.ReadFile("stdout"))
}

// call calls a tool on the surface that is due.
func (u *undoer) call(name, args string) []byte {
	if u.cli {
		return u.command("call", name, args)
	}
	return u.api(u.token, name, args)
}

func (u *undoer) decode(b []byte, v any) {
	if err := json.Unmarshal(b, v); err != nil {
		u.ts.Fatalf("%s: %v", b, err)
	}
}

// changes gives the changes recorded since one, newest first.
func (u *undoer) changes(since string) (list []recorded) {
	var all struct{ Changes []recorded }
	u.decode(u.api(u.ts.Getenv("TOKEN"), "list_changes", `{"limit":12}`), &all)
	for _, c := range all.Changes {
		if c.ID == since {
			break
		}
		list = append(list, c)
	}
	return list
}

// round calls the tool, undoes it one way, and undoes that; so it ends with the tool's work done.
func (u *undoer) round(way string, cli bool) {
	ts := u.ts
	u.cli, u.token = cli, ts.Getenv("TOKEN")
	if way == "run" { // of an agent that has nothing else in its run that stands
		if ts.Getenv("RUNNER") == "" {
			ts.Setenv("RUNNER", strings.TrimSpace(string(u.command("token", "create", "--name=runner", "--rate=0"))))
		}
		u.cli, u.token = false, ts.Getenv("RUNNER")
	}
	before, newest := u.state(), ""
	if list := u.changes(""); len(list) > 0 {
		newest = list[0].ID
	}
	u.call(u.tool, u.args)
	after := u.state()
	did := u.changes(newest)
	if len(did) == 0 || before == after {
		ts.Fatalf("%s changed nothing: %d changes", u.tool, len(did))
	}
	u.cli, u.did = false, did
	u.undo(way, did, true)
	if now := u.state(); now != after || len(u.changes(did[0].ID)) > 0 {
		ts.Fatalf("%s: a dry run by %s changed something:\n%s\nwas\n%s", u.tool, way, now, after)
	}
	u.cli = cli // whoever did it, the owner may take it back
	u.undo(way, did, false)
	if now := u.state(); now != before {
		ts.Fatalf("%s: undone by %s there is\n%s\nand was\n%s", u.tool, way, now, before)
	}
	u.again(way)
	if now := u.state(); now != after {
		ts.Fatalf("%s: the undo by %s undone, there is\n%s\nand was\n%s", u.tool, way, now, after)
	}
}

// undo takes changes back one way.
func (u *undoer) undo(way string, did []recorded, dry bool) {
	u.last = nil
	switch way {
	case "change":
		for _, c := range did {
			u.undoBy("change_id", c.ID, dry)
		}
	case "request":
		u.undoBy("request", did[0].Request, dry)
	case "run":
		u.undoBy("run", did[0].Run, dry)
	}
	n := 0
	for _, a := range u.last {
		n += len(a.Undone)
	}
	if n != len(did) && !(dry && way == "change") { // one by one, a dry run may meet what a later one would have made way for
		u.ts.Fatalf("%s: by %s %d of %d changes were undone", u.tool, way, n, len(did))
	}
}

func (u *undoer) undoBy(key, id string, dry bool) {
	var a undoAnswer
	b := u.call("undo_change", fmt.Sprintf(`{%q:%q,"dry_run":%t}`, key, id, dry))
	u.decode(b, &a)
	if len(a.Left) > 0 && !dry {
		u.ts.Fatalf("%s: left: %s", u.tool, b)
	}
	if dry != (len(a.ChangeIDs) == 0) {
		u.ts.Fatalf("%s: dry run %t, but %s", u.tool, dry, b)
	}
	u.last = append(u.last, a)
}

// again undoes the last undoing.
func (u *undoer) again(way string) {
	last := u.last
	u.last = nil
	for i := len(last) - 1; i >= 0; i-- {
		switch way {
		case "change":
			for j := len(last[i].ChangeIDs) - 1; j >= 0; j-- {
				u.undoBy("change_id", last[i].ChangeIDs[j], false)
			}
		case "request":
			u.undoBy("request", last[i].Request, false)
		case "run":
			u.undoBy("run", last[i].Run, false)
		}
	}
}

// state is all that a caller can see of tasks and projects, apart from when it was last touched.
func (u *undoer) state() string {
	token := u.ts.Getenv("TOKEN")
	var all struct {
		Tasks    []struct{ ID string }
		Projects []struct{ ID, Name string }
	}
	var parts []any
	add := func(b []byte) {
		var v any
		u.decode(b, &v)
		parts = append(parts, untouched(v))
	}
	tasks := map[string]any{} // in no order: that goes by when they were touched
	b := u.api(token, "list_tasks", `{"limit":200}`)
	u.decode(b, &all)
	var listed struct{ Tasks []map[string]any }
	u.decode(b, &listed)
	for _, t := range listed.Tasks {
		tasks[t["id"].(string)] = untouched(t)
	}
	b = u.api(token, "list_projects", `{"include_archived":true}`)
	u.decode(b, &all)
	add(b)
	for _, t := range all.Tasks {
		if !strings.Contains(u.args, t.ID) { // the list shows enough of the others
			continue
		}
		var v any
		u.decode(u.api(token, "get_task", `{"task_id":"`+t.ID+`"}`), &v)
		tasks[t.ID] = untouched(v)
	}
	parts = append(parts, tasks)
	for _, p := range all.Projects {
		if !strings.Contains(u.args, p.ID) && !strings.Contains(strings.ToLower(u.args), strings.ToLower(p.Name)) {
			continue
		}
		add(u.api(token, "get_project_context", `{"project_id":"`+p.ID+`"}`))
	}
	out, err := json.MarshalIndent(parts, "", " ")
	u.ts.Check(err)
	return string(out)
}

// untouched drops the members that tell when a thing was touched.
func untouched(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "updated_at")
		delete(v, "last_activity")
		for k := range v {
			v[k] = untouched(v[k])
		}
	case []any:
		for i := range v {
			v[i] = untouched(v[i])
		}
	}
	return v
}
