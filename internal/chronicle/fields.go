package chronicle

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// querier is the part of db.DB and db.Tx that reading one row needs.
type querier func(q string, args []any, dest ...any) error

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func opt(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// since gives when something came to be so: the old moment if it was so before, now if it wasn't, nil where it isn't.
func since(is bool, was *int64, now int64) *int64 {
	switch {
	case !is:
		return nil
	case was == nil:
		return &now
	}
	return was
}

// Shorten gives as much of a text as fits into n characters without parting what readers see as one: an emoji of several,
// a letter and its marks, a flag. What is longer than all of that by itself is parted. was tells that the text was longer.
func Shorten(s string, n int) (short string, was bool) {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s, false
	}
	rs := []rune(s)
	end := n
	for end > 0 && together(rs, end) {
		end--
	}
	if end == 0 {
		end = n
	}
	return string(rs[:end]), true
}

// together tells whether the character at i may belong to the one before it, by the rules of UAX #29; where those need a
// table of emoji it says so too often, which only cuts a little earlier.
func together(rs []rune, i int) bool {
	before, r := rs[i-1], rs[i]
	switch {
	case unicode.IsMark(r), r == 0x200C, r == 0x200D, r >= 0x1F3FB && r <= 0x1F3FF, r >= 0xE0020 && r <= 0xE007F, r == 0x0E33, r == 0x0EB3:
		return true
	case before == 0x200D, before >= 0x0600 && before <= 0x0605, before == '\r' && r == '\n':
		return true
	case regional(r) && regional(before): // flags go by pairs
		n := 0
		for n < i && regional(rs[i-1-n]) {
			n++
		}
		return n%2 == 1
	case unicode.Is(unicode.Hangul, r) && unicode.Is(unicode.Hangul, before):
		return r >= 0x1100 && r <= 0x11FF || before >= 0x1100 && before <= 0x11FF || r >= 0xD7B0 && r <= 0xD7FB
	}
	return unicode.IsLetter(r) && norm.NFC.PropertiesString(string(before)).CCC() == 9 // a conjunct of Indic letters
}

func regional(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }
