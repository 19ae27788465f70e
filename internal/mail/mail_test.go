package mail_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	netmail "net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"cairn/internal/mail"
)

// server is an SMTP server that keeps what it gets.
type server struct {
	addr string

	mu       sync.Mutex
	from, to string
	data     []byte
	user     string
	secure   bool
	refuse   error
}

func serve(t *testing.T, secure, overTLS bool) *server {
	t.Helper()
	s := &server{}
	srv := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &visit{s, c}, nil }))
	srv.Domain, srv.AllowInsecureAuth = "localhost", true
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if secure {
		srv.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate(t)}}
	}
	s.addr = l.Addr().String()
	if overTLS {
		l = tls.NewListener(l, srv.TLSConfig)
	}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	return s
}

func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"mail.example"}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

type visit struct {
	s *server
	c *smtp.Conn
}

func (v *visit) AuthMechanisms() []string { return []string{sasl.Plain} }
func (v *visit) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if password != "s3cret&word" {
			return &smtp.SMTPError{Code: 535, Message: "no entry with " + password}
		}
		v.s.mu.Lock()
		defer v.s.mu.Unlock()
		v.s.user = user
		return nil
	}), nil
}
func (v *visit) Reset()        {}
func (v *visit) Logout() error { return nil }
func (v *visit) Mail(from string, _ *smtp.MailOptions) error {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	_, v.s.secure = v.c.TLSConnectionState()
	v.s.from = from
	return nil
}
func (v *visit) Rcpt(to string, _ *smtp.RcptOptions) error {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	v.s.to = to
	return v.s.refuse
}
func (v *visit) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	v.s.data = b
	return err
}

func TestSend(t *testing.T) {
	for _, c := range []struct {
		name            string
		secure, overTLS bool
		userinfo        string
		user            string
	}{
		{"plain on loopback", false, false, "", ""},
		{"with a password", false, false, "ana:s3cret%26word@", "ana"},
		{"STARTTLS where it is offered", true, false, "ana:s3cret%26word@", "ana"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.secure, c.overTLS)
			m, err := mail.New("smtp://"+c.userinfo+s.addr, "Cairn <cairn@example.org>")
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Send(t.Context(), "ana@example.org", "Grüße\r\nBcc: eve@example.org", "Schöne Wörter: 1234 5678\n"); err != nil {
				t.Fatal(err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.from != "cairn@example.org" || s.to != "ana@example.org" || s.user != c.user || s.secure != c.secure {
				t.Errorf("from %s, to %s, user %q, TLS %t", s.from, s.to, s.user, s.secure)
			}
			msg, err := netmail.ReadMessage(bytes.NewReader(s.data))
			if err != nil {
				t.Fatal(err)
			}
			if msg.Header.Get("Bcc") != "" || !strings.Contains(msg.Header.Get("Content-Type"), "text/plain; charset=UTF-8") || msg.Header.Get("Message-ID") == "" || msg.Header.Get("Date") == "" {
				t.Errorf("headers %v", msg.Header)
			}
			if !bytes.Contains(s.data, []byte("1234 5678")) {
				t.Errorf("body:\n%s", s.data)
			}
		})
	}
}

// A certificate that doesn't fit is refused where TLS is asked for from the start.
func TestSMTPSChecksTheCertificate(t *testing.T) {
	s := serve(t, true, true)
	m, err := mail.New("smtps://ana:s3cret%26word@"+s.addr, "cairn@example.org")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Send(t.Context(), "ana@example.org", "Hello", "Hello\n"); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("%v", err)
	}
}

func TestErrorsKeepSecrets(t *testing.T) {
	s := serve(t, false, false)
	m, err := mail.New("smtp://ana:wr0ng%2Fword@"+s.addr, "cairn@example.org")
	if err != nil {
		t.Fatal(err)
	}
	err = m.Send(t.Context(), "ana@example.org", "Hello", "Hello\n")
	if err == nil || strings.Contains(err.Error(), "wr0ng") || !strings.Contains(err.Error(), "[hidden]") {
		t.Errorf("%v", err)
	}
	s.mu.Lock()
	s.refuse = &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user ana here"}
	s.mu.Unlock()
	m, err = mail.New("smtp://"+s.addr, "cairn@example.org")
	if err != nil {
		t.Fatal(err)
	}
	if err = m.Send(t.Context(), "ana@example.org", "Hello", "Hello\n"); err == nil || strings.Contains(err.Error(), "ana") || !strings.Contains(err.Error(), "550") {
		t.Errorf("%v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range [][2]string{
		{"http://mail.example.org", "cairn@example.org"}, {"smtp://", "cairn@example.org"}, {"smtp://ana:hush@mail.example.org:99999", "cairn@example.org"},
		{"smtp://ana:hush@mail.example.org/path", "cairn@example.org"}, {"smtp://mail.example.org:587", ""}, {"smtp://mail.example.org:587", "nobody"},
		{"smtp://ana:hu sh@mail.example.org:587", "cairn@example.org"}, {"::", "cairn@example.org"},
	} {
		if _, err := mail.New(c[0], c[1]); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q, %q: %v", c[0], c[1], err)
		}
	}
	if _, err := mail.New("smtps://ana:hush@mail.example.org", "cairn@example.org"); err != nil {
		t.Error(err)
	}
}

// Without TLS nothing is handed to a server on another machine.
func TestTLSIsAskedForElsewhere(t *testing.T) {
	s := serve(t, false, false)
	_, port, _ := net.SplitHostPort(s.addr)
	ip := outside(t)
	if ip == "" {
		t.Skip("this machine has no address but loopback's")
	}
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() { // hands on to the server that has no TLS
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(back, c) }()
			go func() { _, _ = io.Copy(c, back) }()
		}
	}()
	m, err := mail.New("smtp://"+l.Addr().String(), "cairn@example.org")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Send(t.Context(), "ana@example.org", "Hello", "Hello\n"); err == nil || !strings.Contains(err.Error(), "STARTTLS") {
		t.Errorf("%v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.from != "" {
		t.Error(errors.New("a mail was handed over in the clear"))
	}
}

func outside(t *testing.T) string {
	t.Helper()
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	return ""
}
