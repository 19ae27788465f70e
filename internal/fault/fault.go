// Package fault is the one vocabulary of failure. A feature returns a *Error with a kind, a message for the caller and,
// where there is one, a private cause for the log; one table maps the kind to HTTP, JSON-RPC and exit codes, so that every
// surface says the same. A fault's message may be shown to anyone; its cause never is.
package fault

import (
	"errors"
	"fmt"
	"net/http"
)

// Kind says what sort of failure it is.
type Kind uint8

// The kinds, in the order of the contract's table.
const (
	Internal Kind = iota // an error without a kind: a bug or a broken disk; the cause stays in the log
	Parse
	InvalidRequest
	UnknownMethod
	Invalid
	Unauthenticated
	TokenInvalid
	TokenExpired
	TokenInactive
	Denied
	Scope
	Limited
	UnknownTool
	NotFound
	Conflict
	TooLarge
	Unavailable
)

// Wire is how a kind looks on each surface.
type Wire struct {
	Name string // lower case; data.name carries it in upper case
	MCP  int    // HTTP status on /mcp
	Code int    // JSON-RPC error code; 0 = always a result with isError
	API  int    // HTTP status on /api
	Exit int    // exit code of the command line
}

var table = [...]Wire{
	Internal:        {"internal", 500, -32603, 500, 1},
	Parse:           {"parse", 400, -32700, 400, 2},
	InvalidRequest:  {"invalid_request", 400, -32600, 400, 2},
	UnknownMethod:   {"unknown_method", 404, -32601, 404, 2},
	Invalid:         {"invalid", 200, -32602, 400, 2},
	Unauthenticated: {"unauthenticated", 401, -32000, 401, 3},
	TokenInvalid:    {"token_invalid", 401, -32007, 401, 3},
	TokenExpired:    {"token_expired", 401, -32003, 401, 3},
	TokenInactive:   {"token_inactive", 401, -32004, 401, 3},
	Denied:          {"denied", 403, -32001, 403, 4},
	Scope:           {"scope", 403, -32008, 403, 4},
	Limited:         {"limited", 429, -32002, 429, 5},
	UnknownTool:     {"unknown_tool", 200, -32005, 404, 2},
	NotFound:        {"not_found", 200, 0, 404, 6},
	Conflict:        {"conflict", 200, 0, 409, 7},
	TooLarge:        {"too_large", 200, 0, 413, 2},
	Unavailable:     {"unavailable", 200, -32006, 503, 8},
}

// Wire returns the table's row of a kind.
func (k Kind) Wire() Wire { return table[k] }

// ParseKind finds a kind by its name, as another server wrote it; ok is false for a name that isn't in the table.
func ParseKind(name string) (k Kind, ok bool) {
	for i, w := range table {
		if w.Name == name {
			return Kind(i), true
		}
	}
	return Internal, false
}

// Error is a failure that a caller may see, apart from its cause.
type Error struct {
	Kind    Kind
	Message string         // what was wrong, with which value, and what to do next
	Field   string         // the argument at fault, if it was one
	Valid   []string       // what would have been right, if that can be listed
	Errors  []string       // Invalid: every fault of the arguments at once
	Status  int            // an HTTP status that differs from the table's (413, 415, 504); 0 = the table's
	Data    map[string]any // further members of the answer
	cause   error
}

// Error gives the public message and, behind it, the cause: for logs alone. Surfaces use Message.
func (e *Error) Error() string {
	if e.cause != nil {
		return e.Message + ": " + e.cause.Error()
	}
	return e.Message
}

// Unwrap gives the private cause.
func (e *Error) Unwrap() error { return e.cause }

// New makes a fault of kind k.
func New(k Kind, format string, args ...any) *Error {
	return &Error{Kind: k, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes a fault of kind k with a private cause.
func Wrap(k Kind, cause error, format string, args ...any) *Error {
	e := New(k, format, args...)
	e.cause = cause
	return e
}

// Bad makes an Invalid fault about one argument, worded as "field why" (such as "limit must be at most 200").
func Bad(field, format string, args ...any) *Error {
	why := fmt.Sprintf(format, args...)
	return &Error{Kind: Invalid, Message: field + " " + why, Field: field, Errors: []string{field + " " + why}}
}

// With sets a further member of the answer and returns e.
func (e *Error) With(key string, v any) *Error {
	if e.Data == nil {
		e.Data = map[string]any{}
	}
	e.Data[key] = v
	return e
}

// From finds the fault in err. An error without one becomes an Internal fault that hides it.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Kind: Internal, Message: "something went wrong on the server", cause: err}
}

// Is tells whether err is a fault of kind k.
func Is(err error, k Kind) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == k
}

// HTTP gives the status on /mcp, API the one on /api.
func (e *Error) HTTP() int { return e.or(e.Kind.Wire().MCP) }

// API gives the HTTP status on /api.
func (e *Error) API() int { return e.or(e.Kind.Wire().API) }

func (e *Error) or(status int) int {
	if e.Status == 0 || e.Kind == Unavailable && status == http.StatusOK {
		return status
	}
	return e.Status
}

// Body gives the members of a failed answer: {error, message, field?, valid?, errors?, and what the caller needs to go on}.
func (e *Error) Body() map[string]any {
	b := make(map[string]any, 5+len(e.Data))
	for k, v := range e.Data {
		b[k] = v
	}
	b["error"], b["message"] = e.Kind.Wire().Name, e.Message
	if e.Field != "" {
		b["field"] = e.Field
	}
	if e.Valid != nil {
		b["valid"] = e.Valid
	}
	if e.Errors != nil {
		b["errors"] = e.Errors
	}
	return b
}
