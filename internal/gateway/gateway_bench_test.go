//go:build bench

package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandboxd/internal/benchtest"
	"sandboxd/internal/gateway"
)

const (
	benchFirst   = 2000
	mostFirst    = 1.5 // ms
	benchStreams = 64
	benchRate    = 50 // deltas a second, of each stream
	benchFor     = 5 * time.Second
	mostCPU      = 10.0 // % of a core
	benchDelta   = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" and so on\"}}\n\n"
	benchEnd     = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":20}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	benchChild   = "GATEWAY_BENCH_CHILD"
)

// benchBody is a request with a prompt as agents send it.
var benchBody = `{"model":"m","stream":true,"max_tokens":9,"system":"` + strings.Repeat("You are an agent. ", 1200) + `","messages":[{"role":"user","content":"hi"}]}`

// benchProvider streams one delta, or as many as a second of the query's has.
func benchProvider(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // it is not looked at
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(text string) bool {
		_, err := io.WriteString(w, text)
		return err == nil && control.Flush() == nil
	}
	send("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n")
	if r.URL.Query().Has("long") {
		tick := time.NewTicker(time.Second / benchRate)
		defer tick.Stop()
		for range int(benchFor.Seconds() * benchRate) {
			<-tick.C
			if !send(benchDelta) {
				return
			}
		}
	}
	send(benchEnd)
}

// benchGateway is a gateway before a provider, for the other process.
func benchGateway(t *testing.T, provider string) *httptest.Server {
	s := gateway.NewTestService(gateway.Setup{Providers: []gateway.Provider{{ID: "p", Name: "p", Kind: gateway.Anthropic, BaseURL: provider}}, Keys: map[string]string{"p": secretKey}})
	server := httptest.NewServer(s.Handler(gateway.CallerInTest))
	t.Cleanup(server.Close)
	return server
}

// TestBenchGateway measures what the gateway adds. It runs itself again as the gateway, so that its CPU time is its own.
func TestBenchGateway(t *testing.T) {
	if provider := os.Getenv(benchChild); provider != "" {
		fmt.Println("serves " + benchGateway(t, provider).URL)
		_, _ = io.Copy(io.Discard, os.Stdin) // until the other process ends it
		return
	}
	provider := httptest.NewServer(http.HandlerFunc(benchProvider))
	defer provider.Close()
	url, child := startGateway(t, provider.URL)
	t.Run("first byte", func(t *testing.T) { benchFirstByte(t, provider.URL, url) })
	t.Run("streams", func(t *testing.T) { benchManyStreams(t, url, child) })
}

// startGateway runs a gateway in another process.
func startGateway(t *testing.T, provider string) (url string, child int) {
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestBenchGateway$")
	cmd.Env = append(os.Environ(), benchChild+"="+provider)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // it ends by that, or by being killed
		cancel()
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if url, ok := strings.CutPrefix(lines.Text(), "serves "); ok {
			return url, cmd.Process.Pid
		}
	}
	t.Fatal("the gateway does not serve")
	return "", 0
}

// benchAsk sends a request and gives the time until the first byte of the stream.
func benchAsk(t *testing.T, url, sandbox string) time.Duration {
	begun := time.Now()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/messages", strings.NewReader(benchBody))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Test-Sandbox", sandbox)
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, 1)); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v", res.StatusCode, err)
	}
	took := time.Since(begun)
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return took
}

func benchFirstByte(t *testing.T, direct, through string) {
	var base, took []time.Duration
	for i := range benchFirst {
		box := fmt.Sprint(i % benchStreams) // which is within its bounds
		base, took = append(base, benchAsk(t, direct, box)), append(took, benchAsk(t, through, box))
	}
	c := benchtest.Times("model gateway: first byte of a stream", fmt.Sprintf("p50 ≤ %.1f ms more than the provider alone", mostFirst), took)
	c.Base, c.Base9 = benchtest.Percentile(base, 50), benchtest.Percentile(base, 95)
	c.Ratio = c.P50 / c.Base
	benchtest.Record(t, benchtest.Deep, c)
	t.Logf("p50 %.3f ms through the gateway, %.3f ms without", c.P50, c.Base)
	if c.P50-c.Base > mostFirst {
		t.Errorf("%.3f ms more, at most %.1f", c.P50-c.Base, mostFirst)
	}
}

func benchManyStreams(t *testing.T, url string, child int) {
	before, begun := cpuOf(t, child), time.Now()
	var streams sync.WaitGroup
	var read atomic.Int64
	for range benchStreams {
		streams.Go(func() {
			res, err := http.Post(url+"/v1/messages?long", "application/json", strings.NewReader(benchBody))
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			n, err := io.Copy(io.Discard, res.Body)
			if read.Add(n); err != nil {
				t.Error(err)
			}
		})
	}
	streams.Wait()
	took := time.Since(begun)
	if want := int64(benchStreams * int(benchFor.Seconds()*benchRate) * len(benchDelta)); read.Load() < want {
		t.Errorf("%d bytes of deltas came, want %d", read.Load(), want)
	}
	share := 100 * (cpuOf(t, child) - before).Seconds() / took.Seconds()
	benchtest.Record(t, benchtest.Deep, benchtest.Amount(fmt.Sprintf("model gateway: %d streams of %d deltas a second", benchStreams, benchRate), fmt.Sprintf("≤ %.0f %% of a core", mostCPU), "% of a core", share))
	t.Logf("%.1f %% of a core for %s", share, took)
	if share > mostCPU {
		t.Errorf("%.1f %% of a core, at most %.0f", share, mostCPU)
	}
}

// cpuOf gives the CPU time that a process has taken.
func cpuOf(t *testing.T, pid int) time.Duration {
	text, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	var ticks [2]int64
	for i := range ticks {
		if _, err := fmt.Sscan(fields[11+i], &ticks[i]); err != nil { // utime and stime
			t.Fatal(err)
		}
	}
	const tick = time.Second / 100 // USER_HZ, the same on all of Linux's machines
	return time.Duration(ticks[0]+ticks[1]) * tick
}
