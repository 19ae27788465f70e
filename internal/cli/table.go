package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"
	"golang.org/x/text/width"

	"cairn/internal/rawjson"
)

// screen prints answers for a person. It knows no tool: it goes by the shapes that all answers share (a list with its
// count, one thing with its result and id, members with plain names).
type screen struct {
	w     io.Writer
	width int // columns of the terminal
}

// narrow is what a terminal that doesn't tell its width is taken for.
const narrow = 100

func (r *run) screen(w io.Writer) *screen {
	s := &screen{w: w, width: narrow}
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			s.width = n
		}
	}
	return s
}

// member is one member of an object.
type member struct {
	name  string
	value json.RawMessage
}

func (m member) object() bool { return m.value[0] == '{' }

// rows gives the elements of a list of objects; ok is also true for an empty list.
func (m member) rows() (list []json.RawMessage, ok bool) {
	list, ok = rawjson.Elements(m.value)
	return list, ok && (len(list) == 0 || list[0][0] == '{')
}

// empty tells whether there is nothing to show.
func (m member) empty() bool {
	switch string(m.value) {
	case "null", `""`, "[]", "{}":
		return true
	}
	return false
}

func members(b json.RawMessage) (all []member) {
	rawjson.Members(b, func(k string, v json.RawMessage) bool {
		all = append(all, member{k, v})
		return true
	})
	return all
}

// answer prints an operation's answer.
func (s *screen) answer(b json.RawMessage) {
	all := members(b)
	lists, objects := 0, 0
	for _, m := range all {
		if _, ok := m.rows(); ok {
			lists++
		}
		if m.object() {
			objects++
		}
	}
	if lists == 1 && objects == 0 && !slices.ContainsFunc(all, func(m member) bool { return m.name == "result" }) {
		s.listAnswer(all)
		return
	}
	s.thing(all)
}

// listAnswer prints a list, how many there are, and how to go on.
func (s *screen) listAnswer(all []member) {
	for _, m := range all {
		list, ok := m.rows()
		if !ok {
			continue
		}
		all := s.list(list)
		noun := strings.ReplaceAll(m.name, "_", " ")
		if len(list) == 1 {
			noun = strings.TrimSuffix(noun, "s")
		}
		n := fmt.Sprint(len(list))
		if len(list) == 0 {
			n = "no"
		} else {
			fmt.Fprintln(s.w)
		}
		foot := n + " " + noun
		if !all {
			foot += " (not all columns fit; --json has them)"
		}
		fmt.Fprintln(s.w, foot)
	}
	for _, m := range all {
		_, isList := m.rows()
		switch {
		case isList, m.name == "count", m.empty(), string(m.value) == "0", string(m.value) == "false":
		case m.name == "next_cursor":
			fmt.Fprintln(s.w, `There are more: call again with "cursor":`+string(m.value))
		default:
			s.paragraph(m.name + ": " + cell(m.value))
		}
	}
}

// thing prints an answer that is no mere list: what happened to what, then its members.
func (s *screen) thing(all []member) {
	get := func(name string) string {
		for _, m := range all {
			if m.name == name && m.value[0] == '"' {
				return rawjson.String(m.value)
			}
		}
		return ""
	}
	noun := member{}
	if get("result") != "" {
		for _, m := range all {
			if m.object() && noun.value == nil {
				noun = m
			}
		}
	}
	said := []string{"id", "result"}
	inside := members(noun.value)
	if head := strings.Join(strings.Fields(get("result")+" "+noun.name+" "+get("id")), " "); get("result") != "" {
		fmt.Fprintln(s.w, printable(head, false))
	} else {
		said = nil
	}
	var rows []member
	for _, m := range append(inside, all...) {
		_, isList := m.rows()
		repeated := slices.ContainsFunc(rows, func(r member) bool { return r.name == m.name })
		if !m.object() && (!isList || m.empty()) && !m.empty() && !repeated && !slices.Contains(said, m.name) {
			rows = append(rows, m)
		}
	}
	s.fields(rows, 2*min(1, len(said)))
	for _, m := range all {
		list, isList := m.rows()
		switch {
		case m.name == noun.name && noun.value != nil, m.empty():
		case m.object():
			fmt.Fprintln(s.w, "\n"+m.name)
			s.fields(members(m.value), 2)
		case isList:
			fmt.Fprintln(s.w, "\n"+m.name)
			s.list(list)
		}
	}
}

// fields prints members one a line. A text of several lines goes on below its first.
func (s *screen) fields(all []member, indent int) {
	all = slices.DeleteFunc(slices.Clone(all), member.empty)
	widest := 0
	for _, m := range all {
		widest = max(widest, columns(m.name))
	}
	pad := strings.Repeat(" ", indent)
	for _, m := range all {
		v := cell(m.value)
		switch {
		case string(m.value) == "false":
			v = "no"
		case m.value[0] == '"':
			v = printable(moment(rawjson.String(m.value), true), true)
		}
		for i, text := range strings.Split(strings.TrimRight(v, "\n"), "\n") {
			name := m.name
			if i > 0 {
				name = ""
			}
			fmt.Fprintln(s.w, strings.TrimRight(pad+fill(name, widest)+"  "+text, " "))
		}
	}
}

// Columns that go where a terminal is too narrow for all, most dispensable first: the dispensable ones before any text is
// cut, the lesser ones only where cutting isn't enough. The rest of them are in the JSON.
var (
	dispensable = []string{"before", "after", "heap", "request", "on_behalf", "actor", "thing", "project_id", "average_ms", "account", "effect", "kind", "created_at",
		"source_url", "description", "completion_date", "op", "focused_date", "start_date", "work_notes"}
	lesser = []string{"via", "run", "updated_at", "undoes", "change_id", "url"}
)

// list prints objects as a table, without the columns that are empty in all rows, and tells whether there was room for all
// the others. What a thing is called comes first and its id last: a person reads the rest.
func (s *screen) list(list []json.RawMessage) (all bool) {
	all = true
	if len(list) == 0 {
		return all
	}
	var names []string
	rows := make([]map[string]string, len(list))
	filled := map[string]bool{}
	for i, e := range list {
		rows[i] = map[string]string{}
		for _, m := range members(e) {
			if !slices.Contains(names, m.name) {
				names = append(names, m.name)
			}
			v := cell(m.value)
			if m.value[0] == '{' { // too much for a column
				all = all && v == ""
				v = ""
			}
			rows[i][m.name] = v
			filled[m.name] = filled[m.name] || v != ""
		}
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !filled[n] })
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	total := func(most int) int {
		n := 2 * (len(names) - 1)
		for _, name := range names {
			n += min(most, s.widest(name, rows))
		}
		return n
	}
	drop := func(spare []string, most int) {
		for _, name := range spare {
			if i := slices.Index(names, name); i >= 0 && total(most) > s.width && len(names) > 2 {
				names, all = slices.Delete(names, i, i+1), false
			}
		}
	}
	drop(dispensable, math.MaxInt)
	drop(lesser, enoughText)
	s.squeeze(names, rows, func() int { return total(math.MaxInt) })
	s.table(names, rows)
	return all
}

// rank puts columns in order.
func rank(name string) int {
	switch name {
	case "text", "name", "title", "summary":
		return 0
	case "id":
		return 2
	}
	return 1
}

func title(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "_", " ")) }

func (s *screen) widest(name string, rows []map[string]string) int {
	n := columns(title(name))
	for _, r := range rows {
		n = max(n, columns(r[name]))
	}
	return n
}

// Columns of text may be cut to leastText; to enoughText they are before another column goes. An id has 36.
const (
	leastText  = 16
	enoughText = 36
)

// squeeze cuts the widest texts until the table fits, or can't.
func (s *screen) squeeze(names []string, rows []map[string]string, total func() int) {
	for over := total() - s.width; over > 0; over = total() - s.width {
		most, which := leastText, ""
		for _, name := range names {
			if n := s.widest(name, rows); n > most && name != "id" {
				most, which = n, name
			}
		}
		if which == "" {
			return
		}
		limit := max(leastText, columns(title(which)), most-over)
		if limit >= most {
			return
		}
		for _, r := range rows {
			r[which] = cut(r[which], limit)
		}
	}
}

func (s *screen) table(names []string, rows []map[string]string) {
	head := map[string]string{}
	for _, n := range names {
		head[n] = title(n)
	}
	for _, r := range append([]map[string]string{head}, rows...) {
		var b strings.Builder
		for _, n := range names {
			b.WriteString(fill(r[n], s.widest(n, rows)) + "  ")
		}
		fmt.Fprintln(s.w, strings.TrimRight(b.String(), " "))
	}
}

// wrapped prints rows whose last column is prose: it goes on below itself.
func (s *screen) wrapped(rows [][]string) {
	var widths []int
	for _, r := range rows {
		for j, v := range r[:len(r)-1] {
			if j == len(widths) {
				widths = append(widths, 0)
			}
			widths[j] = max(widths[j], columns(v))
		}
	}
	for _, r := range rows {
		var b strings.Builder
		for j, v := range r[:len(r)-1] {
			b.WriteString(fill(printable(v, false), widths[j]) + "  ")
		}
		first := b.String()
		room := max(24, s.width-columns(first))
		for i, text := range wrap(printable(r[len(r)-1], true), room) {
			if i > 0 {
				first = strings.Repeat(" ", columns(first))
			}
			fmt.Fprintln(s.w, strings.TrimRight(first+text, " "))
		}
	}
}

func (s *screen) paragraph(text string) {
	for _, l := range wrap(printable(text, true), s.width) {
		fmt.Fprintln(s.w, l)
	}
}

// wrap breaks a text between words into lines of at most room columns.
func wrap(text string, room int) (lines []string) {
	for part := range strings.SplitSeq(text, "\n") {
		line := ""
		for _, word := range strings.Fields(part) {
			if line != "" && columns(line)+1+columns(word) > room {
				lines = append(lines, line)
				line = ""
			}
			if line != "" {
				line += " "
			}
			line += word
		}
		lines = append(lines, line)
	}
	return lines
}

// cell writes a value in one line.
func cell(v json.RawMessage) string {
	switch string(v) {
	case "null", "false", "{}", "[]":
		return ""
	case "true":
		return "yes"
	}
	if v[0] == '"' {
		return strings.Join(strings.Fields(printable(moment(rawjson.String(v), false), false)), " ")
	}
	if list, ok := rawjson.Elements(v); ok {
		parts := make([]string, len(list))
		for i, e := range list {
			parts[i] = cell(e)
		}
		return strings.Join(parts, ", ")
	}
	return printable(string(v), false)
}

// stampForm is how answers write moments.
const stampForm = "2006-01-02T15:04:05.000Z"

// moment shows a moment in this machine's zone, and anything else as it is.
func moment(s string, seconds bool) string {
	t, err := time.Parse(stampForm, s)
	if err != nil {
		return s
	}
	if seconds {
		return t.Local().Format(time.DateTime)
	}
	return t.Local().Format("2006-01-02 15:04")
}

// printable takes out what would steer a terminal: names and texts come from anyone. Line ends stay where lines is true.
func printable(s string, lines bool) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' && lines, r == '\t' && lines:
			return r
		case r == '\n', r == '\t':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029':
			return '\uFFFD'
		}
		return r
	}, s)
}

// columns is how much room a text takes on a terminal.
func columns(s string) (n int) {
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case wide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

func wide(r rune) bool {
	k := width.LookupRune(r).Kind()
	return k == width.EastAsianWide || k == width.EastAsianFullwidth
}

func fill(s string, n int) string { return s + strings.Repeat(" ", max(0, n-columns(s))) }

// cut shortens a text to at most n columns.
func cut(s string, n int) string {
	if columns(s) <= n {
		return s
	}
	room, out := n-1, ""
	for _, r := range s {
		if room -= columns(string(r)); room < 0 {
			break
		}
		out += string(r)
	}
	return out + "…"
}
