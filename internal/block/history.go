package block

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/doc"
	"cairn/internal/doc/version"
	"cairn/internal/fault"
	"cairn/internal/op"
)

// maxNodes is how many changed nodes of a version are kept by id.
const maxNodes = 200

// step is a document on its way to the next version, worked out before the write.
type step struct {
	d          *doc.Doc
	hash       string
	json, body []byte // its canonical JSON; what makes the version before out of that
	nodes      string
	refs       refs
}

// plan works out the step from one document to the next.
func (s *Service) plan(from, to *doc.Doc) step {
	st := step{d: to, hash: to.Hash(), json: to.JSON()}
	_, before := s.docs.Both(from.Hash())
	if before == nil {
		before = from.JSON()
	}
	st.body = version.Delta(st.json, before)
	diff := version.Diff(from, to)
	ids := diff.IDs()
	if diff.Title {
		ids = append(ids, doc.RootID)
	}
	st.nodes = nodeList(ids)
	if refer(diff) {
		st.refs = newRefs(from, to)
	}
	return st
}

// refer tells whether a node that changed refers to something: else what the document refers to is the same.
func refer(diff *version.Changes) bool {
	some := func(n *doc.Node) bool { return len(n.Refs()) > 0 }
	return slices.ContainsFunc(diff.Added, some) || slices.ContainsFunc(diff.Removed, some) ||
		slices.ContainsFunc(diff.Edited, func(e version.Edit) bool { return some(e.Before) || some(e.After) })
}

func nodeList(ids []string) string {
	if len(ids) > maxNodes {
		return ""
	}
	b, _ := json.Marshal(append([]string{}, ids...))
	return string(b)
}

// begin stores the first version of a new block.
func begin(tx *db.Tx, r *row, st step) error {
	if _, err := tx.Exec(`INSERT INTO block_content (block, content) VALUES ($1, $2)`, r.ID, string(st.json)); err != nil {
		return err
	}
	_, err := tx.Exec(`INSERT INTO block_version (block, version, hash, content_hash, actor, nodes, body, deltas, at) VALUES ($1, $2, $3, $4, $5, $6, '', 0, $7)`,
		r.ID, r.Version, r.Hash, r.ContentHash, r.Actor, st.nodes, tx.Now)
	return err
}

// advance stores the version that follows old. A version is kept whole where the deltas since the last whole one are as long as
// it is: so reading any of them takes no longer for a long history, and all take little more than twice what the changes do.
func advance(tx *db.Tx, old, r *row, st step) error {
	var at, deltas int64
	if err := tx.One(`SELECT at, deltas FROM block_version WHERE block = $1 AND version = $2`, []any{r.ID, old.Version}, &at, &deltas); err != nil {
		return err
	}
	body, whole := base64.RawStdEncoding.EncodeToString(st.body), 0
	if deltas += int64(len(body)); deltas > int64(len(st.json)) {
		var before string
		if err := tx.One(`SELECT content FROM block_content WHERE block = $1`, []any{r.ID}, &before); err != nil {
			return err
		}
		body, whole, deltas = base64.RawStdEncoding.EncodeToString([]byte(before)), 1, 0
	}
	if _, err := tx.Exec(`UPDATE block_version SET body = $3, whole = $4 WHERE block = $1 AND version = $2`, r.ID, old.Version, body, whole); err != nil {
		return err
	}
	r.Version = old.Version + 1
	if _, err := tx.Exec(`INSERT INTO block_version (block, version, hash, content_hash, actor, nodes, body, deltas, at) VALUES ($1, $2, $3, $4, $5, $6, '', $7, $8)`,
		r.ID, r.Version, r.Hash, r.ContentHash, r.Actor, st.nodes, deltas, tx.Now); err != nil {
		return err
	}
	_, err := tx.Exec(`UPDATE block_content SET content = $2 WHERE block = $1`, r.ID, string(st.json))
	return err
}

// reader is what reading versions needs of db.DB or db.Tx.
type reader struct {
	one  querier
	rows rowsQuery
}

func (s *Service) reader(ctx context.Context) reader { return reader{s.one(ctx), s.rows(ctx)} }

func inside(tx *db.Tx) reader { return reader{tx.One, tx.Query} }

// current gives the newest document of a block. Another write may have replaced it since r was read: then nil.
func (s *Service) current(in reader, r *row) (*doc.Doc, error) {
	if d := s.docs.Get(r.Hash); d != nil {
		return d, nil
	}
	var content string
	if err := in.one(`SELECT content FROM block_content WHERE block = $1`, []any{r.ID}, &content); err != nil {
		return nil, err
	}
	d, err := doc.Parse([]byte(content))
	if err != nil {
		return nil, fmt.Errorf("the document of block %s: %w", r.ID, err)
	}
	if d.Hash() != r.Hash {
		return nil, nil
	}
	s.docs.Put(r.Hash, d, nil)
	return d, nil
}

// document gives a block and its newest document, both of one moment.
func (s *Service) document(ctx context.Context, id string) (*row, *doc.Doc, error) {
	for range maxTries {
		r, err := load(ctx, s.one(ctx), "block_id", id, "")
		if err != nil {
			return nil, nil, err
		}
		d, err := s.current(s.reader(ctx), r)
		if d != nil || err != nil {
			return r, d, err
		}
	}
	return nil, nil, errBusy
}

var errBusy = fault.New(fault.Conflict, "the block is changed by others all the time: try again")

// past gives version n of a block whose newest is r. It goes back from the newest, or from the first whole one after n.
func (s *Service) past(in reader, r *row, n int64, hash string) (*doc.Doc, error) {
	if d := s.docs.Get(hash); d != nil {
		return d, nil
	}
	var whole *int64
	if err := in.one(`SELECT min(version) FROM block_version WHERE block = $1 AND version >= $2 AND whole = 1`, []any{r.ID, n}, &whole); err != nil {
		return nil, err
	}
	upTo, b := r.Version, []byte(nil)
	if whole != nil {
		upTo = *whole
	}
	rows, err := in.rows(`SELECT version, body, whole FROM block_version WHERE block = $1 AND version >= $2 AND version <= $3 ORDER BY version DESC`, r.ID, n, upTo)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var bodies [][]byte
	last := int64(0)
	for rows.Next() {
		var v, isWhole int64
		var text string
		if err := rows.Scan(&v, &text, &isWhole); err != nil {
			return nil, err
		}
		body, err := base64.RawStdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("version %d of block %s: %w", v, r.ID, err)
		}
		if isWhole == 1 {
			b = body
		} else if v != r.Version { // the newest has none, or got one since r was read
			bodies = append(bodies, body)
		}
		last = v
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	_ = rows.Close()
	if last != n {
		return nil, fmt.Errorf("version %d of block %s is missing", n, r.ID)
	}
	if b == nil {
		d, err := s.current(in, r)
		if err != nil || d == nil {
			return nil, err
		}
		b = d.JSON()
	}
	for _, delta := range bodies {
		if b, err = version.ApplyDelta(b, delta); err != nil {
			return nil, fmt.Errorf("version %d of block %s: %w", n, r.ID, err)
		}
	}
	d, err := doc.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("version %d of block %s: %w", n, r.ID, err)
	}
	if d.Hash() != hash {
		return nil, fmt.Errorf("version %d of block %s isn't what its hash says", n, r.ID)
	}
	s.docs.Put(hash, d, nil)
	return d, nil
}

// byHash finds the newest version of a block with a hash of the column named; 0 = there is none.
func byHash(in reader, id, column, hash string) (n int64, whole string, err error) {
	err = in.one(`SELECT version, hash FROM block_version WHERE block = $1 AND `+column+` = $2 ORDER BY version DESC LIMIT 1`, []any{id, hash}, &n, &whole)
	if db.IsNone(err) {
		return 0, "", nil
	}
	return n, whole, err
}

// Since is a node that was changed after a version, by whom and when last; node_id "doc" is the title.
type Since struct {
	NodeID string `json:"node_id"`
	By     string `json:"by"`
	ByName string `json:"by_name"`
	At     string `json:"at"`

	at int64
}

// maxSince is how many changed nodes a conflict lists.
const maxSince = 200

// since tells what was changed between an older version of a document and its newest: who touched a node last, by what the
// versions between say of themselves.
func (s *Service) since(ctx context.Context, r *row, n int64, base, now *doc.Doc) ([]Since, error) {
	diff := version.Diff(base, now)
	left := map[string]bool{}
	for _, id := range diff.IDs() {
		left[id] = true
	}
	if diff.Title {
		left[doc.RootID] = true
	}
	list := []Since{}
	rows, err := s.db.Query(ctx, `SELECT actor, nodes, at FROM block_version WHERE block = $1 AND version > $2 AND version <= $3 ORDER BY version DESC`, r.ID, n, r.Version)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() && len(left) > 0 {
		var actor, nodes string
		var at int64
		if err := rows.Scan(&actor, &nodes, &at); err != nil {
			return nil, err
		}
		var ids []string
		if nodes == "" { // so many that it may have been any
			for id := range left {
				ids = append(ids, id)
			}
			slices.Sort(ids)
		} else if err := json.Unmarshal([]byte(nodes), &ids); err != nil {
			return nil, err
		}
		for _, id := range ids {
			if left[id] {
				delete(left, id)
				list = append(list, Since{NodeID: id, By: actor, at: at})
			}
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	_ = rows.Close()
	names := change.Names{}
	for i := range list {
		l := &list[i]
		l.At = op.Stamp(l.at)
		if l.ByName, err = names.Of(ctx, s.db, l.By); err != nil {
			return nil, err
		}
	}
	return list, nil
}
