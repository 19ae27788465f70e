package op

import (
	"bytes"
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"cairn/internal/fault"
)

// Limits of lists: rows in one answer by default, and how many bytes of rows an answer without an explicit limit
// may hold, so that it stays below 100 KB as sent (rows go out twice, as text and as structuredContent).
const (
	DefaultLimit = 50
	PageBytes    = 40_000
)

// Page counts what a list answer may still hold.
type Page struct {
	Limit int // rows
	bytes int // 0 = no bound
	used  int
}

// NewPage begins an answer for a caller's limit (0 = none given).
func NewPage(limit int) *Page {
	if limit == 0 {
		return &Page{Limit: DefaultLimit, bytes: PageBytes}
	}
	return &Page{Limit: limit}
}

// Fits counts a row of about n bytes and tells whether it still goes in. The first row always does.
func (p *Page) Fits(rows, n int) bool {
	p.used += n
	return rows < p.Limit && (rows == 0 || p.bytes == 0 || p.used <= p.bytes)
}

// Weight is about how many bytes a text takes in an answer, on average of the two times that it goes out: what must be
// escaped in JSON grows, and grows again when that JSON is quoted as text.
func Weight(s string) int {
	return len(s) + 2*(strings.Count(s, `"`)+strings.Count(s, `\`)+strings.Count(s, "\n"))
}

// Cursor makes the opaque text that continues a list after the row with these keys.
func Cursor(keys ...string) *string {
	s := base64.RawURLEncoding.EncodeToString([]byte(strings.Join(keys, "\n")))
	return &s
}

// ReadCursor gives the n keys of a cursor; nil for the empty one.
func ReadCursor(cursor string, n int) ([]string, error) {
	if cursor == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	keys := strings.Split(string(b), "\n")
	if err != nil || len(keys) != n || !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return nil, BadCursor()
	}
	return keys, nil
}

// BadCursor refuses a cursor whose keys don't make sense.
func BadCursor() error {
	return fault.Bad("cursor", "is not one that this list gave: leave it out to begin anew")
}
