package oauth

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"cairn/internal/account"
	"cairn/internal/who"
)

// Known is what a person's own agents say of the program that asks. Where nothing is known of it, the pointers are nil.
type Known struct {
	Agents []account.Agent // those that the attempt may go on as
	Same   *account.Agent  // what this client is already
	Ended  *account.Agent  // what this client was last, if it is nothing now
	Alike  *account.Agent  // another agent, or of another client, whose name a person takes for this client's
}

// May tells whether the attempt may go on as what its client is already.
func (k Known) May() bool {
	return k.Same != nil && slices.ContainsFunc(k.Agents, func(a account.Agent) bool { return a.ID == k.Same.ID })
}

// Known looks through all agents of a person: a request that can't go on as an agent may still wear its name.
func (s *Service) Known(ctx context.Context, v View, person string) (k Known, err error) {
	all, err := s.accounts.Agents(ctx, person)
	if err != nil {
		return k, err
	}
	name := looks(v.ClientName)
	for i, a := range all {
		switch {
		case a.ClientID == v.ClientID:
			if k.Same == nil {
				k.Same = &all[i]
			}
		case k.Alike == nil && (looks(a.Name) == name || looks(a.ClientName) == name):
			k.Alike = &all[i]
		}
	}
	if k.Same == nil {
		if k.Ended, err = s.accounts.EndedAgent(ctx, person, v.ClientID); err != nil {
			return k, err
		}
	}
	k.Agents = slices.DeleteFunc(slices.Clone(all), func(a account.Agent) bool { return !covers(v, a) })
	return k, nil
}

// covers tells whether an attempt may go on as an agent: one whose rights the request covers.
func covers(v View, a account.Agent) bool { return v.Write || !a.Write }

// twins are letters and digits that are drawn like a Latin letter, after lower case and without marks: what UTS #39 calls
// confusable, as far as a name of a program would use it.
var twins = func() map[rune]rune {
	m := map[rune]rune{}
	for _, pair := range []string{
		"аa", "вb", "сc", "ԁd", "еe", "һh", "іi", "јj", "кk", "мm", "ոn", "оo", "рp", "ԛq", "ѕs", "тt", "υu", "ѵv", "ԝw", "хx", "уy", "ӏi", "ґr", "гr", "пn",
		"αa", "βb", "ϲc", "εe", "ηn", "ιi", "κk", "νv", "οo", "ρp", "τt", "χx", "γy", "ωw", "μu", "օo", "սu", "հh", "ցg", "ɡg", "ɑa", "ıi", "ʏy", "ѡw",
		"0o", "1i", "li", "|i", "5s", "øo", "łi", "đd", "ħh",
	} {
		r := []rune(pair)
		m[r[0]] = r[1]
	}
	return m
}()

// looks gives what a person reads in a name at a glance: letters and digits by their shape, and neither case nor marks,
// spaces and signs.
func looks(name string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(who.Fold(name)) {
		if t := twins[r]; t != 0 {
			r = t
		}
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(r)
		}
	}
	if b.Len() == 0 { // a name of signs alone is its signs
		return who.Fold(name)
	}
	return b.String()
}
