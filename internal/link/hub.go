// Package link is sandboxd's end of the guest links: it listens on one socket per sandbox, greets the guest that dials
// in, and lets the rest of sandboxd run commands, reach ports and join terminals over that connection.
//
// It does not know sandboxes, users or engines; an id is a name of a folder. It never opens a path that a sandbox can
// change: guests dial out to it.
//
// A guest may be frozen at any moment, for days. So silence ends no connection: who asks has a deadline, and its stream
// alone is given up. A connection ends when its other end does, or when a newer one of the same sandbox has come.
//
// Invariant: whatever a guest says is bounded in size and time and checked before it is believed. The worst that a
// lying, silent, flooding or dead guest does is to make its own sandbox unavailable. No call waits longer than its
// caller for a guest that neither speaks nor reads.
package link

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

// Hub listens for guests. Safe for concurrent use.
type Hub struct {
	root  string
	log   *slog.Logger
	pace  pace
	ide   IDE            // nil for none
	tasks sync.WaitGroup // everything that Run waits for
	calls *modelCalls
	turn  chan struct{} // held by the one who makes or removes folders

	mu    sync.Mutex
	boxes map[string]*box
	life  context.Context // of Run; nil before
	over  bool            // Run has ended
}

// pushPause is the pause before a guest is sent its setup again.
const pushPause = 200 * time.Millisecond

// pace holds every bound in time.
type pace struct {
	hello     time.Duration // from accept to a checked Hello
	reply     time.Duration // from a request to the head of its reply, or to a whole JSON reply
	accepts   float64       // connections per second and sandbox, lastingly
	acceptMax int           // at once
	calls     float64       // connections for models per second and sandbox, lastingly
	callMax   int           // at once
	callPause time.Duration // after a guest could not take one
}

var defaultPace = pace{hello: 5 * time.Second, reply: 15 * time.Second, accepts: 5, acceptMax: 20,
	calls: 500, callMax: 8 * maxCalls, callPause: 2 * time.Second}

// NewHub makes a hub whose sockets are in folders under root, which it makes when needed and closes to other users of
// the host. A nil log means none.
func NewHub(root string, log *slog.Logger) *Hub {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Hub{root: root, log: log, pace: defaultPace, calls: newModelCalls(), turn: make(chan struct{}, 1), boxes: map[string]*box{}}
}

// Run accepts guests and keeps their connections until ctx ends; then it drops them and returns when all that it
// started has ended. The folders stay, so that guests find the next hub there. A hub runs once.
func (h *Hub) Run(ctx context.Context) error {
	h.mu.Lock()
	h.life = ctx
	for _, b := range h.boxes {
		h.tasks.Go(func() { b.run(ctx) })
	}
	h.mu.Unlock()
	<-ctx.Done()
	h.mu.Lock()
	h.over = true
	all := h.boxes
	h.boxes = map[string]*box{}
	h.mu.Unlock()
	for _, b := range all {
		b.close()
	}
	h.tasks.Wait()
	return nil
}

// Expect lets the guest of id dial in from now on and tells it s when it does; the folder is to be mounted at the
// directory of wire.SocketPath. Repeating it replaces the setup, which a guest that is connected hears at the next Ready,
// and makes the folder and the socket again if they were removed. Kinds: Invalid, Unavailable
// (the folder cannot be made, or the hub has ended).
func (h *Hub) Expect(id string, s wire.Setup) (folder string, err error) {
	s.Protocol = wire.Protocol
	setup, err := newTerms(s)
	if err != nil {
		return "", err
	}
	if !validID(id) {
		return "", fault.New(fault.Invalid, "The id %q cannot name a folder.", id)
	}
	h.turn <- struct{}{}
	defer func() { <-h.turn }()
	known := h.box(id)
	if known != nil {
		if err := known.replaceSetup(s); err != nil {
			return "", err
		}
		if known.listener().stands() {
			return h.folder(id), nil
		}
	}
	l, err := listen(h.root, h.folder(id))
	if err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "The sandbox's socket cannot be made.")
	}
	if known != nil && !known.relisten(l) || known == nil && !h.add(newBox(h, id, l, setup)) {
		l.Close()
		return "", errOver
	}
	return h.folder(id), nil
}

func (h *Hub) box(id string) *box {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.boxes[id]
}

// add lets a box live, unless the hub has ended.
func (h *Hub) add(b *box) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return false
	}
	h.boxes[b.id] = b
	if life := h.life; life != nil {
		h.tasks.Go(func() { b.run(life) })
	}
	return true
}

var errOver = fault.New(fault.Unavailable, "sandboxd is stopping.")

func (h *Hub) folder(id string) string { return filepath.Join(h.root, id) }

// Ready blocks until the guest of id is connected, has said hello and was told the setup that was expected last. Kinds:
// Unavailable when that does not happen before ctx ends; the message gives the cause, if known.
func (h *Hub) Ready(ctx context.Context, id string) error {
	for {
		s, err := h.Session(ctx, id)
		if err != nil {
			return err
		}
		b := h.box(id)
		if b == nil {
			continue // Session says why
		}
		told, err := b.push(ctx, s)
		if told || ctx.Err() != nil {
			return err
		}
		select { // it has said no, or has just gone
		case <-time.After(pushPause):
		case <-ctx.Done():
		}
	}
}

// Session gives the connection to the guest of id, waiting for one until ctx ends. Kinds: Unavailable.
func (h *Hub) Session(ctx context.Context, id string) (*Session, error) {
	b := h.box(id)
	if b == nil {
		return nil, fault.New(fault.Unavailable, "The sandbox is not there, or sandboxd is stopping.")
	}
	return b.await(ctx)
}

// Forget stops listening for id, drops its guest and removes its folder. Forgetting an unknown id removes a folder
// that an earlier sandboxd left. Kinds: Invalid, Unavailable.
func (h *Hub) Forget(id string) error {
	if !validID(id) {
		return fault.New(fault.Invalid, "The id %q cannot name a folder.", id)
	}
	h.turn <- struct{}{}
	defer func() { <-h.turn }()
	if b := h.take(id); b != nil {
		b.close()
	}
	if err := os.RemoveAll(h.folder(id)); err != nil {
		return fault.Wrap(err, fault.Unavailable, "The sandbox's socket cannot be removed.")
	}
	return nil
}

// HangUp ends the connection to the guest of id, and lets none dial in until the next Expect. The folder stays. It blocks until sandboxd's
// end is closed, or ctx ends: then it is Unavailable. Hanging up on an unknown id is no error.
func (h *Hub) HangUp(ctx context.Context, id string) error {
	h.turn <- struct{}{}
	b := h.take(id)
	<-h.turn
	if b == nil {
		return nil
	}
	b.close()
	closed := make(chan struct{})
	b.closer.later(func() { close(closed) }) // after all that close has left to it
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return fault.Wrap(ctx.Err(), fault.Unavailable, "The connection to the sandbox could not be closed.")
	}
}

// take gives the box of id, and does not know it any more.
func (h *Hub) take(id string) *box {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.boxes[id]
	delete(h.boxes, id)
	return b
}

// Left gives the ids whose folders are there: of sandboxes that are expected, and of ones that a crash left behind.
func (h *Hub) Left() ([]string, error) {
	entries, err := os.ReadDir(h.root)
	if err != nil && !os.IsNotExist(err) {
		return nil, fault.Wrap(err, fault.Unavailable, "The folder of the guests' sockets cannot be read.")
	}
	var ids []string
	for _, e := range entries {
		if validID(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// validID says whether id is a plain name: it becomes a folder's.
func validID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for _, c := range []byte(id) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-') {
			return false
		}
	}
	return true
}
