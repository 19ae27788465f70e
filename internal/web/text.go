package web

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/web/files"
)

var functions = template.FuncMap{
	"asset": assetURL, "plural": plural, "list": func(v ...any) []any { return v }, "dict": dict, "kind": kindText, "areas": areasText,
	"lower": strings.ToLower, "sentence": sentence, "agentRights": agentRights,
	"rightsOf": rightsOf, "stampOf": op.Stamp, "size": files.SizeText, "safeRedirect": safeRedirect,
}

// dict makes a map of pairs, so that a part can get several values.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("dict has %d arguments: they must be pairs", len(pairs))
	}
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m, nil
}

// safeRedirect lets a link lead to where a client is waiting, a program's own scheme too. The address was checked when the
// client registered it: no scheme that a browser would run.
func safeRedirect(address string) template.URL { return template.URL(address) } //nolint:gosec // see above

// plural gives "1 heap" or "3 heaps".
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// sentence begins a fault's message with a capital letter and ends it with a full stop.
func sentence(text string) string {
	if text == "" {
		return text
	}
	if c := text[0]; c >= 'a' && c <= 'z' {
		text = string(c-'a'+'A') + text[1:]
	}
	if !strings.ContainsAny(text[len(text)-1:], ".!?") {
		text += "."
	}
	return text
}

// isolated keeps the direction signs in a name from turning the words around it.
func isolated(name string) string { return "\u2068" + name + "\u2069" }

// kindText names a heap's kind.
func kindText(kind string) string {
	if kind == "" {
		return ""
	}
	return strings.ToUpper(kind[:1]) + kind[1:]
}

// and joins names as a sentence does.
func and(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// areasText names areas; nil means all.
func areasText(areas []string) string {
	if areas == nil {
		return "all areas"
	}
	return and(areas)
}

// agentRights says in one sentence what an agent or a token may do.
func agentRights(heaps, areas []string, write bool) string {
	where := "no heap"
	if heaps == nil {
		where = "all heaps"
	} else if len(heaps) > 0 {
		where = and(heaps)
	}
	verb := "Reads "
	if write {
		verb = "Reads and writes "
	}
	return verb + areasText(areas) + " in " + where
}

// Time shows a moment in the person's zone, in words that fit its distance: "14:02", "yesterday, 14:02", "3 Oct, 14:02".
// It takes a string or a *string as operations write moments.
func (v *View) Time(at any) template.HTML {
	text, ok := at.(string)
	if p, is := at.(*string); is && p != nil {
		text, ok = *p, true
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if !ok || err != nil {
		return ""
	}
	zone := time.UTC
	if v.Caller != nil && v.Caller.Zone != nil {
		zone = v.Caller.Zone
	}
	t, now := t.In(zone), time.UnixMicro(v.now).In(zone)
	date := func(t time.Time) string { return t.Format(time.DateOnly) }
	words := t.Format("2 Jan 2006, 15:04")
	switch {
	case date(t) == date(now):
		words = "today, " + t.Format("15:04")
	case date(t) == date(now.AddDate(0, 0, -1)):
		words = "yesterday, " + t.Format("15:04")
	case date(t) == date(now.AddDate(0, 0, 1)):
		words = "tomorrow, " + t.Format("15:04")
	case t.Year() == now.Year():
		words = t.Format("2 Jan, 15:04")
	}
	return template.HTML(`<time datetime="` + t.UTC().Format(time.RFC3339) + `">` + words + `</time>`) //nolint:gosec // made of a parsed time
}

// Today gives the date where the person is, in words.
func (v *View) Today() string {
	if v.Caller == nil {
		return ""
	}
	return v.Caller.Time(v.now).Format("Monday, 2 January 2006, 15:04")
}

// Problem gives the fault of one form, or nil.
func (v *View) Problem(form string) *fault.Error {
	if v.Failed != form {
		return nil
	}
	return v.Fault
}

// Value gives a field's value: what was sent if its form was refused, else what is stored.
func (v *View) Value(form, field string, stored any) string {
	if v.Failed == form && v.Form != nil {
		return v.Form.Get(field)
	}
	if stored == nil {
		return ""
	}
	if p, ok := stored.(*string); ok {
		if p == nil {
			return ""
		}
		return *p
	}
	return fmt.Sprint(stored)
}

// Ticked tells whether a tick box or radio button with this value is set.
func (v *View) Ticked(form, field, value string, stored bool) bool {
	if v.Failed == form && v.Form != nil {
		return slices.Contains(v.Form[field], value)
	}
	return stored
}

// Field is what the part "field" needs; pairs are further settings: hint, type, autocomplete, required, list, mono, max, rows.
func (v *View) Field(form, name, label string, stored any, pairs ...any) (map[string]any, error) {
	m, err := dict(pairs...)
	if err != nil {
		return nil, err
	}
	m["id"], m["name"], m["label"], m["value"] = form+"-"+name, name, label, v.Value(form, name, stored)
	if f := v.Problem(form); f != nil && f.Field == name {
		m["error"] = sentence(f.Message)
	}
	if m["type"] == nil {
		m["type"] = "text"
	}
	if m["autocomplete"] == nil {
		m["autocomplete"] = "off"
	}
	return m, nil
}

// Tick is what the part "tick" needs: a tick box, or a radio button where pairs say type radio.
func (v *View) Tick(form, name, value, label string, stored bool, pairs ...any) (map[string]any, error) {
	m, err := dict(pairs...)
	if err != nil {
		return nil, err
	}
	m["id"], m["name"], m["value"], m["label"] = form+"-"+name+"-"+value, name, value, label
	if v.Ticked(form, name, value, stored) {
		m["checked"] = true
	}
	if m["type"] == nil {
		m["type"] = "checkbox"
	}
	return m, nil
}

// Summary is what the part "errors" needs.
func (v *View) Summary(form string) map[string]any {
	f := v.Problem(form)
	if f == nil {
		return nil
	}
	m := map[string]any{"form": form, "lead": "Nothing was changed.", "text": sentence(f.Message), "field": f.Field}
	if form == "upload" { // files before the one that is at fault are stored
		m["lead"] = "Not all was stored."
	}
	if strings.Contains(f.Message, " has 0 elements") { // of tick boxes, in the words of the page
		m["text"] = "Choose at least one of the " + f.Field + "."
	}
	if f.Kind == fault.Internal {
		m["id"] = f.Data["id"]
	}
	return m
}
