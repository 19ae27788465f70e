package op

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/google/uuid"

	"cairn/internal/fault"
	"cairn/internal/rawjson"
)

// check holds arguments against the schema and names every fault at once. It gives back the arguments to decode (without
// unknown members, for a Loose operation) and the names it left out.
func (o *Op) check(args json.RawMessage) (clean json.RawMessage, ignored []string, err error) {
	args = rawjson.Trim(args)
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	if why := rawjson.Well(args); why != "" {
		return nil, nil, fault.New(fault.Invalid, "the arguments can't be read: %s", why)
	}
	if bytes.Contains(args, []byte(".0")) { // see wholePart: the caller's bytes stay as they are
		args = bytes.Clone(args)
	}
	c := checker{loose: o.Loose, forms: o.forms}
	clean = c.object(o.In, "", args)
	if c.bad == nil {
		return clean, few(c.ignored), nil
	}
	e := fault.New(fault.Invalid, "%s", strings.Join(c.bad, "; "))
	e.Errors = c.bad
	if len(c.bad) == 1 {
		e.Field, e.Valid = c.field, c.valid
	}
	return nil, nil, e
}

// few shortens a list of names that somebody else made up.
func few(names []string) []string {
	const most = 50
	all := len(names)
	names = names[:min(all, most)]
	for i, n := range names {
		names[i] = short(n)
	}
	if all > most {
		names = append(names, fmt.Sprintf("and %d more", all-most))
	}
	return names
}

// checker walks arguments and schema side by side.
type checker struct {
	loose   bool
	forms   forms
	bad     []string
	field   string
	valid   []string
	ignored []string
}

func (c *checker) fail(path, format string, args ...any) {
	c.field = path
	why := fmt.Sprintf(format, args...)
	if path != "" {
		why = path + " " + why
	}
	c.bad = append(c.bad, why)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (c *checker) object(s *jsonschema.Schema, path string, raw json.RawMessage) json.RawMessage {
	seen := make([]string, 0, 16)
	var kept []byte // only where something was left out
	left := 0
	top := path == ""
	ok := rawjson.Members(raw, func(name string, v json.RawMessage) bool {
		p := s.Properties[name]
		switch {
		case slices.Contains(seen, name):
			c.fail(join(path, name), "is given twice")
		case p == nil && c.loose && top:
			c.ignored = append(c.ignored, name)
			left++
		case p == nil:
			c.fail("", "unknown argument %q", join(path, name))
			c.field, c.valid = join(path, name), slices.Clone(s.PropertyOrder)
			if top {
				c.bad[len(c.bad)-1] += "; valid are: " + strings.Join(c.valid, ", ")
			}
		case string(v) != "null": // null is taken as absent
			c.value(p, join(path, name), slices.Contains(s.Required, name), v)
			seen = append(seen, name)
			if c.loose && top {
				kept = append(rawjson.Quote(append(kept, ','), []byte(name)), ':')
				kept = append(kept, v...)
			}
		}
		return true
	})
	if !ok {
		if top {
			path = "the arguments"
		}
		c.fail(path, "must be an object")
		return raw
	}
	for _, r := range s.Required {
		if !slices.Contains(seen, r) {
			c.fail(join(path, r), "is required and must be %s", c.wanted(s.Properties[r]))
		}
	}
	if left == 0 {
		return raw
	}
	if len(kept) == 0 {
		return json.RawMessage("{}")
	}
	kept[0] = '{'
	return append(kept, '}')
}

// wanted names a type the way an agent reads it.
func (c *checker) wanted(p *jsonschema.Schema) string {
	switch {
	case len(p.Enum) > 0:
		return "one of " + enum(p)
	case c.forms[p] == "date":
		return "a date such as 2026-08-31"
	case c.forms[p] == "uuid":
		return "an id (UUID)"
	case p.Type == "string" && p.MinLength != nil:
		return "a non-empty string"
	case p.Type == "string":
		return "a string"
	case p.Type == "integer":
		return "a whole number"
	case p.Type == "number":
		return "a number"
	case p.Type == "boolean":
		return "true or false"
	case p.Type == "array":
		return "a list"
	case p.Type == "" && len(p.Types) == 0: // of any type
		return "given"
	}
	return "an object"
}

// plain writes a number with all its digits and without an exponent.
func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

func enum(p *jsonschema.Schema) string {
	parts := make([]string, len(p.Enum))
	for i, e := range p.Enum {
		parts[i] = fmt.Sprint(e)
	}
	return strings.Join(parts, ", ")
}

func (c *checker) value(p *jsonschema.Schema, path string, required bool, v json.RawMessage) {
	wrong := func() {
		if required {
			c.fail(path, "is required and must be %s", c.wanted(p))
		} else {
			c.fail(path, "must be %s", c.wanted(p))
		}
	}
	switch p.Type {
	case "string":
		if v[0] != '"' {
			wrong()
			return
		}
		c.text(p, path, wrong, rawjson.String(v))
	case "integer":
		n, err := strconv.ParseInt(string(wholePart(v)), 10, 64)
		if err != nil {
			wrong()
			return
		}
		c.bounds(p, path, float64(n))
	case "number":
		n, err := strconv.ParseFloat(string(v), 64)
		if err != nil {
			wrong()
			return
		}
		c.bounds(p, path, n)
	case "boolean":
		if v[0] != 't' && v[0] != 'f' {
			wrong()
		}
	case "array":
		list, ok := rawjson.Elements(v)
		if !ok {
			wrong()
			return
		}
		c.list(p, path, list)
	case "object":
		if v[0] != '{' {
			wrong()
			return
		}
		if p.Properties != nil {
			c.object(p, path, v)
		}
	}
}

// wholePart gives a number without a fraction of noughts, such as 60 of 60.0, which JSON Schema counts as a whole number. It
// blanks the fraction where it stands, since encoding/json doesn't take it for an integer.
func wholePart(v json.RawMessage) json.RawMessage {
	whole, fraction, has := bytes.Cut(v, []byte("."))
	if !has || len(bytes.Trim(fraction, "0")) > 0 {
		return v
	}
	for i := len(whole); i < len(v); i++ {
		v[i] = ' '
	}
	return whole
}

func (c *checker) list(p *jsonschema.Schema, path string, list []json.RawMessage) {
	if p.MaxItems != nil && len(list) > *p.MaxItems {
		c.fail(path, "has %d elements, at most %d are allowed", len(list), *p.MaxItems)
		return
	}
	if p.MinItems != nil && len(list) < *p.MinItems {
		c.fail(path, "has %d elements, at least %d are needed", len(list), *p.MinItems)
		return
	}
	for i, e := range list {
		at := path + "[" + strconv.Itoa(i) + "]"
		if string(e) == "null" {
			c.fail(at, "must be %s", c.wanted(p.Items))
			continue
		}
		c.value(p.Items, at, false, e)
	}
}

func (c *checker) bounds(p *jsonschema.Schema, path string, n float64) {
	if p.Minimum != nil && n < *p.Minimum {
		c.fail(path, "is %s, the least is %s", plain(n), plain(*p.Minimum))
	}
	if p.Maximum != nil && n > *p.Maximum {
		c.fail(path, "is %s, the most is %s", plain(n), plain(*p.Maximum))
	}
}

func (c *checker) text(p *jsonschema.Schema, path string, wrong func(), s string) {
	if strings.IndexByte(s, 0) >= 0 {
		c.fail(path, "has a NUL character, which can't be stored")
		return
	}
	if p.MinLength != nil && *p.MinLength > 0 && strings.IndexFunc(s, visible) < 0 {
		wrong()
		return
	}
	if p.MaxLength != nil && len(s) > *p.MaxLength { // bytes >= characters: only then count
		if n := utf8.RuneCountInString(s); n > *p.MaxLength {
			c.fail(path, "has %d characters, at most %d are allowed", n, *p.MaxLength)
			return
		}
	}
	if len(p.Enum) > 0 && !slices.Contains(p.Enum, any(s)) {
		c.fail(path, "is %q, must be one of %s", s, enum(p))
		for _, e := range p.Enum {
			c.valid = append(c.valid, fmt.Sprint(e))
		}
		return
	}
	switch c.forms[p] {
	case "date":
		if Day(s) == "" {
			c.fail(path, "is %q, must be a date such as 2026-08-31 (or a date-time, whose date counts as written)", short(s))
		}
	case "uuid":
		if len(s) != 36 || uuid.Validate(s) != nil {
			c.fail(path, "is %q, must be an id (UUID) as an earlier answer gave it", short(s))
		}
	case "url":
		if u, err := url.Parse(s); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			c.fail(path, "is %q, must be an address that begins with http:// or https://", short(s))
		}
	}
}

// visible tells whether a character leaves a mark: a name of blanks and invisible characters is none.
func visible(r rune) bool {
	return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.IsMark(r) && r != 0x2800 && r != 0x3164 && r != 0x115f && r != 0x1160 && r != 0xffa0
}

func short(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

// Day gives the date part, as written, of a date or a date-time; "" if s is neither. The time and the zone don't count: a
// date never shifts.
func Day(s string) string {
	if len(s) < 10 {
		return ""
	}
	if t, err := time.Parse(time.DateOnly, s[:10]); err != nil || t.Year() < 1 {
		return ""
	}
	if len(s) == 10 {
		return s
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04",
		"2006-01-02T15:04Z07:00", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999-0700"} {
		if _, err := time.Parse(layout, s); err == nil {
			return s[:10]
		}
	}
	return ""
}
