//go:build engine

package link_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"sandboxd/internal/fault"
	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

// agentBox is a container whose user is agent; change may alter it further.
func agentBox(t testing.TB, change func(*container.Config, *container.HostConfig)) *engineBox {
	t.Helper()
	passwd := filepath.Join(t.TempDir(), "passwd")
	if err := os.WriteFile(passwd, []byte("root:x:0:0::/root:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/bash\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return startBox(t, wire.Setup{}, func(c *container.Config, h *container.HostConfig) {
		h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeBind, Source: passwd, Target: "/etc/passwd", ReadOnly: true})
		if change != nil {
			change(c, h)
		}
	})
}

func TestContainer_FilesAreTheUsers(t *testing.T) {
	for name, profile := range map[string]func(*container.Config, *container.HostConfig){"dev": nil, "strict": strict} {
		s := agentBox(t, profile).session(t)
		ctx := testContext(t)
		w, err := s.FileWrite(ctx, wire.FilePut{Path: "d/f", Size: -1, Parents: true}, strings.NewReader("hello"))
		if err != nil || w.Entry.Owner != "agent" {
			t.Fatalf("%s: %+v, %v", name, w, err)
		}
		if r := run(t, s, sh("id -u; cat d/f; stat -c ' %U %a' d d/f")); r.stdout.String() != "1000\nhello agent 755\n agent 644\n" {
			t.Errorf("%s: got %q, %q", name, r.stdout.String(), r.stderr.String())
		}
		for _, p := range []string{"/etc/shadow", "/proc/self/environ", "/proc/1/root/etc/shadow", "/.sandboxd/guest", "/sys/kernel/uevent_seqnum", "/root/x", "/dev/pts/ptmx"} {
			if _, r, err := s.FileRead(ctx, p, 0, -1); fault.KindOf(err) != fault.Forbidden && fault.KindOf(err) != fault.NotFound {
				if err == nil {
					r.Close()
				}
				t.Errorf("%s: %s: %v", name, p, err)
			}
		}
		if _, err := s.FileWrite(ctx, wire.FilePut{Path: "/etc/mine", Size: -1}, strings.NewReader("x")); fault.KindOf(err) != fault.Forbidden {
			t.Errorf("%s: %v", name, err)
		}
		l, err := s.FileList(ctx, "/", "", 0)
		if err != nil || slices.ContainsFunc(l.Entries, func(e wire.Entry) bool { return e.Name == ".sandboxd" }) || len(l.Entries) < 10 {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
		gone, err := s.FileDelete(ctx, []string{"d"}, false)
		if err != nil || len(gone) != 1 {
			t.Fatalf("%s: %+v, %v", name, gone, err)
		}
		if err := s.FileRestore(ctx, []string{gone[0].ID}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.FileChmod(ctx, "d/f", 0o600); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		watchOnce(t, s)
	}
}

// watchOnce sees a change that a program makes.
func watchOnce(t *testing.T, s *link.Session) {
	t.Helper()
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	news := make(chan string, 10)
	done := make(chan error, 1)
	go func() {
		done <- s.FileWatch(ctx, []string{"d"}, func(folder string) error { news <- folder; return nil })
	}()
	<-news
	run(t, s, sh("echo x > d/g"))
	select {
	case <-news:
	case err := <-done:
		t.Error(err)
	case <-ctx.Done():
		t.Error("no change was seen")
	}
}

// A sandbox with very few processes must not lose its guest because many files are asked for at once.
func TestContainer_FilesTakeFewThreads(t *testing.T) {
	few := int64(32)
	b := agentBox(t, func(_ *container.Config, h *container.HostConfig) { h.PidsLimit = &few })
	s := b.session(t)
	full, err := s.Exec(testContext(t), sh("i=0; while [ $i -lt 40 ]; do sleep 100 & i=$((i+1)); done 2>/dev/null; echo full; wait"))
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	full.Next()
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			p := fmt.Sprint("d/", i)
			if _, err := s.FileWrite(testContext(t), wire.FilePut{Path: p, Size: -1, Parents: true}, &endless{1 << 20}); err != nil {
				t.Error(err)
			}
			if r, err := s.FilePack(testContext(t), "d", nil); err != nil {
				t.Error(err)
			} else {
				io.Copy(io.Discard, r)
				r.Close()
			}
			if _, err := s.FileList(testContext(t), "d", "", 0); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	select {
	case <-s.Done():
		t.Error("the guest has gone")
	default:
	}
}

// timed does something and tells how long it took.
func (b *engineBox) timed(t *testing.T, what string, bytes int64, do func() error) {
	t.Helper()
	began := time.Now()
	if err := do(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	took := time.Since(began)
	t.Logf("%s: %v, %.0f MB/s, guest %d KiB", what, took.Round(time.Microsecond), float64(bytes)/1e6/took.Seconds(), b.resident(t))
}

func readAll(ctx context.Context, s *link.Session, p string) error {
	_, r, err := s.FileRead(ctx, p, 0, -1)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err
}

func TestContainer_LargeFilesAreFast(t *testing.T) {
	b := agentBox(t, nil)
	s := b.session(t)
	const size = 1 << 30
	raw := filepath.Join(t.TempDir(), "raw")
	if err := exec.Command("truncate", "-s", fmt.Sprint(size), raw).Run(); err != nil {
		t.Fatal(err)
	}
	docker := func(arg ...string) func() error { return func() error { return exec.Command("docker", arg...).Run() } }
	b.timed(t, "docker cp in", size, docker("cp", raw, b.name+":/var/raw"))
	b.timed(t, "write", size, func() error {
		_, err := s.FileWrite(t.Context(), wire.FilePut{Path: "/tmp/big", Size: size}, &endless{size})
		return err
	})
	b.timed(t, "docker cp out", size, docker("cp", b.name+":/var/raw", raw))
	b.timed(t, "read", size, func() error { return readAll(t.Context(), s, "/tmp/big") })
}

// makeTree makes 100,000 small files in a thousand folders.
const makeTree = `mkdir -p t && cd t && for i in $(seq 1000); do mkdir -p $((i%10))/$i; done
perl -e 'for $i(1..1000){for $j(1..100){open F,">".($i%10)."/$i/file-$j.go";print F "x"x(100+$j*40);close F}}'`

func TestContainer_ManyFilesAreFast(t *testing.T) {
	b := agentBox(t, nil)
	s := b.session(t)
	ctx := t.Context()
	if r := run(t, s, sh(makeTree)); r.code != 0 {
		t.Fatal(r.stderr.String())
	}
	b.timed(t, "raw exec tar", 0, func() error {
		return exec.Command("sh", "-c", "docker exec "+b.name+" tar cf - -C /home/agent/t . > /dev/null").Run()
	})
	b.timed(t, "pack", 0, func() error {
		r, err := s.FilePack(ctx, "t", nil)
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = io.Copy(io.Discard, r)
		return err
	})
	small := bytes.Repeat([]byte("x"), 4096)
	b.timed(t, "1000 times 4 kB, there and back", 0, func() error {
		for range 1000 {
			if _, err := s.FileWrite(ctx, wire.FilePut{Path: "small", Size: -1}, bytes.NewReader(small)); err != nil {
				return err
			}
			if err := readAll(ctx, s, "small"); err != nil {
				return err
			}
		}
		return nil
	})
	run(t, s, sh("mkdir many && cd many && perl -e 'for(1..10000){open F,\">Some-file-$_.txt\"}'"))
	b.timed(t, "100 times a list of 10,000", 0, func() error {
		for range 100 {
			if l, err := s.FileList(ctx, "many", "", 0); err != nil || len(l.Entries) != 10_000 {
				return fmt.Errorf("%d, %w", len(l.Entries), err)
			}
		}
		return nil
	})
}
