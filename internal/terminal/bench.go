//go:build bench || engine

package terminal

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/access"
	"sandboxd/internal/wire"
)

// Bench measures terminals as a viewer sees them: over a real websocket on loopback, through Attach and Pump.
type Bench struct {
	Terminals *Service
	Sandbox   access.Handle // which runs
	Rounds    int           // of attaching, and of keys
	Repeats   int           // of the throughput, each way in turn; the best of each counts

	// How to reach a ttyd that runs FloodScript(Bytes) without tmux in between, so that every byte can be checked:
	// as the only terminal of a sandbox, through the guest link, and directly. Without them throughput is not measured.
	Linked access.Handle
	Direct func(ctx context.Context) (net.Conn, error)
	Bytes  int
}

// FloodBytes is how much output throughput is measured with.
const FloodBytes = 50_000_000

// floodLine is the length of a line of the flood: a number and its end.
const floodLine = 8

// FloodScript is for /bin/sh under a ttyd: so many bytes (whole lines of 8, at most 80 MB) that a viewer can check, then silence.
func FloodScript(bytes int) string {
	return fmt.Sprintf("stty raw -echo; seq -f %%07.0f 1 %d; exec sleep 1000000", bytes/floodLine)
}

// Figures is what Measure finds.
type Figures struct {
	FirstScreen []time.Duration // from a viewer's first packet to the first output, sorted
	Echo        []time.Duration // from a key to its echo, sorted
	Direct      time.Duration   // the flood from ttyd itself
	Bridged     time.Duration   // the flood through sandboxd
}

// Ratio is the bridge's throughput as a part of ttyd's own.
func (f Figures) Ratio() float64 { return f.Direct.Seconds() / f.Bridged.Seconds() }

// P50 is the median of sorted durations.
func P50(d []time.Duration) time.Duration { return d[len(d)/2] }

// P95 is the 95th percentile of sorted durations.
func P95(d []time.Duration) time.Duration { return d[len(d)*95/100] }

// Measure runs everything. A byte that is lost or changed is an error.
func (b Bench) Measure(ctx context.Context) (Figures, error) {
	var f Figures
	page, err := serveViewers(b.Terminals, b.Sandbox)
	if err != nil {
		return f, err
	}
	defer page.close()
	if f.FirstScreen, err = b.firstScreens(ctx, page); err != nil {
		return f, fmt.Errorf("measure first screen: %w", err)
	}
	if f.Echo, err = b.echoes(ctx, page); err != nil {
		return f, fmt.Errorf("measure echo: %w", err)
	}
	if b.Direct != nil {
		if err = b.throughput(ctx, &f); err != nil {
			return f, fmt.Errorf("measure throughput: %w", err)
		}
	}
	return f, nil
}

func (b Bench) firstScreens(ctx context.Context, page *viewerPage) ([]time.Duration, error) {
	var all []time.Duration
	for range b.Rounds {
		began := time.Now()
		conn, err := open(ctx, page.dial)
		if err != nil {
			return nil, err
		}
		err = until(conn, func(output []byte) bool { return len(output) > 0 })
		all = append(all, time.Since(began))
		conn.Close()
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(all)
	return all, nil
}

// echoes types letters into the shell's line, and wipes it now and then.
func (b Bench) echoes(ctx context.Context, page *viewerPage) ([]time.Duration, error) {
	conn, err := open(ctx, page.dial)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := typeKeys(conn, "\x15echo re''ady\r", "ready"); err != nil {
		return nil, err
	}
	var all []time.Duration
	for i := range b.Rounds {
		if i%30 == 0 {
			if err := typeKeys(conn, "\x15echo re''ady"+strconv.Itoa(i)+"\r", "ready"+strconv.Itoa(i)); err != nil {
				return nil, err
			}
		}
		began := time.Now()
		if err := typeKeys(conn, "z", "z"); err != nil {
			return nil, err
		}
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return all, typeKeys(conn, "\x15echo do''ne\r", "done")
}

// typeKeys types keys and waits for text.
func typeKeys(conn *websocket.Conn, keys, text string) error {
	if err := conn.WriteMessage(websocket.BinaryMessage, []byte("0"+keys)); err != nil {
		return err
	}
	var seen []byte
	return until(conn, func(output []byte) bool {
		seen = append(seen, output...)
		return bytes.Contains(seen, []byte(text))
	})
}

// throughput takes turns, so that what else the machine does falls on both.
func (b Bench) throughput(ctx context.Context, f *Figures) error {
	page, err := serveViewers(b.Terminals, b.Linked)
	if err != nil {
		return err
	}
	defer page.close()
	for range max(b.Repeats, 1) {
		direct, err := b.flood(ctx, b.Direct)
		if err != nil {
			return fmt.Errorf("directly: %w", err)
		}
		bridged, err := b.flood(ctx, page.dial)
		if err != nil {
			return fmt.Errorf("bridged: %w", err)
		}
		f.Direct, f.Bridged = best(f.Direct, direct), best(f.Bridged, bridged)
	}
	return nil
}

func best(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// flood reads FloodScript's output and checks every byte.
func (b Bench) flood(ctx context.Context, dial func(context.Context) (net.Conn, error)) (time.Duration, error) {
	began := time.Now()
	conn, err := open(ctx, dial)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	n, sum := 0, crc32.NewIEEE()
	err = until(conn, func(output []byte) bool {
		sum.Write(output)
		n += len(output)
		return n >= b.Bytes
	})
	took := time.Since(began)
	if err != nil {
		return 0, fmt.Errorf("after %d bytes: %w", n, err)
	}
	if want := floodSum(b.Bytes); n != b.Bytes || sum.Sum32() != want {
		return 0, fmt.Errorf("%d bytes with sum %08x, want %d with %08x", n, sum.Sum32(), b.Bytes, want)
	}
	return took, nil
}

func floodSum(bytes int) uint32 {
	sum := crc32.NewIEEE()
	line := make([]byte, 0, floodLine)
	for i := 1; i <= bytes/floodLine; i++ {
		line = fmt.Appendf(line[:0], "%07d\n", i)
		sum.Write(line)
	}
	return sum.Sum32()
}

const stepLimit = time.Minute

// open makes a viewer's websocket and says the first message.
func open(ctx context.Context, dial func(context.Context) (net.Conn, error)) (*websocket.Conn, error) {
	d := websocket.Dialer{Subprotocols: []string{Subprotocol}, HandshakeTimeout: stepLimit, ReadBufferSize: 64 << 10,
		NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }}
	conn, _, err := d.DialContext(ctx, "ws://127.0.0.1/ws", nil)
	if err != nil {
		return nil, fmt.Errorf("open viewer: %w", err)
	}
	err = conn.WriteMessage(websocket.BinaryMessage, []byte(`{"AuthToken":"","columns":120,"rows":32}`))
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("open viewer: %w", err)
	}
	return conn, nil
}

// until reads output until ok says so.
func until(conn *websocket.Conn, ok func(output []byte) bool) error {
	for {
		if err := conn.SetReadDeadline(time.Now().Add(stepLimit)); err != nil {
			return err
		}
		_, m, err := conn.ReadMessage()
		if err != nil {
			return err
		}
		if len(m) > 0 && m[0] == wire.TTYOutput && ok(m[1:]) {
			return nil
		}
	}
}

// viewerPage serves viewers of one sandbox on loopback.
type viewerPage struct {
	server   *http.Server
	listener net.Listener
}

func serveViewers(s *Service, h access.Handle) (*viewerPage, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve viewers: %w", err)
	}
	up := websocket.Upgrader{Subprotocols: []string{Subprotocol}, ReadBufferSize: 4 << 10, WriteBufferSize: 32 << 10}
	p := &viewerPage{listener: l, server: &http.Server{ReadHeaderTimeout: stepLimit}}
	p.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, err := s.Attach(r.Context(), h, "")
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		defer a.Close()
		if conn, err := up.Upgrade(w, r, nil); err == nil {
			_ = a.Pump(context.WithoutCancel(r.Context()), conn)
		}
	})
	go func() { _ = p.server.Serve(l) }() // until close
	return p, nil
}

func (p *viewerPage) dial(ctx context.Context) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", p.listener.Addr().String())
}

func (p *viewerPage) close() { _ = p.server.Close() }

// String gives the figures as one line.
func (f Figures) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "first screen p50 %v p95 %v, echo p50 %v p95 %v", P50(f.FirstScreen), P95(f.FirstScreen), P50(f.Echo), P95(f.Echo))
	if f.Bridged > 0 {
		fmt.Fprintf(&b, ", flood directly %v, bridged %v: %.2f", f.Direct, f.Bridged, f.Ratio())
	}
	return b.String()
}
