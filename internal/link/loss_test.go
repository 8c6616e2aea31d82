package link_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sandboxd/internal/wire"
)

// TestExec_WhatALostStreamLeaves ends the stream of a command that notes a SIGHUP, beside a child that ignores it.
func TestExec_WhatALostStreamLeaves(t *testing.T) {
	s := connect(t, wire.Setup{})
	for name, c := range map[string]struct {
		loss       wire.Loss
		tty        bool
		hup, child bool // heard by the command; still there
	}{
		"killed":                {wire.LossKill, false, false, false},
		"hung up":               {wire.LossHangup, false, true, true},
		"left alone":            {wire.LossLeave, false, false, true},
		"a terminal that ended": {wire.LossLeave, true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			start := sh(fmt.Sprintf(`exec 2>/dev/null; cd %s; (trap '' HUP; echo >child; while [ -e child ]; do sleep 0.02; echo >>beat; done; echo >over) </dev/null >/dev/null 2>&1 &
				trap 'echo >hup; exit' HUP; while [ ! -e child ]; do sleep 0.01; done; echo ready; while [ -e child ]; do sleep 0.02; done`, dir))
			start.Loss, start.TTY = c.loss, c.tty
			ctx, cancel := context.WithCancel(testContext(t))
			p, err := s.Exec(ctx, start)
			if err != nil {
				t.Fatal(err)
			}
			if f, err := p.Next(); err != nil || f.Type != wire.FrameStdout {
				t.Fatalf("%+v, %v", f, err)
			}
			cancel()
			if got := appears(dir, "hup", c.hup); got != c.hup {
				t.Errorf("it was hung up: %v", got)
			}
			os.Remove(filepath.Join(dir, "child"))
			if got := appears(dir, "over", c.child); got != c.child {
				t.Errorf("its child went on: %v", got)
			}
		})
	}
}

// appears says whether a file comes; what shall not come gets a moment to do so all the same.
func appears(dir, name string, wanted bool) bool {
	limit := 300 * time.Millisecond
	if wanted {
		limit = patience
	}
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}
