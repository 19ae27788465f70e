package html_test

import (
	"encoding/xml"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cairn/internal/doc"
	"cairn/internal/doc/doctest"
	"cairn/internal/doc/html"
	"cairn/internal/doc/markdown"
)

var (
	elements   = strings.Fields("p h2 h3 h4 h5 h6 ul ol li blockquote div pre code table thead tbody tr th td hr figure figcaption img a span strong em s mark br bdi")
	attributes = strings.Fields("id class dir start tabindex role aria-label aria-hidden scope href title rel src alt loading")
)

// problems tells what of a page's HTML is no good: what isn't well formed, or is no element or attribute that a document may have, or
// leads elsewhere than it may. It gives the text too.
func problems(t interface{ Errorf(string, ...any) }, page string) (text string) {
	controls := strings.NewReplacer("\x01", "", "\x7f", "", "\x00", "", "\ufffd", "")
	d := xml.NewDecoder(strings.NewReader("<page>" + controls.Replace(page) + "</page>"))
	d.Strict, d.AutoClose, d.Entity = false, []string{"br", "hr", "img"}, xml.HTMLEntity
	ids := map[string]bool{}
	for {
		token, err := d.Token()
		if err == io.EOF {
			return text
		}
		if err != nil {
			t.Errorf("not well formed: %v in %s", err, page)
			return text
		}
		if c, ok := token.(xml.CharData); ok {
			text += string(c)
		}
		e, ok := token.(xml.StartElement)
		if !ok || e.Name.Local == "page" {
			continue
		}
		if !slices.Contains(elements, e.Name.Local) {
			t.Errorf("has the element %s: %s", e.Name.Local, page)
		}
		for _, a := range e.Attr {
			if !slices.Contains(attributes, a.Name.Local) {
				t.Errorf("has the attribute %s: %s", a.Name.Local, page)
			}
			if a.Name.Local == "href" || a.Name.Local == "src" {
				u, err := url.Parse(a.Value)
				if scheme, _, found := strings.Cut(a.Value, ":"); err != nil && found && !strings.ContainsAny(scheme, "/?#") && scheme != "http" && scheme != "https" {
					t.Errorf("leads to %q", a.Value)
				} else if err == nil && !slices.Contains([]string{"", "http", "https", "mailto"}, u.Scheme) || a.Name.Local == "src" && !strings.HasPrefix(a.Value, "/files/") {
					t.Errorf("leads to %q", a.Value)
				}
			}
			if a.Name.Local == "id" {
				if ids[a.Value] {
					t.Errorf("the id %s is there twice: %s", a.Value, page)
				}
				ids[a.Value] = true
			}
		}
	}
}

func render(t testing.TB, source string) string {
	nodes, err := markdown.Read(source)
	if err != nil {
		t.Fatal(err)
	}
	d, err := doc.New("", nodes, doctest.IDs("n"))
	if err != nil {
		t.Fatal(err)
	}
	return string(html.Nodes(d.Content(), html.Options{}))
}

// CASES 40: nothing of these is more than text.
func TestNoScriptComesThrough(t *testing.T) {
	for _, source := range []string{
		"[x](javascript:alert(1))", "[x](JaVaScRiPt:alert(1))", "[x](java&#115;cript:alert(1))", "[x](data:text/html;base64,PHA+)", "[x](vbscript:x)", "[x](tel:+1)",
		`![a](x"onerror="alert(1))`, `![a](<x"onerror="alert(1)>)`, "<svg onload=alert(1)>", "```__html\n<script>alert(1)</script>\n```", "<img src=x onerror=1>",
		"[x](\tjavascript:alert(1))", "[a\"onclick=\"b](https://x.y/\"onclick=\"z)", "![x](data:image/svg+xml,<svg/onload=1>)", "[x](cairn:task/9)", "[x](file:///etc/passwd)",
		"> [!note] <b onclick=1>\n> x", "| <th> |\n| - |\n| <script> |", "[\"><script>](cairn:block/b1)", "![\"><script>](cairn:file/f1)", "![\"><script>](cairn:embed/https://x.y/\"><script>)",
	} {
		page := render(t, source)
		problems(t, page)
		if strings.Contains(page, "<script") || strings.Contains(page, "<svg") || strings.Contains(page, "<b ") {
			t.Errorf("%q came through: %s", source, page)
		}
	}
	// Nodes that no schema has seen are held to the same.
	for _, href := range []string{"javascript:x", " javascript:x", "java\tscript:x", "data:x", "tel:+1", "cairn:task/9", "cairn:x", "x\x00"} {
		if to := html.Address(href); to != "" {
			t.Errorf("%q leads to %q", href, to)
		}
	}
	for href, want := range map[string]string{"https://x.y/a:b": "https://x.y/a:b", "../a b.md": "../a b.md", "a/b:c": "a/b:c", "?q=a:b": "?q=a:b", "mailto:a@b.c": "mailto:a@b.c", "#top": "#top",
		"cairn:block/b-1": "/blocks/b-1", "cairn:file/f1": "/files/f1"} {
		if to := html.Address(href); to != want {
			t.Errorf("%q leads to %q, want %q", href, to, want)
		}
	}
}

func TestWhatIsShown(t *testing.T) {
	for source, want := range map[string]string{
		"### deep\n\n# top":                    `<h2 id="n-n1" dir="auto">deep</h2>|<h2 id="n-n2" dir="auto">top</h2>`,
		"- [x] a\n- [ ] b":                     `<li id="n-n2" class="task done" dir="auto"><span class="box" aria-hidden="true"></span><span class="sr" dir="ltr">Done: </span><p id="n-n3">a</p>|</li>|<li id="n-n4" class="task" dir="auto"><span class="box" aria-hidden="true"></span><span class="sr" dir="ltr">To do: </span>`,
		"3. a":                                 `<ol id="n-n1" start="3">`,
		"[a **b** c](https://x.y)":             `<a href="https://x.y" rel="noreferrer noopener nofollow">a <strong>b</strong> c</a>`,
		"see [Plan](cairn:block/b1)":           `<a href="/blocks/b1"><bdi>Plan</bdi></a>`,
		"![a rose](cairn:file/f1)":             `<figure id="n-n1" dir="auto"><a href="/files/f1"><img src="/files/f1/thumbnail/l" alt="a rose" loading="lazy"></a></figure>`,
		"![a rose](https://x.y/z.png)":         `<span class="picture"><a href="https://x.y/z.png" rel="noreferrer noopener nofollow"><bdi>a rose</bdi></a></span>`,
		"[list.pdf](cairn:file/f1)":            `<p id="n-n1" class="file" dir="auto"><a href="/files/f1"><bdi>list.pdf</bdi></a></p>`,
		"![Part](cairn:block/b1)":              `<p id="n-n1" class="embed" dir="auto"><a href="/blocks/b1"><bdi>Part</bdi></a></p>`,
		"مرحبا بالعالم (v2.1)!":                `<p id="n-n1" dir="auto">مرحبا`,
		"- [ ] مرحبا (v2.1)!":                  `<p id="n-n3">مرحبا (v2.1)!</p>`,
		"> [!warning] mind\n> the gap":         `<div id="n-n1" class="callout warning" role="note" dir="auto"><p class="callout-title" dir="auto"><strong dir="ltr">Warning</strong> mind</p>|<p id="n-n2">the gap</p>`,
		"| a | b |\n| - | -: |\n| c | **d** |": `<th id="n-n4" scope="col" class="to-right" dir="auto">b</th>`,
	} {
		page := render(t, source)
		problems(t, page)
		if !strings.Contains(strings.ReplaceAll(page, "\n", "|"), want) {
			t.Errorf("%q: %s lacks %s", source, page, want)
		}
	}
}

func TestAuthorsAreNamedOnEachBlock(t *testing.T) {
	nodes, _ := markdown.Read("# a\n\n- b\n- c\n\n| d |\n| - |\n| e |")
	d, err := doc.New("", nodes, doctest.IDs("n"))
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]html.Author{}
	for n := range d.All() {
		by[n.ID] = html.Author{Name: "Ana <b>"}
	}
	by["n4"] = html.Author{Name: "Hermes", Agent: true}
	page := string(html.Nodes(d.Content(), html.Options{Authors: by}))
	problems(t, page)
	if n := strings.Count(page, `<span class="chip"><bdi>Ana &lt;b&gt;</bdi></span>`); n != 3 {
		t.Errorf("%d blocks are by Ana, want 3: %s", n, page)
	}
	if !strings.Contains(page, `<div class="by"><p id="n-n4" dir="auto">b</p>`+"\n"+`<p class="by-whom"><span class="chip agent">agent · <bdi>Hermes</bdi></span></p></div>`) {
		t.Errorf("the agent isn't named: %s", page)
	}
}

func TestEveryDocumentIsSafeAndWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := doctest.Docs("n").Draw(t, "doc")
		o := html.Options{}
		if rapid.Bool().Draw(t, "authors") {
			o.Authors = map[string]html.Author{"n1": {Name: doctest.Line(0, 3).Draw(t, "name")}, "n2": {Name: "x", Agent: true}}
		}
		text := squeezed(problems(t, string(html.Nodes(d.Content(), o))))
		for n := range d.All() {
			for _, c := range n.Content {
				if want := squeezed(c.Text); c.Type == "text" && !strings.Contains(text, want) {
					t.Errorf("the page %q lacks %q", text, want)
				}
			}
		}
	})
}

func squeezed(s string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("\x01", "", "\x7f", "", "\ufffd", "", "\u0085", " ").Replace(s)), "")
}

func FuzzMarkdownShown(f *testing.F) {
	for _, s := range []string{"[x](javascript:1)", "![a](x\"onerror=\"1)", "# a\n- [ ] b\n> c", "<b>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		nodes, err := markdown.Read(source)
		if err != nil {
			return
		}
		d, err := doc.New("", nodes, doctest.IDs("n"))
		if err != nil {
			return
		}
		page := string(html.Nodes(d.Content(), html.Options{}))
		clean := strings.Map(func(r rune) rune {
			if r < ' ' && r != '\n' && r != '\t' || r == 0xFFFE || r == 0xFFFF || r >= 0x7F && r < 0xA0 {
				return -1
			}
			return r
		}, page)
		problems(t, clean)
	})
}
