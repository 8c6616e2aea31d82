package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// Flow control bounds what a guest can make us hold. A stream that nobody reads holds its window at most, all streams
// of a guest together the connection's.
const (
	streamWindow = 256 << 10
	connWindow   = 32 << 20
	maxStreams   = 512
	maxFrameSize = 64 << 10
	// maxPending bounds the requests whose streams are not over yet: those in slots, and given up ones of which the guest
	// has not taken notice. It is below what a guest of ours allows, where HTTP/2 would let further ones wait.
	maxPending = 960
)

// Session is one live connection to a guest. It is safe for concurrent use and ends by itself; every call then fails
// with Unavailable. Its errors are faults: Invalid, NotFound, Conflict and Forbidden are the guest's answer to the request,
// Unavailable covers everything that a guest or its connection can do wrong. When the caller's ctx ends, the error is the ctx's.
type Session struct {
	*transport
	fileClient
}

// fileClient asks a guest about files.
type fileClient struct{ *transport }

// transport carries requests to a guest, and their replies.
type transport struct {
	id          string
	client      *http.ClientConn
	conn        *frameLimiter
	descriptors *descriptorConn // nil when nothing can be passed
	greeting    greeting
	pace        pace
	ide         IDE // nil for none
	slots       chan struct{}
	done        chan struct{}  // closed when the connection has ended
	streams     sync.WaitGroup // goroutines of connections through the link

	mu     sync.Mutex
	waited bool // for streams: no more may come
}

// open says hello over conn. The caller closes conn when it fails.
func open(ctx context.Context, id string, conn net.Conn, setup terms, p pace) (*Session, error) {
	m := newFrameLimiter(conn)
	defer context.AfterFunc(ctx, func() { m.fail(context.Cause(ctx)) })()
	descriptors, _ := conn.(*descriptorConn)
	client, err := speak(ctx, m)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "The program inside the sandbox hung up.")
	}
	s := &transport{id: id, client: client, conn: m, descriptors: descriptors, pace: p, slots: make(chan struct{}, maxStreams), done: m.done}
	s.greeting.told.Store(setup.Revision)
	if err := s.call(ctx, http.MethodPost, wire.PathSetup, setup.text, &s.greeting.hello); err != nil {
		s.drop(err)
		return nil, unanswered(err)
	}
	if s.greeting.hello.Protocol != wire.Protocol {
		s.drop(errDropped)
		return nil, fault.New(fault.Unavailable, "The program inside the sandbox speaks version %d of the link and this "+
			"sandboxd version %d: stop and start the sandbox.", s.greeting.hello.Protocol, wire.Protocol)
	}
	return &Session{s, fileClient{s}}, nil
}

// speak begins HTTP/2 on conn.
func speak(ctx context.Context, conn net.Conn) (*http.ClientConn, error) {
	var only http.Protocols
	only.SetUnencryptedHTTP2(true)
	t := &http.Transport{
		Protocols:              &only,
		DialContext:            func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		DisableCompression:     true, // no bomb
		MaxResponseHeaderBytes: wire.MaxHeader,
		HTTP2: &http.HTTP2Config{MaxReadFrameSize: maxFrameSize, MaxReceiveBufferPerConnection: connWindow,
			MaxReceiveBufferPerStream: streamWindow}, // and no pings: a frozen guest answers none
	}
	return t.NewClientConn(ctx, "http", "guest:80")
}

// Hello is what the guest said of itself, checked.
func (s *transport) Hello() wire.Hello { return s.greeting.hello }

// Done is closed when the connection has ended.
func (s *transport) Done() <-chan struct{} { return s.done }

func (s *transport) alive() bool { return !isOver(s.done) }

// isOver reports whether what ends by closing done has ended.
func isOver(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// begin runs f in a goroutine that the hub waits for, and reports whether it did: not after the end of the session.
func (s *transport) begin(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waited {
		return false
	}
	s.streams.Go(f)
	return true
}

// wait returns when the connection and everything that was begun has ended.
func (s *transport) wait() {
	<-s.done
	s.mu.Lock()
	s.waited = true
	s.mu.Unlock()
	s.streams.Wait()
}

// drop ends the connection.
func (s *transport) drop(cause error) { s.conn.fail(cause) }

// reply is a reply whose body is still to be read. close must be called, and ends the stream.
type reply struct {
	*http.Response
	ctx   context.Context // ends with the stream
	close func()
}

// ask sends a request and waits for the head of its reply, for pace.reply at most. A reply that is not 2xx is an error.
func (s *transport) ask(ctx context.Context, req *http.Request) (*reply, error) {
	select {
	case s.slots <- struct{}{}:
	case <-s.done:
		return nil, s.failed(ctx, errDropped)
	case <-ctx.Done():
		return nil, s.failed(ctx, ctx.Err())
	}
	if s.client.InFlight() >= maxPending {
		<-s.slots
		return nil, s.failed(ctx, errSlow)
	}
	s.conn.began()
	return s.send(ctx, req, s.pace.reply, func() {
		s.conn.ended()
		<-s.slots
	})
}

// send is ask for a request that has its room, which ended gives back. The head of its reply may take patience, or as long as it
// likes when that is 0.
func (s *transport) send(ctx context.Context, req *http.Request, patience time.Duration, ended func()) (*reply, error) {
	life, cancel := context.WithCancelCause(ctx)
	inTime := func() bool { return true }
	if patience > 0 {
		inTime = time.AfterFunc(patience, func() { cancel(errSlow) }).Stop
	}
	r := &reply{ctx: life, close: sync.OnceFunc(func() {
		cancel(context.Canceled)
		ended()
	})}
	res, err := s.client.RoundTrip(req.WithContext(life))
	if err == nil {
		// HTTP/2 alone does not notice the end of life while it waits for more of the request's body. Nobody waits for
		// this: it may have to write, and the guest may not read.
		context.AfterFunc(life, func() { res.Body.Close() })
	}
	if !inTime() {
		err = errSlow
	}
	if err != nil {
		r.close()
		if s.client.Err() != nil {
			s.drop(err) // it takes no more requests
		}
		return nil, s.failed(ctx, err)
	}
	r.Response = res
	if res.StatusCode/100 != 2 {
		defer r.close()
		return nil, s.refused(ctx, r)
	}
	return r, nil
}

var errSlow = errors.New("no reply in time")

// refused reads the problem that a reply is. It trusts the guest's code to be one of those that exist, no more.
func (s *transport) refused(ctx context.Context, r *reply) error {
	defer time.AfterFunc(s.pace.reply, r.close).Stop()
	var p wire.Problem
	b, err := s.readAll(r, wire.MaxHeader)
	if err == nil {
		err = wire.Unmarshal(b, &p)
	}
	if err != nil && r.StatusCode == http.StatusNotFound && ctx.Err() == nil && s.alive() {
		return fault.Wrap(err, fault.NotFound,
			"The program inside the sandbox is older than this sandboxd and does not know that: stop and start the sandbox.")
	}
	if err != nil {
		return s.failed(ctx, err)
	}
	return judgement(&p)
}

// judgement is the error that a guest's problem is.
func judgement(p *wire.Problem) error {
	switch p.Code {
	case wire.CodeInvalid:
		return fault.New(fault.Invalid, "%s", p.Message)
	case wire.CodeNotFound:
		return fault.New(fault.NotFound, "%s", p.Message)
	case wire.CodeNoProgram:
		return &fault.Error{Kind: fault.NotFound, Field: "command", Message: p.Message}
	case wire.CodeNoCommand:
		return fault.Field("command", "%s", p.Message)
	case wire.CodeConflict:
		return fault.New(fault.Conflict, "%s", p.Message)
	case wire.CodeForbidden:
		return fault.New(fault.Forbidden, "%s", p.Message)
	case wire.CodeRefused:
		return ErrNothingListens
	case wire.CodeChanged:
		return fault.Wrap(ErrFileChanged, fault.Conflict, "%s", p.Message)
	case wire.CodeFolder:
		return fault.Wrap(ErrIsFolder, fault.Conflict, "%s", p.Message)
	case wire.CodeFull:
		return fault.Wrap(ErrDiskFull, fault.Conflict, "%s", p.Message)
	}
	return fault.New(fault.Unavailable, "%s", p.Message)
}

// failed classifies an error of the transport.
func (s *transport) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("ask the guest: %w", context.Cause(ctx))
	}
	if !s.alive() {
		return fault.Wrap(errors.Join(err, s.conn.why()), fault.Unavailable,
			"The connection to the sandbox was lost. Try again in a moment.")
	}
	return unanswered(err)
}

// unanswered says how a guest failed to answer.
func unanswered(err error) error {
	if errors.Is(err, errSlow) || errors.Is(err, context.DeadlineExceeded) {
		return fault.Wrap(err, fault.Unavailable, "The program inside the sandbox did not answer in time.")
	}
	return fault.Wrap(err, fault.Unavailable, "The program inside the sandbox did not answer as it should.")
}

// call makes a whole request with a bounded JSON reply; body and into may be nil.
func (s *transport) call(ctx context.Context, method, path string, body []byte, into wire.Message) error {
	b, err := s.fetch(ctx, method, path, body, wire.MaxReply)
	if err != nil || into == nil {
		return err
	}
	if err := wire.Unmarshal(b, into); err != nil {
		return s.failed(ctx, err)
	}
	return nil
}

// fetch makes a whole request and gives the reply's body, of at most limit bytes.
func (s *transport) fetch(ctx context.Context, method, path string, body []byte, limit int) ([]byte, error) {
	brief, cancel := context.WithTimeoutCause(ctx, s.pace.reply, errSlow)
	defer cancel()
	req, err := http.NewRequest(method, "http://guest"+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	r, err := s.ask(brief, req)
	if err != nil {
		if ctx.Err() == nil && brief.Err() != nil {
			err = s.failed(ctx, errSlow)
		}
		return nil, err
	}
	defer r.close()
	b, err := s.readAll(r, limit)
	if err != nil && brief.Err() != nil {
		err = errSlow
	}
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	return b, nil
}

// readAll reads a reply to its end, at most limit bytes, until it is closed. The reading itself may be held up longer:
// HTTP/2 makes room for more by writing, which a guest that does not read holds up.
func (s *transport) readAll(r *reply, limit int) ([]byte, error) {
	type whole struct {
		bytes []byte
		err   error
	}
	done := make(chan whole, 1)
	if !s.begin(func() {
		b, err := io.ReadAll(io.LimitReader(r.Body, int64(limit)+1))
		if err == nil && len(b) > limit {
			err = wire.ErrTooLarge
		}
		done <- whole{b, err}
	}) {
		return nil, errDropped
	}
	select {
	case w := <-done:
		return w.bytes, w.err
	case <-r.ctx.Done():
		return nil, context.Cause(r.ctx)
	}
}
