package signin

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"

	"cairn/internal/audit"
	"cairn/internal/db"
	"cairn/internal/fault"
)

// Proof answers a challenge in exactly one way.
type Proof struct {
	Challenge string          `json:"challenge"`
	Phrase    *PhraseProof    `json:"phrase,omitempty"`
	Passkey   json.RawMessage `json:"passkey,omitempty"` // what navigator.credentials.get gave, as JSON
	Code      string          `json:"code,omitempty"`
}

// PhraseProof is the public key of a phrase and its signature of a challenge's message, both in hex.
type PhraseProof struct {
	Public    string `json:"public"`
	Signature string `json:"signature"`
}

// Person is somebody who has shown who they are.
type Person struct {
	Account string `json:"account"`
	Name    string `json:"name"`
	Method  string `json:"method"`  // phrase, passkey or code
	Waiting bool   `json:"waiting"` // for an admin to admit them
}

// shown is a proof that holds, before its challenge is used up.
type shown struct {
	challenge, account, method string
	credential, before, after  string // of a passkey: the data that was checked, and what to keep instead
}

// Prove checks a proof for a purpose and an origin, uses up its challenge, and says who it is. An account that is disabled
// gets the answer of a wrong proof.
func (s *Service) Prove(ctx context.Context, purpose, origin string, p Proof, from From) (person Person, err error) {
	sh, err := s.check(ctx, purpose, origin, p, from)
	if err != nil {
		return Person{}, err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) (err error) {
		if person, err = sh.use(tx); err != nil || purpose == "sign-in" { // that one is recorded with its session
			return err
		}
		return audit.WriteEvent(from.as(ctx, person.Account), tx, audit.AuthAttempt, purpose+" by "+person.Method)
	})
	if err != nil {
		return Person{}, s.wrong(ctx, from, purpose, err)
	}
	return person, nil
}

// ProveAgain lets the signed-in person in ctx show anew who they are, by a proof for the purpose "prove:SESSION".
func (s *Service) ProveAgain(ctx context.Context, origin string, p Proof, from From) error {
	c, err := s.person(ctx, false)
	if err != nil {
		return err
	}
	if c.Session == "" {
		return fault.New(fault.Invalid, "there is no session to prove again: sign in on the web")
	}
	purpose := "prove:" + c.Session
	sh, err := s.check(ctx, purpose, origin, p, from)
	if err != nil {
		return err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if sh.account != c.Account {
			return failed()
		}
		if _, err := sh.use(tx); err != nil {
			return err
		}
		n, err := tx.Exec(`UPDATE session SET proved_at = $3 WHERE id = $1 AND account = $2`, c.Session, c.Account, tx.Now)
		if err == nil && n == 0 {
			err = failed()
		}
		return err
	})
	if err != nil {
		return s.wrong(ctx, from, purpose, err)
	}
	c.Proved = s.db.Now()
	return nil
}

// check says whose proof it is, if it holds. Of a mailed code it counts the try first, so that guesses made at once count
// too.
func (s *Service) check(ctx context.Context, purpose, origin string, p Proof, from From) (sh shown, err error) {
	n := 0
	for _, given := range []bool{p.Phrase != nil, len(p.Passkey) > 0, p.Code != ""} {
		if given {
			n++
		}
	}
	if n != 1 {
		return sh, fault.Bad("proof", "must hold exactly one of phrase, passkey and code")
	}
	if err := s.slow(ctx, from); err != nil {
		return sh, err
	}
	data, err := s.read(ctx, p.Challenge, purpose, origin)
	if err == nil {
		switch {
		case p.Phrase != nil:
			sh, err = s.byPhrase(ctx, purpose, data, *p.Phrase)
		case p.Code != "":
			sh, err = s.byCode(ctx, p.Challenge, data, p.Code)
		default:
			sh, err = s.byPasskey(ctx, data, p.Passkey)
		}
	}
	if err != nil {
		return sh, s.wrong(ctx, from, purpose, err)
	}
	sh.challenge = p.Challenge
	return sh, nil
}

// use makes a proof count as part of a write: its challenge goes, its credential is marked as used.
func (sh shown) use(tx *db.Tx) (Person, error) {
	p := Person{Account: sh.account, Method: sh.method}
	if err := use(tx, sh.challenge); err != nil {
		return p, err
	}
	var disabled, admitted *int64
	err := tx.One(`SELECT name, disabled_at, admitted_at FROM account WHERE id = $1`, []any{sh.account}, &p.Name, &disabled, &admitted)
	if db.IsNone(err) || err == nil && disabled != nil {
		return p, failed()
	}
	if err != nil {
		return p, err
	}
	p.Waiting = admitted == nil
	if sh.credential == "" {
		return p, nil
	}
	n, err := tx.Exec(`UPDATE credential SET last_used_at = $2, data = $3 WHERE id = $1 AND data = $4`, sh.credential, tx.Now, sh.after, sh.before)
	if err == nil && n == 0 {
		err = failed()
	}
	return p, err
}

// signed checks a phrase's signature of a challenge.
func signed(purpose string, data stored, p PhraseProof) bool {
	public, perr := hex.DecodeString(p.Public)
	signature, serr := hex.DecodeString(p.Signature)
	if perr != nil || serr != nil || len(public) != ed25519.PublicKeySize || len(signature) != ed25519.SignatureSize || data.Nonce == "" {
		return false
	}
	return ed25519.Verify(public, []byte(message(purpose, data.Origin, data.Nonce)), signature)
}

func (s *Service) byPhrase(ctx context.Context, purpose string, data stored, p PhraseProof) (shown, error) {
	sh := shown{method: Phrase}
	if !signed(purpose, data, p) {
		return sh, failed()
	}
	err := s.db.One(ctx, `SELECT id, account, data FROM credential WHERE kind = 'phrase' AND public = $1`, []any{lower(p.Public)}, &sh.credential, &sh.account, &sh.before)
	if db.IsNone(err) {
		err = failed()
	}
	sh.after = sh.before
	return sh, err
}
