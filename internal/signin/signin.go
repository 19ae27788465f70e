// Package signin is how people show who they are: by a phrase of twelve words, by a passkey, or by a code that is mailed to
// them. It keeps their web sessions, their e-mail addresses, and the links by which an account is set up or got back.
//
// Everything that is good once is a row of the table challenge and is deleted in the write that it allows. Whatever was wrong
// with a proof, the answer is the same: who tries one learns nothing from it.
package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"log/slog"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"cairn/internal/account"
	"cairn/internal/audit"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/who"
)

// Mailer sends one plain text mail.
type Mailer interface {
	Send(ctx context.Context, to, subject, body string) error
}

// From is where a request comes from.
type From struct {
	Address, UserAgent string
}

// Methods of showing who one is.
const (
	Phrase  = "phrase"
	Passkey = "passkey"
	Code    = "code"
)

// Events of the audit.
const (
	signInAdded   = "signInAdded"
	signInRemoved = "signInRemoved"
	sessionEnded  = "sessionEnded"
	emailChanged  = "emailChanged"
	accountSetUp  = "accountSetUp"
	signedUp      = "signedUp"
	setupLinkMade = "setupLinkMade"
)

const (
	minute = int64(time.Minute / time.Microsecond)
	hour   = 60 * minute
	day    = 24 * hour

	failuresAMin  = 10     // wrong proofs from one address
	openChallenge = 10_000 // challenges of nobody in particular that are kept
)

// Service is sign-in on one server.
type Service struct {
	// Refused hears of each refusal for too many tries; nil = nobody does. Set it before the service is used.
	Refused func(key, address, userAgent string)

	db       *db.DB
	accounts *account.Service
	mail     Mailer
	public   *url.URL
	log      *slog.Logger
	limiter  *audit.Limiter

	most     int64 // openChallenge, except in tests
	begun    atomic.Int64
	sending  chan struct{} // one place for each mail that waits or is sent
	atOnce   chan struct{} // one place for each mail that is sent
	sent     sync.WaitGroup
	pauses   []time.Duration // before the second try of a mail, and the third
	stopping chan struct{}
	stopOnce sync.Once
}

// New makes the service. mail may be nil: then there are no mailed codes. Close it before the database.
func New(d *db.DB, accounts *account.Service, mail Mailer, public *url.URL, log *slog.Logger) *Service {
	if log == nil {
		log = slog.Default()
	}
	if public == nil {
		public = &url.URL{Scheme: "http", Host: "localhost"}
	}
	return &Service{db: d, accounts: accounts, mail: mail, public: public, log: log, limiter: audit.NewLimiter(d), most: openChallenge,
		sending: make(chan struct{}, mailsWaiting), atOnce: make(chan struct{}, mailsAtOnce), pauses: []time.Duration{2 * time.Second, 15 * time.Second},
		stopping: make(chan struct{})}
}

// Close gives up the waits between two tries of a mail and returns when none is on its way.
func (s *Service) Close() {
	s.stopOnce.Do(func() { close(s.stopping) })
	s.sent.Wait()
}

// HasMail tells whether codes can be mailed.
func (s *Service) HasMail() bool { return s.mail != nil }

// failed is the one answer to a proof that doesn't hold, for whatever reason.
func failed() error {
	return fault.New(fault.Unauthenticated, "That didn't work: the proof does not fit, was used before, or came too late. Begin anew and try again")
}

// random gives 256 random bits as base64url.
func random() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// token tells whether s can be an id: what isn't never reaches the database, which takes not every string.
func token(s string) bool {
	if s == "" || len(s) > 100 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// plain tells whether s is text without control characters, of at most n characters.
func plain(s string, n int) bool {
	if !utf8.ValidString(s) || utf8.RuneCountInString(s) > n {
		return false
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return false
		}
	}
	return true
}

// clip keeps what a client says of itself short and storable.
func clip(s string) string {
	out := make([]rune, 0, min(len(s), 300))
	for _, r := range s { // what isn't UTF-8 comes as U+FFFD
		if len(out) == 300 {
			break
		}
		if !unicode.IsControl(r) {
			out = append(out, r)
		}
	}
	return string(out)
}

// as gives the ctx in which audit events of somebody who has no session yet are written.
func (f From) as(ctx context.Context, account string) context.Context {
	c := &who.Caller{Account: account, Address: f.Address, Client: f.UserAgent}
	if account != "" {
		c.Actor = "account:" + account
	}
	return who.With(ctx, c)
}

// slow refuses an address that has tried too many wrong proofs.
func (s *Service) slow(ctx context.Context, f From) error {
	if f.Address == "" {
		return nil
	}
	w, err := s.limiter.Look(ctx, "signin "+audit.Place(f.Address), failuresAMin)
	if err != nil || w.Allowed {
		return err
	}
	if s.Refused != nil {
		s.Refused("signin:"+f.Address, f.Address, f.UserAgent)
	}
	return w.Refusal(time.UnixMicro(s.limiter.Now()))
}

// wrong counts and records a proof that didn't hold, and passes the error on. Other errors pass as they are.
func (s *Service) wrong(ctx context.Context, f From, purpose string, err error) error {
	if !fault.Is(err, fault.Unauthenticated) {
		return err
	}
	if f.Address != "" {
		if _, lerr := s.limiter.Take(ctx, "signin "+audit.Place(f.Address), failuresAMin); lerr != nil {
			return lerr
		}
	}
	werr := s.db.Write(ctx, func(tx *db.Tx) error {
		return audit.WriteEvent(f.as(ctx, ""), tx, audit.AuthFailure, "sign-in "+purpose)
	})
	if werr != nil {
		s.log.Error("a failed sign-in could not be recorded", "cause", werr.Error())
	}
	return err
}

// person gives the signed-in person in ctx, who must have shown who they are not long ago where recent is asked for.
func (s *Service) person(ctx context.Context, recent bool) (*who.Caller, error) {
	c := who.From(ctx)
	if c == nil || !c.Person {
		return nil, fault.New(fault.Unauthenticated, "Sign in first: this is for people, not for agents or tokens")
	}
	if recent {
		if err := account.Fresh(c, s.db.Now()); err != nil {
			return nil, err
		}
	}
	return c, nil
}
