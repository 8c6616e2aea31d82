package proxy

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// crowd is how many connections ask at once in the benchmark.
const crowd = 64

// BenchmarkForward_Awake measures requests of 64 connections to an awake sandbox, through real sockets: answers of 1 kB,
// beside the same program asked without us.
func BenchmarkForward_Awake(b *testing.B) {
	w := newWorld(b)
	body := strings.Repeat("x", 1000)
	backend := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, body) }))
	defer backend.Close()
	w.session.lead(portHost(3000), dialTCP(backend.Listener.Addr().String()))
	cookie := w.signIn("3000-ml.localhost")
	bare := httptest.NewServer(&httputil.ReverseProxy{Transport: &http.Transport{MaxIdleConnsPerHost: crowd}, BufferPool: &buffers,
		Rewrite: func(pr *httputil.ProxyRequest) { pr.SetURL(parseURL(b, backend.URL)) }})
	defer bare.Close()
	for name, address := range map[string]string{"proxied": w.front.Listener.Addr().String(), "bare reverse proxy": bare.Listener.Addr().String(),
		"raw": backend.Listener.Addr().String()} {
		b.Run(name, func(b *testing.B) { storm(b, address, header{"Cookie", cookie}) })
	}
}

// storm asks from all connections at once and reports how long answers took.
func storm(b *testing.B, address string, h header) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: crowd, MaxConnsPerHost: crowd, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dialTCP(address)(ctx) }}}
	defer client.CloseIdleConnections()
	var left atomic.Int64
	left.Store(int64(b.N))
	took := make([][]time.Duration, crowd)
	b.ReportAllocs()
	b.ResetTimer()
	var asking sync.WaitGroup
	for i := range crowd {
		asking.Go(func() {
			for left.Add(-1) >= 0 {
				begun := time.Now()
				if !askOnce(b, client, h) {
					return
				}
				took[i] = append(took[i], time.Since(begun))
			}
		})
	}
	asking.Wait()
	b.StopTimer()
	all := slices.Concat(took...)
	slices.Sort(all)
	b.ReportMetric(float64(len(all))/b.Elapsed().Seconds(), "req/s")
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
}

func askOnce(b *testing.B, client *http.Client, h header) bool {
	r, err := http.NewRequestWithContext(b.Context(), "GET", port3000+"/", nil)
	if err != nil {
		b.Error(err)
		return false
	}
	for i := 0; i < len(h); i += 2 {
		r.Header.Add(h[i], h[i+1])
	}
	res, err := client.Do(r)
	if err != nil {
		b.Error(err)
		return false
	}
	n, err := io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	if err != nil || res.StatusCode != 200 || n != 1000 {
		b.Errorf("%d, %d bytes, %v", res.StatusCode, n, err)
		return false
	}
	return true
}
