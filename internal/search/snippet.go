package search

import (
	"strings"
	"unicode/utf8"
)

// ellipsis stands where a snippet leaves text out.
const ellipsis = "…"

// lineUp is how far, in characters, a snippet's edge moves to fall between words.
const lineUp = 24

// Snippet gives the part of text that shows most words of the query, with some text around it: at most maxChars characters,
// the … where text was left out among them. It's valid UTF-8 (bytes that aren't become U+FFFD), white space is single
// spaces, and no grapheme is cut, be it an emoji of several characters or a flag. Without a word of the query in it, the
// snippet is the text's beginning.
func Snippet(text, query string, maxChars int) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if !longer(text, maxChars) {
		return text
	}
	if maxChars < 8 { // no room for more than text
		return fit(text, maxChars)
	}
	from, size := bestSpan(text, termsOf(query), maxChars-2)
	lead := (maxChars - 2 - size) / 3
	return cut(text, start(text, from, lead), maxChars)
}

// cut gives maxChars characters of text from start on, with ellipses.
func cut(text string, start, maxChars int) string {
	out := ""
	if start > 0 {
		out = ellipsis
		maxChars--
	}
	rest := text[start:]
	if !longer(rest, maxChars) {
		return out + rest
	}
	shown := fit(rest, maxChars-1)
	midWord := len(shown) < len(rest) && rest[len(shown)] != ' '
	if i := strings.LastIndexByte(shown, ' '); midWord && i > 0 && !longer(shown[i:], lineUp) {
		shown = shown[:i]
	}
	return out + strings.TrimRight(shown, " ") + ellipsis
}

// fit gives the graphemes of s that fit in n characters.
func fit(s string, n int) string {
	end := graphemesEnd(s, n)
	if longer(s[:end], n) { // not even the first one
		return ""
	}
	return s[:end]
}

// sought are the terms of a query that a snippet shows: whole ones, and characters that terms begin with.
type sought struct {
	terms  map[string]bool
	starts map[string]bool
}

func termsOf(q string) sought {
	s := sought{map[string]bool{}, map[string]bool{}}
	for _, g := range parse(q, true).content() {
		for _, o := range g {
			for _, p := range o.loose {
				for i, t := range p.terms {
					if p.prefix && i == len(p.terms)-1 {
						s.starts[t] = true
					} else {
						s.terms[t] = true
					}
				}
			}
		}
	}
	return s
}

// match gives the term of the query that t is, or "".
func (s sought) match(t token) string {
	if s.terms[t.text] {
		return t.text
	}
	if t.run && len(s.starts) > 0 {
		_, n := utf8.DecodeRuneInString(t.text)
		if first := t.text[:n]; s.starts[first] {
			return first
		}
	}
	return ""
}

// bestSpan gives the byte where the first span of at most maxChars characters begins that holds the most different terms,
// and its size in characters. Its beginning is the latest that keeps them all.
func bestSpan(text string, terms sought, maxChars int) (from, size int) {
	type hit struct {
		term             string
		from             int // byte
		fromChar, toChar int
	}
	var window []hit
	inside := map[string]int{}
	best, chars, counted := 0, 0, 0
	for t := range tokens(text) {
		term := terms.match(t)
		if term == "" {
			continue
		}
		chars += utf8.RuneCountInString(text[counted:t.from])
		counted = t.from
		h := hit{term, t.from, chars, chars + utf8.RuneCountInString(text[t.from:t.to])}
		if h.toChar-h.fromChar > maxChars {
			continue
		}
		window = append(window, h)
		inside[term]++
		for h.toChar-window[0].fromChar > maxChars || inside[window[0].term] > 1 {
			if inside[window[0].term]--; inside[window[0].term] == 0 {
				delete(inside, window[0].term)
			}
			window = window[1:]
		}
		if len(inside) > best {
			best, from, size = len(inside), window[0].from, h.toChar-window[0].fromChar
		}
	}
	return from, size
}

// start gives the byte where a snippet begins that shows about lead characters before byte from: between words if that is
// near, else at the edge of a grapheme.
func start(text string, from, lead int) int {
	at := from
	for ; lead > 0 && at > 0; lead-- {
		_, n := utf8.DecodeLastRuneInString(text[:at])
		at -= n
	}
	if at == 0 {
		return 0
	}
	if at < from {
		near := text[at:from]
		if i := strings.IndexByte(near, ' '); i >= 0 && !longer(near[:i], lineUp) {
			at += i + 1
		}
	}
	// Only from an edge that is one for certain can graphemes be counted.
	sure := at
	for sure > 0 {
		a, n := utf8.DecodeLastRuneInString(text[:sure])
		b, _ := utf8.DecodeRuneInString(text[sure:])
		if endsGrapheme(a, b) {
			break
		}
		sure -= n
	}
	for sure < at {
		n, _ := grapheme(text[sure:])
		sure += n
	}
	return sure
}
