package proxy

import (
	"context"
	"net"
	"sync"
	"time"

	"sandboxd/internal/sandbox"
)

// VS Code's page takes a server for lost after 20 silent seconds, and reconnects again and again. A frozen one is not lost.
const keepAliveEvery = 5 * time.Second // as its own server does

// keepAliveFrame is a keep-alive of VS Code's protocol in a frame of its own, as a server sends it. It acknowledges nothing.
var keepAliveFrame = append([]byte{frameFin | opBinary, ideHead, ideLast}, make([]byte, ideHead-1)...)

// keepAlive is a tunnel to VS Code that sends keep-alives in place of a frozen sandbox. One goroutine reads it.
type keepAlive struct {
	*tunnel
	wants  chan struct{} // requests one read of the tunnel
	reads  chan editorRead
	begin  sync.Once
	end    sync.Once
	closed chan struct{}
	ended  chan struct{} // closed when the tunnel is read no more

	asked bool       // a read is under way
	last  editorRead // read from the tunnel and not returned yet
	rests bool       // the bytes returned end with a complete message
}

// editorRead is the result of one read of the tunnel.
type editorRead struct {
	bytes []byte
	err   error
	rests bool
}

func newKeepAlive(t *tunnel) *keepAlive {
	t.up.inner, t.down.inner = &ideProtocol{page: true}, &ideProtocol{}
	return &keepAlive{tunnel: t, wants: make(chan struct{}, 1), reads: make(chan editorRead, 1),
		closed: make(chan struct{}), ended: make(chan struct{})}
}

// listen reads the tunnel on request, until Close.
func (k *keepAlive) listen() {
	defer close(k.ended)
	buf := make([]byte, bufferSize)
	for {
		select {
		case <-k.wants:
		case <-k.closed:
			return
		}
		n, err := k.tunnel.Read(buf)
		k.reads <- editorRead{buf[:n], err, k.down.rests()}
	}
}

// Read implements io.Reader: it gives the sandbox's bytes, or a keep-alive in their place.
func (k *keepAlive) Read(p []byte) (int, error) {
	k.begin.Do(func() { go k.listen() })
	if len(k.last.bytes) == 0 && k.last.err == nil {
		k.last = k.await()
	}
	n := copy(p, k.last.bytes)
	if k.last.bytes = k.last.bytes[n:]; len(k.last.bytes) > 0 {
		return n, nil
	}
	k.rests = k.last.rests
	return n, k.last.err
}

// await gives the next bytes of the sandbox, or a keep-alive when one is due.
func (k *keepAlive) await() editorRead {
	if !k.asked {
		k.asked = true
		k.wants <- struct{}{}
	}
	tick := time.NewTicker(keepAliveEvery)
	defer tick.Stop()
	for {
		select {
		case r := <-k.reads:
			k.asked = false
			return r
		case <-tick.C:
			if k.rests && k.frozen() {
				return editorRead{bytes: keepAliveFrame, rests: true}
			}
		case <-k.closed:
			return editorRead{err: net.ErrClosed}
		}
	}
}

func (k *keepAlive) frozen() bool {
	ctx, cancel := context.WithTimeout(k.ctx, askLimit)
	defer cancel()
	sb, err := k.proxied.handle.Current(ctx)
	return err == nil && sb.State == sandbox.Frozen
}

// Close implements io.Closer. It ends the read under way and waits for it.
func (k *keepAlive) Close() error {
	err := k.tunnel.Close()
	k.end.Do(func() {
		close(k.closed)
		k.begin.Do(func() { close(k.ended) }) // it was never read
		<-k.ended
	})
	return err
}
