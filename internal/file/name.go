package file

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// nameBytes is how long a name of a file may be on most file systems.
const nameBytes = 255

// SafeName gives a name that a file can be saved under: exactly the one given where that can be, else one that is like it. No folder
// is in it, no character that is control, turns the text around or is forbidden somewhere, and it is no device's name.
func SafeName(name string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r), r == utf8.RuneError:
			return '_'
		case strings.ContainsRune(`/\:*?"<>|`, r):
			return '_'
		}
		return r
	}, name)
	if strings.Trim(safe, ". ") == "" {
		safe = strings.Repeat("_", min(max(1, len(safe)), 3))
	}
	if strings.HasPrefix(safe, ".") { // hidden, and perhaps a program's settings
		safe = "_" + safe[1:]
	}
	if base, _, _ := strings.Cut(safe, "."); device(base) {
		safe = "_" + safe
	}
	ext := path.Ext(safe)
	if len(ext) > 20 {
		ext = ""
	}
	for stem := strings.TrimSuffix(safe, ext); len(safe) > nameBytes; safe = stem + ext {
		_, n := utf8.DecodeLastRuneInString(stem)
		stem = stem[:len(stem)-n]
	}
	if strings.HasSuffix(safe, ".") || strings.HasSuffix(safe, " ") { // Windows drops them
		safe = safe[:len(safe)-1] + "_"
	}
	return safe
}

// device tells whether Windows takes a name for a device's.
func device(name string) bool {
	name = strings.ToUpper(strings.TrimSpace(name))
	switch name {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	port, ok := strings.CutPrefix(name, "COM")
	if !ok {
		port, ok = strings.CutPrefix(name, "LPT")
	}
	return ok && utf8.RuneCountInString(port) == 1 && strings.Contains("0123456789¹²³", port)
}
