package docs

import (
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"

	"cairn/internal/doc"
	"cairn/internal/doc/html"
	"cairn/internal/fault"
)

// Author is who changed something: a person, or an agent.
type Author struct {
	Actor string `json:"actor"`
	Name  string `json:"name"`
	Agent bool   `json:"agent"`
	At    string `json:"at"`
}

// named says "You" to who looks.
func (a Author) named(q *Request) Author {
	if a.Actor == "account:"+q.Account {
		a.Name = "You"
	}
	if a.Name == "" {
		a.Name = "somebody"
	}
	return a
}

// BlockPage is a block with a part of its document.
type BlockPage struct {
	blockOut
	Path        string // of the block
	Shown       showOut
	HTML        template.HTML
	Old         bool // an earlier version is shown
	Authors     bool
	Previous    string // addresses of parts
	Next        string
	Toggle      string // with authors, or without
	Children    []Ref  // below a tag or collection
	AllChildren string
	Links, From []Ref // what it mentions, and what mentions it
	Shows       []Ref // files that the document shows or links to, by the names it gives them
	Types       [][2]string
	AllTags     []Ref
}

type showOut struct {
	Title    string            `json:"title"`
	Hash     string            `json:"hash"`
	Version  int64             `json:"version"`
	Newest   int64             `json:"newest_version"`
	Trashed  bool              `json:"trashed"`
	Writable bool              `json:"writable"`
	Part     int               `json:"part"`
	Parts    int               `json:"parts"`
	Blocks   int               `json:"blocks"`
	Nodes    json.RawMessage   `json:"nodes"`
	Authors  map[string]Author `json:"authors"`
}

var propertyTypes = [][2]string{{"", "As it looks"}, {"text", "Text"}, {"number", "Number"}, {"date", "Date (2026-08-31)"}, {"bool", "Yes or no"}, {"select", "One of few words"}, {"url", "Web address"}}

// mostVersions is the greatest number of a version that operations take.
const mostVersions = 1_000_000_000

// number reads a part or version, at most as great as operations take; 0 where there is none.
func number(text string, most int) int {
	n, err := strconv.Atoi(text)
	if n < 1 || err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return min(n, most)
}

func read(q *Request) (*BlockPage, error) {
	p := &BlockPage{Path: "/blocks/" + url.PathEscape(q.ID), Authors: q.Query.Get("authors") == "1", Types: propertyTypes}
	var err error
	if p.blockOut, err = call[blockOut](q, "get_block", map[string]any{"block_id": q.ID}); err != nil {
		return nil, err
	}
	p.Shown, err = call[showOut](q, "show_document", without(map[string]any{"block_id": q.ID, "part": number(q.Query.Get("part"), 100_000), "version": number(q.Query.Get("version"), mostVersions), "authors": p.Authors}))
	if err != nil {
		return nil, err
	}
	nodes, err := doc.ParseNodes(p.Shown.Nodes)
	if err != nil {
		return nil, fmt.Errorf("what show_document shows of %s: %w", q.ID, err)
	}
	o := html.Options{}
	if p.Authors {
		o.Authors = map[string]html.Author{}
		for id, a := range p.Shown.Authors {
			o.Authors[id] = html.Author{Name: a.named(q).Name, Agent: a.Agent}
		}
	}
	p.HTML = html.Nodes(nodes, o)
	p.files(nodes)
	p.Old = p.Shown.Version != p.Shown.Newest
	p.Toggle = p.address(p.Shown.Part, !p.Authors)
	if p.Shown.Part > 1 {
		p.Previous = p.address(p.Shown.Part-1, p.Authors)
	}
	if p.Shown.Part < p.Shown.Parts {
		p.Next = p.address(p.Shown.Part+1, p.Authors)
	}
	for _, r := range p.Relations {
		if r.Kind == "mention" {
			p.Links = append(p.Links, r.Block)
		}
	}
	for _, r := range p.Backlinks {
		if r.Kind == "mention" {
			p.From = append(p.From, r.Block)
		}
	}
	if p.Shown.Writable && !p.Old {
		if p.AllTags, err = q.tags(p.Block.Heap, ""); err != nil {
			return nil, err
		}
	}
	return p, p.below(q)
}

// tags lists what a block may stand below: tags whose titles have a part in them, and collections.
func (q *Request) tags(heap, part string) ([]Ref, error) {
	tags, err := call[struct {
		Tags []Ref `json:"tags"`
	}](q, "list_tags", without(map[string]any{"heap": heap, "query": part, "limit": 200}))
	if err != nil {
		return nil, err
	}
	found, err := call[rows](q, "list_blocks", map[string]any{"heap": heap, "type": "collection", "limit": 200})
	for _, b := range found.Blocks {
		tags.Tags = append(tags.Tags, b.Ref)
	}
	return tags.Tags, err
}

// below reads what stands below a tag or collection.
func (p *BlockPage) below(q *Request) error {
	if p.Block.Type != "tag" && p.Block.Type != "collection" || p.Old {
		return nil
	}
	found, err := call[rows](q, "list_blocks", map[string]any{"tag": q.ID, "limit": perPage})
	for _, b := range found.Blocks {
		p.Children = append(p.Children, b.Ref)
	}
	if found.Next != nil {
		p.AllChildren = "/docs?tag=" + url.QueryEscape(q.ID)
	}
	if fault.Is(err, fault.NotFound) { // a tag in the trash has nothing below it
		return nil
	}
	return err
}

// files names what the document shows or links to, as it does there itself.
func (p *BlockPage) files(nodes []*doc.Node) {
	names := map[string]string{}
	for _, n := range nodes {
		n.Walk(1, func(n *doc.Node, _ int) bool {
			for _, r := range n.Refs() {
				if r.Kind == "file" && names[r.ID] == "" {
					names[r.ID] = r.Label
				}
			}
			return true
		})
	}
	for _, id := range p.Files {
		p.Shows = append(p.Shows, Ref{ID: id, Type: "file", Title: names[id]})
	}
}

// IsFile tells whether the block is a file, with bytes of its own.
func (p *BlockPage) IsFile() bool { return p.Block.Type == "file" || p.Block.Type == "image" }

// address gives that of a part of what is shown.
func (p *BlockPage) address(part int, authors bool) string {
	v := url.Values{}
	if p.Old {
		v.Set("version", strconv.FormatInt(p.Shown.Version, 10))
	}
	if part > 1 {
		v.Set("part", strconv.Itoa(part))
	}
	if authors {
		v.Set("authors", "1")
	}
	if len(v) == 0 {
		return p.Path
	}
	return p.Path + "?" + v.Encode()
}

// Name is the title shown.
func (p *BlockPage) Name() string { return nameOf(p.Shown.Title, p.Block.Type) }

// IsTag tells whether other blocks may stand below it.
func (p *BlockPage) IsTag() bool { return p.Block.Type == "tag" || p.Block.Type == "collection" }

// on gives an act that runs an operation on the block, with fields of the form.
func on(name, done, to string, fields ...string) Act {
	return func(q *Request) (string, string, error) {
		args := map[string]any{"block_id": q.ID}
		for _, f := range fields {
			args[f] = q.Form.Get(f)
		}
		return to, done, q.Call(name, without(args), nil)
	}
}

var blockActs = map[string]Act{
	"pin": on("pin_block", "doc-pinned", ""),
	"unpin": func(q *Request) (string, string, error) {
		return "", "doc-unpinned", q.Call("pin_block", map[string]any{"block_id": q.ID, "pinned": false}, nil)
	},
	"trash":   on("delete_block", "doc-trashed", "/docs"),
	"restore": on("restore_block", "doc-restored", ""),
	"tag":     addTag,
	"untag": func(q *Request) (string, string, error) {
		return "", "doc-untagged", q.Call("remove_relation", map[string]any{"from": q.ID, "to": q.Form.Get("to"), "kind": "tag"}, nil)
	},
	"set":    setProperty,
	"remove": on("remove_property", "doc-removed", "", "key"),
}

// addTag adds the tag of a title; one that isn't there yet is made.
func addTag(q *Request) (to, done string, err error) {
	title := strings.TrimSpace(q.Form.Get("title"))
	if title == "" {
		return "", "", fault.Bad("title", "is empty: name a tag")
	}
	got, err := call[blockOut](q, "get_block", map[string]any{"block_id": q.ID})
	if err != nil {
		return "", "", err
	}
	tags, err := q.tags(got.Block.Heap, title)
	if err != nil {
		return "", "", err
	}
	id := ""
	for _, t := range tags {
		if t.Title == title || id == "" && strings.EqualFold(t.Title, title) {
			id = t.ID
		}
	}
	if got.Block.State != "live" {
		return "", "", fault.New(fault.Conflict, "this is in the trash: restore it first")
	}
	if id == "" {
		made, err := call[Ref](q, "create_block", map[string]any{"type": "tag", "title": title, "heap": got.Block.Heap})
		if err != nil {
			return "", "", err
		}
		id = made.ID
	}
	return "", "doc-tagged", q.Call("add_relation", map[string]any{"from": q.ID, "to": id, "kind": "tag"}, nil)
}

// setProperty sends a value as its type wants it.
func setProperty(q *Request) (to, done string, err error) {
	text, key, kind := q.Form.Get("value"), q.Form.Get("key"), q.Form.Get("type")
	args := map[string]any{"block_id": q.ID, "key": key}
	if kind != "" {
		args["type"] = kind
	} else { // one that is there keeps its type
		got, err := call[blockOut](q, "get_block", map[string]any{"block_id": q.ID})
		if err != nil {
			return "", "", err
		}
		for _, p := range got.Block.Properties {
			if p.Key == strings.TrimSpace(key) {
				kind = p.Type
			}
		}
	}
	var value any = text
	switch n, nerr := strconv.ParseFloat(text, 64); {
	case kind == "number" && nerr == nil && strings.TrimLeft(text, "+-.0123456789eE") == "":
		value = n
	case kind == "" && nerr == nil && strconv.FormatFloat(n, 'f', -1, 64) == text: // 0043 and 1.10 would lose something as numbers
		value = n
	case kind == "bool" && (text == "yes" || text == "true"):
		value = true
	case kind == "bool" && (text == "no" || text == "false"):
		value = false
	}
	args["value"] = value
	return "", "doc-set", q.Call("set_property", args, nil)
}
