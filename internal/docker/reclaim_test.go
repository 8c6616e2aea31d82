package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// containerID is a container's id as engines make them.
var containerID = strings.Repeat("0123456789abcdef", 4)

// put writes a file of a fake kernel.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// readText reads a file of a fake kernel.
func readText(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// fakeKernel has cgroup v2 and 10 GiB of swap, and moves to it what it is asked for.
func fakeKernel(t *testing.T) kernel {
	t.Helper()
	dir := t.TempDir()
	k := kernel{proc: filepath.Join(dir, "proc"), cgroup: filepath.Join(dir, "cgroup")}
	put(t, filepath.Join(k.proc, "meminfo"), "MemTotal:       8 kB\nSwapTotal:      10485760 kB\nSwapFree:       10485760 kB\n")
	put(t, filepath.Join(k.cgroup, "cgroup.controllers"), "cpu memory\n")
	put(t, filepath.Join(k.cgroup, "memory.reclaim"), "")
	k.shrink = func(group string, bytes int64) error {
		now, err := readNumber(filepath.Join(group, "memory.current"))
		put(t, filepath.Join(group, "memory.current"), fmt.Sprint(now-bytes))
		return err
	}
	return k
}

// fakeGroup makes the cgroup of a container that holds so much memory.
func fakeGroup(t *testing.T, k kernel, at string, memory int64) string {
	t.Helper()
	group := filepath.Join(k.cgroup, at)
	put(t, filepath.Join(group, "memory.reclaim"), "")
	put(t, filepath.Join(group, "memory.current"), fmt.Sprintln(memory))
	put(t, filepath.Join(group, "memory.swap.current"), "4096\n")
	put(t, filepath.Join(group, "memory.swap.max"), "0\n")
	return group
}

func TestObstacle_SaysWhatIsMissing(t *testing.T) {
	for want, spoil := range map[string]func(k kernel) error{
		"":                 func(kernel) error { return nil },
		"no swap":          func(k kernel) error { return os.WriteFile(k.proc+"/meminfo", []byte("SwapTotal: 0 kB\n"), 0o600) },
		"cannot be told":   func(k kernel) error { return os.Remove(k.proc + "/meminfo") },
		"only its own":     func(k kernel) error { return os.WriteFile(k.cgroup+"/cgroup.type", nil, 0o600) },
		"older than 5.19":  func(k kernel) error { return os.Remove(k.cgroup + "/memory.reclaim") },
		"does not see the": func(k kernel) error { return os.Remove(k.cgroup + "/cgroup.controllers") },
	} {
		k := fakeKernel(t)
		if err := spoil(k); err != nil {
			t.Fatal(err)
		}
		if got := k.obstacle(); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%q: got %q", want, got)
		}
	}
}

func TestGroup_IsTheContainersAndNoOthers(t *testing.T) {
	const pid = 42
	for name, c := range map[string]struct{ line, made, want string }{
		"systemd":           {"0::/system.slice/docker-ID.scope", "system.slice/docker-ID.scope", "system.slice/docker-ID.scope"},
		"cgroupfs":          {"1:name=x:/\n0::/docker/ID\n", "docker/ID", "docker/ID"},
		"a group below":     {"0::/docker/ID/init/more", "docker/ID", "docker/ID"},
		"another parent":    {"0::/sandboxes/ID", "sandboxes/ID", "sandboxes/ID"},
		"another process":   {"0::/user.slice/shell", "user.slice/shell", ""},
		"known place":       {"0::/user.slice/shell", "docker/ID", "docker/ID"},
		"above our own":     {"0::/../../docker/ID", "other/ID", ""},
		"no process":        {"", "system.slice/docker-ID.scope", "system.slice/docker-ID.scope"},
		"nothing that fits": {"0::/docker/ID", "elsewhere", ""},
	} {
		k := fakeKernel(t)
		full := func(s string) string { return strings.ReplaceAll(s, "ID", containerID) }
		if c.line != "" {
			put(t, filepath.Join(k.proc, fmt.Sprint(pid), "cgroup"), full(c.line))
		}
		fakeGroup(t, k, full(c.made), 1)
		got, err := k.group(containerID, pid)
		if want := filepath.Join(k.cgroup, full(c.want)); c.want != "" && (got != want || err != nil) {
			t.Errorf("%s: got %q (%v), want %q", name, got, err, want)
		}
		if c.want == "" && !errors.Is(err, errNoGroup) {
			t.Errorf("%s: got %q (%v)", name, got, err)
		}
	}
	if got, err := fakeKernel(t).group("", 0); err == nil {
		t.Errorf("no container has the group %q", got)
	}
}

func TestReclaim_TakesAllWithSwapThatIsLent(t *testing.T) {
	k := fakeKernel(t)
	const held = 100 << 20
	group := fakeGroup(t, k, "docker/"+containerID, held)
	shrink, steps := k.shrink, 0
	k.shrink = func(group string, bytes int64) error {
		steps++
		if bytes > reclaimStep {
			t.Errorf("a step of %d bytes", bytes)
		}
		if lent := readText(t, group+"/memory.swap.max"); lent != fmt.Sprint(held+4096) {
			t.Errorf("while it is reclaimed, its swap is %s", lent)
		}
		return shrink(group, bytes)
	}
	freed, err := k.reclaim(t.Context(), group)
	if err != nil || freed < held-reclaimRest || steps != 7 {
		t.Errorf("%d freed in %d steps, %v", freed, steps, err)
	}
	if left := readText(t, group+"/memory.swap.max"); left != "0" {
		t.Errorf("afterwards its swap is %s", left)
	}
	if err := os.Remove(group + "/memory.swap.max"); err != nil { // no account of swap
		t.Fatal(err)
	}
	put(t, group+"/memory.current", fmt.Sprint(held))
	k.shrink = shrink
	if freed, err := k.reclaim(t.Context(), group); err != nil || freed == 0 || exists(group+"/memory.swap.max") {
		t.Errorf("without an account of swap: %d freed, %v", freed, err)
	}
}

func TestReclaim_EndsWhenItShould(t *testing.T) {
	const held = 100 << 20
	for name, c := range map[string]struct {
		second func(k kernel, cancel func()) error // what the second step finds
		steps  int
		want   error
	}{
		"nothing more to find": {func(kernel, func()) error { return unix.EAGAIN }, 2, nil},
		"the caller leaves":    {func(_ kernel, cancel func()) error { cancel(); return nil }, 2, nil},
		"the group is gone":    {func(kernel, func()) error { return unix.ENODEV }, 2, unix.ENODEV},
		"swap runs low": {func(k kernel, _ func()) error {
			return os.WriteFile(k.proc+"/meminfo", []byte("SwapTotal: 1000 kB\nSwapFree: 90 kB\n"), 0o600)
		}, 2, nil},
	} {
		k := fakeKernel(t)
		group := fakeGroup(t, k, "docker/"+containerID, held)
		ctx, cancel := context.WithCancel(t.Context())
		shrink, steps := k.shrink, 0
		k.shrink = func(group string, bytes int64) error {
			if steps++; steps == 2 {
				return c.second(k, cancel)
			}
			return shrink(group, bytes)
		}
		freed, err := k.reclaim(ctx, group)
		cancel()
		if !errors.Is(err, c.want) || steps != c.steps || freed != reclaimStep || readText(t, group+"/memory.swap.max") != "0" {
			t.Errorf("%s: %d freed in %d steps, %v", name, freed, steps, err)
		}
	}
}

// reclaiming is an engine that pauses and thaws whatever it is told to, on a host with a fake kernel.
func reclaiming(t *testing.T, k kernel) *Engine {
	t.Helper()
	e := playEngine(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			fmt.Fprintf(w, `{"Id":%q,"State":{"Status":"paused","Running":true,"Paused":true,"Pid":42}}`, containerID)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	e.facts.Store(&facts{info: Info{Cgroup: "2", Host: "unix:///run/docker.sock"}})
	e.reclaims = newReclaims(k)
	return e
}

func TestFreeze_ReclaimsBehindItsCallersBack(t *testing.T) {
	k := fakeKernel(t)
	group := fakeGroup(t, k, "docker/"+containerID, 64<<20)
	e := reclaiming(t, k)
	if err := e.Freeze(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	e.running.Wait()
	if now, err := readNumber(group + "/memory.current"); err != nil || now > reclaimRest || len(e.reclaims.byID) != 0 {
		t.Errorf("%d bytes are left, %v; %v are under way", now, err, e.reclaims.byID)
	}
}

func TestFreeze_WithoutTheMeansToReclaimIsNoError(t *testing.T) {
	k := fakeKernel(t) // has no such group
	e := reclaiming(t, k)
	if err := e.Freeze(t.Context(), "1"); err != nil {
		t.Error(err)
	}
	e.running.Wait()
}

func TestThaw_EndsAReclaimAndDoesNotWaitForIt(t *testing.T) {
	k := fakeKernel(t)
	fakeGroup(t, k, "docker/"+containerID, 1<<30)
	var steps atomic.Int64
	begun, goOn := make(chan struct{}), make(chan struct{})
	shrink := k.shrink
	k.shrink = func(group string, bytes int64) error {
		if steps.Add(1) == 1 {
			close(begun)
			<-goOn
		}
		return shrink(group, bytes)
	}
	e := reclaiming(t, k)
	if err := e.Freeze(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	<-begun
	if err := e.Thaw(t.Context(), "1"); err != nil { // while the kernel is busy
		t.Error(err)
	}
	close(goOn)
	e.running.Wait()
	if steps.Load() != 1 {
		t.Errorf("%d steps", steps.Load())
	}
}

func TestReclaims_TheLaterTakesTheEarliersPlace(t *testing.T) {
	r := newReclaims(kernel{})
	first, firstDone := r.begin(t.Context(), "1")
	second, secondDone := r.begin(t.Context(), "1")
	if first.Err() == nil || second.Err() != nil {
		t.Errorf("first %v, second %v", first.Err(), second.Err())
	}
	firstDone()
	r.end("2")
	if r.end("1"); second.Err() == nil {
		t.Error("the second continues")
	}
	secondDone()
	r.end("1")
	if len(r.byID) != 0 {
		t.Errorf("left is %v", r.byID)
	}
}

// A wake has nothing to spare: one call to the engine, and nothing that waits.
func TestFreezeAndThaw_AreOneCallEach(t *testing.T) {
	var calls atomic.Int64
	e := playEngine(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		w.WriteHeader(http.StatusNoContent)
	})
	for name, call := range map[string]func(context.Context, string) error{"freeze": e.Freeze, "thaw": e.Thaw} {
		calls.Store(0)
		if err := call(t.Context(), "1"); err != nil || calls.Load() != 1 {
			t.Errorf("%s: %d calls, %v", name, calls.Load(), err)
		}
	}
}

// TestFreeze_IsTriedAgainWhenTheEngineGivesUp: runc does after seconds on a busy host.
func TestFreeze_IsTriedAgainWhenTheEngineGivesUp(t *testing.T) {
	var tries atomic.Int64
	e := playEngine(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			_, _ = io.WriteString(w, `{"Id":"1","State":{"Running":true}}`) // a client that is gone fails the test by itself
		case tries.Add(1) < lateTimes:
			<-time.After(lateFor + lateEvery)
			http.Error(w, `{"message":"unable to freeze"}`, http.StatusInternalServerError)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	})
	if err := e.Freeze(t.Context(), "1"); err != nil || tries.Load() != lateTimes {
		t.Errorf("%d tries, %v", tries.Load(), err)
	}
}

func TestFreezeSupport_SaysWhy(t *testing.T) {
	k := fakeKernel(t)
	e := reclaiming(t, k)
	for _, c := range []struct {
		info          Info
		can, reclaims bool
		why           string
	}{
		{Info{Cgroup: "2", Driver: "systemd", Host: "unix:///x"}, true, true, ""},
		{Info{Cgroup: "1", Driver: "cgroupfs", Host: "unix:///x"}, true, false, "cgroup v1"},
		{Info{Cgroup: "2", Driver: "systemd", Host: "tcp://127.0.0.1:1"}, true, false, "another machine"},
		{Info{Cgroup: "2", Driver: "none", Host: "unix:///x", Can: Capabilities{Rootless: true}}, false, false, "without root"},
		{Info{Cgroup: "1", Driver: "none", Host: "unix:///x", Can: Capabilities{Rootless: true}}, false, false, "without root"},
	} {
		e.facts.Store(&facts{info: c.info})
		can, reclaims, why := e.FreezeSupport()
		if can != c.can || reclaims != c.reclaims || !strings.Contains(why, c.why) || (c.why == "") != (why == "") {
			t.Errorf("%+v: %t %t %q", c.info, can, reclaims, why)
		}
	}
}

func TestClose_WaitsForAReclaimWhichEndsSoon(t *testing.T) {
	k := fakeKernel(t)
	fakeGroup(t, k, "docker/"+containerID, 1<<40)
	begun := make(chan struct{}, 1)
	k.shrink = func(string, int64) error {
		select {
		case begun <- struct{}{}:
		default:
		}
		return nil // it never gets less
	}
	e := reclaiming(t, k)
	if err := e.Freeze(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	<-begun
	began := time.Now()
	if err := e.Close(); err != nil || time.Since(began) > reclaimLimit/2 {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}

func TestUsage_LeavesOutLoopbackCachesAndTotals(t *testing.T) {
	const v1 = `{"read":"2026-11-21T13:38:23Z","cpu_stats":{"cpu_usage":{"total_usage":75979389}},
		"blkio_stats":{"io_service_bytes_recursive":[{"op":"Read","value":5},{"op":"Write","value":7},{"op":"Sync","value":12},{"op":"Total","value":12}]},
		"memory_stats":{"usage":4000,"stats":{"inactive_file":1,"total_inactive_file":1500}},
		"networks":{"eth0":{"rx_bytes":736,"tx_bytes":4},"eth1":{"rx_bytes":10,"tx_bytes":0},"lo":{"rx_bytes":9000,"tx_bytes":9000}}}`
	const v2 = `{"read":"2026-11-21T13:38:23Z","cpu_stats":{"cpu_usage":{"total_usage":1000}},
		"blkio_stats":{"io_service_bytes_recursive":[{"op":"read","value":5},{"op":"write","value":7}]},
		"memory_stats":{"usage":4000,"stats":{"inactive_file":5000}}}`
	for name, c := range map[string]struct {
		answer string
		want   [4]int64 // cpu, network, disk, memory
	}{
		"v1": {v1, [4]int64{75979389, 750, 12, 2500}}, "v2": {v2, [4]int64{1000, 0, 12, 0}},
	} {
		e := playEngine(t, func(w http.ResponseWriter, r *http.Request) {
			if q := r.URL.Query(); q.Get("one-shot") != "1" || q.Get("stream") != "0" {
				t.Errorf("asked for %s", r.URL)
			}
			io.WriteString(w, c.answer)
		})
		u, err := e.Usage(t.Context(), "1")
		if got := [4]int64{int64(u.CPU), u.Network, u.Disk, u.Memory}; err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
