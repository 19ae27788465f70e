package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"cairn/internal/app"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"cairn": func() { os.Exit(app.Main(os.Args[1:])) }})
}
