package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"cairn/bench/host"
)

// child is a server process that this program started.
type child struct {
	name  string
	addr  string // host:port
	token string // of the bearer; printed by a Cairn on a fresh folder, else set by who started it
	cmd   *exec.Cmd
	errs  tail
	done  chan struct{}
}

// startLimit is how long a server may take to listen.
const startLimit = time.Minute

// start starts a server and waits until it says its address. The process ends with ctx, with stop, and with this program.
func start(ctx context.Context, name, program string, args ...string) (*child, error) {
	c := &child{name: name, cmd: exec.CommandContext(ctx, program, args...), done: make(chan struct{})}
	// Nothing of this environment may change how a server runs: no GOGC, no GOMAXPROCS, no key of Cairn's.
	c.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir()}
	c.cmd.Stderr = &c.errs
	c.cmd.WaitDelay = 5 * time.Second
	dieTogether(c.cmd)
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	said := make(chan [2]string, 1)
	go func() {
		listen(stdout, said)
		_ = c.cmd.Wait() // stop kills: how it ended says nothing
		close(c.done)
	}()
	select {
	case s := <-said:
		c.addr, c.token = s[0], s[1]
		return c, nil
	case <-c.done:
		err = errors.New("ended before it listened")
	case <-time.After(startLimit):
		err = errors.New("did not listen in time")
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.stop()
	return nil, fmt.Errorf("%s %w: %s", name, err, c.errs.String())
}

// listen reads what a server prints: its address and, on the next line, its token. The peers print the same two lines.
func listen(r io.Reader, said chan<- [2]string) {
	addr := ""
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		switch {
		case len(f) >= 3 && f[0] == "MCP" && f[1] == "URL":
			addr = strings.TrimSuffix(strings.TrimPrefix(f[2], "http://"), "/mcp")
		case len(f) >= 2 && f[0] == "Token" && addr != "":
			said <- [2]string{addr, f[1]}
			addr = ""
		}
	}
	_, _ = io.Copy(io.Discard, r) // a line too long for the scanner must not block the server
}

// serve starts Cairn on a data folder. Without a token the folder's is the one that it prints on a fresh one.
func (b *bench) serve(ctx context.Context, f folder, args ...string) (*child, error) {
	c, err := start(ctx, "cairn", b.cairn, append([]string{"serve", "--listen", "127.0.0.1:0", "--data", f.dir}, args...)...)
	if err == nil && f.token != "" {
		c.token = f.token
	}
	return c, err
}

// stop kills the server, without giving it time for anything.
func (c *child) stop() {
	_ = c.cmd.Process.Kill()
	<-c.done
}

// close lets the server end by itself, so that its data folder is closed in order.
func (c *child) close() error {
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	select {
	case <-c.done:
		return nil
	case <-time.After(startLimit):
		c.stop()
		return fmt.Errorf("%s did not stop: %s", c.name, c.errs.String())
	}
}

// cpu is the processor time that the server has used so far, in user and kernel mode.
func (c *child) cpu() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	return parseStat(b)
}

func parseStat(b []byte) (time.Duration, error) {
	_, after, _ := bytes.Cut(b[max(0, bytes.LastIndexByte(b, ')')):], []byte(" ")) // the name in brackets may hold anything
	f := strings.Fields(string(after))
	if len(f) < 13 {
		return 0, fmt.Errorf("a stat file of %d fields", len(f))
	}
	user, err := strconv.ParseInt(f[11], 10, 64)
	if err != nil {
		return 0, err
	}
	kernel, err := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+kernel) * tick(), err
}

// tick is the unit of the times in /proc: the kernel tells it to each program it starts.
var tick = sync.OnceValue(func() time.Duration {
	const clockTicks = 17 // AT_CLKTCK
	b, _ := os.ReadFile("/proc/self/auxv")
	for ; len(b) >= 16; b = b[16:] {
		if hz := binary.NativeEndian.Uint64(b[8:]); binary.NativeEndian.Uint64(b) == clockTicks && hz > 0 {
			return time.Second / time.Duration(hz)
		}
	}
	return 10 * time.Millisecond
})

// memory is the resident memory in bytes, and what of it are pages of files, mostly the program itself.
func (c *child) memory() (resident, files int64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	if resident, err = host.Kilobytes(b, "VmRSS"); err != nil {
		return 0, 0, err
	}
	files, err = host.Kilobytes(b, "RssFile")
	return resident, files, err
}

// tail keeps the end of what a server logs, for the error that ends a run.
type tail struct {
	mu sync.Mutex
	b  []byte
}

// Write keeps the last 4,000 bytes.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if extra := len(t.b) - 4000; extra > 0 {
		t.b = t.b[extra:]
	}
	return len(p), nil
}

// String gives what is kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.b))
}
