// Command standin takes the guest's place in tests of the engine: it does what the variable BEHAVIOUR says. As a mover it is what the
// guest is.
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"sandboxd/internal/guest/mover"
	"sandboxd/internal/wire"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == wire.MoverArgument {
		os.Exit(mover.Main())
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	switch os.Getenv("BEHAVIOUR") {
	case "brief":
		os.Exit(3)
	case "greedy":
		var kept [][]byte
		for {
			b := make([]byte, 8<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			kept = append(kept, b)
		}
	case "deaf":
		for range ended {
		}
	case "serve":
		serve(ended)
	case "counting":
		go count()
		<-ended
	default:
		fmt.Println("patient") // it can be asked to end now
		<-ended
	}
}

// count says how far it has counted, and works for it.
func count() {
	for n := 1; ; n++ {
		fmt.Println(n)
		for began := time.Now(); time.Since(began) < time.Millisecond; {
		}
		time.Sleep(9 * time.Millisecond)
	}
}

// serve answers on port 8000 until it is asked to end.
func serve(ended <-chan os.Signal) {
	l, err := net.Listen("tcp", ":8000")
	if err != nil {
		os.Exit(1)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.SetDeadline(time.Now().Add(time.Second))
			c.Write([]byte("here\n"))
			c.Close()
		}
	}()
	<-ended
}
