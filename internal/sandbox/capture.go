package sandbox

import (
	"context"
	"fmt"
	"io"
	"time"

	"sandboxd/internal/archive"
	"sandboxd/internal/fault"
	"sandboxd/internal/text"
)

// openLimit bounds getting a home ready.
const openLimit = time.Minute

// keeper reads and replaces the homes of sandboxes. Its unexported methods need the turn of the sandbox's name.
type keeper struct {
	*operations
	settings    *settings
	containers  *containers
	rester      *rester
	remover     *remover
	homes       Homes
	snapshots   Snapshots
	layers      Layers
	checkpoints Checkpoints // nil when no memory is kept
}

// Capture is a sandbox whose home can be read.
type Capture struct {
	Sandbox Sandbox // as it was before
	Home    Home
	Still   bool // nothing in it runs meanwhile
	// ReadLayer writes what it has changed of its root file system as a layer, as Layers.ReadLayer does, and gives the reference of the
	// image that this is above; "" when that cannot be told. Conflict when it runs.
	ReadLayer func(ctx context.Context, to io.Writer) (base string, lost archive.Stats, err error)
}

// Capture has read read the home of a sandbox, and returns when that is done. A running sandbox is frozen meanwhile, unless live is
// true or the engine cannot, and any use of one that does not run waits. When ctx ends read is cut off. Kinds: Gone, Conflict (it
// is on its way to another state), those of Homes, and what read gives.
func (k *keeper) Capture(ctx context.Context, ref Ref, live bool, read func(ctx context.Context, c Capture) error) error {
	return k.whenSettled(ctx, ref, func(ctx context.Context, s Sandbox) error {
		return k.observed(ctx, ActionBackup, s.State, s, func() error {
			return k.capture(ctx, s, capturing{phase: PhaseBackup, live: live}, read)
		})
	})
}

// capturing says how a home is captured.
type capturing struct {
	phase    Phase
	live     bool   // without freezing
	snapshot string // id of the one that the home is copied for; "" for none
	hangUp   bool   // its guest must not be connected meanwhile
}

func (k *keeper) capture(ctx context.Context, s Sandbox, how capturing, read func(context.Context, Capture) error) (err error) {
	home, err := k.open(ctx, s, how.phase, how.snapshot)
	if err != nil {
		return err
	}
	defer home.Close()
	c := Capture{Sandbox: s, Home: home, Still: s.State != Running}
	c.ReadLayer = func(ctx context.Context, to io.Writer) (string, archive.Stats, error) {
		return rootfiles{k}.readLayer(ctx, s, to)
	}
	if s.State == Running && (how.live || k.rester.freezer == nil) {
		return read(ctx, c)
	}
	was := s.State
	s.CutOff = was
	if s, err = k.set(ctx, s, Capturing, s.Problem); err != nil {
		return err
	}
	if how.hangUp {
		err = k.hangUp(ctx, s.ID)
	}
	if err == nil && was == Running {
		if err = k.pause(ctx, s.ID); err == nil {
			c.Still = true
		}
	}
	if err == nil {
		err = read(ctx, c)
	}
	if endErr := k.endCapture(context.WithoutCancel(ctx), s); endErr != nil {
		k.log.Warn("sandbox is not as it was before its home was read", "sandbox", s.Name, "error", endErr)
	}
	return err
}

func (k *keeper) pause(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	return k.rester.freezer.Pause(ctx, id)
}

// endCapture gives a sandbox the state that it had before it was captured, also after a crash.
func (k *keeper) endCapture(ctx context.Context, s Sandbox) error {
	if s.CutOff == Running || s.CutOff == Frozen { // its guest may have been hung up on
		if err := k.settings.expect(s); err != nil {
			return err
		}
	}
	if s.CutOff != Running {
		_, err := k.set(ctx, s, s.CutOff, s.Problem)
		return err
	}
	_, err := k.rester.undoFreeze(ctx, s)
	return err
}

// whenSettled does something with a sandbox in its turn, and waits for the end, as performFor does. Conflict when something else is under
// way with it.
func (k *keeper) whenSettled(ctx context.Context, ref Ref, do func(ctx context.Context, s Sandbox) error) error {
	return k.performFor(ctx, ref, k.on(ref, func(ctx context.Context, s Sandbox, _ func(Sandbox)) error {
		if err := settled(s); err != nil {
			return err
		}
		return do(ctx, s)
	}))
}

// settled is a Conflict when something else is under way with s.
func settled(s Sandbox) error {
	if !s.State.Settled() {
		return fault.New(fault.Conflict, "%s is %s. Try again in a moment.", s.Name, s.State)
	}
	return nil
}

// open gets s's home ready. What is done with it is reported while s is in a state that shows it.
func (k *keeper) open(ctx context.Context, s Sandbox, phase Phase, snapshot string) (Home, error) {
	opening, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	home, err := k.homes.OpenHome(opening, s.ID, snapshot)
	if err != nil {
		return nil, err
	}
	return &watchedHome{Home: home, report: func(st archive.Stats) {
		if now, err := k.rows.ByName(k.life, s.Name); err == nil && now.ID == s.ID && !now.State.Settled() && st.Files+st.Bytes > 0 {
			k.report(now, Progress{Phase: phase, Detail: fmt.Sprintf("%s in %d files", text.Size(st.Bytes), st.Files)})
		}
	}}, nil
}

// watchedHome tells of its progress once more.
type watchedHome struct {
	Home
	report func(archive.Stats)
}

// Read implements Home.
func (h *watchedHome) Read(ctx context.Context, w io.Writer, prefix string, progress func(archive.Stats)) (archive.Stats, error) {
	return h.Home.Read(ctx, w, prefix, h.both(progress))
}

// Replace implements Home.
func (h *watchedHome) Replace(ctx context.Context, r io.Reader, c Content, progress func(archive.Stats)) (archive.Stats, error) {
	return h.Home.Replace(ctx, r, c, h.both(progress))
}

// CopyOut implements Home.
func (h *watchedHome) CopyOut(ctx context.Context, progress func(archive.Stats)) (archive.Stats, error) {
	return h.Home.CopyOut(ctx, h.both(progress))
}

// CopyIn implements Home.
func (h *watchedHome) CopyIn(ctx context.Context, progress func(archive.Stats)) (archive.Stats, error) {
	return h.Home.CopyIn(ctx, h.both(progress))
}

func (h *watchedHome) both(progress func(archive.Stats)) func(archive.Stats) {
	return func(s archive.Stats) {
		h.report(s)
		progress(s)
	}
}
