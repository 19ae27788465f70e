package retrieval

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (r *finding) run(ctx context.Context, only string) error {
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{{"cranfield", r.cranfield}, {"turns", r.turns}, {"sessions", r.sessions}} {
		if slices.Contains(strings.Split(only, ","), part.name) {
			if err := part.run(ctx); err != nil {
				return fmt.Errorf("%s: %w", part.name, err)
			}
		}
	}
	return nil
}

// session is a dated part of a conversation.
type session struct {
	number int
	date   string
	turns  []turn
}

type turn struct{ id, text string }

type question struct {
	text     string
	category int
	evidence []string // ids of turns
}

type conversation struct {
	sessions  []session
	questions []question
}

var turnID = regexp.MustCompile(`D\d+:\d+`)

func (r *finding) conversations() ([]conversation, error) {
	b, err := os.ReadFile(filepath.Join(r.data, "locomo-dev.json"))
	if err != nil {
		return nil, err
	}
	var raw []struct {
		Conversation map[string]json.RawMessage `json:"conversation"`
		QA           []struct {
			Question string   `json:"question"`
			Category int      `json:"category"`
			Evidence []string `json:"evidence"`
		} `json:"qa"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, err
	}
	var all []conversation
	for _, c := range raw {
		var conv conversation
		for n := 1; n < 1000; n++ {
			key := fmt.Sprint("session_", n)
			if c.Conversation[key] == nil {
				continue
			}
			var turns []struct {
				Speaker string `json:"speaker"`
				ID      string `json:"dia_id"`
				Text    string `json:"text"`
				Caption string `json:"blip_caption"`
			}
			s := session{number: n}
			if err := json.Unmarshal(c.Conversation[key], &turns); err != nil {
				return nil, err
			}
			_ = json.Unmarshal(c.Conversation[key+"_date_time"], &s.date) // a session may have none
			for _, t := range turns {
				text := t.Speaker + ": " + t.Text
				if t.Caption != "" {
					text += " [" + t.Caption + "]"
				}
				s.turns = append(s.turns, turn{t.ID, text})
			}
			conv.sessions = append(conv.sessions, s)
		}
		for _, q := range c.QA {
			var evidence []string
			for _, e := range q.Evidence {
				evidence = append(evidence, turnID.FindAllString(e, -1)...)
			}
			conv.questions = append(conv.questions, question{q.Question, q.Category, evidence})
		}
		all = append(all, conv)
	}
	return all, nil
}

const answered = 4 // the last category that is counted: 5 are questions without an answer

// moment is when a session began, such as "1:56 pm on 8 May, 2023". A session may have no date.
func (s session) moment() time.Time {
	at, err := time.Parse("3:04 pm on 2 January, 2006", s.date)
	if err != nil {
		at = time.Date(2000, 1, 1, 0, s.number, 0, 0, time.UTC)
	}
	return at
}

// sessions searches whole sessions of all conversations in one heap: each is the daily note of its day.
func (r *finding) sessions(ctx context.Context) error {
	convs, err := r.conversations()
	if err != nil {
		return err
	}
	var items []item
	for c, conv := range convs {
		for _, s := range conv.sessions {
			var b strings.Builder
			for _, t := range s.turns {
				b.WriteString(t.text + "\n")
			}
			key := fmt.Sprintf("%d/D%d", c, s.number)
			items = append(items, item{key, "all", "upsert_daily_note", map[string]any{"heap": "all", "external_ref": key, "date": s.moment().Format(time.DateOnly), "title": cmp.Or(s.date, "session"), "body": b.String()}})
		}
	}
	p, err := r.index(ctx, "sessions", []string{"all"}, items)
	if err != nil {
		return err
	}
	defer p.Close() //nolint:errcheck // it's thrown away
	for _, leg := range legs {
		var all tally
		by := map[int]*tally{}
		for c, conv := range convs {
			for _, q := range conv.questions {
				wanted := map[string]bool{}
				for _, e := range q.evidence {
					d, _, _ := strings.Cut(e, ":")
					wanted[fmt.Sprintf("%d/%s", c, d)] = true
				}
				if q.category > answered || len(wanted) == 0 {
					continue
				}
				found, err := p.find(ctx, leg, "all", q.text)
				if err != nil {
					return err
				}
				if by[q.category] == nil {
					by[q.category] = &tally{}
				}
				all.add(found, wanted)
				by[q.category].add(found, wanted)
			}
		}
		for c := 1; c <= answered; c++ {
			if by[c] != nil {
				r.say(leg, fmt.Sprint("category ", c), by[c])
			}
		}
		r.say(leg, "sessions 1-4", all)
	}
	return nil
}

// turns searches single turns, a heap per conversation: each is an episode, a minute after the one before.
func (r *finding) turns(ctx context.Context) error {
	convs, err := r.conversations()
	if err != nil {
		return err
	}
	var items []item
	var heaps []string
	for c, conv := range convs {
		heap := fmt.Sprint("conversation ", c)
		heaps = append(heaps, heap)
		for _, s := range conv.sessions {
			for i, t := range s.turns {
				key := fmt.Sprintf("%d/%s", c, t.id)
				items = append(items, item{key, heap, "add_episode", map[string]any{"heap": heap, "external_ref": key, "kind": "turn", "summary": t.text, "occurred_at": s.moment().Add(time.Duration(i) * time.Minute).Format(time.RFC3339)}})
			}
		}
	}
	p, err := r.index(ctx, "turns", heaps, items)
	if err != nil {
		return err
	}
	defer p.Close() //nolint:errcheck // it's thrown away
	for _, leg := range legs {
		var all tally
		for c, conv := range convs {
			for _, q := range conv.questions {
				wanted := map[string]bool{}
				for _, e := range q.evidence {
					wanted[fmt.Sprintf("%d/%s", c, e)] = true
				}
				if q.category > answered || len(wanted) == 0 {
					continue
				}
				found, err := p.find(ctx, leg, heaps[c], q.text)
				if err != nil {
					return err
				}
				all.add(found, wanted)
			}
		}
		r.say(leg, "turns", all)
	}
	return nil
}

// cranfield searches abstracts.
func (r *finding) cranfield(ctx context.Context) error {
	read := func(name string) (string, error) {
		b, err := os.ReadFile(filepath.Join(r.data, "cranfield", name))
		return strings.ReplaceAll(string(b), "\r", ""), err
	}
	docs, err := read("cran.all.1400")
	if err != nil {
		return err
	}
	queries, err := read("cran.qry")
	if err != nil {
		return err
	}
	judged, err := read("cranqrel")
	if err != nil {
		return err
	}
	var items []item
	for part := range strings.SplitSeq(docs, ".I ") {
		id, rest, ok := strings.Cut(part, "\n.T\n")
		if !ok {
			continue
		}
		title, rest, _ := strings.Cut(rest, "\n.A\n")
		_, body, _ := strings.Cut(rest, "\n.W\n")
		title, body = strings.Join(strings.Fields(title), " "), strings.Join(strings.Fields(body), " ")
		body = strings.TrimSpace(strings.TrimPrefix(body, title))
		key := strings.TrimSpace(id)
		items = append(items, item{key, "abstracts", "upsert_daily_note", map[string]any{"heap": "abstracts", "external_ref": key, "date": "1963-01-01", "title": cmp.Or(title, "untitled"), "body": cmp.Or(body, title, "-")}})
	}
	wanted := map[int]map[string]bool{}
	for line := range strings.Lines(judged) {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		n, _ := strconv.Atoi(f[0])
		if wanted[n] == nil {
			wanted[n] = map[string]bool{}
		}
		wanted[n][f[1]] = true
	}
	p, err := r.index(ctx, "cranfield", []string{"abstracts"}, items)
	if err != nil {
		return err
	}
	defer p.Close() //nolint:errcheck // it's thrown away
	for _, leg := range legs {
		sum, n := 0.0, 0
		for part := range strings.SplitSeq(queries, ".I ") {
			_, q, ok := strings.Cut(part, "\n.W\n")
			if !ok {
				continue
			}
			n++ // the judgements count the queries as they come
			found, err := p.find(ctx, leg, "abstracts", q)
			if err != nil {
				return err
			}
			sum += gain(found, wanted[n])
		}
		r.say(leg, "cranfield", gained(sum/float64(max(n, 1))))
	}
	return nil
}

// gained is a mean gain.
type gained float64

func (g gained) String() string { return "nDCG@10 " + share(float64(g)) }

// gain is the normalized discounted cumulative gain of ten results.
func gain(found []string, wanted map[string]bool) float64 {
	var got, best float64
	for i := range 10 {
		w := 1 / math.Log2(float64(i)+2)
		if i < len(found) && wanted[found[i]] {
			got += w
		}
		if i < len(wanted) {
			best += w
		}
	}
	if best == 0 {
		return 0
	}
	return got / best
}
