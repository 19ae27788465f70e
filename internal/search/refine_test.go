package search

import (
	"fmt"
	"slices"
	"testing"

	"cairn/internal/db"
	"cairn/internal/db/dbtest"
)

func before(t *testing.T, list []string, first, second string) {
	t.Helper()
	a, b := slices.Index(list, first), slices.Index(list, second)
	if a < 0 || b >= 0 && b < a {
		t.Errorf("%q isn't found before %q: %q", first, second, list)
	}
}

// TestQuestionsReadWordsAsPeopleMeanThem shows each thing that a question's words are weighed by, beside one that has the
// same words without it.
func TestQuestionsReadWordsAsPeopleMeanThem(t *testing.T) {
	filler := "the boat and the harbour, a rope, some oars and the tide, which turned at noon over mud and shells and weed "
	for name, c := range map[string]struct{ question, better, worse string }{
		"another form of a word":      {"when did we buy the stove", "the stove we bought", "the stove we own"},
		"words beside each other":     {"red wine vinegar", "we keep red wine in the cellar with apples", "we keep wine in the red cellar with apples"},
		"in the order of the query":   {"house boat", "a house boat lay there today", "a boat house lay there today"},
		"words in one place":          {"repair pump", "repair the pump. " + filler + filler + filler, "repair. " + filler + filler + filler + " pump"},
		"what the question is about":  {"how many times has Tom painted", "Tom painted in the rain", "many times it rained on us"},
		"though it has a frame alone": {"what kind", "kind words", "other words"},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				put(t, d, Doc{Heap: "h", Thing: "a worse", Kind: "note", Body: c.worse}, Doc{Heap: "h", Thing: "a better", Kind: "note", Body: c.better})
				for i := range 20 {
					put(t, d, Doc{Heap: "h", Thing: fmt.Sprint("other ", i), Kind: "note", Body: filler})
				}
				before(t, ask(t, New(d, 1<<30), c.question), "a better", "a worse")
			})
		})
	}
}

func TestTitlesCountMore(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		put(t, d, notes("h", "one", "two", "three", "four", "five")...)
		put(t, d, Doc{Heap: "h", Thing: "z body", Kind: "note", Title: "Monday", Body: "mend the roof"}, Doc{Heap: "h", Thing: "a title", Kind: "note", Title: "Roof", Body: "mend it on Monday"})
		before(t, ask(t, New(d, 1<<30), "roof"), "a title", "z body")
	})
}

// TestWhatIsAlikeFollows shows that things which share what the best have come before others that fit as well.
func TestWhatIsAlikeFollows(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for i := range 30 {
			put(t, d, notes("h", fmt.Sprint("nothing of the kind, only ", i))...)
		}
		for i := range 4 {
			put(t, d, Doc{Heap: "h", Thing: fmt.Sprint("top ", i), Kind: "note", Body: fmt.Sprint("sourdough starter rises with rye flour ", i)})
		}
		put(t, d, Doc{Heap: "h", Thing: "a alike", Kind: "note", Body: "sourdough wants rye flour here"}, Doc{Heap: "h", Thing: "z other", Kind: "note", Body: "sourdough wants nine euros here"})
		before(t, ask(t, New(d, 1<<30), "sourdough starter"), "a alike", "z other")
	})
}

// turn is one of a conversation, so many minutes after its begin.
func turn(thing, kind, thread string, minute int64, body string) Doc {
	return Doc{Heap: "h", Thing: thing, Kind: kind, Thread: thread, At: minute * 60e6, Body: body}
}

func TestWhatStandsAroundHelpsToFind(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		e := New(d, 1<<30)
		put(t, d, turn("1", "turn", "talk", 0, "what shall we plant in the garden"), turn("2", "turn", "talk", 1, "leeks I guess"), turn("3", "turn", "talk", 300, "leeks again"),
			turn("4", "turn", "other", 1, "leeks elsewhere"), turn("5", "turn", "talk", 2, "fine"), turn("6", "hidden", "talk", 301, "garden garden garden"))
		list := ask(t, e, "leeks in the garden", "turn")
		before(t, list, "2", "3")
		before(t, list, "2", "4")
		before(t, list, "3", "5") // two steps from the question
		if want := ask(t, e, "garden", "turn"); slices.Contains(want, "3") || slices.Contains(want, "6") || !slices.Contains(want, "2") {
			t.Errorf("what may not be seen has a say, or what stands beside the best isn't found: %q", want)
		}
		put(t, d, turn("1", "turn", "talk", 900, "what shall we plant in the garden")) // it moves away
		if got := ask(t, e, "garden", "turn"); !slices.Equal(got, []string{"1"}) {
			t.Errorf("neighbours of where it was: %q", got)
		}
		remove(t, d, "h", "1")
		if got := ask(t, e, "garden", "turn"); len(got) > 0 {
			t.Errorf("neighbours of what is gone: %q", got)
		}
	})
}

func TestMarksOfMoments(t *testing.T) {
	for _, d := range []Doc{{}, {Day: "2023-05-08"}, {Thread: "t", At: -5}, {Day: "0001-01-01", Thread: "t", At: 1 << 60}, {Title: "8 May 2023"}} {
		m, rest := momentOf(d.mark() + " pump")
		if d.mark() == "" {
			m, rest = momentOf("pump")
		}
		if rest != "pump" || (m.thread != noThread) != (d.Thread != "") || m.at != d.At || (m.day != noDay) != (d.Day != "" || d.Title != "") {
			t.Errorf("%+v: %q gives %+v and %q", d, d.mark(), m, rest)
		}
	}
	for _, s := range []string{"@", "@x", "@1,2", "@,,", "@1,zz,!", "@99999999999999"} {
		if m, _ := momentOf(s + " pump"); m.thread != noThread || s != "@1,2" && s != "@1,zz,!" && m.day != noDay {
			t.Errorf("%q gives %+v", s, m)
		}
	}
}
