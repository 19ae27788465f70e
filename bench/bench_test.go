package main

import (
	"strings"
	"testing"
	"time"

	"cairn/bench/host"
)

func TestParseStat(t *testing.T) {
	got, err := parseStat([]byte("42 (a (b) c) S 1 42 42 0 -1 4194560 100 0 0 0 30 12 0 0 20 0 9 0 100 1 2 3"))
	if want := 42 * tick(); err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if _, err := parseStat([]byte("42 (x) S 1")); err == nil {
		t.Error("a stat file that is too short passed")
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		target target
		want   string
	}{
		{target{got: 1.2, limit: 1.2}, "reached"},
		{target{got: 1.25, limit: 1}, "**missed** by 25 %"},
		{target{got: 3, limit: 0}, "**missed** by 3"},
		{target{got: 1500, limit: 2000, least: true}, "**missed** by 25 %"},
		{target{got: 2000, limit: 2000, least: true}, "reached"},
	} {
		if got := c.target.verdict(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.target, got, c.want)
		}
	}
}

func TestFigures(t *testing.T) {
	for f, want := range map[float64]string{0: "0", 1: "1", 0.1234: "0.123", 1.2345: "1.23", 45.67: "45.7", 1234.5: "1,235", 1234567: "1,234,567"} {
		if got := figure(f); got != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
	if got := median([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("median %v", got)
	}
	if got := quantile([]time.Duration{1, 2, 3, 4}, .99); got != 4 {
		t.Errorf("quantile %v", got)
	}
}

func TestMetrics(t *testing.T) {
	got, err := host.Metrics(strings.NewReader("# HELP a b\na 12\nb{x=\"1\"} 3\nc 1.5e+06\n"), "c", "a")
	if err != nil || got[0] != 1.5e6 || got[1] != 12 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := host.Metrics(strings.NewReader("a 1\n"), "b"); err == nil {
		t.Error("a value that is missing passed")
	}
}
