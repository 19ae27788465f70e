package chronicle

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/internal/db"
	"cairn/internal/fault"
	"cairn/internal/op"
	"cairn/internal/who"
	"cairn/internal/words"
)

type timelineIn struct {
	Since  string `json:"since" jsonschema:"time (RFC 3339) or date, inclusive; default 14 days back" rule:"max=64"`
	Until  string `json:"until" jsonschema:"time (RFC 3339) or date, inclusive; default today" rule:"max=64"`
	Person string `json:"person_slug" jsonschema:"only what this person was part of" rule:"min=1,max=300"`
	Heap   string `json:"heap" jsonschema:"id or name" rule:"max=300"`
	Limit  int    `json:"limit" jsonschema:"default 60" rule:"min=1,max=300"`
	Cursor string `json:"cursor" rule:"max=300"`
}

// Episode is something that happened, as callers see it. At is when, date is that day in the account's zone.
type Episode struct {
	ID        string   `json:"id"`
	Kind      string   `json:"kind"`
	At        string   `json:"at"`
	Date      string   `json:"date"`
	Summary   string   `json:"summary"`
	Detail    *string  `json:"detail"`
	Cut       []string `json:"cut,omitempty"` // fields that are shown shortened; fetch has them whole
	People    []Who    `json:"people"`
	ProjectID *string  `json:"project_id"`
	QuestID   *string  `json:"quest_id"`
	Source    string   `json:"source"` // who wrote it down, or tasks
	SourceURL *string  `json:"source_url"`
	Heap      string   `json:"heap"`
	Private   bool     `json:"private,omitempty"`

	at  int64
	key string // orders what happened at the same moment
	own bool   // of the table episode, so that people may hang on it
}

// Who is a person in one word and in full.
type Who struct {
	Slug string `json:"slug"`
	Name string `json:"name"`
}

type timelineOut struct {
	Count      int       `json:"count"`
	Person     *Person   `json:"person"`
	Episodes   []Episode `json:"episodes"`
	NextCursor *string   `json:"next_cursor,omitempty"`
}

// How many rows a timeline gives and may give, how far back it goes by default, and how much it shows of texts.
const (
	defaultRows  = 60
	defaultDays  = 14
	summaryChars = 2000
	detailChars  = 300
)

// The span of all moments: of beginning and before end.
var (
	beginning = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	end       = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
)

// span is a part of the past: since (inclusive) to what comes, newest first, after the thing with the moment below and this key.
type span struct {
	heaps        []who.Heap
	since, below int64
	key          string // "" = nothing at the moment below
	person       string // id; "" = everything
}

// noteKey begins the keys of daily notes. They come first among what has the moment of a day's begin, since ids sort before it.
const noteKey = "note:"

func (s *Service) timeline(ctx context.Context, in timelineIn) (timelineOut, error) {
	out, c := timelineOut{Episodes: []Episode{}}, who.From(ctx)
	heaps, err := c.Readable(in.Heap)
	if err != nil || len(heaps) == 0 {
		return out, err
	}
	sp, err := in.span(c, s.db.Now())
	if err != nil {
		return out, err
	}
	sp.heaps = heaps
	if in.Person != "" {
		p, err := s.findPerson(ctx, in.Person, in.Heap)
		if err != nil {
			return out, err
		}
		shown := p.shown()
		out.Person, sp.person = &shown, p.ID
	}
	page := op.NewPage(0) // a limit of one's own doesn't lift the bound on bytes: there is a cursor
	page.Limit = cmp.Or(in.Limit, defaultRows)
	list, err := s.events(ctx, sp, page.Limit+1)
	if err != nil {
		return out, err
	}
	for i, e := range list {
		weight := 420 + op.Weight(e.Summary) + op.Weight(db.Text(e.Detail)) + op.Weight(db.Text(e.SourceURL)) + op.Weight(e.Source)
		for _, p := range e.People {
			weight += 30 + op.Weight(p.Name) + op.Weight(p.Slug)
		}
		if !page.Fits(i, weight) {
			last := list[i-1]
			out.NextCursor = op.Cursor(strconv.FormatInt(last.at, 10), last.key)
			break
		}
		out.Episodes = append(out.Episodes, e)
	}
	out.Count = len(out.Episodes)
	return out, nil
}

// Recent gives the latest that happened in the two weeks up to a day (YYYY-MM-DD), as get_timeline does.
func (s *Service) Recent(ctx context.Context, heap, day string, limit int) ([]Episode, error) {
	out, err := s.timeline(ctx, timelineIn{Heap: heap, Until: day, Limit: limit})
	return out.Episodes, err
}

// Moment is At in microseconds since 1970 UTC.
func (e Episode) Moment() int64 { return e.at }

// span reads the range of time that is asked for. A date counts from its first to its last moment in the account's zone.
func (in timelineIn) span(c *who.Caller, now int64) (sp span, err error) {
	next := func(micros int64, days int) int64 { // the begin of the day so many days after the one of micros
		day := c.Time(micros).AddDate(0, 0, days)
		if day.Year() < 1 {
			return beginning
		}
		if day.Year() > 9999 {
			return end
		}
		return op.Midnight(day.Format(time.DateOnly), c.Zone)
	}
	sp.below = next(now, 1)
	if in.Until != "" {
		at, day, err := op.Moment("until", in.Until, c.Zone)
		if err != nil {
			return sp, err
		}
		sp.below = at + 1000
		if day {
			sp.below = next(at, 1)
		}
	}
	sp.since = next(sp.below-1, 1-defaultDays)
	if in.Since != "" {
		if sp.since, err = op.Since("since", in.Since, c.Zone); err != nil {
			return sp, err
		}
		if in.Until == "" && sp.since >= sp.below { // asked for what is to come
			sp.below = end
		}
		if sp.since >= sp.below {
			return sp, fault.Bad("since", "is after until")
		}
	}
	key, err := op.ReadCursor(in.Cursor, 2)
	if err != nil || key == nil {
		return sp, err
	}
	at, err := strconv.ParseInt(key[0], 10, 64)
	if err != nil || at < beginning || at > end {
		return sp, op.BadCursor()
	}
	if at < sp.below {
		sp.below, sp.key = at, key[1]
	}
	return sp, nil
}

// events gives what happened, newest first, from every place where it is kept. Private things are for persons alone.
func (s *Service) events(ctx context.Context, sp span, limit int) ([]Episode, error) {
	c, all := who.From(ctx), []Episode{}
	if len(sp.heaps) == 0 {
		return all, nil
	}
	add := func(e Episode) {
		if e.at >= sp.since && (e.at < sp.below || e.at == sp.below && e.key < sp.key) {
			all = append(all, e)
		}
	}
	from := []func() error{func() error { return s.episodes(ctx, sp, limit, add) }}
	if sp.person == "" {
		from = append(from, func() error { return s.notes(ctx, sp, limit, add) }, func() error { return s.decisions(ctx, sp, limit, add) })
		if s.Completions != nil && c.MayArea("tasks") {
			from = append(from, func() error {
				return s.Completions(ctx, sp.heaps, sp.since, sp.below, sp.key, limit, func(id, heap, name string, project, sourceURL *string, at int64) {
					add(Episode{ID: id, Heap: heap, Kind: kindCompleted, Summary: name, ProjectID: project, SourceURL: sourceURL, Source: "tasks", at: at, key: id})
				})
			})
		}
	}
	for _, f := range from {
		if err := f(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b Episode) int { return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.key, a.key)) })
	all = all[:min(len(all), limit)]
	for i := range all {
		all[i].finish(c)
	}
	return all, s.namePeople(ctx, all)
}

// finish fills in what follows from the rest, and cuts long texts.
func (e *Episode) finish(c *who.Caller) {
	e.At, e.People = op.Stamp(e.at), []Who{}
	if e.Date == "" {
		e.Date = c.Day(e.at)
	}
	if short, was := cut(&e.Summary, summaryChars); was {
		e.Summary, e.Cut = *short, append(e.Cut, "summary")
	}
	if short, was := cut(e.Detail, detailChars); was {
		e.Detail, e.Cut = short, append(e.Cut, "detail")
	}
}

// cut shortens s to n characters.
func cut(s *string, n int) (*string, bool) {
	if s == nil {
		return s, false
	}
	short, was := words.Shorten(*s, n)
	return &short, was
}

// scan reads rows of a statement that begins with id, heap, kind, summary, detail, moment, project, quest, source_url, actor
// and private, heap by heap along an index.
func (s *Service) scan(ctx context.Context, sp span, args db.Args, sel func(heap string) string, order string, limit int, f func(e Episode, at any)) error {
	n := ` LIMIT ` + strconv.Itoa(limit)
	q := db.Latest(sp.heaps, func(h who.Heap) string { return sel(args.Add(h.ID)) + ` ORDER BY ` + order + n }, order+n)
	rows, err := s.db.Query(ctx, q, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var e Episode
		var at any
		var private yes
		if err := rows.Scan(&e.ID, &e.Heap, &e.Kind, &e.Summary, &e.Detail, &at, &e.ProjectID, &e.QuestID, &e.SourceURL, &e.Source, &private); err != nil {
			return err
		}
		e.Private, e.key = bool(private), e.ID
		f(e, at)
	}
	return rows.Err()
}

func (s *Service) episodes(ctx context.Context, sp span, limit int, add func(Episode)) error {
	args := db.Args{sp.since, sp.below, sp.key}
	more := ""
	if !who.From(ctx).Person {
		more = ` AND private = 0`
	}
	if sp.person != "" {
		more += ` AND EXISTS (SELECT 1 FROM episode_person p WHERE p.person = ` + args.Add(sp.person) + ` AND p.episode = episode.id)`
	}
	return s.scan(ctx, sp, args, func(heap string) string {
		return `SELECT id, heap, kind, substr(summary, 1, 2001) AS summary, substr(detail, 1, 301) AS detail, at, project, quest, source_url, actor, private FROM episode
			WHERE heap = ` + heap + ` AND trashed_at IS NULL AND at >= $1 AND (at, id) < ($2, $3)` + more
	}, `at DESC, id DESC`, limit, func(e Episode, at any) {
		e.at, _ = at.(int64)
		e.own = true
		add(e)
	})
}

func (s *Service) decisions(ctx context.Context, sp span, limit int, add func(Episode)) error {
	more := forAgents(who.From(ctx), kindDecision)
	return s.scan(ctx, sp, db.Args{sp.since, sp.below, sp.key}, func(heap string) string {
		return `SELECT id, heap, 'decision' AS kind, title, substr(detail, 1, 301) AS detail, decided_at, NULL AS project, NULL AS quest, source_url, actor, 0 AS private FROM decision
			WHERE heap = ` + heap + ` AND trashed_at IS NULL AND decided_at >= $1 AND (decided_at, id) < ($2, $3)` + more
	}, `decided_at DESC, id DESC`, limit, func(e Episode, at any) {
		e.at, _ = at.(int64)
		add(e)
	})
}

// notes gives daily notes. Each stands at the first moment of its day in the account's zone.
func (s *Service) notes(ctx context.Context, sp span, limit int, add func(Episode)) error {
	c := who.From(ctx)
	day := func(micros int64) string { return c.Day(min(max(micros, beginning), end-1)) }
	last, id := day(sp.below), ""
	if len(last) > len(time.DateOnly) { // the year 10000 has begun where the clock is ahead
		last = "9999-12-31"
	}
	if d, i, ok := strings.Cut(strings.TrimPrefix(sp.key, noteKey), ":"); ok && strings.HasPrefix(sp.key, noteKey) {
		last, id = d, i
	} else if op.Midnight(last, c.Zone) < sp.below {
		id = noteKey // no id is beyond it: that day's notes too
	}
	return s.scan(ctx, sp, db.Args{day(sp.since), last, id}, func(heap string) string {
		return `SELECT id, heap, 'daily_note' AS kind, title, substr(body, 1, 301) AS body, date, NULL AS project, NULL AS quest, source_url, actor, 0 AS private FROM daily_note
			WHERE heap = ` + heap + ` AND trashed_at IS NULL AND date >= $1 AND (date, id) < ($2, $3)`
	}, `date DESC, id DESC`, limit, func(e Episode, at any) {
		e.Date, _ = at.(string)
		e.at, e.key = op.Midnight(e.Date, c.Zone), noteKey+e.Date+":"+e.ID
		add(e)
	})
}

// namePeople puts beside episodes who was there, as far as the caller knows of them.
func (s *Service) namePeople(ctx context.Context, list []Episode) error {
	c := who.From(ctx)
	at := map[string]*Episode{}
	var ids []string
	for i := range list {
		if list[i].own {
			at[list[i].ID] = &list[i]
			ids = append(ids, list[i].ID)
		}
	}
	for part := range slices.Chunk(ids, chunk) {
		args := db.Args{}
		rows, err := s.db.Query(ctx, `SELECT e.episode, p.heap, p.slug, p.name, p.private FROM episode_person e JOIN person p ON p.id = e.person
			WHERE p.trashed_at IS NULL AND e.episode IN `+args.List(padded(part)), args...)
		if err != nil {
			return err
		}
		for rows.Next() {
			var id string
			p := newPerson()
			if err := rows.Scan(&id, &p.Heap, &p.Slug, &p.Name, &p.Private); err != nil {
				_ = rows.Close()
				return err
			}
			if sees(c, p) {
				at[id].People = append(at[id].People, Who{p.Slug, p.Name})
			}
		}
		err = rows.Err()
		_ = rows.Close()
		if err != nil {
			return err
		}
	}
	for i := range list {
		slices.SortFunc(list[i].People, func(a, b Who) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Slug, b.Slug)) })
	}
	return nil
}
