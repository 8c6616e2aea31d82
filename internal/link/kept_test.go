package link_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/guest"
	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

func keptStart(id, script string) wire.KeptStart {
	return wire.KeptStart{ID: id, Command: []string{"/bin/sh", "-c", script}}
}

// keep starts a kept process and attaches to it.
func keep(t *testing.T, s *link.Session, start wire.KeptStart) *link.Kept {
	t.Helper()
	if err := s.StartKept(testContext(t), start); err != nil {
		t.Fatal(err)
	}
	return attach(t, s, start.ID, 0)
}

func attach(t *testing.T, s *link.Session, id string, at int64) *link.Kept {
	t.Helper()
	k, err := s.AttachKept(testContext(t), id, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

// standing gives how a kept process stands.
func standing(t *testing.T, s *link.Session, id string) wire.Kept {
	t.Helper()
	all, err := s.ListKept(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range all {
		if k.ID == id {
			return k
		}
	}
	t.Fatalf("%s is not in %+v", id, all)
	return wire.Kept{}
}

func TestKept_ReadsWritesAndEnds(t *testing.T) {
	s := connect(t, wire.Setup{Env: map[string]string{"FROM_SETUP": "yes"}})
	start := keptStart("a", `pwd; echo $FROM_SETUP $X; echo why >&2; while read -r line; do echo "got $line"; done; exit 7`)
	start.Cwd, start.Env = "/usr", map[string]string{"X": "1"}
	k := keep(t, s, start)
	if n, err := k.WriteAt(testContext(t), []byte("one\ntwo\n"), 0); n != 8 || err != nil {
		t.Fatalf("wrote %d, %v", n, err)
	}
	if n, err := k.WriteAt(testContext(t), []byte("one\ntwo\nthree\n"), 0); n != 14 || err != nil { // the first two are there already
		t.Fatalf("wrote %d, %v", n, err)
	}
	if _, err := k.WriteAt(testContext(t), []byte("x"), 15); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a gap: %v", err)
	}
	for range 2 {
		if err := k.CloseInput(testContext(t), 14); err != nil {
			t.Fatal(err)
		}
	}
	out, err := io.ReadAll(k)
	if code, signal := k.Exit(); err != nil || code != 7 || signal != 0 {
		t.Errorf("%v, exit code %d, signal %d", err, code, signal)
	}
	if want := "/usr\nyes 1\ngot one\ngot two\ngot three\n"; string(out) != want || k.Offset() != int64(len(want)) {
		t.Errorf("got %q up to %d", out, k.Offset())
	}
	if text, err := k.Stderr(testContext(t)); string(text) != "why\n" || err != nil {
		t.Errorf("stderr %q, %v", text, err)
	}
	if now := standing(t, s, "a"); now.Ended.IsZero() || now.Code != 7 || now.Input != 14 || !now.Closed || now.Last != int64(len(out)) || !strings.Contains(now.Title, "/bin/sh") {
		t.Errorf("it stands at %+v", now)
	}
	again := attach(t, s, "a", 5) // what is not acknowledged can be read again
	if rest, err := io.ReadAll(again); string(rest) != string(out[5:]) || err != nil {
		t.Errorf("got %q, %v", rest, err)
	}
}

func TestKept_OutlivesEveryConnection(t *testing.T) {
	root := filepath.Join(t.TempDir(), "link")
	first := link.NewHub(root, nil)
	stop := runHub(t, first)
	folder, err := first.Expect("box", wire.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	runGuest(t, folder, guest.Config{})
	s, err := first.Session(testContext(t), "box")
	if err != nil {
		t.Fatal(err)
	}
	k := keep(t, s, keptStart("a", `echo before; read x; echo "after $x"`))
	head := make([]byte, 7)
	if _, err := io.ReadFull(k, head); err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := k.Read(head); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
	second := link.NewHub(root, nil)
	runHub(t, second)
	if _, err := second.Expect("box", wire.Setup{}); err != nil {
		t.Fatal(err)
	}
	if s, err = second.Session(testContext(t), "box"); err != nil {
		t.Fatal(err)
	}
	if err := s.StartKept(testContext(t), keptStart("a", `echo before; read x; echo "after $x"`)); err != nil {
		t.Errorf("the same again: %v", err)
	}
	next := attach(t, s, "a", k.Offset())
	if _, err := next.WriteAt(testContext(t), []byte("all\n"), 0); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(next); string(rest) != "after all\n" || err != nil {
		t.Errorf("got %q, %v", rest, err)
	}
}

func TestKept_ANewConnectionEndsTheOneBefore(t *testing.T) {
	s := connect(t, wire.Setup{})
	old := keep(t, s, keptStart("a", `read x; echo "$x"`))
	next := attach(t, s, "a", 0)
	if _, err := old.Read(make([]byte, 1)); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
	next.WriteAt(testContext(t), []byte("x\n"), 0)
	if out, err := io.ReadAll(next); string(out) != "x\n" || err != nil {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestKept_WhatIsAcknowledgedIsForgotten(t *testing.T) {
	s := connect(t, wire.Setup{})
	k := keep(t, s, keptStart("a", "echo 123456789"))
	if _, err := io.ReadAll(k); err != nil {
		t.Fatal(err)
	}
	if err := k.Ack(testContext(t), 6); err != nil {
		t.Fatal(err)
	}
	if err := k.Ack(testContext(t), 11); fault.KindOf(err) != fault.Invalid {
		t.Errorf("got %v", err)
	}
	for at, kind := range map[int64]fault.Kind{5: fault.Conflict, 11: fault.Invalid, -1: fault.Invalid} {
		if _, err := s.AttachKept(testContext(t), "a", at); fault.KindOf(err) != kind {
			t.Errorf("at %d: %v", at, err)
		}
	}
	if rest, err := io.ReadAll(attach(t, s, "a", 6)); string(rest) != "789\n" || err != nil {
		t.Errorf("got %q, %v", rest, err)
	}
	if now := standing(t, s, "a"); now.First != 6 || now.Last != 10 {
		t.Errorf("it stands at %+v", now)
	}
}

func TestKept_AreBoundedAndEndOnRequest(t *testing.T) {
	s := connect(t, wire.Setup{})
	if err := s.StartKept(testContext(t), keptStart("0", treeScript)); err != nil {
		t.Fatal(err)
	}
	var pids []int
	lines := make([]byte, 0, 100)
	k := attach(t, s, "0", 0)
	for bytes.Count(lines, []byte("\n")) < 4 {
		var b [100]byte
		n, err := k.Read(b[:])
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, b[:n]...)
	}
	for _, line := range strings.Fields(string(lines)) {
		pid, _ := strconv.Atoi(line)
		pids = append(pids, pid)
	}
	for i := 1; i < wire.MaxKept; i++ {
		if err := s.StartKept(testContext(t), keptStart(strconv.Itoa(i), "true")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.StartKept(testContext(t), keptStart("more", "true")); fault.KindOf(err) != fault.Conflict {
		t.Errorf("one too many: %v", err)
	}
	if err := s.StartKept(testContext(t), keptStart("1", "false")); fault.KindOf(err) != fault.Conflict {
		t.Errorf("another one under the same id: %v", err)
	}
	for range 2 {
		if err := s.EndKept(testContext(t), "0"); err != nil {
			t.Fatal(err)
		}
	}
	waitGone(t, pids)
	if _, err := k.Read(make([]byte, 1)); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
	if _, err := s.AttachKept(testContext(t), "0", 0); fault.KindOf(err) != fault.NotFound {
		t.Errorf("got %v", err)
	}
	if err := s.StartKept(testContext(t), keptStart("more", "true")); err != nil {
		t.Errorf("there is room again: %v", err)
	}
}

func TestKept_EndsWithItsGuest(t *testing.T) {
	h := link.NewHub(filepath.Join(t.TempDir(), "link"), nil)
	runHub(t, h)
	folder, err := h.Expect("box", wire.Setup{StopGrace: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	end := runGuest(t, folder, guest.Config{})
	s, err := h.Session(testContext(t), "box")
	if err != nil {
		t.Fatal(err)
	}
	deaf := keep(t, s, keptStart("deaf", "trap '' TERM; echo $$; while :; do sleep 1; done"))
	line := make([]byte, 10)
	n, err := deaf.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.StartKept(testContext(t), keptStart("full", "yes")); err != nil { // it waits for a reader
		t.Fatal(err)
	}
	end()
	waitGone(t, []int{pid})
}

func TestKept_AProgramThatDoesNotReadHoldsOnlyItsWriterUp(t *testing.T) {
	s := connect(t, wire.Setup{})
	k := keep(t, s, keptStart("a", "trap 'exit 3' INT; echo ready; while :; do sleep 0.01; done"))
	if _, err := io.ReadFull(k, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(testContext(t))
	wrote := make(chan error, 1)
	go func() {
		n, err := k.WriteAt(ctx, make([]byte, 4<<20), 0)
		if n >= 4<<20 {
			err = errors.New("all of it has gone somewhere")
		}
		wrote <- err
	}()
	if r := run(t, s, sh("echo still here")); r.stdout.String() != "still here\n" {
		t.Fatalf("got %q", r.stdout.String())
	}
	cancel()
	if err := <-wrote; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := k.Signal(testContext(t), "INT"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(k); err != nil {
		t.Fatal(err)
	}
	if code, _ := k.Exit(); code != 3 {
		t.Errorf("exit code %d", code)
	}
	if _, err := k.WriteAt(testContext(t), make([]byte, 1<<20), standing(t, s, "a").Input); fault.KindOf(err) != fault.Conflict {
		t.Errorf("got %v", err)
	}
}

func TestKept_ExitComesThoughABackgroundProcessHoldsTheOutput(t *testing.T) {
	s := connect(t, wire.Setup{})
	k := keep(t, s, keptStart("a", "sleep 300 & echo $!"))
	out, err := io.ReadAll(k)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || !running(pid) {
		t.Fatalf("%q: %v", out, err)
	}
	if err := s.EndKept(testContext(t), "a"); err != nil {
		t.Fatal(err)
	}
	waitGone(t, []int{pid})
}

func TestKept_WhatCannotStartSaysWhy(t *testing.T) {
	s := connect(t, wire.Setup{})
	for name, c := range map[string]struct {
		start wire.KeptStart
		kind  fault.Kind
	}{
		"no program": {wire.KeptStart{ID: "a", Command: []string{"no-such-program"}}, fault.NotFound},
		"no folder":  {wire.KeptStart{ID: "a", Command: []string{"true"}, Cwd: "/no/such"}, fault.NotFound},
		"no command": {wire.KeptStart{ID: "a"}, fault.Invalid},
		"no id":      {wire.KeptStart{Command: []string{"true"}}, fault.Invalid},
	} {
		if err := s.StartKept(testContext(t), c.start); fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
	if l, err := s.ListKept(testContext(t)); err != nil || len(l) > 0 {
		t.Errorf("there are %+v, %v", l, err)
	}
}

// keptWorld is a guest whose sandboxd is restarted now and then. Its hub is known to the box of that name.
type keptWorld struct {
	box  string
	open func() (hub *link.Hub, stop func())

	mu   sync.Mutex
	hub  *link.Hub
	stop func()
}

// start lets sandboxd live.
func (w *keptWorld) start() {
	hub, stop := w.open()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hub, w.stop = hub, stop
}

func (w *keptWorld) restart() {
	w.stop()
	w.start()
}

func (w *keptWorld) session(ctx context.Context) (*link.Session, error) {
	w.mu.Lock()
	h := w.hub
	w.mu.Unlock()
	return h.Session(ctx, w.box)
}

// attached calls use with connection after connection, until it says that it is done. Errors of the link only mean that it is cut.
func (w *keptWorld) attached(ctx context.Context, t testing.TB, at func() int64, use func(*link.Kept) (done bool, err error)) {
	for {
		var done bool
		s, err := w.session(ctx)
		if err == nil {
			var k *link.Kept
			if k, err = s.AttachKept(ctx, "cat", at()); err == nil {
				done, err = use(k)
				k.Close()
			}
		}
		if done {
			return
		}
		if err != nil && (fault.KindOf(err) != fault.Unavailable || ctx.Err() != nil) {
			t.Errorf("at %d: %v", at(), err)
			return
		}
	}
}

// pourThrough sends size bytes through a kept cat, while connections are cut at random, and sandboxd is restarted so many times.
func pourThrough(ctx context.Context, t testing.TB, w *keptWorld, size int64, cuts, restarts int) {
	s, err := w.session(ctx)
	if err == nil {
		err = s.StartKept(ctx, wire.KeptStart{ID: "cat", Command: []string{"cat"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	chance := rand.New(rand.NewPCG(1, uint64(size)))
	source := rand.NewChaCha8([32]byte{1})
	data := make([]byte, size)
	source.Read(data)
	var work sync.WaitGroup
	work.Go(func() { writeAll(ctx, t, w, data) })
	sum := sha256.New()
	at, cut, step := int64(0), 0, size/int64(cuts+1)
	buf := make([]byte, 64<<10)
	var acked int64
	w.attached(ctx, t, func() int64 { return at }, func(k *link.Kept) (bool, error) {
		until := min(at+1+chance.Int64N(2*step), size)
		for at < until {
			n, err := k.Read(buf)
			sum.Write(buf[:n])
			at += int64(n)
			if err == nil && at-acked > 1<<20 {
				if err = k.Ack(ctx, at); err == nil {
					acked = at
				}
			}
			if err != nil {
				return false, err
			}
		}
		cut++
		if restarts > 0 && cut%max(1, cuts/restarts) == 0 {
			k.Close()
			w.restart()
		}
		return at == size, nil
	})
	work.Wait()
	if want := sha256.Sum256(data); !bytes.Equal(sum.Sum(nil), want[:]) {
		t.Errorf("%d bytes came, and not those that were sent", at)
	}
	t.Logf("%d cuts", cut)
}

// writeAll gives the program all of data, each piece until it has it.
func writeAll(ctx context.Context, t testing.TB, w *keptWorld, data []byte) {
	at := int64(0)
	for at < int64(len(data)) {
		s, err := w.session(ctx)
		if err == nil {
			var n int
			n, err = s.WriteKept(ctx, "cat", data[at:min(at+100_000, int64(len(data)))], at)
			at += int64(n)
		}
		if err != nil && (fault.KindOf(err) != fault.Unavailable || ctx.Err() != nil) {
			t.Errorf("write at %d: %v", at, err)
			return
		}
	}
}

func TestKept_EveryByteComesThroughRandomCutsAndRestarts(t *testing.T) {
	root := filepath.Join(t.TempDir(), "link")
	w := &keptWorld{box: "box", open: func() (*link.Hub, func()) {
		h := link.NewHub(root, nil)
		stop := runHub(t, h)
		if _, err := h.Expect("box", wire.Setup{}); err != nil {
			t.Error(err)
		}
		return h, stop
	}}
	w.start()
	runGuest(t, filepath.Join(root, "box"), guest.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	pourThrough(ctx, t, w, 10<<20, 60, 5)
}
