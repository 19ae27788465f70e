package block

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cairn/internal/block/past"
	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/doc"
	"cairn/internal/doc/version"
	"cairn/internal/fault"
	"cairn/internal/who"
)

// Kinds are the kinds of thing whose changes can be undone here.
func (s *Service) Kinds() []change.Kind {
	return []change.Kind{{Name: kind, Area: area, Get: fields, Set: s.setFields, Merge: s.merge}}
}

// fields reads every recorded field of a block.
func fields(tx *db.Tx, id string) (string, map[string]json.RawMessage, error) {
	r := &row{}
	if err := tx.One(`SELECT `+columns+` FROM block b WHERE b.id = $1`+tx.ForEdit(), []any{id}, r.dest()...); err != nil {
		return "", nil, err
	}
	f := r.marks()
	for k, v := range r.texts() {
		f[k] = v
	}
	f["type"], f["external_ref"] = r.Type, r.ExternalRef
	for _, k := range []string{relTag, relMention} {
		to, err := setTo(tx.Query, id, k)
		if err != nil {
			return "", nil, err
		}
		f[field(k)] = to
	}
	list, err := properties(tx.Query, id)
	if err != nil {
		return "", nil, err
	}
	for _, p := range list {
		f[propertyField(p.Key)] = stored{p.Type, p.Value}
	}
	raw, err := change.Raw(f)
	return r.Heap, raw, err
}

// setFields writes recorded fields back.
func (s *Service) setFields(ctx context.Context, tx *db.Tx, id string, set map[string]json.RawMessage) error {
	old := &row{}
	if err := tx.One(`SELECT `+columns+` FROM block b WHERE b.id = $1`+tx.ForEdit(), []any{id}, old.dest()...); err != nil {
		return err
	}
	in := past.Inside(tx)
	before, err := s.current(in, old)
	if err == nil && before == nil {
		err = errBusy
	}
	if err != nil {
		return err
	}
	after, err := s.rewritten(in, old, before, set)
	if err != nil {
		return err
	}
	r := *old
	r.Actor = who.From(ctx).Actor
	for name, v := range set {
		if err := setField(tx, &r, name, v); err != nil {
			return err
		}
	}
	var st *step
	if after.Hash() != old.Hash {
		p := plan(before, after)
		st = &p
	}
	if err := update(tx, old, &r, st); err != nil {
		return err
	}
	if st != nil || old.TrashedAt != r.TrashedAt {
		index(tx, &r, after)
	}
	return nil
}

// rewritten gives the document that recorded fields say.
func (s *Service) rewritten(in past.Reader, r *row, d *doc.Doc, set map[string]json.RawMessage) (*doc.Doc, error) {
	after := d
	if v, ok := set["content"]; ok {
		var hash string
		if err := json.Unmarshal(v, &hash); err != nil {
			return nil, err
		}
		was, err := s.withContent(in, r, hash)
		if err != nil {
			return nil, err
		}
		if after, err = was.WithTitle(d.Title()); err != nil {
			return nil, err
		}
	}
	if v, ok := set["title"]; ok {
		var title string
		if err := json.Unmarshal(v, &title); err != nil {
			return nil, err
		}
		return after.WithTitle(title)
	}
	return after, nil
}

// merged is the key under which a document lies in the cache whose content alone is of interest.
func merged(contentHash string) string { return "content " + contentHash }

// withContent finds a document of the block with a content, among its versions or just merged.
func (s *Service) withContent(in past.Reader, r *row, contentHash string) (*doc.Doc, error) {
	n, hash, err := past.ByHash(in, r.ID, contentHash, true)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		if d := s.docs.Docs.Get(merged(contentHash)); d != nil {
			return d, nil
		}
		return nil, fault.New(fault.Conflict, "the document as it was is not there any more")
	}
	d, err := s.docs.At(in, r.newest(), n, hash)
	if err == nil && d == nil {
		err = errBusy
	}
	return d, err
}

// merge takes back a change of the document that others came after: where they touched other nodes, what it did goes and what
// they did stays.
func (s *Service) merge(tx *db.Tx, id, name string, before, after, now json.RawMessage) (json.RawMessage, error) {
	if name != "content" {
		return nil, nil
	}
	r := &row{}
	if err := tx.One(`SELECT `+columns+` FROM block b WHERE b.id = $1`, []any{id}, r.dest()...); err != nil {
		return nil, err
	}
	var docs [3]*doc.Doc
	for i, v := range []json.RawMessage{after, before, now} {
		var hash string
		if err := json.Unmarshal(v, &hash); err != nil {
			return nil, err
		}
		d, err := s.withContent(past.Inside(tx), r, hash)
		if err == nil { // titles are a field of their own
			d, err = d.WithTitle("")
		}
		if err != nil {
			return nil, err
		}
		docs[i] = d
	}
	d, err := version.Merge(docs[0], docs[1], docs[2])
	if err != nil {
		return nil, err
	}
	hash := d.ContentHash()
	s.docs.Docs.Put(merged(hash), d)
	return json.Marshal(hash)
}

// setField writes one recorded field back, beside the document.
func setField(tx *db.Tx, r *row, name string, v json.RawMessage) error {
	switch name {
	case "content", "title":
		return nil
	case "type", "external_ref":
		return fault.New(fault.Conflict, "%s of a block never changes", name)
	case "pinned":
		if r.Pinned = 0; string(v) == "true" {
			r.Pinned = 1
		}
		return nil
	case change.State:
		if string(v) != `"`+change.Trashed+`"` {
			r.TrashedAt = nil
		} else if r.TrashedAt == nil {
			r.TrashedAt = &tx.Now
		}
		return nil
	case "tags":
		return setBack(tx, r, relTag, v)
	case "links":
		return setBack(tx, r, relMention, v)
	}
	key, ok := strings.CutPrefix(name, propertyField(""))
	if !ok {
		return fmt.Errorf("block %s: a recorded field %q is not known", r.ID, name)
	}
	var p *stored
	if err := json.Unmarshal(v, &p); err != nil {
		return err
	}
	return keep(tx, r, key, p)
}

// setBack sets tags or links back, as far as they may still be.
func setBack(tx *db.Tx, r *row, relKind string, v json.RawMessage) error {
	var ids []string
	if err := json.Unmarshal(v, &ids); err != nil {
		return err
	}
	if err := lockHeap(tx, r.Heap); err != nil {
		return err
	}
	have, err := setTo(tx.Query, r.ID, relKind)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if slices.Contains(have, id) {
			continue
		}
		to := &row{}
		if err := tx.One(`SELECT `+columns+` FROM block b WHERE b.id = $1`, []any{id}, to.dest()...); err != nil {
			if db.IsNone(err) {
				return fault.New(fault.Conflict, "a block that it was related to is gone for good")
			}
			return err
		}
		if err := mayRelate(tx, r, to, relKind); err != nil {
			return err
		}
	}
	return relate(tx, r.ID, relKind, ids)
}
