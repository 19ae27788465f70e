package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// may says which packages of the project each package may import. What isn't listed is refused: add the line here on
// purpose, or import something else.
var may = map[string][]string{
	"fault":     {},
	"rawjson":   {},
	"who":       {"fault"},
	"op":        {"fault", "rawjson", "who"},
	"config":    {},
	"db":        {"fault"},
	"db/dbtest": {"db"},

	"doc":          {"fault", "rawjson"},
	"doc/markdown": {"doc", "fault"},
	"doc/version":  {"doc", "fault"},
	"doc/view":     {"doc", "fault"},
	"doc/html":     {"doc"},
	"doc/doctest":  {"doc"},

	"search":       {"db", "embed", "fault", "job", "meaning", "op", "search/query", "when", "who", "words"},
	"change":       {"db", "fault", "op", "rawjson", "who", "words"},
	"audit":        {"db", "fault", "op", "who"},
	"account":      {"audit", "change", "db", "fault", "op", "who"},
	"search/query": {"words"},
	"signin":       {"account", "audit", "db", "fault", "op", "who"},
	"mail":         {"fault"},
	"embed":        {"fault"},
	"when":         {},
	"words":        {},
	"meaning":      {"db", "embed", "job"},
	"oauth":        {"account", "audit", "db", "fault", "op", "who"},
	"fetch":        {"fault"},
	"job":          {"db", "who"},
	"chronicle":    {"change", "db", "fault", "meaning", "op", "rawjson", "search", "who", "words"},
	"memory":       {"audit", "change", "chronicle", "db", "fault", "job", "meaning", "op", "rawjson", "search", "who", "words"},
	"prompt":       {"fault", "op", "rawjson", "who"},
	"skill":        {"fault", "op", "who"},
	"blob":         {"fault"},
	"blob/s3test":  {"blob"},
	"picture":      {},
	"file":         {"blob", "db", "fault", "job", "op", "picture", "who"},
	"block/inmem":  {"doc", "doc/markdown"},
	"block/draft":  {"db", "doc", "doc/markdown", "doc/version", "fault", "rawjson"},
	"block/editor": {"block", "block/draft", "change", "db", "doc", "doc/markdown", "doc/version", "doc/view", "fault", "op"},
	"block/past":   {"block/inmem", "db", "doc", "doc/version"},
	"block/filter": {"db", "fault", "op", "rawjson", "who"},
	"block/purge":  {"block/filter", "change", "db", "search"},
	"block":        {"block/draft", "block/filter", "block/inmem", "block/past", "block/purge", "change", "db", "doc", "doc/markdown", "doc/version", "doc/view", "fault", "meaning", "op", "rawjson", "search", "who"},
	"view":         {"block", "block/filter", "change", "db", "fault", "op", "search", "who"},
	"task":         {"change", "db", "fault", "meaning", "op", "rawjson", "search", "who"},
	"edge":         {"audit", "db", "fault", "rawjson", "who"},
	"mcp":          {"edge", "fault", "op", "prompt", "rawjson", "who"},
	"web/files":    {"edge", "fault", "op", "rawjson", "who"},
	"web":          {"account", "edge", "fault", "oauth", "op", "rawjson", "signin", "web/docs", "web/files", "web/say", "who"},
	"web/say":      {},
	"web/docs":     {"doc", "doc/html", "fault"},
	"cli":          {"config", "fault", "mcp", "op", "rawjson", "who"},
	"app":          {"account", "audit", "blob", "block", "block/editor", "block/filter", "change", "cli", "config", "db", "edge", "embed", "fault", "fetch", "file", "job", "mail", "mcp", "meaning", "memory", "oauth", "op", "prompt", "search", "signin", "skill", "task", "view", "web", "web/files", "who", "words"},
	"apptest":      {"account", "app", "config", "db", "db/dbtest", "fault", "op", "who"},
}

// Budgets. A package or file that outgrows one wants splitting, not a larger number.
const (
	fileLines     = 600
	packageLines  = 3000
	functionLines = 80
	methods       = 5  // of an interface
	dependencies  = 40 // direct
)

type source struct {
	path, pkg string
	lines     int
	file      *ast.File
	fset      *token.FileSet
}

// sources parses every Go file of the product; tests and generated files don't count.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "node_modules" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, text, parser.ParseComments)
		if err != nil {
			return err
		}
		if ast.IsGenerated(f) {
			return nil
		}
		pkg := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "internal/")
		all = append(all, source{path, pkg, strings.Count(string(text), "\n"), f, fset})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestImportsPointDown(t *testing.T) {
	for _, s := range sources(t) {
		if !strings.HasPrefix(filepath.ToSlash(s.path), "internal/") {
			continue
		}
		allowed, known := may[s.pkg]
		if !known {
			t.Errorf("%s: package %s has no line in the table of imports", s.path, s.pkg)
			continue
		}
		for _, imp := range s.file.Imports {
			name, ours := strings.CutPrefix(strings.Trim(imp.Path.Value, `"`), "cairn/internal/")
			if ours && !slices.Contains(allowed, name) {
				t.Errorf("%s may not import %s", s.path, name)
			}
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	has := map[string]bool{}
	for _, s := range sources(t) {
		has[s.pkg] = has[s.pkg] || s.file.Doc != nil
	}
	for pkg, ok := range has {
		if !ok {
			t.Errorf("package %s has no doc comment", pkg)
		}
	}
}

func TestBudgets(t *testing.T) {
	packages := map[string]int{}
	for _, s := range sources(t) {
		packages[s.pkg] += s.lines
		if s.lines > fileLines {
			t.Errorf("%s has %d lines, the budget is %d", s.path, s.lines, fileLines)
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if l := s.fset.Position(n.End()).Line - s.fset.Position(n.Pos()).Line + 1; l > functionLines {
					t.Errorf("%s: %s has %d lines, the budget is %d", s.path, n.Name.Name, l, functionLines)
				}
			case *ast.InterfaceType:
				if l := n.Methods.NumFields(); l > methods {
					t.Errorf("%s: an interface has %d methods, the budget is %d", s.path, l, methods)
				}
			}
			return true
		})
	}
	for pkg, n := range packages {
		if n > packageLines {
			t.Errorf("package %s has %d lines, the budget is %d", pkg, n, packageLines)
		}
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	direct := 0
	for line := range strings.Lines(string(mod)) {
		if f := strings.Fields(line); len(f) == 2 && strings.HasPrefix(f[1], "v") && strings.Contains(f[0], ".") {
			direct++
		}
	}
	if direct > dependencies {
		t.Errorf("%d direct dependencies, the budget is %d", direct, dependencies)
	}
}

// The words that a reader of the project should never meet: they name nothing.
func TestNoPackageIsNamedAfterNothing(t *testing.T) {
	for _, s := range sources(t) {
		for part := range strings.SplitSeq(s.pkg, "/") {
			if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "base", "types", "misc"}, part) {
				t.Errorf("%s: package name %s says nothing", s.path, part)
			}
		}
	}
}

// The table of attacks names the tests that hold them off: each must be there.
func TestThreatTableNamesTestsThatExist(t *testing.T) {
	text, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	err = filepath.WalkDir("internal", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			var b []byte
			b, err = os.ReadFile(path)
			all.Write(b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`(Test\\w+|e2e/[\\w.-]+)`").FindAllStringSubmatch(string(text), -1)
	if len(names) < 20 {
		t.Errorf("the table names %d tests", len(names))
	}
	for _, n := range names {
		if _, err := os.Stat(n[1]); err != nil && !strings.Contains(all.String(), "func "+n[1]+"(") {
			t.Errorf("docs/security.md names %s, which isn't there", n[1])
		}
	}
}
