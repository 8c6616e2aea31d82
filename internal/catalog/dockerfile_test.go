package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDockerfile_FindsStepsAndImages(t *testing.T) {
	d, problems := parseDockerfile("Dockerfile", []byte(`# syntax comment
ARG VERSION=trixie
ARG BASE_IMAGE
FROM --platform=linux/amd64 debian:${VERSION}-slim AS build
run apt-get update && \
    # a comment inside
    apt-get install \

    -y gcc
COPY --from=golang:1 /go /go
COPY --from=0 /a /a
COPY --chown=a:b --from=build /b /b
FROM ${BASE_IMAGE}
COPY --from=build /c /c
FROM $OTHER_IMAGE_UNUSED
`))
	if len(problems) != 1 || problems[0].Line != 15 {
		t.Errorf("problems are %v, want one on line 15", problems)
	}
	if diff := cmp.Diff([]string{"debian:trixie-slim", "golang:1"}, d.External); diff != "" || !d.OnBase {
		t.Errorf("external images differ, on base %t:\n%s", d.OnBase, diff)
	}
	want := instruction{Line: 5, Word: "RUN", Rest: "apt-get update &&     apt-get install     -y gcc"}
	if diff := cmp.Diff(want, d.Steps[3]); diff != "" || len(d.Steps) != 10 {
		t.Errorf("%d steps, the fourth differs:\n%s", len(d.Steps), diff)
	}
}

func TestDockerfile_HonoursEscapeDirectiveAndDefaults(t *testing.T) {
	d, problems := parseDockerfile("Dockerfile", []byte("# escape=`\nFROM ${IMAGE:-debian:trixie}\r\nRUN dir c:\\ `\r\n  && true\r\n"))
	if len(problems) > 0 || len(d.Steps) != 2 || d.External[0] != "debian:trixie" {
		t.Errorf("steps %+v, images %v, problems %v", d.Steps, d.External, problems)
	}
}

func TestCheckImage(t *testing.T) {
	for _, ref := range []string{"debian", "debian:trixie-slim", "localhost:5000/a/b:c", "registry.example/x/y@sha256:" + repeat("a", 64)} {
		if err := CheckImage(ref); err != nil {
			t.Errorf("%s is refused: %v", ref, err)
		}
	}
	for _, ref := range []string{"", "Debian", "a b", "../x", "-x", "debian:", "http://x/y", "sandboxd/base:1", "docker.io/sandboxd/base", repeat("a", 256), repeat("a", 64), "sha256:" + repeat("a", 64), "a\x00"} {
		if err := CheckImage(ref); err == nil {
			t.Errorf("%q is taken", ref)
		}
	}
	if got := normalImage("debian"); got != "debian:latest" {
		t.Errorf("debian is asked for as %s", got)
	}
}
