package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// taskBox reads "[ ]" or "[x]" at the beginning of an item, where white space or nothing follows (GFM, section 5.3).
type taskBox struct{}

func (taskBox) Trigger() []byte { return []byte{'['} }

func (taskBox) Parse(parent ast.Node, block text.Reader, _ parser.Context) ast.Node {
	item, ok := parent.Parent().(*ast.ListItem)
	if !ok || item.FirstChild() != parent || parent.HasChildren() {
		return nil
	}
	line, _ := block.PeekLine()
	if len(line) < 3 || line[2] != ']' || strings.IndexByte(" xX", line[1]) < 0 || len(line) > 3 && strings.IndexByte(" \t\n", line[3]) < 0 {
		return nil
	}
	n := 3
	for n < len(line) && (line[n] == ' ' || line[n] == '\t') {
		n++
	}
	block.Advance(n)
	return extast.NewTaskCheckBox(line[1] != ' ')
}

// highlights reads ==text==. The signs open only where no letter or digit stands before them, and close only where none follows,
// so that a==b stays what it is.
type highlights struct{}

type highlight struct{ ast.BaseInline }

var highlightKind = ast.NewNodeKind("Highlight")

func (*highlight) Kind() ast.NodeKind { return highlightKind }

func (h *highlight) Dump(source []byte, level int) { ast.DumpHelper(h, source, level, nil, nil) }

func (highlights) IsDelimiter(b byte) bool { return b == '=' }

func (highlights) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char
}

func (highlights) OnMatch(int) ast.Node { return &highlight{} }

func (highlights) Trigger() []byte { return []byte{'='} }

func (h highlights) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	d := parser.ScanDelimiter(line, before, 2, h)
	if d == nil || d.OriginalLength != 2 || before == '=' {
		return nil
	}
	after, _ := utf8.DecodeRune(line[2:])
	d.CanOpen = d.CanOpen && !inWord(before)
	d.CanClose = d.CanClose && !inWord(after)
	if !d.CanOpen && !d.CanClose {
		return nil
	}
	d.Segment = segment.WithStop(segment.Start + 2)
	block.Advance(2)
	pc.PushDelimiter(d)
	return d
}

func inWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r))
}
