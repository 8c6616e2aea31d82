package guest

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"sandboxd/internal/wire"
)

// modelsPatience bounds every wait of the tests of models.
const modelsPatience = time.Minute

// runModels lets models live at a port.
func runModels(t *testing.T, m *models) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { m.run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// anyPort listens somewhere.
func anyPort(t *testing.T) (l net.Listener, port int) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l, l.Addr().(*net.TCPAddr).Port
}

// awaitModels waits until m listens, or does not.
func awaitModels(t *testing.T, m *models, listens bool) {
	t.Helper()
	for late := time.After(modelsPatience); m.has(uint64(m.port)) != listens; {
		select {
		case <-time.After(time.Millisecond):
		case <-late:
			t.Fatalf("it does not come to listen: %v", listens)
		}
	}
}

func TestModels_WaitForAPortThatAnotherProgramHas(t *testing.T) {
	other, port := anyPort(t)
	m := newModels(port)
	m.pause = time.Millisecond
	runModels(t, m)
	m.allow(true)
	c, err := net.Dial("tcp4", other.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if m.has(uint64(port)) {
		t.Error("another program's port is taken for the sandbox's models")
	}
	other.Close()
	awaitModels(t, m, true)
	m.allow(false)
	awaitModels(t, m, false)
	m.allow(true)
	awaitModels(t, m, true)
}

func TestModels_TheirPortIsNotAmongTheSandboxs(t *testing.T) {
	first, port := anyPort(t)
	first.Close()
	m := newModels(port)
	runModels(t, m)
	p := newPorts(m.owns)
	listed := func() bool {
		p.taken = time.Time{}
		for _, o := range p.list() {
			if o.Port == port {
				return true
			}
		}
		return false
	}
	m.allow(true)
	awaitModels(t, m, true)
	if listed() {
		t.Error("it is listed")
	}
	m.allow(false)
	awaitModels(t, m, false)
	other, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if !listed() {
		t.Error("another program's is hidden")
	}
}

func TestModels_WhatIsNotDialledIsGivenUpAndBounded(t *testing.T) {
	m := newModels(0)
	var last uint64
	for range maxKept {
		near, far := net.Pipe()
		defer far.Close()
		number, ok := m.keep(near)
		if !ok {
			t.Fatal("it is not kept")
		}
		last = number
	}
	if _, ok := m.keep(nil); ok {
		t.Error("more are kept than may be")
	}
	if m.take(last) == nil || m.take(last) != nil {
		t.Error("a connection is not given just once")
	}
	for number, code := range map[string]int{strconv.FormatUint(last, 10): http.StatusNotFound, "x": http.StatusBadRequest, "-1": http.StatusBadRequest} {
		r := httptest.NewRequest(http.MethodPost, wire.PathModels+"/"+number+"/dial", nil)
		r.SetPathValue("number", number)
		w := httptest.NewRecorder()
		m.serveDial(w, r)
		if w.Code != code {
			t.Errorf("%s: %d", number, w.Code)
		}
	}
}

// CRIU keeps no multipath socket, so with one no snapshot could have a sandbox's memory.
func TestModels_SpeakPlainTCP(t *testing.T) {
	listeners := openModels(t.Context(), "0")
	if len(listeners) == 0 {
		t.Fatal("nothing listens")
	}
	for _, l := range listeners {
		defer l.Close()
		raw, err := l.(*net.TCPListener).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var protocol int
		ctlErr := raw.Control(func(fd uintptr) {
			protocol, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_PROTOCOL)
		})
		if ctlErr != nil || err != nil || protocol != syscall.IPPROTO_TCP {
			t.Errorf("%v speaks protocol %d, %v, %v", l.Addr(), protocol, ctlErr, err)
		}
	}
}
