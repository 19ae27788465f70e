package web

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/fault"
)

func (q *request) tokens() ([]token, error) {
	out, err := get[struct {
		Tokens []token `json:"tokens"`
	}](q, "list_tokens", nil)
	return out.Tokens, err
}

type tokensPage struct {
	Live, Over []token
	Heaps      []heapRow
	Areas      []area
}

var tokensScreen = screen{
	page: "tokens",
	load: func(q *request) (any, error) {
		p := tokensPage{Areas: areasShown}
		all, err := q.tokens()
		if err != nil {
			return nil, err
		}
		for _, t := range all {
			if t.State == "active" {
				p.Live = append(p.Live, t)
			} else {
				p.Over = append(p.Over, t)
			}
		}
		p.Heaps, err = q.openHeaps()
		return p, err
	},
	acts: map[string]act{"create": {op: "create_token", args: newToken, show: func(q *request, result json.RawMessage) (string, any, error) {
		var out struct {
			Secret string `json:"secret"`
			Token  token  `json:"token"`
		}
		err := json.Unmarshal(result, &out)
		curl := `curl -sS ` + q.s.Edge.Public.String() + `/api/list_heaps -H "Authorization: Bearer ` + out.Secret + `" -H "Content-Type: application/json" -d "{}"`
		return "token-made", map[string]any{"Secret": out.Secret, "Token": out.Token, "Curl": curl}, err
	}}},
}

// newToken gives the arguments of create_token. What is left empty in the form is left out, so that the operation's own
// defaults hold.
func newToken(f url.Values, _ *request) map[string]any {
	args := map[string]any{"name": f.Get("name"), "read_only": f.Get("write") != "yes", "propose_memory": f.Get("propose_memory") == "yes"}
	if f.Get("which") == "some" {
		args["heaps"] = ticked(f, "heaps")
	}
	if len(ticked(f, "areas")) < len(areasShown) {
		args["areas"] = ticked(f, "areas")
	}
	if e := f.Get("expires"); e == "date" {
		args["expires"] = f.Get("until")
	} else if e != "" {
		args["expires"] = e
	}
	if a := lines(f.Get("allow_ip")); len(a) > 0 {
		args["allow_ip"] = a
	}
	if text := strings.TrimSpace(f.Get("rate")); text != "" {
		args["rate"] = number(text)
	}
	return args
}

// number gives the number that was typed, or what was typed: then the operation says what is wrong with it.
func number(text string) any {
	text = strings.TrimSpace(text)
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return text
}

var revokeScreen = screen{
	page: "confirm",
	load: func(q *request) (any, error) {
		all, err := q.tokens()
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(all, func(t token) bool { return t.ID == q.id && t.State != "revoked" })
		if i < 0 {
			return nil, fault.New(fault.NotFound, "there is no token %q", q.id)
		}
		used := "It was never used."
		if t := all[i]; t.LastUsedAt != nil {
			used = "It was used " + plural(t.Calls, "time", "times") + "; what uses it will be refused."
		}
		name := isolated(all[i].Name)
		return question{Title: "Revoke the token " + name + "?", Back: "/tokens", BackLabel: "Tokens", Act: "revoke", Button: "Revoke " + name,
			Text: []string{"The key stops working at once and can't be brought back.", used}}, nil
	},
	acts: map[string]act{"revoke": {op: "revoke_token", args: thing("token"), done: "token-revoked", to: "/tokens"}},
}
