package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"cairn/internal/account"
	"cairn/internal/block"
	"cairn/internal/change"
	"cairn/internal/cli"
	"cairn/internal/config"
	"cairn/internal/db"
	"cairn/internal/edge"
	"cairn/internal/file"
	"cairn/internal/mcp"
	"cairn/internal/meaning"
	"cairn/internal/memory"
	"cairn/internal/oauth"
	"cairn/internal/op"
	"cairn/internal/search"
	"cairn/internal/signin"
	"cairn/internal/task"
	"cairn/internal/view"
	"cairn/internal/who"
)

// Main runs the command line and gives its exit code.
func Main(args []string) int {
	// The ballast keeps Go's collector calm while the live heap is small. It is never touched, so it isn't resident: made
	// first of all, since memory that Go has used before would be zeroed, and so touched.
	ballast := make([]byte, 32<<20)
	defer runtime.KeepAlive(ballast)
	return cli.Main(cli.Program{Version: Version, Open: openLocal, LockServer: lockServer, Doctor: doctor, Operations: Operations}, args)
}

func openLocal(ctx context.Context, c *config.Config, log *slog.Logger) (*cli.Local, error) {
	a, err := Open(ctx, c, Options{Log: log})
	if err != nil {
		return nil, err
	}
	return &cli.Local{Created: a.Created, Runner: a.Runner, Close: a.Close, Serve: a.Serve,
		Person: func(ctx context.Context) (*who.Caller, error) {
			caller, err := a.Accounts.Owner(ctx, "", true)
			if err == nil {
				caller.Via, caller.Client = who.ViaCLI, "cairn"
			}
			return caller, err
		},
		SetupLink: a.setupLink,
		Stdio: func(ctx context.Context, in io.Reader, out io.Writer) error {
			h := mcp.NewHandler(a.Tools, &edge.Edge{Public: c.PublicURL, Log: log}, nil, nil)
			jctx, stop := context.WithCancel(ctx)
			worked := make(chan struct{})
			go func() { defer close(worked); a.Jobs.Run(jctx, 1) }()
			defer func() { stop(); <-worked }()
			return h.Stdio(ctx, in, out, func(ctx context.Context) (*who.Caller, error) {
				caller, err := a.Accounts.Owner(ctx, "", false)
				if err == nil {
					caller.Via = who.ViaMCP
				}
				return caller, err
			})
		}}, nil
}

func lockServer(c *config.Config) (release func(), err error) {
	if c.DatabaseURL != "" { // replicas share PostgreSQL
		return func() {}, nil
	}
	release, err = db.LockServer(c.Data)
	if err != nil {
		return nil, notOpened(c, err)
	}
	return release, nil
}

// Operations gives all operations without data behind them: they can be described, not called.
func Operations() []*op.Op {
	none := operations(account.New(nil, 0), signin.New(nil, nil, nil, nil, nil), new(oauth.Service), search.NewService(nil), task.New(nil, nil, nil), memory.New(nil, nil, nil), block.New(nil, nil, nil), view.New(nil, nil, nil), file.New(nil, nil, nil, 0, nil, nil), change.NewService(nil), nil)
	return op.NewRunner(slog.New(slog.DiscardHandler), none...).Ops()
}

// doctor looks at the configuration, the data folder, the database, the clock and the port.
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
	if c.PublicURL.Scheme == "http" && c.Given("PUBLIC_URL") && !loopback(c.PublicURL.Hostname()) {
		add("public URL", false, c.PublicURL.String()+" sends tokens in the clear", "put a proxy with TLS in front and set PUBLIC_URL to its https address")
	}
	if c.DatabaseURL == "" {
		err := writable(c.Data)
		add("data folder", err == nil, say(err, c.Data+" can be written"), "make the folder writable for this user, or name another with --data")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r := db.Inspect(ctx, db.Config{Dir: c.Data, URL: c.DatabaseURL}, true)
	ok, says, do := schema(r, db.SchemaVersion(), c.DatabaseURL != "")
	add("database", ok, says, do)
	says, do = stored(ctx, c)
	add("files", do == "", says, do)
	now := time.Now()
	if ahead := time.UnixMicro(r.Newest).Sub(now); ahead > time.Minute {
		add("clock", false, fmt.Sprintf("the newest write lies %s ahead of this machine's clock, which says %s", ahead.Round(time.Second), now.UTC().Format(time.RFC3339)),
			"if the clock is behind, set it; if it is right, it was ahead once, and what is written bears times to come until it has caught up")
	} else {
		add("clock", true, "no write lies in the future; it is "+now.UTC().Format(time.RFC3339), "")
	}
	if ok && r.Schema == db.SchemaVersion() {
		says, do := embedded(ctx, c)
		add("search by meaning", do == "", says, do)
	}
	return append(checks, port(ctx, c, r.Serving))
}

// embedded says how much of the data can be found by its meaning.
func embedded(ctx context.Context, c *config.Config) (says, do string) {
	const look = "the log of the server says more; where CAIRN_EMBEDDINGS_URL is set, check that its endpoint answers"
	model, err := modelOf(c, Options{})
	if err != nil {
		return err.Error(), "set the key that is named"
	}
	d, err := db.Open(ctx, db.Config{Dir: c.Data, URL: c.DatabaseURL})
	if err != nil {
		return err.Error(), look
	}
	defer d.Close()
	var kinds []string
	for _, src := range slices.Concat(task.New(nil, nil, nil).Sources(), memory.New(nil, nil, nil).Sources()) {
		if src.Text != nil {
			kinds = append(kinds, src.Kind)
		}
	}
	lacking, all, failure, err := meaning.Lacking(ctx, d, model.ID(), kinds)
	switch {
	case err != nil:
		return err.Error(), look
	case failure != "":
		return fmt.Sprintf("%d of %d things have no vectors of the model %s: %s", lacking, all, model.ID(), failure), look
	case lacking > 0:
		return fmt.Sprintf("%d of %d things have no vectors of the model %s yet and are found by their words; a server, or mcp --stdio, makes them while it runs", lacking, all, model.ID()), ""
	}
	return fmt.Sprintf("all of %d things have vectors of the model %s", all, model.ID()), ""
}

// stored says whether files can be kept.
func stored(ctx context.Context, c *config.Config) (says, do string) {
	_, store, err := storeOf(c, Options{})
	where, mend := filepath.Join(c.Data, "files"), "make the folder writable for this user, and see that its disk has room"
	if c.S3.Endpoint != nil {
		where, mend = "the bucket "+c.S3.Bucket+" at "+c.S3.Endpoint.Host, "check the keys CAIRN_S3_*, and that the key may read, write and delete objects there"
	} else if _, serr := os.Stat(where); os.IsNotExist(serr) {
		return where + " holds nothing yet; the first upload makes it", ""
	}
	if err == nil {
		err = store.Check(ctx)
	}
	if err != nil {
		return where + ": " + strings.Join(strings.Fields(err.Error()), " "), mend
	}
	says = where + " can be written, read and cleared"
	if c.DatabaseURL != "" && c.S3.Endpoint == nil {
		says += "; with several servers it must be one folder that all of them share, or a bucket (CAIRN_S3_ENDPOINT)"
	}
	return says, ""
}

// schema says how a database is.
func schema(r db.Report, want int64, postgres bool) (ok bool, says, do string) {
	switch {
	case r.Problem != "" && postgres:
		return false, r.Describe + ": " + r.Problem, "check that it runs and that CAIRN_DATABASE_URL is right"
	case r.Problem != "":
		return false, r.Describe + ": " + r.Problem, "check that this user may read and write it; a damaged file must come from a backup"
	case !r.Exists || r.Schema == 0:
		return true, r.Describe + " holds nothing yet; the first start makes it", ""
	case r.Schema > want:
		return false, fmt.Sprintf("%s has schema %d and this cairn knows %d", r.Describe, r.Schema, want), "use a newer cairn"
	case r.Schema < want:
		return true, fmt.Sprintf("%s has schema %d; the next start brings it to %d", r.Describe, r.Schema, want), ""
	}
	return true, fmt.Sprintf("%s is sound, schema %d", r.Describe, r.Schema), ""
}

func say(err error, fine string) string {
	if err != nil {
		return err.Error()
	}
	return fine
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

func writable(dir string) error {
	for {
		info, err := os.Stat(dir)
		if (os.IsNotExist(err) || errors.Is(err, syscall.ENOTDIR)) && filepath.Dir(dir) != dir {
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
			return fmt.Errorf("%s can't be written: %w", dir, errors.Unwrap(err))
		}
		_ = f.Close()
		return os.Remove(f.Name())
	}
}

// port tells whether the address is free, or taken by a Cairn, or by something else. serving says that a server has the data
// folder.
func port(ctx context.Context, c *config.Config, serving bool) cli.Check {
	check := cli.Check{Name: "port", OK: true, Says: c.Listen + " is free"}
	if serving {
		check.Says += "; a server runs on this data folder at another address"
	}
	l, err := net.Listen("tcp", c.Listen)
	if err == nil {
		_ = l.Close()
		return check
	}
	at := c.Listen
	if strings.HasPrefix(at, ":") {
		at = "localhost" + at
	}
	ours := isCairn(ctx, at)
	switch {
	case ours && (serving || c.DatabaseURL != ""): // replicas on PostgreSQL don't lock: it may well be one of them
		check.Says = "a Cairn answers at " + c.Listen
	case ours:
		check.OK, check.Says, check.Do = false, "another Cairn answers at "+c.Listen+", not on this data folder", "name its data folder with --data if that is meant, or give this one another address with --listen"
	case answers(ctx, at):
		check.OK, check.Says, check.Do = false, c.Listen+" is taken by another program", "stop it, or listen on another address with --listen"
	default:
		check.OK, check.Says, check.Do = false, "can't listen on "+c.Listen+": "+reason(err), "give an address of this machine with --listen, and a port from 1024 on unless it may use lower ones"
	}
	return check
}

// reason is the last cause of an error, without what was tried.
func reason(err error) string {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err.Error()
}

// answers tells whether anything accepts connections at an address.
func answers(ctx context.Context, address string) bool {
	d := net.Dialer{Timeout: 3 * time.Second}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// isCairn tells whether a Cairn answers at an address.
func isCairn(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(res.Body, 100))
	return res.StatusCode == http.StatusOK && string(b) == `{"status":"ok"}`
}
