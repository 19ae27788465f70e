// Package op makes one thing a caller can do into one value: its name, what it says of itself, who may call it, its typed
// arguments and answer, and the function. MCP tools, HTTP calls, commands and documentation are all made from that value, and
// every rule is applied by Runner.Run, so that no surface can skip one. The package knows no feature and no surface.
package op

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"cairn/internal/rawjson"
)

// Effect is what an operation does to what is stored.
type Effect int

// Read changes nothing. Write adds or changes. Destroy takes away (to a trash, or for good).
const (
	Read Effect = iota + 1
	Write
	Destroy
)

// Op is one operation. Fields without a comment say what their names say.
type Op struct {
	Name   string
	Title  string
	Doc    string // for the agent: what it does, when to call it, what not to do
	Area   string
	Effect Effect

	Idempotent bool          // calling it twice with the same arguments is as good as once
	OpenWorld  bool          // it reaches beyond this server
	Cost       string        // low (the default), medium, high
	Timeout    time.Duration // 30 s by default
	Confirm    bool          // a client should ask the person first
	Big        bool          // its body may have 16 MiB instead of 1
	Loose      bool          // unknown arguments are ignored and listed (Ignored) instead of refused
	PersonOnly bool          // agents and tokens are refused
	Bytes      bool          // it takes or gives the bytes of a file: only a surface that has them (Stream) can call it; MCP never does
	Set        string        // not "": off the default list; listed where this set is named
	Example    string        // arguments of a call that works on an empty server; "" = {}

	In, Out *jsonschema.Schema
	forms   forms
	call    func(ctx context.Context, args json.RawMessage) (Result, error)
}

// Result is an answer: one JSON object, and the texts that content[] carries (the object itself where there is none).
type Result struct {
	JSON  []byte
	Texts []string
}

// Texter is an answer that has its own words for content[]; it gets its own JSON to put among them.
type Texter interface {
	Texts(json []byte) []string
}

// Define makes an operation from its description and its function. Schemas come from the types In and Out: see schemaFor
// for the tags. It panics on a description that breaks a rule, since that is a fault of the program.
func Define[In, Out any](o Op, fn func(context.Context, In) (Out, error)) *Op {
	if o.Name == "" || o.Title == "" || o.Doc == "" || o.Area == "" || o.Effect == 0 {
		panic(fmt.Sprintf("op %q: name, title, doc, area and effect must be set", o.Name))
	}
	if o.Cost == "" {
		o.Cost = "low"
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Example == "" {
		o.Example = "{}"
	}
	o.In, o.forms = schemaFor(reflect.TypeFor[In](), o.Name)
	if o.Loose {
		o.In.AdditionalProperties = nil
	}
	o.Out, _ = schemaFor(reflect.TypeFor[Out](), o.Name+" (answer)")
	p := &o
	p.call = func(ctx context.Context, args json.RawMessage) (Result, error) {
		args, ignored, err := p.check(args)
		if err != nil {
			return Result{}, err
		}
		var in In
		if err := json.Unmarshal(args, &in); err != nil {
			return Result{}, fmt.Errorf("%s: arguments passed the check but don't decode: %w", p.Name, err)
		}
		if len(ignored) > 0 {
			ctx = context.WithValue(ctx, ignoredKey{}, ignored)
		}
		out, err := fn(ctx, in)
		if err != nil {
			return Result{}, err
		}
		b, err := rawjson.Marshal(out)
		if err != nil {
			return Result{}, err
		}
		r := Result{JSON: b}
		if t, ok := any(out).(Texter); ok {
			r.Texts = t.Texts(b)
		}
		return r, nil
	}
	return p
}

type ignoredKey struct{}

// Ignored lists the unknown arguments that a Loose operation was called with.
func Ignored(ctx context.Context) []string {
	list, _ := ctx.Value(ignoredKey{}).([]string)
	return list
}

type progressKey struct{}

// WithProgress lets f hear how far an operation is.
func WithProgress(ctx context.Context, f func(done, total float64, message string)) context.Context {
	return context.WithValue(ctx, progressKey{}, f)
}

// Progress tells whoever listens how far the operation is; message is for people.
func Progress(ctx context.Context, done, total int, message string) {
	if f, ok := ctx.Value(progressKey{}).(func(float64, float64, string)); ok {
		f(float64(done), float64(total), message)
	}
}
