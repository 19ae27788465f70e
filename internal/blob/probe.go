package blob

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"cairn/internal/fault"
)

// probe stores a few bytes, reads them and deletes them.
func probe(ctx context.Context, s Store, b *Inbox) error {
	var id [8]byte
	_, _ = rand.Read(id[:])
	name, text := "probe-"+hex.EncodeToString(id[:]), "cairn"
	in, err := b.Receive(ctx, strings.NewReader(text), 100)
	if err != nil {
		return fmt.Errorf("nothing can be written: %w", cause(err))
	}
	defer in.Close() //nolint:errcheck // it is gone where it was put
	if err := s.Put(ctx, name, in); err != nil {
		return fmt.Errorf("nothing can be written: %w", cause(err))
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
		return fmt.Errorf("what was written can't be read: %w", cause(err))
	}
	if err := s.Delete(ctx, name); err != nil {
		return fmt.Errorf("what was written can't be deleted: %w", cause(err))
	}
	return nil
}

// cause gives what is behind a fault: the operator is told that, not what a caller is.
func cause(err error) error {
	var f *fault.Error
	if errors.As(err, &f) && errors.Unwrap(f) != nil {
		return errors.Unwrap(f)
	}
	return err
}
