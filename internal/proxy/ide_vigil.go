package proxy

import (
	"context"
	"net"
	"sync"
	"time"

	"sandboxd/internal/sandbox"
)

// VS Code's page takes a server that has said nothing for 20 seconds for lost, and connects again and again. One that stands
// still is not lost.
const vigilEvery = 5 * time.Second // as its own server does

// vigilWord is a keep-alive of VS Code's protocol in a frame of its own, as a server sends it. It acknowledges nothing.
var vigilWord = append([]byte{frameFin | opBinary, ideHead, ideLast}, make([]byte, ideHead-1)...)

// vigil is a tunnel to an editor that says, as long as the sandbox is frozen, in its place that it is there. One reads it.
type vigil struct {
	*tunnel
	wants  chan struct{} // asks for one read of the tunnel
	reads  chan vigilRead
	begin  sync.Once
	end    sync.Once
	closed chan struct{}
	ended  chan struct{} // closed when nobody reads the tunnel any more

	asked bool      // a read is under way
	last  vigilRead // what has come and not been given yet
	rests bool      // what has been given ends with a message
}

// vigilRead is what a read of the tunnel has given.
type vigilRead struct {
	bytes []byte
	err   error
	rests bool
}

func newVigil(t *tunnel) *vigil {
	t.up.inner, t.down.inner = &ideProtocol{page: true}, &ideProtocol{}
	return &vigil{tunnel: t, wants: make(chan struct{}, 1), reads: make(chan vigilRead, 1),
		closed: make(chan struct{}), ended: make(chan struct{})}
}

// listen reads the tunnel, each time that it is wanted, until Close.
func (v *vigil) listen() {
	defer close(v.ended)
	buf := make([]byte, bufferSize)
	for {
		select {
		case <-v.wants:
		case <-v.closed:
			return
		}
		n, err := v.tunnel.Read(buf)
		v.reads <- vigilRead{buf[:n], err, v.down.rests()}
	}
}

// Read implements io.Reader: it gives what the sandbox sends, or a word in its place.
func (v *vigil) Read(p []byte) (int, error) {
	v.begin.Do(func() { go v.listen() })
	if len(v.last.bytes) == 0 && v.last.err == nil {
		v.last = v.await()
	}
	n := copy(p, v.last.bytes)
	if v.last.bytes = v.last.bytes[n:]; len(v.last.bytes) > 0 {
		return n, nil
	}
	v.rests = v.last.rests
	return n, v.last.err
}

// await gives what has come out of the sandbox, or a word when that is due.
func (v *vigil) await() vigilRead {
	if !v.asked {
		v.asked = true
		v.wants <- struct{}{}
	}
	tick := time.NewTicker(vigilEvery)
	defer tick.Stop()
	for {
		select {
		case r := <-v.reads:
			v.asked = false
			return r
		case <-tick.C:
			if v.rests && v.frozen() {
				return vigilRead{bytes: vigilWord, rests: true}
			}
		case <-v.closed:
			return vigilRead{err: net.ErrClosed}
		}
	}
}

func (v *vigil) frozen() bool {
	ctx, cancel := context.WithTimeout(v.ctx, askLimit)
	defer cancel()
	sb, err := v.stay.handle.Current(ctx)
	return err == nil && sb.State == sandbox.Frozen
}

// Close implements io.Closer. It ends the read under way, and waits for that.
func (v *vigil) Close() error {
	err := v.tunnel.Close()
	v.end.Do(func() {
		close(v.closed)
		v.begin.Do(func() { close(v.ended) }) // nobody has read
		<-v.ended
	})
	return err
}
