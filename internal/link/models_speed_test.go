package link_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// serveSmall serves small answers at a listener until the test ends.
func serveSmall(b *testing.B, l net.Listener) {
	b.Helper()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "answer")
	})}
	var serving sync.WaitGroup
	serving.Go(func() { server.Serve(l) })
	b.Cleanup(func() { server.Close(); serving.Wait() })
}

func askSmall(b *testing.B, client *http.Client, port int) {
	res, err := client.Post(fmt.Sprintf("http://127.0.0.1:%d/", port), "text/plain", strings.NewReader("question"))
	if err != nil {
		b.Fatal(err)
	}
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
}

// BenchmarkModels is what the way to a sandbox's models takes: a small request to a server directly, by a passed connection, and by one
// through the link; on one connection, on new ones, and 64 at once on new ones.
func BenchmarkModels(b *testing.B) {
	ways := map[string]func(b *testing.B) (port int){
		"direct": func(b *testing.B) int {
			l, err := net.Listen("tcp4", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			serveSmall(b, l)
			return l.Addr().(*net.TCPAddr).Port
		},
		"passed": func(b *testing.B) int {
			w := newModelWorld(b)
			serveSmall(b, w.hub.Models())
			return w.port
		},
		"through": func(b *testing.B) int {
			w := newModelWorld(b)
			w.session.TakeNothing()
			w.call(b).Close() // the answer to what was asked before
			w.accept(b).Close()
			serveSmall(b, w.hub.Models())
			return w.port
		},
	}
	for _, name := range []string{"direct", "passed", "through"} {
		b.Run(name+"/one connection", func(b *testing.B) {
			port := ways[name](b)
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			askSmall(b, client, port)
			for b.Loop() {
				askSmall(b, client, port)
			}
		})
		b.Run(name+"/new connections", func(b *testing.B) {
			port := ways[name](b)
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			askSmall(b, client, port)
			for b.Loop() {
				askSmall(b, client, port)
			}
		})
		b.Run(name+"/64 new at once", func(b *testing.B) { askAtOnce(b, ways[name](b)) })
	}
}

// askAtOnce makes 64 requests at once, again and again.
func askAtOnce(b *testing.B, port int) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	askSmall(b, client, port)
	var took atomic.Int64
	n := 0
	for b.Loop() {
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				began := time.Now()
				askSmall(b, client, port)
				took.Add(int64(time.Since(began)))
			})
		}
		all.Wait()
		n += 64
	}
	b.ReportMetric(float64(took.Load())/1000/float64(n), "µs/request")
}
