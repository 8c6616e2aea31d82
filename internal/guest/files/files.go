// Package files is what the guest does with the sandbox's files: it lists, reads, writes, moves, deletes, packs, unpacks,
// searches and watches them for sandboxd, all of it as the sandbox's user.
//
// It is no security boundary between sandboxd and the sandbox (sandboxd checks its replies again), and does not decide who
// may ask.
//
// Invariant: nothing outside the root of its tree is read or changed, whatever paths, links and archives say, and even
// if folders change meanwhile: every path is walked name by name from a descriptor of the root without following, and every
// operation is on a name in an open folder, or on an open file. Every one of them happens with the file system identity of
// the user, on a thread that is locked for it.
package files

import (
	"context"
	"sync"

	"golang.org/x/sys/unix"
)

// Config says whose files, and where.
type Config struct {
	Root   string                   // of the tree; "" means /
	User   func() User              // who everything is done as
	Find   func(name string) string // absolute path of a program that the user could run, or ""
	Env    func() []string          // the environment of such a program
	Passwd string                   // path of the users; "" means /etc/passwd
	Group  string                   // path of the groups; "" means /etc/group
}

// User is the user of the sandbox.
type User struct {
	UID, GID uint32
	Groups   []int  // supplementary
	Home     string // absolute, in the tree
}

// What may be in system calls at the same time. Each takes a thread, of which a small sandbox has few; see spareThreads of
// package guest.
const (
	briefSeats  = 4
	longSeats   = 2
	searchSeats = 2 // apart, because a client may read results slowly
)

// Tree is the files of a sandbox. Safe for concurrent use.
type Tree struct {
	cfg   Config
	brief chan struct{} // seats for short work
	long  chan struct{} // seats for long work
	seeks chan struct{} // seats for searches
	names *names
	busy  busy
	// places are locked while something is put in place there, so that two that look first come one after the other.
	places stripes

	opened  sync.Once
	root    int // descriptor, for ever
	rootErr error

	watching watching
}

// New makes a tree; it opens nothing yet.
func New(cfg Config) *Tree {
	if cfg.Root == "" {
		cfg.Root = "/"
	}
	if cfg.Passwd == "" {
		cfg.Passwd = "/etc/passwd"
	}
	if cfg.Group == "" {
		cfg.Group = "/etc/group"
	}
	t := &Tree{cfg: cfg, brief: make(chan struct{}, briefSeats), long: make(chan struct{}, longSeats), seeks: make(chan struct{}, searchSeats),
		names: newNames(cfg.Passwd, cfg.Group)}
	t.busy.keys = map[busyKey]struct{}{}
	return t
}

// rootFD gives the descriptor of the root.
func (t *Tree) rootFD() (int, error) {
	t.opened.Do(func() {
		t.root, t.rootErr = unix.Open(t.cfg.Root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	return t.root, t.rootErr
}

// Close gives up what the tree holds. Nothing may be asked of it any more.
func (t *Tree) Close() {
	t.opened.Do(func() { t.rootErr = unix.EBADF })
	if t.rootErr == nil {
		unix.Close(t.root)
		t.rootErr = unix.EBADF
	}
}

// busyKey is a name in a folder.
type busyKey struct {
	dev, ino uint64
	name     string
}

// busy holds the files being written, so that no other call writes them and no sweep takes them.
type busy struct {
	mu   sync.Mutex
	keys map[busyKey]struct{}
}

// take reserves a name, and is false when it is taken.
func (b *busy) take(k busyKey) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, taken := b.keys[k]; taken {
		return false
	}
	b.keys[k] = struct{}{}
	return true
}

func (b *busy) free(k busyKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.keys, k)
}

// stripes are locks for many names.
type stripes [64]sync.Mutex

func (s *stripes) of(k busyKey) *sync.Mutex {
	h := k.dev*31 + k.ino
	for i := range len(k.name) {
		h = h*31 + uint64(k.name[i])
	}
	return &s[h%uint64(len(s))]
}

// seat takes a seat of a kind, waiting for one.
func seat(ctx context.Context, seats chan struct{}) error {
	select {
	case seats <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
