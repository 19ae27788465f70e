package oauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"cairn/internal/account"
	"cairn/internal/audit"
	"cairn/internal/db"
	"cairn/internal/fault"
)

const (
	invalidGrant   = "invalid_grant"
	invalidRequest = "invalid_request"
)

// Tokens is the answer of the token endpoint (RFC 6749 section 5.1).
type Tokens struct {
	Access    string `json:"access_token"`
	Type      string `json:"token_type"`
	ExpiresIn int64  `json:"expires_in"` // seconds
	Scope     string `json:"scope"`      // as granted
	Refresh   string `json:"refresh_token,omitempty"`
}

// Exchange answers a token request (RFC 6749 sections 4.1.3 and 6). Its faults are *Error.
func (s *Service) Exchange(ctx context.Context, form url.Values, from From) (Tokens, error) {
	for name, values := range form {
		if len(values) > 1 && name != "resource" {
			return Tokens{}, refuse(http.StatusBadRequest, invalidRequest, name+" is given more than once")
		}
	}
	if form.Get("client_id") == "" {
		return Tokens{}, refuse(http.StatusUnauthorized, errUnknownClient, "client_id is missing")
	}
	grant := form.Get("grant_type")
	if grant != grantCode && grant != grantRefresh {
		return Tokens{}, refuse(http.StatusBadRequest, "unsupported_grant_type", "grant_type must be authorization_code or refresh_token")
	}
	c, err := s.client(ctx, form.Get("client_id"), false)
	if err != nil {
		return Tokens{}, err
	}
	if slices.ContainsFunc(form["resource"], func(r string) bool { return !s.ours(r) }) {
		return Tokens{}, refuse(http.StatusBadRequest, "invalid_target", "resource must be "+s.Resource())
	}
	if grant == grantCode {
		return s.redeem(ctx, c, form, from)
	}
	return s.refresh(ctx, c, form, from)
}

var verifierForm = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`)

// redeem gives tokens for an authorization code. A code that comes again ends what it led to: two parties have it.
func (s *Service) redeem(ctx context.Context, c Client, form url.Values, from From) (Tokens, error) {
	bad := refuse(http.StatusBadRequest, invalidGrant, "the code is wrong, used up or too old, or isn't this client's")
	a, err := s.find(ctx, `code = $1`, sum(form.Get("code")))
	if db.IsNone(err) || err == nil && a.client != c.ID {
		return Tokens{}, bad
	}
	if err != nil {
		return Tokens{}, err
	}
	verifier := form.Get("code_verifier")
	digest := sha256.Sum256([]byte(verifier))
	switch {
	case !verifierForm.MatchString(verifier) || subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(digest[:])), []byte(a.Challenge)) != 1:
		return Tokens{}, refuse(http.StatusBadRequest, invalidGrant, "code_verifier doesn't fit the code_challenge")
	case form.Has("redirect_uri") && form.Get("redirect_uri") != a.Redirect:
		return Tokens{}, refuse(http.StatusBadRequest, invalidGrant, "redirect_uri isn't the one that the code was sent to")
	}
	var d decision
	if a.decision == nil || json.Unmarshal([]byte(*a.decision), &d) != nil {
		return Tokens{}, bad
	}
	keys, err := s.signingKeys(ctx, false) // not in the write, which other writes wait for
	if err != nil {
		return Tokens{}, err
	}
	ctx = as(ctx, *a.decidedBy, from)
	var t Tokens
	replayed := false
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		replayed = false
		n, err := tx.Exec(`UPDATE oauth_attempt SET state = 'redeemed', redeemed_at = $2 WHERE id = $1 AND state = 'approved' AND expires_at > $2`, a.id, tx.Now)
		if err != nil {
			return err
		}
		if n == 0 {
			replayed = true
			return s.endReplayed(ctx, tx, a.id)
		}
		connection, scope, err := s.letIn(ctx, tx, a, d)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(`UPDATE oauth_attempt SET connection = $2 WHERE id = $1`, a.id, connection); err != nil {
			return err
		}
		if _, err := tx.Exec(`UPDATE oauth_client SET used_at = $2 WHERE id = $1`, c.ID, tx.Now); err != nil {
			return err
		}
		if d.Stay {
			t.Refresh = random(32)
			if err := s.keepRefresh(tx, t.Refresh, connection); err != nil {
				return err
			}
		}
		t, err = s.access(tx, keys, t, connection, *a.decidedBy, c.ID, scope)
		return err
	})
	if f := fault.From(err); f != nil && f.Kind != fault.Internal && f.Kind != fault.Unavailable {
		return Tokens{}, refuse(http.StatusBadRequest, invalidGrant, "what was granted no longer holds: "+f.Message)
	}
	if err == nil && replayed {
		return Tokens{}, bad
	}
	if err == nil {
		s.tell(a, d)
	}
	return t, err
}

// endReplayed ends the connection that a code led to, when the code comes a second time.
func (s *Service) endReplayed(ctx context.Context, tx *db.Tx, id string) error {
	var connection *string
	if err := tx.One(`SELECT connection FROM oauth_attempt WHERE id = $1`, []any{id}, &connection); err != nil || connection == nil {
		return err
	}
	ended, err := account.EndConnection(tx, *connection, "its code came a second time")
	if err != nil || !ended {
		return err
	}
	return audit.WriteEvent(ctx, tx, audit.RefreshReuse, *connection+" by its code")
}

func (s *Service) keepRefresh(tx *db.Tx, token, connection string) error {
	until := tx.Now + StayLife.Microseconds()
	if _, err := tx.Exec(`INSERT INTO oauth_refresh (hash, connection, created_at, expires_at) VALUES ($1, $2, $3, $4) ON CONFLICT (hash) DO NOTHING`, sum(token), connection, tx.Now, until); err != nil {
		return err
	}
	_, err := tx.Exec(`UPDATE connection SET stay_until = $2 WHERE id = $1`, connection, until)
	return err
}

// access adds an access token to an answer.
func (s *Service) access(tx *db.Tx, keys []key, t Tokens, connection, person, client, scope string) (Tokens, error) {
	now := tx.Wall
	until := now + AccessLife.Microseconds()
	t.Type, t.ExpiresIn, t.Scope = "Bearer", int64(AccessLife.Seconds()), scope
	var err error
	t.Access, err = sign(keys, claims{Issuer: s.Issuer(), Subject: person, Audience: s.Resource(), Client: client, Scope: scope,
		Expires: until / 1e6, Issued: now / 1e6, ID: random(16), Connection: connection})
	if err != nil {
		return t, err
	}
	_, err = tx.Exec(`UPDATE connection SET access_until = CASE WHEN access_until > $2 THEN access_until ELSE $2 END WHERE id = $1`, connection, until)
	return t, err
}

// refresh gives new tokens for a refresh token, which is good once. The same one again within ReuseWindow gets what the first
// got, since clients race and answers get lost; later it ends the whole family, since two parties hold it.
func (s *Service) refresh(ctx context.Context, c Client, form url.Values, from From) (Tokens, error) {
	bad := refuse(http.StatusBadRequest, invalidGrant, "the refresh token is wrong, used up or too old, or isn't this client's; connect again")
	token := form.Get("refresh_token")
	if len(token) != 43 {
		return Tokens{}, bad
	}
	keys, err := s.signingKeys(ctx, false) // not in the write, which other writes wait for
	if err != nil {
		return Tokens{}, err
	}
	var t Tokens
	var refused error
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		t, refused = Tokens{}, nil
		var connection string
		var expires int64
		var used *int64
		err := tx.One(`SELECT connection, expires_at, used_at FROM oauth_refresh WHERE hash = $1`+tx.ForUpdate(), []any{sum(token)}, &connection, &expires, &used)
		if db.IsNone(err) || err == nil && expires <= tx.Now {
			refused = bad
			return nil
		}
		if err != nil {
			return err
		}
		st, err := account.Stands(tx, connection)
		if fault.Is(err, fault.TokenInactive) || err == nil && st.Client != c.ID {
			refused = bad
			return nil
		}
		if err != nil {
			return err
		}
		if used != nil && tx.Now-*used > ReuseWindow.Microseconds() {
			refused = bad
			if _, err := account.EndConnection(tx, connection, "a refresh token came a second time"); err != nil {
				return err
			}
			return audit.WriteEvent(as(ctx, st.Account, from), tx, audit.RefreshReuse, connection)
		}
		scope, err := narrowed(st, form.Get("scope"))
		if err != nil {
			refused = err
			return nil
		}
		if t.Refresh, err = s.successor(tx, token, connection); err != nil {
			return err
		}
		t, err = s.access(tx, keys, t, connection, st.Account, c.ID, scope)
		return err
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		return Tokens{}, err
	}
	return t, nil
}

// successor rotates: it marks a token used and gives the one that follows. The follower is derived, so that only hashes are
// kept; where it is used already too (another process of the client was faster twice), the first unused one is given.
func (s *Service) successor(tx *db.Tx, token, connection string) (string, error) {
	for range 100 {
		n, err := tx.Exec(`UPDATE oauth_refresh SET used_at = $2 WHERE hash = $1 AND used_at IS NULL`, sum(token), tx.Now)
		if err != nil {
			return "", err
		}
		next := s.token("refresh", token)
		if n > 0 {
			return next, s.keepRefresh(tx, next, connection)
		}
		var used *int64
		if err := tx.One(`SELECT used_at FROM oauth_refresh WHERE hash = $1`, []any{sum(next)}, &used); err != nil {
			return "", err
		}
		if used == nil {
			return next, nil
		}
		token = next
	}
	return "", refuse(http.StatusBadRequest, invalidGrant, "the refresh token was used too often; connect again")
}

// narrowed gives the scope of a refreshed access token: what the connection has and its grant still says; less where less is
// asked for, and never more.
func narrowed(st account.Standing, asked string) (string, error) {
	var out []string
	want := known(asked)
	for f := range strings.FieldsSeq(st.Scope) {
		if f == account.ScopeWrite && !st.Write {
			continue
		}
		if strings.TrimSpace(asked) == "" || account.HasScope(want, f) || f == account.ScopeRead {
			out = append(out, f)
		}
	}
	for f := range strings.FieldsSeq(want) {
		if !account.HasScope(st.Scope, f) {
			return "", refuse(http.StatusBadRequest, "invalid_scope", "a refresh never adds scope: send the person to /oauth/authorize for "+f)
		}
	}
	return strings.Join(out, " "), nil
}

// Revoke ends the connection that a refresh or access token belongs to (RFC 7009). A token that isn't known is no fault.
func (s *Service) Revoke(ctx context.Context, form url.Values, from From) error {
	token, client := form.Get("token"), form.Get("client_id")
	if token == "" {
		return refuse(http.StatusBadRequest, invalidRequest, "token is missing")
	}
	var connection string
	if strings.Count(token, ".") == 2 {
		c, err := s.verify(ctx, token)
		if err != nil {
			if fault.Is(err, fault.TokenInvalid) {
				return nil
			}
			return err
		}
		connection = c.Connection
	} else {
		err := s.db.One(ctx, `SELECT connection FROM oauth_refresh WHERE hash = $1`, []any{sum(token)}, &connection)
		if db.IsNone(err) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return s.db.Write(ctx, func(tx *db.Tx) error {
		st, err := account.Stands(tx, connection)
		if fault.Is(err, fault.TokenInactive) {
			return nil
		}
		if err != nil {
			return err
		}
		if client != "" && st.Client != client {
			return refuse(http.StatusUnauthorized, errUnknownClient, "the token isn't this client's")
		}
		if ended, err := account.EndConnection(tx, connection, "its client ended it"); err != nil || !ended {
			return err
		}
		return audit.WriteEvent(as(ctx, st.Account, from), tx, audit.AgentDisconnected, st.Agent+" by its client")
	})
}
