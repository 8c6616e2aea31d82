package sandboxtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// guestBinary builds the real guest once.
var guestBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sbxguest-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "guest")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -funcalign=16", "-o", path, "sandboxd/cmd/guest")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the guest: %w: %s", err, out)
	}
	return path, nil
})

// GuestBinary gives the path of the real guest, built for this run of the tests. Main removes it.
func GuestBinary(t testing.TB) string {
	t.Helper()
	path, err := guestBinary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Main runs the tests of a package that uses GuestBinary, and ends the process.
func Main(m *testing.M) {
	code := m.Run()
	if path, err := guestBinary(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}
