package words

import "strings"

// wordForms are the English words whose forms no rule of a stemmer joins, a word a line. Forms that are as often another word
// (bit, rose, left of a page) are left out.
const wordForms = `
become became
begin began begun
bend bent
bite bitten
bleed bled
blow blew blown
break broke broken
breed bred
bring brought
build built
burn burnt
buy bought
catch caught
child children
choose chose chosen
come came
creep crept
deal dealt
dig dug
draw drew drawn
dream dreamt
drink drank drunk
drive drove driven
eat ate eaten
fall fell fallen
feed fed
feel felt
fight fought
find found
flee fled
fly flew flown
foot feet
forbid forbade forbidden
forget forgot forgotten
forgive forgave forgiven
freeze froze frozen
get got gotten
give gave given
go went gone
goose geese
grow grew grown
half halves
hang hung
hear heard
hide hid hidden
hold held
keep kept
kneel knelt
knife knives
know knew known
lead led
leap leapt
learn learnt
leave left
lend lent
life lives
lose lost
make made
man men
mean meant
meet met
mistake mistook mistaken
mouse mice
pay paid
person people
ride rode ridden
ring rang rung
rise risen
run ran
say said
see saw seen
seek sought
sell sold
send sent
sew sewn
shake shook shaken
shelf shelves
shine shone
shoot shot
show shown
shrink shrank shrunk
sing sang sung
sink sank sunk
sit sat
sleep slept
slide slid
speak spoke spoken
spend spent
spin spun
stand stood
steal stole stolen
stick stuck
strike struck
sweep swept
swim swam swum
take took taken
teach taught
tear tore torn
tell told
thief thieves
think thought
throw threw thrown
tooth teeth
understand understood
wake woke woken
wear wore worn
weep wept
wife wives
win won
wolf wolves
woman women
write wrote written
`

var otherForms = func() map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(wordForms) {
		var terms []string
		for w := range strings.FieldsSeq(line) {
			terms = append(terms, Stem(w))
		}
		for i, t := range terms {
			for j, other := range terms {
				if i != j && other != t {
					all[t] = append(all[t], other)
				}
			}
		}
	}
	return all
}()

// OtherForms gives the terms of an English word's other forms (went, gone) by the term of one (go), where no stem joins them.
func OtherForms(term string) []string { return otherForms[term] }
