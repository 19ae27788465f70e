package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The Skills extension of MCP: each guide is a resource, and skills/list and skills/get describe it. See
// github.com/modelcontextprotocol/ext-skills, specification/stable. Older versions of MCP are answered alike.
const (
	skillsExtension = "io.modelcontextprotocol/skills"
	markdown        = "text/markdown"
)

// skillTTL is how long a client may keep what it heard of skills, in milliseconds: they change with the program alone.
const skillTTL = 300_000

// Skill is a folder of one file, SKILL.md. Text is that file; Name and Description are its whole front matter.
type Skill struct{ Name, Description, Text string }

// skillEntry is a skill as the extension describes it.
type skillEntry struct {
	URI         string            `json:"uri"`
	Frontmatter map[string]string `json:"frontmatter"`
	Resources   []skillFile       `json:"resources"`
}

type skillFile struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"` // sha256: and the hash of the file's bytes in hex
	Size   int    `json:"size"`   // in bytes
}

func (s Skill) entry() skillEntry {
	sum := sha256.Sum256([]byte(s.Text))
	uri := "skill://" + s.Name + "/SKILL.md"
	return skillEntry{uri, map[string]string{"name": s.Name, "description": s.Description}, []skillFile{{uri, "sha256:" + hex.EncodeToString(sum[:]), len(s.Text)}}}
}

type listSkillsParams struct {
	sdk.ParamsBase
	Cursor string `json:"cursor"`
}

type getSkillParams struct {
	sdk.ParamsBase
	URI string `json:"uri"`
}

// skillsResult is what both methods answer: a list, or one.
type skillsResult struct {
	sdk.ResultBase
	ResultType string       `json:"resultType"`
	Skills     []skillEntry `json:"skills,omitempty"`
	Skill      *skillEntry  `json:"skill,omitempty"`
	sdk.Cacheable
}

func complete() *skillsResult {
	return &skillsResult{ResultType: "complete", Cacheable: sdk.Cacheable{TTLMs: skillTTL, CacheScope: "private"}}
}

// declareSkills says in a server's capabilities that there are skills.
func declareSkills(c *sdk.ServerCapabilities) {
	c.AddExtension(skillsExtension, map[string]any{})
}

// serveSkills adds the resources and the methods.
func serveSkills(server *sdk.Server, skills []Skill) error {
	var entries []skillEntry
	for _, s := range skills {
		e := s.entry()
		entries = append(entries, e)
		contents := &sdk.ResourceContents{URI: e.URI, MIMEType: markdown, Text: s.Text}
		server.AddResource(&sdk.Resource{URI: e.URI, Name: s.Name, Description: s.Description, MIMEType: markdown, Size: int64(len(s.Text))},
			func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{contents}, Cacheable: sdk.Cacheable{TTLMs: skillTTL}}, nil
			})
	}
	err := sdk.AddReceivingCustomMethod(server, "skills/list", func(_ context.Context, _ *sdk.ServerSession, p *listSkillsParams) (*skillsResult, error) {
		if p != nil && p.Cursor != "" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "cursor is not one that this list gave: the list is one page"}
		}
		r := complete()
		r.Skills = entries
		return r, nil
	})
	if err != nil {
		return err
	}
	return sdk.AddReceivingCustomMethod(server, "skills/get", func(_ context.Context, _ *sdk.ServerSession, p *getSkillParams) (*skillsResult, error) {
		asked := ""
		if p != nil {
			asked = p.URI
		}
		var uris []string
		for i := range entries {
			if entries[i].URI == asked {
				r := complete()
				r.Skill = &entries[i]
				return r, nil
			}
			uris = append(uris, entries[i].URI)
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("there is no skill %q; there are: %s", asked, strings.Join(uris, ", "))}
	})
}
