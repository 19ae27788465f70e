package file_test

import (
	"mime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"cairn/internal/file"
)

func checkSafe(t interface{ Errorf(string, ...any) }, name string) {
	safe := file.SafeName(name)
	if safe == "" || len(safe) > 255 || !utf8.ValidString(safe) || strings.ContainsAny(safe, "/\\:*?\"<>|\x00") || strings.HasPrefix(safe, ".") || strings.HasSuffix(safe, ".") || strings.HasSuffix(safe, " ") ||
		strings.ContainsFunc(safe, unicode.IsControl) || file.SafeName(safe) != safe {
		t.Errorf("%q is to be saved as %q, and that as %q", name, safe, file.SafeName(safe))
	}
	for _, how := range []string{"inline", "attachment"} { // RFC 6266 and 8187: what goes into the header comes out of it
		got, params, err := mime.ParseMediaType(mime.FormatMediaType(how, map[string]string{"filename": safe}))
		if err != nil || got != how || params["filename"] != safe {
			t.Errorf("%q comes out of the header as %q: %v", safe, params["filename"], err)
		}
	}
}

func TestNamesComeOutOfTheHeader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkSafe(t, rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]{0,40}\.[a-z]{1,4}`), rapid.StringN(200, 300, -1)).Draw(t, "name"))
		// The name as it was given goes up by the same header.
		name := rapid.StringN(1, 300, -1).Draw(t, "given")
		if _, params, err := mime.ParseMediaType(mime.FormatMediaType("attachment", map[string]string{"filename": name})); utf8.ValidString(name) && (err != nil || params["filename"] != name) {
			t.Errorf("%q goes up as %q: %v", name, params["filename"], err)
		}
	})
}

func TestNamesToSaveUnder(t *testing.T) {
	for name, want := range map[string]string{
		"plan.pdf": "plan.pdf", "Plän 山 🌿.txt": "Plän 山 🌿.txt", "100%.txt": "100%.txt", "a;b=c'd.txt": "a;b=c'd.txt", "x.PNG": "x.PNG", "no extension": "no extension",
		"../evil.md": "_._evil.md", "a/b\\c": "a_b_c", "..": "__", ".": "_", "": "_", "   ": "___", ".bashrc": "_bashrc", "CON": "_CON", "con.txt": "_con.txt", "LPT1": "_LPT1", "com¹.txt": "_com¹.txt", "CONIN$": "_CONIN$", "COMA": "COMA",
		"tail ": "tail_", "dots.": "dots_", "two\nlines": "two_lines", "\u202etxt.exe": "_txt.exe", `say "hi"`: "say _hi_", "nul\x00": "nul_",
		strings.Repeat("ü", 200) + ".jpeg": strings.Repeat("ü", 125) + ".jpeg", strings.Repeat("🌿", 300): strings.Repeat("🌿", 63), strings.Repeat("x", 300): strings.Repeat("x", 255),
		strings.Repeat("x", 254) + " tail": strings.Repeat("x", 254) + "_", "CON." + strings.Repeat("x", 260): "_CON." + strings.Repeat("x", 250),
	} {
		if got := file.SafeName(name); got != want {
			t.Errorf("%q is to be saved as %q, want %q", name, got, want)
		}
		checkSafe(t, name)
	}
}
