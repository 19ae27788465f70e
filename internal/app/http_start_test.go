package app_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/internal/app"
	"cairn/internal/config"
)

// open starts an application with an environment and gives what stops it.
func open(t *testing.T, env map[string]string) error {
	t.Helper()
	c, err := config.Load(nil, func(k string) (string, bool) { v, ok := env[k]; return v, ok })
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	a, err := app.Open(ctx, c, app.Options{Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		_ = a.Close()
	}
	return err
}

// What only shows when the data is opened stops the start in the same way: one line, the key, no secret.
func TestBadValuesThatShowAtOpeningStopTheStart(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const secret = "s3cretvalue"
	for name, env := range map[string]map[string]string{
		"CAIRN_DATA":                     {"CAIRN_DATA": file},
		"CAIRN_DATA below a file":        {"CAIRN_DATA": filepath.Join(file, "x")},
		"CAIRN_DATABASE_URL of nobody":   {"CAIRN_DATABASE_URL": "postgres://u:" + secret + "@127.0.0.1:1/d"},
		"CAIRN_DATABASE_URL of nowhere":  {"CAIRN_DATABASE_URL": "postgres://u:" + secret + "@nowhere.invalid/d?sslmode=disable"},
		"CAIRN_DATABASE_URL of nonsense": {"CAIRN_DATABASE_URL": "postgres://u:" + secret + "@h/d?sslmode=" + secret + "&connect_timeout=x"},
		"CAIRN_TOOL_LIMITS of no tool":   {"CAIRN_DATA": filepath.Join(dir, "d"), "CAIRN_TOOL_LIMITS": "list_tasks=30,lst_tasks=30"},
	} {
		t.Run(name, func(t *testing.T) {
			key, _, _ := strings.Cut(name, " ")
			err := open(t, env)
			if err == nil {
				t.Fatal("it starts")
			}
			if line := err.Error(); !strings.Contains(line, key) || strings.Contains(line, "\n") || strings.Contains(line, secret) {
				t.Errorf("it stops with %q", line)
			}
		})
	}
}
