package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/internal/audit"
	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

// Prefix begins every API token, so that one that leaked can be recognised.
const Prefix = "cairn_"

// secretBytes of randomness are in a token.
const secretBytes = 32

var secretText = base32.StdEncoding.WithPadding(base32.NoPadding)

func newSecret() string {
	b := make([]byte, secretBytes)
	_, _ = rand.Read(b) // never fails since Go 1.24
	return Prefix + strings.ToLower(secretText.EncodeToString(b))
}

func hash(token string) string {
	h := sha256.Sum256([]byte(token))
	return hex.EncodeToString(h[:])
}

// ByToken gives the caller behind an API token used from an address ("" = unknown). Its faults are those of the contract's
// table: token_invalid, token_expired, token_inactive, and denied for an address that is not on the token's list or while
// agents are paused; then with a caller that may do nothing, as ByConnection.
func (s *Service) ByToken(ctx context.Context, token, address string) (*who.Caller, error) {
	invalid := fault.Wrap(fault.TokenInvalid, errNoToken, "The token is not valid")
	if len(token) != len(Prefix)+secretText.EncodedLen(secretBytes) || !strings.HasPrefix(token, Prefix) {
		return nil, invalid
	}
	want := hash(token)
	var (
		c                          who.Caller
		stored, zone, text         string
		admin                      int64
		expires, revoked, disabled *int64
		paused                     *int64
		heaps, server              *string
		r                          rights
	)
	err := s.db.One(ctx, `SELECT t.id, t.hash, t.rights, t.expires_at, t.revoked_at, a.id, a.name, a.zone, a.admin, a.disabled_at, a.agents_paused_at, `+serverPaused+`, `+heapsColumn+`
		FROM token t JOIN account a ON a.id = t.account WHERE t.hash = $1`, []any{want, fieldEnd, heapEnd},
		&c.Token, &stored, &text, &expires, &revoked, &c.Account, &c.AccountName, &zone, &admin, &disabled, &paused, &server, &heaps)
	if db.IsNone(err) {
		return nil, invalid
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &r)
	}
	switch {
	case err != nil:
		return nil, err
	case subtle.ConstantTimeCompare([]byte(stored), []byte(want)) != 1:
		return nil, invalid
	case revoked != nil || disabled != nil:
		return nil, fault.New(fault.TokenInactive, "The token was revoked, or its account is disabled")
	case expires != nil && *expires <= s.db.Now():
		return nil, fault.New(fault.TokenExpired, "The token expired on %s", op.Stamp(*expires))
	case r.Addresses != nil && !allowed(r.Addresses, address):
		return nil, fault.New(fault.Denied, "The token may not be used from this address")
	case paused != nil || server != nil:
		return &who.Caller{Actor: "token:" + c.Token, Account: c.Account}, errPaused
	}
	c.Actor, c.Zone, c.Write, c.Propose, c.Admin = "token:"+c.Token, location(zone), r.Write, r.Propose, admin == 1
	c.Areas, c.AllAreas, c.Limited, c.Rate = r.Areas, r.Areas == nil, true, -1
	if r.Rate != nil {
		c.Rate = *r.Rate
	}
	c.Heaps = readHeaps(heaps, r.Heaps)
	return &c, nil
}

// rights are what a token may, as stored. A nil list means all, later ones too.
type rights struct {
	Write     bool     `json:"write,omitempty"`
	Propose   bool     `json:"propose,omitempty"`
	Areas     []string `json:"areas,omitempty"`
	Heaps     []string `json:"heaps,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	Rate      *int     `json:"rate,omitempty"` // nil = the server's default
}

func allowed(cidrs []string, address string) bool {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	for _, c := range cidrs {
		if p, err := netip.ParsePrefix(c); err == nil && p.Contains(a.Unmap()) {
			return true
		}
	}
	return false
}

type tokenIn struct {
	Name          string   `json:"name" rule:"required,min=1,max=300"`
	Account       string   `json:"account" jsonschema:"name of the account it speaks for; yours by default" rule:"max=300"`
	ReadOnly      bool     `json:"read_only"`
	ProposeMemory bool     `json:"propose_memory" jsonschema:"new memories wait for the owner"`
	Areas         []string `json:"areas" rule:"min=1,max=50,enum=tasks|memory|library|documents|personas"`
	Heaps         []string `json:"heaps" jsonschema:"ids or names; all by default, later ones too" rule:"min=1,max=50"`
	Expires       string   `json:"expires" jsonschema:"such as 90d, 12h, never, or a date" rule:"max=40"`
	Rate          *int     `json:"rate" jsonschema:"calls per minute, 0 = no limit" rule:"min=0,max=1000000"`
	AllowIP       []string `json:"allow_ip" jsonschema:"addresses or CIDR ranges it may be used from" rule:"min=1,max=50"`
}

// Token is an API token as its owner sees it.
type Token struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Account    string   `json:"account"`
	State      string   `json:"state"` // active, expired, revoked
	ReadOnly   bool     `json:"read_only"`
	Propose    bool     `json:"propose_memory"`
	Areas      []string `json:"areas"` // null = all
	Heaps      []string `json:"heaps"` // names; null = all
	AllowIP    []string `json:"allow_ip"`
	Rate       *int     `json:"rate"`
	ExpiresAt  *string  `json:"expires_at"`
	CreatedAt  string   `json:"created_at"`
	LastUsedAt *string  `json:"last_used_at"`
	Calls      int64    `json:"calls"`
	Errors     int64    `json:"errors"`
	AverageMS  float64  `json:"average_ms"`

	heapIDs []string // nil = all
}

type tokenOut struct {
	ID     string `json:"id"`
	Result string `json:"result"`
	Secret string `json:"secret,omitempty"` // the token itself, shown this once
	Token  Token  `json:"token"`
}

func (s *Service) createToken(ctx context.Context, in tokenIn) (out tokenOut, err error) {
	owner, err := s.holder(ctx, in.Account)
	if err != nil {
		return out, err
	}
	now := s.db.Now()
	if err := Fresh(who.From(ctx), now); err != nil {
		return out, err
	}
	expires, err := s.expiry(in.Expires, now, owner.Zone)
	if err != nil {
		return out, err
	}
	heaps, err := heapIDs(owner, in.Heaps)
	if err != nil {
		return out, err
	}
	addresses, err := prefixes(in.AllowIP)
	if err != nil {
		return out, err
	}
	may, err := json.Marshal(rights{Write: !in.ReadOnly, Propose: in.ProposeMemory, Areas: in.Areas, Heaps: heaps, Addresses: addresses, Rate: in.Rate})
	if err != nil {
		return out, err
	}
	secret, id := newSecret(), db.NewID()
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(`INSERT INTO token (id, account, name, hash, rights, expires_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			id, owner.Account, strings.TrimSpace(in.Name), hash(secret), string(may), expires, tx.Now)
		if err != nil {
			return err
		}
		return audit.WriteEvent(ctx, tx, audit.TokenCreated, id+" "+in.Name)
	})
	if err != nil {
		return out, err
	}
	list, err := s.tokens(ctx, `t.id = $1`, id)
	if err != nil {
		return out, err
	}
	return tokenOut{ID: id, Result: "created", Secret: secret, Token: list[0]}, nil
}

// holder gives the account a token is to speak for. Only an admin may name another's.
func (s *Service) holder(ctx context.Context, name string) (*who.Caller, error) {
	c := who.From(ctx)
	if name == "" || who.Fold(name) == who.Fold(c.AccountName) {
		return c, nil
	}
	if !c.Admin {
		return nil, fault.New(fault.Denied, "only the server's admin may make tokens for another account")
	}
	return s.Owner(ctx, name, true)
}

func (s *Service) expiry(text string, now int64, zone *time.Location) (*int64, error) {
	if text == "" {
		at := now + s.DefaultExpiry.Microseconds()
		return &at, nil
	}
	if text == "never" {
		return nil, nil
	}
	at, ok := int64(0), false
	if n, err := strconv.Atoi(strings.TrimSuffix(text, "d")); err == nil && strings.HasSuffix(text, "d") && n > 0 && n <= 36500 {
		at, ok = now+int64(n)*24*time.Hour.Microseconds(), true
	} else if d, err := time.ParseDuration(text); err == nil && d > 0 {
		at, ok = now+d.Microseconds(), true
	} else if t, err := op.Since("expires", text, zone); err == nil && t > now {
		at, ok = t, true
	}
	if !ok {
		return nil, fault.Bad("expires", "is %q, must be a span such as 90d or 12h, never, or a date to come", text)
	}
	return &at, nil
}

func heapIDs(c *who.Caller, wanted []string) ([]string, error) {
	var out []string
	for _, w := range wanted {
		if strings.TrimSpace(w) == "" { // it would mean all of them
			return nil, fault.Bad("heaps", "has an empty element: name a heap, or leave heaps out for all")
		}
		hs, err := c.Readable(w)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, hs[0].ID) {
			out = append(out, hs[0].ID)
		}
	}
	return out, nil
}

func prefixes(texts []string) ([]string, error) {
	var out []string
	for _, t := range texts {
		p, err := netip.ParsePrefix(t)
		if err != nil {
			a, aerr := netip.ParseAddr(t)
			if aerr != nil {
				return nil, fault.Bad("allow_ip", "is %q, must be an address or a range such as 192.0.2.0/24", t)
			}
			a = a.Unmap()
			p = netip.PrefixFrom(a, a.BitLen())
		}
		out = append(out, p.Masked().String())
	}
	return out, nil
}

type tokensOut struct {
	Count  int     `json:"count"`
	Tokens []Token `json:"tokens"`
}

func (s *Service) listTokens(ctx context.Context, _ struct{}) (tokensOut, error) {
	where, args := `t.account = $1`, []any{who.From(ctx).Account}
	if who.From(ctx).Admin {
		where, args = `1 = 1`, nil
	}
	list, err := s.tokens(ctx, where, args...)
	return tokensOut{len(list), list}, err
}

func (s *Service) tokens(ctx context.Context, where string, args ...any) ([]Token, error) {
	names, err := s.heapNames(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.Query(ctx, `SELECT t.id, t.name, a.name, t.rights, t.expires_at, t.revoked_at, t.created_at, t.last_used_at, t.calls, t.errors, t.total_us
		FROM token t JOIN account a ON a.id = t.account WHERE `+where+` ORDER BY t.created_at DESC, t.id DESC`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []Token{}
	for rows.Next() {
		var t Token
		var r rights
		var text string
		var created, total int64
		var expires, revoked, used *int64
		if err := rows.Scan(&t.ID, &t.Name, &t.Account, &text, &expires, &revoked, &created, &used, &t.Calls, &t.Errors, &total); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return nil, err
		}
		t.heapIDs, t.State, t.ReadOnly, t.Propose, t.Areas, t.AllowIP, t.Rate, t.CreatedAt = r.Heaps, "active", !r.Write, r.Propose, r.Areas, r.Addresses, r.Rate, op.Stamp(created)
		for _, id := range r.Heaps {
			t.Heaps = append(t.Heaps, names[id])
		}
		t.ExpiresAt, t.LastUsedAt = stamp(expires), stamp(used)
		switch {
		case revoked != nil:
			t.State = "revoked"
		case expires != nil && *expires <= s.db.Now():
			t.State = "expired"
		}
		if t.Calls > 0 {
			t.AverageMS = float64(total/t.Calls/10) / 100
		}
		list = append(list, t)
	}
	return list, rows.Err()
}

func (s *Service) heapNames(ctx context.Context) (map[string]string, error) {
	rows, err := s.db.Query(ctx, `SELECT id, name FROM heap`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names := map[string]string{}
	for rows.Next() {
		var id, name string
		if err := rows.Scan(&id, &name); err != nil {
			return nil, err
		}
		names[id] = name
	}
	return names, rows.Err()
}

func stamp(at *int64) *string {
	if at == nil {
		return nil
	}
	s := op.Stamp(*at)
	return &s
}

type revokeIn struct {
	Token string `json:"token" jsonschema:"id or name" rule:"required,min=1,max=300"`
}

func (s *Service) revokeToken(ctx context.Context, in revokeIn) (out tokenOut, err error) {
	c := who.From(ctx)
	args := db.Args{}
	where := `(t.id = ` + args.Add(in.Token) + ` OR t.name = $1)`
	if !c.Admin {
		where += ` AND t.account = ` + args.Add(c.Account)
	}
	list, err := s.tokens(ctx, where, args...)
	if err != nil {
		return out, err
	}
	if i := slices.IndexFunc(list, func(t Token) bool { return t.ID == in.Token }); i >= 0 { // another may have the id for a name
		list = list[i : i+1]
	}
	if live := slices.DeleteFunc(slices.Clone(list), func(t Token) bool { return t.State == "revoked" }); len(live) > 0 {
		list = live
	}
	switch {
	case len(list) == 0:
		return out, fault.New(fault.NotFound, "there is no token with the id or name %q", in.Token)
	case len(list) > 1 && list[0].State != "revoked":
		e := fault.New(fault.Conflict, "%d tokens are named %q: give the id", len(list), in.Token)
		for _, t := range list {
			e.Valid = append(e.Valid, t.ID)
		}
		return out, e
	}
	id := list[0].ID
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(`UPDATE token SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL`, id, tx.Now)
		if err != nil {
			return err
		}
		out.Result = "existing"
		if n == 0 {
			return nil
		}
		out.Result = "updated"
		return audit.WriteEvent(ctx, tx, audit.TokenRevoked, id)
	})
	if err != nil {
		return out, err
	}
	list, err = s.tokens(ctx, `t.id = $1`, id)
	if err == nil {
		out.ID, out.Token = id, list[0]
	}
	return out, err
}
