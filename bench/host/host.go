// Package host describes the machine that the benchmark runs on.
package host

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Machine is what the figures depend on.
type Machine struct {
	Cores           int
	CPU, Kernel, FS string
	Memory          int64
	Load            string
	Fsync           time.Duration // of a write of 4 KiB
	GoVersion, SDK  string
}

// Look describes the machine that dir is on.
func Look(dir string) (Machine, error) {
	m := Machine{Cores: runtime.NumCPU(), GoVersion: strings.TrimPrefix(runtime.Version(), "go")}
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return m, fmt.Errorf("this needs Linux: %w", err)
	}
	for line := range strings.Lines(string(info)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			m.CPU = strings.TrimSpace(v)
			break
		}
	}
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return m, err
	}
	if m.Memory, err = Kilobytes(b, "MemTotal"); err != nil {
		return m, err
	}
	if b, err = os.ReadFile("/proc/sys/kernel/osrelease"); err != nil {
		return m, err
	}
	m.Kernel = strings.TrimSpace(string(b))
	if b, err = os.ReadFile("/proc/loadavg"); err != nil {
		return m, err
	}
	m.Load, _, _ = strings.Cut(string(b), " ")
	if b, err = os.ReadFile("/proc/mounts"); err != nil {
		return m, err
	}
	m.FS = fileSystem(string(b), dir)
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, d := range build.Deps {
			if strings.HasSuffix(d.Path, "modelcontextprotocol/go-sdk") {
				m.SDK = d.Version
			}
		}
	}
	m.Fsync, err = timeFsync(dir)
	return m, err
}

// fileSystem gives the type of the file system that holds dir.
func fileSystem(mounts, dir string) string {
	kind, longest := "unknown", 0
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line)
		if len(f) < 3 || len(f[1]) < longest {
			continue
		}
		if rel, err := filepath.Rel(f[1], dir); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			kind, longest = f[2], len(f[1])
		}
	}
	return kind
}

// Fsyncs is how often timeFsync writes.
const Fsyncs = 200

// timeFsync gives the median time of a durable write: what no commit can be faster than.
func timeFsync(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, "fsync-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it lies in the temporary folder
	defer f.Close()
	block := make([]byte, 4096)
	times := make([]time.Duration, Fsyncs)
	for i := range times {
		begin := time.Now()
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		times[i] = time.Since(begin)
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// Kilobytes finds a value such as "VmRSS:  1234 kB" in a file of /proc.
func Kilobytes(b []byte, key string) (int64, error) {
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == key+":" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("there is no %s", key)
}

// Metrics reads values without labels from a Prometheus text.
func Metrics(r io.Reader, names ...string) ([]float64, error) {
	found := make([]float64, len(names))
	missing := len(names)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		k, v, _ := strings.Cut(lines.Text(), " ")
		if i := slices.Index(names, k); i >= 0 {
			f, err := strconv.ParseFloat(v, 64)
			if err != nil {
				return nil, err
			}
			found[i] = f
			missing--
		}
	}
	if missing > 0 {
		return nil, fmt.Errorf("metrics: %d of %v are missing", missing, names)
	}
	return found, lines.Err()
}
