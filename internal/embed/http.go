package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"cairn/internal/fault"
)

// Endpoint says where a model is to be asked that speaks OpenAI's form of embeddings.
type Endpoint struct {
	URL        string // what /embeddings is put behind, such as http://localhost:11434/v1
	Key        string // sent as a bearer token; "" = none
	Model      string
	Dimensions int           // what the model gives, if it is known; else its first answer says
	Batch      int           // texts in one request; 0 = 64
	Timeout    time.Duration // of one request; 0 = 30 s
	Client     *http.Client  // nil = one of its own. Redirects are never followed: the key and the texts stay with the URL
}

const (
	batchTexts  = 64
	batchBytes  = 256 << 10 // of texts in one request, unless one text alone is longer
	answerBytes = 64 << 20
	attempts    = 4
	longestWait = 30 * time.Second
)

// NewHTTP gives the model behind an endpoint. Its faults never hold the key, the texts or more of the URL than its host.
func NewHTTP(e Endpoint) (Model, error) {
	u, err := url.Parse(e.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fault.New(fault.Invalid, "the embedding endpoint's URL must be absolute, such as https://host/v1")
	case u.User != nil || u.Fragment != "":
		return nil, fault.New(fault.Invalid, "the embedding endpoint's URL must hold no user, password or fragment")
	case e.Model == "":
		return nil, fault.New(fault.Invalid, "the embedding endpoint needs the name of a model")
	case strings.ContainsAny(e.Key, "\r\n\x00"):
		return nil, fault.New(fault.Invalid, "the embedding endpoint's key must be one line")
	case e.Dimensions < 0 || e.Batch < 0 || e.Timeout < 0:
		return nil, fault.New(fault.Invalid, "the embedding endpoint's dimensions, batch and timeout must not be negative")
	}
	if e.Batch == 0 {
		e.Batch = batchTexts
	}
	if e.Timeout == 0 {
		e.Timeout = 30 * time.Second
	}
	var client http.Client
	if e.Client != nil {
		client = *e.Client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	m := &remote{endpoint: e, url: u.JoinPath("embeddings"), client: &client, pause: 500 * time.Millisecond}
	m.dimensions.Store(int64(e.Dimensions))
	return m, nil
}

type remote struct {
	endpoint   Endpoint
	url        *url.URL
	client     *http.Client
	pause      time.Duration // before the second attempt; it doubles from one to the next
	dimensions atomic.Int64
}

func (m *remote) ID() string { return "http/" + m.endpoint.Model }

func (m *remote) Dimensions() int { return int(m.dimensions.Load()) }

// Embed sends the texts in batches, one after another. Texts without words aren't sent.
func (m *remote) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	var batch []int // indexes of texts
	size := 0
	send := func() error {
		if len(batch) == 0 {
			return nil
		}
		input := make([]string, len(batch))
		for i, at := range batch {
			input[i] = texts[at]
		}
		got, err := m.ask(ctx, input)
		if err != nil {
			return err
		}
		for i, at := range batch {
			vectors[at] = got[i]
		}
		batch, size = batch[:0], 0
		return nil
	}
	for i, t := range texts {
		if strings.TrimSpace(t) == "" {
			continue
		}
		if len(batch) == m.endpoint.Batch || size+len(t) > batchBytes {
			if err := send(); err != nil {
				return nil, err
			}
		}
		batch, size = append(batch, i), size+len(t)
	}
	if err := send(); err != nil {
		return nil, err
	}
	for i, v := range vectors {
		if v == nil {
			vectors[i] = make([]float32, m.Dimensions())
		}
	}
	return vectors, nil
}

// ask sends one batch, again where the endpoint is busy or away for the moment.
func (m *remote) ask(ctx context.Context, input []string) ([][]float32, error) {
	body, err := json.Marshal(map[string]any{"model": m.endpoint.Model, "input": input, "encoding_format": "float"})
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		vectors, wait, err := m.once(ctx, body, len(input))
		if err == nil || ctx.Err() != nil || wait < 0 || attempt == attempts {
			if ctx.Err() != nil && err != nil {
				return nil, ctx.Err()
			}
			return vectors, err
		}
		if wait == 0 {
			wait = m.pause << (attempt - 1)
			wait += rand.N(wait/2 + 1) // so that those who failed together don't come back together
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(min(wait, longestWait)):
		}
	}
}

// never says that another attempt is of no use.
const never time.Duration = -1

// once makes one request. wait is how long the endpoint wants to be left alone, 0 if it doesn't say, never if asking again
// is of no use.
func (m *remote) once(ctx context.Context, body []byte, n int) (vectors [][]float32, wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, m.endpoint.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, never, m.fault(hide(err), "can't be asked")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if m.endpoint.Key != "" {
		req.Header.Set("Authorization", "Bearer "+m.endpoint.Key)
	}
	resp, err := m.client.Do(req)
	if err != nil {
		return nil, 0, m.fault(hide(err), "didn't answer")
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, answerBytes+1))
	switch {
	case resp.StatusCode != http.StatusOK:
		wait, err := m.refused(resp, answer)
		return nil, wait, err
	case err != nil:
		return nil, 0, m.fault(hide(err), "broke off its answer")
	case len(answer) > answerBytes:
		return nil, never, m.fault(nil, "gave an answer of more than 64 MB")
	}
	vectors, err = m.read(answer, n)
	return vectors, never, err
}

// hide takes the URL out of an error of net/http.
func hide(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func (m *remote) fault(cause error, format string, args ...any) error {
	format = "the embedding endpoint at " + strings.ReplaceAll(m.url.Host, "%", "%%") + " " + format
	if cause == nil {
		return fault.New(fault.Unavailable, format, args...)
	}
	return fault.Wrap(fault.Unavailable, cause, format, args...)
}

// refused words an answer that isn't 200.
func (m *remote) refused(resp *http.Response, answer []byte) (time.Duration, error) {
	status := resp.StatusCode
	switch {
	case status == http.StatusTooManyRequests || status >= 500 && status != http.StatusNotImplemented:
		seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err != nil || seconds < 0 {
			seconds = 0
		}
		return time.Duration(min(seconds, 3600)) * time.Second, m.fault(m.said(answer), "answered %d after %d attempts", status, attempts)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return never, m.fault(nil, "answered %d: it doesn't take the key", status) // what it says may quote the key in part
	case status == http.StatusNotFound:
		return never, m.fault(m.said(answer), "answered 404: it has no model %q, or its URL is another", m.endpoint.Model)
	case status >= 300 && status < 400:
		return never, m.fault(nil, "answered %d, to go elsewhere; give it by its final URL", status)
	}
	return never, m.fault(m.said(answer), "answered %d", status)
}

// said gives the beginning of the endpoint's own words, for the log, without the key.
func (m *remote) said(answer []byte) error {
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(answer, &body) == nil && len(body.Error) > 0 {
		answer = body.Error
	}
	text := strings.ToValidUTF8(string(answer), "")
	if m.endpoint.Key != "" {
		text = strings.ReplaceAll(text, m.endpoint.Key, "…")
	}
	const most = 300
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	if text == "" {
		return nil
	}
	return errors.New(text)
}

// read takes n vectors out of an answer.
func (m *remote) read(answer []byte, n int) ([][]float32, error) {
	var body struct {
		Data []struct {
			Index     *int      `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &body); err != nil {
		return nil, m.fault(err, "gave an answer that isn't of OpenAI's form")
	}
	if len(body.Data) != n {
		return nil, m.fault(nil, "gave %d vectors for %d texts", len(body.Data), n)
	}
	vectors := make([][]float32, n)
	for i, d := range body.Data {
		if d.Index != nil {
			i = *d.Index
		}
		if i < 0 || i >= n || vectors[i] != nil {
			return nil, m.fault(nil, "numbers its vectors wrongly")
		}
		if len(d.Embedding) == 0 {
			return nil, m.fault(nil, "gave an empty vector")
		}
		if m.dimensions.CompareAndSwap(0, int64(len(d.Embedding))); len(d.Embedding) != m.Dimensions() {
			return nil, m.fault(nil, "gave a vector of %d dimensions where %d were expected", len(d.Embedding), m.Dimensions())
		}
		unit(d.Embedding)
		vectors[i] = d.Embedding
	}
	return vectors, nil
}
