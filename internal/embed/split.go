package embed

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// About is the size of a span, in characters, that fits the built-in model's window: 500 of English are some 110 tokens.
const About = 500

// Span is a part of a text: text[Start:End].
type Span struct{ Start, End int }

// In gives the span's text.
func (s Span) In(text string) string { return text[s.Start:s.End] }

// Split parts text into spans of at most about characters that overlap by up to a sixth of that, so that what one cuts in
// two another has whole. A span ends with a sentence, where that leaves it half its size, else with a word, else between
// two characters as a reader sees them; it begins with a word. Only a "character" of more than four times a span's size is
// cut within, and never inside a code point. Each byte of text is in a span; an empty text has none.
func Split(text string, about int) []Span {
	about = max(about, 8)
	var spans []Span
	var edges []edge
	start, covered := 0, 0
	for covered < len(text) {
		edges = scan(edges[:0], text[start:], about, covered-start)
		end := best(edges, about, covered-start)
		spans = append(spans, Span{start, start + end.at})
		covered = start + end.at
		next := covered
		for _, e := range edges {
			if e.kind >= word && e.at > 0 && e.at < end.at && e.chars >= end.chars-about/6 {
				next = start + e.at
				break
			}
		}
		start = next
	}
	return spans
}

// edge is a place where a text may be cut.
type edge struct {
	at, chars int // from the beginning of what was scanned
	kind      kind
}

type kind uint8

const (
	grapheme kind = iota
	word
	sentence
)

// best gives the edge to end at, of those behind covered; the last where none is better.
func best(edges []edge, about, covered int) edge {
	last := edges[len(edges)-1]
	if last.kind == sentence { // of the whole rest too
		return last
	}
	for _, k := range []kind{sentence, word} {
		for i := len(edges) - 1; i >= 0; i-- {
			if e := edges[i]; e.kind >= k && e.at > covered && e.chars >= about/2 {
				return e
			}
		}
	}
	return last
}

// scan appends the edges of s, up to about characters, or, where there is none behind covered, to the first; at least one.
func scan(edges []edge, s string, about, covered int) []edge {
	var before rune
	chars, flags := 0, 0 // flags counts the flags' letters in a row, of which two make one
	ended := false       // a sentence has, but for quotes and spaces
	for at, r := range s {
		if at > 0 && (flags%2 == 0 || !regional(r)) && !joined(before, r) || chars >= 4*about {
			if at > covered || chars <= about {
				edges = append(edges, edge{at, chars, kindOf(before, r, ended)})
			}
		}
		if chars >= about && len(edges) > 0 && edges[len(edges)-1].at > covered {
			return edges
		}
		switch {
		case strings.ContainsRune(".!?…。！？｡\n", r):
			ended = true
		case !unicode.IsSpace(r) && !closes(r):
			ended = false
		}
		if regional(r) {
			flags++
		} else {
			flags = 0
		}
		chars++
		before = r
	}
	return append(edges, edge{len(s), chars, sentence})
}

func kindOf(a, b rune, ended bool) kind {
	spaced := unicode.IsSpace(a) && !unicode.IsSpace(b)
	switch {
	case ended && spaced, strings.ContainsRune("。！？｡", a) && !closes(b) && !unicode.IsSpace(b):
		return sentence
	case spaced, unspaced(a) && !unicode.IsPunct(b) || unspaced(b) && !unicode.IsSpace(a) && !unicode.IsPunct(a):
		return word
	}
	return grapheme
}

func closes(r rune) bool {
	return strings.ContainsRune(`.!?…。！？｡"')]}”’»」』）】`, r)
}

// unspaced tells the scripts that put no spaces between words.
func unspaced(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

func regional(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }

// joined tells whether a cut between two neighbours could be inside a grapheme. It is no full table of Unicode's rules
// (UAX #29): where those need to know emoji or Indic letters it joins what they might, as a cut elsewhere is as good.
// Flags, whose letters go by pairs, are scan's.
func joined(a, b rune) bool {
	const zeroWidthJoiner = 0x200D
	switch {
	case a < 0x0300 && b < 0x0300:
		return a == '\r' && b == '\n'
	case unicode.IsControl(a) || unicode.IsControl(b):
		return false
	case unicode.IsMark(b), b == zeroWidthJoiner, b == 0x200C, b == 0x0E33, b == 0x0EB3, b == 0xFF9E, b == 0xFF9F,
		b >= 0x1F3FB && b <= 0x1F3FF, b >= 0xE0020 && b <= 0xE007F:
		return true
	case a == zeroWidthJoiner, unicode.Is(unicode.Prepended_Concatenation_Mark, a):
		return true
	case jamo(a) || jamo(b):
		return unicode.Is(unicode.Hangul, a) && unicode.Is(unicode.Hangul, b)
	}
	return unicode.IsMark(a) && unicode.IsLetter(b) && virama(a)
}

// jamo tells the parts of Korean syllables that join with each other.
func jamo(r rune) bool {
	return r >= 0x1100 && r <= 0x11FF || r >= 0xA960 && r <= 0xA97C || r >= 0xD7B0 && r <= 0xD7FB
}

// virama tells the signs that bind two Indic consonants.
func virama(r rune) bool {
	const bindsConsonants = 9 // the combining class
	return norm.NFC.Properties(utf8.AppendRune(nil, r)).CCC() == bindsConsonants
}
