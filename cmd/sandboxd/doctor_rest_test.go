package main

import (
	"strings"
	"testing"

	"sandboxd/internal/docker"
)

func TestDoctor_SaysWhatIsKeptInReserve(t *testing.T) {
	for reserve, want := range map[string]struct {
		level level
		saw   string
	}{
		"5%":    {good, "below "},
		"0":     {warning, "nothing is kept in reserve"},
		"1000T": {warning, "put to rest early"},
		"half":  {bad, "memory-reserve"},
	} {
		f := lookMemory(t.Context(), &Config{MemoryReserve: reserve})
		if f.Level != want.level || !strings.Contains(f.Saw, want.saw) || (f.Mend == "") != (f.Level == good) {
			t.Errorf("%s: %+v", reserve, f)
		}
	}
}

func TestDoctor_SaysHowToGetMemoryBack(t *testing.T) {
	if got := mendReclaim(docker.Info{Cgroup: "1"}); !strings.Contains(got, "unified_cgroup_hierarchy") {
		t.Errorf("got %q", got)
	}
	if got := mendReclaim(docker.Info{Cgroup: "2"}); strings.Contains(got, "unified_cgroup_hierarchy") || got == "" {
		t.Errorf("got %q", got)
	}
}
