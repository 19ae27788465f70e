package words

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func texts(s string) []string {
	var ts []string
	for t := range Tokens(s) {
		ts = append(ts, t.Text)
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
	for tok := range Tokens(s) {
		if tok.Text == "" || tok.Text == "|" || !utf8.ValidString(tok.Text) || utf8.RuneCountInString(tok.Text) > maxTokenChars+2 {
			t.Fatalf("%q gives the token %q", s, tok.Text)
		}
		if strings.ContainsFunc(tok.Text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
			t.Fatalf("%q gives the token %q", s, tok.Text)
		}
		if tok.From < last || tok.To <= tok.From || tok.To > len(s) {
			t.Fatalf("%q gives %q from %d to %d, after one from %d", s, tok.Text, tok.From, tok.To, last)
		}
		last = tok.From
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
