package link

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// saying answers with frames.
func saying(frames ...[]byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, f := range frames {
			w.Write(f)
		}
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

func portsFrame(json string) []byte { return wire.AppendFrame(nil, wire.FramePorts, []byte(json)) }

func TestWatchPorts_NonsenseFromTheGuestIsUnavailable(t *testing.T) {
	many := make([]string, wire.MaxOpenPorts+1)
	for i := range many {
		many[i] = fmt.Sprintf(`{"port":%d}`, i+1)
	}
	for name, frame := range map[string][]byte{
		"not JSON":      portsFrame("hello"),
		"no such port":  portsFrame(`[{"port":65536}]`),
		"port zero":     portsFrame(`[{"port":0}]`),
		"twice":         portsFrame(`[{"port":80},{"port":80}]`),
		"out of order":  portsFrame(`[{"port":81},{"port":80}]`),
		"too many":      portsFrame("[" + strings.Join(many, ",") + "]"),
		"no address":    portsFrame(`[{"port":80,"address":"<script>"}]`),
		"odd zone":      portsFrame(`[{"port":80,"address":"fe80::1%<script>"}]`),
		"negative pid":  portsFrame(`[{"port":80,"pid":-1}]`),
		"another frame": wire.AppendFrame(nil, wire.FrameData, []byte("[]")),
		"too long":      {byte(wire.FramePorts), 0xff, 0xff, 0xff},
		"no frame":      []byte("\x00\x00\x00\x00"),
	} {
		t.Run(name, func(t *testing.T) {
			_, s := liarSession(t, saying(frame))
			err := s.WatchPorts(within(t), func(l []wire.PortOpen) error {
				t.Errorf("it is believed: %+v", l)
				return nil
			})
			if fault.KindOf(err) != fault.Unavailable {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWatchPorts_TextIsCleanedAndSilenceIsNoError(t *testing.T) {
	_, s := liarSession(t, saying(portsFrame(`[{"port":80,"address":"::","process":"\u001b[31mx\u202ey\n`+strings.Repeat("z", 500)+`"}]`)))
	ctx, cancel := context.WithCancel(within(t))
	err := s.WatchPorts(ctx, func(l []wire.PortOpen) error {
		if len(l) != 1 || !strings.HasPrefix(l[0].Process, "[31mxy z") || len(l[0].Process) > 64 {
			t.Errorf("got %+v", l)
		}
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWatchPorts_FloodIsReadAtOurPace(t *testing.T) {
	_, s := liarSession(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			w.Write(portsFrame(`[{"port":80}]`))
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*portsPace)
	defer cancel()
	lists := 0
	if err := s.WatchPorts(ctx, func([]wire.PortOpen) error { lists++; return nil }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if lists > 6 {
		t.Errorf("%d lists in the time of five", lists)
	}
}

func TestWatchPorts_IsUnknownToAnOlderGuest(t *testing.T) {
	_, s := liarSession(t, http.NotFound)
	_, portsErr := s.Ports(within(t))
	for what, err := range map[string]error{
		"ports": portsErr,
		"watch": s.WatchPorts(within(t), func([]wire.PortOpen) error { return nil }),
		"logs":  s.FollowLogs(within(t), time.Time{}, func([]wire.LogLine) error { return nil }),
	} {
		if fault.KindOf(err) != fault.NotFound || !strings.Contains(fault.Message(err), "older") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

func TestFollow_EndsWithWhatItsReaderSays(t *testing.T) {
	_, s := liarSession(t, func(w http.ResponseWriter, r *http.Request) {
		for at := time.Now(); r.Context().Err() == nil; at = at.Add(time.Millisecond) {
			w.Write(wire.AppendFrame(nil, wire.FrameLines, wire.AppendLogLine(nil, wire.LogLine{Time: at, Service: "a", Text: []byte("line")})))
		}
	})
	enough, n := errors.New("enough"), 0
	err := s.FollowLogs(within(t), time.Time{}, func([]wire.LogLine) error {
		if n++; n == 1000 {
			return enough
		}
		return nil
	})
	if err != enough || n != 1000 {
		t.Errorf("got %v after %d", err, n)
	}
}

func TestReady_AGuestThatNeverTakesTheNewsCostsItsCallerTheirTime(t *testing.T) {
	h, socket := quick(t)
	var asked atomic.Int32
	lie(t, socket, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 1 {
			fail(w, wire.CodeUnavailable)
			return
		}
		hello(w)
	}, nil)
	if err := h.Ready(within(t), "box"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Expect("box", wire.Setup{Name: "another"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*pushPause)
	defer cancel()
	if err := h.Ready(ctx, "box"); err == nil {
		t.Error("it is ready")
	}
	if n := asked.Load(); n > 6 {
		t.Errorf("it was told %d times", n)
	}
}

func fail(w http.ResponseWriter, code string) {
	w.WriteHeader(http.StatusServiceUnavailable)
	fmt.Fprintf(w, `{"code":%q,"message":"no"}`, code)
}

func hello(w http.ResponseWriter) {
	h := goodHello()
	b, _ := wire.Encode(wire.MaxReply, &h)
	w.Write(b)
}
