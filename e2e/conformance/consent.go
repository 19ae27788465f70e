package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"cairn/internal/app"
	"cairn/internal/oauth"
	"cairn/internal/who"
)

// consenting registers a client and gives the application's handler with a person in front of it who lets in whoever asks,
// where the product shows a page. The request before and the answer after are the product's.
func consenting(ctx context.Context, a *app.App, redirect string) (http.Handler, string, error) {
	body, err := json.Marshal(map[string]any{"client_name": "Conformance", "redirect_uris": []string{redirect}, "token_endpoint_auth_method": "none"})
	if err != nil {
		return nil, "", err
	}
	client, err := a.OAuth.Register(ctx, body, oauth.From{})
	if err != nil {
		return nil, "", err
	}
	owner, err := a.Accounts.Owner(ctx, "", true)
	if err != nil {
		return nil, "", err
	}
	res, err := a.Runner.Run(who.With(ctx, owner), "get_account", json.RawMessage(`{}`))
	if err != nil {
		return nil, "", err
	}
	var account struct {
		Heaps []struct {
			ID string `json:"id"`
		} `json:"heaps"`
	}
	if err := json.Unmarshal(res.JSON, &account); err != nil {
		return nil, "", err
	}
	yes := oauth.Choice{Connect: true, Write: true, Stay: true}
	for _, h := range account.Heaps {
		yes.Heaps = append(yes.Heaps, h.ID)
	}
	product := a.Handler()
	mux := http.NewServeMux()
	mux.Handle("/", product)
	mux.HandleFunc("GET /oauth/authorize", func(w http.ResponseWriter, r *http.Request) {
		browser := oauth.Browser("")
		v, err := a.OAuth.Begin(r.Context(), r.URL.Query(), browser, oauth.From{})
		var sent *oauth.Sent
		if errors.As(err, &sent) {
			http.Redirect(w, r, sent.Address, http.StatusFound)
			return
		}
		if err == nil {
			err = a.OAuth.Decide(r.Context(), v, owner, yes)
		}
		if err == nil {
			v, err = a.OAuth.Look(r.Context(), v.ID, browser)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		http.Redirect(w, r, v.Continue, http.StatusSeeOther)
	})
	return mux, client.ID, nil
}
