package words

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// A text is shortened between two characters as a reader sees them, as late as that can be.
func TestShortenPartsNoCharacter(t *testing.T) {
	whole := []string{"a", " ", "\n", "漢", "한", "각", "é", "e\u0301\u0323", "👩‍👩‍👧", "👍🏽", "🇫🇷", "❤️", "क्षि", "ن", "شّ", "🙂", "1️⃣", "🏴\U000E0067\U000E0062\U000E007F", "ก็", "\r\n"}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom(whole), 0, 80).Draw(t, "parts")
		n := rapid.IntRange(12, 120).Draw(t, "n")
		text := strings.Join(parts, "")
		short, was := Shorten(text, n)
		if was != (utf8.RuneCountInString(text) > n) || !was && short != text {
			t.Fatalf("%v: %q of %q", was, short, text)
		}
		end, chars := "", 0
		for _, g := range parts {
			if short == end && was && chars > 0 {
				if next := utf8.RuneCountInString(g); chars+next <= n && !strings.ContainsAny(g, "👩👍🏴") {
					t.Fatalf("%q would have fitted after %q: %d of %d", g, end, chars, n)
				}
				return
			}
			end, chars = end+g, chars+utf8.RuneCountInString(g)
		}
		if short != end {
			t.Fatalf("%+q of %+q at %d", short, text, n)
		}
	})
	// What is longer than all of the room by itself is parted rather than left out.
	if short, was := Shorten("a"+strings.Repeat("\u0301", 50), 10); !was || utf8.RuneCountInString(short) != 10 {
		t.Errorf("%q", short)
	}
}
