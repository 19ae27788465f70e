package words

import "unicode/utf8"

// Shorten gives as much of a text as fits into n characters without parting what readers see as one: an emoji of several, a
// letter and its marks, a flag. What is longer than all of that by itself is parted. was tells that the text was longer.
func Shorten(s string, n int) (short string, was bool) {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s, false
	}
	end, left := 0, n
	for {
		size, chars := Grapheme(s[end:])
		if left -= chars; left < 0 {
			break
		}
		end += size
	}
	if end == 0 {
		for range n {
			_, size := utf8.DecodeRuneInString(s[end:])
			end += size
		}
	}
	return s[:end], true
}
