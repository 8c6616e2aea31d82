package install

import (
	"context"
	"io"
	"strings"
	"time"

	"sandboxd/internal/access"
	"sandboxd/internal/fault"
)

// State is what an agent is in a sandbox.
type State string

// The states.
const (
	Available   State = "available"
	Installing  State = "installing"
	Installed   State = "installed"
	Failed      State = "failed"      // the last installation did; a version before it may be installed
	Interrupted State = "interrupted" // the last installation was cut off
	Unknown     State = "unknown"     // the sandbox does not run, or does not say
)

// Status is an agent of the catalog, and what it is in a sandbox.
type Status struct {
	Entry
	State     State
	Installed string // the version; "" when it is not installed, or that is not known
	Percent   int    // Installing: about how much is done
	Line      string // Installing: the last line that was said
	Problem   string // Failed: why, in a sentence or two
}

// Bounds of a look into a sandbox.
const (
	lookLimit  = 5 * time.Second
	maxNames   = 200 // in a folder of ours; further ones are not looked at
	maxVersion = 64  // bytes
)

// unfinished is the folder of an installation that is not complete, as the script has it.
const unfinished = ".installing"

// List gives the agents of the catalog with what they are in a sandbox, and what is wrong with the admin's list. It wakes nothing. Gone
// when the sandbox is.
func (s *Service) List(ctx context.Context, h access.Handle) (agents []Status, problem string, err error) {
	entries, problem := s.c.Catalog.Entries()
	found, err := s.look(ctx, h, entries)
	if fault.Is(err, fault.Gone) || fault.Is(err, fault.NotFound) || ctx.Err() != nil {
		return nil, "", err
	}
	known := err == nil
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entries {
		a := Status{Entry: e, Installed: found.versions[e.ID], State: Available}
		switch {
		case !known:
			a.State = Unknown
		case a.Installed != "":
			a.State = Installed
		case found.begun[e.ID]:
			a.State = Interrupted
		}
		s.jobs[h.ID()].tell(&a)
		agents = append(agents, a)
	}
	return agents, problem, nil
}

// tell says what is known of an installation of an agent. j may be nil.
func (j *job) tell(a *Status) {
	switch {
	case j == nil || j.removing || j.entry.ID != a.ID:
	case j.ended.IsZero():
		a.State, a.Percent, a.Line = Installing, j.progress.percent, j.progress.line
	default:
		a.State, a.Problem = Failed, j.problem
	}
}

// findings is what a sandbox says of its agents, by id.
type findings struct {
	versions map[string]string
	begun    map[string]bool // in the folder of an installation that is not complete
}

// look asks a sandbox that runs. Nothing that it says is taken for more than a version, or the id of an agent.
func (s *Service) look(ctx context.Context, h access.Handle, entries []Entry) (findings, error) {
	f := findings{map[string]string{}, map[string]bool{}}
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	session, err := h.Look(ctx)
	if err != nil {
		return f, err
	}
	there, err := namesIn(ctx, session.Guest, Root)
	if err != nil {
		return f, err
	}
	begun := map[string]bool{}
	if there[unfinished] {
		if begun, err = namesIn(ctx, session.Guest, Root+"/"+unfinished); err != nil {
			return f, err
		}
	}
	for _, e := range entries {
		f.begun[e.ID] = begun[e.ID]
		if there[e.ID] {
			f.versions[e.ID] = versionIn(ctx, session.Guest, Root+"/"+e.ID)
		}
	}
	return f, ctx.Err()
}

// namesIn gives the names in a folder; none when there is no such folder.
func namesIn(ctx context.Context, g access.Guest, folder string) (map[string]bool, error) {
	listing, err := g.FileList(ctx, folder, "", maxNames)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) { // it is none
		return nil, nil
	}
	names := map[string]bool{}
	for _, e := range listing.Entries {
		names[e.Name] = true
	}
	return names, err
}

// versionIn gives the version of the agent in a folder, or "".
func versionIn(ctx context.Context, g access.Guest, folder string) string {
	_, file, err := g.FileRead(ctx, folder+"/version", 0, maxVersion)
	if err != nil {
		return ""
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxVersion))
	version := strings.TrimSuffix(string(text), "\n")
	if err != nil || !exact.MatchString(version) {
		return ""
	}
	return version
}
