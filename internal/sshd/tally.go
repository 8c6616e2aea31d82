package sshd

import (
	"sync"

	"sandboxd/internal/sandbox"
)

// Bounds of open connections: of all, of one owner's sandboxes, and of one sandbox, so that nobody can take it all.
const (
	maxConnections      = 2000
	maxOwnerConnections = 250
	maxBoxConnections   = 64

	maxAtOnce        = 1000 // channels: each may hold a window of 2 MiB
	maxOwnerChannels = 300
	maxBoxChannels   = 150

	// Sessions of SFTP: each is a process in the sandbox, of its memory.
	maxSFTP      = 250
	maxOwnerSFTP = 48
	maxBoxSFTP   = 16
)

// tally counts open connections. Safe for concurrent use.
type tally struct {
	mu   sync.Mutex
	open map[string]int
}

// bound says how many there may be of something.
type bound struct {
	of   string
	most int
}

// boundsOf gives the bounds of what box has something of.
func boundsOf(what string, box sandbox.Sandbox, all, owner, one int) []bound {
	return []bound{{what, all}, {what + " of owner " + box.Owner, owner}, {what + " of " + box.ID, one}}
}

// enter counts one in, if none of its bounds is reached. The caller must call leave.
func (t *tally) enter(bounds []bound) (leave func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range bounds {
		if t.open[b.of] >= b.most {
			return nil, false
		}
	}
	for _, b := range bounds {
		t.open[b.of]++
	}
	return sync.OnceFunc(func() { t.leave(bounds) }), true
}

func (t *tally) leave(bounds []bound) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range bounds {
		if t.open[b.of]--; t.open[b.of] == 0 {
			delete(t.open, b.of)
		}
	}
}
