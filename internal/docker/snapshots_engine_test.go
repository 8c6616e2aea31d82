//go:build engine

package docker

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"
	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/sandboxtest"
)

func TestSnapshots_KeepTheContract(t *testing.T) {
	bothWays(t, func(t *testing.T, change ...func(*Config)) {
		sandboxtest.RunSnapshots(t, func(t *testing.T) sandboxtest.SnapshotsSubject {
			s := engineSubject(t, change...)
			return sandboxtest.SnapshotsSubject{HomesSubject: homesSubject(s, s.Runtime.(*Engine)), Another: s.Other.(*Engine)}
		})
	})
}

// commit keeps a sandbox's root file system until the test's end.
func commit(t *testing.T, e *Engine, id string) (ref, snapshot string) {
	t.Helper()
	snapshot = sandbox.NewID()
	ref, err := e.Commit(t.Context(), id, snapshot)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.RemoveImage(context.Background(), snapshot); err != nil && e.life.Err() == nil {
			t.Error(err)
		}
	})
	return ref, snapshot
}

func inspected(t *testing.T, e *Engine, ref string) image.InspectResponse {
	t.Helper()
	i, err := e.client.Load().ImageInspect(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// rootChanges are some of a root file system, and rootLook tells of them.
const (
	rootChanges = "mkdir -m 0750 /opt/x && echo changed > /opt/x/file && chown 5:6 /opt/x/file && chmod 4711 /opt/x/file && " +
		"ln -s file /opt/x/link && ln /opt/x/file /opt/x/again && rm -r /usr/share/doc/apt && echo mine > /etc/motd"
	rootLook = "stat -c '%n %a %u:%g %F %h %N' /opt/x /opt/x/*; cat /opt/x/file /etc/motd; test -e /usr/share/doc/apt; echo $?; cat /home/agent/own 2>/dev/null"
)

func TestCommit_KeepsWhatHasChanged(t *testing.T) {
	e := openTest(t)
	b := running(t, e, "patient", func(b *sandbox.ContainerSpec) { b.Env["SECRET"] = "no" })
	if code, out := inside(t, e, b.ID, "0", rootChanges+" && echo own > /home/agent/own"); code != 0 {
		t.Fatal(out)
	}
	_, want := inside(t, e, b.ID, "0", rootLook)
	if err := e.Freeze(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	ref, _ := commit(t, e, b.ID)
	now := inspected(t, e, ref)
	if before := inspected(t, e, testImage); cmp.Diff(before.Config, now.Config) != "" || before.Architecture != now.Architecture {
		t.Errorf("the image has a configuration of its own: %s", cmp.Diff(before.Config, now.Config))
	}
	if err := e.Stop(t.Context(), b.ID, 0); err != nil {
		t.Fatal(err)
	}
	if e.facts.Load().layers {
		if refs, err := e.ImageTags(t.Context(), e.partialImages()); err != nil || len(refs) > 0 {
			t.Errorf("left over: %q (%v)", refs, err)
		}
	}
	for range 2 {
		b.Image = ref
		if err := e.Recreate(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if err := e.Start(t.Context(), b.ID); err != nil {
			t.Fatal(err)
		}
		if _, got := inside(t, e, b.ID, "0", rootLook); got != want {
			t.Errorf("made anew: %s", cmp.Diff(want, got))
		}
		if code, out := inside(t, e, b.ID, "0", "test ! -e /opt/more && echo > /opt/more"); code != 0 {
			t.Errorf("what came after the commit is there: %s", out)
		}
		if err := e.Stop(t.Context(), b.ID, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCommit_GivesOthersNothingOfTheSandbox looks at the labels and variables of a container that is made from it.
func TestCommit_GivesOthersNothingOfTheSandbox(t *testing.T) {
	e := openTest(t)
	b := running(t, e, "patient", func(b *sandbox.ContainerSpec) {
		b.Labels["traefik.http.routers.sbx-"+b.ID+".rule"], b.Env["SECRET"] = "Host(`old`)", "no"
	})
	if code, out := inside(t, e, b.ID, "0", rootChanges); code != 0 {
		t.Fatal(out)
	}
	if err := e.Stop(t.Context(), b.ID, 0); err != nil {
		t.Fatal(err)
	}
	other, plain := testBox(t, ""), testBox(t, "")
	other.Image, _ = commit(t, e, b.ID)
	for _, b := range []sandbox.ContainerSpec{other, plain} {
		if err := e.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	made, err := e.client.Load().ContainerInspect(t.Context(), e.resource(other.ID))
	if err != nil {
		t.Fatal(err)
	}
	want := e.labels(other)
	want["traefik.enable"], want[labelVolumes], want[labelMade] = "true", "", ""
	if d := cmp.Diff(want, made.Config.Labels); d != "" {
		t.Errorf("labels: %s", d)
	}
	same, err := e.client.Load().ContainerInspect(t.Context(), e.resource(plain.ID))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(same.Config.Env, made.Config.Env); d != "" {
		t.Errorf("variables: %s", d)
	}
	h := openHome(t, e, other.ID)
	if mover, err := e.client.Load().ContainerInspect(t.Context(), e.mover(other.ID)); err != nil || len(mover.Config.Labels) != 1 {
		t.Errorf("a mover has the labels %v (%v)", mover.Config.Labels, err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

func TestCommit_OfWhatHasNotChangedTakesNoRoom(t *testing.T) {
	e := openTest(t, func(c *Config) { c.IDEFolder, c.CAFile = t.TempDir(), c.GuestBinary })
	b := running(t, e, "patient")
	if code, out := inside(t, e, b.ID, "0", "echo own > /home/agent/own"); code != 0 {
		t.Fatal(out)
	}
	if err := e.Freeze(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	ref, _ := commit(t, e, b.ID)
	if one, two := inspected(t, e, ref).ID, inspected(t, e, testImage).ID; one != two {
		changes, err := e.client.Load().ContainerDiff(t.Context(), e.resource(b.ID))
		t.Errorf("it is the image %s, made from %s; %v %v", one, two, changes, err)
	}
	if err := e.Thaw(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{"touch /home/beside", "rm /home/beside; chmod 711 /opt", "rm /bin/true"} {
		if code, out := inside(t, e, b.ID, "0", change); code != 0 {
			t.Fatal(out)
		}
		if err := e.Freeze(t.Context(), b.ID); err != nil {
			t.Fatal(err)
		}
		ref, _ := commit(t, e, b.ID)
		if inspected(t, e, ref).ID == inspected(t, e, testImage).ID {
			t.Errorf("%q changes nothing", change)
		}
		if err := e.Thaw(t.Context(), b.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCommit_OfManyLayersMakesOne snapshots a sandbox over and over.
func TestCommit_OfManyLayersMakesOne(t *testing.T) {
	e := openTest(t)
	b := running(t, e, "patient")
	if code, out := inside(t, e, b.ID, "0", rootChanges); code != 0 {
		t.Fatal(out)
	}
	_, want := inside(t, e, b.ID, "0", rootLook)
	if err := e.Stop(t.Context(), b.ID, 0); err != nil {
		t.Fatal(err)
	}
	base := inspected(t, e, testImage)
	base.Config.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", `ODD=a "b" \c $PATH 'd'`}
	ref := e.snapshotImages() + ":flat"
	box, err := e.client.Load().ContainerInspect(t.Context(), e.resource(b.ID))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.flatten(t.Context(), box.ID, base, ref); err != nil {
		t.Fatal(err)
	}
	i := inspected(t, e, ref)
	if d := cmp.Diff(base.Config.Env, i.Config.Env); d != "" || len(i.RootFS.Layers) != 1 || len(i.Config.Labels) > 0 {
		t.Errorf("it has %d layers, the labels %v, and other variables: %s", len(i.RootFS.Layers), i.Config.Labels, d)
	}
	b.Image = ref
	if err := e.Recreate(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	if _, got := inside(t, e, b.ID, "0", rootLook); got != want {
		t.Error(cmp.Diff(want, got))
	}
	if err := e.Remove(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	if err := e.RemoveImage(t.Context(), "flat"); err != nil {
		t.Fatal(err)
	}
}

// TestRemoveImage_OfOneInUseGoesWithItsLastContainer looks for what is left of an image.
func TestRemoveImage_OfOneInUseGoesWithItsLastContainer(t *testing.T) {
	e := openTest(t)
	b := running(t, e, "patient")
	if code, out := inside(t, e, b.ID, "0", rootChanges); code != 0 {
		t.Fatal(out)
	}
	if err := e.Stop(t.Context(), b.ID, 0); err != nil {
		t.Fatal(err)
	}
	other := testBox(t, "patient")
	ref, snapshot := commit(t, e, b.ID)
	other.Image = ref
	id := inspected(t, e, ref).ID
	if err := e.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := e.RemoveImage(t.Context(), snapshot); err != nil {
			t.Fatal(err)
		}
	}
	if _, images, err := e.Parts(t.Context()); err != nil || len(images) > 0 {
		t.Errorf("there are %q (%v)", images, err)
	}
	if err := e.Remove(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), other.ID); err != nil {
		t.Fatal(err)
	}
	if code, out := inside(t, e, other.ID, "0", "cat /opt/x/file"); code != 0 {
		t.Error(out)
	}
	if err := e.Remove(t.Context(), other.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := e.client.Load().ImageInspect(t.Context(), id); err == nil {
		t.Error("the image is there although nothing uses it")
	}
}

// TestCommit_ThatIsLeftLeavesNothingOnceRemoved leaves it at some moments.
func TestCommit_ThatIsLeftLeavesNothingOnceRemoved(t *testing.T) {
	e := openTest(t)
	b := running(t, e, "patient")
	if code, out := inside(t, e, b.ID, "0", rootChanges); code != 0 {
		t.Fatal(out)
	}
	if err := e.Stop(t.Context(), b.ID, 0); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	commit(t, e, b.ID)
	took := time.Since(began)
	t.Logf("a commit takes %s", took)
	for i := range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), took*time.Duration(i)/5)
		id := sandbox.NewID()
		if _, err := e.Commit(ctx, b.ID, id); err != nil && !fault.Is(err, fault.Timeout) {
			t.Errorf("got %v", err)
		}
		cancel()
		if err := e.RemoveImage(t.Context(), id); err != nil {
			t.Error(err)
		}
		_, images, err := e.Parts(t.Context())
		if err != nil || slices.Contains(images, id) {
			t.Errorf("there are %q (%v)", images, err)
		}
	}
}

// TestCommit_IsKeptWhileItsLikeIsRemoved removes a snapshot's image while another one of the same files is made.
func TestCommit_IsKeptWhileItsLikeIsRemoved(t *testing.T) {
	e := openTest(t)
	b := running(t, e, "patient")
	if code, out := inside(t, e, b.ID, "0", rootChanges); code != 0 {
		t.Fatal(out)
	}
	if err := e.Stop(t.Context(), b.ID, 0); err != nil {
		t.Fatal(err)
	}
	was, snapshot := commit(t, e, b.ID)
	for range 8 {
		removed, before := make(chan error), snapshot
		go func() { removed <- e.RemoveImage(context.Background(), before) }()
		ref, next := commit(t, e, b.ID)
		if err := <-removed; err != nil {
			t.Fatal(err)
		}
		if inspected(t, e, ref).ID == was {
			t.Error("two snapshots are one image, which the engine may remove with either")
		}
		was, snapshot = inspected(t, e, ref).ID, next
	}
}

// TestRecreate_KeepsTheAddress makes another sandbox in between, which might take it.
func TestRecreate_KeepsTheAddress(t *testing.T) {
	e := openTest(t)
	b := running(t, e, "patient")
	address := func() string {
		t.Helper()
		found, err := e.client.Load().ContainerInspect(t.Context(), e.resource(b.ID))
		if err != nil {
			t.Fatal(err)
		}
		return found.NetworkSettings.Networks[e.network.name].IPAMConfig.IPv4Address
	}
	before := address()
	if err := e.Stop(t.Context(), b.ID, 0); err != nil {
		t.Fatal(err)
	}
	if err := e.removeContainer(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	running(t, e, "patient")
	if err := e.Recreate(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if now := address(); now != before || strings.TrimSpace(now) == "" {
		t.Errorf("its address was %q and is %q", before, now)
	}
}
