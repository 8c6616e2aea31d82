package link_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/fault"
	"sandboxd/internal/guest"
	"sandboxd/internal/link"
	"sandboxd/internal/wire"
)

// ideSession is a session with a guest that has one version of VS Code, "v1", which is a script.
func ideSession(t *testing.T, s wire.Setup, script string, of link.IDE) *link.Session {
	t.Helper()
	h := link.NewHub(filepath.Join(t.TempDir(), "link"), nil)
	if of != nil {
		h.OfferIDE(of)
	}
	runHub(t, h)
	folder, err := h.Expect("box", s)
	if err != nil {
		t.Fatal(err)
	}
	versions := t.TempDir()
	if err := os.MkdirAll(filepath.Join(versions, "v1/lib"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(versions, "v1/lib/node"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	runGuest(t, folder, guest.Config{IDE: versions})
	session, err := h.Session(testContext(t), "box")
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func always(version string) link.IDE {
	return func(context.Context, string) (wire.IDEStart, error) { return wire.IDEStart{Version: version}, nil }
}

func TestDialIDE_TellsWhyThereIsNone(t *testing.T) {
	building := func(_ context.Context, id string) (wire.IDEStart, error) {
		return wire.IDEStart{}, fault.New(fault.Unavailable, "VS Code is being built for %s.", id)
	}
	on := wire.Setup{IDE: true}
	for what, c := range map[string]struct {
		setup wire.Setup
		of    link.IDE
		kind  fault.Kind
		text  string
	}{
		"not offered at all": {on, nil, fault.Unavailable, "has no VS Code"},
		"being built":        {on, building, fault.Unavailable, "built for box"},
		"switched off":       {wire.Setup{}, always("v1"), fault.Conflict, "switched off"},
		"not mounted":        {on, always("v2"), fault.Unavailable, "older sandboxd"},
		"a lying version":    {on, always("../v1"), fault.Internal, ""},
		"broken":             {on, always("v1"), fault.Unavailable, "no space left"},
	} {
		t.Run(what, func(t *testing.T) {
			s := ideSession(t, c.setup, "echo no space left; exit 3", c.of)
			_, err := s.DialIDE(testContext(t))
			if !fault.Is(err, c.kind) || !strings.Contains(fault.Message(err), c.text) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestIDE_ItsStateIsTold(t *testing.T) {
	s := ideSession(t, wire.Setup{IDE: true}, "printf 1 >&4; exec sleep 1000", always("v1"))
	if st, err := s.IDE(testContext(t)); err != nil || st.State != wire.IDEStopped {
		t.Errorf("got %+v, %v", st, err)
	}
	conn, err := s.DialIDE(testContext(t)) // the kernel takes the connection, though nobody ever accepts it
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if st, err := s.IDE(testContext(t)); err != nil || st.State != wire.IDERunning || st.Version != "v1" {
		t.Errorf("got %+v, %v", st, err)
	}
}
