package search

import (
	"strconv"
	"strings"

	"cairn/internal/db"
	"cairn/internal/meaning"
	"cairn/internal/words"
)

// Doc is what of a thing can be found. Heap, Thing and Kind are ids and never searched. Title and Body are plain text, valid
// UTF-8 or not.
type Doc struct {
	Heap, Thing, Kind string
	Title, Body       string
	Day               string // the date that it's about, YYYY-MM-DD, for questions that name a time; "" = the first full one in the title, if there is one
	Thread            string // things of one thread are read in the order of At: what stands just before and after helps to find them; "" = it stands alone
	At                int64  // microseconds since 1970 UTC
	Fresh             bool   // the thing is new: nothing of it is indexed yet
}

// Analyzed is a Doc cut into passages of tokens, ready to be put.
type Analyzed struct {
	heap, thing, kind string
	fresh             bool
	passages          []string
}

// separatorToken stands between a title and a body in a passage, so that no phrase reaches from one into the other. No text
// gives this token.
const separatorToken = "|"

// Analyze does the expensive part of putting a thing, 0.03 to 0.3 seconds a megabyte: call it before the write.
func Analyze(d Doc) Analyzed {
	a := Analyzed{heap: d.Heap, thing: d.Thing, kind: d.Kind, fresh: d.Fresh}
	var b strings.Builder
	found := false
	add := func(t string) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(t)
	}
	for t := range words.Tokens(d.Title) {
		add(t.Text)
		found = true
	}
	if b.Len() > 0 {
		add(separatorToken)
	}
	end := words.PassageEnd(d.Body)
	// The passages share one stream of tokens: a phrase, or a pair of an unspaced script, that lies across an edge is kept.
	for t := range words.Tokens(d.Body) {
		for t.From >= end && end < len(d.Body) {
			a.passages = append(a.passages, b.String())
			b = strings.Builder{}
			end += words.PassageEnd(d.Body[end:])
		}
		add(t.Text)
		found = true
	}
	a.passages = append(a.passages, b.String())
	if !found {
		a.passages = nil
		return a
	}
	if m := d.mark(); m != "" {
		a.passages[0] = m + " " + a.passages[0]
	}
	return a
}

const putRow = `INSERT INTO search_passage (heap, thing, part, seq, kind, analyzer, tok, gone) VALUES `
const onPut = ` ON CONFLICT (heap, thing, part) DO UPDATE SET seq = excluded.seq, kind = excluded.kind,
	analyzer = excluded.analyzer, tok = excluded.tok, gone = 0`

// puts are the statements that write several passages at once, by how many: a network lies between us and PostgreSQL, and
// the heap's counter is locked meanwhile.
var puts = []struct {
	rows int
	text string
}{{64, putText(64)}, {8, putText(8)}, {1, putText(1)}}

func putText(rows int) string {
	var b strings.Builder
	b.WriteString(putRow)
	for i := range rows {
		if i > 0 {
			b.WriteString(", ")
		}
		// $1 heap, $2 thing, $3 seq, $4 kind, $5 analyzer, then part and tok of each row
		b.WriteString("($1, $2, $" + strconv.Itoa(6+2*i) + ", $3, $4, $5, $" + strconv.Itoa(7+2*i) + ", 0)")
	}
	return b.String() + onPut
}

// Put makes the thing findable as it was analyzed, when tx commits. All its passages get one number of the heap's counter,
// and those that it had before beyond them are marked gone.
func (a Analyzed) Put(tx *db.Tx) {
	if a.fresh && len(a.passages) == 0 {
		return
	}
	tx.Numbered(a.heap, func(seq int64) error {
		if !a.fresh {
			if err := unmark(tx, a.heap, a.thing); err != nil {
				return err
			}
		}
		return a.write(tx, seq)
	})
}

func (a Analyzed) write(tx *db.Tx, seq int64) error {
	for part := 0; part < len(a.passages); {
		for _, put := range puts {
			if len(a.passages)-part < put.rows {
				continue
			}
			args := append(make([]any, 0, 5+2*put.rows), a.heap, a.thing, seq, a.kind, analyzerVersion)
			for range put.rows {
				args = append(args, part, a.passages[part])
				part++
			}
			if _, err := tx.Exec(put.text, args...); err != nil {
				return err
			}
			break
		}
	}
	if a.fresh {
		return nil
	}
	return markGone(tx, a.heap, a.thing, len(a.passages), seq)
}

// Remove makes the thing unfindable when tx commits. It's no error if it never was findable.
func Remove(tx *db.Tx, heap, thing string) {
	tx.Numbered(heap, func(seq int64) error {
		if err := unmark(tx, heap, thing); err != nil {
			return err
		}
		return markGone(tx, heap, thing, 0, seq)
	})
}

// markGone marks the passages of a thing from part on. The rows stay, as that is how replicas learn of it.
func markGone(tx *db.Tx, heap, thing string, part int, seq int64) error {
	if part == 0 {
		if err := meaning.Drop(tx, heap, thing); err != nil {
			return err
		}
	}
	_, err := tx.Exec(`UPDATE search_passage SET gone = 1, tok = '', seq = $4
		WHERE heap = $1 AND thing = $2 AND part >= $3 AND gone = 0`, heap, thing, part, seq)
	return err
}
