// Package purge takes blocks out of the database for good. Who may do that, and to what, is asked before.
package purge

import (
	"slices"

	"cairn/internal/block/filter"
	"cairn/internal/change"
	"cairn/internal/db"
	"cairn/internal/search"
)

// Block takes away a block with all that hangs on it: its document and versions, its properties, its relations both ways, what
// search knows of it, and its texts in the record of changes. What other blocks say of it stays theirs: a mention of it leads
// nowhere, and its children lose a parent.
func Block(tx *db.Tx, heap, id string) error {
	var ends []string
	for _, q := range []string{`DELETE FROM relation WHERE from_block = $1 RETURNING to_block`, `DELETE FROM relation WHERE to_block = $1 RETURNING from_block`} {
		list, err := db.Column(tx.Query(q, id))
		if err != nil {
			return err
		}
		ends = append(ends, list...)
	}
	slices.Sort(ends)
	if err := filter.Unlinked(tx, slices.Compact(ends)...); err != nil {
		return err
	}
	for _, q := range []string{`DELETE FROM property WHERE block = $1`, `DELETE FROM block_redo WHERE block = $1`, `DELETE FROM block_version WHERE block = $1`,
		`DELETE FROM block_content WHERE block = $1`, `DELETE FROM block WHERE id = $1`} {
		if _, err := tx.Exec(q, id); err != nil {
			return err
		}
	}
	search.Remove(tx, heap, id)
	return change.Forget(tx, id)
}
