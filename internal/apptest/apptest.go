// Package apptest runs the whole application in a test, on SQLite and on PostgreSQL, with a clock that stands still until it
// is moved.
package apptest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"cairn/internal/account"
	"cairn/internal/app"
	"cairn/internal/config"
	"cairn/internal/db"
	"cairn/internal/db/dbtest"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

// Clock is a clock that a test moves.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// Now, Set and Move read and change what the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Set puts the clock to a moment (RFC 3339).
func (c *Clock) Set(t testing.TB, at string) {
	when, err := time.Parse(time.RFC3339, at)
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.at = when
	c.mu.Unlock()
}

// Move puts the clock forward.
func (c *Clock) Move(d time.Duration) {
	c.mu.Lock()
	c.at = c.at.Add(d)
	c.mu.Unlock()
}

// Start is what the clock shows at first: a Monday morning.
const Start = "2026-08-10T09:30:00Z"

// App is a running application.
type App struct {
	*app.App
	Clock  *Clock
	Server *httptest.Server
	Log    *bytes.Buffer // what was logged; read it after Close or with care
}

// Each runs f as a subtest on SQLite and on PostgreSQL, each time on fresh data. env sets further configuration.
func Each(t *testing.T, env map[string]string, f func(t *testing.T, a *App)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { f(t, New(t, with(env, "CAIRN_DATA", t.TempDir()))) })
	t.Run("postgres", func(t *testing.T) {
		f(t, New(t, with(with(env, "CAIRN_DATA", t.TempDir()), "CAIRN_DATABASE_URL", dbtest.Postgres(t))))
	})
}

func with(env map[string]string, k, v string) map[string]string {
	m := map[string]string{k: v}
	for k, v := range env {
		m[k] = v
	}
	return m
}

// New opens an application on the data that env names, with an HTTP server in front of it.
func New(t testing.TB, env map[string]string) *App {
	t.Helper()
	c, err := config.Load(nil, func(k string) (string, bool) { v, ok := env[k]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	a := &App{Clock: &Clock{}, Log: &bytes.Buffer{}}
	a.Clock.Set(t, Start)
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if !c.Given("PUBLIC_URL") {
		c.PublicURL = &url.URL{Scheme: "http", Host: a.Server.Listener.Addr().String()}
	}
	log := slog.New(slog.NewJSONHandler(&locked{w: a.Log}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if a.App, err = app.Open(context.Background(), c, app.Options{Clock: a.Clock.Now, Log: log}); err != nil {
		t.Fatal(err)
	}
	a.Server.Config.Handler = a.Handler()
	a.Server.Start()
	t.Cleanup(func() {
		a.Server.Close()
		_ = a.Close()
	})
	return a
}

// locked makes a buffer safe for concurrent writes.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// Person gives a ctx that calls as the owner, by the command line.
func (a *App) Person(t testing.TB) context.Context {
	t.Helper()
	c, err := a.Accounts.Owner(context.Background(), "", true)
	if err != nil {
		t.Fatal(err)
	}
	c.Via = who.ViaCLI
	return who.With(context.Background(), c)
}

// Account makes an account that is admitted and gives a ctx that calls as its person, as on the web just after a sign-in.
func (a *App) Account(t testing.TB, name string) context.Context {
	t.Helper()
	err := a.DB.Write(context.Background(), func(tx *db.Tx) error {
		_, err := account.Create(tx, account.Newcomer{Name: name, Zone: "UTC", Admitted: true})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return a.PersonNamed(t, name)
}

// PersonNamed gives a ctx that calls as the person of an account.
func (a *App) PersonNamed(t testing.TB, name string) context.Context {
	t.Helper()
	c, err := a.Accounts.Owner(context.Background(), name, true)
	if err != nil {
		t.Fatal(err)
	}
	c.Via = who.ViaWeb
	return who.With(context.Background(), c)
}

// Token makes an API token; args are those of create_token, "" = {"name":"test","rate":0}.
func (a *App) Token(t testing.TB, args string) string {
	t.Helper()
	if args == "" {
		args = `{"name":"test","rate":0}`
	}
	var out struct{ Secret string }
	Decode(t, a.Call(t, a.Person(t), "create_token", args), &out)
	return out.Secret
}

// As gives a ctx that calls with a token.
func (a *App) As(t testing.TB, token string) context.Context {
	t.Helper()
	c, err := a.Accounts.ByToken(context.Background(), token, "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	c.Via, c.Request = who.ViaMCP, "request-"+token[len(token)-4:]
	return who.With(context.Background(), c)
}

// Call runs an operation that must work and gives its object.
func (a *App) Call(t testing.TB, ctx context.Context, name, args string) json.RawMessage {
	t.Helper()
	return a.Result(t, ctx, name, args).JSON
}

// Result is Call with the texts.
func (a *App) Result(t testing.TB, ctx context.Context, name, args string) op.Result {
	t.Helper()
	res, err := a.Runner.Run(ctx, name, json.RawMessage(args))
	if err != nil {
		t.Fatalf("%s %s: %v", name, args, err)
	}
	return res
}

// Fails runs an operation that must fail with a fault of this kind and gives the fault.
func (a *App) Fails(t testing.TB, ctx context.Context, name, args string, kind fault.Kind) *fault.Error {
	t.Helper()
	res, err := a.Runner.Run(ctx, name, json.RawMessage(args))
	if err == nil {
		t.Fatalf("%s %s worked: %s", name, args, res.JSON)
	}
	f := fault.From(err)
	if f.Kind != kind {
		t.Fatalf("%s %s: %s: %v, want %s", name, args, f.Kind.Wire().Name, err, kind.Wire().Name)
	}
	return f
}

// Decode reads JSON into v.
func Decode(t testing.TB, b []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
}

// Response is an HTTP answer, read to its end.
type Response struct {
	Status int
	Header http.Header
	Body   string
}

// Do sends a request to the running server. headers are "Name: value".
func (a *App) Do(t testing.TB, method, path, body string, headers ...string) Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, a.Server.URL+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		k, v, _ := bytes.Cut([]byte(h), []byte(": "))
		if string(k) == "Host" {
			r.Host = string(v)
			continue
		}
		r.Header.Add(string(k), string(v))
	}
	res, err := a.Server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return Response{res.StatusCode, res.Header, string(b)}
}
