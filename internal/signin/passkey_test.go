package signin_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	vw "github.com/descope/virtualwebauthn"

	"cairn/internal/fault"
	"cairn/internal/signin"
)

// device is an authenticator with one passkey.
type device struct {
	rp   vw.RelyingParty
	auth vw.Authenticator
	key  vw.Credential
}

// wholeKey is the length of a COSE key of two coordinates of 32 bytes.
const wholeKey = 77

func newDevice(account string) *device {
	key := vw.NewCredential(vw.KeyTypeEC2)
	for len(key.Key.AttestationData()) < wholeKey { // virtualwebauthn leaves leading zeros of a coordinate out, once in 128 keys
		key = vw.NewCredential(vw.KeyTypeEC2)
	}
	return &device{rp: vw.RelyingParty{ID: "cairn.example.org", Name: "Cairn", Origin: origin}, key: key,
		auth: vw.NewAuthenticatorWithOptions(vw.AuthenticatorOptions{UserHandle: []byte(account)})}
}

func (d *device) create(t *testing.T, options json.RawMessage) json.RawMessage {
	t.Helper()
	o, err := vw.ParseAttestationOptions(string(options))
	if err != nil {
		t.Fatal(err)
	}
	return json.RawMessage(vw.CreateAttestationResponse(d.rp, d.auth, d.key, *o))
}

func (d *device) get(t *testing.T, options json.RawMessage) json.RawMessage {
	t.Helper()
	o, err := vw.ParseAssertionOptions(string(options))
	if err != nil {
		t.Fatal(err)
	}
	d.key.Counter++
	return json.RawMessage(vw.CreateAssertionResponse(d.rp, d.auth, d.key, *o))
}

func (w *world) register(t *testing.T, ctx context.Context, d *device) string {
	t.Helper()
	challenge, options, err := w.BeginPasskey(ctx, origin)
	if err != nil {
		t.Fatal(err)
	}
	id, err := w.FinishPasskey(ctx, origin, challenge, " Laptop ", d.create(t, options))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestPasskey(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		_, ctx := w.in(t, w.setUp(t, key(t), "Ana", ""))
		d := newDevice(w.admin)
		challenge, options, err := w.BeginPasskey(ctx, origin)
		if err != nil {
			t.Fatal(err)
		}
		var o struct {
			PublicKey struct {
				RP                     struct{ ID string }
				User                   struct{ Name string }
				AuthenticatorSelection struct{ ResidentKey, UserVerification string }
			}
		}
		if err := json.Unmarshal(options, &o); err != nil || o.PublicKey.RP.ID != "cairn.example.org" || o.PublicKey.User.Name != "Ana" || o.PublicKey.AuthenticatorSelection.ResidentKey != "required" || o.PublicKey.AuthenticatorSelection.UserVerification != "preferred" {
			t.Errorf("options %s", options)
		}
		made := d.create(t, options)
		_, err = w.FinishPasskey(ctx, "https://evil.example", challenge, "", made)
		refused(t, err)
		if _, err := w.FinishPasskey(ctx, origin, challenge, "Laptop", made); err != nil {
			t.Fatal(err)
		}
		_, err = w.FinishPasskey(ctx, origin, challenge, "Laptop", made) // again
		refused(t, err)
		if _, options, err = w.BeginPasskey(ctx, origin); err != nil || !strings.Contains(string(options), "excludeCredentials") {
			t.Errorf("the same device could register twice: %s, %v", options, err)
		}

		c, err := w.Begin(t.Context(), "sign-in", origin)
		if err != nil {
			t.Fatal(err)
		}
		answer := d.get(t, c.Passkey)
		p := signin.Proof{Challenge: c.ID, Passkey: answer}
		_, err = w.Prove(t.Context(), "consent:1", origin, p, signin.From{})
		refused(t, err)
		who, err := w.Prove(t.Context(), "sign-in", origin, p, from)
		if err != nil || who.Account != w.admin || who.Method != signin.Passkey || who.Name != "Ana" {
			t.Fatalf("%+v, %v", who, err)
		}
		_, err = w.Prove(t.Context(), "sign-in", origin, p, signin.From{})
		refused(t, err)

		c2, _ := w.Begin(t.Context(), "sign-in", origin)
		_, err = w.Prove(t.Context(), "sign-in", origin, signin.Proof{Challenge: c2.ID, Passkey: answer}, signin.From{}) // of another challenge
		refused(t, err)
		d.key.Counter = 0 // a copy of the key, one behind
		_, err = w.Prove(t.Context(), "sign-in", origin, signin.Proof{Challenge: c2.ID, Passkey: d.get(t, c2.Passkey)}, signin.From{})
		refused(t, err)
		d.key.Counter = 10
		stranger := newDevice(w.admin)
		_, err = w.Prove(t.Context(), "sign-in", origin, signin.Proof{Challenge: c2.ID, Passkey: stranger.get(t, c2.Passkey)}, signin.From{})
		refused(t, err)
		d.rp.Origin = "https://evil.example"
		_, err = w.Prove(t.Context(), "sign-in", origin, signin.Proof{Challenge: c2.ID, Passkey: d.get(t, c2.Passkey)}, signin.From{})
		refused(t, err)
		d.rp.Origin = origin
		for _, junk := range []string{`{}`, `[]`, `null`, `"x"`, `{"id":"\u0000"}`, strings.Repeat("[", 100_000)} {
			_, err = w.Prove(t.Context(), "sign-in", origin, signin.Proof{Challenge: c2.ID, Passkey: json.RawMessage(junk)}, signin.From{})
			refused(t, err)
		}
		d.auth.Options.UserHandle = []byte("\x00\xff")
		_, err = w.Prove(t.Context(), "sign-in", origin, signin.Proof{Challenge: c2.ID, Passkey: d.get(t, c2.Passkey)}, signin.From{})
		refused(t, err)
		d.auth.Options.UserHandle = []byte(w.admin)
		if _, err = w.Prove(t.Context(), "sign-in", origin, signin.Proof{Challenge: c2.ID, Passkey: d.get(t, c2.Passkey)}, from); err != nil {
			t.Errorf("failed tries used the challenge up: %v", err)
		}
	})
}

func TestPasskeysHaveTheirPlace(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		p := w.setUp(t, key(t), "Ana", "")
		cookie, ctx := w.in(t, p)
		for o, why := range map[string]string{"http://127.0.0.1:3000": "IP address", "https://other.example": "PUBLIC_URL", "http://cairn.example.org": "https"} {
			_, _, err := w.BeginPasskey(ctx, o)
			is(t, err, fault.Invalid)
			if !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %v", o, err)
			}
		}
		_, _, err := w.BeginPasskey(t.Context(), origin)
		is(t, err, fault.Unauthenticated)
		d := newDevice(w.admin)
		w.register(t, ctx, d)
		for range 19 {
			w.register(t, ctx, newDevice(w.admin))
		}
		challenge, options, err := w.BeginPasskey(ctx, origin)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.FinishPasskey(ctx, origin, challenge, "", newDevice(w.admin).create(t, options))
		is(t, err, fault.Conflict)
		w.Clock.Move(16 * 60 * 1e9)
		ctx = w.again(t, cookie)
		_, _, err = w.BeginPasskey(ctx, origin)
		is(t, err, fault.Denied)
		if fault.From(err).Data["reason"] != "prove_again" {
			t.Errorf("%v", fault.From(err).Data)
		}
	})
}
