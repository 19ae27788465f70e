package oauth

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"cairn/internal/account"
	"cairn/internal/audit"
	"cairn/internal/db"
)

const (
	mostRedirects    = 20
	mostURL          = 2048
	mostClientName   = 200
	mostMetadata     = 64 << 10
	registerRate     = 30             // new clients a minute and address
	mostUnused       = 5000           // clients that nobody ever let in
	unusedLife       = 24 * time.Hour // of such a client
	metadataLife     = time.Hour      // of what was read about a client
	kindRegistered   = "registered"
	kindMetadata     = "metadata"
	invalidMetadata  = "invalid_client_metadata"
	invalidRedirect  = "invalid_redirect_uri"
	grantCode        = "authorization_code"
	grantRefresh     = "refresh_token"
	authNone         = "none"
	schemeHTTPS      = "https"
	schemeHTTP       = "http"
	errUnknownClient = "invalid_client"
)

// Client is a program that may ask to be let in.
type Client struct {
	ID        string
	Kind      string // registered, or metadata: then ID is the address of the document about it
	Name      string // as it calls itself: untrusted
	CreatedAt int64
	Used      bool // somebody has let it in before
	metadata
}

// metadata are the registered members (RFC 7591 section 2) that matter here. All others are ignored: a logo, above all,
// would lend trust that nobody checked.
type metadata struct {
	RedirectURIs    []string `json:"redirect_uris"`
	GrantTypes      []string `json:"grant_types,omitempty"`
	Scope           string   `json:"scope,omitempty"`
	SoftwareID      string   `json:"software_id,omitempty"`
	SoftwareVersion string   `json:"software_version,omitempty"`
}

type registration struct {
	metadata
	Name          string   `json:"client_name,omitempty"`
	ResponseTypes []string `json:"response_types,omitempty"`
}

// Registered is the answer to a registration (RFC 7591 section 3.2.1).
type Registered struct {
	ID            string   `json:"client_id"`
	IssuedAt      int64    `json:"client_id_issued_at"`
	Name          string   `json:"client_name,omitempty"`
	AuthMethod    string   `json:"token_endpoint_auth_method"`
	ResponseTypes []string `json:"response_types"`
	metadata
}

// Register takes a client in by what it says of itself (RFC 7591). Its faults are *Error; a *fault.Error says that too many
// came from the address.
//
// A hosted connector registers the same text for each of its users, all from a few addresses: it is one client, and such a
// repetition doesn't count.
func (s *Service) Register(ctx context.Context, body []byte, from From) (Registered, error) {
	var r registration
	if err := json.Unmarshal(body, &r); err != nil {
		return Registered{}, refuse(http.StatusBadRequest, invalidMetadata, "the body must be a JSON object of client metadata")
	}
	if err := r.check(); err != nil {
		return Registered{}, err
	}
	data, err := json.Marshal(r.metadata)
	if err != nil {
		return Registered{}, err
	}
	digest := sum(r.Name + "\x00" + string(data))
	out := Registered{ID: db.NewID(), Name: r.Name, AuthMethod: authNone, ResponseTypes: []string{"code"}, metadata: r.metadata}
	hosted := !slices.ContainsFunc(r.RedirectURIs, func(u string) bool { return !strings.HasPrefix(u, schemeHTTPS+"://") })
	if hosted {
		var id string
		var created int64
		err := s.db.One(ctx, `SELECT id, created_at FROM oauth_client WHERE digest = $1 AND kind = $2 ORDER BY created_at LIMIT 1`, []any{digest, kindRegistered}, &id, &created)
		if err == nil {
			out.ID, out.IssuedAt = id, created/1e6
			return out, nil
		}
		if !db.IsNone(err) {
			return out, err
		}
	}
	w, err := s.limiter.Take(ctx, "register:"+audit.Place(from.Address), registerRate)
	if err != nil {
		return out, err
	}
	if !w.Allowed {
		s.refused("register:"+from.Address, from)
		return out, w.Refusal(time.UnixMicro(s.limiter.Now()))
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if err := makeRoom(tx); err != nil {
			return err
		}
		out.IssuedAt = tx.Now / 1e6
		_, err := tx.Exec(`INSERT INTO oauth_client (id, kind, name, data, digest, address, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			out.ID, kindRegistered, r.Name, string(data), digest, from.Address, tx.Now)
		return err
	})
	return out, err
}

// makeRoom drops the oldest clients that nobody let in and that have had an attempt's time to be, once there are too many.
func makeRoom(tx *db.Tx) error {
	var n int
	if err := tx.One(`SELECT count(*) FROM oauth_client WHERE used_at IS NULL`, nil, &n); err != nil || n < mostUnused {
		return err
	}
	dropped, err := tx.Exec(`DELETE FROM oauth_client WHERE id IN (SELECT id FROM oauth_client WHERE used_at IS NULL AND created_at < $1
		AND NOT EXISTS (SELECT 1 FROM oauth_attempt t WHERE t.client = oauth_client.id AND t.expires_at > $2) ORDER BY created_at LIMIT 100)`, tx.Now-AttemptLife.Microseconds(), tx.Now)
	if err == nil && dropped == 0 {
		err = refuse(http.StatusServiceUnavailable, "temporarily_unavailable", "too many programs have registered in the last minutes; try again in ten minutes")
	}
	return err
}

func (r *registration) check() error {
	bad := func(code, format string, args ...any) error {
		return refuse(http.StatusBadRequest, code, fmt.Sprintf(format, args...))
	}
	if r.Name = clean(r.Name); len([]rune(r.Name)) > mostClientName {
		return bad(invalidMetadata, "client_name may have at most %d characters", mostClientName)
	}
	switch n := len(r.RedirectURIs); {
	case n == 0:
		return bad(invalidRedirect, "redirect_uris must name at least one address")
	case n > mostRedirects:
		return bad(invalidRedirect, "redirect_uris has %d addresses, at most %d are taken", n, mostRedirects)
	}
	for _, u := range r.RedirectURIs {
		if why := badRedirect(u); why != "" {
			return bad(invalidRedirect, "redirect_uris: %.200q %s", u, why)
		}
	}
	if r.GrantTypes == nil {
		r.GrantTypes = []string{grantCode}
	}
	r.GrantTypes = slices.DeleteFunc(r.GrantTypes, func(g string) bool { return g != grantCode && g != grantRefresh })
	if !slices.Contains(r.GrantTypes, grantCode) {
		return bad(invalidMetadata, "grant_types must have authorization_code in it: no other way in is offered")
	}
	if r.ResponseTypes != nil && !slices.Contains(r.ResponseTypes, "code") {
		return bad(invalidMetadata, "response_types must have code in it: no other is offered")
	}
	r.Scope = known(r.Scope)
	r.SoftwareID, r.SoftwareVersion = clip(clean(r.SoftwareID)), clip(clean(r.SoftwareVersion))
	return nil
}

func clip(s string) string {
	if r := []rune(s); len(r) > mostClientName {
		return string(r[:mostClientName])
	}
	return s
}

// clean takes signs out of a client's text that can't be seen or that turn the direction of text around.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.Join(strings.Fields(s), " ")
}

// hostForm is what a host may consist of: it stands in the consent page's policy, where ; and , begin something else.
var hostForm = regexp.MustCompile(`^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]*)?$`)

var privateScheme = regexp.MustCompile(`^[a-z][a-z0-9+.-]*$`)

// active are schemes that a browser would run or open itself instead of handing over to a program.
var active = []string{"about", "blob", "chrome", "chrome-extension", "data", "devtools", "edge", "file", "filesystem", "ftp", "intent", "jar", "javascript",
	"mailto", "moz-extension", "ms-settings", "res", "resource", "search-ms", "sms", "ssh", "tel", "vbscript", "view-source", "ws", "wss"}

// badRedirect says what is wrong with a redirect address, or nothing. Right are https, http to this device alone (RFC 8252
// section 7.3), and a program's own scheme (section 7.1).
func badRedirect(address string) string {
	u, err := url.Parse(address)
	switch {
	case len(address) > mostURL:
		return fmt.Sprintf("has more than %d characters", mostURL)
	case err != nil || u.Scheme == "" || strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f || r > 0x7e }):
		return "is not an address"
	case strings.Contains(address, "#"):
		return "must have no fragment"
	case u.User != nil:
		return "must have no user in it"
	case u.Port() != "" && !port(u.Port()):
		return "has a port that there isn't"
	case u.Scheme == schemeHTTPS && u.Hostname() != "" && !hostForm.MatchString(u.Host):
		return "has a host that there isn't"
	case u.Scheme == schemeHTTPS && u.Hostname() != "":
		return ""
	case u.Scheme == schemeHTTPS:
		return "has no host"
	case u.Scheme == schemeHTTP && loopback(u.Hostname()):
		return ""
	case u.Scheme == schemeHTTP:
		return "must be https, since it leaves this device"
	case slices.Contains(active, u.Scheme) || !privateScheme.MatchString(u.Scheme):
		return "has a scheme that isn't taken"
	case u.Opaque == "" && u.Host == "" && u.Path == "":
		return "is not an address"
	}
	return ""
}

func port(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && (a == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || a == netip.IPv6Loopback())
}

// fits tells whether a redirect address is one that the client registered: byte for byte, but for the port of this device's
// own addresses, which a program learns only when it starts (RFC 8252 section 7.3).
func fits(registered []string, asked string) bool {
	if slices.Contains(registered, asked) {
		return true
	}
	a, err := url.Parse(asked)
	if err != nil || badRedirect(asked) != "" || a.Scheme != schemeHTTP || !loopback(a.Hostname()) {
		return false
	}
	return slices.ContainsFunc(registered, func(r string) bool {
		b, err := url.Parse(r)
		if err != nil || b.Scheme != schemeHTTP || b.Hostname() != a.Hostname() {
			return false
		}
		return path(a) == path(b) && a.RawQuery == b.RawQuery
	})
}

func path(u *url.URL) string {
	if p := u.EscapedPath(); p != "/" {
		return p
	}
	return ""
}

// scopeNames are the scopes by all names they are taken under.
var scopeNames = map[string]string{
	account.ScopeRead: account.ScopeRead, "heaper.mcp.read": account.ScopeRead,
	account.ScopeWrite: account.ScopeWrite, "heaper.mcp.write": account.ScopeWrite,
	account.ScopeStay: account.ScopeStay,
}

// known gives the scopes among those named that there are, in our order and under our names.
func known(scope string) string {
	var have [3]bool
	order := []string{account.ScopeRead, account.ScopeWrite, account.ScopeStay}
	for name := range strings.FieldsSeq(scope) {
		if i := slices.Index(order, scopeNames[name]); i >= 0 {
			have[i] = true
		}
	}
	var out []string
	for i, name := range order {
		if have[i] {
			out = append(out, name)
		}
	}
	return strings.Join(out, " ")
}

// client finds a client by its id. One that isn't there is an *Error. fetch lets what a client says of itself elsewhere be
// read again: where a person looks at it, not where tokens are refreshed.
func (s *Service) client(ctx context.Context, id string, fetch bool) (c Client, err error) {
	unknown := refuse(http.StatusUnauthorized, errUnknownClient, "no program with this client_id has registered here; it may register again")
	if len(id) > mostURL || !storable(id) {
		return c, unknown
	}
	if strings.HasPrefix(id, schemeHTTPS+"://") && s.Fetcher != nil {
		return s.metadataClient(ctx, id, fetch)
	}
	c, _, err = s.readClient(ctx, id)
	if db.IsNone(err) || err == nil && c.Kind != kindRegistered {
		return c, unknown
	}
	return c, err
}

func (s *Service) readClient(ctx context.Context, id string) (c Client, fetched int64, err error) {
	var data string
	var at, used *int64
	err = s.db.One(ctx, `SELECT id, kind, name, data, created_at, fetched_at, used_at FROM oauth_client WHERE id = $1`, []any{id}, &c.ID, &c.Kind, &c.Name, &data, &c.CreatedAt, &at, &used)
	if err != nil {
		return c, 0, err
	}
	if at != nil {
		fetched = *at
	}
	c.Used = used != nil
	return c, fetched, json.Unmarshal([]byte(data), &c.metadata)
}

// metadataClient gives a client whose id is the address of a document about it (client ID metadata documents), read again
// once it is metadataLife old.
func (s *Service) metadataClient(ctx context.Context, id string, fetch bool) (Client, error) {
	u, err := url.Parse(id)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || path(u) == "" || slices.ContainsFunc(strings.Split(u.Path, "/"), func(p string) bool { return p == "." || p == ".." }) {
		return Client{}, refuse(http.StatusUnauthorized, errUnknownClient, "the client_id must be the https address of a document, with a path")
	}
	c, fetched, err := s.readClient(ctx, id)
	if err == nil && (!fetch || s.db.Now()-fetched < metadataLife.Microseconds()) {
		return c, nil
	}
	if err != nil && !db.IsNone(err) {
		return c, err
	}
	if !fetch { // nobody was ever let in under it
		return Client{}, refuse(http.StatusUnauthorized, errUnknownClient, "no program with this client_id was let in here; send the person to /oauth/authorize")
	}
	fresh := err != nil
	body, _, err := s.Fetcher.Get(ctx, id, mostMetadata)
	if err != nil {
		s.log.Info("a client's metadata document could not be read", "client", id, "cause", err.Error())
		return Client{}, refuse(http.StatusBadRequest, errUnknownClient, "the document that the client_id names could not be read")
	}
	var doc struct {
		ID string `json:"client_id"`
		registration
	}
	if err := json.Unmarshal(body, &doc); err != nil || doc.ID != id {
		return Client{}, refuse(http.StatusBadRequest, errUnknownClient, "the document that the client_id names is not about this client")
	}
	if err := doc.check(); err != nil {
		return Client{}, err
	}
	for _, r := range doc.RedirectURIs {
		if ru, err := url.Parse(r); err == nil && ru.Scheme == schemeHTTPS && net.ParseIP(ru.Hostname()) != nil {
			return Client{}, refuse(http.StatusBadRequest, invalidRedirect, "the document's redirect addresses must name hosts")
		}
	}
	data, err := json.Marshal(doc.metadata)
	if err != nil {
		return Client{}, err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if fresh {
			if err := makeRoom(tx); err != nil {
				return err
			}
		}
		_, err := tx.Exec(`INSERT INTO oauth_client (id, kind, name, data, digest, address, created_at, fetched_at) VALUES ($1, $2, $3, $4, $5, '', $6, $6)
			ON CONFLICT (id) DO UPDATE SET name = excluded.name, data = excluded.data, digest = excluded.digest, fetched_at = excluded.fetched_at`,
			id, kindMetadata, doc.Name, string(data), sum(string(body)), tx.Now)
		return err
	})
	if err != nil {
		return Client{}, err
	}
	c, _, err = s.readClient(ctx, id)
	return c, err
}
