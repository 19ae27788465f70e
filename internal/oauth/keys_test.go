package oauth_test

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"cairn/internal/apptest"
	"cairn/internal/fault"
)

// claims reads the claims of an access token without checking it.
func claims(t testing.TB, token string) map[string]any {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("no JWT: %q", token)
	}
	b, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	apptest.Decode(t, b, &c)
	return c
}

func segment(v any) string {
	b, _ := json.Marshal(v)
	return base64.RawURLEncoding.EncodeToString(b)
}

// forge makes a JWT of a header and claims with a signature.
func forge(header, claims map[string]any, sign func(signed []byte) []byte) string {
	text := segment(header) + "." + segment(claims)
	return text + "." + base64.RawURLEncoding.EncodeToString(sign([]byte(text)))
}

// signingKey reads the server's own key, as no attacker can.
func (w *world) signingKey(t testing.TB) (id string, private ed25519.PrivateKey) {
	t.Helper()
	var text string
	if err := w.DB.One(context.Background(), `SELECT id, private FROM oauth_key WHERE retired_at IS NULL ORDER BY created_at DESC, id DESC LIMIT 1`, nil, &id, &text); err != nil {
		t.Fatal(err)
	}
	seed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return id, ed25519.NewKeyFromSeed(seed)
}

func TestForgedAccessTokensOpenNothing(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		k := w.letIn(t, ben, everything(ben))
		id, private := w.signingKey(t)
		public := private.Public().(ed25519.PublicKey)
		good := claims(t, k.Access)
		header := map[string]any{"alg": "EdDSA", "kid": id, "typ": "at+jwt"}
		with := func(m map[string]any, name string, v any) map[string]any {
			m = maps.Clone(m)
			if m[name] = v; v == nil {
				delete(m, name)
			}
			return m
		}
		ours := func(b []byte) []byte { return ed25519.Sign(private, b) }
		_, foreign, _ := ed25519.GenerateKey(rand.Reader)
		theirs := func(b []byte) []byte { return ed25519.Sign(foreign, b) }
		nothing := func([]byte) []byte { return nil }
		hs := func(b []byte) []byte { m := hmac.New(sha256.New, public); m.Write(b); return m.Sum(nil) }
		w.answers(t, forge(header, good, ours), http.StatusOK) // the forger works
		parts := strings.Split(k.Access, ".")
		other := w.letIn(t, w.Account(t, "Ann"), everything(w.PersonNamed(t, "Ann")))
		for name, token := range map[string]string{
			"alg none":                   forge(with(header, "alg", "none"), good, nothing),
			"alg None with a signature":  forge(with(header, "alg", "None"), good, ours),
			"HS256 with the public key":  forge(with(header, "alg", "HS256"), good, hs),
			"typ JWT":                    forge(with(header, "typ", "JWT"), good, ours),
			"no typ":                     forge(with(header, "typ", nil), good, ours),
			"a foreign key id":           forge(with(header, "kid", strings.Repeat("0", len(id))), good, ours),
			"no key id":                  forge(with(header, "kid", nil), good, ours),
			"a foreign key under our id": forge(header, good, theirs),
			"a key of its own":           forge(with(header, "jwk", map[string]any{"kty": "OKP", "crv": "Ed25519", "x": base64.RawURLEncoding.EncodeToString(foreign.Public().(ed25519.PublicKey))}), good, theirs),
			"a changed payload":          parts[0] + "." + segment(with(good, "connection", claims(t, other.Access)["connection"])) + "." + parts[2],
			"a wider scope":              parts[0] + "." + segment(with(good, "scope", "cairn.read cairn.write admin")) + "." + parts[2],
			"another audience":           forge(header, with(good, "aud", "https://other.example/mcp"), ours),
			"an audience with a slash":   forge(header, with(good, "aud", w.OAuth.Resource()+"/"), ours),
			"several audiences":          forge(header, with(good, "aud", []string{w.OAuth.Resource(), "https://other.example/mcp"}), ours),
			"no audience":                forge(header, with(good, "aud", nil), ours),
			"another issuer":             forge(header, with(good, "iss", "https://other.example"), ours),
			"no expiry":                  forge(header, with(good, "exp", nil), ours),
			"no connection":              forge(header, with(good, "connection", nil), ours),
			"an unknown connection":      forge(header, with(good, "connection", "01890000-0000-7000-8000-00000000abcd"), ours),
			"no scope":                   forge(header, with(good, "scope", ""), ours),
			"claims that are no object":  forge(header, nil, ours),
			"a critical header":          forge(with(header, "crit", []string{"x"}), good, ours),
			"no signature":               parts[0] + "." + parts[1] + ".",
			"one character less":         k.Access[:len(k.Access)-1],
			"nonsense with two dots":     "a.b.c",
			"two dots":                   "..",
			"an encrypted one's form":    k.Access + ".x.y",
			"the refresh token":          k.Refresh,
			"the code":                   k.code,
		} {
			t.Run(name, func(t *testing.T) {
				r := w.answers(t, token, http.StatusUnauthorized)
				if c := r.Header.Get("WWW-Authenticate"); !strings.Contains(c, `error="invalid_token"`) || !strings.Contains(c, w.OAuth.Issuer()+"/.well-known/oauth-protected-resource/mcp") {
					t.Errorf("challenge: %q", c)
				}
			})
		}
		w.answers(t, k.Access, http.StatusOK)
	})
}

func TestAccessTokenExpiresAfterItsHour(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		k := w.letIn(t, ben, everything(ben))
		w.Clock.Move(time.Hour - time.Second)
		w.answers(t, k.Access, http.StatusOK)
		w.Clock.Move(2 * time.Second)
		if r := w.answers(t, k.Access, http.StatusUnauthorized); !strings.Contains(r.Body, "-32003") || !strings.Contains(r.Header.Get("WWW-Authenticate"), `error="invalid_token"`) {
			t.Errorf("expired: %s %v", r.Body, r.Header)
		}
		w.answers(t, w.tokens(t, w.refreshing(k)).Access, http.StatusOK)
	})
}

func (w *world) jwks(t testing.TB) (ids []string) {
	t.Helper()
	r := w.Do(t, "GET", "/.well-known/jwks.json", "")
	var set struct{ Keys []map[string]any }
	apptest.Decode(t, []byte(r.Body), &set)
	for _, k := range set.Keys {
		if k["d"] != nil || k["kty"] != "OKP" || k["crv"] != "Ed25519" || k["alg"] != "EdDSA" || k["use"] != "sig" || k["x"] == "" {
			t.Errorf("a published key: %v", k)
		}
		ids = append(ids, k["kid"].(string))
	}
	return ids
}

func TestSigningKeysRotate(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		k := w.letIn(t, ben, everything(ben))
		if ids := w.jwks(t); len(ids) != 1 {
			t.Errorf("keys at first: %v", ids)
		}
		w.Fails(t, ben, "rotate_signing_key", `{}`, fault.Denied)
		w.Call(t, w.Person(t), "rotate_signing_key", `{}`)
		if ids := w.jwks(t); len(ids) != 2 {
			t.Errorf("keys after a rotation: %v", ids)
		}
		w.answers(t, k.Access, http.StatusOK)
		newer := w.tokens(t, w.refreshing(k))
		if newer.Access[:20] == k.Access[:20] && strings.Split(newer.Access, ".")[0] == strings.Split(k.Access, ".")[0] {
			t.Error("the old key still signs")
		}
		w.Call(t, w.Person(t), "rotate_signing_key", `{"revoke":true}`)
		if ids := w.jwks(t); len(ids) != 1 {
			t.Errorf("keys after a revocation: %v", ids)
		}
		w.answers(t, k.Access, http.StatusUnauthorized)
		w.answers(t, newer.Access, http.StatusUnauthorized)
		k.Refresh = newer.Refresh
		w.answers(t, w.tokens(t, w.refreshing(k)).Access, http.StatusOK)
		if n := w.events(t, "signingKeyRotated"); n != 2 {
			t.Errorf("%d rotations are recorded", n)
		}
	})
}

func TestSigningKeyRetiresByItself(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ben := w.Account(t, "Ben")
		k := w.letIn(t, ben, everything(ben))
		purge := func() {
			if err := w.OAuth.Purge(context.Background(), w.DB); err != nil {
				t.Fatal(err)
			}
			w.Clock.Move(2 * time.Minute) // a replica reads its keys again by then
		}
		w.Clock.Move(31 * 24 * time.Hour)
		k.Tokens = w.tokens(t, w.refreshing(k))
		purge()
		if ids := w.jwks(t); len(ids) != 2 {
			t.Errorf("keys after a month: %v", ids)
		}
		w.answers(t, k.Access, http.StatusOK)
		w.Clock.Move(3 * time.Hour)
		purge()
		if ids := w.jwks(t); len(ids) != 1 {
			t.Errorf("a retired key lives on: %v", ids)
		}
	})
}
