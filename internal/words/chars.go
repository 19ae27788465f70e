// Package words cuts text into the tokens that search compares, the same for a document and a query, and into graphemes.
package words

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Class says what a character is to the analyzer.
type Class uint8

// The classes.
const (
	separator Class = iota
	Letter          // letters and digits of scripts that put spaces between words
	RunChar         // characters of scripts that don't: Han, kana, Hangul, Thai, ...
	Symbol          // emoji and other symbols outside ASCII
	glue            // marks and joiners: they belong to what is before them
)

var asciiClass = func() (t [utf8.RuneSelf]Class) {
	for c := range t {
		if c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' {
			t[c] = Letter
		}
	}
	return t
}()

// unspaced are the scripts whose words no space tells apart. Korean has spaces, but between phrases rather than words.
var unspaced = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo, unicode.Yi,
	unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
}

// ClassOf gives the class of a character.
func ClassOf(r rune) Class {
	switch {
	case r < utf8.RuneSelf:
		return asciiClass[r]
	case r == utf8.RuneError, r == 0x2044: // the slash that ½ folds to is one like any other
		return separator
	case plainRunChar(r):
		return RunChar
	case ignorable(r):
		return glue
	// The kana length marks and voicing marks belong to no script, or to all.
	case r == 0x30FC, r == 0xFF70, r == 0xFF9E, r == 0xFF9F, r == 0x3099, r == 0x309A:
		return RunChar
	case r >= 0x0E00 && unicode.In(r, unspaced...): // the first of these scripts begins there
		return RunChar
	case unicode.IsLetter(r), unicode.IsNumber(r):
		return Letter
	case unicode.IsMark(r):
		return glue
	case unicode.IsSymbol(r):
		return Symbol
	}
	return separator
}

// plainRunChar tells the commonest characters of unspaced scripts, which fold to themselves unless a mark follows.
func plainRunChar(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FFF || r >= 0x3041 && r <= 0x3096 || r >= 0x30A1 && r <= 0x30FA || r >= 0xAC00 && r <= 0xD7A3
}

// ignorable tells characters that change how a text looks but not what it says: zero-width and bidirectional controls,
// variation selectors, skin tones, the tags of regional flags and the keycap frame.
func ignorable(r rune) bool {
	switch {
	case r < 0x061C:
		return r == 0xAD
	case r < 0x200B:
		return r == 0x061C || r >= 0x180B && r <= 0x180F
	case r <= 0x20E3:
		return r <= 0x200F || r >= 0x202A && r <= 0x202E || r >= 0x2060 && r <= 0x206F || r == 0x20E3
	}
	return r >= 0xFE00 && r <= 0xFE0F || r == 0xFEFF || skinTone(r) || r >= 0xE0020 && r <= 0xE007F || r >= 0xE0100 && r <= 0xE01EF
}

func skinTone(r rune) bool { return r >= 0x1F3FB && r <= 0x1F3FF }

func regional(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }

// Accent tells marks that people leave out when they type: Latin, Greek and Cyrillic accents, Hebrew points, Arabic vowels
// and the Arabic tatweel. Marks that make another letter (Indic vowels, the voicing of kana) are none.
func Accent(r rune) bool {
	return r >= 0x0300 && r <= 0x036F || r >= 0x0483 && r <= 0x0487 || r >= 0x0591 && r <= 0x05C7 || r >= 0x0610 && r <= 0x061A ||
		r >= 0x064B && r <= 0x065F || r == 0x0670 || r >= 0x06D6 && r <= 0x06ED || r == 0x0640
}

const zeroWidthJoiner = 0x200D

// extends tells characters that continue the grapheme before them.
func extends(r rune) bool {
	if r < 0x0300 {
		return false
	}
	return unicode.IsMark(r) || skinTone(r) || r == zeroWidthJoiner || r == 0x200C || r >= 0xE0020 && r <= 0xE007F ||
		r == 0xFF9E || r == 0xFF9F || r == 0x0E33 || r == 0x0EB3
}

// prepends tells characters that belong to the grapheme after them.
func prepends(r rune) bool {
	return r >= 0x0600 && r <= 0x0605 || r == 0x06DD || r == 0x070F || r == 0x0890 || r == 0x0891 || r == 0x08E2 ||
		r == 0x0D4E || r == 0x110BD || r == 0x110CD || r == 0x111C2 || r == 0x111C3 || r == 0x1193F || r == 0x11941 || r == 0x11A3A ||
		r >= 0x11A84 && r <= 0x11A89 || r == 0x11D46 || r == 0x11F02
}

// Joins tells whether no grapheme ends between two neighbours, by the rules of UAX #29 except where those need a table of
// emoji or of Indic conjuncts: there it joins what they might. Who asks wants to cut safely, and a cut elsewhere is as good.
// It doesn't know of flags, whose letters go by pairs.
func Joins(a, b rune) bool {
	switch {
	case a < 0x0300 && b < 0x0300:
		return a == '\r' && b == '\n'
	case unicode.IsControl(a) || unicode.IsControl(b):
		return false
	case extends(b), prepends(a):
		return true
	case a == zeroWidthJoiner:
		return unicode.IsSymbol(b) || unicode.IsLetter(b)
	case jamo(a) || jamo(b):
		return unicode.Is(unicode.Hangul, a) && unicode.Is(unicode.Hangul, b)
	}
	return unicode.IsMark(a) && unicode.IsLetter(b) && virama(a)
}

// jamo tells the parts of Korean syllables that join with each other.
func jamo(r rune) bool {
	return r >= 0x1100 && r <= 0x11FF || r >= 0xA960 && r <= 0xA97C || r >= 0xD7B0 && r <= 0xD7FB
}

func virama(r rune) bool { return norm.NFC.PropertiesString(string(r)).CCC() == 9 }

// Grapheme gives the size in bytes and in characters of the grapheme that s begins with.
func Grapheme(s string) (bytes, chars int) {
	prev, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return 0, 0
	}
	bytes, chars = n, 1
	flag := regional(prev)
	for bytes < len(s) {
		r, n := utf8.DecodeRuneInString(s[bytes:])
		if pair := flag && regional(r); !pair && !Joins(prev, r) {
			break
		}
		flag = false // a third letter begins the next flag
		bytes, chars, prev = bytes+n, chars+1, r
	}
	return bytes, chars
}
