package block

import (
	"context"

	"cairn/internal/block/purge"
	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/who"
)

type purged struct {
	ID     string `json:"id"`
	Result string `json:"result"` // purged
}

func (s *Service) purge(ctx context.Context, in idIn) (purged, error) {
	var out purged
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		at, err := load(ctx, tx.One, "block_id", in.BlockID, "")
		if err != nil {
			return err
		}
		if err := lockHeap(tx, at.Heap); err != nil { // what is whose parent changes
			return err
		}
		r, err := load(ctx, tx.One, "block_id", in.BlockID, tx.ForUpdate())
		if err != nil {
			return err
		}
		if err := r.writable(who.From(ctx), true); err != nil {
			return err
		}
		if r.TrashedAt == nil {
			return fault.New(fault.Conflict, "the block isn't in the trash: delete_block first. Only what is in the trash can be deleted for good")
		}
		for _, also := range s.Purged {
			if err := also(ctx, tx, r.Heap, r.ID); err != nil {
				return err
			}
		}
		if err := purge.Block(tx, r.Heap, r.ID); err != nil {
			return err
		}
		out = purged{r.ID, "purged"}
		change.Record(ctx, tx, change.Entry{Heap: r.Heap, Kind: kind, Thing: r.ID, Effect: change.Purge, Before: change.Fields{change.State: change.Trashed},
			After: change.Fields{change.State: "purged"}, Summary: "Deleted a " + r.Type + " for good"})
		return nil
	})
	return out, err
}
