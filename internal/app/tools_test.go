package app_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/app"
	"cairn/internal/apptest"
	"cairn/internal/cli"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

// update rewrites what the tests compare with: UPDATE=1 go test ./internal/app -run Stale
var update = os.Getenv("UPDATE") != ""

func compare(t *testing.T, path string, want []byte) {
	t.Helper()
	if update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is stale: run `make docs` and look at the difference (%v)", path, err)
	}
}

func TestDocsAreNotStale(t *testing.T) {
	compare(t, "../../docs/tools.md", []byte(cli.Markdown(app.Operations())))
}

func TestDocumentsReferenceIsNotStale(t *testing.T) {
	a := alone(t, nil)
	text, err := cli.Documents(a.Call(t, a.Person(t), "get_document_formatting", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"| heading | block | inline | a heading | `level`\\* number: 1 is the highest (1 to 6) |", "| replace_text | find, replace | expected_count |", "| characters | 1500000 |", "- node ids: "} {
		if !strings.Contains(text, part) {
			t.Errorf("%s is missing", part)
		}
	}
	compare(t, "../../docs/documents.md", []byte(text))
}

// Each tool's description and schemas as an agent gets them: a change of any is seen in review.
func TestToolSnapshotsAreNotStale(t *testing.T) {
	dir := "../../testdata/tools"
	var names []string
	for _, o := range app.Operations() {
		b, err := json.MarshalIndent(map[string]any{"name": o.Name, "title": o.Title, "description": o.Doc, "area": o.Area, "set": o.Set, "input": o.In, "output": o.Out}, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, o.Name+".json")
		compare(t, filepath.Join(dir, o.Name+".json"), append(b, '\n'))
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !slices.Contains(names, f.Name()) {
			t.Errorf("%s belongs to no tool: delete it", f.Name())
		}
	}
}

func TestRulesOverAllTools(t *testing.T) {
	areas := append([]string{who.Core}, who.Areas...)
	for _, o := range app.Operations() {
		b, err := json.Marshal(o.In)
		if err != nil {
			t.Fatal(err)
		}
		in := string(b)
		switch {
		case !slices.Contains(areas, o.Area):
			t.Errorf("%s: area %q is none", o.Name, o.Area)
		case len(o.Doc) > 400 || !strings.HasSuffix(strings.TrimRight(o.Doc, ")"), "."):
			t.Errorf("%s: the doc must be sentences of at most 400 bytes, not %d", o.Name, len(o.Doc))
		case strings.Contains(in, `"null"`) || strings.Contains(in, `anyOf`) || strings.Contains(in, `oneOf`) || strings.Contains(in, `"format"`):
			t.Errorf("%s: the schema has something that clients refuse: %s", o.Name, in)
		case !o.Loose && !strings.Contains(in, `"additionalProperties":false`):
			t.Errorf("%s: the schema is open", o.Name)
		}
		for name, p := range o.In.Properties {
			if p.Type == "string" && p.MaxLength == nil && len(p.Enum) == 0 {
				t.Errorf("%s.%s has no limit", o.Name, name)
			}
			if p.Type == "array" && p.MaxItems == nil && len(p.Items.Enum) == 0 {
				t.Errorf("%s.%s has no limit", o.Name, name)
			}
		}
	}
}

// shape gives an answer without what differs by call: the sorted member names, into depth.
func shape(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for k, e := range v {
			m[k] = shape(e)
		}
		return m
	case []any:
		if len(v) == 0 {
			return []any{}
		}
		return []any{shape(v[0])}
	case nil:
		return nil
	}
	return "value"
}

func shapeOf(t *testing.T, b []byte) string {
	t.Helper()
	var v any
	apptest.Decode(t, b, &v)
	out, _ := json.Marshal(shape(v))
	return string(out)
}

// outcome of one example on one surface: the kind of fault or ok, and the answer's shape.
type outcome struct{ kind, shape string }

// Each operation's example gives the same on MCP, on /api and by the runner, which the command line calls.
func TestParityOfSurfaces(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		bearer := "Authorization: Bearer " + a.Token(t, "")
		for _, o := range a.Runner.Ops() {
			got := map[string]outcome{}
			if !o.PersonOnly {
				res, err := a.Runner.Run(a.Person(t), o.Name, json.RawMessage(o.Example))
				got["runner"] = direct(t, res, err)
			}
			r := a.Do(t, "POST", "/api/"+o.Name, o.Example, bearer, "Content-Type: application/json")
			got["api"] = outcome{"ok", shapeOf(t, []byte(r.Body))}
			if r.Status != 200 {
				got["api"] = outcome{errorKind(t, r.Body), shapeOf(t, []byte(r.Body))}
			}
			m := a.Do(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+o.Name+`","arguments":`+o.Example+`}}`,
				bearer, "Content-Type: application/json", "Accept: application/json, text/event-stream", "MCP-Protocol-Version: 2025-11-25")
			got["mcp"] = overMCP(t, m)
			for surface, g := range got {
				if want := got["api"]; g.kind != want.kind || g.kind == "ok" && g.shape != want.shape {
					t.Errorf("%s on %s: %+v, on api %+v", o.Name, surface, g, want)
				}
			}
			if o.PersonOnly && got["mcp"].kind != "denied" {
				t.Errorf("%s is for persons, and a token got %+v", o.Name, got["mcp"])
			}
		}
	})
}

func direct(t *testing.T, res op.Result, err error) outcome {
	if err != nil {
		return outcome{fault.From(err).Kind.Wire().Name, ""}
	}
	return outcome{"ok", shapeOf(t, res.JSON)}
}

func errorKind(t *testing.T, body string) string {
	var e struct{ Error string }
	apptest.Decode(t, []byte(body), &e)
	return e.Error
}

func overMCP(t *testing.T, r apptest.Response) outcome {
	var m struct {
		Result *struct {
			IsError           bool            `json:"isError"`
			StructuredContent json.RawMessage `json:"structuredContent"`
		}
		Error struct{ Data struct{ Name string } }
	}
	apptest.Decode(t, []byte(r.Body), &m)
	switch {
	case m.Result == nil:
		return outcome{strings.ToLower(m.Error.Data.Name), ""}
	case m.Result.IsError:
		return outcome{errorKind(t, string(m.Result.StructuredContent)), ""}
	}
	return outcome{"ok", shapeOf(t, m.Result.StructuredContent)}
}
