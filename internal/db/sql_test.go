package db_test

import (
	"fmt"
	"slices"
	"testing"

	"cairn/internal/db"
)

func TestPaddedListsHaveTheSameValuesInFewLengths(t *testing.T) {
	seen := map[int]bool{}
	var all []string
	for n := range 30 {
		padded := db.Padded(all, 1, 5, 20)
		if !slices.Equal(slices.Compact(slices.Clone(padded)), all) {
			t.Errorf("of %d: %v", n, padded)
		}
		if n <= 20 {
			seen[len(padded)] = true
		}
		all = append(all, fmt.Sprint(n))
	}
	if len(seen) != 4 { // with that of none
		t.Errorf("lengths %v", seen)
	}
}
