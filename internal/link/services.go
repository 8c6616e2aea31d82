package link

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// Services gives the declared services as they stand, in the order of their declaration.
func (s *Session) Services(ctx context.Context) ([]wire.ServiceStatus, error) {
	var l wire.ServiceStatuses
	err := s.call(ctx, http.MethodGet, wire.PathServices, nil, &l)
	return l, err
}

// FollowLogs gives the lines of all services that are later than after to emit, and then those that they write, as they come, until ctx or
// the connection ends, or emit fails, whose error it gives back. A service's name and the order of the times are checked,
// nothing else: lines may hold anything. They are emit's only until it returns. NotFound says that the guest is older than
// the question.
func (s *Session) FollowLogs(ctx context.Context, after time.Time, emit func([]wire.LogLine) error) error {
	path := wire.PathLogs + "?after=" + strconv.FormatInt(max(after.UnixMicro(), 0), 10)
	var lines []wire.LogLine
	return s.follow(ctx, path, wire.FrameLines, func(payload []byte) error {
		lines = lines[:0]
		for len(payload) > 0 {
			l, rest, err := wire.NextLogLine(payload)
			if err == nil && !l.Time.After(after) {
				err = wire.ErrFrame
			}
			if err != nil {
				return s.failed(ctx, err)
			}
			after, payload = l.Time, rest
			lines = append(lines, l)
		}
		if len(lines) == 0 {
			return nil
		}
		return emit(lines)
	})
}

// StartService lets a service run until it is stopped, also one that waits to be started again.
func (s *Session) StartService(ctx context.Context, name string) error {
	return s.call(ctx, http.MethodPost, servicePath(name, "start"), nil, nil)
}

// StopService ends a service and returns when it has ended.
func (s *Session) StopService(ctx context.Context, name string) error {
	return s.call(ctx, http.MethodPost, servicePath(name, "stop"), nil, nil)
}

// RestartService ends a service, starts it anew, and returns when it has ended. One that does not run is started.
func (s *Session) RestartService(ctx context.Context, name string) error {
	return s.call(ctx, http.MethodPost, servicePath(name, "restart"), nil, nil)
}

func servicePath(name, verb string) string {
	return wire.PathServices + "/" + url.PathEscape(name) + "/" + verb
}

// Terminals gives the tabs that there are.
func (s *Session) Terminals(ctx context.Context) ([]wire.Terminal, error) {
	var l wire.Terminals
	err := s.call(ctx, http.MethodGet, wire.PathTerminals, nil, &l)
	return l, err
}

// TerminalText gives the end of what a tab shows and has scrolled away, with its colours as escape sequences, at most
// wire.MaxText bytes. NotFound where the guest has no such tab, or only its viewers have that text.
func (s *Session) TerminalText(ctx context.Context, tab string) ([]byte, error) {
	if err := wire.CheckTab(tab); err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "A terminal cannot be called %q.", tab)
	}
	return s.fetch(ctx, http.MethodGet, wire.PathTerminals+"/"+tab+"/text", nil, wire.MaxText)
}

// CloseTerminal ends a tab and its programs; an absent tab is no error.
func (s *Session) CloseTerminal(ctx context.Context, tab string) error {
	if err := wire.CheckTab(tab); err != nil {
		return fault.Wrap(err, fault.Invalid, "A terminal cannot be called %q.", tab)
	}
	return s.call(ctx, http.MethodDelete, wire.PathTerminals+"/"+tab, nil, nil)
}
