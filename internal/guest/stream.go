package guest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"sandboxd/internal/wire"
)

// portTimeout bounds connecting to a port of our own machine.
const portTimeout = 5 * time.Second

// A program that writes line by line makes a piece of each. terminalPause is how long a terminal's next piece is
// delayed after a small one, to be sent with others: too short to be seen, and it saves most of the work on the way.
const (
	terminalPause = 2 * time.Millisecond
	smallPiece    = 24 << 10
)

// linger is how long bytes from before a reset may take to be passed on.
const linger = time.Second

// servePort answers CONNECT: it connects to the program that listens on that port and passes the connection, if that is
// asked for and possible, or joins the stream to it.
func (g *Guest) servePort(w http.ResponseWriter, r *http.Request, link *descriptorConn) {
	host, portText, err := net.SplitHostPort(r.Host)
	port, err2 := strconv.ParseUint(portText, 10, 16)
	if err != nil || err2 != nil || host != "127.0.0.1" || port == 0 {
		fail(w, problem(wire.CodeInvalid, "That is no port of the sandbox."))
		return
	}
	if g.models.has(port) {
		fail(w, problem(wire.CodeRefused, "Models are offered to programs in the sandbox alone."))
		return
	}
	conn, err := dialPort(r.Context(), strconv.Itoa(int(port)))
	if errors.Is(err, syscall.ECONNREFUSED) {
		fail(w, problem(wire.CodeRefused, "Nothing is listening on port "+portText+" in the sandbox."))
		return
	}
	if err != nil {
		fail(w, problem(wire.CodeUnavailable, "Port "+portText+" in the sandbox does not answer."))
		return
	}
	if r.Header.Get(wire.DescriptorHeader) == "1" {
		if cookie, ok := link.pass(conn, nil); ok {
			w.Header().Set(wire.DescriptorHeader, strconv.FormatUint(cookie, 10))
			w.WriteHeader(http.StatusOK)
			return
		}
	}
	join(w, r, conn, 0)
}

// dialPort tries the loopback addresses, then the machine's own: a program may have bound to just one of them. When
// all refuse, the error is ECONNREFUSED.
func dialPort(ctx context.Context, port string) (net.Conn, error) {
	d := net.Dialer{Timeout: portTimeout}
	conn, err := d.DialContext(ctx, "tcp", "127.0.0.1:"+port)
	if err == nil || !errors.Is(err, syscall.ECONNREFUSED) {
		return conn, err
	}
	if conn, err := d.DialContext(ctx, "tcp", "[::1]:"+port); err == nil {
		return conn, nil
	}
	own, _ := net.InterfaceAddrs()
	for _, a := range own {
		ip, ok := a.(*net.IPNet)
		if !ok || !ip.IP.IsGlobalUnicast() {
			continue
		}
		if conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(ip.IP.String(), port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// join moves bytes between a stream and a connection until both directions are done or the stream is reset, and closes
// the connection. Bytes to sandboxd are framed, because the end of an HTTP/2 reply would also end the request; bytes from it
// are bare, and end with the request.
//
// With a pause, the read after a small piece is delayed by that much, so that the next piece is larger.
func join(w http.ResponseWriter, r *http.Request, conn net.Conn, pause time.Duration) {
	defer conn.Close()
	ctx := r.Context()
	defer context.AfterFunc(ctx, func() { // bytes that have arrived are still passed on, as by a closed TCP connection
		conn.SetReadDeadline(time.Now())
		conn.SetWriteDeadline(time.Now().Add(linger))
	})()
	w.WriteHeader(http.StatusOK)
	http.NewResponseController(w).Flush()
	up := make(chan struct{})
	go func() {
		defer close(up)
		upload(conn, r.Body)
	}()
	err := download(w, conn, pause)
	if err != nil && ctx.Err() == nil {
		conn.Close()
		r.Body.Close()
	}
	<-up
	if err != nil {
		panic(http.ErrAbortHandler) // resets the stream, as the connection was
	}
}

func upload(conn net.Conn, body io.Reader) {
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	var lost error
	for {
		n, err := body.Read(buf[:])
		if n > 0 && lost == nil {
			_, lost = conn.Write(buf[:n]) // reading continues, so that the sender is not held up
		}
		if err != nil {
			closeWrite(conn, err)
			return
		}
	}
}

// closeWrite passes on the end of the bytes from sandboxd: a clean end closes that direction, a reset both.
func closeWrite(conn net.Conn, err error) {
	half, ok := conn.(interface{ CloseWrite() error })
	if ok && err == io.EOF {
		half.CloseWrite()
		return
	}
	conn.Close()
}

func download(w http.ResponseWriter, conn net.Conn, pause time.Duration) error {
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	flush := http.NewResponseController(w)
	for {
		n, err := conn.Read(buf[wire.FrameHead:])
		kind := wire.FrameData
		if err == io.EOF && n == 0 {
			kind = wire.FrameDataDone
		} else if err != nil && n == 0 {
			return err
		}
		wire.PutHead(buf[:], kind, n)
		if _, err := w.Write(buf[:wire.FrameHead+n]); err != nil {
			return err
		}
		if err := flush.Flush(); err != nil {
			return err
		}
		if kind == wire.FrameDataDone {
			return nil
		}
		if pause > 0 && n < smallPiece {
			<-time.After(pause)
		}
	}
}
