package op

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cairn/internal/fault"
	"cairn/internal/who"
)

type item struct {
	Text string `json:"text" rule:"required,min=1,max=5"`
	N    int    `json:"n" rule:"min=1,max=1440"`
}

type probe struct {
	Name  string   `json:"name" jsonschema:"what it is called" rule:"required,min=1,max=4"`
	Due   *string  `json:"due" rule:"date"`
	URL   string   `json:"url" rule:"url"`
	ID    string   `json:"id" rule:"uuid"`
	Kind  string   `json:"kind" rule:"enum=a|b"`
	Star  *bool    `json:"star"`
	Items []item   `json:"items" rule:"max=2"`
	Whole int      `json:"whole" rule:"min=1,max=1000000000"`
	Clear []string `json:"clear" rule:"enum=due|url"`
}

type answer struct {
	Got     probe    `json:"got"`
	Ignored []string `json:"ignored"`
}

func define(loose bool) *Op {
	return Define(Op{Name: "probe", Title: "Probe", Doc: "Probes.", Area: "tasks", Effect: Write, Loose: loose},
		func(ctx context.Context, in probe) (answer, error) { return answer{in, Ignored(ctx)}, nil })
}

func caller() context.Context {
	return who.With(context.Background(), &who.Caller{AllAreas: true, Write: true})
}

func TestEveryFaultOfTheArgumentsIsNamedAtOnce(t *testing.T) {
	r := NewRunner(slog.Default(), define(false))
	for args, want := range map[string]string{
		`{}`:            `name is required and must be a non-empty string`,
		`{"name":null}`: `name is required and must be a non-empty string`,
		`{"name":"  "}`: `name is required and must be a non-empty string`,
		`{"name":5}`:    `name is required and must be a non-empty string`,
		`[]`:            `the arguments must be an object`,
		`{"name":"ab","due":5,"star":"true","kind":"c"}`:       `due must be a date such as 2026-08-31; star must be true or false; kind is "c", must be one of a, b`,
		`{"name":"😀😀😀😀😀"}`:                                     `name has 5 characters, at most 4 are allowed`,
		`{"name":"a","NAME":"b"}`:                              `unknown argument "NAME"; valid are: name, due, url, id, kind, star, items, whole, clear`,
		`{"name":"a","name":"b"}`:                              `name is given twice`,
		`{"name":"a","due":"2026-02-30"}`:                      `due is "2026-02-30", must be a date`,
		`{"name":"a","url":"javascript:alert(1)"}`:             `url is "javascript:alert(1)", must be an address`,
		`{"name":"a","id":"x"}`:                                `id is "x", must be an id (UUID)`,
		`{"name":"a","items":[{"text":"x"},{"n":0}]}`:          `items[1].n is 0, the least is 1; items[1].text is required and must be a non-empty string`,
		`{"name":"a","items":[{"text":"x","tex":1}]}`:          `unknown argument "items[0].tex"`,
		`{"name":"a","items":[{"text":"x","n":1.5}]}`:          `items[0].n must be a whole number`,
		`{"name":"a","whole":1000000000000}`:                   `whole is 1000000000000, the most is 1000000000`,
		`{"name":"a","items":[null]}`:                          `items[0] must be an object`,
		`{"name":"a","items":[{},{},{}]}`:                      `items has 3 elements, at most 2 are allowed`,
		`{"name":"a","clear":["name"]}`:                        `clear[0] is "name", must be one of due, url`,
		`{"name":"a\u0000"}`:                                   `name has a NUL character`,
		`{"name":"\ud83d"}`:                                    `the arguments can't be read: the text has half a surrogate pair`,
		`{"name":"a","due":"` + strings.Repeat("9", 99) + `"}`: `due is "` + strings.Repeat("9", 60) + `…", must be a date`,
	} {
		_, err := r.Run(caller(), "probe", json.RawMessage(args))
		if f := fault.From(err); err == nil || f.Kind != fault.Invalid || !strings.HasPrefix(f.Message, want) {
			t.Errorf("%s\n got %v\nwant %s", args, err, want)
		}
	}
	for _, args := range []string{`{"name":"😀😀😀😀"}`, `{"name":"a","due":null,"items":null}`, `{"name":"a","due":"2026-08-08T23:59:59Z"}`, `{"name":"a","items":[{"text":"\u00e9","n":1440}],"clear":["due"]}`} {
		if _, err := r.Run(caller(), "probe", json.RawMessage(args)); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestLooseOperationListsWhatItIgnores(t *testing.T) {
	r := NewRunner(slog.Default(), define(true))
	res, err := r.Run(caller(), "probe", json.RawMessage(`{"NAME":"z", "recurence":"weekly","name":"a","x":{"y":[1]}}`))
	if err != nil {
		t.Fatal(err)
	}
	var a answer
	if err := json.Unmarshal(res.JSON, &a); err != nil || a.Got.Name != "a" || strings.Join(a.Ignored, ",") != "NAME,recurence,x" {
		t.Fatalf("%s %v", res.JSON, err)
	}
}

func TestAdmission(t *testing.T) {
	person := Define(Op{Name: "person", Title: "P", Doc: "P.", Area: who.Core, Effect: Write, PersonOnly: true},
		func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil })
	r := NewRunner(slog.Default(), define(false), person)
	r.Limit = func(context.Context, *who.Caller, *Op) error { return fault.New(fault.Limited, "slow down") }
	for _, c := range []struct {
		name   string
		caller *who.Caller
		want   fault.Kind
	}{
		{"probe", nil, fault.Unauthenticated},
		{"nope", &who.Caller{AllAreas: true}, fault.UnknownTool},
		{"probe", &who.Caller{Areas: []string{"memory"}, Write: true}, fault.UnknownTool},
		{"probe", &who.Caller{Areas: []string{"tasks"}}, fault.Scope},
		{"person", &who.Caller{AllAreas: true, Write: true}, fault.Denied},
		{"probe", &who.Caller{AllAreas: true, Write: true}, fault.Limited},
	} {
		ctx := context.Background()
		if c.caller != nil {
			ctx = who.With(ctx, c.caller)
		}
		if _, err := r.Run(ctx, c.name, nil); !fault.Is(err, c.want) {
			t.Errorf("%s by %+v: %v", c.name, c.caller, err)
		}
	}
}

func TestPanicIsAnInternalFaultWithoutItsCause(t *testing.T) {
	bad := Define(Op{Name: "bad", Title: "B", Doc: "B.", Area: who.Core, Effect: Read},
		func(context.Context, struct{}) (struct{}, error) { panic("secret") })
	r := NewRunner(slog.New(slog.DiscardHandler), bad)
	_, err := r.Run(who.With(context.Background(), &who.Caller{Request: "r-1"}), "bad", nil)
	if f := fault.From(err); f.Kind != fault.Internal || strings.Contains(f.Message, "secret") || f.Data["id"] != "r-1" {
		t.Fatalf("%+v", f)
	}
}

// A date is the date as written: it never shifts by zone (DESIGN, CASES 26).
func TestDateOnlyDueShiftsADay(t *testing.T) {
	for in, want := range map[string]string{
		"2026-08-08": "2026-08-08", "2026-08-08T00:00:00Z": "2026-08-08", "2026-04-15T23:59:59Z": "2026-04-15", "2026-04-15T23:59:59.123+13:00": "2026-04-15",
		"2026-04-15T10:00": "2026-04-15", "2026-04-15 10:00": "2026-04-15", "2026-4-5": "", "tomorrow": "", "": "", "2026-13-01": "", "0000-01-01": "", "2026-08-08x": "", "2026-08-08T25:00": "",
	} {
		if got := Day(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestStampIsRFC3339WithMilliseconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(-62135596800000000, 253402300799999999).Draw(t, "micros") // years 1 to 9999
		if got, want := Stamp(micros), time.UnixMicro(micros).UTC().Format("2006-01-02T15:04:05.000Z"); got != want {
			t.Fatalf("%d: %s, want %s", micros, got, want)
		}
	})
}
