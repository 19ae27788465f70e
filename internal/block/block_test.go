package block_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"cairn/internal/apptest"
	"cairn/internal/fault"
)

func each(t *testing.T, f func(t *testing.T, a *apptest.App, ctx context.Context)) {
	t.Helper()
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) { f(t, a, a.As(t, a.Token(t, ""))) })
}

func call[T any](t *testing.T, a *apptest.App, ctx context.Context, name string, args any) (v T) {
	t.Helper()
	apptest.Decode(t, a.Call(t, ctx, name, say(args)), &v)
	return v
}

// say writes arguments; a string is JSON already.
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

type m map[string]any

type ref struct{ ID, Type, Title string }

type one struct {
	ID, Result, State, Hash string
	ExternalRef             *string `json:"external_ref"`
	Block                   struct {
		ID, Heap, Type, Title, Hash, State string
		Pinned                             bool
		Version                            int64
		Tags                               []ref
		Properties                         []struct {
			Key, Type string
			Value     any
		}
	}
}

type node struct {
	Depth   int
	Type    string
	NodeID  string `json:"node_id"`
	AgentID string `json:"agent_id"`
	Target  bool   `json:"patch_target"`
	Text    string
}

type document struct {
	BlockID string `json:"block_id"`
	Title   string
	Hash    string
	Content struct{ Hash string }
	Nodes   []node
	Page    struct {
		HasMore    bool `json:"has_more"`
		NextOffset int  `json:"next_offset"`
	}
	Truncation *struct {
		Reasons      []string
		Continuation struct {
			Offset int
			From   string
			Byte   int
		}
	}
}

func (d document) text() string {
	var lines []string
	for _, n := range d.Nodes {
		if n.Text != "" {
			lines = append(lines, n.Text)
		}
	}
	return strings.Join(lines, "|")
}

type written struct {
	ID, Result, Hash, Diff string
	Version                int64
	Changed                []string
	Rebased                bool
	DryRun                 bool `json:"dry_run"`
}

func create(t *testing.T, a *apptest.App, ctx context.Context, args any) one {
	t.Helper()
	return call[one](t, a, ctx, "create_block", args)
}

func edit(t *testing.T, a *apptest.App, ctx context.Context, id string) document {
	t.Helper()
	return call[document](t, a, ctx, "get_document", m{"block_id": id, "view": "edit"})
}

type since struct {
	NodeID string `json:"node_id"`
	By, At string
}

// sinceOf reads what a conflict says.
func sinceOf(t *testing.T, f *fault.Error) (current string, list []since) {
	t.Helper()
	b, err := json.Marshal(f.Body())
	if err != nil {
		t.Fatal(err)
	}
	var out struct {
		Error   string
		Current string  `json:"current_hash"`
		Since   []since `json:"changed_since"`
	}
	apptest.Decode(t, b, &out)
	if out.Error != "conflict" {
		t.Errorf("error %q", out.Error)
	}
	return out.Current, out.Since
}

func TestBlockIsMadeOnceByItsRef(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		first := create(t, a, ctx, `{"title":"Plan","content":"# Spring\n\n- [ ] prune","external_ref":"plan"}`)
		if first.Result != "created" || first.Block.Type != "note" || first.Block.Version != 1 || first.Hash == "" || first.State != "live" {
			t.Errorf("%+v", first)
		}
		ids := map[string]bool{first.ID: true}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				res, err := a.Runner.Run(ctx, "create_block", json.RawMessage(`{"title":"Other","external_ref":"same"}`))
				var o one
				if err != nil || json.Unmarshal(res.JSON, &o) != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				ids[o.ID] = true
			})
		}
		wg.Wait()
		if len(ids) != 2 {
			t.Errorf("%d blocks, want 2", len(ids))
		}
		again := create(t, a, ctx, `{"title":"Another plan","content":"x","external_ref":"plan"}`)
		if again.Result != "existing" || again.ID != first.ID || again.Block.Title != "Plan" || again.Hash != first.Hash {
			t.Errorf("%+v", again)
		}
		one, two := create(t, a, ctx, `{"title":"Twin"}`), create(t, a, ctx, `{"title":"Twin"}`)
		if one.ID == two.ID {
			t.Error("equal titles are one block")
		}
		a.Call(t, ctx, "delete_block", say(m{"block_id": first.ID}))
		if gone := create(t, a, ctx, `{"external_ref":"plan"}`); gone.Result != "existing" || gone.State != "trashed" {
			t.Errorf("%+v", gone)
		}
	})
}

func TestDocumentIsReadAndPatched(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		o := create(t, a, ctx, m{"title": "Plan", "content": "# Spring\n\nBuy *seeds*.\n\n- [ ] prune\n- [x] rake"})
		d := edit(t, a, ctx, o.ID)
		if d.Hash != o.Hash || d.Title != "Plan" || d.Content.Hash == "" || d.Content.Hash == d.Hash || len(d.Nodes) != 7 || !d.Nodes[0].Target || d.Nodes[0].NodeID == "" || d.Nodes[0].AgentID != "@1" || d.Nodes[0].Type != "heading" {
			t.Fatalf("%+v", d)
		}
		read := call[document](t, a, ctx, "get_document", m{"block_id": o.ID})
		if read.text() != "Spring|Buy seeds.|prune|rake" || read.Nodes[0].NodeID != "" {
			t.Errorf("%+v", read)
		}
		dry := call[written](t, a, ctx, "patch_document", m{"block_id": o.ID, "base_hash": d.Hash, "dry_run": true, "operations": []m{{"op": "delete", "node_id": "@1"}}})
		if !dry.DryRun || dry.Hash != d.Hash || !slices.Equal(dry.Changed, []string{d.Nodes[0].NodeID}) || !strings.Contains(dry.Diff, "Spring") {
			t.Errorf("%+v", dry)
		}
		w := call[written](t, a, ctx, "patch_document", m{"block_id": o.ID, "base_hash": d.Hash, "operations": []m{
			{"op": "replace_text", "node_id": "@2", "find": "seeds", "replace": "$& $1 $$ ${x} \\1 %s"}, // CASES 14
			{"op": "insert_after", "node_id": d.Nodes[0].NodeID, "markdown": "Before all."}}})
		if w.Result != "updated" || w.Hash == d.Hash || w.Version != 2 || len(w.Changed) != 2 {
			t.Errorf("%+v", w)
		}
		read = call[document](t, a, ctx, "get_document", m{"block_id": o.ID})
		if read.text() != `Spring|Before all.|Buy $& $1 $$ ${x} \1 %s.|prune|rake` || read.Hash != w.Hash {
			t.Errorf("%q", read.text())
		}
		// A wrong target names near ones and writes nothing; nor does a patch that fails in its second operation.
		f := a.Fails(t, ctx, "patch_document", say(m{"block_id": o.ID, "base_hash": w.Hash, "operations": []m{{"op": "delete", "node_id": "@1"}, {"op": "delete", "node_id": d.Nodes[0].NodeID[:30] + "zzzzzz"}}}), fault.Invalid)
		if !strings.Contains(f.Message, d.Nodes[0].NodeID) {
			t.Errorf("%+v", f)
		}
		if now := edit(t, a, ctx, o.ID); now.Hash != w.Hash {
			t.Error("a refused patch wrote")
		}
		title := call[written](t, a, ctx, "update_block_title", m{"block_id": o.ID, "title": "Plan B", "base_hash": w.Hash})
		if got := edit(t, a, ctx, o.ID); got.Title != "Plan B" || got.Hash != title.Hash || got.Content.Hash == d.Content.Hash || !slices.Equal(title.Changed, []string{"doc"}) {
			t.Errorf("%+v %+v", got, title)
		}
		if found := call[list](t, a, ctx, "search_blocks", `{"query":"prune"}`); found.Count != 1 || found.Blocks[0].Title != "Plan B" {
			t.Errorf("%+v", found)
		}
	})
}

type list struct {
	Count  int
	Blocks []struct {
		ID, Title, Type, State string
		Tags                   []ref
	}
	NextCursor string `json:"next_cursor"`
}

func (l list) titles() (all []string) {
	for _, b := range l.Blocks {
		all = append(all, b.Title)
	}
	return all
}

func TestStaleBaseHashWritesNothing(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		o := create(t, a, ctx, m{"title": "T", "content": "one\n\ntwo\n\nthree"})
		d := edit(t, a, ctx, o.ID)
		put := func(ctx context.Context, hash, id, text string, rebase bool) string {
			return say(m{"block_id": o.ID, "base_hash": hash, "rebase": rebase, "operations": []m{{"op": "replace_text", "node_id": id, "find": text, "replace": text + "!"}}})
		}
		person := a.Person(t)
		first := call[written](t, a, person, "patch_document", put(person, d.Hash, d.Nodes[0].NodeID, "one", false))
		second := call[written](t, a, ctx, "patch_document", put(ctx, first.Hash, d.Nodes[1].NodeID, "two", false))
		for _, c := range []struct{ tool, args string }{
			{"patch_document", put(ctx, d.Hash, d.Nodes[2].NodeID, "three", false)},
			{"replace_document", say(m{"block_id": o.ID, "base_hash": d.Hash, "content": "x", "confirm_rebuild": true})},
			{"update_block_title", say(m{"block_id": o.ID, "base_hash": d.Hash, "title": "x"})},
			{"restore_version", say(m{"block_id": o.ID, "base_hash": d.Hash, "version": 1})},
			{"patch_document", put(ctx, d.Hash, d.Nodes[0].NodeID, "one", true)}, // what the person changed
		} {
			current, list := sinceOf(t, a.Fails(t, ctx, c.tool, c.args, fault.Conflict))
			if current != second.Hash || len(list) != 2 {
				t.Fatalf("%s: %s %+v", c.tool, current, list)
			}
			by := map[string]string{}
			for _, s := range list {
				by[s.NodeID], _, _ = strings.Cut(s.By, ":")
			}
			if by[d.Nodes[0].NodeID] != "account" || by[d.Nodes[1].NodeID] != "token" {
				t.Errorf("%s: %+v", c.tool, list)
			}
		}
		if current, list := sinceOf(t, a.Fails(t, ctx, "patch_document", put(ctx, strings.Repeat("0", 64), d.Nodes[2].NodeID, "three", true), fault.Conflict)); current != second.Hash || len(list) != 0 {
			t.Errorf("%s %+v", current, list)
		}
		if now := edit(t, a, ctx, o.ID); now.Hash != second.Hash || now.text() != "one!|two!|three" {
			t.Errorf("%+v", now)
		}
		w := call[written](t, a, ctx, "patch_document", put(ctx, d.Hash, d.Nodes[2].NodeID, "three", true))
		if now := edit(t, a, ctx, o.ID); now.Hash != w.Hash || now.text() != "one!|two!|three!" || !w.Rebased || w.Version != 4 {
			t.Errorf("%+v %+v", now, w)
		}
	})
}

func TestFiftyPatchesOfDisjointNodesAllLand(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		const n = 50
		var lines []string
		for i := range n {
			lines = append(lines, fmt.Sprintf("line %d", i))
		}
		o := create(t, a, ctx, m{"content": strings.Join(lines, "\n\n")})
		d := edit(t, a, ctx, o.ID)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				args := say(m{"block_id": o.ID, "base_hash": d.Hash, "rebase": true, "operations": []m{{"op": "replace_text", "node_id": d.Nodes[i].NodeID, "find": "line", "replace": "done"}}})
				if _, err := a.Runner.Run(ctx, "patch_document", json.RawMessage(args)); err != nil {
					t.Error(i, err)
				}
			})
		}
		wg.Wait()
		now := edit(t, a, ctx, o.ID)
		if strings.Contains(now.text(), "line") || len(now.Nodes) != n {
			t.Error(now.text())
		}
		var p provenance
		if apptest.Decode(t, a.Call(t, ctx, "get_provenance", say(m{"block_id": o.ID, "limit": 200})), &p); p.Count != n+1 {
			t.Errorf("%d events", p.Count)
		}
		for v := range n + 1 { // every version is there, each with one line more
			old := call[document](t, a, ctx, "read_version", m{"block_id": o.ID, "version": v + 1})
			if got := strings.Count(old.text(), "done"); got != v {
				t.Errorf("version %d has %d lines done", v+1, got)
			}
		}
	})
}

type provenance struct {
	Count  int
	Events []struct {
		ChangeID  string `json:"change_id"`
		Actor     string
		ActorName string `json:"actor_name"`
		OnBehalf  string `json:"on_behalf"`
		Tool      string
		Summary   string
		Version   int64
		Before    string `json:"before_hash"`
		After     string `json:"after_hash"`
		Nodes     []string
	}
	NextCursor string `json:"next_cursor"`
}

func TestProvenanceNamesAgentPersonToolAndHashes(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		o := create(t, a, a.Person(t), m{"title": "T", "content": "one\n\ntwo"})
		d := edit(t, a, ctx, o.ID)
		w := call[written](t, a, ctx, "patch_document", m{"block_id": o.ID, "base_hash": d.Hash, "operations": []m{{"op": "delete", "node_id": "@1"}}})
		a.Call(t, ctx, "set_property", say(m{"block_id": o.ID, "key": "status", "value": "open"}))
		var all []string
		cursor := ""
		for range 3 { // a page each
			p := call[provenance](t, a, ctx, "get_provenance", m{"block_id": o.ID, "limit": 1, "cursor": cursor})
			if p.Count != 1 {
				t.Fatalf("%+v", p)
			}
			e := p.Events[0]
			cursor = p.NextCursor
			all = append(all, e.Tool)
			switch e.Tool {
			case "patch_document":
				if e.Before != d.Hash || e.After != w.Hash || e.Version != 2 || !strings.HasPrefix(e.Actor, "token:") || e.ActorName != "test" || !strings.HasPrefix(e.OnBehalf, "account:") || !slices.Equal(e.Nodes, []string{d.Nodes[0].NodeID}) {
					t.Errorf("%+v", e)
				}
			case "create_block":
				if e.Before != "" || e.After != d.Hash || e.Version != 1 || e.OnBehalf != "" || !strings.HasPrefix(e.Actor, "account:") {
					t.Errorf("%+v", e)
				}
			case "set_property":
				if e.After != "" || e.Version != 0 {
					t.Errorf("%+v", e)
				}
			}
		}
		if !slices.Equal(all, []string{"set_property", "patch_document", "create_block"}) || cursor != "" {
			t.Errorf("%v, and then %q", all, cursor)
		}
	})
}

func TestVersionsAreReadComparedAndRestored(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		o := create(t, a, ctx, m{"title": "T", "content": "one\n\ntwo"})
		d := edit(t, a, ctx, o.ID)
		w := call[written](t, a, ctx, "replace_document", m{"block_id": o.ID, "base_hash": d.Hash, "content": "three", "confirm_rebuild": true})
		old := call[struct{ Markdown, Hash string }](t, a, ctx, "read_version", m{"block_id": o.ID, "version": 1, "as": "markdown"})
		if old.Markdown != "one\n\ntwo\n" || old.Hash != d.Hash {
			t.Errorf("%+v", old)
		}
		c := call[struct {
			Added, Removed int
			Diff           string
		}](t, a, ctx, "compare_versions", m{"block_id": o.ID, "from_version": 1})
		if c.Added != 1 || c.Removed != 2 || !strings.Contains(c.Diff, "three") || !strings.Contains(c.Diff, "one") {
			t.Errorf("%+v", c)
		}
		back := call[written](t, a, ctx, "restore_version", m{"block_id": o.ID, "version": 1, "base_hash": w.Hash})
		if now := edit(t, a, ctx, o.ID); now.Hash != d.Hash || back.Hash != d.Hash || back.Version != 3 {
			t.Errorf("%+v %+v", now, back)
		}
		a.Fails(t, ctx, "read_version", say(m{"block_id": o.ID, "version": 4}), fault.NotFound)
	})
}
