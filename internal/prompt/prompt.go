// Package prompt holds what people call by name in their client: MCP's prompts. A prompt is a value beside the operations, and
// its text is made for who asks: it names calls of operations in their order, and none that this caller may not make. It knows
// operations by name alone; the surface says which are the caller's, and runs them.
package prompt

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/rawjson"
	"cairn/internal/who"
)

// Prompt is one prompt.
type Prompt struct {
	Name, Title string
	Doc         string // for the person who chooses among prompts
	Args        []Arg

	needs []string // operations: who may call none of them is not offered the prompt; nil = all are
	write func(*draft) error
}

// Arg is an argument of a prompt: a text, which may always be left out.
type Arg struct {
	Name, Title, Doc string
	complete         func(c *who.Caller, now time.Time) []string // what it may be; nil = any text
}

// most characters of an argument.
const most = 500

// Asked is one request for a prompt's text.
type Asked struct {
	Caller *who.Caller
	Now    time.Time // in the caller's zone
	Args   map[string]string
	May    func(op string) bool                                  // whether the caller may call an operation
	Run    func(op string, args json.RawMessage) ([]byte, error) // calls one as the caller, and gives its object
}

// All gives the prompts, by name.
func All() []*Prompt { return []*Prompt{planDay(), startSession(), wrapUp()} }

// Offered tells whether a prompt is anything for a caller who may call the operations that may says.
func (p *Prompt) Offered(may func(op string) bool) bool {
	return p.needs == nil || slices.ContainsFunc(p.needs, may)
}

// Text makes the text for a request. Arguments that are unknown, too long or don't fit are refused.
func (p *Prompt) Text(a Asked) (string, error) {
	d := &draft{Asked: a, given: map[string]string{}}
	for name, value := range a.Args {
		if p.arg(name) == nil {
			return "", p.noArg(name)
		}
		if value = strings.TrimSpace(value); utf8.RuneCountInString(value) > most {
			return "", fault.Bad("arguments."+name, "has %d characters, at most %d are taken", utf8.RuneCountInString(value), most)
		}
		d.given[name] = value
	}
	if err := p.write(d); err != nil {
		return "", err
	}
	return strings.TrimRight(d.text.String(), "\n") + "\n", nil
}

// Complete gives what an argument may be that is typed so far, the likeliest first: none where it may be any text.
func (p *Prompt) Complete(c *who.Caller, now time.Time, arg, typed string) ([]string, error) {
	a := p.arg(arg)
	if a == nil {
		return nil, p.noArg(arg)
	}
	fitting := []string{}
	if a.complete == nil {
		return fitting, nil
	}
	begun := who.Fold(typed)
	for _, v := range a.complete(c, now) {
		if strings.HasPrefix(who.Fold(v), begun) {
			fitting = append(fitting, v)
		}
	}
	return fitting, nil
}

func (p *Prompt) arg(name string) *Arg {
	i := slices.IndexFunc(p.Args, func(a Arg) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Args[i]
}

func (p *Prompt) noArg(name string) error {
	names := make([]string, len(p.Args))
	for i, a := range p.Args {
		names[i] = a.Name
	}
	f := fault.Bad("arguments."+name, "is not known to the prompt %s, which takes: %s", p.Name, strings.Join(names, ", "))
	f.Valid = names
	return f
}

// heapArg is an argument that names a heap; dayArg one that names a day.
var (
	heapArg = Arg{Name: "heap", Title: "Heap", Doc: "a heap's name or id; all of them where it is left out", complete: heaps}
	dayArg  = Arg{Name: "day", Title: "Day", Doc: "YYYY-MM-DD, today or tomorrow; today where it is left out", complete: days}
)

// heaps gives the caller's heaps by name, and by id where several have the name.
func heaps(c *who.Caller, _ time.Time) []string {
	named := map[string]int{}
	for _, h := range c.Heaps {
		named[who.Fold(h.Name)]++
	}
	var list []string
	for _, h := range c.Heaps {
		if named[who.Fold(h.Name)] > 1 {
			list = append(list, h.ID)
		} else {
			list = append(list, h.Name)
		}
	}
	return list
}

// days gives today, tomorrow, and the dates of a week from today on.
func days(_ *who.Caller, now time.Time) []string {
	list := []string{"today", "tomorrow"}
	for i := range 7 {
		list = append(list, now.AddDate(0, 0, i).Format(time.DateOnly))
	}
	return list
}

// draft is a text that is being written.
type draft struct {
	Asked
	given map[string]string // arguments without space around them
	text  strings.Builder
	steps int
}

// today gives the caller's date.
func (d *draft) today() string { return d.Now.Format(time.DateOnly) }

// day gives the date that the argument day names.
func (d *draft) day() (string, error) {
	switch given := d.given["day"]; strings.ToLower(given) {
	case "", "today":
		return d.today(), nil
	case "tomorrow":
		return d.Now.AddDate(0, 0, 1).Format(time.DateOnly), nil
	default:
		day := op.Day(given)
		if _, err := time.Parse(time.DateOnly, day); err != nil {
			return "", fault.Bad("arguments.day", "is %q, must be a date such as 2026-08-31, today or tomorrow", given)
		}
		return day, nil
	}
}

// say adds a paragraph.
func (d *draft) say(format string, args ...any) { fmt.Fprintf(&d.text, format+"\n\n", args...) }

// step adds a numbered step. Each %s in it stands for a call. A step with a call that isn't the caller's is left out.
func (d *draft) step(text string, calls ...call) bool {
	words := make([]any, len(calls))
	for i, c := range calls {
		if !d.May(c.op) {
			return false
		}
		words[i] = c
	}
	d.steps++
	fmt.Fprintf(&d.text, "%d. "+text+"\n", append([]any{d.steps}, words...)...)
	return true
}

// call is a call that a text names.
type call struct {
	op   string
	args string // JSON
}

// calling words a call: each %s in form stands for a text, which is quoted.
func calling(op, form string, texts ...string) call {
	words := make([]any, len(texts))
	for i, s := range texts {
		words[i] = quote(s)
	}
	return call{op, fmt.Sprintf(form, words...)}
}

// String gives the call as the guides write calls in a line.
func (c call) String() string { return "`" + c.op + " " + c.args + "`" }

// quote makes a JSON string that stands between backticks as well.
func quote(s string) string {
	return strings.ReplaceAll(string(rawjson.Quote(nil, []byte(s))), "`", `\u0060`)
}
