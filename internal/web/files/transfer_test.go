package files_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"cairn/internal/edge"
	"cairn/internal/op"
	"cairn/internal/web/files"
	"cairn/internal/who"
)

func part(disposition string) *multipart.Part {
	return &multipart.Part{Header: textproto.MIMEHeader{"Content-Disposition": {disposition}}}
}

// What a browser makes of a name in a form comes out as the name (HTML, "multipart form data").
func TestNamesComeOutOfForms(t *testing.T) {
	browser := strings.NewReplacer(`"`, "%22", "\n", "%0A", "\r", "%0D")
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.StringN(1, 300, -1), rapid.StringMatching(`[ -~]{1,60}`)).Draw(t, "name")
		for _, escape := range []string{"%22", "%0A", "%0D", "\x00"} { // who is called so can't be told from who is escaped
			name = strings.ReplaceAll(name, escape, "")
		}
		// A backslash before a quote or another is one in a quoted string: browsers write it as it is, and it is read leniently.
		name = strings.NewReplacer(`\\`, "", `\`, "").Replace(name)
		if name == "" || strings.ContainsFunc(name, func(r rune) bool {
			return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 127 || r == utf8.RuneError
		}) {
			t.Skip("no name that a browser sends")
		}
		if got := files.PartName(part(`form-data; name="file"; filename="` + browser.Replace(name) + `"`)); got != name {
			t.Fatalf("%q became %q", name, got)
		}
	})
	for disposition, want := range map[string]string{
		`form-data; name="heap"`: "", `form-data; name="file"; filename=""`: "", `form-data; name="file"; filename="C:\dev\x.txt"`: `C:\dev\x.txt`, `form-data; name="file"; filename="say \"hi\""`: `say "hi"`,
		`form-data; name="file"; filename="a/../b"`: "a/../b", `form-data; name="file"; filename*=UTF-8''%C3%BC.txt`: "ü.txt", `nonsense; ;`: "", "": "",
	} {
		if got := files.PartName(part(disposition)); got != want {
			t.Errorf("%s: %q, want %q", disposition, got, want)
		}
	}
}

func FuzzPartName(f *testing.F) {
	for _, s := range []string{`form-data; name="file"; filename="x"`, `form-data; filename*=UTF-8''%C3%BC`, `form-data; filename*0="a"; filename*1="b"`, `;;=`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, disposition string) { _ = files.PartName(part(disposition)) })
}

// A client that stops in the middle, and stays, is not waited for.
func TestUploadThatStandsStillIsCut(t *testing.T) {
	defer files.SetSilence(300 * time.Millisecond)()
	log := slog.New(slog.DiscardHandler)
	got := make(chan error, 9)
	upload := op.Define(op.Op{Name: "upload_file", Title: "x", Doc: "x", Area: who.Core, Effect: op.Write, Bytes: true}, func(ctx context.Context, _ struct {
		Name string `json:"name"`
	},
	) (struct{}, error) {
		_, err := io.Copy(io.Discard, op.StreamFrom(ctx).In)
		got <- err
		return struct{}{}, err
	})
	s := &files.Server{Most: 1 << 20, Runner: op.NewRunner(log, upload), Site: files.Site{
		Caller: func(http.ResponseWriter, *http.Request, bool) (*who.Caller, error) {
			return &who.Caller{Write: true}, nil
		},
		Problem: func(w http.ResponseWriter, _ *http.Request, _ *who.Caller, err error) { edge.Fail(w, err) },
	}}
	mux := http.NewServeMux()
	s.Routes(mux)
	server := httptest.NewServer(mux)
	defer server.Close()
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", address.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST /api/files?name=x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
	for range 5 { // slow is no fault
		time.Sleep(100 * time.Millisecond)
		fmt.Fprint(c, "xxxxx")
	}
	select {
	case err := <-got:
		t.Fatalf("a slow upload was cut: %v", err)
	default:
	}
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusBadRequest || !strings.Contains(string(b), "broke off") || !res.Close {
		t.Errorf("%d %s", res.StatusCode, b)
	}
}
