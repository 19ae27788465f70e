package web

import (
	"encoding/json"
	"net/http"

	"cairn/internal/web/docs"
)

// withDocuments adds the pages of documents.
func withDocuments(all map[string]screen) map[string]screen {
	for path, d := range docs.Screens() {
		sc := screen{page: d.Page, load: func(q *request) (any, error) { return d.Load(q.document()) }, most: docs.MostForm}
		for name, do := range d.Acts {
			if sc.acts == nil {
				sc.acts = map[string]act{}
			}
			sc.acts[name] = act{do: func(q *request) (string, string, error) { return do(q.document()) }}
		}
		all[path] = sc
	}
	return all
}

// document is the request as the pages of documents know it.
func (q *request) document() *docs.Request {
	d := &docs.Request{ID: q.id, Query: q.r.URL.Query(), Account: q.caller.Account, Call: func(name string, args map[string]any, out any) error {
		raw, err := get[json.RawMessage](q, name, args)
		if err == nil && out != nil {
			err = json.Unmarshal(raw, out)
		}
		return err
	}}
	if q.r.Method == http.MethodPost {
		d.Form = q.r.PostForm
	}
	return d
}
