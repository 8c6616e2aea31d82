package link_test

import (
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"sandboxd/internal/wire"
)

// peak gives the most memory that this process has had resident since reset.
func peak(t *testing.T) int64 {
	t.Helper()
	for line := range strings.Lines(slurp(t, "/proc/self/status")) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("the kernel does not tell")
	return 0
}

func resetPeak(t *testing.T) {
	t.Helper()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}

// Both ends of the link are in this process.
func TestFiles_ALargeFileCostsLittleMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // as the guest does: garbage is not what is asked about
	s, _ := connectFiles(t)
	ctx := testContext(t)
	const size, most = 96 << 20, 64 << 20
	for name, do := range map[string]func() error{
		"write": func() error {
			_, err := s.FileWrite(ctx, wire.FilePut{Path: "/big", Size: size}, &endless{size})
			return err
		},
		"read slowly": func() error {
			s.FileWrite(ctx, wire.FilePut{Path: "/big", Size: size}, &endless{size})
			_, r, err := s.FileRead(ctx, "/big", 0, -1)
			if err != nil {
				return err
			}
			defer r.Close()
			small := make([]byte, 4096)
			for range 1000 {
				if _, err := io.ReadFull(r, small); err != nil {
					return err
				}
			}
			_, err = io.Copy(io.Discard, r)
			return err
		},
		"pack": func() error {
			r, err := s.FilePack(ctx, "/", nil)
			if err != nil {
				return err
			}
			defer r.Close()
			_, err = io.Copy(io.Discard, r)
			return err
		},
	} {
		debug.FreeOSMemory() // of the tests before
		resetPeak(t)
		before := peak(t)
		if err := do(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if grown := peak(t) - before; grown > most {
			t.Errorf("%s: %d MiB more", name, grown>>20)
		}
	}
}
