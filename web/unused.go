package web

import (
	"context"
	"time"

	"sandboxd/internal/activity"
	"sandboxd/internal/sandbox"
)

// newFor is how long after its creation a sandbox can count as never used: what its own services do later may be of worth.
const newFor = time.Hour

// unused are the words for a sandbox that was never used. Its terminal may well have been opened.
const unused = "nothing done yet"

// neverUsed says whether a sandbox holds nothing that anybody made: it is less than an hour old, is no copy of another or of a backup, has
// the services of its template, and nobody has typed in a terminal of it, run a command, or opened a file or a port of it.
func neverUsed(s *Server, box sandbox.Sandbox) bool {
	return untouched(s, box) && s.cfg.Now().Sub(box.Created) < newFor
}

// untouched is neverUsed for a sandbox of any age.
func untouched(s *Server, box sandbox.Sandbox) bool {
	_, used := s.cfg.LastUses.Last(box.ID)
	return !used && box.ClonedFrom == "" && box.Root == "" && box.Overrides.Empty()
}

// whyUnused says to the person who deletes one why there is nothing to lose.
const whyUnused = "Nobody has used it since it was created: nothing was typed in a terminal, no command was run, and no file or port was opened."

// neverCreated says whether the reader has never had a sandbox, as far as the activity knows.
func (p *presenter) neverCreated(ctx context.Context) bool {
	q := activity.Query{Scope: activity.Scope{User: p.user}, Action: "sandbox.create", Outcome: activity.Done, Limit: 1}
	entries, _, err := p.server.cfg.Activity.Find(ctx, q)
	return err != nil || len(entries) == 0
}
