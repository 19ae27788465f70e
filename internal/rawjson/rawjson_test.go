package rawjson

import (
	"bytes"
	"encoding/json"
	"testing"
)

func FuzzMembers(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1}`, ` { "a\"b" : [1,{"x":"]"}] , "c" : null } `, `{"a":{"b":{}},"d":"\\"}`, `[1, 2 ,{"a":[]}]`, `"x"`, `{"a":-1.5e3,"b":true}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if Well(b) != "" {
			return
		}
		got := map[string]json.RawMessage{}
		isObject := Members(b, func(k string, v json.RawMessage) bool {
			if !json.Valid(v) {
				t.Fatalf("member %q of %s is %s", k, b, v)
			}
			got[k] = v
			return true
		})
		var want map[string]json.RawMessage
		if err := json.Unmarshal(b, &want); (err == nil && want != nil) != isObject {
			t.Fatalf("%s: object %v, encoding/json says %v", b, isObject, err)
		}
		if isObject && len(got) != len(want) {
			t.Fatalf("%s: %d members, want %d", b, len(got), len(want))
		}
		for k, v := range want {
			if !bytes.Equal(got[k], bytes.TrimSpace(v)) {
				t.Fatalf("%s: %q is %s, want %s", b, k, got[k], v)
			}
		}
		list, isArray := Elements(b)
		var wantList []json.RawMessage
		if err := json.Unmarshal(b, &wantList); (err == nil && wantList != nil) != isArray || len(list) != len(wantList) {
			t.Fatalf("%s: elements %v, want %v", b, list, wantList)
		}
	})
}

func FuzzQuote(f *testing.F) {
	f.Add("a\"b\\c\n\t\x01é😀<")
	f.Fuzz(func(t *testing.T, s string) {
		s = string(bytes.ToValidUTF8([]byte(s), []byte("?")))
		if got := String(Quote(nil, []byte(s))); got != s {
			t.Fatalf("%q came back as %q", s, got)
		}
	})
}

func TestWell(t *testing.T) {
	for s, ok := range map[string]bool{
		`{"a":1}`: true, `{"a":1} x`: false, `{"a":`: false, "\"\xe2\"": false, `"\ud83d"`: false, `"\ude00\ud83d"`: false,
		`"\ud83d\ude00"`: true, `"\\ud83d"`: true, `"\ud83dx"`: false, `"\ud83d\n"`: false, `"\u0000"`: true,
	} {
		if (Well([]byte(s)) == "") != ok {
			t.Errorf("%s: %q", s, Well([]byte(s)))
		}
	}
}
