package sshd

import "sandboxd/internal/sandbox"

// Bounds of what is open at once: of all, of one owner's sandboxes, and of one sandbox, so that nobody can take it all.
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
func (s *Server) enter(bounds []bound) (leave func(), ok bool) {
	var all []func()
	leave = func() {
		for _, one := range all {
			one()
		}
	}
	for _, b := range bounds {
		one, ok := s.open.Try(b.of, b.most)
		if !ok {
			leave()
			return nil, false
		}
		all = append(all, one)
	}
	return leave, true
}
