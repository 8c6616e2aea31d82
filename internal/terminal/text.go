package terminal

import (
	"context"
	"fmt"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// FullHeader is set in answers with a tab's text while a program has the whole screen, as Shown.Full.
const FullHeader = "X-Terminal-Full"

// Shown is what is known of a tab besides the output that its viewers get.
type Shown struct {
	Full bool   // a program has the whole screen: the wheel scrolls in it, not in the scrollback
	Text []byte // the end of what the tab shows and has scrolled away, with its colours; nil when it is left out
}

// Part is how much of Shown is wanted, as pages ask for it in a query.
type Part string

// The parts of Shown.
const (
	Everything Part = ""
	UnlessFull Part = "unless-full" // the text is left out while a program has the whole screen
	StateOnly  Part = "state"       // the text is left out
)

// Text gives what a tab shows. As with Tabs it wakes nothing and is no use of the sandbox. NotFound where there is no such tab,
// or only its viewers have its text.
func (s *Service) Text(ctx context.Context, h access.Handle, tab string, part Part) (Shown, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	session, err := h.Look(ctx)
	if err != nil {
		return Shown{}, fmt.Errorf("read terminal %s of %s: %w", tab, h.Name(), err)
	}
	shown, err := Look(ctx, session.Guest, tab, part)
	if err != nil {
		return Shown{}, fmt.Errorf("read terminal %s of %s: %w", tab, h.Name(), unavailable(err))
	}
	return shown, nil
}

// Look is Service.Text for those who have the sandbox open.
func Look(ctx context.Context, guest access.Guest, tab string, part Part) (Shown, error) {
	var shown Shown
	if wire.CheckTab(tab) != nil {
		return shown, fault.Field("tab", "There is no terminal of that name.")
	}
	if part != Everything {
		tabs, err := guest.Terminals(ctx)
		if err != nil {
			return shown, err
		}
		for _, t := range tabs {
			shown.Full = shown.Full || t.Name == tab && t.Full
		}
	}
	if part == StateOnly || part == UnlessFull && shown.Full {
		return shown, nil
	}
	var err error
	shown.Text, err = guest.TerminalText(ctx, tab)
	return shown, err
}
