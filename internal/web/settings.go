package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"cairn/internal/fault"
)

type settingsPage struct {
	Account  accountInfo
	Methods  []signInMethod
	Sessions []webSession
	Mail     bool
}

// HasPhrase tells whether twelve words sign in to this account.
func (p settingsPage) HasPhrase() bool {
	return slices.ContainsFunc(p.Methods, func(m signInMethod) bool { return m.Kind == "phrase" })
}

func (q *request) methods() ([]signInMethod, error) {
	out, err := get[struct {
		Methods []signInMethod `json:"methods"`
	}](q, "list_sign_in", nil)
	return out.Methods, err
}

func settings(q *request) (any, error) {
	account, err := get[accountOut](q, "get_account", nil)
	if err != nil {
		return nil, err
	}
	p := settingsPage{Account: account.Account, Mail: account.Server.Mail}
	if p.Methods, err = q.methods(); err != nil {
		return nil, err
	}
	sessions, err := get[struct {
		Sessions []webSession `json:"sessions"`
	}](q, "list_sessions", nil)
	p.Sessions = sessions.Sessions
	return p, err
}

var settingsScreen = screen{
	page: "settings",
	load: settings,
	acts: map[string]act{
		"profile":     {op: "set_account", args: field("name", "zone"), done: "saved"},
		"end-session": {op: "end_session", args: field("session"), done: "session-ended"},
		"end-others":  {op: "end_session", args: always(map[string]any{"others": true}), done: "sessions-ended"},
		"email": {op: "set_email", args: field("email"), show: func(q *request, result json.RawMessage) (string, any, error) {
			var out struct {
				Challenge string `json:"challenge"`
			}
			err := json.Unmarshal(result, &out)
			return "email-code", map[string]any{"Challenge": out.Challenge, "Email": q.r.PostForm.Get("email")}, err
		}},
	},
}

// emailScreen takes the code that was mailed to a new address.
var emailScreen = screen{
	page: "email-code",
	load: func(q *request) (any, error) {
		return map[string]any{"Challenge": q.r.PostForm.Get("challenge"), "Email": q.r.PostForm.Get("email")}, nil
	},
	acts: map[string]act{"confirm": {op: "confirm_email", done: "email-confirmed", to: "/settings", args: func(f url.Values, _ *request) map[string]any {
		return map[string]any{"challenge": f.Get("challenge"), "code": strings.Join(strings.Fields(f.Get("code")), "")}
	}}},
}

// removeSignInScreen asks before a way to sign in is taken away.
var removeSignInScreen = screen{
	page: "confirm",
	load: func(q *request) (any, error) {
		all, err := q.methods()
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(all, func(m signInMethod) bool { return m.ID == q.id })
		if i < 0 {
			return nil, fault.New(fault.NotFound, "there is no way to sign in with the id %q", q.id)
		}
		what := all[i].Label()
		return question{Title: "Remove " + what + "?", Back: "/settings", BackLabel: "Settings", Act: "remove", Button: "Remove it",
			Text: []string{"It won't sign you in any more. Sessions that are open stay open."}}, nil
	},
	acts: map[string]act{"remove": {op: "remove_sign_in", args: thing("id"), done: "sign-in-removed", to: "/settings"}},
}

// Label says what a way to sign in is.
func (m signInMethod) Label() string {
	switch {
	case m.Kind == "phrase":
		return "your twelve words"
	case m.Name != "":
		return "the passkey " + m.Name
	}
	return "the passkey for " + m.Host
}

// setTheme keeps the choice of light or dark in this browser.
func (s *Server) setTheme(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.session(w, r); !ok {
		return
	}
	value := r.PostForm.Get("theme")
	cookie := &http.Cookie{Name: themeCookie, Value: value, Path: "/", MaxAge: 400 * 24 * 3600, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: s.Edge.Public.Scheme == "https"}
	if value != "light" && value != "dark" {
		cookie.Value, cookie.MaxAge = "", -1
	}
	http.SetCookie(w, cookie)
	done(w, r, "/settings", "theme-set")
}

var accountsScreen = screen{
	page: "accounts",
	load: func(q *request) (any, error) {
		if !q.caller.Admin {
			return nil, fault.New(fault.NotFound, "there is nothing at %s", q.r.URL.Path)
		}
		out, err := get[struct {
			Accounts []accountRow `json:"accounts"`
		}](q, "list_accounts", nil)
		return map[string]any{"Accounts": out.Accounts, "Me": q.caller.Account}, err
	},
	acts: map[string]act{
		"admit":         {op: "admit_account", args: field("account"), done: "admitted"},
		"disable":       {op: "disable_account", args: field("account"), done: "account-disabled"},
		"enable":        {op: "enable_account", args: field("account"), done: "account-enabled"},
		"pause-server":  {op: "pause_agents", args: always(map[string]any{"all": "server"}), done: "server-paused"},
		"resume-server": {op: "resume_agents", args: always(map[string]any{"all": "server"}), done: "server-resumed"},
	},
}
