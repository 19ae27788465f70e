package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/internal/db"
	"cairn/internal/embed"
	"cairn/internal/meaning"
	"cairn/internal/search"
)

func (r *finding) run(ctx context.Context, only string) error {
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{{"speed", r.speed}, {"cranfield", r.cranfield}, {"turns", r.turns}, {"sessions", r.sessions}} {
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

const temporal = 4 // the last category that is counted: 5 are questions without an answer

// sessions searches whole sessions of all conversations in one heap.
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
			items = append(items, item{search.Doc{Embed: true, Heap: "all", Thing: fmt.Sprintf("%d/D%d", c, s.number), Kind: "item", Title: s.date, Body: b.String()}, meaning.Text{Title: s.date, Body: b.String()}})
		}
	}
	st, err := r.index(ctx, "sessions", items)
	if err != nil {
		return err
	}
	defer st.d.Close() //nolint:errcheck // it's thrown away
	for _, leg := range legNames {
		var all tally
		by := map[int]*tally{}
		for c, conv := range convs {
			for _, q := range conv.questions {
				wanted := map[string]bool{}
				for _, e := range q.evidence {
					d, _, _ := strings.Cut(e, ":")
					wanted[fmt.Sprintf("%d/%s", c, d)] = true
				}
				if q.category > temporal || len(wanted) == 0 {
					continue
				}
				found, err := st.legs()[leg](ctx, []string{"all"}, nil, q.text, 10)
				if err != nil {
					return err
				}
				if by[q.category] == nil {
					by[q.category] = &tally{}
				}
				all.add(things(found), wanted)
				by[q.category].add(things(found), wanted)
			}
		}
		for c := 1; c <= temporal; c++ {
			if by[c] != nil {
				r.say("%scategory %d %s", leg, c, by[c])
			}
		}
		r.say("%ssessions 1-4 %s", leg, all)
	}
	return nil
}

// turns searches single turns, a heap per conversation, each with the turns around it.
func (r *finding) turns(ctx context.Context) error {
	convs, err := r.conversations()
	if err != nil {
		return err
	}
	var items []item
	for c, conv := range convs {
		for _, s := range conv.sessions {
			for i, t := range s.turns {
				before, after := "", ""
				if i > 0 {
					before = s.turns[i-1].text
				}
				if i+1 < len(s.turns) {
					after = s.turns[i+1].text
				}
				items = append(items, item{search.Doc{Embed: true, Heap: fmt.Sprint(c), Thing: fmt.Sprintf("%d/%s", c, t.id), Kind: "item", Title: s.date, Body: t.text, Around: before + "\n" + after},
					meaning.Text{Body: t.text, Before: before, After: after}})
			}
		}
	}
	st, err := r.index(ctx, "turns", items)
	if err != nil {
		return err
	}
	defer st.d.Close() //nolint:errcheck // it's thrown away
	for _, leg := range legNames {
		var all tally
		for c, conv := range convs {
			for _, q := range conv.questions {
				wanted := map[string]bool{}
				for _, e := range q.evidence {
					wanted[fmt.Sprintf("%d/%s", c, e)] = true
				}
				if q.category > temporal || len(wanted) == 0 {
					continue
				}
				found, err := st.legs()[leg](ctx, []string{fmt.Sprint(c)}, nil, q.text, 10)
				if err != nil {
					return err
				}
				all.add(things(found), wanted)
			}
		}
		r.say("%sturns %s", leg, all)
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
		items = append(items, item{search.Doc{Embed: true, Heap: "cran", Thing: strings.TrimSpace(id), Kind: "item", Title: title, Body: body}, meaning.Text{Title: title, Body: body}})
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
	st, err := r.index(ctx, "cranfield", items)
	if err != nil {
		return err
	}
	defer st.d.Close() //nolint:errcheck // it's thrown away
	for _, leg := range legNames {
		sum, n := 0.0, 0
		for part := range strings.SplitSeq(queries, ".I ") {
			_, q, ok := strings.Cut(part, "\n.W\n")
			if !ok {
				continue
			}
			n++ // the judgements count the queries as they come
			found, err := st.legs()[leg](ctx, []string{"cran"}, nil, q, 10)
			if err != nil {
				return err
			}
			sum += gain(things(found), wanted[n])
		}
		r.say("%scranfield nDCG@10 %s", leg, share(sum/float64(max(n, 1))))
	}
	return nil
}

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

// speed measures questions in heaps of many things with random words, and what the vectors take.
func (r *finding) speed(ctx context.Context) error {
	random := rand.New(rand.NewPCG(1, 2))
	words := func(n int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "w%d ", int(20000*math.Pow(random.Float64(), 3)))
		}
		return b.String()
	}
	for _, n := range []int{10_000, 100_000} {
		model := noise{}
		own := &finding{dir: r.dir, model: model}
		var items []item
		for i := range n {
			text := words(40)
			items = append(items, item{search.Doc{Embed: true, Heap: "h", Thing: fmt.Sprintf("%06d", i), Kind: "item", Body: text}, meaning.Text{Body: text[:20]}})
		}
		st, err := own.index(ctx, fmt.Sprint("speed", n), items)
		if err != nil {
			return err
		}
		var without, took []time.Duration
		_, textBytes := int64(0), int64(0)
		for i := range 60 {
			q := words(5)
			begin := time.Now()
			if _, err := st.fused.Ask(ctx, []string{"h"}, nil, q, 10); err != nil {
				return err
			}
			if i >= 10 {
				took = append(took, time.Since(begin))
			}
			begin = time.Now()
			if _, err := st.text.Ask(ctx, []string{"h"}, nil, q, 10); err != nil {
				return err
			}
			if i >= 10 {
				without = append(without, time.Since(begin))
			}
		}
		_, all := st.fused.Stats()
		_, textBytes = st.text.Stats()
		slices.Sort(took)
		slices.Sort(without)
		r.say("speed %d things: question p50 %.1f ms beside its embedding (text alone %.1f ms), vectors take %.1f MB per 100,000", n, ms(took[len(took)/2]), ms(without[len(without)/2]), float64(all-textBytes)/float64(n)/10)
		_ = st.d.Close()
	}
	var took []time.Duration
	for range 30 {
		begin := time.Now()
		if _, err := embed.Builtin().Embed(ctx, []string{"what did we decide about the house in " + db.NewID()[:4]}); err != nil {
			return err
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	r.say("speed: embedding a question p50 %.1f ms", ms(took[len(took)/2]))
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// noise is a model whose vectors are random: for speed alone.
type noise struct{}

func (noise) ID() string      { return "noise" }
func (noise) Dimensions() int { return 512 }

func (noise) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, t := range texts {
		var seed [32]byte
		copy(seed[:], t)
		r := rand.New(rand.NewChaCha8(seed))
		out[i] = make([]float32, 512)
		for k := range out[i] {
			out[i][k] = float32(r.NormFloat64()) / 22.6
		}
	}
	return out, nil
}
