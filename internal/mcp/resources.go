package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/fault"
	"cairn/internal/who"
)

// Documents as resources. A document's address is cairn://block/ID. cairn: says which server's it is without naming a host, which may
// change; documents name blocks by the same words (cairn:block/ID), and these are read too. What stands before the id is for
// people: completions put the title there. A document that is longer than a page of get_document is read by the addresses that
// each page gives, ?hash=H&byte=N: of one version, so that pages put together are one text.
//
// Nothing here asks who may read what: each request runs get_document, list_blocks, get_block or search_blocks as the caller.
const (
	blockScheme   = "cairn:"
	blockPrefix   = "cairn://block/"
	blockTemplate = blockPrefix + "{id}"
	templateDoc   = "A note, tag or collection of Cairn by its id, as Markdown; long ones page by page. What stands before the id is for reading alone."
)

// Operations that the resources are read by.
const (
	opDocument = "get_document"
	opBlock    = "get_block"
	opBlocks   = "list_blocks"
	opSearch   = "search_blocks"
)

// documents serves them.
type documents struct {
	tools     *Tools
	changes   Changes
	listening listeners
}

// place is what an address names: a page of a document.
type place struct {
	id   string
	hash string // of the version that the page is of; "" = the newest
	at   int    // byte of its Markdown
}

func (p place) uri() string {
	if p.hash == "" && p.at == 0 {
		return blockPrefix + p.id
	}
	return blockPrefix + p.id + "?hash=" + p.hash + "&byte=" + strconv.Itoa(p.at)
}

// parseURI reads an address. What is none of a document's is not there.
func parseURI(uri string) (place, error) {
	rest, ok := strings.CutPrefix(uri, blockScheme)
	if !ok {
		return place{}, sdk.ResourceNotFoundError(uri)
	}
	rest = strings.TrimPrefix(rest, "//")
	name, query, _ := strings.Cut(rest, "?")
	name, err := url.PathUnescape(name)
	name, isBlock := strings.CutPrefix(name, "block/")
	if err != nil || !isBlock || len(name) < 36 || len(uri) > 2048 {
		return place{}, sdk.ResourceNotFoundError(uri)
	}
	id, err := uuid.Parse(name[len(name)-36:])
	if err != nil {
		return place{}, sdk.ResourceNotFoundError(uri)
	}
	p := place{id: id.String()}
	asked, err := url.ParseQuery(query)
	if err != nil {
		return p, fault.Bad("uri", "has a query that can't be read; continuations are ?hash=H&byte=N, as a page gives them")
	}
	for k, v := range asked {
		switch k {
		case "hash":
			p.hash = v[0]
		case "byte":
			if p.at, err = strconv.Atoi(v[0]); p.at < 0 {
				err = strconv.ErrRange
			}
		default:
			err = strconv.ErrSyntax
		}
		if err != nil || len(v) > 1 {
			return p, fault.Bad("uri", "has %s=%s in its query; continuations are ?hash=H&byte=N, as a page gives them", k, strings.Join(v, ","))
		}
	}
	return p, nil
}

// everyBlock is a template that brings every address of ours to read: it isn't listed.
const everyBlock = blockScheme + "{+rest}"

// serve adds the templates.
func (d *documents) serve(server *sdk.Server) {
	for _, template := range []string{blockTemplate, everyBlock} {
		server.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: template, Name: "block", Title: "Document", Description: templateDoc, MIMEType: markdown},
			func(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				res, err := d.read(ctx, req.Params.URI)
				return res, orError(ctx, err)
			})
	}
}

// may tells whether documents are anything for a caller.
func (d *documents) may(c *who.Caller) bool {
	return d.tools.runner.May(c, opDocument) && d.tools.runner.May(c, opBlocks)
}

// runs names the operation that a request for resources runs first, if the caller may, so that a limit is told as one of a tool is.
func (d *documents) runs(c *who.Caller, m *message) string {
	switch {
	case !d.may(c):
	case m.Method == "resources/list":
		return opBlocks
	case m.Method == "resources/read" && strings.HasPrefix(m.URI, blockScheme):
		return opDocument
	}
	return ""
}

// run runs an operation as the caller in ctx, into out.
func (d *documents) run(ctx context.Context, name string, args map[string]any, out any) error {
	b, err := json.Marshal(args)
	if err != nil {
		return err
	}
	res, err := d.tools.runner.Run(ctx, name, b)
	if err != nil {
		return err
	}
	return json.Unmarshal(res.JSON, out)
}

// answer is the middleware: it answers what is about documents, and adds them to the lists of what else there is.
func (d *documents) answer(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch p := req.GetParams().(type) {
		case *sdk.ListResourcesParams:
			return d.list(ctx, p, func() (sdk.Result, error) { return next(ctx, method, req) })
		case *sdk.ListResourceTemplatesParams:
			res, err := next(ctx, method, req)
			if l, ok := res.(*sdk.ListResourceTemplatesResult); ok && err == nil {
				l.ResourceTemplates = slices.DeleteFunc(slices.Clone(l.ResourceTemplates), func(t *sdk.ResourceTemplate) bool {
					return t.URITemplate == everyBlock || t.URITemplate == blockTemplate && !d.may(who.From(ctx))
				})
			}
			return res, err
		case *sdk.CompleteParams:
			if p.Ref != nil && p.Ref.Type == "ref/resource" {
				res, err := d.complete(ctx, p)
				if err != nil {
					return nil, orError(ctx, err)
				}
				return res, nil
			}
		case *sdk.SubscriptionsListenParams:
			res, err := d.listen(ctx, p)
			if err != nil {
				return nil, orError(ctx, err)
			}
			return res, nil
		}
		return next(ctx, method, req)
	}
}

// orError words a failure for the SDK; what is worded already stays.
func orError(ctx context.Context, err error) error {
	var worded *jsonrpc.Error
	if err == nil || errors.As(err, &worded) {
		return err
	}
	return rpcError(ctx, err)
}

// listed is a block of list_blocks and search_blocks.
type listed struct {
	ID        string `json:"id"`
	Heap      string `json:"heap"`
	Type      string `json:"type"`
	Title     string `json:"title"`
	UpdatedAt string `json:"updated_at"`
}

type listedBlocks struct {
	Blocks     []listed `json:"blocks"`
	NextCursor string   `json:"next_cursor"`
}

// isFile tells blocks that have bytes instead of a document: those never go over MCP.
func (b listed) isFile() bool { return b.Type == "file" || b.Type == "image" }

// name is a block's title on one line, or what it is.
func (b listed) name() string {
	if t := strings.Join(strings.Fields(b.Title), " "); t != "" {
		return t
	}
	return b.Type + " without a title"
}

// list answers resources/list: on the first page what doesn't change, then documents, newest-updated first.
func (d *documents) list(ctx context.Context, p *sdk.ListResourcesParams, fixed func() (sdk.Result, error)) (sdk.Result, error) {
	out := &sdk.ListResourcesResult{Resources: []*sdk.Resource{}, Cacheable: sdk.Cacheable{CacheScope: "private"}} // kept by nobody: others write
	cursor := ""
	if p != nil {
		cursor = p.Cursor
	}
	if cursor == "" {
		res, err := fixed()
		l, ok := res.(*sdk.ListResourcesResult)
		if err != nil || !ok {
			return res, err
		}
		out.Resources = append(out.Resources, l.Resources...)
	}
	c := who.From(ctx)
	if !d.may(c) {
		if cursor != "" {
			return nil, rpcError(ctx, fault.Bad("cursor", "is not one that this list gave: leave it out to begin anew"))
		}
		return out, nil
	}
	var page listedBlocks
	args := map[string]any{}
	if cursor != "" {
		args["cursor"] = cursor
	}
	if err := d.run(ctx, opBlocks, args, &page); err != nil {
		return nil, rpcError(ctx, err)
	}
	for _, b := range page.Blocks {
		if b.isFile() {
			continue
		}
		heap, _ := c.ByID(b.Heap)
		out.Resources = append(out.Resources, &sdk.Resource{URI: place{id: b.ID}.uri(), Name: b.name(), Title: b.name(), MIMEType: markdown,
			Description: "A " + b.Type + " in the heap " + heap.Name, Annotations: &sdk.Annotations{LastModified: b.UpdatedAt}})
	}
	out.NextCursor = page.NextCursor
	return out, nil
}

// read answers resources/read: the Markdown alone, and beside it what a reader must know: title, hash, and where it goes on.
func (d *documents) read(ctx context.Context, uri string) (*sdk.ReadResourceResult, error) {
	p, err := parseURI(uri)
	if err != nil {
		return nil, err
	}
	var page struct {
		Title      string `json:"title"`
		Hash       string `json:"hash"`
		Markdown   string `json:"markdown"`
		Bytes      int    `json:"markdown_bytes"`
		Truncation *struct {
			Continuation struct {
				Byte int `json:"byte"`
			} `json:"continuation"`
		} `json:"truncation"`
	}
	args := map[string]any{"block_id": p.id, "view": "markdown"}
	if p.at > 0 {
		args["byte"] = p.at
	}
	err = d.run(ctx, opDocument, args, &page)
	switch {
	case fault.Is(err, fault.NotFound), fault.Is(err, fault.UnknownTool): // what may not be read is as if it weren't there
		return nil, sdk.ResourceNotFoundError(uri)
	case err != nil && !(p.hash != "" && fault.Is(err, fault.Invalid)):
		return nil, err
	case err != nil || p.hash != "" && p.hash != page.Hash: // beyond the end of a version that isn't the newest, or in it
		return nil, fault.New(fault.Conflict, "the document has changed since the page that this address came from: begin anew with %s", place{id: p.id}.uri()).With("uri", place{id: p.id}.uri())
	}
	text := &sdk.ResourceContents{URI: uri, MIMEType: markdown, Text: page.Markdown, Meta: sdk.Meta{"cairn/title": page.Title, "cairn/hash": page.Hash}}
	note := &sdk.ResourceContents{URI: place{id: p.id}.uri(), MIMEType: "text/plain", Text: fmt.Sprintf("Title: %s\nHash: %s\nTo change it: get_document {\"block_id\":\"%s\",\"view\":\"edit\"}, then patch_document.\n", strings.Join(strings.Fields(page.Title), " "), page.Hash, p.id)}
	if t := page.Truncation; t != nil {
		next := place{p.id, page.Hash, t.Continuation.Byte}.uri()
		text.Meta["cairn/next"] = next
		note.URI = next
		note.Text += fmt.Sprintf("These are bytes %d to %d of %d. It goes on at %s\n", p.at, t.Continuation.Byte, page.Bytes, next)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{text, note}, Cacheable: sdk.Cacheable{CacheScope: "private"}}, nil
}

// How many blocks completion looks through by title, and how much of a title a value shows.
const (
	looksThrough = 200
	shownTitle   = 60
)

// complete answers completion/complete for the template: blocks whose title or id has what was typed in it, newest first, then
// those that search finds. A value is the title and the id, which together are read as the id.
func (d *documents) complete(ctx context.Context, p *sdk.CompleteParams) (*sdk.CompleteResult, error) {
	switch {
	case !d.may(who.From(ctx)), p.Ref.URI != blockTemplate:
		return nil, fault.Bad("ref.uri", "is %q: there is no such template for what you are granted", p.Ref.URI)
	case p.Argument.Name != "id":
		return nil, fault.Bad("argument.name", "is %q: the template has the argument id alone", p.Argument.Name)
	case utf8.RuneCountInString(p.Argument.Value) > 500:
		return nil, fault.Bad("argument.value", "has %d characters, at most 500 are taken", utf8.RuneCountInString(p.Argument.Value))
	}
	typed := who.Fold(p.Argument.Value)
	var newest, found listedBlocks
	if err := d.run(ctx, opBlocks, map[string]any{"limit": looksThrough}, &newest); err != nil {
		return nil, err
	}
	if len(typed) > 2 {
		if err := d.run(ctx, opSearch, map[string]any{"query": strings.TrimSpace(p.Argument.Value), "limit": mostCompletions}, &found); err != nil {
			return nil, err
		}
	}
	values, has := []string{}, map[string]bool{}
	add := func(b listed) {
		if !has[b.ID] && !b.isFile() {
			has[b.ID] = true
			values = append(values, completion(b))
		}
	}
	for _, b := range newest.Blocks {
		if strings.Contains(who.Fold(completion(b)), typed) {
			add(b)
		}
	}
	for _, b := range found.Blocks {
		add(b)
	}
	out := sdk.CompletionResultDetails{Values: values, HasMore: newest.NextCursor != "" || found.NextCursor != ""}
	if !out.HasMore {
		out.Total = len(values)
	}
	if len(values) > mostCompletions {
		out.Values, out.HasMore = values[:mostCompletions], true
	}
	return &sdk.CompleteResult{Completion: out}, nil
}

// meaningful are the characters that would end a title where a client puts it into the address as it is.
var meaningful = strings.NewReplacer("/", " ", "?", " ", "#", " ", "%", " ")

// completion is a value for the template's argument.
func completion(b listed) string {
	title := []rune(meaningful.Replace(b.name()))
	if len(title) > shownTitle {
		title = append(title[:shownTitle-1], '…')
	}
	return string(title) + " " + b.ID
}
