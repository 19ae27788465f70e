package skill_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"cairn/internal/apptest"
	"cairn/internal/doc"
	"cairn/internal/fault"
	"cairn/internal/skill"
)

// mostBytes is how large a guide may be: it goes into a model's context whole.
const mostBytes = 12_000

// example is a call block of a guide, with the block under it that says what comes of it.
type example struct {
	line       int
	tool, args string
	says, want string // answer or error, and its JSON; "" = it works
}

var opening = regexp.MustCompile("^```json (call ([a-z_]+)|answer|error)$")

// examples reads the blocks of a guide in order. A block of another form is a fault: it would go untested.
func examples(t *testing.T, text string) (list []example) {
	t.Helper()
	lines := strings.Split(text, "\n")
	said := 0 // the line on which the last call's block ended
	for i := 0; i < len(lines); i++ {
		if !strings.HasPrefix(strings.TrimSpace(lines[i]), "```") {
			continue
		}
		m, begin := opening.FindStringSubmatch(lines[i]), i+1
		for i++; i < len(lines) && lines[i] != "```"; i++ {
		}
		if m == nil || i == len(lines) {
			t.Fatalf("line %d: the block is none of call, answer and error", begin)
		}
		body := strings.Join(lines[begin:i], "\n")
		switch {
		case !json.Valid([]byte(body)):
			t.Fatalf("line %d: not JSON: %s", begin, body)
		case m[2] != "":
			list = append(list, example{line: begin, tool: m[2], args: body})
			said = i
		case said == 0 || said != begin-2:
			t.Fatalf("line %d: an %s must stand right under its call", begin, m[1])
		default:
			list[len(list)-1].says, list[len(list)-1].want = m[1], body
			said = 0
		}
	}
	return list
}

var place = regexp.MustCompile(`<[a-z][a-z ]*>`)

// reader follows a guide as an agent does: what stands for an id is taken from the answer that shows it.
type reader struct{ ids map[string]string }

// fill puts what was learned into a call's arguments.
func (r reader) fill(t *testing.T, s string) string {
	t.Helper()
	return place.ReplaceAllStringFunc(s, func(name string) string {
		id, ok := r.ids[name]
		if !ok {
			t.Fatalf("no answer before has shown %s", name)
		}
		return id
	})
}

// differs holds an answer against what a guide shows of it, and learns the ids; "" = it is so.
func (r reader) differs(at string, want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v, no object", at, got)
		}
		for k, w := range want {
			g, has := object[k]
			if !has {
				return at + "." + k + " isn't there"
			}
			if d := r.differs(at+"."+k, w, g); d != "" {
				return d
			}
		}
		return ""
	case []any:
		return r.listDiffers(at, want, got)
	case string:
		if want == "…" {
			return ""
		}
		if s, ok := got.(string); ok && place.FindString(want) == want && want != "" {
			if known, ok := r.ids[want]; ok && known != s {
				return fmt.Sprintf("%s is %s, and %s was %s", at, s, want, known)
			}
			r.ids[want] = s
			return ""
		}
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Sprintf("%s is %v, the guide says %v", at, got, want)
	}
	return ""
}

// listDiffers compares lists: where the guide's ends with …, there may be more.
func (r reader) listDiffers(at string, want []any, got any) string {
	list, ok := got.([]any)
	if !ok {
		return fmt.Sprintf("%s is %v, no list", at, got)
	}
	more := len(want) > 1 && want[len(want)-1] == "…"
	if more {
		want = want[:len(want)-1]
	}
	if len(list) < len(want) || len(list) > len(want) && !more {
		return fmt.Sprintf("%s has %d elements, the guide shows %d: %v", at, len(list), len(want), list)
	}
	for i := range want {
		if d := r.differs(fmt.Sprintf("%s[%d]", at, i), want[i], list[i]); d != "" {
			return d
		}
	}
	return ""
}

// call calls a tool as an MCP client does. A failure gives its kind and its members.
func call(t *testing.T, a *apptest.App, token, tool, args string) (answer any, failed bool) {
	t.Helper()
	res := a.Do(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":`+args+`}}`, "Authorization: Bearer "+token,
		"Content-Type: application/json", "Accept: application/json, text/event-stream", "MCP-Protocol-Version: 2025-11-25")
	var m struct {
		Result *struct {
			IsError           bool `json:"isError"`
			StructuredContent any  `json:"structuredContent"`
		}
		Error struct {
			Message string
			Data    map[string]any
		}
	}
	apptest.Decode(t, []byte(res.Body), &m)
	if m.Result != nil {
		return m.Result.StructuredContent, m.Result.IsError
	}
	e := map[string]any{"message": m.Error.Message}
	for k, v := range m.Error.Data {
		e[k] = v
	}
	e["error"] = strings.ToLower(fmt.Sprint(e["name"]))
	return e, true
}

// Every example of every guide is called in order, as an agent would that reads it on an empty Cairn, and gives what the guide
// says.
func TestEveryExampleDoesWhatItsGuideSays(t *testing.T) {
	for _, g := range skill.Guides() {
		t.Run(g.Name, func(t *testing.T) {
			list := examples(t, g.Text)
			if len(list) < 5 {
				t.Fatalf("only %d examples", len(list))
			}
			apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
				token, r := a.Token(t, ""), reader{map[string]string{}}
				for _, e := range list {
					a.Clock.Move(time.Second)
					args := r.fill(t, e.args)
					got, failed := call(t, a, token, e.tool, args)
					if failed != (e.says == "error") {
						t.Fatalf("line %d: %s %s: failed %t: %v", e.line, e.tool, args, failed, got)
					}
					if e.want == "" {
						continue
					}
					var want any
					apptest.Decode(t, []byte(e.want), &want)
					if d := r.differs(e.says, want, got); d != "" {
						b, _ := json.MarshalIndent(got, "", "  ")
						t.Errorf("line %d: %s %s: %s\n%s", e.line, e.tool, args, d, b)
					}
				}
			})
		})
	}
}

// The test's own reading must be able to fail.
func TestReaderFindsWhatDiffers(t *testing.T) {
	for _, c := range []struct{ want, got string }{
		{`{"a":1}`, `{}`}, {`{"a":1}`, `{"a":2}`}, {`{"a":{"b":1}}`, `{"a":1}`}, {`["x"]`, `[]`}, {`["x"]`, `["x","y"]`}, {`["x","…"]`, `["y","x"]`}, {`[]`, `["x"]`},
		{`["<a>","<a>"]`, `["1","2"]`}, {`{"a":null}`, `{"a":"x"}`}, {`"<a>"`, `1`}, {`"x"`, `"y"`}, {`[]`, `{}`},
	} {
		var want, got any
		apptest.Decode(t, []byte(c.want), &want)
		apptest.Decode(t, []byte(c.got), &got)
		if d := (reader{map[string]string{}}).differs("answer", want, got); d == "" {
			t.Errorf("%s passes for %s", c.got, c.want)
		}
	}
}

func TestGuidesAreOfThePortableFormAndSmall(t *testing.T) {
	var folders []string
	err := fs.WalkDir(os.DirFS("guides"), ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			folders = append(folders, path.Dir(p))
			if d.Name() != skill.File {
				t.Errorf("%s: a guide is one file", p)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, g := range skill.Guides() {
		names = append(names, g.Name)
		if len(g.Text) > mostBytes {
			t.Errorf("%s has %d bytes, the most is %d", g.Name, len(g.Text), mostBytes)
		}
		if !strings.HasPrefix(g.Text, "---\nname: "+g.Name+"\ndescription: "+g.Description+"\n---\n# ") {
			t.Errorf("%s begins %q", g.Name, g.Text[:80])
		}
		if strings.Contains(g.Text, "\r") || strings.Contains(g.Text, "\t") {
			t.Errorf("%s has a tab or a carriage return", g.Name)
		}
	}
	slices.Sort(names)
	if slices.Sort(folders); !slices.Equal(names, folders) {
		t.Errorf("there are folders %v and guides %v", folders, names)
	}
}

// members collects the names of a schema's properties, into depth.
func members(s *jsonschema.Schema, into map[string]bool) {
	if s == nil {
		return
	}
	for name, p := range s.Properties {
		into[name] = true
		members(p, into)
	}
	members(s.Items, into)
}

var quoted = regexp.MustCompile("`([a-z]+(?:_[a-z]+)+)`")

// A guide names tools, arguments, members of answers and kinds of error that exist.
func TestGuidesNameWhatExists(t *testing.T) {
	a := apptest.New(t, map[string]string{"CAIRN_DATA": t.TempDir()})
	known := map[string]bool{"daily_note": true, "mental_model": true, // kinds of thing
		"current_hash": true, "changed_since": true} // of a conflict, which internal/block's tests hold
	for k := fault.Internal; k <= fault.Unavailable; k++ {
		known[k.Wire().Name] = true
	}
	for _, o := range doc.Ops {
		known[o.Op] = true
		for _, f := range slices.Concat(o.Required, o.Optional) {
			known[f] = true
		}
	}
	for _, o := range a.Runner.Ops() {
		known[o.Name] = !o.PersonOnly // an agent has no use for the others
		members(o.In, known)
		members(o.Out, known)
	}
	for _, g := range skill.Guides() {
		for _, m := range quoted.FindAllStringSubmatch(g.Text, -1) {
			if !known[m[1]] {
				t.Errorf("%s: there is no %s", g.Name, m[1])
			}
		}
		for _, m := range regexp.MustCompile("guide ([a-z-]+)").FindAllStringSubmatch(g.Text, -1) {
			if !slices.ContainsFunc(skill.Guides(), func(g skill.Guide) bool { return g.Name == m[1] }) {
				t.Errorf("%s: there is no guide %s", g.Name, m[1])
			}
		}
	}
}

// The first guide has a row for each kind of error that there is.
func TestFirstGuideSaysWhatEachErrorMeans(t *testing.T) {
	text := skill.Guides()[0].Text
	_, table, _ := strings.Cut(text, "| error | what it means |")
	var listed []string
	for row := range strings.Lines(table) {
		if cells := strings.Split(row, "|"); len(cells) == 5 {
			for kind := range strings.SplitSeq(strings.TrimSpace(cells[1]), ", ") {
				listed = append(listed, kind)
			}
		}
	}
	for k := fault.Internal; k <= fault.Unavailable; k++ {
		if !slices.Contains(listed, k.Wire().Name) {
			t.Errorf("%s has no row", k.Wire().Name)
		}
	}
	for _, name := range listed {
		if _, ok := fault.ParseKind(name); !ok && strings.Trim(name, "-") != "" {
			t.Errorf("%q is no kind of error", name)
		}
	}
}

func TestGetSkillTakesTheNamesOfHeaper(t *testing.T) {
	a := apptest.New(t, map[string]string{"CAIRN_DATA": t.TempDir()})
	as := a.As(t, a.Token(t, `{"name":"memory alone","rate":0,"areas":["memory"],"read_only":true}`)) // guides are for all
	for asked, want := range map[string]string{"cairn": "cairn", "heaper": "cairn", "heaper-search": "cairn-search", "heaper-organize": "cairn-organize", "heaper-documents": "cairn-documents", " Cairn-Tasks ": "cairn-tasks", "cairn-memory": "cairn-memory"} {
		args, _ := json.Marshal(map[string]string{"name": asked})
		res := a.Result(t, as, "get_skill", string(args))
		var out struct{ Name, Text string }
		apptest.Decode(t, res.JSON, &out)
		if out.Name != want || !strings.HasPrefix(out.Text, "---\nname: "+want+"\n") || len(res.Texts) != 1 || res.Texts[0] != out.Text {
			t.Errorf("%q gives %s", asked, out.Name)
		}
	}
	for _, asked := range []string{"nope", "../cairn", "cairn/SKILL.md", "guides"} {
		args, _ := json.Marshal(map[string]string{"name": asked})
		f := a.Fails(t, as, "get_skill", string(args), fault.NotFound)
		if f.Field != "name" || !slices.Contains(f.Valid, "cairn-tasks") {
			t.Errorf("%q: %+v", asked, f)
		}
	}
}
