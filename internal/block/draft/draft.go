// Package draft reads what callers give as a document's content, and makes the next version of a document of it.
package draft

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"cairn/internal/db"
	"cairn/internal/doc"
	"cairn/internal/doc/markdown"
	"cairn/internal/doc/version"
	"cairn/internal/fault"
	"cairn/internal/rawjson"
)

// MaxCharacters is how many characters of text a document may have.
const MaxCharacters = 1_500_000

// Markdown reads nodes from Markdown, within the bounds of a block.
func Markdown(text string) ([]*doc.Node, error) {
	if n := utf8.RuneCountInString(text); n > MaxCharacters {
		return nil, fault.Bad("markdown", "has %d characters, at most %d are allowed", n, MaxCharacters)
	}
	if strings.IndexByte(text, 0) >= 0 {
		return nil, fault.Bad("markdown", "has a NUL character, which can't be stored")
	}
	return markdown.Read(text)
}

// Read reads what a caller gives as content: Markdown, or an array of nodes.
func Read(raw json.RawMessage) ([]*doc.Node, error) {
	raw = rawjson.Trim(raw)
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, nil
	case raw[0] == '"':
		nodes, err := Markdown(rawjson.String(raw))
		if f := fault.From(err); err != nil && f.Field == "markdown" {
			f.Field, f.Message = "content", "content"+strings.TrimPrefix(f.Message, "markdown")
			return nil, f
		}
		return nodes, err
	case raw[0] == '[':
		return doc.ParseNodes(raw)
	}
	return nil, fault.Bad("content", "must be a string of Markdown, or an array of nodes as get_document_formatting describes them")
}

// Of gives the document that content makes of base. Content without node ids gets those of the nodes that it stems from, and what
// Markdown can't say stays where its text was left alone.
func Of(base *doc.Doc, content json.RawMessage) (*doc.Doc, error) {
	nodes, err := Read(content)
	if err != nil {
		return nil, err
	}
	var named func(n *doc.Node) bool
	named = func(n *doc.Node) bool { return n.ID != "" || slices.ContainsFunc(n.Content, named) }
	if !slices.ContainsFunc(nodes, named) {
		var said []*doc.Node
		if strings.HasPrefix(string(rawjson.Trim(content)), `"`) {
			if said, err = markdown.Read(markdown.Write(base.Content())); err != nil {
				return nil, err
			}
		}
		if nodes, err = version.Align(base, said, nodes); err != nil {
			return nil, err
		}
	}
	return base.Replace(nodes, db.NewID)
}
