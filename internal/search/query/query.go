// Package query reads what is typed to search for, and makes a plan of it.
package query

import (
	"cairn/internal/words"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Phrase is what a typed word or a quoted phrase comes to: terms that must follow each other.
type Phrase struct {
	Terms  []string
	Prefix bool     // the last term is one character of an unspaced script and stands for every term that begins with it
	Forms  []string // of the one term, other forms of its word, which will do as well
}

// key is the same for equal phrases only: no term holds a space.
func (p Phrase) key() string {
	k := strings.Join(p.Terms, " ")
	if p.Prefix {
		k += " *"
	}
	return k
}

// Operand is a phrase as it stands in a query.
type Operand struct {
	Phrase
	Quoted bool
	Stop   bool
	Frame  bool     // in a question it says what sort of answer is wanted, not what it's about
	Name   bool     // it begins with a capital
	Loose  []Phrase // what to look for when any of the words will do
}

// Query is a parsed query. A match holds an Operand of each group and none of not.
type Query struct {
	Groups [][]Operand
	Not    []Phrase
	asks   bool // it begins as a question does
}

// Parse reads a query; any text is one. Words, "phrases", -word, -"phrase", and a OR b in capitals between two of them; all
// else is text, and a lone quote is nothing. bind tells whether a phrase in quotes must be found as it stands; where it
// needn't, its words are words like others.
func Parse(s string, bind bool) Query {
	items := lex(words.PlainQuotes.Replace(s), bind)
	first, _, _ := strings.Cut(words.TrimLeft(s), " ")
	q := Query{asks: words.Asking[words.Bare(first)]}
	either := false // the next Operand joins the last group
	for i, it := range items {
		switch {
		case it.exclude:
			q.Not = append(q.Not, it.Phrase)
		case it.or && i > 0 && !items[i-1].exclude && i+1 < len(items) && !items[i+1].exclude:
			either = true
			continue
		case either:
			last := &q.Groups[len(q.Groups)-1]
			*last = append(*last, it.Operand)
		default:
			q.Groups = append(q.Groups, []Operand{it.Operand})
		}
		either = false
	}
	return q
}

// item is an Operand with what it is to the parser.
type item struct {
	Operand
	exclude bool
	or      bool // the word OR
}

// lex cuts a query into items that have tokens.
func lex(s string, bind bool) []item {
	var items []item
	add := func(text string, quoted, exclude bool) {
		or := text == "OR" && !quoted && !exclude
		if or && len(items) > 0 && items[len(items)-1].or { // ORs in a row are one
			return
		}
		if o := newOperand(text, quoted); len(o.Terms) > 0 {
			items = append(items, item{Operand: o, exclude: exclude, or: or})
		}
	}
	for s = words.TrimLeft(s); s != ""; s = words.TrimLeft(s) {
		exclude := isExclusion(s)
		if exclude {
			s = s[1:]
		}
		if s[0] == '"' {
			quoted, rest, closed := strings.Cut(s[1:], `"`)
			switch {
			case !closed: // a lone quote is nothing
				s = s[1:]
				continue
			case bind || exclude:
				add(quoted, true, exclude)
			default:
				for w := range strings.FieldsSeq(quoted) {
					add(w, false, false)
				}
			}
			s = rest
			continue
		}
		end := strings.IndexFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == '"' })
		if end < 0 {
			end = len(s)
		}
		add(s[:end], false, exclude)
		s = s[end:]
	}
	return items
}

// isExclusion tells whether s begins with a dash that excludes: one dash before a word, a symbol or a closed quote.
func isExclusion(s string) bool {
	if len(s) < 2 || s[0] != '-' {
		return false
	}
	if s[1] == '"' {
		return strings.Contains(s[2:], `"`)
	}
	r, _ := utf8.DecodeRuneInString(s[1:])
	c := words.ClassOf(r)
	return c == words.Letter || c == words.RunChar || c == words.Symbol
}

func newOperand(text string, quoted bool) Operand {
	ts := slices.Collect(words.Tokens(text))
	first, _ := utf8.DecodeRuneInString(text)
	word := words.Bare(text)
	o := Operand{Phrase: whole(ts), Quoted: quoted, Stop: !quoted && words.Stop[word], Frame: !quoted && words.Frame[word], Name: !quoted && unicode.IsUpper(first)}
	if o.Loose = []Phrase{o.Phrase}; !quoted && len(o.Terms) > 1 {
		o.Loose = split(text, ts)
	}
	return o
}

// whole gives all tokens as one phrase.
func whole(ts []words.Token) Phrase {
	var p Phrase
	for i, t := range ts {
		if t.RunEnd && i == len(ts)-1 { // in a document more of the run may follow
			if words.InPair(ts, i) {
				break
			}
			p.Prefix = true
		}
		p.Terms = append(p.Terms, t.Text)
	}
	return p
}

// split gives what of a word of several tokens may be found alone. A word that holds a digit isn't split, so that REQ-042
// never finds REQ-043, unless it has a sentence stuck to it because its script has no spaces. Stop words inside the word
// (state-of-the-art) leave.
func split(text string, ts []words.Token) []Phrase {
	digits, pairs := false, 0
	for _, t := range ts {
		digits = digits || words.HasDigit(t.Text)
		if t.Run && !t.RunEnd {
			pairs++
		}
	}
	var all, content []Phrase
	add := func(p Phrase, stop bool) {
		all = append(all, p)
		if !stop {
			content = append(content, p)
		}
	}
	for i := 0; i < len(ts); {
		t, from := ts[i], i
		i++
		switch {
		case t.Run:
			if !t.RunEnd || !words.InPair(ts, i-1) {
				add(Phrase{Terms: []string{t.Text}, Prefix: t.RunEnd}, false)
			}
			continue
		case digits: // what stands between two runs stays together
			for i < len(ts) && !ts[i].Run {
				i++
			}
		}
		p := Phrase{}
		for _, t := range ts[from:i] {
			p.Terms = append(p.Terms, t.Text)
		}
		// One character may be several words in writing (ﷺ), so a token may come from a piece as long as the query.
		add(p, i-from == 1 && t.To-t.From <= words.LongestStop && words.Stop[strings.ToLower(text[t.From:t.To])])
	}
	if digits && pairs < 2 {
		return []Phrase{whole(ts)}
	}
	if len(content) == 0 {
		return all
	}
	return content
}

// Content gives the groups without those that are stop words only, or all if nothing else is there. Of a question, the words
// of its frame go too.
func (q Query) Content(question bool) [][]Operand {
	without := func(idle func(o Operand) bool) [][]Operand {
		return slices.DeleteFunc(slices.Clone(q.Groups), func(g []Operand) bool {
			return !slices.ContainsFunc(g, func(o Operand) bool { return !idle(o) })
		})
	}
	if question {
		if content := without(func(o Operand) bool { return o.Stop || o.Frame }); len(content) > 0 {
			return content
		}
	}
	if content := without(func(o Operand) bool { return o.Stop }); len(content) > 0 {
		return content
	}
	return q.Groups
}

// MaxPhrases bounds the work of one search: so many different phrases of a query are looked for, the first ones.
const MaxPhrases = 400

// Plan is a query made ready to be matched: each different phrase once, all else by its place in phrases.
type Plan struct {
	Phrases []Phrase
	Scored  []Scored
	Groups  [][]int // a strict match has a phrase of each
	Binding int     // so many of groups, the first ones, bind a loose match too: the quoted ones
	Not     []int
	Names   []int // phrases that are names, as it seems
	Long    bool  // the query had more than MaxPhrases
}

// Scored is a phrase that adds to the score, times times as it was typed.
type Scored struct {
	Phrase int
	Times  float32
}

// planner makes a plan.
type planner struct {
	*Plan
	places map[string]int // by Phrase.key: place in phrases
	scores map[int]int    // by place in phrases: place in scored
}

// place gives the place of a phrase, a new one where it's new; ok is false where there are too many.
func (p *planner) place(ph Phrase) (i int, ok bool) {
	k := ph.key()
	if i, ok = p.places[k]; ok {
		return i, true
	}
	if len(p.Phrases) == MaxPhrases {
		p.Long = true
		return 0, false
	}
	i = len(p.Phrases)
	p.places[k] = i
	p.Phrases = append(p.Phrases, ph)
	return i, true
}

func (p *planner) score(ph Phrase) {
	i, ok := p.place(ph)
	if !ok {
		return
	}
	at, ok := p.scores[i]
	if !ok {
		at = len(p.Scored)
		p.scores[i] = at
		p.Scored = append(p.Scored, Scored{Phrase: i})
	}
	p.Scored[at].Times++
}

// Plan compiles a query. Where strict is false any word will do, so there are no groups.
func (q Query) Plan(strict bool) *Plan {
	p := planner{&Plan{}, map[string]int{}, map[int]int{}}
	for _, ph := range q.Not {
		if i, ok := p.place(ph); ok {
			p.Not = append(p.Not, i)
		}
	}
	seen := map[string]bool{}
	var bound, free [][]int
	for _, g := range q.Content(q.asks && !strict) {
		quoted := !slices.ContainsFunc(g, func(o Operand) bool { return !o.Quoted })
		k := strconv.FormatBool(quoted)
		var group []int
		for _, o := range g {
			k += "\n" + o.key()
			for _, ph := range o.Loose {
				if !strict && len(ph.Terms) == 1 && !ph.Prefix {
					ph.Forms = words.OtherForms(ph.Terms[0])
				}
				p.score(ph)
			}
			if !strict {
				continue
			}
			if i, ok := p.place(o.Phrase); ok {
				group = append(group, i)
			}
		}
		switch {
		case len(group) == 0, seen[k]:
		case quoted:
			bound = append(bound, group)
		default:
			free = append(free, group)
		}
		seen[k] = true
	}
	p.Groups, p.Binding = append(bound, free...), len(bound)
	for _, ph := range q.names() {
		if i, known := p.places[ph.key()]; known && !slices.Contains(p.Plan.Names, i) {
			p.Plan.Names = append(p.Plan.Names, i)
		}
	}
	return p.Plan
}

// names are the words with a capital within a question. Where most words have one, they say nothing: it's a title, or German.
func (q Query) names() (found []Phrase) {
	names, words := 0, 0
	for i, g := range q.Groups {
		for _, o := range g {
			if o.Stop {
				continue
			}
			words++
			if !o.Name || i == 0 {
				continue
			}
			names++
			found = append(found, o.Loose...)
		}
	}
	if names > 2 && names*3 > words*2 {
		return nil
	}
	return found
}
