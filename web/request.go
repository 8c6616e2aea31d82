package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
)

// handlerTime bounds a handler that does not stream or wait on purpose.
const handlerTime = 30 * time.Second

// request is one request as handlers see it, without the framework.
type request struct {
	http   *http.Request
	w      http.ResponseWriter // only for streams and sockets
	head   http.Header         // of the response
	id     string
	from   string // the client's address
	who    auth.Principal
	secret string // of the browser session that who comes from
	access admission
	param  func(name string) string
	body   *arriving       // nil when it has none
	hidden func() bool     // of a page's live connection: whether nobody sees the page; nil when it cannot be told
	answer templ.Component // what a form shows instead of leading elsewhere, such as a secret that is shown once
	note
	ending
}

const requestKey = "sandboxd.request"

// requestOf gives the request of c; the first middleware made it.
func requestOf(c echo.Context) *request {
	if r, ok := c.Get(requestKey).(*request); ok {
		r.http, r.param = c.Request(), c.Param
		return r
	}
	return newRequest(c)
}

func newRequest(c echo.Context) *request {
	var b [8]byte
	rand.Read(b[:]) // never fails since Go 1.24
	return &request{
		http: c.Request(), w: c.Response(), head: c.Response().Header(), param: c.Param,
		id: hex.EncodeToString(b[:]), from: c.RealIP(),
	}
}

// ending is what is left to do once the answer is written, or the request has failed. Pages and API actions do it.
type ending struct{ left []func() }

func (e *ending) atEnd(f func()) { e.left = append(e.left, f) }

func (e *ending) end() {
	for _, f := range e.left {
		f()
	}
	e.left = nil
}

// query gives a query parameter, or "".
func (r *request) query(name string) string { return r.http.URL.Query().Get(name) }

// truth gives a parameter of the query that is true or false, and false when it is not there. Invalid for anything else.
func truth(r *request, name string) (bool, error) {
	switch r.query(name) {
	case "":
		return false, nil
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fault.Field(name, "%s is true or false.", name)
}

// wantsHead says whether only the head of the answer is wanted.
func (r *request) wantsHead() bool { return r.http.Context().Value(headOnly{}) != nil }

// unseen says whether nobody sees the page that asks.
func (r *request) unseen() bool { return r.hidden != nil && r.hidden() }

// form gives a field of the posted form, or "". Fields of the query are not looked at.
func (r *request) form(name string) string { return r.http.PostFormValue(name) }

// cookie gives a cookie's value, or "".
func (r *request) cookie(name string) string {
	c, err := r.http.Cookie(name)
	if err != nil {
		return ""
	}
	return c.Value
}

// setCookie adds a cookie to the response.
func (r *request) setCookie(c *http.Cookie) { r.head.Add("Set-Cookie", c.String()) }

// page adapts a page: what it gives is rendered to a buffer first, so that an error never follows a half page.
func page(show func(ctx context.Context, r *request) (templ.Component, error)) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := requestOf(c)
		defer r.end()
		ctx, cancel := context.WithTimeout(r.http.Context(), handlerTime)
		defer cancel()
		component, err := show(ctx, r)
		if err != nil {
			return err
		}
		return renderPage(ctx, c, http.StatusOK, component)
	}
}

// form adapts a posted form. submit gives where to go next (303). When it fails because of an entry and again
// is not nil, again shows the same form with the error beside its field (fault.FieldOf, fault.Message).
func form(
	submit func(ctx context.Context, r *request) (to string, err error),
	again func(ctx context.Context, r *request, err error) (templ.Component, error),
) echo.HandlerFunc {
	return formWithin(handlerTime, submit, again)
}

// formWithin is form for one that may take longer than others, or less long.
func formWithin(
	limit time.Duration,
	submit func(ctx context.Context, r *request) (to string, err error),
	again func(ctx context.Context, r *request, err error) (templ.Component, error),
) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := requestOf(c)
		err := parseForm(r.http)
		if limit > handlerTime {
			r.liftDeadlines()
		}
		ctx, cancel := context.WithTimeout(r.http.Context(), limit) // from when the form is here
		defer cancel()
		var to string
		if err == nil {
			to, err = submit(ctx, r)
		}
		if err == nil && r.answer != nil {
			return renderPage(ctx, c, http.StatusOK, r.answer)
		}
		if err == nil {
			return r.leadTo(c, to)
		}
		r.problem = err
		if again == nil || !mendable(err) {
			return err
		}
		component, showErr := again(ctx, r, err)
		if showErr != nil {
			return showErr
		}
		status := problemOf(err).Status
		askLater(r.head, status, err)
		return renderPage(ctx, c, status, component)
	}
}

// leadTo leads the browser to a page of ours. A script that asked is told so in its own way; when the person is on that
// page already it stays, because the page's stream brings the changes, unless it is to say what was done.
func (r *request) leadTo(c echo.Context, to string) error {
	if !r.byScript() {
		return c.Redirect(http.StatusSeeOther, to)
	}
	here, err := url.Parse(r.http.Header.Get("HX-Current-URL"))
	path, _, hasMark := strings.Cut(to, "#")
	same := err == nil && samePage(here, path)
	if same && !here.Query().Has("done") {
		r.head.Set("HX-Trigger", "sheet-done")
		return c.NoContent(http.StatusNoContent)
	}
	r.head.Set("HX-Redirect", to)
	if same && hasMark { // else the browser only scrolls
		r.head.Set("HX-Refresh", "true")
	}
	return c.NoContent(http.StatusNoContent)
}

// samePage says whether a path, with its query, leads to where the person is. Only one of both may name the sandbox's id.
func samePage(here *url.URL, path string) bool {
	to, err := url.Parse(path)
	if err != nil {
		return false
	}
	is, wants := here.Query(), to.Query()
	if !is.Has("sandbox_id") || !wants.Has("sandbox_id") {
		is.Del("sandbox_id")
		wants.Del("sandbox_id")
	}
	return here.Path == to.Path && is.Encode() == wants.Encode()
}

// byScript says whether our own script asks, which swaps the answer into a page, rather than a person's navigation.
func (r *request) byScript() bool {
	return r.http.Header.Get("HX-Request") == "true" && r.http.Header.Get("HX-History-Restore-Request") == ""
}

// mendable says whether the person at the form can mend err by entering something else, or by trying again.
func mendable(err error) bool {
	switch fault.KindOf(err) {
	case fault.Invalid, fault.Conflict, fault.Limited, fault.TooLarge, fault.Unauthenticated, fault.NotFound:
		return true
	}
	return false
}

func renderPage(ctx context.Context, c echo.Context, status int, component templ.Component) error {
	var b bytes.Buffer
	if err := component.Render(ctx, &b); err != nil {
		return fault.Wrap(err, fault.Internal, "The page could not be shown.")
	}
	return writePage(c, status, b.Bytes())
}

// none is the input of an API action that takes no body.
type none struct{}

// reply is what an API action answers.
type reply struct {
	status   int // 0 for 200
	location string
	move     time.Duration // how long the client may take nothing of a long body; 0 for moveLimit
	body     any           // nil for no body
}

// api adapts an API action: In is read strictly from the body, what it gives is written as JSON. ctx has a deadline.
func api[In any](act func(ctx context.Context, r *request, in In) (reply, error)) echo.HandlerFunc {
	return apiLong(func(ctx context.Context, r *request, in In) (reply, error) {
		ctx, cancel := context.WithTimeout(ctx, handlerTime)
		defer cancel()
		return act(ctx, r, in)
	})
}

// apiLong is api for actions that wait on purpose and bound themselves. They may answer with a flow instead of a reply.
func apiLong[In any](act func(ctx context.Context, r *request, in In) (reply, error)) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := requestOf(c)
		defer r.end()
		var in In
		if err := readJSON(r.http, &in); err != nil {
			return err
		}
		r.liftDeadlines()
		out, err := act(r.http.Context(), r, in)
		if out.location != "" { // also a failure may have a place where it can be looked at
			r.head.Set("Location", out.location)
		}
		if err != nil || c.Response().Committed {
			return err
		}
		return out.write(c)
	}
}

// pieces is a body of JSON that is too large to be held as a whole: it is written bit by bit.
type pieces func(w io.Writer) error

func (o reply) write(c echo.Context) error {
	status := o.status
	if status == 0 {
		status = http.StatusOK
	}
	if o.body == nil {
		return c.NoContent(status)
	}
	if body, isLarge := o.body.(pieces); isLarge {
		return body(beginBody(c, status, jsonType, cmp.Or(o.move, moveLimit)))
	}
	b, isJSON := o.body.(json.RawMessage) // which Marshal would read all through
	if !isJSON {
		var err error
		if b, err = json.Marshal(o.body); err != nil {
			return fault.Wrap(err, fault.Internal, "The answer could not be written.")
		}
	}
	return writeBody(c, status, jsonType, b)
}

const (
	jsonType  = "application/json"
	bodyPiece = 64 << 10 // that a client has to take within moveLimit
)

// beginBody begins an answer. Writing ends when the client takes nothing for as long as move.
func beginBody(c echo.Context, status int, contentType string, move time.Duration) io.Writer {
	w := c.Response()
	w.Header().Set("Content-Type", contentType)
	out := steady{w, http.NewResponseController(w), move}
	_ = out.hurry() // also for the head; writing finds what is wrong
	w.WriteHeader(status)
	return out
}

// writeBody answers with b and a line's end.
func writeBody(c echo.Context, status int, contentType string, b []byte) error {
	out := beginBody(c, status, contentType, moveLimit)
	for piece := range slices.Chunk(append(b, '\n'), bodyPiece) {
		if _, err := out.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) writeJSON(c echo.Context, status int, contentType string, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		s.log.Error("encode answer", "err", err)
		status, b = http.StatusInternalServerError, []byte("{}")
	}
	_ = writeBody(c, status, contentType, b) // a lost connection is the only way to fail
}
