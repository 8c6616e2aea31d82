package link

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// What a guest may send that nobody asked for. A guest of ours stays far below; the numbers only have to stop a flood.
const (
	// framesPerSecond and framesAtOnce bound frames without data: pings, settings, resets, window updates.
	framesPerSecond = 500
	framesAtOnce    = 4096
	// framesPerRequest is added for every request: headers, an empty last frame, resets.
	framesPerRequest = 16
	// bytesPerFrame is how many bytes of ours let the guest send one such frame more: window updates come for what we
	// upload. The answer to a ping is shorter than the ping, so a flood does not feed itself.
	bytesPerFrame = 256
	// idlePerSecond and idleAtOnce bound bytes while no request is in flight.
	idlePerSecond = 16 << 10
	idleAtOnce    = 256 << 10
	// idlePerRequest is added when a request ends: what was on its way when its stream was reset.
	idlePerRequest = 2 * streamWindow
	idleMost       = 2 * connWindow
)

var (
	errFlood   = errors.New("the guest sends more than was asked for")
	errStrange = errors.New("the guest sends frames that no guest of ours sends")
	errDropped = errors.New("the connection is closed")
)

// meter is a guest's connection that counts HTTP/2 frames as they pass and ends the connection when there are too many
// of those that nobody asked for. It does not judge frames otherwise; HTTP/2 does.
type meter struct {
	net.Conn
	done chan struct{} // closed with the connection
	once sync.Once

	head [9]byte // of the frame that is coming in; touched by the one reader only
	have int     // bytes of it
	skip int     // bytes of its payload still to come

	mu     sync.Mutex
	cause  error
	flying int // requests in flight
	frames bucket
	idle   bucket
}

func newMeter(c net.Conn) *meter {
	now := time.Now()
	return &meter{Conn: c, done: make(chan struct{}),
		frames: bucket{level: framesAtOnce, fill: framesAtOnce, perSecond: framesPerSecond, most: 1 << 20, at: now},
		idle:   bucket{level: idleAtOnce, fill: idleAtOnce, perSecond: idlePerSecond, most: idleMost, at: now}}
}

// bucket is an allowance that fills up to fill with time, and up to most by gifts.
type bucket struct {
	level, fill, perSecond, most float64
	at                           time.Time
}

func (b *bucket) take(n float64, now time.Time) bool {
	if gained := now.Sub(b.at).Seconds() * b.perSecond; b.level < b.fill {
		b.level = min(b.level+gained, b.fill)
	}
	b.at = now
	b.level -= n
	return b.level >= 0
}

func (b *bucket) give(n float64) { b.level = min(b.level+n, b.most) }

// began and ended are told of every request.
func (m *meter) began() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flying++
	m.frames.give(framesPerRequest)
}

func (m *meter) ended() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flying--
	m.idle.give(idlePerRequest)
}

// Read reads and counts. After a flood it gives no more.
func (m *meter) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	if n == 0 || err != nil {
		m.broken(err)
		return n, err
	}
	frames, err := m.count(p[:n])
	if err == nil && !m.allow(frames, n) {
		err = errFlood
	}
	if err != nil {
		m.fail(err)
		return 0, err
	}
	return n, nil
}

// Write writes and lets the guest send the frames that come of it.
func (m *meter) Write(p []byte) (int, error) {
	n, err := m.Conn.Write(p)
	m.broken(err)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.frames.give(float64(n) / bytesPerFrame)
	return n, err
}

// broken ends the connection after an error of it that no later call can survive, so that whoever hears of the error
// first finds the connection ended.
func (m *meter) broken(err error) {
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		m.fail(err)
	}
}

// Close ends the connection; HTTP/2 calls it too.
func (m *meter) Close() error {
	m.fail(errDropped)
	return nil
}

// fail ends the connection, for the first cause that is given.
func (m *meter) fail(cause error) {
	m.once.Do(func() {
		m.mu.Lock()
		m.cause = cause
		m.mu.Unlock()
		m.Conn.Close()
		close(m.done)
	})
}

// why gives the cause of the end.
func (m *meter) why() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cause
}

func (m *meter) allow(frames, bytes int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if !m.frames.take(float64(frames), now) {
		return false
	}
	return m.flying > 0 || m.idle.take(float64(bytes), now)
}

// frameTypeData is the type of HTTP/2 frames with content.
const frameTypeData = 0

// usual are the types of frames that a guest of ours sends: data, headers and their continuation, resets, settings,
// pings and window updates. HTTP/2 would log each of another type. A goodbye is not usual: who says it takes no more
// requests.
var usual = [...]bool{0: true, 1: true, 3: true, 4: true, 6: true, 8: true, 9: true}

// count follows the frames in b and gives how many without data began in it.
func (m *meter) count(b []byte) (frames int, err error) {
	for len(b) > 0 {
		if m.skip > 0 {
			n := min(m.skip, len(b))
			m.skip -= n
			b = b[n:]
			continue
		}
		n := copy(m.head[m.have:], b)
		m.have += n
		b = b[n:]
		if m.have < len(m.head) {
			break
		}
		m.have = 0
		m.skip = int(m.head[0])<<16 | int(m.head[1])<<8 | int(m.head[2])
		kind := m.head[3]
		if int(kind) >= len(usual) || !usual[kind] {
			return frames, errStrange
		}
		if kind != frameTypeData || m.skip == 0 {
			frames++
		}
	}
	return frames, nil
}
