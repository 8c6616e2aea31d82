//go:build engine

package docker

import (
	"fmt"
	"math"
	"net"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/metrics"
	"sandboxd/internal/metrics/cadvisor"
	"sandboxd/internal/sandbox"
)

// cadvisorBinary is made by "make bin/cadvisor", which "make test-engine" does.
const cadvisorBinary = "../../bin/cadvisor"

// startCAdvisor runs a real one on e's host until the test ends, and gives a source that asks it for e's containers.
func startCAdvisor(t *testing.T, e *Engine) *cadvisor.Source {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	cmd := exec.Command(cadvisorBinary, "-listen_ip", "127.0.0.1", "-port", strconv.Itoa(port), "-docker", e.Info().Host, "-docker_only",
		"-housekeeping_interval", "2s", "-allow_dynamic_housekeeping=false", "-disable_metrics", "disk,tcp,udp,advtcp,percpu,sched,hugetlb,process")
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: run make bin/cadvisor", err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	s, err := cadvisor.New(fmt.Sprintf("http://127.0.0.1:%d", port), e.c.Instance)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// until asks again until done, for a minute at most.
func until(t *testing.T, every time.Duration, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(every)
	defer tick.Stop()
	end := time.After(time.Minute)
	for !done() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("it took more than a minute until %s", what)
		}
	}
}

// history is what a source told of a sandbox, oldest first.
type history struct {
	mu       sync.Mutex
	readings []metrics.Reading
}

func (h *history) add(r metrics.Reading) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readings = append(h.readings, r)
}

func (h *history) reaches(at time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.readings)
	return n > 0 && h.readings[n-1].Time.After(at)
}

// at gives the figures at a moment between two readings.
func (h *history) at(t *testing.T, at time.Time, figure func(metrics.Usage) float64) float64 {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := 1; i < len(h.readings); i++ {
		a, b := h.readings[i-1], h.readings[i]
		if at.Before(a.Time) || at.After(b.Time) {
			continue
		}
		part := float64(at.Sub(a.Time)) / float64(b.Time.Sub(a.Time))
		return figure(a.Usage) + part*(figure(b.Usage)-figure(a.Usage))
	}
	t.Fatalf("there are no readings around %s", at)
	return 0
}

// known is a load: half a core, which its limit cuts it down to, all the while; 40 MiB; about 1 MB/s to it and a good deal from it.
func known(t *testing.T, e *Engine, id string) {
	t.Helper()
	found, err := e.client.Load().ContainerInspect(t.Context(), e.resource(id))
	if err != nil {
		t.Fatal(err)
	}
	gateway := found.NetworkSettings.Networks[e.network.name].Gateway
	load := `exec 3>/dev/udp/` + gateway + `/9; while :; do printf %01000d 0 >&3; done`
	if code, out := inside(t, e, id, "0", "head -c 40M /dev/zero >/dev/shm/held && { setsid bash -c '"+load+"' >/dev/null 2>&1 </dev/null & }"); code != 0 {
		t.Fatal(out)
	}
	to, err := net.Dial("udp", net.JoinHostPort(addressOf(t, e, id).String(), "9"))
	if err != nil {
		t.Fatal(err)
	}
	beside(t, func() {
		for range 20 {
			to.Write(make([]byte, 1000)) // one that nobody listens for is counted too
		}
	})
}

// beside does something fifty times a second, until the test ends.
func beside(t *testing.T, do func()) {
	ctx := t.Context()
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			do()
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	t.Cleanup(running.Wait)
}

func TestCAdvisor_TellsTheSameAsTheCgroupFiles(t *testing.T) {
	const stretch = 10 * time.Second
	e := openTest(t)
	groups, why := NewGroups(e)
	if groups == nil {
		t.Fatal(why)
	}
	source := startCAdvisor(t, e)
	box := running(t, e, "serve", func(b *sandbox.ContainerSpec) { b.Limits.CPUs = 0.5 })
	known(t, e, box.ID)
	var files history
	beside(t, func() {
		if found, err := groups.Read(t.Context(), []string{box.ID}); err == nil && len(found) == 1 {
			files.add(found[box.ID])
		}
	})
	begin := time.Now().Add(time.Second)
	var first, last metrics.Reading
	until(t, 200*time.Millisecond, "cAdvisor had told of "+stretch.String(), func() bool {
		found, err := source.Read(t.Context(), []string{box.ID, "0000000000000000"})
		r, ok := found[box.ID]
		if err != nil || !ok || len(found) != 1 || r.Time.Before(begin) {
			return false // it does not listen yet, or has not seen the container
		}
		if first.Time.IsZero() {
			first = r
		}
		last = r
		return last.Time.Sub(first.Time) >= stretch && files.reaches(last.Time)
	})
	for _, f := range []struct {
		what   string
		figure func(metrics.Usage) float64
		slack  float64 // for what moves in steps
	}{
		{"CPU", func(u metrics.Usage) float64 { return u.CPU.Seconds() }, 0.05},
		{"waiting", func(u metrics.Usage) float64 { return u.Throttled.Seconds() }, 0.2}, // on a busy machine it never waits for its limit
		{"received", func(u metrics.Usage) float64 { return float64(u.NetworkRx) }, 64 << 10},
		{"sent", func(u metrics.Usage) float64 { return float64(u.NetworkTx) }, 64 << 10},
	} {
		told, read := f.figure(last.Usage)-f.figure(first.Usage), files.at(t, last.Time, f.figure)-files.at(t, first.Time, f.figure)
		within5(t, f.what, told, read, f.slack)
	}
	memory := func(u metrics.Usage) float64 { return float64(u.Memory) }
	within5(t, "memory", memory(last.Usage), files.at(t, last.Time, memory), 0)
	if last.CPU <= first.CPU || last.NetworkRx-first.NetworkRx < 1<<20 || last.NetworkTx <= first.NetworkTx {
		t.Errorf("there was no load from %+v to %+v", first, last)
	}
	if last.MemoryLimit != box.Limits.Memory || last.Memory < 40<<20 {
		t.Errorf("memory %d of %d, want 40 MiB of %d", last.Memory, last.MemoryLimit, box.Limits.Memory)
	}
	if err := e.Stop(t.Context(), box.ID, time.Second); err != nil {
		t.Fatal(err)
	}
	until(t, 200*time.Millisecond, "cAdvisor told no more of a stopped sandbox", func() bool {
		found, err := source.Read(t.Context(), []string{box.ID})
		return err == nil && len(found) == 0
	})
}

// within5 compares what cAdvisor tells with what the cgroup files tell.
func within5(t *testing.T, what string, told, files, slack float64) {
	t.Helper()
	t.Logf("%-8s cAdvisor %.4g, cgroup files %.4g: %+.2f %%", what, told, files, 100*(told-files)/max(files, 1e-9))
	if math.Abs(told-files) > 0.05*files+slack {
		t.Errorf("cAdvisor and the cgroup files do not agree on %s", what)
	}
}
