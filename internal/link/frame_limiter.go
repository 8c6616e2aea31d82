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
	// idlePerRequest is added when a request ends: for frames on their way when its stream was reset.
	idlePerRequest = 2 * streamWindow
	idleMost       = 2 * connWindow
	// idlePerInvitation is added for every reply that may come at any time.
	idlePerInvitation = 1 << 10
)

var (
	errFlood   = errors.New("the guest sends more than was asked for")
	errStrange = errors.New("the guest sends frames that no guest of ours sends")
	errDropped = errors.New("the connection is closed")
)

// frameLimiter is a guest's connection that counts HTTP/2 frames as they pass and ends the connection when there are too many
// of those that nobody asked for. It does not judge frames otherwise; HTTP/2 does.
type frameLimiter struct {
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

func newFrameLimiter(c net.Conn) *frameLimiter {
	now := time.Now()
	return &frameLimiter{Conn: c, done: make(chan struct{}),
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
func (l *frameLimiter) began() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flying++
	l.frames.give(framesPerRequest)
}

func (l *frameLimiter) ended() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flying--
	l.idle.give(idlePerRequest)
}

// invited is told of a request whose reply may come at any time, but is no more than a head: beyond that, the guest may send what it
// may without.
func (l *frameLimiter) invited() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frames.give(framesPerRequest)
	l.idle.give(idlePerInvitation)
}

// Read reads and counts. After a flood it gives no more.
func (l *frameLimiter) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if n == 0 || err != nil {
		l.broken(err)
		return n, err
	}
	frames, err := l.count(p[:n])
	if err == nil && !l.allow(frames, n) {
		err = errFlood
	}
	if err != nil {
		l.fail(err)
		return 0, err
	}
	return n, nil
}

// Write writes and lets the guest send the frames that come of it.
func (l *frameLimiter) Write(p []byte) (int, error) {
	n, err := l.Conn.Write(p)
	l.broken(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frames.give(float64(n) / bytesPerFrame)
	return n, err
}

// broken ends the connection after an error of it that no later call can survive, so that the connection has ended
// before the caller sees the error.
func (l *frameLimiter) broken(err error) {
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		l.fail(err)
	}
}

// Close ends the connection; HTTP/2 calls it too.
func (l *frameLimiter) Close() error {
	l.fail(errDropped)
	return nil
}

// fail ends the connection, for the first cause that is given.
func (l *frameLimiter) fail(cause error) {
	l.once.Do(func() {
		l.mu.Lock()
		l.cause = cause
		l.mu.Unlock()
		l.Conn.Close()
		close(l.done)
	})
}

// why gives the cause of the end.
func (l *frameLimiter) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

func (l *frameLimiter) allow(frames, bytes int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if !l.frames.take(float64(frames), now) {
		return false
	}
	return l.flying > 0 || l.idle.take(float64(bytes), now)
}

// frameTypeData is the type of HTTP/2 frames with content.
const frameTypeData = 0

// usual are the types of frames that a guest of ours sends: data, headers and their continuation, resets, settings,
// pings and window updates. HTTP/2 would log each of another type. A goodbye is not usual: who says it takes no more
// requests.
var usual = [...]bool{0: true, 1: true, 3: true, 4: true, 6: true, 8: true, 9: true}

// count follows the frames in b and gives how many without data began in it.
func (l *frameLimiter) count(b []byte) (frames int, err error) {
	for len(b) > 0 {
		if l.skip > 0 {
			n := min(l.skip, len(b))
			l.skip -= n
			b = b[n:]
			continue
		}
		n := copy(l.head[l.have:], b)
		l.have += n
		b = b[n:]
		if l.have < len(l.head) {
			break
		}
		l.have = 0
		l.skip = int(l.head[0])<<16 | int(l.head[1])<<8 | int(l.head[2])
		kind := l.head[3]
		if int(kind) >= len(usual) || !usual[kind] {
			return frames, errStrange
		}
		if kind != frameTypeData || l.skip == 0 {
			frames++
		}
	}
	return frames, nil
}
