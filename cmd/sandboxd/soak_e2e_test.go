//go:build e2e

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The size of the soak. soakTimeEnv has it last as long as it should now and then ("30m", with 30 sandboxes); otherwise it is a short one.
const (
	soakTimeEnv    = "SANDBOXD_TEST_SOAK_TIME"
	soakTime       = 20 * time.Second
	soakBoxes      = 30
	soakFewBoxes   = 6
	soakAtOnce     = 6
	soakSnapshots  = 3 // that a sandbox keeps
	soakLookEvery  = time.Minute
	soakGoroutines = 20 // more than before is a leak
	soakFiles      = 12
	soakMemory     = 64 // MiB
	soakDisk       = 96 // MiB, in the pool
)

// soakBox is one sandbox, and what it has to have. Its worker alone uses it.
type soakBox struct {
	*soak
	name       string
	made       bool
	home, root int // the versions of its home and of its root file system
	snapshots  []soakSnapshot
}

type soakSnapshot struct {
	id         string
	home, root int
}

// soak is one run.
type soak struct {
	s       *server
	address string // of its figures
	mu      sync.Mutex
	done    map[string]int // by kind of operation
}

// soakFigures are what must not grow.
type soakFigures struct {
	goroutines, files, loops, containers, volumes, networks, images, folders int
	memory, disk                                                             float64 // MiB
}

// TestSoak_NothingLeaks takes sandboxes through all that is done to them, again and again, looks at their data each time, and wants nothing
// to be left of it all in the end.
func TestSoak_NothingLeaks(t *testing.T) {
	t.Parallel()
	long, boxes := soakTime, soakFewBoxes
	if d, err := time.ParseDuration(os.Getenv(soakTimeEnv)); err == nil {
		long, boxes = d, soakBoxes
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(soakToken), 0o600); err != nil {
		t.Fatal(err)
	}
	k := &soak{address: freeAddr(t), done: map[string]int{}}
	k.s = newPoolServer(t, "2GiB", "--prebuild", "", "--metrics-listen", k.address, "--metrics-token-file", token)
	k.work(t, boxes, soakTime) // what is allocated once
	k.deleteAll(t)
	before := k.figures(t)
	t.Logf("before: %+v", before)
	ended := make(chan struct{})
	var looks sync.WaitGroup
	looks.Go(func() {
		tick := time.NewTicker(soakLookEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				t.Logf("meanwhile: %s", k.glance())
			case <-ended:
				return
			}
		}
	})
	k.work(t, boxes, long)
	close(ended)
	looks.Wait()
	k.deleteAll(t)
	k.s.checkNothingLeft()
	k.until(t, before)
	for _, what := range slices.Sorted(maps.Keys(k.done)) {
		t.Logf("%6d × %s", k.done[what], what)
	}
}

const soakToken = "soak-0123456789abcdef"

// work has a few workers, each with sandboxes of its own, do what comes until the time is over.
func (k *soak) work(t *testing.T, boxes int, long time.Duration) {
	t.Helper()
	end := time.Now().Add(long)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var workers sync.WaitGroup
	for n := range soakAtOnce {
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		var mine []*soakBox
		for i := n; i < boxes; i += soakAtOnce {
			mine = append(mine, &soakBox{soak: k, name: fmt.Sprintf("soak%d", i)})
		}
		workers.Go(func() {
			for time.Now().Before(end) && !t.Failed() {
				b := mine[random.IntN(len(mine))]
				what, err := b.step(random)
				if err != nil {
					t.Errorf("%s: %s: %v", b.name, what, err)
				}
				k.mu.Lock()
				k.done[what]++
				k.mu.Unlock()
			}
		})
	}
	workers.Wait()
}

// step does one thing to a sandbox, and looks at its data.
func (b *soakBox) step(random *rand.Rand) (what string, err error) {
	if !b.made {
		b.made, b.home, b.root, b.snapshots = true, 0, 0, nil
		if err := b.ask("POST", "/sandboxes?wait=ready", map[string]any{"name": b.name, "template": "base", "memory": "256MiB", "cpus": 1}, nil); err != nil {
			return "create", err
		}
		return "create", b.writes(random)
	}
	steps := []struct {
		what string
		do   func(*rand.Rand) error
	}{
		{"write", b.writes}, {"write", b.writes}, {"freeze", b.rests("frozen")}, {"put to sleep", b.rests("asleep")}, {"stop and start", b.stops},
		{"snapshot", b.takes}, {"snapshot", b.takes}, {"restore", b.reverts}, {"clone", b.clones}, {"back up and restore", b.backsUp}, {"delete", b.deletes},
	}
	step := steps[random.IntN(len(steps))]
	if err := step.do(random); err != nil || !b.made {
		return step.what, err
	}
	return step.what, b.looks(b.name)
}

// ask calls the API.
func (k *soak) ask(method, path string, in, out any) error {
	status, body, err := k.s.try(method, path, in)
	if err != nil {
		return err
	}
	if status >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %d %s", method, path, status, body)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(body, out)
}

// runs runs a command in a sandbox, which wakes it, and wants it to print something.
func (k *soak) runs(name, command, want string) error {
	var out execBody
	if err := k.ask("POST", "/sandboxes/"+name+"/exec", map[string]any{"command": command}, &out); err != nil {
		return err
	}
	if out.ExitCode != 0 || out.Stdout != want {
		return fmt.Errorf("%q in %s: %+v, want %q", command, name, out, want)
	}
	return nil
}

// looks wants a sandbox to have the data of its versions.
func (b *soakBox) looks(name string) error {
	return b.runs(name, "cat version /opt/version && sha256sum -c --quiet sum", fmt.Sprintf("%d\n%d\n", b.home, b.root))
}

func (b *soakBox) writes(random *rand.Rand) error {
	b.home, b.root = random.Int(), random.Int()
	return b.runs(b.name, fmt.Sprintf("head -c %d /dev/urandom > noise && sha256sum noise > sum && echo %d > version && echo %d | sudo -n tee /opt/version > /dev/null || exit 1",
		random.IntN(1_000_000), b.home, b.root), "")
}

func (b *soakBox) rests(state string) func(*rand.Rand) error {
	return func(*rand.Rand) error {
		status, body, err := b.s.try("POST", "/sandboxes/"+b.name+"/sleep?wait="+state, map[string]any{"frozen": state == "frozen"})
		if err == nil && status != http.StatusOK && status != http.StatusConflict { // in conflict with what it is still used for
			err = fmt.Errorf("%d %s", status, body)
		}
		return err
	}
}

func (b *soakBox) stops(*rand.Rand) error {
	if err := b.ask("POST", "/sandboxes/"+b.name+"/stop?wait=stopped", nil, nil); err != nil {
		return err
	}
	return b.ask("POST", "/sandboxes/"+b.name+"/start?wait=ready", nil, nil)
}

func (b *soakBox) takes(*rand.Rand) error {
	var made snapshotBody
	if err := b.ask("POST", "/sandboxes/"+b.name+"/snapshots?wait=ready", map[string]any{}, &made); err != nil {
		return err
	}
	b.snapshots = append(b.snapshots, soakSnapshot{made.ID, b.home, b.root})
	if len(b.snapshots) <= soakSnapshots {
		return nil
	}
	oldest := b.snapshots[0]
	b.snapshots = b.snapshots[1:]
	return b.ask("DELETE", "/sandboxes/"+b.name+"/snapshots/"+oldest.id, nil, nil)
}

func (b *soakBox) reverts(random *rand.Rand) error {
	if len(b.snapshots) == 0 {
		return nil
	}
	to := b.snapshots[random.IntN(len(b.snapshots))]
	b.home, b.root = to.home, to.root
	return b.ask("POST", "/sandboxes/"+b.name+"/snapshots/"+to.id+"/restore", nil, nil)
}

func (b *soakBox) clones(*rand.Rand) error {
	name := b.name + "-clone"
	if err := b.ask("POST", "/sandboxes/"+b.name+"/clone", map[string]any{"name": name}, nil); err != nil {
		return err
	}
	if err := b.looks(name); err != nil {
		return err
	}
	return b.ask("DELETE", "/sandboxes/"+name+"?wait=gone", nil, nil)
}

func (b *soakBox) backsUp(*rand.Rand) error {
	var made backupBody
	if err := b.ask("POST", "/sandboxes/"+b.name+"/backups?wait=ready", nil, &made); err != nil {
		return err
	}
	if err := b.runs(b.name, "echo spoilt | tee version noise", "spoilt\n"); err != nil {
		return err
	}
	if err := b.ask("PUT", "/sandboxes/"+b.name+"/restore?backup="+made.ID, nil, nil); err != nil {
		return err
	}
	return b.ask("DELETE", "/backups/"+made.ID, nil, nil)
}

func (b *soakBox) deletes(*rand.Rand) error {
	b.made = false
	return b.ask("DELETE", "/sandboxes/"+b.name+"?wait=gone", nil, nil)
}

// deleteAll deletes all sandboxes.
func (k *soak) deleteAll(t *testing.T) {
	t.Helper()
	for _, b := range k.s.settle() {
		if err := k.ask("DELETE", "/sandboxes/"+b.Name+"?wait=gone", nil, nil); err != nil {
			t.Error(err)
		}
	}
}

// glance is what can be seen without harm while it works.
func (k *soak) glance() string {
	f := k.s.scrape(k.address, soakToken)
	return fmt.Sprintf("goroutines %.0f, open files %.0f, resident %.0f MiB, pool %.0f MiB", f.value("go_goroutines"), f.value("process_open_fds"),
		f.value("process_resident_memory_bytes")/(1<<20), k.pooled())
}

// pooled is what the pool's file system holds, in MiB.
func (k *soak) pooled() float64 {
	out, err := exec.Command("df", "--output=used", "-BK", filepath.Join(k.s.data, "pool")).Output()
	var kib float64
	if _, last, ok := bytes.Cut(bytes.TrimSpace(out), []byte("\n")); err != nil || !ok {
		return -1
	} else if _, err := fmt.Sscanf(string(last), "%fK", &kib); err != nil {
		return -1
	}
	return kib / 1024
}

// figures reads them.
func (k *soak) figures(t *testing.T) soakFigures {
	t.Helper()
	lines := func(text string) int { return len(strings.Fields(text)) }
	f, label := k.s.scrape(k.address, soakToken), "label=sandboxd.instance="+k.s.instance()
	loops, err := exec.Command("losetup", "--noheadings", "--output", "BACK-FILE", "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	return soakFigures{
		goroutines: int(f.value("go_goroutines")), files: int(f.value("process_open_fds")), memory: f.value("process_resident_memory_bytes") / (1 << 20),
		loops: strings.Count(string(loops), k.s.data), containers: lines(engine(t, "ps", "-aq", "--filter", label)), volumes: lines(engine(t, "volume", "ls", "-q", "--filter", label)),
		networks: lines(engine(t, "network", "ls", "-q", "--filter", label)), images: lines(k.s.snapshotParts()), folders: len(k.s.pooled()), disk: k.pooled(),
	}
}

// until waits until nothing is more than it was, but for what is not a leak.
func (k *soak) until(t *testing.T, before soakFigures) {
	t.Helper()
	var now soakFigures
	grown := func() (what []string) {
		now = k.figures(t)
		for name, more := range map[string]bool{
			"goroutines": now.goroutines > before.goroutines+soakGoroutines, "files": now.files > before.files+soakFiles, "memory": now.memory > before.memory+soakMemory,
			"loop devices": now.loops > before.loops, "containers": now.containers > before.containers, "volumes": now.volumes > before.volumes,
			"networks": now.networks > before.networks, "images": now.images > before.images, "folders": now.folders > before.folders, "disk": now.disk > before.disk+soakDisk,
		} {
			if more {
				what = append(what, name)
			}
		}
		return what
	}
	deadline := time.Now().Add(2 * eventLimit)
	for more := grown(); len(more) > 0; more = grown() {
		if time.Now().After(deadline) {
			t.Errorf("more than before: %s", strings.Join(more, ", "))
			break
		}
		pause := time.NewTimer(lookEvery)
		<-pause.C
	}
	t.Logf("after: %+v", now)
}
