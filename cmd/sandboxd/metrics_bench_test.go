//go:build bench

package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/docker"
	"sandboxd/internal/host"
	"sandboxd/internal/metrics"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sqlite"
)

// How much is measured of the figures.
const (
	benchRunning  = 200
	benchReadTime = time.Minute
	benchFillTime = metrics.FineLife + time.Minute // until all that is kept in memory is there
	benchHistory  = 50                             // sandboxes with a history beside the one that is looked at
	benchPlots    = 100
)

// metrics measures what it costs to read the figures of 200 sandboxes, and to show those of one.
func (b *benches) metrics() {
	b.group(nil, "source", func() { b.within(b.source) })
	b.group(nil, "plots", b.plots)
}

// many is 200 running sandboxes that are one: its figures are read as often as they are asked for.
type many struct {
	*past
	real metrics.Source
	one  string // the id that real knows
}

// Read implements metrics.Source.
func (m many) Read(ctx context.Context, ids []string) (map[string]metrics.Reading, error) {
	out := make(map[string]metrics.Reading, len(ids))
	for _, id := range ids {
		found, err := m.real.Read(ctx, []string{m.one})
		if err != nil {
			return nil, err
		}
		out[id] = found[m.one]
	}
	return out, nil
}

// source reads the cgroup files of one sandbox as if they were those of 200: for a minute, and then in fake time until the memory
// holds all that it ever holds.
func (b *benches) source(a *app) sandbox.Ref {
	t := b.t
	made := b.made(a)
	groups, why := docker.NewGroups(a.engine)
	if groups == nil {
		t.Fatal(why)
	}
	m := many{real: groups, one: made.ID}
	if found, err := groups.Read(t.Context(), []string{made.ID}); err != nil || len(found) != 1 {
		t.Fatalf("%d readings, %v", len(found), err)
	}
	ids := make([]string, benchRunning)
	for i := range ids {
		ids[i] = sandbox.NewID()
	}
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent)) // as sandboxd does
	folder := t.TempDir()
	m.past = newPast(ids)
	m.state = sandbox.Running
	before := cpuTime(t)
	m.record(t, filepath.Join(folder, "minute.db"), benchReadTime)
	b.sizeIn("% of a core", "figures of 200 running sandboxes", "≤ 3 % of a core", 100*(cpuTime(t)-before).Seconds()/benchReadTime.Seconds())

	b.group(nil, "memory", func() {
		debug.FreeOSMemory()
		if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // the peak begins anew
			b.t.Fatal(err)
		}
		before := statusMiB(b.t, os.Getpid(), "VmRSS")
		synctest.Test(b.t, func(t *testing.T) {
			m.past = newPast(ids)
			m.state = sandbox.Running
			m.record(t, filepath.Join(folder, "memory.db"), benchFillTime)
		})
		b.size("figures of 200 running sandboxes, resident more", "≤ 20 MiB", statusMiB(b.t, os.Getpid(), "VmHWM")-before)
	})
	return made.Ref()
}

// record lets a Recorder read and keep the figures for a while.
func (m many) record(t *testing.T, path string, span time.Duration) {
	t.Helper()
	history := sqlite.OpenHistory(t.Context(), path, slog.New(slog.DiscardHandler))
	recorder := metrics.New(metrics.Config{Source: m, Every: metrics.FineStep, Sandboxes: m, Store: history, HostUsage: host.New(filepath.Dir(path)).Usage})
	ctx, end := context.WithTimeout(t.Context(), span)
	defer end()
	if err := recorder.Run(ctx); err != nil {
		t.Error(err)
	}
	now := time.Now()
	series, err := recorder.Series(t.Context(), m.ids[len(m.ids)-1], metrics.Range{Since: now.Add(-span), Until: now, Step: metrics.MediumStep})
	if err != nil {
		t.Fatal(err)
	}
	var measured time.Duration
	for _, p := range series.Points {
		measured += p.Measured
	}
	if measured < span-10*time.Second {
		t.Errorf("only %s of %s were measured", measured, span)
	}
	if err := history.Close(); err != nil {
		t.Error(err)
	}
}

// cpuTime is what this process has used.
func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// plots measures a month of one sandbox's figures in the API and as a page, with the histories of 50 others beside it.
func (b *benches) plots() {
	t := b.t
	const password = "a-long-bench-password"
	t.Setenv(adminPasswordEnv, password)
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "lab", "image": "debian:trixie-slim"})
	ids := []string{sandboxID(t, s, "lab")}
	for range benchHistory {
		ids = append(ids, sandbox.NewID())
	}
	s.stop()
	began := time.Now()
	seedHistory(t, historyPath(&Config{Data: s.data}), metrics.CoarseLife, metrics.MediumStep, ids...)
	info, err := os.Stat(historyPath(&Config{Data: s.data}))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("a month of %d sandboxes: %d MiB, made in %s", len(ids), info.Size()>>20, time.Since(began).Round(time.Second))
	s.start()
	s.settle()
	client := s.login("admin", password)
	for _, span := range []struct{ name, since, goal string }{{"24 h", "24h", "p95 ≤ 50 ms"}, {"30 days", "30d", "p95 ≤ 100 ms"}} {
		b.group(s, span.since, func() {
			took := b.gets(s.http, s.token, "http://"+s.addr+"/api/v1/sandboxes/lab/metrics?since="+span.since, 200, `"cpu_cores":`)
			b.add("plot of "+span.name+", API", span.goal, took, nil)
			took = b.gets(client, "", "http://"+s.addr+"/sandboxes/lab/metrics?range="+span.since, 4, "data-plot=")
			b.add("plot of "+span.name+", page", span.goal, took, nil)
		})
	}
}

// gets times requests, with a token or "", for a body that has what it should at least that often.
func (b *benches) gets(client *http.Client, token, url string, least int, what string) (took []time.Duration) {
	b.t.Helper()
	for n := range benchPlots + 10 {
		r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, url, nil)
		if err != nil {
			b.t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		began := time.Now()
		resp, err := client.Do(r)
		if err != nil {
			b.t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if n >= 10 {
			took = append(took, time.Since(began))
		}
		if got := strings.Count(string(text), what); err != nil || resp.StatusCode != http.StatusOK || got < least {
			b.t.Fatalf("%s answers %s, %d bytes with %d × %s, want %d at least, %v", url, resp.Status, len(text), got, what, least, err)
		}
	}
	return took
}
