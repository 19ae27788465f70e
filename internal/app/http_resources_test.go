package app_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"cairn/internal/apptest"
)

// resource is an entry of resources/list; contents one of resources/read.
type resource struct {
	URI, Name, Title, Description, MIMEType string
	Annotations                             struct{ LastModified string }
}

type contents struct {
	URI, MIMEType, Text string
	Meta                map[string]string `json:"_meta"`
}

// resources lists the documents that a caller is shown, page after page.
func resources(t *testing.T, w *world, m manner, as string) (list []resource, pages int) {
	t.Helper()
	params := ""
	for {
		result := members(t, w.send(t, m.request(as, "1", "resources/list", "", params)))
		var page []resource
		apptest.Decode(t, result["resources"], &page)
		pages++
		for _, r := range page {
			if guide := strings.HasPrefix(r.URI, "skill://"); guide && pages > 1 {
				t.Errorf("page %d has the guide %s again", pages, r.URI)
			} else if !guide {
				list = append(list, r)
			}
		}
		if string(result["cacheScope"]) != `"private"` || m.modern && string(result["resultType"]) != `"complete"` {
			t.Errorf("%s %s", result["cacheScope"], result["resultType"])
		}
		if result["nextCursor"] == nil {
			return list, pages
		}
		params = `"cursor":` + string(result["nextCursor"])
	}
}

func names(list []resource) (names []string) {
	for _, r := range list {
		names = append(names, r.Name)
	}
	return names
}

// readResource reads an address that must be there.
func readResource(t *testing.T, w *world, m manner, as, uri string) (list []contents) {
	t.Helper()
	result := members(t, w.send(t, m.request(as, "1", "resources/read", uri, `"uri":"`+uri+`"`)))
	apptest.Decode(t, result["contents"], &list)
	if string(result["cacheScope"]) != `"private"` || m.modern && string(result["resultType"]) != `"complete"` {
		t.Errorf("%s", result)
	}
	if len(list) == 0 {
		t.Fatalf("%s has no contents", uri)
	}
	return list
}

// Each caller is shown the documents of its heaps and no others, newest-updated first, on every way to speak to the server.
func TestDocumentsAreListedByRight(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		moreTokens(t, w)
		a.Call(t, a.Person(t), "create_block", `{"type":"collection","content":"y","heap":"Work"}`)
		w.up(t, "rw", "fern.bin", "bytes") // has no document
		for _, m := range manners {
			for as, want := range map[string]string{
				"rw": "collection without a title, Leaf, About ferns, Fern", "ro": "collection without a title, Leaf, About ferns, Fern", "documents": "collection without a title, Leaf, About ferns, Fern",
				"work": "collection without a title, Leaf", "tasks": "", "memory": "",
			} {
				list, _ := resources(t, w, m, as)
				if got := strings.Join(names(list), ", "); got != want {
					t.Errorf("%s/%s: %s, want %s", m.name, as, got, want)
				}
				var templates []struct{ URITemplate string }
				apptest.Decode(t, members(t, w.send(t, m.request(as, "1", "resources/templates/list", "", "")))["resourceTemplates"], &templates)
				if (len(templates) == 1 && templates[0].URITemplate == "cairn://block/{id}") != (want != "") {
					t.Errorf("%s/%s: %v", m.name, as, templates)
				}
			}
		}
		list, _ := resources(t, w, modern, "rw")
		if r := list[2]; r.URI != "cairn://block/"+w.words["block"] || r.Title != "About ferns" || r.MIMEType != "text/markdown" || !strings.Contains(r.Description, "Personal") || !strings.HasPrefix(r.Annotations.LastModified, "2026-08-1") {
			t.Errorf("%+v", r)
		}
	})
}

func TestListOfDocumentsIsPagedAndBounded(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		for i := range 120 {
			a.Call(t, a.Person(t), "create_block", fmt.Sprintf(`{"title":"Note %03d","heap":"Personal"}`, i))
		}
		list, pages := resources(t, w, modern, "rw")
		if len(list) != 123 || pages != 3 || list[0].Name != "Note 119" || list[119].Name != "Note 000" || !slices.IsSortedFunc(list[:120], func(a, b resource) int { return strings.Compare(b.Name, a.Name) }) {
			t.Errorf("%d documents on %d pages: %v", len(list), pages, names(list))
		}
		for _, as := range []string{"rw", "tasks"} {
			r := w.send(t, modern.request(as, "1", "resources/list", "", `"cursor":"nope"`))
			if e := read(t, r).Error; e == nil || e.Code != -32602 {
				t.Errorf("%s: %s", as, r.Body)
			}
		}
	})
}

func TestDocumentIsReadAsMarkdown(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		var doc struct{ Hash string }
		apptest.Decode(t, a.Call(t, a.Person(t), "get_block", `{"block_id":"`+w.words["block"]+`"}`), &struct{ Block any }{&doc})
		id := w.words["block"]
		for _, m := range manners {
			for _, uri := range []string{"cairn://block/" + id, "cairn:block/" + id, "cairn://block/" + strings.ToUpper(id), "cairn://block/" + url.PathEscape("About ferns "+id), "cairn://block/" + id + "?hash=" + doc.Hash + "&byte=0"} {
				got := readResource(t, w, m, "ro", uri)
				if len(got) != 2 || got[0].URI != uri || got[0].MIMEType != "text/markdown" || got[0].Text != "Water the ferns\n" || got[0].Meta["cairn/title"] != "About ferns" || got[0].Meta["cairn/hash"] != doc.Hash || got[0].Meta["cairn/next"] != "" ||
					got[1].MIMEType != "text/plain" || !strings.Contains(got[1].Text, doc.Hash) || strings.Contains(got[1].Text, "goes on") {
					t.Errorf("%s %s: %+v", m.name, uri, got)
				}
			}
		}
		var empty struct{ ID string }
		apptest.Decode(t, a.Call(t, a.Person(t), "create_block", `{"title":"Nothing","heap":"Personal"}`), &empty)
		if got := readResource(t, w, modern, "rw", "cairn://block/"+empty.ID); got[0].Text != "" {
			t.Errorf("%+v", got)
		}
	})
}

// A long document is read page by page, of one version: when it changes between two pages, the next says so.
func TestLongDocumentIsReadByContinuations(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		text := strings.Repeat("- an item that is one of many\n", 8000)
		var made struct{ ID, Hash string }
		apptest.Decode(t, a.Call(t, a.Person(t), "create_block", `{"title":"Long","heap":"Personal","content":`+mustJSON(t, text)+`}`), &made)
		begin := "cairn://block/" + made.ID
		whole, second := "", ""
		for uri, n := begin, 0; uri != ""; n++ {
			page := readResource(t, w, legacy, "rw", uri)
			next := page[0].Meta["cairn/next"]
			if len(page[0].Text) > 32<<10 || next != "" && (page[1].URI != next || !strings.Contains(page[1].Text, "It goes on at "+next)) {
				t.Fatalf("page %d: %d bytes, %+v", n, len(page[0].Text), page[1])
			}
			if whole += page[0].Text; n == 0 {
				second = next
			}
			uri = next
		}
		if whole != text {
			t.Errorf("pages together have %d bytes, the document %d", len(whole), len(text))
		}
		a.Call(t, a.Person(t), "patch_document", `{"block_id":"`+made.ID+`","base_hash":"`+made.Hash+`","operations":[{"op":"delete","node_id":"@2"}]}`)
		for _, uri := range []string{second, strings.Replace(second, "byte=", "byte=9", 1)} {
			r := w.send(t, modern.request("rw", "1", "resources/read", uri, `"uri":"`+uri+`"`))
			if e := read(t, r).Error; e == nil || e.Code != -32602 || e.Data["name"] != "CONFLICT" || e.Data["uri"] != begin {
				t.Errorf("%s: %s", uri, r.Body)
			}
		}
	})
}

// What isn't there, what may not be read, and what is no address of a document answer alike.
func TestResourceThatMayNotBeReadIsAsIfAbsent(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		var other struct{ ID string }
		apptest.Decode(t, a.Call(t, a.Account(t, "Other"), "create_block", `{"title":"Hidden","content":"hidden"}`), &other)
		for _, m := range manners {
			answers := map[string]bool{}
			for _, c := range []struct{ as, uri string }{
				{"rw", "cairn://block/" + absent}, {"rw", "cairn://block/" + other.ID}, {"work", "cairn://block/" + w.words["block"]}, {"tasks", "cairn://block/" + w.words["block"]},
				{"rw", "cairn://block/" + w.words["task"]}, {"rw", "cairn://block/nothing"}, {"rw", "cairn://block/"}, {"rw", "cairn:"}, {"rw", "cairn://task/" + w.words["block"]}, {"rw", "cairn://block/%zz" + w.words["block"]},
				{"rw", "cairn://block/x" + w.words["block"] + "/y"},
			} {
				r := w.send(t, m.request(c.as, "1", "resources/read", c.uri, `"uri":"`+c.uri+`"`))
				e := read(t, r).Error
				if e == nil || e.Code != -32602 || e.Data["uri"] != c.uri || strings.Contains(r.Body, "idden") {
					t.Errorf("%s %s %s: %d %s", m.name, c.as, c.uri, r.Status, r.Body)
					continue
				}
				answers[fmt.Sprint(r.Status, e.Message)] = true
			}
			if len(answers) != 1 {
				t.Errorf("%s: they differ: %v", m.name, answers)
			}
			for _, query := range []string{"?byte=x", "?byte=-1", "?byte=1&byte=2", "?page=2", "?a;b", "?byte=99999"} {
				uri := "cairn://block/" + w.words["block"] + query
				r := w.send(t, m.request("rw", "1", "resources/read", uri, `"uri":"`+uri+`"`))
				if e := read(t, r).Error; e == nil || e.Code != -32602 || e.Message == "Resource not found" {
					t.Errorf("%s %s: %s", m.name, query, r.Body)
				}
			}
		}
	})
}

// Reading a resource is a call of the tool: recorded and limited as one.
func TestResourcesAreRecordedAndLimitedAsTools(t *testing.T) {
	apptest.Each(t, map[string]string{"CAIRN_TOOL_LIMITS": "get_document=2"}, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		_, actor := actor(t, a, "counted")
		uri := "cairn://block/" + w.words["block"]
		for i := range 3 {
			s := modern.request("counted", "1", "resources/read", uri, `"uri":"`+uri+`"`)
			r := w.send(t, s)
			if i == 2 && (r.Status != 429 || r.Header.Get("Retry-After") == "" || read(t, r).Error.Code != -32002) || i < 2 && r.Status != 200 {
				t.Errorf("%d: %d %s", i, r.Status, r.Body)
			}
		}
		w.send(t, modern.request("counted", "1", "resources/list", "", ""))
		within(t, a, `SELECT tool, outcome, actor, via FROM usage_log ORDER BY at, id`, []string{"get_document|ok|" + actor + "|mcp", "get_document|limited|" + actor + "|mcp", "list_blocks|ok|" + actor + "|mcp"})
		within(t, a, `SELECT event, detail, actor FROM audit_event ORDER BY at, id`, []string{"toolSuccess|get_document|" + actor, "toolSuccess|list_blocks|" + actor})
	})
}

func TestDocumentsCompleteByTitleAndId(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		a.Call(t, a.Person(t), "create_block", `{"title":"50% / what? #1","heap":"Personal"}`)
		w.up(t, "rw", "fern.bin", "bytes")
		ask := func(m manner, as, ref, arg, value string) apptest.Response {
			return w.send(t, m.request(as, "1", "completion/complete", "", `"ref":{"type":"ref/resource","uri":"`+ref+`"},"argument":{"name":"`+arg+`","value":`+mustJSON(t, value)+`}`))
		}
		for _, m := range manners {
			for _, c := range []struct{ as, value, want string }{
				{"rw", "", "50    what   1|Leaf|About ferns|Fern"}, {"rw", "FERN", "About ferns|Fern"}, {"work", "", "Leaf"}, {"work", "fern", ""}, {"rw", w.words["leaf"][20:], "Leaf"}, {"rw", "water", "About ferns"}, {"rw", "zzz \"", ""},
			} {
				var got struct{ Values []string }
				apptest.Decode(t, members(t, ask(m, c.as, "cairn://block/{id}", "id", c.value))["completion"], &got)
				var titles []string
				for _, v := range got.Values {
					titles = append(titles, v[:len(v)-37])
					if read := readResource(t, w, m, c.as, "cairn://block/"+url.PathEscape(v)); len(read) != 2 {
						t.Errorf("%q: %+v", v, read)
					}
				}
				if strings.Join(titles, "|") != c.want {
					t.Errorf("%s %s %q: %v, want %s", m.name, c.as, c.value, titles, c.want)
				}
			}
			for _, c := range []struct{ as, ref, arg string }{{"tasks", "cairn://block/{id}", "id"}, {"rw", "cairn://block/{other}", "id"}, {"rw", "cairn://block/{id}", "byte"}} {
				r := ask(m, c.as, c.ref, c.arg, "x")
				if e := read(t, r).Error; e == nil || e.Code != -32602 {
					t.Errorf("%s %v: %s", m.name, c, r.Body)
				}
			}
		}
	})
}
