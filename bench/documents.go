package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"cairn/bench/made"
	"cairn/bench/table"
	"cairn/internal/app"
)

// Sizes of documents, in bytes of Markdown.
const (
	smallDocument = 10_000
	largeDocument = 1_499_000
)

// documents measures documents small and large, a heap of many blocks, agents that patch one document at once, and provenance.
func (b *bench) documents(ctx context.Context) error {
	tags := make([]string, 100)
	f, err := b.scratch("blocks")
	if err != nil {
		return err
	}
	defer f.remove()
	err = b.in(ctx, &f, func(ctx context.Context, _ *app.App, call caller) error {
		for i := range tags {
			var made struct{ ID string }
			if err := call("create_block", map[string]string{"type": "tag", "title": fmt.Sprint("tag ", i)}, &made); err != nil {
				return err
			}
			tags[i] = made.ID
		}
		return together(ctx, b.size.blocks, func(i int) error {
			return call("create_block", made.NewBlock(i, tags[i%len(tags)]), &struct{}{})
		})
	})
	if err != nil {
		return err
	}
	s, err := b.serve(ctx, f)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := b.blockReads(ctx, s, tags[7]); err != nil {
		return err
	}
	if err := b.patches(ctx, s, f); err != nil {
		return err
	}
	return b.agentsAtOnce(ctx, s)
}

// blockReads measures lists and searches of a heap of many blocks.
func (b *bench) blockReads(ctx context.Context, s *child, tag string) error {
	n := number(float64(b.size.blocks))
	t := table.Table{Title: "A heap of " + n + " blocks", Head: []string{"call", "p50 ms", "p95 ms", "CPU ms"},
		Note: "One at a time, timed by the client over HTTP; searches have another query each, of two words in many blocks. Every block is below one of 100 tags."}
	words := func(i int) string { return made.NewWords(uint64(1_000_000+i)).Ranked(2, 10, 2000) }
	for _, c := range []struct {
		name, tool string
		args       func(i int) map[string]any
		limit      float64
	}{
		{"list_blocks", "list_blocks", func(int) map[string]any { return map[string]any{} }, 10},
		{"list_blocks below a tag", "list_blocks", func(int) map[string]any { return map[string]any{"tag": tag} }, 10},
		{"list_blocks, unlinked", "list_blocks", func(int) map[string]any { return map[string]any{"unlinked": true} }, 10},
		{"search_blocks", "search_blocks", func(i int) map[string]any { return map[string]any{"query": words(i)} }, 10},
		{"search_blocks below a tag", "search_blocks", func(i int) map[string]any { return map[string]any{"query": words(i), "tag": tag} }, 10},
	} {
		k, err := s.weigh(ctx, load{conns: 1, total: b.size.packs, body: func(i int) []byte { return toolCall(i, c.tool, c.args(i)) }})
		if err != nil {
			return err
		}
		t.Add(c.name, millis(float64(k.wait(.5))), millis(float64(k.wait(.95))), millis(float64(k.cpu)))
		b.rep.want(c.name+" of "+n+", p50", float64(k.wait(.5))/float64(time.Millisecond), c.limit, "ms")
	}
	b.rep.tables = append(b.rep.tables, t)
	return nil
}

// editor is a document that is written over one connection.
type editor struct {
	k        *conn
	id, hash string
	calls    int
}

// rewritten is what writes of documents answer.
type rewritten struct {
	ID, Hash, Error string
	Rebased         bool
}

func (e *editor) call(tool string, args map[string]any) (w rewritten, took time.Duration, err error) {
	e.calls++
	body := toolCall(e.calls, tool, args)
	begin := time.Now()
	answer, err := e.k.post(body)
	took = time.Since(begin)
	if err == nil {
		err = structured(answer, &w)
	}
	if err == nil && w.Hash == "" {
		err = fmt.Errorf("%s: %.300s", tool, answer)
	}
	return w, took, err
}

// patch puts another text in the place of a node's.
func (e *editor) patch(node, markdown string) (time.Duration, error) {
	w, took, err := e.call("patch_document", map[string]any{"block_id": e.id, "base_hash": e.hash, "operations": []map[string]string{{"op": "replace", "node_id": node, "markdown": markdown}}})
	e.hash = w.Hash
	return took, err
}

// patches measures import, reading and patching of a small and a large document, and the provenance of one with many changes.
func (b *bench) patches(ctx context.Context, s *child, f folder) error {
	t := table.Table{Title: "Documents", Head: []string{"bytes of Markdown", "import ms", "first page p50 ms", "patch p50 ms", "p95 ms", "search that sees the patch, p50 ms"},
		Note: "One call at a time, timed by the client over HTTP, each patch durable (synchronous FULL). A patch replaces a paragraph, or an item in the middle of the list, by turns. The large document has " +
			"some 10,000 list items, a line of 300 KB and 5,000 links; a long text is analyzed for search after its write, by the next search, whose time is the last column."}
	var p50 []float64
	for _, size := range []int{smallDocument, largeDocument} {
		k, err := dial(ctx, s)
		if err != nil {
			return err
		}
		defer k.close()
		e := &editor{k: k}
		text := made.Markdown(size)
		w, imported, err := e.call("create_block", map[string]any{"content": text})
		if err != nil {
			return err
		}
		e.id, e.hash = w.ID, w.Hash
		page, err := s.drive(ctx, load{conns: 1, total: b.size.packs, body: func(i int) []byte { return toolCall(i, "get_document", map[string]string{"block_id": e.id}) }})
		if err != nil {
			return err
		}
		items := strings.Count(text, "\n- ")
		var waits, searches []time.Duration
		for i := range b.size.packs {
			node, with := "@2", fmt.Sprint(made.Target, " ", i)
			if i%2 == 1 {
				node, with = fmt.Sprint("@", 4+items/2*2), fmt.Sprint("- an item, changed ", i)
			}
			took, err := e.patch(node, with)
			if err != nil {
				return err
			}
			if waits = append(waits, took); i%25 == 0 {
				begin := time.Now()
				if _, err := k.post(toolCall(i, "search_blocks", map[string]any{"query": fmt.Sprint("paragraph to change ", i)})); err != nil {
					return err
				}
				searches = append(searches, time.Since(begin))
			}
		}
		slices.Sort(waits)
		slices.Sort(searches)
		p50 = append(p50, float64(quantile(waits, .5)))
		t.Add(number(float64(len(text))), millis(float64(imported)), millis(float64(page.wait(.5))), millis(p50[len(p50)-1]), millis(float64(quantile(waits, .95))), millis(float64(quantile(searches, .5))))
		if size == largeDocument {
			b.rep.want("import of a document of 1.5 MB", imported.Seconds(), 1, "s")
			b.rep.want("its first page, p50", float64(page.wait(.5))/float64(time.Millisecond), 15, "ms")
			b.rep.want("a patch of it, p50", p50[1]/float64(time.Millisecond), 25, "ms")
			b.rep.want("a patch of it, times that of a document of 10 KB", p50[1]/p50[0], 10, "×")
		}
	}
	b.rep.tables = append(b.rep.tables, t)
	return b.provenance(ctx, s, f)
}

// provenance measures the record of a document with many changes: of a paragraph of some 100 words each.
func (b *bench) provenance(ctx context.Context, s *child, f folder) error {
	k, err := dial(ctx, s)
	if err != nil {
		return err
	}
	defer k.close()
	e := &editor{k: k}
	w, _, err := e.call("create_block", map[string]any{"content": made.Target + "\n\nAnother."})
	if err != nil {
		return err
	}
	e.id, e.hash = w.ID, w.Hash
	words, changed := made.NewWords(11), 0
	for range b.size.changes {
		text := words.Text(90, 110)
		changed += len(text)
		if _, err := e.patch("@1", text); err != nil {
			return err
		}
	}
	pages, err := s.drive(ctx, load{conns: 1, total: b.size.packs, body: func(i int) []byte { return toolCall(i, "get_provenance", map[string]string{"block_id": e.id}) }})
	if err != nil {
		return err
	}
	d, err := sql.Open("sqlite", "file:"+filepath.Join(f.dir, "cairn.db")+"?mode=ro")
	if err != nil {
		return err
	}
	defer d.Close()
	// All that is kept of the changes: versions, and rows of the record, each with its columns' bytes and 8 for each number.
	var kept int64
	if err := d.QueryRowContext(ctx, `SELECT
		(SELECT sum(length(block) + length(hash) + length(content_hash) + length(actor) + length(nodes) + length(CAST(body AS BLOB)) + 32) FROM block_version WHERE block = $1) +
		(SELECT sum(length(id) + length(heap) + length(kind) + length(thing) + length(actor) + length(on_behalf) + length(op) + length(via) + length(effect) + length(CAST(summary AS BLOB)) + length(CAST(before AS BLOB)) + length(CAST(after AS BLOB)) + 32) FROM change WHERE thing = $1)`, e.id).Scan(&kept); err != nil {
		return err
	}
	n := number(float64(b.size.changes))
	t := table.Table{Title: "Provenance", Head: []string{"changes", "a page p50 ms", "p95 ms", "bytes a change kept", "of changed text"},
		Note: "Each change replaces a paragraph by another of 90 to 110 words. Kept are the rows of its version, with what makes the version before it, and of the change record."}
	t.Add(n, millis(float64(pages.wait(.5))), millis(float64(pages.wait(.95))), number(float64(kept)/float64(b.size.changes)), number(float64(changed)/float64(b.size.changes)))
	b.rep.tables = append(b.rep.tables, t)
	b.rep.want("a page of the provenance of "+n+" changes, p50", float64(pages.wait(.5))/float64(time.Millisecond), 10, "ms")
	b.rep.want("provenance, times the bytes of the changed text", float64(kept)/float64(changed), 3, "×")
	return nil
}

// agentsAtOnce lets agents patch nodes of their own of one document at once, each from the version that its last patch made.
func (b *bench) agentsAtOnce(ctx context.Context, s *child) error {
	const agents, each = 50, 10
	k, err := dial(ctx, s)
	if err != nil {
		return err
	}
	defer k.close()
	e := &editor{k: k}
	first, _, err := e.call("create_block", map[string]any{"content": strings.Repeat("A paragraph of an agent.\n\n", agents)})
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	failed, waits := make([]error, agents), make([][]time.Duration, agents)
	begin := time.Now()
	for a := range agents {
		all.Go(func() {
			k, err := dial(ctx, s)
			if err != nil {
				failed[a] = err
				return
			}
			defer k.close()
			mine := &editor{k: k}
			for i, hash := 0, first.Hash; i < each && failed[a] == nil; i++ {
				var w rewritten
				var took time.Duration
				w, took, failed[a] = mine.call("patch_document", map[string]any{"block_id": first.ID, "base_hash": hash, "rebase": true,
					"operations": []map[string]any{{"op": "replace_text", "node_id": fmt.Sprint("@", a+1), "find": ".", "replace": fmt.Sprintf(" %d-%d.", a, i)}}})
				hash = w.Hash
				waits[a] = append(waits[a], took)
			}
		})
	}
	all.Wait()
	took := time.Since(begin)
	if err := errors.Join(failed...); err != nil {
		return err
	}
	answer, err := k.post(toolCall(0, "get_document", map[string]string{"block_id": first.ID}))
	if err != nil {
		return err
	}
	lost := 0
	for a := range agents {
		for i := range each {
			if !strings.Contains(string(answer), fmt.Sprintf(" %d-%d", a, i)) {
				lost++
			}
		}
	}
	flat := slices.Sorted(slices.Values(slices.Concat(waits...)))
	t := table.Table{Title: "Agents at one document", Head: []string{"agents", "patches", "per second", "p50 ms", "p99 ms", "lost"},
		Note: "Each agent patches a paragraph of its own, from the version that its last patch made, with rebase; afterwards the document is read."}
	t.Add(number(agents), number(agents*each), number(agents*each/took.Seconds()), millis(float64(quantile(flat, .5))), millis(float64(quantile(flat, .99))), number(float64(lost)))
	b.rep.tables = append(b.rep.tables, t)
	b.rep.want("patches lost of 50 agents at one document", float64(lost), 0, "")
	return nil
}
