package main

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/fault"
)

// archived makes a file to restore.
func archived(t *testing.T, size int64) {
	t.Helper()
	if err := os.WriteFile("b.tar.zst", []byte("a backup"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate("b.tar.zst", max(size, 8)); err != nil {
		t.Fatal(err)
	}
}

func TestRestore_SendsAFileOrNamesABackup(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"b.tar.zst", "lab", "--yes"}, "PUT /sandboxes/lab/restore"},
		{[]string{"b.tar.zst", "lab", "--yes", "--save-first"}, "PUT /sandboxes/lab/restore save_first=true"},
		{[]string{anID, "lab", "--yes"}, "PUT /sandboxes/lab/restore backup=" + anID},
		{[]string{"b.tar.zst", "lab-2", "--new", "--template", "base"}, "POST /restore name=lab-2&template=base"},
		{[]string{anID, "lab-2", "--new"}, "POST /restore backup=" + anID + "&name=lab-2"},
	} {
		v := newVault(t)
		archived(t, 0)
		out, err := anywhere(t, append([]string{"restore"}, c.args...)...)
		if all := v.requests(); err != nil || all[len(all)-1] != c.want || (string(v.uploaded) == "a backup") != (c.args[0] != anID) || !strings.Contains(out, "It is running.") {
			t.Errorf("%q: %v, %s, asked was %q with %q", c.args, err, out, all, v.uploaded)
		}
	}
}

func TestRestore_NothingIsLostUnlessTold(t *testing.T) {
	v := newVault(t)
	archived(t, 0)
	for _, c := range []struct {
		args []string
		want fault.Kind
	}{
		{[]string{"b.tar.zst", "lab"}, fault.Invalid}, // nobody can be asked
		{[]string{"b.tar.zst", "nope", "--yes"}, fault.NotFound},
		{[]string{"b.tar.zst", "lab", "--new"}, fault.Invalid},
		{[]string{"b.tar.zst", "lab", "--yes", "--template", "base"}, fault.Invalid},
		{[]string{"b.tar.zst", "lab-2", "--new", "--save-first"}, fault.Invalid},
		{[]string{".", "lab", "--yes"}, fault.Invalid},
		{[]string{"c.tar.zst", "lab", "--yes"}, fault.NotFound},
	} {
		if _, err := anywhere(t, append([]string{"restore"}, c.args...)...); !fault.Is(err, c.want) {
			t.Errorf("%q: %v", c.args, err)
		}
	}
	for _, line := range v.requests() {
		if !strings.HasPrefix(line, "GET ") {
			t.Errorf("asked was %s", line)
		}
	}
}

// TestRestore_TellsWhyAnUploadIsRefused also when only a part of it is read, or nothing.
func TestRestore_TellsWhyAnUploadIsRefused(t *testing.T) {
	for _, read := range []int{0, 1 << 20} {
		v := newVault(t)
		v.refuse, v.piece = http.StatusRequestEntityTooLarge, read
		archived(t, 1<<30)
		if _, err := anywhere(t, "restore", "b.tar.zst", "lab", "--yes"); !fault.Is(err, fault.TooLarge) || !strings.Contains(fault.Message(err), "1 KiB") {
			t.Errorf("after %d bytes: %v", read, err)
		}
	}
}

func TestRestore_CtrlCCancelsIt(t *testing.T) {
	v := newVault(t)
	v.polls = 2
	err := v.interrupted("PUT /sandboxes/lab/restore backup="+anID, "restore", anID, "lab", "--yes")
	if !fault.Is(err, fault.Gone) || !slices.Contains(v.requests(), "DELETE /sandboxes/lab/restore") {
		t.Errorf("%v, asked was %q", err, v.requests())
	}
}
