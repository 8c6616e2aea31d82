//go:build bench

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// How much is measured of files.
const (
	benchBig      = 1 << 30
	benchBigTimes = 5
	benchListed   = 10_000
	benchLists    = 40
	benchTree     = 100_000
	benchTrees    = 4
	benchSmall    = 4 << 10
	benchSmalls   = 300
)

// TestFilesBench measures the cases of files alone, and writes nothing.
func TestFilesBench(t *testing.T) {
	raw, err := openRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	(&benches{t: t}).files(raw)
}

// files measures the files of a sandbox over the API, beside the engine's own ways into the same container.
func (b *benches) files(raw *rawEngine) {
	s := newServer(b.t, "--prebuild", "", "--freeze-after", "never", "--stop-after", "never")
	s.create(map[string]any{"template": benchImage, "name": "files"})
	f := &filesBench{benches: b, s: s, container: s.container("files"), client: &http.Client{Transport: &http.Transport{
		WriteBufferSize: 256 << 10, ReadBufferSize: 256 << 10, DisableCompression: true,
	}}}
	b.group(s, "big", f.big)
	b.group(s, "lists", f.lists)
	b.group(s, "trees", func() { f.trees(raw) })
	b.group(s, "small", f.small)
	s.call("DELETE", "/sandboxes/files?wait=gone", nil, nil)
}

// filesBench is one sandbox whose files are measured.
type filesBench struct {
	*benches
	s         *server
	container string
	client    *http.Client
}

// ask asks for files and hands the answer's body to take.
func (f *filesBench) ask(method string, query url.Values, body io.Reader, take func(io.Reader) error) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), method, "http://"+f.s.addr+"/api/v1/sandboxes/files/files?"+query.Encode(), body)
	if err != nil {
		f.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+f.s.token)
	if file, ok := body.(*os.File); ok {
		st, err := file.Stat()
		if err != nil {
			f.t.Fatal(err)
		}
		req.ContentLength = st.Size()
	}
	resp, err := f.client.Do(req)
	if err != nil {
		f.t.Fatalf("%v\n%s", err, f.s.tail())
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		text, _ := io.ReadAll(resp.Body)
		f.t.Fatalf("%s %v: %s %s", method, query, resp.Status, text)
	}
	if err := take(resp.Body); err != nil {
		f.t.Fatal(err)
	}
}

func drop(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

// timed gives how long f takes.
func timed(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// big moves a gibibyte in and out, beside docker cp of the same file to and from the same folder.
func (f *filesBench) big() {
	dir := f.t.TempDir()
	source := filepath.Join(dir, "source")
	if err := writeNoise(source, benchBig); err != nil {
		f.t.Fatal(err)
	}
	got := filepath.Join(dir, "got")
	var up, upBase, down, downBase []time.Duration
	var watch peaks
	for n := range benchBigTimes + 1 {
		stop := watch.over(f.t, f.s.cmd.Process.Pid, guestPID(f.t, f.s, "files"))
		one := timed(func() { f.upload(source, "big") })
		stop()
		f.run("sync big")
		stop = watch.over(f.t, f.s.cmd.Process.Pid, guestPID(f.t, f.s, "files"))
		two := timed(func() { f.download("big", got) })
		stop()
		if n == 0 {
			f.same(source, got)
		}
		f.forget(got)
		three := timed(func() { copyThrough(f.t, source, f.container+":/home/agent/big") })
		f.run("sync big")
		four := timed(func() { copyThrough(f.t, f.container+":/home/agent/big", got) })
		f.forget(got)
		if n > 0 {
			up, down, upBase, downBase = append(up, one), append(down, two), append(upBase, three), append(downBase, four)
		}
	}
	f.add("upload of 1 GiB, beside docker cp", "≥ 0.8 × its throughput", up, upBase)
	f.add("download of 1 GiB, beside docker cp", "≥ 0.8 × its throughput", down, downBase)
	f.size("sandboxd during these, more resident", "≤ 64 MiB", watch.server)
	f.size("the guest during these, more resident", "≤ 64 MiB", watch.guest)
}

// forget removes what was copied, so that every copy finds the same: what the file system gives back costs less than what it
// has never had.
func (f *filesBench) forget(got string) {
	f.run("rm big")
	if err := os.Remove(got); err != nil {
		f.t.Fatal(err)
	}
}

func (f *filesBench) upload(from, to string) {
	file, err := os.Open(from)
	if err != nil {
		f.t.Fatal(err)
	}
	defer file.Close()
	f.ask("PUT", url.Values{"path": {to}}, file, drop)
}

func (f *filesBench) download(from, to string) {
	file, err := os.Create(to)
	if err != nil {
		f.t.Fatal(err)
	}
	defer file.Close()
	f.ask("GET", url.Values{"path": {from}}, nil, func(r io.Reader) error {
		_, err := io.CopyBuffer(struct{ io.Writer }{file}, r, make([]byte, 256<<10))
		return err
	})
}

// same fails unless both files have the same bytes.
func (f *filesBench) same(a, z string) {
	if out, err := exec.Command("cmp", a, z).CombinedOutput(); err != nil {
		f.t.Fatalf("what came back is not what was sent: %v %s", err, out)
	}
}

func writeNoise(path string, size int64) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer out.Close()
	_, err = io.CopyN(out, rand.Reader, size)
	return err
}

func copyThrough(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("docker", "cp", from, to).CombinedOutput(); err != nil {
		t.Fatalf("docker cp %s %s: %v %s", from, to, err, out)
	}
}

// peaks are the most memory that processes had more than at the beginning, in MiB.
type peaks struct{ server, guest float64 }

// over looks at both processes until stop.
func (p *peaks) over(t *testing.T, server, guest int) (stop func()) {
	t.Helper()
	serverAt, guestAt := residentMiB(t, server), residentMiB(t, guest)
	ctx, cancel := context.WithCancel(t.Context())
	var looking sync.WaitGroup
	looking.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			p.server = max(p.server, residentMiB(t, server)-serverAt)
			p.guest = max(p.guest, residentMiB(t, guest)-guestAt)
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return func() { cancel(); looking.Wait() }
}

// guestPID is the process of a sandbox's guest, on the host.
func guestPID(t *testing.T, s *server, name string) int {
	t.Helper()
	for line := range strings.Lines(engine(t, "top", s.container(name), "-eo", "pid,args")) {
		fields := strings.Fields(line)
		if len(fields) >= 2 && fields[1] == "/.sandboxd/guest" {
			pid, err := strconv.Atoi(fields[0])
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("there is no guest")
	return 0
}

// lists measures one page with a whole large folder.
func (f *filesBench) lists() {
	f.run(fmt.Sprintf("mkdir many && cd many && seq -f 'file-%%05g.txt' %d | xargs touch", benchListed))
	var took []time.Duration
	var text bytes.Buffer // used again: what a client's memory costs is its own
	for n := range benchLists + 5 {
		text.Reset()
		one := timed(func() {
			f.ask("GET", url.Values{"path": {"many"}, "limit": {strconv.Itoa(benchListed)}}, nil, func(r io.Reader) error {
				_, err := text.ReadFrom(r)
				return err
			})
		})
		if got := bytes.Count(text.Bytes(), []byte(`"type":"file"`)); got != benchListed {
			f.t.Fatalf("%d entries came", got)
		}
		if n >= 5 {
			took = append(took, one)
		}
	}
	f.add("list of 10,000 entries", "p50 ≤ 40 ms", took, nil)
}

// run runs a line in the sandbox's home.
func (f *filesBench) run(line string) {
	f.t.Helper()
	if out := f.s.exec("files", map[string]any{"command": line}); out.ExitCode != 0 {
		f.t.Fatalf("%s: %+v", line, out)
	}
}

// trees measures a tree of many small files as tar, beside tar in the same container through the engine's exec.
func (f *filesBench) trees(raw *rawEngine) {
	f.run(fmt.Sprintf(`mkdir tree && cd tree && for d in $(seq 100); do mkdir $d; done
seq %d | awk '{ f = ($1 %% 100 + 1) "/f" $1; print "content of file number " $1 > f; close(f) }'`, benchTree))
	c := raw.Container(f.container)
	var ours, base []time.Duration
	for n := range benchTrees + 1 {
		one := timed(func() { f.ask("GET", url.Values{"path": {"tree"}, "archive": {"tar"}}, nil, drop) })
		two := timed(func() {
			if err := c.Exec(f.t.Context(), "tar", "-C", "/home/agent/tree", "-cf", "-", "."); err != nil {
				f.t.Fatal(err)
			}
		})
		if n > 0 {
			ours, base = append(ours, one), append(base, two)
		}
	}
	f.add("tree of 100,000 files as tar, beside tar through raw exec", "≥ 0.8 × its throughput", ours, base)
}

// small measures writing and then reading a small file.
func (f *filesBench) small() {
	content := bytes.Repeat([]byte("x"), benchSmall)
	var took []time.Duration
	for n := range benchSmalls + 10 {
		content[0] = byte(n)
		one := timed(func() {
			f.ask("PUT", url.Values{"path": {"small"}}, bytes.NewReader(content), drop)
			f.ask("GET", url.Values{"path": {"small"}}, nil, func(r io.Reader) error {
				got, err := io.ReadAll(r)
				if err == nil && !bytes.Equal(got, content) {
					err = fmt.Errorf("%d bytes came back, or others", len(got))
				}
				return err
			})
		})
		if n >= 10 {
			took = append(took, one)
		}
	}
	f.add("write, then read of a file of 4 kB", "p50 ≤ 5 ms", took, nil)
}
