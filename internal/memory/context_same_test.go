package memory

import (
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

func TestNearDuplicates(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"I prefer tea.", "i PREFER  tea", true},
		{"Café au lait", "cafe au lait!", true},
		{"I don't eat meat", "I do not eat meat", true},
		{"I’m vegan", "I am vegan", true},
		{"We use the main database", "We really use our main database", true},
		{"I preffer short meetings", "I prefer short meetings", true},
		{"Ｆｕｌｌ　ｗｉｄｔｈ", "full width", true},
		{"Я пью чай", "я пью чай!", true},
		{"私は茶が好き。", "私は茶が好き", true},
		{"I eat meat", "I do not eat meat", false},
		{"I never eat meat", "I eat meat", false},
		{"I run 5 km", "I run 15 km", false},
		{"It took 3.5 hours", "It took 35 hours", false},
		{"It was -5 degrees", "It was 5 degrees", false},
		{"I like C++", "I like C", false},
		{"Anna leads the team", "Hanna leads the team", false},
		{"My doctor is Andersen", "My doctor is Anderson", false},
		{"Ana is my sister", "Anna is my sister", false},
		{"I use Vim", "I used Vim", false},
		{"I like cats more than dogs", "I like dogs more than cats", false},
		{"喜欢茶", "不喜欢茶", false},
		{"It is possible", "It is impossible", false},
		{"🙂", "🙃", false},
	} {
		if got := fold(c.a) == fold(c.b); got != c.same {
			t.Errorf("%q and %q: %v (%v, %v)", c.a, c.b, got, essence(c.a), essence(c.b))
		}
	}
}

// However a statement is written, in case, accents, punctuation and space, it is the same one, and what it is a near-duplicate
// of doesn't change.
func TestNearDuplicatesAreStable(t *testing.T) {
	word := rapid.SampledFrom([]string{"i", "prefer", "tea", "coffee", "Łódź", "naïve", "Straße", "meeting", "not", "never", "the", "really", "42", "3.5", "don't", "Élan", "чай", "茶", "C++", "über", "committee", "🙂"})
	rapid.Check(t, func(t *rapid.T) {
		a := strings.Join(rapid.SliceOfN(word, 1, 12).Draw(t, "a"), " ")
		b := strings.Join(rapid.SliceOfN(word, 1, 12).Draw(t, "b"), " ")
		v := written(t, a)
		if fold(a) != fold(v) {
			t.Fatalf("%q and %q: %v, %v", a, v, essence(a), essence(v))
		}
		if (fold(a) == fold(b)) != (fold(v) == fold(written(t, b))) {
			t.Fatalf("%q and %q", a, b)
		}
		if opposes(a, b) != opposes(v, written(t, b)) {
			t.Fatalf("opposition of %q and %q", a, b)
		}
	})
}

func opposes(correction, statement string) bool {
	c, cd := denied(correction)
	s, sd := denied(statement)
	return opposed(c, cd, s, sd)
}

func TestOpposed(t *testing.T) {
	for _, c := range []struct {
		correction, statement string
		want                  bool
	}{
		{"I don't live in Paris", "I live in Paris", true},
		{"I do eat meat", "I don't eat meat", true},
		{"It is wrong that I live in Paris", "I live in Paris.", true},
		{"I no longer work at the bakery", "I work at the bakery", true},
		{"I live in Lyon", "I live in Paris", false},
		{"I live in Paris", "I live in Paris", false},
		{"I don't live in Paris", "I live in Rome", false},
		{"No", "I live in Rome", false},
	} {
		if got := opposes(c.correction, c.statement); got != c.want {
			t.Errorf("%q against %q: %v", c.correction, c.statement, got)
		}
	}
}

// written writes a text another way.
func written(t *rapid.T, s string) string {
	var b strings.Builder
	for _, w := range strings.Fields(s) {
		switch rapid.IntRange(0, 4).Draw(t, "case") {
		case 0:
			w = strings.ToUpper(w)
		case 1:
			w = strings.ToLower(w)
		case 2:
			w = norm.NFD.String(w)
		case 3: // without accents, as people type
			w = strings.Map(func(r rune) rune {
				if unicode.Is(unicode.Mn, r) {
					return -1
				}
				return r
			}, norm.NFD.String(w))
		}
		b.WriteString(w)
		b.WriteString(rapid.SampledFrom([]string{" ", "  ", ", ", "! ", " \u2014 ", "\n", "\u00a0", "… "}).Draw(t, "gap"))
	}
	return b.String()
}

// Cleaning is done once: a second time changes nothing, and what is left hides nothing that turns the reading direction.
func TestCleanTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune{0x200B, 0x200C, 0x200D, 0x202E, 0x2066, 0xFE0F, 0xE0041, 0xAD, '👩', '❤', 'क', '्', 'ی', ' ', '\n'}))).Draw(t, "s")
		once, _ := clean(s)
		twice, n := clean(once)
		if twice != once || n != 0 {
			t.Fatalf("%+q, then %+q (%d)", once, twice, n)
		}
		if strings.ContainsFunc(once, func(r rune) bool { return r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 || r == 0x200B }) {
			t.Fatalf("%+q", once)
		}
	})
}
