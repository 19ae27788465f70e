package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"cairn/internal/op"
	"cairn/internal/rawjson"
)

// Markdown writes the reference of all operations, docs/tools.md.
func Markdown(ops []*op.Op) string {
	var b strings.Builder
	b.WriteString("# Tools\n\nMade by `make docs` from the operations themselves; don't edit it. `*` = required. Every tool is an MCP tool, `POST /api/NAME`, and `cairn call NAME '{...}'`, apart from those that move the bytes of files.\n")
	area := ""
	for _, o := range ops {
		if o.Area != area {
			area = o.Area
			fmt.Fprintf(&b, "\n## %s\n", area)
		}
		effect := map[op.Effect]string{op.Read: "reads", op.Write: "writes", op.Destroy: "takes away"}[o.Effect]
		var notes []string
		if o.Idempotent {
			notes = append(notes, "twice is as good as once")
		}
		if o.Set != "" {
			notes = append(notes, "off the default list, in the set "+o.Set)
		}
		if o.Bytes {
			notes = append(notes, "no MCP tool: by `POST /api/files`, `GET /files/ID` and `cairn file`")
		}
		if o.PersonOnly {
			notes = append(notes, "for a person only")
		}
		if o.Loose {
			notes = append(notes, "unknown arguments are ignored and listed")
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n%s", o.Name, o.Doc, effect)
		for _, n := range notes {
			b.WriteString("; " + n)
		}
		b.WriteString(".\n")
		if len(o.In.Properties) == 0 {
			continue
		}
		b.WriteString("\n| argument | type | about |\n|---|---|---|\n")
		arguments(o.In, "", func(name, kind, about string) {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", name, kind, strings.ReplaceAll(about, "|", `\|`))
		})
	}
	return b.String()
}

// arguments calls row for each argument of a schema, and for those inside lists of objects. `*` marks the required ones.
func arguments(s *jsonschema.Schema, prefix string, row func(name, kind, about string)) {
	for _, name := range s.PropertyOrder {
		p := s.Properties[name]
		star := ""
		if slices.Contains(s.Required, name) {
			star = "*"
		}
		about := p.Description
		for _, l := range limits(p) {
			if about != "" {
				about += "; "
			}
			about += l
		}
		row(prefix+name+star, typeName(p), about)
		if p.Items != nil && p.Items.Properties != nil {
			arguments(p.Items, prefix+name+"[].", row)
		}
	}
}

// inOrder gives a schema that came as JSON the order in which its properties stood there.
func inOrder(s *jsonschema.Schema, raw json.RawMessage) {
	rawjson.Members(raw, func(k string, v json.RawMessage) bool {
		switch {
		case k == "properties":
			rawjson.Members(v, func(name string, v json.RawMessage) bool {
				s.PropertyOrder = append(s.PropertyOrder, name)
				inOrder(s.Properties[name], v)
				return true
			})
		case k == "items" && s.Items != nil:
			inOrder(s.Items, v)
		}
		return true
	})
}

func typeName(p *jsonschema.Schema) string {
	if p.Type == "array" && p.Items != nil {
		return "list of " + p.Items.Type
	}
	return p.Type
}

func limits(p *jsonschema.Schema) (out []string) {
	if p.Items != nil && len(p.Items.Enum) > 0 {
		p = &jsonschema.Schema{Type: p.Type, MaxItems: p.MaxItems, Enum: p.Items.Enum}
	}
	if len(p.Enum) > 0 {
		b, _ := json.Marshal(p.Enum)
		out = append(out, "one of "+strings.NewReplacer(`"`, "", "[", "", "]", "", ",", ", ").Replace(string(b)))
	}
	if p.MaxLength != nil {
		out = append(out, fmt.Sprintf("at most %d characters", *p.MaxLength))
	}
	if p.MaxItems != nil {
		out = append(out, fmt.Sprintf("at most %d", *p.MaxItems))
	}
	if p.Minimum != nil && p.Maximum != nil {
		out = append(out, fmt.Sprintf("%.0f to %.0f", *p.Minimum, *p.Maximum))
	}
	return out
}
