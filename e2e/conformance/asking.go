package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// question asks for one text under name, the way 2026-07-28 asks: as a part of the answer.
func question(message, name, kind string) *mcp.ElicitParams {
	schema, err := json.Marshal(map[string]any{
		"type":       "object",
		"properties": map[string]any{name: map[string]any{"type": kind}},
		"required":   []string{name},
	})
	if err != nil {
		panic(err) // strings only
	}
	return &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: json.RawMessage(schema)}
}

func sample(prompt string, tokens int64) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{
		MaxTokens: tokens,
		Messages:  []*mcp.SamplingMessage{{Role: "user", Content: text("%s", prompt)}},
	}
}

// ask is the answer that asks back; state "" goes without one.
func ask(state string, requests mcp.InputRequestMap) *mcp.CallToolResult {
	return &mcp.CallToolResult{InputRequests: requests, RequestState: state}
}

// accepted is what the person filled in under key, and whether they did so and accepted.
func accepted(responses mcp.InputResponseMap, key, field string) (any, bool) {
	r, ok := responses[key].(*mcp.ElicitResult)
	if !ok || r == nil || r.Action != "accept" {
		return nil, false
	}
	v, ok := r.Content[field]
	return v, ok
}

func done(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{text(format, args...)}}
}

// registerAsking adds the tools and the prompt that can't answer before the client has answered something.
func registerAsking(s *mcp.Server) {
	seal := newSealer()
	asking := func(name, doc string, run func(*mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
		add(s, name, doc, "", func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return run(req)
		})
	}
	whoAreYou := func() *mcp.ElicitParams { return question("What is your name?", "name", "string") }

	greet := func(req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if name, ok := accepted(req.Params.InputResponses, "user_name", "name"); ok {
			return done("Hello, %v!", name), nil
		}
		return ask("", mcp.InputRequestMap{"user_name": whoAreYou()}), nil
	}
	asking("test_input_required_result_elicitation", "Asks the person's name.", greet)
	asking("test_streaming_elicitation", "Asks the person's name.", greet)
	asking("test_input_required_result_sampling", "Asks the client's model.",
		func(req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if r, ok := req.Params.InputResponses["capital_question"]; ok {
				return done("Answer: %s", modelText(r)), nil
			}
			return ask("", mcp.InputRequestMap{"capital_question": sample("What is the capital of France?", 100)}), nil
		})
	asking("test_input_required_result_list_roots", "Asks the client's roots.",
		func(req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if r, ok := req.Params.InputResponses["client_roots"].(*mcp.ListRootsResult); ok {
				return done("Roots: %s", rootNames(r)), nil
			}
			return ask("", mcp.InputRequestMap{"client_roots": &mcp.ListRootsParams{}}), nil
		})
	asking("test_input_required_result_multiple_inputs", "Asks three things at once.",
		func(req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			in := req.Params.InputResponses
			name, named := accepted(in, "user_name", "name")
			roots, rooted := in["client_roots"].(*mcp.ListRootsResult)
			greeting, greeted := in["greeting"]
			if named && rooted && greeted {
				if _, err := seal.open(req.Params.RequestState); err != nil {
					return nil, err
				}
				return done("%s %v: %s", modelText(greeting), name, rootNames(roots)), nil
			}
			return ask(seal.close("three"), mcp.InputRequestMap{
				"user_name":    whoAreYou(),
				"greeting":     sample("Generate a greeting", 50),
				"client_roots": &mcp.ListRootsParams{},
			}), nil
		})
	confirm := func(req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if _, ok := accepted(req.Params.InputResponses, "confirm", "ok"); !ok {
			return ask(seal.close("confirm"),
				mcp.InputRequestMap{"confirm": question("Please confirm", "ok", "boolean")}), nil
		}
		if _, err := seal.open(req.Params.RequestState); err != nil {
			return nil, err
		}
		return done("state-ok"), nil
	}
	asking("test_input_required_result_request_state", "Keeps a state with the client.", confirm)
	asking("test_input_required_result_tampered_state", "Refuses a state that was changed.", confirm)
	asking("test_input_required_result_multi_round", "Asks twice.", twice(seal))
	asking("test_input_required_result_capabilities", "Asks only what the client can answer.", able(whoAreYou()))

	s.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: "Asks for a context first."},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			if about, ok := accepted(req.Params.InputResponses, "user_context", "context"); ok {
				return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
					{Role: "user", Content: text("Context: %v", about)}}}, nil
			}
			return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{
				"user_context": question("What context should the prompt use?", "context", "string")}}, nil
		})
}

// twice asks the name, then the colour; the name waits in the state meanwhile.
func twice(seal *sealer) func(*mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return func(req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		in := req.Params.InputResponses
		if name, ok := accepted(in, "step1", "name"); ok {
			if _, err := seal.open(req.Params.RequestState); err != nil {
				return nil, err
			}
			kept, _ := name.(string)
			return ask(seal.close(kept), mcp.InputRequestMap{
				"step2": question("Step 2: What is your favorite color?", "color", "string")}), nil
		}
		if favorite, ok := accepted(in, "step2", "color"); ok {
			name, err := seal.open(req.Params.RequestState)
			if err != nil {
				return nil, err
			}
			return done("%s likes %v.", name, favorite), nil
		}
		return ask(seal.close("first"), mcp.InputRequestMap{
			"step1": question("Step 1: What is your name?", "name", "string")}), nil
	}
}

func able(name *mcp.ElicitParams) func(*mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return func(req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if len(req.Params.InputResponses) > 0 {
			return done("Thanks."), nil
		}
		requests := mcp.InputRequestMap{}
		if caps := req.ClientCapabilities(); caps != nil {
			if caps.Elicitation != nil {
				requests["user_name"] = name
			}
			if caps.Sampling != nil {
				requests["greeting"] = sample("Generate a greeting", 50)
			}
		}
		if len(requests) == 0 {
			return done("Nothing that this client could answer."), nil
		}
		return ask("", requests), nil
	}
}

func modelText(r mcp.InputResponse) string {
	if m, ok := r.(*mcp.CreateMessageWithToolsResult); ok {
		for _, c := range m.Content {
			if t, ok := c.(*mcp.TextContent); ok {
				return t.Text
			}
		}
	}
	return "no text"
}

func rootNames(r *mcp.ListRootsResult) string {
	var names []string
	for _, root := range r.Roots {
		names = append(names, root.URI)
	}
	return strings.Join(names, ", ")
}

// sealer keeps a state with the client so that a changed one is noticed. The key dies with the process.
type sealer struct{ key []byte }

func newSealer() *sealer {
	key := make([]byte, 32)
	rand.Read(key) // never fails
	return &sealer{key: key}
}

func (s *sealer) sum(text string) []byte {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func (s *sealer) close(text string) string {
	enc := base64.RawURLEncoding
	return enc.EncodeToString([]byte(text)) + "." + enc.EncodeToString(s.sum(text))
}

func (s *sealer) open(state string) (string, error) {
	body, mac, _ := strings.Cut(state, ".")
	text, err1 := base64.RawURLEncoding.DecodeString(body)
	sum, err2 := base64.RawURLEncoding.DecodeString(mac)
	if err1 != nil || err2 != nil || !hmac.Equal(sum, s.sum(string(text))) {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState was not made here, or was changed"}
	}
	return string(text), nil
}
