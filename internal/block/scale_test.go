package block_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"cairn/internal/apptest"
)

// BenchmarkHeap measures lists, a tag filter and search among 100,000 blocks, and the provenance of a block with 10,000 changes:
// go test ./internal/block -run XXX -bench Heap. It takes minutes to fill; CAIRN_BENCH_BLOCKS is another number of blocks.
func BenchmarkHeap(b *testing.B) {
	blocks := 100_000
	if n, err := strconv.Atoi(os.Getenv("CAIRN_BENCH_BLOCKS")); err == nil {
		blocks = n
	}
	benchApps(b, func(b *testing.B, a *apptest.App) {
		ctx := a.As(b, a.Token(b, ""))
		run := func(name string, args any) json.RawMessage { return a.Call(b, ctx, name, say(args)) }
		var tags []string
		for i := range 100 {
			var o one
			apptest.Decode(b, run("create_block", m{"type": "tag", "title": fmt.Sprint("tag ", i)}), &o)
			tags = append(tags, o.ID)
		}
		const workers = 16
		done := make(chan error, workers)
		for w := range workers {
			go func() {
				for i := w; i < blocks; i += workers {
					_, err := a.Runner.Run(ctx, "create_block", json.RawMessage(say(m{"title": fmt.Sprint("note ", i), "tags": []string{tags[i%100]},
						"content": "Some words about the garden, number " + fmt.Sprint(i) + strings.Repeat(" and so on", i%7)})))
					if err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range workers {
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		}
		var o one
		apptest.Decode(b, run("create_block", m{"content": "The paragraph to change."}), &o)
		hash := o.Hash
		for i := range blocks / 10 {
			var w written
			apptest.Decode(b, run("patch_document", m{"block_id": o.ID, "base_hash": hash, "operations": []m{{"op": "replace", "node_id": "@1", "markdown": fmt.Sprint("The paragraph to change, ", i)}}}), &w)
			hash = w.Hash
		}
		for _, c := range []struct {
			name, tool string
			args       m
		}{{"list", "list_blocks", m{}}, {"tag", "list_blocks", m{"tag": tags[7]}}, {"search", "search_blocks", m{"query": "garden number 777"}}, {"search in tag", "search_blocks", m{"query": "garden", "tag": tags[7]}},
			{"tags", "list_tags", m{}}, {"pinned", "list_blocks", m{"pinned": true}}, {"unlinked", "list_blocks", m{"unlinked": true}}, {"relations", "list_relations", m{"block_id": tags[7]}},
			{"provenance", "get_provenance", m{"block_id": o.ID}}, {"old version", "read_version", m{"block_id": o.ID, "version": blocks / 20}}} {
			b.Run(c.name, func(b *testing.B) {
				run(c.tool, c.args) // the first one reads the search index
				for b.Loop() {
					run(c.tool, c.args)
				}
			})
		}
	})
}
