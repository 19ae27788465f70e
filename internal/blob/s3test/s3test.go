// Package s3test gives tests a real server that speaks S3: versitygw, built from the module that tools/s3 pins, on a folder of its
// own.
package s3test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"cairn/internal/blob"
)

const (
	program = "github.com/versity/versitygw/cmd/versitygw"
	keyID   = "test-key"
	secret  = "test-secret-of-the-bucket"
)

// Start starts a server with an empty bucket and gives what reaches it. It ends with the test.
func Start(t testing.TB) blob.Bucket {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, d := range []string{"objects", "meta"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for try := 1; ; try++ {
		b, err := start(t, path, dir)
		if err == nil {
			return b
		}
		if try == 3 { // the port may be taken by another in between
			t.Fatal(err)
		}
	}
}

func start(t testing.TB, path, dir string) (blob.Bucket, error) {
	address, err := freePort()
	if err != nil {
		return blob.Bucket{}, err
	}
	var said bytes.Buffer
	c := exec.Command(path, "--quiet", "--port", address, "posix", "--sidecar", filepath.Join(dir, "meta"), filepath.Join(dir, "objects")) //nolint:gosec // built here
	c.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+keyID, "ROOT_SECRET_KEY="+secret)
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		return blob.Bucket{}, err
	}
	ended := make(chan struct{})
	go func() { _ = c.Wait(); close(ended) }()
	stop := func() { _ = c.Process.Kill(); <-ended }
	b := blob.Bucket{Endpoint: &url.URL{Scheme: "http", Host: address}, Name: "cairn-test", Region: "us-east-1", KeyID: keyID, Secret: secret}
	client, err := minio.New(address, &minio.Options{Creds: credentials.NewStaticV4(keyID, secret, ""), Region: b.Region})
	if err != nil {
		stop()
		return blob.Bucket{}, err
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		err := client.MakeBucket(ctx, b.Name, minio.MakeBucketOptions{Region: b.Region})
		cancel()
		if err == nil {
			t.Cleanup(stop)
			return b, nil
		}
		select {
		case <-ended:
		default:
			if time.Now().Before(deadline) {
				continue
			}
		}
		stop()
		return blob.Bucket{}, fmt.Errorf("the S3 server didn't start: %w\n%s", err, said.String())
	}
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// built gives the server's program, built once for each version of its module and kept in the user's cache.
var built = sync.OnceValues(func() (string, error) {
	_, here, _, _ := runtime.Caller(0)
	module := filepath.Join(filepath.Dir(here), "..", "..", "..", "tools", "s3")
	sum, err := os.ReadFile(filepath.Join(module, "go.sum"))
	if err != nil {
		return "", err
	}
	version := sha256.Sum256(append(sum, runtime.Version()...))
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "cairn-test")
	path := filepath.Join(dir, "versitygw-"+hex.EncodeToString(version[:8]))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	unlock, err := lock(path + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil { // another process made it
		return path, nil
	}
	making := path + ".part"
	c := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", making, program) //nolint:gosec // constants
	c.Dir = module
	c.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the S3 server for tests: %w\n%s", err, out)
	}
	return path, os.Rename(making, path)
})

// lock lets one process at a time build: the packages under test run side by side, and two builds take twice as long. A lock that
// its process left behind counts for a quarter of an hour.
func lock(dir string) (unlock func(), err error) {
	for {
		if err = os.Mkdir(dir, 0o700); err == nil {
			return func() { _ = os.Remove(dir) }, nil
		}
		info, serr := os.Stat(dir)
		switch {
		case !errors.Is(err, fs.ErrExist):
			return nil, err
		case serr == nil && time.Since(info.ModTime()) > 15*time.Minute:
			_ = os.Remove(dir)
		default:
			time.Sleep(200 * time.Millisecond)
		}
	}
}
