package made

import (
	"fmt"
	"strings"
)

// nouns are what the memory of the benchmark is about.
var nouns = strings.Fields(`garden house billing invoice client contract office kitchen bicycle train flight hotel budget tax insurance doctor dentist school
	teacher course language novel library museum concert guitar piano camera printer laptop server database backup release roadmap customer survey interview newsletter website
	logo brochure meeting agenda minutes supplier warehouse delivery package letter passport visa bank loan mortgage rent heating roof window carpet sofa lamp tea coffee bread
	recipe dinner birthday wedding anniversary holiday beach mountain forest river boat harbour airport station ticket map tent stove running swimming yoga sleep breakfast
	lunch energy focus morning evening weekend summer winter spring autumn deadline project proposal offer price discount partner team hiring salary training mentor habit
	journal photo video podcast article essay speech slide chart report audit security password token privacy consent`)

// Said gives a sentence as people say them, about two of the nouns, with some words that hardly any other has.
func (w Words) Said(forms ...string) string {
	noun := func() string { return nouns[w.IntN(len(nouns))] }
	return fmt.Sprintf(forms[w.IntN(len(forms))], noun(), noun(), w.Ranked(2, 500, Vocabulary))
}

// Question gives the query of a number, of about eight tokens. Hardly two of a few hundred are alike.
func Question(i int) string {
	w := NewWords(uint64(1_000_000 + i))
	forms := []string{"what about the %s and the %s", "plan the %s before the %s", "how do I like %s with my %s"}
	return fmt.Sprintf(forms[w.IntN(len(forms))], nouns[w.IntN(len(nouns))], nouns[w.IntN(len(nouns))])
}

// Objects gives context objects of all kinds.
func Objects(from, n int) []map[string]string {
	list := make([]map[string]string, n)
	for j := range list {
		w := NewWords(uint64(5_000_000 + from*n + j))
		kinds := []string{"decision", "decision", "belief", "mental_model", "learning", "learning", "learning", "open_question", "preference", "original"}
		list[j] = map[string]string{"kind": kinds[w.IntN(len(kinds))], "subject": w.Said("%s %s %s"),
			"statement": w.Said("I prefer the %s to the %s when it is %s.", "We move the %s behind the %s for %s.", "The %s matters more than the %s, says %s.", "I learned that a %s needs its %s and %s.")}
	}
	return list
}
