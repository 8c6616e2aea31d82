//go:build engine

package link_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"sandboxd/internal/link"
	"sandboxd/internal/sandboxtest"
	"sandboxd/internal/wire"
)

func TestContainer_SpeedAndSize(t *testing.T) {
	b := startBox(t, wire.Setup{}, nil)
	s := b.session(t)
	t.Logf("guest, fresh: %d KiB resident", b.resident(t))
	const n = 200
	var through, raw []time.Duration
	for range n {
		began := time.Now()
		if r := run(t, s, wire.ExecStart{Command: []string{"true"}}); r.code != 0 {
			t.Fatal("true is false")
		}
		through = append(through, time.Since(began))
	}
	for range 40 {
		began := time.Now()
		b.rawExec(t, "true")
		raw = append(raw, time.Since(began))
	}
	link50, raw50 := percentile(through, 50), percentile(raw, 50)
	t.Logf("exec true through the link: p50 %v p95 %v; raw: p50 %v p95 %v; ratio %.3f", link50, percentile(through, 95),
		raw50, percentile(raw, 95), float64(link50)/float64(raw50))
	b.throughput(t, s)
	t.Logf("guest, at work: %d KiB resident", b.resident(t))
	b.awaitSmall(t)
	if st, err := os.Stat(sandboxtest.GuestBinary(t)); err != nil || st.Size() > 9<<20 {
		t.Errorf("binary %v, %v", st.Size(), err)
	} else {
		t.Logf("binary %d bytes", st.Size())
	}
	if link50 > raw50/2 { // a tenth on a machine that does nothing else: see docs/benchmarks.md
		t.Errorf("exec p50 %v, raw %v", link50, raw50)
	}
}

// awaitSmall waits until the idle guest is as small as it must be.
func (b *engineBox) awaitSmall(t *testing.T) {
	t.Helper()
	const limit = 8 << 10 // KiB
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for {
		kib := b.resident(t)
		if kib <= limit {
			t.Logf("guest, idle: %d KiB resident", kib)
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("the idle guest has %d KiB resident", kib)
		}
	}
}

// resident gives the guest's resident memory in KiB, as the host sees it.
func (b *engineBox) resident(t *testing.T) int {
	t.Helper()
	top, err := b.docker.ContainerTop(testContext(t), b.id, []string{"-eo", "pid,rss,args"})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range top.Processes {
		if row[2] == wire.GuestPath {
			kib, _ := strconv.Atoi(row[1])
			return kib
		}
	}
	t.Fatalf("no guest among %v", top.Processes)
	return 0
}

// throughput measures a port and an exec's output.
func (b *engineBox) throughput(t *testing.T, s *link.Session) {
	const size = 512 << 20
	server := fmt.Sprintf(`use IO::Socket::INET; $s=IO::Socket::INET->new(LocalAddr=>"127.0.0.1",LocalPort=>8123,Listen=>5) or die;
$|=1; print "up\n"; $c=$s->accept; $b="x"x65536; for(1..%d){ syswrite $c,$b } close $c`, size/65536)
	p, err := s.Exec(testContext(t), wire.ExecStart{Command: []string{"perl", "-e", server}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Next(); err != nil {
		t.Fatal(err)
	}
	c, err := s.DialPort(testContext(t), 8123)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	began := time.Now()
	n, err := io.Copy(io.Discard, c)
	if n != size || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	t.Logf("port: %.0f MiB/s", float64(n>>20)/time.Since(began).Seconds())
	began = time.Now()
	out, err := s.Exec(testContext(t), sh("head -c 536870912 /dev/zero"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for n = 0; ; {
		f, err := out.Next()
		if err != nil {
			break
		}
		n += int64(len(f.Data))
	}
	t.Logf("exec output: %.0f MiB/s", float64(n>>20)/time.Since(began).Seconds())
}

func (b *engineBox) rawExec(t *testing.T, command ...string) {
	t.Helper()
	ctx := testContext(t)
	made, err := b.docker.ContainerExecCreate(ctx, b.id, container.ExecOptions{Cmd: command, AttachStdout: true, AttachStderr: true})
	if err != nil {
		t.Fatal(err)
	}
	att, err := b.docker.ContainerExecAttach(ctx, made.ID, container.ExecAttachOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer att.Close()
	var out bytes.Buffer
	stdcopy.StdCopy(&out, &out, att.Reader)
	if st, err := b.docker.ContainerExecInspect(ctx, made.ID); err != nil || st.ExitCode != 0 {
		t.Fatalf("raw exec: %+v, %v", st, err)
	}
}

func percentile(d []time.Duration, p int) time.Duration {
	slices.Sort(d)
	return d[(len(d)-1)*p/100]
}
