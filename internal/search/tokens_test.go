package search

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func texts(s string) []string {
	var ts []string
	for t := range tokens(s) {
		ts = append(ts, t.text)
	}
	return ts
}

func TestTokens(t *testing.T) {
	for in, want := range map[string]string{
		"":                                "",
		"The pumps' REQ-042":              "the pump req 042",
		"dog's John’s O's2":               "dog john o s2",
		"C++ c# F# a+b x++y c+++":         "c c++ c c# f f# a b x y c c++",
		"gpt4 w123":                       "gpt4 w123",
		"my_note a.b@x.com":               "my note a b x com",
		"咖啡豆":                             "咖啡 啡豆 豆",
		"用Go语言":                           "用 go 语言 言",
		"か\u3099き":                        "がき き",
		"ｶﾞｷ":                             "ガキ キ",
		"\u1112\u1161\u11ab\u1100\u1173":  "한그 그",
		"ガード":                             "ガー ード ド",
		"👩‍👩‍👧 👍🏽 1️⃣":                    "👩 👩 👧 👍 1",
		"🇩🇪🇫🇷🇪":                           "🇩🇪 🇫🇷 🇪",
		"20℃ Tesla™ ＋":                    "20 ° c tesla tm",
		"½":                               "1 2",
		"⑴ ㈱":                             "1 株",
		"x\u200by so\u00adft \ufeffbom":   "xy soft bom",
		"हिन्दी":                          "हिन्दी",
		"葛\U000e0100城":                    "葛城 城",
		"a\x00b\xffc\ufffdd":              "a b c d",
		"don't":                           "don t",
		strings.Repeat("é", 70):           strings.Repeat("e", 64),
		strings.Repeat("running", 20):     strings.Repeat("running", 20)[:64],
		"مُحَمَّد ـــ":                    "محمد",
		"Ǆ ﬁn Ⅻ":                          "dz fin xii",
		"|":                               "",
		"ς Σ":                             "σ σ",
		"relational hopping happily":      "relat hop happili",
		"\u0301 \u200d":                   "",
		"क्‍ष":                            "क्ष",
		"Đặng Þór Łódź":                   "dang thor lodz",
		"https://x.org/a?b=c":             "http x org a b c",
		"<NUL>\u0000\u0001\u2028\ue000":   "nul",
		"日本語\u3000テキスト":                   "日本 本語 語 テキ キス スト ト",
		"2024年":                           "2024 年",
		"ภาษา":                            "ภา าษ ษา า",
		"5+ 10# ab12+ abcde+":             "5 5+ 10 10# ab12 ab12+ abcd",
		"\U0001F3F4\U000E0067\U000E007F.": "🏴",
	} {
		if got := strings.Join(texts(in), " "); got != want {
			t.Errorf("tokens(%q) = %q, want %q", in, got, want)
		}
	}
}

// checkTokens fails where a token of s is not what the others rely on.
func checkTokens(t interface{ Fatalf(string, ...any) }, s string) {
	last := 0
	for tok := range tokens(s) {
		if tok.text == "" || tok.text == separatorToken || !utf8.ValidString(tok.text) || utf8.RuneCountInString(tok.text) > maxTokenChars+2 {
			t.Fatalf("%q gives the token %q", s, tok.text)
		}
		if strings.ContainsFunc(tok.text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
			t.Fatalf("%q gives the token %q", s, tok.text)
		}
		if tok.from < last || tok.to <= tok.from || tok.to > len(s) {
			t.Fatalf("%q gives %q from %d to %d, after one from %d", s, tok.text, tok.from, tok.to, last)
		}
		last = tok.from
	}
}

func FuzzTokens(f *testing.F) {
	for _, s := range []string{"REQ-042 don't C++ 用Go语言", "👩‍👩‍👧🇩🇪½ﷺ", "か\u3099ｶﾞ\u1112\u1161", "a\xff\x00b", "㈀㍿\u0344"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		checkTokens(t, s)
		again, _ := fold(strings.ToValidUTF8(s, ""))
		if twice, _ := fold(again); twice != again {
			t.Errorf("%q folds to %q and that to %q", s, again, twice)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`a OR "b c" -d`, `-"x`, `OR OR -`, "“a» -„b", `"--strict`, "2024年の計画 OR 会", "-\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, bind := range []bool{true, false} {
			q := parse(s, bind)
			for _, g := range q.groups {
				if len(g) == 0 {
					t.Fatalf("%q has an empty group", s)
				}
				for _, o := range g {
					if len(o.terms) == 0 || len(o.loose) == 0 || o.quoted && !bind {
						t.Fatalf("%q has the operand %+v", s, o)
					}
				}
			}
			p := q.plan(bind)
			if len(q.groups) > 0 && len(p.scored) == 0 || p.binding > len(p.groups) {
				t.Fatalf("%q has the plan %+v", s, p)
			}
			for _, ph := range p.phrases {
				if len(ph.terms) == 0 || slices.Contains(ph.terms, "") {
					t.Fatalf("%q looks for %+v", s, ph)
				}
			}
		}
		checkTokens(t, s)
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
			checkTokens(t, s)
			x.put(string(rune('a'+i)), "note", Analyze(Doc{Body: s}).passages)
		}
		n := rapid.IntRange(0, len(docs)-1).Draw(t, "doc")
		ts := slices.Collect(tokens(docs[n]))
		if len(ts) == 0 {
			return
		}
		i := rapid.IntRange(0, len(ts)-1).Draw(t, "first")
		j := rapid.IntRange(i, len(ts)-1).Draw(t, "last")
		piece := strings.ReplaceAll(plainQuotes.Replace(docs[n][ts[i].from:ts[j].to]), `"`, " ")
		p := parse(`"`+piece+`"`, true).plan(true)
		hits, _, err := rank(t.Context(), []searched{{"h", x}}, nil, p, 10)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(hits, func(h Hit) bool { return h.Thing == string(rune('a'+n)) }) {
			t.Fatalf("%q doesn't find %q: tokens %q of %q", piece, docs[n], texts(piece), texts(docs[n]))
		}
	})
}
