package view

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"cairn/internal/doc"
	"cairn/internal/fault"
)

// Markdown gives text, a document's Markdown, from byte from on, as much as a page holds. Pages put together are the whole text,
// byte by byte: where one ends says its Truncation, at the end of a block or a line where there is one in its second half.
func Markdown(d *doc.Doc, text string, from int) (*View, error) {
	if from < 0 || from > len(text) {
		return nil, fault.Bad("byte", "is %d, and the document has %d bytes of Markdown", from, len(text))
	}
	for from > 0 && from < len(text) && !utf8.RuneStart(text[from]) {
		from--
	}
	v := &View{Rows: []Row{}, MarkdownBytes: len(text)}
	to, reason := len(text), ""
	if to-from > PageContent {
		to, reason = cut(text, from, from+PageContent), "content"
	}
	room := PageBytes - envelope(d).bytes
	for {
		quoted, _ := json.Marshal(text[from:to])
		if len(quoted) <= room {
			break
		}
		to, reason = cut(text, from, from+(to-from)/2), "bytes"
	}
	page := text[from:to]
	v.Markdown = &page
	if to < len(text) {
		v.Page.HasMore = true
		v.Truncation = &Truncation{Reasons: []string{reason}, Continuation: Continuation{Byte: to}}
	}
	return v, nil
}

// cut finds where a page of Markdown ends that may go up to byte to.
func cut(text string, from, to int) int {
	half := from + (to-from)/2
	for _, end := range []string{"\n\n", "\n"} {
		if i := strings.LastIndex(text[half:to], end); i >= 0 {
			return half + i + len(end)
		}
	}
	return max(edge(text, from, to), from+1)
}
