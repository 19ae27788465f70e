package app_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/apptest"
	"cairn/internal/fault"
	"cairn/internal/signin"
)

// photo is a JPEG of some pixels.
func photo(t testing.TB, w, h int) string {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.Set(x, y, color.RGBA{uint8(x * 255 / w), uint8(y * 255 / h), 90, 255})
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const octets = "Content-Type: application/octet-stream"

type uploaded struct {
	ID     string
	Result string
	File   struct {
		ID, Name, SHA256, State, URL, Heap string
		MediaType                          string `json:"media_type"`
		Size                               int64
		Width, Height                      *int
		Thumbnails                         []struct {
			Size          string
			Width, Height int
			URL           string
		}
	}
}

// up uploads a file that must be taken.
func (w *world) up(t testing.TB, as, name, body string) uploaded {
	t.Helper()
	r := w.Do(t, "POST", "/api/files?heap=Personal&name="+url.QueryEscape(name), body, octets, "Authorization: Bearer "+w.tokens[as])
	if r.Status != http.StatusOK {
		t.Fatalf("%s: %d %s", name, r.Status, r.Body)
	}
	var out uploaded
	apptest.Decode(t, []byte(r.Body), &out)
	return out
}

func (w *world) down(t testing.TB, as, path string, headers ...string) apptest.Response {
	t.Helper()
	if as != "" {
		headers = append(headers, "Authorization: Bearer "+w.tokens[as])
	}
	return w.Do(t, "GET", path, "", headers...)
}

// kept lists the files below the folder of the store, those that are on their way apart.
func kept(t testing.TB, a *apptest.App) (objects, incoming []string) {
	t.Helper()
	dir := filepath.Join(a.Config.Data, "files")
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case os.IsNotExist(err):
			return nil
		case err != nil || d.IsDir():
			return err
		case filepath.Base(filepath.Dir(path)) == "incoming":
			incoming = append(incoming, path)
		default:
			objects = append(objects, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return objects, incoming
}

func TestUploadedBytesComeBack(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		name := "Plän \"q\" 山.txt"
		text := "Water the ferns.\n" + strings.Repeat("and the ivy. ", 5000)
		f := w.up(t, "rw", name, text)
		if f.Result != "created" || f.File.Name != name || f.File.Size != int64(len(text)) || f.File.MediaType != "text/plain; charset=utf-8" || f.File.URL != a.Server.URL+"/files/"+f.ID {
			t.Errorf("%+v", f)
		}
		r := w.down(t, "ro", "/files/"+f.ID)
		if r.Status != 200 || r.Body != text {
			t.Errorf("%d, %d bytes", r.Status, len(r.Body))
		}
		want := map[string]string{"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox", "Cache-Control": "private, no-cache",
			"Etag": `"` + f.File.SHA256 + `"`, "Accept-Ranges": "bytes", "Cross-Origin-Resource-Policy": "same-origin"}
		for k, v := range want {
			if r.Header.Get(k) != v {
				t.Errorf("%s: %q, want %q", k, r.Header.Get(k), v)
			}
		}
		kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Disposition"))
		if err != nil || kind != "inline" || params["filename"] != "Plän _q_ 山.txt" {
			t.Errorf("%s: %v", r.Header.Get("Content-Disposition"), err)
		}
		if r := w.down(t, "rw", "/files/"+f.ID, "Range: bytes=6-8"); r.Status != 206 || r.Body != "the" || r.Header.Get("Content-Range") != fmt.Sprintf("bytes 6-8/%d", len(text)) {
			t.Errorf("a range: %d %q %v", r.Status, r.Body, r.Header)
		}
		if r := w.down(t, "rw", "/files/"+f.ID, "Range: bytes=999999999-"); r.Status != 416 {
			t.Errorf("a range beyond the end: %d", r.Status)
		}
		if r := w.down(t, "rw", "/files/"+f.ID, `If-None-Match: "`+f.File.SHA256+`"`); r.Status != 304 || r.Body != "" {
			t.Errorf("what is known already: %d %q", r.Status, r.Body)
		}
		if r := w.Do(t, "HEAD", "/files/"+f.ID, "", "Authorization: Bearer "+w.tokens["rw"]); r.Status != 200 || r.Header.Get("Content-Length") != fmt.Sprint(len(text)) {
			t.Errorf("HEAD: %d %v", r.Status, r.Header)
		}
		// The same bytes once more are another file, and kept once.
		again := w.up(t, "rw", "again.txt", text)
		if objects, incoming := kept(t, a); again.ID == f.ID || again.File.SHA256 != f.File.SHA256 || len(objects) != 1 || len(incoming) != 0 {
			t.Errorf("%v, %v", objects, incoming)
		}
		empty := w.up(t, "rw", "empty", "")
		if r := w.down(t, "rw", "/files/"+empty.ID); r.Status != 200 || r.Body != "" || empty.File.Size != 0 {
			t.Errorf("a file of no bytes: %d %q", r.Status, r.Body)
		}
		// It is in the trash until somebody takes it back, and an upload is undone into it.
		a.Call(t, a.Person(t), "delete_block", `{"block_id":"`+f.ID+`"}`)
		if r := w.down(t, "rw", "/files/"+f.ID); r.Status != 200 {
			t.Errorf("from the trash: %d", r.Status)
		}
		var changes struct{ Changes []struct{ ID, Op string } }
		apptest.Decode(t, a.Call(t, a.Person(t), "list_changes", `{"thing":"`+again.ID+`"}`), &changes)
		if len(changes.Changes) != 1 || changes.Changes[0].Op != "upload_file" {
			t.Fatalf("%+v", changes)
		}
		a.Call(t, a.Person(t), "undo_change", `{"change_id":"`+changes.Changes[0].ID+`"}`)
		var list struct{ Files []struct{ ID, State string } }
		apptest.Decode(t, a.Call(t, a.Person(t), "list_files", `{"trashed":true}`), &list)
		if len(list.Files) != 2 || list.Files[0].ID != again.ID || list.Files[0].State != "trashed" {
			t.Errorf("%+v", list)
		}
	})
}

// zipped is a zip of a megabyte of nothing: files are never unpacked.
func zipped(t testing.TB) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	f, err := z.Create("../zeros.bin")
	if err == nil {
		_, err = f.Write(make([]byte, 1<<20))
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What a browser could run is only ever saved (CASES 40).
func TestWhatCouldRunIsOnlySaved(t *testing.T) {
	w := settle(t, alone(t, nil))
	for _, c := range []struct{ name, body, mediaType, how string }{
		{"x.svg", `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`, "image/svg+xml", "attachment"},
		{"x.png", `<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`, "image/svg+xml", "attachment"},
		{"x.jpg", `<!DOCTYPE html><script>alert(1)</script>`, "text/html; charset=utf-8", "attachment"},
		{"x.txt", "\n  <html><body onload=alert(1)>", "text/html; charset=utf-8", "attachment"},
		{"x.xml", `<?xml version="1.0"?><a xmlns:x="http://www.w3.org/1999/xhtml"><x:script>alert(1)</x:script></a>`, "text/xml; charset=utf-8", "attachment"},
		{"x.pdf", "%PDF-1.7\n1 0 obj<</OpenAction<</S/JavaScript/JS(app.alert(1))>>>>", "application/pdf", "attachment"},
		{"x.js", "#!/usr/bin/env node\nalert(1)", "text/javascript", "attachment"},
		{"x.zip", zipped(t), "application/zip", "attachment"},
		{"x.bin", "\x00\x01\x02\x03\xff\xfe", "application/octet-stream", "attachment"},
		{"page.html", "just words", "text/plain; charset=utf-8", "inline"},
		{"page.html", photo(t, 3, 2), "image/jpeg", "inline"},
		{"cut.png", "\x89PNG\r\n\x1a\n\x00\x00", "image/png", "inline"},
	} {
		f := w.up(t, "rw", c.name, c.body)
		r := w.down(t, "rw", "/files/"+f.ID)
		how, _, err := mime.ParseMediaType(r.Header.Get("Content-Disposition"))
		if err != nil || r.Header.Get("Content-Type") != c.mediaType || how != c.how || f.File.MediaType != c.mediaType || r.Header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(r.Header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s %q: %s, %s, %v", c.name, clip(c.body), r.Header.Get("Content-Type"), r.Header.Get("Content-Disposition"), err)
		}
	}
}

// Who may not read the heap learns nothing of what is in it, by whatever address (CASES 41).
func TestNoAddressOfAFileOpensWithoutRight(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		f := w.up(t, "rw", "Secret ferns.jpg", photo(t, 300, 200))
		trashed := w.up(t, "rw", "Gone.jpg", photo(t, 301, 200))
		a.Call(t, a.Person(t), "delete_block", `{"block_id":"`+trashed.ID+`"}`)
		ben := a.Account(t, "Ben")
		cookie, _, err := a.Signin.Start(context.Background(), signin.Person{Account: accountOf(t, a, ben), Method: signin.Phrase}, signin.From{Address: "127.0.0.1"})
		if err != nil {
			t.Fatal(err)
		}
		benToken := w.tokenOf(t, "Ben")
		paths := func(id string) []string {
			return []string{"/files/" + id, "/files/" + id + "/thumbnail/s", "/files/" + id + "/thumbnail/m", "/files/" + id + "/thumbnail/l", "/files/" + id + "/thumbnail/x"}
		}
		for who, headers := range map[string][]string{
			"nobody":                              nil,
			"nobody, for a page":                  {"Accept: text/html"},
			"a token without the heap":            {"Authorization: Bearer " + w.tokens["work"]},
			"a token without the area":            {"Authorization: Bearer " + w.tokens["tasks"]},
			"somebody else's token":               {"Authorization: Bearer " + benToken},
			"somebody else's session":             {"Cookie: " + a.Signin.CookieName() + "=" + cookie},
			"somebody else's session, for a page": {"Cookie: " + a.Signin.CookieName() + "=" + cookie, "Accept: text/html"},
			"an expired token":                    {"Authorization: Bearer " + w.tokens["expired"]},
			"a revoked token":                     {"Authorization: Bearer " + w.tokens["revoked"]},
			"a token from another address":        {"Authorization: Bearer " + w.tokens["distant"]},
			"a made up token":                     {"Authorization: Bearer cairn_" + strings.Repeat("a", 52)},
		} {
			a.Clock.Move(2 * time.Minute) // who isn't known may ask a hundred times a minute
			t.Run(who, func(t *testing.T) {
				for _, id := range []string{f.ID, trashed.ID, w.words["block"], "nonsense"} {
					there, absents := paths(id), paths(absent)
					for i := range there {
						r1, r2 := w.Do(t, "GET", there[i], "", headers...), w.Do(t, "GET", absents[i], "", headers...)
						b1 := requestID.ReplaceAllString(strings.ReplaceAll(r1.Body, id, "ID"), "ID")
						b2 := requestID.ReplaceAllString(r2.Body, "ID")
						if r1.Status != r2.Status || b1 != b2 || r1.Status < 400 && !strings.Contains(b1, "<title>Sign in") {
							t.Errorf("%s: %d %s, absent: %d %s", there[i], r1.Status, clip(b1), r2.Status, clip(b2))
						}
						known := strings.Contains(who, "without") || strings.Contains(who, "somebody else")
						if known && r1.Status != http.StatusNotFound || !known && r1.Status == http.StatusNotFound {
							t.Errorf("%s: %d", there[i], r1.Status)
						}
						for _, h := range []string{"Etag", "Content-Disposition", "Last-Modified", "Accept-Ranges"} {
							if r1.Header.Get(h) != "" {
								t.Errorf("%s tells %s: %s", there[i], h, r1.Header.Get(h))
							}
						}
					}
				}
			})
		}
		a.Clock.Move(2 * time.Minute)
		for _, as := range []string{"ro", "rw"} {
			if r := w.down(t, as, "/files/"+f.ID+"/thumbnail/s"); r.Status != 200 || !strings.HasPrefix(r.Header.Get("Cache-Control"), "private") {
				t.Errorf("%s: %d %v", as, r.Status, r.Header)
			}
		}
		// Reading alone puts nothing in, by a body or a form, and no cross-site page does.
		mine, _, err := a.Signin.Start(context.Background(), signin.Person{Account: accountOf(t, a, a.Person(t)), Method: signin.Phrase}, signin.From{Address: "127.0.0.1"})
		if err != nil {
			t.Fatal(err)
		}
		form, kind := aForm(t, [][3]string{{"file", "x.txt", "x"}})
		session := "Cookie: " + a.Signin.CookieName() + "=" + mine
		for _, c := range []struct {
			path, body string
			status     int
			headers    []string
		}{
			{"/api/files?name=x", "x", 403, []string{octets, "Authorization: Bearer " + w.tokens["ro"]}},
			{"/api/files", form, 403, []string{kind, "Authorization: Bearer " + w.tokens["ro"]}},
			{"/api/files?name=x", "x", 404, []string{octets, "Authorization: Bearer " + w.tokens["tasks"]}},
			{"/api/files?name=x", "x", 401, []string{octets}},
			{"/api/files?name=x", "x", 401, []string{octets, "Authorization: Bearer " + w.tokens["revoked"]}},
			{"/api/files?name=x", "x", 403, []string{octets, session}},
			{"/api/files?name=x", "x", 403, []string{octets, session, "Origin: http://evil.example"}},
			{"/files/upload", form, 403, []string{kind, session}},
			{"/files/upload", form, 403, []string{kind, session, "Sec-Fetch-Site: cross-site"}},
			{"/api/files?name=x&heap=Personal", "x", 404, []string{octets, "Authorization: Bearer " + w.tokens["work"]}},
			{"/api/upload_file", `{"name":"x"}`, 404, []string{"Content-Type: application/json", "Authorization: Bearer " + w.tokens["rw"]}},
			{"/api/read_file", `{"file_id":"` + f.ID + `"}`, 404, []string{"Content-Type: application/json", "Authorization: Bearer " + w.tokens["rw"]}},
			{"/api/files?name=x", "x", 415, []string{octets, "Content-Encoding: gzip", "Authorization: Bearer " + w.tokens["rw"]}},
			{"/api/files", "x", 400, []string{octets, "Authorization: Bearer " + w.tokens["rw"]}},
			{"/api/files?name=" + strings.Repeat("x", 301), "x", 400, []string{octets, "Authorization: Bearer " + w.tokens["rw"]}},
			{"/api/files?name=a%00b", "x", 400, []string{octets, "Authorization: Bearer " + w.tokens["rw"]}},
		} {
			if r := w.Do(t, "POST", c.path, c.body, c.headers...); r.Status != c.status {
				t.Errorf("POST %s %v: %d %s, want %d", c.path, c.headers, r.Status, r.Body, c.status)
			}
		}
		if objects, incoming := kept(t, a); len(objects) != 5 || len(incoming) != 0 { // two pictures, three thumbnails
			t.Errorf("%d objects, %v", len(objects), incoming)
		}
		// Our own page does.
		if r := w.Do(t, "POST", "/api/files?name=x", "x", octets, session, "Origin: "+a.Server.URL); r.Status != 200 {
			t.Errorf("our own page: %d %s", r.Status, r.Body)
		}
		if r := w.Do(t, "GET", "/files/"+f.ID, "", session, "Accept: text/html"); r.Status != 200 || r.Header.Get("Content-Type") != "image/jpeg" {
			t.Errorf("in a browser: %d %v", r.Status, r.Header)
		}
	})
}

func accountOf(t testing.TB, a *apptest.App, ctx context.Context) string {
	t.Helper()
	var out struct{ Account struct{ ID string } }
	apptest.Decode(t, a.Call(t, ctx, "get_account", `{}`), &out)
	return out.Account.ID
}

// tokenOf makes a token of another account's.
func (w *world) tokenOf(t testing.TB, name string) string {
	t.Helper()
	var out struct{ Secret string }
	apptest.Decode(t, w.Call(t, w.PersonNamed(t, name), "create_token", `{"name":"hers","rate":0}`), &out)
	return out.Secret
}

// aForm writes a form of parts {field, file name, body}; no file name makes a plain field.
func aForm(t testing.TB, parts [][3]string) (body, contentType string) {
	t.Helper()
	var b bytes.Buffer
	f := multipart.NewWriter(&b)
	for _, p := range parts {
		h := textproto.MIMEHeader{}
		h.Set("Content-Disposition", `form-data; name="`+p[0]+`"`)
		if p[1] != "" { // as browsers write it
			h.Set("Content-Disposition", h.Get("Content-Disposition")+`; filename="`+strings.NewReplacer(`"`, "%22", "\n", "%0A", "\r", "%0D").Replace(p[1])+`"`)
			h.Set("Content-Type", "image/png")
		}
		w, err := f.CreatePart(h)
		if err == nil {
			_, err = io.WriteString(w, p[2])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), "Content-Type: " + f.FormDataContentType()
}

// Names are kept as they are, whatever stands in them (CASES 20, 36).
func TestFormsBringFilesWithTheirNames(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		names := []string{"simple.txt", "with spaces and ü.txt", `say "hi".txt`, "../evil.md", `C:\dev\x.txt`, "17/12/30 plan", "..", ".", "CON", ".hidden", "tail ", "two\nlines", "\u202etxt.exe", "🌿", "a;b=c.txt", "100%.txt", "x.PNG"}
		parts := [][3]string{{"heap", "", "Work"}}
		for i, n := range names {
			parts = append(parts, [3]string{"file", n, fmt.Sprint("bytes ", i)})
		}
		body, kind := aForm(t, parts)
		r := w.Do(t, "POST", "/api/files", body, kind, "Authorization: Bearer "+w.tokens["rw"])
		var out struct {
			Count   int
			Uploads []uploaded
		}
		apptest.Decode(t, []byte(r.Body), &out)
		if r.Status != 200 || out.Count != len(names) || len(out.Uploads) != len(names) {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		work := heapNamed(t, a, "Work")
		for i, f := range out.Uploads {
			if f.File.Name != names[i] || f.File.Heap != work || f.File.MediaType != "text/plain; charset=utf-8" {
				t.Errorf("%q became %q in %s, %s", names[i], f.File.Name, f.File.Heap, f.File.MediaType)
			}
			var b struct{ Block struct{ Title, Type string } }
			apptest.Decode(t, a.Call(t, a.Person(t), "get_block", `{"block_id":"`+f.ID+`"}`), &b)
			if b.Block.Title != names[i] || b.Block.Type != "file" {
				t.Errorf("%q is the block %+v", names[i], b)
			}
			r := w.down(t, "rw", "/files/"+f.ID)
			_, params, err := mime.ParseMediaType(r.Header.Get("Content-Disposition"))
			if safe := params["filename"]; err != nil || safe == "" || strings.ContainsAny(safe, "/\\\n\u202e") || strings.HasPrefix(safe, ".") {
				t.Errorf("%q is to be saved as %q: %v", names[i], safe, err)
			}
		}
		for _, c := range []struct {
			parts [][3]string
			want  string
		}{
			{[][3]string{{"heap", "", "Work"}}, "choose a file"},
			{nil, "choose a file"},
			{[][3]string{{"file", "a", "x"}, {"heap", "", "Work"}}, "must come before the files"},
			{[][3]string{{"heap", "", "Nowhere"}, {"file", "a", "x"}}, "Nowhere"},
		} {
			body, kind := aForm(t, c.parts)
			if r := w.Do(t, "POST", "/api/files", body, kind, "Authorization: Bearer "+w.tokens["rw"]); r.Status < 400 || r.Status > 404 || !strings.Contains(r.Body, c.want) {
				t.Errorf("%v: %d %s", c.parts, r.Status, r.Body)
			}
		}
		for cut := range len("\r\n--") + 10 { // a form that ends too early, in its last file or its last line
			body, kind := aForm(t, [][3]string{{"file", "cut.txt", "x"}})
			end := strings.LastIndex(body, "\r\n--") + cut
			if r := w.Do(t, "POST", "/api/files", body[:end], kind, "Authorization: Bearer "+w.tokens["rw"]); r.Status != 400 {
				t.Errorf("a form without its end: %d %s", r.Status, r.Body)
			}
		}
		for _, kind := range []string{"Content-Type: multipart/form-data", "Content-Type: multipart/form-data; boundary=zzz"} {
			if r := w.Do(t, "POST", "/api/files", body, kind, "Authorization: Bearer "+w.tokens["rw"]); r.Status != 400 {
				t.Errorf("%s: %d %s", kind, r.Status, r.Body)
			}
		}
	})
}

func heapNamed(t testing.TB, a *apptest.App, name string) string {
	t.Helper()
	var out struct{ Heaps []struct{ ID, Name string } }
	apptest.Decode(t, a.Call(t, a.Person(t), "list_heaps", `{}`), &out)
	for _, h := range out.Heaps {
		if h.Name == name {
			return h.ID
		}
	}
	t.Fatalf("no heap %s", name)
	return ""
}

// zeros is a body without an end; it counts what was taken of it.
type zeros struct{ n atomic.Int64 }

func (z *zeros) Read(b []byte) (int, error) {
	z.n.Add(int64(len(b)))
	return len(b), nil
}

func TestTooLargeIsRefusedAndLeavesNothing(t *testing.T) {
	apptest.Each(t, map[string]string{"CAIRN_MAX_UPLOAD": "1MiB"}, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		bearer := "Bearer " + w.tokens["rw"]
		if f := w.up(t, "rw", "most.bin", strings.Repeat("\x00", 1<<20)); f.File.Size != 1<<20 {
			t.Errorf("%+v", f)
		}
		refused := func(what string, status int, body string) {
			t.Helper()
			if status != http.StatusRequestEntityTooLarge || !strings.Contains(body, "1048576") || !strings.Contains(body, `"limit":1048576`) {
				t.Errorf("%s: %d %s", what, status, body)
			}
		}
		r := w.Do(t, "POST", "/api/files?name=x", strings.Repeat("\x00", 1<<20+1), octets, "Authorization: "+bearer)
		refused("a byte too many", r.Status, r.Body)
		form, kind := aForm(t, [][3]string{{"file", "x", strings.Repeat("\x00", 1<<20+1)}})
		r = w.Do(t, "POST", "/api/files", form, kind, "Authorization: "+bearer)
		refused("in a form", r.Status, r.Body)

		// 5 GB, said before and not said: hardly anything of it is taken.
		for what, length := range map[string]int64{"said": 5 << 30, "unsaid": -1} {
			body := &zeros{}
			req, err := http.NewRequest("POST", a.Server.URL+"/api/files?name=x", io.LimitReader(body, 5<<30))
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = length
			req.Header.Set("Authorization", bearer)
			req.Header.Set("Content-Type", "application/octet-stream")
			res, err := a.Server.Client().Do(req)
			if err == nil { // else the connection was closed while it still sent
				b, _ := io.ReadAll(res.Body)
				_ = res.Body.Close()
				refused("5 GB, "+what, res.StatusCode, string(b))
			}
			if sent := body.n.Load(); sent > 64<<20 {
				t.Errorf("5 GB, %s: %d bytes were sent", what, sent)
			}
		}
		if objects, incoming := kept(t, a); len(objects) != 1 || len(incoming) != 0 {
			t.Errorf("left: %v, %v", objects, incoming)
		}
		var list struct{ Count int }
		apptest.Decode(t, a.Call(t, a.Person(t), "list_files", `{}`), &list)
		if list.Count != 1 {
			t.Errorf("%d files", list.Count)
		}
	})
}

func TestUploadThatBreaksOffLeavesNothing(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		for _, head := range []string{"Content-Length: 100000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\nffff\r\n"} {
			c, err := net.Dial("tcp", a.Server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(c, "POST /api/files?name=half HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/octet-stream\r\n%s%s",
				w.words["host"], w.tokens["rw"], head, strings.Repeat("x", 30000))
			for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
				if _, incoming := kept(t, a); len(incoming) == 1 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("the upload didn't begin")
				}
			}
			_ = c.Close()
			for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
				objects, incoming := kept(t, a)
				if len(incoming)+len(objects) == 0 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("left: %v, %v", objects, incoming)
				}
			}
		}
		var list struct{ Count int }
		apptest.Decode(t, a.Call(t, a.Person(t), "list_files", `{}`), &list)
		if list.Count != 0 {
			t.Errorf("%d files", list.Count)
		}
	})
}

func TestListFilesTellsThumbnailsAndPages(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		f := w.up(t, "rw", "ferns.jpg", photo(t, 1500, 1000))
		small := w.up(t, "rw", "small.jpg", photo(t, 100, 200))
		text := w.up(t, "rw", "notes.txt", "words")
		var block struct{ ID string }
		apptest.Decode(t, a.Call(t, a.Person(t), "create_block", `{"title":"Shows","heap":"Personal","content":"![ferns](cairn:file/`+f.ID+`)\n\n[notes](cairn:file/`+text.ID+`)"}`), &block)
		type listed struct {
			Count      int
			Files      []json.RawMessage
			NextCursor string `json:"next_cursor"`
		}
		names := func(args string) (list []string, out listed) {
			apptest.Decode(t, a.Call(t, a.As(t, w.tokens["ro"]), "list_files", args), &out)
			for _, raw := range out.Files {
				var f struct{ Name string }
				apptest.Decode(t, raw, &f)
				list = append(list, f.Name)
			}
			return list, out
		}
		for args, want := range map[string]string{
			`{}`:                                     "notes.txt small.jpg ferns.jpg",
			`{"heap":"Personal"}`:                    "notes.txt small.jpg ferns.jpg",
			`{"heap":"Work"}`:                        "",
			`{"block_id":"` + f.ID + `"}`:            "ferns.jpg",
			`{"block_id":"` + block.ID + `"}`:        "notes.txt ferns.jpg",
			`{"block_id":"` + w.words["leaf"] + `"}`: "",
		} {
			if got, _ := names(args); strings.Join(got, " ") != want {
				t.Errorf("%s: %v, want %s", args, got, want)
			}
		}
		var paged []string
		for cursor := ""; ; {
			got, out := names(`{"limit":1,"cursor":"` + cursor + `"}`)
			paged = append(paged, got...)
			if cursor = out.NextCursor; cursor == "" {
				break
			}
		}
		if strings.Join(paged, " ") != "notes.txt small.jpg ferns.jpg" {
			t.Errorf("page by page: %v", paged)
		}
		for _, c := range []struct {
			f    uploaded
			want string
		}{{f, "s 160x107, m 480x320, l 1280x853"}, {small, "s 80x160, m 100x200, l 100x200"}, {text, ""}} {
			var got []string
			for _, th := range c.f.File.Thumbnails {
				got = append(got, fmt.Sprintf("%s %dx%d", th.Size, th.Width, th.Height))
				path := strings.TrimPrefix(th.URL, a.Server.URL)
				r := w.down(t, "ro", path)
				m, _, err := image.DecodeConfig(strings.NewReader(r.Body))
				if r.Status != 200 || err != nil || m.Width != th.Width || m.Height != th.Height || r.Header.Get("Content-Type") != "image/jpeg" || strings.Contains(th.URL, "cairn_") {
					t.Errorf("%s: %d, %v, %v", th.URL, r.Status, m, err)
				}
				if again := w.down(t, "ro", path, "If-None-Match: "+r.Header.Get("Etag")); again.Status != 304 {
					t.Errorf("%s again: %d", th.URL, again.Status)
				}
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("%s: %v, want %s", c.f.File.Name, got, c.want)
			}
		}
		if r := w.down(t, "ro", "/files/"+text.ID+"/thumbnail/s"); r.Status != http.StatusNotFound {
			t.Errorf("a thumbnail of a text: %d", r.Status)
		}
		if got, _ := names(`{"block_id":"` + f.ID + `","limit":1}`); len(got) != 1 {
			t.Errorf("%v", got)
		}
		a.Fails(t, a.Person(t), "list_files", `{"block_id":"`+f.ID+`","heap":"Work"}`, fault.Invalid)
		a.Fails(t, a.Person(t), "list_files", `{"cursor":"nonsense"}`, fault.Invalid)
	})
}

// File bytes go in and out by no MCP tool.
func TestBytesOfFilesAreNoTools(t *testing.T) {
	w := settle(t, alone(t, nil))
	for _, m := range manners {
		for _, sets := range []string{"", "?toolsets=documents", "?toolsets=documents,record"} {
			s := m.request("rw", "7", "tools/list", "", "")
			s.do = "POST " + m.path + sets
			r := w.send(t, s)
			if r.Status != 200 || sets != "" && !strings.Contains(r.Body, `"list_files"`) || regexp.MustCompile(`"(upload|read)_file"`).MatchString(r.Body) {
				t.Errorf("%s%s: %d %s", m.name, sets, r.Status, clip(r.Body))
			}
		}
		for _, tool := range []string{"upload_file", "read_file"} {
			r := w.send(t, m.call("rw", tool, `{"name":"x","file_id":"`+absent+`"}`))
			if !regexp.MustCompile(`(?i)unknown.tool|is no tool|-3260[12]|-32005`).MatchString(r.Body) {
				t.Errorf("%s %s: %d %s", m.name, tool, r.Status, r.Body)
			}
		}
	}
}
