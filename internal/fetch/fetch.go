// Package fetch gets documents from addresses that somebody else gave: never from this machine or its private networks,
// whatever a name resolves to, and never more, longer or elsewhere than asked for.
package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// Client fetches. Its fields are set once, before it is used.
type Client struct {
	Allow []netip.Prefix // networks that may be reached though they are private (CAIRN_FETCH_ALLOW)
	Roots *x509.CertPool // nil = the system's
	Agent string         // User-Agent

	http *http.Client
}

// patience is how long a document may take, from the name's look-up to its last byte.
const patience = 8 * time.Second

// New makes a client.
func New(allow []netip.Prefix, roots *x509.CertPool, agent string) *Client {
	c := &Client{Allow: allow, Roots: roots, Agent: agent}
	d := &net.Dialer{Timeout: 5 * time.Second, Control: c.control}
	c.http = &http.Client{
		Timeout: patience,
		Transport: &http.Transport{ // no proxy: it would resolve names in our place
			DialContext: d.DialContext, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: 5 * time.Second,
			ResponseHeaderTimeout: 5 * time.Second, MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

var errAddress = errors.New("the address is of this machine or of a private network")

// control sees the address that is really dialled, after any look-up.
func (c *Client) control(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil || !c.reachable(ap.Addr()) {
		return errAddress
	}
	return nil
}

// special are the networks that aren't the public Internet (RFC 6890 and its registries), with those that carry an IPv4
// address inside: NAT64 and 6to4 lead to wherever that points.
var special = parse("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24",
	"192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8")

func parse(texts ...string) []netip.Prefix {
	var list []netip.Prefix
	for _, t := range texts {
		list = append(list, netip.MustParsePrefix(t))
	}
	return list
}

func (c *Client) reachable(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	holds := func(list []netip.Prefix) bool {
		return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	return holds(c.Allow) || !holds(special)
}

// Get gives the body of a document, of at most most bytes. Redirects aren't followed, since each would be another address
// that nobody named.
func (c *Client) Get(ctx context.Context, address string, most int64) (body []byte, header http.Header, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Accept", "application/json, */*;q=0.5")
	req.Header.Set("User-Agent", c.Agent)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("it answered %s", res.Status)
	}
	body, err = io.ReadAll(io.LimitReader(res.Body, most+1))
	if err == nil && int64(len(body)) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return body, res.Header, err
}
