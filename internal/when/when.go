// Package when reads dates in texts and questions: "8 May 2023", "in May", "last spring", "two weeks ago". It knows English
// words and ISO dates, and never fails: what it doesn't understand is no date.
package when

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Span is a time in days since 1970, both ends in it. Weight is 1, less where the text leaves open which time is meant.
type Span struct {
	From, To int32
	Weight   float32
}

// Away is by how many days a day lies outside.
func (s Span) Away(day int32) int32 { return max(s.From-day, day-s.To, 0) }

// Of gives the day of a moment, as its zone has it.
func Of(t time.Time) int32 {
	y, m, d := t.Date()
	return day(y, m, d)
}

// Parse reads YYYY-MM-DD.
func Parse(s string) (int32, bool) {
	t, err := time.Parse(time.DateOnly, s)
	return Of(t), err == nil
}

func day(y int, m time.Month, d int) int32 {
	return int32(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400)
}

const (
	months   = `(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)`
	dayNo    = `(\d{1,2})(?:st|nd|rd|th)?`
	year     = `((?:19|20)\d\d)`
	counts   = `(\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|a couple of|a few|several)`
	weekdays = `(monday|tuesday|wednesday|thursday|friday|saturday|sunday)`
)

// rule is a way to write a time. Rules are tried in their order, and what one has read no later one sees.
type rule struct {
	re   *regexp.Regexp
	span func(m []string, now time.Time) []Span
}

func at(expr string) *regexp.Regexp { return regexp.MustCompile(`\b` + expr + `\b`) }

var exact = []rule{
	{at(`(\d{4})-(\d\d)-(\d\d)`), func(m []string, _ time.Time) []Span { return oneDay(m[1], number(m[2]), m[3]) }},
	{at(dayNo + `(?: of)? ?` + months + `\.?,? ` + year), func(m []string, _ time.Time) []Span { return oneDay(m[3], month(m[2]), m[1]) }},
	{at(months + `\.? ` + dayNo + `,? ` + year), func(m []string, _ time.Time) []Span { return oneDay(m[3], month(m[1]), m[2]) }},
}

var loose = []rule{
	{at(months + `\.?,? (?:of )?` + year), func(m []string, _ time.Time) []Span {
		y, mo := number(m[2]), time.Month(month(m[1]))
		return sure(day(y, mo, 1), day(y, mo+1, 0))
	}},
	{at(`(\d{4})-(\d\d)`), func(m []string, _ time.Time) []Span {
		y, mo := number(m[1]), number(m[2])
		if mo < 1 || mo > 12 {
			return nil
		}
		return sure(day(y, time.Month(mo), 1), day(y, time.Month(mo)+1, 0))
	}},
	{at(`(spring|summer|autumn|fall|winter)(?: of)? ` + year), func(m []string, _ time.Time) []Span { return []Span{season(m[1], number(m[2]))} }},
	{at(dayNo + `(?: of)? ` + months), func(m []string, now time.Time) []Span { return yearly(now, month(m[2]), number(m[1])) }},
	{at(months + `\.? ` + dayNo), func(m []string, now time.Time) []Span { return yearly(now, month(m[1]), number(m[2])) }},
	{at(`(?:in|during|since|until|by|of|last|this|early|late|mid|around) (?:early |late |mid |the (?:beginning|end|middle) of )?` + months), func(m []string, now time.Time) []Span {
		return yearly(now, month(m[1]), 0)
	}},
	{at(`(?:last|this|in the|in|during the|over the|past|previous) (spring|summer|autumn|fall|winter)`), func(m []string, now time.Time) []Span {
		var spans []Span
		for y := now.Year(); y > now.Year()-years; y-- {
			spans = append(spans, season(m[1], y))
		}
		return past(spans, now)
	}},
	{at(counts + ` (day|week|month|year)s? (?:ago|back|earlier)`), ago},
	{at(`(?:the )?(last|past|previous|this) (week|month|year|weekend)`), lastOne},
	{at(`(today|yesterday|tonight|last night|this morning)`), func(m []string, now time.Time) []Span {
		d := Of(now)
		if m[1] == "yesterday" || m[1] == "last night" {
			d--
		}
		return sure(d, d)
	}},
	{at(`(?:last|on|this) ` + weekdays), func(m []string, now time.Time) []Span {
		for d := Of(now) - 1; ; d-- {
			if strings.EqualFold(time.Unix(int64(d)*86400, 0).UTC().Weekday().String(), m[1]) {
				return sure(d, d)
			}
		}
	}},
	{at(`(recent|recently|lately|latest|newest|currently|these days|nowadays)`), func(_ []string, now time.Time) []Span {
		return []Span{{Of(now) - 30, Of(now), unsure}}
	}},
	{at(year), func(m []string, _ time.Time) []Span {
		y := number(m[1])
		return sure(day(y, 1, 1), day(y, 12, 31))
	}},
}

const (
	unsure = .5
	years  = 6 // that "in May" may mean
	limit  = 2000
)

// In gives the times that a text names, seen from now.
func In(text string, now time.Time) []Span {
	s := strings.ToLower(cut(text))
	spans, s := read(exact, s, now)
	more, _ := read(loose, s, now)
	return append(spans, more...)
}

// First gives the first day that a text names in full.
func First(text string) (int32, bool) {
	s := strings.ToLower(cut(text))
	best, where := Span{}, -1
	for _, r := range exact {
		for _, m := range r.re.FindAllStringSubmatchIndex(s, -1) {
			if spans := r.span(groups(s, m), time.Time{}); len(spans) > 0 && (where < 0 || m[0] < where) {
				best, where = spans[0], m[0]
			}
		}
	}
	return best.From, where >= 0
}

func cut(s string) string { return s[:min(len(s), limit)] }

func groups(s string, m []int) []string {
	g := make([]string, len(m)/2)
	for i := range g {
		if m[2*i] >= 0 {
			g[i] = s[m[2*i]:m[2*i+1]]
		}
	}
	return g
}

func read(rules []rule, s string, now time.Time) (spans []Span, rest string) {
	for _, r := range rules {
		s = r.re.ReplaceAllStringFunc(s, func(found string) string {
			got := r.span(r.re.FindStringSubmatch(found), now)
			if len(got) == 0 {
				return found
			}
			spans = append(spans, got...)
			return " "
		})
	}
	return spans, s
}

func sure(from, to int32) []Span { return []Span{{from, to, 1}} }

func oneDay(y string, m int, d string) []Span {
	t := time.Date(number(y), time.Month(m), number(d), 0, 0, 0, 0, time.UTC)
	if m < 1 || m > 12 || t.Day() != number(d) {
		return nil
	}
	return sure(Of(t), Of(t))
}

// yearly gives a day or, where d is 0, a month in each of the last years.
func yearly(now time.Time, m, d int) []Span {
	if d > 31 {
		return nil
	}
	var spans []Span
	for y := now.Year(); y > now.Year()-years; y-- {
		s := Span{day(y, time.Month(m), d), day(y, time.Month(m), d), 1}
		if d == 0 {
			s = Span{day(y, time.Month(m), 1), day(y, time.Month(m)+1, 0), 1}
		}
		spans = append(spans, s)
	}
	return past(spans, now)
}

// past leaves out what hasn't begun; of the rest the newest is meant most likely.
func past(spans []Span, now time.Time) []Span {
	var kept []Span
	for _, s := range spans {
		if s.From > Of(now) {
			continue
		}
		if len(kept) > 0 {
			s.Weight = unsure
		}
		kept = append(kept, s)
	}
	return kept
}

// season is one of the northern half of the earth; a winter is called by the year it begins in.
func season(name string, y int) Span {
	first := map[string]time.Month{"spring": time.March, "summer": time.June, "autumn": time.September, "fall": time.September, "winter": time.December}[name]
	return Span{day(y, first, 1), day(y, first+3, 0), 1}
}

func ago(m []string, now time.Time) []Span {
	n := number(m[1])
	var t time.Time
	slack := int32(0)
	switch m[2] {
	case "day":
		t = now.AddDate(0, 0, -n)
	case "week":
		t, slack = now.AddDate(0, 0, -7*n), 3
	case "month":
		t, slack = now.AddDate(0, -n, 0), 15
	case "year":
		t, slack = now.AddDate(-n, 0, 0), 183
	}
	return sure(Of(t)-slack, min(Of(t)+slack, Of(now)))
}

func lastOne(m []string, now time.Time) []Span {
	d := Of(now)
	week := d - int32((now.Weekday()+6)%7) // its Monday
	this := m[1] == "this"
	switch m[2] {
	case "weekend":
		if this {
			return sure(week+5, week+6)
		}
		return sure(week-2, week-1)
	case "week":
		if this {
			return sure(week, week+6)
		}
		return sure(week-7, week-1)
	case "month":
		first := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
		if !this {
			first = first.AddDate(0, -1, 0)
		}
		return sure(Of(first), Of(first.AddDate(0, 1, -1)))
	}
	y := now.Year()
	if !this {
		y--
	}
	return sure(day(y, 1, 1), day(y, 12, 31))
}

func month(name string) int {
	return strings.Index("janfebmaraprmayjunjulaugsepoctnovdec", name[:3])/3 + 1
}

func number(s string) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	switch s {
	case "a couple of":
		return 2
	case "a few", "several":
		return 3
	}
	for i, w := range strings.Fields("one two three four five six seven eight nine ten eleven twelve") {
		if w == s {
			return i + 1
		}
	}
	return 1 // a, an
}
