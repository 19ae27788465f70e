package embed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cairn/internal/fault"
)

const testKey = "sk-very-secret"

// endpoint serves answers and gives the model that asks them.
func endpoint(t *testing.T, e Endpoint, answer http.HandlerFunc) *remote {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	e.URL, e.Key, e.Model = server.URL+"/v1", testKey, "some-model"
	m, err := NewHTTP(e)
	if err != nil {
		t.Fatal(err)
	}
	m.(*remote).pause = time.Millisecond
	return m.(*remote)
}

// lengths answers with vectors [length of the text, 1], last first.
func lengths(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Model string
		Input []string
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Model != "some-model" || r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer "+testKey {
		http.Error(w, "not as expected", http.StatusBadRequest)
		return
	}
	var data []string
	for i, text := range slices.Backward(in.Input) {
		data = append(data, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":[%d,1]}`, i, len(text)))
	}
	fmt.Fprintf(w, `{"object":"list","data":[%s]}`, strings.Join(data, ","))
}

func TestEndpointIsAskedInBatchesAndInOrder(t *testing.T) {
	var requests atomic.Int32
	m := endpoint(t, Endpoint{Batch: 3}, func(w http.ResponseWriter, r *http.Request) { requests.Add(1); lengths(w, r) })
	if m.Dimensions() != 0 {
		t.Error("dimensions known too soon")
	}
	texts := []string{"1", "22", "", "333", "4444", " \n", "55555"}
	got, err := m.Embed(context.Background(), texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		want := []float32{float32(len(text)), 1}
		unit(want)
		if strings.TrimSpace(text) == "" {
			want = []float32{0, 0}
		}
		if !slices.Equal(got[i], want) {
			t.Errorf("%q: %v, want %v", text, got[i], want)
		}
	}
	if requests.Load() != 2 || m.Dimensions() != 2 || m.ID() != "http/some-model" {
		t.Errorf("%d requests, %d dimensions, %s", requests.Load(), m.Dimensions(), m.ID())
	}
}

func TestEndpointThatIsBusyIsAskedAgain(t *testing.T) {
	for _, status := range []int{429, 500, 503} {
		var requests atomic.Int32
		m := endpoint(t, Endpoint{}, func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1) < attempts {
				w.WriteHeader(status)
				return
			}
			lengths(w, r)
		})
		if _, err := m.Embed(context.Background(), []string{"a"}); err != nil || requests.Load() != attempts {
			t.Errorf("%d: %v after %d requests", status, err, requests.Load())
		}
	}
}

func TestEndpointsRetryAfterIsHeeded(t *testing.T) {
	var requests atomic.Int32
	m := endpoint(t, Endpoint{}, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		lengths(w, r)
	})
	began := time.Now()
	if _, err := m.Embed(context.Background(), []string{"a"}); err != nil || time.Since(began) < time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

func TestFaultsOfAnEndpointAreClearAndHoldNoKey(t *testing.T) {
	for name, c := range map[string]struct {
		answer   string
		status   int
		requests int32
		says     string
	}{
		"wrong key":       {`{"error":{"message":"Incorrect key sk-very-secret"}}`, 401, 1, "it doesn't take the key"},
		"no such model":   {`{"error":"no"}`, 404, 1, `it has no model "some-model"`},
		"bad request":     {`{"error":{"message":"key sk-very-secret: too long"}}`, 400, 1, "answered 400"},
		"always busy":     {`sk-very-secret is over its quota`, 429, attempts, "answered 429 after 4 attempts"},
		"not implemented": {``, 501, 1, "answered 501"},
		"redirect":        {``, 307, 1, "to go elsewhere"},
		"not JSON":        {`<html>`, 200, 1, "isn't of OpenAI's form"},
		"too few":         {`{"data":[]}`, 200, 1, "gave 0 vectors for 1 texts"},
		"wrong index":     {`{"data":[{"index":1,"embedding":[1,2]}]}`, 200, 1, "numbers its vectors wrongly"},
		"empty":           {`{"data":[{"index":0,"embedding":[]}]}`, 200, 1, "empty vector"},
		"other size":      {`{"data":[{"index":0,"embedding":[1,2]}]}`, 200, 1, "2 dimensions where 3 were expected"},
		"too large":       {`{"data":[{"index":0,"embedding":[1e99,2]}]}`, 200, 1, "isn't of OpenAI's form"},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			m := endpoint(t, Endpoint{Dimensions: 3}, func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				io.WriteString(w, c.answer)
			})
			_, err := m.Embed(context.Background(), []string{"a"})
			if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.From(err).Message, c.says) {
				t.Errorf("got %v", err)
			}
			if strings.Contains(fmt.Sprint(err), testKey) {
				t.Errorf("the key is in %v", err)
			}
			if requests.Load() != c.requests {
				t.Errorf("%d requests", requests.Load())
			}
		})
	}
}

func TestEndpointThatIsAwayOrSlow(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	m, err := NewHTTP(Endpoint{URL: server.URL + "/path?q=1", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	m.(*remote).pause = time.Millisecond
	if _, err := m.Embed(context.Background(), []string{"a"}); !fault.Is(err, fault.Unavailable) || strings.Contains(err.Error(), "path") {
		t.Errorf("got %v", err)
	}

	slow := endpoint(t, Endpoint{Timeout: 10 * time.Millisecond}, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	if _, err := slow.Embed(context.Background(), []string{"a"}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	slow.endpoint.Timeout = time.Minute
	if _, err := slow.Embed(ctx, []string{"a"}); !errors.Is(err, context.DeadlineExceeded) || fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
}

func TestEndpointsThatCannotBeAreRefused(t *testing.T) {
	for _, e := range []Endpoint{
		{}, {URL: "http://h/v1"}, {URL: "h/v1", Model: "m"}, {URL: "ftp://h/v1", Model: "m"}, {URL: "http://u:p@h/v1", Model: "m"},
		{URL: "http://h/v1", Model: "m", Key: "a\nb"}, {URL: "http://h/v1", Model: "m", Batch: -1}, {URL: "http://\x7f/", Model: "m"},
	} {
		if _, err := NewHTTP(e); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: %v", e, err)
		}
	}
}
