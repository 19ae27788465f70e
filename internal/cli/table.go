package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"cairn/internal/op"
	"cairn/internal/rawjson"
)

// human prints an answer for a person: its own words where it has some, a table where it is a list, else its members.
func human(w io.Writer, res op.Result) error {
	if len(res.Texts) > 0 {
		_, err := fmt.Fprintln(w, res.Texts[0])
		return err
	}
	var rest [][]string
	rawjson.Members(res.JSON, func(k string, v json.RawMessage) bool {
		if list, ok := rawjson.Elements(v); ok && len(list) > 0 && list[0][0] == '{' {
			listTable(w, list)
		} else if v[0] == '{' {
			fmt.Fprintln(w, k+":")
			var rows [][]string
			rawjson.Members(v, func(k string, v json.RawMessage) bool {
				rows = append(rows, []string{"  " + k, cell(v)})
				return true
			})
			table(w, nil, rows)
		} else {
			rest = append(rest, []string{k, cell(v)})
		}
		return true
	})
	table(w, nil, rest)
	return nil
}

// cell writes a value in one line.
func cell(v json.RawMessage) string {
	switch {
	case string(v) == "null":
		return "-"
	case v[0] == '"':
		return strings.Join(strings.Fields(rawjson.String(v)), " ")
	}
	if list, ok := rawjson.Elements(v); ok {
		parts := make([]string, len(list))
		for i, e := range list {
			parts[i] = cell(e)
		}
		return strings.Join(parts, ", ")
	}
	return string(v)
}

// listTable prints a list of objects, leaving out columns that are empty in all rows.
func listTable(w io.Writer, list []json.RawMessage) {
	var heads []string
	filled := map[string]bool{}
	rows := make([]map[string]string, len(list))
	for i, e := range list {
		rows[i] = map[string]string{}
		rawjson.Members(e, func(k string, v json.RawMessage) bool {
			if !slices.Contains(heads, k) {
				heads = append(heads, k)
			}
			s := cell(v)
			rows[i][k] = s
			filled[k] = filled[k] || s != "-" && s != "" && s != "false"
			return true
		})
	}
	heads = slices.DeleteFunc(heads, func(k string) bool { return !filled[k] })
	out := make([][]string, len(rows))
	titles := make([]string, len(heads))
	for j, k := range heads {
		titles[j] = strings.ToUpper(strings.ReplaceAll(k, "_", " "))
		for i := range rows {
			out[i] = append(out[i], rows[i][k])
		}
	}
	table(w, titles, out)
}

// widest is how many characters a cell shows, except in the last column.
const widest = 60

// table prints rows in columns.
func table(w io.Writer, heads []string, rows [][]string) {
	if heads != nil {
		rows = append([][]string{heads}, rows...)
	}
	var widths []int
	for _, r := range rows {
		for j, s := range r {
			if j == len(widths) {
				widths = append(widths, 0)
			}
			if j < len(r)-1 && utf8.RuneCountInString(s) > widest {
				r[j] = string([]rune(s)[:widest-1]) + "…"
			}
			widths[j] = max(widths[j], utf8.RuneCountInString(r[j]))
		}
	}
	for _, r := range rows {
		var b strings.Builder
		for j, s := range r {
			b.WriteString(s)
			if j < len(r)-1 {
				b.WriteString(strings.Repeat(" ", widths[j]-utf8.RuneCountInString(s)+2))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}
