// Package app wires the parts together and does nothing else: it opens the data, gives every feature what it needs, and
// hands the operations to the surfaces.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"cairn/internal/account"
	"cairn/internal/audit"
	"cairn/internal/blob"
	"cairn/internal/block"
	"cairn/internal/block/editor"
	"cairn/internal/block/filter"
	"cairn/internal/change"
	"cairn/internal/config"
	"cairn/internal/db"
	"cairn/internal/edge"
	"cairn/internal/embed"
	"cairn/internal/fault"
	"cairn/internal/fetch"
	"cairn/internal/file"
	"cairn/internal/job"
	"cairn/internal/mail"
	"cairn/internal/mcp"
	"cairn/internal/meaning"
	"cairn/internal/memory"
	"cairn/internal/oauth"
	"cairn/internal/op"
	"cairn/internal/prompt"
	"cairn/internal/search"
	"cairn/internal/signin"
	"cairn/internal/skill"
	"cairn/internal/task"
	"cairn/internal/view"
	"cairn/internal/web"
	"cairn/internal/web/files"
	"cairn/internal/who"
)

// Version is the product's version; the build may set it.
var Version = "0.2.0"

// indexBytes bounds the search indexes kept in memory.
const indexBytes = 1 << 30

// jobWorkers is how many jobs run at once in the background.
const jobWorkers = 2

// toolRate is how often a minute a caller may call one tool, where no limit of its own is set.
const toolRate = 100

// App is a Cairn on open data.
type App struct {
	Config   *config.Config
	DB       *db.DB
	Accounts *account.Service
	Runner   *op.Runner
	Tools    *mcp.Tools
	Recorder *audit.Recorder
	Signin   *signin.Service
	OAuth    *oauth.Service
	Jobs     *job.Queue
	Created  bool // the first account was made just now

	store    blob.Store
	engine   *search.Engine
	maker    *meaning.Maker
	limiter  *audit.Limiter
	registry *prometheus.Registry
	log      *slog.Logger
	stop     chan struct{}
}

// Options are what tests and the conformance build set beside the configuration.
type Options struct {
	Clock    func() time.Time
	Log      *slog.Logger
	Fixtures func(*sdk.Server)
	Model    embed.Model // nil = the configured one
	Store    blob.Store  // nil = the configured one
}

// Open opens the data and makes the parts. Close it.
func Open(ctx context.Context, c *config.Config, o Options) (*App, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	d, err := db.Open(ctx, db.Config{Dir: c.Data, URL: c.DatabaseURL, Clock: o.Clock, Log: o.Log})
	if err != nil {
		return nil, notOpened(c, err)
	}
	a := &App{Config: c, DB: d, log: o.Log, stop: make(chan struct{}), registry: prometheus.NewRegistry()}
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err := filter.Fill(ctx, d); err != nil {
		_ = d.Close()
		return nil, err
	}
	a.Accounts = account.New(d, time.Duration(c.ExpiryDays)*24*time.Hour)
	if a.Created, err = a.Accounts.Bootstrap(ctx); err != nil {
		_ = d.Close()
		return nil, err
	}
	a.limiter = audit.NewLimiter(d)
	if err := a.openSignin(ctx, c, o.Log); err != nil {
		_ = d.Close()
		return nil, err
	}
	model, err := modelOf(c, o)
	if err != nil {
		_ = d.Close()
		return nil, err
	}
	engine := search.New(d, indexBytes)
	engine.UseModel(model)
	tasks := task.New(d, engine, c.PublicURL)
	memories := memory.New(d, engine, c.PublicURL.String)
	memories.Chronicle.Completions, memories.Chronicle.ProjectHeap = tasks.Completions, tasks.ProjectHeap
	blocks := block.New(d, engine, c.PublicURL.String)
	views := view.New(d, engine, blocks)
	inbox, store, err := storeOf(c, o)
	if err != nil {
		_ = d.Close()
		return nil, err
	}
	kept := file.New(d, store, inbox, c.MaxUpload, c.PublicURL.String, block.AddFile)
	blocks.Purged = append(blocks.Purged, file.Forget)
	changes := change.NewService(d, slices.Concat(tasks.Kinds(), memories.Kinds(), blocks.Kinds(), views.Kinds(), a.Accounts.Kinds())...)
	sources := slices.Concat(tasks.Sources(), memories.Sources(), blocks.Sources())
	finder := search.NewService(engine, sources...)
	memories.Features = features(engine, sources, tasks)
	a.Accounts.Holds = holds(tasks, memories, blocks)
	a.Jobs = job.New(d, o.Log)
	a.Recorder = audit.NewRecorder(d, o.Log, c.UsageLogs, a.registry)
	a.store, a.engine, a.maker = store, engine, meaning.NewMaker(d, model, finder.Texts())
	a.maker.Calls = func() uint64 { requests, _, tools := a.Recorder.Totals(); return requests + tools }
	a.Jobs.Handle(slices.Concat(a.maker.Jobs(), engine.Jobs(), kept.Jobs())...)
	refused := func(key, address, userAgent string) {
		a.Recorder.Event(audit.Event{Event: audit.RateLimitExceeded, Actor: key, Address: address, UserAgent: userAgent})
	}
	a.Signin.Refused, a.OAuth.Refused = refused, refused
	a.Runner = op.NewRunner(o.Log, operations(a.Accounts, a.Signin, a.OAuth, finder, tasks, memories, blocks, views, kept, changes, d)...)
	for name := range c.ToolLimits {
		if a.Runner.Find(name) == nil {
			_ = a.Close()
			return nil, fault.New(fault.Invalid, "CAIRN_TOOL_LIMITS: there is no tool %q", name)
		}
	}
	a.Runner.Limit, a.Runner.Record = a.limitTool, a.Recorder.Call
	changed := documentChanges(change.NewWatcher(d, o.Log), blocks.Kinds()[0].Name)
	sdkLog := slog.New(slog.DiscardHandler) // it tells of every session, and each request is one
	if c.Debug {
		sdkLog = o.Log
	}
	a.Tools = mcp.New(a.Runner, Version, sdkLog, o.Fixtures, mcp.Beside{Skills: skills(), Prompts: prompt.All(), Now: d.Now, Changes: changed})
	a.watch()
	return a, nil
}

// storeOf gives where the bytes of files lie: a bucket where one is configured, else the data folder.
func storeOf(c *config.Config, o Options) (*blob.Inbox, blob.Store, error) {
	dir := filepath.Join(c.Data, "files")
	inbox := blob.NewInbox(filepath.Join(dir, blob.Inboxes))
	switch {
	case o.Store != nil:
		return inbox, o.Store, nil
	case c.S3.Endpoint == nil:
		return inbox, blob.NewFolder(dir), nil
	}
	s, err := blob.NewBucket(blob.Bucket{Endpoint: c.S3.Endpoint, Name: c.S3.Bucket, Region: c.S3.Region, KeyID: c.S3.KeyID, Secret: c.S3.Secret}, inbox)
	if err != nil {
		return nil, nil, fmt.Errorf("CAIRN_S3_ENDPOINT: %w", err)
	}
	return inbox, s, nil
}

// checkStore refuses to serve where the bucket won't have us. One that doesn't answer may come back: all but files works.
func (a *App) checkStore(ctx context.Context) error {
	if a.Config.S3.Endpoint == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	err := a.store.Check(ctx)
	if err != nil && blob.Refused(err) {
		return fmt.Errorf("CAIRN_S3_ENDPOINT, _BUCKET, _KEY_ID, _SECRET: the bucket refuses: %w", err)
	}
	if err != nil {
		a.log.Error("the bucket of files can't be used right now", "cause", err.Error())
	}
	return nil
}

// modelOf gives the model that texts are embedded by.
func modelOf(c *config.Config, o Options) (embed.Model, error) {
	e := c.Embeddings
	switch {
	case o.Model != nil:
		return o.Model, nil
	case e.URL == "":
		return embed.Builtin(), nil
	}
	m, err := embed.NewHTTP(embed.Endpoint{URL: e.URL, Key: e.Key, Model: e.Model})
	if err != nil {
		return nil, fmt.Errorf("CAIRN_EMBEDDINGS_URL: %w", err)
	}
	return m, nil
}

// openSignin makes what people sign in with and agents are let in by.
func (a *App) openSignin(ctx context.Context, c *config.Config, log *slog.Logger) error {
	var mailer signin.Mailer
	if c.SMTP != "" {
		m, err := mail.New(c.SMTP, c.MailFrom)
		if err != nil {
			return fmt.Errorf("CAIRN_SMTP_URL: %w", err)
		}
		mailer, a.Accounts.Mail = m, true
	}
	a.Signin = signin.New(a.DB, a.Accounts, mailer, c.PublicURL, log)
	var err error
	if a.OAuth, err = oauth.New(ctx, a.DB, a.Accounts, a.limiter, c.PublicURL, log); err != nil {
		return err
	}
	if mailer != nil {
		a.OAuth.Notify = a.Signin.Tell
	}
	if c.Metadata {
		a.OAuth.Fetcher = fetch.New(c.FetchAllow, nil, "Cairn/"+Version)
	}
	return nil
}

// setupLink makes the link that gives the admin a way to sign in on the web, or "" where there is one.
func (a *App) setupLink(ctx context.Context) (string, error) {
	id, needed, err := a.Signin.NeedsSetup(ctx)
	if err != nil || !needed {
		return "", err
	}
	secret, err := a.Signin.SetupLink(ctx, id)
	if err != nil {
		return "", err
	}
	return a.Config.PublicURL.String() + "/setup#" + secret, nil
}

// skills are the guides, for MCP's extension.
func skills() (list []mcp.Skill) {
	for _, g := range skill.Guides() {
		list = append(list, mcp.Skill(g))
	}
	return list
}

// operations are those of all features.
func operations(accounts *account.Service, people *signin.Service, server *oauth.Service, finder *search.Service, tasks *task.Service, memories *memory.Service, blocks *block.Service, views *view.Service, kept *file.Service, changes *change.Service, d *db.DB) []*op.Op {
	return slices.Concat(skill.Ops(), accounts.Ops(), people.Ops(), server.Ops(), finder.Ops(), tasks.Ops(), memories.Ops(), blocks.Ops(), editor.New(d, blocks).Ops(), views.Ops(), kept.Ops(), changes.Ops())
}

// notOpened says in one line which key named the data that can't be opened.
func notOpened(c *config.Config, err error) error {
	key := "CAIRN_DATA"
	if c.DatabaseURL != "" {
		key = "CAIRN_DATABASE_URL"
	}
	line := strings.Join(strings.Fields(err.Error()), " ")
	if fault.Is(err, fault.Unavailable) {
		return fault.New(fault.Unavailable, "%s: %s", key, line)
	}
	return fmt.Errorf("%s: %s", key, line)
}

// Close writes what waits and closes the data.
func (a *App) Close() error {
	a.Signin.Close()
	a.Recorder.Close()
	return a.DB.Close()
}

// watch adds gauges of what is inside to the metrics.
func (a *App) watch() {
	for name, g := range map[string]struct {
		help string
		f    func() float64
	}{
		"cairn_search_index_bytes":    {"Memory of the search indexes.", func() float64 { _, n := a.engine.Stats(); return float64(n) }},
		"cairn_search_heaps":          {"Heaps whose search index is in memory.", func() float64 { n, _ := a.engine.Stats(); return float64(n) }},
		"cairn_db_writes_total":       {"Writes committed since the start.", func() float64 { n, _ := a.DB.Counts(); return float64(n) }},
		"cairn_db_commits_total":      {"Commits since the start; waiting writes share one.", func() float64 { _, n := a.DB.Counts(); return float64(n) }},
		"cairn_model_paused":          {"1 while the model isn't asked to embed questions, since it failed: search goes by words alone.", func() float64 { paused, _ := a.engine.Model(); return number(paused) }},
		"cairn_model_failures":        {"Failures in a row of embedding questions, or of embedding things in the background.", func() float64 { return float64(a.modelFailures()) }},
		"cairn_embed_waiting":         {"Things that still lack vectors of the model, in the run that is on here.", func() float64 { return float64(a.maker.State().Waiting) }},
		"cairn_embedded_things_total": {"Things that got vectors since the start.", func() float64 { return float64(a.maker.State().Made) }},
	} {
		a.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: g.help}, g.f))
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// modelFailures is how often in a row the model failed, at questions or at things.
func (a *App) modelFailures() int {
	_, failures := a.engine.Model()
	return max(failures, int(a.maker.State().Failures))
}

// limitTool counts a call against its tool's limit.
func (a *App) limitTool(ctx context.Context, c *who.Caller, o *op.Op) error {
	if !c.Limited || c.Rate == 0 {
		return nil
	}
	rate, own := a.Config.ToolLimits[o.Name]
	if !own {
		rate = toolRate
	}
	if rate == 0 {
		return nil
	}
	w, err := a.limiter.Take(ctx, c.Actor+" "+o.Name, rate)
	if err != nil || w.Allowed {
		return err
	}
	return w.Refusal(time.UnixMicro(a.limiter.Now()))
}

// Handler gives the whole HTTP server.
func (a *App) Handler() http.Handler {
	c := a.Config
	e := &edge.Edge{Public: c.PublicURL, Hosts: c.Hosts, Origins: c.Origins, Proxies: c.Proxies, Debug: c.Debug, DefaultRate: c.Rate,
		ByToken: a.Accounts.ByToken, ByAccess: a.OAuth.ByToken, Resource: mcp.Path, Limiter: a.limiter, Recorder: a.Recorder, Log: a.log}
	s := &web.Server{Runner: a.Runner, Edge: e, MCP: mcp.NewHandler(a.Tools, e, a.health, a.stop), Ready: a.DB.Ping, Stop: a.stop, Version: Version, Signin: a.Signin, OAuth: a.OAuth, Files: &files.Server{Runner: a.Runner, Most: c.MaxUpload},
		Metrics: promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{})}
	return s.Handler()
}

// health is what a plain GET of the MCP path answers.
func (a *App) health(ctx context.Context) any {
	type component struct {
		State    string `json:"state"`
		Failures *int   `json:"failures,omitempty"`
	}
	failures, model := a.modelFailures(), "closed"
	if paused, _ := a.engine.Model(); paused {
		model = "open"
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	status, database := "ok", "ok"
	if err := a.DB.Ping(ctx); err != nil {
		status, database = "degraded", "unavailable"
	}
	requests, failed, tools := a.Recorder.Totals()
	return map[string]any{"status": status, "version": Version,
		"components": map[string]component{"database": {State: database}, "model": {State: model, Failures: &failures}},
		"metrics":    map[string]uint64{"requests": requests, "errors": failed, "tools": tools}}
}

// graceful is how long calls in flight may take to finish when the server stops.
const graceful = 30 * time.Second

// Serve listens until ctx ends, then lets the calls in flight finish. ready hears the address once the server listens.
func (a *App) Serve(ctx context.Context, ready func(address string)) error {
	if err := a.checkStore(ctx); err != nil {
		return err
	}
	l, err := net.Listen("tcp", a.Config.Listen)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("something else listens on %s: give another address with --listen", a.Config.Listen)
		}
		return fmt.Errorf("CAIRN_LISTEN: %w", err)
	}
	if !a.Config.Given("PUBLIC_URL") {
		a.Config.PublicURL.Host = publicHost(l.Addr(), a.Config.Hosts)
	}
	server := &http.Server{Handler: a.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug)}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	tidied := make(chan struct{})
	tctx, stopTidying := context.WithCancel(ctx)
	go a.tidy(tctx, tidied)
	worked := make(chan struct{})
	go func() { defer close(worked); a.Jobs.Run(tctx, jobWorkers) }()
	defer func() { stopTidying(); <-tidied; <-worked }()
	ready(l.Addr().String())
	go debug.FreeOSMemory() // what the start left: with the ballast the collector would come for it much later
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	close(a.stop)
	a.log.Info("stopping: no new calls, those in flight finish")
	sctx, cancel := context.WithTimeout(context.Background(), graceful)
	defer cancel()
	if err := server.Shutdown(sctx); err != nil {
		a.log.Error("calls were cut off", "after", graceful, "cause", err.Error())
		_ = server.Close()
	}
	if err := <-done; err != nil && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// publicHost names the server where nobody did: by the address it listens on, or by a name it was given where that address
// is every address.
func publicHost(a net.Addr, names []string) string {
	host, port, err := net.SplitHostPort(a.String())
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() || len(names) == 0 {
		return a.String()
	}
	if _, _, err := net.SplitHostPort(names[0]); err == nil {
		return names[0]
	}
	return net.JoinHostPort(strings.Trim(names[0], "[]"), port)
}

// tidy deletes what is kept for a time only, once an hour.
func (a *App) tidy(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	t := time.NewTicker(time.Hour)
	defer t.Stop()
	for {
		for what, f := range map[string]func(context.Context, *db.DB) error{"usage": audit.Purge, "rate windows": audit.PurgeWindows,
			"sign-in": signin.Purge, "requests to be let in": a.OAuth.Purge, "jobs": job.Purge} {
			if err := f(ctx, a.DB); err != nil && ctx.Err() == nil {
				a.log.Error("old rows could not be deleted", "what", what, "cause", err.Error())
			}
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}
