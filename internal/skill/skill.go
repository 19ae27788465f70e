// Package skill holds the guides that an agent can load: how to use this server's tools, each a portable folder with a
// SKILL.md (agentskills.io). They are part of the program and the same for everybody: nothing here reads data. A call block of
// a guide is tested against the running application.
package skill

import (
	"context"
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
)

//go:embed guides
var files embed.FS

// File is a guide's file in its folder.
const File = "SKILL.md"

// order is how guides are listed. A name without a folder in guides is not there yet.
var order = []string{"cairn", "cairn-search", "cairn-documents", "cairn-organize", "cairn-tasks", "cairn-memory"}

// others are further names of guides: those of Heaper's.
var others = map[string]string{"heaper": "cairn", "heaper-search": "cairn-search", "heaper-documents": "cairn-documents", "heaper-organize": "cairn-organize"}

// Guide is one guide. Text is its whole file, the front matter too.
type Guide struct{ Name, Description, Text string }

// Guides gives all guides, where to begin first. It panics where one breaks the format, since that is a fault of the program.
func Guides() []Guide {
	var all []Guide
	for _, name := range order {
		text, err := files.ReadFile("guides/" + name + "/" + File)
		if err != nil {
			continue
		}
		g, err := parse(string(text))
		if err == nil && g.Name != name {
			err = fmt.Errorf("it lies in another folder than %q", g.Name)
		}
		if err != nil {
			panic("guide " + name + ": " + err.Error())
		}
		all = append(all, g)
	}
	return all
}

// front is the front matter as the guides write it: name and description alone, plain scalars of YAML on one line each, so that
// every reader takes them alike.
var front = regexp.MustCompile(`\A---\nname: ([a-z0-9]+(?:-[a-z0-9]+)*)\ndescription: ([A-Za-z][^\n]*)\n---\n`)

// parse reads a guide's file.
func parse(text string) (Guide, error) {
	m := front.FindStringSubmatch(text)
	switch {
	case m == nil:
		return Guide{}, fmt.Errorf("the front matter must be name and description, a line each")
	case len(m[1]) > 64 || len(m[2]) > 1024:
		return Guide{}, fmt.Errorf("the name may have 64 characters, the description 1024")
	case strings.Contains(m[2], ": ") || strings.Contains(m[2], " #") || strings.HasSuffix(m[2], ":") || strings.TrimSpace(m[2]) != m[2]:
		return Guide{}, fmt.Errorf("the description is no plain scalar of YAML")
	}
	return Guide{Name: m[1], Description: m[2], Text: text}, nil
}

// Ops are the operations of this package.
func Ops() []*op.Op {
	s := service{Guides()}
	return []*op.Op{
		op.Define(op.Op{Name: "list_skills", Title: "List skills", Area: who.Core, Effect: op.Read,
			Doc: "The guides to these tools. Load the one for your work with get_skill; cairn says where to begin."}, s.list),
		op.Define(op.Op{Name: "get_skill", Title: "Get skill", Area: who.Core, Effect: op.Read, Example: `{"name":"cairn"}`,
			Doc: "One guide: exact calls, safe writes, what to do about each error."}, s.get),
	}
}

type service struct{ guides []Guide }

type line struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type listOut struct {
	Count  int    `json:"count"`
	Skills []line `json:"skills"`
}

func (s service) list(context.Context, struct{}) (listOut, error) {
	out := listOut{Count: len(s.guides), Skills: make([]line, len(s.guides))}
	for i, g := range s.guides {
		out.Skills[i] = line{g.Name, g.Description}
	}
	return out, nil
}

type getIn struct {
	Name string `json:"name" jsonschema:"from list_skills" rule:"required,min=1,max=300"`
}

type getOut struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Texts gives content[] the Markdown itself, which a model reads better than JSON.
func (o getOut) Texts([]byte) []string { return []string{o.Text} }

func (s service) get(_ context.Context, in getIn) (getOut, error) {
	name := strings.ToLower(strings.TrimSpace(in.Name))
	if other, ok := others[name]; ok {
		name = other
	}
	i := slices.IndexFunc(s.guides, func(g Guide) bool { return g.Name == name })
	if i < 0 {
		names := make([]string, len(s.guides))
		for i, g := range s.guides {
			names[i] = g.Name
		}
		f := fault.New(fault.NotFound, "there is no skill %q; there are: %s", in.Name, strings.Join(names, ", "))
		f.Field, f.Valid = "name", names
		return getOut{}, f
	}
	return getOut{s.guides[i].Name, s.guides[i].Text}, nil
}
