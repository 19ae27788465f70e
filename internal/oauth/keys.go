package oauth

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"cairn/internal/account"
	"cairn/internal/audit"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/who"
)

const (
	keyLife   = 30 * 24 * time.Hour // after which a new key signs
	keysFresh = time.Minute         // how long a replica goes on with the keys it read
)

// key is a signing key. retired keys verify until what they signed has expired.
type key struct {
	id      string
	private ed25519.PrivateKey
	created int64
	retired bool
}

type keySet struct {
	list []key // newest first
	read int64
}

// tokenType is the type of access tokens (RFC 9068 section 2.1).
const tokenType = "at+jwt"

// claims are those of an access token (RFC 9068). go-jose's JSON is case-sensitive, so each has its tag.
type claims struct {
	Issuer     string `json:"iss"`
	Subject    string `json:"sub"`
	Audience   string `json:"aud"`
	Client     string `json:"client_id"`
	Scope      string `json:"scope"`
	Expires    int64  `json:"exp"`
	Issued     int64  `json:"iat"`
	ID         string `json:"jti"`
	Connection string `json:"connection"`

	key string
}

// signingKeys gives the keys, read anew when they are older than keysFresh or again is set. Where there is none, one is made.
func (s *Service) signingKeys(ctx context.Context, again bool) ([]key, error) {
	now := s.db.Now()
	s.mu.Lock()
	have := s.keys
	s.mu.Unlock()
	if len(have.list) > 0 && !again && now-have.read < keysFresh.Microseconds() {
		return have.list, nil
	}
	list, err := s.readKeys(ctx)
	if err == nil && (len(list) == 0 || list[0].retired) {
		if err = s.db.Write(ctx, s.insertKey); err == nil {
			list, err = s.readKeys(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.keys = keySet{list, now}
	s.mu.Unlock()
	return list, nil
}

func (s *Service) readKeys(ctx context.Context) ([]key, error) {
	rows, err := s.db.Query(ctx, `SELECT id, private, created_at, retired_at FROM oauth_key ORDER BY CASE WHEN retired_at IS NULL THEN 0 ELSE 1 END, created_at DESC, id DESC`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []key
	for rows.Next() {
		var k key
		var text string
		var retired *int64
		if err := rows.Scan(&k.id, &text, &k.created, &retired); err != nil {
			return nil, err
		}
		seed, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || len(seed) != ed25519.SeedSize {
			return nil, fmt.Errorf("the signing key %s is damaged", k.id)
		}
		k.private, k.retired = ed25519.NewKeyFromSeed(seed), retired != nil
		list = append(list, k)
	}
	return list, rows.Err()
}

func (s *Service) insertKey(tx *db.Tx) error {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO oauth_key (id, private, created_at) VALUES ($1, $2, $3)`, db.NewID(), base64.RawURLEncoding.EncodeToString(private.Seed()), tx.Now)
	return err
}

type rotateIn struct {
	Revoke bool `json:"revoke" jsonschema:"tokens signed with older keys are dead at once"`
}

type rotateOut struct {
	Result string `json:"result"`
}

func (s *Service) rotate(ctx context.Context, in rotateIn) (rotateOut, error) {
	if !who.From(ctx).Admin {
		return rotateOut{}, fault.New(fault.Denied, "only the server's admin may do that")
	}
	err := s.db.Write(ctx, func(tx *db.Tx) error {
		q := `UPDATE oauth_key SET retired_at = $1 WHERE retired_at IS NULL`
		args := []any{tx.Now}
		if in.Revoke {
			q, args = `DELETE FROM oauth_key`, nil
		}
		if _, err := tx.Exec(q, args...); err != nil {
			return err
		}
		if err := s.insertKey(tx); err != nil {
			return err
		}
		return audit.WriteEvent(ctx, tx, "signingKeyRotated", fmt.Sprintf("revoke %v", in.Revoke))
	})
	if err != nil {
		return rotateOut{}, err
	}
	_, err = s.signingKeys(ctx, true)
	return rotateOut{"updated"}, err
}

// rotateIfOld retires a key that has signed for its time.
func (s *Service) rotateIfOld(_ context.Context, tx *db.Tx) error {
	n, err := tx.Exec(`UPDATE oauth_key SET retired_at = $1 WHERE retired_at IS NULL AND created_at < $2`, tx.Now, tx.Now-keyLife.Microseconds())
	if err != nil || n == 0 {
		return err
	}
	return s.insertKey(tx)
}

// JWKS is the key set document (RFC 7517) with which anyone can check access tokens.
func (s *Service) JWKS(ctx context.Context) ([]byte, error) {
	keys, err := s.signingKeys(ctx, false)
	if err != nil {
		return nil, err
	}
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, k := range keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.private.Public(), KeyID: k.id, Algorithm: string(jose.EdDSA), Use: "sig"})
	}
	return json.Marshal(set)
}

// sign makes an access token with the newest key.
func sign(keys []key, c claims) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: keys[0].private, KeyID: keys[0].id}}, (&jose.SignerOptions{}).WithType(tokenType))
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(body)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// mostVerified tokens are remembered as checked: the signature takes longer than the rest of a call's look-up.
const mostVerified = 4096

// verify gives the claims of an access token whose signature is good. Whether it has expired, is for us, and its connection
// stands, is asked on each call.
func (s *Service) verify(ctx context.Context, token string) (claims, error) {
	digest := sha256.Sum256([]byte(token))
	keys, err := s.signingKeys(ctx, false)
	if err != nil {
		return claims{}, err
	}
	s.mu.Lock()
	c, known := s.verified[digest]
	s.mu.Unlock()
	if known && find(keys, c.key) != nil {
		return c, nil
	}
	bad := fault.New(fault.TokenInvalid, "The token is not valid")
	jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil || len(jws.Signatures) != 1 {
		return claims{}, bad
	}
	header := jws.Signatures[0].Protected
	if typ, _ := header.ExtraHeaders[jose.HeaderType].(string); !strings.EqualFold(typ, tokenType) {
		return claims{}, bad
	}
	k := find(keys, header.KeyID)
	if k == nil && len(header.KeyID) == len(db.NewID()) { // another replica may have made it a moment ago
		if keys, err = s.reread(ctx); err != nil {
			return claims{}, err
		}
		k = find(keys, header.KeyID)
	}
	if k == nil {
		return claims{}, bad
	}
	body, err := jws.Verify(k.private.Public())
	if err != nil || json.Unmarshal(body, &c) != nil {
		return claims{}, bad
	}
	c.key = k.id
	s.mu.Lock()
	if len(s.verified) >= mostVerified {
		clear(s.verified)
	}
	s.verified[digest] = c
	s.mu.Unlock()
	return c, nil
}

// reread reads the keys again, at most once a second: tokens with made-up key ids must not cost a query each.
func (s *Service) reread(ctx context.Context) ([]key, error) {
	s.mu.Lock()
	have := s.keys
	s.mu.Unlock()
	if s.db.Now()-have.read < time.Second.Microseconds() {
		return have.list, nil
	}
	return s.signingKeys(ctx, true)
}

func find(keys []key, id string) *key {
	for i := range keys {
		if keys[i].id == id {
			return &keys[i]
		}
	}
	return nil
}

// ByToken gives the caller behind an access token. It is for this server's resource alone, and what it may is what its grant
// says at this moment.
func (s *Service) ByToken(ctx context.Context, token, _ string) (*who.Caller, error) {
	c, err := s.verify(ctx, token)
	if err != nil {
		return nil, err
	}
	if c.Issuer != s.Issuer() || c.Audience != s.Resource() || !account.HasScope(c.Scope, account.ScopeRead) {
		return nil, fault.New(fault.TokenInvalid, "The token is not valid")
	}
	if c.Expires <= s.db.Now()/1e6 {
		return nil, fault.New(fault.TokenExpired, "The token has expired")
	}
	return s.accounts.ByConnection(ctx, c.Connection, c.Scope)
}
