package filter

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/rawjson"
	"cairn/internal/who"
)

// headRunes is how many characters of a text values are ordered by: an index holds no long ones.
const headRunes = 120

// Head gives what the value of a property (a JSON string, number or bool) is compared and ordered by: bools, then numbers, then
// texts without regard to case. folded is its text, to look through.
func Head(value json.RawMessage) (head, folded string) {
	switch value = rawjson.Trim(value); {
	case string(value) == "false":
		return "b0", "false"
	case string(value) == "true":
		return "b1", "true"
	case len(value) > 0 && value[0] == '"':
		folded = who.Fold(rawjson.String(value))
		return "t" + cut(folded), folded
	}
	n, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return "x", string(value)
	}
	if n == 0 {
		n = 0 // of the two noughts there is one
	}
	bits := math.Float64bits(n)
	if bits>>63 == 1 { // hex in the order of the numbers: those below nought the other way round
		bits = ^bits
	} else {
		bits |= 1 << 63
	}
	return fmt.Sprintf("n%016x", bits), string(value)
}

func cut(text string) string {
	if len(text) <= headRunes {
		return text
	}
	for i := range text {
		if headRunes == utf8.RuneCountInString(text[:i]) {
			return text[:i]
		}
	}
	return text
}

// Condition is one that a property must meet. Values compare with those of their own kind: numbers with numbers, texts (dates
// among them, which are in the order of time) with texts without regard to case, for less and greater by their first 120
// characters. A block without the property meets is_not and empty, and no other.
type Condition struct {
	Key   string          `json:"key" rule:"required,min=1,max=100"`
	Op    string          `json:"op" rule:"required,enum=is|is_not|contains|less|greater|before|after|empty|not_empty"`
	Value json.RawMessage `json:"value,omitempty" jsonschema:"string, number or true/false; before and after take a date"`
}

// maxValue is how many characters the text of a condition may have: those of the longest property.
const maxValue = 2048

// Check holds a condition to what its operator takes and gives it in one form; field names it in a fault.
func (c Condition) Check(field string) (Condition, error) {
	c.Key = strings.TrimSpace(c.Key)
	value := rawjson.Trim(c.Value)
	none := len(value) == 0 || string(value) == "null"
	if c.Op == "empty" || c.Op == "not_empty" {
		if !none {
			return c, fault.Bad(field, "has a value, and %s takes none", c.Op)
		}
		c.Value = nil
		return c, nil
	}
	if none || value[0] == '{' || value[0] == '[' {
		return c, fault.Bad(field+".value", "must be a string, a number or true/false for %s", c.Op)
	}
	if value[0] == '"' {
		text := rawjson.String(value)
		switch n := utf8.RuneCountInString(text); {
		case n > maxValue:
			return c, fault.Bad(field+".value", "has %d characters, at most %d are allowed", n, maxValue)
		case strings.IndexByte(text, 0) >= 0:
			return c, fault.Bad(field+".value", "has a NUL character, which no property has")
		case c.Op == "contains" && who.Fold(text) == "":
			return c, fault.Bad(field+".value", "is empty, and every text contains that: use not_empty")
		}
	}
	switch c.Op {
	case "before", "after":
		if value[0] != '"' || !isDate(rawjson.String(value)) {
			return c, fault.Bad(field+".value", "must be a date such as 2026-08-31 for %s", c.Op)
		}
	case "contains":
		if value[0] != '"' {
			return c, fault.Bad(field+".value", "must be a string for contains")
		}
	case "less", "greater":
		if value[0] == 't' || value[0] == 'f' {
			return c, fault.Bad(field+".value", "must be a number or a string for %s", c.Op)
		}
	}
	c.Value = value
	return c, nil
}

func isDate(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return err == nil
}

// not tells whether a condition is that there is no property that meets it.
func (c Condition) not() bool { return c.Op == "empty" || c.Op == "is_not" }

// meets words a condition on the property row of the alias p, or of not on the rows that there must not be.
func (c Condition) meets(p string, args *db.Args) string {
	head, folded := Head(c.Value)
	switch c.Op {
	case "is", "is_not":
		cond := " AND " + p + ".head = " + args.Add(head)
		if head != "t"+folded && head[0] == 't' { // the rest of a long text
			cond += " AND " + p + ".folded = " + args.Add(folded)
		}
		return cond
	case "contains": // not LIKE: % and _ are characters like any other
		return " AND replace(" + p + ".folded, " + args.Add(folded) + ", '') <> " + p + ".folded"
	case "less", "greater", "before", "after":
		s, _ := c.span()
		return s.meets(p, args)
	}
	return ""
}

// span is a part of the values of a property: between two heads, the first one in it or not, the last one not.
type span struct {
	key, from, to string
	with, date    bool
	of            []string // the conditions that it is made of
}

// span gives what a condition leaves of the values; false where it is none that bounds them.
func (c Condition) span() (span, bool) {
	head, _ := Head(c.Value)
	s := span{key: c.Key, date: c.Op == "before" || c.Op == "after", of: []string{c.name()}}
	switch c.Op {
	case "less", "before":
		s.from, s.with, s.to = head[:1], true, head
	case "greater", "after":
		s.from, s.to = head, string(head[0]+1)
	default:
		return s, false
	}
	return s, true
}

// spans joins the conditions that bound the values of one property: a database makes use of one bound at each end.
func (q Query) spans() (list []span) {
	for _, c := range q.Properties {
		s, is := c.span()
		if !is {
			continue
		}
		i := slices.IndexFunc(list, func(o span) bool { return o.key == s.key })
		if i < 0 {
			list = append(list, s)
			continue
		}
		o := &list[i]
		if s.from > o.from || s.from == o.from && !s.with {
			o.from, o.with = s.from, s.with
		}
		o.to, o.date, o.of = min(o.to, s.to), o.date || s.date, append(o.of, s.of...)
	}
	return list
}

func (s span) meets(p string, args *db.Args) string {
	sign := map[bool]string{true: " >= ", false: " > "}[s.with]
	cond := " AND " + p + ".head" + sign + args.Add(s.from) + " AND " + p + ".head < " + args.Add(s.to)
	if s.date {
		cond += " AND " + p + ".type = 'date'"
	}
	return cond
}

// fillAtOnce is how many values one write of Fill makes.
const fillAtOnce = 500

// Fill makes heads of the properties that were stored before there were any. It is called before the first request.
func Fill(ctx context.Context, d *db.DB) error {
	for {
		n := 0
		err := d.Write(ctx, func(tx *db.Tx) error {
			type row struct{ block, key, value string }
			var list []row
			rows, err := tx.Query(`SELECT block, key, value FROM property WHERE head = '' LIMIT ` + strconv.Itoa(fillAtOnce))
			if err != nil {
				return err
			}
			for rows.Next() {
				var r row
				if err := rows.Scan(&r.block, &r.key, &r.value); err != nil {
					_ = rows.Close()
					return err
				}
				list = append(list, r)
			}
			_ = rows.Close()
			if err := rows.Err(); err != nil {
				return err
			}
			for _, r := range list {
				head, folded := Head(json.RawMessage(r.value))
				if _, err := tx.Exec(`UPDATE property SET head = $3, folded = $4 WHERE block = $1 AND key = $2`, r.block, r.key, head, folded); err != nil {
					return err
				}
			}
			n = len(list)
			return nil
		})
		if err != nil || n < fillAtOnce {
			return err
		}
	}
}
