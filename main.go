// Cairn is one place of a person's own that every AI agent can work in. See README.md.
package main

import (
	"os"

	"cairn/internal/app"
)

func main() { os.Exit(app.Main(os.Args[1:])) }
