package app_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cairn/internal/apptest"
)

// Tasks and projects are found by what they mean, where they are now: not where they were, and not in the trash.
func TestTasksAreFoundByTheirMeaning(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		me := a.Person(t)
		due := func() {
			t.Helper()
			if err := a.Jobs.Due(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		task := func(name string) string {
			t.Helper()
			var out struct{ ID string }
			apptest.Decode(t, a.Call(t, me, "create_personal_task", fmt.Sprintf(`{"name":%q}`, name)), &out)
			return out.ID
		}
		dog, tax, trashed := task("Buy food for the dog"), task("File the tax return"), task("Wash the car")
		var museum struct{ ID string }
		apptest.Decode(t, a.Call(t, me, "create_project", `{"name":"Aviation museum","heap":"Work","current_focus":"Restoring an old airplane"}`), &museum)
		due()
		best := func(query string) string {
			t.Helper()
			var out struct{ Results []struct{ ID, Title string } }
			apptest.Decode(t, a.Call(t, me, "search", fmt.Sprintf(`{"query":%q,"limit":1}`, query)), &out)
			if len(out.Results) == 0 {
				return ""
			}
			return out.Results[0].Title
		}
		for query, want := range map[string]string{"puppy nutrition": "Buy food for the dog", "money owed to the government": "File the tax return", "flying machines": "Aviation museum", "cleaning the vehicle": "Wash the car"} {
			if got := best(query); got != want {
				t.Errorf("%s: %q", query, got)
			}
		}
		vectors := func(id string) (heaps string) {
			t.Helper()
			rows, err := a.DB.Query(t.Context(), `SELECT DISTINCT h.name FROM search_vector v JOIN heap h ON h.id = v.heap WHERE v.thing = $1 ORDER BY h.name`, id)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			for rows.Next() {
				var name string
				if err := rows.Scan(&name); err != nil {
					t.Fatal(err)
				}
				heaps += name + " "
			}
			return heaps
		}
		a.Call(t, me, "delete_task", fmt.Sprintf(`{"task_id":%q}`, trashed))
		a.Call(t, me, "update_task", fmt.Sprintf(`{"task_id":%q,"project_id":%q}`, tax, museum.ID))
		if got := vectors(tax) + vectors(trashed); got != "" { // gone with the write, not only once something sweeps
			t.Errorf("in %s", got)
		}
		due()
		if d, x, gone := vectors(dog), vectors(tax), vectors(trashed); d != "Personal " || x != "Work " || gone != "" {
			t.Errorf("dog in %s, tax in %s, what's in the trash in %s", d, x, gone)
		}
		a.Call(t, me, "restore_task", fmt.Sprintf(`{"task_id":%q}`, trashed))
		due()
		if got := best("cleaning the vehicle"); got != "Wash the car" || vectors(trashed) != "Personal " {
			t.Errorf("restored: %q in %s", got, vectors(trashed))
		}
	})
}

// An operator sees that the model is away where they look already, and that it came back.
func TestModelThatIsAwayShowsInHealthAndMetrics(t *testing.T) {
	away := false
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if away {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"data":[{"index":0,"embedding":[0.6,0.8]}]}`)
	}))
	defer model.Close()
	apptest.Each(t, map[string]string{"CAIRN_EMBEDDINGS_URL": model.URL + "/v1", "CAIRN_EMBEDDINGS_MODEL": "m"}, func(t *testing.T, a *apptest.App) {
		me := a.Person(t)
		away = false
		see := func(state, failures, paused, made string) {
			t.Helper()
			if h := a.Do(t, "GET", "/mcp", "").Body; !strings.Contains(h, `"model":{"state":"`+state+`","failures":`+failures+`}`) {
				t.Errorf("health: %s", h)
			}
			m := a.Do(t, "GET", "/metrics", "").Body
			for _, want := range []string{"cairn_model_paused " + paused, "cairn_model_failures " + failures, "cairn_embed_waiting 0", "cairn_embedded_things_total " + made} {
				if !strings.Contains(m, want+"\n") {
					t.Errorf("the metrics have no %s", want)
				}
			}
		}
		note := func(ctx context.Context, name string) {
			t.Helper()
			a.Call(t, ctx, "create_personal_task", fmt.Sprintf(`{"name":%q}`, name))
			if err := a.Jobs.Due(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		note(me, "One")
		see("closed", "0", "0", "1")
		away = true
		a.Call(t, me, "search", `{"query":"anything"}`)
		see("open", "1", "1", "1")
		note(me, "Two")
		if h := a.Do(t, "GET", "/mcp", "").Body; strings.Contains(h, `"failures":0`) {
			t.Errorf("health while nothing can be embedded: %s", h)
		}
	})
}
