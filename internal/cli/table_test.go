package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// shown prints an answer on a terminal of some columns.
func shown(t *testing.T, columns int, answer string) string {
	t.Helper()
	local := time.Local
	time.Local = time.UTC
	defer func() { time.Local = local }()
	if !json.Valid([]byte(answer)) {
		t.Fatal("not JSON: ", answer)
	}
	var b bytes.Buffer
	(&screen{w: &b, width: columns}).answer(json.RawMessage(answer))
	return b.String()
}

func TestAnswersOnATerminal(t *testing.T) {
	for _, c := range []struct {
		name    string
		columns int
		answer  string
		want    string
	}{
		{"a list", 80, `{"count":2,"tasks":[{"id":"a1","text":"Dig","due_date":"2026-08-01","starred":false,"ref":null},{"id":"a2","text":"Weed\nnow","due_date":null,"starred":false,"ref":null}]}`, `
TEXT      DUE DATE    ID
Dig       2026-08-01  a1
Weed now              a2

2 tasks
`},
		{"one row, and more to come", 80, `{"count":1,"changes":[{"id":"a1","at":"2026-08-01T09:30:00.000Z","undoes":null}],"next_cursor":"abc","note":"any word"}`, `
AT                ID
2026-08-01 09:30  a1

1 change
There are more: call again with "cursor":"abc"
note: any word
`},
		{"none", 80, `{"count":0,"tasks":[]}`, "\nno tasks\n"},
		{"columns that don't fit", 24, `{"count":1,"things":[{"id":"a1","kind":"task","heap":"0123456789","name":"Dig","before":{"a":1}}]}`, `
NAME  KIND  ID
Dig   task  a1

1 thing (not all columns fit; --json has them)
`},
		{"a text that doesn't fit", 40, `{"count":1,"things":[{"id":"0123456789","name":"Dig the long bed beside the fence"}]}`, `
NAME                          ID
Dig the long bed beside the…  0123456789

1 thing
`},
		{"one thing", 80, `{"id":"a1","result":"created","external_ref":null,"state":"live","task":{"id":"a1","text":"Dig","description":"One\n\nTwo","tags":["x","y"],"starred":true,"done":false,"state":"live","created_at":"2026-08-01T09:30:01.000Z"},"ignored":["recurence"]}`, `
created task a1
  text         Dig
  description  One

               Two
  tags         x, y
  starred      yes
  done         no
  state        live
  created_at   2026-08-01 09:30:01
  ignored      recurence
`},
		{"several things", 80, `{"project":{"id":"p1","name":"Garden"},"brief":null,"log":[],"open":[{"id":"a1","text":"Dig"}],"open_count":1}`, `
open_count  1

project
  id    p1
  name  Garden

open
TEXT  ID
Dig   a1
`},
		{"a result without a thing", 80, `{"id":"l1","result":"created","completed":["a1"],"skipped":[]}`, `
created l1
  completed  a1
`},
		{"two lists", 80, `{"undone":[{"change_id":"c1","fields":["name","state"]}],"left":[{"change_id":"c2","why":"gone"}],"dry_run":false,"request":"r"}`, `
dry_run  no
request  r

undone
CHANGE ID  FIELDS
c1         name, state

left
CHANGE ID  WHY
c2         gone
`},
		{"what would steer the terminal", 80, `{"count":1,"tasks":[{"id":"a1","text":"a\u001b[31mb\u0007c\u202ed\u009be"}]}`, "\nTEXT           ID\na\uFFFD[31mb\uFFFDc\uFFFDd\uFFFDe  a1\n\n1 task\n"},
		{"wide and combining characters", 80, `{"count":2,"tasks":[{"text":"报告","n":1},{"text":"e\u0301te\u0301 👍","n":2}]}`, "\nTEXT    N\n报告    1\ne\u0301te\u0301 👍  2\n\n2 tasks\n"},
	} {
		if got := "\n" + shown(t, c.columns, c.answer); got != c.want {
			t.Errorf("%s:%s\nwant:%s", c.name, got, c.want)
		}
	}
}

func TestNoLineOfATableIsWiderThanTheTerminal(t *testing.T) {
	row := `{"id":"01a22c4a-1c41-7733-908a-917ff2a7e7ed","text":"` + strings.Repeat("字 word ", 30) + `","description":"` + strings.Repeat("x", 300) + `","actor":"` + strings.Repeat("y", 40) + `","updated_at":"2026-08-01T09:30:00.000Z"}`
	for _, columnsOf := range []int{80, 100, 132, 200} {
		for line := range strings.Lines(shown(t, columnsOf, `{"count":1,"tasks":[`+row+`]}`)) {
			if n := columns(strings.TrimSuffix(line, "\n")); n > columnsOf {
				t.Errorf("%d columns of %d: %s", n, columnsOf, line)
			}
		}
	}
}

func TestProseWrapsInItsColumn(t *testing.T) {
	var b bytes.Buffer
	(&screen{w: &b, width: 34}).wrapped([][]string{{"ok", "disk", "fine"}, {"WRONG", "port", "is taken by another program\n→ stop it"}})
	want := `ok     disk  fine
WRONG  port  is taken by another
             program
             → stop it
`
	if b.String() != want {
		t.Errorf("\n%s\nwant\n%s", b.String(), want)
	}
}
