// Package docs is the pages of documents: what each shows, and which operations its forms run. It holds no rules: it calls operations
// and words their answers.
package docs

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"cairn/internal/fault"
)

// Request is what a page is asked for, and by whom.
type Request struct {
	ID      string // of the block that the path names
	Query   url.Values
	Form    url.Values // what a form sent, nil where the page is only looked at
	Account string     // of who looks
	// Call runs an operation as who looks, and reads its answer into out, unless that is nil.
	Call func(name string, args map[string]any, out any) error
}

// Act does what a form asks for. It gives the page to go on to ("" = the form's own), and the code of the text that says what was
// done.
type Act func(q *Request) (to, done string, err error)

// Screen is one page: its template, what it shows, and its forms by the field "act".
type Screen struct {
	Page string
	Load func(q *Request) (any, error)
	Acts map[string]Act
}

// MostForm is how many bytes a form may send that holds a whole document.
const MostForm = 12 << 20

// Screens are the pages by their paths.
func Screens() map[string]Screen {
	return map[string]Screen{
		"/docs":                {Page: "docs", Load: load(list)},
		"/docs/new":            {Page: "doc-new", Load: load(newForm), Acts: map[string]Act{"create": create}},
		"/docs/trash":          {Page: "doc-trash", Load: load(trash), Acts: map[string]Act{"restore": restoreListed}},
		"/blocks/{id}":         {Page: "block", Load: load(read), Acts: blockActs},
		"/blocks/{id}/edit":    {Page: "block-edit", Load: load(edit), Acts: map[string]Act{"save": save}},
		"/blocks/{id}/history": {Page: "block-history", Load: load(history), Acts: map[string]Act{"restore": restoreVersion, "undo": undo}},
		"/blocks/{id}/changes": {Page: "block-changes", Load: load(changes)},
		"/blocks/{id}/purge":   {Page: "block-purge", Load: load(purgeForm), Acts: map[string]Act{"purge": purge}},
	}
}

// Done are what the status line says, by code.
var Done = map[string]string{
	"doc-created": "Created.", "doc-saved": "Saved.", "doc-joined": "Saved, together with what others changed meanwhile in other places.", "doc-same": "Nothing was different, so nothing was saved.",
	"doc-pinned": "Pinned.", "doc-unpinned": "No longer pinned.", "doc-tagged": "Tag added.", "doc-untagged": "Tag taken off.", "doc-set": "Property set.", "doc-removed": "Property removed.",
	"doc-trashed": "Moved to the trash, where you can take it back.", "doc-restored": "Brought back.", "doc-version": "Restored. It is the newest version now; those between stay.",
	"doc-undone": "Taken back.", "doc-purged": "Deleted for good.",
}

// load lets a function that gives a page of its own type stand for any. A path that names no id is one where nothing is.
func load[T any](f func(q *Request) (T, error)) func(q *Request) (any, error) {
	return func(q *Request) (any, error) {
		page, err := f(q)
		if f := fault.From(err); err != nil && f.Kind == fault.Invalid && f.Field == "block_id" {
			return nil, fault.New(fault.NotFound, "there is no block with this id")
		}
		return page, err
	}
}

// call runs an operation and reads its answer.
func call[T any](q *Request, name string, args map[string]any) (out T, err error) {
	err = q.Call(name, args, &out)
	return out, err
}

// without leaves out arguments that say nothing, which operations would refuse or take for something.
func without(args map[string]any) map[string]any {
	for k, v := range args {
		if v == "" || v == false || v == 0 || v == nil {
			delete(args, k)
		}
	}
	return args
}

// Ref names a block.
type Ref struct {
	ID    string `json:"id"`
	Type  string `json:"type"`
	Title string `json:"title"`
}

// Name is the title, or what stands for none.
func (r Ref) Name() string { return nameOf(r.Title, r.Type) }

func nameOf(title, kind string) string {
	if strings.ContainsFunc(title, func(r rune) bool { return !unicode.IsSpace(r) && !unseen(r) }) {
		return title
	}
	if kind == "" {
		kind = "block"
	}
	return strings.ToUpper(kind[:1]) + kind[1:] + " without a title"
}

// unseen tells whether a character shows nothing by itself, such as U+200B or U+202E.
func unseen(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// typed gives what can be typed of a title as it is read: composed, with single spaces, and without what isn't seen.
func typed(title string) string {
	words := strings.Fields(norm.NFC.String(title))
	for i, w := range words {
		words[i] = strings.Map(func(r rune) rune {
			if unseen(r) {
				return -1
			}
			return r
		}, w)
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

// Row is a block in a list.
type Row struct {
	Ref
	Heap      string `json:"heap"`
	Tags      []Ref  `json:"tags"`
	Pinned    bool   `json:"pinned"`
	UpdatedAt string `json:"updated_at"`
	HeapName  string `json:"-"` // where there are several to choose from
}

type rows struct {
	Blocks []Row   `json:"blocks"`
	Next   *string `json:"next_cursor"`
	Note   string  `json:"note"`
}

// Tag is a tag with how many blocks are below it.
type Tag struct {
	Ref
	Children int `json:"children"`
}

// Heap is one that who looks may see.
type Heap struct {
	ID         string  `json:"id"`
	Name       string  `json:"name"`
	Role       string  `json:"role"`
	ArchivedAt *string `json:"archived_at"`
}

func (q *Request) heaps() ([]Heap, error) {
	out, err := call[struct {
		Heaps []Heap `json:"heaps"`
	}](q, "get_account", nil)
	return slices.DeleteFunc(out.Heaps, func(h Heap) bool { return h.ArchivedAt != nil }), err
}

// ListPage is the list of documents.
type ListPage struct {
	Blocks     []Row
	Tags       []Tag
	Heaps      [][2]string // to choose from, all of them first
	Types      [][2]string
	Query      string
	Heap, Type string
	Tag        *Tag
	TagID      string
	Pinned     bool
	Unlinked   bool
	Filtered   bool // not all are listed
	First      bool // this is the first page
	Next       string
	Note       string
}

var types = [][2]string{{"", "All types"}, {"note", "Notes"}, {"tag", "Tags"}, {"collection", "Collections"}, {"file", "Files"}, {"image", "Images"}}

// perPage is how many blocks a list shows.
const perPage = 50

func list(q *Request) (*ListPage, error) {
	v := q.Query
	p := &ListPage{Query: strings.TrimSpace(v.Get("q")), Heap: v.Get("heap"), Type: v.Get("type"), TagID: v.Get("tag"), Pinned: v.Get("pinned") == "1", Unlinked: v.Get("unlinked") == "1", Types: types, First: v.Get("cursor") == ""}
	p.Filtered = p.Query != "" || p.Heap != "" || p.Type != "" || p.TagID != "" || p.Pinned || p.Unlinked
	heaps, err := q.heaps()
	if err != nil {
		return nil, err
	}
	p.Heaps = [][2]string{{"", "All heaps"}}
	names := map[string]string{}
	for _, h := range heaps {
		p.Heaps = append(p.Heaps, [2]string{h.ID, h.Name})
		if len(heaps) > 1 {
			names[h.ID] = h.Name
		}
	}
	args := without(map[string]any{"heap": p.Heap, "type": p.Type, "tag": p.TagID, "cursor": v.Get("cursor"), "limit": perPage})
	var found rows
	if p.Query != "" {
		args["query"] = p.Query
		found, err = call[rows](q, "search_blocks", args)
	} else {
		args["pinned"], args["unlinked"] = p.Pinned, p.Unlinked
		found, err = call[rows](q, "list_blocks", without(args))
	}
	if err != nil {
		return nil, err
	}
	p.Blocks, p.Note = found.Blocks, found.Note
	if p.Query != "" && (p.Pinned || p.Unlinked) {
		p.Note = strings.TrimSpace("Pinned and Unlinked don't narrow a search: all that has the words is listed. " + p.Note)
	}
	for i := range p.Blocks {
		p.Blocks[i].HeapName = names[p.Blocks[i].Heap]
	}
	if found.Next != nil {
		v.Set("cursor", *found.Next)
		v.Del("done")
		p.Next = "/docs?" + v.Encode()
	}
	if p.First && p.Query == "" {
		tags, err := call[struct {
			Tags []Tag `json:"tags"`
		}](q, "list_tags", without(map[string]any{"heap": p.Heap, "limit": 100}))
		if err != nil {
			return nil, err
		}
		p.Tags = tags.Tags
	}
	if p.TagID != "" {
		got, err := call[blockOut](q, "get_block", map[string]any{"block_id": p.TagID})
		if err == nil {
			p.Tag = &Tag{Ref: got.Block.Ref}
		}
	}
	return p, nil
}

// TrashPage is the blocks in the trash.
type TrashPage struct {
	Blocks []Row
	Next   string
}

func trash(q *Request) (*TrashPage, error) {
	found, err := call[rows](q, "list_blocks", without(map[string]any{"trashed": true, "limit": perPage, "cursor": q.Query.Get("cursor")}))
	p := &TrashPage{Blocks: found.Blocks}
	if found.Next != nil {
		p.Next = "/docs/trash?cursor=" + url.QueryEscape(*found.Next)
	}
	return p, err
}

func restoreListed(q *Request) (to, done string, err error) {
	return "", "doc-restored", q.Call("restore_block", map[string]any{"block_id": q.Form.Get("block")}, nil)
}

// PurgePage asks for a block's title before it is deleted for good.
type PurgePage struct{ Path, Name string }

func purgeForm(q *Request) (PurgePage, error) {
	got, err := call[blockOut](q, "get_block", map[string]any{"block_id": q.ID})
	return PurgePage{"/blocks/" + url.PathEscape(q.ID), got.Block.Name()}, err
}

func purge(q *Request) (to, done string, err error) {
	p, err := purgeForm(q)
	if err != nil {
		return "", "", err
	}
	if typed(q.Form.Get("title")) != typed(p.Name) {
		return "", "", fault.Bad("title", "isn't the title of the block: type it as it stands above")
	}
	return "/docs/trash", "doc-purged", q.Call("purge_block", map[string]any{"block_id": q.ID}, nil)
}

// NewPage is the form for a new block.
type NewPage struct {
	Heaps     [][2]string // that may be written to
	Type, Tag string
	TagName   string
	Types     [][3]string
}

var newTypes = [][3]string{{"note", "Note", "A text, of any length."}, {"tag", "Tag", "Other blocks can stand below it; it may have a text of its own."}, {"collection", "Collection", "A folder: like a tag, for what belongs together."}}

func newForm(q *Request) (*NewPage, error) {
	p := &NewPage{Type: q.Query.Get("type"), Types: newTypes, Tag: q.Query.Get("tag")}
	if q.Form != nil { // a form that was refused keeps where the block is to stand
		p.Tag = q.Form.Get("tag")
	}
	heaps, err := q.heaps()
	if p.Type == "" {
		p.Type = "note"
	}
	for _, h := range heaps {
		if h.Role != "viewer" {
			p.Heaps = append(p.Heaps, [2]string{h.ID, h.Name})
		}
	}
	if p.Tag != "" {
		if got, err := call[blockOut](q, "get_block", map[string]any{"block_id": p.Tag}); err == nil {
			p.TagName = got.Block.Name()
		}
	}
	return p, err
}

func create(q *Request) (to, done string, err error) {
	args := without(map[string]any{"type": q.Form.Get("type"), "title": q.Form.Get("title"), "content": unix(q.Form.Get("content")), "heap": q.Form.Get("heap")})
	if t := q.Form.Get("tag"); t != "" {
		args["tags"] = []string{t}
	}
	made, err := call[struct {
		ID string `json:"id"`
	}](q, "create_block", args)
	return "/blocks/" + made.ID, "doc-created", err
}

// unix gives the line ends of a document for those that a browser sends.
func unix(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

type blockOut struct {
	Block struct {
		Row
		State      string     `json:"state"`
		Hash       string     `json:"hash"`
		Version    int64      `json:"version"`
		Properties []Property `json:"properties"`
		CreatedAt  string     `json:"created_at"`
	} `json:"block"`
	Relations []Relation `json:"relations"`
	Backlinks []Relation `json:"backlinks"`
	More      bool       `json:"more_relations"`
	Files     []string   `json:"files"`
}

// Property is a typed value of a block.
type Property struct {
	Key   string          `json:"key"`
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// Text is the value in words.
func (p Property) Text() string {
	var s string
	if json.Unmarshal(p.Value, &s) == nil {
		return s
	}
	if p.Type == "bool" {
		return map[string]string{"true": "yes", "false": "no"}[string(p.Value)]
	}
	return string(p.Value)
}

// Link is where the value leads, "" for nowhere.
func (p Property) Link() string {
	switch p.Type {
	case "reference":
		return "/blocks/" + url.PathEscape(p.Text())
	case "url":
		if s := p.Text(); strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://") {
			return s
		}
	}
	return ""
}

// Relation is one end of a relation, seen from a block.
type Relation struct {
	Kind   string `json:"kind"`
	Origin string `json:"origin"`
	Block  Ref    `json:"block"`
}
