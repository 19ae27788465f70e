package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// attribute is an attribute of a node or a mark, as get_document_formatting tells of it.
type attribute struct {
	Name     string
	Kind     string
	Required bool
	Min, Max int
	Default  int
	Values   []string
	Doc      string
}

// String gives the attribute on one line.
func (a attribute) String() string {
	var s strings.Builder
	s.WriteString("`" + a.Name + "`")
	if a.Required {
		s.WriteString("\\*")
	}
	fmt.Fprintf(&s, " %s: %s", a.Kind, a.Doc)
	switch {
	case len(a.Values) > 0:
		s.WriteString(" (" + strings.Join(a.Values, ", ") + ")")
	case a.Kind == "number":
		fmt.Fprintf(&s, " (%d to %d", a.Min, a.Max)
		if a.Default != 0 {
			fmt.Fprintf(&s, ", %d if not given", a.Default)
		}
		s.WriteString(")")
	case a.Max > 0:
		fmt.Fprintf(&s, " (at most %d characters)", a.Max)
	}
	return s.String()
}

// kindOf is a kind of node or mark.
type kindOf struct {
	Type, Group, Doc, Markdown string
	Content, Marks             []string
	Least                      int
	Attrs                      []attribute
}

// formatting is the answer of get_document_formatting.
type formatting struct {
	Nodes, Marks []kindOf
	Kinds        map[string]string `json:"attribute_kinds"`
	Operations   []struct {
		Op, Doc            string
		Required, Optional []string
	}
	Limits   map[string]int
	Markdown []string `json:"markdown_cannot_say"`
	Notes    []string
	Example  struct{ Node, Patch json.RawMessage }
}

const documentsIntro = `# Documents

Made by ` + "`make docs`" + ` from what get_document_formatting answers; don't edit it. ` + "`*`" + ` = required.

A block (a note, a tag, a collection) has a title and a document: a tree of nodes. Each block node has a node_id that stays as long as the node does; text, line breaks, mentions and inline images have none. A document as JSON:

` + "```json" + `
{"type":"doc","content":[{"type":"heading","attrs":{"level":1},"content":[{"type":"text","text":"Beds"}]},NODE,...]}
` + "```" + `

The **hash** of a block is the SHA-256 of its title and document in canonical form, in hex; ` + "`content.hash`" + ` that of the document alone. A write names the hash of the version that it was made of, as ` + "`base_hash`" + `, and is refused where that isn't the newest: nothing is ever overwritten unseen. Every write makes a version, and every version stays: [tools.md](tools.md) has read_version, compare_versions, restore_version, and undo_change, which takes one change back and leaves later ones. How an agent goes about it is the guide cairn-documents (` + "`cairn skills show cairn-documents`" + `).

MCP clients read documents as resources ` + "`cairn://block/ID`" + ` too, as Markdown: [clients.md](clients.md).
`

// Documents writes the reference of nodes, marks and patches, docs/documents.md, from the answer of get_document_formatting.
func Documents(answer []byte) (string, error) {
	var f formatting
	if err := json.Unmarshal(answer, &f); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(documentsIntro)
	b.WriteString("\n## Nodes\n\nGroups: a block stands in the document and where \"block\" may stand, an inline node where \"inline\" may.\n\n| type | group | may hold | what it is | attributes | marks | in Markdown |\n|---|---|---|---|---|---|---|\n")
	for _, n := range f.Nodes {
		holds := strings.Join(n.Content, ", ")
		if n.Least > 0 {
			holds += fmt.Sprintf(" (at least %d)", n.Least)
		}
		row(&b, n.Type, n.Group, holds, n.Doc, lines(n.Attrs), strings.Join(n.Marks, ", "), code(n.Markdown))
	}
	b.WriteString("\n## Marks\n\nIn the order that they have in canonical form.\n\n| mark | what it is | attributes | in Markdown |\n|---|---|---|---|\n")
	for _, m := range f.Marks {
		row(&b, m.Type, m.Doc, lines(m.Attrs), code(m.Markdown))
	}
	b.WriteString("\n## Kinds of attributes\n\n| kind | what it may be |\n|---|---|\n")
	for _, k := range slices.Sorted(maps.Keys(f.Kinds)) {
		row(&b, k, f.Kinds[k])
	}
	b.WriteString("\n## Patches\n\n")
	for _, n := range f.Notes {
		b.WriteString("- " + n + "\n")
	}
	b.WriteString("\n| op | needs beside node_id | may have | what it does |\n|---|---|---|---|\n")
	for _, o := range f.Operations {
		row(&b, o.Op, strings.Join(o.Required, ", "), strings.Join(o.Optional, ", "), o.Doc)
	}
	fmt.Fprintf(&b, "\nA node and a patch:\n\n```json\n%s\n```\n\n```json\n%s\n```\n", compact(f.Example.Node), compact(f.Example.Patch))
	b.WriteString("\n## Limits\n\nOf a document: characters, levels, nodes. Of a patch: operations. Of one answer of get_document: those that begin with page.\n\n| limit | most |\n|---|---|\n")
	for _, k := range slices.Sorted(maps.Keys(f.Limits)) {
		row(&b, k, fmt.Sprint(f.Limits[k]))
	}
	b.WriteString("\n## What Markdown can't say\n\nAll else comes back from Markdown as it was.\n\n")
	for _, s := range f.Markdown {
		b.WriteString("- " + s + "\n")
	}
	return b.String(), nil
}

func row(b *strings.Builder, cells ...string) {
	for _, c := range cells {
		b.WriteString("| " + strings.ReplaceAll(strings.ReplaceAll(c, "|", `\|`), "\n", " ") + " ")
	}
	b.WriteString("|\n")
}

func lines(attrs []attribute) string {
	all := make([]string, len(attrs))
	for i, a := range attrs {
		all[i] = a.String()
	}
	return strings.Join(all, "; ")
}

// code puts text between backticks, more of them than it has itself.
func code(s string) string {
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}
