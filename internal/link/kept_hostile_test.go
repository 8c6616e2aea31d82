package link

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// keptLiar gives a session with a guest that says that it keeps programs, and answers as it likes.
func keptLiar(t *testing.T, rest http.HandlerFunc) *Session {
	t.Helper()
	h, socket := quick(t)
	lie(t, socket, func(w http.ResponseWriter, _ *http.Request) {
		hello := goodHello()
		hello.Kept = true
		json.NewEncoder(w).Encode(hello)
	}, rest)
	s, err := h.Session(within(t), "box")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestKept_AnOlderGuestIsToldApart(t *testing.T) {
	_, s := liarSession(t, http.NotFound)
	_, listed := s.ListKept(within(t))
	_, attached := s.AttachKept(within(t), "a", 0)
	_, wrote := s.WriteKept(within(t), "a", []byte("x"), 0)
	for what, err := range map[string]error{"list": listed, "attach": attached, "write": wrote, "end": s.EndKept(within(t), "a"),
		"start": s.StartKept(within(t), wire.KeptStart{ID: "a", Command: []string{"true"}})} {
		if fault.KindOf(err) != fault.Unavailable || !strings.Contains(fault.Message(err), "older") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestKept_NonsenseInTheOutputIsUnavailable(t *testing.T) {
	for name, out := range map[string][]byte{
		"giant frame":    {byte(wire.FrameStdout), 0xff, 0xff, 0xff, 'x'},
		"stderr":         wire.AppendFrame(nil, wire.FrameStderr, []byte("x")),
		"empty frame":    wire.AppendFrame(nil, wire.FrameStdout, nil),
		"unknown frame":  wire.AppendFrame(nil, 99, nil),
		"lines":          wire.AppendFrame(nil, wire.FrameLines, []byte("x")),
		"bad exit":       wire.AppendFrame(nil, wire.FrameExit, []byte{1, 2, 3, 4}),
		"no exit":        nil,
		"half a frame":   {byte(wire.FrameStdout), 0, 0, 9, 'x'},
		"not even HTTP2": {byte(wire.FrameStdout)},
	} {
		t.Run(name, func(t *testing.T) {
			s := keptLiar(t, func(w http.ResponseWriter, _ *http.Request) { w.Write(out) })
			k, err := s.AttachKept(within(t), "a", 0)
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close()
			for range 2 {
				if n, err := k.Read(make([]byte, 100)); n > 0 || fault.KindOf(err) != fault.Unavailable {
					t.Errorf("got %d bytes, %v", n, err)
				}
			}
		})
	}
}

func TestKept_EndlessOutputIsHeldUpByItsReader(t *testing.T) {
	s := keptLiar(t, func(w http.ResponseWriter, _ *http.Request) {
		endless(w, string(wire.AppendFrame(nil, wire.FrameStdout, make([]byte, wire.MaxFrame))))
	})
	k, err := s.AttachKept(within(t), "a", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if n, err := io.CopyN(io.Discard, k, 10<<20); err != nil || k.Offset() != n {
		t.Fatalf("got %d bytes up to %d, %v", n, k.Offset(), err)
	}
	if !s.alive() {
		t.Error("the connection has ended")
	}
}

func TestKept_ALostConnectionIsNoEnd(t *testing.T) {
	s := keptLiar(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Write(wire.AppendFrame(nil, wire.FrameStdout, []byte("part")))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	k, err := s.AttachKept(within(t), "a", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if _, err := io.ReadAll(k); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
}

func TestKept_LiesAboutOffsetsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		kind   fault.Kind
	}{
		"less than it had": {`{"next":9}`, fault.Unavailable},
		"negative":         {`{"next":-1}`, fault.Unavailable},
		"huge":             {`{"next":9223372036854775807}`, fault.Unavailable},
		"not a number":     {`{"next":"many"}`, fault.Unavailable},
		"nothing":          {``, fault.Unavailable},
		"endless":          {strings.Repeat(" ", wire.MaxReply+1), fault.Unavailable},
	} {
		s := keptLiar(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, c.answer) })
		if n, err := s.WriteKept(within(t), "a", []byte("input"), 10); n > 0 || fault.KindOf(err) != c.kind {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
	s := keptLiar(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"next":1000}`) })
	if n, err := s.WriteKept(within(t), "a", []byte("input"), 10); n != 5 || err != nil {
		t.Errorf("more than was written: %d, %v", n, err)
	}
}

func TestKept_AGuestThatTakesNothingIsNotAskedAllTheTime(t *testing.T) {
	asked := make(chan struct{}, 1000)
	s := keptLiar(t, func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		io.WriteString(w, `{"next":0}`)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*keptPause)
	defer cancel()
	began := time.Now()
	if n, err := s.WriteKept(ctx, "a", []byte("x"), 0); n > 0 || err == nil {
		t.Errorf("got %d, %v", n, err)
	}
	if most := int(time.Since(began)/keptPause) + 1; len(asked) > most {
		t.Errorf("it was asked %d times", len(asked))
	}
}

func TestKept_ListsThatLieAreRefused(t *testing.T) {
	for name, answer := range map[string]string{
		"too many":   "[" + strings.Repeat(`{"id":"a"},`, wire.MaxKept) + `{"id":"b"}]`,
		"twice":      `[{"id":"a"},{"id":"a"}]`,
		"another id": `[{"id":"../../x"}]`,
		"offsets":    `[{"id":"a","first":5,"last":4}]`,
	} {
		s := keptLiar(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, answer) })
		if l, err := s.ListKept(within(t)); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
	s := keptLiar(t, func(w http.ResponseWriter, _ *http.Request) { endless(w, "stderr ") })
	k := &Kept{session: s, id: "a"}
	if b, err := k.Stderr(within(t)); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("endless stderr: %d bytes, %v", len(b), err)
	}
}
