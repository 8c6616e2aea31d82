package gateway

import (
	"cmp"
	"io"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"sandboxd/internal/ratelimit"
	"sandboxd/internal/semaphore"
)

// What one sandbox, or a user's tokens, can take of the gateway, so that others notice nothing.
const (
	maxAtOnce     = 64                     // requests
	maxBurst      = 200                    // requests
	everyMore     = 10 * time.Millisecond  // one more
	slowDown      = 100 * time.Millisecond // for one beyond: a client that never waits costs little, as it has few connections
	maxLarge      = 2                      // bodies larger than smallBody
	maxLargeOfAll = 16                     // of all together
	roomLimit     = 30 * time.Second       // for such a body to wait for the others
	bodyLimit     = 2 * time.Minute        // until a body has come
	complain      = 10 * time.Second       // between two lines in the log
	welcome       = "The model gateway of sandboxd.\n"
)

// Handler serves the protocols of models. identify says whose a request is; its errors are told to the client. The bounds of a caller are
// those of one Handler.
func (s *Service) Handler(identify func(*http.Request) (Caller, error)) http.Handler {
	return &plane{
		Service: s, identify: identify, server: newTransport(nil), users: newUsersTransport(s.c.Private),
		rate: ratelimit.Keyed{Burst: maxBurst, Every: everyMore}, complaints: rate.Sometimes{First: 3, Interval: complain},
	}
}

// plane is a Handler.
type plane struct {
	*Service
	identify      func(*http.Request) (Caller, error)
	server, users *http.Transport // to the server's providers, and to users' own
	atOnce, large semaphore.Keyed
	rate          ratelimit.Keyed
	complaints    rate.Sometimes // in the log
}

// exchange is one request, with what becomes of it.
type exchange struct {
	plane   *plane
	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController
	begun   time.Time
	route   route
	caller  Caller
	t       *table
	body    body
	size    int     // of the body, in bytes
	out     *outlet // since an answer was begun
	kept    []byte  // of the answer, for the log
	release func()  // gives back the room that the body takes; never nil
	call    Call
	tooMany bool // the caller asks too often
	logged  bool // the call is to be recorded
	broken  bool // the client is to see that the answer is not complete
}

// ServeHTTP implements http.Handler.
func (p *plane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{plane: p, w: w, r: r, control: http.NewResponseController(w), begun: time.Now(), t: p.table(), release: func() {}}
	x.call.Time = p.c.Now()
	leave, err := x.enter()
	defer leave()
	if r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead) && !x.tooMany { // clients look whether it is there
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, welcome) // a client that is gone needs no answer
		return
	}
	if err == nil {
		err = x.serve()
	}
	if err != nil {
		x.tell(problemOf(err))
	}
	if x.logged {
		x.call.Took, x.call.Answer = time.Since(x.begun), string(x.kept)
		p.record(x.call)
	}
	if x.broken {
		panic(http.ErrAbortHandler)
	}
}

// enter finds out what is asked and by whom, and takes a place among that one's requests. leave gives it back; it is never nil.
func (x *exchange) enter() (leave func(), err error) {
	leave = func() {}
	rt, wrong := routeOf(x.r)
	x.route = rt
	if x.caller, err = x.plane.identify(x.r); err != nil {
		return leave, err
	}
	x.call.User, x.call.Sandbox, x.call.Label, x.call.Protocol = x.caller.User, x.caller.Sandbox, x.caller.Label, rt.protocol
	if wait, _ := x.plane.rate.Take(x.key()); wait > 0 {
		p := refuse(http.StatusTooManyRequests, "Too many requests to models: at most %d a second. Wait and try again.", time.Second/everyMore)
		p.wait, x.tooMany = max(wait, time.Second), true
		pause(x.r.Context(), slowDown)
		return leave, p
	}
	release, ok := x.plane.atOnce.Try(x.key(), maxAtOnce)
	if !ok {
		p := refuse(http.StatusTooManyRequests, "Too many requests to models at once: at most %d. Wait until one has ended.", maxAtOnce)
		p.wait = time.Second
		return leave, p
	}
	if wrong != nil {
		return release, wrong
	}
	if x.caller.Sandbox == "" || x.caller.Outside || x.plane.c.Hold == nil {
		return release, nil
	}
	letGo := x.plane.c.Hold(x.caller.Sandbox)
	return func() { letGo(); release() }, nil
}

// key is whose bounds a request meets.
func (x *exchange) key() string {
	if x.caller.Sandbox == "" {
		return "user " + x.caller.User
	}
	return "sandbox " + x.caller.Sandbox
}

// serve answers the request, or gives the problem.
func (x *exchange) serve() error {
	if x.t.settings.Off {
		x.logged = x.route.own == nil
		return x.plane.admit(x.caller) // words it
	}
	if x.route.own != nil && x.route.own(x) {
		return nil
	}
	x.logged = true
	asked := x.route.model
	if x.r.Method == http.MethodPost {
		defer func() { x.release() }()
		if err := x.readBody(); err != nil {
			return err
		}
		if x.keepsContent() {
			x.call.Request = string(x.body.raw[:min(len(x.body.raw), MaxContent)])
		}
		asked = cmp.Or(asked, x.body.model)
	}
	x.call.Asked, x.call.Stream = asked, x.streams()
	found, problem := x.t.find(x.caller.User, asked, x.route)
	if problem != nil {
		return problem
	}
	if err := x.plane.admit(x.caller); err != nil {
		return err
	}
	return x.pass(found)
}

// streams reports whether the client asks for a stream.
func (x *exchange) streams() bool { return x.body.stream || x.route.verb == "streamGenerateContent" }

func (x *exchange) keepsContent() bool { return x.t.settings.LogContent }

// tell gives the problem to the client, as far as that is still possible, and notes it.
func (x *exchange) tell(p *problem) {
	if x.r.Context().Err() != nil {
		p = gone(p)
	}
	x.call.Status, x.call.Problem = p.status, p.message
	if p.err != nil && p.status >= http.StatusInternalServerError {
		x.plane.complaints.Do(func() {
			x.plane.c.Log.Warn("a model was not reached", "provider", x.call.Provider, "model", x.call.Model, "status", p.status, "error", x.censored(p.Error()))
		})
	}
	switch {
	case p.status == statusGone:
		x.broken = true // or net/http would answer well
	case x.out == nil:
		p.write(x.w, x.route.dialect)
	case x.out.form == whole:
		x.broken = true
	default:
		x.out.fail(p)
	}
}

// deadline bounds how long the client may take to send; 0 ends that.
func (x *exchange) deadline(d time.Duration) {
	var at time.Time
	if d > 0 {
		at = time.Now().Add(d)
	}
	_ = x.control.SetReadDeadline(at) // a connection without deadlines ends with its sandbox
}
