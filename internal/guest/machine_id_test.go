package guest

import (
	"os"
	"path/filepath"
	"testing"
)

func TestGiveMachineID(t *testing.T) {
	const own = "0123456789abcdef0123456789abcdef"
	for _, c := range []struct{ was, id, want string }{
		{"another\n", own, own + "\n"},
		{"", own, ""}, // made at the first use of what needs it
		{"another\n", "", "another\n"},
	} {
		path := filepath.Join(t.TempDir(), "machine-id")
		if err := os.WriteFile(path, []byte(c.was), 0o444); err != nil {
			t.Fatal(err)
		}
		giveMachineID(path, c.id)
		if got, err := os.ReadFile(path); err != nil || string(got) != c.want {
			t.Errorf("%q with %q: %q, %v", c.was, c.id, got, err)
		}
	}
	missing := filepath.Join(t.TempDir(), "machine-id")
	giveMachineID(missing, own)
	if _, err := os.Stat(missing); !os.IsNotExist(err) {
		t.Errorf("made where there was none: %v", err)
	}
}
