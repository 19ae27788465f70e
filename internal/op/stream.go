package op

import (
	"context"
	"io"

	"cairn/internal/fault"
)

// Stream is what a call of an operation that moves bytes has beside its arguments and its answer. The surface that has the bytes
// puts it into the call's ctx.
type Stream struct {
	In  io.Reader         // what is sent in
	Out io.ReadSeekCloser // what is given out: the operation sets it, whoever called reads and closes it

	ctx context.Context
}

type streamKey struct{}

// WithStream puts s into the ctx of a call.
func WithStream(ctx context.Context, s *Stream) context.Context {
	s.ctx = ctx
	return context.WithValue(ctx, streamKey{}, s)
}

// StreamFrom gives the stream of the call in ctx, or nil.
func StreamFrom(ctx context.Context) *Stream {
	s, _ := ctx.Value(streamKey{}).(*Stream)
	return s
}

// TooManyBytes says how large a file may be.
func TooManyBytes(most int64) *fault.Error {
	return fault.New(fault.TooLarge, "a file may have at most %d bytes here (CAIRN_MAX_UPLOAD): send a smaller one, or in parts", most).With("limit", most)
}

// Context ends when whoever reads Out is gone, not when the call is over.
func (s *Stream) Context() context.Context { return s.ctx }
