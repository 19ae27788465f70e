// Package table writes the tables of the benchmark.
package table

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Table is a Markdown table with a note below its title.
type Table struct {
	Title, Note string
	Head        []string
	Rows        [][]string
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Write aligns the columns, so that the text reads well on a terminal too.
func (t Table) Write(b *strings.Builder) {
	fmt.Fprintf(b, "## %s\n\n", t.Title)
	width := make([]int, len(t.Head))
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	line := func(row []string, pad string) {
		b.WriteByte('|')
		for i, cell := range row {
			fill := strings.Repeat(pad, width[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				fmt.Fprintf(b, " %s%s |", cell, fill)
			} else {
				fmt.Fprintf(b, " %s%s |", fill, cell)
			}
		}
		b.WriteByte('\n')
	}
	line(t.Head, " ")
	rule := make([]string, len(t.Head))
	for i := range rule {
		if rule[i] = strings.Repeat("-", max(2, width[i])); i > 0 {
			rule[i] = rule[i][1:] + ":"
		}
		width[i] = max(2, width[i])
	}
	line(rule, "-")
	for _, row := range t.Rows {
		line(row, " ")
	}
	fmt.Fprintf(b, "\n%s\n\n", t.Note)
}
