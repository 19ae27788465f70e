// Package files moves the bytes of files over HTTP, in by a body or a form and out with the headers that keep a browser from running
// them, and lists them for their page. It runs operations and holds no rules of its own.
package files

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"cairn/internal/edge"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/rawjson"
	"cairn/internal/who"
)

const (
	filesAtOnce = 50       // that one form may send
	fieldBytes  = 4 << 10  // of a form's field beside files
	drained     = 16 << 20 // what is read of an upload that was refused: browsers show no answer that comes before they have sent all
)

// silence is how long a client that uploads may send nothing.
var silence = time.Minute

// Site is the server whose pages and credentials these are.
type Site struct {
	// Caller gives who calls, by a token or by a session, and counts the call; writes tells that it is no mere look. The error is the
	// refusal.
	Caller func(w http.ResponseWriter, r *http.Request, writes bool) (*who.Caller, error)
	// Visitor gives who is signed in. Where nobody is, it answers with the way to sign in, and ok is false.
	Visitor func(w http.ResponseWriter, r *http.Request) (c *who.Caller, ok bool)
	// Own refuses what no page of ours sends.
	Own func(r *http.Request) error
	// Wants tells whether a page is asked for.
	Wants   func(r *http.Request) bool
	Problem func(w http.ResponseWriter, r *http.Request, c *who.Caller, err error)
	// Uploaded answers the form of the page of files.
	Uploaded func(w http.ResponseWriter, r *http.Request, c *who.Caller, err error)
}

// Server moves files for a site.
type Server struct {
	Site   Site
	Runner *op.Runner
	Most   int64 // bytes of one file
}

// Form is the path that the form of the page of files sends to.
const Form = "/files/upload"

// Routes adds the routes by which the bytes of files come in and go out.
func (s *Server) Routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /api/files", s.uploadAPI)
	mux.HandleFunc("POST "+Form, s.uploadForm)
	mux.HandleFunc("GET /files/{id}", s.download)
	mux.HandleFunc("GET /files/{id}/thumbnail/{size}", s.download)
}

// uploadAPI stores files: the body is one, named by Content-Disposition (RFC 6266) or ?name, or it is a form (RFC 7578) with any.
func (s *Server) uploadAPI(w http.ResponseWriter, r *http.Request) {
	c, err := s.Site.Caller(w, r, true)
	if err != nil {
		s.unread(w, r, err)
		return
	}
	body, err := s.upload(w, r, who.With(r.Context(), c))
	if err != nil {
		s.unread(w, r, err)
		return
	}
	edge.JSON(w, http.StatusOK, body)
}

// unread answers a request whose body may not have been read.
func (s *Server) unread(w http.ResponseWriter, r *http.Request, err error) {
	drain(w, r)
	s.Site.Problem(w, r, nil, err)
}

// drain reads a little of what is left of a body and says that the connection ends.
func drain(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	if r.ContentLength <= drained {
		_, _ = io.CopyN(io.Discard, arriving{r.Body, http.NewResponseController(w)}, drained)
	}
}

// uploadForm is the form of the page of files.
func (s *Server) uploadForm(w http.ResponseWriter, r *http.Request) {
	if err := s.Site.Own(r); err != nil {
		w.Header().Set("Connection", "close")
		s.Site.Problem(w, r, nil, err)
		return
	}
	c, ok := s.Site.Visitor(w, r)
	if !ok {
		return
	}
	_, err := s.upload(w, r, who.With(r.Context(), c))
	if err != nil {
		drain(w, r)
	}
	s.Site.Uploaded(w, r, c, err)
}

// arriving is a body that may come slowly, but not stand still. What breaks it off is the client's fault.
type arriving struct {
	io.Reader
	rc *http.ResponseController
}

// Read reads what has come.
func (a arriving) Read(b []byte) (int, error) {
	_ = a.rc.SetReadDeadline(time.Now().Add(silence)) // a test's recorder has none
	n, err := a.Reader.Read(b)
	if err != nil {
		_ = a.rc.SetReadDeadline(time.Time{})
		if !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fault.Wrap(fault.InvalidRequest, err, "the upload broke off; nothing of that file was stored: send it again")
		}
	}
	return n, err
}

// upload stores what a request brings as the caller in ctx, and gives the answer.
func (s *Server) upload(w http.ResponseWriter, r *http.Request, ctx context.Context) ([]byte, error) { //nolint:revive // w and r come first, as in any handler
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		f := fault.New(fault.InvalidRequest, "a compressed body (Content-Encoding %q) is not accepted", enc)
		f.Status = http.StatusUnsupportedMediaType
		return nil, f
	}
	body := arriving{r.Body, http.NewResponseController(w)}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && kind == "multipart/form-data" {
		return s.uploadParts(ctx, multipart.NewReader(body, params["boundary"]), r.URL.Query().Get("heap"), r.ContentLength)
	}
	name := r.URL.Query().Get("name")
	if _, params, err := mime.ParseMediaType(r.Header.Get("Content-Disposition")); err == nil && params["filename"] != "" {
		name = params["filename"]
	}
	if name == "" {
		return nil, fault.Bad("name", "is missing: give the file's name as ?name=... or in Content-Disposition, or send a form (multipart/form-data)")
	}
	return s.uploadOne(ctx, body, name, r.URL.Query().Get("heap"), r.ContentLength)
}

// uploadOne stores one file. length is how many bytes are said to come, -1 where nobody said it.
func (s *Server) uploadOne(ctx context.Context, body io.Reader, name, heap string, length int64) ([]byte, error) {
	ctx, _, err := s.Runner.Admit(op.WithStream(ctx, &op.Stream{In: body}), "upload_file")
	if err != nil {
		return nil, err
	}
	if length > s.Most { // refused without reading; where it isn't said, the operation stops
		return nil, op.TooManyBytes(s.Most)
	}
	args := map[string]string{"name": name}
	if heap != "" {
		args["heap"] = heap
	}
	b, err := rawjson.Marshal(args)
	if err != nil {
		return nil, err
	}
	res, err := s.Runner.Run(ctx, "upload_file", b)
	return res.JSON, err
}

// uploadParts stores the files of a form, in their order.
func (s *Server) uploadParts(ctx context.Context, form *multipart.Reader, heap string, length int64) ([]byte, error) {
	out := struct {
		Count   int               `json:"count"`
		Uploads []json.RawMessage `json:"uploads"`
	}{Uploads: []json.RawMessage{}}
	if c := who.From(ctx); !s.Runner.May(c, "upload_file") { // before anything is read
		_, err := s.uploadOne(ctx, strings.NewReader(""), "", "", 0)
		return nil, err
	}
	if length > s.Most*filesAtOnce+1<<20 {
		return nil, op.TooManyBytes(s.Most)
	}
	for {
		p, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, partFault(err)
		}
		name := partName(p)
		if name == "" {
			if p.FormName() == "heap" && out.Count == 0 {
				b, err := io.ReadAll(io.LimitReader(p, fieldBytes))
				if err != nil {
					return nil, partFault(err)
				}
				heap = string(b)
			} else if p.FormName() == "heap" {
				return nil, fault.Bad("heap", "must come before the files of the form")
			}
			continue
		}
		if out.Count == filesAtOnce {
			return nil, fault.New(fault.Invalid, "a form may bring at most %d files: the first %d are stored, send the others by another", filesAtOnce, filesAtOnce)
		}
		one, err := s.uploadOne(ctx, ofForm{p}, name, heap, -1)
		if err != nil {
			if f := fault.From(err); out.Count > 0 && f.Kind != fault.Internal {
				f.Message += " (at the file " + name + "; the files before it are stored)"
			}
			return nil, err
		}
		out.Count, out.Uploads = out.Count+1, append(out.Uploads, one)
	}
	if out.Count == 0 {
		return nil, fault.Bad("file", "is missing: choose a file")
	}
	return rawjson.Marshal(out)
}

// ofForm is a part of a form: where the form ends within it, or is none any more, the client is at fault.
type ofForm struct{ io.Reader }

func (p ofForm) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if err != nil && err != io.EOF { //nolint:errorlint // io.EOF itself ends a part
		err = partFault(err)
	}
	return n, err
}

// partFault words what is wrong with a form, unless the connection is at fault.
func partFault(err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return err
	}
	return fault.Wrap(fault.InvalidRequest, err, "the form could not be read: send it as multipart/form-data (RFC 7578)")
}

// partNames are the characters that browsers write as escapes in the name of a part (HTML, "multipart form data").
var partNames = strings.NewReplacer("%22", `"`, "%0A", "\n", "%0D", "\r")

// partName gives the name of a part's file as the person has it; "" where the part is no file. The package's own FileName leaves
// of it what comes after the last slash.
func partName(p *multipart.Part) string {
	_, params, err := mime.ParseMediaType(p.Header.Get("Content-Disposition"))
	if err != nil {
		return p.FileName()
	}
	return partNames.Replace(params["filename"])
}

// readFile is what read_file says of the bytes beside it.
type readFile struct {
	SafeName  string    `json:"safe_name"`
	MediaType string    `json:"media_type"`
	ETag      string    `json:"etag"`
	Inline    bool      `json:"inline"`
	At        time.Time `json:"at"`
}

// download gives the bytes of a file or of a thumbnail to who may read them. To all others it answers as if there were none.
func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	var c *who.Caller
	var err error
	if r.Header.Get("Authorization") == "" && s.Site.Wants(r) {
		var ok bool
		if c, ok = s.Site.Visitor(w, r); !ok {
			return
		}
	} else if c, err = s.Site.Caller(w, r, false); err != nil {
		s.Site.Problem(w, r, nil, err)
		return
	}
	args := map[string]string{"file_id": r.PathValue("id")}
	if size := r.PathValue("size"); size != "" {
		args["thumbnail"] = size
	}
	b, err := rawjson.Marshal(args)
	if err != nil {
		s.Site.Problem(w, r, c, err)
		return
	}
	stream := &op.Stream{}
	res, err := s.Runner.Run(op.WithStream(who.With(r.Context(), c), stream), "read_file", b)
	if err != nil {
		switch fault.From(err).Kind {
		case fault.NotFound, fault.Invalid, fault.UnknownTool, fault.Denied, fault.Scope:
			err = fault.New(fault.NotFound, "there is nothing at %s", r.URL.Path)
		}
		s.Site.Problem(w, r, c, err)
		return
	}
	defer stream.Out.Close() //nolint:errcheck // it was read
	var f readFile
	if err := json.Unmarshal(res.JSON, &f); err != nil {
		s.Site.Problem(w, r, c, err)
		return
	}
	h := w.Header()
	disposition := "attachment"
	if f.Inline {
		disposition = "inline"
	}
	h.Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": f.SafeName}))
	h.Set("Content-Type", f.MediaType)
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "private, no-cache") // kept, but each time it is asked whether one may still have it
	h["Vary"] = append(h["Vary"], "Authorization")
	h.Set("ETag", `"`+f.ETag+`"`)
	http.ServeContent(w, r, "", f.At, stream.Out)
}
