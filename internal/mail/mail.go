// Package mail sends plain text mails by SMTP: encrypted always, except to a server on this machine that has no TLS.
package mail

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	netmail "net/mail"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"cairn/internal/fault"
)

// timeout is how long one step of talking to the mail server may take.
const timeout = 20 * time.Second

// Sender sends mails from one address by one server.
type Sender struct {
	client *gomail.Client
	from   string
	hide   []string // what no error may show
}

// New reads smtp://[user:password@]host:port, where STARTTLS is asked for unless the host is this machine, or smtps://, which
// is TLS from the start. It doesn't connect.
func New(smtpURL, from string) (*Sender, error) {
	u, err := url.Parse(smtpURL)
	if err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fault.New(fault.Invalid, "CAIRN_SMTP_URL must be such as smtp://user:password@mail.example.org:587 or smtps://mail.example.org:465 (the value is not shown)")
	}
	a, err := netmail.ParseAddress(from)
	if err != nil {
		return nil, fault.New(fault.Invalid, "CAIRN_MAIL_FROM is %q, must be an address such as cairn@example.org", from)
	}
	opts := []gomail.Option{gomail.WithTimeout(timeout), gomail.WithoutNoop()}
	host, port := u.Hostname(), 587
	local := loopback(host)
	switch {
	case u.Scheme == "smtps":
		opts, port = append(opts, gomail.WithSSL()), 465
	case local: // nobody stands between; its certificate, if it has one, is seldom for this name
		opts = append(opts, gomail.WithTLSPolicy(gomail.TLSOpportunistic), gomail.WithTLSConfig(&tls.Config{ServerName: host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}))
	default:
		opts = append(opts, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if p := u.Port(); p != "" {
		n, err := strconv.Atoi(p)
		if err != nil || n < 1 || n > 65535 {
			return nil, fault.New(fault.Invalid, "CAIRN_SMTP_URL has port %q, must be 1 to 65535", p)
		}
		port = n
	}
	opts = append(opts, gomail.WithPort(port))
	s := &Sender{from: a.String()}
	if user := u.User.Username(); user != "" {
		password, _ := u.User.Password()
		kind := gomail.SMTPAuthAutoDiscover
		if local && u.Scheme == "smtp" { // the other kinds refuse to speak where there is no TLS
			kind = gomail.SMTPAuthPlainNoEnc
		}
		opts = append(opts, gomail.WithSMTPAuth(kind), gomail.WithUsername(user), gomail.WithPassword(password))
		if password != "" {
			s.hide = []string{password, url.QueryEscape(password), url.PathEscape(password), b64(password), b64("\x00" + user + "\x00" + password)}
		}
	}
	if s.client, err = gomail.NewClient(host, opts...); err != nil {
		return nil, fault.New(fault.Invalid, "CAIRN_SMTP_URL: %v", s.clean(err))
	}
	return s, nil
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && a.IsLoopback()
}

// Send sends one mail and returns when the server has taken it.
func (s *Sender) Send(ctx context.Context, to, subject, body string) error {
	m := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	if err := m.From(s.from); err != nil {
		return fmt.Errorf("the sender's address can't be used: %w", s.clean(err))
	}
	a, err := netmail.ParseAddress(to)
	if err != nil {
		return errors.New("the recipient's address can't be used")
	}
	m.ToMailAddress(a)
	m.Subject(strings.Join(strings.Fields(subject), " "))
	m.SetDate()
	m.SetMessageID()
	m.SetBodyString(gomail.TypeTextPlain, body)
	c, err := s.client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return fmt.Errorf("the mail server can't be used: %w", s.clean(err))
	}
	err = s.client.SendWithSMTPClient(c, m)
	_ = s.client.CloseWithSMTPClient(c) // the mail is taken, or not, whatever becomes of the farewell
	return s.refused(err)
}

// refused words what the server said to a mail, without the addresses that it may repeat.
func (s *Sender) refused(err error) error {
	var e *gomail.SendError
	if errors.As(err, &e) {
		return fmt.Errorf("the mail server did not take the mail: %s, code %d %s", e.Reason, e.ErrorCode(), e.EnhancedStatusCode())
	}
	if err != nil {
		return fmt.Errorf("the mail was not sent: %w", s.clean(err))
	}
	return nil
}

// clean takes the password out of an error, in every form that a server or a library may repeat it in.
func (s *Sender) clean(err error) error {
	text := err.Error()
	for _, h := range s.hide {
		text = strings.ReplaceAll(text, h, "[hidden]")
	}
	return errors.New(text)
}
