//go:build engine

package docker

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
)

// stagedTest builds an image from scratch that has one folder with a file and a link.
func stagedTest(t *testing.T, e *Engine, stage string) string {
	t.Helper()
	b := buildOf(t, "FROM "+testImage+" AS build\nLABEL "+labelStage+"="+stage+"\n"+
		"RUN mkdir -p /tree/sub && echo text > /tree/sub/file && ln -s sub/file /tree/link\nFROM scratch\nCOPY --from=build /tree /tree\n")
	removeImage(t, e, b.Tag)
	if err := e.BuildImage(t.Context(), b, func(catalog.BuildEvent) {}); err != nil {
		t.Fatal(err)
	}
	return b.Tag
}

// entries reads an archive's names with their contents or targets.
func entries(r io.Reader) (map[string]string, error) {
	found := map[string]string{}
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}
		found[h.Name] = string(text) + h.Linkname
	}
}

func copies(t *testing.T, e *Engine, owner string) int {
	t.Helper()
	list, err := e.client.Load().ContainerList(t.Context(), container.ListOptions{All: true,
		Filters: filters.NewArgs(filters.Arg("label", labelCopy+"="+owner))})
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestCopyOut_GivesAFolderOfAnImageAndLeavesNothing(t *testing.T) {
	e := openTest(t)
	owner := randomHex()
	ref := stagedTest(t, e, "test-"+owner)
	left, err := e.client.Load().ContainerCreate(t.Context(), &container.Config{Image: ref, Entrypoint: []string{"-"},
		Labels: map[string]string{labelCopy: owner}}, nil, nil, nil, "sandboxd-copy-"+owner) // by one that crashed
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.removeCopy(context.Background(), left.ID) })
	var got map[string]string
	if err := e.CopyOut(t.Context(), ref, "/tree", owner, func(r io.Reader) (err error) { got, err = entries(r); return err }); err != nil {
		t.Fatal(err)
	}
	if got["tree/sub/file"] != "text\n" || got["tree/link"] != "sub/file" || len(got) != 4 {
		t.Errorf("got %q", got)
	}
	broken := errors.New("disk full")
	if err := e.CopyOut(t.Context(), ref, "/tree", owner, func(io.Reader) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if err := e.CopyOut(t.Context(), ref, "/none", owner, nil); !fault.Is(err, fault.NotFound) {
		t.Errorf("no folder: %v", err)
	}
	if err := e.CopyOut(t.Context(), "sandboxd-engine-test:none", "/tree", owner, nil); !fault.Is(err, fault.NotFound) {
		t.Errorf("no image: %v", err)
	}
	if n := copies(t, e, owner); n != 0 {
		t.Errorf("%d containers are left", n)
	}
}

func TestDropStages_TakesTheStageAndLeavesTheImage(t *testing.T) {
	e := openTest(t)
	stage := "test-" + randomHex()
	ref := stagedTest(t, e, stage)
	staged := func() int {
		list, err := e.client.Load().ImageList(t.Context(), image.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", labelStage+"="+stage))})
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if staged() == 0 {
		t.Fatal("the builder has left no stage")
	}
	if err := e.DropStages(t.Context(), stage); err != nil {
		t.Fatal(err)
	}
	if n := staged(); n != 0 {
		t.Errorf("%d images of the stage are left", n)
	}
	if has, err := e.HasImage(t.Context(), ref); err != nil || !has {
		t.Errorf("the image is there: %t, %v", has, err)
	}
	if has, err := e.HasImage(t.Context(), testImage); err != nil || !has {
		t.Errorf("its base is there: %t, %v", has, err)
	}
}

// VS Code's own Dockerfile marks its stage.
func TestDropStages_TheDockerfileOfVSCodeHasOne(t *testing.T) {
	text, err := os.ReadFile("../../templates/ide/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	if want := "\nLABEL " + labelStage + "=ide\n"; !strings.Contains(string(text), want) {
		t.Errorf("no %q in:\n%s", want, text)
	}
}
