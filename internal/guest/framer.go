package guest

import (
	"net/http"

	"sandboxd/internal/wire"
)

// framer writes frames to a reply, each at once.
type framer struct {
	w     http.ResponseWriter
	flush *http.ResponseController
	buf   []byte
}

// newFramer begins the reply.
func newFramer(w http.ResponseWriter) *framer {
	f := &framer{w: w, flush: http.NewResponseController(w)}
	w.WriteHeader(http.StatusOK)
	f.flush.Flush()
	return f
}

// send writes one frame. An error means that the stream has ended.
func (f *framer) send(t wire.FrameType, payload []byte) error {
	f.buf = wire.AppendFrame(f.buf[:0], t, payload)
	if _, err := f.w.Write(f.buf); err != nil {
		return err
	}
	return f.flush.Flush()
}
