package made

import "testing"

func TestWordsDiffer(t *testing.T) {
	seen := map[string]uint64{}
	for rank := range uint64(Vocabulary) {
		w := word(rank)
		if other, twice := seen[w]; twice {
			t.Fatalf("ranks %d and %d are both spelled %s", other, rank, w)
		}
		seen[w] = rank
	}
	if a, b := NewWords(3).Text(35, 80), NewWords(3).Text(35, 80); a != b {
		t.Error("equal seeds drew different words")
	}
}
