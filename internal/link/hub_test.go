package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

func TestExpect_MakesAClosedFolderWithASocketAlsoUnderALongPath(t *testing.T) {
	root := filepath.Join(t.TempDir(), strings.Repeat("long/", 40), "link")
	h := NewHub(root, nil)
	folder, err := h.Expect("box", wire.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Forget("box")
	for path, mode := range map[string]os.FileMode{root: 0o700, folder: 0o755, filepath.Join(folder, wire.SocketName): 0o600} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, st.Mode(), err)
		}
	}
	dir, err := os.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	c, err := net.Dial("unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), wire.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestExpect_RefusesIDsThatAreNoNames(t *testing.T) {
	h := NewHub(t.TempDir(), nil)
	for _, id := range []string{"", "..", "a/b", "../x", "A", "a\x00", strings.Repeat("a", 65)} {
		if _, err := h.Expect(id, wire.Setup{}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q: %v", id, err)
		}
		if err := h.Forget(id); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q: %v", id, err)
		}
	}
	bad := wire.Setup{Env: map[string]string{"A=B": ""}}
	if _, err := h.Expect("box", bad); fault.KindOf(err) != fault.Invalid {
		t.Errorf("got %v", err)
	}
}

func TestExpect_KeepsTheFolderAndReplacesTheSocket(t *testing.T) {
	root := t.TempDir()
	before, err := NewHub(root, nil).Expect("box", wire.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	inode := func() os.FileInfo {
		st, err := os.Stat(before)
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	old := inode()
	if _, err := NewHub(root, nil).Expect("box", wire.Setup{}); err != nil { // after a crash
		t.Fatal(err)
	}
	if !os.SameFile(old, inode()) {
		t.Error("containers have another folder mounted")
	}
}

func TestForget_RemovesTheFolderAndWakesWhoWaits(t *testing.T) {
	h, socket := quick(t)
	waited := make(chan error, 1)
	ctx := within(t)
	go func() { waited <- h.Ready(ctx, "box") }()
	if err := h.Forget("box"); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; fault.KindOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Dir(socket)); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
	if err := h.Forget("box"); err != nil {
		t.Errorf("again: %v", err)
	}
	if ids, err := h.Left(); len(ids) != 0 || err != nil {
		t.Errorf("left %v, %v", ids, err)
	}
}

func TestLeft_NamesFoldersOfAnEarlierRun(t *testing.T) {
	root := t.TempDir()
	if _, err := NewHub(root, nil).Expect("old", wire.Setup{}); err != nil {
		t.Fatal(err)
	}
	h := NewHub(root, nil)
	if ids, err := h.Left(); len(ids) != 1 || ids[0] != "old" || err != nil {
		t.Fatalf("left %v, %v", ids, err)
	}
	if err := h.Forget("old"); err != nil {
		t.Fatal(err)
	}
	if ids, err := h.Left(); len(ids) != 0 || err != nil {
		t.Errorf("left %v, %v", ids, err)
	}
}

func TestSession_UnknownSandboxAndEndedHubFailAtOnce(t *testing.T) {
	h := NewHub(t.TempDir(), nil)
	if _, err := h.Session(within(t), "box"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
	if _, err := h.Expect("box", wire.Setup{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.Run(ctx)
	if _, err := h.Session(within(t), "box"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
	if _, err := h.Expect("box", wire.Setup{}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
}

func TestSession_NewestGoodConnectionWins(t *testing.T) {
	h, socket := quick(t)
	lie(t, socket, nil, nil)
	first, err := h.Session(within(t), "box")
	if err != nil {
		t.Fatal(err)
	}
	bad := dialIn(t, socket) // says nothing, so the first one stays
	bad.Close()
	lie(t, socket, nil, nil)
	awaitEnd(t, first)
	second, err := h.Session(within(t), "box")
	if err != nil || second == first {
		t.Fatalf("got %v", err)
	}
}

func TestAccept_OneSandboxCannotKeepTheHubBusy(t *testing.T) {
	h := NewHub(t.TempDir(), nil)
	h.pace.accepts, h.pace.acceptMax = 10, 5
	folder, err := h.Expect("flapping", wire.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := h.Expect("good", wire.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); h.Run(ctx) }()
	defer func() { cancel(); <-done }()
	greeted := make(chan struct{}, 1000)
	began := time.Now()
	stop := make(chan struct{})
	flapped := make(chan struct{})
	go func() { // dials again as soon as it was greeted
		defer close(flapped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			c, err := net.Dial("unix", filepath.Join(folder, wire.SocketName))
			if err != nil {
				return
			}
			c.SetReadDeadline(time.Now().Add(time.Second))
			if n, _ := c.Read(make([]byte, 100)); n > 0 {
				greeted <- struct{}{}
			}
			c.Close()
		}
	}()
	for range 8 {
		<-greeted
	}
	if d := time.Since(began); d < 200*time.Millisecond { // 5 at once, 3 more at 10 a second
		t.Errorf("8 connections in %v", d)
	}
	lie(t, filepath.Join(other, wire.SocketName), nil, func(http.ResponseWriter, *http.Request) {})
	if err := h.Ready(within(t), "good"); err != nil {
		t.Error(err)
	}
	close(stop)
	<-flapped
}

func TestFrameLimiter_FollowsFramesHoweverTheyAreCut(t *testing.T) {
	var stream []byte
	add := func(kind byte, n int) {
		stream = append(stream, byte(n>>16), byte(n>>8), byte(n), kind, 0, 0, 0, 0, 1)
		stream = append(stream, make([]byte, n)...)
	}
	add(0, 1000) // data
	add(6, 8)    // ping
	add(0, 0)    // empty data
	add(1, 300)  // headers
	add(0, 70000)
	for _, cut := range []int{1, 2, 3, 9, 10, 64, len(stream)} {
		m := newFrameLimiter(nil)
		total := 0
		for rest := stream; len(rest) > 0; {
			n := min(cut, len(rest))
			frames, err := m.count(rest[:n])
			total += frames
			rest = rest[n:]
			if err != nil {
				t.Fatal(err)
			}
		}
		if total != 3 {
			t.Errorf("cut %d: %d frames", cut, total)
		}
	}
}

// FuzzFrameLimiter: however a guest's bytes are cut, the same frames are counted.
func FuzzFrameLimiter(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 0, 0, 0, 0, 1, 'x', 0, 0, 0, 4, 0, 0, 0, 0, 0}, 3)
	f.Add([]byte{0xff, 0xff, 0xff, 9, 0, 0, 0, 0, 0}, 1)
	f.Fuzz(func(t *testing.T, stream []byte, cut int) {
		if cut < 1 {
			return
		}
		whole, wholeErr := newFrameLimiter(nil).count(stream)
		m := newFrameLimiter(nil)
		total, err := 0, error(nil)
		for rest := stream; len(rest) > 0 && err == nil; {
			n := min(cut, len(rest))
			var frames int
			frames, err = m.count(rest[:n])
			total += frames
			rest = rest[n:]
		}
		if total != whole || err != wholeErr {
			t.Fatalf("%d frames, %v; in pieces of %d: %d, %v", whole, wholeErr, cut, total, err)
		}
	})
}

func TestExpect_MakesAnewWhatWasRemoved(t *testing.T) {
	for name, remove := range map[string]func(folder string) error{
		"the root":   func(folder string) error { return os.RemoveAll(filepath.Dir(folder)) },
		"the folder": os.RemoveAll,
		"the socket": func(folder string) error { return os.Remove(filepath.Join(folder, wire.SocketName)) },
		"the socket, for another": func(folder string) error {
			path := filepath.Join(folder, wire.SocketName)
			return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, socket := quick(t)
			lie(t, socket, nil, nil)
			first, err := h.Session(within(t), "box")
			if err != nil {
				t.Fatal(err)
			}
			if err := remove(filepath.Dir(socket)); err != nil {
				t.Fatal(err)
			}
			folder, err := h.Expect("box", wire.Setup{})
			if err != nil || folder != filepath.Dir(socket) {
				t.Fatalf("got %q, %v", folder, err)
			}
			if !first.alive() {
				t.Error("the connection that there was is lost")
			}
			lie(t, socket, nil, nil)
			awaitEnd(t, first)
			if second, err := h.Session(within(t), "box"); err != nil || second == first {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestExpect_LeavesASocketThatStandsAlone(t *testing.T) {
	h, socket := quick(t)
	before, err := os.Lstat(socket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Expect("box", wire.Setup{}); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Lstat(socket); err != nil || !os.SameFile(before, after) {
		t.Errorf("it was replaced, %v", err)
	}
}
