package docker

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// openFilesLimit gives the smallest hard limit on open files among the engine's processes on this machine, or 0 when
// none is found. A sandbox that is to have a larger one does not start where the engine may not raise it, and the
// engine's interface tells no such thing.
func openFilesLimit(proc string) uint64 {
	names, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "comm"))
	if err != nil {
		return 0
	}
	least := uint64(0)
	for _, name := range names {
		comm, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if c := strings.TrimSpace(string(comm)); c != "dockerd" && c != "containerd" {
			continue
		}
		if n := hardLimit(filepath.Join(filepath.Dir(name), "limits")); n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// hardLimit reads the hard limit on open files from a /proc/<pid>/limits, or 0.
func hardLimit(file string) uint64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, "Max open files")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 2 {
			continue
		}
		if fields[1] == "unlimited" {
			return maxOpenFiles
		}
		n, err := strconv.ParseUint(fields[1], 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	return 0
}
