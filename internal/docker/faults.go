package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// longestWord bounds how much of the engine's own text is shown.
const longestWord = 600

// classify gives an error of the engine its kind. what completes "the engine did not …". An error that is classified
// already stays as it is. Nothing here looks at an error's text.
func classify(err error, what string) error {
	var known *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("ask the engine to %s: %w", what, err)
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(err, fault.Timeout, "The container engine did not %s in time. It may be overloaded or stuck.", what)
	case lost(err):
		return fault.Wrap(err, fault.Unavailable, "The container engine does not answer. Start it; sandboxd reconnects by itself.")
	case errdefs.IsNotFound(err):
		return fault.Wrap(err, fault.NotFound, "The container engine could not %s: %s", what, word(err))
	case errdefs.IsInvalidArgument(err), errdefs.IsConflict(err), errdefs.IsPermissionDenied(err), errdefs.IsUnauthorized(err):
		return fault.Wrap(err, fault.Invalid, "The container engine refused to %s: %s", what, word(err))
	}
	return fault.Wrap(err, fault.Unavailable, "The container engine could not %s: %s", what, word(err))
}

// refused is classify for calls in which the engine judges what it is given: there an error of its inside is about
// that, such as a program that cannot be run, and trying again does not help.
func refused(err error, what string) error {
	err = classify(err, what)
	var known *fault.Error
	if errors.As(err, &known) && known.Kind == fault.Unavailable && known.Err != nil && !lost(known.Err) && errdefs.IsInternal(known.Err) {
		return fault.Wrap(known.Err, fault.Invalid, "%s", known.Message)
	}
	return err
}

// lost reports whether err is about the connection, not about the request.
func lost(err error) bool {
	if client.IsErrConnectionFailed(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	var op *net.OpError
	return errors.As(err, &op) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// word is the engine's own text: the innermost error, without what the client library wraps around it.
func word(err error) string {
	return clean(innermost(err), longestWord)
}

// innermost is the text of the error that all others are about.
func innermost(err error) string {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err.Error()
}

// clean makes foreign text fit to be shown: one line, bounded, a full stop at its end.
func clean(foreign string, longest int) string {
	line := text.Excerpt(strings.TrimSpace(foreign), longest)
	if line != "" && !strings.ContainsAny(line[len(line)-1:], ".!?…") {
		line += "."
	}
	return line
}

// denied tells an engine that is there, but not for this user, from one that is not there: waiting does not help.
func denied(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fault.Wrap(err, fault.Invalid, "This user may not use the container engine. Add the user to the group of the engine's socket (docker), or run sandboxd as root.")
	}
	return err
}

func tooOld(version, api string) error {
	return fault.New(fault.Invalid, "Docker %s is too old: it speaks version %s of its interface, sandboxd needs %s. Install Docker 20.10 or newer.", version, api, minAPI)
}
