//go:build bench

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"sandboxd/internal/benchtest"
)

// How the routes to a sandbox are measured: with 64 connections, each asking as soon as it is answered, which gives the
// throughput; and with the same connections at an even pace, far below what the machine can, which gives the latency.
const (
	benchConns = 64
	loadTime   = 4 * time.Second
	loadRounds = 3
	pacedTime  = 8 * time.Second
	pacedEvery = 64 * time.Millisecond // 1,000 requests a second in all
)

// probe is one way to a kilobyte.
type probe struct {
	client *http.Client
	url    string
	token  string
}

// routes measures sandboxd's proxy beside Traefik alone, and both together, on one backend.
func (b *benches) routes() {
	t := b.t
	k := newTraefik(t)
	s := newServerNamed(t, k.authority(k.domain), "--prebuild", "", "--templates", echoTemplates(t), "--public-url", k.publicURL(), "--trusted-proxies", "127.0.0.1/32", "--freeze-after", "never")
	k.start(s.addr)
	host := "3000-lab." + k.domain
	s.createEchoAt("lab", echoProgram(t), k.authority(host))
	backend := "http://" + s.address("lab") + ":3000"
	ours := probe{client: straight(s.addr), url: "http://" + k.authority(host) + "/small", token: s.token}
	both := probe{client: k.client(), url: k.url(host, "/small"), token: s.token}
	alone := probe{client: straight(traefikAlone(t, backend)), url: "http://backend/small"}
	bare := probe{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: benchConns}}, url: backend + "/small"}

	for _, w := range []probe{ours, both, alone, bare} {
		w.load(t, 0, time.Second) // warm
	}
	b.group(s, "requests", func() {
		var a, z []float64
		for range loadRounds {
			a = append(a, float64(len(ours.load(b.t, 0, loadTime)))/loadTime.Seconds())
			z = append(z, float64(len(alone.load(b.t, 0, loadTime)))/loadTime.Seconds())
		}
		b.rate("sandboxd's proxy, 64 connections, 1 kB answers, requests/s", "≥ 0.9 × Traefik on the same backend", median(a), median(z))
	})
	b.group(s, "latency", func() {
		paced, plain := ours.load(b.t, pacedEvery, pacedTime), bare.load(b.t, pacedEvery, pacedTime)
		b.tail("sandboxd's proxy, 64 connections, p99 beside the backend's own", "p99 ≤ base p99 + 2 ms", paced, plain)
	})
	b.group(s, "latency with TLS", func() {
		b.tail("sandboxd behind Traefik with TLS, p99", "", both.load(b.t, pacedEvery, pacedTime), alone.load(b.t, pacedEvery, pacedTime))
	})
	b.group(s, "downloads", func() {
		b.add("download of 1 GiB through sandboxd's proxy", "≤ Traefik alone", ours.downloads(b.t), alone.downloads(b.t))
	})
}

// downloads times downloads of 1 GiB.
func (w probe) downloads(t *testing.T) (took []time.Duration) {
	t.Helper()
	w.url = strings.Replace(w.url, "/small", "/bytes?n="+strconv.Itoa(1<<30), 1)
	for range loadRounds {
		began := time.Now()
		if err := w.ask(); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	return took
}

// load asks over benchConns connections for a time, each at most once in every, and gives how long the answers took.
func (w probe) load(t *testing.T, every, total time.Duration) []time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), total)
	defer cancel()
	var mu sync.Mutex
	var all []time.Duration
	var g errgroup.Group
	for n := range benchConns {
		g.Go(func() error {
			wait(ctx, every*time.Duration(n)/benchConns)
			var mine []time.Duration
			for ctx.Err() == nil {
				began := time.Now()
				if err := w.ask(); err != nil {
					return err
				}
				took := time.Since(began)
				mine = append(mine, took)
				wait(ctx, every-took)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	return all
}

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// ask asks once and reads the answer.
func (w probe) ask() error {
	req, err := http.NewRequest("GET", w.url, nil)
	if err != nil {
		return err
	}
	if w.token != "" {
		req.Header.Set("Authorization", "Bearer "+w.token)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s, %w", w.url, resp.Status, err)
	}
	return nil
}

// traefikAlone runs Traefik with one route to a backend and nothing else, and gives its address.
func traefikAlone(t *testing.T, backend string) string {
	t.Helper()
	dir := t.TempDir()
	routes := filepath.Join(dir, "routes.yaml")
	text := "http:\n  routers: {all: {rule: \"PathPrefix(`/`)\", service: one}}\n  services: {one: {loadBalancer: {servers: [{url: \"" + backend + "\"}]}}}\n"
	if err := os.WriteFile(routes, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	cmd := exec.Command(traefikBinary, "--entrypoints.web.address="+addr, "--providers.file.filename="+routes,
		"--global.checknewversion=false", "--global.sendanonymoususage=false", "--log.level=ERROR")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	w := probe{client: straight(addr), url: "http://backend/small"}
	deadline := time.Now().Add(eventLimit)
	for w.ask() != nil {
		if time.Now().After(deadline) {
			t.Fatal("Traefik does not answer")
		}
		wait(t.Context(), 20*time.Millisecond)
	}
	return addr
}

func median(x []float64) float64 { return slices.Sorted(slices.Values(x))[len(x)/2] }

// rate adds a case of requests per second: more is better, so the ratio is ours over the base.
func (b *benches) rate(name, goal string, ours, base float64) {
	b.record(benchtest.Case{Name: name, Goal: goal, N: loadRounds, P50: ours, Base: base, Ratio: ours / base, Unit: "requests/s"})
	b.t.Logf("%-44s %8.0f /s  base %8.0f /s  ratio %.2f  (%s)", name, ours, base, ours/base, goal)
}

// tail adds a case about the slowest.
func (b *benches) tail(name, goal string, ours, base []time.Duration) {
	c := benchtest.Times(name, goal, ours)
	c.P99 = benchtest.Percentile(ours, 99)
	c.Base, c.Base99 = benchtest.Percentile(base, 50), benchtest.Percentile(base, 99)
	c.Ratio = c.P50 / c.Base
	b.record(c)
	b.t.Logf("%-44s p50 %8.2f ms  p99 %8.2f ms  base p50 %8.2f ms  p99 %8.2f ms  (%s)", name, c.P50, c.P99, c.Base, c.Base99, goal)
}
