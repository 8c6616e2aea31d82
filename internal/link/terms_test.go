package link_test

import (
	"net"
	"path/filepath"
	"slices"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/guest"
	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

// expecting gives a hub with a connected guest that can be told something else.
func expecting(t *testing.T, first wire.Setup) (*link.Hub, *link.Session) {
	t.Helper()
	h := link.NewHub(filepath.Join(t.TempDir(), "link"), nil)
	runHub(t, h)
	folder, err := h.Expect("box", first)
	if err != nil {
		t.Fatal(err)
	}
	runGuest(t, folder, guest.Config{})
	s, err := h.Session(testContext(t), "box")
	if err != nil {
		t.Fatal(err)
	}
	return h, s
}

func sleeper(name, seconds string) wire.Service {
	return wire.Service{Name: name, Command: []string{"sleep", seconds}, Autostart: true}
}

func push(t *testing.T, h *link.Hub, services ...wire.Service) {
	t.Helper()
	if _, err := h.Expect("box", wire.Setup{Services: services}); err != nil {
		t.Fatal(err)
	}
	if err := h.Ready(testContext(t), "box"); err != nil {
		t.Fatal(err)
	}
}

func TestReady_TellsAConnectedGuestWhatHasChanged(t *testing.T) {
	h, s := expecting(t, wire.Setup{Services: []wire.Service{sleeper("same", "1000"), sleeper("other", "1000"), sleeper("gone", "1000")}})
	same := awaitService(t, s, "same", isRunning)
	other := awaitService(t, s, "other", isRunning)
	gone := awaitService(t, s, "gone", isRunning)
	push(t, h, sleeper("same", "1000"), sleeper("other", "2000"), sleeper("new", "1000"))
	awaitService(t, s, "new", isRunning)
	awaitService(t, s, "other", func(st wire.ServiceStatus) bool { return isRunning(st) && st.PID != other.PID })
	if now := awaitService(t, s, "same", isRunning); now.PID != same.PID || now.Restarts != 0 {
		t.Errorf("the unchanged one was touched: %+v, before %+v", now, same)
	}
	waitGone(t, []int{gone.PID, other.PID})
	all, err := s.Services(testContext(t))
	if err != nil || len(all) != 3 {
		t.Errorf("got %+v, %v", all, err)
	}
	select {
	case <-s.Done():
		t.Error("the connection was given up for it")
	default:
	}
}

func TestReady_TheLastOfManyChangesCounts(t *testing.T) {
	h, s := expecting(t, wire.Setup{})
	for i := range 20 {
		names := []wire.Service{sleeper("a", "1000")}
		if i%2 == 0 {
			names = append(names, sleeper("b", "1000"))
		}
		push(t, h, names...)
		all, err := s.Services(testContext(t))
		if err != nil || len(all) != len(names) {
			t.Fatalf("after change %d: %+v, %v", i, all, err)
		}
	}
	push(t, h)
	if all, err := s.Services(testContext(t)); err != nil || len(all) != 0 {
		t.Errorf("got %+v, %v", all, err)
	}
}

func TestPorts_AppearAndGoWhileTheyAreWatched(t *testing.T) {
	_, s := expecting(t, wire.Setup{})
	ctx := testContext(t)
	lists := make(chan []wire.PortOpen, 1)
	go s.WatchPorts(ctx, func(l []wire.PortOpen) error { lists <- l; return nil })
	<-lists
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	has := func(l []wire.PortOpen, port int) bool {
		return slices.ContainsFunc(l, func(p wire.PortOpen) bool { return p.Port == port && p.Address == "127.0.0.1" })
	}
	port := l.Addr().(*net.TCPAddr).Port
	for !has(<-lists, port) {
	}
	if now, err := s.Ports(ctx); err != nil || !has(now, port) {
		t.Errorf("got %+v, %v", now, err)
	}
	l.Close()
	for has(<-lists, port) {
	}
}

func TestHangUp_EndsTheConnectionUntilTheGuestIsExpectedAgain(t *testing.T) {
	h, s := expecting(t, wire.Setup{Name: "box"})
	if err := h.HangUp(testContext(t), "box"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	case <-testContext(t).Done():
		t.Error("the connection has not ended")
	}
	if _, err := h.Session(testContext(t), "box"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("before it is expected: %v", err)
	}
	if err := h.HangUp(testContext(t), "box"); err != nil {
		t.Errorf("again: %v", err)
	}
	if _, err := h.Expect("box", wire.Setup{Name: "box"}); err != nil {
		t.Fatal(err)
	}
	if err := h.Ready(testContext(t), "box"); err != nil {
		t.Errorf("it has not dialled in again: %v", err)
	}
}
