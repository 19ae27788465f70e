//go:build !race

package embed

import (
	"strings"
	"testing"
)

// The race detector allocates by itself and empties pools.
func TestEmbedAllocatesLittle(t *testing.T) {
	for _, text := range []string{shortQuery, strings.Repeat("one two three ", 20)} {
		embedOne(t, text)
		if n := testing.AllocsPerRun(5, func() { embedOne(t, text) }); n > 6 {
			t.Errorf("%.20q: %v allocations", text, n)
		}
	}
}
