package block_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"cairn/internal/apptest"
	"cairn/internal/block"
	"cairn/internal/doc"
	"cairn/internal/doc/doctest"
	"cairn/internal/doc/markdown"
	"cairn/internal/fault"
)

// stored gives a block's newest document as the database has it, and checks that it reads as its hashes say.
func stored(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, a *apptest.App, ctx context.Context, id string) (block.Head, *doc.Doc) {
	t.Helper()
	h, d, err := block.New(a.DB, nil, nil).Open(ctx, id) // which has no document in memory
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	again, err := doc.Parse(d.JSON())
	if err != nil || again.Hash() != h.Hash || d.Hash() != h.Hash || d.Title() != h.Title {
		t.Fatalf("%s is stored as %s, which isn't what its hash says: %v", id, d.JSON(), err)
	}
	return h, d
}

// Whatever patches come, each leaves what the patch alone makes of the document, stored, hashed and parsed again; a failed one
// leaves nothing; and at the end every step is read and restored as it was.
func TestPatchesLeaveWhatTheyMake(t *testing.T) {
	each(t, func(t *testing.T, a *apptest.App, ctx context.Context) {
		landed := 0
		rapid.Check(t, func(r *rapid.T) {
			first := doctest.Docs("n").Draw(r, "doc")
			o := create(t, a, ctx, m{"title": first.Title(), "content": nodes(first)})
			h, d := stored(r, a, ctx, o.ID)
			steps := []*doc.Doc{d}
			for range rapid.IntRange(1, 8).Draw(r, "patches") {
				raw := doctest.Patch(r, d)
				var want *doc.Result
				p, err := doc.DecodePatch(raw, markdown.Read)
				if err == nil {
					want, err = d.Apply(p, doctest.IDs("x"))
				}
				res, failed := a.Runner.Run(ctx, "patch_document", json.RawMessage(say(m{"block_id": o.ID, "base_hash": h.Hash, "operations": json.RawMessage(raw)})))
				now, kept := stored(r, a, ctx, o.ID)
				if (err == nil) != (failed == nil) || failed != nil && !fault.Is(failed, fault.Invalid) {
					r.Fatalf("%s: alone %v, by the operation %v", raw, err, failed)
				}
				if failed != nil {
					if now != h {
						r.Fatalf("%s failed and left %+v", raw, now)
					}
					continue
				}
				var w written
				if json.Unmarshal(res.JSON, &w) != nil || w.Hash != now.Hash || kept.Plain() != want.Doc.Plain() || kept.Len() != want.Doc.Len() {
					r.Fatalf("%s made\n%s\nnot\n%s", raw, kept.JSON(), want.Doc.JSON())
				}
				if now.Hash != h.Hash {
					landed++
					steps = append(steps, kept)
				} else if now.Version != h.Version {
					r.Fatalf("%s changed nothing and made version %d", raw, now.Version)
				}
				h, d = now, kept
			}
			for i, s := range steps {
				call[written](t, a, ctx, "restore_version", m{"block_id": o.ID, "version": i + 1, "base_hash": h.Hash})
				var back *doc.Doc
				if h, back = stored(r, a, ctx, o.ID); string(back.JSON()) != string(s.JSON()) {
					r.Fatalf("version %d came back as\n%s\nnot\n%s", i+1, back.JSON(), s.JSON())
				}
			}
		})
		if landed < 10 {
			t.Errorf("only %d patches landed", landed)
		}
	})
}

// nodes gives a document's nodes as an argument, without their ids.
func nodes(d *doc.Doc) json.RawMessage {
	var whole struct{ Content json.RawMessage }
	if err := json.Unmarshal(d.JSON(), &whole); err != nil {
		panic(err)
	}
	if len(whole.Content) == 0 {
		return json.RawMessage("[]")
	}
	return whole.Content
}

// FuzzPatchDocument gives the operation anything as operations: it never panics, what fails leaves nothing, what lands is stored as
// its hash says, can be undone and be restored.
func FuzzPatchDocument(f *testing.F) {
	for _, s := range []string{`[{"op":"replace_text","node_id":"@2","find":"a","replace":"$1","expected_count":2}]`, `[{"op":"insert_after","agent_id":"@1","markdown":"- x\n- [ ] y"}]`,
		`[{"op":"move","node_id":"@4","into":"doc"},{"op":"delete","node_id":"@1"}]`, `[{"op":"set_attrs","node_id":"@1","attrs":{"level":2,"x":null}}]`, `[{"op":"delete","node_id":"n2"}]`,
		`[{"op":"add_mark","node_id":"@2","mark":{"type":"link","attrs":{"href":"https://x.y"}}}]`, `[{"op":"replace","node_id":"@3","nodes":[{"type":"paragraph","node_id":"n1","content":[{"type":"text","text":"\ud83d\ude00"}]}]}]`,
		`[{"op":"append_child","node_id":"doc","nodes":[{"type":"paragraph","content":[{"type":"mention","attrs":{"ref":"cairn:block/01890a5d-ac96-774b-bcce-b302099a8057"}}]}]}]`,
		`[],"rebase":true`, `[{}]`, `{}`, `null`, `[{"op":"insert_before","node_id":"@1","markdown":"\u0000"}]`, `[{"op":"insert_before","node_id":"@1","markdown":"\ud800"}]`, "[{\"op\":\"\xe2\"}]"} {
		f.Add([]byte(s))
	}
	a := apptest.New(f, map[string]string{"CAIRN_DATA": f.TempDir()})
	ctx := a.As(f, a.Token(f, ""))
	f.Fuzz(func(t *testing.T, raw []byte) {
		o := create(t, a, ctx, m{"title": "T", "content": "# H\n\na *b* a\n\n- a\n- [x] b\n\n| a |\n| - |\n\n> q\n"})
		h, was := stored(t, a, ctx, o.ID)
		args := fmt.Appendf(nil, `{"block_id":%q,"base_hash":%q,"operations":%s}`, o.ID, h.Hash, raw)
		res, err := a.Runner.Run(ctx, "patch_document", args)
		now, d := stored(t, a, ctx, o.ID)
		var w written
		if err != nil {
			if f := fault.From(err); !slices.Contains([]fault.Kind{fault.Invalid, fault.Parse, fault.Conflict}, f.Kind) {
				t.Fatalf("%q: %v", raw, err)
			}
		} else if err := json.Unmarshal(res.JSON, &w); err != nil || w.Hash != now.Hash {
			t.Fatalf("%q: %s, and the block has %s: %v", raw, res.JSON, now.Hash, err)
		}
		if err != nil || w.DryRun || now.Hash == h.Hash {
			if now != h || len(changes(t, a, ctx, o.ID)) != 1 {
				t.Fatalf("%q left %+v", raw, now)
			}
			return
		}
		if got := edit(t, a, ctx, o.ID); got.Hash != d.Hash() || now.Version != 2 {
			t.Fatalf("%q: read as %+v", raw, got)
		}
		if u := call[undoing](t, a, ctx, "undo_change", m{"change_id": changes(t, a, ctx, o.ID)[0]}); len(u.Undone) != 1 {
			t.Fatalf("%q: %+v", raw, u)
		}
		if h, back := stored(t, a, ctx, o.ID); string(back.JSON()) != string(was.JSON()) {
			t.Fatalf("%q undone: %s", raw, back.JSON())
		} else {
			call[written](t, a, ctx, "restore_version", m{"block_id": o.ID, "version": 2, "base_hash": h.Hash})
		}
		if _, again := stored(t, a, ctx, o.ID); string(again.JSON()) != string(d.JSON()) {
			t.Fatalf("%q restored: %s", raw, again.JSON())
		}
	})
}
