package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// call is a fixture tool's body. An error that isn't a *jsonrpc.Error becomes a result with isError.
type call func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error)

// Register adds every tool, resource and prompt that the suite calls by a fixed name and that a stateless server can
// have. Tools that must ask the client in the middle of a call (sampling, elicitation before 2026-07-28) are not
// among them; expected-failures.yaml says so.
func Register(s *mcp.Server) {
	registerContent(s)
	registerNotifying(s)
	registerAsking(s)
	registerResources(s)
	registerPrompts(s)
	s.AddReceivingMiddleware(lend)
}

// lend answers for what the suite asks for and Cairn doesn't have: completion of arguments of its own prompts, and
// subscription by request as it was before 2026-07-28.
func lend(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch method {
		case "completion/complete":
			if p, ok := req.GetParams().(*mcp.CompleteParams); ok && p.Ref != nil && strings.HasPrefix(p.Ref.Name, "test_") {
				return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"test one", "test two"}}}, nil
			}
		case "resources/subscribe", "resources/unsubscribe":
			if !modern(req) {
				return nothing{}, nil
			}
		}
		return next(ctx, method, req)
	}
}

// modern tells whether the request is of 2026-07-28 or later, which names its version in every request.
func modern(req mcp.Request) bool {
	_, ok := req.GetParams().GetMeta()["io.modelcontextprotocol/protocolVersion"]
	return ok
}

// nothing is the result {}; the embedded type lends it what makes a result.
type nothing struct{ *mcp.CompleteResult }

func (nothing) MarshalJSON() ([]byte, error) { return []byte("{}"), nil }

// add registers one tool; schema "" stands for no arguments.
func add(s *mcp.Server, name, doc, schema string, run call) {
	if schema == "" {
		schema = `{"type":"object"}`
	}
	tool := &mcp.Tool{Name: name, Description: doc, InputSchema: json.RawMessage(schema)}
	s.AddTool(tool, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		res, err := run(ctx, req)
		var wire *jsonrpc.Error
		if err != nil && !errors.As(err, &wire) {
			return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: err.Error()}}}, nil
		}
		return res, err
	})
}

// fixed is the body of a tool that always answers the same.
func fixed(content ...mcp.Content) call {
	return func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: content}, nil
	}
}

func text(format string, args ...any) *mcp.TextContent {
	return &mcp.TextContent{Text: fmt.Sprintf(format, args...)}
}

func embedded(uri, mime, body string) *mcp.EmbeddedResource {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: mime, Text: body}}
}

func registerContent(s *mcp.Server) {
	pixel := &mcp.ImageContent{Data: onePixel(), MIMEType: "image/png"}
	add(s, "test_simple_text", "Answers one text.", "",
		fixed(text("This is a simple text response for testing.")))
	add(s, "test_image_content", "Answers one image.", "", fixed(pixel))
	add(s, "test_audio_content", "Answers one sound.", "",
		fixed(&mcp.AudioContent{Data: silence(), MIMEType: "audio/wav"}))
	add(s, "test_embedded_resource", "Answers one embedded resource.", "",
		fixed(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")))
	add(s, "test_multiple_content_types", "Answers text, image and resource.", "",
		fixed(text("Multiple content types test:"), pixel,
			embedded("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`)))
	add(s, "test_error_handling", "Always fails.", "",
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, errors.New("This tool intentionally returns an error for testing")
		})
	add(s, "json_schema_2020_12_tool", "Has a schema with keywords that careless servers drop.", `{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"type": "object",
		"$defs": {"address": {"$anchor": "addressDef", "type": "object",
			"properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
		"properties": {
			"name": {"type": "string"},
			"address": {"$ref": "#/$defs/address"},
			"contactMethod": {"type": "string", "enum": ["phone", "email"]},
			"phone": {"type": "string"},
			"email": {"type": "string"}},
		"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
		"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
		"then": {"required": ["phone"]},
		"else": {"required": ["email"]},
		"additionalProperties": false}`,
		fixed(text("ok")))
	add(s, "test_custom_header", "Repeats one argument in a header.",
		`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`,
		fixed(text("ok")))
	add(s, "test_missing_capability", "Needs a client that can sample.", "",
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if caps := req.ClientCapabilities(); caps != nil && caps.Sampling != nil {
				return &mcp.CallToolResult{Content: []mcp.Content{text("The client can sample.")}}, nil
			}
			return nil, &jsonrpc.Error{
				Code:    mcp.CodeMissingRequiredClientCapabilities,
				Message: "this tool needs the client capability sampling",
				Data:    json.RawMessage(`{"requiredCapabilities":{"sampling":{}}}`),
			}
		})
}

// registerNotifying adds the tools that send something before, or beside, their answer.
func registerNotifying(s *mcp.Server) {
	const pause = 50 * time.Millisecond
	add(s, "test_tool_with_logging", "Logs three times.", "",
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for i, line := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
				if i > 0 {
					time.Sleep(pause)
				}
				if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: line}); err != nil {
					return nil, err
				}
			}
			return &mcp.CallToolResult{Content: []mcp.Content{text("Logged three times.")}}, nil
		})
	// The session keeps this one silent, since the suite asks for no log level.
	add(s, "test_logging_tool", "Logs once, if the caller asked for logs.", "",
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "called"}); err != nil {
				return nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{text("Logged once.")}}, nil
		})
	add(s, "test_tool_with_progress", "Reports progress three times.", "",
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			token := req.Params.GetProgressToken()
			for _, done := range []float64{0, 50, 100} {
				if done > 0 {
					time.Sleep(pause)
				}
				if token == nil {
					continue
				}
				p := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100}
				if err := req.Session.NotifyProgress(ctx, p); err != nil {
					return nil, err
				}
			}
			return &mcp.CallToolResult{Content: []mcp.Content{text("Done.")}}, nil
		})
	// A tool or prompt that comes and goes at once: the lists stay as they were, but their listeners are told.
	add(s, "test_trigger_tool_change", "Changes the list of tools.", "",
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			add(s, "test_passing_tool", "Comes and goes.", "", fixed(text("ok")))
			s.RemoveTools("test_passing_tool")
			return &mcp.CallToolResult{Content: []mcp.Content{text("Changed.")}}, nil
		})
	add(s, "test_trigger_prompt_change", "Changes the list of prompts.", "",
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			s.AddPrompt(&mcp.Prompt{Name: "test_passing_prompt", Description: "Comes and goes."},
				func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
					return &mcp.GetPromptResult{}, nil
				})
			s.RemovePrompts("test_passing_prompt")
			return &mcp.CallToolResult{Content: []mcp.Content{text("Changed.")}}, nil
		})
}

func registerResources(s *mcp.Server) {
	serve := func(c mcp.ResourceContents) mcp.ResourceHandler {
		return func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&c}}, nil
		}
	}
	for _, r := range []struct{ name, doc, body string }{
		{"static-text", "A text that doesn't change.", "This is the content of the static text resource."},
		{"watched-resource", "A text to subscribe to.", "Watched resource content."},
	} {
		uri := "test://" + r.name
		s.AddResource(&mcp.Resource{URI: uri, Name: r.name, Description: r.doc, MIMEType: "text/plain"},
			serve(mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Text: r.body}))
	}
	const binary = "test://static-binary"
	s.AddResource(
		&mcp.Resource{URI: binary, Name: "static-binary", Description: "An image that doesn't change.", MIMEType: "image/png"},
		serve(mcp.ResourceContents{URI: binary, MIMEType: "image/png", Blob: onePixel()}))
	s.AddResourceTemplate(
		&mcp.ResourceTemplate{URITemplate: "test://template/{id}/data", Name: "template",
			Description: "Data by id.", MIMEType: "application/json"},
		func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			uri := req.Params.URI
			id := strings.TrimSuffix(strings.TrimPrefix(uri, "test://template/"), "/data")
			body, err := json.Marshal(map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id})
			if err != nil {
				return nil, err
			}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
				{URI: uri, MIMEType: "application/json", Text: string(body)}}}, nil
		})
}

func registerPrompts(s *mcp.Server) {
	type args = map[string]string
	prompt := func(name, doc string, params []string, messages func(args) []mcp.Content) {
		p := &mcp.Prompt{Name: name, Description: doc}
		for _, param := range params {
			p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: param, Description: "Any text.", Required: true})
		}
		s.AddPrompt(p, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			res := &mcp.GetPromptResult{}
			for _, c := range messages(req.Params.Arguments) {
				res.Messages = append(res.Messages, &mcp.PromptMessage{Role: "user", Content: c})
			}
			return res, nil
		})
	}
	prompt("test_simple_prompt", "One text.", nil, func(args) []mcp.Content {
		return []mcp.Content{text("This is a simple prompt for testing.")}
	})
	prompt("test_prompt_with_arguments", "A text with two arguments in it.", []string{"arg1", "arg2"},
		func(a args) []mcp.Content {
			return []mcp.Content{text("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"])}
		})
	prompt("test_prompt_with_embedded_resource", "A resource and a text.", []string{"resourceUri"},
		func(a args) []mcp.Content {
			return []mcp.Content{
				embedded(a["resourceUri"], "text/plain", "Embedded resource content for testing."),
				text("Please process the embedded resource above."),
			}
		})
	prompt("test_prompt_with_image", "An image and a text.", nil, func(args) []mcp.Content {
		return []mcp.Content{
			&mcp.ImageContent{Data: onePixel(), MIMEType: "image/png"},
			text("Please analyze the image above."),
		}
	})
}

// onePixel is a red dot as a PNG file.
func onePixel() []byte {
	img := image.NewRGBA(image.Rect(0, 0, 1, 1))
	img.Set(0, 0, color.RGBA{R: 255, A: 255})
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err) // a buffer takes everything, and the image is fixed
	}
	return b.Bytes()
}

// silence is a WAV file of eight empty 8-bit samples at 8 kHz.
func silence() []byte {
	samples := bytes.Repeat([]byte{128}, 8)
	var b bytes.Buffer
	b.WriteString("RIFF")
	put := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) } // a buffer takes everything
	put(uint32(36 + len(samples)))
	b.WriteString("WAVEfmt ")
	put(uint32(16))
	put([]uint16{1, 1})       // PCM, one channel
	put([]uint32{8000, 8000}) // samples and bytes a second
	put([]uint16{1, 8})       // bytes a frame, bits a sample
	b.WriteString("data")
	put(uint32(len(samples)))
	b.Write(samples)
	return b.Bytes()
}
