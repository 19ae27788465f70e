package blob

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// probe stores a few bytes, reads them and deletes them.
func probe(ctx context.Context, s Store, b *Inbox) error {
	var id [8]byte
	_, _ = rand.Read(id[:])
	name, text := "probe-"+hex.EncodeToString(id[:]), "cairn"
	in, err := b.Receive(ctx, strings.NewReader(text), 100)
	if err != nil {
		return fmt.Errorf("nothing can be written: %w", err)
	}
	defer in.Close() //nolint:errcheck // it is gone where it was put
	if err := s.Put(ctx, name, in); err != nil {
		return fmt.Errorf("nothing can be written: %w", err)
	}
	got, err := s.Open(ctx, name)
	if err == nil {
		var b []byte
		b, err = io.ReadAll(io.LimitReader(got, 100))
		if err == nil && string(b) != text {
			err = fmt.Errorf("%q was written and %q read", text, b)
		}
		_ = got.Close()
	}
	if err != nil {
		return fmt.Errorf("what was written can't be read: %w", err)
	}
	if err := s.Delete(ctx, name); err != nil {
		return fmt.Errorf("what was written can't be deleted: %w", err)
	}
	return nil
}
