// Command scan is what a hostile sandbox would run: it tries TCP ports of addresses and prints each that opens, with
// the first bytes that come after a request.
//
//	scan WAIT ADDRESS:FIRST-LAST…
package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// atOnce is how many connections are tried side by side.
const atOnce = 400

func main() {
	wait, err := time.ParseDuration(os.Args[1])
	if err != nil {
		panic(err)
	}
	var all sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for _, target := range os.Args[2:] {
		host, ports, _ := strings.Cut(target, ":")
		first, last, ranged := strings.Cut(ports, "-")
		if !ranged {
			last = first
		}
		from, _ := strconv.Atoi(first)
		to, _ := strconv.Atoi(last)
		for port := from; port <= to; port++ {
			room <- struct{}{}
			all.Go(func() {
				defer func() { <-room }()
				try(net.JoinHostPort(host, strconv.Itoa(port)), wait)
			})
		}
	}
	all.Wait()
	fmt.Println("done")
}

func try(address string, wait time.Duration) {
	c, err := net.DialTimeout("tcp", address, wait)
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(wait))
	fmt.Fprintf(c, "GET / HTTP/1.0\r\n\r\n")
	var answer [64]byte
	n, _ := c.Read(answer[:])
	fmt.Printf("open %s %q\n", address, answer[:n])
}
