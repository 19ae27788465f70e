package version_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"cairn/internal/doc"
	"cairn/internal/doc/doctest"
	"cairn/internal/doc/markdown"
	"cairn/internal/doc/version"
	"cairn/internal/fault"
)

// changed draws a version of a document that a patch or two made.
func changed(t *rapid.T, d *doc.Doc, prefix string) *doc.Doc {
	newID := doctest.IDs(prefix)
	for range 3 {
		p, err := doc.DecodePatch(doctest.Patch(t, d), markdown.Read)
		if err != nil {
			t.Fatal(err)
		}
		for n := min(len(p), rapid.IntRange(1, 3).Draw(t, "ops")); n > 0; n-- {
			if r, err := d.Apply(p[:n], newID); err == nil {
				d = r.Doc
				break
			}
		}
	}
	return d
}

func TestMergeWithAVersionThatDidNotChangeIsTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := doctest.Docs("n").Draw(t, "doc")
		other := changed(t, base, "x")
		for _, c := range [][2]*doc.Doc{{other, base}, {base, other}} {
			got, err := version.Merge(base, c[0], c[1])
			if err != nil {
				t.Fatal(err)
			}
			if got.Hash() != other.Hash() {
				t.Fatalf("\n got %s\nwant %s\nbase %s", got.JSON(), other.JSON(), base.JSON())
			}
		}
		// Undone at once, a change is gone.
		if back, err := version.Merge(other, base, other); err != nil || back.Hash() != base.Hash() {
			t.Fatalf("%v\n got %s\nwant %s\nfrom %s", err, back.JSON(), base.JSON(), other.JSON())
		}
	})
}

func TestMergeKeepsWhatBothDid(t *testing.T) {
	merged := 0
	rapid.Check(t, func(t *rapid.T) {
		base := doctest.Docs("n").Draw(t, "doc")
		ours, theirs := changed(t, base, "x"), changed(t, base, "y")
		got, err := version.Merge(base, ours, theirs)
		if err != nil {
			if !fault.Is(err, fault.Conflict) {
				t.Fatal(err)
			}
			return
		}
		merged++
		if again, err := doc.Parse(got.JSON()); err != nil || again.Hash() != got.Hash() {
			t.Fatalf("%s %v", got.JSON(), err)
		}
		for _, side := range []*doc.Doc{ours, theirs} {
			c := version.Diff(base, side)
			for _, e := range c.Edited {
				if n := got.Node(e.After.ID); n == nil || !n.Same(e.After) {
					t.Fatalf("the edit of %s is lost", e.After.ID)
				}
			}
			for _, n := range c.Added {
				if got.Node(n.ID) == nil {
					t.Fatalf("%s, which was added, is lost\n base %s\n ours %s\n theirs %s\n got %s", n.ID, base.JSON(), ours.JSON(), theirs.JSON(), got.JSON())
				}
			}
			for _, n := range c.Removed {
				if got.Node(n.ID) != nil {
					t.Fatalf("%s, which was removed, is there", n.ID)
				}
			}
		}
		// Nothing but what either did is different.
		touched := append(version.Diff(base, ours).IDs(), version.Diff(base, theirs).IDs()...)
		for _, id := range version.Diff(base, got).IDs() {
			if !slices.Contains(touched, id) && len(version.Diff(base, ours).Moved)+len(version.Diff(base, theirs).Moved) == 0 {
				t.Fatalf("%s was touched by neither", id)
			}
		}
	})
	if merged < 20 {
		t.Errorf("only %d merges had no conflict", merged)
	}
}

// Two moves that are right alone may make a circle: that is a conflict, and nothing is lost.
func TestMergeOfMovesIntoEachOtherIsAConflict(t *testing.T) {
	base := made(t, "> a\n\n> b\n\nend\n") // n1(n2) n3(n4) n5
	ours := apply(t, base, `[{"op":"move","node_id":"n1","into":"n3"}]`, "x")
	theirs := apply(t, base, `[{"op":"move","node_id":"n3","into":"n1"}]`, "y")
	if got, err := version.Merge(base, ours, theirs); !fault.Is(err, fault.Conflict) {
		t.Errorf("%v %s", err, got.JSON())
	}
	if got, err := version.Rebase(base, theirs, patch(t, `[{"op":"move","node_id":"n1","into":"n3"}]`), doctest.IDs("x")); !fault.Is(err, fault.Conflict) {
		t.Errorf("%v %+v", err, got)
	}
}

func TestUndoOfAPatchKeepsWhatCameAfterIt(t *testing.T) {
	before := made(t, "# H\n\none\n\ntwo\n\n- a\n- b\n")
	after := apply(t, before, `[{"op":"replace_text","node_id":"n2","find":"one","replace":"1"},{"op":"delete","node_id":"n5"},{"op":"insert_after","node_id":"n3","markdown":"agent's"}]`, "x")
	current := apply(t, after, `[{"op":"replace_text","node_id":"n3","find":"two","replace":"2"},{"op":"append_child","node_id":"n4","markdown":"- mine"}]`, "y")
	got, err := version.Merge(after, before, current)
	if err != nil || markdown.Write(got.Content()) != "# H\n\none\n\n2\n\n- a\n- b\n- mine\n" {
		t.Errorf("%v %q", err, markdown.Write(got.Content()))
	}
	current = apply(t, after, `[{"op":"replace_text","node_id":"n2","find":"1","replace":"I"}]`, "y")
	if _, err := version.Merge(after, before, current); !fault.Is(err, fault.Conflict) {
		t.Error(err)
	}
}
