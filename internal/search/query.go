package search

import (
	"cairn/internal/words"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// phrase is what a typed word or a quoted phrase comes to: terms that must follow each other.
type phrase struct {
	terms  []string
	prefix bool     // the last term is one character of an unspaced script and stands for every term that begins with it
	forms  []string // of the one term, other forms of its word, which will do as well
}

// key is the same for equal phrases only: no term holds a space.
func (p phrase) key() string {
	k := strings.Join(p.terms, " ")
	if p.prefix {
		k += " *"
	}
	return k
}

// operand is a phrase as it stands in a query.
type operand struct {
	phrase
	quoted bool
	stop   bool
	frame  bool     // in a question it says what sort of answer is wanted, not what it's about
	name   bool     // it begins with a capital
	loose  []phrase // what to look for when any of the words will do
}

// query is a parsed query. A match holds an operand of each group and none of not.
type query struct {
	groups [][]operand
	not    []phrase
	asks   bool // it begins as a question does
}

// parse reads a query; any text is one. Words, "phrases", -word, -"phrase", and a OR b in capitals between two of them; all
// else is text, and a lone quote is nothing. bind tells whether a phrase in quotes must be found as it stands; where it
// needn't, its words are words like others.
func parse(s string, bind bool) query {
	items := lex(words.PlainQuotes.Replace(s), bind)
	first, _, _ := strings.Cut(words.TrimLeft(s), " ")
	q := query{asks: words.Asking[words.Bare(first)]}
	either := false // the next operand joins the last group
	for i, it := range items {
		switch {
		case it.exclude:
			q.not = append(q.not, it.phrase)
		case it.or && i > 0 && !items[i-1].exclude && i+1 < len(items) && !items[i+1].exclude:
			either = true
			continue
		case either:
			last := &q.groups[len(q.groups)-1]
			*last = append(*last, it.operand)
		default:
			q.groups = append(q.groups, []operand{it.operand})
		}
		either = false
	}
	return q
}

// item is an operand with what it is to the parser.
type item struct {
	operand
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
		if o := newOperand(text, quoted); len(o.terms) > 0 {
			items = append(items, item{operand: o, exclude: exclude, or: or})
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

func newOperand(text string, quoted bool) operand {
	ts := slices.Collect(words.Tokens(text))
	first, _ := utf8.DecodeRuneInString(text)
	word := words.Bare(text)
	o := operand{phrase: whole(ts), quoted: quoted, stop: !quoted && words.Stop[word], frame: !quoted && words.Frame[word], name: !quoted && unicode.IsUpper(first)}
	if o.loose = []phrase{o.phrase}; !quoted && len(o.terms) > 1 {
		o.loose = split(text, ts)
	}
	return o
}

// whole gives all tokens as one phrase.
func whole(ts []words.Token) phrase {
	var p phrase
	for i, t := range ts {
		if t.RunEnd && i == len(ts)-1 { // in a document more of the run may follow
			if words.InPair(ts, i) {
				break
			}
			p.prefix = true
		}
		p.terms = append(p.terms, t.Text)
	}
	return p
}

// split gives what of a word of several tokens may be found alone. A word that holds a digit isn't split, so that REQ-042
// never finds REQ-043, unless it has a sentence stuck to it because its script has no spaces. Stop words inside the word
// (state-of-the-art) leave.
func split(text string, ts []words.Token) []phrase {
	digits, pairs := false, 0
	for _, t := range ts {
		digits = digits || words.HasDigit(t.Text)
		if t.Run && !t.RunEnd {
			pairs++
		}
	}
	var all, content []phrase
	add := func(p phrase, stop bool) {
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
				add(phrase{terms: []string{t.Text}, prefix: t.RunEnd}, false)
			}
			continue
		case digits: // what stands between two runs stays together
			for i < len(ts) && !ts[i].Run {
				i++
			}
		}
		p := phrase{}
		for _, t := range ts[from:i] {
			p.terms = append(p.terms, t.Text)
		}
		// One character may be several words in writing (ﷺ), so a token may come from a piece as long as the query.
		add(p, i-from == 1 && t.To-t.From <= words.LongestStop && words.Stop[strings.ToLower(text[t.From:t.To])])
	}
	if digits && pairs < 2 {
		return []phrase{whole(ts)}
	}
	if len(content) == 0 {
		return all
	}
	return content
}

// content gives the groups without those that are stop words only, or all if nothing else is there. Of a question, the words
// of its frame go too.
func (q query) content(question bool) [][]operand {
	without := func(idle func(o operand) bool) [][]operand {
		return slices.DeleteFunc(slices.Clone(q.groups), func(g []operand) bool {
			return !slices.ContainsFunc(g, func(o operand) bool { return !idle(o) })
		})
	}
	if question {
		if content := without(func(o operand) bool { return o.stop || o.frame }); len(content) > 0 {
			return content
		}
	}
	if content := without(func(o operand) bool { return o.stop }); len(content) > 0 {
		return content
	}
	return q.groups
}

// maxPhrases bounds the work of one search: so many different phrases of a query are looked for, the first ones.
const maxPhrases = 400

// plan is a query made ready to be matched: each different phrase once, all else by its place in phrases.
type plan struct {
	phrases []phrase
	scored  []scored
	groups  [][]int // a strict match has a phrase of each
	binding int     // so many of groups, the first ones, bind a loose match too: the quoted ones
	not     []int
	names   []int // phrases that are names, as it seems
	long    bool  // the query had more than maxPhrases
}

// scored is a phrase that adds to the score, times times as it was typed.
type scored struct {
	phrase int
	times  float32
}

// planner makes a plan.
type planner struct {
	*plan
	places map[string]int // by phrase.key: place in phrases
	scores map[int]int    // by place in phrases: place in scored
}

// place gives the place of a phrase, a new one where it's new; ok is false where there are too many.
func (p *planner) place(ph phrase) (i int, ok bool) {
	k := ph.key()
	if i, ok = p.places[k]; ok {
		return i, true
	}
	if len(p.phrases) == maxPhrases {
		p.long = true
		return 0, false
	}
	i = len(p.phrases)
	p.places[k] = i
	p.phrases = append(p.phrases, ph)
	return i, true
}

func (p *planner) score(ph phrase) {
	i, ok := p.place(ph)
	if !ok {
		return
	}
	at, ok := p.scores[i]
	if !ok {
		at = len(p.scored)
		p.scores[i] = at
		p.scored = append(p.scored, scored{phrase: i})
	}
	p.scored[at].times++
}

// plan compiles a query. Where strict is false any word will do, so there are no groups.
func (q query) plan(strict bool) *plan {
	p := planner{&plan{}, map[string]int{}, map[int]int{}}
	for _, ph := range q.not {
		if i, ok := p.place(ph); ok {
			p.not = append(p.not, i)
		}
	}
	seen := map[string]bool{}
	var bound, free [][]int
	for _, g := range q.content(q.asks && !strict) {
		quoted := !slices.ContainsFunc(g, func(o operand) bool { return !o.quoted })
		k := strconv.FormatBool(quoted)
		var group []int
		for _, o := range g {
			k += "\n" + o.key()
			for _, ph := range o.loose {
				if !strict && len(ph.terms) == 1 && !ph.prefix {
					ph.forms = words.OtherForms(ph.terms[0])
				}
				p.score(ph)
			}
			if !strict {
				continue
			}
			if i, ok := p.place(o.phrase); ok {
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
	p.groups, p.binding = append(bound, free...), len(bound)
	for _, ph := range q.names() {
		if i, known := p.places[ph.key()]; known && !slices.Contains(p.plan.names, i) {
			p.plan.names = append(p.plan.names, i)
		}
	}
	return p.plan
}

// names are the words with a capital within a question. Where most words have one, they say nothing: it's a title, or German.
func (q query) names() (found []phrase) {
	names, words := 0, 0
	for i, g := range q.groups {
		for _, o := range g {
			if o.stop {
				continue
			}
			words++
			if !o.name || i == 0 {
				continue
			}
			names++
			found = append(found, o.loose...)
		}
	}
	if names > 2 && names*3 > words*2 {
		return nil
	}
	return found
}
