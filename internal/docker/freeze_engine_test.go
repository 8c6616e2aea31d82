//go:build engine

package docker

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestPause_IsOneAlsoRightAfterAThaw pauses a sandbox that was thawed a moment ago, and wants its processes to be suspended whenever the
// engine has said so.
func TestPause_IsOneAlsoRightAfterAThaw(t *testing.T) {
	e := openTest(t)
	b := running(t, e, "patient")
	if code, out := inside(t, e, b.ID, "0", "(while :; do date +%N > /home/agent/now; done) > /dev/null 2>&1 < /dev/null &"); code != 0 {
		t.Fatal(out)
	}
	home, err := e.client.Load().VolumeInspect(t.Context(), e.resource(b.ID))
	if err != nil {
		t.Fatal(err)
	}
	read := func() string {
		text, err := os.ReadFile(filepath.Join(home.Mountpoint, "now"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for range 12 {
		for range 3 {
			if err := e.Pause(t.Context(), b.ID); err != nil {
				t.Fatal(err)
			}
			if err := e.Thaw(t.Context(), b.ID); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Pause(t.Context(), b.ID); err != nil {
			t.Fatal(err)
		}
		was := read()
		pause := time.NewTimer(lateEvery)
		<-pause.C
		if now := read(); now != was {
			t.Fatalf("its processes run: %q, %q", was, now)
		}
		if err := e.Thaw(t.Context(), b.ID); err != nil {
			t.Fatal(err)
		}
	}
}
