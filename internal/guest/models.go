package guest

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"sandboxd/internal/wire"
)

const (
	// modelsPause is between two tries to listen while another program has the port, and to accept while the sandbox has no room for one.
	modelsPause = 10 * time.Second
	// keptFor is how long sandboxd may take to dial a connection that it has been told of, and maxKept how many may be in that state.
	keptFor = 10 * time.Second
	maxKept = 16
)

// models listens for programs in the sandbox that ask for models, and hands each of their connections to sandboxd, which serves them.
// What sandboxd does not ask for waits in the kernel's queue. Safe for concurrent use.
type models struct {
	port  int
	pause time.Duration
	conns chan net.Conn // to who waits for one
	back  chan net.Conn // likewise, those that a link has ended before it took them

	mu      sync.Mutex
	on      bool
	changed chan struct{}       // closed and replaced when on changes
	tried   func()              // to be called when there was a try to listen since
	inodes  map[string]bool     // of the sockets that listen
	kept    map[uint64]keptCall // sandboxd knows of them and has not dialled yet
	last    uint64              // number of a kept connection
}

// keptCall is a connection of which sandboxd is told.
type keptCall struct {
	conn net.Conn
	link *descriptorConn // by which it was told; nil while it may yet be passed
}

func newModels(port int) *models {
	if port == 0 {
		port = wire.ModelsPort
	}
	return &models{port: port, pause: modelsPause, conns: make(chan net.Conn), back: make(chan net.Conn, maxKept),
		changed: make(chan struct{}), kept: map[uint64]keptCall{}}
}

// allow says whether models are offered. It waits for the first try to listen, so that the first command finds them.
func (m *models) allow(on bool) {
	m.mu.Lock()
	if m.on == on {
		m.mu.Unlock()
		return
	}
	tried := make(chan struct{})
	m.on, m.tried = on, sync.OnceFunc(func() { close(tried) })
	close(m.changed)
	m.changed = make(chan struct{})
	m.mu.Unlock()
	if on {
		select {
		case <-tried:
		case <-time.After(presetWait): // the guest does not run yet, or no more
		}
	}
}

// wish gives what allow said last, and what is closed when it says something else.
func (m *models) wish() (on bool, changed <-chan struct{}, tried func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.on, m.changed, m.tried
}

// run listens while models are offered, until ctx ends.
func (m *models) run(ctx context.Context) {
	for ctx.Err() == nil {
		on, changed, tried := m.wish()
		var again <-chan time.Time
		if on && !m.listen(ctx, changed, tried) {
			tried()
			again = time.After(m.pause) // another program has the port
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-again:
		}
	}
}

// listen calls tried when it listens, and does so until ctx or changed ends; it is false, at once, when it cannot.
func (m *models) listen(ctx context.Context, changed <-chan struct{}, tried func()) bool {
	listeners := openModels(ctx, strconv.Itoa(m.port))
	if listeners == nil {
		return false
	}
	m.listening(listeners)
	defer m.listening(nil)
	tried()
	ctx, cancel := context.WithCancel(ctx)
	var accepting sync.WaitGroup
	for _, l := range listeners {
		accepting.Go(func() { m.accept(ctx, l) })
	}
	select {
	case <-ctx.Done():
	case <-changed:
	}
	cancel()
	for _, l := range listeners {
		l.Close()
	}
	accepting.Wait()
	return true
}

// openModels gives the sockets that listen at a port, at IPv6's loopback too where there is one; none when the port is another program's.
// They speak no multipath TCP: a snapshot with memory could not keep them.
func openModels(ctx context.Context, port string) []net.Listener {
	plain := net.ListenConfig{KeepAlive: -1} // the other end is in the same kernel
	plain.SetMultipathTCP(false)
	four, err := plain.Listen(ctx, "tcp4", "127.0.0.1:"+port)
	if err != nil {
		return nil
	}
	if six, err := plain.Listen(ctx, "tcp6", "[::1]:"+port); err == nil {
		return []net.Listener{four, six}
	}
	return []net.Listener{four}
}

// accept gives connections to who waits for one, until ctx ends. The one that nobody waits for yet is all that it holds.
func (m *models) accept(ctx context.Context, l net.Listener) {
	for ctx.Err() == nil {
		conn, err := l.Accept()
		if err != nil {
			select {
			case <-time.After(m.pause):
			case <-ctx.Done():
			}
			continue
		}
		select {
		case m.conns <- conn:
		case <-ctx.Done():
			conn.Close()
		}
	}
}

// listening notes which sockets listen.
func (m *models) listening(listeners []net.Listener) {
	inodes := map[string]bool{}
	for _, l := range listeners {
		if inode, ok := inodeOf(l.(*net.TCPListener)); ok {
			inodes[inode] = true
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inodes = inodes
}

// inodeOf gives the number by which the kernel's tables know a socket.
func inodeOf(l syscall.Conn) (inode string, ok bool) {
	raw, err := l.SyscallConn()
	if err != nil {
		return "", false
	}
	ctlErr := raw.Control(func(fd uintptr) {
		var st syscall.Stat_t
		err = syscall.Fstat(int(fd), &st)
		inode = strconv.FormatUint(st.Ino, 10)
	})
	return inode, ctlErr == nil && err == nil
}

// owns reports whether a socket is one that listens here.
func (m *models) owns(inode string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.inodes[inode]
}

// has reports whether it listens on that port. Who may reach the sandbox's ports must not reach its models.
func (m *models) has(port uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int(port) == m.port && len(m.inodes) > 0
}

// serveAccept answers when a program has connected: with the descriptor, if that is asked for and possible, and with the number of the
// connection, which is kept for a while unless its descriptor was passed.
func (m *models) serveAccept(w http.ResponseWriter, r *http.Request, link *descriptorConn) {
	var conn net.Conn
	select {
	case conn = <-m.back:
	case conn = <-m.conns:
	case <-r.Context().Done():
		return
	}
	number, ok := m.keep(conn)
	if !ok {
		conn.Close()
		fail(w, problem(wire.CodeUnavailable, "Too many connections wait to be dialled."))
		return
	}
	told := make(chan bool, 1)
	if r.Header.Get(wire.DescriptorHeader) == "1" && r.Context().Err() == nil {
		if cookie, ok := link.pass(conn, told); ok {
			w.Header().Set(wire.DescriptorHeader, strconv.FormatUint(cookie, 10))
		} else {
			told <- false
		}
	} else {
		told <- false
	}
	w.Header().Set(wire.ModelsHeader, strconv.FormatUint(number, 10))
	w.WriteHeader(http.StatusOK)
	http.NewResponseController(w).Flush() // an error means that the link has ended, which is seen below
	switch {
	case <-told:
		m.take(number)
	case link.ended() || r.Context().Err() != nil:
		m.giveBack(number)
	default:
		m.await(number, link)
	}
}

// await lets sandboxd dial a connection of which it was told over a link. One that it does not dial is closed, or left to the next link.
func (m *models) await(number uint64, link *descriptorConn) {
	m.mu.Lock()
	if call, ok := m.kept[number]; ok {
		m.kept[number] = keptCall{call.conn, link}
	}
	m.mu.Unlock()
	if link.ended() {
		m.giveBack(number)
		return
	}
	time.AfterFunc(keptFor, func() {
		if conn := m.take(number); conn != nil {
			conn.Close()
		}
	})
}

// keep keeps a connection for who dials the number that it gives.
func (m *models) keep(conn net.Conn) (number uint64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.kept) >= maxKept {
		return 0, false
	}
	m.last++
	m.kept[m.last] = keptCall{conn: conn}
	return m.last, true
}

// take gives a kept connection, once; nil when there is none.
func (m *models) take(number uint64) net.Conn {
	m.mu.Lock()
	defer m.mu.Unlock()
	conn := m.kept[number].conn
	delete(m.kept, number)
	return conn
}

// giveBack leaves a kept connection to the next accept.
func (m *models) giveBack(number uint64) {
	conn := m.take(number)
	if conn == nil {
		return
	}
	select {
	case m.back <- conn:
	default:
		conn.Close()
	}
}

// lost is told that a link has ended. What sandboxd had not dialled is the next one's.
func (m *models) lost(link *descriptorConn) {
	m.mu.Lock()
	var numbers []uint64
	for number, call := range m.kept {
		if call.link == link {
			numbers = append(numbers, number)
		}
	}
	m.mu.Unlock()
	for _, number := range numbers {
		m.giveBack(number)
	}
}

// serveDial joins the stream to a connection that sandboxd has been told of.
func (m *models) serveDial(w http.ResponseWriter, r *http.Request) {
	number, err := strconv.ParseUint(r.PathValue("number"), 10, 64)
	if err != nil {
		fail(w, problem(wire.CodeInvalid, "That is no connection's number."))
		return
	}
	conn := m.take(number)
	if conn == nil {
		fail(w, problem(wire.CodeNotFound, "That connection is not there any more."))
		return
	}
	join(w, r, conn, 0)
}
