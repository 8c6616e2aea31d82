package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/btrfs"
)

func TestDoctor_SaysWhatAStoragePoolLacks(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var names unix.Utsname
	if err := unix.Uname(&names); err != nil {
		t.Fatal(err)
	}
	modules := filepath.Join("lib/modules", unix.ByteSliceToString(names.Release[:]), "modules.dep")
	machine := func(files ...string) poolHost {
		root := t.TempDir()
		for i := 0; i < len(files); i += 2 {
			at := filepath.Join(root, files[i])
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(files[i+1]), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return poolHost{root}
	}
	for name, c := range map[string]struct {
		host poolHost
		want string
	}{
		"no btrfs": {machine("proc/filesystems", "nodev\tsysfs\n\text4\n"), "no btrfs"},
		"a module": {machine("proc/filesystems", "\text4\n", modules, "kernel/fs/btrfs/btrfs.ko.zst: x\n"), "mkfs.btrfs"},
		"built in": {machine("proc/filesystems", "\tbtrfs\n"), "mkfs.btrfs"},
		"too old":  {machine("proc/filesystems", "\tbtrfs\n", "sys/fs/btrfs/features/acl", "0\n"), "Linux 6.7"},
		"new":      {machine("proc/filesystems", "\tbtrfs\n", "sys/fs/btrfs/features/simple_quota", "0\n"), "mkfs.btrfs"},
	} {
		if got := c.host.lacks(); got == nil || !strings.Contains(got.saw, c.want) || got.mend == "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	program := filepath.Join(t.TempDir(), "mkfs.btrfs")
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(program))
	if got := machine("proc/filesystems", "\tbtrfs\n").lacks(); got == nil || !strings.Contains(got.saw, "loop") {
		t.Errorf("without loop devices: %+v", got)
	}
	for rights, want := range map[string]bool{"000001ffffffffff": true, "00000000a80425fb": false} {
		got := machine("proc/filesystems", "\tbtrfs\n", "dev/loop-control", "", "proc/self/status", "Name:\tx\nCapEff:\t"+rights+"\n").lacks()
		if want != (got == nil) {
			t.Errorf("with all, and the rights %s: %+v", rights, got)
		}
	}
}

func TestDoctor_JudgesTheStoragePool(t *testing.T) {
	disk := btrfs.Disk{File: "/data/pool.img"}
	for want, space := range map[level]btrfs.Space{
		good:    {Size: 100, Free: 11},
		warning: {Size: 100, Free: 10},
		bad:     {Size: 100, Free: 90, ReadOnly: true},
	} {
		if f := judgePool(disk, space); f.Level != want || !strings.Contains(f.Saw, "/data/pool.img") {
			t.Errorf("%+v: %+v", space, f)
		}
	}
	if f := lookPool(t.Context(), &Config{Data: t.TempDir()}); f.Level != good || !strings.Contains(f.Saw, "no storage pool") {
		t.Errorf("without one: %+v", f)
	}
}
