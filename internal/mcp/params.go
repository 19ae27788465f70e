package mcp

import (
	"encoding/json"
	"errors"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/fault"
)

// paramTypes are what the SDK reads the params of its methods into, and of ours that it carries.
var paramTypes = map[string]func() any{
	"initialize":               func() any { return new(sdk.InitializeParams) },
	"tools/call":               func() any { return new(sdk.CallToolParamsRaw) },
	"tools/list":               func() any { return new(sdk.ListToolsParams) },
	"resources/list":           func() any { return new(sdk.ListResourcesParams) },
	"resources/templates/list": func() any { return new(sdk.ListResourceTemplatesParams) },
	"resources/read":           func() any { return new(sdk.ReadResourceParams) },
	"resources/subscribe":      func() any { return new(sdk.SubscribeParams) },
	"resources/unsubscribe":    func() any { return new(sdk.UnsubscribeParams) },
	"prompts/list":             func() any { return new(sdk.ListPromptsParams) },
	"prompts/get":              func() any { return new(sdk.GetPromptParams) },
	"completion/complete":      func() any { return new(sdk.CompleteParams) },
	"logging/setLevel":         func() any { return new(sdk.SetLoggingLevelParams) },
	"subscriptions/listen":     func() any { return new(sdk.SubscriptionsListenParams) },
	"skills/list":              func() any { return new(listSkillsParams) },
	"skills/get":               func() any { return new(getSkillParams) },
}

// typed refuses params that have a member of a wrong type, where the SDK would answer in Go's words.
func (m *message) typed() error {
	if m.params == nil {
		return nil
	}
	var into any = new(sdk.PingParams) // _meta alone
	if fresh := paramTypes[m.Method]; fresh != nil {
		into = fresh()
	}
	err := json.Unmarshal(m.params, into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && wrong.Field != "":
		return fault.Bad("params."+wrong.Field, "has a wrong type: it is a %s", wrong.Value)
	}
	return fault.Bad("params", "has a member that can't be read as %s asks for it", m.Method)
}
