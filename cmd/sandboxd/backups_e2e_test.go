//go:build e2e

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// oddHome fills a home with all kinds of files that a backup must keep, as root: owners, modes, access lists, attributes, hard links,
// symbolic links, a FIFO, holes, times before 1970 and in nanoseconds, and odd names.
const oddHome = `set -e; cd /home/agent; umask 022
mkdir -p deep/er empty locked
head -c 3000000 /dev/urandom > deep/er/noise; ln deep/er/noise hard; ln -s deep/er/noise soft; ln -s /nowhere dangling; mkfifo pipe
truncate -s 100M holes; printf x | dd of=holes bs=1 seek=50000000 conv=notrunc status=none
printf 'a' > "$(printf 'odd\n\377 name')"; printf 'b' > .wh.deep; printf 'c' > 'ends with a space '
chown 123:456 empty; chmod 6755 hard; chmod 000 locked; chown -h 77:88 soft
touch -d '1969-07-20T20:17:40.123456789Z' .wh.deep; touch -hd '2001-02-03T04:05:06.000000007Z' dangling; touch -d '1960-01-01T00:00:00.5Z' deep`

// oddAttributes follow from outside, since the image may lack the tools.
func oddAttributes(t *testing.T, home string) {
	t.Helper()
	for _, command := range [][]string{
		{"setfattr", "-n", "user.note", "-v", "kept", home + "/hard"},
		{"setfacl", "-m", "u:12:rwx,d:u:13:r", home + "/empty"},
		{"setcap", "cap_net_raw+ep", home + "/ends with a space "},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v %s", command, err, out)
		}
	}
}

// wantSame has rsync compare two trees in all that it knows.
func wantSame(t *testing.T, a, b, what string) {
	t.Helper()
	out, err := exec.Command("rsync", "-aHAXSn", "--checksum", "--delete", "--numeric-ids", "-i", a+"/", b+"/").CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%s: rsync tells differences (%v):\n%s", what, err, out)
	}
}

// upload sends a file.
func (s *server) upload(method, path, file string) (int, []byte) {
	s.t.Helper()
	f, err := os.Open(file)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	return s.sendBody(method, path, f)
}

// sendBody sends what body gives, as it is.
func (s *server) sendBody(method, path string, body io.Reader) (int, []byte) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.addr+"/api/v1"+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	resp, err := s.http.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, text
}

// TestBackups_AHomeComesBackBitByBit takes a home of every kind of file from one server to another by way of a file, which GNU tar
// and bsdtar unpack too.
func TestBackups_AHomeComesBackBitByBit(t *testing.T) {
	t.Parallel()
	here, there := newServer(t, "--prebuild", ""), newServer(t, "--prebuild", "")
	here.create(map[string]any{"name": "odd", "template": "base", "label": "Odd", "env": map[string]string{"KEPT": "yes"}})
	here.asRoot("odd", oddHome)
	home := here.homeOf("odd")
	oddAttributes(t, home)
	file := filepath.Join(t.TempDir(), "odd.tar.zst")
	here.cli("backup", "odd", file, "--url", "http://"+here.addr, "--token", here.token)
	to := t.TempDir()
	cmd := exec.Command("tar", "--zstd", "--xattrs", "--xattrs-include=*", "--numeric-owner", "--warning=no-unknown-keyword", "--sparse", "-xpf", file)
	cmd.Dir = to
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v %s", err, out)
	}
	wantSame(t, home, filepath.Join(to, "home"), "GNU tar")
	if out, err := exec.Command("bsdtar", "-tf", file).Output(); err != nil || !bytes.HasPrefix(out, []byte("manifest.json\nhome/\n")) {
		t.Errorf("bsdtar: %v %.200s", err, out)
	}

	there.cli("restore", file, "moved", "--new", "--url", "http://"+there.addr, "--token", there.token)
	wantSame(t, home, there.homeOf("moved"), "on another host")
	if used := engine(t, "run", "--rm", "-v", there.homeOf("moved")+":/h", "debian:trixie-slim", "du", "-sk", "/h/holes"); !strings.HasPrefix(used, "4\t") {
		t.Errorf("the holes take %s", used)
	}
	if out := there.exec("moved", map[string]any{"command": "echo $KEPT; hostname"}); out.Stdout != "yes\nmoved\n" {
		t.Errorf("its settings: %+v", out)
	}

	there.create(map[string]any{"name": "other", "template": "base"})
	there.exec("other", map[string]any{"command": "echo mine > only-here"})
	if status, body := there.upload("PUT", "/sandboxes/other/restore?save_first=true", file); status != http.StatusOK {
		t.Fatalf("restore: %d %s", status, body)
	}
	wantSame(t, home, there.homeOf("other"), "into one that was there")
	var list struct{ Backups []backupBody }
	there.call("GET", "/backups?sandbox=other", nil, &list)
	if len(list.Backups) != 1 {
		t.Fatalf("saved before: %+v", list)
	}
	if status, body := there.raw("PUT", "/sandboxes/other/restore?backup="+list.Backups[0].ID, nil); status != http.StatusOK {
		t.Fatalf("undo: %d %s", status, body)
	}
	if out := there.exec("other", map[string]any{"command": "cat only-here; ls"}); out.Stdout != "mine\nonly-here\n" {
		t.Errorf("undone: %+v", out)
	}
}

// TestBackups_ADownloadGoesOnWhereItWasCut asks for the rest of an archive, and for a part of another one.
func TestBackups_ADownloadGoesOnWhereItWasCut(t *testing.T) {
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"name": "big", "image": "debian:trixie-slim"})
	s.exec("big", map[string]any{"command": "head -c 5000000 /dev/urandom > noise"})
	var b backupBody
	if status := s.call("POST", "/sandboxes/big/backups?wait=ready", nil, &b); status != http.StatusCreated {
		t.Fatalf("%d %+v", status, b)
	}
	part := func(header map[string]string) (*http.Response, []byte) {
		req, err := http.NewRequest("GET", "http://"+s.addr+"/api/v1/backups/"+b.ID+"/archive", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.token)
		for k, v := range header {
			req.Header.Set(k, v)
		}
		resp, err := s.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, text
	}
	first, whole := part(nil)
	rest, end := part(map[string]string{"Range": "bytes=1000000-", "If-Range": first.Header.Get("ETag")})
	if rest.StatusCode != http.StatusPartialContent || !bytes.Equal(end, whole[1_000_000:]) || int64(len(whole)) != b.Size {
		t.Errorf("%d, %d bytes of %d", rest.StatusCode, len(end), len(whole))
	}
	if other, again := part(map[string]string{"Range": "bytes=1000000-", "If-Range": `"another"`}); other.StatusCode != http.StatusOK || len(again) != len(whole) {
		t.Errorf("of another one: %d, %d bytes", other.StatusCode, len(again))
	}
}

// TestBackups_AFullDiskIsSaidAndLeavesNothing has a disk of 8 MiB for the backups.
func TestBackups_AFullDiskIsSaidAndLeavesNothing(t *testing.T) {
	folder := smallDisk(t, "8m")
	s := newServer(t, "--prebuild", "", "--backup-folder", folder)
	s.create(map[string]any{"name": "big", "image": "debian:trixie-slim"})
	s.exec("big", map[string]any{"command": "head -c 30000000 /dev/urandom > noise"})
	status, body := s.raw("POST", "/sandboxes/big/backups?wait=ready", nil)
	if status != http.StatusServiceUnavailable || !strings.Contains(string(body), "not enough room") {
		t.Errorf("backup: %d %s", status, body)
	}
	file := filepath.Join(t.TempDir(), "noise.tar")
	if out, err := exec.Command("sh", "-c", "head -c 30000000 /dev/urandom > "+file).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if status, body := s.upload("PUT", "/sandboxes/big/restore", file); status != http.StatusServiceUnavailable || !strings.Contains(string(body), "not enough room") {
		t.Errorf("upload: %d %s", status, body)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
	if out := s.exec("big", map[string]any{"command": "ls"}); out.Stdout != "noise\n" {
		t.Errorf("the sandbox has %+v", out)
	}
}

// The size of the crash test of homes: backups and restores on a few sandboxes, each of whose homes has a version in every file.
const (
	keptOperations = 60
	keptNames      = 3
	keptFiles      = 40
)

// TestCrash_HomesStayWhole kills sandboxd at random moments while homes are backed up and restored. Each home is one of the versions as
// a whole then, nothing is left frozen, and nothing is left over.
func TestCrash_HomesStayWhole(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--prebuild", "")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range keptNames {
		name := fmt.Sprintf("kept%d", i)
		s.create(map[string]any{"name": name, "image": "debian:trixie-slim", "memory": "128MiB", "cpus": 1})
		for version := range 3 {
			s.exec(name, map[string]any{"command": fmt.Sprintf("rm -rf v*; for i in $(seq %d); do mkdir -p v$i/d; yes %d | head -c 200000 > v$i/d/f; done", keptFiles, version)})
			if status, body := s.raw("POST", "/sandboxes/"+name+"/backups?wait=ready", nil); status != http.StatusCreated {
				t.Fatalf("%d %s", status, body)
			}
		}
	}
	s.killedDuring(random, keptOperations, func() (method, path string, body any) {
		method, path = s.keptOperation(random)
		return method, path, nil
	})
	list := s.settle()
	s.checkTrue(list)
	s.checkHomes(list)
	for _, b := range list {
		s.raw("DELETE", "/sandboxes/"+b.Name+"?wait=gone", nil)
	}
	s.checkNothingLeft()
}

// killedDuring has sandboxd do so many operations, three at a time, and kills it at random moments.
func (s *server) killedDuring(random *rand.Rand, operations int, next func() (method, path string, body any)) {
	const every = 6 // operations between two kills
	var ops sync.WaitGroup
	busy := make(chan struct{}, 3)
	for n := range operations {
		method, path, body := next()
		busy <- struct{}{}
		ops.Go(func() {
			defer func() { <-busy }()
			s.try(method, path, body) // may die under us
		})
		if n%every == every-1 {
			pause := time.NewTimer(time.Duration(random.IntN(2500)) * time.Millisecond)
			<-pause.C
			s.kill()
			ops.Wait()
			s.start()
		}
	}
	ops.Wait()
}

// checkHomes wants each home to be one of the versions, each backup to be whole, and nothing else to be there.
func (s *server) checkHomes(list []sandboxBody) {
	t := s.t
	t.Helper()
	for _, b := range list {
		out := s.exec(b.Name, map[string]any{"command": "ls | wc -l; cat v*/d/f | sort | uniq -c | awk '{print $1, $2}'; ls -d .sandboxd* 2>/dev/null"})
		whole := false
		for version := range 3 {
			whole = whole || strings.HasPrefix(out.Stdout, fmt.Sprintf("%d\n%d %d\n", keptFiles, keptFiles*100_000, version)) && strings.Count(out.Stdout, "\n") == 2
		}
		if !whole {
			t.Errorf("the home of %s is none of the versions:\n%s%s", b.Name, out.Stdout, out.Stderr)
		}
	}
	if left := engine(t, "ps", "-aq", "--filter", "label=sandboxd.mover="+s.instance()); left != "" {
		t.Errorf("left over: %s", left)
	}
	if parts, err := filepath.Glob(filepath.Join(s.data, "backups", "*.part")); err != nil || len(parts) > 0 {
		t.Errorf("left over: %v %v", parts, err)
	}
	var kept struct{ Backups []backupBody }
	s.call("GET", "/backups", nil, &kept)
	for _, b := range kept.Backups {
		if b.State == "ready" {
			if out, err := exec.Command("tar", "--zstd", "--warning=no-unknown-keyword", "-tf", filepath.Join(s.data, "backups", b.ID+".tar.zst")).CombinedOutput(); err != nil {
				t.Errorf("backup %s: %v %.300s", b.ID, err, out)
			}
		}
	}
	t.Logf("%d sandboxes, %d backups", len(list), len(kept.Backups))
}

// keptOperation is one of a home. Restores are of the versions that the sandbox had in the beginning, or since.
func (s *server) keptOperation(random *rand.Rand) (method, path string) {
	name := fmt.Sprintf("kept%d", random.IntN(keptNames))
	var list struct{ Backups []backupBody }
	if _, body, err := s.try("GET", "/backups?sandbox="+name, nil); err != nil || json.Unmarshal(body, &list) != nil || len(list.Backups) == 0 {
		return "GET", "/version"
	}
	b := list.Backups[random.IntN(len(list.Backups))]
	switch random.IntN(8) {
	case 0, 1:
		return "POST", "/sandboxes/" + name + "/backups?wait=ready"
	case 2:
		return "POST", fmt.Sprintf("/restore?name=kept%d&backup=%s", keptNames+random.IntN(2), b.ID)
	case 3:
		return "DELETE", fmt.Sprintf("/sandboxes/kept%d", keptNames+random.IntN(2))
	case 4:
		return "PUT", "/sandboxes/" + name + "/restore?save_first=true&backup=" + b.ID
	}
	return "PUT", "/sandboxes/" + name + "/restore?backup=" + b.ID
}
