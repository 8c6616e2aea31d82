//go:build e2e

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fileEntry is the API's, as far as the tests look at it.
type fileEntry struct {
	Name, Path, Type, ETag string
	Size                   int64
}

// fileAnswer is what came back about files.
type fileAnswer struct {
	t      testing.TB
	status int
	head   http.Header
	body   []byte
}

// file asks for the files of the sandbox "lab"; what is asked for is what follows "/files" in the address.
func (s *server) file(method, what, body string, headers ...string) fileAnswer {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.addr+"/api/v1/sandboxes/lab/files"+what, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.http.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s", method, what, err, s.tail())
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, what, err)
	}
	return fileAnswer{s.t, resp.StatusCode, resp.Header, text}
}

func (a fileAnswer) is(status int) fileAnswer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %.300s", a.status, status, a.body)
	}
	return a
}

func (a fileAnswer) into(v any) {
	a.t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		a.t.Fatalf("%v in %.300s", err, a.body)
	}
}

// newLab makes a server with the sandbox "lab".
func newLab(t *testing.T) *server {
	t.Helper()
	s := newServer(t, "--prebuild", "")
	s.create(map[string]any{"template": "base", "name": "lab"})
	return s
}

// in runs a line in the sandbox's home and gives what it says.
func (s *server) in(line string) string {
	s.t.Helper()
	out := s.exec("lab", map[string]any{"command": line})
	if out.ExitCode != 0 {
		s.t.Fatalf("%s: %+v", line, out)
	}
	return out.Stdout
}

func noise(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return string(b)
}

// TestFiles_WhatAProgramDoes writes, reads, lists, moves, deletes and restores.
func TestFiles_WhatAProgramDoes(t *testing.T) {
	t.Parallel()
	s := newLab(t)
	content := noise(3 << 20)
	var made fileEntry
	got := s.file("PUT", "?path=a/b/data&parents=true&mode=0600", content).is(201)
	got.into(&made)
	if made.Path != "/home/agent/a/b/data" || made.Size != int64(len(content)) || made.ETag != got.head.Get("ETag") || s.in("stat -c '%U %a' a/b/data") != "agent 600\n" {
		t.Errorf("made %+v", made)
	}
	if got := s.file("GET", "?path=~/a/b/data", "").is(200); string(got.body) != content || got.head.Get("ETag") != made.ETag {
		t.Error("something else came back")
	}
	if got := s.file("GET", "?path=a/b/data", "", "Range", "bytes=1000000-1000009").is(206); string(got.body) != content[1000000:1000010] {
		t.Errorf("a part: %d bytes", len(got.body))
	}
	s.file("GET", "?path=a/b/data", "", "If-None-Match", made.ETag).is(304)
	s.file("PUT", "?path=a/b/data", "newer", "If-Match", made.ETag).is(200)
	if got := s.file("PUT", "?path=a/b/data", "stale", "If-Match", made.ETag).is(412); got.head.Get("ETag") == made.ETag || got.head.Get("ETag") == "" {
		t.Errorf("told %q", got.head.Get("ETag"))
	}
	s.file("PUT", "?path=a/b/data", "stale", "If-None-Match", "*").is(412)
	if now := s.in("cat a/b/data; stat -c ' %a' a/b/data"); now != "newer 600\n" {
		t.Errorf("now %q", now)
	}
	s.file("POST", ":mkdir", `{"path":"c"}`, "Content-Type", "application/json").is(201)
	s.file("POST", ":move", `{"from":["a/b/data"],"to":"c"}`, "Content-Type", "application/json").is(204)
	s.file("POST", ":copy", `{"from":["c"],"to":"d"}`, "Content-Type", "application/json").is(204)
	s.file("POST", ":chmod", `{"path":"d/data","mode":"0640"}`, "Content-Type", "application/json").is(204)
	if now := s.in("find c d -type f -printf '%p %m\n' | sort"); now != "c/data 600\nd/data 640\n" {
		t.Errorf("now %q", now)
	}
	var gone struct{ Trashed []struct{ ID, Path string } }
	s.file("DELETE", "?path=c/data&path=d", "").is(200).into(&gone)
	if len(gone.Trashed) != 2 || s.in("ls -A c") != "" {
		t.Fatalf("gone: %+v", gone)
	}
	s.file("POST", ":restore", fmt.Sprintf(`{"ids":[%q]}`, gone.Trashed[0].ID), "Content-Type", "application/json").is(204)
	if now := s.in("cat c/data"); now != "newer" {
		t.Errorf("back: %q", now)
	}
	s.file("DELETE", ":trash", "").is(204)
	if left := s.in("find ~/.local/share/Trash -name 'd*' | wc -l"); left != "0\n" {
		t.Errorf("left in the trash: %s", left)
	}
	s.file("DELETE", "?path=c&permanent=true", "").is(204)
	s.file("GET", "?path=c", "").is(404)
}

// TestFiles_OfTwoWritersOneWins when both have seen the same file.
func TestFiles_OfTwoWritersOneWins(t *testing.T) {
	t.Parallel()
	s := newLab(t)
	etag := s.file("PUT", "?path=f", "first").is(201).head.Get("ETag")
	for round := range 25 {
		var both sync.WaitGroup
		answers := make([]fileAnswer, 2)
		for i := range answers {
			both.Go(func() {
				answers[i] = s.file("PUT", "?path=f", fmt.Sprintf("%d-%d", round, i), "If-Match", etag)
			})
		}
		both.Wait()
		won := slices.IndexFunc(answers, func(a fileAnswer) bool { return a.status == 200 })
		if won < 0 || answers[1-won].status != 412 {
			t.Fatalf("round %d: %d and %d", round, answers[0].status, answers[1].status)
		}
		etag = answers[won].head.Get("ETag")
		if got := s.file("GET", "?path=f", "").is(200); string(got.body) != fmt.Sprintf("%d-%d", round, won) || got.head.Get("ETag") != etag {
			t.Fatalf("round %d: %q", round, got.body)
		}
	}
}

// TestFiles_AnUploadGoesOnWhereItWasCutOff by a client that vanished in the midst of a piece.
func TestFiles_AnUploadGoesOnWhereItWasCutOff(t *testing.T) {
	t.Parallel()
	s := newLab(t)
	content := noise(8 << 20)
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	head := fmt.Sprintf("PUT /api/v1/sandboxes/lab/files?path=big&upload=u1 HTTP/1.1\r\nHost: localhost:%s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Range: bytes 0-%d/%d\r\nContent-Length: %d\r\n\r\n", s.addr[strings.LastIndex(s.addr, ":")+1:], s.token, len(content)-1, len(content), len(content))
	if _, err := io.WriteString(conn, head+content[:3<<20]); err != nil {
		t.Fatal(err)
	}
	var at struct{ Offset int }
	s.untilWithin(callLimit, "most of it has arrived", func() bool {
		s.file("GET", "?path=big&upload=u1", "").is(200).into(&at)
		return at.Offset >= 2<<20
	})
	conn.Close()
	s.untilWithin(callLimit, "the rest of the upload is taken", func() bool {
		s.file("GET", "?path=big&upload=u1", "").is(200).into(&at)
		got := s.file("PUT", "?path=big&upload=u1", content[at.Offset:], "Content-Range", fmt.Sprintf("bytes %d-%d/%d", at.Offset, len(content)-1, len(content)))
		return got.status == 201
	})
	if got := s.file("GET", "?path=big", "").is(200); string(got.body) != content {
		t.Errorf("%d bytes, or others", len(got.body))
	}
	if left := s.in("ls -A | grep -c sandboxd || true"); left != "0\n" {
		t.Errorf("left: %s", s.in("ls -A"))
	}
}

func TestFiles_ALargeFolderComesInPages(t *testing.T) {
	t.Parallel()
	s := newLab(t)
	s.in("mkdir many && cd many && seq -f 'f%04g' 2500 | xargs touch && mkdir zz")
	seen := map[string]int{}
	after := ""
	for pages := 0; pages == 0 || after != ""; pages++ {
		var page struct {
			Path, Next string
			Entries    []fileEntry
		}
		s.file("GET", "?path=many&limit=1000&after="+url.QueryEscape(after), "").is(200).into(&page)
		if page.Path != "/home/agent/many" || pages == 0 && page.Entries[0].Name != "zz" || pages > 3 {
			t.Fatalf("page %d of %s", pages, page.Path)
		}
		for _, e := range page.Entries {
			seen[e.Name]++
		}
		after = page.Next
	}
	if len(seen) != 2501 || slices.Max(slices.Collect(maps.Values(seen))) != 1 {
		t.Errorf("%d names", len(seen))
	}
}

// TestFiles_ArchivesAreReadByTheToolsThatPeopleHave and say the same.
func TestFiles_ArchivesAreReadByTheToolsThatPeopleHave(t *testing.T) {
	t.Parallel()
	s := newLab(t)
	s.in(`mkdir -p src/deep/er && cd src && echo hello > a.txt && : > empty && head -c 3000000 /dev/urandom > noise && ln -s a.txt link &&
		ln -s ../noise deep/up && echo 'echo run' > run.sh && chmod 750 run.sh && touch -d '2001-02-03 04:05:06 UTC' a.txt && echo u > 'über maß.txt' && echo q > "it's \"quoted\""`)
	want := s.in(`cd src && find . -type f -exec sha256sum {} + | sort -k2`)
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v %s", name, args, err, out)
		}
		return string(out)
	}
	fetch := func(format string) {
		got := s.file("GET", "?path=src&archive="+format, "").is(200)
		if want := `attachment; filename="src.` + format + `"`; got.head.Get("Content-Disposition") != want {
			t.Errorf("%s: %q", format, got.head.Get("Content-Disposition"))
		}
		if err := os.WriteFile(filepath.Join(dir, "src."+format), got.body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sums := func(folder string) string {
		return run("sh", "-c", "cd "+folder+" && find . -type f -exec sha256sum {} + | sort -k2")
	}
	for _, format := range []string{"tar", "tar.zst", "zip"} {
		fetch(format)
	}
	run("sh", "-c", "mkdir one two three four && tar -C one -xpf src.tar && zstd -qd src.tar.zst -o again.tar && tar -C two -xpf again.tar && cmp src.tar again.tar")
	run("unzip", "-q", "src.zip", "-d", "three")
	run("python3", "-c", "import zipfile,sys; z=zipfile.ZipFile('src.zip'); assert z.testzip() is None; z.extractall('four')")
	for _, folder := range []string{"one", "two", "three"} {
		if got := sums(folder); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", folder, got, want)
		}
		if got := run("sh", "-c", "cd "+folder+" && readlink link deep/up && stat -c '%a %Y' run.sh a.txt && test -d deep/er"); !strings.HasPrefix(got, "a.txt\n../noise\n750 ") || !strings.HasSuffix(got, " 981173106\n") {
			t.Errorf("%s: %q", folder, got)
		}
	}
	if got := run("sh", "-c", "cd four && cat a.txt 'über maß.txt'"); got != "hello\nu\n" {
		t.Errorf("python: %q", got)
	}
	got := s.file("GET", "?path=src&archive=zip&name=a.txt&name=deep", "").is(200)
	if err := os.WriteFile(filepath.Join(dir, "some.zip"), got.body, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(run("unzip", "-Z1", "some.zip")); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"a.txt", "deep/", "deep/er/", "deep/up"}) {
		t.Errorf("some: %v", got)
	}
}

// TestFiles_ATreeIsExtracted from what the tools that people have make of it.
func TestFiles_ATreeIsExtracted(t *testing.T) {
	t.Parallel()
	s := newLab(t)
	dir := t.TempDir()
	script := `mkdir -p src/deep && cd src && echo hello > a.txt && head -c 2000000 /dev/urandom > noise && ln -s a.txt link && ln a.txt hard &&
		chmod 640 noise && truncate -s 1000000 sparse && cd .. && tar -cf plain.tar -C src . && tar -czf some.tar.gz -C src . && zstd -q plain.tar -o some.tar.zst &&
		tar -S -cf sparse.tar -C src . && tar --format=pax -cf pax.tar -C src . && ln -s ../../../etc out && tar -cf out.tar out && head -c 900000 plain.tar > cut.tar`
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	sums := exec.Command("sh", "-c", "find . -type f -exec sha256sum {} + | sort -k2; readlink link; stat -c %a noise")
	sums.Dir = filepath.Join(dir, "src")
	want, err := sums.Output()
	if err != nil {
		t.Fatal(err)
	}
	send := func(name, to, more string, headers ...string) fileAnswer {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return s.file("PUT", "?extract=tar&path="+to+more, string(text), headers...)
	}
	for i, name := range []string{"plain.tar", "some.tar.gz", "some.tar.zst", "sparse.tar", "pax.tar"} {
		to := "out" + strconv.Itoa(i)
		var made struct{ Entries, Bytes int }
		send(name, to, "").is(200).into(&made)
		if made.Entries != 6 || made.Bytes < 3_000_006 {
			t.Errorf("%s: %+v", name, made)
		}
		if got := s.in("cd " + to + " && find . -type f -exec sha256sum {} + | sort -k2; readlink link; stat -c %a noise"); got != string(want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
	send("some.tar.gz", "out9", "", "Content-Encoding", "gzip").is(200)
	if got := send("out.tar", "kept", "").is(400); !strings.Contains(string(got.body), "out") || s.in("ls -A kept 2>/dev/null || true") != "" {
		t.Errorf("got %s", got.body)
	}
	send("out.tar", "kept", "&links=keep").is(200)
	if got := s.in("readlink kept/out"); got != "../../../etc\n" {
		t.Errorf("got %q", got)
	}
	send("cut.tar", "cut", "").is(400)
	if got := s.in("find cut -name '*sandboxd*' | wc -l"); got != "0\n" {
		t.Errorf("left: %s", s.in("find cut"))
	}
}

func TestFiles_AFullDiskLeavesTheOldFile(t *testing.T) {
	t.Parallel()
	s := newLab(t)
	room, err := strconv.Atoi(strings.TrimSpace(s.in("df --output=avail -k /dev/shm | tail -1")))
	if err != nil {
		t.Fatal(err)
	}
	s.file("PUT", "?path=/dev/shm/f", "old").is(201)
	got := s.file("PUT", "?path=/dev/shm/f", strings.Repeat("x", (room+1024)<<10)).is(507)
	if !strings.Contains(string(got.body), "disk is full") || !strings.Contains(string(got.body), `"disk_full"`) {
		t.Errorf("told %s", got.body)
	}
	if now := s.in("cat /dev/shm/f; ls -A /dev/shm | wc -l"); now != "old1\n" {
		t.Errorf("now %q: %s", now, s.in("ls -lA /dev/shm"))
	}
	s.file("PUT", "?path=/dev/shm/f", "new").is(200)
}

func TestFiles_AnyUseWakesAndAGlanceDoesNot(t *testing.T) {
	t.Parallel()
	s := newLab(t)
	s.file("PUT", "?path=f", "kept").is(201)
	for _, state := range []string{"frozen", "asleep"} {
		for _, ask := range []func(){
			func() {
				if got := s.file("GET", "?path=f", "").is(200); string(got.body) != "kept" {
					t.Errorf("%s: %q", state, got.body)
				}
			},
			func() { s.file("PUT", "?path=f", "kept").is(200) },
			func() { s.file("GET", "?path=~&archive=tar", "").is(200) },
		} {
			s.sleeps("lab", state)
			s.file("GET", "?path=f&stat=true&refresh=true", "").is(409)
			s.file("GET", ":watch?path=/tmp", "").is(409)
			if now := s.rest("lab").State; now != state {
				t.Errorf("a glance made it %s", now)
			}
			ask()
			s.until("it runs", func() bool { return s.rest("lab").State == "running" })
		}
	}
	s.call("POST", "/sandboxes/lab/stop?wait=stopped", nil, nil)
	if got := s.file("GET", "?path=f", "").is(409); !strings.Contains(string(got.body), "Start it first") {
		t.Errorf("told %s", got.body)
	}
}

// trickle gives a little all the time, until it is closed.
type trickle struct{ done chan struct{} }

func (r trickle) Read(p []byte) (int, error) {
	select {
	case <-r.done:
		return 0, io.ErrUnexpectedEOF
	case <-time.After(10 * time.Millisecond):
		return copy(p, strings.Repeat("x", 1000)), nil
	}
}

func TestFiles_ASandboxDeletedUnderAnUploadSaysSo(t *testing.T) {
	t.Parallel()
	s := newLab(t)
	body := trickle{make(chan struct{})}
	defer close(body.done)
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "PUT", "http://"+s.addr+"/api/v1/sandboxes/lab/files?path=up", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	type end struct {
		status int
		text   []byte
		err    error
	}
	ended := make(chan end, 1)
	go func() {
		resp, err := s.http.Do(req)
		if err != nil {
			ended <- end{err: err}
			return
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		ended <- end{resp.StatusCode, text, err}
	}()
	s.untilWithin(callLimit, "the upload is under way", func() bool { return s.in("ls -A | grep -c sandboxd || true") == "1\n" })
	s.call("DELETE", "/sandboxes/lab?wait=gone", nil, nil)
	select {
	case got := <-ended:
		if got.err != nil || got.status != http.StatusConflict && got.status != http.StatusGone || !bytes.Contains(got.text, []byte("lab")) {
			t.Errorf("told %d %s, %v", got.status, got.text, got.err)
		}
	case <-time.After(callLimit):
		t.Fatal("the upload continues")
	}
	s.checkNothingLeft()
}

// TestFiles_NothingRunsOnTheDashboardsOrigin whatever a sandbox calls its files.
func TestFiles_NothingRunsOnTheDashboardsOrigin(t *testing.T) {
	t.Parallel()
	s := newLab(t)
	svg := `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`
	for name, content := range map[string]string{
		"page.html": "<!DOCTYPE html><script>alert(1)</script>", "page.xhtml": `<html xmlns="http://www.w3.org/1999/xhtml"><script>alert(1)</script></html>`,
		"drawing.svg": svg, "feed.xml": "<?xml version='1.0'?><x/>", "script.js": "alert(1)", "style.css": "x{}", "noname": "<html>", "app.wasm": "\x00asm",
		"picture.png": "<html>", "book.pdf": "%PDF-1.4", "worker.mjs": "1",
	} {
		s.file("PUT", "?path="+url.QueryEscape(name), content).is(201)
		for _, more := range []string{"", "&preview=image", "&stat=true", "&x=.html"} {
			h := s.file("GET", "?path="+url.QueryEscape(name)+more, "").is(200).head
			kind := h.Get("Content-Type")
			harmless := kind == "application/octet-stream" || kind == "application/json" || kind == "image/svg+xml" && name == "drawing.svg" && more == "&preview=image"
			policy := h.Get("Content-Security-Policy")
			if !harmless || !strings.HasPrefix(policy, "sandbox; default-src 'none'") || strings.Contains(policy, "allow-") || strings.Contains(policy, "script") ||
				h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cross-Origin-Resource-Policy") != "same-origin" {
				t.Errorf("%s%s: %v", name, more, h)
			}
			if kind != "application/json" && !strings.HasPrefix(h.Get("Content-Disposition"), "attachment") {
				t.Errorf("%s%s: %q", name, more, h.Get("Content-Disposition"))
			}
		}
	}
}
