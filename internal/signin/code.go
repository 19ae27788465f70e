package signin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"math/big"
	netmail "net/mail"
	"strings"
	"time"

	"cairn/internal/audit"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/who"
)

const (
	codeDigits   = 8
	codeTries    = 5
	openCodes    = 3 // of an account, for one purpose
	mailsAnHour  = 5 // to an account
	mailsAtOnce  = 4
	mailsWaiting = 100
	mailTimeout  = 30 * time.Second
	codeTakes    = 100 * time.Millisecond // at least, so that the work for a known name doesn't show
)

// noMail is what needs mail on a server without.
func noMail() error {
	return fault.New(fault.Unavailable, "this server can't send mail: its operator must set CAIRN_SMTP_URL and CAIRN_MAIL_FROM").With("reason", "unavailable")
}

// newCode gives eight random digits.
func newCode() string {
	most := int64(1)
	for range codeDigits {
		most *= 10
	}
	n, err := rand.Int(rand.Reader, big.NewInt(most))
	if err != nil { // the system's random source is gone; nothing sensible can go on
		panic(err)
	}
	return fmt.Sprintf("%0*d", codeDigits, n)
}

// codeHash is what is kept of a code.
func codeHash(challenge, code string) string { return hash(challenge + " " + code) }

// sameCode compares a code as somebody typed it.
func sameCode(data stored, challenge, code string) bool {
	if len(code) > 40 {
		return false
	}
	code = strings.NewReplacer(" ", "", "-", "").Replace(code)
	return data.Code != "" && subtle.ConstantTimeCompare([]byte(codeHash(challenge, code)), []byte(data.Code)) == 1
}

// SendCode mails a code to the account with this name or confirmed address, good for one Proof for the purpose and origin.
// Whether there is such an account doesn't show: the answer and the work before it are the same, and the mail goes out
// afterwards.
func (s *Service) SendCode(ctx context.Context, purpose, origin, name string, from From) (challenge string, err error) {
	if s.mail == nil {
		return "", noMail()
	}
	if err := checkPurpose(purpose); err != nil {
		return "", err
	}
	if err := checkOrigin(origin); err != nil {
		return "", err
	}
	if err := s.slow(ctx, from); err != nil {
		return "", err
	}
	floor := time.NewTimer(codeTakes)
	defer floor.Stop()
	challenge = db.NewID()
	code, folded := newCode(), ""
	if plain(name, 320) {
		folded = who.Fold(name)
	}
	data := stored{Origin: origin, Code: codeHash(challenge, code)}
	var to string
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		var account string
		var err error
		if account, to, err = recipient(tx, folded); err != nil {
			return err
		}
		if err := insertChallenge(tx, challenge, purpose, account, data, tx.Now+codeLasts); err != nil {
			return err
		}
		if account == "" {
			return s.bound(tx)
		}
		return keepNewest(tx, account, purpose, openCodes)
	})
	if err != nil {
		return "", err
	}
	if to != "" {
		s.post(to, "Your code for Cairn", "Your code to show Cairn at "+s.public.Host+" who you are: "+spaced(code)+
			"\n\nIt is good once, for ten minutes. If you did not ask for it, ignore this mail; don't give the code to anybody.\n")
	}
	select {
	case <-floor.C:
	case <-ctx.Done():
	}
	return challenge, nil
}

// recipient finds the account that a code may be mailed to, by its folded name or confirmed address; "" where there is none,
// or where it got its mails for this hour.
func recipient(tx *db.Tx, folded string) (account, address string, err error) {
	err = tx.One(`SELECT id, email FROM account WHERE (email_folded = $1 OR name_folded = $1) AND email_confirmed_at IS NOT NULL AND disabled_at IS NULL
		ORDER BY CASE WHEN email_folded = $1 THEN 0 ELSE 1 END LIMIT 1`, []any{folded}, &account, &address)
	if db.IsNone(err) {
		return "", "", nil
	}
	if err != nil {
		return "", "", err
	}
	if ok, err := mayMail(tx, account); err != nil || !ok {
		return "", "", err
	}
	return account, address, nil
}

func spaced(code string) string { return code[:codeDigits/2] + " " + code[codeDigits/2:] }

// mayMail counts a mail to an account and tells whether it may be sent.
func mayMail(tx *db.Tx, account string) (bool, error) {
	return countHour(tx, account, mailedPurpose, mailsAnHour)
}

// countHour counts one event of a key within the hour, up to a most, in rows of the table challenge: they end by themselves,
// and replicas share them.
func countHour(tx *db.Tx, key, purpose string, most int) (bool, error) {
	var n int
	err := tx.One(`SELECT count(*) FROM challenge WHERE account = $1 AND purpose = $2 AND expires_at > $3`, []any{key, purpose, tx.Now}, &n)
	if err != nil || n >= most {
		return false, err
	}
	return true, insertChallenge(tx, db.NewID(), purpose, key, stored{}, tx.Now+hour)
}

// post sends a mail in the background, with two more tries. Too many at once are dropped: a flood must not fill the memory.
func (s *Service) post(to, subject, body string) {
	select {
	case s.sending <- struct{}{}:
	default:
		s.log.Error("a mail was dropped: too many wait to be sent", "to", masked(to))
		return
	}
	s.sent.Go(func() {
		defer func() { <-s.sending }()
		var err error
		for try := 0; ; try++ {
			if err = s.try(to, subject, body); err == nil {
				return
			}
			if try == len(s.pauses) || !s.wait(s.pauses[try]) {
				break
			}
		}
		s.log.Error("a mail could not be sent", "to", masked(to), "cause", mask(err.Error(), to))
	})
}

func (s *Service) try(to, subject, body string) error {
	s.atOnce <- struct{}{}
	defer func() { <-s.atOnce }()
	ctx, cancel := context.WithTimeout(context.Background(), mailTimeout)
	defer cancel()
	return s.mail.Send(ctx, to, subject, body)
}

// wait tells whether the time passed before the service was closed.
func (s *Service) wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.stopping:
		return false
	}
}

// masked is an address without its local part, for the log.
func masked(address string) string {
	return "..." + address[max(strings.LastIndexByte(address, '@'), 0):]
}

// mask takes an address out of a text, in whatever case a mail server repeats it.
func mask(text, address string) string {
	for i := 0; i+len(address) <= len(text); i++ {
		if strings.EqualFold(text[i:i+len(address)], address) {
			text = text[:i] + masked(address) + text[i+len(address):]
			i += len(masked(address)) - 1
		}
	}
	return text
}

// takeTry counts a guess at a mailed code before it is looked at.
func (s *Service) takeTry(ctx context.Context, challenge string) (account string, err error) {
	var owner *string
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		return tx.One(`UPDATE challenge SET tries = tries + 1 WHERE id = $1 AND tries < $2 AND expires_at > $3 RETURNING account`, []any{challenge, codeTries, tx.Now}, &owner)
	})
	if db.IsNone(err) || err == nil && owner == nil { // nobody's: the code was asked for by an unknown name
		err = failed()
	}
	if err != nil {
		return "", err
	}
	return *owner, nil
}

func (s *Service) byCode(ctx context.Context, challenge string, data stored, code string) (shown, error) {
	sh := shown{method: Code}
	account, err := s.takeTry(ctx, challenge)
	if err != nil {
		return sh, err
	}
	if !sameCode(data, challenge, code) {
		return sh, failed()
	}
	sh.account = account
	return sh, nil
}

// checkEmail reads an address and nothing around it.
func checkEmail(text string) (string, error) {
	text = strings.TrimSpace(text)
	a, err := netmail.ParseAddress(text)
	if err != nil || a.Address != text || a.Name != "" || len(text) > 254 || !plain(text, 254) || strings.ContainsAny(text, " \"<>") {
		return "", fault.Bad("email", "is %q, must be an address such as ana@example.org, of at most 254 bytes", clip(text))
	}
	return text, nil
}

// SetEmail mails a code to a new address of an account; ConfirmEmail takes it. Until then the account keeps an address that
// was confirmed: a slip of the fingers must not take away a way in.
func (s *Service) SetEmail(ctx context.Context, account, address string) (challenge string, err error) {
	if s.mail == nil {
		return "", noMail()
	}
	if address, err = checkEmail(address); err != nil {
		return "", err
	}
	challenge = db.NewID()
	code := newCode()
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		ok, err := mayMail(tx, account)
		if err != nil {
			return err
		}
		if !ok {
			return fault.New(fault.Limited, "%d mails went to this account within the hour: try again later", mailsAnHour).With("limit", mailsAnHour)
		}
		if err := setUnconfirmed(tx, account, address); err != nil {
			return err
		}
		if err := insertChallenge(tx, challenge, emailPurpose+account, account, stored{Code: codeHash(challenge, code), Email: address}, tx.Now+codeLasts); err != nil {
			return err
		}
		if err := keepNewest(tx, account, emailPurpose+account, openCodes); err != nil {
			return err
		}
		return audit.WriteEvent(ctx, tx, emailChanged, account+" unconfirmed")
	})
	if err != nil {
		return "", err
	}
	s.post(address, "Confirm your address for Cairn", "Your code to confirm this address for Cairn at "+s.public.Host+": "+spaced(code)+
		"\n\nIt is good once, for ten minutes. If you did not ask for it, ignore this mail.\n")
	return challenge, nil
}

// setUnconfirmed stores an address where the account has none that was confirmed.
func setUnconfirmed(tx *db.Tx, account, address string) error {
	_, err := tx.Exec(`UPDATE account SET email = $2, email_folded = $3 WHERE id = $1 AND email_confirmed_at IS NULL`, account, address, who.Fold(address))
	return err
}

// ConfirmEmail takes the code that SetEmail mailed. Codes that went to the address before are of no more use.
func (s *Service) ConfirmEmail(ctx context.Context, account, challenge, code string) error {
	var text string
	if !token(challenge) {
		return failed()
	}
	err := s.db.One(ctx, `SELECT data FROM challenge WHERE id = $1 AND purpose = $2`, []any{challenge, emailPurpose + account}, &text)
	if db.IsNone(err) {
		return failed()
	}
	if err != nil {
		return err
	}
	var data stored
	if err := json.Unmarshal([]byte(text), &data); err != nil {
		return err
	}
	if _, err := s.takeTry(ctx, challenge); err != nil {
		return err
	}
	if !sameCode(data, challenge, code) {
		return failed()
	}
	return s.db.Write(ctx, func(tx *db.Tx) error {
		if err := use(tx, challenge); err != nil {
			return err
		}
		if _, err := tx.Exec(`DELETE FROM challenge WHERE account = $1 AND purpose NOT IN ($2, $3)`, account, mailedPurpose, linkPurpose); err != nil {
			return err
		}
		_, err := tx.Exec(`UPDATE account SET email = $2, email_folded = $3, email_confirmed_at = $4 WHERE id = $1`, account, data.Email, who.Fold(data.Email), tx.Now)
		if db.IsUnique(err) {
			return fault.New(fault.Conflict, "another account has confirmed this address: sign in to that one, or use another address")
		}
		if err != nil {
			return err
		}
		return audit.WriteEvent(ctx, tx, emailChanged, account+" confirmed")
	})
}
