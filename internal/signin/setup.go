package signin

import (
	"context"
	"strings"
	"time"

	"cairn/internal/account"
	"cairn/internal/audit"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/who"
)

const (
	openLinks     = 5
	signUpsAnHour = 5 // from one address
	mostWaiting   = 200
	waitingLasts  = 30 * day
)

// SetupLink makes a secret that lets whoever has it set up an account once, within a day: its name, and a phrase instead of
// the one it had. It is kept as a hash.
func (s *Service) SetupLink(ctx context.Context, account string) (secret string, err error) {
	secret, _, err = s.setupLink(ctx, account)
	return secret, err
}

func (s *Service) setupLink(ctx context.Context, account string) (secret string, expires int64, err error) {
	secret = random()
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		expires = tx.Now + linkLasts
		var id string
		err := tx.One(`SELECT id FROM account WHERE id = $1 AND disabled_at IS NULL`, []any{account}, &id)
		if db.IsNone(err) {
			return fault.New(fault.NotFound, "there is no account %q that could be set up: it is unknown or disabled", account)
		}
		if err != nil {
			return err
		}
		if err := insertChallenge(tx, hash(secret), linkPurpose, account, stored{}, expires); err != nil {
			return err
		}
		if err := keepNewest(tx, account, linkPurpose, openLinks); err != nil {
			return err
		}
		return audit.WriteEvent(ctx, tx, setupLinkMade, account)
	})
	return secret, expires, err
}

// NeedsSetup gives the oldest admin where no admin has a way to sign in yet.
func (s *Service) NeedsSetup(ctx context.Context) (account string, needed bool, err error) {
	err = s.db.One(ctx, `SELECT a.id FROM account a WHERE a.admin = 1 AND a.disabled_at IS NULL AND NOT EXISTS (
		SELECT 1 FROM credential c JOIN account b ON b.id = c.account WHERE b.admin = 1 AND b.disabled_at IS NULL) ORDER BY a.created_at, a.id LIMIT 1`, nil, &account)
	if db.IsNone(err) {
		return "", false, nil
	}
	return account, err == nil, err
}

// Linked is what an account is that a set-up link is for.
type Linked struct {
	Account, Name, Zone, Email string
	HasPhrase                  bool // the phrase that is set replaces one
}

// Linked looks at a set-up link without using it.
func (s *Service) Linked(ctx context.Context, secret string, from From) (l Linked, err error) {
	if err := s.slow(ctx, from); err != nil {
		return l, err
	}
	var email *string
	var phrases int
	err = s.db.One(ctx, `SELECT a.id, a.name, a.zone, a.email, (SELECT count(*) FROM credential k WHERE k.account = a.id AND k.kind = 'phrase')
		FROM challenge c JOIN account a ON a.id = c.account WHERE c.id = $1 AND c.purpose = $2 AND c.expires_at > $3 AND a.disabled_at IS NULL`,
		[]any{hash(secret), linkPurpose, s.db.Now()}, &l.Account, &l.Name, &l.Zone, &email, &phrases)
	if db.IsNone(err) {
		return l, s.wrong(ctx, from, linkPurpose, badLink())
	}
	if email != nil {
		l.Email = *email
	}
	l.HasPhrase = phrases > 0
	return l, err
}

func badLink() error {
	return fault.New(fault.Unauthenticated, "That link doesn't work: it was used, has expired, or is not whole. Ask for a new one; on the machine itself: cairn account link NAME")
}

// SetUpIn is what somebody says who has a set-up link. What is left empty of Name, Zone and Email stays as it is. Phrase
// answers a challenge for "set-up".
type SetUpIn struct {
	Secret    string      `json:"secret"`
	Challenge string      `json:"challenge"`
	Name      string      `json:"name"`
	Zone      string      `json:"zone"`
	Email     string      `json:"email"`
	Phrase    PhraseProof `json:"phrase"`
}

// SetUp sets up an account by a link, or gives it back to somebody who has lost their phrase: then the phrase is replaced
// and all sessions end. All links of the account are used up.
func (s *Service) SetUp(ctx context.Context, in SetUpIn, origin string, from From) (p Person, err error) {
	if err := clean(&in.Name, &in.Zone, &in.Email, false); err != nil {
		return p, err
	}
	if err := s.checkNew(ctx, "set-up", origin, in.Challenge, in.Phrase, from); err != nil {
		return p, err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if err := use(tx, in.Challenge); err != nil {
			return err
		}
		p = Person{Method: Phrase}
		err := tx.One(`DELETE FROM challenge WHERE id = $1 AND purpose = $2 AND expires_at > $3 RETURNING account`, []any{hash(in.Secret), linkPurpose, tx.Now}, &p.Account)
		if db.IsNone(err) {
			return badLink()
		}
		if err != nil {
			return err
		}
		as := from.as(ctx, p.Account)
		if err := describe(tx, &p, in); err != nil {
			return err
		}
		if err := setPhrase(as, tx, p.Account, in.Phrase.Public); err != nil {
			return err
		}
		// What could let somebody else in goes: other links, mailed codes, sessions.
		if _, err := tx.Exec(`DELETE FROM challenge WHERE account = $1 AND purpose <> $2`, p.Account, mailedPurpose); err != nil {
			return err
		}
		if _, err := endIn(as, tx, `account = $1`, p.Account); err != nil {
			return err
		}
		return audit.WriteEvent(as, tx, accountSetUp, p.Account)
	})
	if err != nil {
		return Person{}, s.wrong(ctx, from, "set-up", err)
	}
	return p, nil
}

// describe writes what the account's holder says of themselves and fills in the person.
func describe(tx *db.Tx, p *Person, in SetUpIn) error {
	var disabled, admitted *int64
	var zone string
	if err := tx.One(`SELECT name, zone, disabled_at, admitted_at FROM account WHERE id = $1`+tx.ForUpdate(), []any{p.Account}, &p.Name, &zone, &disabled, &admitted); err != nil {
		return err
	}
	if disabled != nil {
		return badLink()
	}
	p.Waiting = admitted == nil
	if in.Name != "" {
		p.Name = in.Name
	}
	if in.Zone != "" {
		zone = in.Zone
	}
	_, err := tx.Exec(`UPDATE account SET name = $2, name_folded = $3, zone = $4 WHERE id = $1`, p.Account, p.Name, who.Fold(p.Name), zone)
	if db.IsUnique(err) {
		f := fault.New(fault.Conflict, "there is an account named %q already: take another name", p.Name)
		f.Field = "name"
		return f
	}
	if err != nil || in.Email == "" {
		return err
	}
	_, err = tx.Exec(`UPDATE account SET email = $2, email_folded = $3, email_confirmed_at = NULL WHERE id = $1 AND (email_folded IS NULL OR email_folded <> $3)`, p.Account, in.Email, who.Fold(in.Email))
	return err
}

// clean checks and trims a name, a zone and an address. Only where all is asked for must name and zone be given.
func clean(name, zone, email *string, all bool) (err error) {
	if *name = strings.TrimSpace(*name); *name != "" || all {
		cleaned, err := account.CleanName("name", *name)
		if err != nil || who.Fold(*name) == "" || !plain(*name, 300) {
			return fault.Bad("name", "is %q, must be 1 to 300 characters without control characters", clip(*name))
		}
		*name = cleaned
	}
	if *zone == "" && all {
		*zone = "UTC"
	}
	if *zone != "" {
		if l, err := time.LoadLocation(*zone); err != nil || l == time.Local || len(*zone) > 100 {
			return fault.Bad("zone", "is %q, must be an IANA zone such as Europe/Vienna or UTC", clip(*zone))
		}
	}
	if strings.TrimSpace(*email) == "" {
		*email = ""
		return nil
	}
	*email, err = checkEmail(*email)
	return err
}

// SignUpIn is what somebody says who asks for an account. Phrase answers a challenge for "sign-up". Zone is UTC where it is
// left out, Email may be.
type SignUpIn struct {
	Challenge string      `json:"challenge"`
	Name      string      `json:"name"`
	Zone      string      `json:"zone"`
	Email     string      `json:"email"`
	Phrase    PhraseProof `json:"phrase"`
}

// SignUp makes an account that waits for an admin to admit it.
func (s *Service) SignUp(ctx context.Context, in SignUpIn, origin string, from From) (p Person, err error) {
	if err := clean(&in.Name, &in.Zone, &in.Email, true); err != nil {
		return p, err
	}
	if err := s.checkNew(ctx, "sign-up", origin, in.Challenge, in.Phrase, from); err != nil {
		return p, err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if err := use(tx, in.Challenge); err != nil {
			return err
		}
		if err := mayJoin(tx, from); err != nil {
			return err
		}
		p = Person{Name: in.Name, Method: Phrase, Waiting: true}
		if p.Account, err = account.Create(tx, account.Newcomer{Name: in.Name, Zone: in.Zone}); err != nil {
			return err
		}
		if in.Email != "" {
			if err := setUnconfirmed(tx, p.Account, in.Email); err != nil {
				return err
			}
		}
		as := from.as(ctx, p.Account)
		if err := setPhrase(as, tx, p.Account, in.Phrase.Public); err != nil {
			return err
		}
		return audit.WriteEvent(as, tx, signedUp, p.Account)
	})
	if err != nil {
		return Person{}, s.wrong(ctx, from, "sign-up", err)
	}
	return p, nil
}

// mayJoin holds sign-ups to their limits.
func mayJoin(tx *db.Tx, from From) error {
	var n int
	if err := tx.One(`SELECT count(*) FROM account WHERE admitted_at IS NULL`, nil, &n); err != nil {
		return err
	}
	if n >= mostWaiting {
		return fault.New(fault.Unavailable, "%d accounts wait to be admitted, which is the most: ask the server's admin to look at them, and try again then", n).With("reason", "unavailable")
	}
	ok, err := countHour(tx, "address:"+audit.Place(from.Address), signedUpPurpose, signUpsAnHour)
	if err == nil && !ok {
		err = fault.New(fault.Unavailable, "%d accounts were made from your address within the hour, which is the most: try again in an hour", signUpsAnHour).With("reason", "unavailable")
	}
	return err
}
