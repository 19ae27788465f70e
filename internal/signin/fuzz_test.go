package signin_test

import (
	"context"
	"encoding/json"
	"net/mail"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"cairn/internal/fault"
	"cairn/internal/signin"
)

func FuzzWhatPeopleType(f *testing.F) {
	for _, s := range []string{"", "ana@example.org", "Ana <ana@example.org>", origin, "https://a@b", "http://[::1]:3000", "https://x\n", "192.0.2.1", "2001:db8::1%eth0", "\xff\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if a, err := signin.CheckEmail(s); err == nil {
			if got, err := mail.ParseAddress(a); err != nil || got.Address != a || len(a) > 254 || strings.ContainsFunc(a, unicode.IsControl) {
				t.Errorf("%q is taken for an address: %v", a, err)
			}
		} else if !fault.Is(err, fault.Invalid) {
			t.Error(err)
		}
		if signin.CheckOrigin(s) == nil && strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == '@' || r == '#' || r == '?' }) {
			t.Errorf("%q is taken for an origin", s)
		}
		if p := signin.Place(s); strings.ContainsFunc(p, unicode.IsControl) {
			t.Errorf("place %q", p)
		}
		if len(s) > 3 && strings.Index(s, "@") > 0 && strings.Contains(signin.Mask("x "+s+" y "+strings.ToUpper(s), s), s) && !strings.HasPrefix(s, ".") {
			t.Errorf("%q stays", s)
		}
	})
}

// Whatever is sent as a proof, it fails with one of three faults, on SQLite and PostgreSQL alike.
func TestAnyProofFailsDecently(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		c, err := w.Begin(t.Context(), "sign-in", origin)
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) {
			text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 40), func(b []byte) string { return string(b) }), rapid.StringMatching(`[0-9a-f]{64}([0-9a-f]{64})?`))
			p := signin.Proof{Challenge: rapid.OneOf(rapid.Just(c.ID), text).Draw(t, "challenge")}
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				p.Phrase = &signin.PhraseProof{Public: text.Draw(t, "public"), Signature: text.Draw(t, "signature")}
			case 1:
				p.Code = text.Draw(t, "code")
			case 2:
				p.Passkey, _ = json.Marshal(map[string]any{"id": text.Draw(t, "id"), "rawId": text.Draw(t, "raw"), "type": "public-key",
					"response": map[string]any{"clientDataJSON": text.Draw(t, "client"), "authenticatorData": text.Draw(t, "data"), "signature": text.Draw(t, "sig"), "userHandle": text.Draw(t, "handle")}})
			default:
				p.Passkey = json.RawMessage(text.Draw(t, "junk"))
			}
			_, err := w.Prove(context.Background(), rapid.OneOf(rapid.Just("sign-in"), text).Draw(t, "purpose"), rapid.OneOf(rapid.Just(origin), text).Draw(t, "origin"), p, signin.From{UserAgent: text.Draw(t, "agent")})
			if !fault.Is(err, fault.Unauthenticated) && !fault.Is(err, fault.Invalid) {
				t.Fatalf("%v", err)
			}
		})
	})
}
