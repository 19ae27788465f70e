package op

import (
	"strings"
	"time"

	"cairn/internal/fault"
)

// Stamp writes microseconds since 1970 as RFC 3339 with milliseconds and Z.
func Stamp(micros int64) string {
	t := time.UnixMicro(micros).UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.Format("2006-01-02T15:04:05.000Z")
	}
	hour, minute, second := t.Clock()
	ms := t.Nanosecond() / 1e6
	b := []byte("0000-00-00T00:00:00.000Z") // by hand: lists write many of these
	for _, f := range [...]struct{ at, width, v int }{{0, 4, year}, {5, 2, int(month)}, {8, 2, day}, {11, 2, hour}, {14, 2, minute}, {17, 2, second}, {20, 3, ms}} {
		for i := f.at + f.width - 1; f.v > 0; i-- {
			b[i] = byte('0' + f.v%10)
			f.v /= 10
		}
	}
	return string(b)
}

// Since reads the start of a time range: as Moment does.
func Since(field, s string, zone *time.Location) (int64, error) {
	at, _, err := Moment(field, s, zone)
	return at, err
}

// The first and the last moment that can be told: years have four digits, and none before the first.
var (
	firstMoment = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	lastMoment  = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)
)

// Moment reads when something happened: RFC 3339, or a date or a date-time without an offset, which are taken in zone; a date
// begins with its first moment there. Gregorian dates count back to year 1. day tells that only a date was given. The moment
// is in microseconds since 1970 UTC, and whole milliseconds, as Stamp writes them.
func Moment(field, s string, zone *time.Location) (micros int64, day bool, err error) {
	if zone == nil {
		zone = time.UTC
	}
	t, day, ok := readMoment(strings.ToUpper(strings.TrimSpace(s)), zone)
	if !ok {
		return 0, false, fault.Bad(field, "is %q, must be a time such as 2026-08-31T09:30:00Z, or a date, from year 1 to 9999", short(s))
	}
	if day && t.Before(firstMoment) { // the first date, where the clock is ahead of UTC
		t = firstMoment
	}
	if day && t.After(lastMoment) {
		t = lastMoment
	}
	if t.Before(firstMoment) || t.After(lastMoment) {
		return 0, false, fault.Bad(field, "is %q, which lies outside the years 1 to 9999 (UTC)", short(s))
	}
	return t.Truncate(time.Millisecond).UnixMicro(), day, nil
}

func readMoment(s string, zone *time.Location) (t time.Time, day, ok bool) {
	leap := len(s) >= 19 && s[16:19] == ":60"
	if leap { // the second before it, at its very end: it stays in its minute, hour and day
		s = s[:16] + ":59" + s[19:]
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999-0700"} {
		if t, err := time.Parse(layout, s); err == nil {
			if leap {
				if u := t.UTC(); u.Hour() != 23 || u.Minute() != 59 {
					return t, false, false
				}
				t = t.Truncate(time.Second).Add(999 * time.Millisecond)
			}
			return t, false, t.Year() >= 1
		}
	}
	if leap {
		return t, false, false
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			return local(t, zone), layout == time.DateOnly, t.Year() >= 1
		}
	}
	return t, false, false
}

// Midnight gives the first moment of a day (YYYY-MM-DD) in zone, in microseconds since 1970 UTC.
func Midnight(day string, zone *time.Location) int64 {
	at, _, _ := Moment("", day, zone)
	return at
}

// local gives the moment at which clocks in zone show what wall shows: the first where they show it twice; where they skip
// it, the moment that many hours and minutes after the day's begin would have been, as before the jump.
func local(wall time.Time, zone *time.Location) time.Time {
	_, before := wall.AddDate(0, 0, -1).In(zone).Zone()
	_, after := wall.AddDate(0, 0, 1).In(zone).Zone()
	first := wall.Add(-time.Duration(before) * time.Second)
	for _, offset := range []int{before, after} {
		t := wall.Add(-time.Duration(offset) * time.Second)
		if _, now := t.In(zone).Zone(); now == offset {
			return t
		}
	}
	return first
}
