package link

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"sandboxd/internal/wire"
)

func TestGatewayKey_IsItsSandboxsAndItsHubsAlone(t *testing.T) {
	h, other := NewHub(t.TempDir(), nil), NewHub(t.TempDir(), nil)
	key := h.GatewayKey("box")
	if len(key) != wire.GatewayKeySize || !bytes.Equal(key, h.GatewayKey("box")) {
		t.Errorf("got %d bytes, or not the same ones again", len(key))
	}
	for name, another := range map[string][]byte{"another sandbox": h.GatewayKey("box2"), "another hub": other.GatewayKey("box")} {
		if bytes.Equal(key, another) {
			t.Errorf("%s has the same key", name)
		}
	}
}

func TestGatewayKey_IsInEverySetUp(t *testing.T) {
	h, socket := quick(t)
	setups := make(chan wire.Setup, 2)
	hear := func(w http.ResponseWriter, r *http.Request) {
		var s wire.Setup
		if err := wire.Decode(r.Body, wire.MaxSetup, &s); err != nil {
			t.Error(err)
		}
		setups <- s
		json.NewEncoder(w).Encode(goodHello())
	}
	if h.Knows("box") {
		t.Error("a guest that is not connected knows its key")
	}
	for _, name := range []string{"", "again"} {
		if name != "" { // what callers give stays as it is; the key is not theirs to choose
			folder, err := h.Expect("box", wire.Setup{Name: name, GatewayKey: make([]byte, wire.GatewayKeySize)})
			if err != nil || folder != filepath.Dir(socket) {
				t.Fatal(err)
			}
		}
		lie(t, socket, hear, nil)
		select {
		case s := <-setups:
			if !bytes.Equal(s.GatewayKey, h.GatewayKey("box")) || s.Name != name {
				t.Errorf("got %+v", s)
			}
		case <-time.After(patience):
			t.Fatal("no set-up comes")
		}
	}
}

func TestActivity_TellsWhatTheGuestSays(t *testing.T) {
	replies := make(chan string, 1)
	replies <- `{"direct":{"in_flight":3,"idle":2000000000},"newer":1}`
	_, s := liarSession(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != wire.PathActivity {
			t.Errorf("asked for %s %s", r.Method, r.URL.Path)
		}
		io.WriteString(w, <-replies)
	})
	a, err := s.Activity(within(t))
	if err != nil || a.Direct != (wire.DirectActivity{InFlight: 3, Idle: 2 * time.Second}) {
		t.Errorf("got %+v, %v", a, err)
	}
	replies <- `{"direct":{"in_flight":-1}}`
	if _, err := s.Activity(within(t)); err == nil {
		t.Error("nonsense is believed")
	}
}
