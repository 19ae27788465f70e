package web

import (
	"maps"
	"net/http"
	"slices"

	"cairn/internal/fault"
)

// screens are the pages of somebody signed in, by path.
var screens = withDocuments(map[string]screen{
	"/agents":                       agentsScreen,
	"/agents/connect":               connectScreen,
	"/agents/{id}":                  agentScreen,
	"/agents/{id}/disconnect":       disconnectScreen,
	"/tokens":                       tokensScreen,
	"/tokens/{id}/revoke":           revokeScreen,
	"/files":                        filesScreen,
	"/heaps":                        heapsScreen,
	"/heaps/{id}":                   heapScreen,
	"/heaps/{id}/members/{account}": removeScreen,
	"/settings":                     settingsScreen,
	"/settings/email":               emailScreen,
	"/settings/sign-in/{id}/remove": removeSignInScreen,
	"/admin/accounts":               accountsScreen,
})

// routes adds the pages.
func (s *Server) routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /assets/{name}", s.asset)
	mux.HandleFunc("GET /help", s.help)
	for path, sc := range screens {
		s.show(mux, path, sc)
	}
	s.post(mux, "/settings/theme", s.setTheme)
	s.filesRoutes(mux)
	if s.Signin == nil {
		return
	}
	mux.HandleFunc("GET /sign-in", s.signIn)
	mux.HandleFunc("GET /sign-up", s.signUp)
	mux.HandleFunc("GET /setup", s.setUp)
	mux.HandleFunc("GET /prove", s.prove)
	s.post(mux, "/sign-in", s.signInForm)
	s.post(mux, "/sign-out", s.signOut)
	s.post(mux, "/prove", s.proveForm)
	s.scripts(mux)
	s.consent(mux)
}

// Screens lists the paths of the pages of somebody signed in.
func Screens() []string { return slices.Sorted(maps.Keys(screens)) }

func notServed(path string) error { return fault.New(fault.NotFound, "there is nothing at %s", path) }
