//go:build bench

package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/benchtest"
	"sandboxd/internal/logs"
)

const (
	benchSandboxes = 20
	benchRate      = 20_000 // lines a second
	benchMost      = 300 * time.Millisecond
)

// writer makes lines as programs write them: access logs, JSON, messages of some hundred sorts with words and numbers in them. One in
// four has an id that no other line has.
type writer struct {
	rand *rand.Rand
	buf  []byte
	n    int
}

var benchWords = func() (out []string) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 4000 {
		w := make([]byte, 3+r.IntN(7))
		for i := range w {
			w[i] = "etaoinshrdlucmfwypvbgkjqxz"[min(r.IntN(26), r.IntN(26))]
		}
		out = append(out, string(w))
	}
	return out
}()

func (w *writer) words(n int) {
	for range n {
		w.buf = append(append(w.buf, benchWords[min(w.rand.IntN(4000), w.rand.IntN(4000), w.rand.IntN(4000))]...), ' ')
	}
}

// message is one of 300, with a few words that are not always the same.
func (w *writer) message(n int) {
	r := min(w.rand.IntN(300), w.rand.IntN(300))
	for i := range n {
		w.buf = append(append(w.buf, benchWords[(r*13+i*(r+7))%4000]...), ' ')
	}
	w.words(2)
}

func (w *writer) number(n int) { w.buf = strconv.AppendInt(w.buf, int64(w.rand.IntN(n)), 10) }

// requestID names line n.
func requestID(n int) string { return fmt.Sprintf("%016x", uint64(n+1)*0x9e3779b97f4a7c15) }

func (w *writer) text() (string, logs.Level) {
	w.n++
	w.buf = w.buf[:0]
	level := logs.Info
	switch kind := w.rand.IntN(100); {
	case kind < 40:
		w.buf = append(w.buf, "10.0."...)
		w.number(4)
		w.buf = append(w.buf, '.')
		w.number(250)
		w.buf = append(w.buf, ` - - [01/May/2026:12:00:00 +0000] "GET /api/v1/`...)
		w.words(1)
		w.buf = append(w.buf[:len(w.buf)-1], '/')
		w.number(5000)
		w.buf = append(w.buf, ` HTTP/1.1" 200 `...)
		w.number(20000)
		w.buf = append(w.buf, ` "-" "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"`...)
	case kind < 75:
		w.buf = append(w.buf, `{"level":"info","ts":"2026-05-01T12:00:00.`...)
		w.number(1000)
		w.buf = append(w.buf, `Z","caller":"server/handler.go:`...)
		w.number(400)
		w.buf = append(w.buf, `","msg":"`...)
		w.message(5)
		w.buf = append(w.buf, `","user":`...)
		w.number(3000)
		w.buf = append(w.buf, `,"took_ms":`...)
		w.number(900)
		w.buf = append(w.buf, '}')
	case kind < 99:
		w.buf = append(w.buf, "2026-05-01 12:00:00 DEBUG worker-"...)
		w.number(16)
		w.buf = append(w.buf, ": "...)
		w.message(12)
		w.buf, level = append(w.buf, "done"...), logs.Debug
	default:
		w.buf, level = append(w.buf, "ERROR connection refused by upstream database after "...), logs.Error
		w.number(10000)
		w.buf = append(w.buf, " ms: "...)
		w.message(6)
	}
	if w.n%4 == 0 {
		w.buf = append(append(w.buf, " request="...), requestID(w.n)...)
	}
	return string(w.buf), level
}

func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	must(t, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// resident gives the process's memory in MiB: what it has now, or the most since resetPeak.
func resident(t *testing.T, field string) float64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	must(t, err)
	_, rest, _ := bytes.Cut(status, []byte(field+":"))
	n, err := strconv.Atoi(string(bytes.Fields(rest)[0]))
	must(t, err)
	return float64(n) / 1024
}

func resetPeak(t *testing.T) { must(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)) }

func TestBenchLogs(t *testing.T) {
	t.Run("write", benchWrite)
	t.Run("search", benchSearch)
}

// benchWrite writes 20,000 lines a second for a minute, through the Keeper.
func benchWrite(t *testing.T) {
	store := openLogs(t, filepath.Join(t.TempDir(), "logs.db"))
	k := logs.New(logs.Config{Store: store, Limits: logs.DefaultLimits})
	w := &writer{rand: rand.New(rand.NewPCG(1, 1))}
	debug.FreeOSMemory() // what other benchmarks have left
	resetPeak(t)
	cpu, memory := cpuTime(t), resident(t, "VmRSS")
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	running.Go(func() { _ = k.Run(ctx) }) // it ends with ctx
	const seconds, ticks = 60, 20
	var text int64
	clock := time.NewTicker(time.Second / ticks)
	begun := time.Now()
	for range seconds * ticks {
		<-clock.C
		for s := range benchSandboxes {
			lines := make([]logs.Line, benchRate/ticks/benchSandboxes)
			for i := range lines {
				lines[i].Text, _ = w.text()
				lines[i].Sandbox, lines[i].Service = fmt.Sprintf("sandbox%09d", s), "web"
				text += int64(len(lines[i].Text))
			}
			k.Append(lines...)
		}
	}
	took := time.Since(begun)
	stop()
	running.Wait()
	cpu, peak := cpuTime(t)-cpu, resident(t, "VmHWM")-memory
	each, disk, err := k.Usage(t.Context(), logs.All())
	must(t, err)
	lines := int64(0)
	for _, u := range each {
		lines += u.Lines
	}
	t.Logf("%d lines in %s: %.1f %% of a core, %.0f MiB more, %.2f of the lines' bytes on the disk, %d dropped", lines, took.Round(time.Second/10),
		100*cpu.Seconds()/took.Seconds(), peak, float64(disk)/float64(text), k.Dropped())
	for _, c := range []benchtest.Case{
		benchtest.Amount("log: 20,000 lines/s for a minute, lost", "0", "lines", float64(seconds*benchRate-lines)),
		benchtest.Amount("log: 20,000 lines/s for a minute", "≤ 50", "% of a core", 100*cpu.Seconds()/took.Seconds()),
		benchtest.Amount("log: 20,000 lines/s for a minute, memory more", "≤ 100", "MiB", peak),
	} {
		benchtest.Record(t, benchtest.Deep, c)
	}
	if lines != seconds*benchRate || k.Dropped() > 0 || cpu > took/2 || peak > 100 {
		t.Error("want all lines, at most half of a core, and at most 100 MiB more")
	}
}

// benchSearch searches LOGS_MB of lines (5,000 if unset), in the file LOGS_DB, which is made if it is not there and kept.
func benchSearch(t *testing.T) {
	path := cmp.Or(os.Getenv("LOGS_DB"), filepath.Join(t.TempDir(), "logs.db"))
	megabytes, err := strconv.Atoi(cmp.Or(os.Getenv("LOGS_MB"), "5000"))
	must(t, err)
	store := openLogs(t, path)
	if store.Last() == 0 {
		buildLogs(t, store, int64(megabytes)<<20)
	}
	k := logs.New(logs.Config{Store: store})
	each, disk, err := k.Usage(t.Context(), logs.All())
	must(t, err)
	var lines, text, stored int64
	for _, u := range each {
		lines, text, stored = lines+u.Lines, text+u.Text, stored+u.Stored
	}
	t.Logf("%d lines of %d MiB: %.3f of the lines' bytes on the disk (estimated %.3f)", lines, text>>20, float64(disk)/float64(text), float64(stored)/float64(text))
	benchtest.Record(t, benchtest.Deep, benchtest.Amount("log: disk, index included", "≤ 0.5", "of the lines' bytes", float64(disk)/float64(text)))
	if disk > text/2 {
		t.Error("want at most half")
	}
	for _, c := range searchCases(lines) {
		c.run(t, k, megabytes)
	}
}

// searchCase is a kind of query.
type searchCase struct {
	name  string
	query func() logs.Query
	least int  // lines that it finds
	late  bool // it may need more than the limit
}

func searchCases(lines int64) []searchCase {
	r := rand.New(rand.NewPCG(3, 3))
	all, member := logs.All(), logs.Only("sandbox000000003")
	return []searchCase{
		{"rare word", func() logs.Query {
			return logs.Query{Scope: all, Filter: logs.Filter{Text: requestID(4 + 4*r.IntN(int(lines)/4-1))}}
		}, 1, false},
		{"no such word", func() logs.Query {
			return logs.Query{Scope: all, Filter: logs.Filter{Text: requestID(-2 - r.IntN(1e6))}}
		}, 0, false},
		{"common word", func() logs.Query { return logs.Query{Scope: all, Filter: logs.Filter{Text: benchWords[r.IntN(500)]}} }, 100, false},
		{"phrase", func() logs.Query {
			return logs.Query{Scope: all, Filter: logs.Filter{Text: pickOf(r, `"connection refused"`, `"refused by upstream database"`, `"by upstream database after"`, `"GET /api/v1"`, `"worker-7"`)}}
		}, 100, false},
		{"phrase with a rare word", func() logs.Query {
			n := 4 + 4*r.IntN(int(lines)/4-1)
			return logs.Query{Scope: all, Filter: logs.Filter{Text: `"request=` + requestID(n) + `"`}}
		}, 1, false},
		{"phrase and a short prefix", func() logs.Query {
			return logs.Query{Scope: all, Filter: logs.Filter{Text: fmt.Sprintf(`"connection refused" %d*`, 1+r.IntN(9))}}
		}, 100, false},
		{"prefix", func() logs.Query {
			return logs.Query{Scope: all, Filter: logs.Filter{Text: requestID(4 + 4*r.IntN(int(lines)/4-1))[:12] + "*"}}
		}, 1, false},
		{"errors", func() logs.Query {
			return logs.Query{Scope: all, Filter: logs.Filter{Levels: []logs.Level{logs.Error}}}
		}, 100, false},
		{"newest", func() logs.Query { return logs.Query{Scope: all} }, 100, false},
		{"errors of a member", func() logs.Query {
			return logs.Query{Scope: member, Filter: logs.Filter{Levels: []logs.Level{logs.Error}}}
		}, 100, false},
		{"an hour ago", func() logs.Query {
			return logs.Query{Scope: all, Until: time.Now().Add(-time.Hour), Filter: logs.Filter{Text: benchWords[r.IntN(500)]}}
		}, 0, false},
		{"words that are never together", func() logs.Query {
			return logs.Query{Scope: all, Filter: logs.Filter{Text: "mozilla refused " + benchWords[r.IntN(500)]}}
		}, 0, true},
	}
}

func (c searchCase) run(t *testing.T, k *logs.Keeper, megabytes int) {
	t.Helper()
	var took []time.Duration
	var partial int
	for range 40 {
		q := c.query()
		begun := time.Now()
		found, err := k.Search(t.Context(), q)
		must(t, err)
		took = append(took, time.Since(begun))
		if len(found.Lines) < c.least {
			t.Errorf("%s: %q gives %d lines", c.name, q.Text, len(found.Lines))
		}
		if found.Next != 0 && len(found.Lines) < logs.DefaultLimit {
			partial++
		}
	}
	goal := fmt.Sprintf("p95 ≤ %v", benchMost)
	if c.late {
		goal = ""
	}
	benchtest.Record(t, benchtest.Deep, benchtest.Times(fmt.Sprintf("log: newest 100 hits in %d MB: %s", megabytes, c.name), goal, took))
	slices.Sort(took)
	p95 := took[len(took)*95/100]
	t.Logf("%-30s p50 %6.1f ms, p95 %6.1f ms, most %6.1f ms; %d of %d ended by the budget", c.name, ms(took[len(took)/2]), ms(p95), ms(took[len(took)-1]), partial, len(took))
	if !c.late && p95 > benchMost {
		t.Errorf("%s takes %s", c.name, p95)
	}
}

func pickOf(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// buildLogs fills a store with lines of the last ten hours.
func buildLogs(t *testing.T, store *Logs, size int64) {
	w := &writer{rand: rand.New(rand.NewPCG(2, 2))}
	begun, cpu := time.Now(), cpuTime(t)
	step := 10 * time.Hour.Microseconds() / (size / 170)
	at := begun.Add(-10*time.Hour).UnixMicro() / 1000 * 1000
	lines := 0
	for text := int64(0); text < size; {
		batch := make([]logs.Line, logs.BatchLines)
		for i := range batch {
			at += step
			s, level := w.text()
			batch[i] = logs.Line{ID: logs.ID(at), Time: time.UnixMicro(at), Sandbox: fmt.Sprintf("sandbox%09d", w.rand.IntN(benchSandboxes)), Service: "web", Level: level, Text: s}
			text += int64(len(s))
		}
		must(t, store.Add(t.Context(), batch))
		lines += len(batch)
	}
	t.Logf("built in %s: %.0f lines a CPU second, most resident %.0f MiB", time.Since(begun).Round(time.Second), float64(lines)/(cpuTime(t)-cpu).Seconds(), resident(t, "VmHWM"))
}
