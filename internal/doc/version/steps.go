package version

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"

	"cairn/internal/doc"
	"cairn/internal/fault"
)

// Steps gives what turns document a into b, given what differs between them (Diff(a, b)). Working it out, and its size, grow with
// what differs and not with the documents. The form is JSON: {"title":T,"to":[...]}, of which what is left out is as in a. In to,
// which lists the children of the document, or of a node, stand in order:
//
//	[i,n]                       n children as a has them, from the one at place i on
//	{"id":ID}                   a node as it stands elsewhere in a
//	{"is":NODE}                 a node that a doesn't have
//	{"at":i,"as":NODE,"to":[]}  the child at place i, with other attributes (as, without the blocks in it) or other blocks (to)
//	{"at":i,"by":D}             the child at place i, whose text differs: D is the Delta of its canonical JSON, in base64
func Steps(a, b *doc.Doc, diff *Changes) []byte {
	out := []byte{'{'}
	if a.Title() != b.Title() {
		title, _ := json.Marshal(b.Title())
		out = append(append(out, `"title":`...), title...)
	}
	if !a.SameContent(b) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = appendSteps(append(out, `"to":`...), a.Content(), b.Content(), diff)
	}
	return append(out, '}')
}

// equal tells whether two nodes are the same, with all in them.
func equal(a, b *doc.Node) bool { return a == b || a.ID == b.ID && a.Sum() == b.Sum() }

func appendSteps(out []byte, a, b []*doc.Node, diff *Changes) []byte {
	out = append(out, '[')
	run := func(from, n int) {
		if n > 0 {
			out = strconv.AppendInt(append(out, '['), int64(from), 10)
			out = append(strconv.AppendInt(append(out, ','), int64(n), 10), ']', ',')
		}
	}
	head, tail := 0, 0
	for head < min(len(a), len(b)) && equal(a[head], b[head]) {
		head++
	}
	for tail < min(len(a), len(b))-head && equal(a[len(a)-1-tail], b[len(b)-1-tail]) {
		tail++
	}
	at := make(map[string]int, len(a)-head-tail)
	for i, n := range a[head : len(a)-tail] {
		at[n.ID] = head + i
	}
	from, n := 0, head // of the run that is on
	for _, now := range b[head : len(b)-tail] {
		i, had := at[now.ID]
		if had && equal(a[i], now) {
			if i != from+n {
				run(from, n)
				from, n = i, 0
			}
			n++
			continue
		}
		run(from, n)
		from, n = 0, 0
		if had {
			out = appendChild(out, i, a[i], now, diff)
		} else if old, elsewhere := diff.was[now.ID]; elsewhere && equal(old.n, now) {
			out = append(append(append(out, `{"id":"`...), now.ID...), `"},`...) // ids need no escapes
		} else {
			out = append(append(append(out, `{"is":`...), now.JSON()...), '}', ',')
		}
	}
	if rest := len(a) - tail; from+n == rest {
		run(from, n+tail)
	} else {
		run(from, n)
		run(rest, tail)
	}
	if out[len(out)-1] == ',' {
		out = out[:len(out)-1]
	}
	return append(out, ']')
}

// appendChild says how a child at place i has changed.
func appendChild(out []byte, i int, a, b *doc.Node, diff *Changes) []byte {
	if !a.HoldsBlocks() || !b.HoldsBlocks() {
		is := b.JSON()
		if by := base64.RawStdEncoding.EncodeToString(Delta(a.JSON(), is)); len(by) < len(is) {
			out = strconv.AppendInt(append(out, `{"at":`...), int64(i), 10)
			return append(append(append(out, `,"by":"`...), by...), `"},`...)
		}
		return append(append(append(out, `{"is":`...), is...), '}', ',')
	}
	out = strconv.AppendInt(append(out, `{"at":`...), int64(i), 10)
	if !a.Same(b) {
		out = append(append(out, `,"as":`...), b.ShellJSON()...)
	}
	return append(appendSteps(append(out, `,"to":`...), a.Content, b.Content, diff), '}', ',')
}

var errSteps = fault.New(fault.Internal, "a stored change doesn't fit the version it was made for")

// ApplySteps gives the document that a becomes by several steps, one after the other. Steps that are damaged or were made for
// another document are refused as Internal, or make another one: whoever stored them knows its hash.
func ApplySteps(a *doc.Doc, steps ...[]byte) (*doc.Doc, error) {
	title, content := a.Title(), a.Content()
	for _, s := range steps {
		var step struct {
			Title *string
			To    []json.RawMessage
		}
		if json.Unmarshal(s, &step) != nil {
			return nil, errSteps
		}
		if step.Title != nil {
			title = *step.Title
		}
		if step.To != nil {
			var err error
			if content, err = applyTo(content, content, step.To); err != nil {
				return nil, err
			}
		}
	}
	return doc.New(title, content, nil)
}

// applyTo makes the new children of a node out of the old ones. all are the top-level nodes of the document as it was.
func applyTo(all, old []*doc.Node, to []json.RawMessage) ([]*doc.Node, error) {
	list := make([]*doc.Node, 0, len(old)+len(to))
	for _, raw := range to {
		if len(raw) > 0 && raw[0] == '[' {
			var run [2]int
			if json.Unmarshal(raw, &run) != nil || run[0] < 0 || run[1] < 0 || run[0] > len(old) || run[1] > len(old)-run[0] {
				return nil, errSteps
			}
			list = append(list, old[run[0]:run[0]+run[1]]...)
			continue
		}
		n, err := applyNode(all, old, raw)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

func applyNode(all, old []*doc.Node, raw json.RawMessage) (*doc.Node, error) {
	var s struct {
		ID     string
		Is, As json.RawMessage
		At     int
		By     string
		To     []json.RawMessage
	}
	switch err := json.Unmarshal(raw, &s); {
	case err != nil || s.At < 0:
		return nil, errSteps
	case s.Is != nil:
		return parsed(s.Is)
	case s.ID != "":
		if n := within(all, s.ID); n != nil {
			return n, nil
		}
		return nil, errSteps
	case s.At >= len(old):
		return nil, errSteps
	case s.By != "":
		delta, err := base64.RawStdEncoding.DecodeString(s.By)
		if err != nil {
			return nil, errSteps
		}
		is, err := ApplyDelta(old[s.At].JSON(), delta)
		if err != nil {
			return nil, err
		}
		return parsed(is)
	}
	was := old[s.At]
	now := &doc.Node{Type: was.Type, ID: was.ID, Attrs: was.Attrs}
	if s.As != nil {
		var err error
		if now, err = parsed(s.As); err != nil {
			return nil, err
		}
	}
	var err error
	now.Content, err = applyTo(all, was.Content, s.To)
	return now, err
}

func parsed(node json.RawMessage) (*doc.Node, error) {
	nodes, err := doc.ParseNodes(slices.Concat([]byte{'['}, node, []byte{']'}))
	if err != nil || len(nodes) != 1 || nodes[0] == nil || nodes[0].Spec() == nil {
		return nil, errSteps
	}
	return nodes[0], nil
}

// within finds a block by its id.
func within(nodes []*doc.Node, id string) (found *doc.Node) {
	for _, n := range nodes {
		n.Walk(0, func(n *doc.Node, _ int) bool {
			if n.ID == id {
				found = n
			}
			return found == nil
		})
		if found != nil {
			return found
		}
	}
	return nil
}
