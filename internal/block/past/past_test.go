package past_test

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cairn/internal/apptest"
	"cairn/internal/block/inmem"
	"cairn/internal/block/past"
	"cairn/internal/db"
	"cairn/internal/doc"
	"cairn/internal/doc/version"
)

// cold reads documents as a server does that has none of them in memory.
func cold(t *testing.T, a *apptest.App) (past.Store, past.Reader) {
	ctx := t.Context()
	return past.Store{Docs: inmem.NewCache(0)}, past.Reader{
		One:  func(q string, args []any, dest ...any) error { return a.DB.One(ctx, q, args, dest...) },
		Rows: func(q string, args ...any) (*sql.Rows, error) { return a.DB.Query(ctx, q, args...) },
	}
}

type written struct {
	ID, Hash string
	Version  int64
}

// edited makes a block of n paragraphs and changes them one after the other, and gives the hash of each version.
func edited(t *testing.T, a *apptest.App, ctx context.Context, n, changes int) (id string, hashes []string) {
	t.Helper()
	call := func(name string, args any) (w written) {
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		apptest.Decode(t, a.Call(t, ctx, name, string(raw)), &w)
		return w
	}
	type m map[string]any
	w := call("create_block", m{"title": "T", "content": strings.Repeat("A paragraph of some words, and a few more.\n\n", n)})
	id, hashes = w.ID, []string{w.Hash}
	for i := range changes {
		at := fmt.Sprint("@", 1+i*7%n)
		op := m{"op": "replace", "node_id": at, "markdown": fmt.Sprint("Paragraph *", i, "*")}
		switch i % 5 {
		case 1:
			op = m{"op": "insert_after", "node_id": at, "markdown": fmt.Sprint("New ", i)}
		case 2:
			op = m{"op": "move", "node_id": at, "after": fmt.Sprint("@", 1+(i*7+5)%n)}
		}
		w = call("patch_document", m{"block_id": id, "base_hash": w.Hash, "operations": []m{op}})
		hashes = append(hashes, w.Hash)
	}
	return id, hashes
}

// The newest document and each version before it are read as they were by a server that has none of them in memory, for documents
// that are written whole each time and for large ones.
func TestEveryVersionIsReadFromWhatIsStored(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		ctx := a.As(t, a.Token(t, ""))
		for _, n := range []int{10, 400} {
			id, hashes := edited(t, a, ctx, n, 300)
			newest := past.Version{Block: id, N: int64(len(hashes)), Hash: hashes[len(hashes)-1]}
			s, in := cold(t, a)
			d, err := s.Newest(in, id, newest.Hash)
			if err != nil || d == nil || past.Large(d) != (n == 400) {
				t.Fatalf("%d paragraphs: %v %v", n, d != nil, err)
			}
			for i := 0; i < len(hashes); i += 23 {
				s, in := cold(t, a)
				if d, err := s.At(in, newest, int64(i+1), hashes[i]); err != nil || d == nil || d.Hash() != hashes[i] {
					t.Errorf("%d paragraphs, version %d: %v", n, i+1, err)
				}
			}
			if d, err := s.Newest(in, id, strings.Repeat("0", 64)); d != nil || err != nil {
				t.Errorf("a hash that isn't the newest's: %v %v", d, err)
			}
			var redo, whole int64
			if err := a.DB.One(ctx, `SELECT (SELECT count(*) FROM block_redo WHERE block = $1), (SELECT version FROM block_content WHERE block = $1)`, []any{id}, &redo, &whole); err != nil {
				t.Fatal(err)
			}
			if redo != newest.N-whole || redo > 256 || n == 10 && redo > 0 || n == 400 && redo == 0 {
				t.Errorf("%d paragraphs: %d steps after version %d of %d", n, redo, whole, newest.N)
			}
		}
	})
}

// What versions take grows with the changes: 300 small ones of a document of 18 KB take less than it does three times.
func TestVersionsTakeWhatChangesDo(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		ctx := a.As(t, a.Token(t, ""))
		id, _ := edited(t, a, ctx, 400, 300)
		var bytes, content int64
		if err := a.DB.One(ctx, `SELECT sum(length(body)), (SELECT length(content) FROM block_content WHERE block = $1) FROM block_version WHERE block = $1`, []any{id}, &bytes, &content); err != nil {
			t.Fatal(err)
		}
		if t.Log(bytes, content); bytes > 300*600 {
			t.Errorf("300 versions take %d bytes, the document %d", bytes, content)
		}
	})
}

// Versions kept before schema 9, as base64 of the JSON and of deltas of it, are read as before, also with newer ones after them.
func TestVersionsOfOlderSchemasAreRead(t *testing.T) {
	apptest.Each(t, nil, func(t *testing.T, a *apptest.App) {
		ctx := a.As(t, a.Token(t, ""))
		id, hashes := edited(t, a, ctx, 400, 20)
		newest := past.Version{Block: id, N: int64(len(hashes)), Hash: hashes[len(hashes)-1]}
		docs := make([]*doc.Doc, len(hashes))
		for i, h := range hashes {
			s, in := cold(t, a)
			d, err := s.At(in, newest, int64(i+1), h)
			if err != nil {
				t.Fatal(err)
			}
			docs[i] = d
		}
		if err := a.DB.Write(ctx, func(tx *db.Tx) error {
			for i := range 10 {
				body, whole := version.Delta(docs[i+1].JSON(), docs[i].JSON()), 0
				if i == 4 {
					body, whole = docs[i].JSON(), 1
				}
				if _, err := tx.Exec(`UPDATE block_version SET body = $3, whole = $4 WHERE block = $1 AND version = $2`, id, i+1, base64.RawStdEncoding.EncodeToString(body), whole); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for i, h := range hashes {
			s, in := cold(t, a)
			if d, err := s.At(in, newest, int64(i+1), h); err != nil || string(d.JSON()) != string(docs[i].JSON()) {
				t.Errorf("version %d: %v", i+1, err)
			}
		}
	})
}
