package block

import (
	"context"
	"encoding/json"
	"slices"

	"cairn/internal/block/past"
	"cairn/internal/change"
	"cairn/internal/doc"
	"cairn/internal/doc/version"
	"cairn/internal/fault"
	"cairn/internal/op"
)

// step is a document on its way to the next version, with what it refers to.
type step struct {
	past.Step
	refs refs
}

// plan works out the step from one document to the next.
func plan(from, to *doc.Doc) step {
	st := step{Step: past.Plan(from, to)}
	if refer(st.Diff) {
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

// newest names the newest version of a block's document.
func (r *row) newest() past.Version {
	return past.Version{Block: r.ID, N: r.Version, Hash: r.Hash, ContentHash: r.ContentHash, Actor: r.Actor}
}

func (s *Service) reader(ctx context.Context) past.Reader {
	return past.Reader{One: s.one(ctx), Rows: s.rows(ctx)}
}

// current gives the newest document of a block. Another write may have replaced it since r was read: then nil.
func (s *Service) current(in past.Reader, r *row) (*doc.Doc, error) {
	return s.docs.Newest(in, r.ID, r.Hash)
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
