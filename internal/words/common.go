package words

import (
	"strings"
	"unicode"
)

// LongestStop is how many bytes the longest word of Stop has, or more.
const LongestStop = 16

// Stop words leave a query unless nothing else is left.
var Stop = wordSet(`a an and are as at be been being but by can could did do does for from had has have he her
	hers him his how i if in into is it its me my of on or our she should so some such than that the their them then there
	these they this those to was we were what when where which who whom why will with would you your about after before
	during any all not no am don't didn't doesn't isn't wasn't aren't weren't won't wouldn't couldn't shouldn't can't hasn't
	haven't hadn't it's that's what's who's where's how's i'm i've i'll i'd you're you've you'll he's she's we're we've
	they're they've let's there's`)

// Frame words leave a question too: "how many times", "what kind of", "would she likely".
var Frame = wordSet(`consider considered date ever happen happened kind kinds likely many may might much often possibly
	probably recently some sort sorts still time times type types year years`)

// Asking words begin a question.
var Asking = wordSet(`are can could did do does had has have how in is should was were what when where which who whom whose why
	will would`)

func wordSet(list string) map[string]bool {
	all := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		all[w] = true
	}
	return all
}

// Bare gives a word without what stands around it, in small letters; "" where it's long.
func Bare(word string) string {
	word = strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	if len(word) > 12 {
		return ""
	}
	return strings.ReplaceAll(strings.ToLower(word), "’", "'")
}

// PlainQuotes writes every sort of quotation mark as the plain one.
var PlainQuotes = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "‟", `"`, "«", `"`, "»", `"`, "＂", `"`)

// TrimLeft gives s without the white space it begins with.
func TrimLeft(s string) string { return strings.TrimLeftFunc(s, unicode.IsSpace) }
