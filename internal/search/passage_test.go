package search

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"cairn/internal/search/query"
	"cairn/internal/words"
)

// cutPassages gives all passages of a body.
func cutPassages(body string) (ps []string) {
	for body != "" {
		end := words.PassageEnd(body)
		ps = append(ps, body[:end])
		body = body[end:]
	}
	return ps
}

func TestPassagesEndWhereSentencesDo(t *testing.T) {
	for name, sentence := range map[string]string{
		"English": "The pump was mended on Monday (see 3.14). ",
		"Chinese": "早上先买咖啡豆再去开会，然后写一份报告。",
		"lines":   "- buy beans and milk for the whole office\n",
	} {
		for i, p := range cutPassages(strings.Repeat(sentence, 200)) {
			if strings.TrimLeft(p, " ")[:3] != sentence[:3] || !strings.HasSuffix(p, strings.TrimRight(sentence, " ")) && !strings.HasSuffix(p, sentence) {
				t.Errorf("%s: passage %d is %q", name, i, p)
			}
			if n := utf8.RuneCountInString(p); n < words.PassageChars/2 || n > words.PassageChars+words.PassageRest {
				t.Errorf("%s: passage %d has %d characters", name, i, n)
			}
		}
	}
}

func TestPassagesCutNoGrapheme(t *testing.T) {
	for _, g := range []string{"👩‍👩‍👧", "🇩🇪", "e\u0301", "각", "\u1100\u1161\u11a8", "न्दी", "👍🏽", "1️⃣", "x", "汉", " \u0308"} {
		for i, p := range cutPassages(strings.Repeat(g, 1500)) {
			if strings.ReplaceAll(p, g, "") != "" {
				t.Errorf("passage %d of %q is %q", i, g, p)
			}
		}
	}
}

func TestPassagesAreTheBody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := strings.Repeat(nasty().Draw(t, "a"), rapid.IntRange(1, 40).Draw(t, "times")) + nasty().Draw(t, "b")
		ps := cutPassages(body)
		if strings.Join(ps, "") != body {
			t.Fatalf("the passages of %q are %q", body, ps)
		}
		parts := Analyze(Doc{Title: "Title", Body: body}).passages
		if len(parts) != max(len(ps), 1) {
			t.Fatalf("%d passages of text, %d of tokens", len(ps), len(parts))
		}
		if got, want := strings.Fields(strings.Join(parts, " ")), append([]string{"titl", separatorToken}, texts(body)...); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Fatalf("the passages hold %q, the text %q", got, want)
		}
		for i, p := range ps {
			if words.Passage(body, i) != p {
				t.Fatalf("words.Passage(%d) = %q, want %q", i, words.Passage(body, i), p)
			}
		}
		if words.Passage(body, len(ps)) != "" {
			t.Fatal("there is a passage after the last")
		}
	})
}

func TestNothingToAnalyze(t *testing.T) {
	for _, d := range []Doc{{}, {Title: "...", Body: "\x00 --- \xff"}, {Body: strings.Repeat(".", 5000)}} {
		if a := Analyze(d); len(a.passages) > 0 {
			t.Errorf("Analyze(%.20q) has passages %q", d.Body, a.passages)
		}
	}
}

// TestHugeTexts bounds the time of texts at the limit, whatever they are made of. The bound is far above what is usual, even
// with the race detector, and far below what a step for each pair of characters would take.
func TestHugeTexts(t *testing.T) {
	for name, piece := range map[string]string{
		"English": "The pump was mended on Monday. ", "one word": "pump", "one grapheme": "\u0301", "joined": "👩\u200d", "Chinese": "咖啡豆", "flags": "🇩🇪",
		"Russian": "Насос починили в понедельник. ", "bad bytes": "\xff", "dots": ".", "quotes": `"`, "jamo": "\u1100", "virama": "क्", "Thai": "น้ำ",
	} {
		s := strings.Repeat(piece, 1_500_000/len(piece))
		began := time.Now()
		a := Analyze(Doc{Body: s})
		x := newIndex()
		x.put("t", "note", a.passages)
		analyzed := time.Since(began)
		began = time.Now()
		p := query.Parse(s[:min(len(s), 10_000)]+" monday 豆", false).Plan(false)
		ask := asking{Plan: p, heaps: []searched{{heap: "h", index: x}}}
		if _, _, err := ask.rank(t.Context(), 10); err != nil {
			t.Error(err)
		}
		ranked := time.Since(began)
		if analyzed > 30*time.Second || ranked > 30*time.Second {
			t.Errorf("%s: %v to analyze and index, %v for a question", name, analyzed, ranked)
		}
		t.Logf("%s: %d passages, %v to analyze and index, %v for a question", name, len(a.passages), analyzed, ranked)
	}
}
