package mcp

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn/internal/fault"
	"cairn/internal/rawjson"
	"cairn/internal/who"
)

// subscriptions/listen of MCP 2026-07-28: a request whose answer is a stream of what changes. The SDK checks its form and sends its
// end; between the two this package writes to the stream itself, since the SDK tells listeners one after the other and waits for
// each. Older versions have resources/subscribe, which needs a session that is told of changes on a stream of its own: there are
// none here, so it isn't declared.

// Changes tells hear of what changes in heaps, until stop is called. hear doesn't block.
type Changes func(ctx context.Context, heaps []string, hear func(Change)) (stop func(), err error)

// Change is what became of a document.
type Change struct {
	Heap, ID string
	Text     bool // its text or title
	List     bool // it came, went, or has another title
}

// Bounds of listening.
const (
	mostListening = 8    // streams of one caller
	mostStreams   = 1000 // of all
	mostWatched   = 50   // documents of one stream
)

const (
	beat    = 15 * time.Second // between signs of life: proxies close what is silent for a minute
	recheck = time.Second      // between looks at whether the caller still may
	patient = 10 * time.Second // for a reader that takes nothing
)

// listeners counts streams by actor.
type listeners struct {
	mu    sync.Mutex
	by    map[string]int
	total int
}

// enter counts a stream in, until leave is called.
func (l *listeners) enter(actor string) (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = map[string]int{}
	}
	switch {
	case l.by[actor] >= mostListening:
		return nil, fault.New(fault.Limited, "you listen on %d streams already, which is the most: close one first; one stream can tell of %d documents", mostListening, mostWatched).
			With("current", l.by[actor]).With("limit", mostListening)
	case l.total >= mostStreams:
		return nil, fault.New(fault.Unavailable, "the server has as many listeners as it takes: ask again later, and read what matters meanwhile").With("reason", "unavailable")
	}
	l.by[actor]++
	l.total++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.total--
		if l.by[actor]--; l.by[actor] == 0 {
			delete(l.by, actor)
		}
	}, nil
}

type streamKey struct{}

// stream is where a request's answer goes, for who writes events itself.
type stream struct {
	w     http.ResponseWriter
	stop  <-chan struct{}                                // closed when the server stops
	again func(ctx context.Context) (*who.Caller, error) // looks up anew who calls
}

// send writes text to the stream, as far as the reader takes it in time.
func (s *stream) send(text []byte) error {
	c := http.NewResponseController(s.w)
	_ = c.SetWriteDeadline(time.Now().Add(patient)) // a pipe has none: it holds up this stream alone
	defer func() { _ = c.SetWriteDeadline(time.Time{}) }()
	if _, err := s.w.Write(text); err != nil {
		return err
	}
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
	return nil
}

// notify writes a notification that belongs to the request id.
func (s *stream) notify(id json.RawMessage, method string, params map[string]any) error {
	params["_meta"] = map[string]any{sdk.MetaKeySubscriptionID: id}
	b, err := rawjson.Marshal(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
	if err != nil {
		return err
	}
	return s.send(slices.Concat([]byte("event: message\ndata: "), b, []byte("\n\n")))
}

// news is what a listener wants to hear and hasn't been told yet. It grows no further than by what is listened to: many changes of
// a document before it is told are one.
type news struct {
	uris  map[string]string // as the client wrote them, by id
	lists bool

	mu      sync.Mutex
	changed map[string]bool
	list    bool
	wake    chan struct{}
}

// hear takes a change in.
func (n *news) hear(c Change) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, watched := n.uris[c.ID]
	watched, list := watched && c.Text, n.lists && c.List
	if !watched && !list {
		return
	}
	if watched {
		n.changed[c.ID] = true
	}
	n.list = n.list || list
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// take gives what is to be told.
func (n *news) take() (ids []string, list bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ids, list = slices.Sorted(maps.Keys(n.changed)), n.list
	n.changed, n.list = map[string]bool{}, false
	return ids, list
}

// listen answers subscriptions/listen, for as long as the client, the server, and the caller's rights let it.
func (d *documents) listen(ctx context.Context, p *sdk.SubscriptionsListenParams) (*sdk.SubscriptionsListenResult, error) {
	s, _ := ctx.Value(streamKey{}).(*stream)
	m, c := peeked(ctx), who.From(ctx)
	if s == nil || m == nil || c == nil {
		return nil, fault.New(fault.Internal, "a request to listen came without a stream")
	}
	if p.Notifications == nil {
		return nil, fault.Bad("params.notifications", "is missing")
	}
	n, agreed, err := d.agree(ctx, p.Notifications)
	if err != nil {
		return nil, err
	}
	if len(n.uris) > 0 || n.lists {
		stop, err := d.changes(ctx, who.IDs(c.Heaps), n.hear) // before it is acknowledged: nothing after that may be missed
		if err != nil {
			return nil, err
		}
		defer stop()
	}
	end := &sdk.SubscriptionsListenResult{Meta: sdk.Meta{sdk.MetaKeySubscriptionID: m.ID}}
	if err := s.notify(m.ID, "notifications/subscriptions/acknowledged", map[string]any{"notifications": agreed}); err != nil {
		return nil, err
	}
	if len(n.uris) > 0 || n.lists {
		n.tell(ctx, s, m.ID, c)
	}
	return end, nil
}

// agree says what of the wanted a caller can be told: of documents that it can read now. The others are left out, as those are
// that don't exist.
func (d *documents) agree(ctx context.Context, want *sdk.NotificationSubscriptions) (*news, sdk.NotificationSubscriptions, error) {
	n, agreed := &news{uris: map[string]string{}, changed: map[string]bool{}, wake: make(chan struct{}, 1)}, sdk.NotificationSubscriptions{}
	if len(want.ResourceSubscriptions) > mostWatched {
		return n, agreed, fault.Bad("params.notifications.resourceSubscriptions", "has %d addresses, at most %d are taken; resourcesListChanged tells of what comes and goes", len(want.ResourceSubscriptions), mostWatched)
	}
	if d.changes == nil || !d.may(who.From(ctx)) {
		return n, agreed, nil
	}
	var out struct{}
	if want.ResourcesListChanged {
		if err := d.run(ctx, opBlocks, map[string]any{"limit": 1}, &out); err != nil {
			return n, agreed, err
		}
		n.lists, agreed.ResourcesListChanged = true, true
	}
	for _, uri := range want.ResourceSubscriptions {
		at, err := parseURI(uri)
		if err != nil || n.uris[at.id] != "" {
			continue
		}
		err = d.run(ctx, opBlock, map[string]any{"block_id": at.id}, &out)
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.UnknownTool) {
			continue
		}
		if err != nil {
			return n, agreed, err
		}
		n.uris[at.id] = uri
		agreed.ResourceSubscriptions = append(agreed.ResourceSubscriptions, uri)
	}
	return n, agreed, nil
}

// waits tells whether there is something to be told.
func (n *news) waits() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.list || len(n.changed) > 0
}

// tell writes what is heard to a stream, until its client is gone, the server stops, or the caller isn't who it was: a token that
// was revoked, an agent that was paused or has other rights is told nothing more.
func (n *news) tell(ctx context.Context, s *stream, id json.RawMessage, c *who.Caller) {
	alive, look := time.NewTicker(beat), time.NewTicker(recheck)
	defer alive.Stop()
	defer look.Stop()
	for {
		due := false
		select {
		case <-ctx.Done():
			return
		case <-s.stop:
			return
		case <-alive.C:
			if err := s.send([]byte(": alive\n\n")); err != nil {
				return
			}
			continue
		case <-look.C:
			due = n.waits()
		case <-n.wake:
			due = true
		}
		now, err := s.again(ctx)
		switch {
		case err != nil && unknown(err): // it can't be known now: nothing is told, and nothing lost
			continue
		case err != nil || !same(c, now):
			return
		case !due:
			continue
		}
		ids, list := n.take()
		for _, one := range ids {
			if err := s.notify(id, "notifications/resources/updated", map[string]any{"uri": n.uris[one]}); err != nil {
				return
			}
		}
		if list {
			if err := s.notify(id, "notifications/resources/list_changed", map[string]any{}); err != nil {
				return
			}
		}
	}
}

// unknown tells a failure to look a caller up from the answer that it may not.
func unknown(err error) bool {
	kind := fault.From(err).Kind
	return kind == fault.Unavailable || kind == fault.Internal
}

// same tells whether a caller has the rights that it had.
func same(a, b *who.Caller) bool {
	heaps := func(c *who.Caller) []string {
		var list []string
		for _, h := range c.Heaps {
			list = append(list, h.ID+" "+h.Role)
		}
		return list
	}
	return a.Account == b.Account && a.Actor == b.Actor && a.Write == b.Write && a.AllAreas == b.AllAreas && slices.Equal(a.Areas, b.Areas) && slices.Equal(heaps(a), heaps(b))
}
