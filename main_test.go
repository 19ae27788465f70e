package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"cairn/internal/app"
	"cairn/internal/db/dbtest"
)

// TestMain makes the test binary the program too: scripts run it as cairn.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"cairn": func() { os.Exit(app.Main(os.Args[1:])) }})
}

// TestScripts runs every story of testdata/script on the real program, and those that both databases must tell alike on
// PostgreSQL too. $DB is where a story's data lies, as a flag.
func TestScripts(t *testing.T) {
	path := os.Getenv("PATH")
	if raceEnabled {
		path = plainProgram(t) + string(filepath.ListSeparator) + path
	}
	t.Run("sqlite", func(t *testing.T) {
		stories(t, "*", path, func(e *testscript.Env) string { return "--data=" + filepath.Join(e.WorkDir, "data") })
	})
	t.Run("postgres", func(t *testing.T) {
		stories(t, "both_*", path, func(e *testscript.Env) string { return "--database-url=" + dbtest.Postgres(e.T().(testing.TB)) })
	})
}

// plainProgram builds the program without the race detector, for the many commands of the stories: with it each needs a
// third of a second to begin. The servers, where goroutines meet, have it.
func plainProgram(t *testing.T) (dir string) {
	dir = t.TempDir()
	if out, err := exec.Command("go", "build", "-race=false", "-o", filepath.Join(dir, "cairn"), ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

func stories(t *testing.T, which, path string, data func(e *testscript.Env) string) {
	files, err := filepath.Glob("testdata/script/" + which + ".txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts ", err)
	}
	testscript.Run(t, testscript.Params{
		Files:               files,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Cmds:                commands,
		Condition: func(cond string) (bool, error) {
			if cond == "root" { // whom no permission stops
				return os.Getuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", path)
			e.Setenv("DB", data(e))
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("TZ", "UTC")
			e.Setenv("GORACE", "atexit_sleep_ms=0") // else a program built with -race waits a second at its end
			s := &story{}
			e.Values[storyKey{}] = s
			e.Defer(s.close)
			return nil
		},
	})
}
