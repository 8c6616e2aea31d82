package main

import (
	"strings"
	"testing"

	"sandboxd/internal/firewall"
)

func TestDoctor_SaysWhenSandboxesAreNotKeptOffThisHost(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if f := lookFirewall(t.Context(), &Config{}); f.Level == good || !strings.Contains(f.Saw, "sandboxes can reach services of this host") {
		t.Errorf("without the tool: %+v", f)
	}
	_, err := firewall.Open("a test of doctor")
	for uid, want := range map[int]finding{
		0:    {Level: bad, Mend: "Install iptables."},
		1000: {Level: warning, Mend: "NET_ADMIN"},
	} {
		if f := noFirewall(err, uid); f.Level != want.Level || !strings.Contains(f.Mend, want.Mend) {
			t.Errorf("for user %d: %+v", uid, f)
		}
	}
}
