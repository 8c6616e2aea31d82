package docker

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// file is one of a root file system.
type file struct {
	kind    byte
	content string // or where a link leads
	mode    int64
	time    int64
	xattr   string
}

var rootDay = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// rootTar is a root file system as the engine exports it.
func rootTar(t *testing.T, files map[string]file) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		h := &tar.Header{Name: name, Typeflag: f.kind, Mode: 0o644 + f.mode, ModTime: rootDay.Add(time.Duration(f.time) * time.Second), Format: tar.FormatPAX}
		switch f.kind {
		case tar.TypeReg:
			h.Size = int64(len(f.content))
		case tar.TypeDir:
			h.Name, h.Mode = name+"/", 0o755+f.mode
		default:
			h.Linkname = f.content
		}
		if f.xattr != "" {
			h.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": f.xattr}
		}
		err := w.WriteHeader(h)
		if err == nil && f.kind == tar.TypeReg {
			_, err = io.WriteString(w, f.content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

// rootFiles reads one. Folders that are only said to be there once more are no difference.
func rootFiles(t *testing.T, from io.Reader) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := eachEntry(from, func(at string, h *tar.Header, content io.Reader) error {
		text, err := io.ReadAll(content)
		out[at] = fmt.Sprintf("%c %o %d %q %q %q", h.Typeflag, h.Mode, h.ModTime.Unix(), text, h.Linkname, h.PAXRecords["SCHILY.xattr.security.capability"])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// layerFor gives the layer that makes box of base.
func layerFor(t *testing.T, base, box map[string]file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := newLayerWriter(container.InspectResponse{Config: &container.Config{Labels: map[string]string{labelVolumes: sandbox.MountText([]sandbox.Mount{{Volume: "00000000000000aa", Target: "/volumes/data"}})}}}, &b)
	w.fetch = func(at string, take func(io.Reader) error) error {
		f, has := box[at[1:]]
		if !has {
			return errors.New("it is not there")
		}
		return take(rootTar(t, map[string]file{path.Base(at): f}))
	}
	if err := readTree(rootTar(t, base), w); err != nil {
		t.Fatal(err)
	}
	if err := w.writeLayer(rootTar(t, box)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestLayer_MakesTheRootOfItsBase(t *testing.T) {
	dir, reg, sym, link := byte(tar.TypeDir), byte(tar.TypeReg), byte(tar.TypeSymlink), byte(tar.TypeLink)
	base := map[string]file{
		"etc": {kind: dir}, "etc/a": {kind: reg, content: "a"}, "etc/b": {kind: reg, content: "b"}, "etc/same-time": {kind: reg, content: "x"},
		"etc/hosts": {kind: reg, content: "engine's"}, "home": {kind: dir}, "home/agent": {kind: dir}, "home/agent/f": {kind: reg},
		"opt": {kind: dir}, "opt/d": {kind: dir}, "opt/d/e": {kind: dir}, "opt/d/e/f": {kind: reg}, "opt/to-file": {kind: dir}, "opt/to-file/x": {kind: reg},
		"opt/to-link": {kind: dir}, "opt/to-link/x": {kind: reg}, "opt/to-folder": {kind: reg, content: "x"}, "usr": {kind: dir}, "usr/prog": {kind: reg, content: "prog"}, "usr/z-prog": {kind: link, content: "usr/prog"},
		"usr/cap": {kind: reg, content: "c"}, "usr/mode": {kind: reg, content: "m"}, "var": {kind: dir}, "var/old": {kind: link, content: "usr/prog"},
	}
	box := map[string]file{
		"etc": {kind: dir, time: 9}, "etc/a": {kind: reg, content: "changed", time: 5}, "etc/same-time": {kind: reg, content: "y"},
		"etc/hosts": {kind: reg, content: "another engine's"}, "home": {kind: dir, time: 7}, "home/agent": {kind: dir}, "home/agent/g": {kind: reg},
		"opt": {kind: dir}, "opt/to-file": {kind: reg, content: "now a file", time: 3}, "opt/to-link": {kind: sym, content: "/etc"}, "opt/to-folder": {kind: dir}, "opt/to-folder/x": {kind: reg},
		"usr": {kind: dir}, "usr/.wh.odd": {kind: reg, content: "odd"}, "usr/a-odd": {kind: link, content: "usr/.wh.odd"}, "usr/b-odd": {kind: link, content: "usr/.wh.odd"}, "usr/.wh.d": {kind: dir}, "usr/.wh.d/f": {kind: reg}, "usr/prog": {kind: reg, content: "prog"}, "usr/z-prog": {kind: link, content: "usr/prog"}, "usr/zz-new": {kind: link, content: "usr/prog"},
		"usr/cap": {kind: reg, content: "c", xattr: "\x01\x02"}, "usr/mode": {kind: reg, content: "m", mode: 0o111}, "var": {kind: dir}, "var/new": {kind: dir, mode: 0o22}, "var/new/f": {kind: reg, content: strings.Repeat("long", 1000)},
		"volumes": {kind: dir}, "volumes/data": {kind: dir}, "volumes/data/big": {kind: reg, content: "not ours"},
	}
	layer := layerFor(t, base, box)
	var merged bytes.Buffer
	if err := mergeLayer(rootTar(t, base), bytes.NewReader(layer), &merged); err != nil {
		t.Fatal(err)
	}
	want, got := rootFiles(t, rootTar(t, box)), rootFiles(t, &merged)
	for at := range want { // what is mounted, and what the engine makes, is that of the base
		if strings.HasPrefix(at, "/home") || strings.HasPrefix(at, "/volumes") || at == "/etc/hosts" || strings.Contains(at, "/.wh.") {
			delete(want, at)
		}
	}
	want["/usr/a-odd"], want["/usr/b-odd"] = fmt.Sprintf("0 644 %d %q %q %q", rootDay.Unix(), "odd", "", ""), fmt.Sprintf("1 644 %d %q %q %q", rootDay.Unix(), "", "usr/a-odd", "")
	for at := range got {
		if strings.HasPrefix(at, "/home") || at == "/etc/hosts" {
			delete(got, at)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	changed := slices.Sorted(maps.Keys(rootFiles(t, bytes.NewReader(layer))))
	wanted := []string{
		"/etc", "/etc/.wh.b", "/etc/a", "/etc/same-time", "/opt", "/opt/.wh.d", "/opt/to-file", "/opt/to-folder", "/opt/to-folder/x", "/opt/to-link",
		"/usr", "/usr/a-odd", "/usr/b-odd", "/usr/cap", "/usr/mode", "/usr/prog", "/usr/z-prog", "/usr/zz-new", "/var", "/var/.wh.old", "/var/new", "/var/new/f",
	}
	if d := cmp.Diff(wanted, changed); d != "" {
		t.Errorf("the layer has: %s", d)
	}
}

func TestCheckLayer_RefusesWhatIsNeverWritten(t *testing.T) {
	dir, reg, sym := byte(tar.TypeDir), byte(tar.TypeReg), byte(tar.TypeSymlink)
	for name, c := range map[string]struct {
		files map[string]file
		want  bool
	}{
		"plain":                 {map[string]file{"etc": {kind: dir}, "etc/a": {kind: reg}, "home": {kind: dir}, "opt/.wh.x": {kind: reg}}, true},
		"a link for a mount":    {map[string]file{strings.TrimPrefix(path.Dir(wire.GuestPath), "/"): {kind: sym, content: "/home/agent"}}, false},
		"a link above a mount":  {map[string]file{"home": {kind: sym, content: "/opt"}}, false},
		"a file in a mount":     {map[string]file{"home/agent/.bashrc": {kind: reg}}, false},
		"no folder for a mount": {map[string]file{".wh.home": {kind: reg}}, false},
		"a device":              {map[string]file{"dev/sda": {kind: reg}}, false},
		"the engine's":          {map[string]file{"etc/hosts": {kind: reg}}, false},
	} {
		err := checkLayer(bytes.NewReader(rootTar(t, c.files).Bytes()))
		if (err == nil) != c.want || err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := errors.Join(w.WriteHeader(&tar.Header{Name: "opt/r", Typeflag: dir, PAXRecords: map[string]string{"SCHILY.xattr.trusted.overlay.redirect": "/etc"}}), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	if err := checkLayer(bytes.NewReader(b.Bytes())); !fault.Is(err, fault.Invalid) {
		t.Errorf("the engine's attributes: %v", err)
	}
}

func TestLayer_TellsWhatItLacks(t *testing.T) {
	long := "opt/" + strings.Repeat(strings.Repeat("d", 250)+"/", 16) + "f"
	w := newLayerWriter(container.InspectResponse{Config: &container.Config{}}, io.Discard)
	err := readTree(rootTar(t, nil), w)
	if err == nil {
		err = w.writeLayer(rootTar(t, map[string]file{long: {kind: tar.TypeReg}, "opt/.wh.x": {kind: tar.TypeReg}, "opt/y": {kind: tar.TypeReg}}))
	}
	if err != nil || len(w.lost.Lost) != 2 || !w.written["/opt/y"] || len(w.written) != 1 {
		t.Errorf("%v; lost %+v, written %v", err, w.lost, w.written)
	}
}

// TestLayer_OfTooManyFoldersIsRefused has as many as a hostile sandbox can make, whose headers would fill the memory of sandboxd.
func TestLayer_OfTooManyFoldersIsRefused(t *testing.T) {
	w := newLayerWriter(container.InspectResponse{Config: &container.Config{}}, io.Discard)
	if err := readTree(rootTar(t, nil), w); err != nil {
		t.Fatal(err)
	}
	from, to := io.Pipe()
	go func() {
		out := tar.NewWriter(to)
		for i := 0; ; i++ {
			if err := out.WriteHeader(&tar.Header{Name: fmt.Sprintf("opt/%d/", i), Typeflag: tar.TypeDir, Mode: 0o755}); err != nil {
				to.CloseWithError(err)
				return
			}
		}
	}()
	err := w.writeLayer(from)
	from.Close()
	if !fault.Is(err, fault.Invalid) || len(w.folders) > maxHeaders+1 {
		t.Errorf("%v with %d folders", err, len(w.folders))
	}
}

func TestLayer_OfNoChangeIsEmpty(t *testing.T) {
	base := map[string]file{"home": {kind: tar.TypeDir}, "home/agent": {kind: tar.TypeDir}, "usr": {kind: tar.TypeDir}, "usr/a": {kind: tar.TypeReg, content: "a"}, "usr/b": {kind: tar.TypeLink, content: "usr/a"}}
	box := maps.Clone(base)
	box["home"] = file{kind: tar.TypeDir, time: 5} // the engine made a folder in it
	if got := rootFiles(t, bytes.NewReader(layerFor(t, base, box))); len(got) > 0 {
		t.Errorf("%v", got)
	}
}
