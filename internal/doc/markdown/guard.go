package markdown

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"cairn/internal/doc"
)

// The parser takes time that grows with the square of some inputs. What is here keeps it in bounds: lists and quotes deeper than
// a document may be stay text; a table with far more columns than cells, or with too many, stays text; a paragraph with very
// much markup is read in parts, between which no mark, link or code span reaches; and in other texts markup is no longer looked
// for once that has cost too much.
const (
	maxColumns   = 500
	maxDefs      = 5000    // lines of link reference definitions in a row
	fewSigns     = 200     // of markup that the parser stops at, after which a part ends where nothing is open
	manySigns    = 1000    // after which a part ends in any case
	longPart     = 8 << 10 // bytes, likewise
	longestPart  = 64 << 10
	work         = 64 << 20 // bytes that looking for markup in one text may go over
	innermost    = doc.MaxLevels - 4
	partOf       = "part"
	calloutKind  = "callout"
	calloutTitle = "title"
)

// shallow lets no list or quote begin deeper than a document may be.
type shallow struct{ parser.BlockParser }

func (s shallow) Open(parent ast.Node, r text.Reader, pc parser.Context) (ast.Node, parser.State) {
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		if depth++; depth > innermost {
			return nil, parser.NoChildren
		}
	}
	return s.BlockParser.Open(parent, r, pc)
}

// narrow hands paragraphs on that make a table of reasonable width.
type narrow struct{ parser.ParagraphTransformer }

func (t narrow) Transform(n *ast.Paragraph, r text.Reader, pc parser.Context) {
	lines := n.Lines()
	for i := 1; i < lines.Len(); i++ {
		line := lines.At(i)
		row := line.Value(r.Source())
		if bytes.IndexByte(row, '-') < 0 || len(bytes.Trim(row, "|-: \t\r\n")) > 0 {
			continue
		}
		if columns := bytes.Count(row, []byte{'|'}) + 1; columns > maxColumns || columns*lines.Len() > doc.MaxNodes {
			return
		}
	}
	t.ParagraphTransformer.Transform(n, r, pc)
}

// definitions hands paragraphs on that don't hold endless link reference definitions, nor begin with what is a link whose text
// has code with a bracket in it.
type definitions struct{ parser.ParagraphTransformer }

func (t definitions) Transform(n *ast.Paragraph, r text.Reader, pc parser.Context) {
	first := n.Lines().At(0)
	label, _, _ := bytes.Cut(first.Value(r.Source()), []byte{']'})
	if n.Lines().Len() <= maxDefs && !inCode(label) {
		t.ParagraphTransformer.Transform(n, r, pc)
	}
}

// inCode tells whether a code span is open at the end of a text.
func inCode(b []byte) bool {
	open, run := 0, 0
	for i, c := range b {
		if c != '`' {
			continue
		}
		if run++; i+1 < len(b) && b[i+1] == '`' {
			continue
		}
		switch open {
		case 0:
			open = run
		case run:
			open = 0
		}
		run = 0
	}
	return open > 0
}

// patient hands inline text on as long as that hasn't cost too much in this block.
type patient struct{ parser.InlineParser }

var spentKey = parser.NewContextKey()

type spent struct {
	on   ast.Node
	work int
}

func (p patient) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	s, _ := pc.Get(spentKey).(*spent)
	if s == nil {
		s = &spent{}
		pc.Set(spentKey, s)
	}
	if s.on != parent {
		*s = spent{on: parent}
	}
	line, _ := block.PeekLine()
	if s.work += len(line); s.work > work {
		return nil
	}
	return p.InlineParser.Parse(parent, block, pc)
}

// closing is patient with a parser that has something to do at a block's end.
type closing struct {
	patient
	parser.CloseBlocker
}

func slowly(p parser.InlineParser) parser.InlineParser {
	if c, ok := p.(parser.CloseBlocker); ok {
		return closing{patient{p}, c}
	}
	return patient{p}
}

// parts splits a paragraph with very much markup into several blocks, which the reader joins again.
type parts struct{}

func (parts) Transform(n *ast.Paragraph, r text.Reader, _ parser.Context) {
	source, lines := r.Source(), n.Lines()
	size := 0
	for i := range lines.Len() {
		seg := lines.At(i)
		size += seg.Len()
	}
	if size < longPart {
		return
	}
	s := &splitter{source: source}
	for i := range lines.Len() {
		s.line(lines.At(i))
	}
	if len(s.done) == 0 {
		return
	}
	s.end(false)
	n.SetLines(s.done[0])
	last := ast.Node(n)
	for i, segments := range s.done[1:] {
		b := ast.NewTextBlock()
		b.SetLines(segments)
		b.SetAttributeString(partOf, s.spaced[i])
		n.Parent().InsertAfter(n.Parent(), last, b)
		last = b
	}
}

type splitter struct {
	source []byte
	done   []*text.Segments
	spaced []bool // whether a space follows the part
	now    *text.Segments
	size   int // of the part so far
	signs  int
	ticks  int // backquotes, stars, underlines, tildes, equals signs: odd while something may be open
	stars  int
	lows   int
	waves  int
	equals int
	square int // brackets that are open
	round  int
}

func (s *splitter) add(seg text.Segment) {
	if s.now == nil {
		s.now = text.NewSegments()
	}
	if !seg.IsEmpty() {
		s.now.Append(seg)
	}
}

func (s *splitter) end(spaced bool) {
	if s.now == nil {
		s.now = text.NewSegments()
	}
	if !spaced && s.now.Len() > 0 { // the last line, or a cut within a word
		seg := s.now.At(s.now.Len() - 1)
		s.now.Set(s.now.Len()-1, seg.TrimRightSpace(s.source))
	}
	*s = splitter{source: s.source, done: append(s.done, s.now), spaced: append(s.spaced, spaced)}
}

// quoted tells that a link or code may be open, open that a mark may be.
func (s *splitter) quoted() bool { return s.ticks%2 != 0 || s.square > 0 || s.round > 0 }

func (s *splitter) open() bool {
	return s.stars%2 != 0 || s.lows%2 != 0 || s.waves%2 != 0 || s.equals%2 != 0
}

// count takes note of a sign. What stands in round brackets is a link's destination or closed when they are.
func (s *splitter) count(c byte) {
	switch c {
	case '`':
		s.ticks++
	case '[':
		s.square++
	case ']':
		s.square = max(0, s.square-1)
	case '(':
		s.round++
	case ')':
		s.round = max(0, s.round-1)
	}
	if s.round == 0 {
		switch c {
		case '*':
			s.stars++
		case '_':
			s.lows++
		case '~':
			s.waves++
		case '=':
			s.equals++
		}
	}
	if strings.IndexByte("`*_~=[]<", c) >= 0 {
		s.signs++
	}
}

func (s *splitter) line(seg text.Segment) {
	seg = seg.TrimLeftSpace(s.source)
	line := seg.Value(s.source)
	start, ref := 0, -1 // where a character reference may have begun
	for i := 0; i < len(line); i++ {
		c := line[i]
		s.size++
		switch c {
		case '\\':
			s.size++
			i++
			continue
		case '&':
			ref = i
		case ';':
			ref = -1
		}
		s.count(c)
		long := s.signs > fewSigns || s.size > longPart && s.signs > 0
		longer := s.signs > 2*fewSigns || s.size > 4*longPart && s.signs > 0
		forced := s.signs > manySigns || s.size > longestPart && s.signs > fewSigns
		if ref >= 0 && i-ref < 40 || i == 0 || i+2 > len(line)-1 || line[i-1] == ' ' || line[i+1] == ' ' || line[i+1] == '\n' {
			continue
		}
		switch {
		case c == ' ' && (forced || longer && !s.quoted() || long && !s.quoted() && !s.open()):
			s.add(text.NewSegment(seg.Start+start, seg.Start+i))
			s.end(true)
			start = i + 1
		case forced && c < 0x80 && line[i+1] < 0x80 && c != ' ':
			s.add(text.NewSegment(seg.Start+start, seg.Start+i+1))
			s.end(false)
			start = i + 1
		}
	}
	s.add(text.NewSegment(seg.Start+start, seg.Stop))
}

// callouts takes the line "[!kind] title" off a quote's first paragraph.
type callouts struct{}

func (callouts) Transform(n *ast.Paragraph, r text.Reader, _ parser.Context) {
	quote, ok := n.Parent().(*ast.Blockquote)
	if !ok || quote.FirstChild() != ast.Node(n) {
		return
	}
	lines := n.Lines()
	first := lines.At(0)
	line := strings.TrimSpace(string(first.Value(r.Source())))
	mark, title, closed := strings.Cut(line, "]")
	kind, ok := strings.CutPrefix(strings.ToLower(mark), "[!")
	if !ok || !closed || title != "" && title[0] != ' ' && title[0] != '\t' || !isCallout(kind) {
		return
	}
	quote.SetAttributeString(calloutKind, kind)
	quote.SetAttributeString(calloutTitle, unescape(strings.Trim(title, " \t")))
	if lines.Len() == 1 {
		quote.RemoveChild(quote, n)
		return
	}
	lines.SetSliced(1, lines.Len())
	n.SetLines(lines)
}

// address is GFM's extended email autolink (section 6.9), whose characters are fewer than those that the library takes.
var address = regexp.MustCompile(`^[A-Za-z0-9.+_-]+@[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+`)

// newParser is GFM (tables, task lists, strikethrough, autolinks) with what is ours, and with the bounds.
func newParser() parser.Parser {
	var blocks, inlines []util.PrioritizedValue
	for _, b := range parser.DefaultBlockParsers() {
		if b.Priority == 300 || b.Priority == 800 { // lists and quotes
			b.Value = shallow{b.Value.(parser.BlockParser)}
		}
		blocks = append(blocks, b)
	}
	inlines = append(parser.DefaultInlineParsers(), util.Prioritized(taskBox{}, 0), util.Prioritized(highlights{}, 500),
		util.Prioritized(extension.NewStrikethroughParser(), 500), util.Prioritized(extension.NewLinkifyParser(extension.WithLinkifyEmailRegexp(address)), 999))
	for i := range inlines {
		inlines[i].Value = slowly(inlines[i].Value.(parser.InlineParser))
	}
	return parser.NewParser(parser.WithBlockParsers(blocks...), parser.WithInlineParsers(inlines...), parser.WithParagraphTransformers(
		util.Prioritized(callouts{}, 50), util.Prioritized(definitions{parser.LinkReferenceParagraphTransformer}, 100),
		util.Prioritized(narrow{extension.NewTableParagraphTransformer()}, 200), util.Prioritized(parts{}, 300)))
}
