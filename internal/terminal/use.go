package terminal

import (
	"context"

	"sandboxd/internal/access"
	"sandboxd/internal/idle"
)

// use is one viewer's use of a sandbox. Safe for concurrent use. Implemented by access.Session, whose comments hold.
type use interface {
	Touch(ctx context.Context, unattended bool) error
	Attend(ctx context.Context)
	Release()
}

// opener opens a sandbox for a viewer.
type opener func(ctx context.Context, u idle.Use) (*access.Session, error)

func useOf(tab string, unattended bool) idle.Use {
	return idle.Use{Kind: idle.Terminal, Detail: tab, Unattended: unattended}
}
