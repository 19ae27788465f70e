package mcp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/rawjson"
)

// bodies that a reader of requests must be right about, or refuse.
var bodies = []string{
	``, ` `, `{`, `}`, `[`, `[]`, `[[]]`, `[1,{}]`, `"x"`, `1`, `null`, `true`, `{}`, `{"a":{}}`, "\x00", "\xe2", "\ufeff{}",
	`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/list"} x`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/list"}{}`,
	` { "jsonrpc" : "2.0" , "id" : "a" , "method" : "tools/call" , "params" : { "name" : "x" , "arguments" : { "a" : [ 1 , "}" , { } ] } } } `,
	`{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"x","arguments":null,"_meta":null}}`,
	`{"jsonrpc":"2.0","id":"","method":"x/y","params":{"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"n"}}}}`,
	`{"jsonrpc":"2.0","id":1.5e3,"method":"a"}`, `{"jsonrpc":"2.0","id":-1,"method":"a"}`, `{"jsonrpc":"2.0","id":1e400,"method":"a"}`,
	`{"jsonrpc":"2.0","id":null,"method":"a"}`, `{"jsonrpc":"2.0","id":true,"method":"a"}`, `{"jsonrpc":"2.0","id":{},"method":"a"}`, `{"jsonrpc":"2.0","id":[],"method":"a"}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/list","METHOD":"initialize"}`, `{"jsonrpc":"2.0","id":1,"METHOD":"initialize","method":"tools/list"}`,
	`{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}`, `{"jsonrpc":"2.0","id":1,"method":"a","m\u0065thod":"b"}`, `{"jsonrpc":"2.0","id":1,"\u006dethod":"b"}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","NAME":"b","n\u0061me":"c"}}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"b","name":"a"}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"x"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5,"arguments":[]}}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\ud83d\ude00\\\"","arguments":"{}"}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\ud83d"}}`, `{"jsonrpc":"2.0","id":1,"method":"\u0000"}`,
	`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1}}`,
	`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`, `{"jsonrpc":2.0,"id":1,"method":"a"}`, `{"id":1,"method":"a"}`,
	`{"":1,"jsonrpc":"2.0","id":1,"method":"a","params":{"":{"":[]}}}`, `{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":"\\","y":"\\\"}"}}`,
}

func FuzzPeekReadsWhatEncodingJSONReads(f *testing.F) {
	for _, b := range bodies {
		f.Add([]byte(b))
	}
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":` + strings.Repeat("[", 11000) + strings.Repeat("]", 11000) + `}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":` + strings.Repeat(`{"a":`, 900) + "1" + strings.Repeat("}", 900) + `}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if rawjson.Well(body) != "" { // the edge refuses it
			return
		}
		if list, ok := rawjson.Elements(body); ok {
			for _, one := range list {
				comparePeek(t, one)
			}
			return
		}
		comparePeek(t, body)
	})
}

// comparePeek holds what peek reads against what encoding/json reads by exact keys.
func comparePeek(t *testing.T, body []byte) {
	m, err := peek(body)
	if m == nil {
		t.Fatalf("%s: no message", body)
	}
	for _, d := range []dialect{hero, legacy, modern} {
		if out := errorBody(m.ID, d, fault.New(fault.InvalidRequest, "x")); !json.Valid(out) {
			t.Fatalf("%s is answered with %s", body, out)
		}
	}
	for _, v := range append([]string{"", "2030-01-01"}, versions...) {
		r := &http.Request{Header: http.Header{}}
		if v != "" {
			r.Header.Set("Mcp-Protocol-Version", v)
		}
		_, _ = dialectOf(r, m, false)
	}
	var top map[string]json.RawMessage
	if json.Unmarshal(body, &top) != nil || top == nil {
		if err == nil {
			t.Fatalf("%s is no object, and peek takes it", body)
		}
		return
	}
	method, params, name := stringOf(top["method"]), map[string]json.RawMessage{}, ""
	good := stringOf(top["jsonrpc"]) == "2.0" && goodID(top["id"]) && exactID(top["id"]) && method != "" && !twice(body)
	if p, ok := top["params"]; ok {
		good = good && json.Unmarshal(p, &params) == nil && params != nil && !twice(p) && !twice(params["_meta"])
		name = stringOf(params["name"])
	}
	if good && err != nil {
		t.Fatalf("%s is refused: %v", body, err)
	}
	if err != nil {
		return
	}
	if m.Method != method || m.Name != name || !bytes.Equal(m.ID, top["id"]) || !bytes.Equal(m.Args, params["arguments"]) {
		t.Fatalf("%s: method %q, name %q, id %s, arguments %s; encoding/json reads %q, %q, %s, %s", body, m.Method, m.Name, m.ID, m.Args, method, name, top["id"], params["arguments"])
	}
	if m.Method != "" && m.ID == nil && !strings.HasPrefix(m.Method, "notifications/") {
		t.Fatalf("%s is a request without an id", body)
	}
}

func stringOf(v json.RawMessage) string {
	var s string
	if len(v) == 0 || v[0] != '"' || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// twice tells whether an object has a key twice, by encoding/json's own reading.
func twice(object json.RawMessage) bool {
	if len(object) == 0 {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(object))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return false
	}
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return false
		}
		k := key.(string)
		if seen[k] {
			return true
		}
		seen[k] = true
		var skip json.RawMessage
		if d.Decode(&skip) != nil {
			return false
		}
	}
	return false
}

// Bodies that aren't well-formed never reach peek; those that are never make it panic, cut off anywhere.
func TestPeekNeverPanicsOnCutBodies(t *testing.T) {
	for _, b := range bodies {
		for i := range len(b) {
			if part := []byte(b[:i]); rawjson.Well(part) == "" {
				comparePeek(t, part)
			}
		}
	}
}

func TestPeekTakesKeysExactlyAndRefusesThemTwice(t *testing.T) {
	for body, want := range map[string]struct{ method, name string }{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","METHOD":"initialize"}`:                                       {"tools/list", ""},
		`{"jsonrpc":"2.0","id":1,"Method":"initialize","method":"tools/list"}`:                                       {"tools/list", ""},
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"NAME":"b","name":"a"}}`:                            {"tools/call", "a"},
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"n\u0061me":"a"}}`:                                  {"tools/call", "a"},
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"name":"b"},"name":"a","x":{}}}`:       {"tools/call", "a"},
		`{"jsonrpc":"2.0","id":1,"params":{"name":"a","arguments":{"method":"x","a":"\"}"}},"method":"tools\/call"}`: {"tools/call", "a"},
	} {
		if m, err := peek([]byte(body)); err != nil || m.Method != want.method || m.Name != want.name {
			t.Errorf("%s: %q, %q, %v", body, m.Method, m.Name, err)
		}
	}
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"a","method":"a"}`, `{"jsonrpc":"2.0","id":1,"id":1,"method":"a"}`, `{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"a"}`, `{"jsonrpc":"2.0","id":1,"x":1,"x":1,"method":"a"}`,
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{},"params":{}}`, `{"jsonrpc":"2.0","id":1,"method":"a","params":{"n\u0061me":"a","name":"a"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"progressToken":1,"progressToken":1}}}`, `{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{},"_meta":{}}}`,
	} {
		if _, err := peek([]byte(body)); err == nil {
			t.Errorf("%s is taken", body)
		}
	}
}
