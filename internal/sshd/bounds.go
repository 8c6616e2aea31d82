package sshd

import "sandboxd/internal/sandbox"

// bounds are how much of something may be open at once: of all, of one owner's sandboxes, and of one sandbox, so that
// nobody can take it all.
type bounds struct {
	what            string
	all, owner, box int
}

var (
	openConnections = bounds{"connections", 2000, 250, 64}
	openChannels    = bounds{"channels", 1000, 300, 150} // each may hold a window of 2 MiB
	openSFTP        = bounds{"sftp", 250, 48, 16}        // each is a process in the sandbox, of its memory
)

// enter counts one of box in, if none of its bounds is reached. The caller must call leave.
func (s *Server) enter(b bounds, box sandbox.Sandbox) (leave func(), ok bool) {
	var held []func()
	leave = func() {
		for _, release := range held {
			release()
		}
	}
	for key, most := range map[string]int{b.what: b.all, b.what + " of owner " + box.Owner: b.owner, b.what + " of " + box.ID: b.box} {
		release, ok := s.open.Try(key, most)
		if !ok {
			leave()
			return nil, false
		}
		held = append(held, release)
	}
	return leave, true
}
