package signin

import (
	"context"
	"crypto/ed25519"
	"crypto/pbkdf2"
	"crypto/sha512"
	"slices"
	"strings"

	"github.com/tyler-smith/go-bip39/wordlists"
	"golang.org/x/text/unicode/norm"

	"cairn/internal/audit"
	"cairn/internal/db"
	"cairn/internal/fault"
)

// Words is BIP39's English list, which a phrase's twelve words are from.
func Words() []string { return slices.Clone(wordlists.English) }

// PhraseKey gives the key of a phrase, as the browser makes it: the first half of BIP39's seed with the passphrase "cairn" is
// an Ed25519 seed. The server never sees words; this is for tests and tools.
func PhraseKey(words string) ed25519.PrivateKey {
	text := norm.NFKD.String(strings.Join(strings.Fields(words), " "))
	seed, err := pbkdf2.Key(sha512.New, text, []byte("mnemonic"+"cairn"), 2048, 64)
	if err != nil { // only a key length out of range gives one
		panic(err)
	}
	return ed25519.NewKeyFromSeed(seed[:ed25519.SeedSize])
}

func lower(hex string) string { return strings.ToLower(hex) }

// setPhrase makes a key the phrase of an account; the one it had goes.
func setPhrase(ctx context.Context, tx *db.Tx, account, public string) error {
	public = lower(public)
	var owner string
	err := tx.One(`SELECT account FROM credential WHERE kind = 'phrase' AND public = $1`, []any{public}, &owner)
	switch {
	case err == nil && owner == account:
		return nil
	case err == nil:
		return phraseTaken()
	case !db.IsNone(err):
		return err
	}
	// Two that replace one phrase at once take turns at the account's row.
	if err := tx.One(`SELECT id FROM account WHERE id = $1`+tx.ForUpdate(), []any{account}, &owner); err != nil {
		return err
	}
	old, err := tx.Exec(`DELETE FROM credential WHERE account = $1 AND kind = 'phrase'`, account)
	if err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO credential (id, account, kind, public, host, name, data, created_at) VALUES ($1, $2, 'phrase', $3, '', 'Phrase', '', $4)`,
		db.NewID(), account, public, tx.Now)
	if db.IsUnique(err) {
		return phraseTaken()
	}
	if err != nil {
		return err
	}
	if old > 0 {
		if err := audit.WriteEvent(ctx, tx, signInRemoved, account+" phrase replaced"); err != nil {
			return err
		}
	}
	return audit.WriteEvent(ctx, tx, signInAdded, account+" phrase")
}

func phraseTaken() error {
	return fault.New(fault.Conflict, "this phrase belongs to an account already: make a new one")
}

// checkNew checks that a challenge for a purpose is signed by a key, whoever's it is.
func (s *Service) checkNew(ctx context.Context, purpose, origin, challenge string, p PhraseProof, from From) error {
	if err := s.slow(ctx, from); err != nil {
		return err
	}
	data, err := s.read(ctx, challenge, purpose, origin)
	if err == nil && !signed(purpose, data, p) {
		err = failed()
	}
	return s.wrong(ctx, from, purpose, err)
}

// AddPhrase gives the person in ctx a new phrase instead of the one they had. The proof, by the new phrase, answers a
// challenge for "add:ACCOUNT".
func (s *Service) AddPhrase(ctx context.Context, origin, challenge string, p PhraseProof, from From) error {
	c, err := s.person(ctx, true)
	if err != nil {
		return err
	}
	if err := s.checkNew(ctx, "add:"+c.Account, origin, challenge, p, from); err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx *db.Tx) error {
		if err := use(tx, challenge); err != nil {
			return err
		}
		return setPhrase(ctx, tx, c.Account, p.Public)
	})
}
