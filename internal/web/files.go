package web

import (
	"net/http"
	"net/url"

	"cairn/internal/fault"
	"cairn/internal/web/files"
	"cairn/internal/who"
)

// filesScreen is the page of files; files.Server takes its form.
var filesScreen = screen{
	page: "files",
	load: func(q *request) (any, error) {
		account, err := get[accountOut](q, "get_account", nil)
		if err != nil {
			return nil, err
		}
		asked := url.Values{}
		if q.r.Method == http.MethodGet {
			asked = q.r.URL.Query()
		} else if q.r.PostForm.Get("act") == "restore" { // refused: it is still in the trash
			asked.Set("trash", "1")
		}
		var heaps []files.Heap
		for _, h := range account.Heaps {
			if h.ArchivedAt == nil {
				heaps = append(heaps, files.Heap{ID: h.ID, Name: h.Name, Writes: h.Role != "viewer"})
			}
		}
		return files.NewPage(asked, q.s.Files.Most, heaps, func(args map[string]any) (files.Listed, error) { return get[files.Listed](q, "list_files", args) })
	},
	acts: map[string]act{
		"delete":  {op: "delete_block", done: "file-trashed", args: fileBlock},
		"restore": {op: "restore_block", done: "file-restored", args: fileBlock, to: "/files?trash=1"},
	},
}

func fileBlock(f url.Values, _ *request) map[string]any {
	return map[string]any{"block_id": f.Get("file")}
}

// filesRoutes adds what moves the bytes of files.
func (s *Server) filesRoutes(mux *http.ServeMux) {
	s.Files.Site = files.Site{Caller: s.anyCaller, Visitor: s.session, Own: s.own, Wants: wantsPage, Problem: s.problem, Uploaded: s.uploaded}
	s.Posts = append(s.Posts, files.Form)
	s.Files.Routes(mux)
}

// uploaded answers the form of the page of files.
func (s *Server) uploaded(w http.ResponseWriter, r *http.Request, c *who.Caller, err error) {
	if err == nil {
		done(w, r, "/files", "uploaded")
		return
	}
	f := fault.From(err)
	s.answer(w, s.request(r, c), filesScreen, &View{Caller: c, Fault: f, Failed: "upload", Form: url.Values{}}, f.API())
}
