//go:build engine

package docker

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/image"

	"sandboxd/internal/catalog"
	"sandboxd/internal/fault"
)

func removeImage(t *testing.T, e *Engine, ref string) {
	t.Cleanup(func() {
		cli, err := dial("")
		if err != nil {
			t.Fatal(err)
		}
		defer cli.Close()
		ctx := context.Background()
		if _, err := cli.ImageRemove(ctx, ref, image.RemoveOptions{Force: true, PruneChildren: true}); err != nil {
			t.Log(err)
		}
	})
}

// buildTest builds an image from a Dockerfile and gives its name.
func buildTest(t *testing.T, e *Engine, dockerfile string) string {
	t.Helper()
	b := buildOf(t, dockerfile)
	removeImage(t, e, b.Tag)
	if err := e.BuildImage(t.Context(), b, func(catalog.BuildEvent) {}); err != nil {
		t.Fatal(err)
	}
	return b.Tag
}

func buildOf(t *testing.T, dockerfile string) catalog.Build {
	t.Helper()
	b := catalog.Build{Tag: "sandboxd-engine-test:" + randomHex(), Folder: t.TempDir()}
	if err := os.WriteFile(filepath.Join(b.Folder, "Dockerfile"), []byte(dockerfile), 0o644); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBuild_StepsLinesArgumentsAndExtraFiles(t *testing.T) {
	e := openTest(t)
	b := buildOf(t, "ARG BASE\nFROM ${BASE}\nARG WORD\nCOPY . /in\nRUN echo word=$WORD && cat /in/.sandboxd/ca/host.crt && ls -a /in\nLABEL x=y\n")
	for name, text := range map[string]string{"kept": "1", "left": "2", ".dockerignore": "left\n"} {
		if err := os.WriteFile(filepath.Join(b.Folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.Args = map[string]string{"BASE": testImage, "WORD": "hello"}
	b.Labels = map[string]string{"sandboxd.test": "1"}
	b.Extra = map[string][]byte{".sandboxd/ca/host.crt": []byte("certificate\n")}
	removeImage(t, e, b.Tag)
	var events []catalog.BuildEvent
	if err := e.BuildImage(t.Context(), b, func(ev catalog.BuildEvent) { events = append(events, ev) }); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	last := catalog.BuildEvent{}
	for _, ev := range events {
		text.WriteString(ev.Line + "\n")
		if ev.Step < last.Step {
			t.Errorf("step %d comes after %d", ev.Step, last.Step)
		}
		last = ev
	}
	for _, want := range []string{"word=hello", "certificate", "kept"} {
		if !strings.Contains(text.String(), want+"\n") {
			t.Errorf("no line %q in:\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "\nleft\n") || last.Step != 7 || last.Steps != 7 {
		t.Errorf("ends at step %d of %d:\n%s", last.Step, last.Steps, text.String())
	}
	if has, err := e.HasImage(t.Context(), b.Tag); err != nil || !has {
		t.Errorf("got %t %v", has, err)
	}
	if has, err := e.HasImage(t.Context(), b.Tag+"not"); err != nil || has {
		t.Errorf("got %t %v", has, err)
	}
}

func TestBuild_FailureNamesStepAndOutput(t *testing.T) {
	e := openTest(t)
	for dockerfile, want := range map[string][]string{
		"FROM " + testImage + "\nRUN echo the reason; exit 7\n": {"Step 2 of 2", "RUN echo the reason", "returned a non-zero code: 7", "\nthe reason"},
		"FROM " + testImage + "\nNONSENSE\n":                    {"NONSENSE"},
		"FROM " + testImage + "\nCOPY absent /\n":               {"Step 2 of 2", "absent"},
		"FROM 127.0.0.1:1/no/image\n":                           {"Step 1 of 1", "127.0.0.1:1"},
	} {
		err := e.BuildImage(t.Context(), buildOf(t, dockerfile), func(catalog.BuildEvent) {})
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: got %v (%v)", dockerfile, err, fault.KindOf(err))
		}
		for _, w := range want {
			if !strings.Contains(fault.Message(err), w) {
				t.Errorf("%q: no %q in %q", dockerfile, w, fault.Message(err))
			}
		}
	}
}

func TestBuild_EndsWithItsCaller(t *testing.T) {
	e := openTest(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := e.BuildImage(ctx, buildOf(t, "FROM "+testImage+"\nRUN echo begun; sleep 60\n"), func(ev catalog.BuildEvent) {
		if ev.Line == "begun" {
			cancel()
		}
	})
	if err == nil || ctx.Err() == nil {
		t.Errorf("got %v", err)
	}
}

func TestBootstrap_MakesTheBaseImage(t *testing.T) {
	e := openTest(t)
	ref := "sandboxd-engine-test:base-" + randomHex()
	removeImage(t, e, ref)
	var last catalog.BuildEvent
	if err := e.bootstrap(t.Context(), ref, func(ev catalog.BuildEvent) { last = ev }); err != nil {
		t.Fatal(err)
	}
	if last.Done == 0 || last.Total <= last.Done {
		t.Errorf("the last word was %+v", last)
	}
	tag := buildTest(t, e, "FROM "+ref+"\nRUN test -e /etc/ssl/certs/ca-certificates.crt && . /etc/os-release && test $VERSION_CODENAME = trixie"+
		` && test -e /usr/share/doc/bash/copyright && test -z "$(find /usr/share/man /usr/share/locale -type f)"`+"\n")
	if has, err := e.HasImage(t.Context(), tag); err != nil || !has {
		t.Errorf("got %t %v", has, err)
	}
}
