// Command conformance serves the tools, resources and prompts that the MCP conformance suite calls by fixed names. It is
// a test build: nothing of it is in the cairn binary.
//
// With -plain it serves them through the SDK alone, which tells a fault of the SDK's from one of ours.
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	flag.String("data", "", "")
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on")
	flag.Parse()
	if err := run(*listen); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(listen string) error {
	h := plain()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/mcp\n", l.Addr())
	return http.Serve(l, h)
}

func plain() http.Handler {
	o := &mcp.ServerOptions{}
	Options(o)
	s := mcp.NewServer(&mcp.Implementation{Name: "fixtures", Version: "1"}, o)
	Register(s)
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: true})
}
