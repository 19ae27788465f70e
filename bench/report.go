package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/bench/host"
	"cairn/bench/table"
)

// report is what a run found.
type report struct {
	machine host.Machine
	quick   bool
	start   time.Time
	took    time.Duration
	targets []target
	tables  []table.Table
	facts   []string
}

// target is a figure that was promised.
type target struct {
	what       string
	got, limit float64
	unit       string
	least      bool // the limit is a lower one
}

// want notes a figure that may be at most limit.
func (r *report) want(what string, got, limit float64, unit string) {
	r.targets = append(r.targets, target{what, got, limit, unit, false})
}

// wantLeast notes a figure that must be at least limit.
func (r *report) wantLeast(what string, got, limit float64, unit string) {
	r.targets = append(r.targets, target{what, got, limit, unit, true})
}

// verdict says whether a target is reached, and if not by how much it is missed.
func (t target) verdict() string {
	switch {
	case t.least && t.got >= t.limit, !t.least && t.got <= t.limit:
		return "reached"
	case t.limit == 0:
		return "**missed** by " + figure(t.got)
	}
	return fmt.Sprintf("**missed** by %.0f %%", math.Ceil(math.Abs(t.got/t.limit-1)*100))
}

// anchor is said with the first table: what the ratios stand on may move.
const anchor = "The anchor is soft: a bare go-sdk server spends most of its time in allocations of the SDK's JSON decoder and in the garbage collections they cause. " +
	"A release of the SDK that mends this would make it several times cheaper and every ratio here larger, without any change in Cairn. So read the absolute figures first."

// markdown words the report.
func (r *report) markdown() string {
	var b strings.Builder
	m := r.machine
	b.WriteString("# Benchmark results\n\n")
	if r.quick {
		b.WriteString("A quick run: it shows that the benchmark works, its figures mean little.\n\n")
	}
	fmt.Fprintf(&b, "Made by `make bench` on %s, in %v. %d cores, %s, %.1f GiB of memory, Linux %s, Go %s, go-sdk %s, data on %s. Load of the machine at the start: %s.\n\n",
		r.start.UTC().Format(time.DateOnly), r.took.Round(time.Second), m.Cores, m.CPU, float64(m.Memory)/(1<<30), m.Kernel, m.GoVersion, m.SDK, m.FS, m.Load)
	t := table.Table{Title: "Targets", Head: []string{"figure", "target", "measured", "verdict"}}
	for _, want := range r.targets {
		sign := "<= "
		if want.least {
			sign = ">= "
		}
		unit := strings.TrimSuffix(" "+want.unit, " ")
		t.Add(want.what, sign+figure(want.limit)+unit, figure(want.got)+unit, want.verdict())
	}
	t.Note = anchor
	for _, t := range append([]table.Table{t}, r.tables...) {
		t.Write(&b)
	}
	for _, f := range r.facts {
		b.WriteString(f + "\n")
	}
	return b.String()
}

// figure writes a number with three digits that count.
func figure(f float64) string {
	if f == math.Trunc(f) || math.Abs(f) >= 100 {
		return number(f)
	}
	return strconv.FormatFloat(f, 'f', max(0, 2-int(math.Floor(math.Log10(math.Abs(f))))), 64)
}

// number writes a whole number with commas between thousands.
func number(f float64) string {
	s := strconv.FormatFloat(math.Round(f), 'f', 0, 64)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// millis and mebi write nanoseconds as milliseconds and bytes as MiB.
func millis(ns float64) string { return fmt.Sprintf("%.2f", ns/1e6) }

func mebi(bytes float64) string { return fmt.Sprintf("%.1f", bytes/(1<<20)) }

// span writes the least and the most of some figures.
func span(list []float64, form func(float64) string) string {
	return form(slices.Min(list)) + ".." + form(slices.Max(list))
}

func median(list []float64) float64 {
	s := slices.Sorted(slices.Values(list))
	if len(s) == 0 {
		return math.NaN()
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// quantile gives the value below which a share of an ascending list lies.
func quantile(ascending []time.Duration, share float64) time.Duration {
	if len(ascending) == 0 {
		return 0
	}
	return ascending[min(len(ascending)-1, int(share*float64(len(ascending))))]
}

// pick reads a figure off each of some things.
func pick[T any](list []T, f func(T) float64) []float64 {
	out := make([]float64, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}
