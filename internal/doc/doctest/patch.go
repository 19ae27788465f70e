package doctest

import (
	"encoding/json"
	"strings"

	"pgregory.net/rapid"

	"cairn/internal/doc"
)

// Patch draws a patch as JSON, most of whose operations are right for the document, some not.
func Patch(t *rapid.T, d *doc.Doc) []byte {
	ids := []string{"nowhere"}
	var texts []string
	i := 0
	for n := range d.All() {
		ids = append(ids, n.ID, n.ID, doc.AgentID(i))
		i++
		for _, c := range n.Content {
			if c.Type == "text" {
				texts = append(texts, c.Text)
			}
		}
	}
	id := rapid.SampledFrom(ids)
	var ops []map[string]any
	for range rapid.IntRange(1, 12).Draw(t, "ops") {
		op := map[string]any{"op": rapid.SampledFrom([]string{"insert_before", "insert_after", "append_child", "replace", "delete", "move", "set_attrs", "replace_text", "replace_text", "add_mark", "remove_mark"}).Draw(t, "op"), "node_id": id.Draw(t, "id")}
		switch op["op"] {
		case "insert_before", "insert_after", "append_child", "replace":
			if op["op"] == "append_child" && rapid.Bool().Draw(t, "root") {
				op["node_id"] = doc.RootID
			}
			if rapid.Bool().Draw(t, "in Markdown") {
				op["markdown"] = rapid.SampledFrom([]string{"text", "- [ ] item\n- b", "# h\n\np", "> q", "| a |\n| - |\n| b |", "`c` **d**"}).Draw(t, "markdown")
				break
			}
			op["nodes"] = rapid.SampledFrom([]any{
				[]any{map[string]any{"type": "paragraph", "content": []any{map[string]any{"type": "text", "text": Line(1, 3).Draw(t, "text")}}}},
				[]any{map[string]any{"type": "list_item", "content": []any{map[string]any{"type": "paragraph"}}}},
				[]any{map[string]any{"type": "divider"}, map[string]any{"type": "divider"}},
			}).Draw(t, "nodes")
		case "delete":
		case "move":
			op[rapid.SampledFrom([]string{"before", "after", "into"}).Draw(t, "where")] = id.Draw(t, "to")
		case "set_attrs":
			op["attrs"] = rapid.SampledFrom([]any{map[string]any{"level": 2}, map[string]any{"checked": true}, map[string]any{"start": 7}, map[string]any{"language": nil}, map[string]any{"title": "t"}}).Draw(t, "attrs")
		default:
			find := "word"
			if len(texts) > 0 {
				s := []rune(rapid.SampledFrom(texts).Draw(t, "in"))
				from := rapid.IntRange(0, len(s)-1).Draw(t, "from")
				find = string(s[from:rapid.IntRange(from+1, len(s)).Draw(t, "to")])
			}
			op["find"] = find
			if op["op"] == "replace_text" {
				op["replace"] = rapid.OneOf(Line(0, 3), rapid.SampledFrom([]string{"$&", "$1", "$$", "${x}", "\\1", "%s", "a\nb"})).Draw(t, "replace")
				if rapid.Bool().Draw(t, "counted") {
					op["expected_count"] = strings.Count(d.Plain(), find) + 1
				}
			} else {
				op["mark"] = rapid.SampledFrom([]any{"bold", "code", map[string]any{"type": "link", "attrs": map[string]any{"href": "https://x.y"}}}).Draw(t, "mark")
			}
		}
		ops = append(ops, op)
	}
	raw, err := json.Marshal(ops)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
