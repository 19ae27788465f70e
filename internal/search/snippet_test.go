package search

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestSnippetCutsACharacter is case 10.
func TestSnippetCutsACharacter(t *testing.T) {
	body := strings.Repeat("é", 97) + " needle " + strings.Repeat("汉😀", 60)
	for n := range 240 {
		s := Snippet(body, "needle", n)
		if !utf8.ValidString(s) || utf8.RuneCountInString(s) > n || strings.ContainsRune(s, utf8.RuneError) {
			t.Errorf("Snippet(%d) = %q", n, s)
		}
		if n >= 20 && !strings.Contains(s, "needle") {
			t.Errorf("Snippet(%d) = %q, without the needle", n, s)
		}
	}
	if s := Snippet(body, "needle", 80); utf8.RuneCountInString(s) < 60 {
		t.Errorf("Snippet(80) = %q, which is short", s)
	}
}

func TestSnippetCutsNoGrapheme(t *testing.T) {
	for _, g := range []string{"👩‍👩‍👧", "🇩🇪", "e\u0301", "\u1100\u1161\u11a8", "👍🏽", "न्दी"} {
		text := strings.Repeat(g, 60) + " needle " + strings.Repeat(g, 60)
		for n := range 200 {
			s := strings.ReplaceAll(strings.Trim(strings.ReplaceAll(Snippet(text, "needle", n), "needle", ""), ellipsis), " ", "")
			if strings.ReplaceAll(s, g, "") != "" && n >= 8 {
				t.Fatalf("%q at %d: %q", g, n, Snippet(text, "needle", n))
			}
		}
	}
}

func TestSnippet(t *testing.T) {
	long := strings.Repeat("filler words stand here. ", 40)
	for _, c := range []struct {
		text, query string
		max         int
		want        string
	}{
		{"", "a", 10, ""},
		{"short  text\n\nhere", "none", 40, "short text here"},
		{"short", "short", 0, ""},
		{"short", "short", -1, ""},
		{"abcdef", "x", 3, "abc"},
		{long + "the red pump was mended " + long, "pump", 60, "…here. the red pump was mended filler words stand here.…"},
		{long + "a pump. " + long + "pumps and valves " + long, "valve pump", 40, "…here. pumps and valves filler words…"},
		{long, "absent", 30, "filler words stand here.…"},
		{long + "41.207 " + long, "41.207", 24, "…41.207 filler words…"},
		{"bad \xff\xfe bytes", "bytes", 40, "bad \uFFFD bytes"},
		{strings.Repeat("早上先买", 20) + "咖啡豆" + strings.Repeat("再去开会", 20), "咖啡豆", 20, "…买早上先买咖啡豆再去开会再去开会再去…"},
		{strings.Repeat("早上先买", 20) + "豆" + strings.Repeat("再去开会", 20), "豆", 12, "…先买豆再去开会再去开…"},
	} {
		got := Snippet(c.text, c.query, c.max)
		if got != c.want {
			t.Errorf("Snippet(%.30q, %q, %d) = %q, want %q", c.text, c.query, c.max, got, c.want)
		}
	}
}

func TestSnippetProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(nasty().Draw(t, "text"), rapid.IntRange(1, 5).Draw(t, "times"))
		n := rapid.IntRange(0, 200).Draw(t, "max")
		s := Snippet(text, nasty().Draw(t, "query"), n)
		if !utf8.ValidString(s) || utf8.RuneCountInString(s) > n {
			t.Fatalf("Snippet(%q, %d) = %q", text, n, s)
		}
		plain := strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
		if inner := strings.TrimSuffix(strings.TrimPrefix(s, ellipsis), ellipsis); !strings.Contains(plain, inner) {
			t.Fatalf("Snippet(%q, %d) = %q isn't from the text", text, n, s)
		}
	})
}

func TestGraphemes(t *testing.T) {
	for _, g := range []string{"a", "é", "e\u0301\u0302", "\r\n", "👩‍👩‍👧", "🇩🇪", "👍🏽", "1️⃣", "🏴\U000e0067\U000e0062\U000e007f", "각", "\u1100\u1161\u11a8", "가\u11a8", "ｶﾞ", "กำ", "न्दी", "\u0600٣", "葛\U000e0100", "\u0301"} {
		for _, next := range []string{"a", " ", "🇫🇷", "汉", "😀", "\n", "१"} {
			if g == "\u0600٣" && next == "\n" {
				continue
			}
			if n, chars := grapheme(g + next); n != len(g) || chars != utf8.RuneCountInString(g) {
				t.Errorf("grapheme(%q) = %d bytes, %d characters, want all of %q", g+next, n, chars, g)
			}
		}
	}
}
