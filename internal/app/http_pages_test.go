package app_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"cairn/internal/apptest"
	"cairn/internal/signin"
)

// browser is somebody signed in who looks at pages and sends their forms.
type browser struct {
	a      *apptest.App
	cookie string
}

func browse(t testing.TB, a *apptest.App, as context.Context) browser {
	t.Helper()
	a.Server.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	cookie, _, err := a.Signin.Start(context.Background(), signin.Person{Account: accountOf(t, a, as), Method: signin.Phrase}, signin.From{Address: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	return browser{a, "Cookie: " + a.Signin.CookieName() + "=" + cookie}
}

// mistakes are the texts that say what is wrong with a form.
var mistakes = regexp.MustCompile(`(?s)<div class="errors".*?</div>`)

// open looks at a page, which is never at fault itself.
func (b browser) open(t testing.TB, path string) apptest.Response {
	t.Helper()
	r := b.a.Do(t, "GET", path, "", b.cookie, "Accept: text/html")
	if r.Status >= 500 {
		t.Errorf("GET %s: %d %s", path, r.Status, mistakes.FindString(r.Body))
	}
	return r
}

// send sends a form of names and values; it gives where the answer leads and what it says is wrong.
func (b browser) send(t testing.TB, path string, fields ...string) (status int, to, wrong string) {
	t.Helper()
	f := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		f.Add(fields[i], fields[i+1])
	}
	r := b.a.Do(t, "POST", path, f.Encode(), b.cookie, "Accept: text/html", "Origin: "+b.a.Server.URL, "Content-Type: application/x-www-form-urlencoded")
	if r.Status >= 500 {
		t.Errorf("POST %s: %d %s", path, r.Status, r.Body)
	}
	if !(r.Status == 303 && r.Header.Get("Location") != "" || r.Status >= 400 && mistakes.MatchString(r.Body) || r.Status == 404) {
		t.Errorf("POST %s %.200q: %d, and nothing says why", path, fields, r.Status)
	}
	return r.Status, r.Header.Get("Location"), mistakes.FindString(r.Body)
}

// write makes a block by a page and gives its path.
func (b browser) write(t testing.TB, fields ...string) string {
	t.Helper()
	status, to, wrong := b.send(t, "/docs/new", append([]string{"act", "create"}, fields...)...)
	path, _, ok := strings.Cut(to, "?done=doc-created")
	if status != 303 || !ok {
		t.Fatalf("%.200q: %d %s %s", fields, status, to, wrong)
	}
	return path
}

func (b browser) hash(t testing.TB, path string) string {
	t.Helper()
	var out struct{ Block struct{ Hash string } }
	apptest.Decode(t, b.a.Call(t, b.a.Person(t), "get_block", `{"block_id":"`+strings.TrimPrefix(path, "/blocks/")+`"}`), &out)
	return out.Block.Hash
}

// A second click on Save is no conflict with oneself, and writes nothing twice.
func TestAFormOfADocumentThatIsSentTwiceIsSavedOnce(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		b := browse(t, a, a.Person(t))
		at := b.write(t, "title", "Ferns", "content", "one")
		fields := []string{"act", "save", "base_hash", b.hash(t, at), "title", "Mosses", "content", "one\r\n\r\ntwo\r\n"}
		if _, to, wrong := b.send(t, at+"/edit", fields...); to != at+"?done=doc-saved" {
			t.Fatalf("%s %s", to, wrong)
		}
		if _, to, wrong := b.send(t, at+"/edit", fields...); to != at+"?done=doc-same" {
			t.Errorf("sent again: %s %s", to, wrong)
		}
		if page := b.open(t, at).Body; strings.Count(page, ">two<") != 1 {
			t.Errorf("the page has it %d times", strings.Count(page, ">two<"))
		}
	})
}

// A tag that can't be added is not made either, and the page says why, also where it shows no forms any more.
func TestAFormThatIsGoneFromThePageStillSaysWhyItFailed(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		b := browse(t, a, a.Person(t))
		at := b.write(t, "title", "Ferns")
		if _, to, wrong := b.send(t, at, "act", "trash"); to != "/docs?done=doc-trashed" {
			t.Fatalf("%s %s", to, wrong)
		}
		for _, fields := range [][]string{{"act", "tag", "title", "Stray"}, {"act", "set", "key", "k", "value", "v"}} {
			if status, _, wrong := b.send(t, at, fields...); status != 409 || !strings.Contains(wrong, "trash") {
				t.Errorf("%v in the trash: %d %q", fields, status, wrong)
			}
		}
		if strings.Contains(b.open(t, "/docs").Body, "Stray") {
			t.Error("a tag was made for nothing")
		}
	})
}

// What somebody writes as a property stands there as written, unless they say that it is a number.
func TestAPropertyKeepsTheDigitsThatWereTyped(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		b := browse(t, a, a.Person(t))
		at := b.write(t, "title", "Ferns")
		for i, text := range []string{"0043660123456", "+43660123456", "12345678901234567890", "1.10", "007", "1e5", "7", "-1.5", "1e999", "2026-08-31", "javascript:alert(1)"} {
			key := fmt.Sprint("k", i)
			for range 2 { // the second time it is there, with a type
				if status, _, wrong := b.send(t, at, "act", "set", "key", key, "value", text, "type", ""); status != 303 {
					t.Errorf("%s: %d %s", text, status, wrong)
				}
			}
			shown := strings.ReplaceAll(text, "+", "&#43;")
			if page := b.open(t, at).Body; !strings.Contains(page, `<dt><bdi>`+key+`</bdi></dt><dd><bdi>`+shown+`</bdi>`) {
				t.Errorf("%s isn't shown as it was typed", text)
			}
		}
		b.send(t, at, "act", "set", "key", "words", "value", "abc", "type", "")
		if status, _, wrong := b.send(t, at, "act", "set", "key", " words ", "value", "12", "type", ""); status != 303 {
			t.Errorf("a number for a property of text: %d %s", status, wrong)
		}
		b.send(t, at, "act", "set", "key", "n", "value", "1.1", "type", "number")
		if status, _, wrong := b.send(t, at, "act", "set", "key", "n", "value", "1.20", "type", ""); status != 303 {
			t.Errorf("a number for a property of numbers: %d %s", status, wrong)
		}
	})
}

// A number of a version beyond all that are there is none of them: it must not stand for another.
func TestAVersionBeyondTheLastIsNotThere(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		b := browse(t, a, a.Person(t))
		at := b.write(t, "title", "Ferns", "content", "one")
		for _, n := range []string{"2", "100001", "99999999999", "99999999999999999999999"} {
			for _, path := range []string{"?version=" + n, "/changes?from=1&to=" + n, "/changes?from=" + n} {
				if r := b.open(t, at+path); r.Status != 404 {
					t.Errorf("%s: %d", path, r.Status)
				}
			}
			if status, to, _ := b.send(t, at+"/history", "act", "restore", "version", n, "base_hash", b.hash(t, at)); status != 404 {
				t.Errorf("restoring %s: %d %s", n, status, to)
			}
		}
	})
}

// Who isn't signed in has no body read, and who has no right learns and changes nothing, whatever form they send.
func TestFormsOfDocumentsAskForTheRightFirst(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		b := browse(t, a, a.Person(t))
		at := b.write(t, "title", "Secret ferns", "content", "hidden", "heap", "Work")
		if r := a.Do(t, "POST", at+"/edit", "content="+strings.Repeat("x", 13<<20), "Accept: text/html", "Origin: "+a.Server.URL, "Content-Type: application/x-www-form-urlencoded"); r.Status != 303 || r.Header.Get("Location") != "/sign-in" {
			t.Errorf("nobody's long form: %d %s", r.Status, r.Header.Get("Location"))
		}
		reader := a.Account(t, "Reader")
		a.Call(t, a.Person(t), "invite_member", `{"heap":"Work","account":"reader","role":"viewer"}`)
		var out struct{ Invites []struct{ ID string } }
		apptest.Decode(t, a.Call(t, reader, "list_invites", `{}`), &out)
		a.Call(t, reader, "respond_invite", `{"invite_id":"`+out.Invites[0].ID+`","accept":true}`)
		viewer, stranger := browse(t, w.App, reader), browse(t, w.App, a.Account(t, "Stranger"))
		before := b.hash(t, at)
		for _, form := range [][]string{{"", "pin"}, {"", "unpin"}, {"", "trash"}, {"", "restore"}, {"", "tag", "title", "t"}, {"", "untag", "to", absent}, {"", "set", "key", "k", "value", "v"}, {"", "remove", "key", "k"},
			{"/edit", "save", "base_hash", before, "title", "x", "content", "y"}, {"/history", "restore", "version", "1", "base_hash", before}, {"/purge", "purge", "title", "Secret ferns"}} {
			fields := append([]string{"act", form[1]}, form[2:]...)
			if status, _, wrong := viewer.send(t, at+form[0], fields...); status < 400 || wrong == "" {
				t.Errorf("a viewer: %v: %d %s", form, status, wrong)
			}
			for _, path := range []string{at, "/blocks/" + absent, "/blocks/nonsense"} {
				if status, _, wrong := stranger.send(t, path+form[0], fields...); status != 404 || wrong != "" {
					t.Errorf("a stranger: %s %v: %d %s", path, form, status, wrong)
				}
			}
		}
		if b.hash(t, at) != before || !strings.Contains(b.open(t, at).Body, "hidden") {
			t.Error("something was changed")
		}
	})
}
