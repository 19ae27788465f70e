// Package oauth is the authorization server (OAuth 2.1): clients that register, requests to be let in and what people decide
// of them, and the tokens that follow. It speaks in values: the surfaces turn them into HTTP and pages. What an agent may is
// kept and checked in package account; here is how a program comes to speak for one.
package oauth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"cairn/internal/account"
	"cairn/internal/audit"
	"cairn/internal/db"
	"cairn/internal/op"
	"cairn/internal/who"
)

// Lifetimes.
const (
	AttemptLife = 10 * time.Minute    // of a request to be let in, and of its code
	AccessLife  = time.Hour           // of an access token
	StayLife    = 90 * 24 * time.Hour // of a refresh token that isn't used
	ReuseWindow = 10 * time.Second    // in which a refresh token may come again: clients race
)

// Fetcher gets a document from elsewhere: no private addresses, no redirects, at most most bytes.
type Fetcher interface {
	Get(ctx context.Context, address string, most int64) (body []byte, header http.Header, err error)
}

// Service is the authorization server of one Cairn.
type Service struct {
	// Fetcher reads client ID metadata documents; nil = the server doesn't take them.
	Fetcher Fetcher
	// Notify tells an account of something by mail, off the caller's path; nil = it doesn't.
	Notify func(account, subject, body string)
	// Refused hears of each refusal for too many tries; nil = nobody does.
	Refused func(key, address, userAgent string)

	db       *db.DB
	accounts *account.Service
	limiter  *audit.Limiter
	public   *url.URL
	log      *slog.Logger
	secret   []byte

	mu       sync.Mutex
	keys     keySet
	verified map[[sha256.Size]byte]claims
}

// New makes the service. public is the server's PUBLIC_URL, which is read when it is needed, since the port may be known
// late. Call it on an open database: it makes the server's secret where there is none yet.
func New(ctx context.Context, d *db.DB, accounts *account.Service, limiter *audit.Limiter, public *url.URL, log *slog.Logger) (*Service, error) {
	s := &Service{db: d, accounts: accounts, limiter: limiter, public: public, log: log, verified: map[[sha256.Size]byte]claims{}}
	var text string
	err := d.One(ctx, `SELECT value FROM setting WHERE name = 'oauth_secret'`, nil, &text)
	if db.IsNone(err) {
		fresh := random(32)
		err = d.Write(ctx, func(tx *db.Tx) error {
			if _, err := tx.Exec(`INSERT INTO setting (name, value) VALUES ('oauth_secret', $1) ON CONFLICT (name) DO NOTHING`, fresh); err != nil {
				return err
			}
			return tx.One(`SELECT value FROM setting WHERE name = 'oauth_secret'`, nil, &text)
		})
	}
	s.secret = []byte(text)
	return s, err
}

// Issuer is the server's name in discovery documents, tokens and redirects: PUBLIC_URL exactly.
func (s *Service) Issuer() string { return s.public.String() }

// Resource is the one resource that tokens are for.
func (s *Service) Resource() string { return s.Issuer() + "/mcp" }

// ours tells whether a resource indicator (RFC 8707) names the resource: a trailing slash, a query and the case of the
// host don't count.
func (s *Service) ours(resource string) bool {
	u, err := url.Parse(resource)
	if err != nil || u.User != nil || strings.Contains(resource, "#") {
		return false
	}
	host := u.Host
	if p := u.Port(); p == "443" && u.Scheme == "https" || p == "80" && u.Scheme == "http" {
		host = strings.TrimSuffix(host, ":"+p)
	}
	return strings.EqualFold(u.Scheme, s.public.Scheme) && strings.EqualFold(host, s.public.Host) && strings.TrimSuffix(u.Path, "/") == "/mcp"
}

// random gives n random bytes as text that fits everywhere.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(b)
}

// derive makes a value that only this server can make, from what it is for.
func (s *Service) derive(parts ...string) []byte {
	m := hmac.New(sha256.New, s.secret)
	for _, p := range parts {
		m.Write([]byte(p))
		m.Write([]byte{0})
	}
	return m.Sum(nil)
}

func (s *Service) token(parts ...string) string {
	return base64.RawURLEncoding.EncodeToString(s.derive(parts...))
}

// storable tells whether both databases take a text: what isn't can be no id or name of ours.
func storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

// From says where a request comes from.
type From struct {
	Address, UserAgent, Request string
}

func (s *Service) refused(key string, from From) {
	if s.Refused != nil {
		s.Refused(key, from.Address, from.UserAgent)
	}
}

// as gives a ctx in which what is recorded is recorded as done by an account. The rights of that account play no part.
func as(ctx context.Context, id string, from From) context.Context {
	return who.With(ctx, &who.Caller{Account: id, Actor: "account:" + id, Via: who.ViaWeb, Address: from.Address, Client: from.UserAgent, Request: from.Request})
}

// Error is a refusal as OAuth words it (RFC 6749 section 5.2, RFC 7591 section 3.2.2).
type Error struct {
	Code        string // such as invalid_grant
	Description string
	Status      int // HTTP
}

// Error gives the code and the description.
func (e *Error) Error() string { return e.Code + ": " + e.Description }

func refuse(status int, code, description string) *Error {
	return &Error{Code: code, Description: description, Status: status}
}

// Ops are the operations of this package.
func (s *Service) Ops() []*op.Op {
	return []*op.Op{
		op.Define(op.Op{Name: "list_requests", Title: "List requests", Area: who.Core, Effect: op.Read, Set: "admin", PersonOnly: true,
			Doc: "Requests to be let in that agents sent to you by name. Each is confirmed with the code that its own page shows."}, s.listRequests),
		op.Define(op.Op{Name: "reject_request", Title: "Reject request", Area: who.Core, Effect: op.Write, Set: "admin", PersonOnly: true, Idempotent: true,
			Example: `{"request":"01890a5d-ac96-774b-bcce-b302099a8057"}`, Doc: "Turn down a request to be let in that was sent to you."}, s.rejectRequest),
		op.Define(op.Op{Name: "rotate_signing_key", Title: "Rotate signing key", Area: who.Core, Effect: op.Write, Set: "admin", PersonOnly: true, Confirm: true,
			Doc: "Sign access tokens with a new key from now on. With revoke, tokens signed with older keys are dead at once and agents that stay connected refresh theirs. For the admin."}, s.rotate),
	}
}

// Purge deletes what has had its time: attempts a day after they expired, refresh tokens, clients that registered and were
// never let in.
func (s *Service) Purge(ctx context.Context, d *db.DB) error {
	return d.Write(ctx, func(tx *db.Tx) error {
		day := (24 * time.Hour).Microseconds()
		for q, before := range map[string]int64{
			`DELETE FROM oauth_attempt WHERE expires_at < $1`: tx.Now - day,
			`DELETE FROM oauth_refresh WHERE expires_at < $1`: tx.Now - day,
			`DELETE FROM oauth_client WHERE used_at IS NULL AND created_at < $1 AND NOT EXISTS (SELECT 1 FROM oauth_attempt t WHERE t.client = oauth_client.id AND t.expires_at > ` + "$1" + `)`: tx.Now - unusedLife.Microseconds(),
			`DELETE FROM oauth_key WHERE retired_at < $1`: tx.Now - 2*AccessLife.Microseconds(),
		} {
			if _, err := tx.Exec(q, before); err != nil {
				return err
			}
		}
		return s.rotateIfOld(ctx, tx)
	})
}
