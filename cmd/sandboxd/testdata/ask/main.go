// Command ask asks a DNS server, without the C library:
//
//	ask udp|tcp SERVER a NAME
//	ask udp|tcp SERVER ptr ADDRESS
//
// It prints what it was told, or "none" when the server knows nothing or does not answer.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"
)

func main() {
	network, server, kind, what := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, net.JoinHostPort(server, "53"))
	}}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var told []string
	var err error
	if kind == "ptr" {
		told, err = r.LookupAddr(ctx, what)
	} else {
		told, err = r.LookupHost(ctx, what)
	}
	if err != nil {
		fmt.Println("none")
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Println(told)
}
