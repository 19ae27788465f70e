package view_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cairn/internal/apptest"
	"cairn/internal/fault"
	"cairn/internal/search"
)

type m map[string]any

func say(args any) string {
	if s, ok := args.(string); ok {
		return s
	}
	b, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func call[T any](t *testing.T, a *apptest.App, ctx context.Context, name string, args any) (v T) {
	t.Helper()
	apptest.Decode(t, a.Call(t, ctx, name, say(args)), &v)
	return v
}

type shown struct {
	ID     string
	Result string
	View   struct {
		ID, Name, Layout, State, Date string
		GroupBy                       string `json:"group_by"`
		Filter                        *struct {
			Type, Tag string
			Pinned    bool
		}
		Sort *struct{ By string }
	}
}

type page struct {
	From, To string
	Groups   []struct {
		Group, Type, Title string
		Value              any
		Count              int
		More               bool
	}
	Count  int
	Blocks []struct {
		ID, Title  string
		CreatedAt  string `json:"created_at"`
		Properties []struct {
			Key   string
			Value any
		}
	}
	NextCursor *string `json:"next_cursor"`
	Note       string
}

func (p page) titles() []string {
	list := []string{}
	for _, b := range p.Blocks {
		list = append(list, b.Title)
	}
	return list
}

// fixture makes a tag with a tag below it, and six notes with status, due and size.
func fixture(t *testing.T, a *apptest.App, ctx context.Context) (garden string, notes []string) {
	t.Helper()
	var o struct{ ID string }
	block := func(args m) string {
		apptest.Decode(t, a.Call(t, ctx, "create_block", say(args)), &o)
		return o.ID
	}
	garden = block(m{"type": "tag", "title": "Garden"})
	beds := block(m{"type": "tag", "title": "Beds", "tags": []string{garden}})
	for i, title := range []string{"ferns", "ivy", "moss", "oak", "pine", "rose"} {
		id := block(m{"title": title, "content": "About " + title, "pinned": i == 0, "tags": [][]string{{garden}, {beds}, {}}[i%3]})
		notes = append(notes, id)
		set := func(key, kind string, v any) {
			a.Call(t, ctx, "set_property", say(m{"block_id": id, "key": key, "type": kind, "value": v}))
		}
		if i < 5 {
			set("status", "select", []string{"open", "done"}[i%2])
			set("due", "date", []string{"2026-08-10", "2026-08-17", "2026-08-24", "2026-08-31", "2026-09-07"}[i])
		}
		set("size", "number", []float64{10, 9, 100, -1, 2.5, 0}[i])
		set("ripe", "bool", i%2 == 0)
		set("next to", "reference", notes[0])
	}
	return garden, notes
}

func each(t *testing.T, f func(t *testing.T, a *apptest.App, ctx context.Context)) {
	t.Helper()
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) { f(t, a, a.As(t, a.Token(t, ""))) })
}

func TestViewsShowWhatTheySay(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		garden, notes := fixture(t, a, ctx)
		for i, c := range []struct {
			view, run m
			want      []string
		}{
			{view: m{}, want: []string{"rose", "pine", "oak", "moss", "ivy", "ferns", "Beds", "Garden"}},
			{view: m{"filter": m{"type": "note", "pinned": true}}, want: []string{"ferns"}},
			{view: m{"filter": m{"tag": "garden"}}, want: []string{"oak", "ferns", "Beds"}},
			{view: m{"filter": m{"tag": garden, "deep": true, "type": "note"}, "sort": m{"by": "title"}}, want: []string{"ferns", "ivy", "oak", "pine"}},
			{view: m{"filter": m{"words": "moss OR oak"}, "sort": m{"by": "title"}}, want: []string{"moss", "oak"}},
			{view: m{"filter": m{"unlinked": true}, "sort": m{"by": "created"}}, want: []string{"moss", "rose"}},
			{view: m{"filter": m{"properties": []m{{"key": "size", "op": "greater", "value": 2}, {"key": "status", "op": "is", "value": "OPEN"}}}, "sort": m{"by": "property", "key": "size"}}, want: []string{"pine", "ferns", "moss"}},
			{view: m{"layout": "table", "filter": m{"type": "note"}, "sort": m{"by": "property", "key": "due", "descending": true}, "columns": []m{{"by": "title"}, {"by": "property", "key": "size"}}}, want: []string{"pine", "oak", "moss", "ivy", "ferns", "rose"}},
			{view: m{"layout": "calendar", "date": "due"}, want: []string{"ferns", "ivy", "moss", "oak"}},
			{view: m{"layout": "calendar", "date": "due"}, run: m{"from": "2026-08-17", "to": "2026-08-24"}, want: []string{"ivy", "moss"}},
			{view: m{"layout": "calendar", "date": "due", "filter": m{"tag": "Beds"}}, run: m{"from": "2026-08-01", "to": "2026-12-31"}, want: []string{"ivy", "pine"}},
			{view: m{"layout": "board", "group_by": "status"}, run: m{"group": "tdone"}, want: []string{"oak", "ivy"}},
			{view: m{"layout": "board", "group_by": "status", "filter": m{"type": "note"}}, run: m{"group": "-"}, want: []string{"rose"}},
		} {
			c.view["name"] = fmt.Sprint("view ", i)
			v := call[shown](t, a, ctx, "save_view", c.view)
			for _, limit := range []int{50, 1, 2} {
				args := m{"view_id": v.ID, "limit": limit}
				for k, x := range c.run {
					args[k] = x
				}
				got := []string{}
				for range 30 {
					p := call[page](t, a, ctx, "run_view", args)
					if p.Count > limit || p.Count != len(p.Blocks) {
						t.Errorf("%v: %d rows", c.view, p.Count)
					}
					got = append(got, p.titles()...)
					if p.NextCursor == nil {
						break
					}
					args["cursor"] = *p.NextCursor
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("%s %s, by %d: %v, not %v", say(c.view), say(c.run), limit, got, c.want)
				}
			}
		}
		v := call[shown](t, a, ctx, "save_view", m{"name": "columns", "layout": "table", "columns": []m{{"by": "property", "key": "size"}, {"by": "property", "key": "due"}}, "filter": m{"pinned": true}})
		if p := call[page](t, a, ctx, "run_view", m{"view_id": v.ID}); len(p.Blocks) != 1 || len(p.Blocks[0].Properties) != 2 || p.Blocks[0].Properties[0].Value != 10.0 || p.Blocks[0].Properties[1].Value != "2026-08-10" {
			t.Errorf("%+v", p)
		}
		for by, want := range map[string]string{"status": "tdone select done 2, topen select open 3, -  <nil> 3", "ripe": "b0 bool false 3, b1 bool true 3, -  <nil> 2", "next to": "t" + notes[0] + " reference " + notes[0] + " 6, -  <nil> 2", "size": "-  <nil> 8"} {
			v := call[shown](t, a, ctx, "save_view", m{"name": "board " + by, "layout": "board", "group_by": by})
			p := call[page](t, a, ctx, "run_view", m{"view_id": v.ID})
			var got []string
			for _, g := range p.Groups {
				got = append(got, fmt.Sprintf("%s %s %v %d", g.Group, g.Type, g.Value, g.Count))
				if g.Type == "reference" && g.Title != "ferns" {
					t.Errorf("%+v", g)
				}
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("%s: %s", by, got)
			}
		}
	})
}

func TestSavedViewsAreChangedAndUndone(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		v := call[shown](t, a, ctx, "save_view", `{"name":" Open ","filter":{"type":"note"},"sort":{"by":"title"}}`)
		if v.Result != "created" || v.View.Name != "Open" || v.View.Layout != "list" {
			t.Errorf("%+v", v)
		}
		// The same once more, as after an answer that was lost, is the same view.
		if again := call[shown](t, a, ctx, "save_view", `{"name":"Open","filter":{"type":"note"},"sort":{"by":"title"}}`); again.Result != "existing" || again.ID != v.ID || again.View.Name != "Open" {
			t.Errorf("%+v", again)
		}
		f := a.Fails(t, ctx, "save_view", `{"name":"OPEN"}`, fault.Conflict)
		if b, _ := json.Marshal(f.Body()); !strings.Contains(string(b), v.ID) {
			t.Errorf("%s", b)
		}
		call[shown](t, a, ctx, "save_view", `{"name":"OPEN","heap":"Work"}`) // another heap's
		if got := call[shown](t, a, ctx, "save_view", m{"view_id": v.ID, "name": "Open"}); got.Result != "existing" {
			t.Errorf("%+v", got)
		}
		board := call[shown](t, a, ctx, "save_view", m{"view_id": v.ID, "layout": "board", "group_by": "status", "clear": []string{"sort"}})
		if board.Result != "updated" || board.View.Sort != nil || board.View.Filter == nil || board.View.GroupBy != "status" {
			t.Errorf("%+v", board)
		}
		undo := func(n int) {
			t.Helper()
			p := call[struct{ Changes []struct{ ID string } }](t, a, ctx, "list_changes", m{"thing": v.ID})
			u := call[struct{ Undone, Left []any }](t, a, ctx, "undo_change", m{"change_id": p.Changes[n].ID})
			if len(u.Undone) != 1 || len(u.Left) != 0 {
				t.Errorf("%+v", u)
			}
		}
		find := func() *shown {
			for _, got := range call[struct{ Views []json.RawMessage }](t, a, ctx, "list_views", `{"heap":"Personal"}`).Views {
				s := shown{}
				apptest.Decode(t, got, &s.View)
				if s.View.ID == v.ID {
					return &s
				}
			}
			return nil
		}
		undo(0)
		if got := find(); got == nil || got.View.Layout != "list" || got.View.Sort == nil || got.View.GroupBy != "" {
			t.Errorf("%+v", got)
		}
		undo(0)
		if got := find(); got == nil || got.View.Layout != "board" {
			t.Errorf("%+v", got)
		}
		a.Call(t, ctx, "delete_view", say(m{"view_id": v.ID}))
		if got := call[shown](t, a, ctx, "delete_view", m{"view_id": v.ID}); got.Result != "existing" || got.View.State != "trashed" || find() != nil {
			t.Errorf("%+v", got)
		}
		a.Fails(t, ctx, "run_view", say(m{"view_id": v.ID}), fault.Conflict)
		a.Fails(t, ctx, "save_view", say(m{"view_id": v.ID, "name": "x"}), fault.Conflict)
		other := call[shown](t, a, ctx, "save_view", `{"name":"open"}`) // the name is free
		p := call[struct{ Changes []struct{ ID string } }](t, a, ctx, "list_changes", m{"thing": v.ID})
		u := call[struct{ Undone, Left []any }](t, a, ctx, "undo_change", m{"change_id": p.Changes[0].ID})
		if len(u.Undone) != 0 || len(u.Left) != 1 {
			t.Errorf("two of one name: %+v", u)
		}
		a.Call(t, ctx, "delete_view", say(m{"view_id": other.ID}))
		undo(0)
		if find() == nil {
			t.Error("it isn't back")
		}
	})
}

func TestViewsThatMakeNoSense(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		for _, bad := range []string{`{}`, `{"name":" "}`, `{"name":"x","layout":"gallery"}`, `{"name":"x","layout":"board"}`, `{"name":"x","layout":"calendar"}`, `{"name":"x","filter":{"nosuch":1}}`,
			`{"name":"x","filter":{"deep":true}}`, `{"name":"x","filter":{"properties":[{"key":"k","op":"is"}]}}`, `{"name":"x","filter":{"properties":[{"key":"k","op":"near","value":1}]}}`, `{"name":"x","sort":{"by":"property"}}`,
			`{"name":"x","sort":{"by":"title","key":"k"}}`, `{"name":"x","columns":[{"by":"property"}]}`, `{"name":"x","columns":[{"by":"title"},{"by":"title"}]}`, `{"name":"x","clear":["sort"]}`, `{"name":"` + strings.Repeat("é", 301) + `"}`} {
			a.Fails(t, ctx, "save_view", bad, fault.Invalid)
		}
		a.Fails(t, ctx, "save_view", `{"name":"x","filter":{"tag":"nosuch"}}`, fault.NotFound)
		v := call[shown](t, a, ctx, "save_view", `{"name":"x","sort":{"by":"title"}}`)
		c := call[shown](t, a, ctx, "save_view", `{"name":"c","layout":"calendar","date":"due"}`)
		for _, bad := range []m{{"layout": "board"}, {"heap": "Work"}, {"clear": []string{"name"}}, {"sort": m{"by": "title"}, "clear": []string{"sort"}}} {
			bad["view_id"] = v.ID
			a.Fails(t, ctx, "save_view", say(bad), fault.Invalid)
		}
		a.Fails(t, ctx, "save_view", say(m{"view_id": c.ID, "clear": []string{"date"}}), fault.Invalid)
		for _, bad := range []m{{"group": "x"}, {"from": "2026-08-01"}, {"cursor": "nosuch"}, {"limit": 201}} {
			bad["view_id"] = v.ID
			a.Fails(t, ctx, "run_view", say(bad), fault.Invalid)
		}
		for _, bad := range []m{{"from": "2026-08-01"}, {"from": "2026-08-02", "to": "2026-08-01"}, {"from": "2026-08-02", "to": "2027-08-03"}, {"from": "0001-01-01", "to": "0001-02-01"}, {"from": "soon", "to": "later"}} {
			bad["view_id"] = c.ID
			a.Fails(t, ctx, "run_view", say(bad), fault.Invalid)
		}
	})
}

func TestViewsStayInTheirHeap(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		fixture(t, a, ctx)
		a.Call(t, ctx, "create_block", `{"title":"at work","heap":"Work"}`)
		mine := call[shown](t, a, ctx, "save_view", `{"name":"Mine","heap":"Personal"}`)
		both := call[shown](t, a, ctx, "save_view", `{"name":"Work","heap":"Work"}`)
		work := a.As(t, a.Token(t, `{"name":"work","heaps":["Work"],"rate":0}`))
		for tool, more := range map[string]m{"run_view": {}, "delete_view": {}, "save_view": {"name": "x"}} {
			for _, id := range []string{mine.ID, "01890a5d-ac96-774b-bcce-b302099a8057"} {
				more["view_id"] = id
				if f := a.Fails(t, work, tool, say(more), fault.NotFound); strings.Contains(f.Message, "Mine") {
					t.Error(f.Message)
				}
			}
		}
		if p := call[page](t, a, work, "run_view", m{"view_id": both.ID}); !slices.Equal(p.titles(), []string{"at work"}) {
			t.Errorf("%+v", p)
		}
		if got := call[struct{ Count int }](t, a, work, "list_views", `{}`); got.Count != 1 {
			t.Errorf("%+v", got)
		}
		tasks := a.As(t, a.Token(t, `{"name":"tasks","areas":["tasks"],"rate":0}`))
		a.Fails(t, tasks, "run_view", say(m{"view_id": both.ID}), fault.UnknownTool)
		ro := a.As(t, a.Token(t, `{"name":"ro","read_only":true,"rate":0}`))
		a.Fails(t, ro, "delete_view", say(m{"view_id": both.ID}), fault.Scope)
		call[page](t, a, ro, "run_view", m{"view_id": both.ID})
		// A viewer of a shared heap runs views and doesn't change them.
		person, guest := a.Person(t), a.Account(t, "Guest")
		a.Call(t, person, "invite_member", `{"heap":"Work","account":"Guest","role":"viewer"}`)
		invites := call[struct{ Invites []struct{ ID string } }](t, a, guest, "list_invites", `{}`)
		a.Call(t, guest, "respond_invite", say(m{"invite_id": invites.Invites[0].ID, "accept": true}))
		guest = a.PersonNamed(t, "Guest")
		call[page](t, a, guest, "run_view", m{"view_id": both.ID})
		a.Fails(t, guest, "save_view", say(m{"view_id": both.ID, "name": "x"}), fault.Conflict)
		a.Fails(t, guest, "delete_view", say(m{"view_id": both.ID}), fault.Conflict)
	})
}

func TestNoNoteHidesAnother(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		top := call[shown](t, a, ctx, "create_block", m{"type": "tag", "title": "top"}).ID
		for i := range 200 {
			a.Call(t, ctx, "create_block", say(m{"type": "tag", "title": "below " + strconv.Itoa(i), "tags": []string{top}}))
		}
		v := call[shown](t, a, ctx, "save_view", m{"name": "all", "filter": m{"tag": top, "deep": true, "words": "---"}})
		p := call[page](t, a, ctx, "run_view", m{"view_id": v.ID})
		if want := "only the first 200 tags below the view's are looked at; " + search.NoteNothing; p.Note != want || p.Count != 0 {
			t.Errorf("%d blocks, %q", p.Count, p.Note)
		}
	})
}

func TestUndoKeepsTheMostViewsOfAHeap(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		gone := call[shown](t, a, ctx, "save_view", m{"name": "gone"}).ID
		a.Call(t, ctx, "delete_view", say(m{"view_id": gone}))
		changes := call[struct{ Changes []struct{ ID string } }](t, a, ctx, "list_changes", m{"thing": gone, "limit": 1}).Changes
		last := ""
		for i := range 500 {
			last = call[shown](t, a, ctx, "save_view", m{"name": strconv.Itoa(i)}).ID
		}
		a.Fails(t, ctx, "save_view", `{"name":"one more"}`, fault.Conflict)
		undo := func() (out struct {
			Undone []struct{ ID string }
			Left   []struct{ Why string }
		}) {
			apptest.Decode(t, a.Call(t, ctx, "undo_change", say(m{"change_id": changes[0].ID})), &out)
			return out
		}
		if out := undo(); len(out.Undone) != 0 || len(out.Left) != 1 || !strings.Contains(out.Left[0].Why, "500 views") {
			t.Errorf("%+v", out)
		}
		a.Call(t, ctx, "delete_view", say(m{"view_id": last}))
		if out := undo(); len(out.Left) != 0 {
			t.Errorf("%+v", out)
		}
	})
}
