// Package made makes up the data of the benchmark: texts with words as they occur, tasks, what a memory holds, and vectors.
// Equal numbers and seeds always give the same.
package made

import (
	"math/rand/v2"
	"strings"
)

// Words draws words as they occur in text: from 20,000, by a Zipf distribution. Equal seeds draw equal words.
type Words struct {
	*rand.Rand
	zipf *rand.Zipf
}

// Vocabulary is how many words there are.
const Vocabulary = 20_000

// NewWords makes the words of a seed.
func NewWords(seed uint64) Words {
	r := rand.New(rand.NewPCG(seed, 1))
	return Words{r, rand.NewZipf(r, 1.1, 4, Vocabulary-1)}
}

// word spells the word of a rank, 0 being the commonest. Common words are short, as in any language; the x at the end keeps
// them from being stop words and from being taken for forms of each other.
func word(rank uint64) string {
	const consonants, vowels = "bcdfghjklmnpqrstvwyz", "aeiou"
	const syllables = uint64(len(consonants) * len(vowels))
	var b []byte
	for n := rank + 1; n > 0; n = (n - 1) / syllables { // bijective, so that no two ranks spell alike
		s := (n - 1) % syllables
		b = append(b, consonants[s/uint64(len(vowels))], vowels[s%uint64(len(vowels))])
	}
	return string(append(b, 'x'))
}

// Text gives from..to words as they occur.
func (w Words) Text(from, to int) string {
	list := make([]string, from+w.IntN(to-from+1))
	for i := range list {
		list[i] = word(w.zipf.Uint64())
	}
	return strings.Join(list, " ")
}

// Ranked gives n words from among the ranks from..to, each as likely.
func (w Words) Ranked(n, from, to int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = word(uint64(from + w.IntN(to-from)))
	}
	return strings.Join(list, " ")
}

// Task are the arguments of a task.
type Task struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	DueDate     string `json:"due_date,omitempty"`
	ExternalRef string `json:"external_ref,omitempty"`
}

// NewTask makes the task of a number: a short one as people make them, each third with a description of 10 to 25 words; or
// a long one with 35 to 80.
func NewTask(i int, long bool) Task {
	w := NewWords(uint64(i))
	t := Task{Name: w.Text(3, 9), DueDate: "2026-10-" + string([]byte{'1' + byte(i%2), '0' + byte(i/2%10)})}
	if long {
		t.Description = w.Text(35, 80)
	} else if i%3 == 0 {
		t.Description = w.Text(10, 25)
	}
	return t
}
