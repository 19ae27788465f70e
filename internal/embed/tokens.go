package embed

import (
	"sort"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	space   = "▁"      // stands for a space in pieces
	joiner  = "\u034f" // COMBINING GRAPHEME JOINER
	unknown = 0        // the piece of any characters that no piece has
	// textBytes is how much of a text is read: 128 tokens end long before, unless it is one run of unknown characters.
	textBytes = 8192
)

// vocabulary holds the pieces that stand for text, sorted by their bytes, for a search that goes byte by byte.
type vocabulary struct {
	ids    []uint16
	scores []float64 // logarithms of how common they are
	ends   []uint32  // piece i is text[ends[i]:ends[i+1]]
	text   string
}

func (v *vocabulary) piece(i int) string { return v.text[v.ends[i]:v.ends[i+1]] }

// prefixes calls f for each piece that s begins with, the shorter first.
func (v *vocabulary) prefixes(s []byte, f func(piece, size int)) {
	lo, hi := 0, len(v.ids)
	for d, c := range s {
		from := lo
		lo = from + sort.Search(hi-from, func(i int) bool { return v.piece(from + i)[d] >= c })
		hi = lo + sort.Search(hi-lo, func(i int) bool { return v.piece(lo + i)[d] > c })
		if lo == hi {
			return
		}
		if len(v.piece(lo)) == d+1 {
			f(lo, d+1)
			lo++
		}
	}
}

// step is the best way to a place in a text: its score and the piece that ends there.
type step struct {
	score float64
	id    uint16
	size  uint16 // of the piece in bytes, 0 where none ends
}

// normalize writes text as the pieces spell it, in buf: composed (NFKC), with a mark before each word.
func normalize(buf []byte, text string) []byte {
	if len(text) > textBytes {
		n := textBytes
		for n > textBytes-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n]
	}
	joined := strings.Contains(text, joiner)
	text = norm.NFKC.String(text)
	if !joined { // the library puts one after thirty marks in a row, JavaScript doesn't
		text = strings.ReplaceAll(text, joiner, "")
	}
	buf = buf[:0]
	if text == "" {
		return buf
	}
	buf = append(buf, space...)
	for {
		before, after, found := strings.Cut(text, " ")
		buf = append(buf, before...)
		if !found {
			return buf
		}
		buf, text = append(buf, space...), after
	}
}

// tokens gives the ids of the pieces that make up text with the highest sum of scores, at most the window's; a run of
// unknown characters is one. It goes by the rules of the package that the weights are from, oddities included: what is
// unknown costs nothing, of equal scores the later way counts, and a score of 0 always gives way. They are what the
// reference vectors, and so the figures for search quality, were made with. The result is the scratch's until its next use.
func (v *vocabulary) tokens(text string, s *scratch) []uint16 {
	s.text = normalize(s.text, text)
	b := s.text
	s.steps = grow(s.steps, len(b)+1)
	clear(s.steps)
	for at := 0; at < len(b); {
		_, char := utf8.DecodeRune(b[at:])
		base, found := s.steps[at].score, false
		offer := func(id uint16, score float64, size int) {
			if t := &s.steps[at+size]; t.score == 0 || score >= t.score {
				*t = step{score, id, uint16(size)}
			}
		}
		v.prefixes(b[at:], func(piece, size int) {
			found = true
			offer(v.ids[piece], base+v.scores[piece], size)
		})
		if !found {
			offer(unknown, base, char)
		}
		at += char
	}

	s.ids = s.ids[:0]
	for end := len(b); end > 0; {
		t := s.steps[end]
		if t.size == 0 { // no piece ends here, but one began here
			_, char := utf8.DecodeLastRune(b[:end])
			t.size = uint16(char)
		}
		if t.id != unknown || len(s.ids) == 0 || s.ids[len(s.ids)-1] != unknown {
			s.ids = append(s.ids, t.id)
		}
		end -= int(t.size)
	}
	for i, j := 0, len(s.ids)-1; i < j; i, j = i+1, j-1 {
		s.ids[i], s.ids[j] = s.ids[j], s.ids[i]
	}
	return s.ids[:min(len(s.ids), window)]
}

// grow gives a slice of n elements, s itself where it is large enough. What they hold is anything.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
