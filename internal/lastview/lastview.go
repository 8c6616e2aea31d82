// Package lastview keeps what a sandbox showed last: the end of its first terminal and the names in its home. The workspace
// shows them, dimmed, while the sandbox does not run.
//
// It is no history and no backup: there is one view for each sandbox, and it says nothing of what is on the disk now.
//
// Invariant: taking a view never keeps a sandbox from being put to rest. It is bounded in time and size, and one that
// cannot be taken leaves the one before.
package lastview

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

const (
	takeTime   = 2 * time.Second // for both parts
	screenRows = 60              // of the end of the terminal
	rowBytes   = 2 << 10         // of each
	fileNames  = 100
	firstTab   = "main"
)

// View is what a sandbox showed last.
type View struct {
	Screen []string  // the last lines of the first terminal, with their colours, at most 60 of 2 KiB; as the sandbox wrote them
	Files  []File    // the first 100 entries of its home, as the file browser sorts them
	Taken  time.Time // zero when there is none
}

// File is an entry of the home.
type File struct {
	Name   string
	Folder bool
}

// Guest is the part of a sandbox's guest that this needs. *link.Session is one.
type Guest interface {
	TerminalText(ctx context.Context, tab string) ([]byte, error)
	FileList(ctx context.Context, path, after string, limit int) (wire.Listing, error)
}

// Store keeps one view for each sandbox, until that is deleted. It must be safe for concurrent use.
type Store interface {
	// KeepView keeps v in the place of the one before. Kinds: NotFound for a sandbox that is gone.
	KeepView(ctx context.Context, sandboxID string, v View) error
	// LastView gives it; the zero View when there is none.
	LastView(ctx context.Context, sandboxID string) (View, error)
}

// Service takes views. It is safe for concurrent use.
type Service struct {
	Guest func(ctx context.Context, sandboxID string) (Guest, error)
	Store Store
	Now   func() time.Time
	Log   *slog.Logger
}

// Take keeps what a running sandbox shows. It blocks for two seconds at most, and only logs what fails: sandbox.Config calls it
// before processes are frozen or ended.
func (s *Service) Take(ctx context.Context, box sandbox.Sandbox) {
	ctx, cancel := context.WithTimeout(ctx, takeTime)
	defer cancel()
	v, err := s.look(ctx, box.ID)
	if err == nil {
		err = s.Store.KeepView(ctx, box.ID, v)
	}
	if err != nil {
		s.Log.Debug("what a sandbox showed last is not kept", "sandbox", box.Name, "err", err)
	}
}

func (s *Service) look(ctx context.Context, id string) (View, error) {
	guest, err := s.Guest(ctx, id)
	if err != nil {
		return View{}, fmt.Errorf("reach the guest: %w", err)
	}
	list, err := guest.FileList(ctx, wire.HomePath, "", fileNames)
	if err != nil {
		return View{}, fmt.Errorf("list the home: %w", err)
	}
	v := View{Taken: s.Now().UTC()}
	for _, e := range list.Entries[:min(len(list.Entries), fileNames)] {
		v.Files = append(v.Files, File{Name: strings.ToValidUTF8(e.Name, "\ufffd"), Folder: e.Type == wire.TypeFolder})
	}
	text, err := guest.TerminalText(ctx, firstTab)
	if err != nil { // nobody has opened it
		s.Log.Debug("a terminal has no last screen", "sandbox_id", id, "err", err)
		return v, nil
	}
	v.Screen = lastLines(text)
	return v, nil
}

// lastLines gives the end of a terminal's text, without the empty lines below it.
func lastLines(text []byte) []string {
	lines := bytes.Split(bytes.TrimRight(text, " \r\n"), []byte("\n"))
	lines = lines[max(0, len(lines)-screenRows):]
	out := make([]string, 0, len(lines))
	for _, l := range lines {
		line := string(bytes.TrimRight(l[:min(len(l), rowBytes)], "\r"))
		out = append(out, strings.ToValidUTF8(line, "\ufffd"))
	}
	return out
}
