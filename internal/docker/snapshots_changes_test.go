package docker

import (
	"os"
	"path/filepath"
	"testing"
)

func TestUpperChanged_LeavesMountPointsOut(t *testing.T) {
	for name, c := range map[string]struct {
		folders []string
		files   []string
		want    bool
	}{
		"nothing":                    {want: false},
		"mount points":               {folders: []string{"home/agent", ".sandboxd/link"}, files: []string{"usr/sbin/docker-init", ".sandboxd/guest"}, want: false},
		"a file beside":              {folders: []string{"home/agent"}, files: []string{"home/other"}, want: true},
		"a folder of the image's":    {folders: []string{"opt"}, want: true},
		"a file below a mount point": {files: []string{"home/agent/file"}, want: true},
	} {
		upper := t.TempDir()
		for _, folder := range append(c.folders, "") {
			if err := os.MkdirAll(filepath.Join(upper, folder), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, file := range c.files {
			at := filepath.Join(upper, file)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if is, err := upperChanged(upper, mountPoints); err != nil || is != c.want {
			t.Errorf("%s: %v (%v)", name, is, err)
		}
	}
	if _, err := upperChanged(filepath.Join(t.TempDir(), "none"), nil); err == nil {
		t.Error("a folder that cannot be read")
	}
}
