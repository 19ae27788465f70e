package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"cairn/internal/op"
)

// Markdown writes the reference of all operations, docs/tools.md.
func Markdown(ops []*op.Op) string {
	var b strings.Builder
	b.WriteString("# Tools\n\nMade by `make docs` from the operations themselves; don't edit it. `*` = required. Every tool is an MCP tool, `POST /api/NAME`, and `cairn call NAME '{...}'`.\n")
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
		properties(&b, "", o.In)
	}
	return b.String()
}

func properties(b *strings.Builder, prefix string, s *jsonschema.Schema) {
	for _, name := range s.PropertyOrder {
		p := s.Properties[name]
		star := ""
		for _, r := range s.Required {
			if r == name {
				star = "*"
			}
		}
		about := p.Description
		for _, l := range limits(p) {
			if about != "" {
				about += "; "
			}
			about += l
		}
		fmt.Fprintf(b, "| %s%s%s | %s | %s |\n", prefix, name, star, typeName(p), strings.ReplaceAll(about, "|", `\|`))
		if p.Items != nil && p.Items.Properties != nil {
			properties(b, prefix+name+"[].", p.Items)
		}
	}
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
		out = append(out, fmt.Sprintf("%v to %v", *p.Minimum, *p.Maximum))
	}
	return out
}
