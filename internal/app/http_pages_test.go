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

// A title may have characters that nobody sees or types: a block is named and deleted for good all the same.
func TestATitleThatNobodySeesIsNamedAndTyped(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		b := browse(t, a, a.Person(t))
		for title, name := range map[string]string{"\u200b": "Note without a title", "\u202e \u2066": "Note without a title", "": "Note without a title", "  Two  words\u200b ": "Two words", "cafe\u0301": "caf\u00e9", "\u202eferns": "ferns", "👩\u200d🌾": "👩\u200d🌾", "<b>": "<b>"} {
			at := b.write(t, "title", title)
			if page := b.open(t, "/docs").Body; name == "Note without a title" && !strings.Contains(page, `<a href="`+at+`" dir="auto">`+name+`</a>`) {
				t.Errorf("%q has no name in the list", title)
			}
			b.send(t, at, "act", "trash")
			if _, _, wrong := b.send(t, at+"/purge", "act", "purge", "title", "another"); !strings.Contains(wrong, "isn&#39;t the title") {
				t.Errorf("%q is deleted by another title: %s", title, wrong)
			}
			if _, to, wrong := b.send(t, at+"/purge", "act", "purge", "title", name); to != "/docs/trash?done=doc-purged" {
				t.Errorf("%q isn't deleted by %q: %s", title, name, wrong)
			}
		}
	})
}

// What a form brought is there still when it was refused: the text, and where a new block is to stand.
func TestARefusedFormKeepsTheTextAndThePlace(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		b := browse(t, a, a.Person(t))
		again := func(path string, fields ...string) string {
			f := url.Values{}
			for i := 0; i < len(fields); i += 2 {
				f.Add(fields[i], fields[i+1])
			}
			return a.Do(t, "POST", path, f.Encode(), b.cookie, "Accept: text/html", "Origin: "+a.Server.URL, "Content-Type: application/x-www-form-urlencoded").Body
		}
		tag := strings.TrimPrefix(b.write(t, "title", "Garden", "type", "tag"), "/blocks/")
		page := again("/docs/new", "act", "create", "title", strings.Repeat("x", 301), "content", "long <thought>", "tag", tag)
		if !strings.Contains(page, `name="tag" value="`+tag+`"`) || !strings.Contains(page, "long &lt;thought&gt;") || !strings.Contains(page, "<bdi>Garden</bdi>") {
			t.Error("the form for a new block lost the tag or the text")
		}
		at := b.write(t, "title", "Ferns")
		hash := b.hash(t, at)
		b.send(t, at, "act", "trash")
		for _, base := range []string{hash, "x"} {
			if page := again(at+"/edit", "act", "save", "base_hash", base, "title", "Ferns", "content", "long <thought>"); !strings.Contains(page, "\nlong &lt;thought&gt;</textarea>") {
				t.Errorf("a text for a block in the trash is lost: %s", mistakes.FindString(page))
			}
		}
	})
}

// A form of files that fails midway doesn't claim that nothing was done, and a refused restore stays in the trash.
func TestThePageOfFilesSaysWhatWasDone(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		b := browse(t, a, a.Person(t))
		parts := make([][3]string, 51)
		for i := range parts {
			parts[i] = [3]string{"file", fmt.Sprintf("f%d.txt", i), fmt.Sprint("text ", i)}
		}
		form, kind := aForm(t, parts)
		r := a.Do(t, "POST", "/files/upload", form, b.cookie, "Accept: text/html", "Origin: "+a.Server.URL, kind)
		if wrong := mistakes.FindString(r.Body); r.Status != 400 || !strings.Contains(wrong, "the first 50 are stored") || strings.Contains(wrong, "Nothing was changed") {
			t.Errorf("%d %s", r.Status, wrong)
		}
		if r := a.Do(t, "POST", "/files", "act=restore&file="+absent, b.cookie, "Accept: text/html", "Origin: "+a.Server.URL, "Content-Type: application/x-www-form-urlencoded"); r.Status != 404 || !strings.Contains(r.Body, "<title>Files in the trash") {
			t.Errorf("restoring what isn't there: %d, and not in the trash", r.Status)
		}
	})
}
