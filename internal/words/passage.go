package words

import (
	"strings"
	"unicode"
)

// Passage gives the text of a passage of a body, parts counted from 0, or "" where the body has no such passage any more.
func Passage(body string, part int) string {
	for ; part > 0 && body != ""; part-- {
		body = body[PassageEnd(body):]
	}
	return body[:PassageEnd(body)]
}

// The size of a passage in characters: at most so many, more only where a rest would be small or a grapheme is longer.
const (
	PassageChars = 1000
	PassageRest  = 250
)

// PassageEnd gives the size in bytes of the passage that s begins with: up to the last edge of a sentence or line in its
// second half, else the last space there, else where a grapheme ends.
func PassageEnd(s string) int {
	if len(s) <= PassageChars {
		return len(s)
	}
	chars, sentence, space := 0, 0, 0
	prev, closed := ' ', false // closed: a sentence has ended and no other begun
	for i, r := range s {
		if chars == PassageChars {
			break
		}
		blank := unicode.IsSpace(prev)
		if chars >= PassageChars/2 && !Joins(prev, r) {
			switch {
			case closed && !closes(r) && !unicode.IsSpace(r) && (blank || prev >= 0x3000):
				sentence = i
			case blank && !unicode.IsSpace(r):
				space = i
			}
		}
		switch {
		case r == '\n' || ends(r):
			closed = true
		case !closes(r) && !unicode.IsSpace(r):
			closed = false
		}
		prev = r
		chars++
	}
	switch {
	case chars < PassageChars || !longer(s, PassageChars+PassageRest):
		return len(s)
	case sentence > 0:
		return sentence
	case space > 0:
		return space
	}
	return graphemesEnd(s, PassageChars)
}

// ends tells the marks that end a sentence, closes those that may follow them in it.
func ends(r rune) bool { return strings.ContainsRune(".!?…。！？｡", r) }

func closes(r rune) bool { return ends(r) || strings.ContainsRune(`"')]}”’»」』）】`, r) }

// longer tells whether s has more than n characters.
func longer(s string, n int) bool {
	if len(s) <= n {
		return false
	}
	for range s {
		if n--; n < 0 {
			return true
		}
	}
	return false
}

// graphemesEnd gives the size in bytes of the graphemes of s that fit in n characters, but at least of the first.
func graphemesEnd(s string, n int) int {
	end := 0
	for end < len(s) {
		size, chars := Grapheme(s[end:])
		if n -= chars; n < 0 && end > 0 {
			break
		}
		end += size
	}
	return end
}
