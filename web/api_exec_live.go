package web

import (
	"context"
	"slices"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/exec"
)

// liveEvent is one line of a live command. Data is text; output that is not UTF-8 is in base64, and says so.
type liveEvent struct {
	Type   string `json:"type"` // "started", "stdout", "stderr", "heartbeat", "exit", "error"
	Data   string `json:"data,omitempty"`
	Base64 bool   `json:"base64,omitempty"`
	*liveExit
	Problem *problem `json:"problem,omitempty"` // of "error"
}

// liveExit is what an "exit" has more.
type liveExit struct {
	ExitCode   int   `json:"exit_code"`
	DurationMS int64 `json:"duration_ms"`
	TimedOut   bool  `json:"timed_out"`
}

// execLive runs a command and writes what happens, a line of JSON each. Before the command has begun errors are
// answers like others; from then on the last line is "exit", or "error" when the end is not known.
func (s *commandHandlers) execLive(ctx context.Context, end func(), r *request, h access.Handle, ask exec.Request) error {
	var out *liveLines
	stop := func() {}
	result, err := s.cfg.Commands.Stream(ctx, h, ask, func(e exec.Event) error {
		if out == nil {
			out = &liveLines{flow: r.openFlow(lineType)}
			stop = s.live.keepBeating(ctx, end, func() error { return out.flow.line(liveEvent{Type: "heartbeat"}) })
		}
		return out.event(e)
	})
	stop()
	err = whyCut(ctx, err)
	if out == nil {
		return err
	}
	if err == nil {
		return out.end(result)
	}
	p := problemOf(err)
	p.RequestID = r.id
	_ = out.flow.line(liveEvent{Type: "error", Problem: &p}) // a client that is gone needs no last word
	return err
}

// liveLines writes a command's events. Characters that a read has cut in two are put together again, so that text
// stays text.
type liveLines struct {
	flow    *flow
	partial [2][]byte // of stdout and stderr
}

func (l *liveLines) event(e exec.Event) error {
	switch e.Kind {
	case exec.Started:
		return l.flow.line(liveEvent{Type: "started"})
	case exec.Stdout:
		return l.output("stdout", &l.partial[0], e.Data)
	case exec.Stderr:
		return l.output("stderr", &l.partial[1], e.Data)
	}
	return nil // the exit comes with the result
}

func (l *liveLines) output(kind string, partial *[]byte, data []byte) error {
	whole, rest := splitText(append(*partial, data...))
	*partial = slices.Clone(rest)
	if len(whole) == 0 {
		return nil
	}
	return l.text(kind, whole)
}

func (l *liveLines) text(kind string, data []byte) error {
	text, isBase64 := textOrBase64(data, false)
	return l.flow.line(liveEvent{Type: kind, Data: text, Base64: isBase64})
}

// end writes incomplete characters that remain, and the command's result.
func (l *liveLines) end(r exec.Result) error {
	for i, kind := range []string{"stdout", "stderr"} {
		if len(l.partial[i]) > 0 {
			if err := l.text(kind, l.partial[i]); err != nil {
				return err
			}
		}
	}
	return l.flow.line(liveEvent{Type: "exit", liveExit: &liveExit{
		ExitCode: r.ExitCode, DurationMS: r.Duration.Round(time.Millisecond).Milliseconds(), TimedOut: r.TimedOut,
	}})
}
