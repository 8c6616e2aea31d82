package files

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"sandboxd/internal/wire"
)

const (
	// keepAlivePace is the pause between two keep-alives to sandboxd; it must be shorter than sandboxd waits.
	keepAlivePace = 4 * time.Second
	// replyPiece is how much of a reply is gathered before it is sent.
	replyPiece = 32 << 10
)

// reply is the answer to one verb: records, and between them keep-alives while it takes long. Safe for concurrent use.
type reply struct {
	w http.ResponseWriter

	mu         sync.Mutex
	begun      bool // the status is sent
	over       bool
	buf        []byte
	keepAlives *time.Timer
	err        error // of writing
}

func newReply(w http.ResponseWriter) *reply {
	r := &reply{w: w}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keepAlives = time.AfterFunc(keepAlivePace, r.sendKeepAlive)
	return r
}

func (r *reply) sendKeepAlive() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.err != nil {
		return
	}
	r.buf = wire.AppendRecord(r.buf, wire.RecordKeepAlive, nil)
	r.flush()
	r.keepAlives.Reset(keepAlivePace)
}

// begin sends the status, which says that the request is accepted.
func (r *reply) begin() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flush()
	return r.err
}

// record adds a record, which is sent with company.
func (r *reply) record(k wire.RecordKind, payload []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buf = wire.AppendRecord(r.buf, k, payload)
	if len(r.buf) >= replyPiece {
		r.send()
	}
	return r.err
}

// records adds records that are encoded already.
func (r *reply) records(b []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buf = append(r.buf, b...)
	if len(r.buf) >= replyPiece {
		r.send()
	}
	return r.err
}

// end says the last word.
func (r *reply) end(payload []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop()
	r.buf = wire.AppendRecord(r.buf, wire.RecordEnd, payload)
	r.send()
}

// bare ends the records; bytes that are written to the reply's writer from now on follow them.
func (r *reply) bare(payload []byte) error {
	r.end(payload)
	return r.err
}

// fail says why it ends. A reply that has begun says so with a record.
func (r *reply) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		panic(http.ErrAbortHandler) // in the middle of bare bytes there is no other way to say it
	}
	r.stop()
	p := problemOf(err)
	if r.begun {
		r.buf = wire.AppendRecord(r.buf, wire.RecordProblem, wire.AppendProblem(nil, p))
		r.send()
		return
	}
	r.buf = nil
	r.w.Header().Set("Content-Type", "application/json")
	r.w.WriteHeader(p.Status())
	json.NewEncoder(r.w).Encode(p)
}

func (r *reply) stop() {
	r.over = true
	r.keepAlives.Stop()
}

func (r *reply) send() {
	r.begun = true
	if r.err == nil {
		_, r.err = r.w.Write(r.buf)
	}
	r.buf = r.buf[:0]
}

func (r *reply) flush() {
	r.send()
	if r.err == nil {
		r.err = http.NewResponseController(r.w).Flush()
	}
}

// quit ends the keep-alives in any case.
func (r *reply) quit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop()
}

// stopKeepAlives ends the keep-alives of a reply without a timeout.
func (r *reply) stopKeepAlives() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keepAlives.Stop()
}
