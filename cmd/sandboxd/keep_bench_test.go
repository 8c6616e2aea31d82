//go:build bench

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/btrfs"
)

// How much is measured of backups, snapshots and clones.
const (
	benchBackups   = 3
	benchHome      = 1024 // MiB of a home that is backed up
	benchSnapshots = 5
	benchClones    = 10
)

// TestKeepBench measures backups, snapshots and clones alone.
func TestKeepBench(t *testing.T) { (&benches{t: t}).keeps() }

// keeps measures backups, restores, snapshots and clones beside the tools that a person would use instead.
func (b *benches) keeps() {
	s := newServer(b.t, "--prebuild", "")
	s.cli("template", "build", benchImage)
	s.create(map[string]any{"name": "kept", "template": benchImage})
	b.group(s, "snapshots", func() {
		for _, mib := range []int{100, 1000} {
			s.mixedHome("kept", mib)
			b.snapshots(s, mib)
		}
	})
	b.group(s, "backups", func() {
		s.mixedHome("kept", benchHome)
		b.backups(s)
	})
	b.group(s, "repository", func() {
		s.mixedHome("kept", repositoryHome(b.t))
		b.repository(s)
	})
	b.group(s, "clones", func() {
		s.mixedHome("kept", 10)
		b.clones(s, "home of 10 MiB")
	})
	b.group(nil, "pool", b.pool)
}

// pool measures snapshots, clones and restores of homes in a storage pool.
func (b *benches) pool() {
	s := newPoolServer(b.t, "14GiB", "--prebuild", "")
	s.cli("template", "build", benchImage)
	s.create(map[string]any{"name": "kept", "template": benchImage, "disk": "8GiB"})
	for _, mib := range []int{100, 1000, 4000} {
		s.mixedHome("kept", mib)
		b.poolSnapshots(s, mib)
	}
	s.mixedHome("kept", 1000)
	b.clones(s, "home of 1000 MiB in the pool")
}

// poolSnapshots measures those of a running sandbox, and of that the copy of its home alone.
func (b *benches) poolSnapshots(s *server, mib int) {
	t := b.t
	disk, err := poolDisk(&Config{Data: s.data})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := btrfs.Open(disk.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	home := filepath.Base(filepath.Dir(s.homeOf("kept"))) // its volume's name
	var took, paused, copied []time.Duration
	for n := range benchSnapshots + 1 {
		s.asRoot("kept", fmt.Sprintf("seq %d 100000 > /home/agent/changed", n))
		one, stopped := b.snapshot(s)
		s.asRoot("kept", "echo changed >> /home/agent/changed")
		if err := pool.Sync(t.Context()); err != nil { // as sandboxd does before it freezes a sandbox
			t.Fatal(err)
		}
		beside := fmt.Sprintf("bench-%d-%d", mib, n) // it goes with the pool: a delete slows what comes after it down
		two := timed(func() {
			if err := pool.Copy(home, beside); err != nil {
				t.Fatal(err)
			}
		})
		if n > 0 {
			took, paused, copied = append(took, one), append(paused, stopped), append(copied, two)
		}
	}
	of := fmt.Sprintf("home of %d MiB in the pool", mib)
	b.add("snapshot of a running sandbox, "+of, "", took, nil)
	b.add("its programs do not run meanwhile, "+of, "≤ 150 ms", paused, nil)
	b.add("copy of the home alone, "+of, "≤ 50 ms", copied, nil)
}

// snapshot takes one and deletes it at the end of the group. It gives how long that took, and how long nothing ran meanwhile.
func (b *benches) snapshot(s *server) (took, paused time.Duration) {
	var body struct {
		ID     string
		Paused int64 `json:"paused_ms"`
	}
	took = timed(func() {
		if status := s.call("POST", "/sandboxes/kept/snapshots?wait=ready", nil, &body); status != http.StatusCreated {
			b.t.Fatalf("%d %+v", status, body)
		}
	})
	b.t.Cleanup(func() { s.raw("DELETE", "/sandboxes/kept/snapshots/"+body.ID, nil) })
	return took, time.Duration(body.Paused) * time.Millisecond
}

// mixedHome fills a home with files of all sizes, half of them noise and half text.
func (s *server) mixedHome(name string, mib int) {
	s.t.Helper()
	s.asRoot(name, fmt.Sprintf(`cd /home/agent && rm -rf mixed && mkdir mixed && cd mixed &&
for i in $(seq %d); do mkdir $i; head -c 400000 /dev/urandom > $i/noise; seq $i 60000 > $i/text; split -a 3 -b 12000 $i/text $i/part.; done; sync`, max(1, mib*1000/1150)))
}

// shell runs a command of the host and gives how long it took.
func shell(t *testing.T, line string, args ...string) time.Duration {
	t.Helper()
	began := time.Now()
	if out, err := exec.Command("sh", append([]string{"-c", line, "sh"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v %s", line, err, out)
	}
	return time.Since(began)
}

// backups measures a backup until it is read back, and a restore, beside tar and zstd with the same folders.
func (b *benches) backups(s *server) {
	t := b.t
	home := s.homeOf("kept")
	file := filepath.Join(s.data, "raw.tar.zst")
	var made, rawMade, restored, rawRestored []time.Duration
	var watch peaks
	for n := range benchBackups + 1 {
		var body backupBody
		stop := watch.over(t, s.cmd.Process.Pid, s.cmd.Process.Pid)
		one := timed(func() {
			if status := s.call("POST", "/sandboxes/kept/backups?wait=ready", nil, &body); status != http.StatusCreated {
				t.Fatalf("%d %+v", status, body)
			}
		})
		stop()
		two := shell(t, `tar -C "$1" -cf - . | zstd -q -3 -f -o "$2" && sync "$2"`, home, file)
		stop = watch.over(t, s.cmd.Process.Pid, s.cmd.Process.Pid)
		three := timed(func() {
			if status, body := s.raw("PUT", "/sandboxes/kept/restore?backup="+body.ID, nil); status != http.StatusOK {
				t.Fatalf("%d %s", status, body)
			}
		})
		stop()
		beside := filepath.Join(filepath.Dir(home), "raw")
		four := shell(t, `mkdir "$2" && zstd -q -d -c "$1" | tar -C "$2" -xpf - && sync -f "$2"`, file, beside)
		shell(t, `rm -rf "$1"`, beside)
		s.raw("DELETE", "/backups/"+body.ID, nil)
		if n > 0 {
			made, rawMade, restored, rawRestored = append(made, one), append(rawMade, two), append(restored, three), append(rawRestored, four)
		}
	}
	b.add("backup of a home of 1 GiB, read back", "p50 ≤ 1.1 × tar | zstd -3", made, rawMade)
	b.add("restore of a home of 1 GiB", "p50 ≤ 1.1 × zstd | tar", restored, rawRestored)
	b.size("memory of backups and restores above idle", "≤ 64 MiB", watch.server)
}

// repositoryHome is the size of a home that is backed up to a repository, in MiB: BENCH_REPOSITORY_MIB, or benchHome.
func repositoryHome(t *testing.T) int {
	text := os.Getenv("BENCH_REPOSITORY_MIB")
	if text == "" {
		return benchHome
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// repository measures a backup in a repository, and a second one of the home as it was: the bytes that they add, and the processor time of
// sandboxd and its children.
func (b *benches) repository(s *server) {
	t := b.t
	if status := s.call("PUT", "/repositories/bench", map[string]any{"kind": "folder", "path": filepath.Join(t.TempDir(), "repository")}, nil); status != http.StatusCreated {
		t.Fatalf("%d", status)
	}
	var added [2]int64
	var cpu, took [2]time.Duration
	for n := range 2 {
		var body backupBody
		before := cpuOf(t, s.cmd.Process.Pid)
		took[n] = timed(func() {
			if status := s.call("POST", "/sandboxes/kept/backups?wait=ready", map[string]any{"repository": "bench"}, &body); status != http.StatusCreated {
				t.Fatalf("%d %+v", status, body)
			}
		})
		added[n], cpu[n] = body.Size, cpuOf(t, s.cmd.Process.Pid)-before
	}
	of := fmt.Sprintf("home of %d MiB", repositoryHome(t))
	b.add("first backup in a repository, "+of, "", took[:1], nil)
	b.add("second one, nothing changed, "+of, "", took[1:], took[:1])
	b.add("processor time of the second one, beside the first, "+of, "≤ 40 %", cpu[1:], cpu[:1])
	b.sizeIn("%", "bytes that the second one adds, of the first's, "+of, "≤ 5 %", 100*float64(added[1])/float64(added[0]))
}

// cpuOf gives the processor time of a process and the children that it has waited for.
func cpuOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0
	for _, f := range fields[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// snapshots measures those of a running sandbox: until it is ready, and how long nothing runs, beside docker commit and cp.
func (b *benches) snapshots(s *server, mib int) {
	t := b.t
	container, home := s.container("kept"), s.homeOf("kept")
	var took, raw, paused []time.Duration
	for n := range benchSnapshots + 1 {
		one, stopped := b.snapshot(s)
		beside := filepath.Join(filepath.Dir(home), fmt.Sprint("raw", n))
		two := shell(t, `docker commit -p=false "$1" raw-snapshot >/dev/null && cp -a --reflink=auto "$2" "$3" && sync -f "$3"`, container, home, beside)
		shell(t, `docker rmi raw-snapshot >/dev/null`)
		// What comes after the delete of a gigabyte waits for the disk to discard it: delete at the end.
		defer shell(t, `rm -rf "$1"`, beside)
		if n > 0 {
			took, raw, paused = append(took, one), append(raw, two), append(paused, stopped)
		}
	}
	b.add(fmt.Sprintf("snapshot of a running sandbox, home of %d MiB", mib), "p50 ≤ docker commit + cp", took, raw)
	b.add(fmt.Sprintf("its programs do not run meanwhile, home of %d MiB", mib), "≤ 150 ms where the disk shares blocks", paused, nil)
}

// clones measures a clone of the sandbox, whose home is of a size, until its first command has ended, beside a plain create, one at a time and ten at once, and a restore.
func (b *benches) clones(s *server, of string) {
	t := b.t
	var body struct{ ID string }
	if status := s.call("POST", "/sandboxes/kept/snapshots?wait=ready", nil, &body); status != http.StatusCreated {
		t.Fatalf("%d", status)
	}
	first := func(name string) error {
		return s.ask("POST", "/sandboxes/"+name+"/exec", map[string]any{"command": "true"})
	}
	var took, raw, ten, reverted []time.Duration
	for n := range benchClones + 1 {
		name := fmt.Sprint("clone", n)
		one := timed(func() {
			s.clones("kept", map[string]any{"name": name, "snapshot": body.ID})
			if err := first(name); err != nil {
				t.Fatal(err)
			}
		})
		two := timed(func() {
			s.create(map[string]any{"name": "plain", "template": benchImage})
			if err := first("plain"); err != nil {
				t.Fatal(err)
			}
		})
		for _, gone := range []string{name, "plain"} {
			s.raw("DELETE", "/sandboxes/"+gone+"?wait=gone", nil)
		}
		three := timed(func() { s.reverts("kept", body.ID) })
		if n > 0 {
			took, raw, reverted = append(took, one), append(raw, two), append(reverted, three)
		}
	}
	for range 3 {
		ten = append(ten, timed(func() { s.clones("kept", map[string]any{"name": "many", "count": 10, "snapshot": body.ID}) }))
		for n := range 10 {
			s.raw("DELETE", fmt.Sprintf("/sandboxes/many-%d?wait=gone", n+1), nil)
		}
	}
	b.add("clone to its first command, "+of, "p50 ≤ 1.6 × plain create", took, raw)
	b.add("ten clones at once, "+of, "p50 ≤ 3 × one", ten, took)
	b.add("restore of a snapshot in place, "+of, "p50 ≤ 1 s", reverted, nil)
}
