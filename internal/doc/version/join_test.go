package version_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cairn/internal/doc"
	"cairn/internal/doc/doctest"
	"cairn/internal/doc/markdown"
	"cairn/internal/doc/version"
)

// later draws a version that somebody made of a document.
func later(t *rapid.T, d *doc.Doc, prefix string) *doc.Doc {
	for range rapid.IntRange(0, 3).Draw(t, "patches of "+prefix) {
		patch, err := doc.DecodePatch(doctest.Patch(t, d), markdown.Read)
		if err != nil {
			continue
		}
		if res, err := d.Apply(patch, doctest.IDs(prefix+rapid.StringMatching(`[a-z]{6}`).Draw(t, "ids"))); err == nil {
			d = res.Doc
		}
	}
	return d
}

// rewritten draws a version in which the first text is another one, now and then.
func rewritten(t *rapid.T, d *doc.Doc, prefix string) *doc.Doc {
	for n := range d.All() {
		if n.Type == "paragraph" && rapid.Bool().Draw(t, "rewritten by "+prefix) {
			patch, err := doc.DecodePatch([]byte(`[{"op":"replace","node_id":"`+n.ID+`","markdown":"by `+prefix+`"}]`), markdown.Read)
			if err != nil {
				t.Fatal(err)
			}
			res, err := d.Apply(patch, doctest.IDs("x"))
			if err != nil {
				t.Fatal(err)
			}
			return res.Doc
		}
	}
	return d
}

// texts gives the texts of blocks that hold no others, by id.
func texts(d *doc.Doc) map[string]string {
	m := map[string]string{}
	for n := range d.All() {
		if !n.HoldsBlocks() {
			m[n.ID] = n.Plain()
		}
	}
	return m
}

func TestNothingOfEitherSideIsLostInAJoin(t *testing.T) {
	joined, clashed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		base := doctest.Docs("n").Draw(t, "base")
		mine, theirs := later(t, rewritten(t, base, "m"), "m"), later(t, rewritten(t, base, "t"), "t")
		got, clashes := version.Join(base, mine, theirs, doctest.IDs("j"))
		if got == nil {
			return
		}
		joined++
		clashed += min(len(clashes), 1)
		have := map[string]bool{}
		for _, text := range texts(got) {
			have[text] = true
		}
		was := texts(base)
		for _, d := range []*doc.Doc{mine, theirs} {
			for id, text := range texts(d) {
				if old, had := was[id]; (!had || old != text) && !have[text] {
					t.Fatalf("%q of %s is lost: %s", text, id, got.JSON())
				}
			}
		}
		if _, err := version.Merge(base, mine, theirs); err == nil && len(clashes) > 0 {
			t.Fatal("clashes, though the two can be merged")
		}
	})
	if joined == 0 || clashed == 0 {
		t.Errorf("%d joined, %d of them with clashes", joined, clashed)
	}
}

func TestJoin(t *testing.T) {
	const base = "# Garden\n\nThe beds lie in the sun.\n\n- peas\n- beans\n\nThe end.\n"
	for name, c := range map[string]struct {
		mine, theirs []string // replacements
		want         string   // "": can't be joined
		clashes      int
	}{
		"apart":            {[]string{"Garden", "My garden"}, []string{"peas", "leeks"}, "# My garden\n\nThe beds lie in the sun.\n\n- leeks\n- beans\n\nThe end.\n", 0},
		"the same block":   {[]string{"in the sun", "in shade", "Garden", "My garden"}, []string{"lie", "are", "peas", "leeks"}, "# My garden\n\nThe beds lie in shade.\n\nThe beds are in the sun.\n\n- leeks\n- beans\n\nThe end.\n", 1},
		"the same item":    {[]string{"peas", "sweet peas"}, []string{"peas", "snow peas"}, "# Garden\n\nThe beds lie in the sun.\n\n- sweet peas\n\n  snow peas\n- beans\n\nThe end.\n", 1},
		"the same words":   {[]string{"peas", "leeks"}, []string{"peas", "leeks"}, "# Garden\n\nThe beds lie in the sun.\n\n- leeks\n- beans\n\nThe end.\n", 0},
		"gone here":        {[]string{"The beds lie in the sun.\n\n", ""}, []string{"lie", "are", "peas", "leeks"}, "# Garden\n\nThe beds are in the sun.\n\n- leeks\n- beans\n\nThe end.\n", 1},
		"gone there":       {[]string{"lie", "are"}, []string{"The beds lie in the sun.\n\n", "", "peas", "leeks"}, "# Garden\n\nThe beds are in the sun.\n\n- leeks\n- beans\n\nThe end.\n", 1},
		"an item is gone":  {[]string{"- peas\n", ""}, []string{"peas", "snow peas"}, "# Garden\n\nThe beds lie in the sun.\n\n- snow peas\n- beans\n\nThe end.\n", 1},
		"both put in more": {[]string{"The end.", "Mine.\n\nThe end."}, []string{"The end.", "Theirs.\n\nThe end."}, "# Garden\n\nThe beds lie in the sun.\n\n- peas\n- beans\n\nMine.\n\nTheirs.\n\nThe end.\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := of(t, base)
			mine, theirs := saved(t, d, strings.NewReplacer(c.mine...).Replace(base)), saved(t, d, strings.NewReplacer(c.theirs...).Replace(base))
			mine = orRenamed(t, mine, d, "m")
			theirs = orRenamed(t, theirs, d, "t")
			got, clashes := version.Join(d, mine, theirs, doctest.IDs("j"))
			if got == nil {
				t.Fatal("not joined")
			}
			if text := markdown.Write(got.Content()); text != c.want || len(clashes) != c.clashes {
				t.Errorf("%d clashes:\n%s", len(clashes), text)
			}
		})
	}
}

// orRenamed gives new nodes ids of their own.
func orRenamed(t *testing.T, d, base *doc.Doc, prefix string) *doc.Doc {
	t.Helper()
	var list func(nodes []*doc.Node) []*doc.Node
	list = func(nodes []*doc.Node) (out []*doc.Node) {
		for _, n := range nodes {
			m := &doc.Node{Type: n.Type, ID: n.ID, Attrs: n.Attrs, Content: n.Content}
			if base.Node(n.ID) == nil {
				m.ID = prefix + n.ID
			}
			if n.HoldsBlocks() {
				m.Content = list(n.Content)
			}
			out = append(out, m)
		}
		return out
	}
	e, err := doc.New(d.Title(), list(d.Content()), nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
