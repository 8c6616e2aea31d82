//go:build engine

package docker

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// keepRoot makes a root of a sandbox with a home, and gives its id and the snapshot, whose parts are there until the test's end.
func keepRoot(t *testing.T, e *Engine, id string, home bool) (root string) {
	t.Helper()
	snapshot := snapshotOf(t, e, id)
	_, err := e.Commit(t.Context(), id, snapshot)
	must(t, err)
	root = sandbox.NewID()
	must(t, e.KeepRoot(t.Context(), snapshot, root, home), e.RemoveImage(t.Context(), snapshot))
	t.Cleanup(func() {
		if err := e.RemoveRoot(context.Background(), root); err != nil && e.life.Err() == nil {
			t.Error(err)
		}
	})
	return root
}

// homeChanges are odd things in a home, and homeLook tells of them.
const (
	homeChanges = "cd /home/agent && rm -rf .[a-z]* * && mkdir -m 0710 kept && echo own > kept/file && chown 5:6 kept/file && chmod 4711 kept/file && " +
		"ln -s /etc/motd link && ln kept/file again && mkfifo pipe && truncate -s 5M sparse && echo end >> sparse && touch -d 2001-02-03 kept/file && chown 1000:1000 ."
	homeLook = "cd /home/agent && find . | sort | xargs stat -c '%n %a %u:%g %F %h %N' && stat -c %y kept/file && cat kept/file && sha256sum sparse"
)

// TestKeepRoot_HasTheHomeAndOnlyThat makes a root of a root: what the first one had in the home and the second not is gone.
func TestKeepRoot_HasTheHomeAndOnlyThat(t *testing.T) { bothWays(t, rootHasTheHome) }

func rootHasTheHome(t *testing.T, change ...func(*Config)) {
	e := openTest(t, change...)
	first := running(t, e, "patient")
	shell(t, e, first.ID, "0", "mkdir -p /home/agent/older/deep /home/agent/kept/more && echo > /home/agent/older/deep/file && echo mine > /etc/motd")
	stopped(t, e, first.ID)
	root := keepRoot(t, e, first.ID, true)

	second := running(t, e, "patient", func(b *sandbox.ContainerSpec) { b.Image = e.RootImage(root) })
	shell(t, e, second.ID, "0", "test -e /home/agent/older/deep/file && test $(cat /etc/motd) = mine && "+homeChanges+" && "+rootChanges)
	want := shell(t, e, second.ID, "0", homeLook) + shell(t, e, second.ID, "0", strings.Split(rootLook, "cat /home")[0])
	stopped(t, e, second.ID)
	again := keepRoot(t, e, second.ID, true)

	third := running(t, e, "patient", func(b *sandbox.ContainerSpec) { b.Image = e.RootImage(again) })
	got := shell(t, e, third.ID, "0", homeLook) + shell(t, e, third.ID, "0", strings.Split(rootLook, "cat /home")[0])
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	now, base := inspected(t, e, e.RootImage(again)), inspected(t, e, testImage)
	if e.facts.Load().layers && cmp.Diff(base.Config, now.Config) != "" {
		t.Errorf("the image has a configuration of its own: %s", cmp.Diff(base.Config, now.Config))
	}
	must(t, e.Remove(t.Context(), second.ID), e.Remove(t.Context(), third.ID))
	if left := movers(t, e); len(left) > 0 {
		t.Errorf("movers are left: %v", left)
	}
}

func TestKeepRoot_WithoutTheHomeLeavesTheImagesOwn(t *testing.T) {
	e := openTest(t)
	b := running(t, e, "patient")
	shell(t, e, b.ID, "0", "echo mine > /etc/motd && echo secret > /home/agent/secret")
	stopped(t, e, b.ID)
	root := keepRoot(t, e, b.ID, false)
	other := running(t, e, "patient", func(b *sandbox.ContainerSpec) { b.Image = e.RootImage(root) })
	shell(t, e, other.ID, "0", "test $(cat /etc/motd) = mine && test ! -e /home/agent/secret")
	must(t, e.Remove(t.Context(), other.ID))
}

func TestKeepRoot_RefusesAHomeThatIsTooLarge(t *testing.T) {
	e := openTest(t)
	b := running(t, e, "patient")
	shell(t, e, b.ID, "0", "truncate -s 11G /home/agent/large")
	stopped(t, e, b.ID)
	snapshot, root := snapshotOf(t, e, b.ID), sandbox.NewID()
	_, err := e.Commit(t.Context(), b.ID, snapshot)
	must(t, err)
	err = e.KeepRoot(t.Context(), snapshot, root, true)
	if fault.FieldOf(err) != "home" || !strings.Contains(fault.Message(err), "11GiB") {
		t.Error(err)
	}
	must(t, e.RemoveImage(t.Context(), snapshot))
	if ids, err := e.Roots(t.Context()); len(ids) > 0 || len(movers(t, e)) > 0 {
		t.Errorf("left: %v, %v (%v)", ids, movers(t, e), err)
	}
}

// TestRemoveRoot_TakesWhatIsBuiltOnItUnlessThatIsUsed builds the image of a template as internal/catalog has it built.
func TestRemoveRoot_TakesWhatIsBuiltOnItUnlessThatIsUsed(t *testing.T) {
	e := openTest(t)
	b := running(t, e, "patient")
	shell(t, e, b.ID, "0", "echo mine > /etc/motd")
	stopped(t, e, b.ID)
	root := keepRoot(t, e, b.ID, false)
	built := "sandboxd/engine-test-" + root + ":1"
	image := buildOf(t, "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\n")
	image.Tag, image.Args, image.Labels = built, map[string]string{"BASE_IMAGE": e.RootImage(root)}, map[string]string{catalog.LabelRoot: root}
	must(t, e.BuildImage(t.Context(), image, func(catalog.BuildEvent) {}))
	user := running(t, e, "patient", func(b *sandbox.ContainerSpec) { b.Image = built })
	stopped(t, e, user.ID)
	if err := e.RemoveRoot(t.Context(), root); !fault.Is(err, fault.Conflict) {
		t.Errorf("of one in use: %v", err)
	}
	kept, _ := commit(t, e, user.ID)
	must(t, e.Remove(t.Context(), user.ID), e.RemoveRoot(t.Context(), root))
	for ref, want := range map[string]bool{built: false, e.RootImage(root): false, kept: true} {
		if has, err := e.HasImage(t.Context(), ref); err != nil || has != want {
			t.Errorf("%s is there: %t (%v)", ref, has, err)
		}
	}
}
