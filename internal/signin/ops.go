package signin

import (
	"context"
	"strings"

	"cairn/internal/audit"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

// emailID names the e-mail address among the ways to sign in.
const emailID = "email"

// Ops are the operations of this package.
func (s *Service) Ops() []*op.Op {
	base := op.Op{Area: who.Core, Set: "admin", PersonOnly: true}
	define := func(name, title, doc string, effect op.Effect, example string) op.Op {
		o := base
		o.Name, o.Title, o.Doc, o.Effect, o.Example = name, title, doc, effect, example
		o.Idempotent, o.Confirm = effect != op.Write, effect == op.Destroy
		return o
	}
	confirm := define("confirm_email", "Confirm email", "Confirm your e-mail address with the code that set_email mailed. Five tries.", op.Write, `{"challenge":"01890a5d-ac96-774b-bcce-b302099a8057","code":"12345678"}`)
	mail := define("set_email", "Set email", "Change your e-mail address: a code goes to it, for confirm_email. A confirmed address stays until then.", op.Write, `{"email":"ana@example.org"}`)
	mail.OpenWorld = true
	return []*op.Op{
		op.Define(define("list_sessions", "List sessions", "Where you are signed in: browser, address and when it was last seen.", op.Read, ""), s.listSessions),
		op.Define(define("end_session", "End session", "Sign a browser of yours out at once, or all but this one.", op.Destroy, `{"others":true}`), s.endSession),
		op.Define(define("list_sign_in", "List sign-in", "Your ways to sign in: phrase, passkeys, and e-mail address.", op.Read, ""), s.listSignIn),
		op.Define(define("remove_sign_in", "Remove sign-in", "Take away a way to sign in, by its id, or the address by \"email\". The last one stays.", op.Destroy, `{"id":"email"}`), s.removeSignIn),
		op.Define(mail, s.setEmail),
		op.Define(confirm, s.confirmEmail),
		op.Define(define("create_setup_link", "Create set-up link", "Make a link that sets up an account, or gives it back after its phrase was lost: good once, for a day. Your own, or as an admin anybody's.", op.Write, ""), s.createSetupLink),
	}
}

type sessionOut struct {
	ID        string `json:"id"`
	Method    string `json:"method"`
	Address   string `json:"address"`
	Client    string `json:"client"`
	CreatedAt string `json:"created_at"`
	SeenAt    string `json:"seen_at"`
	Current   bool   `json:"current"`
}

type sessionsOut struct {
	Count    int          `json:"count"`
	Sessions []sessionOut `json:"sessions"`
}

func (s *Service) listSessions(ctx context.Context, _ struct{}) (out sessionsOut, err error) {
	c := who.From(ctx)
	list, err := s.sessions(ctx, c.Account)
	out.Sessions = []sessionOut{}
	for _, x := range list {
		out.Sessions = append(out.Sessions, sessionOut{x.ID, x.Method, x.Address, x.Client, op.Stamp(x.CreatedAt), op.Stamp(x.SeenAt), x.ID == c.Session})
	}
	out.Count = len(list)
	return out, err
}

type endingIn struct {
	Session string `json:"session" jsonschema:"id from list_sessions" rule:"min=1,max=100"`
	Others  bool   `json:"others" jsonschema:"all except this one"`
}

type endOut struct {
	Result string `json:"result"`
	Count  int    `json:"count"`
}

func (s *Service) endSession(ctx context.Context, in endingIn) (out endOut, err error) {
	c := who.From(ctx)
	out.Result = "updated"
	switch {
	case (in.Session == "") != in.Others:
		return out, fault.Bad("session", "or others must be given, not both")
	case in.Others:
		out.Count, err = s.EndOthers(ctx, c.Account, c.Session)
	case token(in.Session):
		out.Count, err = s.end(ctx, ctx, `id = $1 AND account = $2`, in.Session, c.Account)
	}
	if err == nil && out.Count == 0 && !in.Others {
		err = fault.New(fault.NotFound, "you have no session %q: see list_sessions", clip(in.Session))
	}
	if out.Count == 0 {
		out.Result = "existing"
	}
	return out, err
}

type methodOut struct {
	ID         string  `json:"id"`
	Kind       string  `json:"kind"`
	Name       string  `json:"name"`
	Host       string  `json:"host"`
	CreatedAt  string  `json:"created_at"`
	LastUsedAt *string `json:"last_used_at"`
}

type methodsOut struct {
	Count          int         `json:"count"`
	Methods        []methodOut `json:"methods"`
	Email          *string     `json:"email"`
	EmailConfirmed bool        `json:"email_confirmed"`
}

func (s *Service) listSignIn(ctx context.Context, _ struct{}) (methodsOut, error) {
	account := who.From(ctx).Account
	out := methodsOut{Methods: []methodOut{}}
	var confirmed *int64
	if err := s.db.One(ctx, `SELECT email, email_confirmed_at FROM account WHERE id = $1`, []any{account}, &out.Email, &confirmed); err != nil {
		return out, err
	}
	out.EmailConfirmed = confirmed != nil
	rows, err := s.db.Query(ctx, `SELECT id, kind, name, host, created_at, last_used_at FROM credential WHERE account = $1 ORDER BY created_at, id`, account)
	if err != nil {
		return out, err
	}
	defer rows.Close()
	for rows.Next() {
		var m methodOut
		var created int64
		var used *int64
		if err := rows.Scan(&m.ID, &m.Kind, &m.Name, &m.Host, &created, &used); err != nil {
			return out, err
		}
		m.CreatedAt = op.Stamp(created)
		if used != nil {
			at := op.Stamp(*used)
			m.LastUsedAt = &at
		}
		out.Methods = append(out.Methods, m)
	}
	out.Count = len(out.Methods)
	return out, rows.Err()
}

type removeIn struct {
	ID string `json:"id" jsonschema:"id from list_sign_in, or email" rule:"required,min=1,max=100"`
}

type removeOut struct {
	ID     string `json:"id"`
	Result string `json:"result"`
}

func (s *Service) removeSignIn(ctx context.Context, in removeIn) (removeOut, error) {
	c, err := s.person(ctx, true)
	if err != nil {
		return removeOut{}, err
	}
	missing := fault.New(fault.NotFound, "you have no way to sign in with the id %q: see list_sign_in", clip(in.ID))
	if !token(in.ID) {
		return removeOut{}, missing
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		var email *string
		var confirmed *int64
		// The account's row makes two that remove at once take turns: one of them would remove the last way in.
		if err := tx.One(`SELECT email, email_confirmed_at FROM account WHERE id = $1`+tx.ForUpdate(), []any{c.Account}, &email, &confirmed); err != nil {
			return err
		}
		var all, named int
		err := tx.One(`SELECT count(*), count(CASE WHEN id = $2 THEN 1 END) FROM credential WHERE account = $1`, []any{c.Account, in.ID}, &all, &named)
		if err != nil {
			return err
		}
		byMail := s.mail != nil && confirmed != nil
		left := all - named
		if byMail && in.ID != emailID {
			left++
		}
		switch {
		case in.ID == emailID && email == nil || in.ID != emailID && named == 0:
			return missing
		case left == 0 && (in.ID != emailID || byMail):
			return fault.New(fault.Conflict, "this is your last way to sign in: add another one first")
		case in.ID == emailID:
			_, err = tx.Exec(`UPDATE account SET email = NULL, email_folded = NULL, email_confirmed_at = NULL WHERE id = $1`, c.Account)
			if err == nil {
				_, err = tx.Exec(`DELETE FROM challenge WHERE account = $1 AND purpose NOT IN ($2, $3)`, c.Account, mailedPurpose, linkPurpose)
			}
		default:
			_, err = tx.Exec(`DELETE FROM credential WHERE id = $1 AND account = $2`, in.ID, c.Account)
		}
		if err != nil {
			return err
		}
		return audit.WriteEvent(ctx, tx, signInRemoved, c.Account+" "+in.ID)
	})
	return removeOut{in.ID, "updated"}, err
}

type emailIn struct {
	Email string `json:"email" rule:"required,min=3,max=254"`
}

type emailOut struct {
	Result    string `json:"result"`
	Challenge string `json:"challenge"`
}

func (s *Service) setEmail(ctx context.Context, in emailIn) (emailOut, error) {
	c, err := s.person(ctx, true)
	if err != nil {
		return emailOut{}, err
	}
	challenge, err := s.SetEmail(ctx, c.Account, in.Email)
	return emailOut{"sent", challenge}, err
}

type confirmIn struct {
	Challenge string `json:"challenge" jsonschema:"from set_email" rule:"required,min=1,max=100"`
	Code      string `json:"code" jsonschema:"from the mail" rule:"required,min=1,max=40"`
}

type confirmOut struct {
	Result string `json:"result"`
}

func (s *Service) confirmEmail(ctx context.Context, in confirmIn) (confirmOut, error) {
	err := s.ConfirmEmail(ctx, who.From(ctx).Account, in.Challenge, in.Code)
	if fault.Is(err, fault.Unauthenticated) { // the caller is who they are; it is the code that is wrong
		err = fault.Bad("code", "does not fit, was used before, or came too late: look at the newest mail, or begin anew with set_email")
	}
	return confirmOut{"updated"}, err
}

type linkIn struct {
	Account string `json:"account" jsonschema:"name; your own by default" rule:"min=1,max=300"`
}

type linkOut struct {
	Link      string `json:"link"` // the secret stands in the fragment, so that no log sees it
	ExpiresAt string `json:"expires_at"`
}

func (s *Service) createSetupLink(ctx context.Context, in linkIn) (out linkOut, err error) {
	c, err := s.person(ctx, true)
	if err != nil {
		return out, err
	}
	id := c.Account
	if in.Account != "" && in.Account != id && who.Fold(in.Account) != who.Fold(c.AccountName) {
		if !c.Admin {
			return out, fault.New(fault.Denied, "only the server's admin may make links for another account")
		}
		err := s.db.One(ctx, `SELECT id FROM account WHERE id = $1 OR name_folded = $2 ORDER BY CASE WHEN id = $1 THEN 0 ELSE 1 END LIMIT 1`, []any{in.Account, who.Fold(in.Account)}, &id)
		if db.IsNone(err) {
			return out, fault.New(fault.NotFound, "there is no account %q", in.Account)
		}
		if err != nil {
			return out, err
		}
	}
	secret, expires, err := s.setupLink(ctx, id)
	if err != nil {
		return out, err
	}
	return linkOut{strings.TrimSuffix(s.public.String(), "/") + "/setup#" + secret, op.Stamp(expires)}, nil
}
