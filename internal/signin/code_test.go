package signin_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/signin"
	"cairn/internal/who"
)

func (w *world) again(t *testing.T, cookie string) context.Context {
	t.Helper()
	c, _, err := w.ByCookie(t.Context(), cookie, from)
	if err != nil {
		t.Fatal(err)
	}
	return who.With(t.Context(), c)
}

func TestMailedCode(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		p := w.setUp(t, key(t), "Ana", "Ana@Example.org")
		_, ctx := w.in(t, p)
		send := func(name string) string {
			t.Helper()
			c, err := w.SendCode(t.Context(), "sign-in", origin, name, from)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		prove := func(challenge, code string) error {
			_, err := w.Prove(t.Context(), "sign-in", origin, signin.Proof{Challenge: challenge, Code: code}, signin.From{})
			return err
		}
		send("Ana") // the address is not confirmed
		w.confirmed(t, ctx, w.admin, "Ana@Example.org")
		n := len(w.mail.mails)
		if n != 1 {
			t.Fatalf("an unconfirmed address got a mail: %q", w.mail.mails)
		}

		c := send("ana@example.ORG")
		code := w.mail.code(t, n+1)
		if !strings.HasPrefix(w.mail.mails[n], "Ana@Example.org\n") {
			t.Errorf("%q", w.mail.mails[n])
		}
		who, err := w.Prove(t.Context(), "sign-in", origin, signin.Proof{Challenge: c, Code: code}, from)
		if err != nil || who.Account != w.admin || who.Method != signin.Code {
			t.Fatalf("%+v, %v", who, err)
		}
		refused(t, prove(c, code))

		c = send(" ANA ") // by name
		code = w.mail.code(t, n+2)
		_, err = w.Prove(t.Context(), "consent:9", origin, signin.Proof{Challenge: c, Code: code}, signin.From{})
		refused(t, err)
		for range 5 {
			refused(t, prove(c, "00000000"))
		}
		refused(t, prove(c, code)) // right, but too late

		c = send("Ana")
		code = w.mail.code(t, n+3)
		w.Clock.Move(10*time.Minute + time.Second)
		refused(t, prove(c, code))

		unknown := send("nobody@example.org")
		refused(t, prove(unknown, "12345678"))
		send("\xff\x00")
		w.exec(t, `UPDATE account SET disabled_at = 1 WHERE id = $1`, w.admin)
		send("Ana")
		w.exec(t, `UPDATE account SET disabled_at = NULL WHERE id = $1`, w.admin)
		send("Ana")
		w.mail.code(t, n+4)
		if c := send("Ana"); c == "" { // the sixth within the hour
			t.Error("it shows that the limit is reached")
		}
		w.Service.Close()
		if len(w.mail.mails) != n+4 {
			t.Errorf("%d mails", len(w.mail.mails))
		}
		if n := w.count(t, `SELECT count(*) FROM challenge WHERE account = $1 AND purpose = 'sign-in'`, w.admin); n > 3 {
			t.Errorf("%d open codes", n)
		}
	})
}

// Guesses made at once are five at most.
func TestGuessesAtOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		_, ctx := w.in(t, w.setUp(t, key(t), "Ana", ""))
		w.confirmed(t, ctx, w.admin, "ana@example.org")
		c, err := w.SendCode(t.Context(), "sign-in", origin, "Ana", from)
		if err != nil {
			t.Fatal(err)
		}
		w.mail.code(t, 2)
		race(20, func(int) error {
			_, err := w.Prove(context.Background(), "sign-in", origin, signin.Proof{Challenge: c, Code: "00000000"}, signin.From{})
			return err
		})
		if n := w.count(t, `SELECT tries FROM challenge WHERE id = $1`, c); n != 5 {
			t.Errorf("%d tries", n)
		}
	})
}

func TestMailThatFails(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		_, ctx := w.in(t, w.setUp(t, key(t), "Ana", ""))
		w.mail.fail = 2
		w.confirmed(t, ctx, w.admin, "anastasia@example.org")
		w.mail.mu.Lock()
		w.mail.fail = 9
		w.mail.mu.Unlock()
		if _, err := w.SendCode(t.Context(), "sign-in", origin, "Ana", from); err != nil {
			t.Fatal(err)
		}
		w.Service.Close()
		if log := w.Log.String(); !strings.Contains(log, "a mail could not be sent") || !strings.Contains(strings.ToLower(log), "@example.org") || strings.Contains(strings.ToLower(log), "anastasia") {
			t.Errorf("log: %s", log)
		}
		public, _ := url.Parse(origin)
		none := signin.New(w.DB, w.Accounts, nil, public, nil)
		_, err := none.SendCode(t.Context(), "sign-in", origin, "Ana", from)
		is(t, err, fault.Unavailable)
		if !strings.Contains(err.Error(), "CAIRN_SMTP_URL") {
			t.Error(err)
		}
		_, err = none.SetEmail(t.Context(), w.admin, "a@example.org")
		is(t, err, fault.Unavailable)
	})
}

func TestEmail(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		_, ctx := w.in(t, w.setUp(t, key(t), "Ana", ""))
		for _, bad := range []string{"", "ana", "@example.org", "ana@", "Ana <ana@example.org>", "a@b, c@d", "a b@example.org", "ana@example.org\nBcc: x@y", strings.Repeat("a", 250) + "@b.de", "\xff@example.org"} {
			_, err := w.SetEmail(ctx, w.admin, bad)
			is(t, err, fault.Invalid)
		}
		w.confirmed(t, ctx, w.admin, "ana@example.org")
		c, err := w.SetEmail(ctx, w.admin, "new@example.org")
		if err != nil {
			t.Fatal(err)
		}
		if w.count(t, `SELECT count(*) FROM account WHERE email = 'ana@example.org' AND email_confirmed_at IS NOT NULL`) != 1 {
			t.Error("the confirmed address went before the new one was confirmed")
		}
		refused(t, w.ConfirmEmail(ctx, w.admin, c, "00000000"))
		refused(t, w.ConfirmEmail(ctx, "other", c, w.mail.code(t, 2)))
		_, err = w.Prove(ctx, "email:"+w.admin, "", signin.Proof{Challenge: c, Code: w.mail.code(t, 2)}, signin.From{})
		refused(t, err)
		if err := w.ConfirmEmail(ctx, w.admin, c, w.mail.code(t, 2)); err != nil {
			t.Fatal(err)
		}
		refused(t, w.ConfirmEmail(ctx, w.admin, c, w.mail.code(t, 2)))

		// The same address, in other case, for another account.
		other, err := w.signUp(t, "Ben", "NEW@example.org", from)
		if err != nil {
			t.Fatal(err)
		}
		if c, err = w.SetEmail(ctx, other.Account, "New@Example.org"); err != nil {
			t.Fatal(err)
		}
		is(t, w.ConfirmEmail(ctx, other.Account, c, w.mail.code(t, 3)), fault.Conflict)
		for range 4 {
			if _, err = w.SetEmail(ctx, other.Account, "ben@example.org"); err != nil {
				t.Fatal(err)
			}
		}
		_, err = w.SetEmail(ctx, other.Account, "ben@example.org")
		is(t, err, fault.Limited)
	})
}

// inbox is an SMTP server's session that keeps what it gets.
type inbox struct {
	mu   *sync.Mutex
	data *[]string
}

func (i inbox) Reset()                               {}
func (i inbox) Logout() error                        { return nil }
func (i inbox) Mail(string, *smtp.MailOptions) error { return nil }
func (i inbox) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (i inbox) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	i.mu.Lock()
	defer i.mu.Unlock()
	*i.data = append(*i.data, string(b))
	return err
}

func TestCodeReachesAMailServer(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		var got []string
		srv := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return inbox{&mu, &got}, nil }))
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = srv.Serve(l) }()
		t.Cleanup(func() { _ = srv.Close() })
		_, ctx := w.in(t, w.setUp(t, key(t), "Ana", ""))
		w.confirmed(t, ctx, w.admin, "ana@example.org")

		sender, err := mail.New("smtp://"+l.Addr().String(), "cairn@example.org")
		if err != nil {
			t.Fatal(err)
		}
		public, _ := url.Parse(origin)
		s := signin.New(w.DB, w.Accounts, sender, public, nil)
		c, err := s.SendCode(t.Context(), "sign-in", origin, "ana@example.org", from)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		mu.Lock()
		defer mu.Unlock()
		if len(got) != 1 {
			t.Fatalf("%d mails came", len(got))
		}
		if _, err := s.Prove(t.Context(), "sign-in", origin, signin.Proof{Challenge: c, Code: digits.FindString(got[0])}, from); err != nil {
			t.Errorf("%v\n%s", err, got[0])
		}
	})
}
