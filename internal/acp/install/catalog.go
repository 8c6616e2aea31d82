// Package install has the catalog of agents of others that speak the Agent Client Protocol, and installs them into sandboxes, from npm.
//
// It runs no agent and knows nothing of conversations: it says how one that is installed is started. All of its work in a sandbox is
// done by a script that runs there, as the sandbox's user, and whose answers are not trusted.
//
// Invariant: what is in the catalog was checked, so that none of it can be taken for anything else by a shell, npm or a page. A folder
// of an agent has all of it or is not there.
package install

import (
	_ "embed"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"sandboxd/internal/fault"
	"sandboxd/internal/wire"
)

//go:embed agents.json
var builtIn []byte

// Root is where the agents of a sandbox are, each in a folder with its id.
const Root = wire.HomePath + "/.local/share/sandboxd/agents"

// Entry is one agent of the catalog.
type Entry struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Summary    string            `json:"summary"`
	Licence    string            `json:"licence"`
	LicenceURL string            `json:"licence_url"`
	Package    string            `json:"package"`
	Version    string            `json:"version"`   // exact
	NPMFlags   []string          `json:"npm_flags"` // some of npmFlags
	Node       int               `json:"node"`      // the lowest major version that it runs with
	SizeMB     int               `json:"size_mb"`   // that it takes when it is installed
	Command    []string          `json:"command"`   // a program of the package, and its arguments
	Env        map[string]string `json:"env"`
	Files      []File            `json:"files"` // written when they are not there
	// Authenticate says that the agent is led to the gateway by the protocol's method "gateway".
	Authenticate bool `json:"authenticate"`
	Bake         bool `json:"bake"` // its licence permits it to be part of an image
	Off          bool `json:"off"`  // it is not offered; nothing but the ID is needed then
}

// File is a file below the home of a sandbox.
type File struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// Agent says how an agent is started in a sandbox where it is installed.
type Agent struct {
	Name         string
	Command      []string // program and arguments; the program is an absolute path
	Env          []string // NAME=value
	Cwd          string
	Authenticate bool
}

// Catalog is the agents that can be installed. Safe for concurrent use.
type Catalog struct {
	path string
	log  *slog.Logger

	mu      sync.Mutex
	seen    stamp
	now     list // not changed, but replaced
	problem string
}

// NewCatalog makes the catalog of the built-in agents, and of those in the file of an admin at path, which replace those with the same id.
// The file is read when it is there, and again when it has changed. Nothing of one that has a mistake is used: Entries says what it is.
func NewCatalog(path string, log *slog.Logger) *Catalog {
	return &Catalog{path: path, log: log, now: ownList()}
}

// ownList gives the built-in list.
func ownList() list {
	l, err := parse(builtIn)
	if err != nil {
		panic("agents.json: " + err.Error()) // every test reads it
	}
	return l
}

// Entries gives the agents in their order, and what is wrong with the admin's file, or "".
func (c *Catalog) Entries() (entries []Entry, problem string) {
	l, problem := c.current()
	return l.Agents, problem
}

func (c *Catalog) current() (l list, problem string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := look(c.path)
	if now == c.seen {
		return c.now, c.problem
	}
	c.seen, c.now, c.problem = now, ownList(), ""
	if now == (stamp{}) {
		return c.now, ""
	}
	own, err := readList(c.path)
	if err != nil {
		c.problem = fmt.Sprintf("The server's own list of agents has a mistake, so only the built-in agents are offered: %v.", err)
		c.log.Error("the list of agents has a mistake; the built-in agents stay", "file", c.path, "error", err)
		return c.now, c.problem
	}
	c.now = c.now.with(own)
	c.log.Info("the list of agents was read", "file", c.path, "agents", len(own.Agents))
	return c.now, ""
}

// Entry gives one. NotFound.
func (c *Catalog) Entry(id string) (Entry, error) {
	e, _, err := c.find(id)
	return e, err
}

func (c *Catalog) find(id string) (Entry, nodeVersions, error) {
	l, _ := c.current()
	for _, e := range l.Agents {
		if e.ID == id {
			return e, l.Node, nil
		}
	}
	return Entry{}, nodeVersions{}, fault.New(fault.NotFound, "There is no agent %.40q.", id)
}

// Agent says how one is started. NotFound. Whether a sandbox has it, only starting tells.
func (c *Catalog) Agent(id string) (Agent, error) {
	e, err := c.Entry(id)
	if err != nil {
		return Agent{}, err
	}
	a := Agent{Name: e.Name, Command: append([]string{Root + "/" + e.ID + "/run"}, e.Command...), Cwd: wire.HomePath, Authenticate: e.Authenticate}
	for k, v := range e.Env {
		a.Env = append(a.Env, k+"="+v)
	}
	slices.Sort(a.Env)
	return a, nil
}
