package embed

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// checkSplit says what of Split's promise its answer breaks.
func checkSplit(t *testing.T, text string, about int) []Span {
	t.Helper()
	spans := Split(text, about)
	about = max(about, 8)
	var whole strings.Builder
	covered, before := 0, -1
	for i, s := range spans {
		if s.Start > covered || s.Start <= before || s.End <= covered {
			t.Fatalf("span %d %v of %q leaves a gap or repeats; covered to %d", i, s, text, covered)
		}
		part := s.In(text)
		whole.WriteString(part[covered-s.Start:])
		if overlap := utf8.RuneCountInString(text[s.Start:covered]); overlap > about/6 {
			t.Errorf("span %d of %q overlaps by %d", i, text, overlap)
		}
		if n := utf8.RuneCountInString(part); n > about && n > 4*about+1 {
			t.Errorf("span %d of %q has %d characters, asked for %d", i, text, n, about)
		}
		if utf8.ValidString(text) && !utf8.ValidString(part) {
			t.Errorf("span %d of %q cuts a code point", i, text)
		}
		covered, before = s.End, s.Start
	}
	if whole.String() != text {
		t.Errorf("%q: without overlaps the spans are %q", text, whole.String())
	}
	return spans
}

func TestSplitEndsWithSentencesAndBeginsWithWords(t *testing.T) {
	text := strings.Repeat(`She said "no." The pump was mended on Monday, and nobody asked. `, 40)
	spans := checkSplit(t, text, About)
	for i, s := range spans {
		part := s.In(text)
		if n := utf8.RuneCountInString(part); n > About || n < About/2 && i < len(spans)-1 {
			t.Errorf("span %d has %d characters", i, n)
		}
		if end := strings.TrimSpace(part); !strings.HasSuffix(end, ".") && !strings.HasSuffix(end, `."`) {
			t.Errorf("span %d ends %q", i, part[len(part)-20:])
		}
		if i > 0 && (text[s.Start-1] != ' ' || s.Start == spans[i-1].End) {
			t.Errorf("span %d begins %q, overlap %d", i, part[:20], spans[i-1].End-s.Start)
		}
	}
	if len(spans) < 5 {
		t.Errorf("%d spans", len(spans))
	}
}

func TestSplitOfShortTexts(t *testing.T) {
	for text, want := range map[string]int{"": 0, " ": 1, "one": 1, "One. Two. Three.": 1, strings.Repeat("a", About): 1, strings.Repeat("a", About+1): 2} {
		if got := checkSplit(t, text, About); len(got) != want {
			t.Errorf("%.20q has spans %v, want %d", text, got, want)
		}
	}
}

func TestSplitCutsNoGrapheme(t *testing.T) {
	for _, g := range []string{"é", "👩‍👩‍👧‍👦", "👍🏽", "🇩🇪", "❤️", "1️⃣", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "漢", "が", "각", "क्षि", "กำ", "한", "\r\n", "葛󠄀"} {
		text := strings.Repeat(g, 100)
		for about := 8; about < 24; about++ {
			for _, s := range checkSplit(t, text, about) {
				if s.Start%len(g) != 0 || s.End%len(g) != 0 {
					t.Fatalf("%q is cut at %v by spans of %d", g, s, about)
				}
			}
		}
	}
}

func TestSplitOfUnspacedTextOverlaps(t *testing.T) {
	text := strings.Repeat("水泵在星期一修好了，没有人问起。", 30)
	spans := checkSplit(t, text, 60)
	for i, s := range spans[1:] {
		if s.Start >= spans[i].End {
			t.Errorf("span %d doesn't overlap", i+1)
		}
		if !strings.HasSuffix(spans[i].In(text), "。") {
			t.Errorf("span %d ends within a sentence", i)
		}
	}
}

func TestSplitOfOneEndlessGrapheme(t *testing.T) {
	spans := checkSplit(t, "a "+strings.Repeat("\u0301", 10_000)+" b", 50)
	if len(spans) < 40 {
		t.Errorf("%d spans", len(spans))
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{"", "One. Two three four five. Six", "漢字かな交じり文。", "🇩🇪🇫🇷🇩🇪", "a\u0301\u0301\u200d", "\xff\xfe", "\r\n\r\n", strings.Repeat("x", 70)} {
		f.Add(s, 10)
		f.Add(s+s+s, 0)
	}
	f.Fuzz(func(t *testing.T, text string, about int) {
		checkSplit(t, text, min(about, 1<<20))
		if !slices.Equal(Split(text, about), Split(text, about)) {
			t.Error("not the same twice")
		}
	})
}
