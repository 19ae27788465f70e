package when

import (
	"strings"
	"testing"
	"time"
)

func show(d int32) string { return time.Unix(int64(d)*86400, 0).UTC().Format(time.DateOnly) }

func TestIn(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) // a Monday
	for text, want := range map[string]string{
		"where was Tim on 16 November, 2023?":      "2023-11-16 2023-11-16",
		"the painting of October 13, 2023":         "2023-10-13 2023-10-13",
		"what happened on 2026-01-31":              "2026-01-31 2026-01-31",
		"on 2026-02-31":                            "2026-02-01 2026-02-28",
		"the 3rd of May 2021, or May 3rd, 2022":    "2021-05-03 2021-05-03, 2022-05-03 2022-05-03",
		"in May 2023":                              "2023-05-01 2023-05-31",
		"in February of 2024":                      "2024-02-01 2024-02-29",
		"the plan for 2024-06":                     "2024-06-01 2024-06-30",
		"which year was 2019":                      "2019-01-01 2019-12-31",
		"what did we decide last spring?":          "2026-03-01 2026-05-31",
		"Summer of 2022":                           "2022-06-01 2022-08-31",
		"two weeks ago":                            "2026-11-13 2026-11-19",
		"a month ago":                              "2026-10-15 2026-11-14",
		"yesterday":                                "2026-11-29 2026-11-29",
		"last week":                                "2026-11-23 2026-11-29",
		"this month":                               "2026-11-01 2026-11-30",
		"last year":                                "2025-01-01 2025-12-31",
		"on Friday":                                "2026-11-27 2026-11-27",
		"may I march on?":                          "",
		"what did I say in May":                    "2026-05-01 2026-05-31",
		"since December":                           "2025-12-01 2025-12-31",
		"on 24 December":                           "2025-12-24 2025-12-24",
		"what have I read lately":                  "2026-10-31 2026-11-30",
		"":                                         "",
		"2023-99-99 45 May 2022 \xff":              "2022-05-01 2022-05-31, 2023-01-01 2023-12-31",
		strings.Repeat("x", 3000) + " in May 2023": "",
	} {
		var got []string
		for _, s := range In(text, now) {
			if s.Weight == 1 || strings.Contains(text, "lately") {
				got = append(got, show(s.From)+" "+show(s.To))
			}
		}
		if g := strings.Join(got, ", "); g != want {
			t.Errorf("%.60q: %s, want %s", text, g, want)
		}
	}
	if s := In("in May", now); len(s) != years || s[1].Weight != unsure || s[1].Away(s[1].To+3) != 3 {
		t.Errorf("in May: %v", s)
	}
}

func TestFirst(t *testing.T) {
	for text, want := range map[string]string{"1:56 pm on 8 May, 2023": "2023-05-08", "May 2023": "", "seen on 2026-01-02, not 2026-01-01": "2026-01-02", "": ""} {
		got := ""
		if d, ok := First(text); ok {
			got = show(d)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func FuzzIn(f *testing.F) {
	f.Add("in May 2023, two weeks ago")
	f.Fuzz(func(_ *testing.T, s string) {
		In(s, time.Unix(1e9, 0))
		First(s)
	})
}
