package app_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"cairn/internal/apptest"
	"cairn/internal/skill"
)

// skillEntry is a skill as MCP's extension describes it.
type skillEntry struct {
	URI         string
	Frontmatter map[string]any
	Resources   []struct {
		URI, Digest string
		Size        int
	}
}

// members gives a JSON-RPC answer's result, member by member.
func members(t *testing.T, r apptest.Response) map[string]json.RawMessage {
	t.Helper()
	body := r.Body
	if i := strings.Index(body, "data: {"); i >= 0 {
		body, _, _ = strings.Cut(body[i+6:], "\n")
	}
	var m struct{ Result map[string]json.RawMessage }
	apptest.Decode(t, []byte(body), &m)
	if r.Status != 200 || m.Result == nil {
		t.Fatalf("%d %s", r.Status, clip(r.Body))
	}
	return m.Result
}

// Who can read nothing but one area still gets every guide by the extension, as hosts must verify it: by digest, size and front
// matter.
func TestSkillsExtension(t *testing.T) {
	w := settle(t, alone(t, nil))
	for _, m := range manners {
		t.Run(m.name, func(t *testing.T) {
			var list []skillEntry
			result := members(t, w.send(t, m.request("memory", "1", "skills/list", "", "")))
			apptest.Decode(t, result["skills"], &list)
			if string(result["resultType"]) != `"complete"` || string(result["ttlMs"]) != "300000" || string(result["cacheScope"]) != `"private"` || len(list) != len(skill.Guides()) {
				t.Errorf("%s", result)
			}
			for i, e := range list {
				g := skill.Guides()[i]
				if e.URI != "skill://"+g.Name+"/SKILL.md" || !maps.Equal(e.Frontmatter, map[string]any{"name": g.Name, "description": g.Description}) || len(e.Resources) != 1 {
					t.Errorf("%+v", e)
				}
				got := members(t, w.send(t, m.request("memory", "1", "skills/get", "", `"uri":"`+e.URI+`"`)))
				var one skillEntry
				apptest.Decode(t, got["skill"], &one)
				if a, b := mustJSON(t, one), mustJSON(t, e); a != b || string(got["resultType"]) != `"complete"` || got["ttlMs"] == nil || got["cacheScope"] == nil || got["skills"] != nil {
					t.Errorf("skills/get %s: %s", e.URI, got)
				}
				var contents []struct{ URI, MIMEType, Text string }
				apptest.Decode(t, members(t, w.send(t, m.request("memory", "1", "resources/read", e.URI, `"uri":"`+e.URI+`"`)))["contents"], &contents)
				if len(contents) != 1 || contents[0].URI != e.URI || contents[0].MIMEType != "text/markdown" || contents[0].Text != g.Text {
					t.Fatalf("%+v", contents)
				}
				sum := sha256.Sum256([]byte(contents[0].Text))
				if f := e.Resources[0]; f.URI != e.URI || f.Digest != "sha256:"+hex.EncodeToString(sum[:]) || f.Size != len(contents[0].Text) {
					t.Errorf("%+v", f)
				}
			}
			var resources []struct{ URI, Name, Description, MIMEType string }
			apptest.Decode(t, members(t, w.send(t, m.request("memory", "1", "resources/list", "", "")))["resources"], &resources)
			for _, g := range skill.Guides() {
				if !slices.Contains(resources, struct{ URI, Name, Description, MIMEType string }{"skill://" + g.Name + "/SKILL.md", g.Name, g.Description, "text/markdown"}) {
					t.Errorf("resources/list lacks %s: %v", g.Name, resources)
				}
			}
		})
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSkillsExtensionRefuses(t *testing.T) {
	w := settle(t, alone(t, nil))
	for _, m := range manners {
		for _, c := range []struct{ name, as, method, params string }{
			{"unknown skill", "rw", "skills/get", `"uri":"skill://nope/SKILL.md"`},
			{"a folder", "rw", "skills/get", `"uri":"skill://cairn"`},
			{"a tool's name for it", "rw", "skills/get", `"uri":"cairn"`},
			{"no uri", "rw", "skills/get", ""},
			{"uri of another type", "rw", "skills/get", `"uri":[1]`},
			{"unknown resource", "rw", "resources/read", `"uri":"skill://nope/SKILL.md"`},
			{"a cursor", "rw", "skills/list", `"cursor":"x"`},
		} {
			t.Run(m.name+"/"+c.name, func(t *testing.T) {
				name := ""
				if c.method == "resources/read" {
					name = "skill://nope/SKILL.md"
				}
				s := m.request(c.as, "1", c.method, name, c.params)
				r := w.send(t, s)
				if a := read(t, r); a.Error == nil || a.Error.Code != -32602 {
					t.Errorf("%d %s", r.Status, r.Body)
				}
				w.always(t, s, r)
			})
		}
		for _, method := range []string{"skills/list", "skills/get", "resources/list", "resources/read"} {
			s := m.request("", "1", method, "", "")
			s.status = 401
			t.Run(m.name+"/without a token/"+method, func(t *testing.T) { w.run(t, s) })
		}
	}
}
