// Package meaning makes vectors: of things, in the background, and of questions. Vectors lie in the table search_vector under
// the heap's counter, as the tokens of a text do, so that indexes and replicas catch up with them; they carry their model's
// name and are made anew when another one is used.
//
// A write of a text adds nothing for it. What has no vectors, or older ones than its text, is seen in the data: so nothing
// can be lost between a write and its vectors, whatever dies, and a write costs no more for being embedded.
package meaning

import (
	"context"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/db"
	"cairn/internal/embed"
)

// Text is what of a thing is embedded.
type Text struct{ Title, Body string }

// pieceChars is the size of a piece's step, pieceSteps how many make a piece: each but the first begins within the one before,
// so that every sentence is read with what stands around it.
const (
	pieceChars = 225
	pieceSteps = 2
)

// pieces cuts a text into what is embedded. The title, where often a date stands, is in front of the first.
func pieces(t Text) []string {
	title := strings.TrimSpace(t.Title)
	steps := embed.Split(t.Body, pieceChars)
	if len(steps) == 0 {
		if title == "" {
			return nil
		}
		return []string{title}
	}
	var cut []string
	for i := 0; i == 0 || i+pieceSteps <= len(steps); i++ {
		p := t.Body[steps[i].Start:steps[min(i+pieceSteps, len(steps))-1].End]
		if i == 0 && title != "" {
			p = title + "\n" + p
		}
		cut = append(cut, p)
	}
	return cut
}

// TextOf gives what of a thing is embedded, whatever its state and with no caller in ctx.
type TextOf func(ctx context.Context, id string) (t Text, ok bool, err error)

// putVectors puts vectors in the place of all that a thing has. One without any keeps a row that says so.
func putVectors(tx *db.Tx, heap, thing, model string, seq int64, vectors [][]float32) error {
	if err := Drop(tx, heap, thing); err != nil {
		return err
	}
	if _, err := tx.Exec(`DELETE FROM search_embedded WHERE heap = $1 AND substr(model, 1, length(CAST($2 AS TEXT)) + 1) <> CAST($2 AS TEXT) || ' '`, heap, model); err != nil { // of models whose vectors these replace
		return err
	}
	rows := make([]string, max(len(vectors), 1))
	for i, v := range vectors {
		rows[i] = base64.StdEncoding.EncodeToString(embed.Pack(v))
	}
	const most = 32
	part := 0
	for chunk := range slices.Chunk(rows, most) {
		args := []any{heap, thing, model, seq}
		var b strings.Builder
		b.WriteString(`INSERT INTO search_vector (heap, thing, model, seq, part, vec) VALUES `)
		for i, vec := range chunk {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString("($1, $2, $3, $4, $" + strconv.Itoa(len(args)+1) + ", $" + strconv.Itoa(len(args)+2) + ")")
			args = append(args, part, vec)
			part++
		}
		if _, err := tx.Exec(b.String(), args...); err != nil {
			return err
		}
	}
	return nil
}

// Drop deletes the vectors of a thing. Indexes hear of it by its text, which changes or goes in the same write.
func Drop(tx *db.Tx, heap, thing string) error {
	_, err := tx.Exec(`DELETE FROM search_vector WHERE heap = $1 AND thing = $2`, heap, thing)
	return err
}
