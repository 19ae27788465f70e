package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/apptest"
	"cairn/internal/fault"
)

// In whatever order things are said again, and by whomever, each is the one that it was, and which are one doesn't hang on
// the order.
func TestNearDuplicatesInAnyOrder(t *testing.T) {
	groups := [][]string{
		{"I prefer tea.", "i PREFER  tea", "I really prefer tea!", "I prefer the tea"},
		{"I don't prefer tea", "I do not prefer tea"},
		{"Café au lait at 3.5 bar", "cafe au lait at 3.5 bar!"},
		{"Café au lait at 35 bar"},
		{"我喜欢茶。", "我喜欢茶"},
		{"我不喜欢茶"},
		{"أحبُّ الشاي", "أحب الشاي"},
		{"👩‍👩‍👧 first", "👩‍👩‍👧 FIRST"},
		{"The committee decides", "the comittee decides"},
	}
	both(t, func(t *testing.T, a *apptest.App, agent, _ context.Context) {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 0))
		for round := range 6 {
			subject := fmt.Sprint("order ", round)
			var said [][2]string // its group, and how it is said
			for g, ways := range groups {
				for _, w := range ways {
					said = append(said, [2]string{fmt.Sprint(g), w})
				}
			}
			first := map[string]string{} // by group
			for again := range 3 {
				r.Shuffle(len(said), func(i, j int) { said[i], said[j] = said[j], said[i] })
				for part := range slices.Chunk(said, 7) {
					var objects []map[string]any
					for _, s := range part {
						objects = append(objects, about("belief", subject, s[1]))
					}
					ctx := agent
					if r.IntN(2) == 0 {
						ctx = a.Person(t)
					}
					for i, res := range remember(t, a, ctx, objects...) {
						g, want := part[i][0], "existing"
						if first[g] == "" && again == 0 {
							first[g], want = res.ID, "created"
						}
						if res.ID != first[g] || res.Result != want {
							t.Fatalf("seed %d, time %d: %q is %+v, was %s", seed, again, part[i][1], res, first[g])
						}
					}
				}
			}
			ids := map[string]bool{}
			for _, id := range first {
				ids[id] = true
			}
			if n := len(held(t, a, `{"limit":200,"subject":`+quote(subject)+`}`)); n != len(groups) || len(ids) != n {
				t.Fatalf("seed %d: %d are held, %d told, of %d", seed, n, len(ids), len(groups))
			}
		}
	})
}

// Two agents, each with a token of its own, supersede one object at the same moment, and the owner accepts a proposal for it:
// one wins, and the others hear which.
func TestTwoAgentsAndTheOwnerSupersedeOne(t *testing.T) {
	both(t, func(t *testing.T, a *apptest.App, agent, asking context.Context) {
		other, me := a.As(t, a.Token(t, `{"name":"other","rate":0}`)), a.Person(t)
		for round := range 8 {
			id := remember(t, a, agent, about("decision", fmt.Sprint("s", round), fmt.Sprint("The first view of ", round)))[0].ID
			waits := get[captured](t, a, asking, "supersede_context", fmt.Sprintf(`{"id":%q,"statement":"The view of the one who asks, %d"}`, id, round)).ID
			calls := []struct {
				ctx        context.Context
				name, args string
			}{
				{agent, "supersede_context", fmt.Sprintf(`{"id":%q,"statement":"One view of %d","reason":"one"}`, id, round)},
				{other, "supersede_context", fmt.Sprintf(`{"id":%q,"statement":"Another view of %d","reason":"two"}`, id, round)},
				{me, "accept_proposal", fmt.Sprintf(`{"id":%q}`, waits)},
			}
			var wg sync.WaitGroup
			begin := make(chan struct{})
			errs, ids := make([]error, len(calls)), make([]string, len(calls))
			for i, c := range calls {
				wg.Go(func() {
					<-begin
					res, err := a.Runner.Run(c.ctx, c.name, json.RawMessage(c.args))
					if errs[i] = err; err == nil {
						var o struct{ ID string }
						_ = json.Unmarshal(res.JSON, &o)
						ids[i] = o.ID
					}
				})
			}
			close(begin)
			wg.Wait()
			won := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "" })
			if len(won) != 1 {
				t.Fatalf("%q won: %v", won, errs)
			}
			for i, err := range errs {
				if ids[i] == "" && (!fault.Is(err, fault.Conflict) || fault.From(err).Data["successor"] != won[0] || !strings.Contains(fault.From(err).Message, won[0])) {
					t.Errorf("the loser %d heard %v", i, err)
				}
			}
			current := held(t, a, `{"status":"current","subject":`+quote(fmt.Sprint("s", round))+`}`)
			if len(current) != 1 || current[0].ID != won[0] || object(t, a, id).Successor != won[0] {
				t.Errorf("%+v stand after %s won", current, won[0])
			}
		}
	})
}

// What the owner keeps to themselves is not named by what it took the place of, nor by what took its place.
func TestPrivateNeighboursInAChainAreNotNamed(t *testing.T) {
	both(t, func(t *testing.T, a *apptest.App, agent, _ context.Context) {
		me := a.Person(t)
		first := remember(t, a, agent, about("belief", "home", "I live in Paris"))[0].ID
		second := get[captured](t, a, agent, "supersede_context", `{"id":"`+first+`","statement":"I live in Lyon"}`).ID
		third := get[captured](t, a, agent, "supersede_context", `{"id":"`+second+`","statement":"I live in Nice"}`).ID
		a.Call(t, me, "set_context_private", `{"id":"`+second+`","private":true}`)
		seen := string(a.Call(t, agent, "fetch", `{"id":"`+first+`"}`)) + string(a.Call(t, agent, "fetch", `{"id":"`+third+`"}`)) + string(a.Call(t, agent, "trace_lineage", `{"idea":"where I live"}`)) +
			fmt.Sprint(remember(t, a, agent, about("belief", "home", "I live in Paris")), a.Fails(t, agent, "supersede_context", `{"id":"`+first+`","statement":"I live in Metz"}`, fault.Conflict))
		if strings.Contains(seen, second) || strings.Contains(seen, "Lyon") {
			t.Errorf("an agent saw %s: %s", second, seen)
		}
		if mine := string(a.Call(t, me, "fetch", `{"id":"`+first+`"}`)); !strings.Contains(mine, second) {
			t.Errorf("the owner doesn't see the successor: %s", mine)
		}
	})
}

// Why the owner changed their mind to something private is as private, and the record of changes doesn't name it either.
func TestWhyAPrivateOneTookAnothersPlaceIsPrivateToo(t *testing.T) {
	both(t, func(t *testing.T, a *apptest.App, agent, _ context.Context) {
		me := a.Person(t)
		first := remember(t, a, agent, about("belief", "home", "I live in Paris"))[0].ID
		second := get[captured](t, a, me, "supersede_context", `{"id":"`+first+`","statement":"I live in Lyon","reason":"the illness of my aunt"}`).ID
		third := get[captured](t, a, me, "supersede_context", `{"id":"`+second+`","statement":"I live in Nice"}`).ID
		if seen := string(a.Call(t, agent, "fetch", `{"id":"`+first+`"}`)); !strings.Contains(seen, "my aunt") {
			t.Errorf("the reason isn't told while nothing is private: %s", seen)
		}
		a.Call(t, me, "set_context_private", `{"id":"`+second+`","private":true}`)
		for tool, args := range map[string]string{"fetch": `{"id":"` + first + `"}`, "list_changes": `{}`, "search": `{"query":"aunt illness"}`, "trace_lineage": `{"idea":"where I live"}`,
			"get_context": `{"query":"where I live"}`} {
			if seen := string(a.Call(t, agent, tool, args)); strings.Contains(seen, second) || strings.Contains(seen, "my aunt") {
				t.Errorf("%s told an agent of %s: %s", tool, second, seen)
			}
		}
		if seen := string(a.Call(t, agent, "list_changes", `{"thing":"`+third+`"}`)); !strings.Contains(seen, "I live in Nice") {
			t.Errorf("what may be seen isn't: %s", seen)
		}
		err := a.Fails(t, agent, "supersede_context", `{"id":"`+first+`","statement":"I live in Metz"}`, fault.Conflict)
		if said := fmt.Sprint(err, fault.From(err).Data); strings.Contains(said, "owner") || strings.Contains(said, second) {
			t.Errorf("a refusal says that there is something private: %s", said)
		}
		if mine := string(a.Call(t, me, "list_changes", `{}`)); !strings.Contains(mine, second) || !strings.Contains(mine, "my aunt") {
			t.Errorf("the owner doesn't see why: %s", mine)
		}
	})
}

// Of many objects of one subject an answer lists the newest that stand and may be seen: neither private nor superseded ones
// take the place of others.
func TestSimilarAreTheNewestThatMayBeSeen(t *testing.T) {
	both(t, func(t *testing.T, a *apptest.App, agent, _ context.Context) {
		me := a.Person(t)
		var seen, all []string
		for i := range 30 {
			a.Clock.Move(time.Minute)
			id := remember(t, a, agent, about("preference", "ice", fmt.Sprint("I like flavour number ", i)))[0].ID
			switch i % 5 {
			case 3:
				a.Call(t, me, "set_context_private", `{"id":"`+id+`","private":true}`)
				all = append(all, id)
			case 4:
				a.Call(t, me, "retire_context", `{"id":"`+id+`"}`)
			default:
				seen, all = append(seen, id), append(all, id)
			}
		}
		newest := func(ids []string) []string {
			slices.Reverse(ids)
			return ids[:min(len(ids), 20)]
		}
		seen, all = newest(seen), newest(all)
		if got := remember(t, a, me, about("preference", "ice", "I like none"))[0]; !slices.Equal(got.Similar, all) {
			t.Errorf("the owner is told of %q, want %q", got.Similar, all)
		} else {
			a.Call(t, me, "retire_context", `{"id":"`+got.ID+`"}`)
		}
		if got := remember(t, a, agent, about("preference", "ice", "I like all of them"))[0].Similar; !slices.Equal(got, seen) {
			t.Errorf("an agent is told of %q, want %q", got, seen)
		}
	})
}
