// Package inmem is what a process keeps in memory for the blocks: documents read or written lately, and whose turn it is to write
// a block. It knows no database and no rights.
package inmem

import (
	"container/list"
	"context"
	"sync"

	"cairn/internal/doc"
	"cairn/internal/doc/markdown"
)

// Cache keeps documents by their hash, the least recently used going first: a document never changes, and reading a large one
// takes longer than the rest of a call. Whether the caller may see it was asked before.
type Cache struct {
	mu    sync.Mutex
	most  int
	bytes int
	order *list.List // of *cached, the last used first
	by    map[string]*list.Element
}

type cached struct {
	hash string
	doc  *doc.Doc
	text string // its Markdown, once that was asked for; "" = not yet
	size int
}

// NewCache makes a cache for about so many bytes.
func NewCache(most int) *Cache {
	return &Cache{most: most, order: list.New(), by: map[string]*list.Element{}}
}

// Get gives a document, nil if it isn't here.
func (c *Cache) Get(hash string) *doc.Doc {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.by[hash]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).doc
}

// Put keeps a document; the one put last stays, whatever its size.
func (c *Cache) Put(hash string, d *doc.Doc) {
	size := 3*d.Bytes() + 400*d.Len() + 200 // about what its nodes take
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.by[hash]; e != nil {
		c.order.MoveToFront(e)
		return
	}
	c.by[hash] = c.order.PushFront(&cached{hash: hash, doc: d, size: size})
	c.grow(size)
}

// grow counts more bytes, and lets go what is too much.
func (c *Cache) grow(by int) {
	for c.bytes += by; c.bytes > c.most && c.order.Len() > 1; {
		last := c.order.Remove(c.order.Back()).(*cached)
		delete(c.by, last.hash)
		c.bytes -= last.size
	}
}

// Text gives the Markdown of a document. That of one that is here is kept with it: who reads a long one asks for page after page.
func (c *Cache) Text(d *doc.Doc) string {
	hash := d.Hash()
	c.mu.Lock()
	if e := c.by[hash]; e != nil && e.Value.(*cached).text != "" {
		c.order.MoveToFront(e)
		defer c.mu.Unlock()
		return e.Value.(*cached).text
	}
	c.mu.Unlock()
	text := markdown.Write(d.Content())
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.by[hash]; e != nil && e.Value.(*cached).text == "" {
		k := e.Value.(*cached)
		k.text, k.size = text, k.size+len(text)
		c.order.MoveToFront(e)
		c.grow(len(text))
	}
	return text
}

// Turns let the writes of one block come one after the other within a process: who works out a change from what another is
// about to replace would have to do it again. It saves work; that nothing is overwritten is seen to in the write.
type Turns struct {
	mu sync.Mutex
	by map[string]*turn
}

type turn struct {
	free chan struct{}
	n    int // who has it or waits for it
}

// Take waits for the block's turn and gives what ends it.
func (t *Turns) Take(ctx context.Context, id string) (done func(), err error) {
	t.mu.Lock()
	if t.by == nil {
		t.by = map[string]*turn{}
	}
	b := t.by[id]
	if b == nil {
		b = &turn{free: make(chan struct{}, 1)}
		t.by[id] = b
	}
	b.n++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if b.n--; b.n == 0 {
			delete(t.by, id)
		}
	}
	select {
	case b.free <- struct{}{}:
		return func() { <-b.free; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
