package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"sandboxd/internal/auth"
	"sandboxd/internal/fault"
	"sandboxd/internal/hostname"
)

// problem is an error as a client is told it: RFC 9457, with our stable code.
type problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Code      string `json:"code"`
	Field     string `json:"field,omitempty"`
	RequestID string `json:"request_id"`

	Trashed []trashedShape `json:"trashed,omitempty"` // by a delete that went wrong then
}

// problemType is the media type of problems.
const problemType = "application/problem+json"

// statusError is an error of HTTP itself, for which the domain has no kind.
type statusError struct {
	status  int
	code    string
	message string
}

func (e *statusError) Error() string { return e.message }

// askLater says when a request that was answered with status because of err can succeed.
func askLater(h http.Header, status int, err error) {
	if status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		return
	}
	wait := cmp.Or(fault.RetryAfter(err), fault.DefaultRetry)
	h.Set("Retry-After", strconv.Itoa(int(wait/time.Second)))
}

var kindStatus = map[fault.Kind]int{
	fault.Internal:        http.StatusInternalServerError,
	fault.Invalid:         http.StatusBadRequest,
	fault.Unauthenticated: http.StatusUnauthorized,
	fault.Forbidden:       http.StatusForbidden,
	fault.NotFound:        http.StatusNotFound,
	fault.Conflict:        http.StatusConflict,
	fault.TooLarge:        http.StatusRequestEntityTooLarge,
	fault.Limited:         http.StatusTooManyRequests,
	fault.Unavailable:     http.StatusServiceUnavailable,
	fault.Timeout:         http.StatusGatewayTimeout,
	fault.Gone:            http.StatusGone,
}

// problemOf turns any error into what a client may be told of it.
func problemOf(err error) problem {
	var own *statusError
	var framework *echo.HTTPError
	switch {
	case errors.As(err, &own):
		return newProblem(own.status, own.code, own.message, "")
	case errors.As(err, &framework) && framework.Code == http.StatusNotFound:
		return newProblem(http.StatusNotFound, fault.NotFound.String(), "There is nothing at this address.", "")
	case errors.As(err, &framework) && framework.Code == http.StatusMethodNotAllowed:
		return newProblem(framework.Code, "method_not_allowed", "This address does not support this method.", "")
	}
	kind := fault.KindOf(err)
	return newProblem(kindStatus[kind], kind.String(), fault.Message(err), fault.FieldOf(err))
}

func newProblem(status int, code, detail, field string) problem {
	title := http.StatusText(status)
	if status == statusLeft {
		title = "Client Closed Request"
	}
	return problem{Type: "about:blank", Title: title, Status: status, Detail: detail, Code: code, Field: field}
}

// fail is the one place where an error becomes a response.
func (s *Server) fail(err error, c echo.Context) {
	r := requestOf(c)
	p := problemFor(r, err)
	if p.Status == http.StatusMethodNotAllowed {
		p.Detail = fmt.Sprintf("This address does not support %.32s.", r.http.Method)
	}
	p.RequestID = r.id
	var part *partlyTrashed
	if errors.As(err, &part) {
		p.Trashed = newTrashedShapes(part.gone)
	}
	s.report(r, p, err)
	if c.Response().Committed {
		return
	}
	if errors.Is(err, auth.ErrMixed) {
		hostname.ForgetCookie(r.head, s.sessionCookie(), s.cfg.Hosts.Domain, r.http.URL.EscapedPath())
	}
	askLater(r.head, p.Status, err)
	if p.Status != http.StatusRequestTimeout { // then enough was waited
		defer r.readOn()
	}
	if r.isAPI() {
		if p.Status == http.StatusUnauthorized {
			r.head.Set("WWW-Authenticate", `Bearer realm="sandboxd"`)
		}
		s.writeJSON(c, p.Status, problemType, p)
		return
	}
	s.failPage(c, r, p)
}

// problemFor is what the client of r is told of err.
func problemFor(r *request, err error) problem {
	switch {
	case r.left(err) && errors.Is(context.Cause(r.http.Context()), ErrStopping):
		return problemOf(ErrStopping)
	case r.left(err):
		return newProblem(statusLeft, "client_left", "The request ended before it was answered.", "")
	}
	return problemOf(err)
}

// statusLeft is what the log has for a request whose client left, after nginx; hardly anybody is there to read it.
const statusLeft = 499

// ErrStopping is the cause for which the contexts of requests end when sandboxd stops. The server's owner sets it:
// without it those requests look as if their clients had left.
var ErrStopping = fault.New(fault.Unavailable, "sandboxd is stopping, so the request was ended. Try again in a moment.")

// left says whether err comes of the request's end: its client has left, or sandboxd stops.
func (r *request) left(err error) bool {
	return errors.Is(err, errNotTaken) || r.http.Context().Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, io.ErrUnexpectedEOF))
}

// report writes to the log what only the log may know.
func (s *Server) report(r *request, p problem, err error) {
	level := slog.LevelWarn // something does not answer, or not in time, such as a sandbox: no fault of ours
	switch {
	case p.Status == statusLeft, p.Status == http.StatusRequestTimeout:
		level = slog.LevelDebug
	case p.Status < http.StatusInternalServerError:
		return
	case p.Status == http.StatusInternalServerError:
		level = slog.LevelError
	}
	s.log.Log(r.http.Context(), level, "request failed", "request_id", r.id, "method", r.http.Method,
		"path", r.http.URL.Path, "status", p.Status, "err", err)
}

func (s *Server) failPage(c echo.Context, r *request, p problem) {
	if p.Status == http.StatusUnauthorized && r.http.URL.Path != loginPath {
		if r.byScript() {
			c.Response().Header().Set("HX-Redirect", loginPath)
			_ = c.NoContent(p.Status)
			return
		}
		_ = c.Redirect(http.StatusSeeOther, loginURL(r.http)) // a lost connection is the only way to fail
		return
	}
	var page bytes.Buffer
	if err := s.mishap(r, p).Render(context.WithoutCancel(r.http.Context()), &page); err != nil {
		s.log.Error("render error page", "request_id", r.id, "err", err)
		page.Reset()
		page.WriteString(p.Title)
	}
	_ = writePage(c, p.Status, page.Bytes()) // a lost connection is the only way to fail
}

// isAPI says whether a program asks, who wants problem documents and not pages.
func (r *request) isAPI() bool {
	path := r.http.URL.Path
	if r.access == scripted || r.http.Header.Get("Accept") == problemType { // a script of ours that asks why a websocket was refused
		return true
	}
	return path == "/healthz" || path == "/readyz" || path == "/api" || strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, modelCallsPath+"/")
}
