package db

// Null gives a text for a column that is NULL where there is none: nil for "".
func Null(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Text gives the text of a column that is NULL where there is none: "" for nil.
func Text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Flag gives a mark as it's stored: 1 or 0.
func Flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Since gives when something came to be so: the old moment if it was so before, now if it wasn't, nil where it isn't.
func Since(is bool, was *int64, now int64) *int64 {
	switch {
	case !is:
		return nil
	case was == nil:
		return &now
	}
	return was
}
