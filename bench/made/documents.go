package made

import (
	"fmt"
	"strings"
)

// Target is the paragraph of a made document that stands first and may be changed.
const Target = "The one paragraph to change."

// Markdown makes a document of about so many bytes: from 400,000 on half are list items, of which every second has a link, and a
// fifth is one line; a smaller one is list items.
func Markdown(bytes int) string {
	var b strings.Builder
	b.WriteString("# A document\n\n" + Target + "\n\n")
	w := NewWords(7)
	items := bytes
	if bytes >= 400_000 {
		items = bytes * 4 / 5
	}
	for i := 0; b.Len() < items; i++ {
		if i%2 == 0 {
			fmt.Fprintf(&b, "- item %d with a [link](https://example.org/%d) %s\n", i, i, w.Text(12, 15))
		} else {
			fmt.Fprintf(&b, "- item %d %s\n", i, w.Text(16, 20))
		}
	}
	if b.WriteByte('\n'); items < bytes {
		for line := b.Len(); b.Len()-line < bytes-items; {
			b.WriteString(w.Text(10, 10) + " ")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Block are the arguments of a small note, below one tag.
type Block struct {
	Title   string   `json:"title"`
	Content string   `json:"content"`
	Tags    []string `json:"tags"`
}

// NewBlock makes the note of a number.
func NewBlock(i int, tag string) Block {
	w := NewWords(uint64(i))
	return Block{w.Text(3, 7), w.Text(20, 60), []string{tag}}
}
