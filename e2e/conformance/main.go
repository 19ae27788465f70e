// Command conformance serves Cairn with the tools, resources and prompts added that the MCP conformance suite calls by
// fixed names. It is a test build: nothing of it is in the cairn binary. The suite can't send a token, so each request
// is given one on its way in; all else is the product's own stack.
//
// With -plain the SDK alone serves the same fixtures, which tells a fault of the SDK's from one of ours.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/app"
	"cairn/internal/config"
	"cairn/internal/who"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on; the URL is printed")
	data := flag.String("data", "", "data folder")
	bare := flag.Bool("plain", false, "serve the fixtures by the SDK alone")
	redirect := flag.String("redirect", "", "register a client with this redirect address, print its id on a second line, and let in whoever asks")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, *data, *redirect, *bare); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, listen, data, redirect string, bare bool) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	defer l.Close()
	h, client := plain(), ""
	if !bare {
		a, err := open(ctx, l.Addr().String(), data)
		if err != nil {
			return err
		}
		defer a.Close()
		token, err := newToken(ctx, a)
		if err != nil {
			return err
		}
		h = withToken(a.Handler(), token)
		if redirect != "" {
			if h, client, err = consenting(ctx, a, redirect); err != nil {
				return err
			}
		}
	}
	fmt.Printf("http://%s/mcp\n", l.Addr())
	if client != "" {
		fmt.Println(client)
	}
	server := &http.Server{Handler: h}
	context.AfterFunc(ctx, func() { server.Close() })
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func open(ctx context.Context, address, data string) (*app.App, error) {
	if data == "" {
		return nil, errors.New("-data is missing")
	}
	nothing := func(string) (string, bool) { return "", false } // no key from the environment
	c, err := config.Load(map[string]string{"listen": address, "data": data, "client-metadata": "true"}, nothing)
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return app.Open(ctx, c, app.Options{Log: log, Fixtures: Register})
}

// newToken makes a token without a rate limit.
func newToken(ctx context.Context, a *app.App) (string, error) {
	owner, err := a.Accounts.Owner(ctx, "", true)
	if err != nil {
		return "", err
	}
	res, err := a.Runner.Run(who.With(ctx, owner), "create_token", json.RawMessage(`{"name":"conformance","rate":0}`))
	if err != nil {
		return "", err
	}
	var out struct {
		Secret string `json:"secret"`
	}
	return out.Secret, json.Unmarshal(res.JSON, &out)
}

func withToken(h http.Handler, token string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+token)
		h.ServeHTTP(w, r)
	})
}

func plain() http.Handler {
	s := mcp.NewServer(&mcp.Implementation{Name: "fixtures", Version: "1"}, nil)
	Register(s)
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: true})
}
