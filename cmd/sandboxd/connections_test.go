package main

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// TestQuietConns_AFloodKeepsNobodyOut opens far more connections than may wait for a request, while one has a request under way.
func TestQuietConns_AFloodKeepsNobodyOut(t *testing.T) {
	q := newQuietConns()
	q.most = 20
	entered, held := make(chan struct{}), make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			close(entered)
			<-held
		}
	}))
	server.Config.ConnState = q.track
	server.Start()
	t.Cleanup(server.Close)
	release := sync.OnceFunc(func() { close(held) })
	t.Cleanup(release)
	ask := func(path string) (*bufio.Reader, error) {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { conn.Close() })
		_, err = conn.Write([]byte("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		return bufio.NewReader(conn), err
	}
	working, err := ask("/held")
	if err != nil {
		t.Fatal(err)
	}
	<-entered
	answered := 0
	for range 100 { // each is idle from its answer on
		if answer, err := ask("/"); err == nil {
			if _, err := http.ReadResponse(answer, nil); err == nil {
				answered++
			}
		}
	}
	if answered < 75 { // one that is new may be the one that is closed
		t.Errorf("only %d of 100 were answered", answered)
	}
	release()
	if res, err := http.ReadResponse(working, nil); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("the request under way was cut: %v", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.conns); n > q.most {
		t.Errorf("%d wait", n)
	}
}
