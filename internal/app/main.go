package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/account"
	"cairn/internal/change"
	"cairn/internal/cli"
	"cairn/internal/config"
	"cairn/internal/db"
	"cairn/internal/op"
	"cairn/internal/search"
	"cairn/internal/task"
	"cairn/internal/who"
)

// Main runs the command line and gives its exit code.
func Main(args []string) int {
	return cli.Main(cli.Program{Version: Version, Open: openLocal, LockServer: lockServer, Doctor: doctor, Operations: Operations}, args)
}

func openLocal(ctx context.Context, c *config.Config, log *slog.Logger) (*cli.Local, error) {
	a, err := Open(ctx, c, Options{Log: log})
	if err != nil {
		return nil, err
	}
	return &cli.Local{Runner: a.Runner, Created: a.Created, Close: a.Close, Serve: a.Serve,
		Person: func(ctx context.Context) (*who.Caller, error) {
			caller, err := a.Accounts.Owner(ctx, "", true)
			if err == nil {
				caller.Via, caller.Client = who.ViaCLI, "cairn"
			}
			return caller, err
		},
		Stdio: func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
			return a.Tools.Stdio(ctx, &sdk.IOTransport{Reader: in, Writer: out}, func(ctx context.Context) (*who.Caller, error) {
				caller, err := a.Accounts.Owner(ctx, "", false)
				if err == nil {
					caller.Via, caller.Client = who.ViaMCP, "stdio"
				}
				return caller, err
			})
		}}, nil
}

func lockServer(c *config.Config) (release func(), err error) {
	if c.DatabaseURL != "" { // replicas share PostgreSQL
		return func() {}, nil
	}
	return db.LockServer(c.Data)
}

// Operations gives all operations without data behind them: they can be described, not called.
func Operations() []*op.Op {
	tasks, accounts := task.New(nil, nil, ""), account.New(nil, 0)
	return op.NewRunner(slog.New(slog.DiscardHandler), slices.Concat(accounts.Ops(), search.NewService(nil).Ops(), tasks.Ops(), change.NewService(nil).Ops())...).Ops()
}

// doctor looks at the data folder, the database, the port, the clock and the configuration.
func doctor(ctx context.Context, c *config.Config) []cli.Check {
	var checks []cli.Check
	add := func(name string, ok bool, says, do string) {
		if ok {
			do = ""
		}
		checks = append(checks, cli.Check{Name: name, OK: ok, Says: says, Do: do})
	}
	err := c.CheckServe()
	add("configuration", err == nil, say(err, "every key is in order"), "set the key that is named")
	if c.PublicURL.Scheme == "http" && !loopback(c.PublicURL.Hostname()) {
		add("public URL", false, c.PublicURL.String()+" sends tokens in the clear", "put a proxy with TLS in front and set PUBLIC_URL to its https address")
	}
	if c.DatabaseURL == "" {
		err := writable(c.Data)
		add("data folder", err == nil, say(err, c.Data+" can be written"), "make the folder writable for this user, or name another with --data")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r := db.Inspect(ctx, db.Config{Dir: c.Data, URL: c.DatabaseURL}, true)
	want := db.SchemaVersion()
	switch {
	case r.Problem != "":
		add("database", false, r.Describe+": "+r.Problem, "check that it runs and may be read; a damaged file must come from a backup")
	case !r.Exists || r.Schema == 0:
		add("database", true, r.Describe+" is not there yet; the first start makes it", "")
	case r.Schema > want:
		add("database", false, fmt.Sprintf("%s has schema %d and this cairn knows %d", r.Describe, r.Schema, want), "use a newer cairn")
	case r.Schema < want:
		add("database", true, fmt.Sprintf("%s has schema %d; the next start brings it to %d", r.Describe, r.Schema, want), "")
	default:
		add("database", true, fmt.Sprintf("%s is sound, schema %d", r.Describe, r.Schema), "")
	}
	if ahead := time.UnixMicro(r.Newest).Sub(time.Now()); ahead > time.Minute {
		add("clock", false, fmt.Sprintf("the newest write lies %s in the future", ahead.Round(time.Second)), "set this machine's clock")
	} else {
		add("clock", true, "no write lies in the future; it is "+time.Now().UTC().Format(time.RFC3339), "")
	}
	checks = append(checks, port(ctx, c, r.Serving))
	return checks
}

func say(err error, fine string) string {
	if err != nil {
		return err.Error()
	}
	return fine
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func writable(dir string) error {
	for {
		info, err := os.Stat(dir)
		if os.IsNotExist(err) && filepath.Dir(dir) != dir {
			dir = filepath.Dir(dir) // it will be made; what counts is where
			continue
		}
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is a file, not a folder", dir)
		}
		f, err := os.CreateTemp(dir, ".cairn-doctor-*")
		if err != nil {
			return err
		}
		_ = f.Close()
		return os.Remove(f.Name())
	}
}

// port tells whether the address is free, or taken by a Cairn, or by something else.
func port(ctx context.Context, c *config.Config, serving bool) cli.Check {
	check := cli.Check{Name: "port", OK: true, Says: c.Listen + " is free"}
	if serving {
		check.Says = "a server runs on this data folder"
	}
	l, err := net.Listen("tcp", c.Listen)
	if err == nil {
		_ = l.Close()
		return check
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, rerr := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.Listen+"/healthz", nil)
	if rerr == nil {
		if res, rerr := http.DefaultClient.Do(req); rerr == nil {
			defer res.Body.Close()
			if b, _ := io.ReadAll(io.LimitReader(res.Body, 100)); res.StatusCode == http.StatusOK && string(b) == `{"status":"ok"}` {
				check.Says = "a Cairn answers at " + c.Listen
				return check
			}
		}
	}
	check.OK, check.Says, check.Do = false, err.Error(), "stop what uses the address, or listen on another with --listen"
	return check
}
