package prompt

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cairn/internal/fault"
	"cairn/internal/who"
)

func named(t *testing.T, name string) *Prompt {
	t.Helper()
	for _, p := range All() {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("there is no prompt %s", name)
	return nil
}

// Two heaps may have one name where one is shared by somebody else: then only the id tells which is meant.
func TestHeapsOfOneNameAreCompletedByTheirIDs(t *testing.T) {
	c := &who.Caller{Heaps: []who.Heap{{ID: "1", Name: "Garden"}, {ID: "2", Name: "Work"}, {ID: "3", Name: "garden"}}}
	got, err := named(t, "start_session").Complete(c, time.Time{}, "heap", "")
	if d := cmp.Diff([]string{"1", "Work", "3"}, got); d != "" || err != nil {
		t.Error(d, err)
	}
}

// The day is the owner's, whatever the server's clock shows, over the end of a month and of daylight saving.
func TestDayIsTheOwners(t *testing.T) {
	auckland, err := time.LoadLocation("Pacific/Auckland")
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{"": "Saturday, 2026-09-26,", "today": "Saturday, 2026-09-26,", "Tomorrow": "Sunday, 2026-09-27,", "2026-09-30": "Wednesday, 2026-09-30,", "2026-10-01T08:00:00Z": "Thursday, 2026-10-01,"} {
		text, err := named(t, "plan_day").Text(Asked{Caller: &who.Caller{}, Now: time.Date(2026, 9, 25, 13, 0, 0, 0, time.UTC).In(auckland), Args: map[string]string{"day": given}, May: func(string) bool { return true }})
		if err != nil || !strings.HasPrefix(text, "Plan "+want) || !strings.Contains(text, "Today is 2026-09-26.") {
			t.Errorf("%q: %v\n%s", given, err, text)
		}
	}
}

// Where the pack can't be had now the text says how to get it later; any other failure is told.
func TestPackThatFails(t *testing.T) {
	for _, c := range []struct {
		err   error
		fails bool
	}{
		{fault.New(fault.Limited, "later"), false}, {fault.New(fault.Unavailable, "busy"), false}, {fault.New(fault.Invalid, "no"), true}, {errors.New("broken"), true},
	} {
		text, err := named(t, "start_session").Text(Asked{Caller: &who.Caller{}, Args: map[string]string{"topic": "ferns"}, May: func(string) bool { return true }, Run: func(string, json.RawMessage) ([]byte, error) { return nil, c.err }})
		if c.fails != errors.Is(err, c.err) || !c.fails && (err != nil || !strings.Contains(text, "`get_context {\"query\":\"ferns\"}`") || strings.Contains(text, "The pack")) {
			t.Errorf("%v: %v\n%s", c.err, err, text)
		}
	}
}
