package version_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"cairn/internal/doc"
	"cairn/internal/doc/doctest"
	"cairn/internal/doc/markdown"
	"cairn/internal/doc/version"
	"cairn/internal/fault"
)

func made(t testing.TB, md string) *doc.Doc {
	t.Helper()
	nodes, err := markdown.Read(md)
	if err != nil {
		t.Fatal(err)
	}
	d, err := doc.New("Title", nodes, doctest.IDs("n"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func patch(t testing.TB, ops string) doc.Patch {
	t.Helper()
	p, err := doc.DecodePatch([]byte(ops), markdown.Read)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func apply(t testing.TB, d *doc.Doc, ops, prefix string) *doc.Doc {
	t.Helper()
	r, err := d.Apply(patch(t, ops), doctest.IDs(prefix))
	if err != nil {
		t.Fatal(err)
	}
	return r.Doc
}

func TestDeltaGivesTheNewVersionBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a, b []byte
		if rapid.Bool().Draw(t, "of documents") {
			d := doctest.Docs("n").Draw(t, "doc")
			p, err := doc.DecodePatch(doctest.Patch(t, d), markdown.Read)
			if err != nil {
				t.Fatal(err)
			}
			a, b = d.JSON(), d.JSON()
			if r, err := d.Apply(p, doctest.IDs("x")); err == nil {
				b = r.Doc.JSON()
			}
		} else {
			part := rapid.SliceOfN(rapid.ByteRange(0, 3), 0, 60)
			shared := part.Draw(t, "shared")
			a = append(append(part.Draw(t, "a"), shared...), part.Draw(t, "a end")...)
			b = append(append(part.Draw(t, "b"), shared...), part.Draw(t, "b end")...)
		}
		delta := version.Delta(a, b)
		got, err := version.ApplyDelta(a, delta)
		if err != nil || !bytes.Equal(got, b) {
			t.Fatalf("%q to %q by %q: %q %v", a, b, delta, got, err)
		}
		// Whatever is done to a delta or its base, what comes out is right or nothing comes out.
		if len(delta) > 0 {
			delta[rapid.IntRange(0, len(delta)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "bit"))
		}
		if got, err := version.ApplyDelta(a, delta); err == nil && !bytes.Equal(got, b) {
			t.Fatalf("a broken delta gave %q", got)
		}
		if got, err := version.ApplyDelta(append(a, 'x'), version.Delta(a, b)); err == nil && !bytes.Equal(got, b) {
			t.Fatalf("another base gave %q", got)
		}
	})
}

func FuzzApplyDelta(f *testing.F) {
	a, b := []byte(strings.Repeat("some text that is long enough ", 20)), []byte(strings.Repeat("some text that is longer than enough ", 20))
	f.Add(a, version.Delta(a, b))
	f.Add([]byte{}, version.Delta(nil, a))
	f.Fuzz(func(t *testing.T, a, delta []byte) {
		if got, err := version.ApplyDelta(a, delta); err != nil && !fault.Is(err, fault.Internal) || len(got) > doc.MaxJSON+len(a) {
			t.Fatal(len(got), err)
		}
	})
}

// Deltas of a large document are as small as the change: of a word, an item put in, an item moved from the end to the beginning.
func TestDeltaGrowsWithTheChange(t *testing.T) {
	d := made(t, doctest.Large(300_000))
	items := d.Content()[0].Content
	first, last := items[0].ID, items[len(items)-1].ID
	for ops, most := range map[string]int{
		fmt.Sprintf(`[{"op":"replace_text","node_id":%q,"find":"item","replace":"thing"}]`, items[len(items)/2].ID): 60,
		fmt.Sprintf(`[{"op":"insert_after","node_id":%q,"markdown":"- new"}]`, first):                               200,
		fmt.Sprintf(`[{"op":"move","node_id":%q,"before":%q}]`, last, first):                                        700,
		fmt.Sprintf(`[{"op":"delete","node_id":%q},{"op":"delete","node_id":%q}]`, first, last):                     300,
	} {
		now := apply(t, d, ops, "x")
		if n := len(version.Delta(d.JSON(), now.JSON())); n > most {
			t.Errorf("%s: %d bytes", ops, n)
		}
	}
}

func TestDiffSaysWhatChanged(t *testing.T) {
	d := made(t, "# H\n\none two three\n\n- a\n- b\n- c\n\n```\ncode\n```\n\nlast\n") // n1 n2 n3(n4 n5, n6 n7, n8 n9) n10 n11
	now := apply(t, d, `[{"op":"replace_text","node_id":"n2","find":"two","replace":"2"},{"op":"delete","node_id":"n6"},{"op":"move","node_id":"n8","before":"n4"},
		{"op":"insert_after","node_id":"n10","markdown":"> new"},{"op":"set_attrs","node_id":"n1","attrs":{"level":2}},{"op":"move","node_id":"n11","before":"n1"}]`, "x")
	now, err := now.WithTitle("Other title")
	if err != nil {
		t.Fatal(err)
	}
	c := version.Diff(d, now)
	var got []string
	for _, e := range c.Edited {
		got = append(got, "~"+e.After.ID)
	}
	for _, n := range c.Added {
		got = append(got, "+"+n.ID)
	}
	for _, n := range c.Removed {
		got = append(got, "-"+n.ID)
	}
	for _, n := range c.Moved {
		got = append(got, ">"+n.ID)
	}
	if diff := cmp.Diff("~n1 ~n2 +x1 +x2 -n6 -n7 >n11 >n8", strings.Join(got, " ")); diff != "" {
		t.Error(diff)
	}
	text := c.Text(10_000)
	for _, line := range []string{"~ title: [-Title-]{+Other title+}", "> paragraph: last", "~ heading: H (attributes or marks)", "~ paragraph: one [-two-]{+2+} three", "-     paragraph: b", "+   paragraph: new", ">   list_item: c"} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%q isn't in\n%s", line, text)
		}
	}
	if short := c.Text(60); len(short) > 90 || !strings.Contains(short, "more\n") {
		t.Errorf("%q", short)
	}
	if !version.Diff(d, d).Empty() || c.Empty() {
		t.Error("empty")
	}
}

// What Diff says is enough: nothing else differs, and the order of what stayed follows from what was moved.
func TestDiffMissesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := doctest.Docs("n").Draw(t, "doc")
		p, err := doc.DecodePatch(doctest.Patch(t, d), markdown.Read)
		if err != nil {
			t.Fatal(err)
		}
		r, err := d.Apply(p, doctest.IDs("x"))
		if err != nil {
			return
		}
		c := version.Diff(d, r.Doc)
		if c.Empty() != (d.Hash() == r.Doc.Hash()) {
			t.Fatalf("empty %v", c.Empty())
		}
		// It is the same between versions that share no nodes.
		x, err := doc.Parse(d.JSON())
		if err != nil {
			t.Fatal(err)
		}
		y, err := doc.Parse(r.Doc.JSON())
		if err != nil {
			t.Fatal(err)
		}
		if alone := version.Diff(x, y); fmt.Sprint(alone.IDs()) != fmt.Sprint(c.IDs()) || alone.Text(10_000) != c.Text(10_000) {
			t.Fatalf("%v, without shared nodes %v\n%s\n%s", c.IDs(), alone.IDs(), d.JSON(), r.Doc.JSON())
		}
		changed := map[string]bool{}
		for _, id := range c.IDs() {
			changed[id] = true
		}
		stays := func(d *doc.Doc) string {
			var b strings.Builder
			for n, level := range d.All() {
				if !changed[n.ID] {
					own := n.Type
					if !n.HoldsBlocks() {
						own = string(n.ContentJSON())
					}
					fmt.Fprintln(&b, level, n.ID, own)
				}
			}
			return b.String()
		}
		if a, b := stays(d), stays(r.Doc); len(c.Moved) == 0 && a != b {
			t.Fatalf("%v\n%s\n%s", c.IDs(), a, b)
		}
		c.Text(1000)
		for _, id := range c.IDs() {
			found := false
			for _, had := range r.Changed {
				found = found || had == id
			}
			if !found && len(c.Moved) == 0 {
				t.Fatalf("%s is no change of the patch: %v", id, r.Changed)
			}
		}
	})
}

func TestRebase(t *testing.T) {
	const md = "# H\n\none\n\ntwo\n\n- a\n- b\n\n> q\n" // n1 n2 n3 n4(n5 n6, n7 n8) n9(n10)
	for _, c := range []struct{ theirs, ours, conflict string }{
		{`[{"op":"replace_text","node_id":"n2","find":"one","replace":"1"}]`, `[{"op":"replace_text","node_id":"n3","find":"two","replace":"2"}]`, ""},
		{`[{"op":"insert_before","node_id":"n1","markdown":"first"}]`, `[{"op":"replace_text","agent_id":"@2","find":"one","replace":"1"}]`, ""},
		{`[{"op":"append_child","node_id":"n4","markdown":"- c"}]`, `[{"op":"append_child","node_id":"n4","markdown":"- d"}]`, ""},
		{`[{"op":"replace_text","node_id":"n2","find":"one","replace":"1"}]`, `[{"op":"insert_after","node_id":"n2","markdown":"x"}]`, ""},
		{`[{"op":"replace_text","node_id":"n6","find":"a","replace":"A"}]`, `[{"op":"replace_text","node_id":"n8","find":"b","replace":"B"}]`, ""},
		{`[{"op":"move","node_id":"n1","after":"n3"}]`, `[{"op":"delete","node_id":"n9"}]`, ""},
		{`[{"op":"replace_text","node_id":"n2","find":"one","replace":"1"}]`, `[{"op":"replace_text","node_id":"n2","find":"o","replace":"0"}]`, "n2 was edited"},
		{`[{"op":"delete","node_id":"n2"}]`, `[{"op":"set_attrs","node_id":"n1","attrs":{"level":2}},{"op":"insert_after","node_id":"n2","markdown":"x"}]`, "n2 was removed"},
		{`[{"op":"replace_text","node_id":"n8","find":"b","replace":"B"}]`, `[{"op":"delete","node_id":"n4"}]`, "n8 was edited"},
		{`[{"op":"append_child","node_id":"n9","markdown":"more"}]`, `[{"op":"delete","node_id":"n9"}]`, "n9 got y1 put into it"},
		{`[{"op":"move","node_id":"n2","into":"n9"}]`, `[{"op":"replace","node_id":"n9","markdown":"gone"}]`, "n9 got n2 put into it"},
		{`[{"op":"move","node_id":"n2","after":"n3"}]`, `[{"op":"move","node_id":"n2","before":"n1"}]`, "n2 "},
		{`[{"op":"delete","node_id":"n7"}]`, `[{"op":"delete","node_id":"n5"}]`, "no longer fits"},
	} {
		base := made(t, md)
		current := apply(t, base, c.theirs, "y")
		r, err := version.Rebase(base, current, patch(t, c.ours), doctest.IDs("x"))
		if c.conflict == "" {
			if err != nil {
				t.Errorf("%s and %s: %v", c.theirs, c.ours, err)
				continue
			}
			// Both are in it: what either changed is so in the end.
			for _, part := range []*doc.Doc{current, apply(t, base, c.ours, "x")} {
				for _, e := range version.Diff(base, part).Edited {
					if got := r.Doc.Node(e.After.ID); got == nil || got.Plain() != e.After.Plain() {
						t.Errorf("%s and %s: %s was lost", c.theirs, c.ours, e.After.ID)
					}
				}
				for _, n := range version.Diff(base, part).Added {
					if !n.HoldsBlocks() && !strings.Contains(r.Doc.Plain(), n.Plain()) {
						t.Errorf("%s and %s: %s was lost", c.theirs, c.ours, n.Plain())
					}
				}
			}
			continue
		}
		if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), c.conflict) {
			t.Errorf("%s and %s: %v, want %s", c.theirs, c.ours, err, c.conflict)
		}
	}
	base := made(t, md)
	renamed, _ := base.WithTitle("New")
	if r, err := version.Rebase(base, renamed, patch(t, `[{"op":"delete","node_id":"n1"}]`), doctest.IDs("x")); err != nil || r.Doc.Title() != "New" {
		t.Error(err)
	}
}

// Fifty patches of disjoint nodes, all made for the same version, all land.
func TestRebaseOfFiftyDisjointPatchesLosesNone(t *testing.T) {
	base := made(t, doctest.Large(20_000))
	current := base
	items := base.Content()[0].Content
	for i := range 50 {
		r, err := version.Rebase(base, current, patch(t, fmt.Sprintf(`[{"op":"replace_text","node_id":%q,"find":"item %d ","replace":"done %d "}]`, items[i].ID, i, i)), doctest.IDs(fmt.Sprint("x", i, "-")))
		if err != nil {
			t.Fatal(err)
		}
		current = r.Doc
	}
	for i := range 50 {
		if !strings.Contains(current.Node(items[i].ID).Plain(), fmt.Sprintf("done %d ", i)) {
			t.Errorf("patch %d was lost", i)
		}
	}
}
