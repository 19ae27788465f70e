package memory

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"cairn/internal/words"
)

// clean takes hidden and direction-changing characters out of a text and counts them; blanks of any kind and length become
// one space. What joins an emoji or the letters of scripts that need it stays.
func clean(s string) (text string, stripped int) {
	var b strings.Builder
	rs := []rune(strings.ToValidUTF8(s, "\uFFFD"))
	for i, r := range rs {
		if unicode.IsSpace(r) {
			b.WriteByte(' ')
			continue
		}
		if hidden(r) && !joining(rs, i) {
			stripped++
			continue
		}
		b.WriteRune(r)
	}
	return strings.Join(strings.Fields(b.String()), " "), stripped
}

// hidden tells characters that leave no mark of their own: controls, the format characters but those that Arabic and Indic
// numbers show, fillers, variation selectors and the tags.
func hidden(r rune) bool {
	switch {
	case r < 0x7F:
		return r < ' ' && !unicode.IsSpace(r)
	case r >= 0x0600 && r <= 0x0605, r == 0x06DD, r == 0x070F, r == 0x0890, r == 0x0891, r == 0x08E2, r == 0x110BD, r == 0x110CD:
		return false
	case r == 0x034F, r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5, r >= 0x180B && r <= 0x180F, r == 0x2800, r == 0x3164, r == 0xFFA0:
		return true
	case r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0000 && r <= 0xE0FFF:
		return true
	}
	return !unicode.IsSpace(r) && unicode.In(r, unicode.Cc, unicode.Cf)
}

// joining tells whether the character at i does visible work where it stands.
func joining(rs []rune, i int) bool {
	if i == 0 {
		return false
	}
	prev := rs[i-1]
	after := rune(0)
	if i+1 < len(rs) {
		after = rs[i+1]
	}
	pictured := unicode.In(prev, unicode.So, unicode.Sk) || prev == 0xFE0F
	switch rs[i] {
	case 0xFE0E, 0xFE0F: // text or picture
		return unicode.IsSymbol(prev) || after == 0x20E3
	case 0x200D: // zero-width joiner
		return pictured && unicode.IsSymbol(after) || indic(prev) && indic(after)
	case 0x200C: // zero-width non-joiner
		return indic(prev) && indic(after)
	}
	return false
}

// indic tells characters of scripts whose letters change their shape by what they stand beside.
func indic(r rune) bool {
	return (unicode.IsLetter(r) || unicode.IsMark(r)) && (r >= 0x0600 && r <= 0x08FF || r >= 0x0900 && r <= 0x0DFF || r >= 0x1000 && r <= 0x109F || r >= 0x1780 && r <= 0x18AF)
}

// wordsOf gives a text's words as they are compared: without case, accents, width and punctuation, contractions written out.
// Signs that carry meaning are words (C++ isn't C, -5 isn't 5), and so is what stands between digits (3.5 isn't 35).
func wordsOf(s string) []string {
	s = cases.Fold().String(norm.NFKC.String(s))
	var plain []rune
	for _, r := range norm.NFD.String(s) {
		if !words.Accent(r) && !hidden(r) {
			plain = append(plain, r)
		}
	}
	plain = []rune(norm.NFC.String(string(plain)))
	var out []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			out = append(out, expand(string(word))...)
			word = word[:0]
		}
	}
	digit := func(i int) bool { return i >= 0 && i < len(plain) && unicode.IsNumber(plain[i]) }
	for i, r := range plain {
		switch {
		case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
			word = append(word, r)
		case apostrophe(r) && len(word) > 0:
			word = append(word, '\'')
		case (r == '.' || r == ',' || r == ':' || r == '/') && digit(i-1) && digit(i+1):
			word = append(word, r)
		case (r == '-' || r == '−') && digit(i+1) && len(word) == 0 && (i == 0 || !unicode.IsLetter(plain[i-1]) && !unicode.IsNumber(plain[i-1])):
			word = append(word, '-')
		case unicode.IsSymbol(r) || strings.ContainsRune("#%&@*§", r):
			flush()
			out = append(out, string(r))
		default:
			flush()
		}
	}
	flush()
	return out
}

func apostrophe(r rune) bool { return r == '\'' || r == '’' || r == 'ʼ' || r == '`' }

// contractions whose apostrophe is left out, and the irregular ones.
var contractions = map[string]string{"cannot": "can not", "can't": "can not", "cant": "can not", "won't": "will not", "wont": "will not", "shan't": "shall not",
	"dont": "do not", "doesnt": "does not", "didnt": "did not", "isnt": "is not", "arent": "are not", "wasnt": "was not", "werent": "were not", "havent": "have not",
	"hasnt": "has not", "hadnt": "had not", "wouldnt": "would not", "shouldnt": "should not", "couldnt": "could not", "im": "i am", "ive": "i have"}

func expand(w string) []string {
	w = strings.Trim(w, "'")
	if full, ok := contractions[w]; ok {
		return strings.Fields(full)
	}
	for _, c := range []struct{ end, full string }{{"n't", "not"}, {"'m", "am"}, {"'re", "are"}, {"'ve", "have"}, {"'ll", "will"}} {
		if head, ok := strings.CutSuffix(w, c.end); ok && head != "" {
			return []string{strings.ReplaceAll(head, "'", ""), c.full}
		}
	}
	if w = strings.ReplaceAll(w, "'", ""); w == "" {
		return nil
	}
	return []string{w}
}

// weak are words that a sentence can have or lack and say the same.
var weak = []string{"a", "an", "the", "my", "our", "really", "very", "quite", "just", "simply", "actually", "also", "that"}

// essence gives the words that two near-duplicates have in common: all but the weak ones, a doubled letter within a long word
// once. It is a key rather than a distance, so that being a near-duplicate goes from one to the next (if A is one of B and B
// of C, A is one of C) and can be looked up; and no negation, number or name is ever taken for a slip of the pen.
func essence(s string) []string {
	all := wordsOf(s)
	out := make([]string, 0, len(all))
	for _, w := range all {
		if !slices.Contains(weak, w) {
			out = append(out, undouble(w))
		}
	}
	if len(out) == 0 {
		return all
	}
	return out
}

func undouble(w string) string {
	rs := []rune(w)
	if len(rs) < 6 || slices.ContainsFunc(rs, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return w
	}
	return string(slices.Compact(rs[:len(rs)-1])) + string(rs[len(rs)-1:])
}

// fold gives the key of a statement. What has no word at all is compared as it is.
func fold(statement string) string {
	key := strings.Join(essence(statement), " ")
	if key == "" {
		key = "=" + statement
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// foldSubject gives what makes two subjects one.
func foldSubject(subject string) string {
	if w := wordsOf(subject); len(w) > 0 {
		return strings.Join(w, " ")
	}
	return subject
}

// denials are words that turn a sentence into its opposite, or say of another that it is wrong.
var denials = []string{"not", "no", "never", "neither", "nor", "none", "wrong", "false", "untrue", "incorrect", "longer", "mistake", "mistaken", "error",
	"nicht", "kein", "keine", "keinen", "nie", "niemals", "falsch", "pas", "jamais", "faux", "nunca", "jamas", "falso", "non", "mai"}

// denied takes the denials out of a statement's words, and what only stands there to carry one, and tells whether any was there.
func denied(s string) (rest []string, any bool) {
	for _, w := range essence(s) {
		switch {
		case slices.Contains(denials, w):
			any = true
		case w == "do" || w == "does" || w == "did":
		default:
			rest = append(rest, w)
		}
	}
	return rest, any
}

// opposed tells whether a correction says of a statement that it is wrong, both without their denials: it is the statement's
// negation, or denies something and quotes it.
func opposed(correction []string, denies bool, statement []string, denied bool) bool {
	if len(statement) == 0 || denies == denied {
		return false
	}
	return slices.Equal(correction, statement) || denies && len(statement) >= 3 && contains(correction, statement)
}

func contains(list, part []string) bool {
	for i := 0; i+len(part) <= len(list); i++ {
		if slices.Equal(list[i:i+len(part)], part) {
			return true
		}
	}
	return false
}
