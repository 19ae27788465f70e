package signin_test

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tyler-smith/go-bip39"

	"cairn/internal/apptest"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/signin"
	"cairn/internal/who"
)

const origin = "https://cairn.example.org"

var from = signin.From{Address: "192.0.2.7", UserAgent: "Browser/1"}

// post is a Mailer that keeps what it is given.
type post struct {
	mu    sync.Mutex
	mails []string // "to\nsubject\nbody"
	fail  int      // so many sends fail first
	tried int
}

func (p *post) Send(_ context.Context, to, subject, body string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tried++
	if p.fail > 0 {
		p.fail--
		return fmt.Errorf("550 no such user %s", strings.ToUpper(to))
	}
	p.mails = append(p.mails, to+"\n"+subject+"\n"+body)
	return nil
}

var digits = regexp.MustCompile(`[0-9]{4} [0-9]{4}`)

// code waits for the n-th mail and gives its code.
func (p *post) code(t *testing.T, n int) string {
	t.Helper()
	for range 200 {
		p.mu.Lock()
		if len(p.mails) >= n {
			defer p.mu.Unlock()
			return digits.FindString(p.mails[n-1])
		}
		p.mu.Unlock()
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("mail %d never came", n)
	return ""
}

type world struct {
	*apptest.App
	*signin.Service
	mail  *post
	admin string
	ops   *op.Runner
	last  ed25519.PrivateKey // of the newest sign-up
}

// each runs f on both databases.
func each(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	apptest.Each(t, map[string]string{"PUBLIC_URL": origin}, func(t *testing.T, a *apptest.App) {
		w := &world{App: a, mail: &post{}}
		public, _ := url.Parse(origin)
		log := slog.New(slog.NewTextHandler(a.Log, nil))
		w.Service = signin.New(a.DB, a.Accounts, w.mail, public, log)
		w.SetPauses(time.Millisecond, time.Millisecond)
		t.Cleanup(w.Service.Close)
		w.ops = op.NewRunner(log, w.Ops()...)
		var needed bool
		var err error
		if w.admin, needed, err = w.NeedsSetup(t.Context()); err != nil || !needed {
			t.Fatalf("needs set-up: %t, %v", needed, err)
		}
		f(t, w)
	})
}

func words(t *testing.T) string {
	t.Helper()
	entropy, err := bip39.NewEntropy(128)
	if err != nil {
		t.Fatal(err)
	}
	s, err := bip39.NewMnemonic(entropy)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func key(t *testing.T) ed25519.PrivateKey { return signin.PhraseKey(words(t)) }

func sign(k ed25519.PrivateKey, message string) signin.PhraseProof {
	return signin.PhraseProof{Public: hex.EncodeToString(k.Public().(ed25519.PublicKey)), Signature: hex.EncodeToString(ed25519.Sign(k, []byte(message)))}
}

// proof begins a challenge and answers it with a phrase's key.
func (w *world) proof(t *testing.T, k ed25519.PrivateKey, purpose string) signin.Proof {
	t.Helper()
	c, err := w.Begin(t.Context(), purpose, origin)
	if err != nil {
		t.Fatal(err)
	}
	p := sign(k, c.Message)
	return signin.Proof{Challenge: c.ID, Phrase: &p}
}

// setUp sets the admin up with a phrase.
func (w *world) setUp(t *testing.T, k ed25519.PrivateKey, name, email string) signin.Person {
	t.Helper()
	secret, err := w.SetupLink(t.Context(), w.admin)
	if err != nil {
		t.Fatal(err)
	}
	p := w.proof(t, k, "set-up")
	who, err := w.SetUp(t.Context(), signin.SetUpIn{Secret: secret, Challenge: p.Challenge, Name: name, Zone: "Europe/Vienna", Email: email, Phrase: *p.Phrase}, origin, from)
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// in starts a session and gives its cookie and the ctx of its caller.
func (w *world) in(t *testing.T, p signin.Person) (string, context.Context) {
	t.Helper()
	cookie, _, err := w.Start(t.Context(), p, from)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := w.ByCookie(t.Context(), cookie, from)
	if err != nil {
		t.Fatal(err)
	}
	return cookie, who.With(t.Context(), c)
}

// confirmed gives the admin a confirmed address.
func (w *world) confirmed(t *testing.T, ctx context.Context, account, address string) {
	t.Helper()
	w.mail.mu.Lock()
	n := len(w.mail.mails)
	w.mail.mu.Unlock()
	c, err := w.SetEmail(ctx, account, address)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.ConfirmEmail(ctx, account, c, w.mail.code(t, n+1)); err != nil {
		t.Fatal(err)
	}
}

func (w *world) exec(t *testing.T, q string, args ...any) {
	t.Helper()
	err := w.DB.Write(t.Context(), func(tx *db.Tx) error { _, err := tx.Exec(q, args...); return err })
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) count(t *testing.T, q string, args ...any) (n int) {
	t.Helper()
	if err := w.DB.One(t.Context(), q, args, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func is(t *testing.T, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Fatalf("%v, want %s", err, kind.Wire().Name)
	}
}

// refused wants the one answer that every wrong proof gets.
func refused(t *testing.T, err error) {
	t.Helper()
	is(t, err, fault.Unauthenticated)
	if !strings.HasPrefix(err.Error(), "That didn't work: the proof") {
		t.Fatalf("another answer: %v", err)
	}
}

func TestPhraseKeyIsBIP39(t *testing.T) {
	if len(signin.Words()) != 2048 || signin.Words()[0] != "abandon" {
		t.Fatal("not the list")
	}
	for range 5 {
		w := words(t)
		if want := ed25519.NewKeyFromSeed(bip39.NewSeed(w, "cairn")[:32]); !want.Equal(signin.PhraseKey("  " + strings.ReplaceAll(w, " ", "\n "))) {
			t.Errorf("%s: another key", w)
		}
	}
	// What the browser's code is held against too.
	k := signin.PhraseKey("abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about")
	if got := hex.EncodeToString(k.Public().(ed25519.PublicKey)); got != vectorKey {
		t.Errorf("public key %s", got)
	}
}

const vectorKey = "8b38009e26cc7c30376adc32dd74c9442bb1c14223a364037459d68956daa1cb"

func TestPhrase(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		k := key(t)
		w.setUp(t, k, "Ana", "")
		p := w.proof(t, k, "sign-in")
		who, err := w.Prove(t.Context(), "sign-in", origin, p, from)
		if err != nil || who.Account != w.admin || who.Name != "Ana" || who.Method != signin.Phrase || who.Waiting {
			t.Fatalf("%+v, %v", who, err)
		}
		if _, err := w.Prove(t.Context(), "consent:1", origin, w.proof(t, k, "consent:1"), from); err != nil || w.count(t, `SELECT count(*) FROM audit_event
			WHERE event = 'authAttempt' AND account = $1 AND detail = 'consent:1 by phrase'`, w.admin) != 1 {
			t.Errorf("a proof that makes no session is not recorded: %v", err)
		}
		if w.count(t, `SELECT count(*) FROM credential WHERE last_used_at IS NOT NULL`) != 1 {
			t.Error("last_used_at is not set")
		}
		if _, needed, err := w.NeedsSetup(t.Context()); err != nil || needed {
			t.Errorf("still needs set-up: %v", err)
		}
		prove := func(purpose, origin string, p signin.Proof) error {
			_, err := w.Prove(t.Context(), purpose, origin, p, signin.From{})
			return err
		}
		refused(t, prove("sign-in", origin, p)) // again
		refused(t, prove("consent:1", origin, w.proof(t, k, "sign-in")))
		refused(t, prove("sign-in", "https://evil.example", w.proof(t, k, "sign-in")))
		refused(t, prove("sign-in", origin, w.proof(t, key(t), "sign-in"))) // nobody's
		late := w.proof(t, k, "sign-in")
		w.Clock.Move(5*time.Minute + time.Second)
		refused(t, prove("sign-in", origin, late))
		wrong := w.proof(t, k, "sign-in")
		wrong.Phrase.Signature = w.proof(t, k, "sign-in").Phrase.Signature
		refused(t, prove("sign-in", origin, wrong))
		for _, bad := range []signin.PhraseProof{{}, {Public: "zz", Signature: "zz"}, {Public: wrong.Phrase.Public, Signature: "00"}, {Public: "\x00", Signature: "\xff"}} {
			p := w.proof(t, k, "sign-in")
			p.Phrase = &bad
			refused(t, prove("sign-in", origin, p))
		}
		for _, id := range []string{"", "x", "\x00", "' OR 1=1", strings.Repeat("a", 1000), "\xff"} {
			p := w.proof(t, k, "sign-in")
			p.Challenge = id
			refused(t, prove("sign-in", origin, p))
		}
		p = w.proof(t, k, "sign-in")
		p.Code = "12345678"
		is(t, prove("sign-in", origin, p), fault.Invalid) // two at once
		is(t, prove("sign-in", origin, signin.Proof{Challenge: p.Challenge}), fault.Invalid)

		p = w.proof(t, k, "sign-in")
		w.exec(t, `UPDATE account SET disabled_at = 1 WHERE id = $1`, w.admin)
		refused(t, prove("sign-in", origin, p))
		if w.count(t, `SELECT count(*) FROM audit_event WHERE event = 'authFailure'`) < 10 {
			t.Error("failures are not recorded")
		}
	})
}

// Of the same proof sent eight times at once, one counts.
func TestOneProofCountsOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		k := key(t)
		w.setUp(t, k, "Ana", "")
		p := w.proof(t, k, "sign-in")
		won := race(8, func(int) error {
			_, err := w.Prove(context.Background(), "sign-in", origin, p, signin.From{})
			return err
		})
		if won != 1 {
			t.Errorf("%d of 8 counted", won)
		}
	})
}

// race runs f n times at once and tells how often it worked.
func race(n int, f func(i int) error) (won int) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range n {
		wg.Go(func() {
			if f(i) == nil {
				mu.Lock()
				won++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return won
}

func TestWrongProofsAreSlowed(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		k := key(t)
		w.setUp(t, k, "Ana", "")
		good := w.proof(t, k, "sign-in")
		at := signin.From{Address: "2001:db8::1"}
		for i := range 10 {
			at.Address = fmt.Sprintf("2001:db8::%x", i+1) // one holder's
			_, err := w.Prove(t.Context(), "sign-in", origin, w.proof(t, key(t), "sign-in"), at)
			refused(t, err)
		}
		_, err := w.Prove(t.Context(), "sign-in", origin, good, at)
		is(t, err, fault.Limited)
		if _, err := w.Prove(t.Context(), "sign-in", origin, good, from); err != nil {
			t.Errorf("another address: %v", err)
		}
	})
}

func TestChallenges(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		c, err := w.Begin(t.Context(), "consent:42", origin)
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Split(c.Message, "\n"); len(lines) != 4 || lines[0] != "Cairn" || lines[1] != "consent:42" || lines[2] != origin || len(lines[3]) < 43 {
			t.Errorf("message %q", c.Message)
		}
		if c.ExpiresAt/1e6 != w.DB.Now()/1e6+300 || c.Passkey == nil {
			t.Errorf("%+v", c)
		}
		for _, o := range []string{"http://127.0.0.1:3000", "https://192.0.2.1", "http://cairn.example.org", "https://other.example", "http://[::1]:3000"} {
			if c, err := w.Begin(t.Context(), "sign-in", o); err != nil || c.Passkey != nil {
				t.Errorf("%s: %s, %v", o, c.Passkey, err)
			}
		}
		if c, err := w.Begin(t.Context(), "sign-in", "http://localhost:3000"); err != nil || c.Passkey == nil {
			t.Errorf("localhost: %v", err)
		}
		for _, bad := range [][2]string{{"", origin}, {"a\nb", origin}, {strings.Repeat("x", 201), origin}, {"\xff", origin}, {"set-up-link", origin}, {"email:1", origin}, {"add-passkey:1", origin},
			{"sign-in", ""}, {"sign-in", "null"}, {"sign-in", origin + "/"}, {"sign-in", origin + "\nx"}, {"sign-in", "javascript:1"}, {"sign-in", "https://a@b"}} {
			_, err := w.Begin(t.Context(), bad[0], bad[1])
			is(t, err, fault.Invalid)
		}

		w.SetCap(20)
		secret, err := w.SetupLink(t.Context(), w.admin)
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			if c, err = w.Begin(t.Context(), "sign-in", origin); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.count(t, `SELECT count(*) FROM challenge WHERE account IS NULL`); n > 21 {
			t.Errorf("%d challenges are kept", n)
		}
		if w.count(t, `SELECT count(*) FROM challenge WHERE id = $1`, c.ID) != 1 {
			t.Error("the newest went")
		}
		if _, err := w.Linked(t.Context(), secret, from); err != nil {
			t.Errorf("the flood took a link away: %v", err)
		}
		w.Clock.Move(25 * time.Hour)
		if err := signin.Purge(t.Context(), w.DB); err != nil {
			t.Fatal(err)
		}
		if n := w.count(t, `SELECT count(*) FROM challenge`); n != 0 {
			t.Errorf("%d expired challenges stay", n)
		}
	})
}
