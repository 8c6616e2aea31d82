//go:build engine

package docker

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"sandboxd/internal/fault"
	"sandboxd/internal/link"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
	"sandboxd/internal/wire"
)

// removeVolumes removes all volumes of e's instance.
func removeVolumes(t *testing.T, e *Engine) {
	ids, err := e.VolumeIDs(context.Background())
	if err != nil {
		t.Error(err)
	}
	for _, id := range ids {
		if err := e.RemoveVolume(context.Background(), id); err != nil {
			t.Errorf("clean up: %v", err)
		}
	}
}

// newVolume makes a volume, and gives its id and its folder.
func newVolume(t *testing.T, e *Engine) (id, folder string) {
	t.Helper()
	id = sandbox.NewID()
	folder, err := e.MakeVolume(t.Context(), id)
	if err != nil || !filepath.IsAbs(folder) {
		t.Fatalf("folder %q, %v", folder, err)
	}
	return id, folder
}

func has(list ...sandbox.Mount) func(*sandbox.ContainerSpec) {
	return func(b *sandbox.ContainerSpec) { b.Volumes = list }
}

func TestVolumes_AreMountedAsTheyAreGiven(t *testing.T) {
	bothWays(t, func(t *testing.T, change ...func(*Config)) {
		e := openTest(t, change...)
		shared, folder := newVolume(t, e)
		data, _ := newVolume(t, e)
		if os.Geteuid() == 0 { // as an admin fills it
			if err := os.WriteFile(filepath.Join(folder, "model"), []byte("weights"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		volumes := has(sandbox.Mount{Volume: shared, Target: "/shared", ReadOnly: true}, sandbox.Mount{Volume: data, Target: "/volumes/data"})
		one, other := running(t, e, "patient", volumes), running(t, e, "patient", volumes, strictly)
		nested := running(t, e, "patient", volumes, func(b *sandbox.ContainerSpec) { b.Namespaces = true })
		checkAll(t, e, nested.ID, []check{
			{"read-only in a namespace of its own", "1000", "unshare -Ur -m sh -c 'id -u && { mount -o remount,bind,rw /shared; touch /shared/x; }'", -1, ""},
			{"devices in one", "1000", "unshare -Ur -m sh -c 'mount -o remount,bind,dev /shared'", -1, ""},
		})
		pooled := e.c.Pool != nil
		checkAll(t, e, one.ID, []check{
			{"reads", "1000", "cat /shared/model", 0, "weights"},
			{"read-only for its user", "1000", "touch /shared/x", -1, "Read-only file system"},
			{"read-only for root", "0", "touch /shared/x || mount -o remount,rw /shared || umount /shared", -1, ""},
			{"no other way to it", "0", "mkdir /mnt/x; mount --bind /shared /mnt/x || mount -o remount,bind,rw /shared", -1, ""},
			{"options of what is read-only", "0", "grep ' /shared ' /proc/mounts | grep -w ro | grep nosuid | grep nodev", 0, ""},
			{"its user can write", "1000", "echo mine >/volumes/data/own && stat -c %u /volumes/data", 0, "1000"},
			{"no devices", "0", "mknod /volumes/data/null c 1 3", -1, ""},
			{"setuid", "0", "cp /usr/bin/id /volumes/data/id && chmod 4755 /volumes/data/id", 0, ""},
		})
		checkAll(t, e, other.ID, []check{
			{"sees what another one has written", "1000", "cat /volumes/data/own", 0, "mine"},
			{"setuid gives nothing in a strict one", "1000", "/volumes/data/id -u", 0, "1000"},
			{"read-only for root in a strict one", "0", "touch /shared/x", -1, "Read-only file system"},
		})
		if pooled {
			checkAll(t, e, one.ID, []check{{"options", "0", "grep ' /volumes/data ' /proc/mounts | grep -w rw | grep nosuid | grep nodev", 0, ""}})
		}
		if err := e.RemoveVolume(t.Context(), data); !fault.Is(err, fault.Conflict) {
			t.Errorf("removing one that is used gives %v", err)
		}
		if err := e.RemoveVolume(t.Context(), shared); !fault.Is(err, fault.Conflict) {
			t.Errorf("removing one that is used gives %v", err)
		}
		for _, id := range []string{one.ID, other.ID, nested.ID} {
			if err := e.Remove(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []string{data, shared, data} {
			if err := e.RemoveVolume(t.Context(), id); err != nil {
				t.Error(err)
			}
		}
		if ids, err := e.VolumeIDs(t.Context()); err != nil || len(ids) > 0 {
			t.Errorf("left: %q, %v", ids, err)
		}
	})
}

func TestVolumes_OneThatWasRemovedByHandIsMadeAnew(t *testing.T) {
	bothWays(t, func(t *testing.T, change ...func(*Config)) {
		e := openTest(t, change...)
		cli, owner := e.client.Load(), []check{{"its user can write", "1000", "touch /volumes/data/own && stat -c %u /volumes/data", 0, "1000"}}
		id, _ := newVolume(t, e)
		for _, name := range []string{e.resource(id) + partView, e.volumeName(id)} {
			if err := cli.VolumeRemove(t.Context(), name, false); err != nil {
				t.Fatal(err)
			}
		}
		writer := running(t, e, "patient", has(sandbox.Mount{Volume: id, Target: "/volumes/data"}))
		checkAll(t, e, writer.ID, owner)
		if e.c.Pool != nil {
			checkAll(t, e, writer.ID, []check{{"options", "0", "grep ' /volumes/data ' /proc/mounts | grep -w rw | grep nosuid | grep nodev", 0, ""}})
		}
		if err := e.Remove(t.Context(), writer.ID); err != nil {
			t.Fatal(err)
		}
		reader := running(t, e, "patient", has(sandbox.Mount{Volume: id, Target: "/shared", ReadOnly: true}))
		if err := e.Stop(t.Context(), reader.ID, 0); err != nil {
			t.Fatal(err)
		}
		if err := cli.VolumeRemove(t.Context(), e.volumeName(id), false); err != nil { // the engine has only the view in use
			t.Fatal(err)
		}
		if err := e.Start(t.Context(), reader.ID); err != nil {
			t.Fatal(err)
		}
		checkAll(t, e, reader.ID, []check{{"a view of it", "0", "grep ' /shared ' /proc/mounts | grep -w ro | grep nosuid && stat -c %u /shared", 0, "1000"}})
		writer = running(t, e, "patient", has(sandbox.Mount{Volume: id, Target: "/volumes/data"}))
		checkAll(t, e, writer.ID, append(owner, check{"what was written", "1000", "echo text >/volumes/data/seen", 0, ""}))
		checkAll(t, e, reader.ID, []check{{"the same volume", "1000", "cat /shared/seen", 0, "text"}})
	})
}

// Nothing that a sandbox is asked for with names a path of the host: its volumes are ids of this instance's.
func TestVolumes_NoneIsAPathOfTheHost(t *testing.T) {
	e := openTest(t)
	b := testBox(t, "patient")
	b.Volumes = []sandbox.Mount{{Volume: "/etc", Target: "/volumes/etc"}}
	if err := e.Create(t.Context(), b); err == nil {
		t.Error("a path of the host was mounted")
	}
	for _, m := range e.volumeMounts(b) {
		if m.Type == "bind" || !strings.HasPrefix(m.Source, "sandboxd-"+e.c.Instance+"-") {
			t.Errorf("the engine is asked for %+v", m)
		}
	}
}

func TestRemount_KeepsWhatWasInstalled(t *testing.T) {
	bothWays(t, func(t *testing.T, change ...func(*Config)) {
		e := openTest(t, change...)
		id, _ := newVolume(t, e)
		b := running(t, e, "patient")
		if code, out := inside(t, e, b.ID, "0", rootChanges+" && echo "+b.ID+" >/opt/id && echo own > /home/agent/own"); code != 0 {
			t.Fatal(out)
		}
		_, want := inside(t, e, b.ID, "0", rootLook)
		changed := b
		changed.Volumes = []sandbox.Mount{{Volume: id, Target: "/volumes/data"}}
		for _, to := range []sandbox.ContainerSpec{changed, b, changed} {
			if err := e.Stop(t.Context(), b.ID, 0); err != nil {
				t.Fatal(err)
			}
			if err := e.Remount(t.Context(), to); err != nil {
				t.Fatal(err)
			}
			if err := e.Start(t.Context(), b.ID); err != nil {
				t.Fatal(err)
			}
			if _, got := inside(t, e, b.ID, "0", rootLook); got != want {
				t.Errorf("it has changed:\n%s\nwas:\n%s", got, want)
			}
			if i := inList(t, e, b.ID); i.Moved || i.Image != b.Image {
				t.Errorf("its template's image has not changed, and it is %+v", i)
			}
			code, _ := inside(t, e, b.ID, "0", "grep ' /volumes/data ' /proc/mounts")
			if (code == 0) != (len(to.Volumes) > 0) {
				t.Errorf("with volumes %v the mount is there: %d", to.Volumes, code)
			}
		}
		if used, err := e.ImageTags(t.Context(), e.retiredImages()); err != nil || len(used) != 1 {
			t.Errorf("images are kept: %q, %v", used, err)
		}
	})
}

// inList gives what the engine's list tells of a sandbox.
func inList(t *testing.T, e *Engine, id string) sandbox.Instance {
	t.Helper()
	all, err := e.List(t.Context())
	at := slices.IndexFunc(all, func(i sandbox.Instance) bool { return i.ID == id })
	if err != nil || at < 0 {
		t.Fatalf("sandbox %s in %+v, %v", id, all, err)
	}
	return all[at]
}

// A process that was killed while it gave a sandbox other volumes leaves one container or both.
func TestRemount_FinishesWhatWasCutOff(t *testing.T) {
	e := openTest(t)
	id, _ := newVolume(t, e)
	b := running(t, e, "patient")
	if code, out := inside(t, e, b.ID, "0", "echo kept >/opt/kept"); code != 0 {
		t.Fatal(out)
	}
	if err := e.Stop(t.Context(), b.ID, 0); err != nil {
		t.Fatal(err)
	}
	cli, next := e.client.Load(), e.resource(b.ID)+partAnew
	if _, err := cli.ContainerCreate(t.Context(), &container.Config{Image: testImage, Labels: e.labels(b)}, &container.HostConfig{}, nil, nil, next); err != nil {
		t.Fatal(err)
	}
	b.Volumes = []sandbox.Mount{{Volume: id, Target: "/volumes/data"}}
	if err := e.Remount(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := cli.ContainerRename(t.Context(), e.resource(b.ID), next); err != nil { // as when it was killed before the last step
		t.Fatal(err)
	}
	if err := e.Remount(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	checkAll(t, e, b.ID, []check{{"what was installed", "0", "cat /opt/kept; grep ' /volumes/data ' /proc/mounts", 0, "kept"}})
	if err := e.Stop(t.Context(), b.ID, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := cli.ContainerCreate(t.Context(), &container.Config{Image: testImage, Labels: e.labels(b)}, &container.HostConfig{}, nil, nil, next); err != nil {
		t.Fatal(err)
	}
	if err := e.Recreate(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if _, err := cli.ContainerInspect(t.Context(), next); !errdefs.IsNotFound(err) {
		t.Errorf("a container made anew leaves what was to take its place: %v", err)
	}
	if err := cli.ContainerRename(t.Context(), e.resource(b.ID), next); err != nil {
		t.Fatal(err)
	}
	if err := e.Remove(t.Context(), b.ID); err != nil { // takes both
		t.Fatal(err)
	}
}

// served starts the real guest on a volume, and gives its connection.
func served(t *testing.T, e *Engine, id, target string) *link.Session {
	t.Helper()
	hub := link.NewHub(t.TempDir(), nil)
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx) }()
	t.Cleanup(func() { end(); <-ended })
	folder, err := hub.Expect("volume-"+id, wire.Setup{Name: "data"})
	if err == nil {
		err = e.ServeVolume(t.Context(), id, target, folder)
	}
	if err != nil {
		t.Fatal(err)
	}
	waiting, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	s, err := hub.Session(waiting, "volume-"+id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestServeVolume_OnlyTheVolumeIsThere(t *testing.T) {
	bothWays(t, func(t *testing.T, change ...func(*Config)) {
		guest := sandboxtest.GuestBinary(t)
		e := openTest(t, append(change, func(c *Config) { c.GuestBinary = guest })...)
		id, folder := newVolume(t, e)
		s := served(t, e, id, "/volumes/data")
		if _, err := s.FileWrite(t.Context(), wire.FilePut{Path: "/volumes/data/sub/hello", Parents: true, Size: -1}, strings.NewReader("hello")); err != nil {
			t.Fatal(err)
		}
		_, body, err := s.FileRead(t.Context(), "/volumes/data/sub/hello", 0, -1)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(body)
		body.Close()
		if err != nil || string(content) != "hello" {
			t.Errorf("read %q, %v", content, err)
		}
		if os.Geteuid() == 0 {
			if text, err := os.ReadFile(filepath.Join(folder, "sub/hello")); err != nil || string(text) != "hello" {
				t.Errorf("on the disk: %q, %v", text, err)
			}
		}
		for _, path := range []string{"/x", "/etc/x", "/.sandboxd/x", "/home/x"} {
			if _, err := s.FileWrite(t.Context(), wire.FilePut{Path: path, Size: -1}, strings.NewReader("x")); err == nil {
				t.Errorf("%s can be written", path)
			}
		}
		if _, err := s.Exec(t.Context(), wire.ExecStart{Command: []string{"/bin/sh", "-c", "id"}}); err == nil {
			t.Error("there is a shell")
		}
		found, err := e.client.Load().ContainerInspect(t.Context(), e.filesName(id))
		if err != nil {
			t.Fatal(err)
		}
		if h := found.HostConfig; h.NetworkMode != "none" || !h.ReadonlyRootfs || !slices.Equal(h.CapDrop, []string{"ALL"}) || h.Privileged {
			t.Errorf("it is held by %+v", h)
		}
		if err := e.SweepVolumes(t.Context()); err != nil { // as after a SIGKILL
			t.Fatal(err)
		}
		select {
		case <-s.Done():
		case <-time.After(10 * time.Second):
			t.Error("it still runs")
		}
	})
}
