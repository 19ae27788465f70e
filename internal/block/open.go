package block

import (
	"context"

	"cairn/internal/doc"
	"cairn/internal/who"
)

// Head is what the operations beside this package know of a block.
type Head struct {
	ID, Heap, Type, Title, Hash string
	Version                     int64
	Trashed, Writable           bool // Writable: the caller may change it
}

// Open gives a block, also from the trash, and its newest document.
func (s *Service) Open(ctx context.Context, id string) (Head, *doc.Doc, error) {
	r, d, err := s.document(ctx, id)
	if err != nil {
		return Head{}, nil, err
	}
	return Head{r.ID, r.Heap, r.Type, r.Title, r.Hash, r.Version, r.TrashedAt != nil, r.writable(who.From(ctx), false) == nil}, d, nil
}

// OpenVersion gives a document as it was in a version.
func (s *Service) OpenVersion(ctx context.Context, id string, n int64) (*doc.Doc, error) {
	_, d, err := s.at(ctx, id, n)
	return d, err
}

// OpenHash gives the newest version with a hash and its number; nil where the block never had it.
func (s *Service) OpenHash(ctx context.Context, id, hash string) (int64, *doc.Doc, error) {
	r, err := load(ctx, s.one(ctx), "block_id", id, "")
	if err != nil {
		return 0, nil, err
	}
	return s.base(ctx, r, hash)
}
