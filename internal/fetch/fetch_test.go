package fetch

import (
	"context"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestPrivateAddressesAreRefused(t *testing.T) {
	c := New(nil, nil, "test")
	for _, a := range []string{"127.0.0.1", "127.9.9.9", "10.0.0.5", "172.31.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255",
		"::1", "::", "::ffff:10.0.0.5", "64:ff9b::a00:5", "fe80::1", "fc00::1", "ff02::1", "2002:a00:5::", "::10.0.0.5"} {
		if c.reachable(netip.MustParseAddr(a)) {
			t.Errorf("%s may be reached", a)
		}
	}
	for _, a := range []string{"1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "172.32.0.1", "100.128.0.1"} {
		if !c.reachable(netip.MustParseAddr(a)) {
			t.Errorf("%s may not be reached", a)
		}
	}
	for _, a := range []string{"http://127.0.0.1:1/x", "http://[::1]:1/x", "http://[::ffff:10.0.0.5]/", "http://169.254.169.254/", "http://2130706433/", "http://localhost:1/"} {
		start := time.Now()
		if _, _, err := c.Get(context.Background(), a, 10); err == nil {
			t.Errorf("%s was fetched", a)
		} else if time.Since(start) > 7*time.Second {
			t.Errorf("%s took %v", a, time.Since(start))
		}
	}
	for _, a := range []string{"file:///etc/passwd", "gopher://127.0.0.1/"} {
		if _, _, err := c.Get(context.Background(), a, 10); err == nil {
			t.Errorf("%s was fetched", a)
		}
	}
}

func TestSizeRedirectsAndTheAllowList(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/small", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("0123456789")) })
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(strings.Repeat("x", 11))) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/small", http.StatusFound) })
	srv := httptest.NewTLSServer(mux)
	defer srv.Close()
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	if _, _, err := New(nil, roots, "test").Get(context.Background(), srv.URL+"/small", 10); err == nil || !strings.Contains(err.Error(), errAddress.Error()) {
		t.Errorf("loopback without the allow-list: %v", err)
	}
	c := New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, roots, "test")
	if b, _, err := c.Get(context.Background(), srv.URL+"/small", 10); err != nil || string(b) != "0123456789" {
		t.Errorf("small: %q %v", b, err)
	}
	for _, path := range []string{"/large", "/away", "/none"} {
		if _, _, err := c.Get(context.Background(), srv.URL+path, 10); err == nil {
			t.Errorf("%s was fetched", path)
		}
	}
}
