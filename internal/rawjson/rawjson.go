// Package rawjson reads JSON that is known to be well-formed without decoding it: an object's members under their exact
// names, an array's elements, and the faults that encoding/json passes over in silence (keys in another case, keys given
// twice, half a surrogate pair). Everything here expects input that json.Valid accepted.
package rawjson

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// space skips white space from i on.
func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// str returns the end of the string that starts at i.
func str(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// value returns the end of the value that starts at i. It uses no stack, so nesting costs nothing.
func value(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = str(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			i++
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
			i++
		default:
			i++
			continue
		}
		if depth == 0 && (b[i-1] == '"' || b[i-1] == '}' || b[i-1] == ']') {
			return i
		}
	}
	return i
}

// Trim drops white space around a value.
func Trim(b []byte) []byte { return bytes.TrimSpace(b) }

// Members calls f with each member of an object, in order, until f returns false. Keys come unescaped. It returns false
// where b isn't an object.
func Members(b []byte, f func(key string, val json.RawMessage) bool) bool {
	i := space(b, 0)
	if i == len(b) || b[i] != '{' {
		return false
	}
	for i = space(b, i+1); b[i] != '}'; {
		end := str(b, i)
		key := String(b[i:end])
		i = space(b, space(b, end)+1) // past the colon
		end = value(b, i)
		if !f(key, json.RawMessage(b[i:end])) {
			return true
		}
		if i = space(b, end); b[i] == ',' {
			i = space(b, i+1)
		}
	}
	return true
}

// Elements gives the elements of an array; ok is false where b isn't one.
func Elements(b []byte) (list []json.RawMessage, ok bool) {
	i := space(b, 0)
	if i == len(b) || b[i] != '[' {
		return nil, false
	}
	for i = space(b, i+1); b[i] != ']'; {
		end := value(b, i)
		list = append(list, json.RawMessage(b[i:end]))
		if i = space(b, end); b[i] == ',' {
			i = space(b, i+1)
		}
	}
	return list, true
}

// String decodes a JSON string.
func String(b []byte) string {
	if bytes.IndexByte(b, '\\') < 0 {
		return string(b[1 : len(b)-1])
	}
	var s string
	if json.Unmarshal(b, &s) != nil {
		return ""
	}
	return s
}

// Well says what is wrong with a text that should be one JSON value and that encoding/json alone would let pass or
// explain badly; "" means nothing. It doesn't look for keys given twice.
func Well(b []byte) string {
	switch {
	case !utf8.Valid(b):
		return "the text is not valid UTF-8"
	case !json.Valid(b):
		return "the text is not valid JSON"
	case loneSurrogate(b):
		return `the text has half a surrogate pair (such as "\ud83d" alone), which is no character`
	}
	return ""
}

// loneSurrogate finds an escaped half of a surrogate pair that encoding/json would turn into U+FFFD.
func loneSurrogate(b []byte) bool {
	for i := 0; i+1 < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		i++
		if b[i] != 'u' {
			continue
		}
		switch u := hex4(b[i+1:]); {
		case u >= 0xdc00 && u <= 0xdfff:
			return true
		case u >= 0xd800 && u <= 0xdbff:
			if len(b) < i+11 || b[i+5] != '\\' || b[i+6] != 'u' {
				return true
			}
			if v := hex4(b[i+7:]); v < 0xdc00 || v > 0xdfff {
				return true
			}
			i += 10
		default:
			i += 4
		}
	}
	return false
}

func hex4(b []byte) (u int) {
	for i := 0; i < 4 && i < len(b); i++ {
		u <<= 4
		switch c := b[i]; {
		case c >= '0' && c <= '9':
			u |= int(c - '0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			u |= int(c|0x20-'a') + 10
		}
	}
	return u
}

// Quote appends s as a JSON string. s must be valid UTF-8.
func Quote(dst, s []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i, c := range s {
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		start = i + 1
	}
	return append(append(dst, s[start:]...), '"')
}

// Marshal is json.Marshal without the HTML escapes: what goes out is read by programs and models, not by a browser.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
