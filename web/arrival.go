package web

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/labstack/echo/v4"

	"sandboxd/internal/fault"
)

// arrivalLimit is how long a request's body may take: enough for its megabyte on a bad line, and no way to hold a
// connection for nothing.
const arrivalLimit = 30 * time.Second

// arriving is a request's body that has to be here in time. It belongs to the goroutine of the request.
type arriving struct {
	io.ReadCloser
	ctl   *http.ResponseController
	whole bool
	pace  time.Duration // where it may take as long as it likes: how long nothing may come
}

// limitArrival bounds how long the body of any request may take, also of one that is refused or that nobody reads:
// net/http reads the rest before it answers.
func (s *Server) limitArrival(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := requestOf(c)
		if r.http.Body == nil || r.http.Body == http.NoBody {
			return next(c)
		}
		r.body = &arriving{ReadCloser: r.http.Body, ctl: http.NewResponseController(r.w)}
		r.http.Body = r.body
		_ = r.body.ctl.SetReadDeadline(time.Now().Add(s.arrival)) // what does not support it has no connection to hold
		return next(c)
	}
}

// Read gives errLate once the body has taken too long, and Invalid for one whose chunks are damaged. With its end the
// deadline is lifted: from there on reading only waits for the client to hang up.
func (b *arriving) Read(p []byte) (int, error) {
	if b.pace > 0 && !b.whole {
		_ = b.ctl.SetReadDeadline(time.Now().Add(b.pace)) // what does not support it has no connection to hold
	}
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF) && !b.whole:
		b.whole = true
		_ = b.ctl.SetReadDeadline(time.Time{}) // as it was set
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errLate
	case damaged(err):
		err = fault.Wrap(err, fault.Invalid, "The request's body is malformed.")
	}
	return n, err
}

// damaged says whether net/http could not read a body that has come: such errors of its have no type.
func damaged(err error) bool {
	var connection net.Error
	var tooLarge *http.MaxBytesError
	return err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, http.ErrBodyReadAfterClose) &&
		!errors.Is(err, context.Canceled) && !errors.As(err, &connection) && !errors.As(err, &tooLarge)
}

// errLate says that a body has not come in time.
var errLate = func() error {
	const message = "The rest of the request did not come in time. Send it again."
	return fault.Wrap(&statusError{http.StatusRequestTimeout, fault.Timeout.String(), message}, fault.Timeout, message)
}()

// arrived discards the rest of the body and reports whether all of it came.
func (r *request) arrived() bool {
	if r.body == nil {
		return true
	}
	if !r.body.whole {
		_, _ = io.Copy(io.Discard, io.LimitReader(r.body, maxBody)) // whole says how that went
	}
	return r.body.whole
}

// How much more of a body is read that was refused, and for how long: many clients read no answer before they have sent all,
// and one whose connection is closed on them reads none at all.
const (
	moreBytes = 64 << 20
	moreTime  = 10 * time.Second
)

// readOn sends the answer so far, and reads the rest of a body that nobody wants.
func (r *request) readOn() {
	if r.body == nil || r.body.whole || r.http.ProtoMajor > 1 { // HTTP/2 tells the client to stop
		return
	}
	_ = r.body.ctl.Flush() // a client that is gone shows at the first read
	r.body.pace = 0
	_ = r.body.ctl.SetReadDeadline(time.Now().Add(moreTime)) // without one, moreBytes bounds the rest alone
	_, _ = io.Copy(io.Discard, io.LimitReader(r.body, moreBytes))
}
