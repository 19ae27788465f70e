package signin

import (
	"context"
	"errors"
	"fmt"

	"cairn/internal/db"
)

// Purge deletes challenges and sessions that have expired, a bounded number at a time, and accounts that nobody has admitted
// for 30 days.
func Purge(ctx context.Context, d *db.DB) error {
	for _, table := range []string{"challenge", "session"} {
		for n := int64(5000); n == 5000; {
			err := d.Write(ctx, func(tx *db.Tx) (err error) {
				n, err = tx.Exec(`DELETE FROM `+table+` WHERE id IN (SELECT id FROM `+table+` WHERE expires_at <= $1 LIMIT 5000)`, tx.Now)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	old, err := db.Column(d.Query(ctx, `SELECT id FROM account WHERE admitted_at IS NULL AND created_at < $1 ORDER BY created_at LIMIT 1000`, d.Now()-waitingLasts))
	if err != nil {
		return err
	}
	var failures []error
	for _, id := range old {
		if err := d.Write(ctx, func(tx *db.Tx) error { return forget(tx, id) }); err != nil {
			failures = append(failures, fmt.Errorf("account %s: %w", id, err))
		}
	}
	return errors.Join(failures...)
}

// forget deletes an account that was never admitted, with what it was made with. It has written nothing, since it could not.
func forget(tx *db.Tx, account string) error {
	var id string
	err := tx.One(`SELECT id FROM account WHERE id = $1 AND admitted_at IS NULL`+tx.ForUpdate(), []any{account}, &id)
	if db.IsNone(err) { // admitted just now
		return nil
	}
	if err != nil {
		return err
	}
	for _, q := range []string{
		`DELETE FROM session WHERE account = $1`,
		`DELETE FROM credential WHERE account = $1`,
		`DELETE FROM challenge WHERE account = $1`,
		`DELETE FROM invite WHERE account = $1 OR heap IN (SELECT id FROM heap WHERE owner = $1)`,
		`DELETE FROM member WHERE account = $1 OR heap IN (SELECT id FROM heap WHERE owner = $1)`,
		`DELETE FROM heap WHERE owner = $1`,
		`DELETE FROM account WHERE id = $1`,
	} {
		if _, err := tx.Exec(q, account); err != nil {
			return err
		}
	}
	return nil
}
