package docker

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"sandboxd/internal/fault"
)

// resolverTarget is where programs look for DNS servers.
const resolverTarget = "/etc/resolv.conf"

// resolverFiles are where this host says what DNS servers it asks, best first. systemd's names those behind its own one,
// which listens on the host's loopback.
var resolverFiles = []string{resolverTarget, "/run/systemd/resolve/resolv.conf"}

// publicServers are asked when this host names no server that a sandbox can reach, as the engine itself does then.
var publicServers = []netip.Addr{netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("8.8.4.4")}

// mostServers is how many servers the C library reads.
const mostServers = 3

// resolver keeps the file that all sandboxes have as their resolv.conf. It takes the place of the engine's own resolver,
// which knows all containers of a network by name and address. It gives up what that one did besides: servers on
// the host's loopback, and those that the engine alone was told of.
type resolver struct {
	path  string       // of the file; it stays the same file, so that sandboxes that have it see it change
	fixed []netip.Addr // configured; empty for this host's own
	files []string

	mu      sync.Mutex
	text    []byte
	servers []netip.Addr
}

// newResolver writes the file. It gives nil, for the engine's own resolver, when c names none.
func newResolver(c Config) (*resolver, error) {
	if c.ResolverFile == "" {
		return nil, nil
	}
	r := &resolver{path: c.ResolverFile, fixed: c.DNS, files: resolverFiles}
	_, err := r.refresh()
	return r, err
}

// addresses gives the servers that sandboxes ask.
func (r *resolver) addresses() []netip.Addr {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.servers)
}

// refresh writes the file anew if it has to say something else than before.
func (r *resolver) refresh() (changed bool, err error) {
	servers, rest := r.look()
	var text bytes.Buffer
	text.WriteString("# Written by sandboxd: the DNS servers of its host.\n")
	for _, s := range servers {
		fmt.Fprintf(&text, "nameserver %s\n", s)
	}
	for _, line := range rest {
		fmt.Fprintln(&text, line)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if bytes.Equal(r.text, text.Bytes()) {
		return false, nil
	}
	f, err := os.OpenFile(r.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err == nil {
		_, err = f.Write(text.Bytes())
		if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
			r.text, r.servers = text.Bytes(), servers
			return true, nil
		}
	}
	return false, fault.Wrap(err, fault.Unavailable, "The sandboxes' list of DNS servers cannot be written: %v.", err)
}

// look gives the servers, and what else the host's file says to those who ask them.
func (r *resolver) look() (servers []netip.Addr, rest []string) {
	for _, name := range r.files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if servers, rest = parseResolver(string(text)); len(servers) > 0 {
			break
		}
	}
	if len(r.fixed) > 0 {
		return r.fixed, rest
	}
	if len(servers) == 0 {
		servers = publicServers
	}
	return servers, rest
}

// parseResolver reads a resolv.conf: the servers that a sandbox can reach, which are none on a loopback and none with IPv6, and
// the lines on search and options.
func parseResolver(text string) (servers []netip.Addr, rest []string) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "nameserver":
			a, err := netip.ParseAddr(fields[1])
			if err == nil && a.Is4() && !a.IsLoopback() && !a.IsUnspecified() && len(servers) < mostServers {
				servers = append(servers, a)
			}
		case "search", "options":
			rest = append(rest, strings.Join(fields, " "))
		}
	}
	return servers, rest
}

// tell gives a container r's file. Its guest closes the engine's resolver, which listens in the container's own network,
// before it runs anything else, and gives the capability for that up.
func (r *resolver) tell(h *container.HostConfig) {
	if r == nil {
		return
	}
	h.CapAdd = slices.Concat(h.CapAdd, []string{"NET_ADMIN"})
	h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeBind, Source: r.path, Target: resolverTarget, ReadOnly: true})
}
