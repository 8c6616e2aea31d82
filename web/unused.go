package web

import (
	"time"

	"sandboxd/internal/sandbox"
)

// newFor is how long after its creation a sandbox can count as never used: what its own services do later may be of worth.
const newFor = time.Hour

// neverUsed says whether a sandbox holds nothing that anybody made: it is less than an hour old, is no copy of another or of a backup, has
// the services of its template, and nobody has typed in a terminal of it, run a command, or opened a file or a port of it.
func neverUsed(s *Server, box sandbox.Sandbox) bool {
	_, used := s.cfg.LastUses.Last(box.ID)
	return !used && s.cfg.Now().Sub(box.Created) < newFor && box.ClonedFrom == "" && box.Root == "" && box.Overrides.Empty()
}

// whyUnused says to the person who deletes one why there is nothing to lose.
const whyUnused = "Nobody has used it since it was created: nothing was typed in a terminal, no command was run, and no file or port was opened."
