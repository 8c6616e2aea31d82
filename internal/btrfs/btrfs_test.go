package btrfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/fault"
)

func TestExplain_SaysWhatToDo(t *testing.T) {
	for _, c := range []struct {
		err  error
		kind fault.Kind
		says string
	}{
		{unix.ENOSPC, fault.Unavailable, "sandboxd pool grow SIZE"},
		{&fs.PathError{Op: "open", Path: "x", Err: unix.EDQUOT}, fault.Unavailable, "is full"},
		{os.NewSyscallError("ioctl", unix.EROFS), fault.Unavailable, "read-only"},
		{unix.EIO, fault.Unavailable, "dmesg"},
		{unix.ENOENT, fault.NotFound, "not there"},
		{unix.EEXIST, fault.Conflict, "already"},
		{unix.EPERM, fault.Invalid, "root"},
		{unix.ENOTCONN, fault.Invalid, "quotas"},
		{unix.ENOTTY, fault.Invalid, "Linux 6.7"},
		{fmt.Errorf("odd:\n%w", unix.EBUSY), fault.Unavailable, "copy a folder: device or resource busy."},
		{fault.New(fault.Timeout, "As it was."), fault.Timeout, "As it was."},
	} {
		err := explain(c.err, "copy a folder")
		if !fault.Is(err, c.kind) || !strings.Contains(fault.Message(err), c.says) || !errors.Is(err, c.err) {
			t.Errorf("%v: got %v, want %s and %q", c.err, err, c.kind, c.says)
		}
	}
	if err := explain(nil, "copy a folder"); err != nil {
		t.Error(err)
	}
}

func TestCheck_TakesNamesOfVolumesOnly(t *testing.T) {
	for name, want := range map[string]bool{
		"sandboxd-a-b": true, "sandboxd-a-b-snapshot": true, "x": true, strings.Repeat("x", longestName): true,
		"": false, ".": false, "..": false, "a/b": false, "../a": false, "a\x00": false, "a.new": false, ".a": false, strings.Repeat("x", longestName+1): false,
	} {
		if err := check(name); (err == nil) != want {
			t.Errorf("%.20q: %v", name, err)
		}
	}
}

func TestIn_ReadsWhichDeviceHasThePool(t *testing.T) {
	data := t.TempDir()
	d, err := In(data)
	if has, existsErr := d.Exists(); err != nil || existsErr != nil || has || d.Path != "" || d.File != filepath.Join(data, "pool.img") || d.Dir != filepath.Join(data, "pool") {
		t.Errorf("without a pool: %+v, %v (%v, %v)", d, has, err, existsErr)
	}
	if is, err := d.Mounted(); err != nil || is {
		t.Errorf("it is mounted: %v (%v)", is, err)
	}
	if err := writeFile(d.note(), "/dev/sdx\n0123\n"); err != nil {
		t.Fatal(err)
	}
	d, err = In(data)
	if has, existsErr := d.Exists(); err != nil || existsErr != nil || !has || d.Path != "/dev/sdx" {
		t.Errorf("on a device: %+v, %v (%v, %v)", d, has, err, existsErr)
	}
	if err := writeFile(d.note(), "/dev/sdx\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := In(data); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v, want Invalid", err)
	}
}
