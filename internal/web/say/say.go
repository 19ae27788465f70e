// Package say has texts of pages that are no templates: what was done, and how programs are connected.
package say

// Done are what a status line may say. An address carries the code alone, so that no link can put words there.
var Done = map[string]string{
	"signed-out":       "You are signed out.",
	"saved":            "Saved.",
	"paused":           "Paused. Its calls are refused until you resume it.",
	"resumed":          "Resumed.",
	"all-paused":       "All your agents are paused. Their calls are refused until you resume them.",
	"all-resumed":      "Your agents may call again.",
	"server-paused":    "All agents of this server are paused.",
	"server-resumed":   "The agents of this server may call again.",
	"connected":        "Let in. Its own page goes on by itself; it is listed here once it has fetched its key.",
	"rejected":         "Not let in. It was told so.",
	"request-sent":     "Sent, if there is an account of that name.",
	"disconnected":     "Disconnected. It can do nothing from now on.",
	"token-revoked":    "Revoked. The key works no longer.",
	"uploaded":         "Uploaded.",
	"file-trashed":     "Moved to the trash, where you can take it back.",
	"file-restored":    "Brought back.",
	"heap-created":     "Heap created.",
	"heap-archived":    "Archived. Nothing in it was deleted.",
	"heap-restored":    "Brought back.",
	"heap-left":        "You left the heap.",
	"member-set":       "Role changed.",
	"member-removed":   "Removed from the heap.",
	"invited":          "If there is an account of that name, it is invited now.",
	"withdrawn":        "Invitation withdrawn.",
	"accepted":         "You are a member now.",
	"declined":         "Invitation declined.",
	"session-ended":    "Session ended.",
	"sessions-ended":   "All other sessions are ended.",
	"sign-in-removed":  "Removed. It no longer signs you in.",
	"passkey-added":    "Passkey added.",
	"phrase-replaced":  "Phrase replaced. The old one works no longer.",
	"email-confirmed":  "Address confirmed.",
	"admitted":         "Admitted. They can sign in now.",
	"account-disabled": "Disabled. Their sessions, agents and tokens work no longer.",
	"account-enabled":  "Enabled again.",
	"theme-set":        "Look changed.",
}

// Client is how one program is connected: the steps, each with a text to copy where there is one.
type Client struct {
	ID, Name string
	Steps    []Step
}

// Step is what to do next, and the text to copy for it, if there is one.
type Step struct{ Text, Code string }

// Clients gives the steps for the programs people use, with this server's address.
func Clients(mcp string) []Client {
	then := Step{Text: "Your browser opens a page of this server. Choose what it may see and press Connect."}
	quoted := `"` + mcp + `"`
	return []Client{
		{"claude", "Claude", []Step{{Text: "In Claude on the web or the desktop, open Settings, then Connectors. Claude connects from its maker's servers: this address must be https and open to the Internet."}, {Text: "Press Add custom connector, name it Cairn and paste this address.", Code: mcp}, {Text: "Press Connect."}, then}},
		{"chatgpt", "ChatGPT", []Step{{Text: "In ChatGPT, open Settings, then Apps and connectors, then Advanced settings, and turn on Developer mode. ChatGPT connects from its maker's servers: this address must be https and open to the Internet."}, {Text: "Press Create, name it Cairn and paste this address. Choose OAuth.", Code: mcp}, then}},
		{"claude-code", "Claude Code", []Step{{Text: "Run this in a terminal.", Code: "claude mcp add --transport http cairn " + mcp}, {Text: "Sign in to it.", Code: "claude mcp login cairn"}, then}},
		{"codex", "Codex", []Step{{Text: "Run this in a terminal. It signs in at once.", Code: "codex mcp add cairn --url " + mcp}, then}},
		{"cursor", "Cursor", []Step{{Text: "Open the file .cursor/mcp.json in your home folder and put this there.", Code: `{"mcpServers": {"cairn": {"url": ` + quoted + `}}}`}, {Text: "In Cursor's settings, under MCP, press Needs login beside cairn."}, then}},
		{"vscode", "VS Code", []Step{{Text: "Run this in a terminal.", Code: `code --add-mcp '{"name": "cairn", "type": "http", "url": ` + quoted + `}'`}, {Text: "In the list of MCP servers, start cairn and allow it to sign in."}, then}},
		{"opencode", "OpenCode", []Step{{Text: "Put this into opencode.json of a project, or of .config/opencode in your home folder.", Code: `{"mcp": {"cairn": {"type": "remote", "url": ` + quoted + `}}}`}, {Text: "Sign in to it.", Code: "opencode mcp auth cairn"}, then}},
		{"gemini-cli", "Gemini CLI", []Step{{Text: "Run this in a terminal.", Code: "gemini mcp add --scope user --transport http cairn " + mcp}, {Text: "Start Gemini CLI, type this and answer Yes.", Code: "/mcp auth cairn"}, then}},
	}
}
