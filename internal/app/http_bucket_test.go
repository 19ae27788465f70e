package app_test

import (
	"context"
	"errors"
	"image"
	"net/http"
	"strings"
	"testing"
	"time"

	"cairn/internal/apptest"
	"cairn/internal/blob"
	"cairn/internal/blob/s3test"
	"cairn/internal/fault"
)

func bucketEnv(b blob.Bucket) map[string]string {
	return map[string]string{"CAIRN_S3_ENDPOINT": b.Endpoint.String(), "CAIRN_S3_BUCKET": b.Name, "CAIRN_S3_REGION": b.Region, "CAIRN_S3_KEY_ID": b.KeyID, "CAIRN_S3_SECRET": b.Secret, "CAIRN_LISTEN": "127.0.0.1:0"}
}

// serves starts a server and says why it ended, nil where it served.
func serves(t *testing.T, a *apptest.App) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return a.Serve(ctx, func(string) { cancel() })
}

// Two servers on one database and one bucket: what one takes the other gives.
func TestFilesInABucket(t *testing.T) {
	b := s3test.Start(t)
	apptest.Each(t, bucketEnv(b), func(t *testing.T, a *apptest.App) {
		w := settle(t, a)
		f := w.up(t, "rw", "ferns.jpg", photo(t, 700, 500))
		large := strings.Repeat("water the ferns ", 1<<20+5) // more than one part
		big := w.up(t, "rw", "large.txt", large)
		env := bucketEnv(b)
		env["CAIRN_DATABASE_URL"] = a.Config.DatabaseURL
		if env["CAIRN_DATA"] = t.TempDir(); a.Config.DatabaseURL == "" {
			env["CAIRN_DATA"] = a.Config.Data
		}
		other := apptest.New(t, env)
		get := func(path string, headers ...string) apptest.Response {
			return other.Do(t, "GET", path, "", append(headers, "Authorization: Bearer "+w.tokens["ro"])...)
		}
		if r := get("/files/" + big.ID); r.Status != 200 || r.Body != large {
			t.Errorf("%d, %d bytes", r.Status, len(r.Body))
		}
		if r := get("/files/"+big.ID, "Range: bytes=16777216-16777220"); r.Status != 206 || r.Body != large[16777216:16777221] {
			t.Errorf("a range: %d %q", r.Status, r.Body)
		}
		r := get("/files/" + f.ID + "/thumbnail/m")
		if m, format, err := image.DecodeConfig(strings.NewReader(r.Body)); err != nil || format != "jpeg" || m.Width != 480 {
			t.Errorf("%d %v %s %v", r.Status, m, format, err)
		}
		if objects, incoming := kept(t, a); len(objects)+len(incoming) != 0 {
			t.Errorf("in the folder: %v, %v", objects, incoming)
		}
		if err := serves(t, other); err != nil {
			t.Errorf("a server on a bucket: %v", err)
		}
		if log := a.Log.String(); strings.Contains(log, env["CAIRN_S3_SECRET"]) || strings.Contains(log, w.tokens["rw"]) {
			t.Error("a secret is in the log")
		}
	})
}

func TestBucketThatRefusesStopsTheStartAndOneThatIsDownDoesNot(t *testing.T) {
	good := s3test.Start(t)
	start := func(change func(env map[string]string)) (*apptest.App, error) {
		env := bucketEnv(good)
		env["CAIRN_DATA"] = t.TempDir()
		change(env)
		a := apptest.New(t, env)
		return a, serves(t, a)
	}
	const wrong = "wrong-secret-of-nobody"
	for what, change := range map[string]func(map[string]string){
		"secret": func(e map[string]string) { e["CAIRN_S3_SECRET"] = wrong },
		"key":    func(e map[string]string) { e["CAIRN_S3_KEY_ID"] = "nobody" },
		"bucket": func(e map[string]string) { e["CAIRN_S3_BUCKET"] = "nowhere" },
	} {
		if _, err := start(change); err == nil || errors.As(err, new(*fault.Error)) || !strings.Contains(err.Error(), "CAIRN_S3_ENDPOINT") || strings.Contains(err.Error(), wrong) || strings.Contains(err.Error(), good.Secret) {
			t.Errorf("a wrong %s: %v", what, err)
		}
	}
	a, err := start(func(e map[string]string) { e["CAIRN_S3_ENDPOINT"] = "http://127.0.0.1:1" })
	if err != nil {
		t.Fatalf("a bucket that is down: %v", err)
	}
	token := "Authorization: Bearer " + a.Token(t, "")
	r := a.Do(t, "POST", "/api/files?name=x", "bytes", octets, token)
	if r.Status != http.StatusServiceUnavailable || strings.Contains(r.Body, "127.0.0.1") || !strings.Contains(r.Body, "store of files") {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	if _, incoming := kept(t, a); len(incoming) != 0 {
		t.Errorf("left: %v", incoming)
	}
	if r := a.Do(t, "POST", "/api/list_heaps", "{}", "Content-Type: application/json", token); r.Status != 200 {
		t.Errorf("all else: %d", r.Status)
	}
}
