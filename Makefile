# Everything here is also the way CI does it. `make test` needs Go, gcc, Node with npm, and Debian's PostgreSQL, which it
# installs when it may.

GO ?= go
FUZZTIME ?= 20s

.PHONY: build run test unit e2e clients screenshots bench bench-retrieval docs fuzz fmt lint clean

build:
	$(GO) build -o bin/cairn .

run: build
	./bin/cairn serve --print-token

# All checks: gofmt, vet, Go tests with the race detector on SQLite and PostgreSQL, real clients, MCP conformance.
test:
	scripts/test

# The Go tests alone; `make unit ARGS="-run TestTasks ./internal/task"` narrows them.
unit:
	scripts/with-postgres scripts/gotest $(ARGS)

# Real clients, the browser and the conformance suite alone; `make e2e ARGS=e2e/inspector.test.mjs` narrows them.
e2e: build
	scripts/with-postgres scripts/e2e $(ARGS)

# Pictures of every page, light, dark and on a phone, into e2e/screenshots.
screenshots: build
	SCREENSHOTS=1 scripts/with-postgres scripts/e2e e2e/pages.test.mjs

# Claude Code, Codex, OpenCode and Gemini CLI, each let in by the URL alone: a large download, so not in `make test`.
clients: build
	scripts/clients $(ARGS)

bench:
	$(GO) run ./bench

# How well search finds what answers a question: DATA is a folder with locomo-dev.json and cranfield/, or others of that form.
# CACHE=folder keeps the vectors for the next run.
bench-retrieval:
	@test -n "$(DATA)" || { echo "give the folder of the data: make bench-retrieval DATA=folder" >&2; exit 2; }
	@$(GO) run ./bench retrieval -data "$(DATA)" -cache "$(CACHE)" $(ARGS)

# docs/tools.md, docs/documents.md and the snapshots in testdata/tools, all made from the operations.
docs:
	UPDATE=1 $(GO) test ./internal/app -run NotStale -count=1

# Every fuzz test in turn, FUZZTIME each.
fuzz:
	FUZZTIME=$(FUZZTIME) scripts/fuzz $(ARGS)

fmt:
	scripts/lint --fix

lint:
	scripts/lint

clean:
	rm -rf bin e2e/node_modules e2e/clients/node_modules
