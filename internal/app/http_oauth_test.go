package app_test

import (
	"net/http"
	"strings"
	"testing"

	"cairn/internal/apptest"
)

// Whatever a proxy calls the server inside, its documents and challenges name it as the outside does (CASES 44c).
func TestDocumentsNameThePublicOrigin(t *testing.T) {
	for given, origin := range map[string]string{
		"https://cairn.example":      "https://cairn.example",
		"https://cairn.example/":     "https://cairn.example",
		"https://CAIRN.Example:443":  "https://cairn.example",
		"http://Cairn.example:80/":   "http://cairn.example",
		"https://cairn.example:8443": "https://cairn.example:8443",
		"https://[2001:DB8::1]/":     "https://[2001:db8::1]",
	} {
		t.Run(given, func(t *testing.T) {
			a := alone(t, map[string]string{"PUBLIC_URL": given, "CAIRN_HOSTS": "internal:8080"})
			inside := []string{"Host: internal:8080", "X-Forwarded-Proto: http", "X-Forwarded-Host: evil.example"}
			var documents []string
			for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/oauth-authorization-server/oauth", "/.well-known/oauth-authorization-server/mcp",
				"/.well-known/openid-configuration", "/oauth/.well-known/openid-configuration"} {
				r := a.Do(t, "GET", path, "", inside...)
				if r.Status != http.StatusOK {
					t.Fatalf("%s: %d %s", path, r.Status, r.Body)
				}
				documents = append(documents, r.Body)
				if r.Body != documents[0] {
					t.Errorf("%s differs: %s", path, r.Body)
				}
			}
			var server map[string]any
			apptest.Decode(t, []byte(documents[0]), &server)
			for member, path := range map[string]string{"issuer": "", "authorization_endpoint": "/oauth/authorize", "token_endpoint": "/oauth/token", "registration_endpoint": "/oauth/register",
				"revocation_endpoint": "/oauth/revoke", "jwks_uri": "/.well-known/jwks.json"} {
				if server[member] != origin+path {
					t.Errorf("%s is %v", member, server[member])
				}
			}
			for _, part := range []string{`"code_challenge_methods_supported":["S256"]`, `"authorization_response_iss_parameter_supported":true`, `"scopes_supported":["cairn.read","cairn.write","offline_access"]`,
				`"token_endpoint_auth_methods_supported":["none"]`, `"client_id_metadata_document_supported":false`} {
				if !strings.Contains(documents[0], part) {
					t.Errorf("%s is missing in %s", part, documents[0])
				}
			}
			root := a.Do(t, "GET", "/.well-known/oauth-protected-resource", "", inside...)
			deep := a.Do(t, "GET", "/.well-known/oauth-protected-resource/mcp", "", inside...)
			for _, part := range []string{`"resource":"` + origin + `/mcp"`, `"authorization_servers":["` + origin + `"]`, `"scopes_supported":["cairn.read","cairn.write"]`} {
				if root.Body != deep.Body || !strings.Contains(root.Body, part) {
					t.Errorf("%s is missing in %s or %s", part, root.Body, deep.Body)
				}
			}
			r := a.Do(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, append(inside, "Content-Type: application/json")...)
			if c := r.Header.Get("WWW-Authenticate"); r.Status != http.StatusUnauthorized || !strings.Contains(c, `resource_metadata="`+origin+`/.well-known/oauth-protected-resource/mcp"`) || strings.Contains(c, "error=") {
				t.Errorf("%d, challenge %q", r.Status, c)
			}
		})
	}
}

// Programs in browsers connect too: discovery, registration and tokens take any origin, and their errors are JSON.
func TestAuthorizationServerOverHTTP(t *testing.T) {
	plainly(t, nil, []scenario{
		{name: "any page may discover", do: "GET /.well-known/oauth-authorization-server", headers: []string{"Origin: https://any.example"}, status: 200, header: []string{"Access-Control-Allow-Origin: "}},
		{name: "at each path", do: "GET /oauth/.well-known/openid-configuration", headers: []string{"Origin: https://any.example"}, status: 200, header: []string{"Access-Control-Allow-Origin: "}},
		{name: "any page may register", do: "OPTIONS /oauth/register", headers: []string{"Origin: https://any.example", "Access-Control-Request-Method: POST"}, status: 204, header: []string{"Access-Control-Allow-Origin: "}},
		{name: "registration", do: "POST /oauth/register", headers: []string{"Origin: https://any.example"}, body: `{"redirect_uris":["https://any.example/cb"]}`, status: 201,
			header: []string{"Cache-Control: no-store", "Access-Control-Allow-Origin: "}, want: []string{`"client_id":"`, `"token_endpoint_auth_method":"none"`}, not: []string{"client_secret"}},
		{name: "registration of nothing", do: "POST /oauth/register", body: `{}`, status: 400, want: []string{`"error":"invalid_redirect_uri"`}},
		{name: "registration compressed", do: "POST /oauth/register", headers: []string{"Content-Encoding: gzip"}, body: `{}`, status: 415, want: []string{`"error":"invalid_client_metadata"`}},
		{name: "an API token is no code", do: "POST /oauth/token", headers: []string{"Content-Type: application/x-www-form-urlencoded"}, body: "grant_type=authorization_code&client_id=x&code={token:rw}", status: 401, want: []string{`"error":"invalid_client"`}},
		{name: "an API token is no Basic name", do: "POST /oauth/token", headers: []string{"Content-Type: application/x-www-form-urlencoded"}, as: "rw", body: "grant_type=refresh_token", status: 401, want: []string{`"error":"invalid_client"`}},
		{name: "an unknown token is revoked", do: "POST /oauth/revoke", headers: []string{"Content-Type: application/x-www-form-urlencoded"}, body: "token=x", status: 200},
		{name: "an API token isn't ended here", do: "POST /oauth/revoke", headers: []string{"Content-Type: application/x-www-form-urlencoded"}, body: "token={token:rw}", status: 200},
		{name: "it lives", as: "rw", body: heroes.call("", "list_heaps", "{}").body, status: 200, want: []string{"Personal"}},
		{name: "nothing is at other paths", do: "POST /oauth/nothing", status: 404},
		{name: "the key set", do: "GET /.well-known/jwks.json", status: 200, want: []string{`"kty":"OKP"`, `"alg":"EdDSA"`}, not: []string{`"d":`}},
		{name: "a stale session id is ignored", as: "rw", headers: []string{"Mcp-Session-Id: 01890000"}, body: heroes.call("", "list_heaps", "{}").body, status: 200, header: []string{"-Mcp-Session-Id"}},
	})
}
