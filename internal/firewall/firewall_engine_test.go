//go:build engine

package firewall

import (
	"context"
	"os/exec"
	"strings"
	"testing"
)

// TestRules_StandsFirstOnceAndGoesWithoutATrace changes the rules of the kernel that the test runs on, for an interface
// that there is none of.
func TestRules_StandsFirstOnceAndGoesWithoutATrace(t *testing.T) {
	w, err := Open("a test of the firewall", 80, 443)
	if err != nil {
		t.Fatal(err)
	}
	before := saved(t, w.chains)
	t.Cleanup(func() {
		if err := w.Lift(context.Background()); err != nil { // the test's own has ended
			t.Error(err)
		}
	})
	for range 2 {
		if err := w.Guard(t.Context(), "sbx-no-such-0"); err != nil {
			t.Fatal(err)
		}
	}
	once := saved(t, w.chains)
	if n := strings.Count(once, "-i sbx-no-such-0 "); n != 2 {
		t.Errorf("it leads %d times:\n%s", n, once)
	}
	run(t, "iptables", "-I", "INPUT", "1", "-i", "sbx-no-such-9", "-j", "ACCEPT") // a foreign rule before ours
	run(t, "iptables", "-F", w.chains.outside)                                    // and empties one
	if err := w.Guard(t.Context(), "sbx-no-such-0"); err != nil {
		t.Fatal(err)
	}
	run(t, "iptables", "-D", "INPUT", "-i", "sbx-no-such-9", "-j", "ACCEPT")
	if again := saved(t, w.chains); again != once {
		t.Errorf("it is not as it was:\n%s\nbut\n%s", once, again)
	}
	if err := w.Guard(t.Context(), "sbx-no-such-1"); err != nil {
		t.Fatal(err)
	}
	if moved := saved(t, w.chains); strings.Contains(moved, "sbx-no-such-0") || strings.Count(moved, "-i sbx-no-such-1 ") != 2 {
		t.Errorf("for another bridge:\n%s", moved)
	}
	for range 2 {
		if err := w.Lift(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if after := saved(t, w.chains); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func TestRules_RefusesWhatIsNoInterface(t *testing.T) {
	w, err := Open("a test of the firewall")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "far-too-long-a-name", "eth+", "! eth0", "a/b"} {
		if w.Guard(t.Context(), name) == nil {
			t.Errorf("%q is taken for one", name)
		}
	}
}

// saved gives the filter's rules without counters and comments, and without those of the engine and of other servers on this
// machine, which may change them meanwhile.
func saved(t *testing.T, own chains) string {
	t.Helper()
	var kept strings.Builder
	for line := range strings.Lines(run(t, "iptables", "-S")) {
		mine := strings.Contains(line, own.host) || strings.Contains(line, own.outside)
		if mine || !strings.Contains(line, "SANDBOXD-") && !strings.Contains(line, "DOCKER") && !strings.Contains(line, " br-") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}
