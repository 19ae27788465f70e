package op

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemaFor makes the JSON schema of a struct. Beside json and jsonschema (the description) it reads the tag
//
//	rule:"required,min=1,max=300,enum=a|b,date"
//
// where min and max count characters of a string, elements of a list, or bound a number; date asks for YYYY-MM-DD or a
// date-time, uuid for an id, url for an http or https address. A field is optional unless it says required. No schema has a
// null union, and every object is closed. A json.RawMessage may be anything.
func schemaFor(t reflect.Type, where string) (*jsonschema.Schema, forms) {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[json.RawMessage](): {}}})
	if err != nil {
		panic(fmt.Sprintf("op %s: %v", where, err))
	}
	f := forms{}
	f.decorate(s, t, where)
	return s, f
}

// forms says which strings of a schema are dates, ids or addresses. It stands beside the schema because some clients refuse
// formats they don't know, and because a date may be given as a date-time.
type forms map[*jsonschema.Schema]string

func (fs forms) decorate(s *jsonschema.Schema, t reflect.Type, where string) {
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Slice && s.Items != nil:
		fs.decorate(s.Items, t.Elem(), where)
	case t.Kind() == reflect.Struct && s.Properties != nil:
		s.Required = nil
		fs.fields(s, t, where)
	}
}

func (fs forms) fields(s *jsonschema.Schema, t reflect.Type, where string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			fs.fields(s, f.Type, where)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		p := s.Properties[name]
		if p == nil {
			continue
		}
		fs.decorate(p, f.Type, where+"."+name)
		for rule := range strings.SplitSeq(f.Tag.Get("rule"), ",") {
			if rule == "required" {
				s.Required = append(s.Required, name)
			} else if rule != "" {
				fs.apply(p, rule, where+"."+name)
			}
		}
	}
}

func (fs forms) apply(p *jsonschema.Schema, rule, where string) {
	k, v, _ := strings.Cut(rule, "=")
	n, err := strconv.Atoi(v)
	if (k == "min" || k == "max") && err != nil {
		panic(where + ": rule " + rule + " needs a number")
	}
	x := float64(n)
	switch {
	case k == "max" && p.Type == "string":
		p.MaxLength = &n
	case k == "min" && p.Type == "string":
		p.MinLength = &n
	case k == "max" && p.Type == "array":
		p.MaxItems = &n
	case k == "min" && p.Type == "array":
		p.MinItems = &n
	case k == "max":
		p.Maximum = &x
	case k == "min":
		p.Minimum = &x
	case k == "enum":
		target := p
		if p.Type == "array" {
			target = p.Items
		}
		for e := range strings.SplitSeq(v, "|") {
			target.Enum = append(target.Enum, e)
		}
	case k == "date" || k == "uuid" || k == "url":
		target := p
		if p.Type == "array" {
			target = p.Items
		}
		fs[target] = k
	default:
		panic(where + ": unknown rule " + rule)
	}
}
