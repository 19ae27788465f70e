package filter

import (
	"slices"

	"cairn/internal/db"
)

// atOnce is how many blocks one statement marks.
const atOnce = 200

// Linked marks those of the blocks that a relation leads from or to, after some were stored.
func Linked(tx *db.Tx, ids ...string) error {
	for part := range slices.Chunk(ids, atOnce) {
		args := db.Args{}
		if _, err := tx.Exec(`UPDATE block SET linked = 1 WHERE linked = 0 AND id IN `+args.List(padded(part))+` AND NOT (`+alone("block")+`)`, args...); err != nil {
			return err
		}
	}
	return nil
}

// Unlinked marks those of the blocks that no relation leads from or to any more, after some were taken away. Two writes that
// each take away one of the last two wait for each other at the block's row: the second one sees that both are gone. They wait
// whatever the mark is, since a third one that marks the block as linked may not be seen yet.
func Unlinked(tx *db.Tx, ids ...string) error {
	for part := range slices.Chunk(ids, atOnce) {
		args := db.Args{}
		list := args.List(padded(part))
		rows, err := tx.Query(`SELECT id FROM block WHERE id IN `+list+` ORDER BY id`+tx.ForEdit(), args...)
		if err != nil {
			return err
		}
		some := rows.Next()
		if err := rows.Close(); err != nil {
			return err
		}
		if !some {
			continue
		}
		if _, err := tx.Exec(`UPDATE block SET linked = 0 WHERE linked = 1 AND id IN `+list+` AND `+alone("block"), args...); err != nil {
			return err
		}
	}
	return nil
}

// alone words that no relation but to files leads from a block, and none to it.
func alone(block string) string {
	return `NOT EXISTS (SELECT 1 FROM relation r WHERE r.from_block = ` + block + `.id AND r.kind <> 'file') AND NOT EXISTS (SELECT 1 FROM relation r WHERE r.to_block = ` + block + `.id)`
}

// padded is db.Padded to the lengths of this package.
func padded(ids []string) []string { return db.Padded(ids, 1, 20, atOnce, Most) }
