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
)

// badBench names, to the process that a test starts, the file into which it measures groups of which one fails.
const badBench = "SANDBOXD_TEST_BAD_BENCH"

// TestBench_OneGroupThatFailsCostsItselfOnly runs itself as a process of its own, which has to fail.
func TestBench_OneGroupThatFailsCostsItselfOnly(t *testing.T) {
	if path := os.Getenv(badBench); path != "" {
		b, s := &benches{t: t, path: path}, &server{t: t}
		one := []time.Duration{time.Second}
		b.group(t, s, "before", func() { b.add("first", "", one, nil) })
		b.group(t, s, "broken", func() { b.add("half", "", one, nil); s.t.Fatal("code-server does not listen") })
		b.group(t, s, "after", func() { b.add("last", "", one, nil) })
		return
	}
	path := filepath.Join(t.TempDir(), "bench.json")
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), badBench+"="+path)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "FAILED: broken") {
		t.Errorf("error %v and\n%s", err, out)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Cases  []benchCase
		Failed []string
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range got.Cases {
		names = append(names, c.Name)
	}
	if !slices.Equal(names, []string{"first", "half", "last"}) || !slices.Equal(got.Failed, []string{"broken"}) {
		t.Errorf("got %v, failed %v", names, got.Failed)
	}
}
