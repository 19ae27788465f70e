// Package cli shows operations as commands, on the local data or on a server. It knows operations only as a list, and opens
// data only through what app gives it.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"cairn/internal/config"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/rawjson"
	"cairn/internal/who"
)

// Local is an open Cairn on this machine.
type Local struct {
	Created bool // its first account was made just now: the data was empty
	Runner  *op.Runner
	Person  func(ctx context.Context) (*who.Caller, error) // the owner, at the keyboard
	Stdio   func(ctx context.Context, in io.Reader, out io.Writer) error
	Serve   func(ctx context.Context, ready func(address string)) error
	Close   func() error
	// SetupLink makes the link that gives the admin a way to sign in on the web; "" where there is one already.
	SetupLink func(ctx context.Context) (string, error)
}

// Check is one thing that doctor looked at.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Says string `json:"says"`
	Do   string `json:"do,omitempty"` // how to mend it
}

// Program is what app gives.
type Program struct {
	Version string
	// Open opens the local data.
	Open func(ctx context.Context, c *config.Config, log *slog.Logger) (*Local, error)
	// LockServer makes this process the only server on the data.
	LockServer func(c *config.Config) (release func(), err error)
	// Doctor looks at everything that a server needs.
	Doctor func(ctx context.Context, c *config.Config) []Check
	// Operations are all operations, without any data behind, for documentation.
	Operations func() []*op.Op
}

// run is one run of the command line.
type run struct {
	p      Program
	in     io.Reader
	out    io.Writer
	err    io.Writer
	env    func(string) (string, bool)
	json   bool
	flags  map[string]string // config flags given, by flag name
	config *config.Config    // nil where configErr isn't
	// configErr is kept for doctor alone; every other command ends with it.
	configErr error
}

// Main runs the command line and gives the exit code of the contract's table.
func Main(p Program, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends at once
	r := &run{p: p, in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv}
	return r.main(ctx, args)
}

func (r *run) main(ctx context.Context, args []string) int {
	r.flags = map[string]string{}
	root := r.root()
	root.SetArgs(args)
	if err := root.ExecuteContext(ctx); err != nil {
		r.json = r.json || slices.Contains(args, "--json") // a command line that can't be read may have it further on
		return r.report(err)
	}
	return 0
}

// report words an error for a person, or as JSON where that was asked for.
func (r *run) report(err error) int {
	if errors.Is(err, errSaid) {
		return 1
	}
	f := &fault.Error{}
	if !errors.As(err, &f) { // the command line's own: usage, files
		f = fault.New(fault.Invalid, "%s", strings.TrimSpace(err.Error()))
		var plain failure
		if errors.As(err, &plain) {
			f.Kind = fault.Internal
		}
	}
	body, jerr := rawjson.Marshal(f.Body())
	if r.json && jerr == nil {
		fmt.Fprintln(r.err, string(body))
		return f.Kind.Wire().Exit
	}
	fmt.Fprintln(r.err, "cairn: "+printable(f.Message, true))
	if len(f.Valid) > 0 && !strings.Contains(f.Message, f.Valid[0]) {
		fmt.Fprintln(r.err, "valid: "+printable(strings.Join(f.Valid, ", "), false))
	}
	rawjson.Members(body, func(k string, v json.RawMessage) bool { // things of which one may be meant
		if list, ok := rawjson.Elements(v); ok && k == "candidates" {
			r.screen(r.err).list(list)
		}
		return true
	})
	return f.Kind.Wire().Exit
}

// failure is an error of the machine rather than of what was typed: exit code 1.
type failure struct{ error }

// Unwrap gives the error itself.
func (f failure) Unwrap() error { return f.error }

// errSaid ends with exit code 1 where everything was said already.
var errSaid = errors.New("said")

func (r *run) root() *cobra.Command {
	root := &cobra.Command{
		Use: "cairn", Version: r.p.Version, Short: "One place of your own that every AI agent can work in", SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return r.load(cmd) },
	}
	root.SetIn(r.in)
	root.SetOut(r.out)
	root.SetErr(r.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fault.New(fault.Invalid, "%s (see `%s --help`)", err.Error(), cmd.CommandPath())
	})
	flags := root.PersistentFlags()
	flags.BoolVar(&r.json, "json", false, "answer in JSON, also on a terminal")
	everywhere := []string{"data", "database-url", "server", "token"}
	serve := r.serveCommand()
	for _, k := range config.Keys {
		set := serve.Flags()
		if slices.Contains(everywhere, k.Flag) {
			set = flags
		}
		f := set.VarPF(&keyFlag{r: r, name: k.Flag}, k.Flag, "", help(k))
		if k.Default == "true" || k.Default == "false" {
			f.NoOptDefVal = "true"
		}
	}
	root.AddCommand(serve, r.tokenCommand(), r.accountCommand(), r.mcpCommand(), r.callCommand(), r.toolsCommand(), r.skillsCommand(), r.fileCommand(), r.versionCommand(), r.doctorCommand(), r.loginCommand(), r.logoutCommand())
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Args, c.RunE = nil, onlyHolds
		}
	}
	return root
}

// group makes a command that only holds others: without one of them it shows its help, with a wrong one it fails.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: use, Short: short, RunE: onlyHolds}
	g.AddCommand(commands...)
	return g
}

func onlyHolds(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fault.New(fault.Invalid, "unknown command %q for %q (see `%s --help`)", args[0], cmd.CommandPath(), cmd.CommandPath())
	}
	return cmd.Help()
}

func help(k config.Key) string {
	h := k.Help + " ($" + k.Name + ")"
	if k.Default != "" {
		h += " (default " + k.Default + ")"
	}
	return h
}

// keyFlag is a flag that sets a key of the configuration.
type keyFlag struct {
	r    *run
	name string
}

// String, Set and Type make it a flag's value.
func (f *keyFlag) String() string { return "" }

// Set remembers the value; the configuration is read when all flags are known.
func (f *keyFlag) Set(v string) error {
	f.r.flags[f.name] = v
	return nil
}

// Type names the kind of value in the help text.
func (f *keyFlag) Type() string { return "value" }

var _ pflag.Value = (*keyFlag)(nil)

// load reads the configuration once all flags are known.
func (r *run) load(cmd *cobra.Command) (err error) {
	switch cmd.Name() {
	case "version", "help", "completion", "bash", "zsh", "fish", "powershell", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
		return nil
	}
	if r.config, err = config.Load(r.flags, r.env); err != nil && cmd.Name() == "doctor" {
		r.config, r.configErr = nil, err
		return nil
	}
	return err
}

// terminal tells whether answers go to a person's terminal.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// human tells whether to answer with tables rather than JSON.
func (r *run) human() bool { return !r.json && terminal(r.out) }

// logger writes to standard error: standard output belongs to answers, and on stdio to JSON-RPC alone.
func (r *run) logger(level slog.Level) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if terminal(r.err) {
		return slog.New(slog.NewTextHandler(r.err, opts))
	}
	return slog.New(slog.NewJSONHandler(r.err, opts))
}

// open opens the local data quietly: commands log only what went wrong.
func (r *run) open(ctx context.Context) (*Local, error) {
	l, err := r.p.Open(ctx, r.config, r.logger(slog.LevelWarn))
	if err != nil && !isFault(err) {
		return nil, failure{err}
	}
	return l, err
}

func isFault(err error) bool {
	var f *fault.Error
	return errors.As(err, &f)
}

// call runs one operation where the flags, the environment or the saved login say, else on the local data.
func (r *run) call(ctx context.Context, name string, args any) (op.Result, error) {
	raw, ok := args.(json.RawMessage)
	if !ok {
		b, err := json.Marshal(args)
		if err != nil {
			return op.Result{}, err
		}
		raw = b
	}
	remote, err := r.remote()
	if err != nil {
		return op.Result{}, err
	}
	if remote != nil {
		return remote.call(ctx, name, raw)
	}
	l, err := r.open(ctx)
	if err != nil {
		return op.Result{}, err
	}
	defer l.Close() //nolint:errcheck // what was written is durable already
	if l.Created {
		fmt.Fprintln(r.err, "cairn: there was no data at "+r.where()+", so an empty one was made; --data names another place")
	}
	c, err := l.Person(ctx)
	if err != nil {
		return op.Result{}, err
	}
	return l.Runner.Run(who.With(ctx, c), name, raw)
}
