package made

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"cairn/internal/db"
	"cairn/internal/embed"
)

const samples = 200

// Vectors makes vectors that look like the built-in model's, which would need ten minutes for 100,000: each is a blend of two of
// some real ones, and noise.
type Vectors struct {
	*rand.Rand
	real [][]float32
}

// NewVectors blends vectors of some texts.
func NewVectors(ctx context.Context, text func(i int) string) (*Vectors, error) {
	texts := make([]string, samples)
	for i := range texts {
		texts[i] = text(i)
	}
	vectors, err := embed.Builtin().Embed(ctx, texts)
	return &Vectors{rand.New(rand.NewPCG(3, 1)), vectors}, err
}

func (m *Vectors) vector() []float32 {
	a, b := m.real[m.IntN(len(m.real))], m.real[m.IntN(len(m.real))]
	v := make([]float32, len(a))
	sum := 0.0
	for i := range v {
		v[i] = 0.7*a[i] + 0.3*b[i] + float32(m.NormFloat64())*0.02
		sum += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

// Fill gives vectors to all things of a database that have none, as the product writes them.
func (m *Vectors) Fill(ctx context.Context, d *db.DB) error {
	rows, err := d.Query(ctx, `SELECT heap, thing FROM search_passage p WHERE part = 0 AND gone = 0 AND NOT EXISTS (SELECT 1 FROM search_vector v WHERE v.heap = p.heap AND v.thing = p.thing) ORDER BY heap`)
	if err != nil {
		return err
	}
	defer rows.Close()
	things := map[string][]string{}
	for rows.Next() {
		var heap, thing string
		if err := rows.Scan(&heap, &thing); err != nil {
			return err
		}
		things[heap] = append(things[heap], thing)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for heap, list := range things {
		for part := range slices.Chunk(list, 1000) {
			if err := d.Write(ctx, func(tx *db.Tx) error {
				tx.Numbered(heap, func(seq int64) error { return m.put(tx, heap, seq, part) })
				return nil
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Vectors) put(tx *db.Tx, heap string, seq int64, things []string) error {
	for part := range slices.Chunk(things, 25) {
		args := db.Args{heap, embed.Builtin().ID(), seq}
		var values []string
		for _, thing := range part {
			values = append(values, fmt.Sprintf("($1, %s, 0, $2, $3, %s)", args.Add(thing), args.Add(base64.StdEncoding.EncodeToString(embed.Pack(m.vector())))))
		}
		if _, err := tx.Exec(`INSERT INTO search_vector (heap, thing, part, model, seq, vec) VALUES `+strings.Join(values, ", "), args...); err != nil {
			return err
		}
	}
	return nil
}
