package search

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cairn/internal/search/query"
	"cairn/internal/words"
)

func texts(s string) []string {
	var ts []string
	for t := range words.Tokens(s) {
		ts = append(ts, t.Text)
	}
	return ts
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`a OR "b c" -d`, `-"x`, `OR OR -`, "“a» -„b", `"--strict`, "2024年の計画 OR 会", "-\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, bind := range []bool{true, false} {
			q := query.Parse(s, bind)
			for _, g := range q.Groups {
				if len(g) == 0 {
					t.Fatalf("%q has an empty group", s)
				}
				for _, o := range g {
					if len(o.Terms) == 0 || len(o.Loose) == 0 || o.Quoted && !bind {
						t.Fatalf("%q has the operand %+v", s, o)
					}
				}
			}
			p := q.Plan(bind)
			if len(q.Groups) > 0 && len(p.Scored) == 0 || p.Binding > len(p.Groups) {
				t.Fatalf("%q has the plan %+v", s, p)
			}
			for _, ph := range p.Phrases {
				if len(ph.Terms) == 0 || slices.Contains(ph.Terms, "") {
					t.Fatalf("%q looks for %+v", s, ph)
				}
			}
		}
	})
}

// nasty draws texts of pieces that analyzers stumble over.
func nasty() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"pump", "Valves", "REQ-042", "41.207", "don't", "dog's", "C++", "c#", "a+b", "my_note", "a.b@x.com", "ns::item", "the", "OR", "AND", "-x",
		"咖啡豆", "会", "用Go语言", "リンゴを食べ", "ｶﾞ", "か\u3099", "ー", "조선역사", "\u1112\u1161\u11ab", "ภาษาไทย", "น้ำ", "ខ្មែរ", "မြန်မာ",
		"🚀", "👩‍👩‍👧", "👍🏽", "🇩🇪", "🇫🇷", "🇪", "1️⃣", "🏴\U000e0067\U000e007f", "é", "e\u0301", "Straße", "Łódź", "İ", "ς", "مُحَمَّد", "שָׁלוֹם", "हिन्दी", "क्‍ष",
		"½", "⑴", "℃", "㈱", "㈀", "ﷺ", "Ⅻ", "ﬁ", "\u0344", "\u200d", "\u200b", "\u00ad", "\ufeff", "\ufe0f", "葛\U000e0100", "\xff", "\xe4\xb8", "\x00", "\ufffd",
		"\"", "“", "»", "'", "’s", "*", "%", "|", "(", "\\", "-", "--", "+", "#", ".", "。", "、", "\n", " ", " ", " ", "\t", "\r\n", "\u00a0",
	})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.OneOf(piece, piece, piece, rapid.StringN(0, 3, 8)), 0, 40).Draw(t, "pieces"), "")
	})
}

// TestEveryPieceFindsItsDocument looks for what stands between any two tokens of any text.
func TestEveryPieceFindsItsDocument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newIndex()
		docs := rapid.SliceOfN(nasty(), 1, 5).Draw(t, "docs")
		for i, s := range docs {
			x.put(string(rune('a'+i)), "note", Analyze(Doc{Body: s}).passages)
		}
		n := rapid.IntRange(0, len(docs)-1).Draw(t, "doc")
		ts := slices.Collect(words.Tokens(docs[n]))
		if len(ts) == 0 {
			return
		}
		i := rapid.IntRange(0, len(ts)-1).Draw(t, "first")
		j := rapid.IntRange(i, len(ts)-1).Draw(t, "last")
		piece := strings.ReplaceAll(words.PlainQuotes.Replace(docs[n][ts[i].From:ts[j].To]), `"`, " ")
		p := query.Parse(`"`+piece+`"`, true).Plan(true)
		hits, _, err := rank(t.Context(), []searched{{heap: "h", index: x}}, nil, p, 10)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(hits, func(h Hit) bool { return h.Thing == string(rune('a'+n)) }) {
			t.Fatalf("%q doesn't find %q: Tokens %q of %q", piece, docs[n], texts(piece), texts(docs[n]))
		}
	})
}

// TestAQueryOfLigaturesIsReadInOnePass: each ﷺ is four words, all of them out of one piece as long as the query.
func TestAQueryOfLigaturesIsReadInOnePass(t *testing.T) {
	took := func(n int) time.Duration {
		s, least := strings.Repeat("ﷺ", n), time.Hour
		for range 3 {
			begin := time.Now()
			query.Parse(s, false)
			least = min(least, time.Since(begin))
		}
		return least
	}
	if short, long := took(500), took(4000); long > 24*short { // 8 times where the work grows with the text, 64 where with its square
		t.Errorf("500 take %v, 4000 take %v", short, long)
	}
}

func TestStopWordsAreNoLongerThanTheyMayBe(t *testing.T) {
	for w := range words.Stop {
		if len(w) > words.LongestStop {
			t.Errorf("%q has %d bytes", w, len(w))
		}
	}
}
