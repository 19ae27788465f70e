package app

import (
	"net"
	"net/netip"
	"testing"
)

func TestPublicHostIsOneThatClientsCanReach(t *testing.T) {
	for _, c := range []struct {
		address string
		names   []string
		want    string
	}{
		{"127.0.0.1:3000", nil, "127.0.0.1:3000"},
		{"[::1]:3000", nil, "[::1]:3000"},
		{"[::]:3000", []string{"cairn.lan", "other"}, "cairn.lan:3000"},
		{"0.0.0.0:3000", []string{"cairn.lan:8080"}, "cairn.lan:8080"}, // a port is named where a proxy has another
		{"192.0.2.4:3000", []string{"cairn.lan"}, "192.0.2.4:3000"},
	} {
		if got := publicHost(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.address)), c.names); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.address, c.names, got, c.want)
		}
	}
}
