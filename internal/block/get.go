package block

import (
	"context"
	"strings"

	"cairn/internal/db"
	"cairn/internal/doc"
	"cairn/internal/meaning"
	"cairn/internal/op"
	"cairn/internal/search"
	"cairn/internal/who"
)

// shownRelations is how many relations of each direction get_block shows.
const shownRelations = 50

type getOut struct {
	Block     Block      `json:"block"`
	Relations []Relation `json:"relations"` // out: tags, and blocks mentioned
	Backlinks []Relation `json:"backlinks"` // in: children, and blocks that mention this one
	More      bool       `json:"more_relations,omitempty"`
	Files     []string   `json:"files"` // ids of files that the document shows or links to, at most 200: list_files has all
}

func (s *Service) get(ctx context.Context, in idIn) (getOut, error) {
	out := getOut{Relations: []Relation{}, Backlinks: []Relation{}}
	r, err := load(ctx, s.one(ctx), "block_id", in.BlockID, "")
	if err != nil {
		return out, err
	}
	if out.Block, err = s.whole(ctx, r); err != nil {
		return out, err
	}
	for direction, to := range map[string]*[]Relation{"out": &out.Relations, "in": &out.Backlinks} {
		list, err := s.relations(ctx, r, direction, "", []string{"", "", ""}, shownRelations+1)
		if err != nil {
			return out, err
		}
		if len(list) > shownRelations {
			list, out.More = list[:shownRelations], true
		}
		*to = append(*to, list...)
	}
	out.Files, err = column(s.rows(ctx), `SELECT to_block FROM relation WHERE from_block = $1 AND kind = 'file' LIMIT 200`, r.ID)
	return out, err
}

// Sources are the kinds that search and fetch show.
func (s *Service) Sources() []search.Source {
	return []search.Source{{Kind: kind, Area: area, Cards: s.cards, Page: s.page, Text: s.text, Doc: s.found}}
}

func (s *Service) card(r *row) search.Card {
	title := r.Title
	if strings.TrimSpace(title) == "" {
		title = r.label()
	}
	return search.Card{ID: r.ID, Title: title, URL: s.public() + "/blocks/" + r.ID}
}

func (s *Service) cards(ctx context.Context, ids []string) (map[string]search.Card, error) {
	c, cards := who.From(ctx), map[string]search.Card{}
	found, err := s.byIDs(ctx, ids, live, nil)
	for _, r := range found {
		if _, granted := c.ByID(r.Heap); granted {
			cards[r.ID] = s.card(r)
		}
	}
	return cards, err
}

func (s *Service) page(ctx context.Context, id string) (search.Page, bool, error) {
	r := &row{}
	err := s.db.One(ctx, `SELECT `+columns+` FROM block b WHERE b.id = $1 AND b.trashed_at IS NULL`, []any{strings.ToLower(id)}, r.dest()...)
	if _, granted := who.From(ctx).ByID(r.Heap); db.IsNone(err) || err == nil && !granted {
		return search.Page{}, false, nil
	}
	if err != nil {
		return search.Page{}, false, err
	}
	r, d, err := s.document(ctx, r.ID)
	if err != nil {
		return search.Page{}, false, err
	}
	p := search.Page{Card: s.card(r), Text: d.Plain(), Metadata: map[string]any{"kind": kind, "type": r.Type, "heap": r.Heap, "hash": r.Hash, "external_ref": r.ExternalRef, "updated_at": op.Stamp(r.UpdatedAt)}}
	if p.Text == "" {
		p.Text = p.Title
	}
	return p, true, nil
}

// standing gives a block that isn't in the trash with its document: who may see it is asked where it is found.
func (s *Service) standing(ctx context.Context, id string) (*row, *doc.Doc, error) {
	for range maxTries {
		r := &row{}
		err := s.db.One(ctx, `SELECT `+columns+` FROM block b WHERE b.id = $1 AND b.trashed_at IS NULL`, []any{id}, r.dest()...)
		if db.IsNone(err) {
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if d, err := s.current(s.reader(ctx), r); d != nil || err != nil {
			return r, d, err
		}
	}
	return nil, nil, errBusy
}

// text gives what of a block is embedded.
func (s *Service) text(ctx context.Context, id string) (meaning.Text, bool, error) {
	r, d, err := s.standing(ctx, id)
	if r == nil || err != nil {
		return meaning.Text{}, false, err
	}
	return meaning.Text{Title: r.Title, Body: d.Plain()}, true, nil
}

// found gives what of a block can be found.
func (s *Service) found(ctx context.Context, id string) (search.Doc, bool, error) {
	r, d, err := s.standing(ctx, id)
	if r == nil || err != nil {
		return search.Doc{}, false, err
	}
	return searchable(r, d), true, nil
}
