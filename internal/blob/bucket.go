package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"cairn/internal/fault"
)

// Bucket is where an S3-compatible store is, and who we are there.
type Bucket struct {
	Endpoint *url.URL // scheme and host
	Name     string
	Region   string
	KeyID    string
	Secret   string
}

// bucket is a store in an S3-compatible bucket.
type bucket struct {
	client *minio.Client
	name   string
	inbox  *Inbox // for the probe
}

// partBytes is what is sent to a bucket at a time: no more of a file is in memory.
const partBytes = 16 << 20

// NewBucket makes a store in a bucket. It asks the bucket nothing yet.
func NewBucket(b Bucket, inbox *Inbox) (Store, error) {
	c, err := minio.New(b.Endpoint.Host, &minio.Options{
		Creds: credentials.NewStaticV4(b.KeyID, b.Secret, ""), Secure: b.Endpoint.Scheme == "https", Region: b.Region, MaxRetries: 3})
	if err != nil {
		return nil, err
	}
	c.SetAppInfo("cairn", "1")
	return &bucket{c, b.Name, inbox}, nil
}

func (s *bucket) Put(ctx context.Context, name string, in *Incoming) error {
	r, err := in.Reader()
	if err != nil {
		return err
	}
	o := minio.PutObjectOptions{ContentType: "application/octet-stream", PartSize: partBytes, NumThreads: 1}
	if _, err := s.client.PutObject(ctx, s.name, name, r, in.Size, o); err != nil {
		return s.word(err)
	}
	_ = in.Close() // the inbox is swept
	return nil
}

func (s *bucket) Open(ctx context.Context, name string) (io.ReadSeekCloser, error) {
	o, err := s.client.GetObject(ctx, s.name, name, minio.GetObjectOptions{})
	if err == nil {
		_, err = o.Stat() // GetObject asks for nothing yet
	}
	if err != nil {
		if o != nil {
			_ = o.Close()
		}
		if code := minio.ToErrorResponse(err).Code; code == minio.NoSuchKey {
			return nil, ErrMissing
		}
		return nil, s.word(err)
	}
	return o, nil
}

func (s *bucket) Delete(ctx context.Context, name string) error {
	err := s.client.RemoveObject(ctx, s.name, name, minio.RemoveObjectOptions{})
	if err != nil && minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil
	}
	return s.word(err)
}

func (s *bucket) Check(ctx context.Context) error { return probe(ctx, s, s.inbox) }

// Refused tells whether an error of Check's says that a bucket answers and won't have us: a wrong key, no such bucket.
func Refused(err error) bool {
	var r minio.ErrorResponse
	return errors.As(err, &r) && r.StatusCode >= 400 && r.StatusCode < 500
}

// word makes an error of the bucket's one that says whose it is. What it says may name the key's id, never the secret: it goes to
// the log alone.
func (s *bucket) word(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if r := minio.ToErrorResponse(err); r.StatusCode == http.StatusInsufficientStorage || r.Code == "XMinioStorageFull" {
		return noRoom(err)
	}
	return fault.Wrap(fault.Unavailable, fmt.Errorf("the bucket %s: %w", s.name, err), "the store of files does not answer right now; try again in a moment").With("reason", "unavailable")
}
