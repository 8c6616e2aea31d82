package exec

import (
	"context"
	"errors"
	"io"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
)

// Run runs a command to its end and gives the beginning of its output; output beyond MaxOutput is read and
// dropped, so that the command is never held up. It blocks until the command has ended, its timeout is over or ctx
// ends; the latter two kill it with all its children. A command that fails or times out is a Result, no error.
func (s *Service) Run(ctx context.Context, h access.Handle, r Request) (Result, error) {
	limit := r.MaxOutput
	if limit == 0 {
		limit = DefaultOutput
	}
	stdout, stderr := capture{limit: limit}, capture{limit: limit}
	result, err := s.Stream(ctx, h, r, func(e Event) error {
		switch e.Kind {
		case Stdout:
			stdout.add(e.Data)
		case Stderr:
			stderr.add(e.Data)
		}
		return nil
	})
	result.Stdout, result.Stderr = stdout.kept, stderr.kept
	result.Truncated = stdout.more || stderr.more
	return result, err
}

// capture keeps the first limit bytes of a stream.
type capture struct {
	limit int
	kept  []byte
	more  bool
}

func (c *capture) add(b []byte) {
	room := c.limit - len(c.kept)
	if len(b) > room {
		b, c.more = b[:room], true
	}
	c.kept = append(c.kept, b...)
}

// Stream runs a command and hands on what happens while it happens, Started first and Exited last, unless it is
// killed. emit is called from one goroutine; while it blocks, the command's output waits. When emit fails, the
// command is killed and Stream gives emit's error. Otherwise it is as Run.
func (s *Service) Stream(ctx context.Context, h access.Handle, r Request, emit func(Event) error) (Result, error) {
	began := time.Now()
	session, err := s.begin(ctx, h, r, Size{})
	if err != nil {
		return Result{}, err
	}
	defer session.Close()
	session.feed(r.Stdin)
	result, err := session.pump(emit)
	result.Duration = time.Since(began)
	return result, err
}

// pump hands events on until the command has ended.
func (s *Session) pump(emit func(Event) error) (Result, error) {
	if err := emit(Event{Kind: Started}); err != nil {
		return Result{}, err
	}
	for {
		e, err := s.Next()
		if errors.Is(err, errTimedOut) {
			return Result{ExitCode: -1, TimedOut: true}, nil
		}
		if err != nil {
			return Result{}, err
		}
		if err := emit(e); err != nil {
			return Result{}, err
		}
		if e.Kind == Exited {
			return Result{ExitCode: e.Exit}, nil
		}
	}
}

// feed writes the whole input and closes it. A command that reads no more of it is not disturbed.
func (s *Session) feed(input []byte) {
	s.feeders.Go(func() {
		in := s.process.Stdin()
		if _, err := in.Write(input); err == nil {
			_ = in.Close() // the command may have ended already
		}
	})
}

// lost classifies the end of a process that did not exit.
func (s *Session) lost(err error) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fault.Wrap(err, fault.Unavailable,
		"The link to the sandbox was lost while the command ran, so its result is not known. Try again in a moment.")
}
