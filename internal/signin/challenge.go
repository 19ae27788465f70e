package signin

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/go-webauthn/webauthn/webauthn"

	"cairn/internal/db"
	"cairn/internal/fault"
)

const (
	browserLasts = 5 * minute
	codeLasts    = 10 * minute
	linkLasts    = day
)

// Purposes that only this package makes challenges for; Begin and Prove know none of them.
const (
	linkPurpose     = "set-up-link"
	emailPurpose    = "email:"
	passkeyPurpose  = "add-passkey:"
	mailedPurpose   = "mailed"    // counts the mails of an account
	signedUpPurpose = "signed-up" // counts the sign-ups of an address
)

// Challenge is what a proof answers.
type Challenge struct {
	ID      string `json:"id"`
	Message string `json:"message"` // a phrase's key signs it, as UTF-8
	// Passkey is {"publicKey": ...}, the options of navigator.credentials.get; nil where the host can't have passkeys.
	Passkey   json.RawMessage `json:"passkey"`
	ExpiresAt int64           `json:"expires_at"` // microseconds since 1970 UTC
}

// stored is the data of a challenge.
type stored struct {
	Origin  string                `json:"origin,omitempty"`
	Nonce   string                `json:"nonce,omitempty"`
	Passkey *webauthn.SessionData `json:"passkey,omitempty"`
	Code    string                `json:"code,omitempty"`  // salted hash
	Email   string                `json:"email,omitempty"` // the address that the code confirms
}

// message is what a phrase's key signs.
func message(purpose, origin, nonce string) string {
	return strings.Join([]string{"Cairn", purpose, origin, nonce}, "\n")
}

// Begin makes a challenge for a purpose, to be answered once, within five minutes, from a page of origin.
func (s *Service) Begin(ctx context.Context, purpose, origin string) (Challenge, error) {
	if err := checkPurpose(purpose); err != nil {
		return Challenge{}, err
	}
	if err := checkOrigin(origin); err != nil {
		return Challenge{}, err
	}
	data := stored{Origin: origin, Nonce: random()}
	c := Challenge{ID: db.NewID(), Message: message(purpose, origin, data.Nonce)}
	if s.passkeysAt(origin) == nil {
		var err error
		if c.Passkey, data.Passkey, err = s.askPasskey(origin); err != nil {
			return Challenge{}, err
		}
	}
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		c.ExpiresAt = tx.Now + browserLasts
		if err := insertChallenge(tx, c.ID, purpose, "", data, c.ExpiresAt); err != nil {
			return err
		}
		return s.bound(tx)
	})
	return c, err
}

// bound keeps the number of challenges that anybody can have made near its cap: the oldest go. Counting costs, so not every
// call does.
func (s *Service) bound(tx *db.Tx) error {
	if s.begun.Add(1)%max(s.most/100, 1) != 0 {
		return nil
	}
	_, err := tx.Exec(`DELETE FROM challenge WHERE id IN (SELECT id FROM challenge WHERE account IS NULL ORDER BY created_at DESC, id DESC LIMIT 1000 OFFSET $1)`, s.most)
	return err
}

func insertChallenge(tx *db.Tx, id, purpose, account string, data stored, expires int64) error {
	b, err := json.Marshal(data)
	if err != nil {
		return err
	}
	var owner *string
	if account != "" {
		owner = &account
	}
	_, err = tx.Exec(`INSERT INTO challenge (id, purpose, account, data, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)`, id, purpose, owner, string(b), tx.Now, expires)
	return err
}

// keepNewest lets an account have n open challenges of a purpose; older ones go.
func keepNewest(tx *db.Tx, account, purpose string, n int) error {
	_, err := tx.Exec(`DELETE FROM challenge WHERE id IN (SELECT id FROM challenge WHERE account = $1 AND purpose = $2 ORDER BY created_at DESC, id DESC LIMIT 1000 OFFSET $3)`, account, purpose, n)
	return err
}

// read gives a challenge that is still good for a purpose and an origin.
func (s *Service) read(ctx context.Context, id, purpose, origin string) (stored, error) {
	var data stored
	if !token(id) || checkPurpose(purpose) != nil {
		return data, failed()
	}
	var text, of string
	var expires int64
	err := s.db.One(ctx, `SELECT purpose, data, expires_at FROM challenge WHERE id = $1`, []any{id}, &of, &text, &expires)
	switch {
	case db.IsNone(err):
		return data, failed()
	case err != nil:
		return data, err
	}
	if err := json.Unmarshal([]byte(text), &data); err != nil {
		return data, err
	}
	if of != purpose || data.Origin != origin || expires <= s.db.Now() {
		return data, failed()
	}
	return data, nil
}

// use deletes a challenge; of all that come with it, one succeeds.
func use(tx *db.Tx, id string) error {
	n, err := tx.Exec(`DELETE FROM challenge WHERE id = $1 AND expires_at > $2`, id, tx.Now)
	if err == nil && n == 0 {
		err = failed()
	}
	return err
}

func checkPurpose(purpose string) error {
	if purpose == "" || !plain(purpose, 200) {
		return fault.Bad("purpose", "must be 1 to 200 characters such as sign-in, without control characters")
	}
	reserved := slices.Contains([]string{linkPurpose, mailedPurpose, signedUpPurpose}, purpose) ||
		strings.HasPrefix(purpose, emailPurpose) || strings.HasPrefix(purpose, passkeyPurpose)
	if reserved {
		return fault.Bad("purpose", "is %q, which no proof is asked for: use sign-in or another", purpose)
	}
	return nil
}

// checkOrigin takes what a browser sends as Origin. Whether it is this server's is the edge's to say.
func checkOrigin(origin string) error {
	u, err := url.Parse(origin)
	if err != nil || !plain(origin, 300) || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.Scheme+"://"+u.Host != origin {
		return fault.Bad("origin", "is %q, must be such as https://cairn.example.org", clip(origin))
	}
	return nil
}
