//go:build engine

package docker

import (
	"archive/tar"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
)

// rootLayer reads what a sandbox has changed of an image.
func rootLayer(t *testing.T, e *Engine, id, base string) sandbox.Layer {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "layer")
	if err == nil {
		_, err = e.ReadLayer(t.Context(), id, base, f)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		t.Fatal(err)
	}
	return sandbox.Layer{Content: f, Size: size}
}

// moreChanges are some of a root file system besides rootChanges: a file that is changed under its old time, a further name of a file of the
// image, a file for a folder, a folder for a file, capabilities, and an empty folder.
const moreChanges = "touch -r /etc/os-release /tmp/then && head -c $(stat -Lc %s /etc/os-release) /dev/zero | tr '\\0' x > /usr/lib/os-release && touch -r /tmp/then /usr/lib/os-release && rm /tmp/then && " +
	"ln /usr/bin/env /usr/bin/zenv && rm -r /usr/share/doc/bash && echo file > /usr/share/doc/bash && rm /etc/issue && mkdir -m 1777 /etc/issue && mkdir /opt/empty"

const moreLook = rootLook + "; md5sum /usr/lib/os-release; cmp /usr/bin/env /usr/bin/zenv; stat -c '%n %a %F %h' /usr/bin/zenv /usr/share/doc/bash /etc/issue /opt/empty; ls /usr/share/doc | wc -l"

func TestReadLayer_MakesTheSameOnTheImage(t *testing.T) {
	e := openTest(t)
	b := running(t, e, "patient", func(*sandbox.ContainerSpec) {})
	if code, out := inside(t, e, b.ID, "0", rootChanges+" && "+moreChanges+" && echo own > /home/agent/own"); code != 0 {
		t.Fatal(out)
	}
	_, want := inside(t, e, b.ID, "0", moreLook)
	want = strings.Replace(want, "own\n", "", 1)
	if _, err := e.ReadLayer(t.Context(), b.ID, "", io.Discard); !fault.Is(err, fault.Conflict) {
		t.Errorf("while it runs: %v", err)
	}
	if err := e.Freeze(t.Context(), b.ID); err != nil {
		t.Fatal(err)
	}
	layer := rootLayer(t, e, b.ID, "")
	if layer.Size > 4<<20 {
		t.Errorf("the layer has %d bytes", layer.Size)
	}
	snapshot := sandbox.NewID()
	t.Cleanup(func() {
		if err := e.RemoveImage(context.Background(), snapshot); err != nil {
			t.Error(err)
		}
	})
	for how, makeImage := range map[string]func(ctx context.Context) (string, error){
		"in layers": func(ctx context.Context) (string, error) { return e.MakeImage(ctx, snapshot, testImage, layer) },
		"as one": func(ctx context.Context) (string, error) {
			ref := e.snapshotImages() + ":" + snapshot
			return ref, e.merge(ctx, inspected(t, e, testImage), layer, ref)
		},
	} {
		ref, err := makeImage(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		checkMade(t, e, how, ref, want)
	}
	if _, err := e.MakeImage(t.Context(), sandbox.NewID(), "sandboxd/none:1", layer); !fault.Is(err, fault.NotFound) {
		t.Errorf("on an image that is not there: %v", err)
	}
	if _, err := e.ReadLayer(t.Context(), b.ID, "sandboxd/none:1", io.Discard); !fault.Is(err, fault.NotFound) {
		t.Errorf("of an image that is not there: %v", err)
	}
}

// checkMade looks at a sandbox of an image that was made, and at what that has changed of the image below.
func checkMade(t *testing.T, e *Engine, how, ref, want string) {
	t.Helper()
	other := running(t, e, "other", func(b *sandbox.ContainerSpec) { b.Image = ref })
	if _, got := inside(t, e, other.ID, "0", moreLook); sorted(got) != sorted(want) {
		t.Errorf("%s: %s", how, cmp.Diff(want, got))
	}
	if code, out := inside(t, e, other.ID, "0", "echo later > /opt/later && rm /opt/x/again"); code != 0 {
		t.Fatal(out)
	}
	if err := e.Freeze(t.Context(), other.ID); err != nil {
		t.Fatal(err)
	}
	second := rootLayer(t, e, other.ID, testImage) // of all that it and the image before have changed
	var names []string
	_, err := second.Content.Seek(0, io.SeekStart)
	if err == nil {
		err = eachEntry(second.Content, func(at string, _ *tar.Header, _ io.Reader) error {
			names = append(names, at)
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/opt/later", "/opt/x/file", "/etc/issue", "/usr/bin/zenv", "/usr/share/doc/.wh.apt"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s: the second layer has no %s", how, name)
		}
	}
	if slices.Contains(names, "/opt/x/again") || len(names) > 100 {
		t.Errorf("%s: the second layer has %d entries: %.500q", how, len(names), names)
	}
	if err := e.Remove(t.Context(), other.ID); err != nil {
		t.Fatal(err)
	}
}

func sorted(lines string) string {
	list := strings.Split(lines, "\n")
	slices.Sort(list)
	return strings.Join(list, "\n")
}
