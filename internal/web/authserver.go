package web

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"cairn/internal/account"
	"cairn/internal/edge"
	"cairn/internal/fault"
	"cairn/internal/oauth"
	"cairn/internal/rawjson"
)

// smallBody is the most that the authorization server's endpoints read.
const smallBody = 32 << 10

// authServer routes what programs ask of the authorization server; its pages are in consent.go.
func (s *Server) authServer(mux *http.ServeMux) {
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/oauth-authorization-server/oauth", "/.well-known/oauth-authorization-server/mcp",
		"/.well-known/openid-configuration", "/oauth/.well-known/openid-configuration"} {
		mux.HandleFunc("GET "+path, s.authMetadata)
	}
	mux.HandleFunc("GET /.well-known/jwks.json", s.jwks)
	mux.HandleFunc("POST /oauth/register", s.register)
	mux.HandleFunc("POST /oauth/token", s.token)
	mux.HandleFunc("POST /oauth/revoke", s.revoke)
	for _, path := range []string{"/oauth/register", "/oauth/token", "/oauth/revoke"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", "POST, OPTIONS")
			oauthFail(w, &oauth.Error{Code: "invalid_request", Description: "this endpoint takes POST", Status: http.StatusMethodNotAllowed})
		})
	}
}

// authMetadata is the authorization server's metadata (RFC 8414; the members of OpenID Connect Discovery are there because
// some clients read that document and insist on them).
func (s *Server) authMetadata(w http.ResponseWriter, _ *http.Request) {
	base := s.OAuth.Issuer()
	b, _ := rawjson.Marshal(map[string]any{
		"issuer": base, "authorization_endpoint": base + "/oauth/authorize", "token_endpoint": base + "/oauth/token",
		"registration_endpoint": base + "/oauth/register", "revocation_endpoint": base + "/oauth/revoke", "jwks_uri": base + "/.well-known/jwks.json",
		"scopes_supported":         []string{account.ScopeRead, account.ScopeWrite, account.ScopeStay},
		"response_types_supported": []string{"code"}, "response_modes_supported": []string{"query"},
		"grant_types_supported":                          []string{"authorization_code", "refresh_token"},
		"token_endpoint_auth_methods_supported":          []string{"none"},
		"revocation_endpoint_auth_methods_supported":     []string{"none"},
		"code_challenge_methods_supported":               []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
		"client_id_metadata_document_supported":          s.OAuth.Fetcher != nil,
		"subject_types_supported":                        []string{"public"},
		"id_token_signing_alg_values_supported":          []string{"EdDSA"},
		"protected_resources":                            []string{s.OAuth.Resource()},
		"service_documentation":                          base + "/help",
	})
	w.Header().Set("Cache-Control", "public, max-age=300")
	edge.JSON(w, http.StatusOK, b)
}

func (s *Server) jwks(w http.ResponseWriter, r *http.Request) {
	b, err := s.OAuth.JWKS(r.Context())
	if err != nil {
		s.fail(w, err)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=300")
	edge.JSON(w, http.StatusOK, b)
}

// asker says where a request of the authorization server's comes from.
func asker(r *http.Request) oauth.From {
	info := edge.From(r.Context())
	return oauth.From{Address: info.Address, UserAgent: r.UserAgent(), Request: info.Request}
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	body, err := edge.JSONBody(w, r, smallBody)
	if err != nil {
		f := fault.From(err)
		s.oauthRefuse(w, r, &oauth.Error{Code: "invalid_client_metadata", Description: f.Message, Status: f.API()})
		return
	}
	out, err := s.OAuth.Register(r.Context(), body, asker(r))
	if err != nil {
		s.oauthRefuse(w, r, err)
		return
	}
	b, _ := rawjson.Marshal(out)
	edge.JSON(w, http.StatusCreated, b)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	form, err := s.oauthForm(w, r)
	if err == nil {
		var t oauth.Tokens
		if t, err = s.OAuth.Exchange(r.Context(), form, asker(r)); err == nil {
			b, _ := rawjson.Marshal(t)
			w.Header().Set("Pragma", "no-cache")
			edge.JSON(w, http.StatusOK, b)
			return
		}
	}
	s.oauthRefuse(w, r, err)
}

func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	form, err := s.oauthForm(w, r)
	if err == nil {
		err = s.OAuth.Revoke(r.Context(), form, asker(r))
	}
	if err != nil {
		s.oauthRefuse(w, r, err)
		return
	}
	edge.JSON(w, http.StatusOK, []byte(`{}`))
}

// oauthForm reads a form body. Parameters in the address are refused: addresses are logged on the way. A public client may
// name itself by Basic authentication with an empty secret.
func (s *Server) oauthForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	bad := func(status int, why string) error {
		return &oauth.Error{Code: "invalid_request", Description: why, Status: status}
	}
	if r.URL.RawQuery != "" {
		return nil, bad(http.StatusBadRequest, "parameters belong into the body, not into the address")
	}
	if ct, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || ct != "application/x-www-form-urlencoded" {
		return nil, bad(http.StatusUnsupportedMediaType, "Content-Type must be application/x-www-form-urlencoded")
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(30 * time.Second)) // a test's recorder has none
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, smallBody))
	_ = rc.SetReadDeadline(time.Time{})
	if err != nil {
		return nil, bad(http.StatusRequestEntityTooLarge, "the body may have at most 32768 bytes")
	}
	form, err := url.ParseQuery(string(b))
	if err != nil {
		return nil, bad(http.StatusBadRequest, "the body is no form")
	}
	if id, _, ok := r.BasicAuth(); ok && form.Get("client_id") == "" {
		if id, err = url.QueryUnescape(id); err == nil {
			form.Set("client_id", id)
		}
	}
	return form, nil
}

// oauthRefuse answers with an OAuth error. A wrong guess counts against the address, so that codes and tokens can't be tried
// out; what a client does right doesn't, since hosted connectors share an address.
func (s *Server) oauthRefuse(w http.ResponseWriter, r *http.Request, err error) {
	var e *oauth.Error
	if !errors.As(err, &e) {
		f := fault.From(err)
		switch f.Kind {
		case fault.Limited:
			edge.RetryAfter(w.Header(), f)
			e = &oauth.Error{Code: "temporarily_unavailable", Description: f.Message, Status: http.StatusTooManyRequests}
		case fault.Unavailable:
			e = &oauth.Error{Code: "temporarily_unavailable", Description: "the database does not answer right now; try again in a moment", Status: http.StatusServiceUnavailable}
		default:
			s.Edge.Log.Error("the authorization server failed", "request", edge.From(r.Context()).Request, "cause", err.Error())
			e = &oauth.Error{Code: "server_error", Description: "something went wrong on the server; its log has the cause under id " + edge.From(r.Context()).Request, Status: http.StatusInternalServerError}
		}
	} else if limited := s.Edge.Limit(r.Context(), w.Header(), nil); limited != nil {
		s.oauthRefuse(w, r, limited)
		return
	}
	oauthFail(w, e)
}

func oauthFail(w http.ResponseWriter, e *oauth.Error) {
	b, _ := rawjson.Marshal(map[string]string{"error": e.Code, "error_description": strings.ReplaceAll(e.Description, `"`, `'`)})
	edge.JSON(w, e.Status, b)
}
