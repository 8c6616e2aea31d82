package terminal

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gorilla/websocket"

	"sandboxd/internal/fault"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/text"
	"sandboxd/internal/wire"
)

// The codes that a viewer's websocket is closed with. The page reconnects by itself (Join) at CloseInterrupted, CloseSlow,
// CloseGoingAway and when there is no code; at the others it shows the reason and waits for its user (Attach).
const (
	CloseEnded       = websocket.CloseNormalClosure     // the shell has ended; attaching again starts a new one
	CloseGoingAway   = websocket.CloseGoingAway         // sandboxd ends
	CloseAbuse       = websocket.ClosePolicyViolation   // the viewer sends what no viewer sends, or may not watch any more
	CloseProblem     = websocket.CloseInternalServerErr // the sandbox cannot give a shell
	CloseInterrupted = websocket.CloseServiceRestart    // the link broke, the sandbox should be there
	CloseSlow        = websocket.CloseTryAgainLater     // the viewer held up others
	CloseStopped     = 4001                             // the sandbox was stopped by its owner
	CloseFailed      = 4002
	CloseAsleep      = 4003 // the sandbox is at rest; attaching again wakes it, joining does not
	CloseDeleted     = 4004
)

const (
	whyLimit  = 3 * time.Second // how long the end of a sandbox's operation is waited for, to say what happened
	maxReason = 120             // bytes in a close frame, without the code
)

// ending is how a viewer is let go.
type ending struct {
	code    int // 0 when the viewer has left and needs no goodbye
	reason  string
	discard bool // drop the queue
}

var (
	left  = ending{discard: true}
	abuse = ending{code: CloseAbuse, reason: "The viewer sent something that does not belong to a terminal.", discard: true}
)

// aborted is the ending for a ctx that is done.
func aborted(ctx context.Context) ending {
	cause := context.Cause(ctx)
	if fault.Is(cause, fault.Unauthenticated) || fault.Is(cause, fault.Forbidden) {
		return ending{code: CloseAbuse, reason: text.OneLine(fault.Message(cause), maxReason), discard: true}
	}
	return ending{code: CloseGoingAway, reason: "sandboxd is closing the connection.", discard: true}
}

// why tells how to let a viewer go whose terminal has ended with err.
func (a *Attachment) why(ctx context.Context, err error) ending {
	if e, ok := errors.AsType[*websocket.CloseError](err); ok {
		switch e.Code {
		case websocket.CloseNormalClosure:
			return ended
		case websocket.CloseTryAgainLater:
			return ending{code: CloseSlow, reason: "This viewer was too slow; it attaches again."}
		case websocket.CloseInternalServerErr:
			return ending{code: CloseProblem, reason: text.OneLine(e.Text, maxReason)}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, whyLimit)
	defer cancel()
	box, err := a.service.states.Wait(ctx, a.handle.Ref())
	switch {
	case fault.Is(err, fault.Gone):
		return ending{code: CloseDeleted, reason: "The sandbox was deleted."}
	case err != nil:
		return interrupted
	case box.State == sandbox.Running && a.tabGone(ctx):
		return ended
	}
	return endingOf(box)
}

// tabGone asks whether the tab's session has ended: the ttyd that Debian has cuts the connection without a word when the
// shell has ended, as it also does when it dies itself.
func (a *Attachment) tabGone(ctx context.Context) bool {
	tabs, err := a.guest.Terminals(ctx)
	return err == nil && !slices.ContainsFunc(tabs, func(t wire.Terminal) bool { return t.Name == a.tab })
}

var (
	ended       = ending{code: CloseEnded, reason: "The shell has ended."}
	interrupted = ending{code: CloseInterrupted, reason: "The link to the sandbox was interrupted."}
)

func endingOf(box sandbox.Sandbox) ending {
	switch box.State {
	case sandbox.Stopped:
		return ending{code: CloseStopped, reason: "The sandbox was stopped."}
	case sandbox.Asleep, sandbox.Sleeping, sandbox.Frozen: // frozen: the connection broke, and a frozen guest makes none
		return ending{code: CloseAsleep, reason: "The sandbox fell asleep. Opening the terminal wakes it."}
	case sandbox.Failed:
		return ending{code: CloseFailed, reason: text.OneLine("The sandbox has failed: "+box.Problem, maxReason)}
	}
	return interrupted
}
