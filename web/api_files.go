package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/files"
	"sandboxd/internal/sandbox"
)

// What browsers may do with anything that comes out of a sandbox: show it nowhere as a page of ours.
const (
	sandboxPolicy = "sandbox; default-src 'none'"
	picturePolicy = sandboxPolicy + "; style-src 'unsafe-inline'" // of a drawing, which nothing of ours can see
)

// moveLimit is how long a client may take no byte, or send none.
const moveLimit = 60 * time.Second

// onFiles adapts an action on the files of the sandbox that the path names. Bodies and answers may take as long as they like,
// while something moves. ctx ends when the client leaves or may not any more. act may write the answer itself.
func (s *fileHandlers) onFiles(act func(ctx context.Context, r *request, h access.Handle) (reply, error)) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := requestOf(c)
		r.guard()
		if err := r.checkQuery(); err != nil {
			return err
		}
		h, err := s.find(r.http.Context(), r)
		if err != nil {
			return err
		}
		leave, err := s.open.enter(r.who, fileCalls)
		if err != nil {
			return err
		}
		defer leave()
		ctx, end := s.live.whileAllowed(r.http.Context(), r)
		defer end()
		defer s.keepMoving(ctx, r)()
		out, err := act(ctx, r, h)
		s.noteVolume(r, h)
		if err != nil {
			return stillTrashed(s.fileError(ctx, r, h, err), err)
		}
		if c.Response().Committed {
			return nil
		}
		out.move = s.move
		return out.write(c)
	}
}

// filesCall adapts an action whose input is JSON.
func filesCall[In any](s *fileHandlers, act func(ctx context.Context, r *request, h access.Handle, in In) (reply, error)) echo.HandlerFunc {
	return s.onFiles(func(ctx context.Context, r *request, h access.Handle) (reply, error) {
		var in In
		if err := readJSON(r.http, &in); err != nil {
			return reply{}, err
		}
		return act(ctx, r, h, in)
	})
}

// guard says what browsers may do with the answer, whatever it becomes.
func (r *request) guard() {
	r.head.Set("Content-Security-Policy", sandboxPolicy)
	r.head.Set("X-Content-Type-Options", "nosniff")
	r.head.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// checkQuery refuses a query that cannot be parsed whole: the rest might mean something else.
func (r *request) checkQuery() error {
	_, err := url.ParseQuery(r.http.URL.RawQuery)
	return fault.Wrap(err, fault.Invalid, "The query cannot be read: percent-encode what it holds.")
}

// keepMoving lets the body take as long as it likes while something comes, and ends reading with ctx. The caller must call
// stop.
func (s *fileHandlers) keepMoving(ctx context.Context, r *request) (stop func()) {
	if r.body == nil {
		return func() {}
	}
	r.body.pace = s.move
	ctl := http.NewResponseController(r.w)
	stopped := context.AfterFunc(ctx, func() {
		_ = ctl.SetReadDeadline(time.Unix(1, 0)) // what does not support it has no connection to hold
	})
	return func() { stopped() }
}

// fileError says what an error of an action on files means to the client.
func (s *fileHandlers) fileError(ctx context.Context, r *request, h access.Handle, err error) error {
	switch cause := context.Cause(ctx); {
	case cause != nil && !errors.Is(cause, context.Canceled):
		return cause // the caller lost access
	case cause != nil: // the client has left, or its body failed, which net/http takes for that
		return err
	case errors.Is(err, files.ErrDiskFull):
		left := "The old files are unchanged."
		if r.http.Method != http.MethodPut || r.query("extract") != "" {
			left = "Changes made until then stay."
		}
		return &statusError{http.StatusInsufficientStorage, "disk_full", "The sandbox's disk is full. Delete files permanently, or snapshots that still have deleted ones, and try again. " + left}
	case fault.Is(err, fault.Unavailable), fault.Is(err, fault.NotFound):
		if now := s.whatHappened(ctx, h); now != nil {
			return now
		}
	}
	return err
}

// whatHappened says what happened to a sandbox during an action on its files, when that explains why it failed.
func (s *fileHandlers) whatHappened(ctx context.Context, h access.Handle) error {
	now, err := h.Current(ctx)
	switch {
	case fault.Is(err, fault.Gone):
		return err
	case err != nil:
		return nil
	case now.State == sandbox.Deleting:
		return fault.New(fault.Conflict, "%s is being deleted, with everything in it.", now.Name)
	case now.State == sandbox.Stopped, now.State == sandbox.Stopping, now.State == sandbox.Failed:
		return fault.New(fault.Conflict, "%s is %s. Start it first.", now.Name, now.State)
	}
	return nil
}
