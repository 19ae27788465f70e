package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/prompt"
	"cairn/internal/who"
)

// mostCompletions is the most that MCP lets an answer to completion/complete have.
const mostCompletions = 100

// prompts are what people call by name, for the caller in ctx.
type prompts struct {
	tools *Tools
	list  []*prompt.Prompt
	now   func() int64 // microseconds since 1970 UTC
}

// serve adds the prompts to the SDK's server.
func (p *prompts) serve(server *sdk.Server) {
	for _, one := range p.list {
		d := &sdk.Prompt{Name: one.Name, Title: one.Title, Description: one.Doc}
		for _, a := range one.Args {
			d.Arguments = append(d.Arguments, &sdk.PromptArgument{Name: a.Name, Title: a.Title, Description: a.Doc})
		}
		server.AddPrompt(d, func(ctx context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			text, err := p.text(ctx, one, req.Params.Arguments)
			if err != nil {
				return nil, rpcError(ctx, err)
			}
			return &sdk.GetPromptResult{Description: one.Doc, Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: text}}}}, nil
		})
	}
}

// may tells whether a caller may call an operation, and has a heap to write to where it writes.
func (p *prompts) may(c *who.Caller) func(string) bool {
	return func(name string) bool {
		return p.tools.runner.May(c, name) && (p.tools.runner.Find(name).Effect == op.Read || slices.ContainsFunc(c.Heaps, who.Heap.Writable))
	}
}

// offered finds a prompt that is offered to a caller.
func (p *prompts) offered(c *who.Caller, name string) (*prompt.Prompt, error) {
	var names []string
	for _, one := range p.list {
		if !one.Offered(p.may(c)) {
			continue
		}
		if one.Name == name {
			return one, nil
		}
		names = append(names, one.Name)
	}
	f := fault.Bad("name", "is %q: there is no such prompt for what you are granted; there are: %s", name, strings.Join(names, ", "))
	f.Valid = names
	return nil, f
}

func (p *prompts) moment(c *who.Caller) time.Time { return c.Time(p.now()) }

func (p *prompts) text(ctx context.Context, one *prompt.Prompt, args map[string]string) (string, error) {
	c := who.From(ctx)
	if _, err := p.offered(c, one.Name); err != nil {
		return "", err
	}
	return one.Text(prompt.Asked{Caller: c, Now: p.moment(c), Args: args, May: p.may(c), Run: func(name string, args json.RawMessage) ([]byte, error) {
		res, err := p.tools.runner.Run(ctx, name, args)
		return res.JSON, err
	}})
}

// visible is the SDK's list without what isn't offered to the caller. What isn't one of ours stays.
func (p *prompts) visible(c *who.Caller, l *sdk.ListPromptsResult) {
	l.Prompts = slices.DeleteFunc(slices.Clone(l.Prompts), func(d *sdk.Prompt) bool {
		i := slices.IndexFunc(p.list, func(one *prompt.Prompt) bool { return one.Name == d.Name })
		return i >= 0 && !p.list[i].Offered(p.may(c))
	})
}

// complete answers completion/complete: what an argument of a prompt may be.
func (p *prompts) complete(ctx context.Context, req *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	if req.Params.Ref.Type != "ref/prompt" {
		return nil, rpcError(ctx, fault.Bad("ref.type", "is %q: arguments are completed for ref/prompt alone", req.Params.Ref.Type))
	}
	c := who.From(ctx)
	one, err := p.offered(c, req.Params.Ref.Name)
	if err != nil {
		return nil, rpcError(ctx, err)
	}
	values, err := one.Complete(c, p.moment(c), req.Params.Argument.Name, req.Params.Argument.Value)
	if err != nil {
		return nil, rpcError(ctx, err)
	}
	out := sdk.CompletionResultDetails{Total: len(values), Values: values}
	if len(values) > mostCompletions {
		out.Values, out.HasMore = values[:mostCompletions], true
	}
	return &sdk.CompleteResult{Completion: out}, nil
}

// rpcError words a failure as an error of JSON-RPC, for methods whose results have none of their own.
func rpcError(ctx context.Context, err error) *jsonrpc.Error {
	f := fault.From(err)
	if m := peeked(ctx); m != nil && f.Kind == fault.Internal {
		m.broke.Store(true)
	}
	code := f.Kind.Wire().Code
	if code == 0 || f.Kind == fault.UnknownTool {
		code = fault.Invalid.Wire().Code
	}
	return &jsonrpc.Error{Code: int64(code), Message: f.Message, Data: faultData(f)}
}
