package block_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cairn/internal/apptest"
	"cairn/internal/block"
	"cairn/internal/fault"
	"cairn/internal/op"
)

// A replacement changes the document and nothing else, and the title alone changes by its own tool (CASES 16).
func TestReplaceRunsOverTitle(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		o := create(t, a, ctx, m{"title": "topic: Q3 Plan", "content": "Q3 Plan is late", "external_ref": "Q3 Plan"})
		d := edit(t, a, ctx, o.ID)
		w := call[written](t, a, ctx, "patch_document", m{"block_id": o.ID, "base_hash": d.Hash, "operations": []m{{"op": "replace_text", "node_id": "@1", "find": "Q3 Plan", "replace": "Q3: Plan #1"}}})
		now := edit(t, a, ctx, o.ID)
		if now.Title != "topic: Q3 Plan" || now.text() != "Q3: Plan #1 is late" || !slices.Equal(w.Changed, []string{d.Nodes[0].NodeID}) {
			t.Errorf("%+v %+v", now, w)
		}
	})
}

// Headings are targets by their id; text never is one, and nothing is made where the target is missing (CASES 17).
func TestPatchHitsALookAlikeHeading(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		o := create(t, a, ctx, m{"content": "# Root\n\n## Notes\n\n### Open\n\n## Archive\n\n### Open\n\n| a |\n| - |\n| `## Notes` |\n\n## 📝| <b>Log</b>:"})
		d := edit(t, a, ctx, o.ID)
		for _, target := range []string{"Open", "## Notes", "", "@99", "📝| <b>Log</b>:"} {
			a.Fails(t, ctx, "patch_document", say(m{"block_id": o.ID, "base_hash": d.Hash, "operations": []m{{"op": "insert_after", "node_id": target, "markdown": "x"}}}), fault.Invalid)
		}
		if now := edit(t, a, ctx, o.ID); now.Hash != d.Hash {
			t.Error("something was written")
		}
		log := d.Nodes[slices.IndexFunc(d.Nodes, func(n node) bool { return strings.Contains(n.Text, "Log") })]
		second := d.Nodes[4]
		call[written](t, a, ctx, "patch_document", m{"block_id": o.ID, "base_hash": d.Hash, "operations": []m{
			{"op": "insert_after", "node_id": log.NodeID, "markdown": "today"}, {"op": "insert_after", "node_id": second.NodeID, "markdown": "done"}}})
		if got := edit(t, a, ctx, o.ID).text(); got != "Root|Notes|Open|Archive|Open|done|a|📝| <b>Log</b>:|today" && !strings.Contains(got, "Archive|Open|done") || !strings.HasSuffix(got, "|today") {
			t.Error(got)
		}
	})
}

// Children whose ids begin alike are told apart, and one that would go is named (CASES 18).
func TestReplaceDropsChildren(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		var embeds []string
		var ids []string
		for i := range 3 {
			ids = append(ids, create(t, a, ctx, m{"title": fmt.Sprint("child ", i)}).ID)
			embeds = append(embeds, "![c](cairn:block/"+ids[i]+")")
		}
		o := create(t, a, ctx, m{"content": strings.Join(embeds, "\n\n")})
		put := func(hash, text string, more m) m {
			args := m{"block_id": o.ID, "base_hash": hash, "content": text, "confirm_rebuild": true}
			for k, v := range more {
				args[k] = v
			}
			return args
		}
		w := call[written](t, a, ctx, "replace_document", put(o.Hash, "New\n\n"+strings.Join(embeds, "\n\n"), nil))
		f := a.Fails(t, ctx, "replace_document", say(put(w.Hash, strings.Join(embeds[:2], "\n\n"), nil)), fault.Conflict)
		if b, _ := json.Marshal(f.Body()); !strings.Contains(string(b), ids[2]) || strings.Contains(string(b), ids[1]) {
			t.Errorf("%s", b)
		}
		if now := edit(t, a, ctx, o.ID); now.Hash != w.Hash {
			t.Error("it was written")
		}
		for _, no := range []m{{"confirm_rebuild": false}, {"content": 5}, {"content": m{}}, {"content": []m{{"type": "nosuch"}}}, {"content": "a\x00b"}} {
			a.Fails(t, ctx, "replace_document", say(put(w.Hash, "x", no)), fault.Invalid)
		}
		call[written](t, a, ctx, "replace_document", put(w.Hash, "Alone", m{"allow_dropped_children": true}))
		if got := relationsOf(t, a, ctx, o.ID); len(got) != 0 {
			t.Errorf("%v", got)
		}
	})
}

// A title is kept exactly, whatever it is (CASES 20, 21), and counted in characters.
func TestOddTitles(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		for _, title := range []string{"17/12/30 plan", "a/../../b", "..", ".", "CON", `x\y:z?*`, "trailing ", " leading", ".dot", "two\nlines", "🚀", "", "<img src=x onerror=1>", strings.Repeat("a", 300), strings.Repeat("😀", 300)} {
			o := create(t, a, ctx, m{"title": title})
			if got := edit(t, a, ctx, o.ID); got.Title != title || o.Block.Title != title {
				t.Errorf("%q became %q", title, got.Title)
			}
			a.Call(t, ctx, "fetch", say(m{"id": o.ID}))
		}
		a.Fails(t, ctx, "create_block", say(m{"title": strings.Repeat("a", 301)}), fault.Invalid)
		o := create(t, a, ctx, m{"content": strings.Repeat("w ", 5000)})
		if o.Block.Title != "" {
			t.Errorf("%+v", o)
		}
	})
}

// Bad bytes are refused before anything is written (CASES 22).
func TestBadBytesInDocuments(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		o := create(t, a, ctx, m{"content": "x"})
		for _, bad := range []string{`"\ud83d"`, "\"\xe2\"", `[{"type":"paragraph","content":[{"type":"text","text":"\ud83d"}]}]`} {
			for tool, args := range map[string]string{"create_block": `{"content":` + bad + `}`,
				"replace_document": `{"block_id":"` + o.ID + `","base_hash":"` + o.Hash + `","confirm_rebuild":true,"content":` + bad + `}`} {
				if _, err := a.Runner.Run(ctx, tool, json.RawMessage(args)); !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Parse) {
					t.Errorf("%s %q: %v", tool, bad, err)
				}
			}
		}
		kept := create(t, a, ctx, m{"content": "\ufeffone\r\n\r\ntwo\rthree"})
		if got := edit(t, a, ctx, kept.ID).text(); got != "one|two\nthree" && got != "one|two three" {
			t.Errorf("%q", got)
		}
		deep := strings.Repeat("> ", 200) + "x"
		if _, err := a.Runner.Run(ctx, "create_block", json.RawMessage(say(m{"content": deep}))); err != nil && !fault.Is(err, fault.Invalid) {
			t.Error(err)
		}
		a.Fails(t, ctx, "create_block", say(m{"content": strings.Repeat("é", 1_500_001)}), fault.Invalid)
	})
}

// An agent that may only read writes nothing, and a heap that isn't granted is as good as none.
func TestRightsInSharedHeaps(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		person := a.Person(t)
		mine := create(t, a, person, `{"title":"Mine","content":"ferns","heap":"Personal"}`)
		both := create(t, a, person, `{"title":"Both","content":"ivy","heap":"Work"}`)
		work := a.As(t, a.Token(t, `{"name":"work","heaps":["Work"],"rate":0}`))
		for _, id := range []string{mine.ID, "01890a5d-ac96-774b-bcce-b302099a8057"} {
			for tool, args := range map[string]m{"get_document": {}, "get_block": {}, "get_provenance": {}, "read_version": {"version": 1}, "delete_block": {},
				"patch_document": {"base_hash": mine.Hash, "operations": []m{{"op": "delete", "node_id": "@1"}}}, "list_relations": {}, "set_property": {"key": "k", "value": 1}} {
				args["block_id"] = id
				if f := a.Fails(t, work, tool, say(args), fault.NotFound); strings.Contains(f.Message, "Mine") {
					t.Error(f.Message)
				}
			}
			a.Fails(t, work, "add_relation", say(m{"from": both.ID, "to": id, "kind": "mention"}), fault.NotFound)
		}
		if got := call[list](t, a, work, "list_blocks", `{}`).titles(); !slices.Equal(got, []string{"Both"}) {
			t.Errorf("%v", got)
		}
		if got := call[list](t, a, work, "search_blocks", `{"query":"ferns"}`); got.Count != 0 {
			t.Errorf("%+v", got)
		}
		// A viewer of the heap reads and doesn't write.
		guest := a.Account(t, "Guest")
		var invite struct{ Invite struct{ ID string } }
		apptest.Decode(t, a.Call(t, person, "invite_member", `{"heap":"Work","account":"Guest","role":"viewer"}`), &invite)
		var invites struct{ Invites []struct{ ID string } }
		apptest.Decode(t, a.Call(t, guest, "list_invites", `{}`), &invites)
		a.Call(t, guest, "respond_invite", say(m{"invite_id": invites.Invites[0].ID, "accept": true}))
		guest = a.PersonNamed(t, "Guest")
		if got := edit(t, a, guest, both.ID); got.text() != "ivy" {
			t.Errorf("%+v", got)
		}
		for tool, args := range map[string]m{"delete_block": {}, "set_property": {"key": "k", "value": 1}, "update_block_title": {"title": "x", "base_hash": both.Hash},
			"patch_document": {"base_hash": both.Hash, "operations": []m{{"op": "delete", "node_id": "@1"}}}} {
			args["block_id"] = both.ID
			a.Fails(t, guest, tool, say(args), fault.Conflict)
		}
		ro := a.As(t, a.Token(t, `{"name":"ro","read_only":true,"rate":0}`))
		a.Fails(t, ro, "patch_document", say(m{"block_id": both.ID, "base_hash": both.Hash, "operations": []m{{"op": "delete", "node_id": "@1"}}}), fault.Scope)
		if got := edit(t, a, ro, both.ID); got.Hash != both.Hash {
			t.Errorf("%+v", got)
		}
	})
}

// Whatever patches come, the newest document reads as its hash says, and every version stays what it was.
func TestEveryVersionStaysWhatItWas(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		rapid.Check(t, func(r *rapid.T) {
			o := create(t, a, ctx, m{"title": "T", "content": "one\n\ntwo\n\n- three\n- four"})
			hashes := []string{o.Hash}
			for range rapid.IntRange(1, 25).Draw(r, "patches") {
				d := edit(t, a, ctx, o.ID)
				if d.Hash != hashes[len(hashes)-1] {
					r.Fatalf("the document has the hash %s, not %s", d.Hash, hashes[len(hashes)-1])
				}
				id := "doc"
				if len(d.Nodes) > 0 {
					id = rapid.SampledFrom(d.Nodes).Draw(r, "node").NodeID
				}
				do := m{"op": rapid.SampledFrom([]string{"insert_before", "insert_after", "replace", "delete", "append_child"}).Draw(r, "op"), "node_id": id}
				if do["op"] != "delete" {
					do["markdown"] = rapid.SampledFrom([]string{"x", "- a\n- b", "> quote", strings.Repeat("long ", 200)}).Draw(r, "text")
				}
				res, err := a.Runner.Run(ctx, "patch_document", json.RawMessage(say(m{"block_id": o.ID, "base_hash": d.Hash, "operations": []m{do}})))
				if fault.Is(err, fault.Invalid) { // it doesn't fit there
					continue
				}
				var w written
				if err != nil || json.Unmarshal(res.JSON, &w) != nil {
					r.Fatal(err)
				}
				if w.Hash != d.Hash {
					hashes = append(hashes, w.Hash)
				}
			}
			fresh := op.NewRunner(slog.New(slog.DiscardHandler), block.New(a.DB, nil, nil).Ops()...) // which has no document in memory
			for i, h := range hashes {
				res, err := fresh.Run(ctx, "read_version", json.RawMessage(say(m{"block_id": o.ID, "version": i + 1})))
				var d document
				if err != nil || json.Unmarshal(res.JSON, &d) != nil || d.Hash != h {
					r.Fatalf("version %d: %v, %s, not %s", i+1, err, d.Hash, h)
				}
			}
		})
	})
}
