//go:build bench

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/benchtest"
)

// group measures some cases as a test of its own, with s, the server that they share with others, or nil: what fails costs only
// what comes after it in the same group. Groups nest.
func (b *benches) group(s *server, name string, measure func()) {
	b.t.Helper()
	outer, failed := b.t, len(b.failed)
	use := func(t *testing.T) {
		if b.t = t; s != nil {
			s.t = t
		}
	}
	measured := outer.Run(name, func(t *testing.T) {
		use(t)
		measure()
	})
	use(outer)
	said := len(b.failed) > failed // by a group within it
	if !measured && !said {
		outer.Errorf("FAILED: %s is measured in part, or not at all", name)
		b.failed = append(b.failed, name)
	}
	if b.path != "" {
		benchtest.Ended(outer, b.path, name, measured || said)
	}
}

// badBench names, to the process that a test starts, the file into which it measures groups of which some fail.
const badBench = "SANDBOXD_TEST_BAD_BENCH"

// TestBench_ACaseThatFailsCostsItselfOnly runs itself as a process of its own, which has to fail. It dies in the end, as a
// benchmark whose time is over does: what was measured before is written.
func TestBench_ACaseThatFailsCostsItselfOnly(t *testing.T) {
	if path := os.Getenv(badBench); path != "" {
		b, s := &benches{t: t, path: path}, &server{t: t}
		one := []time.Duration{time.Second}
		b.group(s, "before", func() { b.add("first", "", one, nil) })
		b.group(s, "broken", func() { b.add("half", "", one, nil); s.t.Fatal("code-server does not listen") })
		b.group(s, "outer", func() {
			b.group(s, "inner", func() { s.t.Fatal("no answer") })
			b.group(nil, "beside", func() { b.each("slow", time.Millisecond, one) })
		})
		b.group(s, "after", func() { b.add("last", "", one, nil); os.Exit(1) })
	}
	path := filepath.Join(t.TempDir(), "bench.json")
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), badBench+"="+path)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "GOAL MISSED: slow: 1 of 1") {
		t.Errorf("error %v and\n%s", err, out)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Cases  []benchtest.Case
		Failed []string
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range got.Cases {
		names = append(names, c.Name)
	}
	if !slices.Equal(names, []string{"first", "half", "slow", "last"}) || !slices.Equal(got.Failed, []string{"broken", "inner"}) {
		t.Fatalf("got %v, failed %v", names, got.Failed)
	}
	if got.Cases[0].Missed != "" || got.Cases[2].Missed == "" {
		t.Errorf("missed goals: %+v", got.Cases)
	}
}
