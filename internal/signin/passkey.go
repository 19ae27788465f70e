package signin

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/netip"
	"net/url"
	"strings"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"cairn/internal/audit"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/who"
)

const (
	mostPasskeys  = 20
	passkeyBytes  = 64 << 10 // of what a browser sends
	openPasskeys  = 5        // registrations begun and not finished
	passkeyFields = 300      // characters of a passkey's name
)

// passkeysAt says why a page can't have passkeys, or nil. They are bound to a host name, and browsers give them to pages by
// https and to localhost alone.
func (s *Service) passkeysAt(origin string) error {
	u, err := url.Parse(origin)
	if err != nil {
		return fault.Bad("origin", "is %q, must be such as https://cairn.example.org", clip(origin))
	}
	host := u.Hostname()
	local := host == "localhost" || strings.HasSuffix(host, ".localhost")
	switch _, err := netip.ParseAddr(host); {
	case err == nil:
		return fault.Bad("origin", "is %q: an IP address can't have passkeys; use the server by its name, or by http://localhost on the machine itself", clip(origin))
	case local:
		return nil
	case u.Scheme != "https":
		return fault.Bad("origin", "is %q: browsers have passkeys for https pages only", clip(origin))
	case origin != s.public.Scheme+"://"+s.public.Host:
		return fault.Bad("origin", "is %q: passkeys are for %s, the server's PUBLIC_URL", clip(origin), s.public.Scheme+"://"+s.public.Host)
	}
	return nil
}

// relying gives the checker of passkeys for an origin.
func relying(origin string) (*webauthn.WebAuthn, error) {
	u, err := url.Parse(origin)
	if err != nil {
		return nil, err
	}
	required := true
	return webauthn.New(&webauthn.Config{RPID: u.Hostname(), RPDisplayName: "Cairn", RPOrigins: []string{origin},
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{RequireResidentKey: &required, ResidentKey: protocol.ResidentKeyRequirementRequired,
			UserVerification: protocol.VerificationPreferred},
		// Password managers tell more than they are asked.
		ExtensionsUnsolicitedOutputPolicy: protocol.UnsolicitedOutputPolicyIgnore})
}

// holder is an account as the passkey library wants to see it. The user handle is the account's id.
type holder struct {
	id, name string
	keys     []webauthn.Credential
}

func (h holder) WebAuthnID() []byte                         { return []byte(h.id) }
func (h holder) WebAuthnName() string                       { return h.name }
func (h holder) WebAuthnDisplayName() string                { return h.name }
func (h holder) WebAuthnCredentials() []webauthn.Credential { return h.keys }

// askPasskey makes the options of a sign-in by passkey and what must be kept to check the answer.
func (s *Service) askPasskey(origin string) (json.RawMessage, *webauthn.SessionData, error) {
	w, err := relying(origin)
	if err != nil {
		return nil, nil, err
	}
	ask, keep, err := w.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationPreferred))
	if err != nil {
		return nil, nil, err
	}
	b, err := json.Marshal(ask)
	return b, keep, err
}

func (s *Service) byPasskey(ctx context.Context, data stored, answer json.RawMessage) (shown, error) {
	sh := shown{method: Passkey}
	if data.Passkey == nil || len(answer) > passkeyBytes {
		return sh, failed()
	}
	w, err := relying(data.Origin)
	if err != nil {
		return sh, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(answer)
	if err != nil {
		return sh, failed()
	}
	var broken error // of the database, which the library would hide
	find := func(rawID, handle []byte) (webauthn.User, error) {
		h := holder{id: string(handle)}
		if !token(h.id) {
			return nil, failed()
		}
		err := s.db.One(ctx, `SELECT id, account, data FROM credential WHERE kind = 'passkey' AND public = $1 AND account = $2 AND host = $3`,
			[]any{base64.RawURLEncoding.EncodeToString(rawID), h.id, data.Passkey.RelyingPartyID}, &sh.credential, &sh.account, &sh.before)
		if err != nil {
			if !db.IsNone(err) {
				broken = err
			}
			return nil, err
		}
		var key webauthn.Credential
		if err := json.Unmarshal([]byte(sh.before), &key); err != nil {
			broken = err
			return nil, err
		}
		h.keys = []webauthn.Credential{key}
		return h, nil
	}
	_, key, err := w.ValidatePasskeyLogin(find, *data.Passkey, parsed)
	switch {
	case broken != nil:
		return sh, broken
	case err != nil:
		return sh, failed()
	case key.Authenticator.CloneWarning: // its counter went back: there may be a copy of it
		s.log.Warn("a passkey's counter went back: it may have been copied, and was refused", "account", sh.account, "credential", sh.credential)
		return sh, failed()
	}
	after, err := json.Marshal(key)
	sh.after = string(after)
	return sh, err
}

// BeginPasskey makes the options of navigator.credentials.create, {"publicKey": ...}, for the person in ctx.
func (s *Service) BeginPasskey(ctx context.Context, origin string) (challenge string, options json.RawMessage, err error) {
	c, err := s.person(ctx, true)
	if err != nil {
		return "", nil, err
	}
	if err := checkOrigin(origin); err != nil {
		return "", nil, err
	}
	if err := s.passkeysAt(origin); err != nil {
		return "", nil, err
	}
	w, err := relying(origin)
	if err != nil {
		return "", nil, err
	}
	h, err := s.holder(ctx, c, w.Config.RPID)
	if err != nil {
		return "", nil, err
	}
	ask, keep, err := w.BeginRegistration(h, webauthn.WithExclusions(webauthn.Credentials(h.keys).CredentialDescriptors()))
	if err != nil {
		return "", nil, err
	}
	if options, err = json.Marshal(ask); err != nil {
		return "", nil, err
	}
	challenge = db.NewID()
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		purpose := passkeyPurpose + c.Account
		if err := insertChallenge(tx, challenge, purpose, c.Account, stored{Origin: origin, Passkey: keep}, tx.Now+browserLasts); err != nil {
			return err
		}
		return keepNewest(tx, c.Account, purpose, openPasskeys)
	})
	return challenge, options, err
}

// holder gives a person with their passkeys for a host.
func (s *Service) holder(ctx context.Context, c *who.Caller, host string) (holder, error) {
	h := holder{id: c.Account, name: c.AccountName}
	rows, err := s.db.Query(ctx, `SELECT data FROM credential WHERE account = $1 AND kind = 'passkey' AND host = $2 ORDER BY created_at, id`, c.Account, host)
	if err != nil {
		return h, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		var key webauthn.Credential
		if err := rows.Scan(&text); err != nil {
			return h, err
		}
		if err := json.Unmarshal([]byte(text), &key); err != nil {
			return h, err
		}
		h.keys = append(h.keys, key)
	}
	return h, rows.Err()
}

// FinishPasskey keeps the passkey that navigator.credentials.create made, and gives its id among the ways to sign in.
func (s *Service) FinishPasskey(ctx context.Context, origin, challenge, name string, answer json.RawMessage) (id string, err error) {
	c, err := s.person(ctx, true)
	if err != nil {
		return "", err
	}
	if name = strings.TrimSpace(name); name == "" {
		name = "Passkey"
	}
	if !plain(name, passkeyFields) {
		return "", fault.Bad("name", "must be at most %d characters without control characters", passkeyFields)
	}
	key, host, err := s.madePasskey(ctx, c, origin, challenge, answer)
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(key)
	if err != nil {
		return "", err
	}
	id = db.NewID()
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if err := use(tx, challenge); err != nil {
			return err
		}
		var n int
		if err := tx.One(`SELECT count(*) FROM credential WHERE account = $1 AND kind = 'passkey'`, []any{c.Account}, &n); err != nil {
			return err
		}
		if n >= mostPasskeys {
			return fault.New(fault.Conflict, "the account has %d passkeys, which is the most: remove one first", n)
		}
		_, err := tx.Exec(`INSERT INTO credential (id, account, kind, public, host, name, data, created_at) VALUES ($1, $2, 'passkey', $3, $4, $5, $6, $7)`,
			id, c.Account, base64.RawURLEncoding.EncodeToString(key.ID), host, name, string(data), tx.Now)
		if db.IsUnique(err) {
			return fault.New(fault.Conflict, "this passkey belongs to an account already: make a new one")
		}
		if err != nil {
			return err
		}
		return audit.WriteEvent(ctx, tx, signInAdded, c.Account+" passkey "+id)
	})
	return id, err
}

// madePasskey checks a new passkey against the challenge that it was made for.
func (s *Service) madePasskey(ctx context.Context, c *who.Caller, origin, challenge string, answer json.RawMessage) (*webauthn.Credential, string, error) {
	if !token(challenge) || len(answer) > passkeyBytes {
		return nil, "", failed()
	}
	var text string
	err := s.db.One(ctx, `SELECT data FROM challenge WHERE id = $1 AND purpose = $2 AND expires_at > $3`, []any{challenge, passkeyPurpose + c.Account, s.db.Now()}, &text)
	if db.IsNone(err) {
		return nil, "", failed()
	}
	if err != nil {
		return nil, "", err
	}
	var data stored
	if err := json.Unmarshal([]byte(text), &data); err != nil {
		return nil, "", err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(answer)
	if err != nil || data.Passkey == nil || data.Origin != origin {
		return nil, "", failed()
	}
	w, err := relying(origin)
	if err != nil {
		return nil, "", err
	}
	key, err := w.CreateCredential(holder{id: c.Account, name: c.AccountName}, *data.Passkey, parsed)
	if err != nil {
		return nil, "", failed()
	}
	return key, w.Config.RPID, nil
}
