// Package meaning makes vectors: of things, by jobs that the writes of their texts add, and of questions. Vectors lie in the
// table search_vector under the heap's counter, as the tokens of a text do, so that indexes and replicas catch up with them;
// they carry their model's name and are made anew when another one is used.
package meaning

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/db"
	"cairn/internal/embed"
	"cairn/internal/job"
)

// The kinds of job that make vectors: of one thing that was put, and of all that have none of the model that is used now.
const (
	jobEmbed    = "embed"
	jobEmbedAll = "embed_all"
)

// Text is what of a thing is embedded. Before and After are what it's read with, such as the lines around one of a
// conversation: where there are any, the text is embedded alone and again with them.
type Text struct{ Title, Body, Before, After string }

// pieceChars is the size of a piece's step, pieceSteps how many make a piece: each but the first begins within the one before,
// so that every sentence is read with what stands around it.
const (
	pieceChars = 225
	pieceSteps = 2
)

// pieces cuts a text into what is embedded. The title, where often a date stands, is in front of the first.
func pieces(t Text) []string {
	if t.Before != "" || t.After != "" {
		around := strings.TrimSpace(t.Before + "\n" + t.Body + "\n" + t.After)
		return append(pieces(Text{Title: t.Title, Body: t.Body}), pieces(Text{Body: around})...)
	}
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

type embedArgs struct{ Heap, Thing string }

func onceOf(heap, thing string) string { return jobEmbed + " " + heap + " " + thing }

// AddJob lets the vectors of a thing be made after this write.
func AddJob(tx *db.Tx, heap, thing string) error {
	_, err := job.Add(context.Background(), tx, jobEmbed, embedArgs{heap, thing}, job.Options{Once: onceOf(heap, thing)})
	return err
}

// Maker makes the vectors of things.
type Maker struct {
	db    *db.DB
	model embed.Model
	texts map[string]TextOf
}

// TextOf gives what of a thing is embedded, whatever its state and with no caller in ctx.
type TextOf func(ctx context.Context, id string) (t Text, ok bool, err error)

// NewMaker makes a maker for the kinds of things that have a text.
func NewMaker(d *db.DB, m embed.Model, texts map[string]TextOf) *Maker { return &Maker{d, m, texts} }

// Jobs are the kinds of job of this package. One thing is embedded at a time, whatever the number of workers: the rest of
// the machine is for who waits.
func (m *Maker) Jobs() []job.Kind {
	turn := make(chan struct{}, 1)
	alone := func(do func(context.Context, json.RawMessage, func(int, int)) error) func(context.Context, json.RawMessage, func(int, int)) error {
		return func(ctx context.Context, args json.RawMessage, progress func(int, int)) error {
			select {
			case turn <- struct{}{}:
				defer func() { <-turn }()
			case <-ctx.Done():
				return ctx.Err()
			}
			return do(ctx, args, progress)
		}
	}
	return []job.Kind{{Name: jobEmbed, Do: alone(m.embedOne)}, {Name: jobEmbedAll, Do: m.embedAll(turn)}}
}

// Remake adds the job that embeds what has no vectors of the model, such as after another one was chosen.
func Remake(ctx context.Context, d *db.DB) error {
	return d.Write(ctx, func(tx *db.Tx) error {
		_, err := job.Add(ctx, tx, jobEmbedAll, struct{}{}, job.Options{Once: jobEmbedAll})
		return err
	})
}

func (m *Maker) embedOne(ctx context.Context, args json.RawMessage, _ func(done, total int)) error {
	var a embedArgs
	if err := json.Unmarshal(args, &a); err != nil {
		return err
	}
	return m.embed(ctx, a.Heap, a.Thing)
}

// embed makes the vectors of a thing as it stands. Where it changes meanwhile, it's done again.
func (m *Maker) embed(ctx context.Context, heap, thing string) error {
	for range 5 {
		done, err := m.tryEmbed(ctx, heap, thing)
		if done || err != nil {
			return err
		}
	}
	return errors.New("the thing changes all the time")
}

const standing = `SELECT seq, kind FROM search_passage WHERE heap = $1 AND thing = $2 AND part = 0 AND gone = 0`

func (m *Maker) tryEmbed(ctx context.Context, heap, thing string) (done bool, err error) {
	var seq int64
	var kind string
	err = m.db.One(ctx, standing, []any{heap, thing}, &seq, &kind)
	if db.IsNone(err) {
		return true, nil // whoever removed it dropped its vectors
	}
	if err != nil {
		return false, err
	}
	textOf := m.texts[kind]
	if textOf == nil {
		return true, nil
	}
	text, ok, err := textOf(ctx, thing)
	if err != nil || !ok {
		return err == nil, err
	}
	vectors, err := m.model.Embed(ctx, pieces(text))
	if err != nil {
		return false, err
	}
	err = m.db.Write(ctx, func(tx *db.Tx) error {
		done = false
		tx.Numbered(heap, func(number int64) error {
			var now int64
			err := tx.One(standing, []any{heap, thing}, &now, &kind)
			if db.IsNone(err) {
				done = true
				return nil
			}
			if err != nil || now != seq {
				return err
			}
			done = true
			return putVectors(tx, heap, thing, m.model.ID(), number, vectors)
		})
		return nil
	})
	return done && err == nil, err
}

// putVectors puts vectors in the place of all that a thing has. One without any keeps a row that says so.
func putVectors(tx *db.Tx, heap, thing, model string, seq int64, vectors [][]float32) error {
	if err := Drop(tx, heap, thing); err != nil {
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

// embedAll embeds what has no vectors of the model, or older ones than its text, and no job of its own.
func (m *Maker) embedAll(turn chan struct{}) func(context.Context, json.RawMessage, func(int, int)) error {
	return func(ctx context.Context, _ json.RawMessage, progress func(done, total int)) error {
		kinds := slices.Sorted(maps.Keys(m.texts))
		args := db.Args{}
		missing := ` FROM search_passage p WHERE p.part = 0 AND p.gone = 0 AND p.kind IN ` + args.List(kinds) + `
			AND NOT EXISTS (SELECT 1 FROM search_vector v WHERE v.heap = p.heap AND v.thing = p.thing AND v.part = 0 AND v.model = ` + args.Add(m.model.ID()) + ` AND v.seq > p.seq)
			AND NOT EXISTS (SELECT 1 FROM job j WHERE j.once = '` + jobEmbed + ` ' || p.heap || ' ' || p.thing)`
		done, total := 0, 0
		if err := m.db.One(ctx, `SELECT count(*)`+missing, args, &total); err != nil {
			return err
		}
		progress(0, total)
		for last := (embedArgs{}); ; {
			page, err := m.page(ctx, missing, args, last)
			if err != nil || len(page) == 0 {
				return err
			}
			for _, last = range page {
				select {
				case turn <- struct{}{}:
				case <-ctx.Done():
					return ctx.Err()
				}
				err := m.embed(ctx, last.Heap, last.Thing)
				<-turn
				if err != nil {
					return err
				}
				done++
				progress(done, max(total, done))
			}
		}
	}
}

// page gives the next things of a list, in the order of their ids.
func (m *Maker) page(ctx context.Context, from string, args db.Args, last embedArgs) (page []embedArgs, err error) {
	args = slices.Clone(args)
	rows, err := m.db.Query(ctx, `SELECT p.heap, p.thing`+from+` AND (p.heap, p.thing) > (`+args.Add(last.Heap)+`, `+args.Add(last.Thing)+`) ORDER BY p.heap, p.thing LIMIT 100`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var a embedArgs
		if err := rows.Scan(&a.Heap, &a.Thing); err != nil {
			return nil, err
		}
		page = append(page, a)
	}
	return page, rows.Err()
}
