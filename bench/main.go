// Bench measures Cairn beside a plain net/http server and a bare go-sdk server, how its costs grow with the data, that
// acknowledged writes survive a kill, what a start and an idle server cost, how long a pack takes, what embedding in the
// background does to others, and what documents cost. It prints the tables and writes RESULTS.md.
//
// Every server is a process of its own: CPU per request is what that process used, whatever the client costs. Everything is
// bound to loopback and lives in a temporary folder; TMPDIR says where, and so on which disk the writes are durable.
//
// Linux only: it reads /proc.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"cairn/bench/host"
	"cairn/bench/retrieval"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if len(args) == 1 && peers[args[0]] != nil { // this program, started by itself as a server to compare with
		return servePeer(peers[args[0]])
	}
	if len(args) > 0 && args[0] == "retrieval" {
		return retrieval.Main(args[1:])
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "small rounds: shows that the program works, its figures mean little")
	only := flags.String("only", "", "sections by commas: "+strings.Join(sectionNames(), ", "))
	out := flags.String("out", filepath.Join("bench", "RESULTS.md"), "where the result goes; a quick or partial run is only printed")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return 2
	}
	if *only == "" {
		*only = strings.Join(sectionNames(), ",")
	}
	chosen := strings.Split(*only, ",")
	for _, name := range chosen {
		if !slices.Contains(sectionNames(), name) {
			fmt.Fprintf(os.Stderr, "bench: there is no section %q\n", name)
			return 2
		}
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	rep, err := measure(ctx, *quick, chosen)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	text := rep.markdown()
	fmt.Print("\n", text)
	if *quick || len(chosen) < len(sections) {
		return 0
	}
	if was, err := os.ReadFile(*out); err == nil {
		text += retrieval.Part(string(was))
	}
	if err := os.WriteFile(*out, []byte(text), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

// bench is one run.
type bench struct {
	dir   string // temporary: data folders and the built server
	cairn string // the built server
	self  string // this program
	size  sizes
	rep   *report
}

// sizes are how much is measured.
type sizes struct {
	rounds     int // of the comparison
	besideReqs int // requests of a contender a round; the cheap echo gets four times as many
	tasks      int // what list_tasks picks from in the comparison
	growRounds int
	grow       []int // numbers of tasks, ascending
	growReqs   int
	searches   int // warm ones
	colds      int // first searches of a fresh server
	writeFor   time.Duration
	writeRuns  int
	kills      int
	starts     int
	idle       time.Duration
	consents   int // of each browser
	packItems  []int
	packs      int // queries
	captures   int
	blocks     int // of a heap
	changes    int // of a document
}

var (
	fullSizes = sizes{rounds: 7, besideReqs: 4000, tasks: 10_000, growRounds: 5, grow: []int{1000, 10_000, 100_000}, growReqs: 2000,
		searches: 1000, colds: 3, writeFor: 3 * time.Second, writeRuns: 3, kills: 8, starts: 9, idle: 2 * time.Second, consents: 5, packItems: []int{10_000, 100_000}, packs: 500, captures: 1000, blocks: 100_000, changes: 10_000}
	quickSizes = sizes{rounds: 2, besideReqs: 400, tasks: 1000, growRounds: 2, grow: []int{200, 2000}, growReqs: 200,
		searches: 100, colds: 1, writeFor: 400 * time.Millisecond, writeRuns: 1, kills: 2, starts: 2, idle: time.Second, consents: 1, packItems: []int{1000}, packs: 50, captures: 100, blocks: 2000, changes: 200}
)

type section struct {
	name string
	run  func(*bench, context.Context) error
}

var sections = []section{{"beside", (*bench).beside}, {"growth", (*bench).growth}, {"writes", (*bench).writes}, {"kill", (*bench).kill}, {"idle", (*bench).idleServer}, {"oauth", (*bench).consent}, {"packs", (*bench).packs}, {"captures", (*bench).captures}, {"documents", (*bench).documents}}

func sectionNames() []string {
	var names []string
	for _, s := range sections {
		names = append(names, s.name)
	}
	return names
}

// measure runs the sections chosen. Nothing it started is left when it returns.
func measure(ctx context.Context, quick bool, chosen []string) (_ *report, err error) {
	b := &bench{size: fullSizes}
	if quick {
		b.size = quickSizes
	}
	if b.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("", "cairn-bench-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(b.dir) //nolint:errcheck // what can't be removed is in the temporary folder
	b.cairn = filepath.Join(b.dir, "cairn")
	build := exec.CommandContext(ctx, "go", "build", "-o", b.cairn, "cairn")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("building cairn: %w", err)
	}
	m, err := host.Look(b.dir)
	if err != nil {
		return nil, err
	}
	b.rep = &report{machine: m, quick: quick, start: time.Now()}
	for _, s := range sections {
		if !slices.Contains(chosen, s.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format(time.TimeOnly), s.name)
		if err := s.run(b, ctx); err != nil {
			if ctx.Err() != nil {
				return nil, errors.New("stopped")
			}
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	b.rep.took = time.Since(b.rep.start)
	return b.rep, nil
}
