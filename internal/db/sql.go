package db

import (
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Args collects the arguments of a statement while its text is put together.
type Args []any

// Add appends an argument and gives its placeholder.
func (a *Args) Add(v any) string {
	*a = append(*a, v)
	return "$" + strconv.Itoa(len(*a))
}

// List appends values and gives the parenthesised list for IN. An empty list matches nothing.
func (a *Args) List(vs []string) string {
	if len(vs) == 0 {
		return "(NULL)"
	}
	marks := make([]string, len(vs))
	for i, v := range vs {
		marks[i] = a.Add(v)
	}
	return "(" + strings.Join(marks, ", ") + ")"
}

// Padded repeats the last value up to the next of some lengths, which rise: so lists of all lengths make few texts of statements,
// which are prepared once each. A list longer than all of them stays as it is.
func Padded(vs []string, lengths ...int) []string {
	for _, n := range lengths {
		if n >= len(vs) && len(vs) > 0 {
			return append(slices.Clone(vs), slices.Repeat(vs[len(vs)-1:], n-len(vs))...)
		}
	}
	return vs
}

// Column reads rows of one text each and closes them; it takes what a query gives.
func Column(rows *sql.Rows, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []string
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// Latest joins one select per item, each with its own ORDER BY and LIMIT, into one result in that order. So every select
// runs along its own index, where one IN would collect all rows and sort them.
func Latest[T any](items []T, sel func(T) string, order string) string {
	if len(items) == 1 {
		return sel(items[0])
	}
	parts := make([]string, len(items))
	for i, it := range items {
		parts[i] = "SELECT * FROM (" + sel(it) + ") AS p" + strconv.Itoa(i)
	}
	return strings.Join(parts, " UNION ALL ") + " ORDER BY " + order
}

// IsNone tells whether err says that there was no row.
func IsNone(err error) bool { return errors.Is(err, sql.ErrNoRows) }
