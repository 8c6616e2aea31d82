//go:build engine

package archive

import (
	"archive/tar"
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// run runs a tool with an archive as its input, in a folder.
func run(t *testing.T, folder string, in []byte, tool string, args ...string) string {
	t.Helper()
	c := exec.Command(tool, args...)
	c.Dir, c.Stdin = folder, bytes.NewReader(in)
	var problems strings.Builder
	c.Stderr = &problems
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", c, err, problems.String())
	}
	return string(out)
}

// same has rsync find no difference.
func same(t *testing.T, seed uint64, from, to string) {
	t.Helper()
	out := run(t, from, nil, "rsync", "-aHAXni", "--checksum", "--numeric-ids", "--modify-window=-1", "--delete", from+"/", to+"/")
	if out != "" {
		t.Errorf("seed %d: rsync sees differences:\n%s", seed, out)
	}
}

const seeds = 20

// What others read or write otherwise: bsdtar takes names of attributes as they stand, has access lists as text, and a time before
// 1970 is to it another one.
var (
	gnuTar = omitted{}
	bsdtar = omitted{equals: true, lists: true, old: true}
	writes = omitted{equals: true, lists: true, old: true, holes: true} // bsdtar itself spoils long names of files with holes
)

// TestExtract_MakesWhatOthersFindEqual compares with tools that know nothing of us.
func TestExtract_MakesWhatOthersFindEqual(t *testing.T) {
	for seed := range uint64(seeds) {
		from, to := t.TempDir(), t.TempDir()
		plant(t, from, seed, omitted{})
		b, _ := pack(t, from, Options{})
		if _, err := Extract(t.Context(), tar.NewReader(bytes.NewReader(b)), open(t, to), Options{}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		same(t, seed, from, to)
		run(t, to, b, "tar", "-d", "--numeric-owner", "--xattrs", "--xattrs-include=*", "--warning=no-unknown-keyword", "-f", "-")
	}
}

type peer struct {
	omit omitted
	tool string
	args []string
}

func TestWrite_OthersExtractIt(t *testing.T) {
	for name, tool := range map[string]peer{
		"GNU tar": {gnuTar, "tar", []string{"-xp", "--numeric-owner", "--xattrs", "--xattrs-include=*", "--warning=no-unknown-keyword", "-f", "-"}},
		"bsdtar":  {bsdtar, "bsdtar", []string{"-xp", "--numeric-owner", "-f", "-"}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(seeds) {
				from, to := t.TempDir(), t.TempDir()
				plant(t, from, seed, tool.omit)
				b, _ := pack(t, from, Options{Prefix: "home/"})
				run(t, to, b, tool.tool, tool.args...)
				same(t, seed, from, to+"/home")
			}
		})
	}
}

func TestExtract_TakesWhatOthersWrite(t *testing.T) {
	for name, tool := range map[string]peer{
		"GNU tar": {gnuTar, "tar", []string{"-c", "--format=posix", "--sparse", "--xattrs", "--xattrs-include=*", "-f", "-", "."}},
		"bsdtar":  {writes, "bsdtar", []string{"-c", "--format=pax", "-f", "-", "."}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(seeds) {
				from, to := t.TempDir(), t.TempDir()
				plant(t, from, seed, tool.omit)
				b := run(t, from, nil, tool.tool, tool.args...)
				if _, err := Extract(t.Context(), tar.NewReader(strings.NewReader(b)), open(t, to), Options{}); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				same(t, seed, from, to)
			}
		})
	}
}
