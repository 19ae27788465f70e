package memory

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"cairn/internal/db"
	"cairn/internal/op"
	"cairn/internal/who"
	"cairn/internal/words"
)

func (s *Service) selfOps() []*op.Op {
	return []*op.Op{
		op.Define(op.Op{Name: "get_self", Title: "Self page", Area: area, Effect: op.Read, Set: record,
			Doc: "Who the person is, compiled from what stands in memory, each line with what it cites. Corrections come first: they are the owner's words against an error. Private things are not in it."},
			s.getSelf),
	}
}

// SelfLine is a line of the Self page. Its text ends with its citation: [kind date id], the id cut where it's still one of a
// kind; cites has it whole.
type SelfLine struct {
	Group string   `json:"group"`
	Text  string   `json:"text"`
	Cites []string `json:"cites"`
}

type selfIn struct {
	Heap string `json:"heap" jsonschema:"id or name; default: the oldest personal one" rule:"max=300"`
}

type selfOut struct {
	Heap       string     `json:"heap"`
	Lines      []SelfLine `json:"lines"`
	LeftOut    int        `json:"left_out,omitempty"` // lines for which there was no room: list them with search
	CompiledAt string     `json:"compiled_at"`
}

func (s *Service) getSelf(ctx context.Context, in selfIn) (selfOut, error) {
	heaps, err := who.From(ctx).Readable(in.Heap)
	if err != nil || len(heaps) == 0 {
		return selfOut{Lines: []SelfLine{}}, err
	}
	h := heaps[0]
	if i := slices.IndexFunc(heaps, func(h who.Heap) bool { return h.Kind == who.Personal }); i >= 0 {
		h = heaps[i]
	}
	return s.self(ctx, h.ID)
}

// selfPage is the Self page as stored.
type selfPage struct {
	Lines   []SelfLine `json:"lines"`
	LeftOut int        `json:"left_out"`
}

// self gives the Self page of a heap, compiled anew where what it cites has changed.
func (s *Service) self(ctx context.Context, heap string) (selfOut, error) {
	var stored string
	var stale, at int64
	err := s.db.One(ctx, `SELECT lines, stale, compiled_at FROM self_page WHERE heap = $1`, []any{heap}, &stored, &stale, &at)
	if err != nil && !db.IsNone(err) {
		return selfOut{}, err
	}
	var p selfPage
	if err == nil && stale == 0 {
		err = json.Unmarshal([]byte(stored), &p)
	} else {
		p, at, err = s.compileSelf(ctx, heap)
	}
	return selfOut{Heap: heap, Lines: p.Lines, LeftOut: p.LeftOut, CompiledAt: op.Stamp(at)}, err
}

// compileSelf compiles the Self page of a heap and keeps it. It is no change: all that it says stands elsewhere.
func (s *Service) compileSelf(ctx context.Context, heap string) (p selfPage, at int64, err error) {
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		if err := lockContext(tx, heap); err != nil {
			return err
		}
		all, err := selectContext(tx, `o.heap = $1 AND o.status = 'current' AND o.private = 0 AND o.trashed_at IS NULL ORDER BY o.at DESC, o.id DESC`, heap)
		if err != nil {
			return err
		}
		plan, err := blueprintLines(tx, heap)
		if err != nil {
			return err
		}
		p, at = selfOf(all, plan), tx.Wall
		b, err := json.Marshal(p)
		if err != nil {
			return err
		}
		_, err = tx.Exec(`UPDATE self_page SET lines = $2, stale = 0, compiled_at = $3 WHERE heap = $1`, heap, string(b), at)
		return err
	})
	return p, at, err
}

// saying is one thing that the Self page may say.
type saying struct {
	group, kind, text, id string
	at                    int64
}

// blueprintLines reads the sections of a heap's blueprint, line by line. Their names are groups of the page too.
func blueprintLines(tx *db.Tx, heap string) ([]saying, error) {
	rows, err := tx.Query(`SELECT id, section, text, updated_at FROM blueprint WHERE heap = $1 AND private = 0 AND trashed_at IS NULL`, heap)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []saying
	for rows.Next() {
		var id, section, text string
		var at int64
		if err := rows.Scan(&id, &section, &text, &at); err != nil {
			return nil, err
		}
		for l := range strings.Lines(text) {
			if l, _ = clean(strings.TrimLeft(l, " \t-*#>")); l != "" {
				all = append(all, saying{section, "blueprint " + section, l, id, at})
			}
		}
	}
	return all, rows.Err()
}

// selfGroups are the groups of the page after the corrections, and the kinds of context objects that go into each.
var selfGroups = []struct{ name, kind string }{{"foundation", ""}, {"values", ""}, {"beliefs", belief}, {"preferences", preference}, {"mental models", model},
	{"decisions", decided}, {"open questions", question}, {"learnings", learning}, {"originals", original}}

// Limits of the page: of a line's own text in characters, and of all lines in bytes as sent.
const (
	selfChars = 500
	selfBytes = 36_000
)

// selfOf puts the page together: the corrections, then what they don't contradict, group by group, newest first. The same
// objects always give the same page.
func selfOf(all []object, plan []saying) selfPage {
	g := guardsOf(all)
	var says []saying
	for _, o := range all {
		if o.Kind == correction {
			says = append(says, saying{"corrections", o.Kind, o.Statement, o.ID, o.At})
		}
	}
	for _, group := range selfGroups {
		for _, l := range plan {
			if l.group == group.name && g.against(heapOf(all), "", "", l.text, l.at) == "" {
				says = append(says, l)
			}
		}
		for _, o := range all {
			if group.kind != "" && o.Kind == group.kind && g.against(o.Heap, o.Kind, o.SubjectFolded, o.Statement, o.At) == "" {
				says = append(says, saying{group.name, o.Kind, o.Statement, o.ID, o.At})
			}
		}
	}
	n := prefix(says)
	p, used := selfPage{Lines: []SelfLine{}}, 0
	for _, s := range says {
		text := s.text
		if short, was := words.Shorten(text, selfChars-1); was && utf8.RuneCountInString(text) > selfChars {
			text = strings.TrimSpace(short) + "…"
		}
		text += " [" + s.kind + " " + time.UnixMicro(s.at).UTC().Format(time.DateOnly) + " " + s.id[:min(n, len(s.id))] + "]"
		if used += op.Weight(text) + 120; used > selfBytes {
			p.LeftOut++
			continue
		}
		p.Lines = append(p.Lines, SelfLine{s.group, text, []string{s.id}})
	}
	return p
}

func heapOf(all []object) string {
	if len(all) == 0 {
		return ""
	}
	return all[0].Heap
}

// prefix gives how many characters of an id tell all of them apart, at least eight.
func prefix(says []saying) int {
	ids := make([]string, 0, len(says))
	for _, s := range says {
		ids = append(ids, s.id)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	n := 8
	for i := 1; i < len(ids); i++ {
		same := 0
		for same < min(len(ids[i]), len(ids[i-1])) && ids[i][same] == ids[i-1][same] {
			same++
		}
		n = max(n, same+1)
	}
	return n
}
