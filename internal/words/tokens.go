package words

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/go-porterstemmer"
	"golang.org/x/text/unicode/norm"
)

// maxTokenChars is where a token is cut: what is longer is a blob and no word.
const maxTokenChars = 64

// Token is a searchable piece of a text. Its text is valid UTF-8 without spaces or control characters.
type Token struct {
	Text     string
	From, To int  // bytes of the text it came from; neighbours can overlap (pairs) or be the same (c, c++)
	Run      bool // from a run of an unspaced script
	RunEnd   bool // the single character that ends such a run
}

// Tokens gives the tokens of any text, valid or not:
//
//   - a word is letters, digits and their marks, folded and, where it's English by its letters, stemmed. All else separates:
//     REQ-042, 41.207 and a.b@x.com are words in a row, and typing one looks for that row. A final 's is dropped.
//   - c++, c# and their like give c and c++.
//   - a run of n characters of an unspaced script gives n tokens: n-1 pairs and the last character alone. So every pair is
//     found as a term, one character as a prefix, and more as a phrase.
//   - a symbol outside ASCII is a token, a flag's two letters together. Skin tones and joiners are dropped.
func Tokens(s string) iter.Seq[Token] {
	return func(yield func(Token) bool) { scanner{s: s, yield: yield}.all() }
}

// scanner cuts s into tokens. Its methods give where to go on, and false when the receiver wants no more.
type scanner struct {
	s      string
	yield  func(Token) bool
	folded bool // s is a piece that was folded already
}

func (sc scanner) all() bool {
	for i := 0; i < len(sc.s); {
		r, n := utf8.DecodeRuneInString(sc.s[i:])
		more := true
		switch ClassOf(r) {
		case Letter:
			i, more = sc.word(i)
		case RunChar:
			i, more = sc.run(i)
		case Symbol:
			i, more = sc.symbol(i)
		default:
			i += n
		}
		if !more {
			return false
		}
	}
	return true
}

// end gives where the piece of class c that starts at i ends.
func (sc scanner) end(i int, c Class) int {
	for i < len(sc.s) {
		if b := sc.s[i]; b < utf8.RuneSelf {
			if asciiClass[b] != c {
				return i
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(sc.s[i:])
		if k := ClassOf(r); k != c && k != glue {
			return i
		}
		i += n
	}
	return i
}

func (sc scanner) word(i int) (int, bool) {
	j := sc.end(i, Letter)
	w, split := sc.s[i:j], false
	if !sc.folded {
		w, split = fold(w)
	}
	if split && !isWord(w) {
		return j, sc.again(w, i, j)
	}
	if w == "" {
		return j, true
	}
	if !sc.yield(Token{Text: Stem(w), From: i, To: j}) {
		return j, false
	}
	if k := sc.plusEnd(j); k > j && len(w) <= 4 {
		return k, sc.yield(Token{Text: w + sc.s[j:k], From: i, To: k})
	}
	return sc.possessiveEnd(j), true
}

// plusEnd gives the end of up to two of + and # after a word that ends at j, or j where more of a word follows: a+b is none.
func (sc scanner) plusEnd(j int) int {
	k := j
	for k < len(sc.s) && k < j+2 && (sc.s[k] == '+' || sc.s[k] == '#') {
		k++
	}
	if sc.wordAt(k) {
		return j
	}
	return k
}

// possessiveEnd gives the end of an 's after a word that ends at j, or j.
func (sc scanner) possessiveEnd(j int) int {
	rest, ok := strings.CutPrefix(sc.s[j:], "'")
	if !ok {
		if rest, ok = strings.CutPrefix(sc.s[j:], "’"); !ok {
			return j
		}
	}
	if rest == "" || rest[0]|0x20 != 's' {
		return j
	}
	k := len(sc.s) - len(rest) + 1
	if sc.wordAt(k) {
		return j
	}
	return k
}

func (sc scanner) wordAt(i int) bool {
	r, n := utf8.DecodeRuneInString(sc.s[i:])
	return n > 0 && ClassOf(r) == Letter
}

func (sc scanner) run(i int) (int, bool) {
	end := sc.end(i, RunChar)
	var last Token // the character that waits for its second
	add := func(r rune, from, to int) bool {
		if c := ClassOf(r); c != RunChar && c != Letter {
			return true
		}
		pair := Token{Text: last.Text + string(r), From: last.From, To: to, Run: true}
		first := last.Text == ""
		last = Token{Text: string(r), From: from, To: to, Run: true, RunEnd: true}
		return first || sc.yield(pair)
	}
	for j := i; j < end; {
		r, n := utf8.DecodeRuneInString(sc.s[j:])
		next, _ := utf8.DecodeRuneInString(sc.s[j+n : end])
		if j+n == end || plainRunChar(next) {
			if plainRunChar(r) || sc.folded {
				if !add(r, j, j+n) {
					return end, false
				}
				j += n
				continue
			}
		}
		n = min(max(norm.NFKC.NextBoundaryInString(sc.s[j:], true), n), end-j)
		f, _ := fold(sc.s[j : j+n])
		for _, r := range f {
			if !add(r, j, j+n) {
				return end, false
			}
		}
		j += n
	}
	return end, last.Text == "" || sc.yield(last)
}

func (sc scanner) symbol(i int) (int, bool) {
	r, n := utf8.DecodeRuneInString(sc.s[i:])
	j := i + n
	if next, m := utf8.DecodeRuneInString(sc.s[j:]); regional(r) && regional(next) {
		j += m
	}
	if t := sc.s[i:j]; !sc.folded && !norm.NFKC.IsNormalString(t) { // letters in a frame, a width form: ℃, ™, ＋
		f, _ := fold(t)
		return j, sc.again(f, i, j)
	}
	return j, sc.yield(Token{Text: sc.s[i:j], From: i, To: j})
}

// again cuts a piece that folding turned into several: ½ is 1 and 2, ﷺ four words.
func (sc scanner) again(folded string, from, to int) bool {
	inner := scanner{s: folded, folded: true, yield: func(t Token) bool {
		t.From, t.To = from, to
		return sc.yield(t)
	}}
	return inner.all()
}

func isWord(s string) bool {
	for _, r := range s {
		if c := ClassOf(r); c != Letter && c != glue {
			return false
		}
	}
	return true
}

// fold makes different writings of a piece alike: case, width and other compatibility forms, composition, accents. recheck
// tells that the result may hold characters of another class than the piece did.
func fold(s string) (folded string, recheck bool) {
	if isASCII(s) {
		return strings.ToLower(s), false
	}
	if !norm.NFKC.IsNormalString(s) {
		s, recheck = norm.NFKC.String(s), true
	}
	b := make([]byte, 0, len(s)+8)
	for _, r := range norm.NFD.String(strings.ToLower(s)) {
		if Accent(r) || ignorable(r) {
			continue
		}
		if plain := plainLetters(r); plain != "" {
			b = append(b, plain...)
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	return norm.NFC.String(string(b)), recheck
}

// plainLetters gives how people without the key type a letter that no accent explains, or "".
func plainLetters(r rune) string {
	switch r {
	case 'ß':
		return "ss"
	case 'æ':
		return "ae"
	case 'œ':
		return "oe"
	case 'ø':
		return "o"
	case 'ł':
		return "l"
	case 'đ', 'ð':
		return "d"
	case 'þ':
		return "th"
	case 'ı':
		return "i"
	case 'ς':
		return "σ"
	}
	return ""
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Stem gives the term of a folded word: Porter's stem if its letters are English ones, cut where it's no word at all.
func Stem(w string) string {
	if len(w) > maxTokenChars && utf8.RuneCountInString(w) > maxTokenChars {
		end := 0
		for range maxTokenChars {
			_, n := utf8.DecodeRuneInString(w[end:])
			end += n
		}
		return w[:end]
	}
	if len(w) < 3 {
		return w
	}
	var buf [maxTokenChars]rune
	for i := range len(w) {
		if w[i] < 'a' || w[i] > 'z' {
			return w
		}
		buf[i] = rune(w[i])
	}
	stemmed := porterstemmer.StemWithoutLowerCasing(buf[:len(w)])
	for i, r := range stemmed {
		if byte(r) != w[i] {
			return string(stemmed)
		}
	}
	return w[:len(stemmed)]
}

// HasDigit tells whether a word holds a number.
func HasDigit(s string) bool { return strings.ContainsFunc(s, unicode.IsNumber) }

// InPair tells whether ts[i], the last of a run, is held by the pair before it.
func InPair(ts []Token, i int) bool { return i > 0 && ts[i-1].Run && !ts[i-1].RunEnd }
