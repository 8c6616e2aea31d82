package link

import (
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

func TestListen_GivesASocketInAFolderOfItsOwn(t *testing.T) {
	root := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	h := NewHub(root, nil)
	for range 2 { // one that a crash has left does not count
		l, folder, err := h.Listen("mover-0123456789abcdef")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		t.Chdir(folder) // a socket's whole path would be too long
		c, err := net.Dial("unix", wire.SocketName)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := l.Accept(); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := h.Left(); err != nil || !slices.Equal(left, []string{"mover-0123456789abcdef"}) {
		t.Errorf("left is %q (%v)", left, err)
	}
	for _, name := range []string{"", "..", "a/b", strings.Repeat("x", 65)} {
		if _, _, err := h.Listen(name); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
