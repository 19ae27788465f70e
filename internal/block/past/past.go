// Package past keeps the documents of blocks in the database: the newest of each, and every version before it, as what makes it
// of the one after it. What a write stores grows with what it changes, not with the document.
//
// The newest document of a block is what block_content has and, where that is of an older version, the steps of block_redo from
// there on: a large one is written whole only now and then. The body of a version in block_version makes it of the version after
// it, or is it whole. Steps are those of package version.
package past

import (
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"cairn/internal/block/inmem"
	"cairn/internal/db"
	"cairn/internal/doc"
	"cairn/internal/doc/version"
)

// Reader is what reading needs of db.DB or db.Tx.
type Reader struct {
	One  func(q string, args []any, dest ...any) error
	Rows func(q string, args ...any) (*sql.Rows, error)
}

// Inside reads in a transaction.
func Inside(tx *db.Tx) Reader { return Reader{tx.One, tx.Query} }

// Version names a version of a block's document, and who made it.
type Version struct {
	Block             string
	N                 int64 // from 1
	Hash, ContentHash string
	Actor             string
}

// Store is the documents of one server.
type Store struct{ Docs *inmem.Cache }

// maxNodes is how many changed nodes of a version are kept by id.
const maxNodes = 200

// large is the size in bytes from which on a document isn't written whole each time, mostSteps how many steps then stand between
// what is whole and the newest at most. They may have an eighth of its bytes.
const (
	large     = 32 << 10
	mostSteps = 256
)

// size tells about how many bytes a document's JSON has.
func size(d *doc.Doc) int64 { return int64(d.Bytes() + 100*d.Len()) }

// Large tells documents of which a write stores the change alone.
func Large(d *doc.Doc) bool { return size(d) > large }

// Step is a document on its way to the next version, worked out before the write.
type Step struct {
	From, To   *doc.Doc
	Diff       *version.Changes
	redo, undo []byte
	nodes      string
}

// Plan works out the step from one document to the next.
func Plan(from, to *doc.Doc) Step {
	st := Step{From: from, To: to, Diff: version.Diff(from, to)}
	st.undo = version.Steps(to, from, version.Diff(to, from))
	if Large(to) {
		st.redo = version.Steps(from, to, st.Diff)
	}
	ids := st.Diff.IDs()
	if st.Diff.Title {
		ids = append(ids, doc.RootID)
	}
	st.nodes = nodeList(ids)
	return st
}

func nodeList(ids []string) string {
	if len(ids) > maxNodes {
		return ""
	}
	b, _ := json.Marshal(append([]string{}, ids...))
	return string(b)
}

const insertVersion = `INSERT INTO block_version (block, version, hash, content_hash, actor, nodes, body, deltas, at) VALUES ($1, $2, $3, $4, $5, $6, '', $7, $8)`

// Begin stores the first version of a new block, whose JSON is given.
func Begin(tx *db.Tx, v Version, json []byte) error {
	if _, err := tx.Exec(`INSERT INTO block_content (block, content, version) VALUES ($1, $2, $3)`, v.Block, string(json), v.N); err != nil {
		return err
	}
	_, err := tx.Exec(insertVersion, v.Block, v.N, v.Hash, v.ContentHash, v.Actor, "[]", 0, tx.Now)
	return err
}

// Advance stores version v, which follows the newest. A version is kept whole where the steps since the last whole one are as long
// as it is: so reading any of them takes no longer for a long history, and all take little more than twice what the changes do.
func Advance(tx *db.Tx, v Version, st Step) error {
	var deltas int64
	if err := tx.One(`SELECT deltas FROM block_version WHERE block = $1 AND version = $2`, []any{v.Block, v.N - 1}, &deltas); err != nil {
		return err
	}
	body, whole := st.undo, 0
	if deltas += int64(len(body)); deltas > size(st.From) {
		body, whole, deltas = st.From.JSON(), 1, 0
	}
	if _, err := tx.Exec(`UPDATE block_version SET body = $3, whole = $4 WHERE block = $1 AND version = $2`, v.Block, v.N-1, string(body), whole); err != nil {
		return err
	}
	if _, err := tx.Exec(insertVersion, v.Block, v.N, v.Hash, v.ContentHash, v.Actor, st.nodes, deltas, tx.Now); err != nil {
		return err
	}
	return newest(tx, v, st)
}

// newest stores the newest document: the step to it, or it whole.
func newest(tx *db.Tx, v Version, st Step) error {
	var at, bytes int64
	if err := tx.One(`SELECT c.version, COALESCE((SELECT r.bytes FROM block_redo r WHERE r.block = c.block ORDER BY r.version DESC LIMIT 1), 0) FROM block_content c WHERE c.block = $1`, []any{v.Block}, &at, &bytes); err != nil {
		return err
	}
	if at == 0 { // of a time when it was always whole
		at = v.N - 1
	}
	bytes += int64(len(st.redo))
	if Large(st.To) && v.N-at <= mostSteps && bytes <= size(st.To)/8 {
		_, err := tx.Exec(`INSERT INTO block_redo (block, version, step, bytes) VALUES ($1, $2, $3, $4)`, v.Block, v.N, string(st.redo), bytes)
		if err == nil {
			_, err = tx.Exec(`UPDATE block_content SET version = $2 WHERE block = $1 AND version = 0`, v.Block, at)
		}
		return err
	}
	if _, err := tx.Exec(`UPDATE block_content SET content = $2, version = $3 WHERE block = $1`, v.Block, string(st.To.JSON()), v.N); err != nil || v.N-at == 1 {
		return err
	}
	_, err := tx.Exec(`DELETE FROM block_redo WHERE block = $1`, v.Block)
	return err
}

// Newest gives the newest document of a block, whose hash is given. Another write may have replaced it since: then nil.
func (s *Store) Newest(in Reader, block, hash string) (*doc.Doc, error) {
	if d := s.Docs.Get(hash); d != nil {
		return d, nil
	}
	// One statement, so that both are of one moment.
	rows, err := in.Rows(`SELECT content, 0 AS version FROM block_content WHERE block = $1 UNION ALL SELECT step, version FROM block_redo WHERE block = $1 ORDER BY version`, block)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var content string
	var steps [][]byte
	for rows.Next() {
		var text string
		var n int64
		if err := rows.Scan(&text, &n); err != nil {
			return nil, err
		}
		if n == 0 {
			content = text
		} else {
			steps = append(steps, []byte(text))
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	_ = rows.Close()
	d, err := doc.Parse([]byte(content))
	if err == nil && len(steps) > 0 {
		d, err = version.ApplySteps(d, steps...)
	}
	if err != nil {
		return nil, fmt.Errorf("the document of block %s: %w", block, err)
	}
	if d.Hash() != hash {
		return nil, nil
	}
	s.Docs.Put(hash, d)
	return d, nil
}

// At gives version n of a block, which has the hash given; nil where the block has changed since newest, its newest version, was
// read. It goes back from the newest, or from the first whole one after n.
func (s *Store) At(in Reader, newest Version, n int64, hash string) (*doc.Doc, error) {
	if d := s.Docs.Get(hash); d != nil {
		return d, nil
	}
	var whole *int64
	if err := in.One(`SELECT min(version) FROM block_version WHERE block = $1 AND version >= $2 AND whole = 1`, []any{newest.Block, n}, &whole); err != nil {
		return nil, err
	}
	upTo := newest.N
	if whole != nil {
		upTo = *whole
	}
	rows, err := in.Rows(`SELECT version, body, whole FROM block_version WHERE block = $1 AND version >= $2 AND version <= $3 ORDER BY version DESC`, newest.Block, n, upTo)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var base string
	var steps []string
	last := int64(0)
	for rows.Next() {
		var isWhole int64
		var body string
		if err := rows.Scan(&last, &body, &isWhole); err != nil {
			return nil, err
		}
		if isWhole == 1 {
			base = body
		} else if last != newest.N { // the newest has none, or got one since it was read
			steps = append(steps, body)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	_ = rows.Close()
	if last != n {
		return nil, fmt.Errorf("version %d of block %s is missing", n, newest.Block)
	}
	d, err := s.back(in, newest, base, steps)
	if err != nil {
		return nil, fmt.Errorf("version %d of block %s: %w", n, newest.Block, err)
	}
	if d == nil {
		return nil, nil
	}
	if d.Hash() != hash {
		return nil, fmt.Errorf("version %d of block %s isn't what its hash says", n, newest.Block)
	}
	s.Docs.Put(hash, d)
	return d, nil
}

// back takes steps back from a whole version, "" being the newest.
func (s *Store) back(in Reader, newest Version, base string, steps []string) (d *doc.Doc, err error) {
	if base == "" {
		d, err = s.Newest(in, newest.Block, newest.Hash)
	} else {
		d, err = doc.Parse([]byte(bytesOf(base)))
	}
	for len(steps) > 0 && d != nil && err == nil {
		if steps[0][0] != '{' {
			d, err = older(d, steps[0])
			steps = steps[1:]
			continue
		}
		var some [][]byte
		for len(steps) > 0 && steps[0][0] == '{' {
			some, steps = append(some, []byte(steps[0])), steps[1:]
		}
		d, err = version.ApplySteps(d, some...)
	}
	return d, err
}

// bytesOf reads a whole version: its JSON, before schema 9 in base64.
func bytesOf(body string) []byte {
	if body[0] != '{' {
		if b, err := base64.RawStdEncoding.DecodeString(body); err == nil {
			return b
		}
	}
	return []byte(body)
}

// older applies a step as it was kept before schema 9: a delta of the documents' bytes.
func older(d *doc.Doc, body string) (*doc.Doc, error) {
	b, err := version.ApplyDelta(d.JSON(), bytesOf(body))
	if err != nil {
		return nil, err
	}
	return doc.Parse(b)
}

// ByHash finds the newest version of a block with a hash of the whole, or of the content alone; 0 = there is none.
func ByHash(in Reader, block, hash string, contentAlone bool) (n int64, whole string, err error) {
	column := "hash"
	if contentAlone {
		column = "content_hash"
	}
	err = in.One(`SELECT version, hash FROM block_version WHERE block = $1 AND `+column+` = $2 ORDER BY version DESC LIMIT 1`, []any{block, hash}, &n, &whole)
	if db.IsNone(err) {
		return 0, "", nil
	}
	return n, whole, err
}
