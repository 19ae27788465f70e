package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/web"
)

type answered struct {
	*http.Response
	text string
}

// ask sends a request as a browser does that is signed in; headers are "Name: value", and "-Cookie" leaves the cookie out.
func (x *site) ask(t *testing.T, method, path, body string, headers ...string) answered {
	t.Helper()
	r, err := http.NewRequest(method, x.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html,application/xhtml+xml")
	r.Header.Set("Cookie", x.signin.CookieName()+"="+x.cookie)
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if bare, drop := strings.CutPrefix(name, "-"); drop {
			r.Header.Del(bare)
			continue
		}
		r.Header.Set(name, value)
	}
	res, err := x.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answered{res, string(b)}
}

// ours is what a browser says of a form of this server's own page.
func (x *site) ours() string { return "Origin: " + x.URL }

func (x *site) calls() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := x.called
	x.called = nil
	return out
}

// fill puts ids that exist into a path.
func fill(path string) string {
	id := map[string]string{"/agents": "g1", "/tokens": "t1", "/heaps": "h2", "/settings": "c2", "/blocks": "b1"}
	for prefix, v := range id {
		if strings.HasPrefix(path, prefix) {
			path = strings.ReplaceAll(path, "{id}", v)
		}
	}
	return strings.ReplaceAll(path, "{account}", "a2")
}

var bare = []string{"/", "/help", "/sign-in", "/sign-up", "/setup", "/nowhere"}

const csp = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

func TestEveryPageIsStrictAndEscapes(t *testing.T) {
	x := newSite(t, hostile)
	for _, path := range append(web.Screens(), bare...) {
		headers := []string{}
		if slices.Contains(bare, path) {
			headers = append(headers, "-Cookie")
		}
		a := x.ask(t, "GET", fill(path), "", headers...)
		want := http.StatusOK
		if path == "/nowhere" {
			want = http.StatusNotFound
		}
		if a.StatusCode != want {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.text)
			continue
		}
		h := a.Header
		if h.Get("Content-Security-Policy") != csp || h.Get("Cache-Control") != "no-store" || !strings.Contains(strings.Join(h.Values("Vary"), ","), "Cookie") ||
			h.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: headers %v", path, h)
		}
		if strings.Contains(a.text, "<script>alert") || strings.Contains(a.text, `"'&`) {
			t.Errorf("%s: a hostile name is not escaped", path)
		}
		if n := strings.Count(a.text, "<h1"); n != 1 {
			t.Errorf("%s has %d h1", path, n)
		}
		if strings.Count(a.text, `role="status"`) != 1 || !strings.Contains(a.text, `class="skip"`) || !strings.Contains(a.text, `href="/help"`) || !strings.Contains(a.text, "Cairn test") {
			t.Errorf("%s lacks its frame", path)
		}
	}
}

func TestTemplatesHoldNoScriptAndNoStyle(t *testing.T) {
	files, _ := filepath.Glob("pages/*.html")
	if len(files) < 15 {
		t.Fatalf("only %d pages", len(files))
	}
	inline := regexp.MustCompile(`(?i)<style|<script(>|\s+[^s>])|\sstyle\s*=|\son[a-z]+\s*=|javascript:|<iframe|https?://[a-z]`)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if m := inline.Find(b); m != nil {
			t.Errorf("%s has %q", f, m)
		}
	}
}

func TestFormsComeFromOurPagesAlone(t *testing.T) {
	x := newSite(t, "")
	if len(x.web.Posts) < 25 {
		t.Fatalf("only %d forms are known: %v", len(x.web.Posts), x.web.Posts)
	}
	for _, path := range x.web.Posts {
		path = fill(path)
		for _, headers := range [][]string{{}, {"Origin: http://evil.example"}, {"Origin: null"}, {"Sec-Fetch-Site: cross-site"}, {"Sec-Fetch-Site: same-site"}} {
			body, kind := "act=pause-all", "application/x-www-form-urlencoded"
			if strings.HasPrefix(path, "/api/") {
				body, kind = "{}", "application/json"
			}
			a := x.ask(t, "POST", path, body, append(headers, "Content-Type: "+kind)...)
			if a.StatusCode != http.StatusForbidden {
				t.Errorf("%s with %v: %d", path, headers, a.StatusCode)
			}
		}
	}
	for _, c := range x.calls() {
		if !strings.HasPrefix(c, "get_account") { // the frame of the page that refuses
			t.Errorf("called: %s", c)
		}
	}
	big := "act=" + strings.Repeat("x", 64<<10)
	if a := x.ask(t, "POST", "/agents", big, x.ours()); a.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a form that is too big: %d", a.StatusCode)
	}
}

func TestNobodySignedInIsSentToSignIn(t *testing.T) {
	x := newSite(t, "")
	for _, path := range web.Screens() {
		path = fill(path) + "?a=b"
		for _, cookie := range []string{"-Cookie", "Cookie: " + x.signin.CookieName() + "=gone"} {
			a := x.ask(t, "GET", path, "", cookie)
			if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/sign-in?next="+url.QueryEscape(path) {
				t.Errorf("%s: %d %s", path, a.StatusCode, a.Header.Get("Location"))
			}
		}
		if a := x.ask(t, "POST", path, "act=x", "-Cookie", x.ours()); a.StatusCode != http.StatusSeeOther && a.StatusCode != http.StatusMethodNotAllowed && a.StatusCode != http.StatusNotFound {
			t.Errorf("POST %s: %d", path, a.StatusCode)
		}
	}
	if c := x.calls(); c != nil {
		t.Errorf("called: %v", c)
	}
}

func TestNextLeadsNowhereElse(t *testing.T) {
	x := newSite(t, "")
	for next, want := range map[string]string{"/tokens?a=b": "/tokens?a=b", "//evil.example": "/agents", `/\evil.example`: "/agents", "https://evil.example": "/agents", "evil": "/agents",
		"": "/agents", "/a\tb": "/agents", `/x\..\y`: "/agents", "javascript:alert(1)": "/agents", "/%2f%2fevil": "/%2f%2fevil"} {
		if a := x.ask(t, "GET", "/sign-in?next="+url.QueryEscape(next), ""); a.Header.Get("Location") != want {
			t.Errorf("next %q leads to %q", next, a.Header.Get("Location"))
		}
		if a := x.ask(t, "GET", "/sign-in?next="+url.QueryEscape(next), "", "-Cookie"); want == "/agents" && strings.Contains(a.text, "evil") {
			t.Errorf("next %q is in the page", next)
		}
	}
}

func TestFormsRunOperations(t *testing.T) {
	x := newSite(t, "")
	for _, c := range []struct{ path, body, call, to string }{
		{"/agents", "act=pause-all", "pause_agents all", "/agents?done=all-paused"},
		{"/agents", "act=resume&agent=g1", "resume_agents agent", "/agents?done=resumed"},
		{"/agents/g1", "act=rights&name=C&heaps=h2&write=yes&areas=tasks&rate=60", "update_agent agent areas heaps name propose_memory rate write", "/agents/g1?done=saved"},
		{"/agents/g1", "act=rights&name=C&areas=tasks&areas=memory&areas=library&areas=documents&areas=personas&rate=60", "update_agent agent all_areas heaps name propose_memory rate write", "/agents/g1?done=saved"},
		{"/agents/g1", "act=rights&name=C&heaps=h2&areas=tasks&areas=tasks&areas=tasks&areas=tasks&areas=tasks&rate=60", "update_agent agent areas heaps name propose_memory rate write", "/agents/g1?done=saved"},
		{"/agents/g1/disconnect", "act=disconnect", "disconnect_agent agent", "/agents?done=disconnected"},
		{"/tokens/t1/revoke", "act=revoke", "revoke_token token", "/tokens?done=token-revoked"},
		{"/heaps", "act=accept&invite=i1", "respond_invite accept invite_id", "/heaps?done=accepted"},
		{"/heaps/h2", "act=archive", "update_heap archived heap", "/heaps/h2?done=heap-archived"},
		{"/heaps/h2/members/a2", "act=remove", "remove_member account heap", "/heaps/h2?done=member-removed"},
		{"/files", "act=delete&file=f1", "delete_block block_id", "/files?done=file-trashed"},
		{"/files", "act=restore&file=f1", "restore_block block_id", "/files?trash=1&done=file-restored"},
		{"/settings", "act=profile&name=A&zone=UTC", "set_account name zone", "/settings?done=saved"},
		{"/settings", "act=end-others", "end_session others", "/settings?done=sessions-ended"},
		{"/settings/email", "act=confirm&challenge=m1&code=1234+5678", "confirm_email challenge code", "/settings?done=email-confirmed"},
		{"/settings/sign-in/c2/remove", "act=remove", "remove_sign_in id", "/settings?done=sign-in-removed"},
		{"/docs/new", "act=create&type=note&title=T&content=a%0D%0Ab&heap=h2&tag=b2", "create_block content heap tags title type", "/blocks/b9?done=doc-created"},
		{"/docs/trash", "act=restore&block=b1", "restore_block block_id", "/docs/trash?done=doc-restored"},
		{"/blocks/b1", "act=pin", "pin_block block_id", "/blocks/b1?done=doc-pinned"},
		{"/blocks/b1", "act=unpin", "pin_block block_id pinned", "/blocks/b1?done=doc-unpinned"},
		{"/blocks/b1", "act=untag&to=b2", "remove_relation from kind to", "/blocks/b1?done=doc-untagged"},
		{"/blocks/b1", "act=set&key=k&value=7&type=", "get_block block_id,set_property block_id key value", "/blocks/b1?done=doc-set"},
		{"/blocks/b1", "act=set&key=k&value=yes&type=bool", "set_property block_id key type value", "/blocks/b1?done=doc-set"},
		{"/blocks/b1", "act=remove&key=k", "remove_property block_id key", "/blocks/b1?done=doc-removed"},
		{"/blocks/b1", "act=trash", "delete_block block_id", "/docs?done=doc-trashed"},
		{"/blocks/b1", "act=restore", "restore_block block_id", "/blocks/b1?done=doc-restored"},
		{"/blocks/b1/edit", "act=save&base_hash=x0&title=T&content=a", "replace_document allow_dropped_children base_hash block_id confirm_rebuild content rebase title", "/blocks/b1?done=doc-joined"},
		{"/blocks/b1/purge", "act=purge&title=+Garden", "get_block block_id,purge_block block_id", "/docs/trash?done=doc-purged"},
		{"/blocks/b1/history", "act=undo&change=e2", "undo_change change_id", "/blocks/b1/history?done=doc-undone"},
		{"/blocks/b1/history", "act=restore&version=1&base_hash=x1", "restore_version base_hash block_id version", "/blocks/b1?done=doc-version"},
		{"/admin/accounts", "act=admit&account=a2", "admit_account account", "/admin/accounts?done=admitted"},
	} {
		x.calls()
		a := x.ask(t, "POST", c.path, c.body, x.ours())
		if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != c.to {
			t.Errorf("%s %s: %d, on to %q, want %q", c.path, c.body, a.StatusCode, a.Header.Get("Location"), c.to)
		}
		if called := x.calls(); strings.Join(called, ",") != c.call {
			t.Errorf("%s %s called %q, want %q", c.path, c.body, called, c.call)
		}
		if a := x.ask(t, "GET", c.to, ""); strings.Contains(a.text, `id="status"></p>`) {
			t.Errorf("%s says nothing", c.to)
		}
	}
	if a := x.ask(t, "GET", "/agents?done=%3Cb%3Efree+words", ""); strings.Contains(a.text, "free words") {
		t.Error("the address put words on the page")
	}
	a := x.ask(t, "POST", "/tokens", "act=create&name=n&write=no&which=some&expires=90d&areas=tasks", x.ours())
	if a.StatusCode != http.StatusOK || !strings.Contains(a.text, "cairn_abcdefghij") || a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("a new token: %d %s", a.StatusCode, a.text)
	}
}

func TestRefusedFormKeepsItsValues(t *testing.T) {
	x := newSite(t, "")
	x.faults["set_account"] = fault.Bad("zone", "is %q, must be a zone", hostile)
	a := x.ask(t, "POST", "/settings", "act=profile&name=Anna+Kept&zone=%3Cb%3E", x.ours())
	for _, want := range []string{`role="alert"`, `href="#profile-zone"`, `value="Anna Kept"`, `value="&lt;b&gt;"`, `aria-invalid="true"`, "profile-zone-error"} {
		if !strings.Contains(a.text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if a.StatusCode != http.StatusBadRequest || strings.Contains(a.text, "<script>alert") {
		t.Errorf("%d", a.StatusCode)
	}
	x.faults["remove_sign_in"] = fault.New(fault.Denied, "show it").With("reason", "prove_again")
	a = x.ask(t, "POST", "/settings/sign-in/c2/remove", "act=remove", x.ours())
	if a.StatusCode != http.StatusForbidden || !strings.Contains(a.text, "Show that it is you") || !strings.Contains(a.text, `name="act" value="remove"`) {
		t.Errorf("asked to prove again: %d %s", a.StatusCode, a.text)
	}
	x.faults["update_agent"] = fmt.Errorf("private-cause")
	if a = x.ask(t, "POST", "/agents/g1", "act=rights&name=x", x.ours()); a.StatusCode != 500 || strings.Contains(a.text, "private-cause") {
		t.Errorf("a fault of the server: %d", a.StatusCode)
	}
}

func TestForbiddenLooksLikeMissing(t *testing.T) {
	x := newSite(t, "")
	missing := x.ask(t, "GET", "/agents/none/at/all", "")
	for _, f := range []error{fault.New(fault.NotFound, "x"), fault.New(fault.Denied, "secret reason"), fault.New(fault.UnknownTool, "x")} {
		x.faults["get_agent"] = f
		a := x.ask(t, "GET", "/agents/g1", "")
		if a.StatusCode != 404 || strings.ReplaceAll(a.text, "/agents/g1", "") != strings.ReplaceAll(missing.text, ` aria-current="page"`, ` aria-current="page"`) {
			t.Errorf("%v: %d differs from a page that is not there", f, a.StatusCode)
		}
	}
}

func TestHeapsPageSaysWhatIsInIt(t *testing.T) {
	if a := newSite(t, "").ask(t, "GET", "/heaps/h2", ""); !strings.Contains(a.text, "3 open tasks, 1 memory.") {
		t.Errorf("the page doesn't say what the heap holds: %s", a.text)
	}
}

func TestMachinesGetNoPages(t *testing.T) {
	x := newSite(t, "")
	for _, path := range []string{"/api/nothing", "/.well-known/nothing", "/assets/nothing.css"} {
		if a := x.ask(t, "GET", path, ""); strings.Contains(a.Header.Get("Content-Type"), "html") {
			t.Errorf("%s answers with a page", path)
		}
	}
	if a := x.ask(t, "GET", "/nowhere", "", "Accept: application/json"); !strings.HasPrefix(a.text, "{") {
		t.Errorf("without text/html: %s", a.text)
	}
	if a := x.ask(t, "GET", "/", "", "-Cookie", "Accept: */*"); !strings.HasPrefix(a.text, "Cairn test is running, healthy.\nMCP URL: ") {
		t.Errorf("curl gets %s", a.text)
	}
	if a := x.ask(t, "GET", "/", ""); a.Header.Get("Location") != "/docs" {
		t.Errorf("signed in, / leads to %q", a.Header.Get("Location"))
	}
}

func TestAssetsMayBeKept(t *testing.T) {
	x := newSite(t, "")
	page := x.ask(t, "GET", "/sign-in", "", "-Cookie").text
	for _, m := range regexp.MustCompile(`/assets/[a-z.]+\?v=[0-9a-f]+`).FindAllString(page, -1) {
		a := x.ask(t, "GET", m, "", "-Cookie")
		if a.StatusCode != 200 || a.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" || a.Header.Get("Content-Type") == "" {
			t.Errorf("%s: %d %v", m, a.StatusCode, a.Header)
		}
	}
	size := map[string]int64{}
	files, _ := filepath.Glob("assets/*")
	for _, f := range files {
		info, _ := os.Stat(f)
		size[filepath.Base(f)] = info.Size()
	}
	if script := size["app.js"] + max(size["signin.js"], size["consent.js"]); size["style.css"] > 30<<10 || script > 15<<10 {
		t.Errorf("what a page loads outgrows its budget, script %d bytes: %v", script, size)
	}
	if a := x.ask(t, "GET", "/assets/words.txt", ""); len(strings.Fields(a.text)) != 2048 {
		t.Error("the list of words is not whole")
	}
}

func TestOperationsBySession(t *testing.T) {
	x := newSite(t, "")
	if a := x.ask(t, "POST", "/api/get_account", "{}", "Content-Type: application/json", x.ours()); a.StatusCode != 200 || !strings.Contains(a.text, `"Ana"`) {
		t.Errorf("%d %s", a.StatusCode, a.text)
	}
	for _, h := range []string{"X-None: 1", "Origin: http://evil.example", "Sec-Fetch-Site: cross-site"} {
		if a := x.ask(t, "POST", "/api/get_account", "{}", "Content-Type: application/json", h); a.StatusCode != 403 {
			t.Errorf("%s: %d", h, a.StatusCode)
		}
	}
	if a := x.ask(t, "POST", "/api/get_account", "{}", "Content-Type: application/json", x.ours(), "Cookie: "+x.signin.CookieName()+"=gone"); a.StatusCode != 401 {
		t.Errorf("a session that is over: %d", a.StatusCode)
	}
}

func TestATextThatMetAnotherIsShownBesideIt(t *testing.T) {
	x := newSite(t, hostile)
	x.faults["replace_document"] = fault.New(fault.Conflict, "the document was changed in the same places: n1 was edited")
	a := x.ask(t, "POST", "/blocks/b1/edit", "act=save&base_hash=x0&title=T&content=mine+kept", x.ours())
	for _, want := range []string{"Not saved yet.", `name="base_hash" value="x2"`, "mine kept", "Changed by both", `<del>&lt;script&gt;`, "Save the result"} {
		if !strings.Contains(a.text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if a.StatusCode != http.StatusConflict || strings.Contains(a.text, "<script>alert") || strings.Count(a.text, "</textarea>") != 2 {
		t.Errorf("%d", a.StatusCode)
	}
	// Where the two can't be brought together, the text is still in the form, on the version it was written from.
	x.faults["join_draft"] = fault.New(fault.Conflict, "no version has this hash")
	if a = x.ask(t, "POST", "/blocks/b1/edit", "act=save&base_hash=x0&title=T&content=mine+kept", x.ours()); !strings.Contains(a.text, "mine kept") || !strings.Contains(a.text, `name="base_hash" value="x0"`) {
		t.Error("the text is lost")
	}
	x.faults["replace_document"] = fault.New(fault.Conflict, "content leaves out 1 block").With("dropped_children", []string{"b3"})
	if a = x.ask(t, "POST", "/blocks/b1/edit", "act=save&base_hash=x1&title=T&content=mine+kept", x.ours()); !strings.Contains(a.text, `name="drop" value="yes"`) || !strings.Contains(a.text, "mine kept") {
		t.Error("there is no way to leave a block out")
	}
	if a = x.ask(t, "POST", "/blocks/b1/purge", "act=purge&title=another", x.ours()); a.StatusCode != http.StatusBadRequest || slices.Contains(x.calls(), "purge_block block_id") {
		t.Errorf("deleted for good under another title: %d", a.StatusCode)
	}
	x.faults["show_document"] = fault.Bad("block_id", "is no id")
	if a = x.ask(t, "GET", "/blocks/b1", ""); a.StatusCode != http.StatusNotFound {
		t.Errorf("an id that is none: %d", a.StatusCode)
	}
}

func TestADocumentMayBeLargerThanAForm(t *testing.T) {
	x := newSite(t, "")
	text := "act=save&base_hash=x0&title=T&content=" + strings.Repeat("x", 1<<20)
	if a := x.ask(t, "POST", "/blocks/b1/edit", text, x.ours()); a.StatusCode != http.StatusSeeOther {
		t.Errorf("a document of 1 MB: %d", a.StatusCode)
	}
	if a := x.ask(t, "POST", "/blocks/b1/edit", text+strings.Repeat("x", 12<<20), x.ours()); a.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("one of 13 MB: %d", a.StatusCode)
	}
}

func TestTheListTellsWhatItShows(t *testing.T) {
	x := newSite(t, "")
	a := x.ask(t, "GET", "/docs?heap=h2&pinned=1&tag=b2", "")
	for _, want := range []string{`<option value="h2" selected>`, `value="1" checked`, `href="/docs?cursor=c1&amp;heap=h2&amp;pinned=1&amp;tag=b2"`, `aria-current="true"`, ">Garden <"} {
		if !strings.Contains(a.text, want) {
			t.Errorf("the list lacks %s", want)
		}
	}
	if c := x.calls(); !slices.Contains(c, "list_blocks heap limit pinned tag") {
		t.Errorf("called %v", c)
	}
	if a = x.ask(t, "GET", "/docs?q=nothing", ""); !strings.Contains(a.text, "Nothing was found") || strings.Contains(a.text, "narrow a search") {
		t.Error("a search that finds nothing doesn't say so")
	}
	x.answers["search_blocks"] = `{"count":0,"blocks":[],"note":"the query has no searchable characters"}`
	if a = x.ask(t, "GET", "/docs?q=---&pinned=1", ""); !strings.Contains(a.text, "no searchable characters") || !strings.Contains(a.text, "narrow a search") {
		t.Error("a search doesn't say how it was taken")
	}
	x.answers["list_blocks"] = `{"count":0,"blocks":[],"next_cursor":"c9"}`
	if a = x.ask(t, "GET", "/docs?type=tag", ""); !strings.Contains(a.text, "cursor=c9") || strings.Contains(a.text, "Nothing was found") {
		t.Error("a page without blocks ends the list, though more may come")
	}
	delete(x.answers, "list_blocks")
	x.calls()
	x.ask(t, "GET", "/blocks/b1?part=2&version=2&authors=1", "")
	if c := x.calls(); !slices.Contains(c, "show_document authors block_id part version") {
		t.Errorf("called %v", c)
	}
	if a = x.ask(t, "GET", "/blocks/b1/history?by=agents", ""); !strings.Contains(a.text, "Patched") || strings.Contains(a.text, "Created") {
		t.Error("the history by agents shows others, or not them")
	}
	if a = x.ask(t, "GET", "/blocks/b1", ""); strings.Contains(a.text, `href="javascript`) {
		t.Error("a property leads where it may not")
	}
}
