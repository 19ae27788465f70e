package version_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cairn/internal/doc"
	"cairn/internal/doc/doctest"
	"cairn/internal/doc/markdown"
	"cairn/internal/doc/version"
	"cairn/internal/fault"
)

// Steps lead from each version to the next and back, one by one and several at once, and whatever else they are applied to gives
// a document or a fault.
func TestStepsLeadThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := doctest.Docs("n").Draw(t, "doc")
		docs := []*doc.Doc{d}
		var there, back [][]byte
		for i := range rapid.IntRange(1, 4).Draw(t, "versions") {
			p, err := doc.DecodePatch(doctest.Patch(t, d), markdown.Read)
			if err != nil {
				t.Fatal(err)
			}
			next := d
			if r, err := d.Apply(p, doctest.IDs(fmt.Sprint("x", i, "-"))); err == nil {
				next = r.Doc
			}
			if rapid.IntRange(0, 4).Draw(t, "renamed") == 0 {
				next, _ = next.WithTitle(rapid.SampledFrom([]string{"", "T", `"q" \ `}).Draw(t, "title"))
			}
			if rapid.IntRange(0, 4).Draw(t, "read anew") == 0 { // then no node is shared
				if next, err = doc.Parse(next.JSON()); err != nil {
					t.Fatal(err)
				}
			}
			there = append(there, version.Steps(d, next, version.Diff(d, next)))
			back = append([][]byte{version.Steps(next, d, version.Diff(next, d))}, back...)
			docs = append(docs, next)
			d = next
		}
		same := func(got *doc.Doc, err error, want *doc.Doc) {
			t.Helper()
			if err != nil || got.Hash() != want.Hash() || string(got.JSON()) != string(want.JSON()) {
				t.Fatalf("%s\n%s\n%v", got.JSON(), want.JSON(), err)
			}
		}
		last := len(docs) - 1
		for i := range last {
			got, err := version.ApplySteps(docs[i], there[i])
			same(got, err, docs[i+1])
			if got, err = version.ApplySteps(docs[last], back[:last-i]...); err != nil {
				t.Fatal(err)
			}
			same(got, err, docs[i])
		}
		got, err := version.ApplySteps(docs[0], there...)
		same(got, err, docs[last])
		if _, err := version.ApplySteps(docs[0], there[last-1], back[0]); err != nil && !fault.Is(err, fault.Internal) && !fault.Is(err, fault.Invalid) {
			t.Fatal(err)
		}
	})
}

// Steps of a large document are as small as the change: of a word, of one in a very long text, an item put in, moved from the end
// to the beginning, taken away, or with another attribute.
func TestStepsGrowWithTheChange(t *testing.T) {
	d := made(t, strings.Repeat("very long ", 30_000)+"end\n\n"+doctest.Large(300_000))
	long := d.Content()[0]
	items := d.Content()[1].Content
	first, last := items[0].ID, items[len(items)-1].ID
	for ops, most := range map[string]int{
		fmt.Sprintf(`[{"op":"replace_text","node_id":%q,"find":"item","replace":"thing"}]`, items[len(items)/2].ID): 400,
		fmt.Sprintf(`[{"op":"replace_text","node_id":%q,"find":"end","replace":"the end"}]`, long.ID):               100,
		fmt.Sprintf(`[{"op":"insert_after","node_id":%q,"markdown":"- new"}]`, first):                               250,
		fmt.Sprintf(`[{"op":"move","node_id":%q,"before":%q}]`, last, first):                                        100,
		fmt.Sprintf(`[{"op":"delete","node_id":%q},{"op":"delete","node_id":%q}]`, first, last):                     100,
	} {
		now := apply(t, d, ops, "x")
		steps := version.Steps(d, now, version.Diff(d, now))
		if len(steps) > most {
			t.Errorf("%s: %d bytes: %.300s", ops, len(steps), steps)
		}
	}
}

func FuzzApplySteps(f *testing.F) {
	d := doctest.Large(2_000)
	for _, s := range []string{`{"to":[[0,1],[0,0]]}`, `{"to":[{"id":"n3"},{"at":0,"to":[[1,2]]},{"at":0,"as":{"type":"quote","node_id":"q"},"to":[]}]}`, `{"title":"t"}`,
		`{"to":[{"at":1,"by":"AAAA"},{"is":{"type":"paragraph","node_id":"p"}}]}`} {
		f.Add([]byte(s))
	}
	base, err := markdown.Read(d)
	if err != nil {
		f.Fatal(err)
	}
	from, err := doc.New("", base, doctest.IDs("n"))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, steps []byte) {
		got, err := version.ApplySteps(from, steps)
		if err != nil {
			return
		}
		if again, err := doc.Parse(got.JSON()); err != nil || again.Hash() != got.Hash() {
			t.Fatal(err)
		}
	})
}
