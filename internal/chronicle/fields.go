package chronicle

// querier is the part of db.DB and db.Tx that reading one row needs.
type querier func(q string, args []any, dest ...any) error

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func opt(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// since gives when something came to be so: the old moment if it was so before, now if it wasn't, nil where it isn't.
func since(is bool, was *int64, now int64) *int64 {
	switch {
	case !is:
		return nil
	case was == nil:
		return &now
	}
	return was
}
